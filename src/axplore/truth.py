"""Ground truth of a known model: which states are controllable, in how many steps, and what an answer is worth.

Values are proven to be accurate to `ACCURACY`; those above `ITERATION_LIMIT` relative to the value. A state whose value
is within `ACCURACY` of the radius is a member, because the definitions say "at most", and is reported as on the
boundary. Bounds of value iteration settle nearly everything; what they leave open is solved exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from axplore.arguments import checked, collection, instance, label, optional, real
from axplore.errors import InvalidSettingError
from axplore.graphs.evaluation import policy_pairs, policy_steps
from axplore.graphs.exact import optimal_paths
from axplore.graphs.finite_horizon import resetting_policy_steps
from axplore.graphs.search import graph_of, hops_from
from axplore.graphs.value_iteration import lower_steps, value_iteration
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.types import RESET, RESET_ACTION, RESET_PAIR, Action, BoolArray, FloatArray, IntArray, Reset, State

ACCURACY: Final = 1e-9
"""The largest error of a value, and the distance from the radius within which a state is on the boundary."""

ITERATION_PRECISION: Final = 1e-11
"""The precision of value iteration; its bounds are this times the value apart."""

ITERATION_LIMIT: Final = 100.0
"""The steps up to which the bounds of value iteration are within `ACCURACY`, and rounding is far below both."""

BATCH_ENTRIES: Final = 4_000_000
"""The largest number of values, goals times states, in memory at once."""

FORWARD_STEPS: Final = 1000.0
"""The largest radius at which states are ruled out by following probabilities forwards."""

Policies: TypeAlias = Mapping[Any, Mapping[Any, Action | Reset]]
"""For each goal, its policy: what to play in each state; states that are missing reset."""


@dataclass(frozen=True, eq=False)
class ControllableStates:
    """The incrementally controllable states of a known model, S_L→ ([DisCo] Def. 4).

    Attributes:
        mdp: the model.
        radius: the expected steps within which a state counts, L.
        layers: what each application of K ↦ K ∪ {g : V*_K(s0→g) <= L} adds, from {s0} on.
        steps: V*_{S_L→}(s0→s) of each controllable state s.
        boundary: the states whose value was within `ACCURACY` of the radius when they were admitted.
    """

    mdp: TabularMdp
    radius: float
    layers: tuple[tuple[State, ...], ...]
    steps: Mapping[State, float]
    boundary: tuple[State, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """The controllable states, in the order of layers."""
        return tuple(state for layer in self.layers for state in layer)

    @cached_property
    def admission_radii(self) -> Mapping[State, float]:
        """The least radius at which each of the states is controllable, L' = min{l : s in S_l→} ([DisCo] App. A).

        The nearest candidate joins first, and the largest value met so far is the radius that it takes: with less,
        nothing would join the states already there. A state that joins only brings others nearer, so no radius is
        skipped.
        """
        known: list[State] = [self.mdp.initial_state]
        radii = {self.mdp.initial_state: 0.0}
        largest = 0.0
        while len(known) < len(self.steps):
            model = self.mdp.vicinity_of(known)
            candidates = _candidates(model, known, self.radius)
            candidates = candidates[[model.states[number] in self.steps for number in candidates]]
            lower, upper = _bounds(model, candidates, _above_members(self.radius))
            nearest = candidates[lower <= max(largest, upper.min()) + ACCURACY]
            values = _values(model, nearest)
            largest = max(largest, float(values.min()))
            joining = nearest[values <= largest + ACCURACY / 10]  # ties that differ only by rounding
            known += [model.states[number] for number in joining]
            radii |= {model.states[number]: largest for number in joining}
        return radii


@dataclass(frozen=True)
class ObjectiveCheck:
    """Whether a set of states with policies meets an objective.

    Attributes:
        objective: the objective.
        holds: whether no controllable state is missing and no state exceeds its limit by more than epsilon.
        worst_state: the state that exceeds its limit by most; None for an empty set.
        excess: its steps beyond limit and epsilon; negative if all keep the limit.
        missing: the controllable states that are not in the set.
    """

    objective: Objective
    holds: bool
    worst_state: State | None
    excess: float
    missing: tuple[State, ...]


@checked(mdp=instance(TabularMdp, "a TabularMdp"), goal=label, allowed=optional(collection("states")))
def optimal_steps(mdp: TabularMdp, goal: State, allowed: Iterable[State] | None = None) -> float:
    """Returns the least expected steps from the initial state to `goal`, V*_X(s0→g); infinite if it is unreachable.

    Args:
        mdp: the model.
        goal: the state to reach.
        allowed: the set X outside which policies reset ([DisCo] Def. 1); all states by default.
    """
    mdp.index_of(goal)
    model = mdp if allowed is None else mdp.vicinity_of(allowed)
    if goal not in model:
        return math.inf
    return float(_values(model, model.indices_of([goal]))[0])


@checked(mdp=instance(TabularMdp, "a TabularMdp"), radius=real(least=0, most=1e12))
def l_controllable(mdp: TabularMdp, radius: float) -> tuple[State, ...]:
    """Returns the states within `radius` expected steps for a policy without restrictions, S_L ([DisCo] Def. 3)."""
    candidates = _candidates(mdp, [mdp.initial_state], radius)
    candidates = candidates[_perhaps_within(mdp, radius)[candidates]]
    members = [np.array([mdp.initial_index])]
    reach = 2
    while candidates.size:
        met = _met_within(mdp, reach)
        if 2 * met.sum() > mdp.n_states:
            members.append(_within(mdp, candidates, radius)[0])
            break
        found, undecided = _within_part(mdp, met, candidates[met[candidates]], radius)
        members.append(found)
        candidates = np.concatenate((undecided, candidates[~met[candidates]]))
        reach *= 2
    return tuple(mdp.states[number] for number in np.sort(np.concatenate(members)))


@checked(mdp=instance(TabularMdp, "a TabularMdp"), radius=real(least=0, most=1e12))
def controllable_states(mdp: TabularMdp, radius: float) -> ControllableStates:
    """Returns the incrementally controllable states, S_L→, with their layers ([DisCo] Def. 4)."""
    layers: list[tuple[State, ...]] = []
    boundary: list[State] = []
    known: list[State] = []
    model, members = mdp, np.array([mdp.initial_index])
    while members.size:
        layers.append(tuple(model.states[number] for number in members))
        known += layers[-1]
        model = mdp.vicinity_of(known)
        members, at_radius = _within(model, _candidates(model, known, radius), radius)
        boundary += [model.states[number] for number in at_radius]
    steps = _values(model, model.indices_of(known))
    return ControllableStates(
        mdp, radius, tuple(layers), dict(zip(known, steps.tolist(), strict=True)), tuple(boundary)
    )


def policy_on_model(mdp: TabularMdp, states: Sequence[State], policy: IntArray) -> IntArray:
    """Returns a policy that covers the first m of these states, [m] or [H, m], for all states of a model."""
    on_model = np.full((*policy.shape[:-1], mdp.n_states), RESET_ACTION, dtype=np.int64)
    on_model[..., mdp.indices_of(states[: policy.shape[-1]])] = policy
    return on_model


def policy_steps_on(mdp: TabularMdp, states: Sequence[State], policy: IntArray, goal: State) -> float:
    """Returns the exact expected steps of a policy, which covers the first m of these states, [m] or [H, m]."""
    on_model = policy_on_model(mdp, states, policy)
    if policy.ndim == 2:
        return resetting_policy_steps(mdp, mdp.index_of(goal), on_model)
    pairs = np.where(on_model == RESET_ACTION, RESET_PAIR, mdp.state_pairs[:-1] + on_model)
    return float(policy_steps(mdp, pairs, goal)[mdp.initial_index])


def check_within_radius(
    truth: ControllableStates,
    policies: Policies | None = None,
    *,
    epsilon: float,
    steps: Mapping[Any, float] | None = None,
) -> ObjectiveCheck:
    """Checks AX_L: S_L→ is found, and every state found is reached within L + epsilon steps ([DisCo] Def. 5).

    Args:
        truth: the truth about the model and the radius in question.
        policies: the policy to each state found.
        epsilon: the slack.
        steps: in place of policies, the expected steps to each state found, for policies that are not mappings.
    """
    return _checked(Objective.WITHIN_RADIUS, truth, policies, steps, epsilon)


def check_staged(
    truth: ControllableStates,
    policies: Policies | None = None,
    *,
    epsilon: float,
    steps: Mapping[Any, float] | None = None,
) -> ObjectiveCheck:
    """Checks AX': S_L→ is found, and every state found is reached within L' + epsilon steps ([DisCo] App. A).

    The paper leaves L' undefined outside S_L→; the radius is taken there, so that AX' stays tighter than AX_L.
    Arguments are those of `check_within_radius`.
    """
    return _checked(Objective.STAGED, truth, policies, steps, epsilon)


def check_optimal(
    truth: ControllableStates,
    policies: Policies | None = None,
    *,
    epsilon: float,
    steps: Mapping[Any, float] | None = None,
) -> ObjectiveCheck:
    """Checks AX*: S_L→ is found, and every state found is reached within V*_{S_L→} + epsilon steps ([DisCo] Def. 5).

    Arguments are those of `check_within_radius`.
    """
    return _checked(Objective.OPTIMAL, truth, policies, steps, epsilon)


def _checked(
    objective: Objective,
    truth: ControllableStates,
    policies: Policies | None,
    steps: Mapping[Any, float] | None,
    epsilon: float,
) -> ObjectiveCheck:
    instance(ControllableStates, "a result of controllable_states")("truth", truth)
    epsilon = real(least=0)("epsilon", epsilon)
    taken = _steps_taken(truth.mdp, policies, steps)
    excesses = {state: _excess(taken[state], _limit(objective, truth, state), epsilon) for state in taken}
    worst = max(excesses, key=excesses.__getitem__, default=None)
    excess = -math.inf if worst is None else excesses[worst]
    missing = tuple(state for state in truth.states if state not in taken)
    return ObjectiveCheck(objective, not missing and excess <= ACCURACY, worst, excess, missing)


def _steps_taken(mdp: TabularMdp, policies: Policies | None, steps: Mapping[Any, float] | None) -> Mapping[Any, float]:
    if (policies is None) == (steps is None):
        raise InvalidSettingError("a check needs either policies or steps")
    for name, given in (("policies", policies), ("steps", steps)):
        optional(instance(Mapping, "a mapping from states"))(name, given)
    if policies is not None:
        return {goal: _policy_steps(mdp, policy, goal) for goal, policy in policies.items()}
    assert steps is not None
    for state, value in steps.items():
        mdp.index_of(state)
        if value != math.inf:
            real(least=0)(f"steps[{state!r}]", value)
    return steps


def _limit(objective: Objective, truth: ControllableStates, state: State) -> float:
    if objective is Objective.WITHIN_RADIUS:
        return truth.radius
    if objective is Objective.STAGED:
        return truth.admission_radii.get(state, truth.radius)
    return truth.steps[state] if state in truth.steps else optimal_steps(truth.mdp, state, truth.states)


def _excess(steps: float, limit: float, epsilon: float) -> float:
    return steps - limit - epsilon if limit < math.inf else -math.inf


def _candidates(model: TabularMdp, known: Sequence[State], radius: float) -> IntArray:
    """Returns the numbers of the states that may be within the radius, apart from the known ones.

    A state needs 1/p steps at least, where p is the largest probability with which it is entered.
    """
    likeliest = np.zeros(model.n_states)
    np.maximum.at(likeliest, model.successors, model.probabilities)
    likeliest[model.indices_of(known)] = 0.0
    return np.flatnonzero(likeliest * _above_members(radius) >= 1.0)


def _perhaps_within(mdp: TabularMdp, radius: float) -> BoolArray:
    """Returns the states that are not proven to be beyond the radius by following probabilities forwards, [S].

    Let u_k(g) bound the probability that any policy is in g after k steps: u_0 is 1 in the initial state, and u_k(g) is
    at most the sum over s of u_{k-1}(s) max_a p(g|s, a), and at most the largest p(g|s, a) of all. RESET keeps it at 1
    in the initial state. Then g is met within n steps with a probability of at most h_n = u_0 + ... + u_n, so that the
    expected steps are at least the sum over n of 1 - h_n, as far as that is positive.
    """
    limit = radius + ACCURACY
    if limit > FORWARD_STEPS:
        return _met_within(mdp, limit)
    n_steps = 2 * int(limit) + 2
    near = _met_within(mdp, n_steps)
    numbers = np.flatnonzero(near)
    sources, successors, weights = _likeliest_edges(mdp, numbers)
    likeliest = np.zeros(len(numbers))
    np.maximum.at(likeliest, successors, weights)
    initial = np.searchsorted(numbers, mdp.initial_index)
    occupied, met, least_steps = np.zeros((3, len(numbers)))
    occupied[initial] = 1.0
    for _ in range(n_steps):
        met += occupied
        least_steps += np.maximum(0.0, 1.0 - met)
        occupied = np.minimum(np.bincount(successors, occupied[sources] * weights, len(numbers)), likeliest)
        occupied[initial] = 1.0
    near[numbers] = least_steps * (1.0 - 1e-9) <= limit
    return near


def _likeliest_edges(mdp: TabularMdp, numbers: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns the edges among these states, by index in `numbers`, and the largest probability of each over actions."""
    sources, successors, probabilities = mdp.transitions_of(numbers)
    indices = np.full(mdp.n_states, -1)
    indices[numbers] = np.arange(len(numbers))
    inside = indices[successors] >= 0
    keys = indices[sources[inside]] * len(numbers) + indices[successors[inside]]
    edges, inverse = np.unique(keys, return_inverse=True)
    likeliest = np.zeros(len(edges))
    np.maximum.at(likeliest, inverse, probabilities[inside])
    return *np.divmod(edges, len(numbers)), likeliest


