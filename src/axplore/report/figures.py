"""Figures for papers, with Matplotlib: comparisons of runs, and the published figures with our numbers.

They are drawn from plain numbers, and the same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.atlas import Atlas
from axplore.errors import InvalidSettingError
from axplore.report.charts import Groups, known_over_steps
from axplore.statistics.summaries import estimate, half_widths, proportions
from axplore.storage import storage_errors
from axplore.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito, which can be distinguished with any kind of colour vision."""

DASHES: Final = ("-", "--", "-.", ":")
GRID_POINTS: Final = 300
LOGARITHMIC_FROM: Final = 10
"""Totals are on a logarithmic axis if the largest is more than this many times the smallest."""

KINDS: Final = ("png", "svg", "pdf")

PAPER_COLOURS: Final = ("#0b6e99", "#c8501e")
PAPER_GRID_POINTS: Final = 200


def require_matplotlib() -> None:
    """Raises an error that says what to install if Matplotlib, an optional extra, is missing."""
    if find_spec("matplotlib") is None:
        raise InvalidSettingError("figures need Matplotlib; install it with `pip install 'axplore[report]'`")


# ------------------------------------------------------------------------------------------------ runs side by side


def write_figures(groups: Groups, folder: Path) -> list[Path]:
    """Writes every figure of groups of runs as PNG, SVG and PDF, and returns the files."""
    require_matplotlib()
    figures = {"discovery": discovery(groups), "allocation": allocation(groups), "comparison": comparison(groups)}
    with storage_errors(f"figures cannot be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        return [_save(figure, folder / f"{name}.{kind}") for name, figure in figures.items() for kind in KINDS]


def discovery(groups: Groups) -> Figure:
    """Draws known states over steps: the mean over each group, with its 95 % confidence interval as a band."""
    figure, axis = _empty()
    grid, known = known_over_steps(groups, GRID_POINTS)
    for index, (name, runs) in enumerate(groups.items()):
        dashes, colour = DASHES[index % len(DASHES)], COLOURS[index % len(COLOURS)]
        _draw_mean(axis, grid, known[name], _named(name, runs), colour, dashes, opacity=0.2)
    axis.set(xscale="log", xlabel="steps, RESET included", ylabel="states known", ylim=(0, None))
    axis.legend(fontsize="small")
    return figure


def allocation(groups: Groups) -> Figure:
    """Draws how unevenly draws are distributed: the share of the most drawn pairs, averaged over each group."""
    figure, axis = _empty()
    parts = np.linspace(0, 1, GRID_POINTS)
    for index, (name, runs) in enumerate(groups.items()):
        shares = np.array([_share_of_draws(atlas, parts) for atlas in runs])
        colour = COLOURS[index % len(COLOURS)]
        axis.plot(parts, shares.mean(axis=0), DASHES[index % len(DASHES)], color=colour, label=_named(name, runs))
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="evenly")
    axis.set(xlabel="share of the pairs, most drawn first", ylabel="share of the draws", xlim=(0, 1), ylim=(0, 1.02))
    axis.legend(fontsize="small", loc="lower right")
    return figure


def comparison(groups: Groups) -> Figure:
    """Draws the mean steps of each group, with the 95 % confidence interval of the mean."""
    figure, axis = _empty(height=1.2 + 0.6 * len(groups))
    estimates = [estimate([atlas.steps for atlas in runs]) for runs in groups.values()]
    means = [each.mean for each in estimates]
    for index, each in enumerate(estimates):
        error = each.half_width if np.isfinite(each.half_width) else None
        colour = COLOURS[index % len(COLOURS)]
        axis.errorbar(each.mean, index, xerr=error, fmt="o", markersize=8, capsize=5, color=colour)
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


def _share_of_draws(atlas: Atlas, parts: FloatArray) -> FloatArray:
    visits = np.sort(atlas.transitions.visits)[::-1]
    total = max(1, int(visits.sum()))
    shares = np.concatenate(([0.0], np.cumsum(visits) / total))
    return np.interp(parts, np.linspace(0, 1, len(shares)), shares)


def _named(name: str, runs: Sequence[Atlas]) -> str:
    return name if len(runs) == 1 else f"{name} ({len(runs)} runs)"


