"""Bounds over a confidence region: against the truth, against general optimisers, and in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import balls
from axplore.assumptions.applied import region_given
from axplore.graphs.evaluation import policy_steps
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import (
    GoalValues,
    IntervalModel,
    empirical_path,
    interval_model,
    lower_path,
    regret_path,
    states_met,
    upper_path,
)
from axplore.proofs.row_kernels import NEWTON_ACCURACY, RegionRows, extreme_row, least_mean
from axplore.proofs.sharpening import bounds_along, certain_way
from axplore.records.assumed import UNTIED, Assumed, Ties
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.statistics.confidence import confidence_region, part_of
from axplore.truth import optimal_steps
from axplore.types import RESET_PAIR, FloatArray, IntArray
from observed import drawn_counts, expected_counts, is_in_region, made_up_model, model_of, policy_on, random_model

# ------------------------------------------------------------------------------------------ the least mean over a ball


def one_row(shares: FloatArray) -> RegionRows:
    """Shares of successors 0, 1, ... of the only pair."""
    return made_up_model([[dict(enumerate(shares.tolist()))]], slack=math.nan).rows


def least_mean_of(shares: FloatArray, distances: FloatArray, slack: float) -> tuple[float, FloatArray]:
    """The least mean of distances from a free value, and the row at which it is attained."""
    rows, row = one_row(shares), np.zeros(len(shares))
    mean, weight, shift = least_mean(rows, 0, distances, 0.0, -1.0, slack)
    extreme_row(rows, 0, distances, 0.0, -1.0, weight, shift, row)
    return mean, row


@st.composite
def balls_with_distances(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, float]:
    """Shares, some of them zero, distances with ties, and a slack up to what a handful of draws leave."""
    width = draw(st.integers(1, 6))
    weights = np.array(draw(st.lists(st.integers(0, 100), min_size=width, max_size=width).filter(any)), dtype=float)
    distance = st.one_of(st.integers(0, 3).map(float), st.floats(0.0, 50.0))
    distances = np.array(draw(st.lists(distance, min_size=width, max_size=width)))
    return weights / weights.sum(), distances, 10 ** draw(st.floats(-8.0, 0.3))


@given(balls_with_distances())
def test_the_least_mean_is_attained_in_the_ball(ball: tuple[FloatArray, FloatArray, float]) -> None:
    shares, distances, slack = ball
    mean, row = least_mean_of(shares, distances, slack)
    if mean > 1e-9:  # or it is as good as zero, and no row has less
        assert row.sum() <= math.exp(NEWTON_ACCURACY * slack) + 1e-9  # its logarithm is the error of the best shift
        assert balls.distance(shares, row) <= slack + 1e-9
    assert row @ distances == pytest.approx(mean, rel=1e-5, abs=1e-6)


@given(balls_with_distances(), st.integers(0, 2**32 - 1))
def test_no_row_of_the_ball_has_a_smaller_mean(ball: tuple[FloatArray, FloatArray, float], seed: int) -> None:
    shares, distances, slack = ball
    mean, _ = least_mean_of(shares, distances, slack)
    generator = np.random.default_rng(seed)
    for direction in generator.dirichlet(np.full(len(shares) + 1, 0.5), size=20)[:, :-1]:
        assert mean <= last_inside(shares, direction, slack) @ distances + 1e-9


def last_inside(shares: FloatArray, direction: FloatArray, slack: float) -> FloatArray:
    """The last row of the ball, which is convex, on the way from its centre to another row."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        inside = balls.distance(shares, np.maximum((1 - middle) * shares + middle * direction, 1e-300)) <= slack
        low, high = (middle, high) if inside else (low, middle)
    return (1 - low) * shares + low * direction