def _met_within(mdp: TabularMdp, steps: float) -> BoolArray:
    """Returns the states that can be met within a number of steps with positive probability, [S]."""
    most = math.floor(min(steps, mdp.n_states))
    met: BoolArray = hops_from(graph_of(mdp), np.array([mdp.initial_index]), most) < mdp.n_states
    return met


def _within_part(mdp: TabularMdp, met: BoolArray, goals: IntArray, radius: float) -> tuple[IntArray, IntArray]:
    """Returns which goals are within the radius, and which this part of the model does not decide.

    A policy that resets wherever it leaves the part bounds the optimal steps from above; one that is at the goal there
    bounds them from below.
    """
    part = mdp.vicinity_of(mdp.states[number] for number in np.flatnonzero(met))
    outside = ~met[mdp.indices_of(part.states)]
    indices = part.indices_of(mdp.states[goal] for goal in goals)
    lower = np.concatenate(
        [
            lower_steps(
                part, indices[batch], outside=outside, precision=ITERATION_PRECISION, give_up_above=radius + ACCURACY
            )
            for batch in _batches(part, np.arange(len(indices)))
        ]
    )
    near = lower <= radius + ACCURACY
    _, upper = _bounds(part, indices[near], 2 * radius + 1)
    goals, lower = goals[near], lower[near]
    is_settled = (upper < radius - ACCURACY) | (upper - lower <= ACCURACY / 10)
    is_member = is_settled & ((lower + upper) / 2 <= radius + ACCURACY)
    return goals[is_member], goals[~is_settled]


