from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import axplore
from axplore import TabularMdp
from axplore.atlas.learned_model import index_in_model, pairs_of_policy
from axplore.errors import UnknownStateError
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.proofs.break_even import optimistic_steps, reaches, robust_steps, stays_beyond, surviving_error
from axplore.statistics.confidence import ConfidenceRegion
from axplore.types import RESET_PAIR, FloatArray, IntArray
from commands import run
from made_counts import made_counts

POINT = 1e-10
"""A slack so small that the region is a point; the kernels lose digits at none at all."""


def point_model(rng: np.random.Generator, n_known: int, n_actions: int = 2) -> IntervalModel:
    """Random rows that are known exactly, as if the region were a point; one state more is seen and not known."""
    n_seen = n_known + 1
    entries = []
    for _ in range(n_known * n_actions):
        chosen = np.sort(rng.choice(n_seen, size=min(3, n_seen), replace=False)).tolist()
        drawn = rng.integers(1, 60, size=len(chosen)).tolist()
        entries.append([(successor, count, 1) for successor, count in zip(chosen, drawn, strict=True)])
    rows = made_counts(entries, [n_actions] * n_known, labels=range(n_seen))
    region = ConfidenceRegion(rows.counts / rows.visits[rows.entry_pairs], np.full(len(entries), POINT), ())
    return interval_model(rows, region, 1e9)


def dense_row(model: IntervalModel, pair: int) -> FloatArray:
    """The row of a pair, with a last place for what was never seen, [seen + 1]."""
    row = np.zeros(len(model.numbers) + 1)
    entries = slice(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
    row[model.rows.successors[entries]] = model.rows.shares[entries]
    return row


def extreme_mean(row: FloatArray, values: FloatArray, error: float, sign: float) -> float:
    """The greatest (sign 1) or least (sign -1) mean within a total variation: mass is moved to the extreme value."""
    moved, left = row.copy(), error
    *others, extreme = np.argsort(sign * values)
    for place in others:
        taken = min(moved[place], left)
        moved[place] -= taken
        moved[extreme] += taken
        left -= taken
    return float(moved @ values)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(20))