@pytest.mark.parametrize("seed", range(30))
def test_the_least_mean_lies_between_a_dual_bound_and_a_row_in_the_ball(seed: int) -> None:
    generator = np.random.default_rng(seed)
    width = int(generator.integers(2, 6))
    shares = generator.dirichlet(np.ones(width))
    shares[0] *= seed % 3 > 0  # no share at all in every third row
    shares /= shares.sum()
    distances = generator.integers(0, 4, width).astype(np.float64) if seed % 2 else generator.uniform(0, 10, width)
    slack = 10 ** generator.uniform(-2, 0.3)
    mean, _ = least_mean_of(shares, distances, slack)
    low, row = balls.least_mean(distances, shares, slack)
    assert row @ distances - low < 1e-6
    assert low - 1e-9 <= mean <= row @ distances + 1e-9


def test_the_least_mean_of_equal_distances_moves_mass_to_the_free_value() -> None:
    mean, row = least_mean_of(np.array([0.3, 0.7]), np.array([5.0, 5.0]), slack=0.4)
    assert mean == pytest.approx(5 * math.exp(-0.4))
    assert row == pytest.approx(math.exp(-0.4) * np.array([0.3, 0.7]))


def test_the_least_mean_of_a_coin_is_the_end_of_its_interval() -> None:
    # KL(1/2 || m) is log 2 where m (1 - m) = 1/16; the free value is that of the first side.
    mean, row = least_mean_of(np.array([0.5, 0.5]), np.array([0.0, 1.0]), slack=math.log(2))
    assert mean == pytest.approx((1 - math.sqrt(3) / 2) / 2, abs=1e-8)
    assert row.sum() == pytest.approx(1)


def test_without_a_limit_the_least_mean_is_that_of_the_free_value() -> None:
    mean, row = least_mean_of(np.array([0.5, 0.5]), np.array([3.0, 4.0]), slack=math.inf)
    assert mean == 0
    assert not row.any()


@given(balls_with_distances())
def test_a_value_beyond_the_free_one_counts_as_the_free_one(ball: tuple[FloatArray, FloatArray, float]) -> None:
    shares, distances, slack = ball
    rows = one_row(shares)
    cut = least_mean(rows, 0, distances - 1.0, 0.0, -1.0, slack)
    assert cut == least_mean(rows, 0, np.maximum(distances - 1.0, 0.0), 0.0, -1.0, slack)


@given(balls_with_distances())
def test_least_means_from_above_and_from_below_mirror_each_other(ball: tuple[FloatArray, FloatArray, float]) -> None:
    shares, distances, slack = ball
    rows = one_row(shares)
    above = least_mean(rows, 0, 60.0 - distances, 60.0, 1.0, slack)
    assert above == pytest.approx(least_mean(rows, 0, distances, 0.0, -1.0, slack), rel=1e-6, abs=1e-6)


@given(balls_with_distances())
def test_the_derivative_by_the_slack_is_that_of_differences(ball: tuple[FloatArray, FloatArray, float]) -> None:
    shares, distances, slack = ball
    rows, step = one_row(shares), 1e-4 * slack
    below, above = (least_mean(rows, 0, distances, 0.0, -1.0, slack + change)[0] for change in (-step, step))
    _, weight, _ = least_mean(rows, 0, distances, 0.0, -1.0, slack)
    assert weight == pytest.approx((below - above) / (2 * step), rel=1e-3, abs=1e-5 / slack)


# -------------------------------------------------------------------------------------- bounds of paths, in closed form


def certain_step(n: int) -> tuple[IntervalModel, float]:
    """One action from the initial state, which led to the goal in all of n draws; and the least probability of that."""
    mdp = TabularMdp.from_rows({"s": {"go": {"g": 1.0}}, "g": {}}, "s")
    model = model_of(drawn_counts(mdp, [0], n, seed=0))
    return model, math.exp(-model.rows.slack[0])


def test_a_step_that_never_failed_has_closed_bounds() -> None:
    model, least = certain_step(50)
    upper, lower = upper_path(model, 1), lower_path(model, 1)
    # Otherwise the step leads to a state never seen, which resets: U = 1 + (1 - p) (1 + U).
    assert upper.steps == pytest.approx((2 - least) / least, rel=1e-5)
    assert upper.steps >= (2 - least) / least - 1e-9
    assert lower.steps == pytest.approx(1, rel=1e-5)
    assert lower.steps <= 1
    assert upper.proven
    assert lower.proven


