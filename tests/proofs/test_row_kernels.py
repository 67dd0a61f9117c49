"""Kernels give numbers where rows and values are extreme: a division by zero would end an exploration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from axplore.compilation import compiled
from axplore.proofs.bound_kernels import evaluate
from axplore.proofs.row_kernels import (
    UNKNOWN_SHIFT,
    RegionRows,
    least_mean,
    least_mean_by,
    least_mean_near,
    single_factors,
)
from axplore.types import FloatArray

LIMIT = 1000.0


def rows_with(successors: list[list[int]], shares: list[list[float]], slack: float, closed: bool) -> RegionRows:
    """States with one action each."""
    n_pairs, offsets = len(successors), np.cumsum([0, *map(len, successors)])
    flat = np.array([share for row in shares for share in row])
    return RegionRows(
        np.arange(n_pairs + 1),
        offsets,
        np.array([after for row in successors for after in row]),
        flat,
        np.full(n_pairs, slack),
        flat,
        np.ones(n_pairs),
        1.0,
        np.full(n_pairs, closed),
        np.zeros(n_pairs),
        np.zeros(n_pairs),
        np.zeros(n_pairs, dtype=np.bool_),
        np.zeros(len(flat)),
        np.full(n_pairs, np.inf),
        np.zeros(len(flat)),
    )


def test_a_policy_that_goes_in_circles_is_evaluated_though_its_values_lag_behind() -> None:
    # The second state leads to itself for ever, while the last sweeps took it to start anew.
    rows = rows_with([[1], [1]], [[1.0], [1.0]], slack=0.0, closed=True)
    values, chance, goal = np.array([LIMIT, 0.0, 0.0]), np.array([1.0, 1.0]), 2
    order, policy = np.array([1, 0]), np.array([0, 1])
    evaluate(rows, goal, order, policy, rows.shares, False, 10, 1.0, 1e-9, LIMIT, values, chance)
    assert ((values >= 0.0) & (values <= LIMIT + 1.0)).all()


@compiled
def least_means_in_turn(rows: RegionRows, values: FloatArray, times: int) -> tuple[float, float, float]:
    """The least mean under the first action, each time from the shift that was best before."""
    factors, shift, mean, weight = single_factors(rows), UNKNOWN_SHIFT, 0.0, 0.0
    for _ in range(times):
        mean, weight, shift = least_mean_by(rows, factors, 0, values, 0.0, -1.0, shift, -1.0)
    return mean, weight, shift


@compiled
def least_mean_of(rows: RegionRows, values: FloatArray, slack: float) -> tuple[float, float, float]:
    return least_mean(rows, 0, values, 0.0, -1.0, slack)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("first_share", [1e-9, 0.01, 0.5, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("values", [[10.0, 12.0], [0.0, 12.0], [10.0, 10.0 + 1e-12], [1e9, 2e9]])
def test_least_means_are_numbers_for_every_slack(closed: bool, first_share: float, values: list[float]) -> None:
    shares = np.array([first_share, 1.0 - first_share])
    for slack in (1e-12, 0.1, 1.0, 5.0, 40.0, 300.0, 1e4):
        rows = rows_with([[0, 1]], [shares.tolist()], slack, closed)
        for found in (least_mean_of(rows, np.array(values), slack), least_means_in_turn(rows, np.array(values), 30)):
            assert all(map(math.isfinite, found))
            assert found[0] <= shares @ values + 1e-9 * max(values)
            if closed:
                assert found[0] >= min(values)


def test_a_closed_row_is_bounded_by_its_ball_however_small_the_best_shift_is() -> None:
    # The row of the ball that gives most to the nearer successor, where the divergence from the shares is the slack.
    shares, slack, values = np.array([0.9, 0.1]), 2.0, np.array([10.0, 12.0])
    low, high = 0.0, 0.1
    for _ in range(200):
        p = (low + high) / 2
        divergence = shares[0] * math.log(shares[0] / (1 - p)) + shares[1] * math.log(shares[1] / p)
        low, high = (p, high) if divergence > slack else (low, p)
    exact = values[0] + high * (values[1] - values[0])
    mean, _, _ = least_mean_of(rows_with([[0, 1]], [shares.tolist()], slack, True), values, slack)
    assert mean == pytest.approx(exact, abs=1e-8)
    assert mean <= exact + 1e-12


@compiled
def mean_near(rows: RegionRows, values: FloatArray, slack: float, shift: float) -> tuple[float, float, float]:
    return least_mean_near(rows, 0, values, slack, shift)


@compiled
def mean_anew(rows: RegionRows, values: FloatArray, slack: float) -> tuple[float, float, float]:
    return least_mean(rows, 0, values, 0.0, -1.0, slack)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_least_mean_does_not_depend_on_the_shift_that_it_begins_from(seed: int, closed: bool) -> None:
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.ones(3)).tolist()
    rows, values = rows_with([[0, 1, 2]], [shares], 0.1, closed), generator.uniform(1.0, 20.0, 3)
    for slack in (1.0, 0.1, 0.003):
        exact, weight, shift = mean_anew(rows, values, slack)
        for begun in (UNKNOWN_SHIFT, shift, 0.2 * shift, 5.0 * shift):
            found = mean_near(rows, values, slack, begun)
            assert found[0] == pytest.approx(exact, rel=1e-5)
            assert found[1] == pytest.approx(weight, rel=1e-2)
