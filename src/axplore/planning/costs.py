"""Costs in [min_cost, 1]: checked once, where they come in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidCostsError
from axplore.mdp import FloatArray, TabularMdp


def pair_costs(mdp: TabularMdp, costs: npt.ArrayLike | None) -> FloatArray:
    """The cost of each pair, [P]; ones when not given."""
    if costs is None:
        return np.ones(mdp.n_pairs)
    checked = np.array(costs, dtype=np.float64)
    if checked.shape != (mdp.n_pairs,):
        raise InvalidCostsError(f"costs must have the shape [P] = [{mdp.n_pairs}], not {list(checked.shape)}")
    bad = first_invalid(checked)
    if bad is not None:
        state, action = mdp.states[mdp.pair_states[bad]], mdp.actions[mdp.pair_actions[bad]]
        raise InvalidCostsError(f"state {state!r}, action {action!r}: {complaint(checked[bad])}")
    return checked


def state_reset_costs(mdp: TabularMdp, reset_costs: npt.ArrayLike | None) -> FloatArray:
    """The cost of RESET in each state, [S], from one number or one for each; ones when not given."""
    if reset_costs is None:
        return np.ones(mdp.n_states)
    given = np.asarray(reset_costs, dtype=np.float64)
    if given.shape not in {(), (mdp.n_states,)}:
        raise InvalidCostsError(
            f"reset_costs must be a number or have the shape [S] = [{mdp.n_states}], not {list(given.shape)}"
        )
    checked = np.array(np.broadcast_to(given, (mdp.n_states,)))
    bad = first_invalid(checked)
    if bad is not None:
        raise InvalidCostsError(f"state {mdp.states[bad]!r}, RESET: {complaint(checked[bad])}")
    return checked


def first_invalid(costs: FloatArray) -> int | None:
    """Where the first cost outside (0, 1] is, if there is one."""
    bad = np.flatnonzero(~((costs > 0) & (costs <= 1)))
    return int(bad[0]) if bad.size else None


def complaint(cost: float) -> str:
    """What is wrong with a cost, and what to do about it."""
    return f"the cost is {cost:g}; it must be above 0 and at most 1 (divide all costs by the largest one)"
