"""The runs of experiments over seeds, as trials."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from axplore.explorers.base import run
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.loop import Record, Trial
from axplore_studies.paper.experiments import Experiment
from axplore_studies.promises import policy_steps_of


@dataclass(frozen=True)
class PaperRun:
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


def run_trials(experiments: Sequence[Experiment], runs: int | None = None) -> list[Trial]:
    """Returns the runs of experiments.

    Args:
        experiments: the experiments.
        runs: the number of seeds per experiment; by default, as in the paper.
    """
    return [
        Trial(
            {"experiment": experiment.id, "settings": experiment.settings, "seed": seed},
            partial(_run, experiment, seed),
            weight=-experiment.epsilon,  # the smallest takes the longest
        )
        for experiment in experiments
        for seed in range(runs or experiment.runs)
    ]


def _run(experiment: Experiment, seed: int) -> Record:
    return asdict(run_seed(experiment, seed))


def run_seed(experiment: Experiment, seed: int) -> PaperRun:
    """Runs one seed of an experiment and evaluates its policies on the true model."""
    mdp = experiment.mdp()
    begun = time.process_time()
    exploration = run(experiment.explorer(), SimulatedWorld(mdp, seed))
    if exploration.failure is not None:
        raise exploration.failure
    seconds = time.process_time() - begun
    return PaperRun(
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
