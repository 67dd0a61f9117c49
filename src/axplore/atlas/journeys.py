"""The chance to arrive at a goal within a number of steps."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from axplore.atlas.learned_model import pairs_of_policy, position_of
from axplore.compilation import compiled
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.labels import readable
from axplore.proofs.bound_kernels import Rows, least_mean
from axplore.proofs.bounds import IntervalModel
from axplore.types import RESET, RESET_ACTION, RESET_PAIR, Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


@dataclass(frozen=True, eq=False)
class Arrival:
    """The chance that the atlas's policy, started in the initial state, is at its goal after at most so many steps.

    Attributes:
        lowers, uppers: bounds of it after 0, 1, ..., n steps, [n + 1]; 0 and 1 if nothing is proven.
        estimates: what it would be if the frequencies met were the probabilities, [n + 1]. No bound.
        proven: whether the bounds are proven.
    """

    lowers: FloatArray
    estimates: FloatArray
    uppers: FloatArray
    proven: bool

    @property
    def lower(self) -> float:
        """At least this, within all the steps."""
        return float(self.lowers[-1])

    @property
    def estimate(self) -> float:
        """About this, within all the steps; no bound."""
        return float(self.estimates[-1])

    @property
    def upper(self) -> float:
        """At most this, within all the steps."""
        return float(self.uppers[-1])

    def __str__(self) -> str:
        proven = f", proven between {self.lower:.4f} and {self.upper:.4f}" if self.proven else ", not proven"
        return f"about {self.estimate:.4f} within {len(self.estimates) - 1} steps{proven}"


def arrival(atlas: Atlas, goal: State, steps: int) -> Arrival:
    """The chance to arrive at a goal of the atlas within a number of steps, and within each smaller number."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InvalidSettingError(f"steps is {steps!r}; it must be a whole number, 0 or more")
    model, policy = atlas.model, atlas.policy(goal)
    position = position_of(model, int(atlas.numbers[atlas.states.index(goal)]))
    if policy.horizon is not None:
        estimates = _by_step(atlas, model, policy.choices, position, int(steps))
        return Arrival(np.zeros(steps + 1), estimates, np.ones(steps + 1), proven=False)
    pairs = pairs_of_policy(atlas, model, policy.choices)
    chances = arrival_chances(model.rows, position, pairs, len(model.numbers) + 1, int(steps))
    if not atlas.proven:
        chances[:, 0], chances[:, 2] = 0.0, 1.0
    return Arrival(chances[:, 0].copy(), chances[:, 1].copy(), chances[:, 2].copy(), atlas.proven)


def _by_step(atlas: Atlas, model: IntervalModel, choices: IntArray, goal: int, steps: int) -> FloatArray:
    """The chances of a policy that depends on the step of a journey, which RESET begins anew, [steps + 1]."""
    rows, horizon = model.rows, len(choices)
    played = [pairs_of_policy(atlas, model, row) for row in (*choices, np.full(0, RESET_ACTION))]
    mass = {(0, 0): 1.0}  # by position and step of the journey
    arrived = [1.0 if goal == 0 else 0.0]
    for _ in range(steps):
        after: dict[tuple[int, int], float] = {}
        reached = arrived[-1]
        for (position, step), chance in mass.items():
            pair = played[min(step, horizon)][position] if position < model.n_known else RESET_PAIR
            if goal == 0:
                continue
            if pair == RESET_PAIR:
                after[0, 0] = after.get((0, 0), 0.0) + chance
                continue
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                successor, part = int(rows.successors[entry]), chance * float(rows.frequencies[entry])
                if successor == goal:
                    reached += part
                else:
                    after[successor, step + 1] = after.get((successor, step + 1), 0.0) + part
        mass = after
        arrived.append(reached)
    return np.array([min(chance, 1.0) for chance in arrived])


@compiled
def arrival_chances(rows: Rows, goal: int, policy: IntArray, n_seen: int, steps: int) -> FloatArray:
    """Lower bound, estimate and upper bound of the chance to arrive within 0, 1, ..., `steps` steps, [steps + 1, 3].

    Args:
        rows: region and counts.
        goal: a position.
        policy: a pair, or RESET_PAIR, for each known state, [n].
        n_seen: how many positions there are, n + others.
        steps: the horizon.
    """
    n_known = len(policy)
    chances = np.zeros((steps + 1, 3))
    now = np.zeros((3, n_seen))
    now[:, goal] = 1.0
    chances[0] = now[:, 0]
    for step in range(1, steps + 1):
        after = np.zeros((3, n_seen))
        for kind in range(3):
            least = now[kind].min()
            for state in range(n_seen):
                pair = policy[state] if state < n_known else RESET_PAIR
                if state == goal:
                    after[kind, state] = 1.0
                elif pair == RESET_PAIR:
                    after[kind, state] = now[kind, 0]
                elif kind == 0:
                    mean, _, _ = least_mean(rows, pair, now[kind], least, -1.0, rows.slack[pair])
                    after[kind, state] = least + mean
                elif kind == 1:
                    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                        after[kind, state] += rows.frequencies[entry] * now[kind, rows.successors[entry]]
                else:
                    mean, _, _ = least_mean(rows, pair, now[kind], 1.0, 1.0, rows.slack[pair])
                    after[kind, state] = 1.0 - mean
        now = after
        chances[step] = np.minimum(np.maximum(now[:, 0], 0.0), 1.0)
    return chances


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
        names = [readable(state) for state in self.states]
        steps = [f" -[{readable(action)}]-> {name}" for action, name in zip(self.actions, names[1:], strict=True)]
        return f"{names[0]}{''.join(steps)} ({self.probability:.3g} likely)"


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
