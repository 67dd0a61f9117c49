"""What is known of a state: bounds, a status and the reason in a sentence; and the rows of a table of states."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from typing import TYPE_CHECKING, Any, Final

from axplore.atlas.transitions import state_visits
from axplore.errors import AxploreError, printable
from axplore.labels import encode_label, finite, readable
from axplore.target import NO_RADIUS, Objective, Target
from axplore.types import State, Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas
    from axplore.atlas.policy import Policy

SHOWN_DIGITS: Final = Decimal("0.001")
"""The precision of printed bounds. Lower ones are rounded down and upper ones up, so that they stay bounds."""


@dataclass(frozen=True)
class Bounds:
    """Bounds on the expected steps to a goal by policies through the states of the atlas.

    Such a policy resets in every other state. None takes fewer than `lower` steps, and that of the atlas takes at most
    `upper`; so the best one lies between the two as well.

    Attributes:
        lower: the lower bound.
        upper: the upper bound; infinite if no policy is proven to arrive.
        regret: the most that the policy of the atlas takes beyond the best one.
        proven: whether the bounds are proven. If not, `lower` is the explorer's optimistic estimate, and the others are
            infinite, because nothing is known of them.
    """

    lower: float
    upper: float
    regret: float
    proven: bool

    def __contains__(self, steps: float) -> bool:
        return self.lower <= steps <= self.upper

    def __str__(self) -> str:
        if not self.proven:
            return f"about {rounded_down(self.lower)} steps, not proven"
        return f"{rounded_down(self.lower)} to {rounded_up(self.upper)} steps"


@dataclass(frozen=True, eq=False)
class ByEpisodes:
    """What episodes of one policy prove of a state. It needs no model, so it holds whatever the labels hide.

    Policy, horizon and bound were fixed before the first episode, and every episode began with a RESET. The statements
    about all states of an atlas hold at once with a probability of at least 1 - δ, if episodes are independent of each
    other and alike: see docs/algorithms/episodes.md.

    Attributes:
        state: its label, which the episodes reached.
        policy: the policy that was played; it restarts after its horizon. That of the atlas may be another one.
        within: the expected steps within which the policy reaches the state, at most.
        episodes, arrivals: the number of episodes, and of those that reached the state before the horizon.
    """

    state: State
    policy: Policy
    within: float
    episodes: int
    arrivals: int

    @property
    def horizon(self) -> int:
        """The steps after which the policy restarts with a RESET."""
        return len(self.policy.choices)

    def as_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "within": self.within,
            "horizon": self.horizon,
            "episodes": self.episodes,
            "arrivals": self.arrivals,
        }

    def __str__(self) -> str:
        after = "1 step" if self.horizon == 1 else f"{self.horizon} steps"
        return (
            f"Whatever the labels hide, a policy that restarts after {after} reaches it within "
            f"{rounded_up(self.within)} expected steps: {self.episodes:,} episodes from RESET prove it, if they are "
            "independent of each other and alike."
        )


@dataclass(frozen=True)
class StateReport:
    """What is known of a state.

    Attributes:
        state: its label.
        status: certified, set aside or open.
        bounds: bounds on the expected steps to it.
        reason: the reason for the status, in a sentence; for an open state, what blocks its proof.
        by_episodes: what episodes prove of it whatever the labels hide; None if none were played that do.
    """

    state: State
    status: Status
    bounds: Bounds
    reason: str
    by_episodes: ByEpisodes | None = None

    def __str__(self) -> str:
        more = "" if self.by_episodes is None else f" {self.by_episodes}"
        return f"{self.state}: {self.status.value}. {self.reason}{more}"


def checked_regret(upper: float, lower: float, regret: float, target: Target) -> float:
    """Returns the regret to report: the gap between the bounds, or the regret where the gap is too wide.

    A verifier examines a regret only if it has to, so a smaller number than this would not be checked.
    """
    return upper - lower if upper - lower <= target.epsilon else min(regret, upper - lower)


def reason_for_member(status: Status, bounds: Bounds, target: Target) -> str:
    """Returns why a state of a proven atlas is certified, or what blocks that."""
    reach = target.radius + target.epsilon
    upper, regret = rounded_up(bounds.upper), rounded_up(bounds.regret)
    if status is Status.CERTIFIED:
        return (
            f"Its policy arrives within {upper} expected steps, and loses at most {regret} against the best one "
            "through the states of the atlas."
        )
    if target.radius == NO_RADIUS:
        return "Its steps were not asked for: a property was."
    if math.isinf(bounds.upper):
        return f"No policy is proven to arrive in any number of steps; {reach:g} are allowed."
    if bounds.upper > reach:
        return f"Its policy is proven to arrive within {upper} expected steps; {reach:g} are allowed."
    if bounds.regret > target.epsilon:
        return (
            f"Its policy arrives within {upper} expected steps, but may lose {regret} against the best one through the "
            f"states of the atlas; {target.epsilon:g} are allowed."
        )
    return f"No policy through the states admitted before it is proven to arrive within {reach:g} expected steps."


def reason_to_leave_out(status: Status, lower: float, target: Target) -> str:
    """Returns why a state is not in a proven atlas."""
    if status is Status.SET_ASIDE:
        return (
            f"Every policy through the states of the atlas takes at least {rounded_down(lower)} expected steps; the "
            f"radius is {target.radius:g}."
        )
    reach = target.radius + target.epsilon
    return (
        f"It may be within the radius of {target.radius:g}. That it takes at least {rounded_down(lower)} expected "
        f"steps is all that is proven, and no policy is proven to arrive within {reach:g}."
    )


def rounded_down(steps: float) -> str:
    """Returns a lower bound as text."""
    return _rounded(steps, ROUND_FLOOR)


def rounded_up(steps: float) -> str:
    """Returns an upper bound as text."""
    return _rounded(steps, ROUND_CEILING)


def _rounded(steps: float, direction: str) -> str:
    return str(Decimal(steps).quantize(SHOWN_DIGITS, direction)) if math.isfinite(steps) else "∞"


def title_of(atlas: Atlas) -> str:
    """Returns what was found, in a line."""
    found = f"{len(atlas.states)} state{'' if len(atlas.states) == 1 else 's'}"
    if atlas.objective is Objective.QUESTION:
        return f"{atlas.world}: {found} drawn for a question, by {atlas.explorer}"
    return (
        f"{atlas.world}: {found} for a radius of {atlas.target.radius:g} expected steps "
        f"(+ ε {atlas.target.epsilon:g}), found by {atlas.explorer}"
    )


@dataclass(frozen=True)
class StateRow:
    """What an atlas says of a state that was met. Tables, JSON, data frames and the page all show these values.

    Attributes:
        state: its label.
        in_atlas: whether it is a state of the atlas; the others form the frontier.
        lower, upper: bounds on the expected steps to it; `upper` is infinite if no policy is proven to arrive.
        regret: the steps that the best policy through the states of the atlas could save; infinite if unknown.
        visits: the number of times that its actions were played.
        found_at: the steps taken when it was admitted; None on the frontier.
        by_episodes: an upper bound on the expected steps of a policy to it that holds whatever the labels hide; None if
            no episodes prove one.
        status: certified, set aside or open; "not proven" if the explorer proves nothing, or its proofs are refuted.
        reason: for its status, in a sentence.
    """

    state: State
    in_atlas: bool
    lower: float
    upper: float
    regret: float
    visits: int
    found_at: int | None
    by_episodes: float | None
    status: str
    reason: str

    def text(self, name: str) -> str:
        """Returns an attribute as text. A rounded bound is still a bound."""
        value = getattr(self, name)
        if name == "state":
            return readable(value)
        if name in ("upper", "regret", "by_episodes") and value is not None:
            return rounded_up(value)
        if name == "lower":
            return rounded_down(value)
        return "" if value is None else value if isinstance(value, str) else f"{value:,}"

    def as_json(self) -> dict[str, Any]:
        """Returns the row as JSON values; the label is written as in files, and infinity as null."""
        bounds = {name: finite(getattr(self, name)) for name in ("lower", "upper", "regret")}
        return {**vars(self), "state": encode_label(self.state), **bounds}


HEADINGS: Final = {
    "state": "state",
    "lower": "lower",
    "upper": "upper",
    "regret": "regret",
    "visits": "visits",
    "found_at": "found at",
    "by_episodes": "by episodes",
    "status": "status",
    "reason": "reason",
}
"""The headings of the attributes of a `StateRow` in tables."""

REFUTED: Final = "Later counts refute what was proven before; nothing can be relied on."
"""The reason given for every state of a refuted atlas."""

LEGEND: Final = (
    "lower, upper: bounds on the expected steps. regret: the steps that the best policy could save. visits: how often "
    "actions of the state were played. found at: the steps taken by then."
)

LEGEND_OF_EPISODES: Final = (
    " by episodes: an upper bound that episodes from RESET prove of a policy; it holds whatever the labels hide."
)


def legend_of(atlas: Atlas) -> str:
    """Returns what the headings of the table of states mean; nothing if nothing is proven."""
    if not atlas.proven:
        return ""
    return LEGEND + (LEGEND_OF_EPISODES if atlas.tests else "")


def state_rows(atlas: Atlas) -> list[StateRow]:
    """Returns a row for each state met: those of the atlas in order of admission, and then those of the frontier."""
    reports = [*(atlas.describe(state) for state in atlas.states), *atlas.frontier]
    visits = _visits(atlas)
    found_at = [*atlas.found_at.tolist(), *[None] * len(atlas.frontier)]
    return [
        StateRow(
            state=report.state,
            in_atlas=index < len(atlas.states),
            lower=report.bounds.lower,
            upper=report.bounds.upper,
            regret=report.bounds.regret,
            visits=visits.get(number, 0),
            found_at=found_at[index],
            by_episodes=None if report.by_episodes is None else report.by_episodes.within,
            status=report.status.value if atlas.can_be_relied_on else "not proven",
            reason=report.reason,
        )
        for index, (report, number) in enumerate(
            zip(reports, [*atlas.numbers.tolist(), *atlas.frontier_numbers.tolist()], strict=True)
        )
    ]


def shown_columns(atlas: Atlas) -> dict[str, str]:
    """Returns the attributes that a table of the states of the atlas shows, with their headings."""
    if atlas.proven:
        tested = ("by_episodes",) if atlas.tests else ()
        names = ("state", "lower", "upper", "regret", *tested, "status", "visits", "found_at")
        return {name: HEADINGS[name] for name in names}
    # Without a proof, the lower bound is the explorer's optimistic estimate, and nothing else is known.
    return {name: HEADINGS[name] for name in ("state", "lower", "status", "visits", "found_at")} | {"lower": "estimate"}


def headings_of(atlas: Atlas) -> tuple[str, ...]:
    """Returns the headings of the table of the states of the atlas."""
    return tuple(shown_columns(atlas).values())


def rows_of(atlas: Atlas, name_of: Callable[[State], str] = readable) -> list[tuple[str, ...]]:
    """Returns a row of text for each state of the atlas, which is called by the name that a function gives it."""
    columns = [name for name in shown_columns(atlas) if name != "state"]
    return [(name_of(row.state), *(row.text(name) for name in columns)) for row in state_rows(atlas) if row.in_atlas]


def summary_of(atlas: Atlas) -> list[str]:
    """Returns the lines of the verdict, and the number of steps taken."""
    return [*atlas.verdict.lines, f"{atlas.run.steps_in_words}."]


def as_text(atlas: Atlas) -> str:
    """Returns title, table and summary as plain text."""
    table = [headings_of(atlas), *rows_of(atlas)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return printable("\n".join([title_of(atlas), *lines, *summary_of(atlas)]))


MAX_HTML_ROWS: Final = 20
"""A notebook shows this many rows of the table; the map has all states."""


def as_html(atlas: Atlas) -> str:
    """Returns the map, the table and the verdict as HTML without scripts, which notebooks show for an atlas."""
    from axplore.atlas.drawing import as_svg

    rows = rows_of(atlas)
    shown = rows if len(rows) <= MAX_HTML_ROWS else [*rows[: MAX_HTML_ROWS // 2], *rows[-MAX_HTML_ROWS // 2 :]]
    cells = ["".join(f"<td>{escape(printable(cell))}</td>" for cell in row) for row in shown]
    if len(shown) < len(rows):
        cells.insert(MAX_HTML_ROWS // 2, f"<td colspan={len(rows[0])}>… {len(rows) - len(shown):,} more states</td>")
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings_of(atlas))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    headline, *others = (escape(printable(line)) for line in summary_of(atlas))
    return (
        f"<div><p><b>{escape(printable(title_of(atlas)))}</b></p><p>{headline}</p>{as_svg(atlas)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{'<br>'.join(others)}</p></div>"
    )


def to_pandas(atlas: Atlas) -> Any:
    """Returns a `pandas.DataFrame` with a row for each state seen, those of the atlas first, in order of admission."""
    try:
        import pandas as pd
    except ImportError:
        raise AxploreError(
            "pandas is not installed; `pip install pandas`, or use `axplore export --format csv`"
        ) from None
    rows = state_rows(atlas)
    columns: dict[str, Any] = {field.name: [getattr(row, field.name) for row in rows] for field in fields(StateRow)}
    columns["state"] = pd.Series(columns["state"], dtype=object)
    columns["found_at"] = pd.array(columns["found_at"], dtype="Int64")
    columns["by_episodes"] = pd.Series(columns["by_episodes"], dtype=float)
    return pd.DataFrame(columns)


def _visits(atlas: Atlas) -> dict[int, int]:
    """Returns the number of times that actions of each counted state were played, by the number of the state."""
    counts = atlas.counts
    return dict(zip(counts.states.tolist(), state_visits(counts).tolist(), strict=True))
