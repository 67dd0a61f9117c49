from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import Autoreset, TimeLimit

import axplore
from axplore import Atlas, TabularMdp, controllable_states
from axplore.errors import InvalidInputError, InvalidSettingError, UnfixedStartError, UnknownNameError, WorldError
from axplore.labels import encode_label
from axplore.records.findings import FaultKind
from axplore.types import IntArray
from axplore.worlds.contract import Answer, Visit, World
from axplore.worlds.gym import gym_world, key_of
from axplore.worlds.systems import BEGIN, VIRTUAL_START
from gymnasium_names import TAXI
from waiting import HANGS, PATIENCE

LEFT, DOWN, RIGHT, UP = range(4)
# Gymnasium 1.3 brought new versions of these.
CLIFF = "CliffWalking-v1" if "CliffWalking-v1" in gymnasium.registry else "CliffWalking-v0"


def policy(*actions: int) -> IntArray:
    return np.array(actions, dtype=np.int64)


def visit(world: World, state: int, action: int, times: int = 1, plan: IntArray | None = None) -> Answer:
    (answer,) = world.carry_out([Visit(state, action, times, policy() if plan is None else plan, max_journey=1000)])
    return answer


def reachable(transitions: Mapping[Any, Any], initial_state: int) -> dict[Any, Any]:
    """The part of a Gymnasium-style `P` that can be met from the start, ends of episodes respected."""
    found: dict[Any, Any] = {}
    ahead = [initial_state]
    while ahead:
        state = ahead.pop()
        if state in found:
            continue
        found[state] = transitions[state]
        for outcomes in transitions[state].values():
            for probability, successor, _, terminated in outcomes:
                if probability and not terminated:
                    ahead.append(successor)
                elif probability:
                    found.setdefault(successor, {})
    return found


def model_of(identifier: str, initial_state: int, **parameters: Any) -> TabularMdp:
    environment: Any = gymnasium.make(identifier, **parameters).unwrapped
    return TabularMdp.from_gymnasium(reachable(environment.P, initial_state), initial_state)


def check_against_truth(atlas: Atlas, mdp: TabularMdp) -> None:
    """S_L→ ⊆ K ⊆ S_{L+ε}→, and the least steps lie within the bounds; it may fail with a probability of δ."""
    radius, epsilon = atlas.target.radius, atlas.target.epsilon
    inner, outer = (controllable_states(mdp, reach) for reach in (radius, radius + epsilon))
    assert set(inner.states) <= set(atlas.states) <= set(outer.states)
    if set(atlas.states) == set(inner.states):
        for state in atlas.states:
            bounds = atlas.bounds(state)
            assert bounds.lower - 1e-9 <= inner.steps[state] <= bounds.upper + 1e-9, state


class Small(gymnasium.Env[Any, Any]):
    """States 0, 1, 2 in a row. Action 0 stays, 1 moves on; the end is terminal. Subclasses break something."""

    observation_space: Any = spaces.Discrete(3)
    action_space: Any = spaces.Discrete(2)

    def __init__(self) -> None:
        self.state = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.state = 0
        return self.state, {}

    def step(self, action: Any) -> Any:
        self.state += int(action)
        return self.state, 0.0, self.state == 2, False, {}


@pytest.mark.parametrize(
    ("radius", "steps"), [(8, {0: 0, 1: 3, 4: 3, 5: 6}), (12, {0: 0, 1: 3, 4: 3, 5: 6, 2: 9, 8: 9})]
)
def test_the_slippery_lake_is_explored_as_its_transition_table_says(radius: float, steps: dict[int, float]) -> None:
    mdp = model_of("FrozenLake-v1", 0)
    truth = controllable_states(mdp, radius)
    assert {state: round(value, 9) for state, value in truth.steps.items() if state in truth.states} == steps
    atlas = axplore.explore("gym:FrozenLake-v1", radius, 1.0)
    assert atlas.proven
    assert atlas.complete
    assert set(atlas.states) == set(steps)
    check_against_truth(atlas, mdp)
    for state, value in steps.items():
        assert atlas.bounds(state).lower - 1e-9 <= value <= atlas.bounds(state).upper + 1e-9


