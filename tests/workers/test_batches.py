from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.records.vectors import Vector, Vectors
from axplore.types import IntArray
from axplore.workers.batches import (
    BATCHES_OF_EPISODES,
    BATCHES_OF_TOUR,
    LEAST_BATCH,
    MAX_BATCHES,
    WAVE,
    cut,
    n_counted,
    part_of,
    wave_after,
)
from axplore.worlds.contract import Answer, Episodes, Tour, Visit

POLICY = np.zeros(1, dtype=np.int64)


def visit(times: int) -> Visit:
    return Visit(state=0, action=0, times=times, policy=POLICY, max_journey=1)


def episodes(times: int, allowance: float = math.inf, slack: float = math.inf) -> Episodes:
    return Episodes(goal=1, times=times, horizon=9, policy=POLICY, allowance=allowance, slack=slack)


def tour(states: list[int], times: list[int]) -> Tour:
    """Of the first actions of states: the policy towards a target plays its number, from a distance of its number."""
    targets = list(dict.fromkeys(states))
    actions = [states[:place].count(state) for place, state in enumerate(states)]
    rows = np.repeat(np.array(targets)[:, None], 3, axis=1)
    return Tour(
        states=np.array(states),
        actions=np.array(actions),
        times=np.array(times),
        policies=rows,
        distances=rows.astype(float),
        max_journey=5,
    )


def answer(completed: int, travelled: int) -> Answer:
    nothing: IntArray = np.zeros(0, dtype=np.int64)
    return Answer(0, completed, completed, travelled, 0, *[nothing] * 7)


@given(times=st.integers(0, 1000), size=st.integers(4, 200))
def test_batches_of_visits_are_as_many_as_it_takes_and_equal_but_for_one(times: int, size: int) -> None:
    quotas = [int(quota) for quota in cut(visit(times), size)]
    assert sum(quotas) == times
    assert len(quotas) == math.ceil(times / size)
    assert not quotas or 0 < min(quotas) <= max(quotas) <= min(size, min(quotas) + 1)


@given(times=st.integers(0, 1000), size=st.integers(4, 200))
def test_a_few_episodes_are_shared_too(times: int, size: int) -> None:
    quotas = [int(quota) for quota in cut(episodes(times), size)]
    assert sum(quotas) == times
    shared = max(1, math.ceil(times / BATCHES_OF_EPISODES))
    assert len(quotas) == math.ceil(times / min(size, shared))
    assert not quotas or 0 < min(quotas) <= max(quotas) <= min(quotas) + 1


@given(times=st.integers(0, 1000), size=st.integers(4, 200))
def test_episodes_that_may_end_early_are_cut_like_visits(times: int, size: int) -> None:
    may_end = episodes(times, allowance=3.0, slack=10.0)
    assert cut(may_end, size) == cut(visit(times), size)


@given(times=st.lists(st.integers(1, 120), min_size=1, max_size=8), size=st.integers(4, 100))
def test_batches_of_a_tour_share_every_pair_evenly(times: list[int], size: int) -> None:
    order = tour(list(range(len(times))), times)
    quotas = np.array(cut(order, size))
    assert quotas.sum(axis=0).tolist() == times
    shared = max(LEAST_BATCH, math.ceil(sum(times) / BATCHES_OF_TOUR))
    assert len(quotas) == math.ceil(sum(times) / min(size, shared))
    for shares in (*quotas.T, quotas.sum(axis=1)):
        assert shares.max() - shares.min() <= 1
    assert quotas.min() >= 0
    assert quotas.sum(axis=1).max() <= size


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_batch_of_a_tour_goes_to_its_own_targets_by_their_policies(has_vectors: bool) -> None:
    order = tour([4, 7, 4, 2], [1, 5, 2, 3])
    if has_vectors:
        order = replace(order, policies=vectors_of(order.policies), distances=vectors_of(order.distances))
    part = part_of(order, np.array([0, 2, 1, 0]))
    assert isinstance(part, Tour)
    assert part.states.tolist() == [7, 4]
    assert part.actions.tolist() == [0, 1]
    assert part.times.tolist() == [2, 1]
    assert part.targets.tolist() == [7, 4]
    assert part.policies[:, 0].tolist() == part.targets.tolist(), "each target keeps its own policy"
    assert part.distances[:, 0].tolist() == part.targets.tolist()
    assert part.max_journey == order.max_journey


def vectors_of(array: Any) -> Vectors:
    return Vectors.of([Vector.of(row, row[-1]) for row in array], array.shape[1], array.dtype.type)


def test_a_batch_of_visits_is_the_order_with_another_number() -> None:
    part = part_of(visit(70), 35)
    assert isinstance(part, Visit)
    assert vars(part) == vars(replace(visit(70), times=35))


def test_a_small_tour_is_shared_too() -> None:
    assert len(cut(tour([0], [100]))) == BATCHES_OF_TOUR
    assert len(cut(tour([0], [10]))) == 10 // LEAST_BATCH
    assert len(cut(tour([0], [3]))) == 1


def test_huge_orders_have_larger_batches_instead_of_more() -> None:
    assert cut(visit(10**9), 50) == [10**9 // MAX_BATCHES] * MAX_BATCHES
    shares = np.array(cut(tour([0, 1], [10**6, 10**7]), 50))
    assert len(shares) == MAX_BATCHES
    assert shares.sum(axis=0).tolist() == [10**6, 10**7]


def test_a_batch_of_episodes_does_not_end_early_by_itself() -> None:
    part = part_of(episodes(1000, allowance=4.0, slack=10.0), 50)
    assert isinstance(part, Episodes)
    assert (part.times, part.allowance, part.slack) == (50, math.inf, math.inf)


@pytest.mark.parametrize("order", [visit(1000), episodes(1000), episodes(1000, allowance=4.0)])
def test_all_batches_of_an_order_that_cannot_end_early_go_out_at_once(order: Visit | Episodes) -> None:
    assert wave_after(order, [], 20) == range(20)


def test_episodes_that_may_end_early_go_out_in_waves_until_they_do() -> None:
    order = episodes(1000, allowance=4.0, slack=10.0)
    within, beyond = answer(completed=50, travelled=200), answer(completed=50, travelled=211)
    assert wave_after(order, [], 20) == range(WAVE)
    assert wave_after(order, [within] * WAVE, 20) == range(WAVE, 2 * WAVE)
    assert wave_after(order, [within] * 2 * WAVE, 20) == range(2 * WAVE, 20)
    assert not wave_after(order, [within] * 20, 20)
    assert not wave_after(order, [within, beyond, *[within] * (WAVE - 2)], 20)


def test_batches_after_the_one_that_ended_the_order_are_not_counted() -> None:
    order = episodes(1000, allowance=4.0, slack=10.0)
    short, beyond = answer(completed=50, travelled=100), answer(completed=50, travelled=211)
    assert n_counted(order, [beyond, short, short]) == 1
    assert n_counted(order, [short, beyond, short]) == 3, "what was saved before is not exceeded"
    assert n_counted(visit(3), [short, beyond]) == 2
