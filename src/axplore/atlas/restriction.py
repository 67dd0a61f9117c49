"""The part of an atlas within a smaller radius."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from axplore.atlas.learned_model import model_with
from axplore.atlas.state_report import checked_regret
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.proofs.bounds import upper_path
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests
from axplore.proofs.evidence import Evidence, gather_evidence
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import Bets, line_level
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION, IntArray, Status

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
    numbers, tests = _admitted(atlas, target)
    objective = atlas.objective or Objective.OPTIMAL
    evidence = gather_evidence(model_with(atlas, numbers), target, objective, tests)
    return _part(atlas, evidence, numbers, target)


def _admitted(atlas: Atlas, target: Target) -> tuple[list[int], EpisodeTests]:
    """The numbers of the states that are proven to be controllable, in the order in which that follows.

    Also the tests by episodes that prove it of some, whose policies play only in the states before them.
    """
    reach = target.radius + target.epsilon
    admitted = [int(atlas.numbers[0])]
    waiting = [int(number) for number in atlas.numbers[1:]]
    tests = EpisodeTests()
    while waiting:
        model = model_with(atlas, admitted)
        position_of = {number: position for position, number in enumerate(model.numbers.tolist())}
        seen = [number for number in waiting if number in position_of]
        for test in _tests_through(atlas, admitted):
            tests = tests.with_test(test) if test.goal in waiting else tests
        near = [
            number
            for number in seen
            if tests.proof_of(number, reach) is not None or upper_path(model, position_of[number]).steps <= reach
        ]
        if not near:
            break
        admitted += near
        waiting = [number for number in waiting if number not in near]
    return admitted, tests


def _tests_through(atlas: Atlas, admitted: list[int]) -> Iterator[EpisodeTest]:
    """The tests by episodes of an atlas whose policies play only in these states, by their numbers."""
    share = EPISODE_PART * atlas.target.delta
    for record in atlas.certificate.episodes if atlas.certificate is not None else ():
        played = {int(atlas.numbers[place]): a for place, a in enumerate(record.policy) if a != RESET_ACTION}
        if played.keys() <= set(admitted):
            yield EpisodeTest(
                goal=int(atlas.numbers[record.goal]),
                policy=np.array([played.get(number, RESET_ACTION) for number in admitted], dtype=np.int64),
                horizon=record.horizon,
                bound=record.bound,
                line=record.line,
                turn=record.turn,
                level=line_level(share, record.line),
                bets=Bets(np.array(record.fractions), np.array(record.weights)),
                outcomes=np.array(record.outcomes, dtype=np.int64),
            )


def _part(atlas: Atlas, evidence: Evidence, numbers: list[int], target: Target) -> Atlas:
    n_known = len(numbers)
    lower = np.array([path.steps for path in evidence.lower])
    upper = np.full(len(lower), math.inf)
    upper[:n_known] = evidence.upper_steps
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
        policies=evidence.policies,
        left_out_numbers=np.concatenate((left_out, rest)).astype(np.int64),
        lower=np.concatenate((lower, np.full(len(rest), unseen))),
        upper=np.concatenate((upper, np.full(len(rest), math.inf))),
        regret=np.concatenate((regret, np.full(len(rest), math.inf))),
        statuses=(*(evidence.status(place) for place in range(len(lower))), *(status,) * len(rest)),
        unseen_lower=unseen,
        complete=evidence.complete and (status is Status.SET_ASIDE or not len(rest)),
        certificate=None,
    )
