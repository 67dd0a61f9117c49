from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from axplore.proofs.bound_kernels import lower_residual
from axplore.proofs.bounds import IntervalModel, lower_path
from axplore.proofs.claims import ToSetAside
from axplore.proofs.inherited_bounds import InheritedBounds
from axplore.proofs.row_kernels import RegionRows, single_factors
from axplore.proofs.shared_bounds import ProvenClaims, SharedBounds
from axplore.types import FloatArray
from axplore_studies.coverage_models import KINDS
from observed import explored_model, nothing_known

NAMES = ["star", *KINDS]


def residual(model: IntervalModel, rows: RegionRows, goal: int, values: FloatArray) -> float:
    """By how much a lower bound exceeds what one sweep over the region gives."""
    copy = values.copy()
    return lower_residual(rows, single_factors(rows), goal, copy, *nothing_known(model))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_inherited_is_a_lower_bound_as_great_as_that_of_a_solver(name: str) -> None:
    model, n_found = explored_model(name), 0
    bounds = InheritedBounds(model)
    for goal in range(1, len(model.numbers)):
        found = bounds.towards(goal)
        if found is not None:
            path, rows = found
            n_found += 1
            assert residual(model, rows, goal, path.values) <= 1e-9
            assert path.steps >= lower_path(model, goal).steps * (1.0 - 1e-4)
    assert n_found >= (40 if name == "star" else 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_that_is_kept_by_its_differences_is_one(name: str) -> None:
    model = explored_model(name)
    bounds, solver = SharedBounds(model), InheritedBounds(model)
    for goal in range(1, len(model.numbers)):
        found, kept = solver.towards(goal), bounds.inherited(goal)
        assert (found is None) == (kept is None)
        if found is not None and kept is not None:
            values = np.append(kept.whole, np.zeros(len(model.numbers) - model.n_known))
            assert kept[0] == found[0].steps
            assert residual(model, found[1], goal, values) <= 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_same_is_found_whatever_was_asked_before(name: str) -> None:
    model = explored_model(name)
    goals, bounds = range(1, len(model.numbers)), InheritedBounds(model)
    before = [bounds.towards(goal) for goal in goals]
    after = [bounds.towards(goal) for goal in reversed(goals)][::-1]
    for one, other in zip(before, after, strict=True):
        assert (one is None) == (other is None)
        assert one is None or other is None or np.array_equal(one[0].values, other[0].values)


@pytest.mark.parametrize("name", NAMES)
def test_large_models_set_aside_what_small_ones_do(name: str) -> None:
    model = explored_model(name)
    claims = [ToSetAside(goal, steps) for goal in model.frontier for steps in (1.0, 2.5, 4.0)]
    proven = ProvenClaims(replace(model, whole_up_to=0))
    assert [claim in proven for claim in claims] == [claim.gain(model).proven for claim in claims]
