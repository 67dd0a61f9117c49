"""Systems and orders to draw examples from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st
from plain_world import with_vectors

from axplore.mdp import TabularMdp
from axplore.types import IntArray
from axplore.worlds.contract import Episodes, Order, Tour, Trials, Visit


@st.composite
def deterministic_moves(draw: st.DrawFn) -> dict[int, list[int]]:
    """{state: [where each action leads]} of up to six states; a state without actions is terminal."""
    n_states = draw(st.integers(1, 6))
    successors = st.lists(st.integers(0, n_states - 1), max_size=3)
    return {state: draw(successors) for state in range(n_states)}


@st.composite
def orders(draw: st.DrawFn, action_counts: Sequence[int]) -> Order:
    """Any order that a world with these discovered states can carry out."""
    planned = draw(st.integers(0, len(action_counts)))

    def actions() -> list[int]:
        return [draw(st.integers(-1, action_counts[state] - 1)) for state in range(planned)]

    def plan(steps: int) -> IntArray:
        """What to play by state, or by step and state."""
        if draw(st.booleans()):
            return np.array(actions(), dtype=np.int64)
        return np.array([actions() for _ in range(steps)], dtype=np.int64).reshape(steps, planned)

    pairs = [(state, action) for state, n_actions in enumerate(action_counts) for action in range(n_actions)]
    if draw(st.booleans()):
        plays = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
        targets = list(dict.fromkeys(state for state, _ in plays))
        far = st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0, math.inf])
        distances = [[draw(far) for _ in range(planned)] for _ in targets]
        tour = Tour(
            states=integers(state for state, _ in plays),
            actions=integers(action for _, action in plays),
            times=integers(draw(st.integers(1, 4)) for _ in plays),
            policies=np.array([actions() for _ in targets], dtype=np.int64).reshape(len(targets), planned),
            distances=np.array(distances, dtype=np.float64).reshape(len(targets), planned),
            max_journey=draw(st.integers(1, 6)),
            max_cuts=draw(st.integers(1, 3)),
        )
        has_tables = draw(st.sampled_from([False, True])) if targets else False
        return with_vectors(tour) if has_tables else tour
    state, times = draw(st.integers(0, len(action_counts) - 1)), draw(st.integers(0, 6))
    if action_counts[state] and draw(st.booleans()):
        action = draw(st.integers(0, action_counts[state] - 1))
        longest, max_cuts = draw(st.tuples(st.integers(1, 6), st.integers(1, 3)))
        return Visit(state, action, times, plan(longest), longest, max_cuts)
    horizon = draw(st.integers(1, 6))
    if draw(st.booleans()):
        most_steps = draw(st.sampled_from([1, 5, 2**62]))
        return Trials(times, horizon, plan(horizon), draw(st.booleans()), draw(st.booleans()), most_steps)
    allowance, slack = draw(st.sampled_from([(math.inf, math.inf), (2.0, 1.0), (0.0, 4.0)]))
    return Episodes(state, times, horizon, plan(horizon), allowance, slack, always_reset=draw(st.booleans()))


def integers(numbers: Iterable[int]) -> IntArray:
    return np.array(list(numbers), dtype=np.int64)


def deterministic_model(moves: dict[int, list[int]], initial_state: int) -> TabularMdp:
    rows = {
        state: {action: {successor: 1.0} for action, successor in enumerate(successors)}
        for state, successors in moves.items()
    }
    return TabularMdp.from_rows(rows, initial_state)
