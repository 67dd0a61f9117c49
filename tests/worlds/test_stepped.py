from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from plain_world import Moves, Words, as_lists

import axplore
from axplore.atlas.verdict import VerdictKind
from axplore.domains import confusing_chain, random_sparse
from axplore.errors import (
    ExitCode,
    InvalidAnswerError,
    InvalidInputError,
    InvalidSettingError,
    TooManyFaultsError,
    UnfixedStartError,
    UnknownStateError,
    WorldError,
)
from axplore.explorers.base import run
from axplore.explorers.registry import preset
from axplore.records.findings import FaultKind
from axplore.records.order import Labels
from axplore.truth import controllable_states
from axplore.types import IntArray
from axplore.worlds.child_process import isolated
from axplore.worlds.contract import Answer, Episodes, Order, Tour, Visit, World
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.state_labels import INVALID_STATE
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.systems import BEGIN, VIRTUAL_START
from made_counts import same_counts


def policy(*actions: int) -> IntArray:
    return np.array(actions, dtype=np.int64)


def by_step(steps: int, *actions: int) -> IntArray:
    """The same at every step, [steps, n]."""
    return np.tile(policy(*actions), (steps, 1))


def one(world: World, order: Order) -> Answer:
    (answer,) = world.carry_out([order])
    return answer


LINE = {"a": ["b"], "b": ["c"], "c": ["d"], "d": []}
TO_THE_END = policy(0, 0, 0)


class Failing(Moves):
    """A line a, b, c, d that fails whenever `when(number of its own step)` says so."""

    def __init__(self, when: Callable[[int], bool], how: Callable[[], Any]) -> None:
        super().__init__(LINE, "a")
        self._when, self._how, self._taken = when, how, 0

    def step(self, action: int) -> Any:
        self._taken += 1
        return self._how() if self._when(self._taken) else super().step(action)


def raising() -> Any:
    raise RuntimeError("out of paper")


@pytest.mark.parametrize("name", ["certified", "disco-experiment", "ucb-explore-experiment"])
def test_an_explorer_finds_on_a_stepped_model_exactly_what_it_finds_on_the_simulated_one(name: str) -> None:
    mdp = confusing_chain(confusing_states=3)
    explorer = preset(name, radius=4.5, epsilon=1.0, delta=0.1)
    limit = 20_000
    simulated = run(explorer, SimulatedWorld(mdp, seed=4), max_steps=limit)
    stepped = run(explorer, SteppedWorld(Words(mdp), seed=4), max_steps=limit)
    assert stepped.steps == simulated.steps
    assert stepped.states == simulated.states
    assert stepped.stop == simulated.stop
    assert same_counts(stepped.counts, simulated.counts)


def test_a_terminal_state_only_resets() -> None:
    class Ending(Moves):
        def is_terminal(self, state: Any) -> bool:
            return bool(state == "b")

    world = SteppedWorld(Ending(LINE, "a"))
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    assert [world.actions_of(number) for number in (0, 1)] == [(0,), ()]


@pytest.mark.parametrize("given_actions", [("on", "off"), lambda _: ("on", "off")])
def test_actions_may_be_handed_to_the_world(given_actions: Any) -> None:
    class Lamp:
        def reset(self) -> str:
            return "dark"

        def step(self, action: str) -> str:
            return {"on": "bright", "off": "dark"}[action]

    assert SteppedWorld(Lamp(), actions=given_actions).actions_of(0) == ("on", "off")
    with pytest.raises(InvalidInputError, match="Lamp does not say which actions"):
        SteppedWorld(Lamp())


def test_what_cannot_be_stepped_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs the methods reset"):
        SteppedWorld(object)


@pytest.mark.parametrize(
    "wrong", [{"start": "pinned"}, {"max_episode_steps": 1}, {"max_faults": -1}, {"start_checks": 0}, {"seed": -1}]
)
def test_settings_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
        SteppedWorld(Moves(LINE, "a"), **wrong)


def test_no_state_but_the_discovered_ones_has_actions() -> None:
    with pytest.raises(UnknownStateError, match="0 to 0"):
        SteppedWorld(Moves(LINE, "a")).actions_of(1)