def test_a_state_never_seen_has_a_closed_bound() -> None:
    mdp = TabularMdp.from_rows({"s": {"stay": {"s": 1.0}}}, "s")
    model = model_of(drawn_counts(mdp, [0], 200, seed=0))
    unseen = 1 - math.exp(-model.rows.slack[0])  # W = 1 + (1 - unseen) W
    assert lower_path(model, model.unseen).steps == pytest.approx(1 / unseen, rel=1e-4)
    assert lower_path(model, model.unseen).steps <= 1 / unseen


def test_no_frequency_leads_to_a_state_never_seen() -> None:
    model, _ = certain_step(50)
    assert empirical_path(model, model.unseen).steps == math.inf
    assert upper_path(model, model.unseen).proven is False


def test_what_was_drawn_too_little_proves_nothing() -> None:
    model, _ = certain_step(1)
    upper, lower = upper_path(model, 1), lower_path(model, 1)
    assert (upper.steps, upper.proven) == (math.inf, False)
    assert lower.steps == pytest.approx(1, rel=1e-5)
    assert regret_path(model, upper, lower).steps == math.inf


def test_a_goal_that_no_policy_reaches_has_no_upper_bound() -> None:
    mdp = TabularMdp.from_rows({"s": {"go": {"t": 1.0}}, "t": {"go": {"g": 1.0}}, "g": {}}, "s")
    model = model_of(drawn_counts(mdp, [0, 1], 10**6, seed=0))
    restricted = upper_path(model, 2, n_allowed=1)
    assert (restricted.steps, restricted.proven) == (math.inf, False)
    assert upper_path(model, 2, n_allowed=2).steps == pytest.approx(2, rel=1e-3)


def test_a_terminal_initial_state_reaches_nothing() -> None:
    mdp = TabularMdp.from_rows({"s": {}, "g": {}}, "s")
    model = model_of(drawn_counts(mdp, [0], 10, seed=0))
    assert lower_path(model, model.unseen).steps == pytest.approx(model.limit, rel=1e-5)
    assert upper_path(model, 0).steps == 0
    assert regret_path(model, upper_path(model, 0), lower_path(model, 0)).steps == 0


def test_the_initial_state_is_no_step_away() -> None:
    model, _ = certain_step(50)
    assert upper_path(model, 0).steps == lower_path(model, 0).steps == empirical_path(model, 0).steps == 0


def test_a_policy_to_follow_is_followed_or_reset() -> None:
    mdp = TabularMdp.from_rows(
        {"s": {"sure": {"t": 1.0}, "bet": {"g": 0.4, "s": 0.6}}, "t": {"go": {"g": 1.0}}, "g": {}}, "s"
    )
    model = model_of(drawn_counts(mdp, [0, 1], 10**6, seed=0))
    assert upper_path(model, 2).policy.tolist() == [0, 2]
    bet = GoalValues(2, np.zeros(3), np.array([1, RESET_PAIR]), proven=False)
    followed = upper_path(model, 2, follow=bet)
    assert followed.policy.tolist() == [1, RESET_PAIR]
    assert followed.steps == pytest.approx(2.5, rel=0.02)


# ---------------------------------------------------------------------------------------- bounds against the true model


def goals_of(model: IntervalModel) -> range:
    return range(len(model.numbers))


def best_values(mdp: TabularMdp, known: Sequence[int], goal: int) -> FloatArray:
    """V*_K from every state, by starting in each of them; infinite where the goal is out of reach."""
    restricted = mdp.restricted_to(known)
    values = np.full(mdp.n_states, math.inf)
    for policy in all_policies(restricted, known):
        values = np.minimum(values, policy_steps(restricted, policy, goal))
    return values


def all_policies(mdp: TabularMdp, known: Sequence[int]) -> list[IntArray]:
    """Every policy that plays in the known states, as pairs or -1, [S] each."""
    options = [
        range(mdp.state_pairs[state], mdp.state_pairs[state + 1]) if state in known else ()
        for state in range(mdp.n_states)
    ]
    return [np.array(choice) for choice in itertools.product(*((-1, *pairs) for pairs in options))]


