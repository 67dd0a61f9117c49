"""The paper's tables and figures, and tables beside them, as studies that share their runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from axplore.domains import domain
from axplore.report.figures import Sweep, proportion_figure, require_matplotlib
from axplore.truth import controllable_states
from axplore_studies.limits import LIMITS_FILE, with_limits
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Figure, Output, Table
from axplore_studies.paper import experiments as published
from axplore_studies.paper.experiments import (
    CERTIFIED_EXPERIMENTS,
    CHAIN,
    CHAIN_EXPERIMENTS,
    LOCK,
    LOCK_EXPERIMENTS,
    THEORY_EXPERIMENT,
    Experiment,
)
from axplore_studies.paper.runs import PaperRun, run_trials
from axplore_studies.paper.tables import (
    certified_table,
    hitting_steps_table,
    promise_table,
    sample_complexity_table,
)

RUNS_FILE: Final = "runs.jsonl"

RESULTS: Final = Path(__file__).parents[3] / "docs" / "results"
"""The results that are committed."""

ALGORITHMS: Final = {"disco": "DisCo", "ucb-explore": "UcbExplore-Bernstein"}
"""The names of explorers in figures."""

Group = tuple[Experiment, Sequence[PaperRun]]


def _found(domain_name: str, radius: float) -> frozenset[str]:
    """Returns S_L→ of a domain, as labels."""
    return frozenset(str(state) for state in controllable_states(domain(domain_name), radius).states)


def _table2(groups: Sequence[Group]) -> Table:
    title = "Sample complexity on the confusing chain, L = 4.5"
    return sample_complexity_table("table2", title, groups, _found(CHAIN, 4.5))


def _table3(groups: Sequence[Group]) -> Table:
    title = "Expected hitting time of the policies on the confusing chain, L = 4.5 (the paper's, where it differs)"
    return hitting_steps_table("table3", title, groups, sorted(_found(CHAIN, 4.5)))


def _lock_table(groups: Sequence[Group]) -> Table:
    title = "Sample complexity on the combination lock, L = 2.7, epsilon = 0.2"
    return sample_complexity_table("lock", title, groups, _found(LOCK, 2.7))


def _chain_figure(groups: Sequence[Group]) -> Figure:
    return _drawn(groups, _found(CHAIN, 4.5), "fig3", columns=3)


def _lock_figure(groups: Sequence[Group]) -> Figure:
    return _drawn(groups, _found(LOCK, 2.7), "fig-lock", columns=1)


def _drawn(groups: Sequence[Group], controllable: frozenset[str], name: str, columns: int) -> Figure:
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
    return Figure(name, proportion_figure(sweeps, len(controllable), columns))


def _times(record: PaperRun, controllable: frozenset[str]) -> list[int]:
    found = zip(record.states, record.found_at, strict=True)
    return [steps for state, steps in found if state in controllable]


def _theory_table(groups: Sequence[Group]) -> Table:
    title = "DisCo with the exact allocation on the confusing chain, L = 4.5"
    ((experiment, records),) = groups
    return promise_table("theory", title, experiment, records, controllable_states(domain(CHAIN), 4.5))


def _certified_table(groups: Sequence[Group]) -> Table:
    title = "The certified explorer beside DisCo with the settings of the paper's simulations, delta = 0.1"
    return with_limits(certified_table("certified", title, groups), RESULTS / LIMITS_FILE)


def _default(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Returns the experiments in the reading that the presets use."""
    return tuple(experiment for experiment in experiments if not experiment.reading)


def _study(
    name: str,
    description: str,
    experiments: Sequence[Experiment],
    output: Callable[[Sequence[Group]], Output],
    trials: Callable[[Sequence[Experiment]], list[Trial]] = run_trials,
) -> Study:
    return Study(
        name,
        description,
        partial(trials, experiments),
        partial(_summary, experiments, output),
        counted="runs of each experiment",
        records_file=RUNS_FILE,
    )


def _summary(
    experiments: Sequence[Experiment], output: Callable[[Sequence[Group]], Output], records: Sequence[Record]
) -> Output:
    groups = [
        (experiment, [PaperRun(**record) for record in records if record["experiment"] == experiment.id])
        for experiment in experiments
    ]
    return output(groups)


def _runs_to_draw(experiments: Sequence[Experiment], runs: int | None = None) -> list[Trial]:
    require_matplotlib()  # before the runs, not after
    return run_trials(experiments, runs)


_CHAIN, _LOCK = _default(CHAIN_EXPERIMENTS), _default(LOCK_EXPERIMENTS)

PAPER: Final = (
    _study("table2", "steps on the confusing chain, beside the published ones", CHAIN_EXPERIMENTS, _table2),
    _study("table3", "expected steps of the policies, beside the published ones", CHAIN_EXPERIMENTS, _table3),
    _study("fig3", "when states were found on the chain", _CHAIN, _chain_figure, _runs_to_draw),
    _study("lock", "steps on the combination lock, beside the published ones", LOCK_EXPERIMENTS, _lock_table),
    _study("fig-lock", "when states were found on the lock", _LOCK, _lock_figure, _runs_to_draw),
)
"""[DisCo] Tab. (new_results), Tab. (expectedtime.confusing), Fig. (3plots) with Fig. (bbb), and App. "Combination Lock"
with its figure."""

BESIDE: Final = (
    _study("certified", "the certified explorer beside DisCo", CERTIFIED_EXPERIMENTS, _certified_table),
    _study("theory", "DisCo with every constant of its proofs, 10^10 steps", (THEORY_EXPERIMENT,), _theory_table),
)
"""What the paper does not have."""
