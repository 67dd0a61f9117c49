"""Planning without the system: closed forms, exact optima of true models, bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from altered import altered
from axplore import RESET, Atlas, StopReason, TabularMdp
from axplore.atlas.plans import corollary_holds, read_costs
from axplore.errors import (
    DamagedFileError,
    InvalidCostsError,
    InvalidSettingError,
    StorageError,
    UnknownActionError,
    UnknownStateError,
)
from axplore.graphs.evaluation import policy_pairs, policy_steps
from axplore.graphs.value_iteration import value_iteration

CHAIN = axplore.domain("confusing-chain")


@pytest.fixture(scope="module")
def chain() -> Atlas:
    return axplore.explore(CHAIN, radius=4.5, epsilon=0.4)


@pytest.fixture(scope="module")
def estimated() -> Atlas:
    return axplore.explore(CHAIN, radius=4.5, epsilon=0.8, explorer="disco-experiment")


def true_cost(mdp: TabularMdp, policy: Any, goal: Any, costs: np.ndarray[Any, Any], reset_cost: float) -> float:
    """What a policy costs in the true model, by a linear solve."""
    chosen = {state: policy(state) for state in mdp.states}
    pairs = policy_pairs(mdp, chosen)
    return float(policy_steps(mdp, pairs, goal, costs=costs, reset_costs=reset_cost)[mdp.initial_index])


def best_cost(mdp: TabularMdp, atlas: Atlas, goal: Any, costs: np.ndarray[Any, Any], reset_cost: float) -> float:
    """The least cost of a policy through the states of the atlas, to 1e-9 of the least cost."""
    paths = value_iteration(
        mdp, goal, precision=1e-10 * costs.min(), costs=costs, reset_costs=reset_cost, allowed=atlas.states
    )
    return paths.steps(goal)


def test_costs_of_a_deterministic_chain_add_up() -> None:
    model = TabularMdp.from_rows({0: {"a": {1: 1}}, 1: {"b": {2: 1}}, 2: {}}, 0)
    atlas = axplore.explore(model, radius=2, epsilon=0.5)
    plan = atlas.plan(2, {(0, "a"): 0.25, (1, "b"): 0.5})
    assert plan.estimate == pytest.approx(0.75)
    assert 0.75 in plan
    assert plan.min_cost == 0.25
    assert plan.policy(0) == "a"
    assert plan.policy(2) is RESET


def test_without_costs_a_plan_counts_steps(chain: Atlas) -> None:
    for goal, plan in chain.plans().items():
        bounds = chain.bounds(goal)
        assert plan.lower == pytest.approx(bounds.lower, abs=1e-4)
        assert plan.upper == pytest.approx(bounds.upper, abs=1e-4)
    assert list(chain.plans()) == list(chain.states)
    assert list(chain.plans(["s5", "s1"])) == ["s5", "s1"]


def test_equal_costs_scale_plans(chain: Atlas) -> None:
    whole, tenth = chain.plan("s5"), chain.plan("s5", lambda _state, _action: 0.1, reset_cost=0.1)
    assert tenth.estimate == pytest.approx(whole.estimate / 10)
    assert tenth.lower == pytest.approx(whole.lower / 10, rel=1e-4)
    assert tenth.upper == pytest.approx(whole.upper / 10, rel=1e-4)


def test_a_function_a_table_and_numbers_say_the_same(chain: Atlas) -> None:
    prices = {pair: 0.1 + 0.9 * place / len(chain.pairs) for place, pair in enumerate(chain.pairs)}
    by_table = chain.plan("s4", prices, 0.5)
    assert by_table.lower == chain.plan("s4", lambda state, action: prices[state, action], 0.5).lower
    assert by_table.lower == chain.plan("s4", list(prices.values()), 0.5).lower
    assert by_table.lower != chain.plan("s4").lower


def test_a_cheap_detour_is_taken() -> None:
    # Forward all the way costs 0.5; the skip, which may fail, costs 1 and a RESET. With a larger ε the way forward is
    # known too little for a plan to rely on it.
    chain = axplore.explore(CHAIN, radius=4.5, epsilon=0.1)
    plan = chain.plan("s5", lambda _state, action: 0.1 if action == "forward" else 1.0)
    assert [plan.policy(f"s{number}") for number in range(5)] == ["forward"] * 5
    assert 0.5 in plan
    assert plan.regret <= plan.upper - plan.lower


GRIDS = [
    ({"rows": 3, "columns": 3}, 4.0, 0.5),
    ({"rows": 3, "columns": 4}, 4.5, 1.0),
]


@pytest.mark.parametrize(("parameters", "radius", "epsilon"), GRIDS)
def test_plans_on_grids_are_within_epsilon_by_the_least_cost_of_the_true_optimum(
    parameters: dict[str, Any], radius: float, epsilon: float
) -> None:
    mdp = axplore.domain("slippery-grid", **parameters)
    atlas = axplore.explore(mdp, radius=radius, epsilon=epsilon)
    assert atlas.complete
    generator = np.random.default_rng(7)
    for least in (0.05, 0.2, 0.5, 1.0):
        costs = generator.uniform(least, 1.0, mdp.n_pairs)
        costs[generator.integers(mdp.n_pairs)] = least
        reset_cost = float(generator.uniform(least, 1.0))

        def price(state: Any, action: Any, costs: Any = costs) -> float:
            return float(costs[mdp.pair_of(state, action)])

        for goal, plan in atlas.plans(costs=price, reset_cost=reset_cost).items():
            best = best_cost(mdp, atlas, goal, costs, reset_cost)
            real = true_cost(mdp, plan.policy, goal, costs, reset_cost)
            assert real <= best + epsilon / least
            assert plan.lower <= best + 1e-7
            assert real <= plan.upper + 1e-7
            assert real - best <= plan.regret + 1e-7
            assert math.isfinite(plan.upper)


def test_the_guarantee_says_what_is_proven(chain: Atlas, estimated: Atlas) -> None:
    assert "at least 0.9 it costs at most" in chain.plan("s5").guarantee
    unproven = estimated.plan("s5")
    assert unproven.guarantee == "Nothing is proven of it."
    assert (unproven.lower, unproven.upper, unproven.regret) == (0, math.inf, math.inf)
    assert unproven.estimate == pytest.approx(4, abs=0.5)


def test_the_corollary_is_stated_where_its_condition_holds(estimated: Atlas) -> None:
    theory = altered(estimated, explorer="disco-theory")
    assert "ε/c_min = 1.6 more than the best policy through S_L→" in theory.plan("s5", reset_cost=0.5).guarantee
    assert "too large for the least cost" in theory.plan("s5", reset_cost=0.01).guarantee
    assert altered(theory, stop=StopReason.STEP_LIMIT).plan("s5").guarantee == "Nothing is proven of it."


def test_the_corollary_needs_a_small_epsilon() -> None:
    # η (L + 1 + ε) = ε / (6 (L + ε/3)) must be at most c_min/2.
    assert corollary_holds(4.5, 0.8, 0.0560)
    assert not corollary_holds(4.5, 0.8, 0.0559)
    assert not corollary_holds(4.5, 1.1, 1.0)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("cost", [0, -1, 1.01, math.nan, math.inf])
def test_costs_outside_their_range_are_refused_by_name(chain: Atlas, cost: float) -> None:
    with pytest.raises(InvalidCostsError, match=r"state 's1', action 'skip': the cost is .* above 0 and at most 1"):
        chain.plan("s5", {("s1", "skip"): cost})
    with pytest.raises(InvalidSettingError, match=r"reset_cost is .* above 0 and at most 1"):
        chain.plan("s5", reset_cost=cost)


def test_costs_of_what_does_not_exist_are_refused(chain: Atlas) -> None:
    with pytest.raises(UnknownStateError, match="s9"):
        chain.plan("s5", {("s9", "forward"): 0.5})
    with pytest.raises(UnknownActionError, match="jump"):
        chain.plan("s5", {("s1", "jump"): 0.5})
    with pytest.raises(InvalidCostsError, match="reset_cost"):
        chain.plan("s5", {("s1", RESET): 0.5})
    with pytest.raises(InvalidCostsError, match="a state and an action"):
        chain.plan("s5", {"s1": 0.5})  # type: ignore[dict-item]
    with pytest.raises(InvalidCostsError, match="shape"):
        chain.plan("s5", [0.5, 0.5])
    with pytest.raises(InvalidSettingError, match=r"costs is \['dear', .* it must be an array of numbers"):
        chain.plan("s5", lambda _state, _action: "dear")  # type: ignore[arg-type, return-value]


def test_a_goal_outside_the_atlas_is_refused(chain: Atlas) -> None:
    with pytest.raises(UnknownStateError, match="s9"):
        chain.plan("s9")


# -------------------------------------------------------------------------------------------------------------- files


def test_costs_are_read_from_csv_and_json(chain: Atlas, tmp_path: Path) -> None:
    table, other = tmp_path / "costs.csv", tmp_path / "costs.json"
    table.write_text("state,action,cost\ns0,forward,0.5\ns1,skip,0.25\n,RESET,0.1\n")
    lines = [
        {"state": "s0", "action": "forward", "cost": 0.5},
        {"state": "s1", "action": "skip", "cost": 0.25},
        {"state": "", "action": "RESET", "cost": 0.1},
    ]
    other.write_text(json.dumps(lines))
    expected = ({("s0", "forward"): 0.5, ("s1", "skip"): 0.25}, 0.1)
    assert read_costs(chain, table) == expected
    assert read_costs(chain, other) == expected


def test_labels_of_any_kind_can_be_priced_in_a_file(tmp_path: Path) -> None:
    model = TabularMdp.from_rows({(0, 1): {'say "hi"': {"two\nlines": 1}}, "two\nlines": {}}, (0, 1))
    atlas = axplore.explore(model, radius=1, epsilon=1)
    table, other = tmp_path / "costs.csv", tmp_path / "costs.json"
    table.write_text('state,action,cost\n"[0,1]","say ""hi""",0.5\n')
    other.write_text(json.dumps([{"state": [0, 1], "action": 'say "hi"', "cost": 0.5}]))
    for path in (table, other):
        assert read_costs(atlas, path) == ({((0, 1), 'say "hi"'): 0.5}, 1.0)


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        ("c.csv", "state,action,cost\ns0,forward,dear\n", InvalidCostsError, "entry 1: the cost is 'dear'"),
        ("c.csv", "state,cost\ns0,0.5\n", DamagedFileError, "there is no action"),
        ("c.csv", "state,action,cost\ns9,forward,0.5\n", UnknownStateError, "no state of the atlas named 's9'"),
        ("c.csv", "state,action,cost\ns0,jump,0.5\n", UnknownStateError, "no action of s0 named 'jump'"),
        ("c.csv", "state,action,cost\ns0,forward,1\ns0,forward,1\n", InvalidCostsError, "have a cost already"),
        ("c.csv", "state,action,cost\ns0,RESET,0.5\n", InvalidCostsError, "RESET costs the same everywhere"),
        ("c.json", "{", DamagedFileError, "cannot be read"),
        ("c.json", "{}", DamagedFileError, "a list of objects"),
    ],
)
def test_a_bad_file_of_costs_is_refused(
    chain: Atlas, tmp_path: Path, name: str, text: str, error: type[Exception], words: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=words):
        read_costs(chain, tmp_path / name)


def test_a_missing_file_of_costs_is_refused(chain: Atlas, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_costs(chain, tmp_path / "nothing.csv")
