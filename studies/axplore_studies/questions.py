"""What answers to questions cost on models of the literature, beside intervals at a fixed time, and whether they hold.

The models are files of others, read where they lie: `axplore reproduce questions --models DIR`. Every bound at every
recorded time is compared with what Storm computes from the model. Beside it stand Clopper and Pearson's intervals of
each probability, at one fixed time, with supports that are closed at that time: on the same draws, in the same run.
They are favoured, since they may be looked at only once and know how many actions there are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from axplore.assumptions import Assumptions
from axplore.compilation import compiled, compiled_inner, compiled_part
from axplore.explorers.base import RoundReport
from axplore.explorers.base import run as run_explorer
from axplore.explorers.directed import Directed, DirectedState
from axplore.proofs.chances import Asked
from axplore.proofs.sort_kernels import ascending
from axplore.properties import fields_of
from axplore.records.run import StopReason
from axplore.target import NO_RADIUS, Target
from axplore.types import Action, FloatArray, IntArray, State
from axplore.worlds.storm import imported_stormpy, storm_world
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table

DELTA: Final = 0.01
SEEDS: Final = 5
BEYOND: Final = 0.75
"""Runs continue to this part of the precision, so that the other intervals get there too."""

STORM: Final = 1e-6
"""The accuracy of Storm's values."""

MOST_STEPS: Final = 1_500_000_000

FIELDS: Final = (
    "truth", "steps", "seconds", "fixed_time_steps", "last_steps", "tests", "bounds", "wrong", "states",
)  # fmt: skip
"""What is recorded of a run."""


@dataclass(frozen=True)
class Asking:
    """A question about a model of the literature.

    Attributes:
        name: what to call it.
        file: the model.
        question: the property.
        least: the least probability of an outcome that is assumed, half of the true one; None if nothing is.
        precision: the width to come to.
        constants: of the model.
        tied: whether all coins are assumed to be alike.
    """

    name: str
    file: str
    question: str
    least: float | None
    precision: float = 0.01
    constants: dict[str, Any] = field(default_factory=dict)
    tied: bool = False

    @property
    def assume(self) -> Assumptions:
        """What is assumed."""
        return Assumptions(min_probability=self.least, tied=_coin if self.tied else None)


BEFORE: Final = "((s1=4 & cd1<2) | (s2=4 & cd2<2))"
QUESTIONS: Final = (
    Asking("csma 2-2, Pmin some_before", "csma.2-2.prism", f"Pmin=? [ F {BEFORE} ]", 1 / 8),
    Asking("wlan 0, Pmin sent", "wlan.0.prism", "Pmin=? [ F s1=12 & s2=12 ]", 1 / 32, constants={"COL": 0}),
    Asking(
        "consensus 2, Pmax disagree", "consensus.2.prism", 'Pmax=? [ F "finished" & !"agree" ]', 1 / 4,
        constants={"K": 2},
    ),
    Asking(
        "consensus 2, Pmax disagree, tied", "consensus.2.prism", 'Pmax=? [ F "finished" & !"agree" ]', 1 / 4,
        constants={"K": 2}, tied=True,
    ),
    Asking("csma 2-2, Pmin some_before within 100", "csma.2-2.prism", f"Pmin=? [ F<=100 {BEFORE} ]", None, 0.05),
)  # fmt: skip

_fields = lru_cache(maxsize=None)(fields_of)


def _coin(state: State, _: Action, successor: State) -> tuple[str, int] | None:
    """Which coin a step of the consensus model has tossed, and how it fell."""
    before, after = _fields(state), _fields(successor)
    for process in "12":
        if before[f"pc{process}"] == 0 and after[f"pc{process}"] == 1:
            return "toss", after[f"coin{process}"]
    return None


def trials(seeds: int = SEEDS, models: str = "") -> list[Trial]:
    """Returns the runs for each question.

    Args:
        seeds: of each.
        models: the folder of the models; without it there is nothing to ask.
    """
    folder = Path(models).absolute() if models else None
    return [
        Trial(
            {"question": asking.name, "seed": seed, "has_model": bool(models)}, partial(answered, asking, folder, seed)
        )
        for asking in QUESTIONS
        for seed in range(seeds)
    ]