def _within(model: TabularMdp, goals: IntArray, radius: float) -> tuple[IntArray, IntArray]:
    """Returns which goals are within the radius, and which of these are on the boundary."""
    lower, upper = _bounds(model, goals, radius + ACCURACY)
    is_member = upper < radius - ACCURACY
    is_open = ~is_member & (lower <= radius + ACCURACY)
    values = _values(model, goals[is_open])
    is_member[is_open] = values <= radius + ACCURACY
    return goals[is_member], goals[is_open][np.abs(values - radius) <= ACCURACY]


def _values(model: TabularMdp, goals: IntArray) -> FloatArray:
    """Returns V*(s0→g) of each goal, accurate to `ACCURACY`, [G]."""
    lower, upper = _bounds(model, goals, ITERATION_LIMIT)
    values = (lower + upper) / 2
    far = np.flatnonzero((lower < math.inf) & (upper == math.inf))
    for batch in _batches(model, far):
        labels = [model.states[number] for number in goals[batch]]
        values[batch] = optimal_paths(model, labels).values[:, model.initial_index]
    return values


def _bounds(model: TabularMdp, goals: IntArray, at_most: float) -> tuple[FloatArray, FloatArray]:
    """Returns bounds on V*(s0→g) of each goal, [G] each; the upper is infinite if the lower exceeds `at_most`."""
    lower, upper = np.empty(len(goals)), np.empty(len(goals))
    # Rounding in a sweep is about 1e-16 of a value, and accumulates over as many sweeps as a value has steps.
    precision = max(ITERATION_PRECISION, 1e-15 * at_most**2)
    for batch in _batches(model, np.arange(len(goals))):
        labels = [model.states[number] for number in goals[batch]]
        found = value_iteration(model, labels, precision=precision, give_up_above=at_most)
        lower[batch], upper[batch] = found.lower[:, model.initial_index], found.upper[:, model.initial_index]
    return lower, upper


def _batches(model: TabularMdp, indices: IntArray) -> list[IntArray]:
    """Returns indices of goals in batches whose values fit in memory."""
    size = max(1, BATCH_ENTRIES // model.n_states)
    return [indices[first : first + size] for first in range(0, len(indices), size)]


def _policy_steps(mdp: TabularMdp, policy: Mapping[Any, Action | Reset], goal: State) -> float:
    """Returns v_π(s0→goal), computed on the states that the policy can meet."""
    mdp.index_of(goal)
    for state in policy:
        mdp.index_of(state)
    model = mdp.vicinity_of(state for state, action in policy.items() if action is not RESET)
    if goal not in model:
        return math.inf
    inside = {state: action for state, action in policy.items() if state in model}
    return float(policy_steps(model, policy_pairs(model, inside), [goal])[0, model.initial_index])


def _above_members(radius: float) -> float:
    """Returns a number of steps that no member exceeds, even by rounding."""
    return radius + 2 * ACCURACY