def test_all_of_the_lake_is_found_where_nothing_slips() -> None:
    atlas = axplore.explore("gym:FrozenLake-v1", 6, 1.0, world_parameters={"is_slippery": "false"})
    assert set(atlas.states) == set(range(16))
    check_against_truth(atlas, model_of("FrozenLake-v1", 0, is_slippery=False))


def test_the_cliff_is_explored_as_its_transition_table_says() -> None:
    atlas = axplore.explore(f"gym:{CLIFF}", 4, 1.0)
    assert 36 in atlas.states
    assert len(atlas.states) > 5
    check_against_truth(atlas, model_of(CLIFF, 36))


def test_a_taxi_with_a_pinned_start_is_explored_as_its_transition_table_says() -> None:
    start, _ = gymnasium.make(TAXI).reset(seed=7)
    atlas = axplore.explore(f"gym:{TAXI}", 3, 1.0, world_parameters={"start": "pinned", "pin": "7"})
    assert atlas.states[0] == start
    assert len(atlas.states) > 3
    check_against_truth(atlas, model_of(TAXI, start))


def test_a_taxi_with_a_random_start_is_refused_unless_a_virtual_state_stands_before_it() -> None:
    with pytest.raises(UnfixedStartError, match="start='virtual'"):
        gym_world(TAXI)
    atlas = axplore.explore(f"gym:{TAXI}", 2, 1.0, world_parameters={"start": "virtual"})
    # Each of 300 starts is as likely, so none can be reached at will within three steps.
    assert atlas.states == (VIRTUAL_START,)
    assert atlas.complete


def test_behind_a_virtual_start_the_bounds_hold_what_a_random_start_costs() -> None:
    class Coin(Small):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed, options=options)
            self.state = int(self.np_random.integers(2))
            return self.state, {}

    world = gym_world(Coin, start="virtual")
    assert (list(world.states), world.actions_of(0)) == ([VIRTUAL_START], (BEGIN,))
    atlas = axplore.explore(world, 3.5, 0.5)
    # V = 1 + (1 + V) / 2 where only the start is known; 2 when going on from 0 takes one step.
    assert set(atlas.states) == {VIRTUAL_START, 0, 1, 2}
    for state, value in {0: 3.0, 1: 1.5, 2: 2.5}.items():
        assert atlas.bounds(state).lower <= value <= atlas.bounds(state).upper


def test_where_the_start_is_pinned_the_noise_is_free() -> None:
    """Seeding at every reset gives the same episode for ever; here that has a probability of 0.8^120."""
    environment: Any = gymnasium.make(TAXI, is_rainy=True).unwrapped
    start, _ = environment.reset(seed=3)
    row = next(row for row in environment.P[start].values() if len({successor for _, successor, _, _ in row}) > 1)
    action = next(action for action, outcomes in environment.P[start].items() if outcomes is row)
    world = gym_world(TAXI, start="pinned", pin=3, action_masks=False, is_rainy=True)
    order = Visit(0, action, 120, policy(), max_journey=10)
    first, second = world.carry_out([order, order])
    assert world.states[0] == start
    assert set(world.states) == {start} | {successor for _, successor, _, _ in row}
    assert first.entry_counts.min() > 1
    assert first.entry_counts.tolist() != second.entry_counts.tolist()


def test_the_same_seed_gives_the_same_answers_and_another_seed_others() -> None:
    def counts(seed: int) -> list[int]:
        world = gym_world("FrozenLake-v1", seed)
        return [count for _ in range(2) for count in visit(world, 0, RIGHT, 200).entry_counts.tolist()]

    assert counts(1) == counts(1)
    assert counts(1) != counts(2)
    # Every order has a stream of its own.
    assert counts(1)[:3] != counts(1)[3:]


