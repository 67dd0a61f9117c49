"""What the doctor says of assumptions: contradictions are found, and true ones are left alone."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from axplore.assumptions import Assumptions
from axplore.records.findings import Issue
from axplore.types import Action, State
from axplore.worlds.assumption_tests import examined_assumptions
from axplore.worlds.probing import Draw

FALSE_ALARM = 1e-3


def draws(law: list[list[float]], times: int, seed: int = 0) -> list[Draw]:
    """Steps of a walk from each of some places: it stays, or goes on by one or by two, as the law of the place says."""
    rng = np.random.default_rng(seed)
    return [
        Draw((place, "go"), None, None, 1, place + int(rng.choice(len(row), p=row)))
        for _ in range(times)
        for place, row in enumerate(law)
    ]


def step(state: State, action: Action, successor: State) -> tuple[Hashable, Hashable]:
    return action, int(str(successor)) - int(str(state))


@pytest.mark.parametrize(
    ("assume", "law", "says"),
    [
        (Assumptions(deterministic=True), [[0.0, 1.0], [0.5, 0.5]], "'deterministic': action 'go' of state 1 led to"),
        (Assumptions(min_probability=0.4), [[0.4, 0.3, 0.3]], "has 3 outcomes, more than there can be"),
        (Assumptions(min_probability=0.3), [[0.9, 0.1]], "'min-probability' of 0.3: action 'go' of state 0 led to 1"),
        (Assumptions(tied=step), [[0.9, 0.1], [0.3, 0.7]], "depend on where they are drawn"),
        (Assumptions(tied=lambda *_: ("all", "on")), [[0.5, 0.5]], "by the outcome 'on'"),
        (Assumptions(tied=lambda s, _, t: (s == t, t)), [[0.5, 0.5]], "was given the classes"),
        (Assumptions(tied=step, leads_to=lambda *_: 0), [[0.0, 1.0]], "leads to 1, and not to 0"),
    ],
)
def test_false_assumptions_are_found(assume: Assumptions, law: list[list[float]], says: str) -> None:
    (finding,), sentences = examined_assumptions(draws(law, 300), assume, FALSE_ALARM)
    assert finding.issue is Issue.ASSUMPTION_FALSE
    assert says in finding.seen
    assert not any(sentence.startswith(finding.seen.partition(":")[0].strip("'")) for sentence in sentences)


@pytest.mark.parametrize(
    ("assume", "law", "says"),
    [
        (Assumptions(deterministic=True), [[0.0, 1.0], [1.0]], "A second outcome that comes with a probability above"),
        (Assumptions(min_probability=0.3), [[0.7, 0.3], [1.0]], "2 of them were played so often"),
        (Assumptions(tied=step), [[0.7, 0.3], [0.7, 0.3]], "in 600 draws of 2 actions of 1 class no outcome"),
    ],
)
def test_true_assumptions_are_left_alone(assume: Assumptions, law: list[list[float]], says: str) -> None:
    findings, (sentence,) = examined_assumptions(draws(law, 300), assume, FALSE_ALARM)
    assert findings == []
    assert says in sentence


def test_the_probability_that_would_have_been_seen_follows_from_the_repetitions() -> None:
    _, (sentence,) = examined_assumptions(draws([[1.0]], 60), Assumptions(deterministic=True), FALSE_ALARM)
    assert "above 0.05 each time would have been seen with 95%" in sentence  # 1 - 0.05^(1/59)


def test_nothing_assumed_says_nothing() -> None:
    assert examined_assumptions(draws([[1.0]], 3), Assumptions(), FALSE_ALARM) == ([], [])