def situations() -> list[tuple[int, str, tuple[int, ...]]]:
    known = [(0,), (0, 2), (0, 1, 2), (0, 4, 1, 3)]
    return [(seed, kind, known[seed % 4]) for seed in range(24) for kind in ("few", "drawn", "many")]


def counts_for(mdp: TabularMdp, seed: int, kind: str, known: tuple[int, ...]) -> Counts:
    if kind == "many":
        return expected_counts(mdp, known, 10**5)
    return drawn_counts(mdp, known, 40 if kind == "few" else 1000, seed)


@pytest.mark.parametrize(("seed", "kind", "known"), situations())
def test_bounds_hold_for_every_model_of_the_region(seed: int, kind: str, known: tuple[int, ...]) -> None:
    mdp = random_model(seed)
    counts = counts_for(mdp, seed, kind, known)
    assert is_in_region(mdp, counts, confidence_region(counts, 0.1))
    model = model_of(counts)
    for goal in goals_of(model):
        number = int(model.numbers[goal])
        best = best_values(mdp, known, number)[model.numbers]
        upper, lower = upper_path(model, goal), lower_path(model, goal)
        assert np.all(lower.values <= best)
        taken = policy_steps(mdp, policy_on(mdp, model, upper.policy), number)[model.numbers]
        assert not upper.proven or np.all(taken <= upper.values)
        regret = regret_path(model, upper, lower)
        assert not upper.proven or np.all(taken - best <= regret.values + 1e-9)
        assert not upper.proven or taken[0] - best[0] <= regret.steps + 1e-9


@pytest.mark.parametrize(("seed", "kind", "known"), situations())
def test_bounds_hold_for_restricted_and_for_given_policies(seed: int, kind: str, known: tuple[int, ...]) -> None:
    mdp = random_model(seed)
    model = model_of(counts_for(mdp, seed, kind, known))
    for goal in goals_of(model):
        number = int(model.numbers[goal])
        for n_allowed in range(len(known) + 1):
            restricted = upper_path(model, goal, n_allowed=n_allowed)
            taken = policy_steps(mdp, policy_on(mdp, model, restricted.policy), number)[model.numbers]
            assert np.all(restricted.policy[n_allowed:] == RESET_PAIR)
            assert not restricted.proven or np.all(taken <= restricted.values)
        estimate = empirical_path(model, goal)
        followed = upper_path(model, goal, follow=estimate)
        assert np.all((followed.policy == estimate.policy) | (followed.policy == RESET_PAIR))
        taken = policy_steps(mdp, policy_on(mdp, model, followed.policy), number)[model.numbers]
        assert not followed.proven or np.all(taken <= followed.values)


def greatest_mean(model: IntervalModel, pair: int, values: FloatArray, reset: float) -> float:
    """Where a successor never seen may have the greatest of the values, or that of a state that resets."""
    free = max(float(values.max()), reset)
    return free - least_mean(model.rows, pair, values, free, 1.0, model.rows.slack[pair])[0]


@pytest.mark.parametrize(("seed", "kind", "known"), situations())
def test_vectors_satisfy_the_inequalities_that_prove_them(seed: int, kind: str, known: tuple[int, ...]) -> None:
    model = replace(model_of(counts_for(random_model(seed), seed, kind, known)), counts=None)  # with these balls only
    pairs = model.rows.state_pairs
    for goal in goals_of(model):
        upper, lower = upper_path(model, goal), lower_path(model, goal)
        regret = regret_path(model, upper, lower)
        assert regret.steps == min(regret.values[0], upper.steps - lower.steps)
        resets = 1 + upper.values[0], 1 + lower.values[0]
        for state in (state for state in range(model.n_known) if state != goal):
            optimistic = {
                pair: 1 + least_mean(model.rows, pair, lower.values, 0.0, -1.0, model.rows.slack[pair])[0]
                for pair in range(pairs[state], pairs[state + 1])
            } | ({RESET_PAIR: resets[1]} if state else {})
            assert lower.values[state] <= min(optimistic.values()) + 1e-11
            if upper.proven:
                pair = int(upper.policy[state])
                rivals = [value for rival, value in optimistic.items() if rival != pair]
                assert regret.local_regret[state] == pytest.approx(
                    max(upper.values[state] - min(rivals, default=math.inf), 0)
                )
                robust = resets[0] if pair == RESET_PAIR else 1 + greatest_mean(model, pair, upper.values, resets[0])
                assert upper.values[state] >= robust - 1e-11
                carried = regret.values[0] if pair == RESET_PAIR else greatest_mean(model, pair, regret.values, 0)
                assert regret.values[state] >= max(carried, regret.local_regret[state]) - 1e-11
        assert upper.values[goal] == lower.values[goal] == 0 or not upper.proven
        for other in (other for other in model.frontier if other != goal):
            assert lower.values[other] <= resets[1]
            assert upper.values[other] >= resets[0]


