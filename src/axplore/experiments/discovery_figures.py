"""The paper's figures: which part of the controllable states was found by when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.experiments import paper as published
from axplore.experiments.paper import Experiment
from axplore.experiments.runner import RunRecord
from axplore.experiments.summaries import estimate, half_widths, proportions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Group = tuple[Experiment, Sequence[RunRecord]]

COLOURS: Final = {"disco": "#0b6e99", "ucb-explore": "#c8501e"}
NAMES: Final = {"disco": "DisCo", "ucb-explore": "UcbExplore-Bernstein"}
GRID_POINTS: Final = 200


def require_matplotlib() -> None:
    """Says what to install when Matplotlib, an optional extra, is missing."""
    if find_spec("matplotlib") is None:
        raise InvalidSettingError("figures need Matplotlib; install it with `pip install 'axplore[report]'`")


def proportion_figure(groups: Sequence[Group], controllable: frozenset[str], columns: int) -> Figure:
    """One panel per epsilon with the proportion found over time, and one with the totals ([DisCo] Fig. (3plots)).

    Args:
        groups: each experiment with its runs; one per algorithm and epsilon.
        controllable: S_L→.
        columns: how many panels stand side by side.
    """
    from matplotlib.figure import Figure

    epsilons = sorted({experiment.epsilon for experiment, _ in groups})
    with_totals = len(epsilons) > 1
    panels = len(epsilons) + with_totals
    figure = Figure(figsize=(4.6 * columns, 3.4 * -(-panels // columns)), layout="constrained")
    axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel()
    for axis, epsilon in zip(axes, epsilons, strict=False):
        _draw_proportions(axis, [group for group in groups if group[0].epsilon == epsilon], controllable)
    if with_totals:
        _draw_totals(axes[len(epsilons)], groups)
    for axis in axes[panels:]:
        axis.set_axis_off()
    return figure


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as PNG and as SVG, the same bytes for the same numbers."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=120)
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def _draw_proportions(axis: Axes, groups: Sequence[Group], controllable: frozenset[str]) -> None:
    """The mean proportion over the runs, with the band of its 95 % confidence interval."""
    last = max(max(_times(record, controllable)) for _, records in groups for record in records)
    first = min(record.found_at[1] for _, records in groups for record in records if len(record.found_at) > 1)
    grid = np.geomspace(max(1, first / 2), last * 1.3, GRID_POINTS)
    for experiment, records in groups:
        found = proportions([_times(record, controllable) for record in records], len(controllable), grid)
        mean, width = found.mean(axis=0), half_widths(found)
        colour = COLOURS[experiment.algorithm]
        axis.plot(grid, mean, color=colour, label=NAMES[experiment.algorithm])
        if len(records) > 1:
            axis.fill_between(grid, mean - width, mean + width, color=colour, alpha=0.25, linewidth=0)
    axis.set_xscale("log")
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("steps, RESET included")
    axis.set_ylabel("proportion of S_L→ identified")
    axis.set_title(f"ε = {groups[0][0].epsilon:g}, {max(len(records) for _, records in groups)} runs")
    axis.legend(loc="upper left", fontsize="small")


def _draw_totals(axis: Axes, groups: Sequence[Group]) -> None:
    """The steps to the end over epsilon, ours as lines and the published ones as crosses."""
    epsilons = sorted({experiment.epsilon for experiment, _ in groups})
    for algorithm, colour in COLOURS.items():
        mine = sorted(
            (group for group in groups if group[0].algorithm == algorithm), key=lambda group: group[0].epsilon
        )
        ours = [estimate([record.steps for record in records]) for _, records in mine]
        theirs = [published.sample_complexity(e.domain, algorithm, e.epsilon).mean for e, _ in mine]
        errors = [each.half_width if np.isfinite(each.half_width) else 0.0 for each in ours]
        axis.errorbar(epsilons, [each.mean for each in ours], errors, color=colour, label=NAMES[algorithm])
        axis.plot(epsilons, theirs, "x", color=colour, label=f"{NAMES[algorithm]}, published")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.set_xlabel("ε")
    axis.set_ylabel("steps to the end")
    axis.set_title("sample complexity")
    axis.legend(fontsize="small")


def _times(record: RunRecord, controllable: frozenset[str]) -> list[int]:
    times: Mapping[str, int] = dict(zip(record.states, record.found_at, strict=True))
    return [time for state, time in times.items() if state in controllable]
