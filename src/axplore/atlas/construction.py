"""Makes an atlas from an exploration.

What proves is imported where it is used: an atlas is read and verified without compiled code.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import structs

from axplore.atlas.atlas import Atlas
from axplore.certificate import Certificate
from axplore.certificate.binding import draws_by_label
from axplore.certificate.conclusions import conclusions_of
from axplore.errors import InvalidInputError
from axplore.explorers.base import Exploration, with_known
from axplore.goals import Goal
from axplore.records.estimate import Estimate
from axplore.records.findings import Examined, Fault, Finding
from axplore.records.order import Labels
from axplore.records.properties import NamedStates
from axplore.records.run import RunRecord
from axplore.worlds.contract import World
from axplore.worlds.situations import memory_in


def atlas_of(
    exploration: Exploration,
    world: World,
    *,
    world_name: str,
    explorer_name: str,
    steps_before: int = 0,
    examining: int = 0,
    playing: int = 0,
    findings: tuple[Finding, ...] = (),
    faults: tuple[Fault, ...] = (),
    examined: Examined | None = None,
) -> Atlas:
    """Returns the atlas of an exploration.

    Args:
        exploration: the result of the explorer.
        world: the world that was explored. It provides the labels of states, and is not kept.
        world_name: the name of the world.
        explorer_name: the name of the explorer.
        steps_before: the steps that the world had taken before the exploration.
        examining, playing: see `RunRecord`.
        findings: the findings of the examination.
        faults: the failures of the system during the exploration.
        examined: how long it was looked at for what its labels may hide; None for a model.
    """
    record = RunRecord(
        world=world_name,
        explorer=explorer_name,
        steps=exploration.steps - steps_before,
        rounds=exploration.rounds,
        stop=exploration.stop,
        found_at=exploration.found_at - steps_before,
        examining=examining,
        playing=playing,
        logged=exploration.logged,
    )
    if exploration.evidence is not None or exploration.survey is not None or exploration.properties:
        certificate = certificate_from_exploration(exploration, findings, faults)
        memory = memory_in(world.labelling)
        if (memory, examined) != (None, None):
            certificate = structs.replace(certificate, memory=memory, examined=examined)
        certificate = _with_goal(certificate, exploration.explorer.goal)
        uncounted = _uncounted(certificate, world)
        draws = draws_by_label(exploration.counts, (world.states[number] for number in exploration.numbers.tolist()))
        return Atlas(source=certificate, run=structs.replace(record, draws=draws, uncounted=uncounted))
    counted = set(exploration.counts.states.tolist())
    target = exploration.explorer.target
    estimate = Estimate(
        radius=target.radius,
        epsilon=target.epsilon,
        delta=target.delta,
        counts=with_known(exploration.counts, (n for n in exploration.numbers.tolist() if n not in counted), world),
        states=exploration.numbers.view(),
        frontier=exploration.frontier_numbers.view(),
        policies=tuple(policy.view() for policy in exploration.policies),
        optimistic_steps=exploration.optimistic_steps,
        findings=findings,
        faults=faults,
        memory=memory_in(world.labelling),
    )
    return Atlas(source=estimate, run=record)


def with_later(
    atlas: Atlas,
    world: World,
    *,
    playing: int,
    findings: tuple[Finding, ...],
    faults: tuple[Fault, ...],
    examined: Examined | None,
) -> Atlas:
    """Returns the atlas of an exploration with what was noticed since it was made; its claims stay as they are."""
    source, run = atlas.source, structs.replace(atlas.run, playing=playing)
    if isinstance(source, Certificate):  # playing policies may have met more states
        if (findings, faults, examined) != (source.findings, source.faults, source.examined):
            source = structs.replace(source, findings=findings, faults=faults, examined=examined)
        run = structs.replace(run, uncounted=_uncounted(source, world))
    elif (findings, faults) != (source.findings, source.faults):
        source = structs.replace(source, findings=findings, faults=faults)
    return replace(atlas, source=source, run=run)


def _uncounted(certificate: Certificate, world: World) -> Labels:
    """The states that were met and are not among the counts."""
    return Labels(state for state in world.states if state not in certificate.counts.order)


def certificate_from_exploration(
    exploration: Exploration, findings: tuple[Finding, ...] = (), faults: tuple[Fault, ...] = ()
) -> Certificate:
    """Returns the certificate of everything that is proven; claims that are still open are left out."""
    from axplore.proofs.certificates import certificate_from, question_certificate, survey_certificate

    if exploration.properties:
        return question_certificate(
            exploration.counts, exploration.explorer.target, exploration.properties,
            findings=findings, faults=faults, assumed=exploration.assumed,
        )  # fmt: skip
    if exploration.survey is not None:
        return survey_certificate(exploration.survey, findings=findings, faults=faults)
    if exploration.evidence is None:
        raise InvalidInputError("this exploration has no evidence; only the certified explorer proves anything")
    return certificate_from(
        exploration.evidence, exploration.counts, findings=findings, faults=faults, assumed=exploration.assumed
    )


def _with_goal(certificate: Certificate, goal: Goal) -> Certificate:
    """Returns a certificate that says which goal was asked for, and is complete once that is answered."""
    if goal.is_everything:
        return certificate
    order = certificate.counts.order
    states = np.array([index for index, state in enumerate(order) if goal.includes(state)], dtype=np.int64)
    asked = structs.replace(certificate, goal=NamedStates(goal.text, states))
    return structs.replace(asked, complete=not conclusions_of(asked).open_parts)


def with_findings(atlas: Atlas, findings: tuple[Finding, ...]) -> Atlas:
    """Returns an atlas with what was found of its system since, in its certificate too."""
    every = (*atlas.findings, *(finding for finding in findings if finding not in atlas.findings))
    return replace(atlas, source=structs.replace(atlas.source, findings=every))