@pytest.mark.parametrize(
    ("space", "observation", "label"),
    [
        (spaces.Discrete(5), np.int64(3), 3),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), (1, 2)),
        (spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])), np.array([[1, 2], [3, 4]]), (1, 2, 3, 4)),
        (spaces.MultiBinary(3), np.array([0, 1, 1], dtype=np.int8), (0, 1, 1)),
        (spaces.Box(0, 9, (2,), dtype=np.int32), np.array([4, 5], dtype=np.int32), (4, 5)),
        (spaces.Box(0.0, 1.0, (2,)), np.array([0.5, 0.25], dtype=np.float32), (0.5, 0.25)),
        (spaces.Text(5), "ab", "ab"),
        (spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2))), (1, np.array([0, 1])), (1, (0, 1))),
        (
            spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(3)}),
            {"b": np.int64(1), "a": np.int64(2)},
            (("a", 2), ("b", 1)),
        ),
        (spaces.Sequence(spaces.Discrete(4)), (np.int64(1), np.int64(3)), (1, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_are_plain_values(space: Any, observation: Any, label: Any) -> None:
    assert space.contains(observation) or isinstance(space, spaces.Tuple)
    found = key_of(space)(observation)
    assert (found, type(found)) == (label, type(label))
    encode_label(found)


@pytest.mark.parametrize("space", [spaces.Box(0, 255, (8, 9), dtype=np.uint8), spaces.Graph(spaces.Discrete(2), None)])
def test_a_space_without_labels_is_refused_until_a_key_is_given(space: Any) -> None:
    class Shown(Small):
        observation_space = space

    with pytest.raises(InvalidInputError, match="give a function key="):
        gym_world(Shown())
    assert list(gym_world(Shown(), key=lambda observation: f"place {observation}").states) == ["place 0"]


@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: gymnasium.wrappers.TransformReward(inner, float)])
def test_a_time_limit_is_taken_off(wrap: Callable[[Any], Any]) -> None:
    limited = wrap(TimeLimit(Small(), max_episode_steps=3))
    assert visit(gym_world(limited), 0, 0, 50).completed == 50


def test_the_limit_of_a_registered_environment_is_taken_off() -> None:
    world = gym_world("FrozenLake-v1", is_slippery=False)
    assert visit(world, 0, LEFT, 500).steps == 500


