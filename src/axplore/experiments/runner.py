"""Runs experiments over seeds, with several workers, and stores every finished run in a file.

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

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.experiments.paper import Experiment
from axplore.explorers.base import Exploration, run
from axplore.mdp import TabularMdp
from axplore.planning.evaluation import policy_steps
from axplore.planning.finite_horizon import resetting_policy_steps
from axplore.types import RESET_ACTION, RESET_PAIR, IntArray, State
from axplore.workers.engines import engine_for
from axplore.workers.pool import results_of
from axplore.worlds.simulated import SimulatedWorld


@dataclass(frozen=True)
class RunRecord:
    """The record of one run.

    Attributes:
        experiment: the id of the experiment.
        settings: its settings; a record of other settings does not count.
        seed: the seed of the world.
        steps: the steps taken, RESET included: the sample complexity.
        rounds: the number of rounds.
        stop: why it ended.
        states: the states found, in order.
        found_at: the steps at which each was found.
        hitting_steps: the true expected steps of the policy to each.
        seconds: the processor time. It depends on the machine, and is ignored when records are compared.
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
    if exploration.failure is not None:
        raise exploration.failure
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
        experiments: the experiments to run.
        path: the file of finished runs; created if it does not exist.
        runs: the number of seeds per experiment; by default, as in the paper.
        workers: number of worker processes, each of which makes one run at a time; None for no workers. Results do not
            depend on it.
        ray: the Ray cluster that runs the workers: `auto` or an address.
        on_done: called with the finished and the total number of runs.
    """
    if runs is not None and runs < 1:
        raise InvalidSettingError(f"runs is {runs}; there must be at least one")
    wanted = [(experiment, seed) for experiment in experiments for seed in range(runs or experiment.runs)]
    settings = {experiment.id: experiment.settings for experiment in experiments}
    finished = {(record.experiment, record.seed): record for record in read_records(path, settings)}
    missing = [(experiment, seed) for experiment, seed in wanted if (experiment.id, seed) not in finished]
    # The smallest epsilon takes the longest; it begins first, so that no worker waits long for the last run.
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
    """Yields the records in a file that belong to experiments with these settings, by id."""
    for fields in read_lines(path):
        if settings.get(fields["experiment"]) == fields["settings"]:
            yield RunRecord(**fields)


def sort_file(path: Path) -> None:
    """Puts the lines of a file of runs in a fixed order, so that it does not depend on which worker was faster."""
    sort_lines(path, lambda fields: (fields["experiment"], fields["seed"]))


def _run(experiment_and_seed: tuple[Experiment, int]) -> RunRecord:
    return run_seed(*experiment_and_seed)


def policy_steps_of(exploration: Exploration, mdp: TabularMdp, goal: State) -> float:
    """Returns the expected steps of the policy to a state found, on the model that was explored; exact."""
    return policy_steps_on(mdp, exploration.states, exploration.policy(goal), goal)


def policy_on_model(mdp: TabularMdp, states: Sequence[State], policy: IntArray) -> IntArray:
    """Returns a policy that covers the first m of these states, [m] or [H, m], for all states of a model."""
    on_model = np.full((*policy.shape[:-1], mdp.n_states), RESET_ACTION, dtype=np.int64)
    on_model[..., mdp.indices_of(states[: policy.shape[-1]])] = policy
    return on_model


def policy_steps_on(mdp: TabularMdp, states: Sequence[State], policy: IntArray, goal: State) -> float:
    """Returns the exact expected steps of a policy, which covers the first m of these states, [m] or [H, m]."""
    on_model = policy_on_model(mdp, states, policy)
    if policy.ndim == 2:
        return resetting_policy_steps(mdp, mdp.index_of(goal), on_model)
    pairs = np.where(on_model == RESET_ACTION, RESET_PAIR, mdp.state_pairs[:-1] + on_model)
    return float(policy_steps(mdp, pairs, goal)[mdp.initial_index])


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a file; none if there is no file.

    A last line that an interruption left incomplete is ignored, and removed so that the next line is whole.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def sort_lines(path: Path, order: Callable[[dict[str, Any]], Any]) -> None:
    """Puts the lines of a file in a fixed order, so that it does not depend on which worker was faster."""
    lines = set(path.read_text(encoding="utf-8").splitlines())
    ordered = sorted(lines, key=lambda line: (order(json.loads(line)), line))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
    partial.replace(path)