class Wandering(Moves):
    """Its n-th reset lands in `starts[n]`, and in the last one for ever after."""

    def __init__(self, starts: list[str]) -> None:
        super().__init__(LINE, "a")
        self._starts = list(starts)

    def reset(self) -> Any:
        self.initial_state = self._starts.pop(0) if len(self._starts) > 1 else self._starts[0]
        return super().reset()


def test_a_start_that_is_not_fixed_is_refused_at_once() -> None:
    with pytest.raises(UnfixedStartError, match="'a' and 'b'"):
        SteppedWorld(Wandering(["a", "a", "b"]))


def test_a_start_that_changes_later_ends_the_exploration_and_is_never_counted() -> None:
    world = SteppedWorld(Wandering(["a"] * 6 + ["b"]))
    order = Episodes(goal=0, times=1, horizon=1, policy=policy())
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    one(world, order)  # the sixth reset
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    with pytest.raises(UnfixedStartError):
        one(world, order)


def test_a_virtual_start_counts_where_the_random_start_lands() -> None:
    world = SteppedWorld(Wandering(["a", "b", "a", "a", "b", "c"]), start="virtual")
    assert list(world.states) == [VIRTUAL_START]
    assert world.actions_of(0) == (BEGIN,)
    # The checks of the start leave the system alone: BEGIN is its first reset.
    answer = one(world, Visit(0, 0, 6, policy(), max_journey=1))
    assert list(world.states) == [VIRTUAL_START, "a", "b", "c"]
    assert answer.entry_counts.tolist() == [3, 2, 1]
    assert answer.steps == 6 + 5


def test_behind_a_virtual_start_the_system_may_have_an_action_of_the_same_name() -> None:
    class Beginning(Moves):
        def step(self, action: Any) -> Any:
            assert action == BEGIN
            return super().step(0)

        def actions(self, state: Any) -> Any:
            return [BEGIN] * len(self.moves[state])

    world = SteppedWorld(Beginning(LINE, "a"), start="virtual")
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    one(world, Visit(1, 0, 1, policy(0), max_journey=1))
    assert list(world.states) == [VIRTUAL_START, "a", "b"]


def test_a_state_called_like_the_virtual_start_is_refused() -> None:
    world = SteppedWorld(Moves({VIRTUAL_START: []}, VIRTUAL_START), start="virtual")
    with pytest.raises(WorldError, match="which is reserved for the virtual start"):
        one(world, Visit(0, 0, 1, policy(), max_journey=1))


INVALID = [
    (lambda: ["b"], r"list cannot be hashed; return tuple\(...\) of it"),
    (lambda: ("b", 0.5, False, False, {}), "what Gymnasium's step does"),
    (lambda: math.nan, "holds NaN"),
    (lambda: ("b", (1, math.nan)), "holds NaN"),
    (lambda: None, "does it `return` the state"),
]


@pytest.mark.parametrize(("how", "message"), [(raising, "RuntimeError: out of paper"), *INVALID])
def test_without_a_factory_a_fault_is_an_error_that_says_where(how: Callable[[], Any], message: str) -> None:
    world = SteppedWorld(Failing(lambda taken: taken == 2, how))
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    with pytest.raises(WorldError, match=message) as caught:
        one(world, Visit(1, 0, 1, policy(0), max_journey=1))
    assert "at action 0 in state 'b', after 2 steps" in str(caught.value)
    assert [fault.pair and fault.pair[0] for fault in world.faults] == ["b"]


@pytest.mark.parametrize(("how", "message"), INVALID)
def test_an_answer_that_is_no_state_ends_exploring_even_with_a_factory(how: Callable[[], Any], message: str) -> None:
    world = SteppedWorld(lambda: Failing(lambda taken: taken == 3, how))
    with pytest.raises(InvalidAnswerError, match=message):
        world.carry_out([Visit(0, 0, 1, policy(), max_journey=1)] * 3)


