"""An explorer of your own: it draws every action of a known state equally often, and admits what then looks near.

It proves nothing. It shows how little an explorer is: a frozen configuration, a state that is a value, and three
methods. Checkpoints, resuming, workers, budgets, the page and the command line come with them:

    axplore.explore("maze", explorer=Uniform(target=Target(radius=6, epsilon=1)))

To give it a name on the command line, declare the entry point `axplore.explorers` in your package:

    [project.entry-points."axplore.explorers"]
    uniform = "your_package.uniform_explorer:uniform"
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from axplore import RESET, StopReason, TabularMdp
from axplore.explorers import Exploration, Explorer, ExplorerState, Target
from axplore.explorers.base import exploration_of, first_counts, frontier_of, with_drawn, with_known
from axplore.graphs.evaluation import policy_actions
from axplore.graphs.exact import optimal_paths
from axplore.records.counts import Counts
from axplore.types import RESET_ACTION, IntArray
from axplore.worlds import Visit, World


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformState(ExplorerState):
    """Where it stands: besides what all explorers have, the transitions counted so far."""

    counts: Counts


@dataclass(frozen=True, kw_only=True)
class Uniform(Explorer[UniformState]):
    """Draws every action of every known state `draws` times.

    Attributes:
        target: the radius; ε and δ are not used, since nothing is proven.
        draws: how often each action is drawn.
    """

    state_types = (UniformState,)

    target: Target
    draws: int = 100

    def start(self, world: World) -> UniformState:
        """Knows the initial state only."""
        return UniformState(round=1, known=(0,), found_at=(world.steps,), counts=first_counts(world))

    def advance(self, state: UniformState, world: World) -> UniformState:
        """Draws the actions of the states that are new, then admits what the frequencies call near."""
        counts = state.counts
        new = [number for number in state.known if self._is_new(counts, number)]
        orders = [
            Visit(number, action, self.draws, policy, max_journey=1000)
            for number, (_, policy) in zip(new, planned(counts, new), strict=True)
            for action in range(len(world.actions_of(number)))
        ]
        counts = with_drawn(counts, world.carry_out(orders), world)
        return self._admitted(replace(state, round=state.round + 1, counts=counts), world)

    def finish(self, state: UniformState, world: World) -> Exploration:
        """Returns the shortest paths by the frequencies."""
        steps, policies = zip(*planned(state.counts, state.known), strict=True)
        known = np.array(state.known)
        return exploration_of(
            self, state, world, counts=state.counts,
            policies=[policy[known] for policy in policies], optimistic_steps=np.array(steps),
        )  # fmt: skip

    def _is_new(self, counts: Counts, number: int) -> bool:
        place = counts.states.tolist().index(number)
        first, end = counts.state_pairs[place : place + 2]
        return bool((counts.visits[first:end] < self.draws).any())

    def _admitted(self, state: UniformState, world: World) -> UniformState:
        """Admits every state of the frontier that is within the radius by the frequencies; without any, it is done."""
        frontier = frontier_of(state.counts)
        plans = zip(frontier, planned(state.counts, frontier), strict=True)
        near = [number for number, (steps, _) in plans if steps <= self.target.radius]
        counts = with_known(state.counts, near, world)
        return replace(
            state,
            counts=counts,
            known=(*state.known, *near),
            found_at=(*state.found_at, *[world.steps] * len(near)),
            frontier=frontier_of(counts),
            activity=f"admitted {len(near)} states",
            stop=None if near else StopReason.NO_CANDIDATES,
        )


def planned(counts: Counts, goals: tuple[int, ...] | list[int]) -> list[tuple[float, IntArray]]:
    """Returns the expected steps to each goal, and what to play on the way by number of state, [n].

    The model is that of the frequencies, in which the agent resets in all states that are not counted.
    """
    if not goals:
        return []
    rows: dict[Hashable, dict[Hashable, dict[Hashable, float]]] = {label: {} for label in counts.order}
    labels = [
        (counts.order[int(number)], action)
        for number, actions in zip(counts.states, counts.actions, strict=True)
        for action in actions
    ]
    for entry, pair in enumerate(counts.entry_pairs):
        state, action = labels[pair]
        successor = counts.order[int(counts.successors[entry])]
        rows[state].setdefault(action, {})[successor] = float(counts.counts[entry] / counts.visits[pair])
    model = TabularMdp.from_rows(rows, initial_state=counts.order[0])
    paths = optimal_paths(model, [counts.order[goal] for goal in goals])
    steps = paths.values[:, paths.initial_index].tolist()
    return [(value, _by_number(counts, model, policy)) for value, policy in zip(steps, paths.policy, strict=True)]


def _by_number(counts: Counts, model: TabularMdp, policy: IntArray) -> IntArray:
    """Returns a policy of the model as the world takes it: indices of actions, or RESET_ACTION, by number of state."""
    numbered = np.full(len(counts.order), RESET_ACTION, dtype=np.int64)
    played = policy_actions(model, policy)
    for number, actions in zip(counts.states, counts.actions, strict=True):
        action = played[counts.order[int(number)]]
        numbered[number] = RESET_ACTION if action is RESET else actions.indices[action]
    return numbered


def uniform(target: Target, states_bound: int | None = None) -> Uniform:  # noqa: ARG001
    """Draws every action equally often, and believes the frequencies."""
    return Uniform(target=target)
