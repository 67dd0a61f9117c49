"""Whether some answer is correct in two tiny models: every set of states, every policy, one linear solve each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore_studies.lower_bounds import UNSEEN, BindingAlternative, ModelQuestion
from oracle import Truth, policies, policy_steps

LEEWAY = 1e-9


def rebuilt(mdp: TabularMdp, alternative: BindingAlternative) -> TabularMdp:
    """The alternative, made anew of what it says to change."""
    rows: dict[Any, dict[Any, dict[Any, float]]] = {
        state: {action: mdp.row(state, action) for action in mdp.actions_of(state)} for state in mdp.states
    }
    for change in alternative.changes:
        rows[change.state][change.action] = dict(change.after)
        if UNSEEN in change.after:
            rows[UNSEEN] = {}
    return TabularMdp.from_rows(rows, mdp.initial_state)


def has_common_answer(question: ModelQuestion, other: TabularMdp) -> bool:
    """Whether some set of states with policies is correct in both models."""
    mdp, radius, epsilon = question.mdp, question.radius, question.epsilon
    truths = {id(model): Truth(model) for model in (mdp, other)}
    inner = {key: truth.controllable(radius) for key, truth in truths.items()}
    least = frozenset().union(*inner.values())
    outer = [truth.controllable(radius + epsilon) for truth in truths.values()]
    most = outer[0] & outer[1]

    def limit(model: TabularMdp, goal: Any) -> float:
        own = truths[id(model)].values[inner[id(model)]][goal]
        return (own if question.objective is Objective.OPTIMAL else radius) + epsilon + LEEWAY

    def keeps_both(goal: Any, allowed: frozenset[Any]) -> bool:
        return any(
            all(policy_steps(model, policy, goal) <= limit(model, goal) for model in (mdp, other))
            for policy in policies(mdp, [state for state in allowed if state in mdp])
        )

    return least <= most and any(
        all(goal in mdp and keeps_both(goal, answer) for goal in answer) for answer in _between(least, most)
    )


def _between(least: frozenset[Any], most: frozenset[Any]) -> Iterator[frozenset[Any]]:
    """Every set from the least to the largest."""
    for size in range(len(most - least) + 1):
        for added in itertools.combinations(most - least, size):
            yield least | frozenset(added)