def answered(asking: Asking, folder: Path | None, seed: int) -> Record:
    """Asks a question of a model, and returns what it took and whether every bound holds the truth.

    Nothing is asked without the folder of the models, which are not in the repository.
    """
    if folder is None:
        return dict.fromkeys(FIELDS)
    truth = storm_value(folder / asking.file, asking.question, asking.constants)
    watch = _Watch(asking, truth)
    explorer = Directed(
        target=Target(radius=NO_RADIUS, epsilon=BEYOND * asking.precision, delta=DELTA),
        question=asking.question,
        assume=asking.assume,
    )
    watch.explorer = explorer
    world = storm_world(folder / asking.file, seed, **asking.constants)
    watch.began = time.process_time()
    run_explorer(explorer, world, observers=[watch], max_steps=MOST_STEPS)
    return {
        "truth": truth, "steps": watch.steps, "seconds": watch.seconds, "fixed_time_steps": watch.fixed_time_steps,
        "last_steps": watch.last_steps, "tests": watch.n_tests, "bounds": watch.n_bounds, "wrong": watch.n_wrong,
        "states": watch.n_states,
    }  # fmt: skip


class _Watch:
    """Notes when the bounds, and those at a fixed time, are close enough together, and counts wrong ones."""

    explorer: Directed

    def __init__(self, asking: Asking, truth: float) -> None:
        self._asking, self._truth = asking, truth
        self.began = self._beside = 0.0
        self.steps: int | None = None
        self.seconds: float | None = None
        self.fixed_time_steps: int | None = None
        self.last_steps = self.n_tests = self.n_bounds = self.n_wrong = self.n_states = 0

    def __call__(self, report: RoundReport) -> StopReason | None:
        state: DirectedState = report.state
        self.n_bounds += 1
        self.n_states, self.n_tests, self.last_steps = report.known, len(state.tests), state.steps
        self.n_wrong += not state.lower - STORM <= self._truth <= state.upper + STORM
        width = state.upper - state.lower
        if self.steps is None and width <= self._asking.precision:
            self.steps = state.steps
            self.seconds = round(time.process_time() - self.began - self._beside, 2)
        if self.fixed_time_steps is None and width <= 4 * self._asking.precision and not self._asking.tied:
            began = time.process_time()
            lower, upper = fixed_time_bounds(self.explorer.asked(state), self._asking.least)
            self._beside += time.process_time() - began
            if upper - lower <= self._asking.precision:
                self.fixed_time_steps = report.steps
        is_done = self.steps is not None and (self.fixed_time_steps is not None or self._asking.tied)
        return StopReason.INTERRUPTED if is_done else None


def storm_value(file: Path, question: str, constants: dict[str, Any]) -> float:
    """Returns the value of a property of a model by Storm; it is sound to 1e-9."""
    stormpy = imported_stormpy()
    definitions = ",".join(f"{name}={value}" for name, value in constants.items())
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(file)), definitions)
    (parsed,) = stormpy.parse_properties(question, program)
    model = stormpy.build_model[float](program, [parsed])
    environment = stormpy.environments.sound()
    environment.solver().min_max().precision = stormpy.Rational("1/1000000000")
    result = stormpy.model_checking(model, parsed, environment=environment)
    return float(result.get_value(model.initial_states[0]))


def fixed_time_bounds(asked: Asked, least: float | None) -> tuple[float, float]:
    """Returns bounds by Clopper and Pearson's intervals of all probabilities at this time, with confidence 1 - δ.

    Half of δ is for supports that are taken for closed, if outcomes have a least probability.
    """
    from scipy.stats import beta

    model, rows, question = asked.model, asked.rows, asked.question
    assert model.counts is not None
    counts, visits = model.counts, model.visits
    entry_pairs = np.repeat(np.arange(model.n_pairs), np.diff(rows.row_offsets))
    n_drawn = max(int((visits > 0).sum()), 1)
    closed = np.zeros(model.n_pairs, dtype=np.bool_)
    level = DELTA
    if least is not None:
        level = DELTA / 2
        closed = visits * -np.log1p(-least) >= np.log(n_drawn / (DELTA / 2))
    kinds = np.diff(rows.row_offsets) + ~closed  # what was never seen is one more outcome of a support that is open
    each = (level / n_drawn / np.maximum(kinds, 1))[entry_pairs] / 2
    n_of_entry = visits[entry_pairs]
    low = np.where(counts > 0, beta.ppf(each, counts, n_of_entry - counts + 1), 0.0)
    high = np.where(counts < n_of_entry, beta.ppf(1 - each, counts + 1, n_of_entry - counts), 1.0)
    unseen = np.where(
        closed, 0.0, 1.0 - np.power(level / n_drawn / np.maximum(kinds, 1) / 2, 1 / np.maximum(visits, 1))
    )
    unseen = np.where(visits == 0, 1.0, unseen)
    lower, upper = question.reach.astype(np.float64), asked.outside()
    steps = 0 if question.within is None else question.within
    if question.within is not None:
        upper[asked.is_asked] = 0.0
    interval = (
        rows.state_pairs,
        rows.row_offsets,
        rows.successors,
        np.nan_to_num(low),
        np.nan_to_num(high, nan=1.0),
        unseen,
    )
    return (
        _iterated(*interval, asked.order, lower, False, question.maximise, steps),
        _iterated(*interval, asked.order, upper, True, question.maximise, steps),
    )


