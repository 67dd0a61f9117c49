"""UcbExplore: its rules, what it finds, and what its policies take."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from axplore.domains import combination_lock, confusing_chain
from axplore.errors import InvalidSettingError
from axplore.explorers import ucb_explore
from axplore.explorers.base import Exploration, run
from axplore.explorers.ucb_explore import (
    Problem,
    _dealt_into_buckets,
    bernstein_bonus,
    experiment_discovery,
    experiment_episodes,
    hoeffding_bonus,
    lock_bernstein_bonus,
    lock_episodes,
    theory_discovery,
    theory_episodes,
    ucb_explore_experiment,
    ucb_explore_theory,
)
from axplore.explorers.ucb_staged import staged_ucb_explore_experiment
from axplore.mdp import TabularMdp
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.statistics.counts import no_counts, with_answers, with_states
from axplore.target import Target
from axplore.worlds.contract import Answer, Episodes, Order, Visit
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.promises import policy_steps_of

CHAIN = Target(radius=4.5, epsilon=0.8)


def explore(mdp: TabularMdp, radius: float, epsilon: float, seed: int) -> Exploration:
    explorer = ucb_explore_experiment(Target(radius=radius, epsilon=epsilon))
    return run(explorer, SimulatedWorld(mdp, seed))


def problem(n_known: int = 4, accuracy: float = 0.5, horizon: int = 10, states: int | None = 12) -> Problem:
    return Problem(Target(radius=4.5, epsilon=0.8), accuracy, horizon, n_known, 2, states)


def test_rules_have_the_numbers_of_the_paper() -> None:
    assert theory_episodes(problem()) == math.ceil(6 * 8 * math.log(16 * 16 / 0.1))
    assert theory_discovery(problem()) == math.ceil(4.5 * math.log(3 * 2 * 4.5 * 12 / 0.1))
    assert experiment_episodes(problem()) == 24
    assert experiment_episodes(problem(), constant=1.0) == 8
    assert experiment_discovery(problem()) == 5
    assert lock_episodes(problem(n_known=4)) == math.ceil(8 * math.log(16))
    assert lock_episodes(problem(n_known=1)) == 8


def test_the_horizon_is_that_of_the_paper() -> None:
    assert ucb_explore_experiment(CHAIN).horizon == math.ceil(4.5 + 4.5**2 / 0.8)
    assert ucb_explore_theory(CHAIN, 12).horizon == math.ceil(4.5 + 8 * 4.5**2 / 0.8)


def test_bonuses_divide_by_the_samples_of_a_bucket_but_on_the_lock() -> None:
    visits = np.array([0, 5, 40])
    assert bernstein_bonus(visits, problem()).range.tolist() == [1.0, 1.0, 0.25]
    assert bernstein_bonus(visits, problem()).variance.tolist() == [1.0, 1.0, 0.25]
    assert lock_bernstein_bonus(visits, problem()).range.tolist() == [1.0, 0.2, 0.025]
    hoeffding = hoeffding_bonus(visits, problem())
    assert hoeffding.range[2] == pytest.approx(math.sqrt(math.log(2 * 12 * 2 * 10 * 40 / 0.1) / 8))
    assert not hoeffding.variance.any()


@pytest.mark.parametrize("seed", range(5))
def test_on_the_chain_it_finds_the_controllable_states(seed: int) -> None:
    found = explore(confusing_chain(), 4.5, 0.4, seed)
    assert set(found.states) == {f"s{i}" for i in range(6)}
    assert found.stop is StopReason.ALL_TOO_FAR
    assert found.states[:2] == ("s0", "s1")
    assert np.all(np.diff(found.found_at) > 0)


@pytest.mark.parametrize("seed", range(3))
def test_with_a_small_epsilon_its_policies_on_the_chain_are_optimal(seed: int) -> None:
    mdp = confusing_chain()
    found = explore(mdp, 4.5, 0.2, seed)
    steps = {goal: policy_steps_of(found, mdp, goal) for goal in found.states}
    optimal = {"s0": 0.0, "s1": 1.0, "s2": 2.0, "s3": 3.0, "s4": 4.0, "s5": 4.0}
    assert steps == pytest.approx(optimal, abs=0.05)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    first, again, other = (explore(combination_lock(), 2.7, 0.5, seed) for seed in (1, 1, 2))
    assert first.steps == again.steps != other.steps
    assert first.counts.counts.tolist() == again.counts.counts.tolist()
    assert all(np.array_equal(mine, its) for mine, its in zip(first.policies, again.policies, strict=True))


def test_every_step_is_counted_either_as_a_draw_or_as_a_reset() -> None:
    found = explore(confusing_chain(), 4.5, 0.8, 0)
    assert found.counts.visits.sum() < found.steps


def test_theory_runs_to_the_end_on_a_small_world() -> None:
    mdp = TabularMdp.from_rows({"s0": {"go": {"s1": 1.0}}, "s1": {"back": {"s0": 1.0}}}, initial_state="s0")
    explorer = ucb_explore_theory(Target(radius=1.0, epsilon=1.0), states_bound=2)
    found = run(explorer, SimulatedWorld(mdp, 0))
    assert found.states == ("s0", "s1")
    assert policy_steps_of(found, mdp, "s1") == 1.0


THERE_AND_BACK = TabularMdp.from_rows(
    {"s0": {"go": {"s1": 1.0}, "stay": {"s0": 1.0}}, "s1": {"back": {"s0": 1.0}, "on": {"s1": 1.0}}}, initial_state="s0"
)


def test_discovery_takes_a_reset_before_every_play_that_does_not_begin_in_the_initial_state() -> None:
    explorer = ucb_explore_experiment(Target(radius=2.0, epsilon=1.0))
    world = SimulatedWorld(THERE_AND_BACK, 0)
    state = explorer.advance(explorer.start(world), world)
    # b = 2 plays each. go, RESET, go; RESET, stay, stay.
    assert (world.steps, state.frontier, state.undiscovered) == (3 + 3, (1,), False)
    state = explorer.advance(state, world)
    evaluated = world.steps
    assert state.known == (0, 1)
    # The evaluation ended in s1. RESET, go, back, go, back; go, on, RESET, go, on.
    state = explorer.advance(state, world)
    assert world.steps - evaluated == 5 + 5
    assert state.counts.visits.tolist()[2:] == [2, 2]


def test_a_discovery_is_one_call_with_one_order_for_each_action() -> None:
    class Listening(SimulatedWorld):
        def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
            calls.append(list(orders))
            return super().carry_out(orders)

    calls: list[list[Order]] = []
    run(ucb_explore_experiment(Target(radius=2.0, epsilon=1.0)), Listening(THERE_AND_BACK, 0))
    asked = [[(type(order), getattr(order, "action", None)) for order in orders] for orders in calls]
    assert asked == [[(Visit, 0), (Visit, 1)], [(Episodes, None)], [(Visit, 0), (Visit, 1)]]


def test_a_world_that_closes_the_way_to_a_new_state_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closing:
        def __init__(self) -> None:
            self.state, self.open = 0, True

        def reset(self) -> int:
            self.state = 0
            return self.state

        def step(self, _: str) -> int:
            self.state = 1 if self.open else 0
            return self.state

        def actions(self, _: int) -> tuple[str, ...]:
            return ("go",)

    monkeypatch.setattr(ucb_explore, "MAX_MISSES", 7)
    explorer = ucb_explore_experiment(Target(radius=1.0, epsilon=1.0))
    system = Closing()
    world = SteppedWorld(system)
    state = explorer.start(world)
    while len(state.known) == 1:
        state = explorer.advance(state, world)
    system.open = False
    steps, draws = world.steps, state.counts.visits.sum()
    failed = explorer.advance(state, world)
    assert failed.stop is StopReason.WORLD_FAILED
    assert failed.failure is not None
    assert "7 episodes in a row did not reach 1, whose policy had passed its evaluation" in failed.failure
    # A RESET, and then seven times go and the RESET that the policy plays in its second and last step.
    assert world.steps == steps + 1 + 7 * 2
    assert failed.counts.visits.sum() == draws + 7, "what was answered before counts"
    assert state.counts.visits.sum() == draws


def test_dealing_into_buckets_uses_every_sample_at_most_once() -> None:
    class Drawn:
        pair_states = np.array([0])
        pair_actions = np.array([0])
        pair_draws = np.array([103])
        entry_pairs = np.array([0, 0, 0])
        entry_successors = np.array([0, 1, 2])
        entry_counts = np.array([50, 40, 13])
        entry_first_draws = np.array([1, 2, 3])

    order = Labels(range(3))
    counts = with_answers(with_states(no_counts(order), {0: "a"}), [Drawn()], order)
    shares = _dealt_into_buckets(counts, 10, np.random.default_rng(0))
    assert shares.sum(axis=1) == pytest.approx(np.ones(10))
    used = (10 * shares).sum(axis=0)
    assert used.sum() == pytest.approx(100)
    assert np.all(used <= np.array([50, 40, 13]) + 1e-9)


def test_the_grid_of_restarts_ends_at_the_radius() -> None:
    assert staged_ucb_explore_experiment(Target(radius=2.7, epsilon=0.5)).radii == (1.0, 1.5, 2.0, 2.5, 2.7)
    assert staged_ucb_explore_experiment(Target(radius=1.0, epsilon=0.5)).radii == (1.0,)


def test_restarts_find_near_states_with_the_precision_of_their_own_radius() -> None:
    mdp = confusing_chain()
    explorer = staged_ucb_explore_experiment(Target(radius=4.5, epsilon=0.8))
    found = run(explorer, SimulatedWorld(mdp, 1))
    assert set(found.states) == {f"s{i}" for i in range(6)}
    assert found.states[:4] == ("s0", "s1", "s2", "s3")
    radius_of = {"s1": 1.0, "s2": 2.6, "s3": 3.4, "s4": 4.2, "s5": 4.2}
    for state, radius in radius_of.items():
        assert policy_steps_of(found, mdp, state) <= radius + 0.8


def test_a_missing_bound_on_the_states_is_refused_before_the_first_step() -> None:
    with pytest.raises(InvalidSettingError, match="states_bound is missing"):
        ucb_explore_theory(CHAIN)


def test_the_result_names_the_actions_that_policies_play() -> None:
    found = explore(confusing_chain(), 4.5, 0.8, 0)
    assert found.actions == (("forward", "skip"),) * len(found.states)
