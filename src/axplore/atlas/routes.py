"""The most likely way of a policy to its goal."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from axplore.errors import InvalidInputError
from axplore.mdp import RESET, Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

_Node: TypeAlias = tuple[State, int]
"""A state, and the step of the journey where the policy depends on it; else 0."""


@dataclass(frozen=True)
class Route:
    """The most likely way to a goal without a RESET, by the frequencies met. An estimate; nothing of it is proven.

    Attributes:
        states: from the initial state to the goal, [n + 1].
        actions: what the policy plays in each but the last, [n].
        probability: of going exactly this way.
    """

    states: tuple[State, ...]
    actions: tuple[Action, ...]
    probability: float

    def __len__(self) -> int:
        return len(self.actions)

    def __str__(self) -> str:
        steps = [f" -[{action}]-> {state}" for action, state in zip(self.actions, self.states[1:], strict=True)]
        return f"{self.states[0]}{''.join(steps)} ({self.probability:.3g} likely)"


def most_likely_route(atlas: Atlas, goal: State) -> Route:
    """Dijkstra's shortest path with lengths -log(frequency), under the policy of the atlas."""
    start: _Node = (atlas.states[0], 0)
    came_from: dict[_Node, tuple[_Node, Action]] = {}
    length = {start: 0.0}
    waiting: list[tuple[float, int, _Node]] = [(0.0, 0, start)]
    done: set[_Node] = set()
    while waiting:
        so_far, _, node = heapq.heappop(waiting)
        if node[0] == goal:
            return _route(came_from, node, math.exp(-so_far))
        if node in done:
            continue
        done.add(node)
        for action, successor, frequency in _moves(atlas, goal, node):
            reached = so_far - math.log(frequency)
            if reached < length.get(successor, math.inf):
                length[successor] = reached
                came_from[successor] = (node, action)
                heapq.heappush(waiting, (reached, len(came_from), successor))
    raise InvalidInputError(f"no transition that was met leads the policy to {goal!r}")


def _moves(atlas: Atlas, goal: State, node: _Node) -> Iterator[tuple[Action, _Node, float]]:
    """Where the policy leads from a node, without RESET."""
    state, step = node
    policy = atlas.policy(goal)
    action = policy(state, step)
    if action is RESET:
        return
    met = atlas.successors(state, action)
    next_step = step + 1 if policy.horizon is not None else 0
    for successor, times in met.items():
        yield action, (successor, next_step), times / sum(met.values())


def _route(came_from: dict[_Node, tuple[_Node, Action]], node: _Node, probability: float) -> Route:
    states, actions = [node[0]], []
    while node in came_from:
        node, action = came_from[node]
        states.append(node[0])
        actions.append(action)
    return Route(tuple(reversed(states)), tuple(reversed(actions)), probability)
