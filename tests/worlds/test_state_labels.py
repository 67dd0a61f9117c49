from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest

from axplore import explore, verify
from axplore.errors import InvalidAnswerError, InvalidInputError, WorldError
from axplore.labels import decode_label, encode_label
from axplore.worlds import Episodes, SteppedWorld, Visit, named_world
from axplore.worlds.state_labels import INVALID_STATE, check_same_kind, checked_actions, hint_at_rewards, plain_state
from axplore.worlds.systems import SystemFaultError

Place = namedtuple("Place", "row column")


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 3


class Name(StrEnum):
    HALL = "hall"


class Mixed(str, Enum):  # noqa: UP042 (as older code has it)
    DOOR = "door"


@dataclass(frozen=True)
class Board:
    stones: int


class Thing:
    """Every object of it is equal to itself alone."""


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("it cannot be shown")


class Unlike(str):
    """Text of a hash of its own, which no other text finds."""

    def __hash__(self) -> int:
        return 7


class Incomparable(str):
    __hash__ = str.__hash__

    def __eq__(self, _: object) -> bool:
        raise RuntimeError


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("text", "text"),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (Place(1, np.float64(2.5)), (1, 2.5)),
        (Level.LOW, 3),
        (Name.HALL, "hall"),
        (Mixed.DOOR, "door"),
        ((1, None), (1, None)),
        (frozenset({np.int8(1)}), frozenset({1})),
        (b"ab", b"ab"),
        (math.inf, math.inf),
        ("\ud800", "\ud800"),
    ],
)
def test_a_state_is_the_plain_value_that_the_answer_equals(answer: Any, state: Any) -> None:
    plain = plain_state(answer)
    assert plain == state
    assert type(plain) is type(state)
    assert hash(plain) == hash(answer)
    assert decode_label(encode_label(plain)) == state


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(10**5000, "a whole number of 16610 bits cannot be a label", id="10**5000"),
        (None, "step returned None: does it `return` the state"),
        ((0, 1.0, False, False, {}), "what Gymnasium's step does"),
        ((0, 1.0, True, {}), "what Gymnasium's step does"),
        ((0, {"mask": 1}), "what Gymnasium's reset does"),
        (np.datetime64("2020-01-01"), r"return str\(\.\.\.\) of it"),
        ((1, np.datetime64(5, "ns")), r"return str\(\.\.\.\) of it"),
        (np.timedelta64(5, "ns"), r"return str\(\.\.\.\) of it"),
        (np.void(b"ab"), "a record of NumPy is no plain value"),
        (np.zeros(1, dtype="i4,f8")[0], "a record of NumPy is no plain value"),
        (np.complex128(1), "does not mean the same"),
        (Unlike("a"), "does not equal 'a'"),
        (Incomparable("a"), "cannot be compared with 'a': RuntimeError"),
        (math.nan, "holds NaN"),
        ((1, (2, np.float32("nan"))), "holds NaN"),
        (frozenset({math.nan}), "holds NaN"),
        ([1, 2], r"return tuple\(\.\.\.\) of it"),
        ((1, [2]), r"return tuple\(\.\.\.\) of it"),
        (np.zeros(2), r"return tuple\(\.\.\.\) of it"),
        ({"x": 1}, "a tuple of the values"),
        ({1}, r"return frozenset\(\.\.\.\) of it"),
        (Colour.RED, "a member of the Enum Colour; return its name"),
        (Board(3), r"dataclasses\.astuple"),
        (Thing(), "does not mean the same in another process"),
        (np.datetime64("2020-01-01"), "is not a state"),
        (1j, "is not a state"),
        (Unreadable(), "of type Unreadable is not a state"),
    ],
)
def test_what_is_no_state_is_refused_with_what_to_do(answer: Any, message: str) -> None:
    with pytest.raises(SystemFaultError, match=message):
        plain_state(answer)


def test_a_state_that_is_nested_without_end_is_refused() -> None:
    label: Any = ()
    for _ in range(100_000):
        label = (label,)
    with pytest.raises(SystemFaultError, match="is not a state"):
        plain_state(label)


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        (1, True),
        (False, 0),
        ((2, True), (2, 1)),
        (True, np.int64(1)),
        (frozenset({2, (1, "a")}), frozenset({(True, "a"), 2})),
    ],
)
def test_truth_values_and_numbers_that_are_equal_are_not_taken_for_one_state(known: Any, answer: Any) -> None:
    with pytest.raises(WorldError, match="are equal in Python"):
        check_same_kind(known, answer)


@pytest.mark.parametrize(
    ("known", "answer"), [(1, 1.0), (2, np.int64(2)), ((1, "a"), (1.0, "a")), (True, np.bool_(True))]
)
def test_numbers_that_are_equal_are_one_state(known: Any, answer: Any) -> None:
    check_same_kind(known, answer)


class Turning:
    """Says `said` at each of the first steps, and then, in the same order, `turned`."""

    actions = ("go",)

    def __init__(self, said: Any, turned: Any) -> None:
        self._said, self._turned, self._left = said, turned, 5

    def reset(self) -> str:
        return "start"

    def step(self, _: str) -> Any:
        self._left -= 1
        return self._said if self._left >= 0 else self._turned


