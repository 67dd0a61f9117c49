"""How wrong the rows of an atlas may be, by aliasing or drift, before a claim about a state no longer follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axplore.atlas.learned_model import index_in_model, pairs_of_policy
from axplore.certificate.kinds.tested_optimality import OptimalByTest, optimal_by_test
from axplore.labels import encode_label
from axplore.proofs.break_even import (
    optimistic_steps,
    reaches,
    robust_steps,
    stays_beyond,
    stays_within,
    surviving_error,
)
from axplore.target import Objective
from axplore.types import State, Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


@dataclass(frozen=True)
class SurvivingClaim:
    """A claim about a state, and how wrong rows may be for it to hold.

    Attributes:
        claim: what is claimed, as the beginning of a sentence.
        error: η, the total variation by which every row may differ from one that the counts allow; None if the claim
            does not follow from the rows alone, or by a proof that this is not computed for.
    """

    claim: str
    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.claim} is not proven by rows alone, so how wrong they may be is not known."
        if self.error == 1.0:
            return f"{self.claim} does not depend on any row."
        return f"{self.claim} survives rows that are wrong by {percent(self.error)} (in total variation)."


@dataclass(frozen=True)
class BreakEven:
    """How wrong every row may be for the claims about a state to hold.

    Attributes:
        state: its label.
        claims: what is claimed of it; none of a state that is open, or if nothing is proven.
    """

    state: State
    claims: tuple[SurvivingClaim, ...]

    @property
    def error(self) -> float:
        """The largest η at which every claim that has a break-even holds; 0 if none has one."""
        return min((claim.error for claim in self.claims if claim.error is not None), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "state": encode_label(self.state),
            "error": self.error,
            "claims": [{"claim": claim.claim, "error": claim.error} for claim in self.claims],
        }

    def __str__(self) -> str:
        return " ".join(map(str, self.claims)) or "Nothing is claimed of it."


def percent(error: float) -> str:
    """Returns the largest error in hundredths, rounded down, as the end of a phrase."""
    hundredths = math.floor(error * 10_000) / 100
    return f"up to {hundredths:g} %" if hundredths else "less than 0.01 %"


def break_even(atlas: Atlas, state: State) -> BreakEven:
    """Returns how wrong every row may be for the claims about a state to hold; see `axplore.proofs.break_even`."""
    status = atlas.describe(state).status
    if not atlas.proven or status is Status.OPEN or atlas.is_refuted:
        return BreakEven(state, ())
    if state == atlas.states[0]:
        return BreakEven(state, (SurvivingClaim("That RESET leads to it", 1.0),))
    claims = _of_member(atlas, state) if state in atlas.indices else [_of_other(atlas, state)]
    return BreakEven(state, tuple(claims))


def _of_member(atlas: Atlas, state: State) -> list[SurvivingClaim]:
    model, index, reach = atlas.model, atlas.indices[state], atlas.target.radius + atlas.target.epsilon
    goal = index_in_model(model, int(atlas.numbers[index]))
    arrives = f"That its policy arrives within {reach:g} expected steps"
    if atlas.policies[index].ndim == 2:  # it depends on the step, and was tested by episodes
        return [SurvivingClaim(arrives, 1.0)]
    policy = pairs_of_policy(atlas, model, atlas.policies[index])
    tested = _test_of(atlas, index)

    def is_tested(error: float) -> bool:
        """Whether the rows still close the tail of the test, so that the policy keeps the bound of the test."""
        return tested is not None and stays_within(model, goal, policy, tested.record.tail, error)

    def arrives_in_time(error: float) -> bool:
        by_test = tested is not None and tested.record.steps <= reach and is_tested(error)
        return by_test or reaches(model, goal, policy, reach, error)

    claims = [SurvivingClaim(arrives, surviving_error(arrives_in_time))]
    if atlas.objective is Objective.OPTIMAL:

        def is_near_optimal(error: float) -> bool:
            upper = robust_steps(model, goal, policy, error)
            if tested is not None and is_tested(error):
                upper = min(upper, tested.record.steps)
            return upper - optimistic_steps(model, goal, error) <= atlas.target.epsilon

        steps = "1 step" if atlas.target.epsilon == 1 else f"{atlas.target.epsilon:g} steps"
        claim = f"That its policy is within {steps} of the best one"
        claims.append(SurvivingClaim(claim, surviving_error(is_near_optimal)))
    return claims


def _test_of(atlas: Atlas, index: int) -> OptimalByTest | None:
    """The test by episodes that proves the policy to a state near-optimal, if there is one."""
    if atlas.certificate is None:
        return None
    return optimal_by_test(atlas.certificate).get(index)


def _of_other(atlas: Atlas, state: State) -> SurvivingClaim:
    model, radius = atlas.model, atlas.target.radius
    goal = index_in_model(model, atlas.seen.index(state)) if state in atlas.seen else model.unseen
    return SurvivingClaim(
        f"That it takes more than {radius:g} expected steps",
        surviving_error(lambda error: stays_beyond(model, goal, radius, error)),
    )
