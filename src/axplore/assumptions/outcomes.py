"""`outcomes=K`: no action has more than K outcomes, so the support of one that has shown K is closed.

Nothing is inferred from what was not seen, so no part of δ is spent on it. An outcome too many contradicts it.
docs/assumptions.md has the proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import plain, refusal, whole
from axplore.assumptions.kind import Draw, Examined, Loading, Pair, PairKind
from axplore.types import Action, FloatArray, State

if TYPE_CHECKING:
    from axplore.assumptions.declared import Assumptions

FEWEST: Final = 2
"""Fewer outcomes than this are `deterministic`, which has a proof of its own."""

NUMBER: Final = whole(least=FEWEST, most=10**6)


class Outcomes(PairKind):
    """No pair has more outcomes than its number; or a function of state and action gives that, 0 for nothing."""

    name, form = "outcomes", "outcomes=K"

    def read(self, text: str, load: Loading | None) -> int | None:  # noqa: ARG002
        """A whole number."""
        if not text:
            return None
        if not text.isdecimal():
            raise refusal(self.name, text, f"a whole number from {FEWEST} on")
        return int(self.checked(int(text)))

    def checked(self, value: Any) -> Any:
        """A number of outcomes, nothing, or a function."""
        given = plain(value)
        if given is None or callable(given):
            return given
        if given == 1 and not isinstance(given, bool):
            raise refusal(self.name, given, f"a whole number from {FEWEST} on; one outcome is `deterministic`")
        return NUMBER(self.name, given)

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        """The number."""
        return f"outcomes {'as declared' if callable(value) else value}"

    def clause(self, number: float, *, everywhere: bool) -> str:
        """The number."""
        whose = "no action is assumed to have" if everywhere else "it is assumed to have no"
        return f"{whose} more than {number:g} outcomes"

    def number(self, value: Any, state: State, action: Action) -> float:
        """The number, 0 for nothing."""
        given = value(state, action) if callable(value) else value
        return float(NUMBER(self.name, given)) if given else 0.0

    def most_outcomes(self, numbers: FloatArray) -> FloatArray:
        """The numbers themselves."""
        return np.where(numbers > 0.0, numbers, np.inf)

    def examined(
        self,
        value: Any,
        assume: Assumptions,  # noqa: ARG002
        draws: Sequence[Draw],
        false_alarm: float,  # noqa: ARG002  # an outcome too many is observed, not inferred
    ) -> Examined:
        """Looks for an outcome too many."""
        outcomes: dict[Pair, Counter[State]] = {}
        for draw in draws:
            outcomes.setdefault(draw.pair, Counter())[draw.successor] += 1
        full = 0
        for (state, action), met in outcomes.items():
            most = self.number(value, state, action)
            if most and len(met) > most:
                return Examined(
                    f"'outcomes': action {action!r} of state {state!r} led to {len(met)} states, and at most {most:g} "
                    "are assumed.",
                    is_false=True,
                )
            full += bool(most) and len(met) == most
        return Examined(
            f"outcomes: none of {len(outcomes):,} actions had more than assumed, and {full:,} of them had as many."
        )
