"""The model learned by an atlas, in the form that planning reads, and what it proves for a smaller radius."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from axplore.assumptions.applied import is_single, region_given
from axplore.atlas.state_report import checked_regret
from axplore.atlas.statements import Statements
from axplore.certificate.assumptions.given import level_weights
from axplore.certificate.region import spent_by_retired
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.proofs.bounds import IntervalModel, interval_model, upper_path
from axplore.proofs.certificates import episode_records
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests, levels_of
from axplore.proofs.evidence import Evidence, gather_evidence
from axplore.proofs.surveys import survey_evidence
from axplore.records.episodes import EpisodeRecord
from axplore.statistics.confidence import EPISODE_PART, ConfidenceRegion, part_of
from axplore.statistics.counts import NONE, rows_of
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION, RESET_PAIR, IntArray, Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def learned_model(atlas: Atlas) -> IntervalModel:
    """Returns the model of the states of an atlas, in order of admission.

    The levels of the region depend on the order in which states were added to the counts. So the region is computed
    for all counts, and an atlas of fewer states uses a part of it.
    """
    return model_with(atlas, atlas.numbers.tolist())


def region_of(atlas: Atlas) -> ConfidenceRegion:
    """Returns the region that all counts of an atlas prove, given what is assumed."""
    counts, delta, retired = atlas.counts, atlas.target.delta, atlas.retired
    if retired is None:
        return region_given(counts, delta, atlas.assumed)
    weights = level_weights(counts, np.diff(counts.state_pairs).tolist(), atlas.assumed, retired)
    spent = tuple(spent_by_retired(retired).values())
    return region_given(counts, delta, atlas.assumed, retired.ranks, spent, np.array(weights))


def model_with(atlas: Atlas, numbers: list[int]) -> IntervalModel:
    """Returns the model of some of the states of an atlas, given by number, in this order."""
    part, region = part_of(region_of(atlas), atlas.counts, np.array(numbers, dtype=np.int64))
    return interval_model(part, region, atlas.target.value_limit)


def pairs_of_policy(atlas: Atlas, model: IntervalModel, choices: IntArray) -> IntArray:
    """Returns a policy of the atlas, [m], as the pair of each known state of the model, or RESET_PAIR, [n]."""
    chosen = np.full(len(atlas.numbers), RESET_ACTION)
    chosen[: len(choices)] = choices
    chosen = chosen[known_indices(atlas, model)]
    return np.where(chosen == RESET_ACTION, RESET_PAIR, model.rows.state_pairs[:-1] + chosen)


def choices_of_policy(atlas: Atlas, model: IntervalModel, pairs: IntArray) -> IntArray:
    """Returns a policy of pairs, [n], as the choices of a policy of the atlas, [k]."""
    choices = np.full(len(atlas.numbers), RESET_ACTION, dtype=np.int64)
    for known, index in enumerate(known_indices(atlas, model)):
        if pairs[known] != RESET_PAIR:
            choices[index] = pairs[known] - model.rows.state_pairs[known]
    return choices


def known_indices(atlas: Atlas, model: IntervalModel) -> list[int]:
    """Returns the index in the atlas of each known state of the model, [n]."""
    known = model.numbers[: model.n_known]
    indices = np.full(int(max(known.max(), atlas.numbers.max())) + 1, NONE)
    indices[atlas.numbers] = np.arange(len(atlas.numbers))
    found: list[int] = indices[known].tolist()
    return found


def index_in_model(model: IntervalModel, number: int) -> int:
    """Returns the index of a state, by number, in the model; that of the unseen if no known state leads there."""
    (found,) = np.nonzero(model.numbers == number)
    return int(found[0]) if len(found) else model.unseen


def within(atlas: Atlas, radius: float) -> Atlas:
    """Returns the atlas that the counts prove for a smaller radius, with its own states, policies and bounds.

    Starting from the initial state, it admits every state that some policy through the states admitted before is
    proven to reach within the smaller radius and ε. Others are set aside where that is proven, and open otherwise.
    """
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas, so nothing of a part of it: {atlas.explorer} gives no bounds; "
            f"explore with {DEFAULT_EXPLORER!r}, or explore again with the smaller radius"
        )
    target = replace(atlas.target, radius=radius)
    if radius > atlas.target.radius:
        raise InvalidSettingError(
            f"the radius of {radius:g} is larger than that of the atlas, {atlas.target.radius:g}: what lies beyond "
            "was not explored; explore with the larger radius"
        )
    objective = atlas.objective or Objective.OPTIMAL
    if atlas.assumed is not None and is_single(atlas.assumed, len(atlas.counts.visits)).all():
        return _exact_part(atlas, target, objective)
    numbers, tests = _admitted(atlas, target)
    evidence = gather_evidence(model_with(atlas, numbers), target, objective, tests)
    return _restricted(atlas, evidence, numbers, target)


def _exact_part(atlas: Atlas, target: Target, objective: Objective) -> Atlas:
    """Returns the part of an atlas in which every action is assumed to have one outcome."""
    kept = np.flatnonzero(atlas.upper[: len(atlas.numbers)] <= target.radius)
    survey = survey_evidence(rows_of(atlas.counts, atlas.numbers[kept]), target, objective)
    bounds, n_known = survey.bounds, len(kept)
    rest: IntArray = np.setdiff1d(np.concatenate((atlas.numbers, atlas.frontier_numbers)), survey.numbers)
    unseen_status = Status.SET_ASIDE if bounds.unseen > target.radius else Status.OPEN
    statuses = (*bounds.statuses(n_known, target.radius, target.epsilon, objective), *(unseen_status,) * len(rest))
    part = Statements(
        target=target,
        objective=atlas.objective,
        numbers=atlas.numbers[kept],
        policies=survey.policies,
        frontier_numbers=np.concatenate((survey.numbers[n_known:], rest)).astype(np.int64),
        lower=np.concatenate((bounds.lower, np.full(len(rest), bounds.unseen))),
        upper=np.concatenate((bounds.upper, np.full(len(rest), math.inf))),
        regret=np.concatenate((bounds.regret, np.full(len(rest), math.inf))),
        statuses=statuses,
        unseen_lower=bounds.unseen,
        complete=Status.OPEN not in statuses and bounds.unseen > target.radius,
    )
    return replace(atlas, part=part)


def _admitted(atlas: Atlas, target: Target) -> tuple[list[int], EpisodeTests]:
    """Returns the numbers of the states that are proven to be controllable, in order of admission.

    Also the tests by episodes that prove it of some, whose policies play only in the states before them, and the tests
    of other policies through these states.
    """
    reach = target.radius + target.epsilon
    admitted = [int(atlas.numbers[0])]
    waiting = [int(number) for number in atlas.numbers[1:]]
    tests = EpisodeTests()
    while waiting:
        model = model_with(atlas, admitted)
        indices = {number: index for index, number in enumerate(model.numbers.tolist())}
        seen = [number for number in waiting if number in indices]
        for test in _tests_through(atlas, admitted):
            tests = tests.with_test(test) if test.goal in waiting else tests
        near = [
            number
            for number in seen
            if tests.proof_of(number, reach) is not None or upper_path(model, indices[number]).at_most <= reach
        ]
        if not near:
            break
        admitted += near
        waiting = [number for number in waiting if number not in near]
    taken = {(test.line, test.turn) for test in tests}
    for test in _tests_through(atlas, admitted):  # they may prove policies near-optimal
        if (test.line, test.turn) not in taken and test.goal in admitted:
            tests = tests.with_test(test)
    return admitted, tests


def _tests_through(atlas: Atlas, admitted: list[int]) -> Iterator[EpisodeTest]:
    """The tests by episodes of an atlas whose policies play only in these states, by their numbers."""
    records = () if atlas.certificate is None else atlas.certificate.of(EpisodeRecord)
    levels = levels_of(records, EPISODE_PART * atlas.target.delta)
    for record, level in zip(records, levels, strict=True):
        if record.at_most is None:
            continue
        played = dict(zip(atlas.numbers[np.array(record.states, dtype=np.int64)].tolist(), record.actions, strict=True))
        if played.keys() <= set(admitted):
            plays = {index: played[number] for index, number in enumerate(admitted) if number in played}
            yield EpisodeTest.of(record, int(atlas.numbers[record.goal]), plays, level)


def _restricted(atlas: Atlas, evidence: Evidence, numbers: list[int], target: Target) -> Atlas:
    n_known = len(numbers)
    lower = np.array([bound.lower[0] - bound.deduction for bound in evidence.lower])
    upper = np.full(len(lower), math.inf)
    upper[:n_known] = evidence.upper_steps
    regret = upper - lower
    for index, bound in enumerate(evidence.regrets):
        regret[index] = checked_regret(upper[index], lower[index], bound.steps, target)
    frontier = evidence.model.numbers[n_known:]
    # A state to which no state of the part was seen to lead has the bound of states never seen.
    rest: IntArray = np.setdiff1d(np.concatenate((atlas.numbers, atlas.frontier_numbers)), evidence.model.numbers)
    unseen = float(evidence.unseen.lower[0]) - evidence.unseen.deduction
    status = Status.SET_ASIDE if unseen > target.radius else Status.OPEN
    part = Statements(
        target=target,
        objective=atlas.objective,
        numbers=np.array(numbers, dtype=np.int64),
        policies=evidence.policies,
        frontier_numbers=np.concatenate((frontier, rest)).astype(np.int64),
        lower=np.concatenate((lower, np.full(len(rest), unseen))),
        upper=np.concatenate((upper, np.full(len(rest), math.inf))),
        regret=np.concatenate((regret, np.full(len(rest), math.inf))),
        statuses=(*(evidence.status(index) for index in range(len(lower))), *(status,) * len(rest)),
        unseen_lower=unseen,
        complete=evidence.complete,
        tests=episode_records(evidence),
    )
    return replace(atlas, part=part)