def test_the_situations_above_prove_something() -> None:
    proven = {"few": 0, "drawn": 0, "many": 0}
    for seed, kind, known in situations():
        model = model_of(counts_for(random_model(seed), seed, kind, known))
        proven[kind] += sum(upper_path(model, goal).proven for goal in goals_of(model) if goal)
    assert proven["few"] >= 40
    assert proven["many"] >= 80


@pytest.mark.parametrize("seed", range(12))
def test_bounds_close_in_on_the_optimum(seed: int) -> None:
    mdp, known = random_model(seed), (0, 1, 2)
    counts = expected_counts(mdp, known, 1000)
    large = structs.replace(counts, counts=counts.counts * 10**8)
    scaled_mdp = from_counts(mdp, counts)
    model = model_of(large)
    for goal in goals_of(model):
        number = int(model.numbers[goal])
        best = optimal_steps(scaled_mdp, number, known)
        if best > model.limit / 2:
            assert lower_path(model, goal).steps > min(best, model.limit) * 0.99
            continue
        upper, lower = upper_path(model, goal), lower_path(model, goal)
        assert upper.steps == pytest.approx(best, rel=2e-3)
        assert lower.steps == pytest.approx(best, rel=2e-3)
        assert regret_path(model, upper, lower).steps <= 4e-3 * best
    assert lower_path(model, model.unseen).steps == pytest.approx(model.limit, rel=1e-5)


def from_counts(mdp: TabularMdp, counts: Counts) -> TabularMdp:
    """The model whose rows are the frequencies of the known states; the others only reset."""
    rows: dict[int, dict[int, dict[int, float]]] = {state: {} for state in range(mdp.n_states)}
    for place, state in enumerate(counts.states.tolist()):
        for action, pair in enumerate(range(counts.state_pairs[place], counts.state_pairs[place + 1])):
            entries = slice(counts.row_offsets[pair], counts.row_offsets[pair + 1])
            frequencies = counts.counts[entries] / counts.visits[pair]
            rows[state][action] = dict(zip(counts.successors[entries].tolist(), frequencies.tolist(), strict=True))
    return TabularMdp.from_rows(rows, 0)


# ----------------------------------------------------------------- bounds against optimisation over models and policies


def extreme_value(model: IntervalModel, goal: int, policy: Sequence[int], worst: bool) -> float:
    """The greatest or least value of a policy over the region, from the initial state; infinite if it is not proper.

    Nature improves its rows until no value changes, each row by a general optimiser.
    """
    values = chain_values(model, goal, first_chain(model, goal, policy, worst))
    for _ in range(100):
        if values is None:
            return math.inf
        before = values
        values = chain_values(model, goal, extreme_chain(model, goal, policy, before, worst))
        if values is not None and np.abs(values - before).max() < 1e-6:
            return float(values[0])
    raise AssertionError("nature did not come to an end")


def chain_values(model: IntervalModel, goal: int, chain: FloatArray) -> FloatArray | None:
    """Expected steps from every position and from states never seen, which reset too; None if some are infinite."""
    n = len(model.numbers)
    full = np.zeros((n + 1, n + 1))
    full[: model.n_known] = chain
    full[model.n_known :, 0] = 1.0
    full[goal] = 0.0
    if np.linalg.matrix_power(full, 2**14).sum() > 1e-3:
        return None
    costs = np.ones(n + 1)
    costs[goal] = 0.0
    return np.asarray(np.linalg.solve(np.eye(n + 1) - full, costs), dtype=np.float64)


