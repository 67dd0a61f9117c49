"""What was noticed beside the counts, and may make what they prove worthless: findings and faults.

The counts prove nothing of a system that breaks the assumptions, and no verifier can see that it does. So whatever was
seen of it is kept with the counts, in plain words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from axplore.errors import InvalidInputError
from axplore.labels import Json, decode_label, encode_label
from axplore.types import Action, State

DOUBT: Final = "doubt"
"""The level of a finding that makes what is proven doubtful."""

NOTE: Final = "note"
"""The level of a finding under which it holds all the same."""


@dataclass(frozen=True)
class FindingRecord:
    """Something that an examination found in a system before it was explored.

    Attributes:
        issue: its name.
        title: what it is, in a few words.
        seen: what was observed.
        meaning: what it means for what is proven.
        remedy: what to do about it.
        level: `DOUBT` or `NOTE`.
    """

    issue: str
    title: str
    seen: str
    meaning: str
    remedy: str
    level: str

    @property
    def is_doubt(self) -> bool:
        """Whether what is proven is doubtful because of it."""
        return self.level != NOTE

    def as_json(self) -> dict[str, Json]:
        """The record in plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Json) -> FindingRecord:
        """Reads what `as_json` wrote."""
        content = _object(given, {field.name for field in fields(cls)})
        if not all(isinstance(value, str) for value in content.values()) or content["level"] not in (DOUBT, NOTE):
            raise InvalidInputError("a finding is not in words, or of an unknown level")
        return cls(**content)

    def __str__(self) -> str:
        return f"{self.title}. {self.seen} {self.meaning} {self.remedy}"


LOST: Final = "LOST"
"""The kind of a fault that is the loss of a worker, with draws that others cannot repeat."""


@dataclass(frozen=True)
class FaultRecord:
    """A failure of the system in the midst of an exploration, after which the system was started again.

    Attributes:
        kind: its name.
        pair: the state and the action that was being played; None at a RESET, and of a lost worker.
        count: how often this happened.
        message: what the system said the first time.
    """

    kind: str
    pair: tuple[State, Action] | None
    count: int
    message: str

    @property
    def is_doubt(self) -> bool:
        """Whether an outcome was lost with it; at a RESET there is none to lose."""
        return self.pair is not None or self.kind == LOST

    def as_json(self) -> dict[str, Json]:
        """The record in plain JSON."""
        pair = None if self.pair is None else [encode_label(label) for label in self.pair]
        return {"kind": self.kind, "pair": pair, "count": self.count, "message": self.message}

    @classmethod
    def from_json(cls, given: Json) -> FaultRecord:
        """Reads what `as_json` wrote."""
        content = _object(given, {field.name for field in fields(cls)})
        kind, pair, count, message = (content[name] for name in ("kind", "pair", "count", "message"))
        if not (isinstance(kind, str) and isinstance(message, str) and type(count) is int and count > 0):
            raise InvalidInputError("a fault has no kind, no message or no count")
        if pair is not None and not (isinstance(pair, list) and len(pair) == 2):
            raise InvalidInputError("a fault names neither a state and an action nor a RESET")
        labels = None if pair is None else (decode_label(pair[0]), decode_label(pair[1]))
        return cls(kind, labels, count, message)

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        if self.kind == LOST:
            return (
                f"Draws that cannot be repeated were lost with a worker {times}: {self.message}. The counts are biased "
                "if where they led has to do with the loss."
            )
        if self.pair is None:
            return f"The system failed {times} at a RESET: {self.message}"
        return (
            f"The system failed {times} at action {self.pair[1]!r} in state {self.pair[0]!r}: {self.message}. Where "
            "these steps would have led is not counted, so that the counts are biased if that has to do with failing."
        )


def doubts_in(findings: tuple[FindingRecord, ...], faults: tuple[FaultRecord, ...]) -> tuple[str, ...]:
    """Everything that makes what is proven doubtful, a few sentences each."""
    return (
        *(str(finding) for finding in findings if finding.is_doubt),
        *(str(fault) for fault in faults if fault.is_doubt),
    )


def notes_in(findings: tuple[FindingRecord, ...], faults: tuple[FaultRecord, ...]) -> tuple[str, ...]:
    """Everything else that was noticed, a few sentences each."""
    every = (*map(str, findings), *map(str, faults))
    return tuple(record for record in every if record not in doubts_in(findings, faults))


def _object(given: Json, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(given, dict) or given.keys() != names:
        raise InvalidInputError(f"a record does not have the keys {', '.join(sorted(names))}")
    return given
