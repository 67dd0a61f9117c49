"""The bounds on the size of the world that the paper's constants hold."""

from __future__ import annotations

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.statistics.counts import CountedRows


def required_states_bound(states_bound: int | None) -> int:
    """S, which the paper's guarantees need; refused when it is missing or impossible."""
    if states_bound is None:
        raise InvalidSettingError(
            "states_bound is missing: the theory's constants hold an upper bound S on the number of states; "
            "give one (only its logarithm enters), or use an experiment preset, which carries no guarantee"
        )
    if states_bound < 1:
        raise InvalidSettingError(f"states_bound is {states_bound}; there is at least the initial state")
    return states_bound


def action_bound(actions_bound: int | None, rows: CountedRows) -> int:
    """A, the most actions that any state has beside RESET, which is known and needs no estimate.

    Differs from [DisCo], where A is given: without a bound it is that of the known states.
    """
    met = int(np.diff(rows.state_pairs).max(initial=1))
    if actions_bound is not None and met > actions_bound:
        raise InvalidSettingError(f"actions_bound is {actions_bound}, but a known state has {met} actions")
    return met if actions_bound is None else actions_bound
