from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from axplore.errors import UnknownActionError
from axplore.mdp import TabularMdp
from axplore.types import RESET
from axplore.worlds.contract import Miss, Restarts, World
from axplore.worlds.playing import PlayedPolicy, player_of
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from takes_orders import TakesOrders

ROWS: dict[Any, dict[str, dict[Any, float]]] = {
    "start": {"go": {"goal": 0.5, "hole": 0.25, "mud": 0.25}},
    "mud": {"go": {"mud": 1.0}},
    "hole": {},
    "goal": {},
}
MODEL = TabularMdp.from_rows(ROWS, "start")
ONWARDS = PlayedPolicy(lambda _state, _step: "go")


class Stepped:
    """The model as a system that is stepped."""

    def __init__(self) -> None:
        self._random = random.Random(3)

    def actions(self, state: str) -> Sequence[str]:
        return tuple(ROWS[state])

    def reset(self) -> str:
        self._state = "start"
        return self._state

    def step(self, action: str) -> str:
        row = ROWS[self._state][action]
        (self._state,) = self._random.choices(list(row), list(row.values()))
        return self._state


WORLDS: dict[str, Any] = {
    "a system": lambda: SteppedWorld(Stepped),
    "a system behind orders": lambda: TakesOrders(SteppedWorld(Stepped)),
    "a simulation": lambda: SimulatedWorld(MODEL, 5),
}


def outcomes(world: World, restarts: Restarts, policy: PlayedPolicy = ONWARDS, times: int = 400) -> Counter[Any]:
    player = player_of(world, policy, "goal", 5, restarts)
    assert player.meet()
    for _ in range(3):  # until the world has shown every state
        played = player.play_through(times)
    assert all(episode.has_arrived is not isinstance(episode.outcome, Miss) for episode in played)
    return Counter(episode.outcome for episode in played)


@pytest.mark.parametrize("name", WORLDS)
def test_without_restarts_an_episode_arrives_at_once_ends_or_is_late(name: str) -> None:
    played = outcomes(WORLDS[name](), Restarts.NEVER)
    assert played.keys() == {1, Miss.ENDED, Miss.LATE}
    assert 150 < played[1] < 250
    assert 60 < played[Miss.ENDED] < 140


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("restarts", [Restarts.CHOSEN, Restarts.ALWAYS])
def test_with_restarts_an_episode_continues_after_the_hole(name: str, restarts: Restarts) -> None:
    played = outcomes(WORLDS[name](), restarts)
    assert played.keys() == {1, 3, 5, Miss.LATE}
    assert played[1] > played[3] > played[5]


@pytest.mark.parametrize("wrap", [lambda world: world, TakesOrders])
def test_where_the_system_would_end_an_episode_it_is_cut_unless_every_restart_counts(wrap: Any) -> None:
    """Two steps fit before the limit of the system; one in four episodes is in the mud then."""

    def limited() -> World:
        world: World = wrap(SteppedWorld(Stepped, max_episode_steps=3))
        return world

    for restarts, steps in ((Restarts.NEVER, {2}), (Restarts.CHOSEN, {2, 3})):  # or three, after the hole
        player = player_of(limited(), ONWARDS, "goal", 5, restarts)
        player.meet()
        player.play(100)
        cut = [episode for episode in player.play(400) if episode.outcome is Miss.CUT]
        assert {episode.least_steps for episode in cut} == steps


def test_episodes_draw_the_transitions_that_they_tell() -> None:
    for make in WORLDS.values():
        player = player_of(make(), ONWARDS, "goal", 5, Restarts.NEVER)
        player.meet()
        player.play_through(50)
        for episode in player.play_through(50):
            draws = sum(times for _, _, _, times in episode.answer.transitions())
            if episode.outcome is Miss.ENDED:  # a world that takes orders goes on after a RESET
                assert 1 <= draws < 5
            else:
                assert episode.least_steps == draws == {1: 1, Miss.LATE: 5}[episode.outcome]


CHAIN_LENGTH = 40
CHAIN = TabularMdp.from_rows(
    {place: {"on": {place + 1: 0.9, 0: 0.1}} for place in range(CHAIN_LENGTH)} | {CHAIN_LENGTH: {}}, 0
)


def test_a_world_is_led_to_a_goal_that_it_has_not_shown() -> None:
    player = player_of(SimulatedWorld(CHAIN, 0), PlayedPolicy(lambda *_: "on"), CHAIN_LENGTH, 1000, Restarts.CHOSEN)
    assert player.meet()


@pytest.mark.parametrize("name", WORLDS)
def test_a_goal_that_is_not_there_is_given_up(name: str) -> None:
    for limits in ({"max_tries": 5}, {"max_steps": 50}):
        player = player_of(WORLDS[name](), ONWARDS, "nowhere", 5, Restarts.CHOSEN)
        assert not player.meet(**limits)
        assert player.steps < 2_000
    resting = PlayedPolicy(lambda *_: RESET)
    assert not player_of(WORLDS[name](), resting, "nowhere", 5, Restarts.CHOSEN).meet(max_tries=2)


@pytest.mark.parametrize("name", WORLDS)
def test_a_policy_that_depends_on_the_step_is_asked_by_step(name: str) -> None:
    """It plays one step and resets, so that it never stays in the mud."""
    policy = PlayedPolicy(lambda _state, step: "go" if step % 2 == 0 else RESET, period=2)
    assert outcomes(WORLDS[name](), Restarts.CHOSEN, policy).keys() == {1, 3, 5, Miss.LATE}


@pytest.mark.parametrize("name", WORLDS)
def test_an_action_that_a_state_does_not_offer_is_refused(name: str) -> None:
    with pytest.raises(UnknownActionError, match="'fly' in state 'start'"):
        player_of(WORLDS[name](), PlayedPolicy(lambda *_: "fly"), "goal", 5, Restarts.NEVER).play(1)