@compiled
def _iterated(
    state_pairs: IntArray,
    row_offsets: IntArray,
    successors: IntArray,
    low: FloatArray,
    high: FloatArray,
    unseen: FloatArray,
    order: IntArray,
    values: FloatArray,
    is_upper: bool,
    maximise: bool,
    steps: int,
) -> float:
    """Value iteration over intervals from below; from the initial state, after some steps or until it stays."""
    free = 1.0 if is_upper else 0.0
    after = np.empty(len(values))
    for _ in range(steps if steps else 200_000):
        change = 0.0
        _copy(values, after)
        for state in order:
            best = -1.0 if maximise else 2.0
            for pair in range(state_pairs[state], state_pairs[state + 1]):
                first, end = row_offsets[pair], row_offsets[pair + 1]
                # The most favourable outcomes get as much as they may, and each at least its least.
                left, mean = 1.0, 0.0
                for entry in range(first, end):
                    left -= low[entry]
                taken = min(left, unseen[pair]) if is_upper or unseen[pair] > 0.0 else 0.0
                mean += taken * free
                left -= taken
                for place in _most_favourable_first(values, successors[first:end], is_upper):
                    more = min(max(high[first + place] - low[first + place], 0.0), max(left, 0.0))
                    mean += (low[first + place] + more) * values[successors[first + place]]
                    left -= more
                if left > 0.0:
                    mean += left * free if end == first else 0.0
                if (mean > best) if maximise else (mean < best):
                    best = mean
            best = min(max(best, 0.0), 1.0)
            change = max(change, abs(best - values[state]))
            if steps:
                after[state] = best
            else:
                values[state] = max(values[state], best)
        if steps:
            _copy(after, values)
        elif change <= 1e-7:
            break
    return float(values[0])


@compiled_inner
def _copy(values: FloatArray, to: FloatArray) -> None:
    for state in range(len(values)):
        to[state] = values[state]


@compiled_part
def _most_favourable_first(values: FloatArray, successors: IntArray, is_upper: bool) -> IntArray:
    keys = np.empty(len(successors))
    for place in range(len(successors)):
        keys[place] = -values[successors[place]] if is_upper else values[successors[place]]
    return ascending(keys)


def summary(records: Sequence[Record]) -> Table:
    """Returns a row for each question: medians over seeds."""
    rows = []
    for asking in QUESTIONS:
        runs = [record for record in records if record["question"] == asking.name and record["truth"] is not None]
        if not runs:
            continue
        rows.append(
            {
                "question": asking.name,
                "truth": round(runs[0]["truth"], 6),
                "precision": asking.precision,
                "assumed": str(asking.assume) if asking.least is not None else "nothing",
                "runs": len(runs),
                "million_steps": _middle([run["steps"] for run in runs], 1e6),
                "seconds": _middle([run["seconds"] for run in runs], 1),
                "fixed_time_million_steps": _middle([run["fixed_time_steps"] for run in runs], 1e6),
                "ratio": _ratio(runs, asking),
                "bounds": sum(run["bounds"] for run in runs),
                "wrong": sum(run["wrong"] for run in runs),
                "runs_with_tests": sum(run["tests"] > 0 for run in runs),
            }
        )
    rows = rows or [{"question": "no models: axplore reproduce questions --models DIR"}]
    title = f"Steps until a question is answered, delta = {DELTA}: medians, beside Clopper-Pearson at a fixed time"
    return Table(STUDY.name, title, rows)


def _ratio(runs: Sequence[Record], asking: Asking) -> float | str | None:
    """The median of our steps beside those of the fixed time; where most runs ended before these, it is less."""
    if asking.tied:
        return None
    reached = [run for run in runs if run["steps"] and run["fixed_time_steps"]]
    if 2 * len(reached) > len(runs):
        return _middle([run["steps"] / run["fixed_time_steps"] for run in reached], 1)
    bound = _middle([run["steps"] / run["last_steps"] if run["steps"] else None for run in runs], 1)
    return None if bound is None else f"below {bound}"


def _middle(values: Sequence[Any], unit: float) -> float | None:
    """The median in a unit; None if fewer than half of the runs got there."""
    found = [value for value in values if value is not None]
    return round(median(found) / unit, 2) if 2 * len(found) > len(values) else None


STUDY: Final = Study(
    "questions", "what answers to questions cost on models of the literature, and whether they hold", trials, summary,
    counted="seeds", one_at_a_time=True,
)  # fmt: skip
