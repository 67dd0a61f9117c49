"""A lower bound by the draws of all rows together, against exact answers and models that it has to allow for."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axplore.domains import domain
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import IntervalModel, empirical_path, interval_model, lower_path
from axplore.proofs.row_kernels import RegionRows
from axplore.records.counts import Counts
from axplore.statistics.confidence import confidence_region
from axplore.target import Target
from axplore.types import FloatArray, IntArray
from axplore_studies import joint_lower
from axplore_studies.joint_lower import Stakes, joint_lower_bound, line
from axplore_studies.oracle import Oracle, true_counts

RESULTS = Path(__file__).parents[2] / "docs" / "results"

NATS = 3.0
REPLICATIONS = 2_000
ALLOWED = 268
"""Rejections of a level of 0.1 in as many replications, 200 expected: more come with a probability below 1e-6."""


def model_of(counts: Counts, drawn: IntArray) -> IntervalModel:
    """Counts and region after draws of each entry, [E]."""
    after = Counts(
        counts.order, counts.actions, counts.states, counts.row_offsets, counts.successors, drawn, counts.first_draws
    )
    return interval_model(after, confidence_region(after, 0.1), limit=100.0)


def solved(rows: RegionRows, probabilities: FloatArray, goal: int, n_seen: int) -> tuple[FloatArray, IntArray]:
    """The least expected steps from each known state in a model, [n], and what the best policy plays; -1 is RESET."""
    n_known = len(rows.state_pairs) - 1
    values = np.zeros(n_seen)
    policy = np.zeros(n_known, dtype=np.int64)
    for _ in range(20_000):
        before = values.copy()
        for state in range(n_known):
            if state == goal:
                continue
            options = {-1: 1.0 + values[0]} if state else {}
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
                options[pair] = 1.0 + probabilities[entries] @ values[rows.successors[entries]]
            policy[state] = min(options, key=options.__getitem__)
            values[state] = options[int(policy[state])]
        values[n_known:] = 1.0 + values[0]
        if goal < n_seen:
            values[goal] = 0.0
        if np.abs(values - before).max() < 1e-10:
            break
    return values[:n_known], policy


def visits_of(rows: RegionRows, probabilities: FloatArray, policy: IntArray, goal: int) -> FloatArray:
    """How often each known state is visited before the goal, [n]."""
    n_known = len(policy)
    chain = np.zeros((n_known, n_known))
    for state in range(n_known):
        if state == goal:
            continue
        if policy[state] < 0:
            chain[state, 0] = 1.0
            continue
        for entry in range(rows.row_offsets[policy[state]], rows.row_offsets[policy[state] + 1]):
            successor = int(rows.successors[entry])
            if successor != goal:
                chain[state, successor if successor < n_known else 0] += probabilities[entry]
    start = np.zeros(n_known)
    start[0] = 1.0
    visits: FloatArray = np.linalg.solve(np.eye(n_known) - chain.T, start).astype(np.float64)
    if goal < n_known:
        visits[goal] = 0.0
    return visits


def log_wealth(
    model: IntervalModel, stakes: Stakes, drawn: FloatArray, probabilities: FloatArray, goal: int
) -> tuple[float, float]:
    """What the bets against a model have won, and the steps of its best policy: from the definition alone."""
    rows, values = model.rows, stakes.values
    steps, policy = solved(rows, probabilities, goal, len(model.numbers))
    visits = visits_of(rows, probabilities, policy, goal)
    scale = stakes.scale / max(1.0, float((visits / stakes.visits).max()))
    total = 0.0
    for state, pair in enumerate(policy.tolist()):
        if state == goal or pair < 0 or not stakes.per_draw[pair]:
            continue
        entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        observed = 1.0 + values[rows.successors[entries]] - values[state]
        staked = scale * visits[state] * stakes.per_draw[pair]
        total += float(drawn[entries] @ np.log1p(staked * (observed - probabilities[entries] @ observed)))
    return total, float(steps[0])


def is_inside(rows: RegionRows, probabilities: FloatArray) -> bool:
    """Whether every row of a model is in its ball."""
    for pair in range(len(rows.slack)):
        entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        shares = rows.shares[entries]
        drawn = shares > 0.0
        if (shares[drawn] @ np.log(shares[drawn] / probabilities[entries][drawn])) > rows.slack[pair]:
            return False
    return True


def tilted(rows: RegionRows, values: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A model in which every row leads to small values more often than was seen, by amounts at random, [E]."""
    probabilities = np.empty(len(rows.shares))
    strength = abs(generator.normal()) * 0.1
    for pair in range(len(rows.slack)):
        entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        weights = rows.frequencies[entries] * np.exp(
            -strength * generator.uniform(-0.2, 1.0) * values[rows.successors[entries]]
        )
        probabilities[entries] = weights / weights.sum()
    return probabilities


