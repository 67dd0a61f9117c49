"""Charts over steps, of a run and of groups of runs, as SVG without scripts that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from axplore.atlas import Atlas
from axplore.atlas.drawing.graph import percent
from axplore.atlas.transitions import state_visits
from axplore.labels import readable
from axplore.runs.history import History, Moment
from axplore.statistics.summaries import estimate
from axplore.types import FloatArray

__all__ = [
    "discovery_chart",
    "growth_chart",
    "interval_chart",
    "narrowing_chart",
    "noted",
    "percent",
    "spread_chart",
    "visits_table",
]

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 44

LOGARITHMIC_FROM: Final = 30
"""The axis is logarithmic if the run took more than this many times the steps to its first discovery."""

LOGARITHMIC_SPREAD: Final = 10
"""The axis of several runs is logarithmic if the longest took more than this many times the steps of the shortest."""

FEW_POWERS: Final = 3
"""A logarithmic axis over no more powers of ten is marked at 2 and 5 times each, too."""

MAX_POINTS: Final = 400
"""The approximate largest number of points of a curve."""

MOST_VISITED: Final = 30
"""The table of visits shows at most this many states."""

MAX_ACTIONS: Final = 12
"""The table of visits shows at most this many actions."""

STYLES: Final = 6
"""The number of colours and dashes that tell groups of runs apart; further groups repeat them."""

BAND: Final = 46
"""The height of a group in the chart of spreads."""

Points = list[tuple[float, float]]

Groups = Mapping[str, Sequence[Atlas]]
"""Groups of runs that differ only in their seed, by name."""


def discovery_chart(atlas: Atlas, history: History) -> Markup:
    """Returns the chart of known states over steps, and of the frontier, if the log of the run has them."""
    known = [(float(step), index + 1.0) for index, step in enumerate(atlas.found_at.tolist())]
    known.append((float(atlas.steps), float(len(known))))
    before = 0 if history.manifest is None else history.manifest.steps_before
    met = [(float(event["steps"] - before), float(event["known"] + event["frontier"])) for event in history.rounds]
    if met:
        met.append((float(atlas.steps), float(len(atlas.statuses))))
    first = min((step for step, _ in known if step > 0), default=1.0)
    axes = _Axes(
        first=first,
        last=max(float(atlas.steps), first, 1.0),
        top=max(value for _, value in (*known, *met)),
        logarithmic=atlas.steps > LOGARITHMIC_FROM * first,
    )
    said = f"Known states over steps: {len(atlas.states)} after {atlas.steps:,} steps."
    return axes.chart(said, axes.curve(_thinned(met), "met"), axes.curve(_thinned(known), "known"))


def noted(moments: Sequence[Moment]) -> list[Moment]:
    """Returns the moments at which some state other than the initial one had bounds."""
    return [moment for moment in moments if moment.widths.size]


def narrowing_chart(moments: Sequence[Moment]) -> Markup:
    """Returns the chart of the width of the bounds over steps, widest and mean; for the moments that are `noted`."""
    widest = [(float(moment.steps), float(moment.widths.max())) for moment in moments]
    mean = [(float(moment.steps), float(moment.widths.mean())) for moment in moments]
    first, last = max(1.0, widest[0][0]), max(1.0, widest[-1][0])
    axes = _Axes(
        first=first,
        last=last,
        top=max(value for _, value in widest) or 1.0,
        logarithmic=last > LOGARITHMIC_FROM * first,
        least_mark=0.001,
    )
    said = f"Width of the bounds over steps: the widest was {widest[0][1]:.3g} steps after {widest[0][0]:,.0f} steps "
    said += f"and is {widest[-1][1]:.3g} after {widest[-1][0]:,.0f}; the mean is {mean[-1][1]:.3g}. A table follows."
    return axes.chart(said, axes.curve(widest, "widest"), axes.curve(mean, "mean"))


def interval_chart(moments: Sequence[tuple[int, float, float]]) -> Markup:
    """Returns the chart of the bounds of a property over the steps that they rest on, of two moments or more."""
    first, last = max(1.0, float(moments[0][0])), max(1.0, float(moments[-1][0]))
    top = max(1e-3, *(upper for _, _, upper in moments))
    is_long = last > LOGARITHMIC_FROM * first
    axes = _Axes(first=first, last=last, top=top, logarithmic=is_long, least_mark=0.001)
    lower = [(float(steps), low) for steps, low, _ in moments]
    upper = [(float(steps), high) for steps, _, high in moments]
    said = f"Bounds over steps: {lower[0][1]:.3g} to {upper[0][1]:.3g} after {first:,.0f} steps, "
    said += f"{lower[-1][1]:.3g} to {upper[-1][1]:.3g} after {last:,.0f}."
    return axes.chart(said, axes.curve(_thinned(upper), "widest"), axes.curve(_thinned(lower), "mean"))


def spread_chart(groups: Groups) -> Markup:
    """Returns the chart of the steps of every run, a band for each group, with the mean and its confidence interval."""
    steps = [atlas.steps for runs in groups.values() for atlas in runs]
    first, last = float(min(steps)), float(max(steps))
    axes = _Axes(
        first=first,
        last=1.05 * last,
        top=None,
        logarithmic=last > LOGARITHMIC_SPREAD * first,
        height=TOP + BAND * len(groups) + BOTTOM,
    )
    said = [f"{name}: mean {estimate([atlas.steps for atlas in runs]).mean:,.0f}" for name, runs in groups.items()]
    bands = (axes.band(index, name, runs) for index, (name, runs) in enumerate(groups.items()))
    return axes.chart(f"Steps to the end. {'; '.join(said)}.", *bands)


def growth_chart(groups: Groups) -> Markup:
    """Returns the chart of the states known over steps, as means over the runs of each group."""
    grid, known = known_over_steps(groups)
    means = [samples.mean(axis=0) for samples in known.values()]
    axes = _Axes(
        first=float(grid[0]),
        last=float(grid[-1]),
        top=max(float(mean[-1]) for mean in means),
        logarithmic=bool(grid[-1] > LOGARITHMIC_FROM * grid[0]),
    )
    said = [f"{mean[-1]:.4g} with {name}" for name, mean in zip(known, means, strict=True)]
    curves = [
        axes.curve(list(zip(grid.tolist(), mean.tolist(), strict=True)), f"group-{index % STYLES}")
        for index, mean in enumerate(means)
    ]
    return axes.chart(f"States known over steps. In the end: {', '.join(said)}.", *curves)


def known_over_steps(groups: Groups, points: int = 300) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Returns numbers of steps, [points], and for each group the states that each run knew by then, [runs, points]."""
    atlases = [atlas for runs in groups.values() for atlas in runs]
    first = min((step for atlas in atlases for step in atlas.found_at[1:2].tolist()), default=1)
    grid = np.geomspace(max(1, first / 2), max(2, *(atlas.steps for atlas in atlases)), points)
    known = {
        name: np.array([np.searchsorted(np.sort(atlas.found_at), grid, side="right") for atlas in runs], dtype=float)
        for name, runs in groups.items()
    }
    return grid, known


