"""The part of an atlas within a smaller radius."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from axplore.atlas.learned_model import model_with
from axplore.atlas.state_report import checked_regret
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.proofs.bounds import upper_path
from axplore.proofs.evidence import Evidence, gather_evidence
from axplore.target import Objective, Target
from axplore.types import IntArray, Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def within(atlas: Atlas, radius: float) -> Atlas:
    """What the counts of an atlas prove for a smaller radius: its own states, policies and bounds.

    Admits anew, from the initial state on, every state that some policy through those admitted before it is proven to
    reach within the smaller radius and ε. All others are set aside where that is proven, and open where it is not.
    """
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas, so nothing of a part of it: {atlas.explorer} leaves no bounds; "
            "explore with 'certified', or explore again with the smaller radius"
        )
    target = replace(atlas.target, radius=radius)
    if radius > atlas.target.radius:
        raise InvalidSettingError(
            f"the radius of {radius:g} is larger than that of the atlas, {atlas.target.radius:g}: what lies beyond "
            "was not explored; explore with the larger one"
        )
    numbers = _admitted(atlas, target)
    objective = atlas.objective or Objective.OPTIMAL
    evidence = gather_evidence(model_with(atlas, numbers), target, objective)
    return _part(atlas, evidence, numbers, target)


def _admitted(atlas: Atlas, target: Target) -> list[int]:
    """The numbers of the states that are proven to be controllable, in the order in which that follows."""
    reach = target.radius + target.epsilon
    admitted = [int(atlas.numbers[0])]
    waiting = [int(number) for number in atlas.numbers[1:]]
    while waiting:
        model = model_with(atlas, admitted)
        position_of = {number: position for position, number in enumerate(model.numbers.tolist())}
        seen = [number for number in waiting if number in position_of]
        near = [number for number in seen if upper_path(model, position_of[number]).at_most <= reach]
        if not near:
            break
        admitted += near
        waiting = [number for number in waiting if number not in near]
    return admitted


def _part(atlas: Atlas, evidence: Evidence, numbers: list[int], target: Target) -> Atlas:
    n_known = len(numbers)
    lower = np.array([path.steps for path in evidence.lower])
    upper = np.full(len(lower), math.inf)
    upper[:n_known] = [path.steps for path in evidence.best_upper]
    regret = upper - lower
    for place, bound in enumerate(evidence.regrets):
        regret[place] = checked_regret(upper[place], lower[place], bound.steps, target)
    left_out = evidence.model.numbers[n_known:]
    # What no state of the part was seen to lead to is bounded as a state never seen is.
    rest: IntArray = np.setdiff1d(np.concatenate((atlas.numbers, atlas.left_out_numbers)), evidence.model.numbers)
    unseen = evidence.unseen.steps
    status = Status.SET_ASIDE if unseen > target.radius else Status.OPEN
    places = {number: place for place, number in enumerate(atlas.numbers.tolist())}
    old = [places[number] for number in numbers]
    return replace(
        atlas,
        target=target,
        numbers=np.array(numbers, dtype=np.int64),
        found_at=atlas.found_at[old],
        actions=tuple(atlas.actions[place] for place in old),
        policies=tuple(evidence.actions(path.policy) for path in evidence.best_upper),
        left_out_numbers=np.concatenate((left_out, rest)).astype(np.int64),
        lower=np.concatenate((lower, np.full(len(rest), unseen))),
        upper=np.concatenate((upper, np.full(len(rest), math.inf))),
        regret=np.concatenate((regret, np.full(len(rest), math.inf))),
        statuses=(*(evidence.status(place) for place in range(len(lower))), *(status,) * len(rest)),
        unseen_lower=unseen,
        complete=evidence.complete,
        certificate=None,
    )
