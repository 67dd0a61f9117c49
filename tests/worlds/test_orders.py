from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as with_parts

from axplore.errors import InvalidInputError, InvalidOrderError
from axplore.records.vectors import Vectors
from axplore.types import RESET_ACTION
from axplore.worlds.contract import Episodes, Tour, Visit
from axplore.worlds.orders import check_orders, order_seed

ACTION_COUNTS = np.array([2, 0, 1])
"""Three states are discovered; state 1 is terminal."""

VISIT: Any = Visit(state=2, action=0, times=5, policy=np.array([1, RESET_ACTION]), max_journey=4)
EPISODES: Any = Episodes(goal=1, times=5, horizon=2, policy=np.array([0, RESET_ACTION, 0]))
TOUR: Any = Tour(
    states=np.array([0, 2, 0]),
    actions=np.array([1, 0, 0]),
    times=np.array([3, 1, 2]),
    policies=np.array([[0, RESET_ACTION], [1, RESET_ACTION]]),
    distances=np.array([[0.0, 1.0], [2.0, math.inf]]),
    max_journey=4,
)
NOTHING = np.empty(0, dtype=np.int64)
NO_BASES = np.array([-1, -1])
POLICIES: Any = Vectors(2, np.array([0, 1]), np.array([1, 1]), np.array([0, 0]), np.array([RESET_ACTION] * 2), NO_BASES)
DISTANCES: Any = Vectors(2, np.array([0.0, 2.0]), np.array([1, 1]), np.array([0, 0]), np.array([1.0, 9.0]), NO_BASES)
TABLED: Any = replace(TOUR, policies=POLICIES, distances=DISTANCES)


