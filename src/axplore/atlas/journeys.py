"""The most likely route to a goal, and the probability of arriving within a number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.atlas.learned_model import index_in_model, pairs_of_policy
from axplore.atlas.transitions import entry_frequencies, pairs_played
from axplore.certificate.promise import lower_text, upper_text
from axplore.compilation import compiled
from axplore.compressed import entries_in
from axplore.errors import InvalidInputError
from axplore.graphs.arrivals import CERTAIN, NO_LIMIT, arrival_times
from axplore.graphs.search import policy_graph
from axplore.labels import readable
from axplore.proofs.row_kernels import RegionRows, least_mean
from axplore.types import RESET_PAIR, Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

SHORTER_IF_EQUAL: Final = 1e-12
"""Added to the length of each step, so that the shorter of two equally likely routes is taken."""


@dataclass(frozen=True, eq=False)
class Arrival:
    """The probability that the policy of an atlas reaches its goal from the initial state within n steps.

    Attributes:
        lowers, uppers: bounds after 0, 1, ..., n steps, [n + 1]; 0 and 1 if nothing is proven.
        estimates: the probabilities if the observed frequencies were exact, [n + 1]; not a bound.
        proven: whether the bounds are proven.
    """

    lowers: FloatArray
    estimates: FloatArray
    uppers: FloatArray
    proven: bool

    @property
    def lower(self) -> float:
        """The lower bound within all n steps."""
        return float(self.lowers[-1])

    @property
    def estimate(self) -> float:
        """The estimate within all n steps; not a bound."""
        return float(self.estimates[-1])

    @property
    def upper(self) -> float:
        """The upper bound within all n steps."""
        return float(self.uppers[-1])

    def __str__(self) -> str:
        bounds = f"between {lower_text(self.lower)} and {upper_text(self.upper)}"
        proven = f", proven {bounds}" if self.proven else ", not proven"
        return f"about {self.estimate:.4f} within {len(self.estimates) - 1} steps{proven}"


def arrival(atlas: Atlas, goal: State, steps: int) -> Arrival:
    """Returns the probability of reaching a goal within a number of steps, and within each smaller number."""
    policy = atlas.policy(goal)
    estimates = estimated_chances(atlas, atlas.index_of(goal), steps)
    if not atlas.can_be_relied_on or policy.horizon is not None:
        return Arrival(np.zeros(steps + 1), estimates, np.ones(steps + 1), proven=False)
    model = atlas.model
    index = index_in_model(model, int(atlas.numbers[atlas.index_of(goal)]))
    pairs = pairs_of_policy(atlas, model, policy.choices)
    bounds = arrival_bounds(model.rows, index, pairs, len(model.numbers) + 1, steps)
    return Arrival(bounds[:, 0].copy(), estimates, bounds[:, 1].copy(), proven=True)


def estimated_chances(atlas: Atlas, goal: int, steps: int, enough: float = CERTAIN, work: int = NO_LIMIT) -> FloatArray:
    """Returns the probabilities of having arrived after 0, 1, ... steps if the observed frequencies were exact.

    Args:
        atlas: the atlas.
        goal: the index of the goal.
        steps: the number of steps to look ahead.
        enough: stop once the probability is at least this.
        work: stop once this many transitions were followed.

    Returns:
        The probabilities, [n + 1] with n <= steps.
    """
    transitions, choices = atlas.transitions, atlas.policies[goal]
    played = pairs_played(transitions, choices, goal)
    outside = played.shape[1]  # one state in place of all that are not in the atlas
    arrivals = arrival_times(
        transitions.row_offsets,
        np.minimum(transitions.successors, outside),
        entry_frequencies(transitions),
        played if choices.ndim == 2 else played[0],
        goal=goal,
        n_states=outside + 1,
        steps=steps,
        enough=enough,
        work=work,
    )
    return np.minimum(np.cumsum(arrivals), 1.0)


@compiled
def arrival_bounds(rows: RegionRows, goal: int, policy: IntArray, n_seen: int, steps: int) -> FloatArray:
    """Returns lower and upper bounds on the probability of arriving within 0, 1, ..., `steps` steps, [steps + 1, 2].

    Args:
        rows: the region.
        goal: the index of the goal.
        policy: the pair, or RESET_PAIR, of each known state, [n].
        n_seen: the number of states seen: n, and the frontier.
        steps: the horizon.
    """
    n_known = len(policy)
    chances = np.zeros((steps + 1, 2))
    now = np.zeros((2, n_seen))
    now[:, goal] = 1.0
    chances[0] = now[:, 0]
    for step in range(1, steps + 1):
        after = np.zeros((2, n_seen))
        for kind in range(2):
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
                else:
                    mean, _, _ = least_mean(rows, pair, now[kind], 1.0, 1.0, rows.slack[pair])
                    after[kind, state] = 1.0 - mean
        now = after
        chances[step] = np.minimum(np.maximum(now[:, 0], 0.0), 1.0)
    return chances


@dataclass(frozen=True)
class Route:
    """The most likely route to a goal without a RESET, by the observed frequencies: an estimate, nothing is proven.

    Attributes:
        states: the states from the initial state to the goal, [n + 1].
        actions: the action in each of them but the last, [n].
        probability: the probability of taking exactly this route.
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
    """Returns the most likely route to a goal under the policy of the atlas.

    Raises:
        InvalidInputError: the transitions met do not lead there.
    """
    indices = likeliest_indices(atlas, atlas.index_of(goal))
    if indices is None:
        raise InvalidInputError(f"no transition that was met leads the policy to {goal!r}")
    policy, states = atlas.policy(goal), [atlas.states[index] for index in indices]
    actions, probability = [], 1.0
    for step, (state, successor) in enumerate(pairwise(states)):
        action = policy(state, step)
        met = atlas.successors(state, action)
        actions.append(action)
        probability *= met[successor] / sum(met.values())
    return Route(tuple(states), tuple(actions), probability)


def likeliest_indices(atlas: Atlas, goal: int) -> list[int] | None:
    """Returns the indices of the most likely route to a goal; None if the transitions met do not lead there.

    It is Dijkstra's shortest path with lengths -log(frequency); of equally likely routes, a shorter one.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    transitions, choices = atlas.transitions, atlas.policies[goal]
    played = pairs_played(transitions, choices, goal)
    width = played.shape[1] + 1  # the last node of a step stands for all states outside
    pairs = np.concatenate((played, np.full((len(played), 1), RESET_PAIR)), axis=1).ravel()
    row_offsets, targets = policy_graph(transitions.row_offsets, np.minimum(transitions.successors, width - 1), pairs)
    entries, lengths = entries_in(transitions.row_offsets, pairs[pairs != RESET_PAIR]), np.diff(row_offsets)
    levels = len(played)
    if choices.ndim == 2:  # after each step the policy is that of the next one
        levels += 1
        targets = targets + width * (1 + np.repeat(np.arange(len(pairs)) // width, lengths))
        row_offsets = np.concatenate((row_offsets, np.full(width, row_offsets[-1])))
    steps = SHORTER_IF_EQUAL - np.log(entry_frequencies(transitions)[entries])
    graph = csr_matrix((steps, targets, row_offsets), shape=(levels * width, levels * width))
    (distances,), (before,) = dijkstra(graph, indices=[0], return_predecessors=True)
    node = goal + width * int(np.argmin(distances[goal::width]))
    if not math.isfinite(distances[node]):
        return None
    route = [node]
    while route[-1] != 0:
        route.append(int(before[route[-1]]))
    return [node % width for node in reversed(route)]
