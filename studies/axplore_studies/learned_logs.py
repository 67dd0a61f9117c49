"""How often an atlas that was learned from a log is wrong, on random models, whatever policy made the log.

Policies look at all that happened so far: one walks at random, one repeats what led to rarely seen states, and one ends
the log as soon as it proves something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from axplore.continuing import state_after_log
from axplore.explorers.base import Exploration, RoundReport, run
from axplore.explorers.certified import Certified, CertifiedState
from axplore.logs import read_log
from axplore.mdp import TabularMdp
from axplore.records.run import StopReason
from axplore.request import Request
from axplore.statistics.summaries import proportion_interval
from axplore.target import Objective, Target
from axplore.types import RESET
from axplore.worlds.recorded import RecordedWorld
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.coverage_models import KINDS, CoverageCase, case
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table
from axplore_studies.promises import RegionWatch, violations_of

DELTAS: Final = (0.1, 0.5)
LENGTHS: Final = (30, 300, 3000)
RESETS: Final = 0.1
"""The part of steps that are RESETs."""

MOST_STEPS: Final = 300_000
"""Of an exploration that begins with a log."""

LOOKED_EVERY: Final = 50
"""The transitions after which the policy that stops early looks at what is proven."""

Transition: TypeAlias = tuple[Any, Any, Any]
Chooser: TypeAlias = Callable[[Any, Sequence[Any], list[Transition]], Any]
"""What to play, given the state, its actions, and all that happened before."""


def random_choice(generator: np.random.Generator) -> Chooser:
    """Returns a policy that plays any action."""
    return lambda _, actions, __: actions[int(generator.integers(len(actions)))]


def rare_choice(generator: np.random.Generator) -> Chooser:
    """Returns a policy that repeats, in each state, the action that last led to a state seen less often than others."""
    seen: Counter[Any] = Counter()
    led: dict[tuple[Any, Any], int] = {}

    def choose(state: Any, actions: Sequence[Any], past: list[Transition]) -> Any:
        if past:
            before, action, after = past[-1]
            seen[after] += 1
            led[before, action] = seen[after]
        untried = [action for action in actions if (state, action) not in led]
        if untried or generator.random() < 0.3:
            return (untried or actions)[int(generator.integers(len(untried or actions)))]
        return min(actions, key=lambda action: led[state, action])

    return choose


CHOOSERS: Final[Mapping[str, Callable[[np.random.Generator], Chooser]]] = MappingProxyType(
    {"random": random_choice, "rare": rare_choice, "stopping": random_choice}
)


def transitions(mdp: TabularMdp, policy: str, seed: int) -> Iterator[Transition]:
    """Yields a log without end of a model."""
    generator = np.random.default_rng([seed, list(CHOOSERS).index(policy)])
    choose, past, state = CHOOSERS[policy](generator), list[Transition](), mdp.initial_state
    while True:
        actions = mdp.actions_of(state)
        if not actions or generator.random() < RESETS:
            past.append((state, RESET, mdp.initial_state))
        else:
            action = choose(state, actions, past)
            row = mdp.row(state, action)
            after = list(row)[int(generator.choice(len(row), p=list(row.values())))]
            past.append((state, action, after))
        yield past[-1]
        state = past[-1][2]


def learned(log: Sequence[Transition], given: CoverageCase, explorer: Certified) -> tuple[Exploration, bool]:
    """Returns what a log proves, and whether the true model is outside the region."""
    read = read_log(log, initial=given.mdp.initial_state, actions=given.mdp.actions_of)
    world = RecordedWorld(read.counts, read.steps, read.offered)
    state = explorer.learned(read.counts, world)
    watch = RegionWatch(given.mdp, world, explorer.target.delta)
    watch.look(RoundReport(1, len(state.known), len(state.frontier), world.steps, state.activity, state))
    exploration = explorer.finish(state, world)
    assert exploration.evidence is not None
    stop = StopReason.PROVEN if exploration.evidence.complete else exploration.stop
    return replace(exploration, stop=stop), watch.left


def run_trial(policy: str, length: int, delta: float, kind: str, seed: int) -> Record:
    """Learns from one log, and compares what it proves with the truth."""
    given = case(kind, seed)
    target = Target(radius=given.radius, epsilon=0.5, delta=delta)
    explorer = Certified(target=target, objective=Objective.OPTIMAL, by_episodes=False)
    log = list(islice(transitions(given.mdp, policy, seed), length))
    exploration, left = learned(log, given, explorer)
    if policy == "stopping":
        for end in range(LOOKED_EVERY, length, LOOKED_EVERY):
            shorter, left_by_then = learned(log[:end], given, explorer)
            if len(shorter.states) > 1:
                exploration, left = shorter, left_by_then
                break
    broken = [violation.name for violation in violations_of(exploration, given)]
    return {
        "policy": policy, "length": length, "delta": delta, "kind": kind, "seed": seed,
        "found": len(exploration.states), "proven": exploration.stop is StopReason.PROVEN,
        "left_region": left, "violations": broken,
    }  # fmt: skip


def continued_trial(policy: str, length: int, delta: float, kind: str, seed: int) -> Record:
    """Explores until everything is proven, beginning with one log, and compares what is proven with the truth."""
    given = case(kind, seed)
    explorer = Certified(target=Target(radius=given.radius, epsilon=0.5, delta=delta), objective=Objective.OPTIMAL)
    log = list(islice(transitions(given.mdp, policy, seed), length))
    world = SimulatedWorld(given.mdp, seed)
    request = Request(world, explorer=explorer, begin_with=[*log, (log[-1][2], RESET, given.mdp.initial_state)])
    state, _ = state_after_log(request, explorer, world)
    watch = RegionWatch(given.mdp, world, delta)
    exploration = run(explorer, world, state=cast(CertifiedState, state), max_steps=MOST_STEPS, observers=[watch.look])
    broken = [violation.name for violation in violations_of(exploration, given)]
    return {
        "policy": policy, "length": length, "delta": delta, "kind": kind, "seed": seed,
        "found": len(exploration.states), "proven": exploration.stop is StopReason.PROVEN,
        "left_region": watch.left, "violations": broken,
    }  # fmt: skip


def trials(models: int = 1000, trial: Callable[..., Record] = run_trial) -> list[Trial]:
    """Returns the logs to learn from: this many for each policy, length and δ."""
    made = []
    for policy, length, delta, number in product(CHOOSERS, LENGTHS, DELTAS, range(models)):
        seed, kind = divmod(number, len(KINDS))
        address = {"policy": policy, "length": length, "delta": delta, "kind": list(KINDS)[kind], "seed": seed}
        made.append(Trial(address, partial(trial, **address)))
    return made


def continued_trials(models: int = 110) -> list[Trial]:
    """Returns the logs to continue from: this many for each policy, length and δ."""
    return trials(models, continued_trial)


def summary(records: Sequence[Record], name: str = "learned-logs") -> Table:
    """Returns how often logs of each policy and length prove what is false."""
    groups: dict[tuple[str, int, float], list[Record]] = {}
    for record in records:
        groups.setdefault((record["policy"], record["length"], record["delta"]), []).append(record)
    rows = []
    for (policy, length, delta), group in groups.items():
        broken = sum(bool(record["violations"]) for record in group)
        low, high = proportion_interval(broken, len(group))
        rows.append(
            {
                "policy": policy,
                "length": length,
                "delta": delta,
                "logs": len(group),
                "broken": broken,
                "low": round(low, 5),
                "high": round(high, 5),
                "outside": sum(record["left_region"] for record in group),
                "broken_inside": sum(bool(r["violations"]) and not r["left_region"] for r in group),
                "mean_found": round(float(np.mean([record["found"] for record in group])), 2),
                "proven": sum(record["proven"] for record in group),
            }
        )
    holds = all(row["broken_inside"] == 0 and row["low"] <= row["delta"] for row in rows)
    title = "Promises that logs of any policy broke on random models, with 95 % confidence intervals"
    return Table(name, title, rows, holds=holds)


STUDY: Final = Study(
    "learned-logs",
    "how often an atlas that was learned from a log is wrong",
    trials,
    summary,
    counted="models for each policy, length and delta",
)

STUDY_OF_CONTINUED: Final = Study(
    "continued-logs",
    "how often an exploration that begins with a log is wrong",
    continued_trials,
    partial(summary, name="continued-logs"),
    counted="models for each policy, length and delta",
)
