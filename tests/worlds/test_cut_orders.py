"""No world takes more steps of its system than its limit, and what it drew by then is its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from any_order import orders
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_world import Words, as_lists

from axplore.domains import random_sparse
from axplore.errors import OrdersCutError
from axplore.types import RESET_ACTION
from axplore.worlds.contract import Answer, Episodes, Order, Restarts, Visit, World
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld


def carried_out(world: World, given_orders: list[Order]) -> tuple[list[Answer], bool]:
    """The answers to orders, and whether a limit cut them."""
    try:
        return world.carry_out(given_orders), False
    except OrdersCutError as cut:
        return cut.answers, True


def draws_of(answer: Answer) -> dict[tuple[int, int, int], int]:
    return {(state, action, successor): times for state, action, successor, times in answer.transitions()}


@settings(max_examples=120)
@given(model_seed=st.integers(0, 20), limit=st.integers(0, 30), data=st.data())
def test_a_cut_order_has_drawn_the_first_part_of_what_it_would_have_drawn(
    model_seed: int, limit: int, data: st.DataObject
) -> None:
    mdp = random_sparse(states=7, actions=2, branching=(1, 3), seed=model_seed)
    worlds: list[SimulatedWorld | SteppedWorld] = [SimulatedWorld(mdp, 1), SteppedWorld(Words(mdp), 1)]
    whole = SimulatedWorld(mdp, 1)
    for _ in range(data.draw(st.integers(0, 2))):
        order = data.draw(orders([2] * len(whole.states)))
        for world in (whole, *worlds):
            world.carry_out([order])
    order = data.draw(orders([2] * len(whole.states)))
    before = whole.steps
    (full,) = whole.carry_out([order])
    for world in worlds:
        world.limit(limit)
    cuts = [carried_out(world, [order]) for world in worlds]
    assert as_lists(cuts[0][0][0]) == as_lists(cuts[1][0][0])  # the same, whoever steps it
    for world, ((part,), was_cut) in zip(worlds, cuts, strict=True):
        assert world.steps - before == part.steps <= limit
        assert was_cut == (full.steps > limit)
        if not was_cut:
            assert as_lists(part) == as_lists(full)
            continue
        assert part.steps == limit
        assert world.is_spent
        # Every step up to the limit is counted: draws differ from those of the whole order by later ones only.
        assert all(draws_of(full).get(draw, 0) >= times for draw, times in draws_of(part).items())
        assert part.completed <= full.completed
        if isinstance(order, Episodes):
            arrived = part.outcomes[:-1]
            assert (arrived <= full.outcomes[:-1]).all()
            assert part.completed <= part.outcomes.sum() <= part.completed + 1


def test_an_episode_is_a_miss_if_it_is_cut_after_its_first_step_and_nothing_before_it() -> None:
    order = Episodes(goal=1, times=5, horizon=4, policy=np.full(1, RESET_ACTION), always_reset=True)
    for limit, outcomes in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 2)):
        world = SteppedWorld(Line(10))
        world.carry_out([Visit(0, 0, 1, np.zeros(1, dtype=np.int64), max_journey=1)])
        world.limit(limit)
        (answer,), was_cut = carried_out(world, [order])
        assert was_cut
        assert answer.outcomes.tolist() == [0, 0, 0, 0, 0, outcomes], limit


class Line:
    """Moves along a line from 0; counts every call that a system gets."""

    actions = ("right",)

    def __init__(self, length: int, fails: Callable[[int], bool] = lambda _: False) -> None:
        self.place, self.length, self.calls, self.fails = 0, length, 0, fails

    def reset(self) -> int:
        self.calls += 1
        self.place = 0
        return self.place

    def step(self, _: str) -> int:
        self.calls += 1
        if self.fails(self.calls):
            raise RuntimeError("no")
        self.place = min(self.place + 1, self.length)
        return self.place


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 8, 13, 50])
@pytest.mark.parametrize("every", [3, 4, 7])
def test_failed_steps_and_systems_that_replace_others_are_within_the_limit(limit: int, every: int) -> None:
    made: list[Line] = []

    def make() -> Line:
        made.append(Line(10, lambda calls: calls % every == 0))
        return made[-1]

    world = SteppedWorld(make, max_faults=10**6)
    assert sum(system.calls for system in made) == world.system_steps  # of the checks of the start
    before = world.system_steps
    world.limit(limit)
    carried_out(world, [Visit(0, 0, 1000, np.zeros(1, dtype=np.int64), max_journey=5)])
    assert sum(system.calls for system in made) == world.system_steps <= before + limit
    world.limit()  # and goes on from there, with a system that works
    (answer,) = world.carry_out([Visit(0, 0, 4, np.zeros(1, dtype=np.int64), max_journey=5)])
    assert answer.completed == 4
    assert sum(system.calls for system in made) == world.system_steps


def test_walks_and_free_episodes_are_within_the_limit_too() -> None:
    system = Line(100)
    world = SteppedWorld(system)
    world.limit(12)
    with pytest.raises(OrdersCutError):
        world.walk(lambda *_: "right")
    assert system.calls == world.system_steps == 12 + 5  # and the checks of the start
    with pytest.raises(OrdersCutError):
        world.run_episode(lambda *_: "right", 50, 60, Restarts.NEVER)
    assert system.calls == 17


def test_restoring_a_world_gives_no_step_back() -> None:
    system = Line(100)
    world = SteppedWorld(system)
    world.limit(20)
    before = world.snapshot()
    world.walk(lambda state, _: "right" if state != 9 else None)
    world.restore(before)
    assert (world.steps, world.system_steps) == (0, 5 + 10)
    with pytest.raises(OrdersCutError):
        world.walk(lambda *_: "right")
    assert system.calls == world.system_steps == 5 + 20


class Slow(Line):
    def step(self, action: str) -> int:
        time.sleep(0.02)
        return super().step(action)


def test_no_step_begins_after_the_moment_at_which_a_world_has_to_end() -> None:
    world = SteppedWorld(Slow(100))
    ends = time.monotonic() + 0.1
    world.limit(None, ends)
    with pytest.raises(OrdersCutError) as cut:
        world.carry_out([Visit(0, 0, 1000, np.full(1, RESET_ACTION), max_journey=5)])
    assert 0 < int(cut.value.answers[0].pair_draws.sum()) <= 6
    assert world.is_spent
    simulated = SimulatedWorld(random_sparse(states=7, actions=2, branching=(1, 3), seed=0), 0)
    simulated.limit(None, time.monotonic() + 0.1)
    stay: Any = np.full(1, RESET_ACTION)
    with pytest.raises(OrdersCutError):
        simulated.carry_out([Visit(0, 0, 10**15, stay, max_journey=5)])
    assert 0 < simulated.steps < 10**10
