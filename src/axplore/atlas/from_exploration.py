"""How an exploration becomes an atlas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.from_certificate import atlas_from_certificate
from axplore.certificate import Certificate
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.errors import InvalidInputError
from axplore.explorers.base import Exploration
from axplore.proofs.certificates import certificate_from
from axplore.types import Action, State, Status
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
    """The atlas of an exploration.

    Args:
        exploration: what the explorer handed back.
        world: what it explored; it is asked for the labels of the states that it met, and is not kept.
        world_name: what to call it.
        explorer_name: what to call the explorer.
        steps_before: the steps that the world had taken before.
        findings: what was found when the system was examined.
        faults: failures of the system while it was explored.
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
    if exploration.evidence is not None:
        counted = {*exploration.states, *exploration.frontier}
        uncounted = tuple(state for state in seen if state not in counted)
        certificate = certificate_from_exploration(exploration, findings, faults)
        return atlas_from_certificate(certificate, **record, uncounted=uncounted)
    numbers = {state: number for number, state in enumerate(seen)}
    left_out = np.array([numbers[state] for state in exploration.frontier], dtype=np.int64)
    n_places = len(exploration.states) + len(left_out)
    return Atlas(
        **record,
        target=exploration.explorer.target,
        objective=None,
        seen=seen,
        numbers=exploration.numbers.view(),
        actions=exploration.actions,
        policies=tuple(policy.view() for policy in exploration.policies),
        left_out_numbers=left_out,
        lower=np.concatenate((exploration.optimistic_steps, np.zeros(len(left_out)))),
        upper=np.full(n_places, np.inf),
        regret=np.full(n_places, np.inf),
        statuses=(Status.OPEN,) * n_places,
        unseen_lower=0.0,
        proven=False,
        complete=False,
        count_arrays=exploration.counts.to_arrays(),
        findings=findings,
        faults=faults,
    )


def certificate_from_exploration(
    exploration: Exploration, findings: tuple[FindingRecord, ...] = (), faults: tuple[FaultRecord, ...] = ()
) -> Certificate:
    """Returns the certificate of everything that is proven; claims that are still open are left out."""
    if exploration.evidence is None:
        raise InvalidInputError("this exploration has no evidence; only the certified explorer proves anything")
    return certificate_from(
        exploration.evidence,
        exploration.counts.rows(),
        known=exploration.states,
        others=exploration.frontier,
        actions=exploration.actions,
        findings=findings,
        faults=faults,
    )


def finding_records(findings: Iterable[Finding]) -> tuple[FindingRecord, ...]:
    """What an examination found, as an atlas keeps it."""
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
    """Failures of a system as an atlas keeps them."""
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
    """One record of each kind of fault at each state and action, with all of them counted."""
    first: dict[tuple[str, tuple[State, Action] | None], FaultRecord] = {}
    for record in records:
        key = record.kind, record.pair
        before = first.get(key)
        first[key] = record if before is None else replace(before, count=before.count + record.count)
    return tuple(first.values())
