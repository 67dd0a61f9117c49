"""Lower bounds by a deduction: accepted as far as the shared budget allows, on lines that are worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import axplore
from axplore.assumptions import Assumptions
from axplore.certificate import AtLeast, Certificate, NearOptimal, TooFar, verify
from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError, lower_steps
from axplore.certificate.deducted_bounds import require_lower
from axplore.domains import domain
from axplore.errors import InvalidInputError
from axplore.mdp import TabularMdp
from axplore.records.claims import Reachable, claims_in, columns_of
from axplore.records.vectors import Vector
from axplore.target import Objective
from axplore.types import RESET_ACTION
from edited import edited
from made_counts import made_counts

DELTA = 0.1
LENGTH = 5
A_LITTLE = 1e-6


def line(go: list[int], wait: list[int], other: tuple[int, int] | None = None) -> Certificate:
    """States in a row, the last of which is not known: draws of `go` and of `wait` in each, and a surprise in one.

    Args:
        go: the draws of the action that leads on.
        wait: those of the action that stays.
        other: a state in which `wait` once led to s0, and at which draw.
    """
    entries = []
    for state, (going, waiting) in enumerate(zip(go, wait, strict=True)):
        entries.append([(state + 1, going, 1)])
        surprise = [(0, 1, other[1])] if other is not None and other[0] == state else []
        entries.append([(state, waiting, 1), *surprise])
    labels = [f"s{state}" for state in range(len(go) + 1)]
    return Certificate(
        radius=float(len(go)) - 0.5,
        epsilon=0.5,
        delta=DELTA,
        objective=Objective.OPTIMAL,
        counts=made_counts(entries, [2] * len(go), labels=labels),
        complete=False,
    )


def budget_of(certificate: Certificate, after: int = 1) -> float:
    return Sweeper.of(certificate).region.shared_budgets[after]


def distances(deduction: float, goal: int = LENGTH) -> TooFar:
    return TooFar(goal, Vector.complete(np.arange(goal, 0.0, -1.0)), deduction)


def proven(certificate: Certificate, claim: TooFar) -> float:
    """What a claim proves; 0 if nothing."""
    try:
        require_lower(Sweeper.of(certificate), claim)
    except UnprovenError:
        return 0.0
    return lower_steps(claim)


def test_the_worst_pair_is_deducted_and_nothing_less() -> None:
    draws = [300, 260, 240, 200, 200]
    made = line(draws, [2000] * LENGTH)
    gains = [budget_of(made) * (LENGTH - 1 - state) / (draws[state] - 1) for state in range(LENGTH)]
    exact = max(gains)
    assert proven(made, distances(exact * (1 + A_LITTLE))) == pytest.approx(LENGTH - exact, rel=1e-5)
    assert proven(made, distances(exact * (1 - A_LITTLE))) == 0.0
    assert exact < 0.5
    assert verify(edited(made, too_far=(distances(exact * (1 + A_LITTLE)),))).holds
    assert not verify(edited(made, too_far=(distances(0.51),))).holds  # true, and not beyond the radius


def test_without_a_deduction_every_row_is_at_its_worst() -> None:
    made = line([300] * LENGTH, [2000] * LENGTH)
    assert proven(made, distances(0.0)) == 0.0
    assert proven(made, distances(budget_of(made) * 4 / 299 * (1 + A_LITTLE))) > 0.0


def test_more_steps_than_there_are_do_not_follow_whatever_is_deducted() -> None:
    made = line([300] * LENGTH, [2000] * LENGTH)
    for state in range(LENGTH):
        values = np.arange(LENGTH, 0.0, -1.0)
        values[state] += 1e-3
        assert proven(made, TooFar(LENGTH, Vector.complete(values), 0.4)) == 0.0


def test_a_pair_that_stays_is_drawn_until_waiting_does_not_pay() -> None:
    """Each time a state waits costs a step; so what waiting gains is to be a step at most."""
    budget = budget_of(line([300] * LENGTH, [50] * LENGTH))
    for state in (0, 2):
        value = LENGTH - state
        enough, too_few = 2 + math.ceil(budget * value), math.floor(budget / -math.log1p(-1.0 / value))
        for draws, holds in ((enough, True), (too_few, False)):
            waits = [5000] * LENGTH
            waits[state] = draws
            assert (proven(line([300] * LENGTH, waits), distances(0.1)) > 0.0) == holds


def test_a_pair_off_the_way_gains_less_by_its_detour() -> None:
    """In s0 an action leads to a state as far as s0: its gain is larger by a step, and so is its detour."""
    entries = [[(1, 5000, 1)], [(3, 23, 1)], [(2, 5000, 1)], [(4, 5000, 1)], [(1, 5000, 1)]]
    made = Certificate(
        radius=1.0,
        epsilon=0.5,
        delta=DELTA,
        objective=Objective.OPTIMAL,
        counts=made_counts(entries, [2, 1, 1, 1], labels=["s0", "s1", "s2", "t", "g"]),
        complete=False,
    )
    values = Vector.complete(np.array([3.0, 2.0, 1.0, 3.0]))
    gain = budget_of(made) * 3.0 / 22
    assert gain < 1.0  # less than the detour of a step
    assert proven(made, TooFar(4, values, 0.01)) > 0.0


def test_a_surprise_costs_the_first_budget_and_not_a_later_one() -> None:
    early = line([400] * LENGTH, [2000] * LENGTH, other=(2, 5))
    assert budget_of(early, 10) < budget_of(early, 1) - 3.0
    exact = budget_of(early, 10) * 4 * 0.999 / 390 - 0.001  # a step leads nearer by less than a step
    # Waiting in s2 may lead to s0, which is no shortcut; the ball of its row leaves some room for one.
    values = Vector.complete(np.array([5.0, 4.0, 3.0, 2.0, 1.0]) * 0.999)
    assert proven(early, TooFar(LENGTH, values, exact * (1 + A_LITTLE))) > 0.0
    assert proven(early, TooFar(LENGTH, values, exact * 0.99)) == 0.0


def test_nothing_is_deducted_where_supports_may_close() -> None:
    atlas = axplore.explore(
        domain("slippery-grid", rows=3, columns=3, slip=0.0),
        radius=3,
        epsilon=1,
        assume=Assumptions(min_probability=0.3),
    )
    assert atlas.certificate is not None
    for claim in atlas.certificate.of(TooFar):
        with pytest.raises(UnprovenError, match="share no budget"):
            require_lower(Sweeper.of(atlas.certificate), structs.replace(claim, deduction=0.1))


def explored(seed: int = 0, slippery: tuple[int, ...] = (), size: int = 5, objective: str = "optimal") -> Certificate:
    """The certificate of a grid, some cells of which are slippery."""
    rows: dict[tuple[int, int], dict[str, dict[tuple[int, int], float]]] = {}
    for cell in range(size * size):
        row, column = divmod(cell, size)
        rows[row, column] = {}
        for name, (down, right) in {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}.items():
            there = (min(max(row + down, 0), size - 1), min(max(column + right, 0), size - 1))
            slips = cell in slippery and there != (row, column)
            rows[row, column][name] = {there: 0.75, (row, column): 0.25} if slips else {there: 1.0}
    mdp = TabularMdp.from_rows(rows, (0, 0))
    atlas = axplore.explore(mdp, radius=6, epsilon=1, seed=seed, objective=objective)
    assert atlas.certificate is not None
    return atlas.certificate


@pytest.mark.parametrize("objective", ["optimal", "within-radius"])
@pytest.mark.parametrize("slippery", [(), (6,), (12, 17)])
def test_what_an_exploration_deducts_is_accepted_and_no_less_is(
    slippery: tuple[int, ...], objective: str, tmp_path: Path
) -> None:
    certificate = explored(1, slippery, objective=objective)
    certificate.save(tmp_path)
    certificate = Certificate.load(tmp_path)
    assert verify(certificate).complete
    sweeper, n_deducted = Sweeper.of(certificate), 0
    claims: list[Any] = [*certificate.of(TooFar), *certificate.of(AtLeast), *certificate.of(NearOptimal)]
    for claim in claims:
        if claim.deduction:
            n_deducted += 1
            require_lower(sweeper, claim)
            for part in (0.5, 0.98):
                forged = structs.replace(claim, deduction=part * claim.deduction)
                assert isinstance(claim, NearOptimal) or proven(certificate, forged) == 0.0
            raised = np.minimum(claim.lower.whole * 1.05, 1.0 + 1.05 * float(claim.lower[0]))
            if claim.goal < len(raised):
                raised[claim.goal] = 0.0
            assert proven(certificate, structs.replace(claim, lower=Vector.complete(raised))) == 0.0
    assert n_deducted > 0


def test_a_deduction_is_a_number_and_belongs_to_a_lower_bound() -> None:
    certificate = explored()
    (claim, *_) = (claim for claim in certificate.of(TooFar) if claim.deduction)
    for value in (-0.1, math.nan, math.inf):
        with pytest.raises(InvalidInputError, match=r"TooFar\.deduction"):
            edited(certificate, too_far=(structs.replace(claim, deduction=value),))
    columns = columns_of([claim])
    assert columns.deductions is not None
    assert claims_in(TooFar, columns)[0].deduction == claim.deduction
    for deductions in (np.zeros(1), np.zeros(2), np.array([1])):
        with pytest.raises(InvalidInputError, match="deduction for each claim"):
            claims_in(TooFar, structs.replace(columns, deductions=deductions))
    way = certificate.of(Reachable)[0]
    with pytest.raises(InvalidInputError, match="without a lower bound"):
        claims_in(Reachable, structs.replace(columns_of([way]), deductions=np.array([0.1])))
    assert way.policy[0] != RESET_ACTION
