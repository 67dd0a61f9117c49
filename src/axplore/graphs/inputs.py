"""Checks of the arguments of planners: costs in [min_cost, 1], and one goal or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidCostsError, UnknownStateError
from axplore.mdp import TabularMdp
from axplore.types import FloatArray, State


def pair_costs(mdp: TabularMdp, costs: npt.ArrayLike | None) -> FloatArray:
    """Returns the cost of each pair, [P]; 1 by default."""

    def named(pair: int) -> str:
        return f"state {mdp.states[mdp.pair_states[pair]]!r}, action {mdp.actions[mdp.pair_actions[pair]]!r}"

    return checked_costs(costs, mdp.n_pairs, named)


def state_reset_costs(mdp: TabularMdp, reset_costs: npt.ArrayLike | None) -> FloatArray:
    """Returns the cost of RESET in each state, [S], from one number or one for each; 1 by default."""
    return checked_reset_costs(reset_costs, mdp.n_states, lambda state: f"state {mdp.states[state]!r}, RESET")


def checked_costs(costs: npt.ArrayLike | None, n_pairs: int, named: Callable[[int], str]) -> FloatArray:
    """Returns a cost for each pair, [P]; `named` says in messages which pair it is."""
    if costs is None:
        return np.ones(n_pairs)
    checked = np.array(costs, dtype=np.float64)
    if checked.shape != (n_pairs,):
        raise InvalidCostsError(f"costs must have the shape [P] = [{n_pairs}], not {list(checked.shape)}")
    _check_range(checked, named)
    return checked


def checked_reset_costs(reset_costs: npt.ArrayLike | None, n_states: int, named: Callable[[int], str]) -> FloatArray:
    """Returns a cost of RESET for each state, [S]; `named` says in messages which state it is."""
    if reset_costs is None:
        return np.ones(n_states)
    given = np.asarray(reset_costs, dtype=np.float64)
    if given.shape not in {(), (n_states,)}:
        raise InvalidCostsError(
            f"reset_costs must be a number or have the shape [S] = [{n_states}], not {list(given.shape)}"
        )
    checked = np.array(np.broadcast_to(given, (n_states,)))
    _check_range(checked, named)
    return checked


def smallest_cost(costs: FloatArray, reset_costs: FloatArray) -> float:
    """Returns the smallest of all costs, c_min."""
    return float(min(costs.min(initial=1.0), reset_costs.min()))


def _check_range(costs: FloatArray, named: Callable[[int], str]) -> None:
    bad = np.flatnonzero(~((costs > 0) & (costs <= 1)))
    if bad.size:
        first = int(bad[0])
        raise InvalidCostsError(
            f"{named(first)}: the cost is {costs[first]:g}; it must be above 0 and at most 1 "
            "(divide all costs by the largest one)"
        )


def is_one_goal(mdp: TabularMdp, goals: State | Sequence[State]) -> bool:
    """Returns whether this is the label of a state; if so it is one goal, even where labels are tuples."""
    try:
        mdp.index_of(goals)
    except UnknownStateError:
        if isinstance(goals, str) or not isinstance(goals, Iterable):
            raise
        return False
    except TypeError:  # not hashable, so it is not a label
        return False
    return True


def goal_labels(mdp: TabularMdp, goals: State | Sequence[State]) -> tuple[State, ...]:
    """Returns the labels of one goal or several."""
    return (goals,) if is_one_goal(mdp, goals) else tuple(cast("Sequence[State]", goals))
