"""Systems at the border of what is assumed: their truth is exact, and what is called proven of them is true.

The study `border` counts this for every kind and many systems; here are a few of each family.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from axplore.types import RESET
from axplore_studies.border import explored, is_false_promise
from axplore_studies.systems.aliased import random_model, random_policy
from axplore_studies.systems.border import HEALTHY, KINDS, drawn, labels_of
from axplore_studies.systems.hidden_model import FAULT, FRESH, Border, HiddenModel, Rules, best_label_policy


def as_hidden_model(seed: int) -> tuple[HiddenModel, Any]:
    """The same random model twice: of this library, and of another with code of its own."""
    rng = np.random.default_rng(seed)
    other = random_model(rng, n_states=5, n_labels=4)
    rows = {"left": other.rows[0], "right": other.rows[1], RESET: np.tile(np.eye(5)[0], (5, 1))}
    return HiddenModel(other.labels, (("left", "right"),) * 5, rows), (other, random_policy(rng, other))


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_an_independent_implementation(seed: int) -> None:
    from axplore_studies.hidden import true_steps

    model, (other, policy) = as_hidden_model(seed)
    for goal in range(1, 4):
        assert model.policy_steps(policy.get, goal) == pytest.approx(true_steps(other, policy.get, goal))
        assert model.restarted_steps(lambda label, _: policy[label], goal, 9) == pytest.approx(
            other.restarted_steps(policy.get, goal, 9)
        )


def played(border: Border, play: Callable[[Any], Any], goal: Any, journeys: int) -> list[int]:
    """The steps of journeys on the system itself."""
    system = border.system(1)
    taken = []
    for _ in range(journeys):
        label, steps = system.reset(), 0
        while label != goal:
            label = system.reset() if (action := play(label)) is RESET else system.step(action)
            steps += 1
        taken.append(steps)
    return taken


@pytest.mark.parametrize(
    "kind", ["clock of period 3", "RESET stays 0.3", "RESET leaves a mode, but 0.6", "history of 2", "labels lie 0.1"]
)
def test_values_in_the_long_run_are_those_of_playing(kind: str) -> None:
    border = drawn(kind, 0)
    model, goal = border.first, labels_of(border.first)[1]
    _, policy, _ = best_label_policy(model, goal, labels_of(model), below=0.0, horizon=0)
    expected = model.policy_steps(policy.get, goal)
    taken = np.array(played(border, policy.get, goal, 8000)[500:])
    batches = taken.reshape(50, -1).mean(axis=1)  # journeys may depend on each other, batches hardly do
    assert abs(batches.mean() - expected) < 4.5 * batches.std() / math.sqrt(len(batches)) + 1e-9


@pytest.mark.parametrize("kind", ["after a short limit: frozen", "colliding labels", "lock", "sticky actions 0.25"])
def test_the_search_finds_the_best_policy_of_labels(kind: str) -> None:
    model = drawn(kind, 1).first
    labels = labels_of(model)
    goal = labels[-1]
    others = [label for label in labels if label != goal]
    every = product([*sorted({name for offered in model.offers for name in offered}), RESET], repeat=len(others))
    best = min(model.policy_steps(dict(zip(others, choice, strict=True)).get, goal) for choice in every)
    found, _, _ = best_label_policy(model, goal, labels, below=0.0, horizon=0)
    assert found == pytest.approx(best)
    assert model.least_steps(goal, labels) <= best + 1e-9


def test_a_session_that_expires_is_worth_what_the_closed_form_says() -> None:
    """One form that works with 0.2 until the 5th step, and never after: restarting at 5 is best."""

    def step(hidden: Any, _action: str) -> dict[Any, float]:
        state, age = hidden
        works = 0.2 if state == "start" and age < 5 else 0.0
        return {("done", 0): works, (state, min(age + 1, 5)): 1 - works} if works else {(state, min(age + 1, 5)): 1.0}

    model = Rules(("start", 0), ("go",), step, lambda hidden: hidden[0]).model()
    assert model.policy_steps(lambda _: "go", "done") == math.inf
    arrives = 1 - 0.8**5
    steps = sum(k * 0.2 * 0.8 ** (k - 1) for k in range(1, 6)) + 6 * 0.8**5
    value, _, horizon = best_label_policy(model, "done", ["start"], below=0.0, horizon=20)
    assert value == pytest.approx(steps / arrives)
    assert horizon == 5


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_model_whose_parameters_its_number_determines(kind: str) -> None:
    one, again, other = drawn(kind, 0), drawn(kind, 0), drawn(kind, 1)
    for model in (one.first, other.first):
        for action, rows in model.rows.items():
            offered = [action is RESET or action in offers for offers in model.offers]
            assert rows.sum(axis=1) == pytest.approx(np.array(offered, dtype=float))
        assert model.labels[0] not in (FAULT, FRESH)
    assert one.radius == again.radius
    assert all((one.first.rows[action] == again.first.rows[action]).all() for action in one.first.rows)
    # The plants are small, so that radii of two may agree by chance.
    assert (one.radius, one.first.labels) != (other.radius, other.first.labels)


def test_a_system_shows_what_its_model_says() -> None:
    border = drawn("healthy sparse", 0)
    system, model, rng = border.system(3), border.first, random.Random(0)
    counts = {action: np.zeros((len(model.labels),) * 2) for action in model.rows}
    now = model.labels.index(system.reset())
    for _ in range(20_000):
        action = rng.choice(model.offers[now])
        after = model.labels.index(system.step(action))
        counts[action][now, after] += 1
        now = after
    for action, drawn_rows in counts.items():
        total = drawn_rows.sum(axis=1, keepdims=True)
        met = total[:, 0] > 100
        share = drawn_rows[met] / total[met]
        assert np.abs(share - model.rows[action][met]).max(initial=0.0) < 5 / math.sqrt(total[met].min(initial=1e9))


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.family == HEALTHY])
def test_nothing_is_doubted_of_a_healthy_system_and_nothing_is_false(kind: str) -> None:
    for number in range(2):
        run = explored(kind, number, doctor=True)
        assert (run["false"], run["issues"], run["doubted"]) == ([], [], False)


NOTICED = (
    "after a middle limit: frozen", "lock-out after 3 tries", "token that runs out", "trap 0.003", "history of 1",
    "RESET leaves a mode, but 0.3", "clock of period 2", "arrivals fail 0.3", "colliding labels", "labels lie 0.1",
)  # fmt: skip
"""Kinds of which no false bound may be called proven, also not of a few systems."""


@pytest.mark.parametrize("kind", NOTICED)
def test_no_false_bound_is_called_proven(kind: str) -> None:
    runs = [explored(kind, number, doctor=True) for number in range(2)]
    assert not any(is_false_promise(run) for run in runs)
