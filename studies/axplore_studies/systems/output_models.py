"""Models of which only outputs are seen, and whether a memory tells their hidden states apart."""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path

from axplore.memory import Memory
from axplore.worlds.output_models import OutputModel, load_output_model

MODELS = Path(__file__).parent / "models"


def model_named(name: str) -> OutputModel:
    return load_output_model(MODELS / f"{name}.json")


def situations_of(model: OutputModel, memory: Memory) -> dict[int, set[str]]:
    """The hidden states in which the system may be in each situation of a memory."""
    seen = {(model.initial, 0)}
    queue = deque(seen)
    while queue:
        hidden, situation = queue.popleft()
        for action, row in model.transitions[hidden].items():
            for target in row:
                output = model.outputs[target]
                after = memory.moves.get((situation, action, output), memory.first_with[output])
                if (target, after) not in seen:
                    seen.add((target, after))
                    queue.append((target, after))
    found: dict[int, set[str]] = defaultdict(set)
    for hidden, situation in seen:
        found[situation].add(hidden)
    return dict(found)


def tells_all_apart(model: OutputModel, memory: Memory) -> bool:
    """Whether each situation is one hidden state, and each hidden state that can be reached one situation."""
    found = situations_of(model, memory)
    hidden = [state for states in found.values() for state in states]
    return all(len(states) == 1 for states in found.values()) and len(hidden) == len(set(hidden))
