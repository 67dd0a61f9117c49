"""DisCo: its steps one by one, what it finds, and how good its policies are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from axplore.domains import combination_lock, confusing_chain, star
from axplore.errors import InvalidSettingError
from axplore.explorers.base import Exploration, run
from axplore.explorers.disco import DisCo, disco_experiment, disco_theory, spreads_of
from axplore.explorers.disco_rules import (
    JourneyPolicies,
    effective_horizon,
    maximum_allocation,
    rollout_bound,
    theorem_allocation,
)
from axplore.explorers.registry import preset
from axplore.mdp import TabularMdp
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.statistics.counts import no_counts, with_answers, with_states
from axplore.target import Target
from axplore.truth import check_optimal, controllable_states
from axplore.worlds.contract import Answer, Order
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.promises import policy_steps_of

CHAIN_OPTIMUM = {"s0": 0.0, "s1": 1.0, "s2": 2.0, "s3": 3.0, "s4": 4.0, "s5": 4.0}


def explore(mdp: TabularMdp, radius: float, epsilon: float, seed: int, **options: Any) -> Exploration:
    explorer = preset("disco-experiment", radius=radius, epsilon=epsilon, **options)
    return run(explorer, SimulatedWorld(mdp, seed))


class Drawn:
    """Transitions of one pair of state 0, as an answer would hold them."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.pair_states = np.array([0])
        self.pair_actions = np.array([0])
        self.pair_draws = np.array([sum(counts)])
        self.entry_pairs = np.zeros(len(counts), dtype=np.int64)
        self.entry_successors = np.arange(len(counts))
        self.entry_counts = np.array(counts)
        self.entry_first_draws = np.arange(1, len(counts) + 1)


def test_spreads_sum_over_the_known_set_and_take_the_worst_goal() -> None:
    order = Labels(range(4))
    counts = with_states(no_counts(order), {0: "a", 1: "ab"})
    counts = with_answers(counts, [Drawn([4, 1, 3, 2])], order)  # 0.4, 0.1 within the known set, 0.3, 0.2 outside it
    within, with_goal = spreads_of(counts)
    known = math.sqrt(0.4 * 0.6) + math.sqrt(0.1 * 0.9)
    worst = max(math.sqrt(0.5 * 0.5), math.sqrt(0.3 * 0.7) + math.sqrt(0.2 * 0.8))
    assert within == pytest.approx([known, 0.0, 0.0])
    assert with_goal == pytest.approx([known + worst, 0.0, 0.0])


def test_journeys_are_cut_where_the_paper_says() -> None:
    target = Target(radius=4.5, epsilon=0.8)
    assert effective_horizon(target, 10**6) == 4 * 5.5 * math.ceil(math.log(22 / 0.8))
    assert rollout_bound(target, 10**6) == math.ceil(4 * 6.3 * math.log(6e6 / 0.1))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("policies", JourneyPolicies)
def test_on_the_chain_it_finds_exactly_the_controllable_states_and_optimal_policies(
    seed: int, policies: JourneyPolicies
) -> None:
    mdp = confusing_chain()
    found = explore(mdp, 4.5, 0.4, seed, journey_policies=policies)
    assert set(found.states) == set(CHAIN_OPTIMUM)
    assert {goal: policy_steps_of(found, mdp, goal) for goal in found.states} == pytest.approx(CHAIN_OPTIMUM)
    assert found.stop in (StopReason.ALL_TOO_FAR, StopReason.NO_CANDIDATES)


def test_states_are_admitted_from_near_to_far() -> None:
    found = explore(confusing_chain(), 4.5, 0.8, 0)
    assert found.states[:4] == ("s0", "s1", "s2", "s3")
    assert found.found_at[0] == 0
    assert np.all(np.diff(found.found_at) > 0)
    assert found.found_at[-1] < found.steps


def test_the_optimistic_steps_are_optimistic_and_near_the_truth() -> None:
    found = explore(confusing_chain(), 4.5, 0.1, 0)
    optimum = [CHAIN_OPTIMUM[str(state)] for state in found.states]
    assert np.all(found.optimistic_steps <= np.array(optimum) + 1e-9)
    assert np.all(found.optimistic_steps >= np.array(optimum) - 0.1)


def test_a_golden_run_on_a_certain_world() -> None:
    # Every step of the star is certain, so nothing depends on the seed and no pair spreads: with epsilon = 1 and
    # radius 1 every pair needs as many visits as there are known states.
    mdp = star(arms=2, arm_length=2)
    found = explore(mdp, 1.0, 1.0, 7)
    assert found.states == ("s0", "arm1.1", "arm2.1")
    assert found.counts.visits.min() >= 3
    assert found.stop is StopReason.ALL_TOO_FAR
    assert found.steps == explore(mdp, 1.0, 1.0, 8).steps


def test_every_pair_of_the_known_set_ends_with_the_visits_it_needs() -> None:
    found = explore(combination_lock(), 2.7, 0.5, 3, allocation=maximum_allocation)
    rows = found.counts
    within, _ = spreads_of(rows)
    required = math.ceil(2.7**4 * within.max() ** 2 / 0.25 + 2.7**2 * len(rows.states) / 0.5)
    assert rows.visits.min() >= required


def test_an_epsilon_above_one_counts_as_one() -> None:
    one, three = (explore(confusing_chain(), 4.5, epsilon, 0) for epsilon in (1.0, 3.0))
    assert one.steps == three.steps
    assert one.states == three.states