class Ageing(Small):
    """Ends an episode after five steps, whatever happens."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.age = 0
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self.age += 1
        assert self.age <= 5
        state, reward, terminated, _, info = super().step(action)
        return state, reward, terminated, self.age == 5, info


def test_a_limit_that_cannot_be_taken_off_is_refused_with_its_length() -> None:
    world = gym_world(Ageing)
    with pytest.raises(WorldError, match=r"after 5 steps.*max_episode_steps=5"):
        visit(world, 0, 0, 50)
    assert world.faults == ()


def test_a_limit_that_cannot_be_taken_off_is_never_reached_once_it_is_known() -> None:
    answer = visit(gym_world(Ageing, max_episode_steps=5), 0, 0, 50)
    # Four steps, then a RESET.
    assert (answer.completed, answer.cut_journeys, answer.steps) == (50, 12, 62)


def test_an_episode_that_terminates_at_its_limit_is_no_truncation() -> None:
    class Both(Small):
        def step(self, action: Any) -> Any:
            state, reward, terminated, _, info = super().step(action)
            return state, reward, terminated, terminated, info

    world = gym_world(Both)
    visit(world, 0, 1)
    visit(world, 1, 1, plan=policy(1))
    assert (list(world.states), world.actions_of(2)) == ([0, 1, 2], ())


class Whimsical(Small):
    """The middle ends an episode if it is entered by staying, and not if it is entered by going."""

    def step(self, action: Any) -> Any:
        state, reward, terminated, truncated, info = super().step(action)
        return state, reward, terminated or (state == 1 and action == 0), truncated, info


def test_a_state_that_is_terminal_at_times_is_refused() -> None:
    world = gym_world(Whimsical)
    visit(world, 0, 1)
    with pytest.raises(WorldError, match="both as terminal and as not terminal"):
        visit(world, 1, 0, plan=policy(1))


def test_states_entered_as_terminal_can_be_told_apart() -> None:
    world = gym_world(Whimsical, mark_terminal=True)
    visit(world, 0, 1)
    visit(world, 1, 0, plan=policy(1))
    assert list(world.states) == [0, 1, ("terminal", 1)]
    assert world.actions_of(2) == ()


class Masked(Small):
    """In the middle one can only go on; `masks` says so."""

    masks: ClassVar[Any] = {0: [1, 1], 1: [0, 1], 2: [0, 0]}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        state, _ = super().reset(seed=seed, options=options)
        return state, {"action_mask": np.array(self.masks[state], dtype=np.int8)}

    def step(self, action: Any) -> Any:
        state, reward, terminated, truncated, _ = super().step(action)
        return state, reward, terminated, truncated, {"action_mask": np.array(self.masks[state], dtype=np.int8)}


def test_a_mask_says_which_actions_a_state_has() -> None:
    world = gym_world(Masked)
    visit(world, 0, 1)
    visit(world, 1, 0, plan=policy(1))
    assert [world.actions_of(state) for state in range(3)] == [(0, 1), (1,), ()]
    # The one action of the middle is called 1, and it is the first.
    assert list(world.states) == [0, 1, 2]
    unmasked = gym_world(Masked, action_masks=False)
    visit(unmasked, 0, 1)
    assert unmasked.actions_of(1) == (0, 1)


def test_a_mask_that_changes_is_refused() -> None:
    class Changing(Masked):
        def step(self, action: Any) -> Any:
            state, reward, terminated, truncated, _ = super().step(action)
            return state, reward, terminated, truncated, {"action_mask": np.array([1, 0])}

    with pytest.raises(WorldError, match="different action masks"):
        visit(gym_world(Changing), 0, 0)


def test_actions_are_called_as_their_space_numbers_them() -> None:
    class Shifted(Small):
        action_space = spaces.Discrete(2, start=5)

        def step(self, action: Any) -> Any:
            return super().step(action - 5)

    world = gym_world(Shifted)
    visit(world, 0, 1)
    assert (world.actions_of(0), list(world.states)) == ((5, 6), [0, 1])


def test_environments_that_cannot_be_explored_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be Discrete"):
        gym_world("Pendulum-v1")
    with pytest.raises(InvalidInputError, match="resets itself"):
        gym_world(Autoreset(Small()))
    with pytest.raises(UnknownNameError, match="no environment 'Atlantis-v0'"):
        gym_world("Atlantis-v0")
    with pytest.raises(UnknownNameError, match="no environment 'FrozenLake-v0'"):
        gym_world("FrozenLake-v0")
    with pytest.raises(InvalidSettingError, match="FrozenLake-v1 cannot be made with"):
        gym_world("FrozenLake-v1", colour="blue")
    with pytest.raises(InvalidSettingError, match="start is 'anywhere'"):
        gym_world("FrozenLake-v1", start="anywhere")  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match="step_timeout needs an environment given by"):
        gym_world(Small(), step_timeout=1.0)


class Fragile(Small):
    """Fails in its own way at its fourth step."""

    how = "raise"

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def step(self, action: Any) -> Any:
        self.taken += 1
        if self.taken == 4:
            if self.how == "hang":
                time.sleep(100)
            if self.how == "die":
                os._exit(3)
            raise RuntimeError("worn out")
        return super().step(action)


class Hanging(Fragile):
    how = "hang"


class Dying(Fragile):
    how = "die"


def test_an_environment_that_raises_is_made_again_where_that_can_be_done() -> None:
    world = gym_world(Fragile)
    assert visit(world, 0, 0, 10).pair_draws.tolist() == [10]
    assert [fault.kind for fault in world.faults] == [FaultKind.RAISED] * 3
    with pytest.raises(WorldError, match="worn out"):
        visit(gym_world(Fragile()), 0, 0, 10)


@pytest.mark.parametrize(("kind", "fault"), [(Hanging, FaultKind.TIMED_OUT), (Dying, FaultKind.DIED)])
def test_an_environment_in_a_process_of_its_own_may_hang_and_die(kind: type[Fragile], fault: FaultKind) -> None:
    with gym_world(kind, step_timeout=HANGS if kind is Hanging else PATIENCE) as world:
        answer = visit(world, 0, 0, 5)
        assert (answer.pair_draws.tolist(), answer.entry_counts.tolist()) == ([5], [5])
        assert [one.kind for one in world.faults] == [fault]


def test_an_environment_in_a_process_of_its_own_gives_the_same_answers() -> None:
    here, there = gym_world("FrozenLake-v1", 5), gym_world("FrozenLake-v1", 5, step_timeout=60.0)
    for action in (RIGHT, DOWN):
        answers = [visit(world, 0, action, 100) for world in (here, there)]
        for name, value in vars(answers[0]).items():
            np.testing.assert_array_equal(getattr(answers[1], name), value)
    there.close()
