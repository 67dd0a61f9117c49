"""`deterministic`: an action has one outcome, so one draw settles it. A second outcome contradicts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.arguments import plain, refusal
from axplore.assumptions.kind import Draw, Examined, Loading, Pair, PairKind
from axplore.statistics.confirming import SEEN_WITH, rate_seen
from axplore.types import Action, FloatArray, State

if TYPE_CHECKING:
    from axplore.assumptions.declared import Assumptions


class Deterministic(PairKind):
    """Every action has one outcome; or a function of state and action says which have. The number of a pair is 1."""

    name = form = "deterministic"
    closes = False

    def read(self, text: str, load: Loading | None) -> bool | None:  # noqa: ARG002
        """Nothing is written behind it."""
        return None if text else True

    def checked(self, value: Any) -> Any:
        """True, False or a function."""
        given = plain(value)
        if not (given is None or isinstance(given, bool) or callable(given)):
            raise refusal("deterministic", given, "True, False or a function of state and action")
        return given or None

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        """Whether it is of all pairs."""
        return "deterministic" if value is True else "deterministic where declared"

    def clause(self, number: float, *, everywhere: bool) -> str:  # noqa: ARG002
        """One outcome."""
        return f"{'every action' if everywhere else 'it'} is assumed to have one outcome"

    def number(self, value: Any, state: State, action: Action) -> float:
        """1 where it is assumed."""
        return float(value is True or bool(value(state, action)))

    def most_outcomes(self, numbers: FloatArray) -> FloatArray:
        """One where it is assumed."""
        return np.where(numbers > 0.0, 1.0, np.inf)

    def examined(
        self,
        value: Any,
        assume: Assumptions,  # noqa: ARG002
        draws: Sequence[Draw],
        false_alarm: float,  # noqa: ARG002  # a second outcome is observed, not inferred
    ) -> Examined:
        """Looks for a second outcome; actions that were played again would have shown one."""
        outcomes: dict[Pair, Counter[State]] = {}
        for draw in draws:
            if self.number(value, *draw.pair):
                outcomes.setdefault(draw.pair, Counter())[draw.successor] += 1
        for (state, action), met in outcomes.items():
            if len(met) > 1:
                one, two = (f"{successor!r} {times} times" for successor, times in met.most_common(2))
                return Examined(
                    f"'deterministic': action {action!r} of state {state!r} led to {one} and to {two}.", is_false=True
                )
        repeats = sum(met.total() - 1 for met in outcomes.values())
        if not repeats:
            return Examined("deterministic: no action was played twice, so that nothing can be said.")
        chance = rate_seen(repeats)
        return Examined(
            f"deterministic: {len(outcomes):,} actions had one outcome each, and were played {repeats:,} more times. A "
            f"second outcome that comes with a probability above {chance:.2g} each time would have been seen with "
            f"{SEEN_WITH:.0%}; an action that was played once tells nothing."
        )