@pytest.mark.parametrize("how", [how for how, _ in INVALID])
def test_where_it_is_asked_for_an_answer_that_is_no_state_is_counted_as_one_that_only_resets(
    how: Callable[[], Any], caplog: Any
) -> None:
    world = SteppedWorld(lambda: Failing(lambda taken: taken % 3 == 0, how), on_invalid="state")
    with caplog.at_level(logging.WARNING, logger="axplore"):
        answer = one(world, Visit(0, 0, 300, policy(), max_journey=1))
    assert list(world.states) == ["a", "b", INVALID_STATE]
    assert world.actions_of(2) == ()
    assert dict(zip(answer.entry_successors.tolist(), answer.entry_counts.tolist(), strict=True)) == {1: 200, 2: 100}
    assert answer.steps == 300 + 299  # a RESET after each but the last
    assert not world.faults
    assert len(caplog.records) == 5  # the first three, the 10th and the 100th


def test_a_state_called_like_what_is_no_state_is_refused() -> None:
    world = SteppedWorld(Moves({"a": [INVALID_STATE], INVALID_STATE: []}, "a"), on_invalid="state")
    with pytest.raises(WorldError, match="rename it"):
        one(world, Visit(0, 0, 1, policy(), max_journey=1))


def test_with_a_factory_a_fault_costs_its_step_and_a_reset_and_no_count(caplog: Any) -> None:
    # Every system fails at its third step, c to d. The third system does not.
    made: list[Failing] = []

    def factory() -> Failing:
        number = len(made)
        made.append(Failing(lambda taken: taken == 3 and number < 2, raising))
        return made[-1]

    world = SteppedWorld(factory)
    for number in range(2):
        one(world, Visit(number, 0, 1, TO_THE_END[:number], max_journey=3))
    with caplog.at_level(logging.WARNING, logger="axplore"):
        answer = one(world, Visit(2, 0, 1, TO_THE_END, max_journey=3))
    # The first system stands in c: its play fails. Then RESET, a to b to c and the play, twice.
    assert answer.steps == 1 + 4 + 4
    assert (answer.completed, answer.cut_journeys) == (1, 0)
    assert answer.pair_draws.tolist() == [2, 2, 1]
    assert answer.entry_counts.tolist() == [2, 2, 1]
    assert [fault.pair for fault in world.faults] == [Labels(["c", 0])] * 2
    assert len(caplog.records) == 2
    assert list(world.states) == ["a", "b", "c", "d"]


def test_an_action_that_has_never_worked_and_fails_three_times_alike_is_broken() -> None:
    world = SteppedWorld(lambda: Failing(lambda taken: taken == 3, raising))
    for number in range(2):
        one(world, Visit(number, 0, 1, TO_THE_END[:number], max_journey=3))
    with pytest.raises(
        TooManyFaultsError, match=r"in state 'c'.* failed 3 times in the same way, and has never worked"
    ):
        one(world, Visit(2, 0, 1, TO_THE_END, max_journey=3))
    assert len(world.faults) == 3


def test_many_faults_of_one_kind_are_summed_up_in_a_few_lines(caplog: Any) -> None:
    world = SteppedWorld(lambda: Failing(lambda taken: taken % 5 == 0, raising), max_faults=1000)
    with caplog.at_level(logging.WARNING, logger="axplore"):
        one(world, Visit(0, 0, 900, policy(), max_journey=1))
    assert len(world.faults) > 200
    assert len(caplog.records) == 5  # the first three, the 10th and the 100th


def tour_to_the_end(times: int) -> Tour:
    return Tour(policy(2), policy(0), policy(times), policy(0, 0, 0)[None], np.array([[2.0, 1.0, 0.0]]), max_journey=3)