class VisitsCell(NamedTuple):
    """The visits of an action, and the opacity of its shade."""

    visits: int
    shade: float


class VisitsTable(NamedTuple):
    """The visits of each action: headings, and for each state its name and cells; None where it has no such action."""

    headings: tuple[str, ...]
    rows: list[tuple[str, list[VisitsCell | None]]]


def visits_table(atlas: Atlas) -> VisitsTable:
    """Returns the visits of each action in the most visited states, shaded by their logarithm."""
    transitions = atlas.transitions
    names = list(dict.fromkeys(action for actions in atlas.actions for action in actions))[:MAX_ACTIONS]
    visits, first = transitions.visits, transitions.state_pairs
    most = np.argsort(-state_visits(transitions), kind="stable")[:MOST_VISITED]
    scale = math.log1p(max(2, int(visits.max(initial=0))))
    rows = []
    for index in most.tolist():
        tried = dict(zip(atlas.actions[index], visits[first[index] : first[index + 1]].tolist(), strict=False))
        counts = [tried.get(name) for name in names]
        cells = [None if count is None else VisitsCell(count, 0.6 * math.log1p(count) / scale) for count in counts]
        rows.append((readable(atlas.states[index]), cells))
    return VisitsTable(("state", *map(readable, names)), rows)


class _Axes:
    """Axes with steps to the right and values upwards, if there is a `top` for them."""

    def __init__(
        self,
        *,
        first: float,
        last: float,
        top: float | None,
        logarithmic: bool,
        least_mark: float = 1.0,
        height: int = HEIGHT,
    ) -> None:
        self._first, self._last, self._top, self._logarithmic = first / 1.5, last, top, logarithmic
        self._least_mark, self._height = least_mark, height

    def chart(self, said: str, *curves: str) -> Markup:
        """Returns the curves in their frame; `said` is the text for screen readers."""
        head = f'<svg class="chart" viewBox="0 0 {WIDTH} {self._height}" role="img" aria-label="{escape(said)}">'
        return Markup(f"{head}{self.frame()}{''.join(curves)}</svg>")

    def curve(self, points: Points, name: str) -> str:
        """Returns a staircase through the points."""
        if not points:
            return ""
        path = f"M{self._x(points[0][0]):.1f} {self._y(points[0][1]):.1f}"
        for step, value in points[1:]:
            path += f"H{self._x(step):.1f}V{self._y(value):.1f}"
        return f'<path class="curve {name}" d="{path}"><title>{name}</title></path>'

    def band(self, index: int, name: str, runs: Sequence[Atlas]) -> str:
        """Returns the runs of a group as dots below its name, and the mean of their steps with its interval."""
        mean, half_width = estimate([atlas.steps for atlas in runs])
        y = TOP + BAND * index
        line = y + 0.68 * BAND
        parts = [f'<text class="group-name" x="{LEFT + 8}" y="{y + 0.35 * BAND:.1f}">{escape(name)}</text>']
        if math.isfinite(half_width):
            low, high = self._x(max(0.0, mean - half_width)), min(self._x(mean + half_width), WIDTH - RIGHT)
            parts.append(f'<path class="interval" d="M{low:.1f} {line:.1f}H{high:.1f}"/>')
        parts.append(f'<path class="mean-mark" d="M{self._x(mean):.1f} {line - 10:.1f}v20"/>')
        for atlas in runs:
            kind = f"run group-{index % STYLES}" if atlas.stop.by_own_rule else f"run cut-short group-{index % STYLES}"
            centre = f'cx="{self._x(atlas.steps):.1f}" cy="{line:.1f}"'
            parts.append(f'<circle class="{kind}" {centre} r="5"><title>{atlas.steps:,} steps</title></circle>')
        return "".join(parts)

    def frame(self) -> str:
        """Returns the axes with their marks."""
        bottom = self._height - BOTTOM
        parts = [f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>']
        for value in () if self._top is None else _round_values(self._top, self._least_mark):
            y = self._y(value)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_plain(value)}</text>')
        for step in self._marks():
            x = self._x(step)
            parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v5"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_short(step)}</text>')
        scale = ", logarithmic" if self._logarithmic else ""
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text x="{middle}" y="{self._height - 6}" text-anchor="middle">steps, RESET included{scale}</text>'
        )
        return "".join(parts)

    def _marks(self) -> list[float]:
        if not self._logarithmic:
            return [0, *_round_values(self._last)]
        powers = range(math.floor(math.log10(self._first)), math.floor(math.log10(self._last)) + 1)
        digits = (1, 2, 5) if len(powers) <= FEW_POWERS else (1,)
        marks = [digit * 10.0**power for power in powers for digit in digits]
        return [mark for mark in marks if self._first <= mark <= self._last]

    def _x(self, step: float) -> float:
        if self._logarithmic:
            part = math.log(max(step, self._first) / self._first) / math.log(self._last / self._first)
        else:
            part = step / self._last
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        height, top = self._height - BOTTOM, 1.0 if self._top is None else self._top
        return height - value / (1.05 * top) * (height - TOP)


def _round_values(top: float, least: float = 1.0) -> list[float]:
    """Returns up to five round numbers up to a value, at least `least` apart."""
    step = next(
        least * step * 10**power for power in range(18) for step in (1, 2, 5) if top <= 5 * least * step * 10**power
    )
    return [float(step * i) for i in range(1, int(top // step) + 1)]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _short(step: float) -> str:
    for power, unit in ((9, "G"), (6, "M"), (3, "k")):
        if step >= 10**power:
            return f"{step / 10**power:g}{unit}"
    return f"{step:g}"


def _thinned(points: Points) -> Points:
    """Returns fewer points, including the last."""
    stride = max(1, len(points) // MAX_POINTS)
    return points[:-1:stride] + points[-1:]