def first_chain(model: IntervalModel, goal: int, policy: Sequence[int], worst: bool) -> FloatArray:
    """The shares for a greatest value; for a least one, everything leads to the goal."""
    chain = np.zeros((model.n_known, len(model.numbers) + 1))
    for state, pair in enumerate(policy):
        if pair == RESET_PAIR:
            chain[state, 0] = 1.0
        elif worst:
            entries = slice(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
            chain[state, model.rows.successors[entries]] = model.rows.shares[entries]
        else:
            chain[state, goal] = 1.0
    return chain


def extreme_chain(
    model: IntervalModel, goal: int, policy: Sequence[int], values: FloatArray, worst: bool
) -> FloatArray:
    """The rows of the region with the greatest or least mean of these values, states never seen last, [n, n + 1]."""
    chain = np.zeros((model.n_known, len(values)))
    free = int(np.argmax(values)) if worst else goal
    for state, pair in enumerate(policy):
        if pair == RESET_PAIR:
            chain[state, 0] = 1.0
            continue
        entries = slice(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
        successors = model.rows.successors[entries]
        distances = np.abs(values[successors] - values[free])
        _, row = balls.least_mean(distances, model.rows.shares[entries], float(model.rows.slack[pair]))
        chain[state, successors] = row
        chain[state, free] += 1 - row.sum()
    return chain


@pytest.mark.parametrize("visits", [30, 300])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_the_extremes_over_policies_and_models(seed: int, visits: int) -> None:
    mdp = random_model(seed, n_states=4)
    model = replace(model_of(expected_counts(mdp, (0, 1), visits), limit=1000.0), counts=None)  # with these balls only
    pairs = model.rows.state_pairs
    policies = list(itertools.product(range(pairs[0], pairs[1]), (RESET_PAIR, *range(pairs[1], pairs[2]))))
    for goal in range(1, len(model.numbers)):
        greatest = [extreme_value(model, goal, policy, worst=True) for policy in policies]
        least = [extreme_value(model, goal, policy, worst=False) for policy in policies]
        upper, lower = upper_path(model, goal), lower_path(model, goal)
        assert lower.steps == pytest.approx(min(least), rel=1e-4)
        assert upper.proven == (min(greatest) < model.limit)
        assert not upper.proven or upper.steps == pytest.approx(min(greatest), rel=1e-4)


def test_kernels_are_compiled_for_one_type_of_rows_whatever_is_known_of_them() -> None:
    """Half of what a user waits for on first use would be a second type, for a read-only array among the rows."""
    counts = expected_counts(random_model(1), (0, 1, 2), 50)
    n_pairs = len(counts.visits)
    lengths = np.diff(counts.row_offsets)
    outcomes = np.where(counts.entry_pairs == 0, np.arange(lengths.sum()), UNTIED)
    names, nothing = Labels(("all", outcome) for outcome in range(lengths[0])), np.zeros(lengths[0], dtype=np.int64)
    ties = Ties(names, outcomes, np.zeros((0, 3), dtype=np.int64), nothing, nothing[:0])
    regions = [
        confidence_region(counts, 0.1),
        region_given(counts, 0.1, Assumed({"min-probability": np.full(n_pairs, 0.01)})),
        region_given(counts, 0.1, Assumed({}, ties)),
    ]
    parts = [(counts, region) for region in regions] + [part_of(region, counts, counts.states) for region in regions]
    type_of: Any = numba.typeof
    assert len({type_of(interval_model(rows, region, 100.0).rows) for rows, region in parts}) == 1


# ------------------------------------------------------------------------------- balls for one goal, and certain ways


@pytest.mark.parametrize("seed", range(6))
def test_balls_for_one_goal_only_sharpen_and_hold_the_frequencies(seed: int) -> None:
    counts = drawn_counts(random_model(seed), (0, 1, 2), 300, seed)
    model = model_of(counts)
    plain = replace(model, counts=None)
    for goal in range(1, len(model.numbers)):
        for sharp, central in (
            (-upper_path(model, goal).steps, -upper_path(plain, goal).steps),
            (lower_path(model, goal).steps, lower_path(plain, goal).steps),
        ):
            assert sharp >= central - 1e-3 * abs(central)
        estimate = empirical_path(model, goal).steps
        assert lower_path(model, goal).steps <= estimate <= upper_path(model, goal).steps


def test_a_certain_way_is_bounded_by_the_worst_split_of_the_budget() -> None:
    # U = y_m - y_i with y_0 = 1 and y_{i + 1} = (1 + y_i) / p_i, where the sum of k log(1 / p) is at most the budget.
    repeats, budget = np.array([40.0, 25.0, 60.0, 30.0]), 4.0
    bounds = bounds_along(repeats, budget)
    generator = np.random.default_rng(0)
    largest = np.zeros(4)
    for _ in range(4000):
        split = generator.dirichlet(np.full(4, 0.3)) * budget / repeats
        reached = [1.0]
        for local_regret in split:
            reached.append((1 + reached[-1]) * math.exp(local_regret))
        largest = np.maximum(largest, reached[-1] - np.array(reached[:-1]))
    assert (largest <= bounds).all()
    assert largest[0] == pytest.approx(bounds[0], rel=0.02)
    assert (largest >= 0.9 * bounds).all()
    assert bounds[0] == pytest.approx(4 + 5 * math.expm1(budget / 30), rel=1e-6)  # all of it in the last pair


def test_a_certain_way_needs_pairs_of_one_successor_from_start_to_goal() -> None:
    mdp = TabularMdp.from_rows(
        {"s": {"go": {"t": 1.0}}, "t": {"on": {"u": 1.0}}, "u": {"on": {"v": 0.5, "s": 0.5}}, "v": {}}, "s"
    )
    model = model_of(drawn_counts(mdp, [0, 1, 2], 200, seed=0))
    positions = {number: position for position, number in enumerate(model.numbers.tolist())}
    ways = [certain_way(model.rows, positions[goal], empirical_path(model, positions[goal]).policy) for goal in (2, 3)]
    assert [way.tolist() for way in ways] == [[0, 1], []]
    path = upper_path(model, positions[2])
    assert path.proven
    # The surprise of the other pair came before it would have joined those of the second budget.
    left = [budget.nats / (200 - budget.after) for budget in model.shared_budgets]
    assert min(left) == left[1]
    assert path.steps == pytest.approx(2 + 3 * math.expm1(left[1]), rel=1e-6)
    assert upper_path(model, positions[2], n_allowed=1).steps > path.steps


def iterated_values(model: IntervalModel, goal: int, n_allowed: int) -> FloatArray:
    """The steps to a goal if frequencies were probabilities, by plain value iteration, [n + others]."""
    rows, values = model.rows, np.zeros(len(model.numbers))
    for _ in range(4000):
        backups = np.array([
            rows.frequencies[first:end] @ values[rows.successors[first:end]] + 1.0 if first < end else math.inf
            for first, end in itertools.pairwise(rows.row_offsets.tolist())
        ])  # fmt: skip
        before, values = values, np.full(len(values), 1.0 + values[0])
        for state in range(n_allowed):
            pairs = backups[rows.state_pairs[state] : rows.state_pairs[state + 1]]
            values[state] = min([*pairs.tolist(), values[-1] if state or not len(pairs) else math.inf])
        values = np.minimum(values, 1e6)
        values[goal] = 0.0
        if np.array_equal(values, before):
            break
    return values


@pytest.mark.parametrize(("seed", "kind", "known"), situations()[::5])
def test_estimates_are_those_of_plain_value_iteration(seed: int, kind: str, known: tuple[int, ...]) -> None:
    model = model_of(counts_for(random_model(seed), seed, kind, known))
    for goal, n_allowed in itertools.product(goals_of(model), range(1, len(known) + 1)):
        estimate = empirical_path(model, goal, n_allowed)
        values = iterated_values(model, goal, n_allowed)
        if np.isfinite(estimate.steps):
            assert np.allclose(estimate.values, values, rtol=1e-4)
        else:
            assert values[0] > 1000


@pytest.mark.parametrize("seed", range(4))
def test_estimates_where_a_state_has_many_actions_are_the_same(seed: int) -> None:
    generator = np.random.default_rng(seed)
    hub = {}
    for action in range(80):  # most lead to states that reset, and a few to those near the goals
        successors = generator.choice(60, size=2, replace=False)
        hub[action] = dict(zip(successors.tolist(), (0.7, 0.3), strict=True))
    others = {state: {0: {(state + 1) % 60: 0.8, state: 0.2}} for state in range(1, 60)}
    model = model_of(expected_counts(TabularMdp.from_rows({0: hub, **others}, 0), [0, 7, 8, 30], 50))
    assert model.n_pairs == 83
    for goal in range(1, len(model.numbers)):
        estimate, values = empirical_path(model, goal), iterated_values(model, goal, model.n_known)
        assert np.allclose(estimate.values, values, rtol=1e-4) if np.isfinite(estimate.steps) else values[0] > 1000
        if goal in model.frontier:
            assert model.frontier_steps[goal - model.n_known] == estimate.steps


@pytest.mark.parametrize(("seed", "kind", "known"), situations())
def test_no_upper_bound_falls_below_what_is_said_of_all(seed: int, kind: str, known: tuple[int, ...]) -> None:
    model = model_of(counts_for(random_model(seed), seed, kind, known))
    for goal in goals_of(model):
        assert upper_path(model, goal).steps >= model.least_upper[goal] * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_regret_of_states_that_a_policy_does_not_meet_is_the_greatest_doubt(seed: int) -> None:
    """And where it leads, the regret is a fixed point of its equation."""
    model = model_of(drawn_counts(random_model(seed), (0, 1, 2), 300, seed), limit=200.0)
    for goal in range(1, len(model.numbers)):
        upper = upper_path(model, goal)
        regret = regret_path(model, upper, lower_path(model, goal))
        if not upper.proven:
            continue
        met, greatest = states_met(model, upper), regret.local_regret.max()
        met[goal : goal + 1] = False
        for state in np.flatnonzero(~met):
            assert regret.values[state] == (0.0 if state == goal else greatest)
        rows, values = model.rows_for(goal, 1.0), regret.values
        for state in np.flatnonzero(met):
            pair = upper.policy[state]
            if pair == RESET_PAIR:
                ahead = values[0]
            else:
                entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
                distances = greatest - values[rows.successors[entries]]
                ahead = greatest - balls.least_mean(distances, rows.shares[entries], float(rows.slack[pair]))[0]
            assert values[state] == pytest.approx(max(regret.local_regret[state], ahead), abs=1e-4 * (1 + greatest))


@pytest.mark.parametrize(
    ("counts", "floor", "allowed"),
    [
        ((10, 30, 60), 0.25, (0.25, 0.25, 0.5)),  # 30 of 90 that are left have 0.25 too
        ((1, 49, 50), 0.3, (0.3, 0.35 * 0.98989899, 0.35 * 1.01010101)),
        ((1, 9, 90), 0.3, (0.3, 0.3, 0.4)),  # the second is below it only once the first is raised to it
        ((20, 30, 50), 0.2, (0.2, 0.3, 0.5)),
        ((20, 30, 50), 0.4, (0.2, 0.3, 0.5)),  # no row has three outcomes with 0.4 each: what is assumed is false
    ],
)
def test_frequencies_are_those_of_a_row_that_is_possible(
    counts: tuple[int, ...], floor: float, allowed: tuple[float, ...]
) -> None:
    mdp = TabularMdp.from_rows({0: {"go": {1: 0.2, 2: 0.3, 3: 0.5}}, 1: {}, 2: {}, 3: {}}, 0)
    rows = structs.replace(drawn_counts(mdp, [0], 100, 0), counts=np.array(counts))
    given = region_given(rows, 0.1, Assumed({"min-probability": np.array([floor])}))
    assert interval_model(rows, given, 100.0).rows.frequencies == pytest.approx(np.array(allowed), abs=1e-6)