@pytest.mark.parametrize("kind", ["visit", "visit by step", "tour", "episodes"])
@pytest.mark.parametrize("fails_at", [2, 3, 4, 5])
def test_whatever_a_fault_interrupts_the_order_is_fulfilled_and_the_counts_are_those_of_the_steps_that_succeeded(
    kind: str, fails_at: int
) -> None:
    possible: dict[str, Order] = {
        "visit": Visit(2, 0, 20, TO_THE_END, max_journey=3),
        "visit by step": Visit(2, 0, 20, by_step(3, 0, 0, 0), max_journey=3),
        "tour": tour_to_the_end(20),
        "episodes": Episodes(3, 20, 3, TO_THE_END),
    }
    order = possible[kind]
    succeeded: dict[tuple[str, str], int] = {}
    failures = 0

    class Noting(Failing):
        def step(self, action: int) -> Any:
            nonlocal failures
            before = self.state
            try:
                after = super().step(action)
            except RuntimeError:
                failures += 1
                raise
            succeeded[before, after] = succeeded.get((before, after), 0) + 1
            return after

    every = 7
    world = SteppedWorld(lambda: Noting(lambda taken: taken == 3 + fails_at or taken % every == 0, raising))
    for number in range(3):
        one(world, Visit(number, 0, 1, TO_THE_END[:number], max_journey=3))
    succeeded.clear()
    begun = world.steps
    answer = one(world, order)
    assert answer.completed == answer.arrivals == 20
    assert answer.cut_journeys == 0
    assert failures == len(world.faults) > 5
    if kind == "episodes":  # those that were interrupted, in this order, count as missed
        assert answer.outcomes.tolist() == [0, 0, 0, 20, sum(fault.steps > begun for fault in world.faults)]
    pairs = answer.pair_states[answer.entry_pairs].tolist()
    counted = {
        (world.states[state], world.states[successor]): count
        for state, successor, count in zip(
            pairs, answer.entry_successors.tolist(), answer.entry_counts.tolist(), strict=True
        )
    }
    assert counted == succeeded
    if kind == "episodes":
        assert answer.travelled == 60


def test_a_system_that_cannot_be_reset_is_started_again() -> None:
    resets = 0

    class Stuck(Moves):
        def reset(self) -> Any:
            nonlocal resets
            resets += 1
            return raising() if resets in (6, 7) else super().reset()

    world = SteppedWorld(lambda: Stuck(LINE, "a"))
    one(world, Visit(0, 0, 1, policy(), max_journey=1))
    answer = one(world, Visit(0, 0, 1, policy(), max_journey=1))
    assert (answer.steps, answer.completed) == (4, 1)  # RESET, that of two other systems, the play
    assert [fault.pair for fault in world.faults] == [None] * 2


def test_after_too_many_faults_the_world_gives_up() -> None:
    world = SteppedWorld(lambda: Failing(lambda taken: taken % 2 == 0, raising), max_faults=3)
    with pytest.raises(WorldError, match="That is fault 4; 3 are allowed"):
        one(world, Visit(0, 0, 20, policy(), max_journey=1))


def test_a_system_that_starts_again_elsewhere_is_refused() -> None:
    starts = iter(["a", "b"])
    world = SteppedWorld(lambda: Failing(lambda _: True, raising) if next(starts) == "a" else Moves(LINE, "b"))
    with pytest.raises(UnfixedStartError):
        one(world, Visit(0, 0, 1, policy(), max_journey=1))


def test_a_system_that_cannot_even_start_is_refused_with_what_it_said() -> None:
    with pytest.raises(WorldError, match="cannot be started and reset: RuntimeError: out of paper"):
        SteppedWorld(raising)


def test_a_restarted_system_has_noise_of_its_own() -> None:
    seeds: list[Any] = []

    class Noisy(Failing):
        def reseed(self, seed: np.random.SeedSequence) -> None:
            seeds.append(seed.generate_state(2).tolist())

    world = SteppedWorld(lambda: Noisy(lambda taken: taken % 2 == 0, raising), seed=3)
    one(world, Visit(0, 0, 8, policy(), max_journey=1))
    assert len(world.faults) > 1
    assert len({tuple(seed) for seed in seeds}) == len(seeds) == 2 + len(world.faults)


def test_an_interruption_in_the_middle_of_an_order_leaves_a_world_that_can_go_on() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    world = SteppedWorld(Failing(lambda taken: taken == 3, interrupted))
    for number in range(2):
        one(world, Visit(number, 0, 1, TO_THE_END[:number], max_journey=3))
    with pytest.raises(KeyboardInterrupt):
        one(world, Visit(2, 0, 1, TO_THE_END, max_journey=3))
    answer = one(world, Visit(2, 0, 1, TO_THE_END, max_journey=3))
    assert (answer.steps, answer.completed) == (1 + 2 + 1, 1)  # RESET, there, the play


