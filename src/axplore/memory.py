"""What tells situations apart that share an output: an automaton that reads actions and outputs since RESET.

A system is seen through outputs: a screen, a response code, a sensor. Where one output stands for several situations,
what came before may tell them apart. A `Memory` holds the situations and how actions and outputs lead from one to the
next, so that the label of the present situation is a function of the history.
`axplore.worlds.situation_inference` finds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, final

from axplore.errors import DamagedFileError, InvalidInputError
from axplore.labels import Json, decode_label, encode_label, readable, text_of
from axplore.types import Action, State

START: Final = "start"
"""Stands for RESET in the name of a situation."""

History = tuple[tuple[Action, State], ...]
"""Actions since RESET, each with the output that followed."""


Move = tuple[int, Action, State]
"""A situation, an action played there, and the output that followed."""


@final
class Memory:
    """Situations, and how actions and outputs lead from one to the next. The first one is where RESET leads.

    Attributes:
        outputs: what is seen in each situation, [n].
        labels: what each situation is called, [n]; all are different.
        moves: the next situation, by situation, action and output. What is missing leads to the first situation with
            that output.
        draws: how often each move was met while situations were told apart. They estimate the probabilities of moves,
            and prove nothing.
    """

    def __init__(
        self,
        outputs: tuple[State, ...],
        labels: tuple[State, ...],
        moves: Mapping[Move, int],
        draws: Mapping[Move, int] | None = None,
    ) -> None:
        self.outputs, self.labels, self.moves, self.draws = outputs, labels, moves, draws or {}

    def __eq__(self, other: object) -> bool:
        """Whether both tell the same situations apart, whatever was drawn."""
        if not isinstance(other, Memory):
            return False
        return (self.outputs, self.labels, self.moves) == (other.outputs, other.labels, other.moves)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def first_with(self) -> dict[State, int]:
        """The first situation with each output."""
        return {output: number for number, output in reversed(list(enumerate(self.outputs)))}

    @property
    def n_outputs(self) -> int:
        """The number of different outputs."""
        return len(self.first_with)

    @property
    def summary(self) -> str:
        """A sentence that says what labels mean."""
        return (
            f"A label is an output together with what came before it: {self.n_outputs} outputs stand for "
            f"{len(self.outputs)} situations, and everything here is about these"
        )

    @cached_property
    def names(self) -> dict[str, frozenset[State]]:
        """The situations of each output that stands for several, by what the output is called in a property."""
        called: dict[str, set[State]] = {}
        for output, label in zip(self.outputs, self.labels, strict=True):
            for name in {text_of(output), readable(output)} | ({output} if isinstance(output, str) else set()):
                called.setdefault(name, set()).add(label)
        return {name: frozenset(labels) for name, labels in called.items() if len(labels) > 1}

    def chance(self, output: State, n_steps: int) -> float:
        """Returns the largest probability of seeing an output within a number of steps, as far as draws tell.

        It is an estimate: that of the policy which would be best if the frequencies of moves were exact.
        """
        rows: dict[int, dict[Action, list[tuple[int, int]]]] = {}
        for (source, action, seen), times in self.draws.items():
            target = self.moves.get((source, action, seen), self.first_with.get(seen, 0))
            rows.setdefault(source, {}).setdefault(action, []).append((target, times))
        goals = [float(seen == output) for seen in self.outputs]
        chances = list(goals)
        for _ in range(n_steps):
            chances = [
                goals[number] or max((_mean(row, chances) for row in rows.get(number, {}).values()), default=0.0)
                for number in range(len(goals))
            ]
        return chances[0]

    def follower(self) -> Follower:
        """Returns what follows a system and says in which situation it is."""
        return Follower(self)

    def as_json(self) -> Json:
        """Returns the memory as JSON values."""
        moves = sorted(
            ([move[0], encode_label(move[1]), encode_label(move[2]), target, self.draws.get(move, 0)]
             for move, target in self.moves.items()),
            key=repr,
        )  # fmt: skip
        return {
            "outputs": [encode_label(output) for output in self.outputs],
            "labels": [encode_label(label) for label in self.labels],
            "moves": moves,
        }

    @classmethod
    def from_json(cls, content: Json) -> Memory:
        """Returns the memory that `as_json` was given; refuses anything else."""
        try:
            outputs, labels = (tuple(map(decode_label, content[name])) for name in ("outputs", "labels"))
            met = [
                ((source, decode_label(action), decode_label(output)), target, times)
                for source, action, output, target, times in content["moves"]
            ]
            moves = {move: target for move, target, _ in met}
            draws = {move: times for move, _, times in met if times}
            memory = cls(outputs, labels, moves, draws)
            well_formed = (
                0 < len(outputs) == len(labels) == len(set(labels))
                and len(moves) == len(content["moves"])
                and all(_is_place(source, len(outputs)) for source, _, _ in moves)
                and all(type(times) is int and times > 0 for times in draws.values())
                and all(_is_place(target, len(outputs)) for target in moves.values())
                and all(outputs[target] == output for (_, _, output), target in moves.items())
            )
        except (LookupError, TypeError, ValueError, DamagedFileError) as error:
            raise InvalidInputError(f"the memory is damaged: {type(error).__name__}: {error}") from None
        if not well_formed or memory.as_json() != content:
            raise InvalidInputError("the memory is damaged: its situations, labels and moves do not fit each other")
        return memory


class Follower:
    """Follows a system by its outputs, and names the situation it is in."""

    __slots__ = ("_labels", "_memory", "_moves", "_situation")

    def __init__(self, memory: Memory) -> None:
        self._memory, self._moves, self._labels = memory, memory.moves, memory.labels
        self._situation = 0

    def reset(self, output: State) -> State:
        """Returns the label after a RESET that led to an output."""
        self._situation = 0
        return self._labels[0] if output == self._memory.outputs[0] else output

    def step(self, action: Action, output: State) -> State:
        """Returns the label after an action that led to an output, which is its own label if it was never met."""
        situation = self._moves.get((self._situation, action, output))
        if situation is None:
            situation = self._memory.first_with.get(output, -1)
        self._situation = situation
        return self._labels[situation] if situation >= 0 else output


def memory_of(
    outputs: Sequence[State],
    histories: Sequence[History],
    moves: Mapping[tuple[int, Action, State], int],
    draws: Mapping[tuple[int, Action, State], int],
) -> Memory | None:
    """Returns the memory of situations, named by a history that leads to each; None if no output has more than one."""
    if len(set(outputs)) == len(outputs):
        return None
    return Memory(tuple(outputs), names_of(outputs, histories), dict(moves), dict(draws))


def names_of(outputs: Sequence[State], histories: Sequence[History]) -> tuple[State, ...]:
    """Returns a readable label for each situation, made of its output and as much of a history as sets it apart.

    Args:
        outputs: what is seen in each, [n].
        histories: a history that leads to each; that of the first is empty. It keeps its output as its label, and so
            does whoever shares its output with nobody.
    """
    sharing: dict[State, list[int]] = {}
    for number, output in enumerate(outputs):
        sharing.setdefault(output, []).append(number)
    labels: list[State] = []
    taken: set[State] = set(outputs)
    for number, output in enumerate(outputs):
        others = [histories[other] for other in sharing[output] if other != number]
        label = output
        if others and number:
            label = f"{readable(output)} | after {_shortest(histories[number], others)}"
            while label in taken:  # a system may have such an output itself
                label = f"{label}'"
        taken.add(label)
        labels.append(label)
    return tuple(labels)


def _shortest(history: History, others: Sequence[History]) -> str:
    """The end of a history in words, as long as it takes to differ from the same of all others."""
    for length in range(len(history) + 1):
        text = _ending(history, length)
        if all(_ending(other, length) != text for other in others):
            break
    return text


def _ending(history: History, length: int) -> str:
    """The last action, and this many pairs of action and output before it."""
    if not history:
        return START
    first = len(history) - 1 - length
    pairs = [f"({readable(action)}, {readable(output)})" for action, output in history[max(first, 0) : -1]]
    return ", ".join([*([START] if first < 0 else []), *pairs, readable(history[-1][0])])


def _mean(row: Sequence[tuple[int, int]], values: Sequence[float]) -> float:
    return sum(times * values[target] for target, times in row) / sum(times for _, times in row)


def _is_place(value: Any, n_places: int) -> bool:
    return type(value) is int and 0 <= value < n_places
