"""Which actions to play next: what the explorer would draw to prove what is still open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from axplore.errors import InvalidInputError
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.labels import encode_label, readable
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

MOST_CLAIMS: Final = 20
"""The most open claims that are planned for: what they bring changes the plans for others."""


@dataclass(frozen=True)
class NextDraws:
    """An action to play next.

    Attributes:
        state, action: the pair.
        draws: how often more.
        why: what it serves.
    """

    state: State
    action: Action
    draws: int
    why: str

    def __str__(self) -> str:
        times = "once" if self.draws == 1 else f"{self.draws:,} times"
        return f"{readable(self.action)} in {readable(self.state)}, {times} more: {self.why}"

    def as_json(self) -> dict[str, Any]:
        """Returns it as JSON values; labels are written as in files."""
        return {
            "state": encode_label(self.state),
            "action": encode_label(self.action),
            "draws": self.draws,
            "why": self.why,
        }


def next_draws(atlas: Atlas) -> tuple[NextDraws, ...]:
    """Returns which actions to play next, those that serve the first open claims first; see `Atlas.next_draws`."""
    from axplore.explorers.certified import Certified

    if atlas.objective is None or atlas.assumed is not None:
        raise InvalidInputError(f"draws are planned for atlases of {DEFAULT_EXPLORER!r} without assumptions only")
    explorer = Certified(target=atlas.target, objective=atlas.objective, by_episodes=False)
    draws: dict[int, float] = {}
    purposes: dict[int, str] = {}
    for n_claims, (more, why) in enumerate(explorer.wanted(atlas.model)):
        if n_claims == MOST_CLAIMS:
            break
        for pair in sorted(more.nonzero()[0].tolist(), key=lambda pair: -more[pair]):
            purposes.setdefault(pair, why)
            draws[pair] = max(draws.get(pair, 0.0), float(more[pair]))
    return tuple(NextDraws(*atlas.pairs[pair], math.ceil(draws[pair]), why) for pair, why in purposes.items())
