"""How δ is divided among everything that may err: docs/algorithms/certified.md, section 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SHARED: Final = 0.2
"""The part of δ for the martingales shared by the pairs with one successor."""

JOINING: Final = ((1, 0.75), (10, 0.15), (30, 0.1))
"""The draws after which pairs join each of these martingales, and its part of what they have together."""

EPISODES: Final = 0.2
"""The part of δ for tests by episodes, see `kinds/episodes.py`."""

PAIRS: Final = 0.6
"""The part of δ for the rows; each pair has its part of it."""

OWN: Final = 0.1
"""The part of that of a pair for the bets on each of its successors alone; its ball has the rest."""

CLOSING: Final = 0.15
"""The part of δ for closed supports, of that for the shared martingale, where an assumption closes them by chance."""

SCALE: Final = 10
"""m in the weight m / ((i + m)(i + m - 1)) of the i-th known state; these weights sum to one."""


def weight_of(number: int) -> float:
    """The part of the i-th of 1, 2, ...; all of them sum to one."""
    return SCALE / ((number + SCALE) * (number + SCALE - 1))


def pair_weights(n_actions: Sequence[int], ranks: Sequence[int] | None = None) -> list[float]:
    """The part of δ that each pair may use; over any number of states they sum to at most one.

    Args:
        n_actions: of each state.
        ranks: of each state, all different; its index, from 1 on, when not given.
    """
    weights = []
    for rank, actions in zip(ranks or range(1, len(n_actions) + 1), n_actions, strict=True):
        weights += [weight_of(rank) / actions for _ in range(actions)]
    return weights
