"""Runs experiments over seeds, by several workers, and keeps every finished run in a file.

A run depends on its experiment and its seed alone, so neither the number of workers nor an interruption changes
any number. Finished runs are lines of JSON; a run whose line is there is not run again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from axplore.errors import InvalidSettingError
from axplore.experiments.catalogue import Experiment
from axplore.experiments.evaluation import policy_steps_of
from axplore.experiments.records import read_lines, sort_lines
from axplore.explorers.driver import run
from axplore.workers.choosing import engine_for
from axplore.workers.sweeps import results_of
from axplore.worlds.simulated import SimulatedWorld


@dataclass(frozen=True)
class RunRecord:
    """What is kept of one run.

    Attributes:
        experiment: the id of the experiment.
        settings: its settings; a record of other settings does not count.
        seed: of the world.
        steps: steps taken, RESET included: the sample complexity.
        rounds: how many rounds there were.
        stop: why it ended.
        states: the states found, in order.
        found_at: the steps at which each was found.
        hitting_steps: the true expected steps of the policy to each.
        seconds: processor time of the exploration; it depends on the machine and makes no difference to a record.
    """

    experiment: str
    settings: dict[str, Any]
    seed: int
    steps: int
    rounds: int
    stop: str
    states: list[str]
    found_at: list[int]
    hitting_steps: list[float]
    seconds: float | None = field(default=None, compare=False)


def run_seed(experiment: Experiment, seed: int) -> RunRecord:
    """Runs one seed of an experiment and evaluates its policies on the true model."""
    mdp = experiment.mdp()
    begun = time.process_time()
    exploration = run(experiment.explorer(), SimulatedWorld(mdp, seed))
    seconds = time.process_time() - begun
    return RunRecord(
        experiment=experiment.id,
        settings=experiment.settings,
        seed=seed,
        steps=exploration.steps,
        rounds=exploration.rounds,
        stop=exploration.stop.name,
        states=[str(state) for state in exploration.states],
        found_at=exploration.found_at.tolist(),
        hitting_steps=[policy_steps_of(exploration, mdp, goal) for goal in exploration.states],
        seconds=round(seconds, 3),
    )


def run_experiments(
    experiments: Sequence[Experiment],
    path: Path,
    *,
    runs: int | None = None,
    workers: int | None = None,
    ray: str | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> list[RunRecord]:
    """Runs what is not in the file yet and returns all records, in the order of experiments and seeds.

    Args:
        experiments: what to run.
        path: the file of finished runs; made when it does not exist.
        runs: seeds per experiment; those of the paper when not given.
        workers: so many processes make the runs, one each at a time, or none. They change no number.
        ray: the workers are on a Ray cluster: `auto` or an address.
        on_done: called with the finished and the total number of runs.
    """
    if runs is not None and runs < 1:
        raise InvalidSettingError(f"runs is {runs}; there must be at least one")
    wanted = [(experiment, seed) for experiment in experiments for seed in range(runs or experiment.runs)]
    settings = {experiment.id: experiment.settings for experiment in experiments}
    finished = {(record.experiment, record.seed): record for record in read_records(path, settings)}
    missing = [(experiment, seed) for experiment, seed in wanted if (experiment.id, seed) not in finished]
    # The smallest epsilon takes the longest: begun first, no worker waits long for the last run.
    missing.sort(key=lambda experiment_and_seed: experiment_and_seed[0].epsilon)
    if on_done is not None:
        on_done(len(wanted) - len(missing), len(wanted))
    path.parent.mkdir(parents=True, exist_ok=True)
    with engine_for(workers, ray) as engine, path.open("a", encoding="utf-8") as file:
        for record in results_of(_run, missing, engine):
            file.write(json.dumps(asdict(record)) + "\n")
            file.flush()
            finished[record.experiment, record.seed] = record
            if on_done is not None:
                on_done(sum((experiment.id, seed) in finished for experiment, seed in wanted), len(wanted))
    return [finished[experiment.id, seed] for experiment, seed in wanted]


def read_records(path: Path, settings: dict[str, dict[str, Any]]) -> Iterator[RunRecord]:
    """The records in a file that belong to experiments with these settings, by id."""
    for fields in read_lines(path):
        if settings.get(fields["experiment"]) == fields["settings"]:
            yield RunRecord(**fields)


def sort_file(path: Path) -> None:
    """Puts the lines of a file of runs in a fixed order, so that it does not tell which worker was faster."""
    sort_lines(path, lambda fields: (fields["experiment"], fields["seed"]))


def _run(experiment_and_seed: tuple[Experiment, int]) -> RunRecord:
    return run_seed(*experiment_and_seed)
