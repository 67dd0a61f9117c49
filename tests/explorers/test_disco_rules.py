"""Allocations against a plain evaluation of the paper's formulas, written out a second time and by hand."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from functools import partial

import numpy as np
import pytest

from axplore.errors import InvalidSettingError
from axplore.explorers.disco_rules import (
    Spreads,
    exact_allocation,
    maximum_allocation,
    model_accuracy,
    per_pair_allocation,
    theorem_allocation,
)
from axplore.target import Target

CHAIN = Target(radius=4.5, epsilon=0.8, delta=0.1)


def spreads(*within: float, n_known: int = 6, n_actions: int = 2, states_bound: int | None = 12) -> Spreads:
    values = np.array(within)
    return Spreads(values, values, n_known, n_actions, states_bound)


def test_model_accuracy_is_the_gamma_of_the_budget_equation() -> None:
    # 2 · 0.8 / (12 · 6.3 · (4.5 + 0.8/3)) = 1.6 / 360.36
    assert model_accuracy(CHAIN) == pytest.approx(1.6 / 360.36, rel=1e-12)


def exact_by_decimals(spread: str, n_known: int, target: Target, states: int, actions: int) -> int:
    """Eq. (budget), term by term, in fifty digits."""
    getcontext().prec = 50
    radius, epsilon, delta = (Decimal(str(x)) for x in (target.radius, target.epsilon, target.delta))
    gamma = 2 * epsilon / (12 * (radius + 1 + epsilon) * (radius + epsilon / 3))
    x, size = Decimal(spread), n_known + 2
    first_log = (8 * Decimal(1).exp() * x * Decimal(2 * states * actions).sqrt() / (delta.sqrt() * gamma)).ln()
    second_log = (24 * size * states * actions / (delta * gamma)).ln()
    value = 57 * x * x / gamma**2 * first_log**2 + 24 * size / gamma * second_log
    return math.ceil(value)


@pytest.mark.parametrize("spread", ["0.9428090415820634", "0.25", "1.7"])
@pytest.mark.parametrize("target", [CHAIN, Target(radius=1.0, epsilon=0.05, delta=0.01)])
def test_exact_allocation_is_the_budget_equation(spread: str, target: Target) -> None:
    wanted = exact_by_decimals(spread, 6, target, 12, 2)
    found = exact_allocation(spreads(float(spread), 0.1), target)
    assert found == pytest.approx([wanted, wanted], rel=1e-12)


def test_exact_allocation_on_the_chain_has_the_size_the_proofs_lead_to() -> None:
    found = exact_allocation(spreads(2 * math.sqrt(2) / 3), CHAIN)
    assert 3.0e8 < found[0] < 3.7e8


def test_exact_allocation_of_certain_transitions_keeps_the_second_term() -> None:
    gamma = 1.6 / 360.36
    wanted = math.ceil(24 * 8 / gamma * math.log(24 * 8 * 24 / (0.1 * gamma)))
    assert exact_allocation(spreads(0.0, 0.0), CHAIN).tolist() == [wanted, wanted]


def test_exact_allocation_covers_what_the_termination_proof_asks() -> None:
    assert exact_allocation(spreads(0.0), CHAIN)[0] >= math.ceil(4.5 * math.log(3 * 2 * 4.5 * 12 / 0.1))


def test_theorem_allocation_has_its_logarithms_and_its_constant() -> None:
    # L⁴ = 410.0625, log(4.5 · 12 · 2 / (0.8 · 0.1)) = log 1350
    logarithm = math.log(1350)
    wanted = 410.0625 * 0.25 / 0.64 * logarithm**2 + 20.25 * 6 / 0.8 * logarithm
    assert theorem_allocation(spreads(0.5, 0.1), CHAIN).tolist() == [math.ceil(wanted)] * 2
    assert partial(theorem_allocation, alpha=3.0)(spreads(0.5, 0.1), CHAIN)[0] == math.ceil(3 * wanted)


def test_per_pair_allocation_asks_each_pair_for_its_own_spread() -> None:
    # 410.0625 · 0.25 / 0.64 + 20.25 · 6 / 0.8 = 160.18 + 151.875 and 0 + 151.875
    assert per_pair_allocation(spreads(0.5, 0.0), CHAIN).tolist() == [313, 152]


def test_maximum_allocation_asks_every_pair_for_the_largest_spread() -> None:
    assert maximum_allocation(spreads(0.5, 0.0), CHAIN).tolist() == [313, 313]


@pytest.mark.parametrize("allocation", [exact_allocation, theorem_allocation])
def test_theory_without_a_bound_on_the_states_is_refused(allocation: partial[object]) -> None:
    with pytest.raises(InvalidSettingError, match="states_bound is missing"):
        allocation(spreads(0.5, states_bound=None), CHAIN)


@pytest.mark.parametrize("allocation", [per_pair_allocation, maximum_allocation])
def test_experiments_need_no_bound_on_the_states(allocation: partial[object]) -> None:
    allocation(spreads(0.5, states_bound=None), CHAIN)
