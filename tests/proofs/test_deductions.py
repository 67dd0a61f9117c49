"""Lower bounds by deductions, against models in which the shared budget is spent in all kinds of ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from axplore.mdp import TabularMdp
from axplore.proofs.bounds import MOST_BUDGET, IntervalModel, empirical_path, lower_path
from axplore.proofs.claims import WORTH_DEDUCTING, ToSetAside, cheapest_draws
from axplore.proofs.deductions import deducted_path, visits_deducted
from axplore.proofs.travel import Travel
from axplore.statistics.confidence import SharedBudget
from axplore.types import FloatArray
from observed import drawn_counts, model_of

SPLITS = 40
"""Random ways to spend a budget, beside those that give all of it to one pair."""

LIMIT = 1e6


def line(length: int) -> TabularMdp:
    """States in a row; `go` leads on, `wait` stays."""
    rows = {state: {"go": {state + 1: 1.0}, "wait": {state: 1.0}} for state in range(length)}
    return TabularMdp.from_rows(rows | {length: {}}, 0)


def made_up(seed: int, *, uncertain: int) -> TabularMdp:
    """A random world of few states, most of whose actions have one outcome."""
    generator = np.random.default_rng(seed)
    n_states, n_actions = 7, 3
    rows: dict[int, dict[int, dict[int, float]]] = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(n_actions):
            near = int(np.clip(state + generator.integers(-2, 3), 0, n_states - 1))
            rows[state][action] = {near: 1.0}
    for place in generator.choice(n_states * n_actions, size=uncertain, replace=False):
        state, action = divmod(int(place), n_actions)
        first, second = generator.choice(n_states, size=2, replace=False)
        share = generator.uniform(0.2, 0.8)
        rows[state][action] = {int(first): share, int(second): 1.0 - share}
    return TabularMdp.from_rows(rows, 0)


def model_for(mdp: TabularMdp, visits: int, seed: int = 0, known: int | None = None) -> IntervalModel:
    n_known = mdp.n_states if known is None else known
    return model_of(drawn_counts(mdp, list(range(n_known)), visits, seed), limit=50.0)


def spent(model: IntervalModel, seed: int) -> Iterator[FloatArray]:
    """Yields log(1/p) of each pair, [P], that are in the region: a budget is spent by one pair alone, and in parts."""
    single = np.flatnonzero(model.with_one_successor(0))
    generator, parts = np.random.default_rng(seed), list(np.eye(len(single)))
    parts += [generator.dirichlet(np.full(len(single), spread)) for spread in np.geomspace(0.05, 5.0, SPLITS)]
    for part in parts:
        exponents = np.zeros(model.n_pairs)
        exponents[single] = part
        exponents *= min(
            budget.nats / max(float((np.maximum(model.visits - budget.after, 0.0) * exponents).sum()), 1e-300)
            for budget in model.shared_budgets
        )
        yield np.minimum(exponents, model.rows.slack)


def fewest_steps(model: IntervalModel, goal: int, exponents: FloatArray) -> float:
    """The fewest steps where certain pairs lead to the goal as often as is said, and others as their balls allow."""
    rows = model.rows_for(goal, -1.0)
    slack = np.where(model.with_one_successor(0), np.maximum(exponents, 1e-300), rows.slack)
    worst = replace(model, rows=rows._replace(slack=slack), counts=None, starts={}, sharp={}, tolerance=1e-11)
    return lower_path(worst, goal).steps


@pytest.mark.parametrize("uncertain", [0, 1, 3])
def test_no_way_to_spend_the_budgets_takes_fewer_steps(uncertain: int) -> None:
    n_found, n_sharper, least = 0, 0, np.inf
    for seed, visits in itertools.product(range(12), (30, 60, 400)):
        model = model_for(made_up(seed, uncertain=uncertain), visits, seed, known=5)
        for goal in range(1, len(model.numbers) + 1):
            found = deducted_path(model, goal, 4.0)
            if found is None or not found.at_least > 0.0:
                continue
            n_found += 1
            n_sharper += found.at_least > lower_path(model, goal).at_least
            worst = min(fewest_steps(model, goal, exponents) for exponents in spent(model, seed))
            assert worst >= found.at_least * (1.0 - 1e-6)
            least = min(least, worst - found.at_least)
    assert n_found >= 100
    assert n_sharper >= 20
    assert least < 0.05  # some bounds are nearly attained


def test_a_line_loses_what_its_first_pair_can_take_off() -> None:
    model = model_for(line(6), 200, known=6)
    budget = model.shared_budgets[0]
    found = deducted_path(model, 6, 0.0)
    assert found is not None
    assert found.values[0] == pytest.approx(6.0, abs=1e-9)
    assert found.deduction == pytest.approx(budget.nats * 5.0 / 199.0, rel=1e-6)  # its successor is five steps away
    by_rows = lower_path(model, 6).at_least
    assert found.at_least > by_rows
    # Row by row, each of the pairs on the way takes off about as much as it has steps before it.
    assert 6.0 - by_rows == pytest.approx(budget.nats * 15.0 / 199.0, rel=0.1)


def test_waiting_for_a_shortcut_is_no_bound() -> None:
    """With few draws of `wait` it may lead on more often than once in the six steps that it could save."""
    model = model_for(line(6), 200, known=6)
    visits = model.visits.copy()
    waits = np.flatnonzero(model.single_successors == model.owners)
    visits[waits] = 1 + int(model.shared_budgets[0].nats * 5.9)
    found = deducted_path(replace(model, visits=visits), 6, 0.0)
    assert found is not None
    assert found.deduction == np.inf
    visits[waits] = 2 + int(model.shared_budgets[0].nats * 6.0)
    found = deducted_path(replace(model, visits=visits), 6, 0.0)
    assert found is not None
    assert found.deduction == pytest.approx(model.shared_budgets[0].nats * 5.0 / 199.0, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_visits_asked_for_prove_the_bound_if_frequencies_stay(seed: int) -> None:
    model, n_asked = model_for(made_up(seed, uncertain=0), 12, seed, known=5), 0
    for goal, steps in itertools.product(range(1, len(model.numbers) + 1), (1.5, 2.5)):
        for visits in visits_deducted(model, goal, steps):
            if np.isfinite(visits).all():
                n_asked += 1
                more = replace(model, visits=np.maximum(model.visits, np.ceil(visits)).astype(np.int64))
                found = deducted_path(more, goal, steps)
                assert found is not None
                assert found.at_least > steps
                # No pair could do with a tenth less.
                fewer = replace(model, visits=np.maximum(2, np.floor(0.9 * visits)).astype(np.int64))
                less = deducted_path(fewer, goal, steps)
                assert less is None or not less.at_least > steps or (0.9 * visits < 3).all()
    assert n_asked >= 5


def test_many_surprises_leave_nothing_to_deduct() -> None:
    model = model_for(line(3), 50, known=3)
    assert model.budgets_to_deduct
    for changed in (
        {"shared_budgets": (SharedBudget(1, MOST_BUDGET + 1.0),)},
        {"shared_budgets": ()},
        {"whole_up_to": 2},
    ):
        assert deducted_path(replace(model, **changed), 3, 1.0) is None


def test_a_later_budget_serves_where_the_first_one_is_spent() -> None:
    model = model_for(made_up(1, uncertain=3), 400, 1, known=5)
    nats = [budget.nats for budget in model.shared_budgets]
    assert nats[0] > nats[1]
    assert [budget.after for budget in model.budgets_to_deduct][:2] == [1, 10]
    without = replace(model, shared_budgets=model.shared_budgets[:1])
    goals = range(1, len(model.numbers))
    both = [(deducted_path(model, goal, 4.0), deducted_path(without, goal, 4.0)) for goal in goals]
    gained = [found.at_least - less.at_least for found, less in both if found is not None and less is not None]
    assert min(gained) >= 0.0
    assert max(gained) > 0.0


@pytest.mark.parametrize("visits", [12, 60])
def test_budgets_that_the_same_pairs_have_joined_give_what_the_best_of_them_gives_alone(visits: int) -> None:
    model = model_for(made_up(1, uncertain=2), visits)
    assert len(model.budgets_to_deduct) > 1
    for goal in range(1, len(model.numbers) + 1):
        alone = [
            deducted_path(replace(model, shared_budgets=(budget,)), goal, 2.0) for budget in model.budgets_to_deduct
        ]
        best = max((path.at_least for path in alone if path is not None), default=-np.inf)
        together = deducted_path(model, goal, 2.0)
        assert (-np.inf if together is None else together.at_least) == best


def test_where_pairs_with_one_successor_take_many_steps_no_deduction_would_take_fewer() -> None:
    n_compared = 0
    for seed in range(6):
        model = model_for(made_up(seed, uncertain=1), 30)
        travel, single = Travel(model), model.with_one_successor(0)
        for goal in range(1, len(model.numbers)):
            claim = ToSetAside(goal, 0.9 * empirical_path(model, goal).steps)
            if not np.isfinite(claim.steps) or claim.is_proven(model):
                continue
            draws = cheapest_draws(claim, model, travel)
            if travel.steps(np.where(single, draws.more, 0.0)) >= WORTH_DEDUCTING * draws.travel:
                for visits in claim.visits_deducted(model, travel, np.inf):
                    n_compared += 1
                    more = np.maximum(np.ceil(visits) - model.visits, 0.0)
                    assert draws.travel <= travel.steps(more) * (1.0 + 1e-9)
    assert n_compared >= 5
