"""What the page shows of a property that was checked: bounds as they narrowed, the policy, and the likeliest failures.

Bounds are those of the certificate. Ways to fail follow from the observed frequencies, and are estimates.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from markupsafe import Markup, escape

from axplore.atlas import Atlas
from axplore.atlas.drawing.layout import WIDTH as MAP_WIDTH
from axplore.atlas.drawing.layout import GridLayout, Layout
from axplore.certificate.promise import PropertyBounds, lower_text, upper_text
from axplore.labels import readable
from axplore.records.properties import NO_CHOICE, PropertyClaim
from axplore.runs.history import ANSWERED, History
from axplore.types import Action, BoolArray, State

MOST_WAYS: Final = 5
"""The largest number of ways to fail that are shown."""

MOST_PARTS: Final = 20_000
"""The largest number of beginnings of ways that are looked at."""

NOTHING: Final = "–"
"""In place of a bound where nothing is claimed."""

ARROW: Final = (
    '<defs><marker id="question-arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" '
    'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)
"""The head of an arrow."""


@dataclass(frozen=True)
class Failure:
    """A way on which a policy fails, without going round.

    Attributes:
        states, actions: the way.
        probability: that of this way, by the observed frequencies.
        end: why it ends there, in words.
    """

    states: tuple[State, ...]
    actions: tuple[Action, ...]
    probability: float
    end: str


@dataclass(frozen=True)
class StateOfQuestion:
    """What a property says of one state.

    Attributes:
        state: the state.
        role: "goal", "to avoid" or "".
        lower, upper: the bounds from there; None where nothing is claimed.
        action: what the policy plays; None if it plays nothing.
    """

    state: State
    role: str
    lower: float | None
    upper: float | None
    action: Action | None

    @property
    def interval(self) -> str:
        """The bounds as text."""
        if self.lower is None or self.upper is None:
            return "nothing is proven"
        if not math.isfinite(self.upper):
            return f"at least {self.lower_text}"
        return f"{self.lower_text} to {self.upper_text}"

    @property
    def lower_text(self) -> str:
        """The lower bound as text."""
        return NOTHING if self.lower is None else lower_text(self.lower)

    @property
    def upper_text(self) -> str:
        """The upper bound as text."""
        return NOTHING if self.upper is None else upper_text(self.upper)


@dataclass(frozen=True, eq=False)
class ShownQuestion:
    """One property of an atlas, as the page shows it."""

    atlas: Atlas
    claim: PropertyClaim
    bounds: PropertyBounds
    history: History

    @property
    def sentence(self) -> str:
        """The answer in words."""
        clause = str(self.bounds)
        return f"{clause[:1].upper()}{clause[1:]}."

    @property
    def moments(self) -> list[tuple[int, float, float]]:
        """The bounds at each time at which it was answered, with the steps by then, as far as the log has them."""
        noted = {}
        for event in self.history.events:
            if event.get("event") == ANSWERED and event.get("property") == self.claim.text:
                lower, upper = event.get("lower"), event.get("upper")
                if isinstance(lower, int | float) and isinstance(upper, int | float):
                    noted[int(event["steps"])] = (float(lower), float(upper))
        return [(steps, *bounds) for steps, bounds in sorted(noted.items())]

    @cached_property
    def masks(self) -> tuple[BoolArray, BoolArray]:
        """Which states are the goal, and which are to be avoided, by index."""
        order = self.atlas.source.counts.order
        names = {named.name: frozenset(order[i] for i in named.states.tolist()) for named in self.claim.names}
        return self.bounds.prop.masks(order, names)

    @property
    def has_policy(self) -> bool:
        """Whether the policy is the same at every step, so that it can be shown."""
        return len(self.claim.policy) > 0

    @property
    def rows(self) -> list[StateOfQuestion]:
        """What is said of each state that matters: the goal, what is to be avoided, and where something is proven."""
        reach, avoid = self.masks
        goal, bad = ("to avoid", "") if self.bounds.prop.negated else ("goal", "to avoid")
        rows = []
        for index, state in enumerate(self.atlas.source.counts.order):
            role = goal if reach[index] else bad if avoid[index] else ""
            lower, upper = self._bounds_of(index)
            rows.append(StateOfQuestion(state, role, lower, upper, self._action(index)))
        return rows

    def _bounds_of(self, index: int) -> tuple[float | None, float | None]:
        if index >= len(self.claim.lower):
            return None, None
        upper = float(self.claim.upper[index]) if len(self.claim.upper) else float("inf")
        return self.bounds.prop.of_path(float(self.claim.lower[index]), upper)

    def _action(self, index: int) -> Action | None:
        if index >= len(self.claim.policy) or self.claim.policy[index] == NO_CHOICE:
            return None
        return self.atlas.source.counts.actions[index][int(self.claim.policy[index])]

    @cached_property
    def failures(self) -> list[Failure]:
        """The most likely ways on which the policy fails, the likeliest first."""
        if not self.has_policy:
            return []
        found: list[Failure] = []
        queue: list[tuple[float, tuple[int, ...]]] = [(-1.0, (0,))]
        for _ in range(MOST_PARTS):
            if not queue or len(found) == MOST_WAYS:
                break
            negative, way = heapq.heappop(queue)
            end = self._end(way[-1])
            if end:
                found.append(self._failure(way, -negative, end))
            for successor, share in self.row_of(way[-1]).items():
                if successor not in way and not (self.masks[0][successor] and not self.bounds.prop.negated):
                    heapq.heappush(queue, (negative * share, (*way, successor)))
        return found

    def _end(self, index: int) -> str:
        """Why a way fails in a state; empty if it does not."""
        reach, avoid = self.masks
        if (reach if self.bounds.prop.negated else avoid)[index]:
            return "to avoid"
        if reach[index]:
            return ""
        if index >= len(self.claim.policy):
            return "nothing was drawn there"
        if not len(self.atlas.source.counts.actions[index]):
            return "the system stops there"
        return "" if self._action(index) is not None else "nothing is known to help there"

    def row_of(self, index: int) -> Mapping[int, float]:
        """Where the policy leads from a state, by the observed frequencies; nowhere from where a way ends."""
        counts = self.atlas.source.counts
        if not self.has_policy or self._end(index) or self.masks[0][index]:
            return {}
        pair = int(counts.state_pairs[index]) + int(self.claim.policy[index])
        entries = slice(*counts.row_offsets[pair : pair + 2].tolist())
        total = int(counts.counts[entries].sum())
        drawn = zip(counts.successors[entries].tolist(), counts.counts[entries].tolist(), strict=True)
        # A loop is gone through until it is left, so it takes no part of the probability.
        rest = {successor: count for successor, count in drawn if successor != index}
        left = sum(rest.values())
        return {successor: count / left for successor, count in rest.items()} if total and left else {}

    def _failure(self, way: tuple[int, ...], probability: float, end: str) -> Failure:
        order = self.atlas.source.counts.order
        actions: tuple[Any, ...] = tuple(self._action(index) for index in way[:-1])
        return Failure(tuple(order[index] for index in way), actions, probability, end)


def question_map(question: ShownQuestion, layout: Layout) -> Markup:
    """Returns the map of a grid with the goal, what is to be avoided, and an arrow for each action of the policy.

    It is empty for other systems: the table has the same.
    """
    if not isinstance(layout, GridLayout):
        return Markup("")
    size, places = layout.size, {int(i): place for place, i in enumerate(layout.drawn.tolist())}
    rows, parts = question.rows, []
    for index, place in places.items():
        x, y = float(layout.x[place]), float(layout.y[place])
        row = rows[index] if index < len(rows) else StateOfQuestion(None, "", None, None, None)
        kind = {"goal": "goal-cell", "to avoid": "bad-cell"}.get(row.role, "cell")
        shade = min(max(row.lower or 0.0, 0.0), 1.0) if not question.bounds.prop.of_cost else 0.0
        style = f' style="fill:rgb(var(--heat) / {0.1 + 0.6 * shade:.2f})"' if kind == "cell" else ""
        said = escape(f"{readable(row.state)}: {row.role or 'on the way'}, {row.interval}")
        parts.append(
            f'<rect class="{kind}"{style} x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size:.1f}" '
            f'height="{2 * size:.1f}"><title>{said}</title></rect>'
        )
        towards = max(question.row_of(index).items(), key=lambda item: item[1], default=(None, 0.0))[0]
        if towards in places:
            dx, dy = float(layout.x[places[towards]]) - x, float(layout.y[places[towards]]) - y
            line = f"M{x:.1f} {y:.1f}l{0.32 * dx:.1f} {0.32 * dy:.1f}"
            parts.append(f'<path class="policy-arrow" marker-end="url(#question-arrow)" d="{line}"/>')
    for x1, y1, x2, y2 in layout.wall_lines:
        parts.append(f'<path class="question-wall" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')
    box, label = f"0 0 {MAP_WIDTH} {layout.height:.0f}", "The policy on the map; the table below has the same."
    head = f'<svg class="question-map" viewBox="{box}" role="img" aria-label="{label}">{ARROW}'
    return Markup(f"{head}{''.join(parts)}</svg>")


def questions_of(atlas: Atlas, history: History) -> list[ShownQuestion]:
    """Returns the properties that the certificate of an atlas answers."""
    if atlas.certificate is None or not atlas.can_be_relied_on:
        return []
    claims = atlas.certificate.of(PropertyClaim)
    return [ShownQuestion(atlas, *both, history) for both in zip(claims, atlas.properties, strict=True)]
