"""Known models that are seen through their outputs only, as AALpy's benchmarks are: `outputs:FILE`.

A file `.json` is a table, and `.dot` an MDP or a Moore machine as AALpy writes it (extra `aalpy`):

    {"initial": "q0",
     "outputs": {"q0": "dark", "q1": "bright"},
     "transitions": {"q0": {"press": {"q1": 0.9, "q0": 0.1}}, "q1": {"press": {"q0": 1.0}}}}
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from axplore.errors import InvalidInputError
from axplore.labels import encode_label
from axplore.storage import read_json
from axplore.types import Action, State
from axplore.worlds.keys import Key
from axplore.worlds.stepped import SteppedWorld

Rows = Mapping[str, Mapping[Action, Mapping[str, float]]]


@dataclass(frozen=True)
class OutputModel:
    """A model of which only outputs are seen.

    Attributes:
        initial: the hidden state where RESET leads.
        outputs: what is seen of each hidden state.
        transitions: the probability of each next hidden state, by hidden state and action.
    """

    initial: str
    outputs: Mapping[str, State]
    transitions: Rows

    def __post_init__(self) -> None:
        if self.initial not in self.outputs or self.transitions.keys() != self.outputs.keys():
            raise InvalidInputError("every hidden state of a model, the initial one included, needs an output and rows")
        for output in self.outputs.values():
            encode_label(output)
        for state, rows in self.transitions.items():
            for action, row in rows.items():
                if not row or not all(
                    target in self.outputs and _is_probability(share) for target, share in row.items()
                ):
                    raise InvalidInputError(f"action {action!r} in {state!r} has no row of probabilities of states")
                if abs(sum(row.values()) - 1) > 1e-6:
                    raise InvalidInputError(
                        f"the probabilities of action {action!r} in {state!r} add up to {sum(row.values())}, not to 1"
                    )

    def system(self) -> OutputSystem:
        """Returns a system that shows outputs only."""
        return OutputSystem(self)

    def reaching(self, output: State, n_steps: int) -> float:
        """Returns the largest probability with which any policy sees an output within a number of steps."""
        chances = {state: float(seen == output) for state, seen in self.outputs.items()}
        goals = dict(chances)
        for _ in range(n_steps):
            chances = {
                state: goals[state]
                or max(
                    (sum(share * chances[target] for target, share in row.items()) for row in rows.values()),
                    default=0.0,
                )
                for state, rows in self.transitions.items()
            }
        return chances[self.initial]


class OutputSystem:
    """A model that is stepped, and shows outputs only."""

    def __init__(self, model: OutputModel) -> None:
        self._model, self._state = model, model.initial
        self._random = np.random.default_rng(0)
        self._rows = {
            (state, action): (list(row), list(accumulate(row.values())))
            for state, rows in model.transitions.items()
            for action, row in rows.items()
        }

    def actions(self, _: State) -> tuple[Action, ...]:
        """Returns the actions of the present hidden state."""
        return tuple(self._model.transitions[self._state])

    def reset(self) -> State:
        """Returns to the initial state, and returns its output."""
        self._state = self._model.initial
        return self._model.outputs[self._state]

    def step(self, action: Action) -> State:
        """Plays an action, and returns the output that follows."""
        targets, sums = self._rows[self._state, action]
        self._state = targets[min(bisect(sums, self._random.random()), len(targets) - 1)]
        return self._model.outputs[self._state]

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise another random stream."""
        self._random = np.random.default_rng(seed)


def load_output_model(path: Path | str) -> OutputModel:
    """Reads a model with outputs; refuses a file that holds none."""
    file = Path(path)
    if file.suffix == ".dot":
        return _from_dot(file)
    body = read_json(file)
    try:
        return OutputModel(
            body["initial"], dict(body["outputs"]), {state: dict(rows) for state, rows in body["transitions"].items()}
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise InvalidInputError(f"{file} holds no model with outputs: {error}") from None
        raise InvalidInputError(
            f"{file} holds no model with outputs: it needs 'initial', 'outputs' and 'transitions' "
            f"({type(error).__name__}: {error})"
        ) from None


def output_world(path: Path | str, seed: int = 0, key: Key | None = None) -> SteppedWorld:
    """Returns the world of a model with outputs; a key makes labels of them."""
    return SteppedWorld(partial(OutputSystem, load_output_model(path)), seed, key=key)


def _from_dot(file: Path) -> OutputModel:
    try:
        from aalpy.utils import load_automaton_from_file
    except ImportError:
        raise InvalidInputError("a .dot file is read by AALpy; install it with: pip install 'axplore[aalpy]'") from None
    automaton: Any = None
    for kind in ("mdp", "moore"):
        try:
            automaton = load_automaton_from_file(str(file), kind)
            break
        except Exception as error:  # its parser raises whatever it meets
            problem = error
    if automaton is None:
        raise InvalidInputError(f"{file} is neither an MDP nor a Moore machine of AALpy: {problem}") from None
    return model_of_automaton(automaton)


def model_of_automaton(automaton: Any) -> OutputModel:
    """Returns the model of an MDP or a Moore machine of AALpy."""
    return OutputModel(
        automaton.initial_state.state_id,
        {state.state_id: state.output for state in automaton.states},
        {
            state.state_id: {
                letter: {target.state_id: float(share) for target, share in _distribution(follows)}
                for letter, follows in state.transitions.items()
            }
            for state in automaton.states
        },
    )


def _distribution(follows: Any) -> list[tuple[Any, float]]:
    return list(follows) if isinstance(follows, list) else [(follows, 1.0)]


def _is_probability(share: Any) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and math.isfinite(share) and 0 < share <= 1
