"""An atlas for reading: its table, and what it says as a whole."""

from __future__ import annotations

from typing import Any

from axplore.atlas.atlas import Atlas
from axplore.atlas.state_report import StateReport, rounded_down, rounded_up
from axplore.errors import AxploreError, printable
from axplore.labels import readable
from axplore.target import Objective
from axplore.types import Status

LISTED = 5
"""So many states are named where all of them would be too many."""


def title_of(atlas: Atlas) -> str:
    """What was found, in a line."""
    return (
        f"{atlas.world}: {_states(len(atlas.states))} for a radius of {atlas.target.radius:g} expected steps, found "
        f"by {atlas.explorer}"
    )


def headings_of(atlas: Atlas) -> tuple[str, ...]:
    """Of the columns."""
    bounds = ("at least", "at most", "loses at most") if atlas.proven else ("optimistic steps",)
    return ("state", *bounds, "found at step", "status")


def rows_of(atlas: Atlas) -> list[tuple[str, ...]]:
    """A row of text for each state of the atlas. Rounded bounds are still bounds."""
    rows = []
    for state, found_at in zip(atlas.states, atlas.found_at.tolist(), strict=True):
        standing = atlas.status(state)
        bounds = standing.bounds
        shown = [rounded_down(bounds.lower)]
        if bounds.proven:
            shown += [rounded_up(bounds.upper), rounded_up(bounds.regret)]
        rows.append(
            (readable(state), *shown, f"{found_at:,}", standing.status.value if bounds.proven else "not proven")
        )
    return rows


def summary_of(atlas: Atlas) -> list[str]:
    """Whether anything is missing, what is open, how sure it is, and what it took; a line each."""
    return [*_coverage(atlas), *_open_members(atlas), _trust(atlas), f"{atlas.steps:,} steps taken. {atlas.stop.value}"]


def as_text(atlas: Atlas) -> str:
    """Title, table and summary as plain text."""
    table = [headings_of(atlas), *rows_of(atlas)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return printable("\n".join([title_of(atlas), *lines, *summary_of(atlas)]))


def _coverage(atlas: Atlas) -> list[str]:
    radius = f"{atlas.target.radius:g} expected steps"
    others = _states(len(atlas.left_out), "other ")
    if not atlas.proven:
        return [f"{others} seen and left out."]
    if atlas.complete:
        farther = f"the {others} seen and whatever was never seen take" if atlas.left_out else "all others take"
        return [f"Nothing within the radius is missing: {farther} more than {radius}."]
    undecided = [standing for standing in atlas.left_out if standing.status is Status.OPEN]
    lines = ["States within the radius may be missing."]
    if undecided:
        lines.append(f"{_states(len(undecided))} seen and undecided: {_named(undecided)}.")
    if atlas.unseen_lower <= atlas.target.radius:
        lines.append(
            f"States never seen are not ruled out: that they take {rounded_down(atlas.unseen_lower)} expected steps is "
            "all that is proven."
        )
    if atlas.objective is Objective.OPTIMAL:
        lines.append("Until they are decided, policies are compared only with others through the states above.")
    return lines


def _open_members(atlas: Atlas) -> list[str]:
    standings = [atlas.status(state) for state in atlas.states] if atlas.proven else []
    unproven = [standing for standing in standings if standing.status is Status.OPEN]
    return [f"{_states(len(unproven))} of the atlas not fully proven: {_named(unproven)}."] if unproven else []


def _trust(atlas: Atlas) -> str:
    if atlas.proven:
        return f"All this holds with a probability of at least {1 - atlas.target.delta:g}."
    return f"Nothing is proven: {atlas.explorer} leaves no certificate."


def _states(count: int, kind: str = "") -> str:
    return f"{count} {kind}state{'' if count == 1 else 's'}"


def _named(standings: list[StateReport]) -> str:
    names = [readable(standing.state) for standing in standings[:LISTED]]
    rest = len(standings) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def to_pandas(atlas: Atlas) -> Any:
    """A `pandas.DataFrame` with a row for each state seen: those of the atlas first, in order of admission."""
    try:
        import pandas as pd
    except ImportError:
        raise AxploreError(
            "pandas is not installed; `pip install pandas`, or use `axplore export --format csv`"
        ) from None
    standings = [*(atlas.status(state) for state in atlas.states), *atlas.left_out]
    found_at = [*atlas.found_at.tolist(), *[None] * len(atlas.left_out)]
    return pd.DataFrame(
        {
            "state": pd.Series([standing.state for standing in standings], dtype=object),
            "in_atlas": [place < len(atlas.states) for place in range(len(standings))],
            "status": [standing.status.value for standing in standings],
            "lower": [standing.bounds.lower for standing in standings],
            "upper": [standing.bounds.upper for standing in standings],
            "regret": [standing.bounds.regret for standing in standings],
            "found_at": pd.array(found_at, dtype="Int64"),
            "reason": [standing.reason for standing in standings],
        }
    )