def test_a_journey_by_step_that_is_cut_leaves_the_agent_in_the_initial_state() -> None:
    world = SteppedWorld(Moves(LINE, "a"))
    for number in range(2):
        one(world, Visit(number, 0, 1, TO_THE_END[:number], max_journey=3))
    # RESET; then twice a to b, which is too short a way, and a RESET.
    answer = one(world, Visit(2, 0, 1, by_step(1, 0), max_journey=1, max_cuts=2))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (1 + 2 * 2, 0, 2)
    assert one(world, Episodes(0, times=1, horizon=1, policy=policy())).steps == 0


class Doorbell:
    """Opens at the second ring since RESET; the first one changes nothing that could be seen."""

    actions = ("ring",)

    def __init__(self) -> None:
        self.rings = 0

    def reset(self) -> str:
        self.rings = 0
        return "closed"

    def step(self, _: str) -> str:
        self.rings += 1
        return "closed" if self.rings < 2 else "open"


def test_episodes_that_always_reset_do_not_begin_with_what_the_one_before_has_left() -> None:
    world = SteppedWorld(Doorbell())
    one(world, Episodes(0, times=1, horizon=1, policy=policy()))
    one(world, Visit(0, 0, 2, policy(), max_journey=1))
    assert list(world.states) == ["closed", "open"]
    ring_once = Episodes(1, times=10, horizon=1, policy=policy(0))
    assert one(world, ring_once).arrivals == 5  # every second one: the label of the start is shown after the first
    apart = one(world, replace(ring_once, always_reset=True))
    assert (apart.arrivals, apart.steps) == (0, 20)


LOOP = {0: [0, 1], 1: [1, 2], 2: [2, 0]}
STAY, GO = 0, 1


class Limited(Moves):
    """Refuses to be stepped as often as `limit` without a reset."""

    def __init__(self, limit: int) -> None:
        super().__init__(LOOP, 0)
        self._limit, self._age = limit, 0

    def reset(self) -> Any:
        self._age = 0
        return super().reset()

    def step(self, action: int) -> Any:
        self._age += 1
        assert self._age < self._limit, "the limit was reached"
        return super().step(action)


def limited_world(limit: int) -> SteppedWorld:
    world = SteppedWorld(Limited(limit), max_episode_steps=limit)
    for number in range(2):
        one(world, Visit(number, GO, 1, policy(*[GO] * number), max_journey=3))
    return world


