from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import axplore
from axplore import TabularMdp
from axplore.certificate import NearOptimal
from axplore.explorers.certified import Certified
from axplore.proofs import shared_bounds
from axplore.proofs.bound_kernels import lower_residual
from axplore.proofs.bounds import (
    IntervalModel,
    empirical_path,
    lower_path,
    way_along,
)
from axplore.proofs.claims import ToOptimise
from axplore.proofs.row_kernels import single_factors
from axplore.proofs.shared_bounds import ProvenClaims, SharedBounds
from axplore.records.vectors import Vector
from axplore.target import Target
from axplore_studies.coverage_models import KINDS, case
from observed import explored_model, nothing_known


def residual(model: IntervalModel, goal: int, bound: Vector[np.float64]) -> float:
    """By how much a lower bound exceeds what one sweep over the region gives."""
    values = np.empty(len(model.numbers))
    values[: model.n_known] = bound.whole
    rows = model.rows_for(goal, -1.0)
    return lower_residual(rows, single_factors(rows), goal, values, *nothing_known(model))


@pytest.mark.parametrize("name", ["star", *KINDS])
def test_what_is_kept_is_a_lower_bound_with_the_same_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_bounds, "MOST_KEPT", 1.0)  # so that all share the first one
    model = explored_model(name)
    bounds = SharedBounds(model)
    for goal in range(1, len(model.numbers) + 1):
        whole = lower_path(model, goal)
        kept = bounds.kept(whole)
        assert kept[0] == whole.steps
        assert residual(model, goal, kept) <= 1e-9
        assert (kept.whole <= whole.values[: model.n_known]).all()


def test_goals_that_are_alike_share_nearly_all_numbers() -> None:
    model = explored_model("star")
    bounds = SharedBounds(model)
    first, *others = (bounds.kept(lower_path(model, goal)) for goal in range(1, model.n_known))
    assert len(others) == 39
    assert all(len(bound.indices) <= 2 for bound in others)
    assert len({id(bound.base) for bound in (first, *others)}) == 1


@pytest.mark.parametrize("name", ["star", "deterministic", "terminal"])
def test_the_bound_along_a_way_is_what_the_solver_finds(name: str) -> None:
    model = explored_model(name)
    bounds, n_found = SharedBounds(model), 0
    for goal in range(1, model.n_known):
        way, solved = way_along(model, empirical_path(model, goal)), lower_path(model, goal)
        along = None if way is None else bounds.along(way)
        if along is None:
            bounds.kept(solved)
            continue
        n_found += 1
        assert along[0] == pytest.approx(solved.steps, rel=1e-5)
        assert along[0] >= solved.steps
        assert residual(model, goal, along) <= 1e-9
    assert n_found >= (38 if name == "star" else 0)


@pytest.mark.parametrize("name", ["star", "sparse", "deterministic", "ties", "terminal"])
def test_large_models_prove_the_same_claims(name: str) -> None:
    model = explored_model(name, 1500)
    claims = [ToOptimise(goal, epsilon) for goal in range(1, model.n_known) for epsilon in (0.5, 1.0, 4.0)]
    one_by_one = [claim.gain(model).proven for claim in claims]
    proven = ProvenClaims(replace(model, whole_up_to=0))
    assert [claim in proven for claim in claims] == one_by_one


def large(radius: float, epsilon: float) -> Certified:
    """An explorer that takes every model for a large one."""
    return Certified(target=Target(radius=radius, epsilon=epsilon, delta=0.1), whole_up_to=0)


@pytest.mark.parametrize(
    ("world", "radius", "parameters"),
    [("star", 2, {"arms": 12, "arm_length": 1}), ("confusing-chain", 4.5, {}), ("slippery-grid", 4, {"slip": 0.0})],
)
def test_an_exploration_takes_the_same_steps_as_in_a_large_model(
    world: str, radius: float, parameters: dict[str, float]
) -> None:
    before = axplore.explore(world, radius=radius, epsilon=0.8, seed=1, world_parameters=parameters)
    after = axplore.explore(world, explorer=large(radius, 0.8), seed=1, world_parameters=parameters)
    assert (after.steps, after.states, after.statuses) == (before.steps, before.states, before.statuses)
    assert np.allclose(after.lower, before.lower, rtol=2e-2)  # only small models deduct
    assert axplore.verify(after).complete


@pytest.mark.parametrize("kind", KINDS)
def test_what_large_models_keep_of_any_model_is_accepted(kind: str) -> None:
    for seed in range(2):
        made = case(kind, seed)
        atlas = axplore.explore(made.mdp, explorer=large(made.radius, 1), seed=seed, max_steps=10_000)
        verification = axplore.verify(atlas)
        assert verification.holds, str(verification)


def test_what_a_policy_may_lose_is_kept_only_on_its_way() -> None:
    inner = {node: {"left": {2 * node: 1.0}, "right": {2 * node + 1: 1.0}} for node in range(1, 16)}
    tree = TabularMdp.from_rows(inner | {node: {} for node in range(16, 32)}, 1)
    before = axplore.explore(tree, radius=4, epsilon=1)
    after = axplore.explore(tree, explorer=large(4, 1))
    assert after.certificate is not None
    assert axplore.verify(after).complete
    assert np.allclose(after.regret, before.regret, atol=1e-5)
    kept = [claim.regret for claim in after.certificate.of(NearOptimal) if claim.upper[0] - claim.lower[0] > 1]
    assert len(kept) > 5
    for vector in kept:
        assert len(vector.indices) <= 5, "the states of the longest way, and the goal"


def test_the_certificate_of_a_star_grows_with_its_arms() -> None:
    def n_numbers(arms: int) -> int:
        world = {"arms": arms, "arm_length": 1}
        certificate = axplore.explore("star", explorer=large(2, 1), world_parameters=world).certificate
        assert certificate is not None
        return sum(array.size for array in certificate.content[1].values())

    assert n_numbers(80) < 2.1 * n_numbers(40)
