"""Alternatives: models in which every correct answer is a different one, and the exact check of that.

An answer is a set K of states with a policy for each; policies are deterministic and stationary ([DisCo] Sec. 2) and
reset outside K ([DisCo] Def. 1). It is correct in a model M if S_L→(M) ⊆ K ⊆ S_{L+ε}→(M) and every policy keeps its
limit, which is V*_{S_L→(M)}(s0→g) + ε for AX* and L + ε for AX_L. No answer is correct in both M and M' if for some g
in S_L→(M) ∪ S_L→(M')

- g is outside S_{L+ε}→ of one of them, or
- no policy that resets outside both S_{L+ε}→ keeps the limit of g in both.

docs/algorithms/lower-bound.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.lower_bounds.policies import ForcedModel, has_common_policy
from axplore.lower_bounds.programme import divergence
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.truth import ControllableStates, controllable_states, optimal_steps
from axplore.types import Action, FloatArray, IntArray, State

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


class Kind(Enum):
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

    kind: Kind
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
class Question:
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

    def separates(self, model: TabularMdp, kind: Kind, goal: State) -> bool:
        """Returns whether, for this reason, no answer is correct both in the model and in this other one; exact."""
        if kind is Kind.ENTERS:
            return goal not in self.outer.steps and goal in controllable_states(model, self.radius - MARGIN).steps
        if goal not in self.inner.steps:
            return False
        if kind is Kind.LEAVES:
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
