from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from brute_force import has_common_answer, rebuilt

import axplore
from axplore.domains import combination_lock, confusing_chain, random_sparse
from axplore.errors import InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.types import RESET
from axplore_studies.lower_bounds import UNSEEN, AlternativeKind, LowerBound, ModelQuestion, lower_bound
from axplore_studies.lower_bounds.programme import needed_information

INFORMATION = needed_information(0.1)
LIMITS = Path(__file__).parents[3] / "docs" / "results" / "limits.json"


def bernoulli(chance: float) -> TabularMdp:
    """One question: how likely `go` is to arrive."""
    return TabularMdp.from_rows({"s0": {"go": {"goal": chance, "s0": 1 - chance}}, "goal": {}}, "s0")


def kl(first: float, second: float) -> float:
    return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))


@pytest.mark.parametrize("objective", [Objective.OPTIMAL, Objective.WITHIN_RADIUS])
def test_one_bernoulli_parameter_has_its_closed_form(objective: Objective) -> None:
    found = lower_bound(bernoulli(0.5), 2.5, 0.5, 0.1, objective)
    draws = INFORMATION / kl(0.5, 1 / 3)  # the goal leaves when it takes more than three steps
    # Every draw is a step, and so is the RESET after each arrival but the last.
    assert found.steps == pytest.approx(1.5 * draws - 1, rel=1e-4)
    assert found.steps <= 1.5 * draws - 1
    assert found.finished
    binding = found.alternatives[0]
    assert binding.kind in {
        AlternativeKind.LEAVES,
        AlternativeKind.OTHER_WAY,
    }  # the only policy is too long, so AX_L may say either
    assert binding.goal == "goal"
    assert binding.changes[0].after["goal"] == pytest.approx(1 / 3, abs=1e-5)


def test_a_state_never_seen_has_to_be_ruled_out() -> None:
    loop = TabularMdp.from_rows({"s0": {"stay": {"s0": 1.0}}}, "s0")
    found = lower_bound(loop, 4, 0.5, 0.1)
    assert found.steps == pytest.approx(INFORMATION / -math.log(1 - 1 / 4), rel=1e-4)
    (binding,) = found.alternatives
    assert (binding.kind, binding.goal) == (AlternativeKind.ENTERS, UNSEEN)


def test_two_ways_have_to_be_told_apart() -> None:
    mdp = TabularMdp.from_rows({"s0": {"a": {"goal": 0.5, "s0": 0.5}, "b": {"goal": 0.4, "s0": 0.6}}, "goal": {}}, "s0")
    found = lower_bound(mdp, 6, 0.2, 0.1)
    assert found.alternatives[0].kind is AlternativeKind.OTHER_WAY
    draws = {one.action: one.draws for one in found.allocation}
    # The best arms of a bandit: p' of both meet where 1/p'(a) = 1/p'(b) + 0.2.
    worst = min(
        draws["a"] * kl(0.5, 1 / (steps + 0.2)) + draws["b"] * kl(0.4, 1 / steps)
        for steps in np.linspace(1.8, 2.5, 700)
    )
    assert worst == pytest.approx(INFORMATION, rel=5e-3)


@pytest.mark.parametrize("objective", [Objective.OPTIMAL, Objective.WITHIN_RADIUS])
@pytest.mark.parametrize("seed", range(4))
def test_no_answer_is_correct_in_an_alternative_too(seed: int, objective: Objective) -> None:
    mdp = random_sparse(states=4, actions=2, branching=(1, 3), seed=seed)
    question = ModelQuestion(mdp, 3.0, 0.3, objective)
    found = lower_bound(mdp, 3.0, 0.3, 0.1, objective, rounds=3)
    assert found.alternatives
    for alternative in found.alternatives[:4]:
        assert not has_common_answer(question, rebuilt(mdp, alternative))


def test_brute_force_finds_answers_that_are_correct_in_both() -> None:
    question = ModelQuestion(bernoulli(0.5), 2.5, 0.5)
    assert has_common_answer(question, bernoulli(0.45))
    assert not has_common_answer(question, bernoulli(0.3))


def test_the_bound_grows_as_epsilon_or_delta_fall() -> None:
    def steps(epsilon: float, delta: float) -> float:
        return lower_bound(combination_lock(), 2.7, epsilon, delta, rounds=5).steps

    assert steps(0.4, 0.1) < steps(0.2, 0.1) < steps(0.2, 0.01)
    assert steps(0.2, 0.5) == 0


@pytest.fixture(scope="module")
def chain() -> LowerBound:
    return lower_bound(confusing_chain(), 4.5, 0.8, 0.1, rounds=12)


def test_the_chain_has_at_least_the_bound_of_the_first_study(chain: LowerBound) -> None:
    assert chain.steps >= 220


def test_the_certified_explorer_takes_more_on_average(chain: LowerBound) -> None:
    taken = [axplore.explore("confusing-chain", radius=4.5, epsilon=0.8, seed=seed).steps for seed in range(3)]
    assert sum(taken) / len(taken) > chain.steps


def test_the_allocation_is_feasible_and_costs_what_is_proven(chain: LowerBound) -> None:
    mdp = confusing_chain()
    assert sum(one.draws for one in chain.allocation) == pytest.approx(chain.steps, rel=1e-4)
    played = dict.fromkeys(mdp.states, 0.0)
    arriving = dict.fromkeys(mdp.states, 0.0) | {mdp.initial_state: 1.0}
    for one in chain.allocation:
        played[one.state] += one.draws
        row = {mdp.initial_state: 1.0} if one.action is RESET else mdp.row(one.state, one.action)
        for successor, chance in row.items():
            arriving[successor] += one.draws * chance
    assert all(played[state] <= arriving[state] + 0.01 for state in mdp.states)
    draws = {(one.state, one.action): one.draws for one in chain.allocation}
    for alternative in chain.alternatives:
        told = sum(draws.get((row.state, row.action), 0.0) * row.divergence for row in alternative.changes)
        assert told == pytest.approx(INFORMATION, rel=1e-3)


def test_policies_that_may_go_on_outside_the_answer_need_no_more_steps() -> None:
    restricted = lower_bound(confusing_chain(), 4.5, 0.8, 0.1, rounds=4).steps
    assert lower_bound(confusing_chain(), 4.5, 0.8, 0.1, any_policy=True, rounds=12).steps <= restricted * 1.01


def test_an_interruption_ends_with_what_is_proven() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    found = lower_bound(combination_lock(), 2.7, 0.2, 0.1, watcher=interrupt)
    assert 1000 < found.steps < 1800
    assert not found.finished


def test_the_committed_limits_can_be_found_again(chain: LowerBound) -> None:
    rows = json.loads(LIMITS.read_text(encoding="utf-8"))["rows"]
    (committed,) = (row["limit"] for row in rows if (row["domain"], row["epsilon"]) == ("confusing-chain", 0.8))
    assert chain.steps == pytest.approx(committed, rel=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"radius": -1.0}, "radius is -1.0"),
        ({"seconds": 0.0}, "seconds is 0.0"),
        ({"rounds": 0}, "rounds is 0"),
        ({"objective": Objective.STAGED}, "AX'"),
    ],
)
def test_settings_outside_their_range_are_refused(settings: dict[str, float], message: str) -> None:
    wanted: dict[str, float] = {"radius": 2.5, "epsilon": 0.5, "delta": 0.1, **settings}
    with pytest.raises(InvalidSettingError, match=message):
        lower_bound(bernoulli(0.5), **wanted)  # type: ignore[arg-type]
