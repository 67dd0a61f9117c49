"""How often the certified explorer breaks its promise, on thousands of random models.

Every trial explores one random model (`coverage_models`) and compares the answer with the truth. A trial depends on its
own fields alone, so neither the number of workers nor an interruption changes any number.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final

from axplore.assumptions import NOTHING, Assumptions
from axplore.errors import UnknownNameError
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.records.run import StopReason
from axplore.statistics.summaries import estimate, proportion_interval
from axplore.target import Objective, Target
from axplore.truth import controllable_states
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.coverage_models import KINDS, CoverageCase, case
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document, Table
from axplore_studies.promises import RegionWatch, Violation, violations_of

OBJECTIVES: Final = {"optimal": Objective.OPTIMAL, "within-radius": Objective.WITHIN_RADIUS}
DELTAS: Final = (0.1, 0.5)
"""The usual δ, and one so large that a proof that is too weak would show."""

ALL_KINDS: Final = "all"


@dataclass(frozen=True)
class CoverageTrial:
    """One model to explore.

    Attributes:
        objective: the name of the objective, one of `OBJECTIVES`.
        delta: δ.
        kind: the kind of the model, one of `coverage_models.KINDS`.
        seed: the seed of the model and of the world.
        epsilon: ε.
        max_steps: the steps after which the trial is given up.
    """

    objective: str
    delta: float
    kind: str
    seed: int
    epsilon: float
    max_steps: int


@dataclass(frozen=True)
class CoverageRecord(CoverageTrial):
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
    def trial(self) -> CoverageTrial:
        """The trial that was recorded."""
        return CoverageTrial(self.objective, self.delta, self.kind, self.seed, self.epsilon, self.max_steps)


def nothing_of(given: CoverageCase, seed: int) -> Assumptions:  # noqa: ARG001
    """Returns that nothing is assumed."""
    return NOTHING


@dataclass(frozen=True)
class Conditions:
    """How models are explored.

    Attributes:
        share: gives a world to workers, which the explorer is then set for; None for no workers.
        assume: returns what is assumed of the model of a seed; it must be true.
    """

    share: Callable[[World], World] | None = None
    assume: Callable[[CoverageCase, int], Assumptions] = nothing_of


ALONE: Final = Conditions()
"""Without workers, and nothing is assumed."""


def trials_on(
    conditions: Conditions,
    models: int = 2000,
    objectives: Sequence[str] = tuple(OBJECTIVES),
    deltas: Sequence[float] = DELTAS,
    epsilon: float = 0.5,
    max_steps: int = 2_000_000,
) -> list[Trial]:
    """Returns the models to explore.

    Args:
        conditions: how they are explored.
        models: the number of models for each objective and delta, distributed among the kinds in turn.
        objectives: names of `OBJECTIVES`.
        deltas: values of δ.
        epsilon: ε.
        max_steps: the steps after which a trial is given up, and reported as such.
    """
    for name in objectives:
        if name not in OBJECTIVES:
            raise UnknownNameError.of("objective", name, OBJECTIVES)
    made = []
    for objective, delta, number in product(objectives, deltas, range(models)):
        Target(radius=1.0, epsilon=epsilon, delta=delta)  # refuses invalid targets
        seed, kind = divmod(number, len(KINDS))
        asked = CoverageTrial(objective, delta, list(KINDS)[kind], seed, epsilon, max_steps)
        made.append(Trial(asdict(asked), partial(_explored, asked, conditions)))
    return made


def _explored(trial: CoverageTrial, conditions: Conditions) -> Record:
    return asdict(run_trial(trial, conditions))


def run_trial(trial: CoverageTrial, conditions: Conditions = ALONE) -> CoverageRecord:
    """Explores the model of a trial and compares the answer with the truth.

    Args:
        trial: what to explore.
        conditions: how.
    """
    given = case(trial.kind, trial.seed)
    target = Target(radius=given.radius, epsilon=trial.epsilon, delta=trial.delta)
    assume = conditions.assume(given, trial.seed)
    explorer = Certified(target=target, objective=OBJECTIVES[trial.objective], assume=assume)
    world: World = SimulatedWorld(given.mdp, trial.seed)
    if conditions.share is not None:
        explorer, world = explorer.for_workers(), conditions.share(world)
    watch = RegionWatch(given.mdp, world, trial.delta)
    begun = time.process_time()
    exploration = run(explorer, world, max_steps=trial.max_steps, observers=[watch.look])
    seconds = time.process_time() - begun
    return CoverageRecord(
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


def coverage_table(records: Sequence[CoverageRecord]) -> Table:
    """Returns broken promises by objective, delta and kind, with exact 95 % confidence intervals of their probability.

    A promise broken while the truth was in the region would be an error of the planner, which δ does not allow for.
    """
    rows, lines = [], []
    for (objective, delta), trials in _by_promise(records).items():
        for kind, group in _by_kind(trials).items():
            what, counts = {"objective": objective, "delta": delta, "kind": kind}, _summary(group)
            rows.append({**what, **counts})
            lines.append({**what, **_in_words(counts)})
    title = "Promises that the certified explorer broke on random models, with 95 % confidence intervals"
    holds = all(row["violations_inside_region"] == 0 and row["violation_low"] <= row["delta"] for row in rows)
    return Table("coverage", title, rows, lines, holds=holds)


def summary(records: Sequence[Record]) -> Table:
    """Returns the table of broken promises."""
    return coverage_table([CoverageRecord(**record) for record in records])


def _by_promise(records: Sequence[CoverageRecord]) -> dict[tuple[str, float], list[CoverageRecord]]:
    groups: dict[tuple[str, float], list[CoverageRecord]] = {}
    for record in records:
        groups.setdefault((record.objective, record.delta), []).append(record)
    return groups


def _by_kind(records: Sequence[CoverageRecord]) -> dict[str, list[CoverageRecord]]:
    groups = {ALL_KINDS: list(records)}
    for record in records:
        groups.setdefault(record.kind, []).append(record)
    return groups


def _summary(group: Sequence[CoverageRecord]) -> dict[str, Any]:
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


def _in_words(summary: dict[str, Any]) -> dict[str, str]:
    """Returns the counts that are printed; outside: the true model left the confidence region, which δ allows."""
    return {
        "models": f"{summary['models']:,}",
        "broken": str(summary["violations"]),
        "95 %": f"{100 * summary['violation_low']:.1f}-{100 * summary['violation_high']:.1f} %",
        "outside": f"{100 * summary['left_region_rate']:.1f} %",
        "given up": str(summary["given_up"]),
        "steps": f"{summary['mean_steps']:,.0f}",
    }


def broken_promises(name: str, records: Sequence[Record]) -> Document:
    """Returns the number of broken promises for each objective and delta, as the document of a smaller study."""
    counts: dict[tuple[str, float], Counter[str]] = {}
    for record in records:
        broken, left = int(bool(record["violations"])), int(record["left_region"])
        counts.setdefault((record["objective"], record["delta"]), Counter()).update(
            models=1,
            broken=broken,
            broken_inside_region=broken * (1 - left),
            left_region=left,
            given_up=int(record["stop"] != StopReason.PROVEN.name),
            steps=record["steps"],
        )
    rows = [
        {
            "objective": objective,
            "delta": delta,
            **count,
            "interval": proportion_interval(count["broken"], count["models"]),
        }
        for (objective, delta), count in counts.items()
    ]
    return Document(name, rows, holds=not any(row["broken_inside_region"] for row in rows))


STUDY: Final = Study(
    "coverage",
    "how often the certified explorer breaks its promise on random models",
    partial(trials_on, ALONE),
    summary,
    counted="models for each objective and delta",
)