@pytest.mark.parametrize("seed", range(4))
def test_no_model_that_rows_and_bets_leave_has_a_shorter_way(seed: int) -> None:
    generator = np.random.default_rng(seed)
    mdp = domain("slippery-grid", rows=3, columns=3) if seed % 2 else line(4, 0.7)
    known = [state for state in mdp.states if state not in ((2, 2), 4)]
    truth = Oracle(mdp, known, Target(radius=3.0, epsilon=1.0, delta=0.1)).model.rows
    before = sampled(truth, 150, generator)
    model = model_from(mdp, known, before)
    goal = model.n_known
    gap = 0.25 * empirical_path(model, goal).steps
    stakes = Stakes.towards(model, goal, gap, 1.8 * NATS / gap, np.full(model.n_pairs, 350.0))
    drawn = sampled(truth, 350, generator)
    after = model_from(mdp, known, before + drawn)
    bound = joint_lower_bound(after, goal, stakes, drawn.astype(np.float64), NATS)
    estimate = empirical_path(after, goal).steps
    assert bound > 0.0
    nearest = np.inf
    for _ in range(300):
        probabilities = tilted(after.rows, stakes.values, generator)
        if not all(is_inside(after.rows_for(goal, side), probabilities) for side in (-1.0, 1.0)):
            continue
        wealth, steps = log_wealth(after, stakes, drawn.astype(np.float64), probabilities, goal)
        if wealth < NATS:
            assert steps >= bound
            nearest = min(nearest, steps)
    assert nearest < bound + 0.75 * (estimate - bound)  # or the models tried would not have put it to the test


def sampled(rows: RegionRows, draws: int, generator: np.random.Generator) -> IntArray:
    """How often each entry comes in draws of every pair, [E]; each at least once, so that all are seen."""
    counts = np.empty(len(rows.shares), dtype=np.int64)
    for pair in range(len(rows.slack)):
        entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        counts[entries] = np.maximum(generator.multinomial(draws, rows.frequencies[entries]), 1)
    return counts


def model_from(mdp: TabularMdp, known: list[object], drawn: IntArray) -> IntervalModel:
    """The region after draws of each entry of the rows of the known states, [E]."""
    return model_of(true_counts(mdp, known), drawn)


def test_bets_on_the_true_model_rarely_win() -> None:
    """A row is drawn again after it has won, another after it has lost, and all ends when enough is won."""
    generator = np.random.default_rng(0)
    mdp = domain("slippery-grid", rows=3, columns=3)
    known = [state for state in mdp.states if state != (2, 2)]
    truth = Oracle(mdp, known, Target(radius=3.0, epsilon=1.0, delta=0.1)).model
    goal, rows = truth.n_known, truth.rows
    stakes = Stakes.towards(truth, goal, 0.8, 12.0, np.full(truth.n_pairs, 100.0))
    stakes = replace(stakes, values=stakes.values * generator.uniform(0.8, 1.0))  # W need not be right
    _, policy = solved(rows, rows.frequencies, goal, len(truth.numbers))
    visits = visits_of(rows, rows.frequencies, policy, goal)
    scale = stakes.scale / max(1.0, float((visits / stakes.visits).max()))
    played = [state for state in range(truth.n_known) if state != goal and policy[state] >= 0]
    factors, laws = np.zeros((len(played), 5)), np.zeros((len(played), 5))
    for place, state in enumerate(played):
        entries = slice(rows.row_offsets[policy[state]], rows.row_offsets[policy[state] + 1])
        observed = 1.0 + stakes.values[rows.successors[entries]] - stakes.values[state]
        law = rows.frequencies[entries] / rows.frequencies[entries].sum()
        staked = scale * visits[state] * stakes.per_draw[policy[state]]
        factors[place, : len(law)] = np.log1p(staked * (observed - law @ observed))
        laws[place, : len(law)] = law
    wealth, row, won = np.zeros(REPLICATIONS), np.zeros(REPLICATIONS, dtype=np.int64), np.zeros(REPLICATIONS, np.bool_)
    for _ in range(400):
        outcomes = (generator.random(REPLICATIONS)[:, None] > np.cumsum(laws[row], axis=1)[:, :-1]).sum(axis=1)
        gained = factors[row, outcomes]
        wealth += np.where(won, 0.0, gained)
        won |= wealth >= math.log(10.0)
        row = np.where(gained > 0.0, row, generator.integers(len(played), size=REPLICATIONS))
    assert 20 <= won.sum() <= ALLOWED


def test_it_takes_fewer_draws_the_longer_the_way() -> None:
    records = {name: joint_lower._compared(name) for name in ("line of 5", "line of 20")}
    fewer = {name: record["by rows"] / record["together"] for name, record in records.items()}
    assert fewer["line of 20"] > 3.0 * fewer["line of 5"]


def test_it_is_below_the_true_steps_of_a_line() -> None:
    mdp = line(6)
    oracle = Oracle(mdp, list(range(6)), Target(radius=6.0, epsilon=1.0, delta=0.1))
    model = oracle.model_after(np.full(oracle.model.n_pairs, 2_000.0))
    stakes = Stakes.towards(model, 6, 0.5, 20.0, np.full(model.n_pairs, 2_000.0))
    bound = joint_lower_bound(model, 6, stakes, 2_000.0 * model.rows.frequencies, NATS)
    assert lower_path(model, 6).at_least < bound < 6 / 0.8


def test_the_page_on_the_explorer_quotes_the_committed_draws() -> None:
    page = (RESULTS.parent / "algorithms" / "certified.md").read_text(encoding="utf-8")
    rows = json.loads((RESULTS / "joint-lower.json").read_text(encoding="utf-8"))["rows"]
    assert [row["world"] for row in rows] == list(joint_lower.CASES)
    for row in rows:
        told = f"{row['steps']:.3f} | {row['by rows']:,} | {row['together']:,} | {row['times fewer']:.2f}"
        assert f"| {row['world']} | {row['known']} | {told} |" in page
