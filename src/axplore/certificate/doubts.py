"""Whether what was noticed of a system makes what its counts prove doubtful, in words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from axplore.records.findings import Fault, FaultKind, Finding
from axplore.records.order import Labels


def summed_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Returns one record for each kind of fault, state and action, with the number of its faults."""
    first: dict[tuple[FaultKind, Labels | None], Fault] = {}
    for fault in faults:
        before = first.get((fault.kind, fault.pair))
        summed = fault if before is None else replace(before, count=before.count + fault.count)
        first[fault.kind, fault.pair] = summed
    return tuple(first.values())


def doubts_in(findings: tuple[Finding, ...], faults: tuple[Fault, ...]) -> tuple[str, ...]:
    """Everything that makes what is proven doubtful, a few sentences each."""
    return (
        *(str(finding) for finding in findings if finding.is_doubt),
        *(fault_text(fault) for fault in faults if fault.is_doubt),
    )


def notes_in(findings: tuple[Finding, ...], faults: tuple[Fault, ...]) -> tuple[str, ...]:
    """Everything else that was noticed, a few sentences each."""
    return (
        *(str(finding) for finding in findings if not finding.is_doubt),
        *(fault_text(fault) for fault in faults if not fault.is_doubt),
    )


def fault_text(fault: Fault) -> str:
    """What a failure that happened a number of times means for the counts."""
    times = "once" if fault.count == 1 else f"{fault.count} times"
    if fault.kind is FaultKind.LOST:
        return (
            f"Draws that cannot be repeated were lost with a worker {times}: {fault.message}. The counts are biased if "
            "where they led has to do with the loss."
        )
    if fault.kind is FaultKind.CLOSED:
        return f"The system {fault.kind.value} {times}: {fault.message}"
    if fault.pair is None:
        return f"The system failed {times} at a RESET: {fault.message}"
    return (
        f"The system failed {times} at action {fault.pair[1]!r} in state {fault.pair[0]!r}: {fault.message}. Where "
        "these steps would have led is not counted, so that the counts are biased if that has to do with failing."
    )
