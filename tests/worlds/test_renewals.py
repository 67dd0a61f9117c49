from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from axplore.worlds.contract import Answer, Episodes, Tour
from axplore.worlds.renewals import SHARE, YOUNGEST, Renewals, allowance, oldest_age, steps_that_allow
from axplore.worlds.stepped import SteppedWorld


class Road:
    """Five places in a row, and the last leads back to the second; `calls` keeps what was asked of it."""

    actions = ("on", "stay")

    def __init__(self) -> None:
        self.calls: list[str] = []

    def reset(self) -> int:
        self._place = 0
        self.calls.append("reset")
        return 0

    def step(self, action: str) -> int:
        self.calls.append(action)
        if action == "on":
            self._place = self._place + 1 if self._place < 4 else 1
        return self._place


def toured(varied: bool, times: int = 4000) -> tuple[Road, SteppedWorld, Answer]:
    road = Road()
    world = SteppedWorld(road, start_checks=1)
    on = np.zeros(1, dtype=np.int64)
    world.carry_out([Tour(on, on, on + 1, np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1)), 20)])
    while len(world.states) < 5:
        here = np.array([len(world.states) - 1])
        policies = np.zeros((1, len(world.states)), dtype=np.int64)
        world.carry_out([Tour(here, on, on + 1, policies, np.zeros((1, len(world.states))), 20)])
    if varied:
        world.vary_ages()
    states, played = np.array([3, 4]), np.array([1, 1])
    distances = np.array([[3.0, 2, 1, 0, 4], [4.0, 3, 2, 1, 0]])
    tour = Tour(states, played, np.array([times, times]), np.zeros((2, 5), dtype=np.int64), distances, 50)
    (answer,) = world.carry_out([tour])
    return road, world, answer


def ages_at_resets(road: Road) -> list[int]:
    places = [place for place, call in enumerate(road.calls) if call == "reset"]
    return [later - place - 1 for place, later in pairwise(places)]


def test_a_tour_is_carried_out_as_asked_and_its_resets_cost_what_they_may() -> None:
    _, _, alone = toured(varied=False)
    road, _, answer = toured(varied=True)
    plays = {(state, action): times for state, action, _, times in answer.transitions()}
    assert plays[3, 1] == plays[4, 1] == 4000
    assert answer.completed == alone.completed
    assert answer.cut_journeys == 0
    assert alone.steps < answer.steps <= alone.steps + 1.1 * allowance(alone.steps)
    assert len(ages_at_resets(road)) > 20


def test_ages_are_of_every_magnitude() -> None:
    road, _, _ = toured(varied=True, times=40_000)
    ages = ages_at_resets(road)
    assert min(ages[1:]) < 2 * YOUNGEST
    assert max(ages) > 10 * YOUNGEST


def test_the_same_seed_gives_the_same_ages() -> None:
    assert toured(varied=True)[0].calls == toured(varied=True)[0].calls


def test_episodes_are_not_disturbed() -> None:
    road, world, _ = toured(varied=True)
    before = len(road.calls)
    (answer,) = world.carry_out([Episodes(2, 30, 400, np.ones(5, dtype=np.int64), always_reset=True)])
    assert answer.cut_journeys == 0
    assert answer.outcomes[-1] == 30
    assert ages_at_resets(road)[-29:] == [400] * 29
    assert road.calls[before:].count("reset") == 30


@pytest.mark.parametrize("mean", [40.0, 200.0, 5000.0])
def test_the_mean_of_the_scale_is_the_one_asked_for(mean: float) -> None:
    oldest = oldest_age(mean)
    assert (oldest - YOUNGEST) / math.log(oldest / YOUNGEST) == pytest.approx(mean, rel=1e-3)


def test_dear_ways_back_make_resets_rare() -> None:
    renewals, steps, times = Renewals(0, 0), 0, 0
    while steps < 200_000:
        never_before = renewals.begin(steps)
        steps = renewals.due
        assert steps >= never_before
        renewals.pay(50)
        renewals.pay_way_back(49)
        times += 1
    assert 0.5 * SHARE <= 100 * times / steps <= 1.2 * SHARE


@pytest.mark.parametrize("steps", [1.0, 300.0, 25_000.0, 1e7])
def test_the_steps_that_allow_a_cost_are_those_whose_allowance_it_is(steps: float) -> None:
    assert steps_that_allow(allowance(steps)) == pytest.approx(steps)
    assert steps_that_allow(-1.0) == 0.0
