"""The part of a model that a policy meets on its way to a goal, as a model of its own.

A large model has many states, and a policy to one goal meets few of them, in each of which it plays one pair. Whatever
else there is resets, and counts as one state outside. An upper bound of the policy there is one in the whole model, and
takes time that grows with the way alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore.compressed import entries_in
from axplore.proofs.bounds import GoalValues, IntervalModel, states_met
from axplore.proofs.row_kernels import rows_of_pairs
from axplore.types import RESET_PAIR, IntArray

NO_NUMBER: Final = -1
"""In place of the number of all states outside."""


@dataclass(frozen=True, eq=False)
class WayModel:
    """What is known along a way.

    Attributes:
        model: the states of the way, of which the goal is the first that is not known, and one state outside.
        path: the path that it was made of, in this model.
        states, pairs: of each state of the way, the index in the whole model, and the pair that is played, [m].
    """

    model: IntervalModel
    path: GoalValues
    states: IntArray
    pairs: IntArray

    def in_whole(self, found: GoalValues, model: IntervalModel, goal: int) -> GoalValues:
        """Returns an upper path of this model as one of the whole model towards a goal, with RESET elsewhere."""
        values = np.full(len(model.numbers), model.rows.reset_cost + found.steps)
        values[self.states], values[goal] = found.values[: len(self.states)], 0.0
        policy = np.full(model.n_known, RESET_PAIR)
        policy[self.states] = np.where(found.policy == RESET_PAIR, RESET_PAIR, self.pairs)
        return replace(found, goal=goal, values=values, policy=policy)


def model_along(model: IntervalModel, path: GoalValues) -> WayModel | None:
    """Returns what is known along a path, from the initial state to the goal; None if the path leads nowhere.

    There is none in trials: these are made of the model of a way themselves.
    """
    if model.imagined is not None:
        return None
    met = states_met(model, path)
    met[path.goal : path.goal + 1] = False  # if it is known
    states = np.flatnonzero(met & (path.policy != RESET_PAIR))
    if not len(states) or states[0] != 0:
        return None
    pairs, n_way = path.policy[states], len(states)
    index_of = np.full(len(model.numbers), n_way + 1)
    index_of[states], index_of[path.goal] = np.arange(n_way), n_way
    rows = rows_of_pairs(model.rows, pairs, np.arange(len(pairs) + 1))
    rows = rows._replace(successors=index_of[rows.successors])
    entries = entries_in(model.rows.row_offsets, pairs)
    own = GoalValues(
        n_way,
        np.append(path.values[states], [0.0, model.rows.reset_cost + path.steps]),
        np.arange(n_way),
        proven=False,
    )
    along = replace(
        model,
        rows=rows,
        visits=model.visits[pairs],
        numbers=np.append(model.numbers[states], [model.numbers[path.goal], NO_NUMBER]),
        n_known=n_way,
        estimates={(n_way, n_way): own},
        shared={},
        starts={},
        counts=None if model.counts is None else model.counts[entries],
        log_levels=None if model.log_levels is None else model.log_levels[pairs],
        sharp={},
        closing=None if model.closing is None else model.closing[pairs],
        whole_up_to=n_way,
    )
    return WayModel(along, own, states, pairs)


def among_first(model: IntervalModel, n_allowed: int) -> IntervalModel:
    """Returns the model in which only the first known states have actions; their pairs keep their indices."""
    state_pairs = model.rows.state_pairs
    pairs = np.arange(state_pairs[n_allowed])
    return replace(
        model,
        rows=rows_of_pairs(model.rows, pairs, np.minimum(state_pairs, len(pairs))),
        visits=model.visits[pairs],
        groups=None if model.groups is None else model.groups[pairs],
        closing=None if model.closing is None else model.closing[pairs],
        counts=None,
        log_levels=None,
        estimates={},
        starts={},
        sharp={},
        shared={},
    )
