"""The one loop that runs every explorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from axplore.errors import InvalidSettingError
from axplore.explorers.interface import Explorer, StateT
from axplore.explorers.result import Exploration
from axplore.explorers.stopping import StopReason
from axplore.worlds.orders import World


@dataclass(frozen=True)
class RoundReport:
    """Where an exploration stands after a piece of work.

    Attributes:
        round: the current round, counted from 1.
        known: how many states are known to be controllable.
        frontier: how many others have been discovered.
        steps: steps taken in the world so far.
        activity: what was done last, in a few words.
    """

    round: int
    known: int
    frontier: int
    steps: int
    activity: str


def run(
    explorer: Explorer[StateT],
    world: World,
    *,
    state: StateT | None = None,
    max_steps: int | None = None,
    on_round: Callable[[RoundReport, StateT], StopReason | None] | None = None,
) -> Exploration:
    """Explores a world until the explorer stops or the step limit is reached.

    Args:
        explorer: what decides.
        world: what is explored.
        state: where to go on; from the start when not given.
        max_steps: no piece of work begins once the world has taken this many steps. The last one may exceed it.
        on_round: called with a report and the state before the first piece of work and after each; a reason that it
            returns ends the exploration there.
    """
    check_max_steps(max_steps)
    state = explorer.start(world) if state is None else state
    while True:
        if on_round is not None:
            report = RoundReport(state.round, len(state.known), len(state.frontier), world.steps, state.activity)
            ended = on_round(report, state)
            if ended is not None and state.stop is None:
                state = replace(state, stop=ended)
        if state.stop is not None:
            return explorer.finish(state, world)
        if max_steps is not None and world.steps >= max_steps:
            return explorer.finish(replace(state, stop=StopReason.STEP_LIMIT), world)
        state = explorer.advance(state, world)


def check_max_steps(max_steps: int | None) -> None:
    """Refuses a step limit that cannot be kept."""
    if max_steps is not None and max_steps < 0:
        raise InvalidSettingError(f"max_steps is {max_steps}; it must be at least 0, or None for no limit")