@pytest.mark.parametrize(("said", "turned"), [(1, True), ((0, "a"), (False, "a")), (frozenset({1}), frozenset({True}))])
def test_a_truth_value_in_place_of_a_number_is_noticed_in_the_middle_of_an_order(said: Any, turned: Any) -> None:
    world = SteppedWorld(Turning(said, turned))
    with pytest.raises(WorldError, match="are equal in Python"):
        world.carry_out([Visit(0, 0, 20, np.array([-1]), max_journey=1)])


class Drifting(Turning):
    def reset(self) -> Any:
        self._left -= 1
        return self._said if self._left >= 0 else self._turned


def test_a_start_that_turns_into_a_truth_value_is_noticed() -> None:
    world = SteppedWorld(Drifting((1, 2), (True, 2)), start_checks=2)
    with pytest.raises(WorldError, match="are equal in Python"):
        world.carry_out([Episodes(0, 9, 1, np.array([-1]), always_reset=True)])


@pytest.mark.parametrize(
    ("start", "answer", "is_told"), [(0, (1, 0.5), True), ("s", ("t", 1.0), True), ("s", (1, 2), False)]
)
def test_a_reward_beside_the_state_is_pointed_out(
    start: Any, answer: Any, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    hint_at_rewards(start, answer)
    assert ("is a reward" in caplog.text) == is_told


def test_actions_are_plain_and_different() -> None:
    assert checked_actions("s", ["a", np.int64(1)]) == ("a", 1)
    with pytest.raises(WorldError, match="offer its name, and look it up in step"):
        checked_actions("s", [Colour.RED])
    with pytest.raises(WorldError, match="of type Thing"):
        checked_actions("s", [Thing()])
    with pytest.raises(WorldError, match="offers an action twice"):
        checked_actions("s", [1, True])
    with pytest.raises(WorldError, match="of type list"):
        checked_actions("s", [["a"]])  # type: ignore[list-item]


class Lottery:
    """One action, which leads to the goal half of the time, and else answers with something else."""

    actions = ("draw",)

    def __init__(self, otherwise: Any) -> None:
        self._otherwise = otherwise
        self._noise = np.random.default_rng(1)

    def reset(self) -> str:
        return "start"

    def step(self, _: str) -> Any:
        return "goal" if self._noise.random() < 0.5 else self._otherwise


@pytest.mark.parametrize("otherwise", [math.nan, None, ["x"], Thing()])
def test_where_half_of_the_answers_are_no_states_nothing_false_is_certified(otherwise: Any) -> None:
    with pytest.raises(InvalidAnswerError, match="on_invalid='state'"):
        explore(lambda: Lottery(otherwise), radius=1.5, epsilon=0.4)


def test_as_a_state_of_its_own_what_is_no_state_counts_and_the_bound_is_true() -> None:
    atlas = explore(SteppedWorld(lambda: Lottery(math.nan), on_invalid="state"), radius=4, epsilon=1.0)
    assert set(atlas.states) == {"start", "goal", INVALID_STATE}
    # Half of the time a step misses, and takes a RESET before the next: x = 1 + (1 + x) / 2 = 3.
    bounds = atlas.bounds("goal")
    assert bounds.lower <= 3 <= bounds.upper
    assert verify(atlas).holds


class Forgetful:
    actions: Any = ("go",)

    def reset(self) -> str:
        return "start"

    def step(self, _: str) -> None:
        """Returns nothing."""


class Nothing(Forgetful):
    actions: Any = ()


def test_on_the_command_line_the_option_is_a_parameter_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.Forgetful", Forgetful, raising=False)
    world = named_world("json:Forgetful", 0, {"on_invalid": "state"})
    assert world.states == ["start"]
    with pytest.raises(InvalidInputError, match="on_invalid is 'ignore'; it must be 'error' or 'state'"):
        named_world("json:Forgetful", 0, {"on_invalid": "ignore"})


def test_a_start_without_actions_is_refused_with_a_hint() -> None:
    with pytest.raises(InvalidInputError, match="the start, 'start', offers no actions"):
        SteppedWorld(Nothing)


def test_a_reset_without_a_state_is_refused_with_a_hint() -> None:
    class Bare(Forgetful):
        def reset(self) -> Any:
            return None

    with pytest.raises(WorldError, match="reset returned None: does it `return` the state"):
        SteppedWorld(Bare)


def test_states_that_are_equal_but_different_are_refused_when_they_are_met() -> None:
    class Confused(Forgetful):
        def __init__(self) -> None:
            self._n_steps = 0

        def step(self, _: str) -> Any:
            self._n_steps += 1
            return 1 if self._n_steps == 1 else True

    world = SteppedWorld(Confused)
    visit = Visit(0, 0, 1, np.zeros(0, dtype=np.int64), max_journey=1)
    world.carry_out([visit])
    with pytest.raises(WorldError, match="the states 1 and True are equal in Python"):
        world.carry_out([visit])
