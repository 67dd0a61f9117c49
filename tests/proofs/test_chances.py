"""Bounds of probabilities of goals, against value iteration on the truth and against the verifier's region."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.certificate.region import confidence_region as verifiers_region
from axplore.explorers.base import first_counts, frontier_of, with_drawn, with_known
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.proofs.chance_kernels import NO_PAIR
from axplore.proofs.chances import Asked, Question
from axplore.records.counts import Counts
from axplore.statistics.confidence import confidence_region
from axplore.types import BoolArray, FloatArray
from axplore.worlds.contract import NO_GOAL, Episodes
from axplore.worlds.simulated import SimulatedWorld

SEEDS = range(12)


def random_mdp(rng: np.random.Generator, n_states: int = 7) -> TabularMdp:
    """A model with loops, terminal states and one to three outcomes for each action."""
    rows: dict[int, dict[str, dict[int, float]]] = {}
    for state in range(n_states):
        n_actions = 0 if state >= n_states - 2 else int(rng.integers(1, 4))
        rows[state] = {}
        for action in range(n_actions):
            successors = rng.choice(n_states, size=int(rng.integers(1, 4)), replace=False)
            parts = rng.dirichlet(np.ones(len(successors)))
            rows[state][f"a{action}"] = dict(zip(successors.tolist(), parts.tolist(), strict=True))
    return TabularMdp.from_rows(rows, 0)


def true_chance(mdp: TabularMdp, reach: set[int], avoid: set[int], within: int | None, maximise: bool) -> float:
    """Value iteration on the model itself, in plain Python."""
    values = {state: float(state in reach) for state in mdp.states}
    for _ in range(within if within is not None else 20_000):
        after = {}
        for state in mdp.states:
            means = [
                sum(p * values[next_state] for next_state, p in mdp.row(state, action).items())
                for action in mdp.actions_of(state)
            ]
            best = (max if maximise else min)(means, default=0.0)
            after[state] = 1.0 if state in reach else 0.0 if state in avoid else best
        change = max(abs(after[state] - values[state]) for state in mdp.states)
        values = after
        if within is None and change < 1e-13:
            break
    return values[mdp.initial_state]


def sampled(mdp: TabularMdp, seed: int, steps: int) -> tuple[Counts, SimulatedWorld]:
    """Counts of uniformly random play from RESET, every state counted from when it was first met."""
    world, rng = SimulatedWorld(mdp, seed), np.random.default_rng(seed)
    counts = first_counts(world)
    while world.steps < steps:
        fresh = frontier_of(counts)
        counts = with_known(counts, fresh, world) if fresh else counts
        n_actions = [len(world.actions_of(number)) for number in range(len(world.states))]
        policy = np.array([[rng.integers(n) if n else -1 for n in n_actions] for _ in range(10)])
        counts = with_drawn(counts, world.carry_out([Episodes(NO_GOAL, steps // 200 + 1, 10, policy)]), world)
    fresh = frontier_of(counts)
    return (with_known(counts, fresh, world) if fresh else counts), world


def model_of(counts: Counts, delta: float = 0.1) -> IntervalModel:
    return interval_model(counts, confidence_region(counts, delta), 1e6)


def asked_of(
    counts: Counts, world: SimulatedWorld, rng: np.random.Generator, within: int | None, maximise: bool
) -> tuple[Asked, set[int], set[int]]:
    model = model_of(counts)
    labels = [int(str(world.states[number])) for number in model.numbers.tolist()]
    drawn = rng.permutation(7).tolist()
    reach, avoid = set(drawn[:2]) - {0}, set(drawn[2:3]) - {0}
    question = Question(mask(labels, reach), mask(labels, avoid), within, maximise)
    return Asked(model, question), reach, avoid - reach


def mask(labels: list[int], chosen: set[int]) -> BoolArray:
    return np.array([label in chosen for label in labels], dtype=np.bool_)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("within", [None, 1, 5])
def test_bounds_hold_the_truth_and_close_in_on_it(within: int | None, maximise: bool) -> None:
    widths: dict[int, list[float]] = {300: [], 100_000: []}
    for seed in SEEDS:
        mdp = random_mdp(np.random.default_rng([3, seed]))
        for steps, found in widths.items():
            counts, world = sampled(mdp, seed, steps)
            asked, reach, avoid = asked_of(counts, world, np.random.default_rng([5, seed]), within, maximise)
            lower, upper = asked.lower().value, asked.upper().value
            truth = true_chance(mdp, reach, avoid, within, maximise)
            assert lower - 1e-9 <= truth <= upper + 1e-9, (seed, steps)
            found.append(upper - lower)
    assert np.mean(widths[100_000]) < 0.7 * np.mean(widths[300])


@pytest.mark.parametrize("maximise", [True, False])
def test_one_sweep_over_the_verifiers_region_and_ranks_prove_every_bound(maximise: bool) -> None:
    for seed in SEEDS:
        counts, world = sampled(random_mdp(np.random.default_rng([3, seed])), seed, 5_000)
        asked, _, _ = asked_of(counts, world, np.random.default_rng([5, seed]), None, maximise)
        lower, upper = asked.lower(), asked.upper()
        rows, n_known = asked.rows, asked.model.n_known
        region = verifiers_region(counts, np.diff(counts.state_pairs).tolist(), 0.1, None, None)
        owners = np.repeat(np.arange(n_known), np.diff(rows.state_pairs))
        nothing = np.full(len(owners), -np.inf)
        positions = asked.model.numbers  # all seen states are counted: positions are the order of the counts
        by_order = np.argsort(positions)
        greatest = 1.0 - region.least_means((1.0 - upper.values)[by_order], nothing)
        least = region.least_means(lower.values[by_order], nothing)
        for state in np.flatnonzero(asked.is_asked):
            pairs = np.flatnonzero(owners == state)
            above = upper.values[state] >= greatest[pairs] - 1e-9
            assert above.all() if maximise else above[upper.policy[state] == pairs].all()
            if lower.values[state] > 0.0:
                played = pairs if not maximise else [lower.policy[state]]
                assert (lower.values[state] <= least[played] + 1e-9).all()
                for pair in played:
                    successors = rows.successors[rows.row_offsets[pair] : rows.row_offsets[pair + 1]]
                    assert any(
                        _rank(asked, lower.values, lower.ranks, s) < lower.ranks[state] for s in successors.tolist()
                    )


def _rank(asked: Asked, values: FloatArray, ranks: np.ndarray, state: int) -> int:
    return int(ranks[state]) if asked.is_asked[state] and values[state] > 0.0 else -1


def test_a_loop_that_is_never_left_has_no_lower_bound() -> None:
    mdp = TabularMdp.from_rows({0: {"wait": {0: 1.0}, "go": {1: 0.5, 2: 0.5}}, 1: {}, 2: {}}, 0)
    counts, world = sampled(mdp, 0, 20_000)
    labels = [int(str(world.states[number])) for number in counts.states.tolist()]
    reach, avoid = mask(labels, {1}), mask(labels, {2})
    worst, best = (Asked(model_of(counts), Question(reach, avoid, None, maximise)) for maximise in (False, True))
    assert worst.lower().value == 0.0
    assert 0.45 < best.lower().value <= 0.5
    assert best.upper().value == 1.0  # waiting might lead anywhere, for all that was seen


def test_what_attains_a_bound_within_steps_depends_on_the_step() -> None:
    """Safe but slow, or risky and fast: with two steps left the slow way still arrives, with one it does not."""
    mdp = TabularMdp.from_rows({0: {"slow": {1: 1.0}, "risky": {2: 0.3, 3: 0.7}}, 1: {"on": {2: 1.0}}, 2: {}, 3: {}}, 0)
    counts, world = sampled(mdp, 0, 50_000)
    labels = [int(str(world.states[number])) for number in counts.states.tolist()]
    none = np.zeros(len(labels), dtype=np.bool_)
    for within, action in ((1, 1), (2, 0)):
        chance = Asked(model_of(counts), Question(mask(labels, {2}), none, within, True)).lower()
        assert chance.policy[0, 0] == action
    assert NO_PAIR == -1
