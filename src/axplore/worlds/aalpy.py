"""AALpy: its systems under learning as systems to explore, and its automata as proposals of what labels hide.

A system under learning, or anything else with `pre()`, `step(letter)` and `post()`, answers a letter with an output,
which is taken as the state. Where the same output comes from states that behave differently, pass a function that tells
them apart, or explore with a memory, for which AALpy may learn the automaton: see `merged_by_alergia`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.memory import History, Memory, memory_of
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.worlds.situation_inference import Met

START: Final = "start"
"""The label of the state before the first letter."""

ALERGIA_EPS: Final = 0.5
"""The parameter of IOAlergia, larger than its default, because states that were merged wrongly cost another
proposal, and states that were split needlessly only draws."""


class AalpySystem:
    """A system under learning as a system; see `systems`."""

    def __init__(
        self,
        learned: Any,
        alphabet: Sequence[Action],
        *,
        initial: State = START,
        state: Callable[[Any, Any], State] | None = None,
    ) -> None:
        """Adapts a system under learning.

        Args:
            learned: the system, with `pre`, `step` and `post`.
            alphabet: the letters, which are the actions of every state.
            initial: the state before the first letter. None asks for it with `step(None)`, as AALpy does for the empty
                word; Moore machines and MDPs answer that.
            state: returns the state, given the system and its last output; the output itself by default.
        """
        if not is_aalpy(learned):
            raise InvalidInputError(
                f"{learned!r} is not a system under learning: it needs pre(), step(letter) and post()"
            )
        self._learned, self._initial = learned, initial
        self._state = state or (lambda _, output: output)
        self._under_way = False
        self.actions = tuple(alphabet)

    def reset(self) -> State:
        """Ends the word and begins another."""
        if self._under_way:
            self._learned.post()
        self._learned.pre()
        self._under_way = True
        output = self._learned.step(None) if self._initial is None else self._initial
        return self._state(self._learned, output)

    def step(self, action: Action) -> State:
        """Plays a letter."""
        return self._state(self._learned, self._learned.step(action))

    def close(self) -> None:
        """Ends the word."""
        if self._under_way:
            self._learned.post()
            self._under_way = False


def is_aalpy(thing: object) -> bool:
    """Returns whether an object can be used as a system under learning."""
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in ("pre", "step", "post"))


def check_aalpy() -> None:
    """Raises if AALpy is not installed."""
    try:
        import aalpy  # noqa: F401
    except ImportError:
        raise InvalidSettingError(
            "memory='aalpy' has AALpy learn the automaton; install it with: pip install 'axplore[aalpy]'"
        ) from None


def merged_by_alergia(root: Met) -> Memory | None:
    """Returns the automaton that AALpy's IOAlergia learns from histories and what followed them.

    None if every output has only one state in it.

    Args:
        root: the tree of all histories that were met.
    """
    from aalpy.learning_algs import run_Alergia

    names = _Names()
    learned = run_Alergia(list(_traces(root, names)), automaton_type="mdp", eps=ALERGIA_EPS)
    first = learned.initial_state
    numbers, queue = {first.state_id: 0}, deque([first])
    outputs, histories = [root.output], list[History]([()])
    moves: dict[tuple[int, Action, State], int] = {}
    while queue:
        state = queue.popleft()
        here = numbers[state.state_id]
        for letter, targets in state.transitions.items():
            for target, _ in targets:
                action, output = names.of[letter], names.of[target.output]
                if target.state_id not in numbers:
                    numbers[target.state_id] = len(outputs)
                    outputs.append(output)
                    histories.append((*histories[here], (action, output)))
                    queue.append(target)
                moves[here, action, output] = numbers[target.state_id]
    return memory_of(outputs, histories, moves, _draws(root, moves))


class _Names:
    """Texts that stand for outputs and actions, which AALpy sorts."""

    def __init__(self) -> None:
        self.of: dict[str, Any] = {}
        self._texts: dict[tuple[str, Any], str] = {}

    def text(self, kind: str, label: Any) -> str:
        """Returns the text for a label of a kind."""
        text = self._texts.setdefault((kind, label), f"{kind}{len(self._texts)}")
        self.of[text] = label
        return text


def _traces(root: Met, names: _Names) -> Iterator[list[Any]]:
    """Yields every episode as AALpy reads it: the first output, and then pairs of action and output."""
    stack: list[tuple[Met, tuple[tuple[str, str], ...]]] = [(root, ())]
    while stack:
        met, pairs = stack.pop()
        longer = [
            (later, (names.text("action", action), names.text("output", output)))
            for action, by_output in met.later.items()
            for output, later in by_output.items()
        ]
        ended = met.visits - sum(later.visits for later, _ in longer)
        for _ in range(ended):
            yield [names.text("output", root.output), *pairs]
        stack += [(later, (*pairs, pair)) for later, pair in longer]


def _draws(root: Met, moves: dict[tuple[int, Action, State], int]) -> dict[tuple[int, Action, State], int]:
    """How often each move of an automaton was met."""
    draws = dict.fromkeys(moves, 0)
    stack = [(0, root)]
    while stack:
        here, met = stack.pop()
        for action, by_output in met.later.items():
            for output, later in by_output.items():
                draws[here, action, output] += later.visits
                stack.append((moves[here, action, output], later))
    return draws
