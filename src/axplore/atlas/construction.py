"""Makes an atlas from an exploration or from a certificate.

Everything that an atlas calls proven follows from its certificate, so both end in `atlas_from_certificate`. What
proves is imported where it is used: an atlas is read and verified without compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.certificate import Certificate
from axplore.certificate.conclusions import conclusions_of
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.errors import InvalidInputError
from axplore.explorers.base import Exploration, StopReason
from axplore.target import Target
from axplore.types import Action, IntArray, State, Status
from axplore.worlds.contract import Fault, World
from axplore.worlds.diagnosis import Finding


def atlas_of(
    exploration: Exploration,
    world: World,
    *,
    world_name: str,
    explorer_name: str,
    steps_before: int = 0,
    findings: tuple[FindingRecord, ...] = (),
    faults: tuple[FaultRecord, ...] = (),
) -> Atlas:
    """Returns the atlas of an exploration.

    Args:
        exploration: the result of the explorer.
        world: the world that was explored. It provides the labels of states, and is not kept.
        world_name: the name of the world.
        explorer_name: the name of the explorer.
        steps_before: the steps that the world had taken before the exploration.
        findings: the findings of the examination.
        faults: the failures of the system during the exploration.
    """
    record: dict[str, Any] = {
        "world": world_name,
        "explorer": explorer_name,
        "found_at": exploration.found_at - steps_before,
        "steps": exploration.steps - steps_before,
        "rounds": exploration.rounds,
        "stop": exploration.stop,
    }
    seen = tuple(world.states)
    if exploration.evidence is not None or exploration.survey is not None:
        counted = {*exploration.states, *exploration.frontier}
        uncounted = tuple(state for state in seen if state not in counted)
        certificate = certificate_from_exploration(exploration, findings, faults)
        if world.memory is not None:
            certificate = replace(certificate, memory=world.memory)
        return atlas_from_certificate(certificate, **record, uncounted=uncounted)
    numbers = {state: number for number, state in enumerate(seen)}
    frontier = np.array([numbers[state] for state in exploration.frontier], dtype=np.int64)
    n_places = len(exploration.states) + len(frontier)
    return Atlas(
        **record,
        target=exploration.explorer.target,
        objective=None,
        seen=seen,
        numbers=exploration.numbers.view(),
        actions=exploration.actions,
        policies=tuple(policy.view() for policy in exploration.policies),
        frontier_numbers=frontier,
        lower=np.concatenate((exploration.optimistic_steps, np.zeros(len(frontier)))),
        upper=np.full(n_places, np.inf),
        regret=np.full(n_places, np.inf),
        statuses=(Status.OPEN,) * n_places,
        unseen_lower=0.0,
        proven=False,
        complete=False,
        count_arrays=exploration.counts.to_arrays(),
        findings=findings,
        faults=faults,
        memory=world.memory,
    )


def certificate_from_exploration(
    exploration: Exploration, findings: tuple[FindingRecord, ...] = (), faults: tuple[FaultRecord, ...] = ()
) -> Certificate:
    """Returns the certificate of everything that is proven; claims that are still open are left out."""
    if exploration.evidence is None and exploration.survey is None:
        raise InvalidInputError("this exploration has no evidence; only the certified explorer proves anything")
    from axplore.proofs.certificates import certificate_from, survey_certificate

    record: dict[str, Any] = {
        "known": exploration.states,
        "others": exploration.frontier,
        "actions": exploration.actions,
        "findings": findings,
        "faults": faults,
    }
    if exploration.survey is not None:
        return survey_certificate(exploration.survey, **record)
    assert exploration.evidence is not None
    return certificate_from(exploration.evidence, exploration.counts.rows(), assumed=exploration.assumed, **record)


def finding_records(findings: Iterable[Finding]) -> tuple[FindingRecord, ...]:
    """Returns findings as an atlas stores them."""
    return tuple(
        FindingRecord(
            issue=finding.issue.name,
            title=finding.issue.value,
            seen=finding.seen,
            meaning=finding.meaning,
            remedy=finding.remedy,
            level=finding.level.value,
        )
        for finding in findings
    )


def fault_records(faults: Iterable[Fault]) -> tuple[FaultRecord, ...]:
    """Returns faults as an atlas stores them."""
    return summed_faults(
        FaultRecord(
            kind=fault.kind.name,
            pair=None if fault.state is None and fault.action is None else (fault.state, fault.action),
            count=1,
            message=fault.message,
        )
        for fault in faults
    )


def summed_faults(records: Iterable[FaultRecord]) -> tuple[FaultRecord, ...]:
    """Returns one record for each kind of fault, state and action, with the number of its faults."""
    first: dict[tuple[str, tuple[State, Action] | None], FaultRecord] = {}
    for record in records:
        key = record.kind, record.pair
        before = first.get(key)
        first[key] = record if before is None else replace(before, count=before.count + record.count)
    return tuple(first.values())


def atlas_from_certificate(
    certificate: Certificate,
    *,
    world: str,
    explorer: str,
    found_at: IntArray,
    uncounted: tuple[State, ...],
    steps: int,
    rounds: int,
    stop: StopReason,
) -> Atlas:
    """Returns the atlas of a certificate. The other arguments only record the run; nothing is concluded from them.

    States are numbered as in the certificate: the known ones in order of admission, the others seen, and then those
    that the world has met without counting a transition to them.
    """
    n_known, n_seen = len(certificate.known), certificate.n_seen
    concluded = conclusions_of(certificate)
    counts = certificate.counts
    drawn = np.concatenate(([0], np.cumsum(counts.counts)))
    return Atlas(
        world=world,
        explorer=explorer,
        target=Target(radius=certificate.radius, epsilon=certificate.epsilon, delta=certificate.delta),
        objective=certificate.objective,
        seen=(*certificate.known, *certificate.others, *uncounted),
        numbers=np.arange(n_known),
        found_at=found_at,
        actions=certificate.actions,
        policies=concluded.policies,
        frontier_numbers=np.arange(n_known, n_seen),
        lower=concluded.lower,
        upper=concluded.upper,
        regret=concluded.regret,
        statuses=concluded.statuses,
        unseen_lower=concluded.unseen_lower,
        proven=True,
        complete=certificate.complete,
        count_arrays={
            "states": np.arange(n_known),
            "state_pairs": certificate.state_pairs,
            "visits": np.diff(drawn[counts.row_offsets]),
            "row_offsets": counts.row_offsets,
            "successors": counts.successors,
            "counts": counts.counts,
            "first_draws": counts.first_draws,
        },
        steps=steps,
        rounds=rounds,
        stop=stop,
        findings=certificate.findings,
        faults=certificate.faults,
        assumed=certificate.assumed,
        apart=certificate.apart,
        memory=certificate.memory,
        tests=certificate.episodes,
        certificate=certificate,
    )
