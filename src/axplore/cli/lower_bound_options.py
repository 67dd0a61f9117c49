"""The lower bound that `axplore truth` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from axplore.errors import InvalidSettingError

if TYPE_CHECKING:
    from axplore.lower_bounds import ChangedRow, LowerBound, Progress
    from axplore.truth import ControllableStates

OBJECTIVES: Final = ("optimal", "within-radius")

SHOWN_ALTERNATIVES: Final = 20
"""Of the alternatives, a table shows this many with the largest shares."""

SHOWN_CHANGES: Final = 3
"""Of the changed rows of an alternative, a table shows this many with the largest divergences."""


@dataclass(frozen=True)
class LowerBoundOptions:
    """What a lower bound is asked for.

    Attributes:
        epsilon: ε.
        delta: δ.
        objective: among `OBJECTIVES`.
        seconds: that the search may take; the library's own limit when None.
    """

    epsilon: float
    delta: float
    objective: str
    seconds: float | None

    @classmethod
    def checked(
        cls,
        is_wanted: bool,
        epsilon: float | None,
        delta: float | None,
        objective: str | None,
        seconds: float | None,
    ) -> LowerBoundOptions | None:
        """The options; None if no bound is wanted. Refuses options without a bound, and a bound without epsilon."""
        given = {"--epsilon": epsilon, "--delta": delta, "--objective": objective, "--seconds": seconds}
        if not is_wanted:
            for name, value in given.items():
                if value is not None:
                    raise InvalidSettingError(f"{name} is for a lower bound: give --lower-bound too")
            return None
        if epsilon is None:
            raise InvalidSettingError("--lower-bound needs --epsilon: the bound depends on it")
        if objective is not None and objective not in OBJECTIVES:
            raise InvalidSettingError(f"objective is {objective!r}; it must be one of {', '.join(OBJECTIVES)}")
        return cls(epsilon, 0.1 if delta is None else delta, objective or OBJECTIVES[0], seconds)

    def lower_bound(self, answer: ControllableStates) -> PrintedLowerBound:
        """Searches for the bound, with its progress on standard error."""
        from rich.console import Console

        from axplore.lower_bounds import SECONDS, lower_bound
        from axplore.target import Objective

        objective = Objective.OPTIMAL if self.objective == OBJECTIVES[0] else Objective.WITHIN_RADIUS
        with Console(stderr=True).status("looking for alternatives") as status:

            def watch(progress: Progress) -> None:
                status.update(
                    f"round {progress.round}: at least {progress.steps:,.1f} steps, "
                    f"{progress.alternatives} alternatives, {progress.seconds:.0f} s"
                )

            found = lower_bound(
                answer.mdp,
                answer.radius,
                self.epsilon,
                self.delta,
                objective,
                seconds=SECONDS if self.seconds is None else self.seconds,
                watcher=watch,
            )
        return PrintedLowerBound(found, self.objective)


@dataclass(frozen=True)
class PrintedLowerBound:
    """A lower bound, for people and for programs.

    Attributes:
        found: the bound.
        objective: as the option says it.
    """

    found: LowerBound
    objective: str

    def as_json(self) -> dict[str, Any]:
        """The bound with its alternatives and allocation."""
        from axplore.experiments.limits import alternatives_as_json

        found = self.found
        return {
            "steps": found.steps,
            "epsilon": found.epsilon,
            "delta": found.delta,
            "objective": self.objective,
            "information": found.information,
            "search_ended": found.finished,
            "alternatives": alternatives_as_json(found),
            "allocation": [
                {"state": str(one.state), "action": _action(one.action), "draws": one.draws} for one in found.allocation
            ],
        }

    def print(self) -> None:
        """Prints the bound, and the alternatives that it rests on."""
        from axplore.cli.console import print_lines, print_table

        found = self.found
        shown = found.alternatives[:SHOWN_ALTERNATIVES]
        rows = [
            (f"{one.steps:,.1f}", str(one.goal), one.kind.value, "\n".join(map(_in_words, _largest(one.changes))))
            for one in shown
        ]
        title = (
            f"No algorithm that is right with probability {1 - found.delta:g} takes fewer than {found.steps:,.1f} "
            f"expected steps (ε = {found.epsilon:g}, {self.objective})"
        )
        print_lines([""])
        print_table(title, ("steps", "goal", "what it does", "what changes"), rows)
        hidden = len(found.alternatives) - len(shown)
        lines = [f"{hidden} more alternatives have smaller shares; --json lists them."] if hidden else []
        if not found.finished:
            lines.append("The search was ended before its time; a longer one may prove more.")
        print_lines(lines)


def _largest(changes: tuple[ChangedRow, ...]) -> list[ChangedRow]:
    return sorted(changes, key=lambda change: -change.divergence)[:SHOWN_CHANGES]


def _in_words(change: ChangedRow) -> str:
    moved = {
        state: (change.before.get(state, 0.0), chance)
        for state, chance in change.after.items()
        if abs(chance - change.before.get(state, 0.0)) > 5e-4
    }
    chances = ", ".join(f"{state} {before:.3g} → {after:.3g}" for state, (before, after) in moved.items())
    return f"{change.state}, {change.action}: {chances or 'a little'}"


def _action(action: object) -> str:
    from axplore.types import RESET

    return "RESET" if action is RESET else str(action)
