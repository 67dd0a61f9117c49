"""Explorer and verifier decide by one rule: what ends as proven is always verified."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import Certificate, verify
from axplore.certificate import bounds as verifier
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.proofs import bounds
from axplore.records.run import StopReason
from axplore.target import Objective, Target
from axplore.worlds.simulated import SimulatedWorld

MODELS = 240
PARTS = 6


def certificate_of(
    mdp: TabularMdp, seed: int, radius: float, epsilon: float, objective: Objective, max_steps: int
) -> tuple[StopReason, Certificate]:
    explorer = Certified(target=Target(radius=radius, epsilon=epsilon), objective=objective)
    exploration = run(explorer, SimulatedWorld(mdp, seed), max_steps=max_steps)
    return exploration.stop, certificate_from_exploration(exploration)


def random_model(rng: np.random.Generator) -> TabularMdp:
    """A few states, some of them terminal, with even and uneven chances."""
    n_states = int(rng.integers(2, 6))
    rows = {}
    for state in range(n_states):
        actions = {}
        for action in range(int(rng.integers(0 if state else 1, 3))):
            successors = rng.permutation(n_states)[: rng.integers(1, 4)].tolist()
            weights = rng.integers(1, 4, len(successors)) if rng.random() < 0.5 else np.ones(len(successors))
            actions[action] = dict(zip(successors, (weights / weights.sum()).tolist(), strict=True))
        rows[state] = actions
    return TabularMdp.from_rows(rows, 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_fan_of_equal_chances_is_verified_at_radius_one(seed: int) -> None:
    fan = {0: {"spin": {place + 1: 1 / 20 for place in range(20)}}} | {place + 1: {} for place in range(20)}
    stop, certificate = certificate_of(TabularMdp.from_rows(fan, 0), seed, 1, 1, Objective.OPTIMAL, 20_000)
    assert stop is StopReason.PROVEN
    assert verify(certificate).complete


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_ends_as_proven_is_verified(part: int) -> None:
    ended = 0
    for number in range(part, MODELS, PARTS):
        rng = np.random.default_rng(number)
        radius, epsilon = float(rng.choice([1, 1, 2, 3, 1.5, 2.5])), float(rng.choice([0.5, 1, 2]))
        objective = (Objective.OPTIMAL, Objective.WITHIN_RADIUS)[number % 2]
        stop, certificate = certificate_of(random_model(rng), number, radius, epsilon, objective, 5_000)
        verification = verify(certificate)
        assert verification.holds, f"model {number}: {verification.failures[0]}"
        assert (stop is StopReason.PROVEN) <= verification.complete
        assert certificate.complete == verification.complete
        ended += stop is StopReason.PROVEN
    assert ended > MODELS // PARTS // 2


def test_the_explorer_knows_the_verifiers_numbers_and_is_stricter() -> None:
    assert (bounds.ROUNDING, bounds.MARGIN, bounds.LARGEST) == (
        verifier.ROUNDING,
        verifier.MARGIN,
        verifier.LARGEST,
    )
    assert bounds.STRICTNESS > 1
    for values in (np.array([1.0, 2.0]), np.array([0.0]), np.array([1e7, 3.0])):
        assert bounds.correction(values) == pytest.approx(bounds.STRICTNESS * verifier.correction(values))
    assert bounds.correction(np.array([2e9])) == np.inf
