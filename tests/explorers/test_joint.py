"""Bounds by draws of several pairs together: they hold, are verified, and forged ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from scipy.optimize import minimize
from scipy.special import log_softmax

import axplore
from axplore import TabularMdp, check
from axplore.assumptions import Assumptions
from axplore.certificate import Certificate, verify
from axplore.certificate.promise import PropertyBounds
from axplore.errors import InvalidInputError
from axplore.explorers.base import RoundReport, run
from axplore.explorers.directed import Directed, DirectedState
from axplore.proofs import joint
from axplore.proofs.row_kernels import priced_mean
from axplore.properties import parse_property
from axplore.records.properties import NO_BOUND, NO_CHOICE, JointBound, PropertyClaim
from axplore.runs import recording
from axplore.statistics.joint import joint_ball
from axplore.target import NO_RADIUS, Target
from axplore.types import FloatArray
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.atlas_truth import true_value

LENGTH = 6
ROWS: dict[str, dict[str, dict[str, float]]] = {
    f"s{place}": {
        "walk": {f"s{place + 1}": 0.6, f"s{max(place - 1, 0)}": 0.3, "pit": 0.1},
        "crawl": {f"s{place + 1}": 0.45, f"s{place}": 0.5, "pit": 0.05},
    }
    for place in range(LENGTH)
} | {f"s{LENGTH}": {}, "pit": {}}
MODEL = TabularMdp.from_rows(ROWS, "s0")
"""A path on which every state has to be passed, so that many rows decide together."""

QUESTIONS = (f'Pmax=? [ F "s{LENGTH}" ]', f'Pmin=? [ F "s{LENGTH}" ]')
SETTINGS: dict[str, Any] = {"precision": 0.03, "delta": 0.01, "assume": "min-probability=0.04"}


def truth_of(text: str) -> float:
    return true_value(MODEL, parse_property(text), {}, {})


def claim_of(certificate: Certificate | None) -> PropertyClaim:
    assert certificate is not None
    (claim,) = certificate.of(PropertyClaim)
    return claim


@pytest.fixture(scope="module", params=QUESTIONS)
def certificate(request: pytest.FixtureRequest) -> Certificate:
    checked = check(MODEL, request.param, seed=3, **SETTINGS)
    assert checked.lower <= truth_of(request.param) <= checked.upper
    assert checked.atlas.certificate is not None
    return checked.atlas.certificate


def accepts(certificate: Certificate, claim: PropertyClaim, **others: Any) -> bool:
    try:
        return verify(structs.replace(certificate, claims=(claim,), complete=False, **others)).holds
    except InvalidInputError:
        return False


def test_pairs_were_named_and_what_their_draws_prove_is_verified(certificate: Certificate, tmp_path: Path) -> None:
    claim = claim_of(certificate)
    alone = structs.replace(claim, joint=None, joint_lower=None, joint_upper=None)
    bounds, by_rows = PropertyBounds.of(claim), PropertyBounds.of(alone)
    assert claim.joint is not None
    assert len(claim.joint.pairs) > 1
    assert bounds.upper - bounds.lower <= SETTINGS["precision"] < by_rows.upper - by_rows.lower
    assert verify(certificate).holds
    certificate.save(tmp_path)
    read = Certificate.load(tmp_path)
    assert read.digest == certificate.digest
    assert verify(read).holds
    assert accepts(read, alone)


def forged_bounds(bound: JointBound, n_actions: Any) -> Iterator[tuple[str, JointBound]]:
    """Bounds of a side that do not follow, or not what they say."""
    for price in (0.0, bound.price / 10, bound.price * 10, -1.0, float("nan"), 1e90):
        yield "price", structs.replace(bound, price=price)
    for wrong in (-0.1, 1.1, float("nan"), bound.bound + 0.02, bound.bound - 0.02, 0.0, 1.0):
        yield "bound", structs.replace(bound, bound=wrong)
    for by in (-0.01, 0.01):
        yield "values", structs.replace(bound, values=np.clip(bound.values + by, 0.0, 1.0))
    for wrong in (0.0, 1.0, float("nan")):
        yield "values", structs.replace(bound, values=np.full_like(bound.values, wrong))
    yield "values", structs.replace(bound, values=bound.values[::-1].copy())
    for factor in (0.0, 0.5, 2.0, -1.0, 1e9):
        yield "most_plays", structs.replace(bound, most_plays=bound.most_plays * factor)
        yield "plays", structs.replace(bound, plays=bound.plays * factor)
        both = structs.replace(bound, plays=bound.plays * factor, most_plays=bound.most_plays * factor)
        yield "plays and most_plays", both
    yield "most_plays", structs.replace(bound, most_plays=np.full_like(bound.most_plays, NO_BOUND))
    yield "most_plays", structs.replace(bound, most_plays=bound.most_plays[1:])
    yield "plays", structs.replace(bound, plays=bound.plays[:, 1:])
    yield "plays", structs.replace(bound, plays=bound.plays[::-1].copy())
    yield "policy", structs.replace(bound, policy=np.append(bound.policy, 0))
    if len(bound.policy):
        for wrong in (NO_CHOICE, int(n_actions.max()), -2):
            yield "policy", structs.replace(bound, policy=np.full_like(bound.policy, wrong))
        yield "policy", structs.replace(bound, policy=np.where(bound.policy >= 0, 1 - bound.policy, bound.policy))
    for ranks in (np.zeros_like(bound.ranks), bound.ranks[::-1].copy(), np.append(bound.ranks, 0)):
        yield "ranks", structs.replace(bound, ranks=ranks)


def forged(claim: PropertyClaim, n_actions: Any) -> Iterator[tuple[str, PropertyClaim]]:
    """Claims of which some part of the joint draws was changed."""
    draws, below, above = claim.joint, claim.joint_lower, claim.joint_upper
    assert draws is not None
    assert below is not None
    assert above is not None
    for name, bound in forged_bounds(below, n_actions):
        yield name, structs.replace(claim, joint_lower=bound)
    for name, bound in forged_bounds(above, n_actions):
        yield name, structs.replace(claim, joint_upper=bound)
    yield "sides", structs.replace(claim, joint_lower=above, joint_upper=below)
    yield "draws", structs.replace(claim, joint=None)
    for line in (0, -1, 10**9):
        yield "line", structs.replace(claim, joint=structs.replace(draws, line=line))
    for pairs in (draws.pairs[:-1], draws.pairs[::-1].copy(), draws.pairs + 1, draws.pairs - 10**6, draws.pairs[:0]):
        yield "pairs", structs.replace(claim, joint=structs.replace(draws, pairs=pairs))
    for before in (draws.before[:-1], draws.before * 0, draws.before * 10**6, -draws.before, draws.before[::-1].copy()):
        yield "before", structs.replace(claim, joint=structs.replace(draws, before=before))


def test_forged_joint_draws_are_refused_or_say_nothing_false(certificate: Certificate) -> None:
    claim = claim_of(certificate)
    truth, kept = truth_of(claim.text), []
    for name, made in forged(claim, certificate.n_actions):
        if accepts(certificate, made):
            bounds = PropertyBounds.of(made)
            assert bounds.lower <= truth <= bounds.upper
            kept.append(name)
    # What is less sharp is true, too: weaker bounds, looser plays, ranks of the same ways, ...
    assert set(kept) <= {"bound", "price", "most_plays", "values", "plays and most_plays", "ranks", "policy", "plays"}


def test_a_line_serves_once_and_what_is_tied_is_not_named(certificate: Certificate) -> None:
    claim = claim_of(certificate)
    other = structs.replace(claim, text=claim.text.replace("=?", ">=0"))
    assert not verify(structs.replace(certificate, claims=(claim, other))).holds
    assert not accepts(certificate, claim, delta=1e-12)
    for text in (*QUESTIONS, f'Pmax=? [ F<=9 "s{LENGTH}" ]', 'Pmax=? [ F "pit" ]'):
        if text != claim.text:
            assert not accepts(certificate, structs.replace(claim, text=text))
    kind = Assumptions(min_probability=0.04, tied=lambda *_: None)
    tied = check(MODEL, QUESTIONS[0], precision=0.06, delta=0.01, seed=1, assume=kind, max_steps=400_000)
    assert claim_of(tied.atlas.certificate).joint is None


class CutShortError(Exception):
    """Stands for a kill."""


def test_a_run_that_was_interrupted_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    rounds: list[RoundReport] = []
    settings = {**SETTINGS, "seed": 5}
    whole = check(MODEL, QUESTIONS[0], run=tmp_path / "whole", on_round=rounds.append, **settings).atlas
    assert whole.certificate is not None
    assert claim_of(whole.certificate).joint is not None
    for part in (0.6, 0.9):

        def cut(report: RoundReport, last: int = round(part * len(rounds))) -> None:
            if report.round >= last:
                raise CutShortError

        folder = tmp_path / str(part)
        with pytest.raises(CutShortError):
            check(MODEL, QUESTIONS[0], run=folder, on_round=cut, **settings)
        resumed = axplore.resume(folder, MODEL)
        assert resumed.certificate is not None
        assert resumed.certificate.digest == whole.certificate.digest


def test_what_was_bounded_under_an_assumption_is_not_used_without_it(tmp_path: Path) -> None:
    check(MODEL, QUESTIONS[0], run=tmp_path, seed=5, **SETTINGS)
    for assume in ("none", "min-probability=0.02"):
        resumed = axplore.resume(tmp_path, MODEL, assume=assume, max_steps=10_000)
        assert resumed.certificate is not None
        assert verify(resumed.certificate).holds
        bounds = PropertyBounds.of(claim_of(resumed.certificate))
        assert bounds.lower <= truth_of(QUESTIONS[0]) <= bounds.upper


@pytest.mark.usefixtures("_only_worker_here")
def test_workers_count_the_same_draws_whatever_their_number() -> None:
    found = [check(MODEL, QUESTIONS[1], seed=2, workers=workers, **SETTINGS).atlas.certificate for workers in (1, 2)]
    assert claim_of(found[0]).joint is not None
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].digest == found[1].digest


def last_state(text: str, seed: int, **settings: Any) -> tuple[Directed, DirectedState, list[tuple[float, float]]]:
    """The state of an exploration with joint tests, and the bounds of all of its rounds."""
    target = Target(radius=NO_RADIUS, epsilon=settings.pop("epsilon", 0.03), delta=settings.pop("delta", 0.01))
    explorer = Directed(target=target, question=text, assume=Assumptions(min_probability=0.04))
    states: list[DirectedState] = []
    run(explorer, SimulatedWorld(MODEL, seed), observers=[lambda report: states.append(report.state)], **settings)
    return explorer, states[-1], [explorer.interval(state) for state in states]


@pytest.mark.parametrize("text", QUESTIONS)
def test_bounds_hold_in_every_round(text: str) -> None:
    """At δ = 0.3; the study `question-coverage` asks many more."""
    truth = truth_of(text)
    for seed in range(3):
        _, state, bounds = last_state(text, seed, delta=0.3, epsilon=0.04)
        assert state.joint
        assert all(lower <= truth <= upper for lower, upper in bounds)


def test_plays_are_at_least_those_of_every_policy() -> None:
    explorer, state, _ = last_state(QUESTIONS[0], 4)
    asked = explorer.asked(state)
    low, high = asked.lower(), asked.upper()
    test = state.joint[-1]
    ball = joint.JointBall.of(test, state.counts, 0.01)
    bounds = joint.JointBounds(asked, low, high, test.without_sides(), ball, state.steps, anew=True)
    labels = [str(state.counts.order[number]) for number in state.counts.states]
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(asked.model.n_known), np.diff(asked.rows.state_pairs))
    for _ in range(20):  # policies of the true model, solved for all visits at once
        actions = [rng.choice(list(ROWS[label])) if ROWS[label] else None for label in labels]
        chain = np.zeros((len(labels), len(labels)))
        for place, (label, action) in enumerate(zip(labels, actions, strict=True)):
            for after, probability in ROWS[label].get(action or "", {}).items():
                if after in labels and asked.is_asked[place]:
                    chain[place, labels.index(after)] = probability
        visits = np.linalg.solve(np.eye(len(labels)) - chain.T, np.eye(len(labels))[0])
        for index, pair in enumerate(test.pairs.tolist()):
            place = owners[pair]
            names = state.counts.actions[place]
            if actions[place] == names[pair - asked.rows.state_pairs[place]]:
                assert bounds.test.above.plays[index] >= visits[place]


def test_a_price_is_paid_for_every_nat() -> None:
    """The priced means of explorer and verifier are the least of mean and price, by a general optimiser."""
    explorer, state, _ = last_state(QUESTIONS[0], 4)
    asked = explorer.asked(state)
    low, high = asked.lower(), asked.upper()
    test = state.joint[-1]
    ball = joint.JointBall.of(test, state.counts, 0.01)
    bounds = joint.JointBounds(asked, low, high, test, ball, state.steps)
    priced, _ = bounds.below

    rng = np.random.default_rng(2)
    n_tried = 0
    for pair in test.pairs[asked.rows.closed[test.pairs]].tolist():
        first, end = asked.rows.row_offsets[pair], asked.rows.row_offsets[pair + 1]
        values = rng.random(len(asked.model.numbers))
        for price in (1e-3, 0.05, 1.0, 50.0):
            rows = replace_price(priced.rows, pair, price)
            shares, of_row = rows.joint_shares[first:end], values[rows.successors[first:end]]

            def paid(
                x: FloatArray, shares: FloatArray = shares, of_row: FloatArray = of_row, price: float = price
            ) -> float:
                row = log_softmax(x)
                return float(np.exp(row) @ of_row + price * (shares @ (np.log(shares) - row)))

            best = minimize(paid, np.log(shares), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
            found = priced_mean(rows, pair, values, 0.0, -1.0)
            assert found <= best.fun + 1e-9
            assert found == pytest.approx(best.fun, abs=1e-6)
            n_tried += 1
    assert n_tried


def replace_price(rows: Any, pair: int, price: float) -> Any:
    prices = rows.prices.copy()
    prices[pair] = price
    return rows._replace(prices=prices)


def test_the_level_of_a_ball_is_kept_at_all_times_together() -> None:
    """True rows whose draws are named after a part of them: how often they ever leave the ball."""
    rng, n_runs, n_left = np.random.default_rng(3), 400, 0
    level = 0.2
    laws = [np.array(law) for law in ([0.5, 0.5], [0.9, 0.1], [0.2, 0.3, 0.5], [0.98, 0.02])]
    for _ in range(n_runs):
        named_at, draws = rng.integers(1, 40, size=len(laws)), 400
        samples = [rng.choice(len(law), size=draws, p=law) for law in laws]
        before = [np.bincount(s[:n], minlength=len(law)) for s, n, law in zip(samples, named_at, laws, strict=True)]
        left = False
        for end in np.unique(np.geomspace(41, draws, 30).astype(np.int64)):
            counts = [np.bincount(s[:end], minlength=len(law)) for s, law in zip(samples, laws, strict=True)]
            left |= wealth(before, counts, laws) >= -np.log(level)
        n_left += left
    assert n_left <= level * n_runs  # expected far below: the last of 30 moments has most of the wealth


def wealth(before: list[Any], counts: list[Any], laws: list[FloatArray]) -> float:
    """The logarithm of the wealth against the true rows, by the ball of the explorer."""

    offsets = np.concatenate(([0], np.cumsum([len(law) for law in laws])))
    old = np.concatenate(before).astype(np.float64)
    drawn = np.concatenate(counts).astype(np.float64) - old
    shares, weights = np.zeros(len(old)), np.zeros(len(laws))
    cost = joint_ball(offsets, old, drawn, shares, weights)
    row = np.concatenate(laws)
    distances = np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0) / row), 0.0)
    return float(weights @ np.add.reduceat(distances, offsets[:-1]) - cost)


def test_checkpoints_with_other_pairs_are_refused() -> None:
    _, state, _ = last_state(QUESTIONS[0], 4)
    test = state.joint[-1]
    state.check([])
    for wrong in (
        replace(test, pairs=test.pairs + 10**6),
        replace(test, pairs=test.pairs[::-1].copy()),
        replace(test, before=test.before * 10**6),
        replace(test, before=test.before[:-1]),
        replace(test, line=0),
        replace(test, below=replace(test.below, plays=np.array([-1.0]))),
        replace(test, above=replace(test.above, policy=np.array([10**6]))),
    ):
        with pytest.raises(InvalidInputError, match="named together"):
            replace(state, joint=(wrong,)).check([])