@pytest.mark.parametrize("limit", [4, 5, 6, 9])
def test_a_limit_is_never_reached_and_cuts_journeys(limit: int) -> None:
    world = limited_world(limit)
    answer = one(world, Visit(2, STAY, 50, policy(GO, GO), max_journey=10))
    # Two plays lie behind. A reset after limit - 1 steps; each round goes two steps, and stays for the rest.
    assert (answer.completed, answer.steps) == (50, 50 + 3 * answer.cut_journeys)
    assert answer.cut_journeys == -(-(50 - (limit - 3)) // (limit - 3))
    tour = Tour(policy(2), policy(STAY), policy(50), policy(GO, GO)[None], np.array([[2.0, 1.0]]), max_journey=10)
    assert one(limited_world(limit), tour).cut_journeys == answer.cut_journeys


def test_an_order_that_a_limit_makes_impossible_ends() -> None:
    world = limited_world(4)
    one(world, Visit(2, GO, 1, policy(GO, GO), max_journey=9))
    slow = policy(STAY, STAY, STAY)
    answer = one(world, Visit(2, GO, 1, slow, max_journey=10**9, max_cuts=5))
    assert (answer.completed, answer.cut_journeys) == (0, 5)


@pytest.mark.parametrize(
    ("limit", "cuts", "steps"),
    [(4, 0, 50 * (1 + 3)), (6, 49, 49 * (1 + 3 + 2) + 1 + 3), (7, 0, 25 * (1 + 6)), (9, 24, 24 * (1 + 6 + 2) + 1 + 6)],
)
def test_a_limit_between_two_journeys_by_step_cuts_neither(limit: int, cuts: int, steps: int) -> None:
    world = limited_world(limit)
    answer = one(world, Visit(2, GO, 50, by_step(9, GO, GO), max_journey=9))
    # It begins with a RESET, and every visit leads back to the initial state: one that the limit ends too soon, after
    # two steps, is cut by a RESET; where the limit falls between two, there is a RESET and no cut.
    assert (answer.completed, answer.cut_journeys, answer.steps) == (50, cuts, steps)


@pytest.mark.parametrize(("limit", "steps"), [(4, 5 * (1 + 3)), (9, 2 * 1 + (3 + 3 + 2) + (3 + 3))])
def test_a_journey_by_step_cut_in_the_initial_state_resets_at_the_limit_alone(limit: int, steps: int) -> None:
    world = limited_world(limit)
    answer = one(world, Visit(2, GO, 1, by_step(3, STAY, STAY, STAY), max_journey=3, max_cuts=5))
    assert (answer.completed, answer.cut_journeys, answer.steps) == (0, 5, steps)


@pytest.mark.parametrize("always_reset", [False, True])
def test_an_episode_that_a_limit_ends_has_missed_its_goal(always_reset: bool) -> None:
    """The policy stays: after three steps the system would end the episode, and what would come then is not known."""
    order = Episodes(goal=2, times=2, horizon=9, policy=policy(STAY), always_reset=always_reset)
    answer = one(limited_world(4), order)
    assert (answer.completed, answer.arrivals, answer.cut_journeys) == (2, 0, 2)
    assert answer.outcomes.tolist() == [0] * 10 + [2]
    assert (answer.travelled, answer.steps) == (18, 2 * (1 + 3))


def test_a_limit_that_an_episode_stays_below_changes_nothing() -> None:
    order = Episodes(goal=2, times=3, horizon=3, policy=policy(GO, GO))
    answer = one(limited_world(4), order)
    assert answer.outcomes.tolist() == [0, 0, 3, 0, 0]
    assert (answer.cut_journeys, answer.steps) == (0, 3 * (1 + 2))


def test_an_episode_does_not_begin_so_late_that_only_the_limit_ends_it() -> None:
    """To the initial state there is nothing to play, so the agent stands there again; a limit of 5 allows 4 steps."""
    world = limited_world(5)
    one(world, Visit(0, STAY, 3, policy(), max_journey=1))
    answer = one(world, Episodes(goal=2, times=1, horizon=4, policy=policy(GO, GO)))
    assert (answer.arrivals, answer.cut_journeys, answer.steps) == (1, 0, 1 + 2)


def test_a_world_goes_on_from_a_snapshot_with_a_reset() -> None:
    mdp = random_sparse(states=7, actions=2, seed=1)
    visit = Visit(0, 1, 30, policy(), max_journey=1)
    first = SteppedWorld(Words(mdp), seed=2)
    one(first, visit)
    second = SteppedWorld(Words(mdp), seed=2)
    second.restore(first.snapshot())
    assert list(second.states) == list(first.states)
    assert [second.actions_of(number) for number in range(len(second.states))] == [("a0", "a1")] * len(first.states)
    # The first stands elsewhere and resets too; so both draw the same.
    assert first._agent.position != 0
    assert as_lists(one(second, visit)) == as_lists(one(first, visit))
    assert (second.steps, second.snapshot().calls) == (first.steps, 2)
    with pytest.raises(InvalidSettingError, match="another system"):
        SteppedWorld(Moves(LINE, "a")).restore(first.snapshot())


def test_a_world_closes_its_system() -> None:
    closed = []

    class Closing(Moves):
        def close(self) -> None:
            closed.append(True)

    with SteppedWorld(Closing(LINE, "a")):
        assert not closed
    assert closed == [True]


def test_a_system_that_crashes_now_and_then_is_explored_all_the_same() -> None:
    mdp = confusing_chain(confusing_states=2)
    steps, every = 0, 41

    class Crashing(Words):
        def step(self, action: Any) -> Any:
            nonlocal steps
            steps += 1
            return raising() if steps % every == 0 else super().step(action)

    world = SteppedWorld(lambda: Crashing(mdp), seed=1)
    found = run(preset("certified", radius=3.0, epsilon=1.0, delta=0.1), world)
    assert len(world.faults) == steps // every > 10
    assert all(fault.kind is FaultKind.RAISED for fault in world.faults)
    assert set(controllable_states(mdp, 3.0).states) <= set(found.states) <= set(controllable_states(mdp, 4.0).states)
    assert found.counts.visits.sum() == steps - len(world.faults)


def test_a_system_that_fails_between_two_orders_is_started_again() -> None:
    class Dying(Moves):
        """Fails when it is given its third stream: one at the start, and one for each order."""

        n_made = 0

        def __init__(self) -> None:
            super().__init__(LINE, "a")
            type(self).n_made += 1
            self._n_streams = 0

        def reseed(self, _: np.random.SeedSequence) -> None:
            self._n_streams += 1
            if self._n_streams == 3:
                raise RuntimeError("the connection was closed")

    world = SteppedWorld(Dying)
    visit = Visit(0, 0, 1, policy(), 5)
    first, second = one(world, visit), one(world, visit)
    assert (first.completed, second.completed, Dying.n_made) == (1, 1, 2)
    assert [(fault.kind, fault.pair) for fault in world.faults] == [(FaultKind.RAISED, None)]


def test_a_virtual_start_before_many_starts_is_hinted_at_once(caplog: Any) -> None:
    class Scattered:
        actions = ("stay",)
        n_resets = 0

        def reset(self) -> int:
            self.n_resets += 1
            return self.n_resets % 30

        def step(self, _: str) -> int:
            return self.n_resets % 30

    world = SteppedWorld(Scattered, start="virtual")
    with caplog.at_level(logging.WARNING, logger="axplore"):
        for _ in range(3):
            one(world, Visit(0, 0, 60, policy(), max_journey=1))
    assert len(caplog.records) == 1
    assert "30 different states in 60 draws" in caplog.text


class Leaving(Moves):
    """Calls `exit` at its fourth step, as a program does that ends itself."""

    def __init__(self) -> None:
        super().__init__(LINE, "a")
        self.n_steps = 0

    def step(self, action: Any) -> Any:
        self.n_steps += 1
        if self.n_steps == 4:
            sys.exit(0)
        return super().step(action)


def test_a_system_that_exits_has_failed_and_ends_nothing_but_itself() -> None:
    world = SteppedWorld(Leaving)
    world.carry_out([Visit(0, 0, 6, policy(0), 10)])
    assert [fault.message for fault in world.faults] == ["SystemExit: 0"]
    with pytest.raises(WorldError, match="SystemExit: 0"):
        axplore.explore(Leaving(), radius=2, epsilon=1, doctor=False)
    assert axplore.explore(Leaving, radius=2, epsilon=1, doctor=False).verdict.exit_code == ExitCode.IN_DOUBT


class Growing(Moves):
    """A state that offers one action more from its twentieth step on, wherever that is."""

    def __init__(self, state: Any) -> None:
        super().__init__(LINE, "a")
        self.grown, self.n_steps = state, 0

    def step(self, action: Any) -> Any:
        self.n_steps += 1
        return super().step(action)

    def actions(self, state: Any) -> Any:
        more = ("fly",) if state == self.grown and self.n_steps >= 20 else ()
        return (*super().actions(state), *more)


@pytest.mark.parametrize("state", ["a", "b"])
@pytest.mark.parametrize(
    "make", [Growing, lambda state: isolated(partial(Growing, state), 30.0)()], ids=["here", "apart"]
)
def test_an_action_that_appears_later_ends_the_exploration_and_nothing_is_promised(make: Any, state: str) -> None:
    with pytest.raises(WorldError, match=r"at one time and .*'fly'.* at another") as raised:
        axplore.explore(make(state), radius=2, epsilon=0.3, doctor=False)
    atlas: Any = raised.value.atlas
    assert atlas.verdict.kind is VerdictKind.UNFINISHED


def test_actions_that_come_in_another_order_are_the_same() -> None:
    class Shuffled(Moves):
        n_asked = 0

        def actions(self, state: Any) -> Any:
            self.n_asked += 1
            offered = tuple(super().actions(state))
            return offered if self.n_asked % 2 else offered[::-1]

    system = Shuffled({"a": ["b", "a"], "b": ["a", "b"]}, "a")
    assert axplore.explore(system, radius=2, epsilon=1).verdict.kind is VerdictKind.PROVEN


def test_a_snapshot_of_a_system_whose_start_offers_other_actions_is_refused() -> None:
    first = SteppedWorld(Moves(LINE, "a"))
    other = SteppedWorld(Moves(LINE, "a"), actions=("right", "up"))
    with pytest.raises(InvalidSettingError, match="another system: the start of this one offers"):
        other.restore(first.snapshot())
