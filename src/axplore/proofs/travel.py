"""How the certified explorer gets about: shortest paths by the observed frequencies, and tours along them."""

from __future__ import annotations

import math

import numpy as np

from axplore.compilation import compiled
from axplore.proofs.bound_kernels import Predecessors, Rows, empirical_values
from axplore.proofs.bounds import IntervalModel, empirical_path
from axplore.target import Target
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray
from axplore.worlds.contract import Tour


def travel_per_draw(model: IntervalModel) -> FloatArray:
    """The steps that one more draw of each pair takes, the way back to its state included, by the frequencies, [P]."""
    return _travel_per_draw(model.rows, model.predecessors, len(model.numbers), model.limit)


@compiled
def _travel_per_draw(rows: Rows, predecessors: Predecessors, n_seen: int, limit: float) -> FloatArray:
    n_known = len(rows.state_pairs) - 1
    per_draw = np.ones(len(rows.slack))
    policy = np.empty(n_known, np.int64)
    values = np.empty(n_seen)
    for state in range(n_known):
        if not empirical_values(rows, predecessors, state, n_known, values, policy, 10.0 * limit):
            values[:] = limit
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                per_draw[pair] += rows.frequencies[entry] * min(values[rows.successors[entry]], limit)
    return per_draw


def actions_of(model: IntervalModel, policy: IntArray) -> IntArray:
    """A policy of pairs as one of positions among the actions of each known state, [n]."""
    first = model.rows.state_pairs[:-1]
    return np.where(policy == RESET_PAIR, RESET_ACTION, policy - first)


def tour_of(model: IntervalModel, draws: IntArray, target: Target) -> Tour:
    """Returns the order to draw each pair a number of further times, [P]."""
    pairs = np.flatnonzero(draws > 0)
    positions = np.searchsorted(model.rows.state_pairs, pairs, side="right") - 1
    targets = np.unique(positions)
    known = model.numbers[: model.n_known]
    policies = np.full((len(targets), int(known.max()) + 1), RESET_ACTION, dtype=np.int64)
    distances = np.full(policies.shape, np.inf)
    for place, goal in enumerate(targets):
        path = empirical_path(model, int(goal))
        policies[place, known] = actions_of(model, path.policy)
        distances[place] = 1.0 + path.values[0]
        distances[place, known] = path.values[: model.n_known]
    return Tour(
        states=model.numbers[positions],
        actions=pairs - model.rows.state_pairs[positions],
        times=draws[pairs],
        policies=policies,
        distances=distances,
        max_journey=journey_limit(target),
    )


def journey_limit(target: Target) -> int:
    """Returns the steps after which a journey is cut: resetting then costs at most ε ([DisCo] Lem. (log_dependency_H)).

    Differs from [DisCo], whose `effective_horizon` is a rule of DisCo: L + 1 is rounded up, and ε counts as 1 at most.
    """
    reach = target.radius + 1
    return 4 * math.ceil(reach) * math.ceil(math.log(4 * reach / min(target.epsilon, 1.0)))
