"""Changing one's mind: a run goes on with another radius, ε or objective, and keeps everything that it has sampled.

The confidence region depends on the counts, the order of admission and δ alone. So with probability 1 - δ it holds at
all times, and whatever radius and ε are asked of it later, in the light of anything, what it proves for them is true.
δ cannot be changed, and no admitted state can be taken back: the levels of later states depend on its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axplore.errors import InvalidSettingError
from axplore.explorers.base import Explorer
from axplore.explorers.certified import Certified, CertifiedState
from axplore.proofs.claims import TooFar
from axplore.worlds.contract import World


def retargeted(explorer: Explorer[Any], radius: float | None, epsilon: float | None) -> Explorer[Any]:
    """The explorer with another radius or ε; refuses one whose samples are of no use then."""
    old = explorer.target
    new = replace(
        old, radius=old.radius if radius is None else radius, epsilon=old.epsilon if epsilon is None else epsilon
    )
    if new == old:
        return explorer
    if not isinstance(explorer, Certified):
        raise InvalidSettingError(
            f"{type(explorer).__name__} cannot go on with another radius or epsilon, only the certified explorer can: "
            "begin a new run"
        )
    return replace(explorer, target=new)


def reopened(state: CertifiedState) -> CertifiedState:
    """The state of an explorer that is asked for something else from now on."""
    return replace(state, stop=None, proven=frozenset(), activity="asked for something else")


def refuse_beyond_reach(explorer: Certified, state: CertifiedState, world: World) -> None:
    """Refuses to go on if a known state is proven to be beyond L + ε: then not all can ever be proven within it."""
    model = explorer.model(state)
    for goal in range(1, model.n_known):
        least = TooFar(goal, explorer.reach).path(model).at_least
        if least > explorer.reach:
            raise InvalidSettingError(
                f"state {world.states[int(model.numbers[goal])]!r} was admitted before and takes at least {least:.6g} "
                f"expected steps, but radius + epsilon is {explorer.reach:g}, and what was admitted cannot be taken "
                "back; go back to the radius and epsilon before, where `atlas.within(radius)` answers for a smaller "
                "radius, or begin a new run"
            )
