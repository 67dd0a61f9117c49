"""How often answers to questions are wrong: random models with random properties, all bounds at all times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.assumptions import Assumptions
from axplore.atlas.construction import atlas_of
from axplore.atlas.verification import verify
from axplore.explorers.base import RoundReport
from axplore.explorers.base import run as run_explorer
from axplore.explorers.directed import Directed
from axplore.mdp import TabularMdp
from axplore.properties import Property, parse_property
from axplore.records.properties import PropertyClaim
from axplore.target import NO_RADIUS, Target
from axplore.types import FloatArray
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table

DELTA: Final = 0.1
MODELS: Final = 1000
MOST_STEPS: Final = 20_000
N_STATES: Final = 6
WALKS: Final = 300
MOST_WALKED: Final = 500_000
LONGEST: Final = 8
LEAST: Final = 0.1
ACCURACY: Final = 1e-9


def trials(models: int = MODELS, walks: int = WALKS) -> list[Trial]:
    """Returns a trial for each random model, one half of which with an assumption that is true.

    Args:
        models: with few states, each of which may lead anywhere.
        walks: on which every state has to be passed, so that many rows decide together.
    """
    of_models = [
        Trial({"model": number, "walk": False, "assumed": number % 2 == 1}, partial(asked_at_random, number))
        for number in range(models)
    ]
    of_walks = [
        Trial({"model": number, "walk": True, "assumed": True}, partial(asked_of_walk, number))
        for number in range(walks)
    ]
    return of_models + of_walks


def random_model(rng: np.random.Generator) -> TabularMdp:
    """Six states with up to three actions; probabilities are tenths, and some states end."""
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for state in range(N_STATES):
        rows[f"s{state}"] = {}
        n_actions = int(rng.integers(1, 4)) if state == 0 else int(rng.integers(0, 4))
        for action in range(n_actions):
            cuts = np.sort(rng.choice(np.arange(1, 10), size=rng.integers(0, 4), replace=False))
            tenths = np.diff([0, *cuts, 10])
            successors = rng.choice(N_STATES, size=len(tenths), replace=False)
            rows[f"s{state}"][f"a{action}"] = {
                f"s{after}": int(n) / 10 for after, n in zip(successors, tenths, strict=True)
            }
    return TabularMdp.from_rows(rows, "s0")


def random_property(rng: np.random.Generator) -> str:
    """A property of the states s1 to s5."""
    goal, bad = rng.choice(np.arange(1, N_STATES), size=2, replace=False)
    steps = str(rng.choice(["", "<=1", "<=3", "<=10"]))
    path = rng.choice([f'F{steps} "s{goal}"', f'!"s{bad}" U{steps} "s{goal}"', f'G{steps} !"s{bad}"'])
    return f"P{rng.choice(['max', 'min'])}=? [ {path} ]"


def random_walk(rng: np.random.Generator) -> TabularMdp:
    """A path with two actions in every state that lead on, back or into a pit; probabilities are tenths."""
    length = int(rng.integers(4, LONGEST + 1))
    rows: dict[str, dict[str, dict[str, float]]] = {f"s{length}": {}, "pit": {}}
    for place in range(length):
        rows[f"s{place}"] = {}
        for action in ("walk", "crawl"):
            on, pit = int(rng.integers(4, 8)), int(rng.integers(1, 3))
            ways = {f"s{place + 1}": on, "pit": pit, f"s{max(place - 1, 0)}": 10 - on - pit}
            rows[f"s{place}"][action] = {after: tenths / 10 for after, tenths in ways.items()}
    return TabularMdp.from_rows(rows, "s0")


def value_of(mdp: TabularMdp, prop: Property) -> float:
    """The value of a property of a model from its initial state, by value iteration from below."""
    reach, avoid = prop.masks(mdp.states, {})
    values: FloatArray = reach.astype(np.float64)
    rows = np.zeros((mdp.n_pairs, mdp.n_states))
    rows[mdp.transition_pairs, mdp.successors] = mdp.probabilities
    asked = [state for state in range(mdp.n_states) if not reach[state] and not avoid[state]]
    pick = max if prop.maximise else min
    for _ in range(100_000 if prop.within is None else prop.within):
        means, after = rows @ values, values.copy()
        for state in asked:
            pairs = means[mdp.state_pairs[state] : mdp.state_pairs[state + 1]]
            after[state] = pick(pairs, default=0.0)
        change = float(np.abs(after - values).max())
        values = after
        if prop.within is None and change < ACCURACY / 1000:
            break
    value = float(values[mdp.initial_index])
    return 1.0 - value if prop.negated else value


def asked_at_random(number: int) -> Record:
    """Asks a random property of a random model, and compares every bound with the value."""
    rng = np.random.default_rng([26, number])
    mdp, text = random_model(rng), random_property(rng)
    assume = Assumptions(min_probability=LEAST) if number % 2 else Assumptions()
    return asked(mdp, text, assume, number)


def asked_of_walk(number: int) -> Record:
    """The same of a walk, for any number of steps, and to the precision at which draws count together."""
    rng = np.random.default_rng([27, number])
    mdp = random_walk(rng)
    (goal,) = (state for state in mdp.states if state != "pit" and not mdp.actions_of(state))
    path = rng.choice([f'F "{goal}"', 'F "pit"', f'!"pit" U "{goal}"'])
    text = f"P{rng.choice(['max', 'min'])}=? [ {path} ]"
    return asked(mdp, text, Assumptions(min_probability=LEAST), number, MOST_WALKED)


def asked(mdp: TabularMdp, text: str, assume: Assumptions, seed: int, most_steps: int = MOST_STEPS) -> Record:
    """Asks a property of a model, and compares every bound with the value."""
    explorer = Directed(
        target=Target(radius=NO_RADIUS, epsilon=0.02, delta=DELTA), question=text, assume=assume, least_round=200
    )
    value, wrong, bounds = value_of(mdp, parse_property(text)), 0, 0

    def look(report: RoundReport) -> None:
        nonlocal wrong, bounds
        lower, upper = explorer.interval(report.state)
        bounds += 1
        wrong += not lower - ACCURACY <= value <= upper + ACCURACY

    world = SimulatedWorld(mdp, seed)
    exploration = run_explorer(explorer, world, observers=[look], max_steps=most_steps)
    atlas = atlas_of(exploration, world, world_name="random", explorer_name=explorer.name)
    (last,) = atlas.properties
    assert atlas.certificate is not None
    (claim,) = atlas.certificate.of(PropertyClaim)
    return {
        "property": text, "value": value, "lower": last.lower, "upper": last.upper, "steps": exploration.steps,
        "bounds": bounds, "wrong": wrong, "verified": verify(atlas).holds,
        "by_episodes": claim.witness is not None, "by_joint_draws": claim.joint is not None,
    }  # fmt: skip


def summary(records: Sequence[Record]) -> Table:
    """Returns a row for each kind of assumption, and whether no more runs are wrong than δ allows for."""
    rows: list[dict[str, Any]] = []
    kinds = {
        "random, nothing assumed": [record for record in records if not record["assumed"]],
        f"random, min-probability={LEAST}": [record for record in records if record["assumed"] and not record["walk"]],
        f"walks, min-probability={LEAST}": [record for record in records if record["walk"]],
    }
    for models, runs in kinds.items():
        rows.append(
            {
                "models": models,
                "runs": len(runs),
                "runs_with_a_wrong_bound": sum(run["wrong"] > 0 for run in runs),
                "bounds": sum(run["bounds"] for run in runs),
                "by_episodes": sum(run["by_episodes"] for run in runs),
                "by_joint_draws": sum(run["by_joint_draws"] for run in runs),
                "verified": sum(run["verified"] for run in runs),
                "mean_width": round(float(np.mean([run["upper"] - run["lower"] for run in runs] or [0.0])), 4),
                "mean_steps": round(float(np.mean([run["steps"] for run in runs] or [0.0]))),
            }
        )
    n_wrong, n_runs = sum(row["runs_with_a_wrong_bound"] for row in rows), len(records)
    holds = n_wrong <= DELTA * n_runs and all(record["verified"] for record in records)
    return Table(STUDY.name, f"Random properties of random models, delta = {DELTA}, at all times", rows, holds=holds)


STUDY: Final = Study(
    "question-coverage", "how often answers to random questions about random models are wrong", trials, summary,
    counted="models",
)  # fmt: skip
