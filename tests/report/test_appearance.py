from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from axplore.errors import InvalidSettingError
from axplore.report import appearance
from axplore.report.appearance import MAX_PICTURES, MAX_SIDE, Appearance


def test_names_come_from_a_function_or_a_table_and_are_the_labels_otherwise() -> None:
    look = Appearance(describe=lambda state: f"room {state}", action_names={0: "left"})
    assert (look.state(3), look.action(0), look.action(1)) == ("room 3", "left", "1")
    assert Appearance().state((1, "a")) == "1 · a"


def test_the_numbered_actions_of_gymnasium_have_names() -> None:
    assert Appearance.of_world("gym:FrozenLake8x8-v1").action(2) == "right"
    assert Appearance.of_world("gym:MiniGrid-Empty-5x5-v0").action(5) == "toggle"
    assert Appearance.of_world("confusing-chain").action("skip") == "skip"


@pytest.mark.parametrize(
    ("world", "label", "name"),
    [
        ("gym:Taxi-v4", 328, "(3, 1) Y→R, 328"),
        ("gym:Blackjack-v1", (18, 10, 1), "18 with an ace against 10"),
        ("gym:MiniGrid-Empty-5x5-v0", (1, 2, "right", None, (), "79355346"), "(1, 2) right"),
        (
            "gym:MiniGrid-DoorKey-5x5-v0",
            (1, 2, "up", ("key", "yellow"), ((2, 2, "door", "yellow", "locked"),), "79355346"),
            "(1, 2) up, carrying key yellow, door yellow locked at (2, 2)",
        ),
        ("gym:Taxi-v4", "invalid", "invalid"),
        ("gym:Blackjack-v1", "invalid", "invalid"),
        ("gym:MiniGrid-Empty-5x5-v0", "invalid", "invalid"),
    ],
)
def test_states_of_gymnasium_that_are_hard_to_read_have_names(world: str, label: Any, name: str) -> None:
    assert Appearance.of_world(world).state(label) == name


def test_pictures_end_where_they_would_be_too_large_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = np.zeros((2, 2, 3), dtype=np.uint8)
    (address,) = Appearance(render=lambda _: frame).pictures(("a",))
    monkeypatch.setattr(appearance, "MAX_BYTES", 2 * len(address))
    assert Appearance(render=lambda _: frame).pictures(("a", "b", "c")) == [address] * 2


def test_a_picture_is_a_png_that_is_not_too_large() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (700, 300, 3), dtype=np.uint8)
    (address,) = Appearance(render=lambda _: frame).pictures(("a",))
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert max(image.size) <= MAX_SIDE
    np.testing.assert_array_equal(np.asarray(image), frame[::5, ::5])


def test_no_more_states_than_a_page_can_hold_have_pictures() -> None:
    frame = np.zeros((2, 2, 3), dtype=np.uint8)
    assert len(Appearance(render=lambda _: frame).pictures(tuple(range(MAX_PICTURES + 5)))) == MAX_PICTURES
    assert Appearance().pictures(("a",)) == []


@pytest.mark.parametrize("frame", ["frame", np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((0, 2, 3), dtype=np.uint8)])
def test_what_is_no_picture_and_what_is_no_name_are_refused(frame: Any) -> None:
    with pytest.raises(InvalidSettingError, match="what render returned"):
        Appearance(render=lambda _: frame).pictures(("a",))
    with pytest.raises(InvalidSettingError, match="what describe returned"):
        Appearance(describe=lambda _: 3).state("a")  # type: ignore[arg-type, return-value]
