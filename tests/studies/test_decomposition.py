"""The oracles of the decomposition prove what they say, in the steps that closed forms and brute force find."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from axplore.domains import combination_lock, confusing_chain
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import interval_model
from axplore.statistics.confidence import confidence_region
from axplore.target import Target
from axplore.types import FloatArray
from axplore_studies import decomposition
from axplore_studies.catalogue import STUDIES
from axplore_studies.decomposition import CASES, JOINT, LIMIT, PARTS, QUOTIENTS, least_of_oracles
from axplore_studies.joint_ball import JointBall
from axplore_studies.loop import records_of
from axplore_studies.lower_bounds import lower_bound
from axplore_studies.lower_bounds.programme import needed_information
from axplore_studies.oracle import FINENESS, INFORMATION, ONE_LEVEL, ONE_LOOK, REGION, REGIONS, Oracle, true_counts

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NATS = needed_information(0.1)

LOCK, LOCK_TARGET = combination_lock(), Target(radius=2.7, epsilon=0.2, delta=0.1)
LOCK_KNOWN = ["s3", "s4", "s2", "s5"]

COIN = TabularMdp.from_rows({"s0": {"go": {"goal": 0.5, "s0": 0.5}}, "goal": {}}, "s0")
WAY = TabularMdp.from_rows({"s0": {"go": {"s1": 1.0}}, "s1": {"go": {"goal": 1.0}}, "goal": {}}, "s0")
WAY_TARGET = Target(radius=2.2, epsilon=0.5, delta=0.1)


def divergence(first: float, second: float) -> float:
    return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))


@pytest.mark.parametrize(("region", "nats"), [(INFORMATION, NATS), (ONE_LOOK, math.log(10))])
def test_one_row_has_its_closed_form(region: str, nats: float) -> None:
    oracle = Oracle(COIN, ["s0", "goal"], Target(radius=2.5, epsilon=0.5, delta=0.1), region)
    found = oracle.best()
    draws = nats / divergence(0.5, 1 / 3)  # the goal leaves where it takes more than three steps
    steps = 1.5 * draws - 1  # every draw, and the RESET after each arrival but the last
    assert steps <= found.steps * (1 + 1e-4) <= FINENESS * steps + 1
    assert 0.99 * steps <= JointBall(oracle, found, nats).best().steps <= 1.03 * steps + 1


def steps_of_way(first: FloatArray, second: FloatArray) -> FloatArray:
    """What the way to the goal takes if these logarithms of 1 / probability are lost on its two rows."""
    return (1 + 2 * np.exp(first)) * np.exp(second) - 1


def least_steps_of_way(nats: float, *, shared: bool) -> float:
    """By brute force: the first row is drawn at least as often as the second, and each draw of that needs a RESET."""
    first, second = np.meshgrid(np.arange(1.0, 60.0, 0.1), np.arange(1.0, 60.0, 0.1))
    parts = np.linspace(0.0, 1.0, 41) if shared else np.ones(1)
    worst = np.max(
        [steps_of_way(nats * part / first, nats * ((1 - part) if shared else 1.0) / second) for part in parts], axis=0
    )
    proven = (worst <= 2.7) & (second <= first)
    return float(np.min((2 * first + second)[proven])) - 1


def test_two_certain_rows_take_what_brute_force_finds_with_a_budget_each_and_with_one_for_both() -> None:
    oracle = Oracle(WAY, ["s0", "s1", "goal"], WAY_TARGET, INFORMATION)
    found = oracle.best()
    each, both = least_steps_of_way(NATS, shared=False), least_steps_of_way(NATS, shared=True)
    assert both < 0.8 * each
    assert found.steps == pytest.approx(each, rel=0.03)
    assert JointBall(oracle, found, NATS).best().steps == pytest.approx(both, rel=0.03)


@pytest.fixture(scope="module")
def of_lock() -> dict[str, Any]:
    return least_of_oracles(LOCK, LOCK_KNOWN, LOCK_TARGET)


def test_less_honest_regions_take_fewer_steps_and_none_takes_less_than_any_algorithm(of_lock: dict[str, Any]) -> None:
    limit = lower_bound(LOCK, 2.7, 0.2, 0.1, seconds=math.inf, rounds=5).steps
    steps = [limit, *(of_lock[part].steps for part in (JOINT, *REGIONS))]
    assert steps == sorted(steps)
    assert limit > 1700


def test_rows_with_one_and_with_six_successors_share_a_budget_no_less_than_any_algorithm_needs() -> None:
    chain, known = confusing_chain(), [f"s{number}" for number in range(6)]
    limit = lower_bound(chain, 4.5, 0.8, 0.1, seconds=math.inf, rounds=40).steps
    oracle = Oracle(chain, known, Target(radius=4.5, epsilon=0.8, delta=0.1), INFORMATION)
    found = oracle.best()
    assert limit < JointBall(oracle, found, NATS).best().steps < 1.03 * limit < 0.6 * found.steps


@pytest.mark.parametrize("region", REGIONS)
def test_the_draws_of_the_oracle_prove_every_claim_and_hardly_fewer_do(region: str, of_lock: dict[str, Any]) -> None:
    oracle, draws = Oracle(LOCK, LOCK_KNOWN, LOCK_TARGET, region), of_lock[region].draws
    assert len(oracle.claims) == 3 + 3 + 3  # s2, s4 and s5 are near; s1, s0 and the unseen are far
    assert all(claim.gain(oracle.model_after(draws)).proven for claim in oracle.claims)
    assert not all(claim.gain(oracle.model_after(0.95 * draws)).proven for claim in oracle.claims)


def test_the_region_is_that_of_the_explorer_where_counts_are_whole_numbers() -> None:
    rows = {"a": {"s1": 0.5, "s0": 0.25, "far": 0.25}, "b": {"s1": 1.0}}
    mdp = TabularMdp.from_rows({"s0": rows, "s1": {"a": {"goal": 0.75, "s0": 0.25}}, "goal": {}, "far": {}}, "s0")
    target = Target(radius=3.0, epsilon=0.5, delta=0.1)
    oracle = Oracle(mdp, ["s0", "s1", "goal"], target, REGION)
    counts = structs.replace(true_counts(mdp, oracle.known), counts=np.array([60, 30, 30, 24, 300, 100]))
    explorer = interval_model(counts, confidence_region(counts, target.delta), target.value_limit)
    found = oracle.model_after(counts.visits.astype(np.float64))
    assert found.rows.slack == pytest.approx(explorer.rows.slack, rel=1e-6)
    for claim in oracle.claims:
        ours, theirs = claim.gain(found), claim.gain(explorer)
        assert ours.proven == theirs.proven
        assert ours.lacking == pytest.approx(theirs.lacking, rel=1e-4)


def test_a_level_for_all_rows_and_the_information_differ_by_their_nats_alone() -> None:
    draws = np.full(Oracle(LOCK, LOCK_KNOWN, LOCK_TARGET).model.n_pairs, 1000.0)
    slack = {region: Oracle(LOCK, LOCK_KNOWN, LOCK_TARGET, region).model_after(draws).rows.slack for region in REGIONS}
    assert slack[ONE_LOOK] / slack[INFORMATION] == pytest.approx(math.log(10) / NATS)
    assert (slack[ONE_LOOK] < slack[ONE_LEVEL]).all()
    assert (slack[ONE_LEVEL] < slack[REGION]).all()


def test_the_quotients_multiply_to_the_steps_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposition, "CASES", {"coin": decomposition.Case(lambda: COIN, 2.5, 0.5)})
    study = STUDIES["decomposition"]
    study.summary(records_of(study.planned(2), tmp_path / "records")).save(tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["runs"] == 2
    assert row["one look"] == pytest.approx(1.5 * math.log(10) / divergence(0.5, 1 / 3) - 1, rel=0.03)
    committed = rows_of(RESULTS)
    assert len(committed) == len(CASES)
    for one in (row, *committed):
        assert list(one) == list(row)
        product = math.prod(one[f"price of {price}"] for price in QUOTIENTS)
        assert product == pytest.approx(one[PARTS[-1]] / one[LIMIT], rel=0.01)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "decomposition.json").read_text(encoding="utf-8"))["rows"]
    return rows


def test_in_the_committed_decomposition_every_price_of_the_region_is_one_or_more() -> None:
    for row in rows_of(RESULTS):
        assert min(row[f"price of {price}"] for price in list(QUOTIENTS)[:-1]) > 0.99


def test_the_page_on_the_explorer_quotes_the_committed_decomposition() -> None:
    page = (RESULTS.parent / "algorithms" / "certified.md").read_text(encoding="utf-8")
    for row in rows_of(RESULTS):
        factors = " | ".join(f"{row[f'price of {price}']:.2f}" for price in QUOTIENTS)
        assert f"| {row['world']} | {row[LIMIT]:,.0f} | {factors} | {row[PARTS[-1]]:,.0f} |" in page