def test_no_candidates_end_the_run_when_nothing_is_reached_often_enough() -> None:
    mdp = TabularMdp.from_rows(
        {"s0": {"a": {f"far{i}": 0.1 for i in range(10)}}} | {f"far{i}": {} for i in range(10)}, initial_state="s0"
    )
    found = explore(mdp, 2.0, 0.02, 0)
    assert found.states == ("s0",)
    assert found.stop is StopReason.NO_CANDIDATES
    assert set(found.frontier) == {f"far{i}" for i in range(10)}


def test_a_world_whose_initial_state_is_terminal_has_nothing_to_explore() -> None:
    found = explore(TabularMdp.from_rows({"s0": {}}, initial_state="s0"), 2.0, 0.5, 0)
    assert (found.states, found.steps, found.stop) == (("s0",), 0, StopReason.NO_CANDIDATES)


def test_terminal_states_can_be_goals() -> None:
    mdp = TabularMdp.from_rows({"s0": {"a": {"end": 0.9, "s0": 0.1}}, "end": {}}, initial_state="s0")
    found = explore(mdp, 2.0, 0.5, 0)
    assert found.states == ("s0", "end")


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    first, again, other = (explore(combination_lock(), 2.7, 0.5, seed) for seed in (1, 1, 2))
    assert first.steps == again.steps != other.steps
    assert first.counts.counts.tolist() == again.counts.counts.tolist()
    assert [policy.tolist() for policy in first.policies] == [policy.tolist() for policy in again.policies]


def test_a_step_limit_ends_the_run_between_two_passes() -> None:
    explorer = disco_experiment(Target(radius=4.5, epsilon=0.2))
    found = run(explorer, SimulatedWorld(confusing_chain(), 0), max_steps=20_000)
    assert found.stop is StopReason.STEP_LIMIT
    assert 20_000 <= found.steps < 25_000
    assert len(found.policies) == len(found.states)


def small_world() -> TabularMdp:
    """A detour that is worth taking, and a state that only a lucky draw reaches."""
    return TabularMdp.from_rows(
        {
            "s0": {"go": {"s1": 0.9, "s0": 0.1}, "leap": {"far": 0.2, "s0": 0.8}},
            "s1": {"back": {"s0": 1.0}, "on": {"s0": 0.5, "far": 0.5}},
            "far": {},
        },
        initial_state="s0",
    )


@pytest.mark.parametrize("seed", range(3))
def test_theory_runs_to_the_end_and_meets_its_promise(seed: int) -> None:
    mdp, radius, epsilon = small_world(), 1.5, 1.0
    explorer = disco_theory(Target(radius=radius, epsilon=epsilon), states_bound=3)
    found = run(explorer, SimulatedWorld(mdp, seed))
    assert found.stop.by_own_rule
    steps = {goal: policy_steps_of(found, mdp, goal) for goal in found.states}
    assert check_optimal(controllable_states(mdp, radius), steps=steps, epsilon=epsilon).holds


def test_the_theorem_form_can_be_chosen() -> None:
    found = explore(small_world(), 1.5, 1.0, 0, allocation=theorem_allocation, states_bound=3)
    assert found.states[:2] == ("s0", "s1")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"radius": 0.99}, "radius is 0.99"),
        ({"radius": math.inf}, "radius is inf"),
        ({"radius": math.nan}, "radius is nan"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"batch_growth": 0.0}, "batch_growth is 0.0"),
        ({"max_batch": 0}, "max_batch is 0"),
        ({"no_such_option": 1}, "no option 'no_such_option'"),
    ],
)
def test_bad_settings_are_refused_with_the_reason(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(InvalidSettingError, match=reason):
        preset("disco-experiment", **({"radius": 2.0, "epsilon": 0.5} | settings))  # type: ignore[arg-type]


def test_theory_without_a_bound_on_the_states_is_refused_before_the_first_step() -> None:
    with pytest.raises(InvalidSettingError, match="states_bound is missing"):
        preset("disco-theory", radius=2.0, epsilon=0.5)


def test_a_bound_on_the_actions_that_the_world_exceeds_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="actions_bound is 1"):
        explore(confusing_chain(), 4.5, 0.8, 0, actions_bound=1)


class ClosingWorld(SimulatedWorld):
    """Lets nobody through to any state but the initial one after a number of calls."""

    def __init__(self, mdp: TabularMdp, calls: int) -> None:
        super().__init__(mdp, 0)
        self._open_calls = calls

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        self._open_calls -= 1
        answers = super().carry_out(orders)
        nothing = np.zeros(0, dtype=np.int64)
        closed = Answer(1, 0, 0, 0, 1000, *[nothing] * 7)
        return answers if self._open_calls > 0 else [closed] * len(orders)


def test_a_world_that_changes_so_that_no_journey_arrives_is_reported() -> None:
    explorer: DisCo = disco_experiment(Target(radius=4.5, epsilon=0.8))
    found = run(explorer, ClosingWorld(confusing_chain(), calls=40))
    assert found.stop is StopReason.WORLD_FAILED
    assert "no journey" in str(found.failure)


def test_the_result_names_the_actions_that_policies_play() -> None:
    found = explore(confusing_chain(), 4.5, 0.8, 0)
    assert found.actions == (("forward", "skip"),) * len(found.states)
