"""`axplore coverage`: how often the certified explorer breaks its promise, on thousands of random models.

Every trial explores one random model (`coverage_models`) and compares the answer with the truth. A trial depends on its
own fields alone, so neither the number of workers nor an interruption changes any number.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.experiments.coverage_models import KINDS, Case, case
from axplore.experiments.result_tables import Table
from axplore.experiments.runner import policy_on_model, policy_steps_of, read_lines, sort_lines
from axplore.explorers.base import Exploration, RoundReport, StopReason, run
from axplore.explorers.certified import Certified, CertifiedState
from axplore.mdp import TabularMdp
from axplore.planning.finite_horizon import truncated_steps
from axplore.proofs.bounds import GoalValues
from axplore.proofs.evidence import Evidence
from axplore.statistics.centred import log_wealth
from axplore.statistics.confidence import confidence_region
from axplore.statistics.summaries import estimate, proportion_interval
from axplore.target import Objective, Target
from axplore.truth import ACCURACY, check_optimal, check_within_radius, controllable_states, optimal_steps
from axplore.types import FloatArray, State
from axplore.workers.engines import Engine, engine_for
from axplore.workers.pool import results_of
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld

TRIALS_FILE: Final = "coverage.jsonl"
OBJECTIVES: Final = {"optimal": Objective.OPTIMAL, "within-radius": Objective.WITHIN_RADIUS}
DELTAS: Final = (0.1, 0.5)
"""The usual δ, and one so large that a proof that is too weak would show."""

ALL_KINDS: Final = "all"


class Violation(Enum):
    """How a trial may break the promise; the value describes it."""

    MISSING = "a controllable state is missing"
    BEYOND = "a state found is not controllable even with ε more"
    POLICY = "a policy misses its objective"
    BOUND = "a bound does not hold"


@dataclass(frozen=True)
class Trial:
    """One model to explore.

    Attributes:
        kind: the kind of the model, one of `coverage_models.KINDS`.
        seed: the seed of the model and of the world.
        objective: the name of the objective, one of `OBJECTIVES`.
        delta: δ.
        epsilon: ε.
        max_steps: the steps after which the trial is given up.
    """

    kind: str
    seed: int
    objective: str
    delta: float
    epsilon: float
    max_steps: int


@dataclass(frozen=True)
class TrialRecord(Trial):
    """The record of a trial.

    Attributes:
        radius: L, which belongs to the model.
        states: the number of states of the model.
        controllable: the number of controllable states, |S_L→|.
        found: the number of states found, |K|.
        steps: the steps taken.
        stop: why it ended.
        left_region: whether the true model was outside the confidence region after any round: the event that δ allows.
        violations: the names of the promises broken; only bounds in a trial that was given up.
        seconds: the processor time. It depends on the machine, and is ignored when records are compared.
    """

    radius: float
    states: int
    controllable: int
    found: int
    steps: int
    stop: str
    left_region: bool
    violations: list[str]
    seconds: float | None = field(default=None, compare=False)

    @property
    def trial(self) -> Trial:
        """The trial that was recorded."""
        return Trial(self.kind, self.seed, self.objective, self.delta, self.epsilon, self.max_steps)


def coverage(
    out: Path,
    *,
    models: int = 2000,
    objectives: Sequence[str] = tuple(OBJECTIVES),
    deltas: Sequence[float] = DELTAS,
    epsilon: float = 0.5,
    max_steps: int = 2_000_000,
    workers: int | None = None,
    ray: str | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> list[TrialRecord]:
    """Explores random models, compares them with the truth, and saves the table of broken promises.

    Finished trials are stored in `coverage.jsonl` under `out`; called again after an interruption, it resumes there.

    Args:
        out: the folder for trials and table.
        models: the number of models for each objective and delta, distributed among the kinds in turn.
        objectives: names of `OBJECTIVES`.
        deltas: values of δ.
        epsilon: ε.
        max_steps: the steps after which a trial is given up, and reported as such.
        workers: number of worker processes, each of which explores one model at a time; None for no workers. Results
            do not depend on it.
        ray: the Ray cluster that runs the workers: `auto` or an address.
        on_done: called with the finished and the total number of trials.
    """
    trials = list(_trials(models, objectives, deltas, epsilon, max_steps))
    path = out / TRIALS_FILE
    with engine_for(workers, ray) as engine:
        records = _run_trials(trials, path, engine, on_done)
    sort_lines(path, lambda fields: (fields["objective"], fields["delta"], fields["kind"], fields["seed"]))
    coverage_table(records).save(out)
    return records


def _trials(
    models: int, objectives: Sequence[str], deltas: Sequence[float], epsilon: float, max_steps: int
) -> Iterator[Trial]:
    if models < 1:
        raise InvalidSettingError(f"models is {models}; there must be at least one")
    for name in objectives:
        if name not in OBJECTIVES:
            raise InvalidSettingError(f"no objective {name!r}; there are {' and '.join(OBJECTIVES)}")
    for objective, delta, number in product(objectives, deltas, range(models)):
        Target(radius=1.0, epsilon=epsilon, delta=delta)  # refuses invalid targets
        seed, place = divmod(number, len(KINDS))
        yield Trial(list(KINDS)[place], seed, objective, delta, epsilon, max_steps)


def _run_trials(
    trials: Sequence[Trial], path: Path, engine: Engine | None, on_done: Callable[[int, int], None] | None
) -> list[TrialRecord]:
    """Runs trials that are not in the file yet and returns all records, in the order of the trials."""
    wanted = set(trials)
    finished = {
        record.trial: record
        for record in (TrialRecord(**fields) for fields in read_lines(path))
        if record.trial in wanted
    }
    missing = [trial for trial in trials if trial not in finished]
    if on_done is not None:
        on_done(len(finished), len(trials))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in results_of(run_trial, missing, engine):
            file.write(json.dumps(asdict(record)) + "\n")
            file.flush()
            finished[record.trial] = record
            if on_done is not None:
                on_done(len(finished), len(trials))
    return [finished[trial] for trial in trials]


def run_trial(trial: Trial, share: Callable[[World], World] | None = None) -> TrialRecord:
    """Explores the model of a trial and compares the answer with the truth.

    Args:
        trial: what to explore.
        share: gives a world to workers, which the explorer is then set for; without workers by default.
    """
    given = case(trial.kind, trial.seed)
    target = Target(radius=given.radius, epsilon=trial.epsilon, delta=trial.delta)
    explorer = Certified(target=target, objective=OBJECTIVES[trial.objective])
    world: World = SimulatedWorld(given.mdp, trial.seed)
    if share is not None:
        explorer, world = explorer.for_workers(), share(world)
    watch = RegionWatch(given.mdp, world, trial.delta)
    begun = time.process_time()
    exploration = run(explorer, world, max_steps=trial.max_steps, observers=[watch.look])
    seconds = time.process_time() - begun
    return TrialRecord(
        **asdict(trial),
        radius=given.radius,
        states=given.mdp.n_states,
        controllable=len(controllable_states(given.mdp, given.radius).states),
        found=len(exploration.states),
        steps=exploration.steps,
        stop=exploration.stop.name,
        left_region=watch.left,
        violations=[violation.name for violation in violations_of(exploration, given)],
        seconds=round(seconds, 3),
    )


class RegionWatch:
    """Checks after every round whether the true model is still in the region, and every proven test is true."""

    def __init__(self, mdp: TabularMdp, world: World, delta: float) -> None:
        self.left = False
        self._mdp = mdp
        self._world = world
        self._delta = delta
        self._looked_at: set[tuple[int, int]] = set()

    def look(self, report: RoundReport) -> None:
        """Checks the region; to be called after every round of the certified explorer."""
        self._look_at_tests(report.state)
        rows = report.state.counts.rows()
        region = confidence_region(rows, self._delta)
        assert region.log_levels is not None  # it is a region of counts
        spent = 0.0  # of what the pairs with one successor share
        numbers = self._mdp.indices_of(self._world.states)
        for place, known in enumerate(numbers[rows.states]):
            first = self._mdp.state_pairs[known] - rows.state_pairs[place]
            for pair in range(rows.state_pairs[place], rows.state_pairs[place + 1]):
                entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
                counts = rows.counts[entries].astype(np.float64)
                if not len(counts):
                    continue
                truth = self._row(int(first + pair))[numbers[rows.successors[entries]]]
                if truth.min() <= 0.0 or log_wealth(counts, truth, np.zeros(len(counts))) >= -region.log_levels[pair]:
                    self.left = True
                elif len(counts) == 1:
                    spent -= (counts[0] - 1.0) * math.log(truth[0])
        if spent > region.shared_budget:
            self.left = True

    def _look_at_tests(self, state: CertifiedState) -> None:
        """Whether a test by episodes has proven what is not true, which δ allows for as well."""
        labels = [self._world.states[number] for number in state.known]
        for test in state.tests:
            if test.proven and (test.line, test.turn) not in self._looked_at:
                self._looked_at.add((test.line, test.turn))
                goal = self._world.states[test.goal]
                by_step = policy_on_model(self._mdp, labels, test.policy_by_step)
                taken, missed = truncated_steps(self._mdp, self._mdp.index_of(goal), by_step)
                if taken + missed * test.tail > test.bound + ACCURACY:
                    self.left = True

    def _row(self, pair: int) -> FloatArray:
        """Returns the true probabilities of a pair of the model, [S]."""
        row = np.zeros(self._mdp.n_states)
        entries = slice(self._mdp.row_offsets[pair], self._mdp.row_offsets[pair + 1])
        row[self._mdp.successors[entries]] = self._mdp.probabilities[entries]
        return row


def violations_of(exploration: Exploration, given: Case) -> list[Violation]:
    """Returns the promises that an exploration breaks. Bounds must hold at any time, the others at a regular end."""
    found = [] if bounds_hold(exploration, given.mdp) else [Violation.BOUND]
    if exploration.stop is not StopReason.PROVEN:
        return found
    target = exploration.explorer.target
    truth = controllable_states(given.mdp, target.radius)
    reachable = controllable_states(given.mdp, target.radius + target.epsilon)
    steps = {goal: policy_steps_of(exploration, given.mdp, goal) for goal in exploration.states}
    check = check_optimal if _evidence(exploration).objective is Objective.OPTIMAL else check_within_radius
    if not set(truth.states) <= set(exploration.states):
        found.append(Violation.MISSING)
    if not set(exploration.states) <= set(reachable.states):
        found.append(Violation.BEYOND)
    if check(truth, steps=steps, epsilon=target.epsilon).excess > ACCURACY:
        found.append(Violation.POLICY)
    return found


def bounds_hold(exploration: Exploration, mdp: TabularMdp) -> bool:
    """Returns whether every bound of the evidence holds in the true model: of optima, of policies and of regrets."""
    evidence = _evidence(exploration)
    known, seen = exploration.states, (*exploration.states, *exploration.frontier)  # in the order of positions
    best = {state: optimal_steps(mdp, state, known) for state in mdp.states}
    unseen = min((steps for state, steps in best.items() if state not in seen), default=math.inf)
    lower = all(path.steps <= best[state] + ACCURACY for state, path in zip(seen, evidence.lower, strict=True))
    reachable = _taken(exploration, mdp, evidence.reachable)
    final = _taken(exploration, mdp, evidence.best_upper)
    playing = replace(exploration, policies=evidence.policies)
    handed_back = np.array([policy_steps_of(playing, mdp, state) for state in known])
    upper = all(
        taken[state] <= path.steps + ACCURACY
        for taken, paths in ((reachable, evidence.reachable), (final, evidence.best_upper))
        for state, path in zip(known, paths, strict=True)
    ) and all(handed_back <= evidence.upper_steps + ACCURACY)
    regrets = all(
        final[state] - best[state] <= regret.steps + ACCURACY
        for state, regret in zip(known, evidence.regrets, strict=False)
        if regret.upper.proven
    )
    return lower and evidence.unseen.steps <= unseen + ACCURACY and upper and regrets


def _taken(exploration: Exploration, mdp: TabularMdp, paths: Sequence[GoalValues]) -> dict[State, float]:
    """Returns the true steps of the policies of these paths, one to each state found."""
    actions = tuple(_evidence(exploration).actions(path.policy) for path in paths)
    playing = replace(exploration, policies=actions)
    return {state: policy_steps_of(playing, mdp, state) for state in exploration.states}


def _evidence(exploration: Exploration) -> Evidence:
    assert exploration.evidence is not None  # the certified explorer always has it
    return exploration.evidence


def coverage_table(records: Sequence[TrialRecord]) -> Table:
    """Returns broken promises by objective, delta and kind, with exact 95 % confidence intervals of their probability.

    A promise broken while the truth was in the region would be an error of the planner, which δ does not allow for.
    """
    rows = [
        {"objective": objective, "delta": delta, "kind": kind, **_summary(group)}
        for (objective, delta), trials in _by_promise(records).items()
        for kind, group in _by_kind(trials).items()
    ]
    title = "Promises that the certified explorer broke on random models, with 95 % confidence intervals"
    return Table("coverage", title, rows, source="")


def promise_tables(records: Sequence[TrialRecord]) -> list[Table]:
    """Returns shorter tables to print, one for each objective and delta."""
    tables = []
    for (objective, delta), trials in _by_promise(records).items():
        lines = [{"kind": kind, **_in_words(group)} for kind, group in _by_kind(trials).items()]
        title = f"{OBJECTIVES[objective].value} with δ = {delta:g}: broken promises"
        tables.append(Table(f"coverage-{objective}-{delta:g}", title, lines, source=""))
    return tables


def _by_promise(records: Sequence[TrialRecord]) -> dict[tuple[str, float], list[TrialRecord]]:
    groups: dict[tuple[str, float], list[TrialRecord]] = {}
    for record in records:
        groups.setdefault((record.objective, record.delta), []).append(record)
    return groups


def _by_kind(records: Sequence[TrialRecord]) -> dict[str, list[TrialRecord]]:
    groups = {ALL_KINDS: list(records)}
    for record in records:
        groups.setdefault(record.kind, []).append(record)
    return groups


def _summary(group: Sequence[TrialRecord]) -> dict[str, Any]:
    broken = sum(bool(record.violations) for record in group)
    left = sum(record.left_region for record in group)
    steps = estimate([record.steps for record in group])
    return {
        "models": len(group),
        "violations": broken,
        **_proportion("violation", broken, len(group)),
        **{violation.name.lower(): sum(violation.name in r.violations for r in group) for violation in Violation},
        "violations_inside_region": sum(bool(r.violations) and not r.left_region for r in group),
        "left_region": left,
        **_proportion("left_region", left, len(group)),
        "given_up": sum(record.stop == StopReason.STEP_LIMIT.name for record in group),
        "mean_steps": round(steps.mean, 1),
        "most_steps": max(record.steps for record in group),
        "mean_found": round(estimate([record.found for record in group]).mean, 2),
    }


def _proportion(name: str, number: int, total: int) -> dict[str, float]:
    low, high = proportion_interval(number, total)
    return {f"{name}_rate": round(number / total, 5), f"{name}_low": round(low, 5), f"{name}_high": round(high, 5)}


def _in_words(group: Sequence[TrialRecord]) -> dict[str, str]:
    summary = _summary(group)
    return {
        "models": f"{summary['models']:,}",
        "broken": str(summary["violations"]),
        "95 %": f"{100 * summary['violation_low']:.1f}-{100 * summary['violation_high']:.1f} %",
        "outside": f"{100 * summary['left_region_rate']:.1f} %",
        "given up": str(summary["given_up"]),
        "steps": f"{summary['mean_steps']:,.0f}",
    }
