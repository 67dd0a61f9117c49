"""How `axplore truth --lower-bound` shows a bound: progress of the search, a table, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from axplore.cli.console import print_lines, print_table
from axplore.labels import readable
from axplore.target import Objective
from axplore.truth import ControllableStates
from axplore_studies.lower_bounds.alternatives import ChangedRow
from axplore_studies.lower_bounds.bound import SECONDS, BoundProgress, LowerBound, lower_bound

SHOWN_ALTERNATIVES: Final = 20
"""The number of alternatives in a table, those with the largest shares."""

SHOWN_CHANGES: Final = 3
"""The number of changed rows of an alternative in a table, those with the largest divergences."""


def search(
    answer: ControllableStates, *, epsilon: float, delta: float, objective: str, seconds: float | None
) -> PrintedLowerBound:
    """Searches for the bound, and shows progress on standard error.

    Args:
        answer: the truth of the model.
        epsilon: ε.
        delta: δ.
        objective: "optimal" or "within-radius".
        seconds: the time limit of the search; None for `SECONDS`.
    """
    with Console(stderr=True).status("looking for alternatives") as status:

        def watch(progress: BoundProgress) -> None:
            status.update(
                f"round {progress.round}: at least {progress.steps:,.1f} steps, "
                f"{progress.alternatives} alternatives, {progress.seconds:.0f} s"
            )

        found = lower_bound(
            answer.mdp,
            answer.radius,
            epsilon,
            delta,
            Objective.OPTIMAL if objective == "optimal" else Objective.WITHIN_RADIUS,
            seconds=SECONDS if seconds is None else seconds,
            watcher=watch,
        )
    return PrintedLowerBound(found, objective)


@dataclass(frozen=True)
class PrintedLowerBound:
    """A lower bound to print.

    Attributes:
        found: the bound.
        objective: the objective, as in the option.
    """

    found: LowerBound
    objective: str

    def as_json(self) -> dict[str, Any]:
        """Returns the bound with its alternatives and allocation as JSON values."""
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
                {"state": readable(one.state), "action": readable(one.action), "draws": one.draws}
                for one in found.allocation
            ],
        }

    def print(self) -> None:
        """Prints the bound, and the alternatives that it rests on."""
        found = self.found
        shown = found.alternatives[:SHOWN_ALTERNATIVES]
        rows = [
            (f"{one.steps:,.1f}", readable(one.goal), one.kind.value, "\n".join(map(_in_words, _largest(one.changes))))
            for one in shown
        ]
        title = (
            f"No algorithm that is correct with probability {1 - found.delta:g} takes fewer than {found.steps:,.1f} "
            f"expected steps (ε = {found.epsilon:g}, {self.objective})"
        )
        print_lines([""])
        print_table(title, ("steps", "goal", "what it does", "what changes"), rows)
        hidden = len(found.alternatives) - len(shown)
        lines = [f"{hidden} more alternatives have smaller shares; --json lists them."] if hidden else []
        if not found.finished:
            lines.append("The search was stopped early; a longer one may prove more.")
        print_lines(lines)


def alternatives_as_json(found: LowerBound) -> list[dict[str, Any]]:
    """Returns the alternatives that a bound rests on, with the changes of each, as JSON values."""
    return [
        {
            "kind": one.kind.value,
            "goal": readable(one.goal),
            "steps": round(one.steps, 3),
            "changes": [
                {
                    "state": readable(change.state),
                    "action": readable(change.action),
                    "divergence": float(f"{change.divergence:.4g}"),
                    "after": {readable(state): float(f"{chance:.6g}") for state, chance in change.after.items()},
                }
                for change in one.changes
            ],
        }
        for one in found.alternatives
    ]


def _largest(changes: tuple[ChangedRow, ...]) -> list[ChangedRow]:
    return sorted(changes, key=lambda change: -change.divergence)[:SHOWN_CHANGES]


def _in_words(change: ChangedRow) -> str:
    moved = {
        state: (change.before.get(state, 0.0), chance)
        for state, chance in change.after.items()
        if abs(chance - change.before.get(state, 0.0)) > 5e-4
    }
    chances = ", ".join(f"{readable(state)} {before:.3g} → {after:.3g}" for state, (before, after) in moved.items())
    return f"{readable(change.state)}, {readable(change.action)}: {chances or 'a little'}"
