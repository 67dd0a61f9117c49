from __future__ import annotations

from typing import Any

import pytest

from axplore.errors import InvalidInputError
from axplore.memory import Memory, names_of

DOOR = Memory(
    outputs=("screen", "ok", "screen"),
    labels=("screen", "ok", "screen | after (login, ok), back"),
    moves={(0, "login", "ok"): 1, (1, "back", "screen"): 2, (2, "login", "ok"): 1},
)


def test_a_follower_names_the_situation_by_what_came_before() -> None:
    follower = DOOR.follower()
    assert follower.reset("screen") == "screen"
    assert follower.step("login", "ok") == "ok"
    assert follower.step("back", "screen") == "screen | after (login, ok), back"
    assert follower.reset("screen") == "screen"


def test_a_move_that_was_never_met_leads_to_the_first_situation_with_its_output() -> None:
    follower = DOOR.follower()
    follower.reset("screen")
    assert follower.step("wait", "screen") == "screen"
    assert follower.step("login", "ok") == "ok"


def test_an_output_that_was_never_met_is_its_own_label_and_what_follows_it_is_known_by_its_output() -> None:
    follower = DOOR.follower()
    follower.reset("screen")
    assert follower.step("kick", "alarm") == "alarm"
    assert follower.step("login", "ok") == "ok"


def test_names_are_as_long_as_it_takes_to_differ() -> None:
    outputs = ("menu", "page", "page", "page", 7)
    histories = ((), (("go", "page"),), (("up", 7), ("go", "page")), (("go", "page"), ("go", "page")), (("up", 7),))
    assert names_of(outputs, histories) == (
        "menu",
        "page | after start, go",
        "page | after (up, 7), go",
        "page | after (go, page), go",
        7,
    )


def test_names_avoid_outputs_that_look_like_them() -> None:
    outputs = ("a", "b", "b", "b | after start, x")
    histories = ((), (("x", "b"),), (("x", "b"), ("x", "b")), (("y", "b | after start, x"),))
    names = names_of(outputs, histories)
    assert len(set(names)) == len(names)


def test_the_chance_of_an_output_is_that_of_the_best_policy_on_the_frequencies() -> None:
    memory = Memory(
        ("a", "b"), ("a", "b"), {(0, "x", "a"): 0, (0, "x", "b"): 1, (0, "y", "a"): 0},
        {(0, "x", "a"): 30, (0, "x", "b"): 10, (0, "y", "a"): 5},
    )  # fmt: skip
    assert memory.chance("b", 1) == pytest.approx(0.25)
    assert memory.chance("b", 2) == pytest.approx(0.4375)
    assert memory.chance("a", 0) == 1
    assert Memory.from_json(memory.as_json()).draws == memory.draws


def test_a_memory_is_read_back_from_its_json() -> None:
    assert Memory.from_json(DOOR.as_json()) == DOOR


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.pop("labels"),
        lambda body: body["labels"].append("more"),
        lambda body: body.update(labels=["screen", "ok", "ok"]),
        lambda body: body["moves"][0].__setitem__(3, 9),
        lambda body: body["moves"][0].__setitem__(0, -1),
        lambda body: body["moves"][0].__setitem__(2, "screen"),
        lambda body: body["moves"].append(body["moves"][0]),
        lambda body: body.update(more=1),
        lambda body: body.update(outputs=[], labels=[], moves=[]),
    ],
)
def test_a_memory_that_was_tampered_with_is_refused(damage: Any) -> None:
    body = DOOR.as_json()
    damage(body)
    with pytest.raises(InvalidInputError, match="memory is damaged"):
        Memory.from_json(body)
