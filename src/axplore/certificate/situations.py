"""Whether counts are those of a system whose situations are told apart as a memory says."""

from __future__ import annotations

from axplore.labels import readable
from axplore.memory import Memory
from axplore.records.counts import Counts
from axplore.types import State

UNKNOWN = -1
"""In place of the situation of a state that shows an output which the memory has never met."""


def misplaced_situation(memory: Memory | None, counts: Counts) -> str | None:
    """The first draw that leads elsewhere than the memory says, in words; None if there is none.

    A situation, an action and the output that followed determine the next situation.
    """
    if memory is None:
        return None
    situations = {label: number for number, label in enumerate(memory.labels)}
    if situations.get(counts.order[0]) != 0:
        return f"the initial state {readable(counts.order[0])} is not the situation after RESET"
    for label in counts.order:
        if label not in situations and label in memory.first_with:
            return f"the state {readable(label)} is an output that stands for situations, and none of them"
    pairs = [
        (label, action) for label, actions in zip(counts.order, counts.actions, strict=False) for action in actions
    ]
    for pair, successor in zip(counts.entry_pairs.tolist(), counts.successors.tolist(), strict=True):
        (state, action), arrived = pairs[pair], counts.order[successor]
        expected = _next(memory, situations.get(state, UNKNOWN), action, _output(memory, situations, arrived))
        if expected != situations.get(arrived, UNKNOWN):
            return f"action {action!r} of state {state!r} led to {arrived!r}, which is not where its output leads"
    return None


def _output(memory: Memory, situations: dict[State, int], label: State) -> State:
    """What is seen in a state."""
    return memory.outputs[situations[label]] if label in situations else label


def _next(memory: Memory, situation: int, action: State, output: State) -> int:
    """The situation that follows."""
    return memory.moves.get((situation, action, output), memory.first_with.get(output, UNKNOWN))
