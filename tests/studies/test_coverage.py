"""The study of the guarantee: its models, its judgement of forged answers, its statistics, its repeatability."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from axplore.assumptions import Assumptions
from axplore.domains import confusing_chain
from axplore.errors import InvalidInputError
from axplore.explorers import certified
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.proofs.evidence import Evidence
from axplore.records.counts import Counts
from axplore.records.run import StopReason
from axplore.records.vectors import Vector
from axplore.statistics.confidence import ConfidenceRegion, confidence_region
from axplore.statistics.summaries import proportion_interval
from axplore.target import Objective, Target
from axplore.truth import controllable_states, optimal_steps
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies import coverage_with_assumptions, coverage_with_workers, promises
from axplore_studies.coverage import (
    DELTAS,
    OBJECTIVES,
    STUDY,
    Conditions,
    CoverageRecord,
    CoverageTrial,
    coverage_table,
    run_trial,
)
from axplore_studies.coverage_models import KINDS, CoverageCase, case
from axplore_studies.loop import read_records, run_study
from axplore_studies.promises import RegionWatch, Violation, violations_of
from edited import edited

# ------------------------------------------------------------------------------------------------------------- models

SEEDS = range(40)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_depends_on_its_kind_and_seed_alone(kind: str) -> None:
    first, again, other = case(kind, 3), case(kind, 3), case(kind, 4)
    assert first.radius == again.radius
    assert np.array_equal(first.mdp.probabilities, again.mdp.probabilities)
    assert not np.array_equal(first.mdp.probabilities, other.mdp.probabilities) or first.radius != other.radius


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_small_and_often_have_something_to_find(kind: str) -> None:
    cases = [case(kind, seed) for seed in SEEDS]
    assert all(3 <= given.mdp.n_states <= 15 and 1 <= given.radius <= 4.6 for given in cases)
    assert sum(len(controllable_states(given.mdp, given.radius).states) > 1 for given in cases) >= len(cases) // 2


def test_near_the_boundary_a_state_joins_within_a_tenth_of_the_radius() -> None:
    for seed in SEEDS:
        given = case("near-boundary", seed)
        radii = controllable_states(given.mdp, given.radius + 0.2).admission_radii.values()
        assert min(abs(radius - given.radius) for radius in radii) <= 0.1


def test_on_the_boundary_a_state_takes_exactly_the_radius() -> None:
    for seed in SEEDS:
        given = case("on-boundary", seed)
        assert optimal_steps(given.mdp, 1, [0]) == pytest.approx(given.radius, abs=1e-9)
        assert 1 in controllable_states(given.mdp, given.radius).states


def test_on_the_far_boundary_a_state_takes_exactly_half_a_step_more() -> None:
    for seed in SEEDS:
        given = case("on-far-boundary", seed)
        assert optimal_steps(given.mdp, 1, [0]) == pytest.approx(given.radius + 0.5, abs=1e-9)


def test_kinds_are_what_they_are_called() -> None:
    def models(kind: str) -> list[TabularMdp]:
        return [case(kind, seed).mdp for seed in SEEDS]

    assert all((np.diff(mdp.row_offsets) == 1).all() for mdp in models("deterministic"))
    assert all(np.diff(mdp.row_offsets).mean() > mdp.n_states / 2 for mdp in models("wide"))
    assert all(mdp.row(state, 0) == mdp.row(state, 1) for mdp in models("ties") for state in mdp.states)
    assert any(mdp.is_terminal(0) for mdp in models("terminal"))
    assert sum(mdp.is_terminal(state) for mdp in models("terminal") for state in mdp.states) > 2 * len(SEEDS)
    assert max(len(mdp.actions_of(state)) for mdp in models("uneven") for state in mdp.states) == 6
    assert all(mdp.probabilities.min() <= 1 / 20 for mdp in models("rare"))
    stays = [mdp.row(state, 0).get(state, 0.0) for mdp in models("self-loops") for state in mdp.states]
    assert np.mean([stay >= 0.3 for stay in stays]) > 0.5


# ---------------------------------------------------------------------------------------------------- forged answers

CHAIN = CoverageCase(confusing_chain(), 4.5)


def exploration(objective: Objective = Objective.OPTIMAL) -> Exploration:
    explorer = Certified(target=Target(radius=4.5, epsilon=0.4), objective=objective)
    return run(explorer, SimulatedWorld(CHAIN.mdp, 1))


def evidence_of(found: Exploration) -> Evidence:
    assert found.evidence is not None
    return found.evidence


def with_lower(found: Exploration, index: int) -> Exploration:
    evidence = evidence_of(found)
    lower = list(evidence.lower)
    lower[index] = edited(lower[index], lower=Vector.complete(lower[index].lower.whole + 20.0))
    return replace(found, evidence=replace(evidence, lower=tuple(lower)))


def with_upper(found: Exploration) -> Exploration:
    evidence = evidence_of(found)
    regrets = list(evidence.regrets)
    upper = regrets[2].upper
    regrets[2] = replace(regrets[2], upper=edited(upper, upper=Vector.complete(upper.upper.whole * 0.5)))
    return replace(found, evidence=replace(evidence, regrets=tuple(regrets)))


def with_reachable(found: Exploration) -> Exploration:
    evidence = evidence_of(found)
    reachable = list(evidence.reachable)
    reachable[3] = edited(reachable[3], upper=Vector.complete(reachable[3].upper.whole * 0.5))
    return replace(found, evidence=replace(evidence, reachable=tuple(reachable)))


def with_unseen(found: Exploration) -> Exploration:
    """As if one of the states set aside had never been seen, and all such states were far."""
    evidence = evidence_of(found)
    index = len(found.states)
    forged = replace(
        evidence,
        lower=(*evidence.lower[:index], *evidence.lower[index + 1 :]),
        unseen=edited(evidence.unseen, lower=Vector.complete(np.full(20, 1e6))),
    )
    return replace(found, frontier=found.frontier[1:], evidence=forged)


def with_policy(found: Exploration) -> Exploration:
    """The policy to the end of the chain takes five steps, forward all the way."""
    index = found.index_of("s5")
    policies = list(found.policies)
    policies[index] = np.zeros(len(found.states), dtype=np.int64)
    return replace(found, policies=tuple(policies))


@pytest.mark.parametrize(
    "forge",
    [
        lambda found: with_lower(found, 2),
        lambda found: with_lower(found, len(found.states)),
        with_upper,
        with_reachable,
        with_unseen,
    ],
    ids=["lower, found", "lower, set aside", "upper", "order of admission", "unseen"],
)
def test_a_bound_that_does_not_hold_is_noticed(forge: Callable[[Exploration], Exploration]) -> None:
    found = exploration()
    assert violations_of(found, CHAIN) == []
    assert violations_of(forge(found), CHAIN) == [Violation.BOUND]


def test_a_regret_that_is_said_to_be_too_small_is_noticed() -> None:
    found = exploration()
    evidence = evidence_of(found)
    index = found.index_of("s5")
    regret = evidence.regrets[index]
    forward = Vector.complete(np.minimum(regret.upper.policy.whole, 0))
    upper = Vector.complete(regret.upper.upper.whole + 2.0)
    forged = replace(regret, upper=edited(regret.upper, policy=forward, upper=upper))
    regrets = (*evidence.regrets[:index], forged, *evidence.regrets[index + 1 :])
    assert violations_of(replace(found, evidence=replace(evidence, regrets=regrets)), CHAIN) == [Violation.BOUND]


def test_a_policy_that_misses_its_objective_is_noticed() -> None:
    assert violations_of(with_policy(exploration()), CHAIN) == [Violation.POLICY]


def test_for_the_smaller_promise_a_policy_within_the_radius_is_good_enough() -> None:
    found = exploration(Objective.WITHIN_RADIUS)
    assert violations_of(found, CHAIN) == []
    # Forward all the way takes 5 steps, more than 4.5 + 0.4, but not more than 4.8 + 0.4.
    assert violations_of(with_policy(found), CHAIN) == [Violation.POLICY]
    wider = replace(found, explorer=replace(found.explorer, target=Target(radius=4.8, epsilon=0.4)))  # type: ignore[type-var]
    assert violations_of(with_policy(wider), CHAIN) == []


def test_missing_states_and_states_beyond_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "bounds_hold", lambda *_: True)
    found = exploration()
    n = len(found.states) - 1
    fewer = replace(found, states=found.states[:n], policies=tuple(policy[:n] for policy in found.policies[:n]))
    assert Violation.MISSING in violations_of(fewer, CHAIN)
    assert Violation.BEYOND not in violations_of(fewer, CHAIN)
    one_more = replace(found, states=(*found.states, "s6"), policies=(*found.policies, found.policies[0]))
    assert Violation.BEYOND in violations_of(one_more, CHAIN)


def test_an_answer_cut_short_promises_its_bounds_only() -> None:
    found = replace(with_policy(exploration()), stop=StopReason.STEP_LIMIT)
    assert violations_of(found, CHAIN) == []
    assert violations_of(with_upper(found), CHAIN) == [Violation.BOUND]


def test_a_truth_outside_the_region_is_noticed() -> None:
    explorer = Certified(target=Target(radius=4.5, epsilon=0.8))
    world = SimulatedWorld(confusing_chain(), 0)
    truth = RegionWatch(confusing_chain(), world, 0.1)
    other = RegionWatch(confusing_chain(skip_probability=0.6), world, 0.1)

    run(explorer, world, observers=[truth.look, other.look])
    assert not truth.left
    assert other.left


def test_a_support_that_is_closed_too_soon_is_noticed() -> None:
    rare = TabularMdp.from_rows({0: {"go": {1: 0.999, 2: 0.001}}, 1: {}, 2: {}}, 0)
    for least, left in ((0.001, False), (0.4, True)):
        explorer = Certified(target=Target(radius=2, epsilon=1), assume=Assumptions(min_probability=least))
        world = SimulatedWorld(rare, 0)
        watch = RegionWatch(rare, world, 0.1)
        run(explorer, world, observers=[watch.look], max_steps=200)
        assert watch.left is left


# --------------------------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize(("number", "total"), [(0, 1), (1, 1), (0, 50), (3, 50), (50, 50), (7, 2000), (1999, 2000)])
def test_intervals_are_those_of_clopper_and_pearson(number: int, total: int) -> None:
    exact = binomtest(number, total).proportion_ci(0.95, method="exact")
    assert proportion_interval(number, total) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_without_any_case_the_interval_has_a_closed_form() -> None:
    assert proportion_interval(0, 100) == pytest.approx((0.0, 1 - 0.025 ** (1 / 100)))


@pytest.mark.parametrize(("number", "total"), [(-1, 5), (6, 5), (0, 0)])
def test_what_is_no_proportion_is_refused(number: int, total: int) -> None:
    with pytest.raises(InvalidInputError, match="is not a proportion"):
        proportion_interval(number, total)


def record(kind: str, seed: int, **fields: Any) -> CoverageRecord:
    usual: dict[str, Any] = {
        "objective": "optimal", "delta": 0.1, "epsilon": 0.5, "max_steps": 1000, "radius": 2.0, "states": 5,
        "controllable": 3, "found": 3, "steps": 100, "stop": "PROVEN", "left_region": False, "violations": [],
    }  # fmt: skip
    return CoverageRecord(kind=kind, seed=seed, **(usual | fields))


def test_the_table_counts_promises_broken_by_kind_and_in_all() -> None:
    records = [
        record("sparse", 0),
        record("sparse", 1, violations=["BOUND", "MISSING"], left_region=True, steps=300),
        record("wide", 0, left_region=True),
        record("wide", 1, stop="STEP_LIMIT", steps=1000),
        record("wide", 0, objective="within-radius", violations=["POLICY"]),
    ]
    rows = {(row["objective"], row["kind"]): row for row in coverage_table(records).rows}
    whole = rows["optimal", "all"]
    assert list(rows) == [
        ("optimal", "all"), ("optimal", "sparse"), ("optimal", "wide"), ("within-radius", "all"),
        ("within-radius", "wide"),
    ]  # fmt: skip
    assert (whole["models"], whole["violations"], whole["bound"], whole["missing"], whole["policy"]) == (4, 1, 1, 1, 0)
    assert (whole["violation_rate"], whole["left_region"], whole["violations_inside_region"]) == (0.25, 2, 0)
    assert (whole["given_up"], whole["mean_steps"], whole["most_steps"]) == (1, 375.0, 1000)
    assert (rows["optimal", "sparse"]["violations"], rows["optimal", "wide"]["violations"]) == (1, 0)
    assert rows["within-radius", "all"]["violations_inside_region"] == 1
    assert coverage_table(records).lines[0] == {
        "objective": "optimal", "delta": 0.1, "kind": "all",
        "models": "4", "broken": "1", "95 %": "0.6-80.6 %", "outside": "50.0 %", "given up": "1",
        "steps": "375",
    }  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- trials


def test_a_trial_is_repeatable_and_says_what_it_found() -> None:
    trial = CoverageTrial("optimal", 0.1, "deterministic", 3, epsilon=0.5, max_steps=10_000)
    first = run_trial(trial)
    assert first == run_trial(trial)
    assert first.trial == trial
    assert first.violations == []
    assert first.stop == "PROVEN"
    assert first.found >= first.controllable > 1


def test_the_study_notices_a_region_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_small(rows: Counts, delta: float, *_: Any) -> ConfidenceRegion:
        region = confidence_region(rows, delta)
        return replace(region, slack=0.05 * region.slack, log_levels=None)

    monkeypatch.setattr(certified, "region_given", too_small)
    trials = [
        CoverageTrial("optimal", 0.1, kind, seed, 0.5, 20_000) for kind in ("sparse", "self-loops") for seed in range(6)
    ]
    broken = sum(bool(run_trial(trial).violations) for trial in trials)
    assert binom.sf(broken - 1, len(trials), 0.1) < 1e-3  # far more broken promises than this delta allows


def test_a_trial_that_takes_too_long_is_given_up() -> None:
    given_up = run_trial(CoverageTrial("optimal", 0.1, "sparse", 0, epsilon=0.5, max_steps=100))
    assert given_up.stop == "STEP_LIMIT"
    assert given_up.steps < 1000


@pytest.mark.parametrize("assumed", coverage_with_assumptions.ASSUMED)
def test_what_is_assumed_of_a_model_is_true(assumed: Callable[[TabularMdp], Assumptions]) -> None:
    for seed, kind in enumerate(KINDS):
        mdp = case(kind, seed).mdp
        said = dict(assumed(mdp).declared)
        for state in mdp.states:
            for action in mdp.actions_of(state):
                row = mdp.row(state, action)
                number = {name: value(state, action) if callable(value) else value for name, value in said.items()}
                assert number.get("min-probability", 0.0) <= min(row.values())
                assert number.get("outcomes", len(row)) >= len(row)
                assert number.get("deterministic", len(row) == 1) == (len(row) == 1)


def test_models_with_assumptions_are_explored_alone_and_with_workers_in_turn() -> None:
    trials = coverage_with_assumptions.STUDY.planned(2)
    settings = [(trial.address["kind"], trial.work()) for trial in trials[:2]]
    assumed = coverage_with_assumptions.assumed_of
    for (kind, found), conditions in zip(
        settings, (Conditions(assume=assumed), Conditions(coverage_with_workers.shared, assumed)), strict=True
    ):
        again = run_trial(CoverageTrial("optimal", 0.1, kind, 0, epsilon=0.5, max_steps=2_000_000), conditions)
        assert CoverageRecord(**found) == again
        assert not again.violations


def test_models_are_dealt_to_the_kinds_in_turn() -> None:
    trials = STUDY.planned(13, {"objectives": ["within-radius"], "deltas": [0.5]})
    addresses = [trial.address for trial in trials]
    assert [(one["kind"], one["seed"]) for one in addresses] == [(list(KINDS)[n % 11], n // 11) for n in range(13)]


def test_a_few_trials_give_a_table(tmp_path: Path) -> None:
    settings = {"objectives": ["within-radius"], "deltas": [0.2], "epsilon": 4.0}
    table = run_study(STUDY, tmp_path, number=2, settings=settings)
    assert table.holds
    whole, *kinds = json.loads((tmp_path / "coverage.json").read_text())["rows"]
    assert (whole["kind"], whole["models"], whole["delta"]) == ("all", 2, 0.2)
    assert [row["kind"] for row in kinds] == list(KINDS)[:2]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"objectives": ["best"]}, "no objective named 'best'"),
        ({"deltas": [1.5]}, "delta is 1.5"),
        ({"epsilon": 0.0}, "epsilon is 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        STUDY.planned(1, bad)


# -------------------------------------------------------------------------------------------------- the committed study

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def committed() -> list[CoverageRecord]:
    return [CoverageRecord(**fields) for fields in read_records(RESULTS / "coverage.jsonl")]


def test_the_committed_study_keeps_the_guarantee() -> None:
    rows = [row for row in coverage_table(committed()).rows if row["kind"] == "all"]
    assert {(row["objective"], row["delta"]) for row in rows} == {(o, d) for o in OBJECTIVES for d in DELTAS}
    for row in rows:
        assert row["models"] >= 2000
        assert row["violation_high"] <= row["delta"]
        assert row["left_region_high"] <= row["delta"]
        assert row["violations_inside_region"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_committed_trial_can_be_repeated(kind: str) -> None:
    (kept,) = [r for r in committed() if (r.kind, r.seed, r.objective, r.delta) == (kind, 5, "optimal", 0.1)]
    assert run_trial(kept.trial) == kept


def test_a_bound_by_least_probabilities_is_found_where_frequencies_look_worse_than_it() -> None:
    """One of probability 1/3 came 3 times in 22 draws: 5 steps by frequencies, 3 by its least probability."""
    trial = CoverageTrial("within-radius", 0.1, "on-boundary", 16, 0.5, 20_000)
    record = run_trial(trial, Conditions(coverage_with_workers.shared, coverage_with_assumptions.assumed_of))
    assert (record.stop, record.violations) == (StopReason.PROVEN.name, [])
