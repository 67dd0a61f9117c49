"""One goal or several: how planners read their argument `goals`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from axplore.errors import UnknownStateError
from axplore.mdp import State, TabularMdp


def is_one_goal(mdp: TabularMdp, goals: State | Sequence[State]) -> bool:
    """Whether this is the label of a state; if so it is one goal, even where labels are tuples."""
    try:
        mdp.index_of(goals)
    except UnknownStateError:
        if isinstance(goals, str) or not isinstance(goals, Iterable):
            raise
        return False
    except TypeError:  # not hashable, so it is no label
        return False
    return True


def goal_labels(mdp: TabularMdp, goals: State | Sequence[State]) -> tuple[State, ...]:
    """The labels of one goal or several."""
    return (goals,) if is_one_goal(mdp, goals) else tuple(cast("Sequence[State]", goals))
