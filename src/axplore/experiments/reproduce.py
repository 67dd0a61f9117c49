"""`axplore reproduce`: the paper's tables and figures with one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from axplore.domains import domain
from axplore.errors import UnknownNameError
from axplore.experiments import paper as published
from axplore.experiments.assumption_study import assumptions_table
from axplore.experiments.limits import LIMITS_FILE, limits_table, with_limits
from axplore.experiments.paper import (
    CERTIFIED_EXPERIMENTS,
    CHAIN,
    CHAIN_EXPERIMENTS,
    LOCK,
    LOCK_EXPERIMENTS,
    THEORY_EXPERIMENT,
    Experiment,
)
from axplore.experiments.result_tables import (
    Table,
    certified_table,
    hitting_steps_table,
    promise_table,
    sample_complexity_table,
)
from axplore.experiments.runner import RunRecord, run_experiments, sort_file
from axplore.report.figures import Sweep, proportion_figure, require_matplotlib, save_figure
from axplore.truth import controllable_states

RUNS_FILE: Final = "runs.jsonl"

ALGORITHMS: Final = {"disco": "DisCo", "ucb-explore": "UcbExplore-Bernstein"}
"""The names of explorers in figures."""

Group = tuple[Experiment, Sequence[RunRecord]]

Output = Callable[[Sequence[Group], Path], Table | None]
"""Makes a table or a figure from experiments with their runs, saves it, and returns the table."""


@dataclass(frozen=True)
class Artifact:
    """A table or figure to reproduce.

    Attributes:
        experiments: the experiments whose runs it needs.
        output: makes it from their runs.
        draws: whether it is a figure.
        among_all: whether "all" includes it.
        computes: in place of `output`, makes a table without any runs, and reports its progress.
    """

    experiments: tuple[Experiment, ...]
    output: Output | None
    draws: bool = False
    among_all: bool = True
    computes: Callable[[Path, Callable[[int, int], None] | None], Table] | None = None


def reproduce(
    names: Sequence[str],
    out: Path,
    *,
    runs: int | None = None,
    workers: int | None = None,
    ray: str | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Table]:
    """Makes tables and figures of the paper, and returns the tables.

    Finished runs are stored in `runs.jsonl` under `out`; called again after an interruption, it resumes there.

    Args:
        names: names of `TARGETS`, or "all".
        out: the folder for runs, tables (CSV and JSON) and figures (PNG and SVG).
        runs: the number of seeds per experiment; by default, as in the paper: 50 on the chain and 20 on the lock.
        workers: number of worker processes, each of which makes one run at a time; None for no workers. Results do not
            depend on it.
        ray: the Ray cluster that runs the workers: `auto` or an address.
        on_done: called with the finished and the total number of runs.
    """
    all_of_them = [name for name, target in TARGETS.items() if target.among_all]
    chosen = list(dict.fromkeys(part for name in names for part in (all_of_them if name == "all" else [name])))
    for name in chosen:
        if name not in TARGETS:
            raise UnknownNameError.of("table or figure", name, [*TARGETS, "all"])
    if any(TARGETS[name].draws for name in chosen):
        require_matplotlib()  # before hours of runs, not after
    experiments = list(dict.fromkeys(experiment for name in chosen for experiment in TARGETS[name].experiments))
    records: list[RunRecord] = []
    if experiments:
        path = out / RUNS_FILE
        records = run_experiments(experiments, path, runs=runs, workers=workers, ray=ray, on_done=on_done)
        sort_file(path)
    tables = []
    for name in chosen:
        target = TARGETS[name]
        if target.computes is not None:
            tables.append(target.computes(out, on_done))
        if target.output is None:
            continue
        groups = [(e, [record for record in records if record.experiment == e.id]) for e in target.experiments]
        table = target.output(groups, out)
        if table is not None:
            tables.append(table)
    return tables


def _found(domain_name: str, radius: float) -> frozenset[str]:
    """Returns S_L→ of a domain, as labels."""
    return frozenset(str(state) for state in controllable_states(domain(domain_name), radius).states)


def _table2(groups: Sequence[Group], out: Path) -> Table:
    title = "Sample complexity on the confusing chain, L = 4.5"
    table = sample_complexity_table("table2", title, groups, _found(CHAIN, 4.5))
    table.save(out)
    return table


def _table3(groups: Sequence[Group], out: Path) -> Table:
    title = "Expected hitting time of the policies on the confusing chain, L = 4.5 (the paper's, where it differs)"
    table = hitting_steps_table("table3", title, groups, sorted(_found(CHAIN, 4.5)))
    table.save(out)
    return table


def _lock_table(groups: Sequence[Group], out: Path) -> Table:
    title = "Sample complexity on the combination lock, L = 2.7, epsilon = 0.2"
    table = sample_complexity_table("lock", title, groups, _found(LOCK, 2.7))
    table.save(out)
    return table


def _chain_figure(groups: Sequence[Group], out: Path) -> None:
    _draw(groups, _found(CHAIN, 4.5), out, "fig3", columns=3)


def _lock_figure(groups: Sequence[Group], out: Path) -> None:
    _draw(groups, _found(LOCK, 2.7), out, "fig-lock", columns=1)


def _draw(groups: Sequence[Group], controllable: frozenset[str], out: Path, name: str, columns: int) -> None:
    """Draws the proportion of controllable states found over time."""
    sweeps = [
        Sweep(
            algorithm=ALGORITHMS[experiment.algorithm],
            epsilon=experiment.epsilon,
            found_at=[_times(record, controllable) for record in records],
            steps=[record.steps for record in records],
            published=published.sample_complexity(experiment.domain, experiment.algorithm, experiment.epsilon).mean,
        )
        for experiment, records in groups
    ]
    save_figure(proportion_figure(sweeps, len(controllable), columns), out, name)


def _times(record: RunRecord, controllable: frozenset[str]) -> list[int]:
    found = zip(record.states, record.found_at, strict=True)
    return [steps for state, steps in found if state in controllable]


def _theory_table(groups: Sequence[Group], out: Path) -> Table:
    title = "DisCo with the exact allocation on the confusing chain, L = 4.5"
    truth = controllable_states(domain(CHAIN), 4.5)
    ((experiment, records),) = groups
    table = promise_table("theory", title, experiment, records, truth)
    table.save(out)
    return table


def _certified_table(groups: Sequence[Group], out: Path) -> Table:
    title = "The certified explorer beside DisCo with the settings of the paper's simulations, delta = 0.1"
    table = with_limits(certified_table("certified", title, groups), out / LIMITS_FILE)
    table.save(out)
    return table


def _default(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Returns the experiments in the reading that the presets use."""
    return tuple(experiment for experiment in experiments if not experiment.reading)


TARGETS: Final = {
    "table2": Artifact(CHAIN_EXPERIMENTS, _table2),
    "table3": Artifact(CHAIN_EXPERIMENTS, _table3),
    "fig3": Artifact(_default(CHAIN_EXPERIMENTS), _chain_figure, draws=True),
    "lock": Artifact(LOCK_EXPERIMENTS, _lock_table),
    "fig-lock": Artifact(_default(LOCK_EXPERIMENTS), _lock_figure, draws=True),
    "certified": Artifact(CERTIFIED_EXPERIMENTS, _certified_table, among_all=False),
    "theory": Artifact((THEORY_EXPERIMENT,), _theory_table, among_all=False),
    "limits": Artifact((), None, among_all=False, computes=limits_table),
    "assumptions": Artifact((), None, among_all=False, computes=assumptions_table),
}
"""What can be reproduced: [DisCo] Tab. (new_results), Tab. (expectedtime.confusing), Fig. (3plots) with Fig. (bbb), and
App. "Combination Lock" with its figure; and what the paper does not have: the certified explorer beside DisCo, a run of
the theory to its end, the least steps that any algorithm needs, and what assumptions save."""
