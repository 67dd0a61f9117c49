"""Figures of compared runs, for papers: discovery, allocation of samples, totals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.experiments.comparison import ComparedRun, grouped
from axplore.experiments.discovery_figures import require_matplotlib
from axplore.experiments.summaries import estimate, half_widths
from axplore.report.transitions import transitions_of
from axplore.storage import storage_errors
from axplore.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Of Okabe and Ito: told apart with any kind of colour vision."""

DASHES: Final = ("-", "--", "-.", ":")
GRID_POINTS: Final = 300
LOGARITHMIC_FROM: Final = 10
"""Totals are on a logarithmic axis, if the largest is more than this many times the smallest."""

KINDS: Final = ("png", "svg", "pdf")


def write_figures(runs: Sequence[ComparedRun], folder: Path) -> list[Path]:
    """Writes every figure as PNG, SVG and PDF, the same bytes for the same runs; gives the files."""
    require_matplotlib()
    groups = grouped(runs)
    figures = {"discovery": discovery(groups), "allocation": allocation(groups), "comparison": comparison(groups)}
    with storage_errors(f"figures cannot be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        return [_save(figure, folder / f"{name}.{kind}") for name, figure in figures.items() for kind in KINDS]


def discovery(groups: dict[str, list[ComparedRun]]) -> Figure:
    """Known states over steps: the mean over the runs of a group, with the band of its 95 % confidence interval."""
    figure, axis = _empty()
    last = max(run.atlas.steps for runs in groups.values() for run in runs)
    seconds = (run.atlas.found_at[1:2].tolist() for runs in groups.values() for run in runs)
    first = min((step for steps in seconds for step in steps), default=1)
    grid = np.geomspace(max(1, first / 2), max(2, last), GRID_POINTS)
    for place, (name, runs) in enumerate(groups.items()):
        found = np.array([np.searchsorted(np.sort(run.atlas.found_at), grid, side="right") for run in runs])
        mean, width = found.mean(axis=0), half_widths(found.astype(np.float64))
        colour = COLOURS[place % len(COLOURS)]
        axis.plot(grid, mean, DASHES[place % len(DASHES)], color=colour, label=_named(name, runs))
        if len(runs) > 1:
            axis.fill_between(grid, mean - width, mean + width, color=colour, alpha=0.2, linewidth=0)
    axis.set(xscale="log", xlabel="steps, RESET included", ylabel="states known", ylim=(0, None))
    axis.legend(fontsize="small")
    return figure


def allocation(groups: dict[str, list[ComparedRun]]) -> Figure:
    """How unevenly draws are spread: the part of all draws that the most drawn pairs took, averaged over a group."""
    figure, axis = _empty()
    parts = np.linspace(0, 1, GRID_POINTS)
    for place, (name, runs) in enumerate(groups.items()):
        shares = np.array([_share_of_draws(run, parts) for run in runs])
        colour = COLOURS[place % len(COLOURS)]
        axis.plot(parts, shares.mean(axis=0), DASHES[place % len(DASHES)], color=colour, label=_named(name, runs))
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="evenly")
    axis.set(xlabel="part of the pairs, most drawn first", ylabel="part of the draws", xlim=(0, 1), ylim=(0, 1.02))
    axis.legend(fontsize="small", loc="lower right")
    return figure


def comparison(groups: dict[str, list[ComparedRun]]) -> Figure:
    """The steps that each group took on average, with the 95 % confidence interval of the mean."""
    figure, axis = _empty(height=1.2 + 0.6 * len(groups))
    estimates = [estimate([run.atlas.steps for run in runs]) for runs in groups.values()]
    means = [each.mean for each in estimates]
    for place, each in enumerate(estimates):
        error = each.half_width if np.isfinite(each.half_width) else None
        colour = COLOURS[place % len(COLOURS)]
        axis.errorbar(each.mean, place, xerr=error, fmt="o", markersize=8, capsize=5, color=colour)
    names = [_named(name, runs).replace(": ", ":\n", 1) for name, runs in groups.items()]
    axis.set_yticks(np.arange(len(groups)), names, fontsize="small")
    axis.set_ylim(len(groups) - 0.5, -0.5)
    axis.grid(axis="x", color="0.9")
    axis.set_xlabel("steps to the end, RESET included")
    if max(means) > LOGARITHMIC_FROM * min(means):
        axis.set_xscale("log")
    else:
        axis.set_xlim(0, None)
    return figure


def _share_of_draws(run: ComparedRun, parts: FloatArray) -> FloatArray:
    visits = np.sort(transitions_of(run.atlas).visits)[::-1]
    total = max(1, int(visits.sum()))
    shares = np.concatenate(([0.0], np.cumsum(visits) / total))
    return np.interp(parts, np.linspace(0, 1, len(shares)), shares)


def _named(name: str, runs: Sequence[ComparedRun]) -> str:
    return name if len(runs) == 1 else f"{name} ({len(runs)} runs)"


def _empty(height: float = 4.0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained")
    return figure, figure.subplots()


def _save(figure: Figure, path: Path) -> Path:
    import matplotlib as mpl

    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:])
    with mpl.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, dpi=150, metadata=metadata)
    return path
