"""Brute force on tiny models: every deterministic policy, one linear solve each; nothing of the library's solvers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from axplore.mdp import TabularMdp
from axplore.types import RESET

TOLERANCE = 1e-9


def policy_steps(mdp: TabularMdp, policy: Mapping[Any, Any], goal: Any) -> float:
    """v_π(s0→goal), infinite unless the goal is reached with probability one; a state without an entry resets."""
    rows = {}
    for state in mdp.states:
        action = policy.get(state, RESET)
        rows[state] = {mdp.initial_state: 1.0} if action is RESET else mdp.row(state, action)
    reachable = _closure({mdp.initial_state}, rows, goal)
    for state in reachable:
        if goal not in _closure({state}, rows, goal):
            return math.inf
    order = sorted(reachable - {goal}, key=mdp.index_of)
    matrix = np.eye(len(order))
    for line, state in enumerate(order):
        for column, successor in enumerate(order):
            matrix[line, column] -= rows[state].get(successor, 0.0)
    if mdp.initial_state == goal:
        return 0.0
    return float(np.linalg.solve(matrix, np.ones(len(order)))[order.index(mdp.initial_state)])


def _closure(start: set[Any], rows: Mapping[Any, Mapping[Any, float]], goal: Any) -> set[Any]:
    """What can be met from `start` before or at the goal."""
    met, open_states = set(start), list(start)
    while open_states:
        state = open_states.pop()
        for successor in rows[state] if state != goal else ():
            if successor not in met:
                met.add(successor)
                open_states.append(successor)
    return met


def policies(mdp: TabularMdp, allowed: Collection[Any]) -> Iterator[dict[Any, Any]]:
    """Every deterministic policy restricted to `allowed`."""
    states = [state for state in mdp.states if state in allowed]
    for choice in itertools.product(*((RESET, *mdp.actions_of(state)) for state in states)):
        yield dict(zip(states, choice, strict=True))


def optimal_steps(mdp: TabularMdp, goal: Any, allowed: Collection[Any]) -> float:
    """V*_X(s0→goal)."""
    return min(policy_steps(mdp, policy, goal) for policy in policies(mdp, allowed))


class Truth:
    """V*_X for every set X of states of a tiny model, and what follows from it."""

    def __init__(self, mdp: TabularMdp) -> None:
        self.mdp = mdp
        self.values = {
            allowed: {goal: optimal_steps(mdp, goal, allowed) for goal in mdp.states}
            for size in range(mdp.n_states + 1)
            for allowed in map(frozenset, itertools.combinations(mdp.states, size))
        }

    def layers(self, radius: float) -> list[set[Any]]:
        """The layers of S_L→: each is what the layers before it make controllable."""
        layers = [{self.mdp.initial_state}]
        while True:
            known = frozenset().union(*layers)
            layer = {goal for goal, value in self.values[known].items() if value <= radius + TOLERANCE} - known
            if not layer:
                return layers
            layers.append(layer)

    def boundary(self, radius: float) -> set[Any]:
        """The states whose value is that of the radius when they join."""
        layers = self.layers(radius)
        found = set()
        for number in range(1, len(layers)):
            values = self.values[frozenset().union(*layers[:number])]
            found |= {state for state in layers[number] if abs(values[state] - radius) <= TOLERANCE}
        return found

    def finite_values(self) -> list[float]:
        """Every finite V*_X(s0→g)."""
        return sorted({value for values in self.values.values() for value in values.values() if value < math.inf})

    def controllable(self, radius: float) -> frozenset[Any]:
        """S_L→."""
        return frozenset().union(*self.layers(radius))

    def l_controllable(self, radius: float) -> frozenset[Any]:
        """S_L."""
        everywhere = self.values[frozenset(self.mdp.states)]
        return frozenset(goal for goal, value in everywhere.items() if value <= radius + TOLERANCE)

    def admission_radius(self, state: Any) -> float:
        """min{l : state in S_l→}: only values of some V*_X can be that minimum."""
        radii = sorted({value for values in self.values.values() for value in values.values()})
        return next(radius for radius in radii if radius == math.inf or state in self.controllable(radius))


@st.composite
def tiny_models(draw: st.DrawFn, max_states: int = 4) -> TabularMdp:
    """Models of up to four states with up to two actions each, some terminal, some unreachable."""
    n_states = draw(st.integers(1, max_states))
    rows: dict[str, dict[str, dict[str, float]]] = {}
    names = [f"s{number}" for number in range(n_states)]
    for name in names:
        rows[name] = {}
        for action in draw(st.sampled_from([(), ("a",), ("a", "b"), ("a", "b")])):
            weights = draw(st.lists(st.integers(0, 4), min_size=n_states, max_size=n_states).filter(any))
            rows[name][action] = {
                successor: weight / sum(weights) for successor, weight in zip(names, weights, strict=True)
            }
    return TabularMdp.from_rows(rows, draw(st.sampled_from(names)))