def _draw_mean(
    axis: Axes, grid: FloatArray, samples: FloatArray, label: str, colour: str, dashes: str, opacity: float
) -> None:
    """Draws the mean over the rows of samples, with its 95 % confidence interval as a band if there are several."""
    mean, width = samples.mean(axis=0), half_widths(samples)
    axis.plot(grid, mean, dashes, color=colour, label=label)
    if len(samples) > 1:
        axis.fill_between(grid, mean - width, mean + width, color=colour, alpha=opacity, linewidth=0)


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


# ------------------------------------------------------------------------------------------------ the paper's figures


@dataclass(frozen=True)
class Sweep:
    """The runs of an algorithm at one precision.

    Attributes:
        algorithm: its name.
        epsilon: ε.
        found_at: for each run, the steps at which it found the controllable states.
        steps: the steps of each run.
        published: the mean steps of the runs in the paper.
    """

    algorithm: str
    epsilon: float
    found_at: Sequence[Sequence[int]]
    steps: Sequence[int]
    published: float


def proportion_figure(sweeps: Sequence[Sweep], controllable: int, columns: int) -> Figure:
    """Draws a panel per epsilon with the proportion found over time, and one with the totals ([DisCo] Fig. (3plots)).

    Args:
        sweeps: one per algorithm and epsilon.
        controllable: |S_L→|.
        columns: the number of panels in a row.
    """
    from matplotlib.figure import Figure

    colours = dict(zip(dict.fromkeys(sweep.algorithm for sweep in sweeps), PAPER_COLOURS, strict=False))
    epsilons = sorted({sweep.epsilon for sweep in sweeps})
    with_totals = len(epsilons) > 1
    panels = len(epsilons) + with_totals
    figure = Figure(figsize=(4.6 * columns, 3.4 * -(-panels // columns)), layout="constrained")
    axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel()
    for axis, epsilon in zip(axes, epsilons, strict=False):
        _draw_proportions(axis, [sweep for sweep in sweeps if sweep.epsilon == epsilon], controllable, colours)
    if with_totals:
        _draw_totals(axes[len(epsilons)], sweeps, colours)
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


def _draw_proportions(axis: Axes, sweeps: Sequence[Sweep], controllable: int, colours: Mapping[str, str]) -> None:
    """Draws the mean proportion over the runs, with its 95 % confidence interval as a band."""
    times = [sorted(run) for sweep in sweeps for run in sweep.found_at]
    last, first = max(run[-1] for run in times), min(run[1] for run in times if len(run) > 1)
    grid = np.geomspace(max(1, first / 2), last * 1.3, PAPER_GRID_POINTS)
    for sweep in sweeps:
        found = proportions(sweep.found_at, controllable, grid)
        _draw_mean(axis, grid, found, sweep.algorithm, colours[sweep.algorithm], "-", opacity=0.25)
    axis.set_xscale("log")
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("steps, RESET included")
    axis.set_ylabel("proportion of S_L→ identified")
    axis.set_title(f"ε = {sweeps[0].epsilon:g}, {max(len(sweep.steps) for sweep in sweeps)} runs")
    axis.legend(loc="upper left", fontsize="small")


def _draw_totals(axis: Axes, sweeps: Sequence[Sweep], colours: Mapping[str, str]) -> None:
    """Draws the total steps over epsilon, ours as lines and the published ones as crosses."""
    epsilons = sorted({sweep.epsilon for sweep in sweeps})
    for algorithm, colour in colours.items():
        mine = sorted((sweep for sweep in sweeps if sweep.algorithm == algorithm), key=lambda sweep: sweep.epsilon)
        ours = [estimate(sweep.steps) for sweep in mine]
        errors = [each.half_width if np.isfinite(each.half_width) else 0.0 for each in ours]
        axis.errorbar(epsilons, [each.mean for each in ours], errors, color=colour, label=algorithm)
        axis.plot(epsilons, [sweep.published for sweep in mine], "x", color=colour, label=f"{algorithm}, published")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.set_xlabel("ε")
    axis.set_ylabel("steps to the end")
    axis.set_title("sample complexity")
    axis.legend(fontsize="small")
