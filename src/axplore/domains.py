"""Known models to explore: the domains of the paper's figures and experiments, and generators.

Every function returns a `TabularMdp`. RESET is implied everywhere and is not among the actions below. `DOMAINS` holds
the functions by their names on the command line, and `domain` calls one of them by its name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast, get_type_hints

import numpy as np

from axplore.arguments import collection, real, refusal, text, whole
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.mdp import TabularMdp
from axplore.types import Action, IntArray, State

MOST_STATES: Final = 10**8
MOST_TRANSITIONS: Final = 10**8
"""The largest number of transitions; more would not fit into the memory of most machines."""

Cell: TypeAlias = tuple[int, int]
"""A row and a column of a grid, counted from zero."""

Cells: TypeAlias = Collection[Cell]

DIRECTIONS: Final = MappingProxyType({"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)})
"""The move of each action of a grid, in rows and columns."""


def confusing_chain(
    chain_length: int = 5,
    confusing_states: int = 6,
    skip: int = 4,
    skip_probability: float = 1 / 3,
    forward_probability: float = 1.0,
) -> TabularMdp:
    """A chain whose end is two steps off, through states that no action can target ([DisCo] App. "Confusing Chain").

    The states are s0, the chain s1..sC and the confusing states behind it. `forward` (a_0) moves one state ahead.
    `skip` (a_1) moves several ahead; in s0 it leads to a confusing state drawn uniformly. Every action leads from the
    end of the chain to s0, and from a confusing state to the end of the chain.

    Args:
        chain_length: C.
        confusing_states: K, their number.
        skip: m, the number of states that `skip` moves ahead.
        skip_probability: p_skip; otherwise `skip` stays.
        forward_probability: p_c; otherwise `forward` stays.
    """
    end = _whole("chain_length", chain_length, least=1)
    confusing = _whole("confusing_states", confusing_states, least=1)
    _check_size("confusing-chain", 5 * (end + confusing))
    skip = _whole("skip", skip, least=1)
    skip_probability = _probability("skip_probability", skip_probability, positive=True)
    forward_probability = _probability("forward_probability", forward_probability, positive=True)
    n_states = 1 + end + confusing
    inner = np.arange(1, end)
    beyond = np.arange(end + 1, n_states)
    moving = np.arange(end)
    # Each state has two pairs: 2 s is (s, forward), 2 s + 1 is (s, skip).
    return _model(
        _labels(n_states),
        ("forward", "skip"),
        np.repeat(np.arange(n_states), 2),
        np.tile([0, 1], n_states),
        [
            (2 * moving, moving + 1, forward_probability),
            (2 * moving, moving, 1 - forward_probability),
            (1, beyond, 1 / confusing),
            (2 * inner + 1, np.minimum(end, inner + skip), skip_probability),
            (2 * inner + 1, inner, 1 - skip_probability),
            ([2 * end, 2 * end + 1], 0, 1.0),
            (np.concatenate((2 * beyond, 2 * beyond + 1)), end, 1.0),
        ],
    )


def combination_lock(states: int = 6, initial_state: int | None = None) -> TabularMdp:
    """A chain that is easy to climb and hard to descend precisely ([DisCo] App. "Combination Lock").

    `right` (a_1) leads from s_k to s_{k+1}. `left` (a_0) leads from s_k to some s_l with l < k, with a probability
    proportional to 1/(k - l). The ends absorb: `left` stays in s_0 and `right` in the last state. The number of
    transitions is about half the square of the number of states.

    Args:
        states: N.
        initial_state: the index k of the state s_k that RESET leads to. Without it, the floor(2N/3)-th state counted
            from one: s_3 of six. Counted from zero it would be s_4, which contradicts the paper's hitting times.
    """
    n_states = _whole("states", states, least=2)
    start = 2 * n_states // 3 - 1 if initial_state is None else _whole("initial_state", initial_state, least=0)
    if start >= n_states:
        raise InvalidSettingError(f"initial_state is {start}; it must be from 0 to {n_states - 1}")
    _check_size("combination-lock", n_states * (n_states + 3) // 2)
    higher, lower = np.tril_indices(n_states, k=-1)
    weights = 1 / (higher - lower)
    climbing = np.arange(n_states - 1)
    # Each state has two pairs: 2 s is (s, left), 2 s + 1 is (s, right).
    return _model(
        _labels(n_states),
        ("left", "right"),
        np.repeat(np.arange(n_states), 2),
        np.tile([0, 1], n_states),
        [
            (2 * higher, lower, weights / np.bincount(higher, weights)[higher]),
            (0, 0, 1.0),
            (2 * climbing + 1, climbing + 1, 1.0),
            (2 * n_states - 1, n_states - 1, 1.0),
        ],
        initial=start,
    )


def star(arms: int = 8, arm_length: int = 5) -> TabularMdp:
    """Arms of states around a centre, every step certain ([DisCo] Fig. 1, left).

    The centre is s0 and enters an arm by the action of its name; `out` and `in` move along an arm. The j-th state of
    the i-th arm, both counted from one, has the label `arm<i>.<j>`.
    """
    arms, arm_length = _whole("arms", arms, least=1), _whole("arm_length", arm_length, least=1)
    _check_size("star", 2 * arms * arm_length)
    first = 1 + arm_length * np.arange(arms)
    on_arm = np.arange(1, 1 + arms * arm_length)
    has_outer = on_arm[on_arm % arm_length != 0]
    inner = np.where(on_arm % arm_length == 1 % arm_length, 0, on_arm - 1)
    sources = np.concatenate((np.zeros(arms, dtype=np.int64), has_outer, on_arm))
    targets = np.concatenate((first, has_outer + 1, inner))
    actions = np.concatenate((np.arange(arms), np.full(len(has_outer), arms), np.full(len(on_arm), arms + 1)))
    order = np.lexsort((actions, sources))
    return _model(
        ("s0", *_arm_labels(arms, arm_length)),
        (*(f"arm{arm}" for arm in range(1, arms + 1)), "out", "in"),
        sources[order],
        actions[order],
        [(np.arange(len(order)), targets[order], 1.0)],
    )


def layered(arms: int = 3, arm_length: int = 2) -> TabularMdp:
    """Arms drawn at random that all lead to one state ([DisCo] Fig. 1, right).

    `go` leads from s0 to the first state of an arm drawn uniformly, along the arm, and to `end`, which is terminal. The
    end is reached in a fixed number of steps, but through states that are not controllable: S_L→ is not S_L. The
    j-th state of the i-th arm, both counted from one, has the label `arm<i>.<j>`.
    """
    arms, arm_length = _whole("arms", arms, least=1), _whole("arm_length", arm_length, least=1)
    _check_size("layered", 2 * arms * arm_length)
    end = 1 + arms * arm_length
    on_arm = np.arange(1, end)
    return _model(
        ("s0", *_arm_labels(arms, arm_length), "end"),
        ("go",),
        np.arange(end),
        np.zeros(end, dtype=np.int64),
        [
            (0, 1 + arm_length * np.arange(arms), 1 / arms),
            (on_arm, np.where(on_arm % arm_length == 0, end, on_arm + 1), 1.0),
        ],
    )


def two_branch_toy(length: int = 3) -> TabularMdp:
    """Two branches where one more allowed state saves `length + 1` steps ([DisCo] App. A, figure).

    `go` leaves s0 for `x` or `y`, each as likely as the other, after l + 1/2 steps in expectation, where l is `length`;
    from y it leads to x, which is terminal. V*(s0→x) is 2l + 2 where only {s0, x} is allowed (X in the paper), and
    l + 1 where y is too (Y).

    Differs from the figure, which draws l states on the way to x and l + 1 on the way to y: an agent that sees them
    knows its branch after one step and resets there, so that the paper's difference of l + 1 would shrink to one. Here
    the time passes in s0, and the paper's two values are exact.
    """
    length = _whole("length", length, least=1)
    each = 1 / (2 * length + 1)
    return _model(
        ("s0", "x", "y"),
        ("go",),
        np.array([0, 2]),
        np.array([0, 0]),
        [(0, [0, 1, 2], [1 - 2 * each, each, each]), (1, 1, 1.0)],
    )


def slippery_grid(
    rows: int = 6, columns: int = 6, slip: float = 0.2, walls: Cells = (), start: Cell = (0, 0)
) -> TabularMdp:
    """A grid where a step may slip to either side.

    The states are the cells (row, column) that are not walls, and the actions are `up`, `down`, `left` and `right`. A
    step that would leave the grid or enter a wall stays put.

    Args:
        rows: the number of rows.
        columns: the number of columns.
        slip: the probability of moving sideways instead, half of it for each side; 0 makes every step certain.
        walls: the cells that cannot be entered.
        start: the cell that RESET leads to.
    """
    rows, columns = _whole("rows", rows, least=1), _whole("columns", columns, least=1)
    slip = _probability("slip", slip)
    _check_size("slippery-grid", 3 * len(DIRECTIONS) * rows * columns)
    blocked = {_inside("walls", cell, rows, columns) for cell in collection("cells")("walls", walls)}
    start = _inside("start", start, rows, columns)
    if start in blocked:
        raise InvalidSettingError(f"start is {start}, which is one of the walls")
    is_free = np.ones((rows, columns), dtype=bool)
    for cell in blocked:
        is_free[cell] = False
    numbers = np.where(is_free, np.cumsum(is_free).reshape(rows, columns) - 1, -1)
    n_states = int(is_free.sum())
    neighbours = {action: _neighbours(numbers, move) for action, move in DIRECTIONS.items()}
    blocks: list[_Block] = []
    for number, action in enumerate(DIRECTIONS):
        sides = ("left", "right") if action in ("up", "down") else ("up", "down")
        pairs = number + len(DIRECTIONS) * np.arange(n_states)
        blocks.append((pairs, neighbours[action], 1 - slip))
        blocks.extend((pairs, neighbours[side], slip / 2) for side in sides)
    return _model(
        [(row, column) for row, column in np.argwhere(is_free).tolist()],
        tuple(DIRECTIONS),
        np.repeat(np.arange(n_states), len(DIRECTIONS)),
        np.tile(np.arange(len(DIRECTIONS)), n_states),
        blocks,
        initial=int(numbers[start]),
    )


@dataclass(frozen=True)
class GridTies:
    """The floor of a grid is equally slippery everywhere and in every direction: `Assumptions(tied=...)` takes it.

    The walls ahead and to both sides of a step make a class. The outcomes are `ahead`, `left` and `right`, as seen by
    whoever walks, and `stay`.

        floor = GridTies(rows=6, columns=6)
        explore("slippery-grid", radius=8, assume=Assumptions(tied=floor.outcome_of, leads_to=floor.leads_to))

    Attributes:
        rows: the number of rows.
        columns: the number of columns.
        walls: the cells that cannot be entered.
    """

    rows: int
    columns: int
    walls: frozenset[Cell] = frozenset()

    def outcome_of(self, state: State, action: Action, next_state: State) -> tuple[tuple[str, ...], str]:
        """Returns the class of a pair, which is the ways that are blocked, and the way that leads to the next state."""
        ways = self._ways(state, action)
        blocked = tuple(way for way, cell in ways.items() if not self._is_free(cell))
        return blocked, next((way for way, cell in ways.items() if cell == next_state), "stay")

    def leads_to(self, state: State, action: Action, outcome: Hashable) -> State:
        """Returns the cell to which an outcome leads."""
        return self._ways(state, action).get(str(outcome), state)

    def _is_free(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns and cell not in self.walls

    @staticmethod
    def _ways(state: State, action: Action) -> dict[str, Cell]:
        """The neighbours of a cell as seen by whoever takes a step."""
        row, column = cast(Cell, state)
        down, right = DIRECTIONS[cast(str, action)]
        turns = {"ahead": (down, right), "left": (-right, down), "right": (right, -down)}
        return {way: (row + rows, column + columns) for way, (rows, columns) in turns.items()}


MAZE: Final = "S..#..../.#.#.##./.#...#../.####.#./......#./.##.#..."


def maze(drawing: str = MAZE, slip: float = 0.1) -> TabularMdp:
    """A slippery grid whose walls are drawn: `#` is a wall, `S` the cell that RESET leads to, and `.` any other cell.

    Args:
        drawing: the rows from the top, separated by `/` or white space; all have the same width.
        slip: as for `slippery_grid`.
    """
    rows = text("drawing", drawing).replace("/", " ").split()
    cells = {(row, column): letter for row, line in enumerate(rows) for column, letter in enumerate(line)}
    starts = [cell for cell, letter in cells.items() if letter == "S"]
    if len({len(line) for line in rows}) != 1 or set(cells.values()) - set("S.#") or len(starts) != 1:
        raise InvalidSettingError(
            "drawing must have rows of one width, made of # for a wall, . for a cell and one S for the start; "
            "on the command line: --set drawing=S.#/..."
        )
    walls = tuple(cell for cell, letter in cells.items() if letter == "#")
    return slippery_grid(rows=len(rows), columns=len(rows[0]), slip=slip, walls=walls, start=starts[0])


def random_maze(rows: int = 20, columns: int = 20, seed: int = 0) -> TabularMdp:
    """A random maze with one way between any two cells, in which every step is certain.

    The states are the cells (row, column), and the actions `up`, `down`, `left` and `right`. A step into a wall stays
    put. RESET leads to (0, 0).

    Args:
        rows: of the maze.
        columns: of the maze.
        seed: of the draw; the same seed gives the same maze.
    """
    rows, columns = _whole("rows", rows, least=1), _whole("columns", columns, least=1)
    _check_size("random-maze", len(DIRECTIONS) * rows * columns)
    generator = np.random.default_rng(whole()("seed", seed))
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    numbers = {cell: number for number, cell in enumerate(cells)}
    actions, opposite = list(DIRECTIONS), {"up": "down", "down": "up", "left": "right", "right": "left"}
    leads_to = np.repeat(np.arange(len(cells)), len(actions)).reshape(len(cells), len(actions))
    entered, way = {(0, 0)}, [(0, 0)]
    while way:  # to a neighbour that was not entered yet, or back
        here = way[-1]
        reached = {action: (here[0] + down, here[1] + right) for action, (down, right) in DIRECTIONS.items()}
        fresh = [action for action, cell in reached.items() if cell in numbers and cell not in entered]
        if not fresh:
            way.pop()
            continue
        action = fresh[int(generator.integers(len(fresh)))]
        there = reached[action]
        leads_to[numbers[here], actions.index(action)] = numbers[there]
        leads_to[numbers[there], actions.index(opposite[action])] = numbers[here]
        entered.add(there)
        way.append(there)
    return _model(
        cells,
        tuple(actions),
        np.repeat(np.arange(len(cells)), len(actions)),
        np.tile(np.arange(len(actions)), len(cells)),
        [(np.arange(leads_to.size), leads_to.ravel(), 1.0)],
    )


def random_sparse(
    states: int = 100, actions: int = 4, branching: tuple[int, int] = (3, 5), seed: int = 0
) -> TabularMdp:
    """A random model where every pair has a few successors.

    Successors are distinct and drawn uniformly, their number too; probabilities are uniform on the simplex. The states
    are s0, s1, ... and the actions a0, a1, ...

    Args:
        states: the number of states.
        actions: the number of actions of every state.
        branching: the smallest and the largest number of successors of a pair.
        seed: the seed; the same seed gives the same model.
    """
    n_states = _whole("states", states, least=1)
    n_actions = _whole("actions", actions, least=1)
    least, most = _two("branching", branching)
    if not 1 <= least <= most <= n_states:
        raise InvalidSettingError(
            f"branching is {branching}; it must be ascending, from 1 on, and at most the number of states"
        )
    _check_size("random-sparse", n_states * n_actions * most)
    generator = np.random.default_rng(whole()("seed", seed))
    n_pairs = n_states * n_actions
    widths = generator.integers(least, most + 1, size=n_pairs)
    chosen = _distinct_draws(n_states, widths, generator)
    pairs, columns = np.nonzero(chosen >= 0)
    weights = generator.exponential(size=len(pairs))
    return _model(
        _labels(n_states),
        tuple(f"a{action}" for action in range(n_actions)),
        np.repeat(np.arange(n_states), n_actions),
        np.tile(np.arange(n_actions), n_states),
        [(pairs, chosen[pairs, columns], weights / np.bincount(pairs, weights)[pairs])],
    )


DOMAINS: Final[Mapping[str, Callable[..., TabularMdp]]] = MappingProxyType(
    {
        "confusing-chain": confusing_chain,
        "combination-lock": combination_lock,
        "star": star,
        "layered": layered,
        "two-branch": two_branch_toy,
        "slippery-grid": slippery_grid,
        "maze": maze,
        "random-maze": random_maze,
        "random-sparse": random_sparse,
    }
)
"""The domains by their names on the command line."""


def domain(name: str, **parameters: Any) -> TabularMdp:
    """Builds a domain by its name; a parameter given as text is converted to its type.

    Text for a number may be a fraction (`1/3`), for a pair of numbers `2,3`, for cells `0,1 2,3`.
    """
    if text("name", name) not in DOMAINS:
        environments = [f"gym:{name}"] if re.search(r"-v\d+$", name) else []
        raise UnknownNameError.of("world", name, [*DOMAINS, *environments], "axplore worlds")
    build = DOMAINS[name]
    offered = inspect.signature(build).parameters
    kinds = get_type_hints(build)
    for parameter, value in parameters.items():
        if parameter not in offered:
            raise UnknownNameError.of(f"parameter of {name}", parameter, offered)
        if isinstance(value, str):
            parameters[parameter] = _read(parameter, value, kinds[parameter])
    return build(**parameters)


_Block: TypeAlias = tuple[Any, Any, Any]
"""Entries of a model: pairs, successors and probabilities, broadcast against each other."""


def _model(
    labels: Iterable[State],
    actions: Sequence[Action],
    pair_states: IntArray,
    pair_actions: IntArray,
    blocks: Iterable[_Block],
    initial: int = 0,
) -> TabularMdp:
    states = tuple(labels)
    columns = zip(*(np.broadcast_arrays(*map(np.atleast_1d, block)) for block in blocks), strict=True)
    entry_pairs, successors, probabilities = (np.concatenate(column) for column in columns)
    return TabularMdp.from_entries(
        states,
        actions,
        states[initial],
        pair_states=pair_states,
        pair_actions=pair_actions,
        entry_pairs=entry_pairs,
        successors=successors,
        probabilities=probabilities,
    )


def _labels(n_states: int) -> list[str]:
    return [f"s{number}" for number in range(n_states)]


def _arm_labels(arms: int, arm_length: int) -> list[str]:
    return [f"arm{arm}.{step}" for arm in range(1, arms + 1) for step in range(1, arm_length + 1)]


def _neighbours(numbers: IntArray, move: Cell) -> IntArray:
    """Returns where a move leads from each free cell, [S]; `numbers` has the state of each cell, or -1, [R, C]."""
    padded = np.pad(numbers, 1, constant_values=-1)
    rows, columns = numbers.shape
    shifted = padded[1 + move[0] : 1 + move[0] + rows, 1 + move[1] : 1 + move[1] + columns]
    return np.where(shifted >= 0, shifted, numbers)[numbers >= 0]


def _distinct_draws(n: int, widths: IntArray, generator: np.random.Generator) -> IntArray:
    """Draws `widths[r]` distinct numbers below n for each row r, [R, max width]; unused entries hold -1.

    Floyd's method (Bentley and Floyd, 1987) on all rows at once: every subset is equally likely, nothing is redrawn.
    """
    chosen = np.full((len(widths), int(widths.max())), -1, dtype=np.int64)
    for index in range(chosen.shape[1]):
        rows = np.flatnonzero(index < widths)
        largest = n - widths[rows] + index
        drawn = generator.integers(0, largest + 1)
        repeated = (chosen[rows, :index] == drawn[:, None]).any(axis=1)
        chosen[rows, index] = np.where(repeated, largest, drawn)
    return chosen


def _whole(name: str, value: int, least: int) -> int:
    return int(whole(least=least, most=MOST_STATES)(name, value))


def _probability(name: str, value: float, positive: bool = False) -> float:
    wanted = f"a probability{' above 0' if positive else ''}"
    return float(real(least=0, most=1, above=0 if positive else -1, wanted=wanted)(name, value))


def _two(name: str, value: Any) -> tuple[int, int]:
    """Returns a pair of whole numbers; refuses anything else."""
    members = collection("a pair of whole numbers")(name, value)
    if len(members) != 2:
        raise refusal(name, value, "a pair of whole numbers")
    first, second = (int(whole()(name, member)) for member in members)
    return first, second


def _check_size(name: str, transitions: int) -> None:
    """Refuses a model that would not fit into memory, before any memory is allocated."""
    if transitions > MOST_TRANSITIONS:
        raise InvalidSettingError(
            f"{name} would have about {transitions:,} transitions; no more than {MOST_TRANSITIONS:,} are built"
        )


def _inside(name: str, cell: Cell, rows: int, columns: int) -> Cell:
    row, column = _two(name, cell)
    if not (0 <= row < rows and 0 <= column < columns):
        raise InvalidSettingError(f"{name}: the cell {cell!r} is outside a grid of {rows} rows and {columns} columns")
    return row, column


def _read(name: str, text: str, kind: Any) -> Any:
    """Returns the value that a text from the command line stands for."""
    readers: dict[Any, Callable[[str], Any]] = {
        str: str,
        int: int,
        int | None: int,
        float: lambda number: float(Fraction(number)),
        Cell: _pair,
        Cells: lambda cells: [_pair(cell) for cell in cells.split()],
    }
    try:
        return readers[kind](text)
    except (ValueError, ZeroDivisionError):
        raise InvalidSettingError(f"{name} is {text!r}, which is not {_described(kind)}") from None


def _pair(text: str) -> tuple[int, int]:
    first, second = text.split(",")
    return int(first), int(second)


def _described(kind: Any) -> str:
    return {float: "a number", Cell: "a pair like 2,3", Cells: "cells like 0,1 2,3"}.get(kind, "a whole number")
