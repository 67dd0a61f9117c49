"""The three objectives of autonomous exploration."""

from __future__ import annotations

from enum import Enum


class Objective(Enum):
    """What a set of states with a policy for each has to keep ([DisCo] Def. 5 and App. A).

    In each case the set has to hold S_L→, and each policy may take `epsilon` steps more than the objective's limit.
    """

    WITHIN_RADIUS = "AX_L"
    """The limit is the radius, L."""

    STAGED = "AX'"
    """The limit is the least radius at which the state is controllable, L' = min{l <= L : s in S_l→}."""

    OPTIMAL = "AX*"
    """The limit is the optimum restricted on the controllable states, V*_{S_L→}(s0→s)."""
