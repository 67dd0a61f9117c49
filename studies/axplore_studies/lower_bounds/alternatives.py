"""Alternatives: models in which every correct answer is a different one, and the exact check of that.

An answer is a set K of states with a policy for each; policies are deterministic and stationary ([DisCo] Sec. 2) and
reset outside K ([DisCo] Def. 1). It is correct in a model M if S_L→(M) ⊆ K ⊆ S_{L+ε}→(M) and every policy keeps its
limit, which is V*_{S_L→(M)}(s0→g) + ε for AX* and L + ε for AX_L. No answer is correct in both M and M' if for some g
in S_L→(M) ∪ S_L→(M')

- g is outside S_{L+ε}→ of one of them, or
- no policy that resets outside both S_{L+ε}→ keeps the limit of g in both.

docs/algorithms/lower-bound.md has the proof.

Whether one policy is good in both models is decided by an exact search over deterministic stationary policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidSettingError
from axplore.graphs.search import policy_graph, reachable
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.truth import ControllableStates, controllable_states, optimal_steps
from axplore.types import RESET_PAIR, Action, FloatArray, IntArray, State
from axplore_studies.lower_bounds.kernels import least_steps
from axplore_studies.lower_bounds.programme import divergence

MARGIN: Final = 1e-6
"""The margin, in steps, of every comparison in an alternative: far above rounding, far below what matters."""

_LEAST_DIVERGENCE: Final = 1e-12
"""Changes with a smaller divergence, in nats per draw, are not reported."""


class Unseen(Enum):
    """The type of UNSEEN, a state that the model does not have and an alternative adds; it only resets."""

    UNSEEN = "unseen"

    def __repr__(self) -> str:
        return "UNSEEN"

    def __str__(self) -> str:
        return "an unseen state"


UNSEEN: Final = Unseen.UNSEEN


class AlternativeKind(Enum):
    """Why no answer is correct in both the model and the alternative."""

    ENTERS = "enters"
    """A state outside S_{L+ε}→ is in S_L→ of the alternative."""

    LEAVES = "leaves"
    """A state of S_L→ is outside S_{L+ε}→ of the alternative."""

    OTHER_WAY = "other way"
    """No policy to a state of S_L→ keeps its limit in both."""


@dataclass(frozen=True)
class ChangedRow:
    """A pair whose successors have another distribution in an alternative.

    Attributes:
        state: the state of the pair.
        action: the action of the pair.
        before: the probability of each successor in the model.
        after: the same in the alternative.
        divergence: KL(before ‖ after), the information of one draw about the change, in nats.
    """

    state: State
    action: Action
    before: Mapping[State, float]
    after: Mapping[State, float]
    divergence: float


@dataclass(frozen=True, eq=False)
class Alternative:
    """A model with disjoint correct answers.

    Attributes:
        kind: why they are disjoint.
        goal: the state that the reason is about.
        model: the alternative; it has the states and pairs of the model at the same indices, and `UNSEEN` at the end
            if needed.
        divergences: KL(p ‖ p') of each pair, [P].
    """

    kind: AlternativeKind
    goal: State
    model: TabularMdp
    divergences: FloatArray

    def changes(self, mdp: TabularMdp) -> tuple[ChangedRow, ...]:
        """Returns the rows that differ from the model."""
        changed = []
        for pair in np.flatnonzero(self.divergences > _LEAST_DIVERGENCE):
            state, action = mdp.states[mdp.pair_states[pair]], mdp.actions[mdp.pair_actions[pair]]
            before, after = mdp.row(state, action), self.model.row(state, action)
            changed.append(ChangedRow(state, action, before, after, float(self.divergences[pair])))
        return tuple(changed)


@dataclass(frozen=True, eq=False)
class ModelQuestion:
    """What is asked about a model.

    Attributes:
        mdp: the model.
        radius: L.
        epsilon: ε.
        objective: AX* or AX_L.
        any_policy: whether the policies of an answer may continue outside its states instead of resetting there.
    """

    mdp: TabularMdp
    radius: float
    epsilon: float
    objective: Objective = Objective.OPTIMAL
    any_policy: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < np.inf:
            raise InvalidSettingError(f"epsilon is {self.epsilon!r}; it must be a number above 0")
        if self.objective is Objective.STAGED:
            raise InvalidSettingError("no lower bound for AX' is known here; use that of AX* or AX_L")

    @cached_property
    def inner(self) -> ControllableStates:
        """S_L→, which every correct answer contains."""
        return controllable_states(self.mdp, self.radius)

    @cached_property
    def outer(self) -> ControllableStates:
        """S_{L+ε}→, which contains every correct answer."""
        return controllable_states(self.mdp, self.radius + self.epsilon)

    @cached_property
    def forced(self) -> ForcedModel:
        """The model for least steps under forced actions."""
        return ForcedModel.of(self.mdp)

    @cached_property
    def playable(self) -> IntArray:
        """1 for each row that a policy of a correct answer may play, else 0: pairs, then RESETs, [P + S]."""
        return self._playable_in(self.outer.states)

    @cached_property
    def playable_inside(self) -> IntArray:
        """1 for each row that a policy restricted to S_L→ may play, else 0, [P + S]."""
        playable = np.ones(self.mdp.n_pairs + self.mdp.n_states, dtype=np.int64)
        playable[: self.mdp.n_pairs] = np.isin(self.mdp.pair_states, self.mdp.indices_of(self.inner.states))
        return playable

    def limit(self, goal: State) -> float:
        """Returns the steps that a correct policy to a state of S_L→ may take."""
        own = self.inner.steps[goal] if self.objective is Objective.OPTIMAL else self.radius
        return own + self.epsilon

    def separates(self, model: TabularMdp, kind: AlternativeKind, goal: State) -> bool:
        """Returns whether, for this reason, no answer is correct both in the model and in this other one; exact."""
        if kind is AlternativeKind.ENTERS:
            return goal not in self.outer.steps and goal in controllable_states(model, self.radius - MARGIN).steps
        if goal not in self.inner.steps:
            return False
        if kind is AlternativeKind.LEAVES:
            return goal not in controllable_states(model, self.radius + self.epsilon + MARGIN).steps
        wider = controllable_states(model, self.radius + self.epsilon + MARGIN).steps
        return not has_common_policy(
            (self.forced, self.limit(goal) + MARGIN),
            (ForcedModel.of(model), self._most_in(model, goal) + MARGIN),
            self.mdp.index_of(goal),
            self._playable_in([state for state in self.outer.states if state in wider]),
        )

    def _playable_in(self, states: Iterable[State]) -> IntArray:
        playable = np.ones(self.mdp.n_pairs + self.mdp.n_states, dtype=np.int64)
        if not self.any_policy:
            playable[: self.mdp.n_pairs] = np.isin(self.mdp.pair_states, self.mdp.indices_of(states))
        return playable

    def _most_in(self, model: TabularMdp, goal: State) -> float:
        """Returns an upper bound on the steps that a correct policy may take in an alternative.

        S_{L−margin}→ is part of S_L→, and fewer states only lengthen a path: rounding cannot make this too small.
        """
        if self.objective is Objective.WITHIN_RADIUS:
            return self.radius + self.epsilon
        surely = controllable_states(model, self.radius - MARGIN).states
        return optimal_steps(model, goal, surely) + self.epsilon


def changed_model(mdp: TabularMdp, rows: Mapping[int, FloatArray]) -> TabularMdp:
    """Returns the model with some rows replaced: of each pair, the weight of every state and of `UNSEEN`, [S + 1]."""
    kept = ~np.isin(mdp.transition_pairs, list(rows))
    entry_pairs = [mdp.transition_pairs[kept]]
    successors = [mdp.successors[kept]]
    probabilities = [mdp.probabilities[kept]]
    for pair, row in rows.items():
        support = np.flatnonzero(row)
        entry_pairs.append(np.full(len(support), pair))
        successors.append(support)
        probabilities.append(row[support] / row.sum())
    states = mdp.states
    if any(int(targets.max(initial=0)) == mdp.n_states for targets in successors):
        states = (*states, UNSEEN)
    return TabularMdp.from_entries(
        states,
        mdp.actions,
        mdp.initial_state,
        pair_states=mdp.pair_states,
        pair_actions=mdp.pair_actions,
        entry_pairs=np.concatenate(entry_pairs),
        successors=np.concatenate(successors),
        probabilities=np.concatenate(probabilities),
    )


def divergences(mdp: TabularMdp, model: TabularMdp, changed: Iterable[int]) -> FloatArray:
    """KL(p ‖ p') of each pair, [P]; zero for those that are not changed."""
    found = np.zeros(mdp.n_pairs)
    for pair in changed:
        before, after = np.zeros(model.n_states), np.zeros(model.n_states)
        for row, source in ((before, mdp), (after, model)):
            entries = slice(source.row_offsets[pair], source.row_offsets[pair + 1])
            row[source.successors[entries]] = source.probabilities[entries]
        found[pair] = divergence(before, after)
    return found


MOST_NODES: Final = 3000
"""The number of sets of policies after which the search gives up without a result."""


@dataclass(frozen=True, eq=False)
class ForcedModel:
    """A model whose rows are its pairs, followed by RESET in each state.

    Attributes:
        initial: the index of the initial state.
        row_states: the state of each row, [R].
        offsets: the first entry of each row, and the number of entries, [R + 1].
        successors: the successor of each entry, [E].
        probabilities: the probability of each entry, [E].
    """

    initial: int
    row_states: IntArray
    offsets: IntArray
    successors: IntArray
    probabilities: FloatArray

    @classmethod
    def of(cls, mdp: TabularMdp) -> ForcedModel:
        """Returns the rows of a model."""
        n_states = mdp.n_states
        return cls(
            mdp.initial_index,
            np.concatenate((mdp.pair_states, np.arange(n_states))),
            np.concatenate((mdp.row_offsets, mdp.n_transitions + 1 + np.arange(n_states))),
            np.concatenate((mdp.successors, np.full(n_states, mdp.initial_index))),
            np.concatenate((mdp.probabilities, np.ones(n_states))),
        )

    @cached_property
    def all_rows(self) -> IntArray:
        """1 for every row: all are usable, [R]."""
        return np.ones(len(self.row_states), dtype=np.int64)

    @property
    def n_states(self) -> int:
        return int(self.row_states[-1]) + 1

    def least(
        self,
        goal: int,
        usable: IntArray | None = None,
        *,
        enough: float = np.inf,
        below: FloatArray | None = None,
        fixed: tuple[int, float] = (-1, 0.0),
    ) -> Least:
        """Returns the least expected steps to a goal from each state, where only some rows may be played.

        Args:
            goal: the index of the goal.
            usable: 1 for each row that may be played, else 0, [R]; all by default.
            enough: the search ends once the initial state takes more than this.
            below: lower bounds to start from, [S].
            fixed: a state and its value, as if the rest of the way were known.
        """
        rows = self.all_rows if usable is None else usable
        values = np.zeros(self.n_states) if below is None else below.copy()
        choices = np.full(self.n_states, -1, dtype=np.int64)
        state, value = fixed
        if state >= 0:
            values[state] = value
        settled = least_steps(
            goal, self.initial, self.row_states, self.offsets, self.successors, self.probabilities,
            rows, state, value, enough, values, choices,
        )  # fmt: skip
        return Least(values, choices, settled, float(values[self.initial]))

    def pair_values(self, values: FloatArray) -> FloatArray:
        """Returns one plus the mean value of the successor, of each row, [R]."""
        rows = np.repeat(np.arange(len(self.row_states)), np.diff(self.offsets))
        means = np.bincount(rows, self.probabilities * values[self.successors])
        return 1.0 + means.astype(np.float64)

    def met(self, choices: IntArray, goal: int) -> npt.NDArray[np.bool_]:
        """Returns the states where a policy has to choose, [S]: those it meets before the goal."""
        played = choices.copy()
        played[goal] = RESET_PAIR  # here the policy ends
        met = reachable(policy_graph(self.offsets, self.successors, played), np.array([self.initial]))
        met[goal] = False
        return met


@dataclass(frozen=True, eq=False)
class Least:
    """Least expected steps under forced actions.

    Attributes:
        values: lower bounds from each state, [S].
        choices: the row that attains them in each state, [S].
        settled: whether the values no longer changed.
        steps: the lower bound from the initial state.
    """

    values: FloatArray
    choices: IntArray
    settled: bool
    steps: float


Limited: TypeAlias = tuple[ForcedModel, float]
"""A model with the most steps that a policy may take from its initial state."""


def has_common_policy(first: Limited, second: Limited, goal: int, playable: IntArray) -> bool:
    """Returns whether some deterministic stationary policy may keep both limits; False only if provably none does.

    Splits the policies by what they play in one state after another, and drops a part when the best of it exceeds a
    limit in either model. The second model may have one state more, at the end, which only resets.

    Args:
        first: a model with its limit.
        second: another model with its limit.
        goal: the index of the goal of the policies.
        playable: 1 for each row of the first model that policies may play, else 0, [R].
    """
    rows = len(first[0].row_states)
    waiting: list[tuple[IntArray, FloatArray | None, FloatArray | None]] = [(playable, None, None)]
    looked_at = 0
    while waiting:
        looked_at += 1
        if looked_at > MOST_NODES:
            return True
        usable, below, other_below = waiting.pop()
        here = first[0].least(goal, usable, enough=first[1], below=below)
        if here.steps > first[1]:
            continue
        other_usable = np.concatenate((usable, np.ones(len(second[0].row_states) - rows, dtype=np.int64)))
        there = second[0].least(goal, other_usable, enough=second[1], below=other_below)
        if there.steps > second[1]:
            continue
        if not (here.settled and there.settled) or _keeps(second, there, here.choices, goal):
            return True
        if _keeps(first, here, there.choices[: len(here.choices)], goal):
            return True
        state = _most_disputed(first[0], second[0], here, there, goal)
        if state < 0:
            return True
        for row in np.flatnonzero((first[0].row_states == state) & (usable == 1)):
            child = usable.copy()
            child[first[0].row_states == state] = 0
            child[row] = 1
            waiting.append((child, here.values, there.values))
    return False


def _keeps(limited: Limited, least: Least, choices: IntArray, goal: int) -> bool:
    """Returns whether the policy, and its best completion where it says nothing, keeps the limit of this model."""
    model, limit = limited
    usable = model.all_rows.copy()
    named = np.flatnonzero(choices >= 0)
    usable[np.isin(model.row_states, named)] = 0
    usable[choices[named]] = 1
    taken = model.least(goal, usable, enough=limit, below=least.values)
    return taken.steps <= limit


def _most_disputed(first: ForcedModel, second: ForcedModel, here: Least, there: Least, goal: int) -> int:
    """Returns the state where the best policies of both models differ, and lose most by the other's choice."""
    n_states = len(here.choices)
    met = first.met(here.choices, goal) | second.met(there.choices, goal)[:n_states]
    differing = np.flatnonzero(met & (here.choices != there.choices[:n_states]))
    if not differing.size:
        return -1
    lost_there = second.pair_values(there.values)[here.choices[differing]] - there.values[differing]
    lost_here = first.pair_values(here.values)[there.choices[differing]] - here.values[differing]
    return int(differing[np.argmax(lost_there + lost_here)])