def test_the_extreme_mean_within_a_total_variation_is_that_of_linear_programming(seed: int, sign: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    row, values, error = rng.dirichlet(np.ones(n)), rng.integers(0, 9, n).astype(np.float64), rng.uniform(0, 0.4)
    # Variables: the row q, and u >= |q - row|.
    objective = np.concatenate((-sign * values, np.zeros(n)))
    identity = np.eye(n)
    inequalities = np.block([[identity, -identity], [-identity, -identity], [np.zeros((1, n)), np.ones((1, n))]])
    bounds = np.concatenate((row, -row, [2 * error]))
    equality = np.concatenate((np.ones(n), np.zeros(n)))[None]
    solution = linprog(objective, inequalities, bounds, equality, [1.0], bounds=[(0, None)] * (2 * n))
    assert solution.fun is not None
    assert extreme_mean(row, values, error, sign) == pytest.approx(-sign * solution.fun, abs=1e-7)


def steps_by_sweeps(
    model: IntervalModel, goal: int, policy: IntArray | None, error: float, sign: float, sweeps: int = 400
) -> float:
    """Robust or optimistic value iteration in plain Python; all actions if no policy is given."""
    values = np.zeros(len(model.numbers) + 1)
    pairs = model.rows.state_pairs
    for _ in range(sweeps):
        before = values.copy()
        values[model.n_known :] = 1.0 + values[0]
        if sign < 0:
            values[-1] = 0.0  # a row that is wrong may lead to the goal
        values[goal] = 0.0
        for state in range(model.n_known):
            if state == goal:
                continue
            choices = range(pairs[state], pairs[state + 1]) if policy is None else [int(policy[state])]
            options = [
                1.0 + (values[0] if pair == RESET_PAIR else extreme_mean(dense_row(model, pair), values, error, sign))
                for pair in choices
            ]
            if policy is None and state > 0:  # RESET is always there
                options.append(1.0 + values[0])
            values[state] = min(options)
        if np.abs(values - before).max() < 1e-7:
            break
    return float(values[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("error", [0.0, 0.02, 0.1])
def test_the_worst_and_the_best_within_a_total_variation_are_those_of_plain_value_iteration(
    seed: int, error: float
) -> None:
    rng = np.random.default_rng(seed)
    model = point_model(rng, n_known=3)
    goal = 1 + seed % 3
    policy = np.array([0, *(rng.integers(-1, 2, size=2) + 2 * np.arange(1, 3)).tolist()])
    policy[1:] = [RESET_PAIR if choice == 2 * state - 1 else choice for state, choice in enumerate(policy[1:], 1)]
    expected = steps_by_sweeps(model, goal, policy, error, 1.0)
    if expected < 300:
        assert robust_steps(model, goal, policy, error) == pytest.approx(expected, rel=1e-3)
    lowest = steps_by_sweeps(model, goal, None, error, -1.0)
    assert optimistic_steps(model, goal, error) == pytest.approx(lowest, rel=1e-3)


def test_the_break_even_of_a_coin_is_its_closed_form() -> None:
    """Heads come with 3/4. Wrong by η, they come with 3/4 - η, and a state never seen, which resets, with η."""
    rows = made_counts([[(0, 1, 1), (1, 3, 2)]], [1, 0])
    region = ConfidenceRegion(np.array([0.25, 0.75]), np.full(1, POINT), ())
    model, policy = interval_model(rows, region, 1e9), np.array([0, RESET_PAIR])
    for error in (0.0, 0.05, 0.2, 0.5):
        expected = (1 + error) / (0.75 - error)  # V = 1 + V/4 + η (1 + V)
        assert robust_steps(model, 1, policy, error) == pytest.approx(expected, rel=1e-4)
        assert optimistic_steps(model, 1, error) == pytest.approx(1 / min(1.0, 0.75 + error), rel=1e-4)
    largest = surviving_error(lambda error: reaches(model, 1, policy, 2.0, error))
    assert largest == pytest.approx((2 * 0.75 - 1) / 3, abs=1e-4)
    farthest = surviving_error(lambda error: stays_beyond(model, 1, 1.25, error))
    assert farthest == pytest.approx(0.05, abs=1e-4)
    assert surviving_error(lambda error: reaches(model, 1, policy, 1.3, error)) is None


@pytest.fixture(scope="module")
def grid() -> TabularMdp:
    return axplore.domain("slippery-grid", rows=3, columns=3, slip=0.2)


def test_no_disturbed_model_breaks_a_claim_below_its_break_even(grid: TabularMdp) -> None:
    """Rows of the truth, moved at random by just below the break-even, for every state of an atlas."""
    atlas = axplore.explore(grid, radius=4.0, epsilon=0.5)
    rng = np.random.default_rng(0)
    states = list(grid.states)
    reach = atlas.target.radius + atlas.target.epsilon
    n_tight = 0
    for state in atlas.states[1:]:
        found = atlas.break_even(state)
        assert 0 < found.error < 1
        first = found.claims[0].error
        assert first is not None
        for _ in range(5):
            steps = disturbed_steps(grid, states, atlas.policy(state), state, first, rng)
            assert steps <= reach
            n_tight += steps > atlas.bounds(state).upper
    assert n_tight, "the disturbance is too weak to test anything"


def disturbed_steps(
    grid: TabularMdp, states: list[Any], policy: Any, goal: Any, error: float, rng: np.random.Generator
) -> float:
    """The steps of a policy if every row has lost mass at its best successors to a bad state."""
    free = [place for place, state in enumerate(states) if state != goal]
    matrix = np.eye(len(states))
    for place in free:
        action = policy(states[place])
        row = np.zeros(len(states))
        if action is axplore.RESET:
            row[states.index(grid.initial_state)] = 1.0
        else:
            for successor, probability in grid.row(states[place], action).items():
                row[states.index(successor)] = probability
            left = error
            near = sorted(np.flatnonzero(row).tolist(), key=lambda other: states[other] != goal or rng.random())
            for other in near:
                moved = min(row[other], left)
                row[other] -= moved
                left -= moved
            row[rng.choice(free)] += error - left
        matrix[place] -= row
    solved = np.linalg.solve(matrix[np.ix_(free, free)], np.ones(len(free)))
    return float(solved[free.index(states.index(grid.initial_state))])


def test_every_claim_of_an_atlas_has_a_break_even_or_says_why_not(grid: TabularMdp) -> None:
    atlas = axplore.explore(grid, radius=3.0, epsilon=0.5)
    assert atlas.break_even(atlas.states[0]).error == 1.0
    for report in atlas.frontier:
        (claim,) = atlas.break_even(report.state).claims
        assert claim.error is not None
        assert claim.claim == "That it takes more than 3 expected steps"
        model = atlas.model
        goal = index_in_model(model, atlas.seen.index(report.state))
        assert stays_beyond(model, goal, 3.0, claim.error)
        assert not stays_beyond(model, goal, 3.0, claim.error + 2e-5)
    unseen = atlas.break_even("never heard of")
    assert unseen.error > 0
    sentence = str(atlas.break_even(atlas.states[1]))
    assert "arrives within 3.5 expected steps survives rows that are wrong by up to" in sentence
    assert pairs_of_policy(atlas, atlas.model, atlas.policies[1])[0] != RESET_PAIR


def test_nothing_survives_where_nothing_is_claimed() -> None:
    atlas = axplore.explore("confusing-chain", radius=3, explorer="disco-experiment", max_steps=2000)
    found = atlas.break_even(atlas.states[-1])
    assert (found.claims, found.error) == ((), 0.0)


def test_the_command_shows_what_a_claim_survives(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    atlas = axplore.explore("confusing-chain", radius=4.5, epsilon=0.5, run=folder)
    for state in ("s5", str(atlas.frontier[0].state)):
        shown = run("state", folder, state)
        assert "survives rows that are wrong by" in shown
        found = json.loads(run("state", folder, state, "--json"))["break_even"]
        assert found == json.loads(json.dumps(atlas.break_even(state).as_json()))
    assert "RESET leads to it does not depend on any row" in run("state", folder, "s0")
    with pytest.raises(UnknownStateError, match="nowhere"):
        run("state", folder, "nowhere")
