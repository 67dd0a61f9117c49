from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from axplore.proofs.bounds import along, empirical_path, upper_path
from axplore.proofs.claims import ToReach, cheapest_draws
from axplore.proofs.travel import Travel
from axplore.proofs.ways import model_along
from axplore_studies.coverage_models import KINDS
from observed import explored_model

NAMES = ["star", *KINDS]


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_along_a_way_is_that_of_the_whole_model(name: str) -> None:
    model = explored_model(name)
    for goal in range(1, len(model.numbers)):
        estimate = empirical_path(model, goal)
        way = model_along(model, estimate)
        if way is None:
            assert estimate.steps == np.inf
            continue
        found = way.in_whole(upper_path(way.model, way.path.goal, follow=way.path), model, goal)
        whole = upper_path(model, goal, follow=along(model, estimate))
        assert found.proven == whole.proven
        assert found.steps == pytest.approx(whole.steps, rel=1e-5)
        assert not found.proven or np.allclose(found.values, whole.values, rtol=1e-5)
        assert (found.policy == whole.policy).all()


@pytest.mark.parametrize("name", NAMES)
def test_draws_along_a_way_are_about_those_of_the_whole_model(name: str) -> None:
    model = explored_model(name)
    large, travel = replace(model, whole_up_to=0), Travel(model)
    for goal in range(1, len(model.numbers)):
        claim = ToReach(goal, 1.1 * empirical_path(model, goal).steps)
        if claim.steps == np.inf or claim.is_proven(large):
            continue
        whole, part = (cheapest_draws(claim, one, travel) for one in (model, large))
        if model.groups is None:
            # Trials end when their bound is within the claim, and solvers differ by TRIAL_TOLERANCE.
            assert part.travel == pytest.approx(whole.travel, rel=0.01)
            assert ((part.more > 0.0) == (whole.more > 0.0)).all()
