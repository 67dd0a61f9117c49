"""Bounds by episodes of one policy: they hold, are verified, and forged ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from scipy.stats import binom

import axplore
from axplore import TabularMdp, check
from axplore.certificate import Certificate, verify
from axplore.certificate.promise import PropertyBounds
from axplore.errors import InvalidInputError
from axplore.explorers.base import RoundReport, run
from axplore.explorers.directed import Directed
from axplore.proofs.witnesses import EpisodesOfPolicy
from axplore.properties import parse_property
from axplore.records.properties import NO_CHOICE, PropertyClaim, Witness
from axplore.runs import recording
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import line_level
from axplore.target import NO_RADIUS, Target
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.atlas_truth import true_value

LENGTH = 8
ROWS: dict[str, dict[str, dict[str, float]]] = {
    f"s{place}": {
        "walk": {f"s{place + 1}": 0.6, f"s{max(place - 1, 0)}": 0.3, "pit": 0.1},
        "crawl": {f"s{place + 1}": 0.45, f"s{place}": 0.54, "pit": 0.01},
    }
    for place in range(LENGTH)
} | {f"s{LENGTH}": {}, "pit": {}}
MODEL = TabularMdp.from_rows(ROWS, "s0")
"""A path on which haste is risky: every pair matters, so that a region is wide and one policy is cheap to test."""

QUESTIONS = (
    'Pmax=? [ F<=20 "s8" ]',
    'Pmin=? [ F<=20 "s8" ]',
    'Pmax=? [ G<=20 !"pit" ]',
    'Pmin=? [ !"pit" U<=20 "s8" ]',
)


def truth_of(text: str) -> float:
    return true_value(MODEL, parse_property(text), {}, {})


@pytest.fixture(scope="module", params=QUESTIONS)
def certificate(request: pytest.FixtureRequest) -> Certificate:
    """A question with a number of steps, for which a policy was tested."""
    checked = check(MODEL, request.param, precision=0.08, delta=0.01, seed=3, max_steps=3_000_000)
    assert checked.lower <= truth_of(request.param) <= checked.upper
    found = checked.atlas.certificate
    assert found is not None
    return found


def claim_of(certificate: Certificate) -> PropertyClaim:
    (claim,) = certificate.of(PropertyClaim)
    return claim


def accepts(certificate: Certificate, claim: PropertyClaim, **others: Any) -> bool:
    try:
        return verify(structs.replace(certificate, claims=(claim,), **others)).holds
    except InvalidInputError:
        return False


def test_a_policy_was_tested_and_what_its_episodes_prove_is_verified(certificate: Certificate, tmp_path: Path) -> None:
    claim = claim_of(certificate)
    witness, bounds = claim.witness, PropertyBounds.of(claim)
    assert witness is not None
    assert bounds.upper - bounds.lower < PropertyBounds.of(structs.replace(claim, witness=None)).upper
    assert verify(certificate).holds
    certificate.save(tmp_path)
    read = Certificate.load(tmp_path)
    assert read.digest == certificate.digest
    assert verify(read).holds
    assert accepts(read, structs.replace(claim_of(read), witness=None), complete=False)


def forged(witness: Witness, n_actions: Any, inside: Any) -> Iterator[tuple[str, Witness]]:
    """Witnesses that prove nothing, or not what they say."""
    for successes in (witness.successes * 3, 10**9, -1):
        yield "successes", structs.replace(witness, successes=successes, episodes=max(witness.episodes, successes))
    yield "successes", structs.replace(witness, successes=witness.episodes + 1)
    yield "successes", structs.replace(witness, successes=witness.successes // 2)
    yield "successes", structs.replace(witness, successes=0)
    yield "episodes", structs.replace(witness, episodes=witness.episodes * 2)
    yield "episodes", structs.replace(witness, episodes=0, successes=0)
    for line in (0, -1, 10**6):
        yield "line", structs.replace(witness, line=line)
    n = len(witness.fractions)
    for fractions in ((), (1.0,) * n, (1.5,) * n, (0.0,) * n, (float("nan"),) * n, witness.fractions[1:]):
        yield "fractions", structs.replace(witness, fractions=fractions)
    for weights in ((), (0.3,) * n, (-0.1,) * n, (1e-9,) * n, witness.weights[1:]):
        yield "weights", structs.replace(witness, weights=weights)
    policy = witness.policy
    for other in (policy[1:], policy[:, 1:], policy[0], np.vstack((policy, policy[-1:])), policy.astype(np.float64)):
        yield "policy", structs.replace(witness, policy=other)
    for place, action in (((0, 0), NO_CHOICE), ((0, 0), int(n_actions[0])), ((0, 0), -2)):
        changed = policy.copy()
        changed[place] = action
        yield "policy", structs.replace(witness, policy=changed)
    changed = policy.copy()
    changed[:, np.flatnonzero(~inside)] = 0
    if not inside.all():
        yield "policy", structs.replace(witness, policy=changed)
    # The rows say that these policies do worse, or lead elsewhere.
    yield "policy", structs.replace(witness, policy=np.where(np.arange(policy.shape[1]) == 0, policy, NO_CHOICE))
    for bound in (0.0, 1.0, -0.5, 2.0, float("nan"), witness.bound + 0.05, witness.bound - 0.05):
        yield "bound", structs.replace(witness, bound=bound)


def test_forged_witnesses_are_refused_or_say_nothing_false(certificate: Certificate) -> None:
    claim = claim_of(certificate)
    assert claim.witness is not None
    labels = certificate.known
    inside = np.array([label not in ("pit", f"s{LENGTH}") for label in labels])
    kept = []
    for name, witness in forged(claim.witness, certificate.n_actions, inside):
        made = structs.replace(claim, witness=witness)
        if accepts(certificate, made, complete=False):
            bounds = PropertyBounds.of(made)
            assert bounds.lower <= truth_of(claim.text) <= bounds.upper
            kept.append(name)
    # A bound that is less sharp than its episodes prove is true.
    assert set(kept) <= {"bound"}
    assert len(kept) <= 2


def test_a_witness_is_of_one_question_and_one_level(certificate: Certificate) -> None:
    claim = claim_of(certificate)
    twice = structs.replace(certificate, claims=(claim, structs.replace(claim, text=claim.text.replace("=?", ">=0"))))
    assert not verify(twice).holds
    assert not accepts(certificate, claim, delta=1e-9, complete=False)
    for text in {*QUESTIONS, claim.text.replace("20", "19"), claim.text.replace("20", "21"), 'Pmax=? [ F "s8" ]'}:
        if truth_of(text) != truth_of(claim.text):  # who falls into the pit stays there, so some questions are the same
            assert not accepts(certificate, structs.replace(claim, text=text), complete=False)


@pytest.mark.parametrize("text", ['Pmax=? [ F<=0 "s8" ]', 'Pmin=? [ F<=0 "s8" ]'])
def test_without_a_step_there_are_no_episodes(text: str) -> None:
    found = check(MODEL, text, max_steps=200).atlas.certificate
    assert found is not None
    claim = claim_of(found)
    for bound in (0.0, 0.5, 1.0):
        nothing = np.zeros((0, len(found.known)), dtype=np.int64)
        witness = Witness(bound, nothing, line=1, fractions=(0.5,), weights=(1.0,), episodes=50, successes=40)
        assert not accepts(found, structs.replace(claim, witness=witness), complete=False)


class CutShortError(Exception):
    """Stands for a kill."""


def test_a_run_that_was_interrupted_among_episodes_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    settings: dict[str, Any] = {"precision": 0.1, "delta": 0.01, "seed": 5}
    rounds: list[RoundReport] = []
    whole = check(MODEL, QUESTIONS[0], run=tmp_path / "whole", on_round=rounds.append, **settings).atlas
    assert whole.certificate is not None
    assert claim_of(whole.certificate).witness is not None
    for part in (0.5, 0.8, 0.95):

        def cut(report: RoundReport, last: int = round(part * len(rounds))) -> None:
            if report.round >= last:
                raise CutShortError

        folder = tmp_path / str(part)
        with pytest.raises(CutShortError):
            check(MODEL, QUESTIONS[0], run=folder, on_round=cut, **settings)
        resumed = axplore.resume(folder, MODEL)
        assert resumed.certificate is not None
        assert resumed.certificate.digest == whole.certificate.digest


def test_a_budget_that_cuts_an_episode_makes_nothing_false(tmp_path: Path) -> None:
    """A cut episode is a miss, and resuming begins another; bounds and certificate hold after each of many budgets."""
    text, budget = QUESTIONS[1], 20_000
    check(MODEL, text, run=tmp_path, max_steps=budget, precision=0.1, delta=0.01, seed=5)
    n_witnessed = 0
    for more in range(1, 12):
        certificate = axplore.resume(tmp_path, MODEL, max_steps=budget + 1_003 * more).certificate
        assert certificate is not None
        assert verify(certificate).holds
        claim = claim_of(certificate)
        bounds, n_witnessed = PropertyBounds.of(claim), n_witnessed + (claim.witness is not None)
        assert bounds.lower <= truth_of(text) <= bounds.upper
    assert n_witnessed


@pytest.mark.usefixtures("_only_worker_here")
def test_workers_count_the_same_episodes_whatever_their_number() -> None:
    found = [
        check(MODEL, QUESTIONS[1], precision=0.1, delta=0.01, seed=2, workers=workers).atlas.certificate
        for workers in (1, 2)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert claim_of(found[0]).witness is not None
    assert found[0].digest == found[1].digest


class Stepped:
    """The path, stepped by hand."""

    def __init__(self) -> None:
        self._rng, self._state = np.random.default_rng(7), "s0"

    def reset(self) -> str:
        self._state = "s0"
        return self._state

    def actions(self, state: str) -> tuple[str, ...]:
        return tuple(ROWS[state])

    def step(self, action: str) -> str:
        row = ROWS[self._state][action]
        self._state = str(self._rng.choice(list(row), p=list(row.values())))
        return self._state


@pytest.mark.parametrize("text", QUESTIONS)
def test_episodes_that_the_system_cuts_prove_nothing_false(text: str) -> None:
    world = SteppedWorld(Stepped(), max_episode_steps=12)
    checked = check(world, text, precision=0.1, delta=0.01, seed=1, max_steps=40_000)
    assert checked.lower <= truth_of(text) <= checked.upper


@pytest.mark.parametrize("text", QUESTIONS[:2])
def test_misses_that_are_no_misses_only_weaken_what_is_proven(text: str) -> None:
    """Whatever is recorded as a miss, the bound stays below the chance of success."""
    explorer = Directed(target=Target(radius=NO_RADIUS, epsilon=0.05, delta=0.01), question=text)
    states = []
    run(explorer, SimulatedWorld(MODEL, 4), observers=[lambda report: states.append(report.state)], max_steps=300_000)
    (*_, last) = states
    assert last.tests
    test, maximise = last.tests[-1], "max" in text
    worse = EpisodesOfPolicy(
        test.policy, test.line, test.fractions, test.weights, test.episodes, test.successes - test.successes // 10
    )
    assert worse.chance(0.01) < test.chance(0.01) <= (truth_of(text) if maximise else 1 - truth_of(text))


def test_the_level_is_kept_at_all_times_together() -> None:
    """Independent episodes with a known chance: how often any bound at any time is above it."""
    level, n_runs, chance, rng = line_level(EPISODE_PART, 1), 1000, 0.35, np.random.default_rng(11)
    test = EpisodesOfPolicy(np.zeros((2, 1), dtype=np.int64), 1, (0.02, 0.05, 0.1, 0.3), (0.25, 0.25, 0.25, 0.25))
    moments = np.unique(np.geomspace(5, 3000, 25).astype(np.int64))
    wrong = 0
    for _ in range(n_runs):
        won = np.cumsum(rng.random(moments[-1]) < chance)[moments - 1]
        # The bound is above the chance exactly if the wealth against the chance is enough.
        after = (
            EpisodesOfPolicy(test.policy, 1, test.fractions, test.weights, int(m), int(k))
            for m, k in zip(moments, won, strict=True)
        )
        wrong += any(one.chance(1.0) > chance for one in after if one.successes > chance * one.episodes)
    assert 0 < wrong <= binom.ppf(0.999, n_runs, level)