@pytest.mark.parametrize(
    "order",
    [
        VISIT,
        replace(VISIT, times=0),
        replace(VISIT, policy=np.array([], dtype=np.int64)),
        replace(VISIT, policy=np.array([0, -1, -1], dtype=np.int8)),
        replace(VISIT, policy=np.array([[0, -1], [1, -1], [-1, -1], [0, -1]])),
        replace(VISIT, policy=np.array([[0, -1, 0]]), max_journey=1),
        replace(VISIT, policy=np.empty((4, 0), dtype=np.int64)),
        replace(VISIT, state=np.int64(2), times=np.int32(3)),
        EPISODES,
        replace(EPISODES, policy=np.array([[0, -1, 0], [1, -1, -1]])),
        replace(EPISODES, allowance=0.0, slack=0.0),
        TOUR,
        replace(TOUR, distances=np.zeros((2, 2), dtype=np.int64)),
        replace(TOUR, policies=np.empty((2, 0), dtype=np.int64), distances=np.empty((2, 0))),
        Tour(NOTHING, NOTHING, NOTHING, np.empty((0, 3), dtype=np.int64), np.empty((0, 3)), max_journey=1),
        TABLED,
    ],
)
def test_a_sound_order_is_accepted(order: Any) -> None:
    check_orders([order], ACTION_COUNTS)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (replace(TABLED, distances=TOUR.distances), "policies and distances must both be Vectors, of 2 targets"),
        (replace(TABLED, policies=with_parts(POLICIES, length=3)), "must both be Vectors, of 2 targets"),
        (replace(TABLED, policies=with_parts(POLICIES, sizes=np.array([2, -1]))), "the policies are Vectors that are"),
        (replace(TABLED, policies=with_parts(POLICIES, sizes=np.array([0, 1]))), "the policies are Vectors that are"),
        (replace(TABLED, policies=with_parts(POLICIES, sizes=np.ones(2))), "the policies are Vectors that are"),
        (replace(TABLED, policies=with_parts(POLICIES, indices=np.array([0, 2]))), "the policies are Vectors that are"),
        (replace(TABLED, policies=with_parts(POLICIES, base=np.array([1, -1]))), "or that have bases"),
        (replace(TABLED, distances=with_parts(DISTANCES, indices=np.array([-1, 0]))), "the distances are Vectors"),
        (replace(TABLED, policies=with_parts(POLICIES, numbers=np.array([0, 2]))), "the policy plays action 2 in"),
        (
            replace(TABLED, policies=with_parts(POLICIES, rest=np.array([-1, 0]))),
            "the policy plays action 0 in state 1",
        ),
        (replace(TABLED, distances=with_parts(DISTANCES, rest=np.array([1.0, -1.0]))), "state 1 is -1.0 steps from"),
        (replace(VISIT, state=3), "state is 3, but the discovered states are 0 to 2"),
        (replace(VISIT, state=-1), "state is -1"),
        (replace(VISIT, state=1.0), "state is 1.0"),
        (replace(VISIT, action=1), "action is 1, but state 2 has 1 action"),
        (replace(VISIT, action=RESET_ACTION), "action is -1, but state 2 has 1 action"),
        (replace(VISIT, state=1), "action is 0, but state 1 has 0 actions"),
        (replace(VISIT, times=-1), "times is -1; it must be a whole number from 0"),
        (replace(VISIT, times=2.5), "times is 2.5"),
        (replace(VISIT, times=True), "times is True"),
        (replace(VISIT, times=2**62 + 1), "times is 4611686018427387905"),
        (replace(VISIT, max_journey=0), "max_journey is 0; it must be a whole number from 1"),
        (replace(VISIT, max_cuts=0), "max_cuts is 0"),
        (replace(VISIT, policy=[0, -1]), "the policy must be an array of integers"),
        (replace(VISIT, policy=np.array([0.0, -1.0])), "the policy must be an array of integers"),
        (replace(VISIT, policy=np.array([[0, -1]])), r"shape \[1, 2\]; it must be \[n\] or \[4, n\]"),
        (replace(VISIT, policy=np.zeros((5, 1), dtype=int)), r"shape \[5, 1\]; it must be \[n\] or \[4, n\]"),
        (replace(VISIT, policy=np.zeros((4, 1, 1), dtype=int)), r"shape \[4, 1, 1\]; it must be \[n\] or \[4, n\]"),
        (replace(VISIT, policy=np.zeros((4, 4), dtype=int)), "the policy is for 4 states, but only 3 are discovered"),
        (replace(VISIT, policy=np.array([[0], [1], [2], [0]])), "the policy plays action 2 in state 0"),
        (replace(VISIT, policy=np.array(0)), r"the policy has the shape \[\]"),
        (replace(VISIT, policy=np.array([0, -1, 0, 0])), "the policy is for 4 states, but only 3 are discovered"),
        (replace(VISIT, policy=np.array([0, 0])), "the policy plays action 0 in state 1, which has 0 actions"),
        (replace(VISIT, policy=np.array([-2])), "the policy plays action -2 in state 0"),
        (replace(EPISODES, goal=3), "goal is 3, but the discovered states are 0 to 2"),
        (replace(EPISODES, times=-1), "times is -1"),
        (replace(EPISODES, horizon=0), "horizon is 0"),
        (replace(EPISODES, policy=np.array([[0, -1, 0]])), r"it must be \[n\] or \[2, n\]"),
        (replace(EPISODES, policy=np.array([[0, -1], [2, -1]])), "the policy plays action 2 in state 0"),
        (replace(EPISODES, policy=np.zeros((2, 1, 1), dtype=np.int64)), r"shape \[2, 1, 1\]"),
        (replace(EPISODES, allowance=math.nan), "allowance is nan"),
        (replace(EPISODES, slack=-1.0), "slack is -1.0"),
        (replace(TOUR, states=[0, 2, 0]), "states must be an array of integers"),
        (replace(TOUR, actions=np.zeros(3)), "actions must be an array of integers"),
        (replace(TOUR, states=np.array(0)), r"states has the shape \[\]"),
        (replace(TOUR, times=np.array([1, 1])), r"times has the shape \[2\]; states, actions and times must be \[m\]"),
        (replace(TOUR, states=np.array([0, 3, 0])), "a state is 3, but the discovered states are 0 to 2"),
        (replace(TOUR, states=np.array([0, -1, 0])), "a state is -1"),
        (replace(TOUR, actions=np.array([1, 1, 0])), "an action is 1, but state 2 has 1 actions"),
        (replace(TOUR, actions=np.array([1, -1, 0])), "an action is -1, but state 2 has 1 actions"),
        (replace(TOUR, actions=np.array([1, 0, 1])), "state 0, action 1 is named twice"),
        (replace(TOUR, times=np.array([1, 0, 1])), "one of times is 0; it must be a whole number from 1"),
        (replace(TOUR, times=np.array([2**61, 2**61, 1])), "the sum of times is 4611686018427387905"),
        (replace(TOUR, max_journey=0), "max_journey is 0"),
        (replace(TOUR, max_cuts=0), "max_cuts is 0"),
        (replace(TOUR, policies=np.zeros((2, 1))), "the policies must be an array of integers"),
        (replace(TOUR, policies=np.array([0, -1])), r"shape \[2\]; they must be \[2, n\], one per target"),
        (replace(TOUR, policies=np.zeros((3, 2), dtype=int)), r"shape \[3, 2\]; they must be \[2, n\]"),
        (replace(TOUR, policies=np.zeros((2, 4), dtype=int)), "for 4 states, but only 3 are discovered"),
        (replace(TOUR, policies=np.array([[0, -1], [0, 0]])), "plays action 0 in state 1, which has 0 actions"),
        (replace(TOUR, distances=[[0.0, 1.0], [2.0, 3.0]]), "the distances must be an array of numbers"),
        (replace(TOUR, distances=np.ones((2, 2), dtype=complex)), "the distances must be an array of numbers"),
        (replace(TOUR, distances=np.zeros((2, 3))), r"have the shape \[2, 3\], but the policies \[2, 2\]"),
        (replace(TOUR, distances=np.array([[0.0, 1.0], [math.nan, 1.0]])), "state 0 is nan steps from target 1"),
        (replace(TOUR, distances=np.array([[0.0, -1.0], [0.0, 1.0]])), "state 1 is -1.0 steps from target 0"),
        ("visit", "it must be a Visit, Episodes, Trials, a Tour or a Survey"),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_refused_with_the_reason(order: Any, message: str) -> None:
    with pytest.raises(InvalidOrderError, match=f"^order 1 of 3 .*{message}"):
        check_orders([VISIT, order, EPISODES], ACTION_COUNTS)


def test_a_refused_order_is_invalid_input() -> None:
    assert issubclass(InvalidOrderError, InvalidInputError)


def test_every_address_has_a_seed_of_its_own() -> None:
    addresses = [(seed, call, place) for seed in range(4) for call in range(4) for place in range(4)]
    words = {tuple(order_seed(*address).generate_state(4)) for address in addresses}
    assert len(words) == len(addresses)
