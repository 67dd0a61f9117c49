from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import Atlas
from axplore.errors import InvalidSettingError, UntrustedFileError
from axplore.report import pictures, write_report
from axplore.report.pictures import taken_pictures
from commands import run


class Corridor:
    """Three rooms in a row; a room is drawn in a colour of its own."""

    actions = ("on", "back")

    def reset(self) -> int:
        self.room = 0
        return self.room

    def step(self, action: str) -> int:
        self.room = min(2, self.room + 1) if action == "on" else max(0, self.room - 1)
        return self.room

    def render(self) -> Any:
        return np.full((4, 4, 3), 10 * self.room, dtype=np.uint8)


class Dark(Corridor):
    """The same without pictures."""

    render = None  # type: ignore[assignment]


@pytest.fixture
def corridor() -> Atlas:
    return axplore.explore(Corridor, 3, 1, assume="deterministic", doctor=False)


def named(kind: type) -> str:
    return f"{kind.__module__}:{kind.__name__}"


def shown(page: Path) -> list[str]:
    (content,) = re.findall(r'id="content">(.*?)</script>', page.read_text(encoding="utf-8"))
    found: list[str] = json.loads(content)["pictures"]
    return found


def test_a_system_draws_each_of_its_states_when_it_is_there(corridor: Atlas) -> None:
    taken = taken_pictures(corridor, named(Corridor), {})
    assert {room: int(picture[0, 0, 0]) for room, picture in taken.items()} == {0: 0, 1: 10, 2: 20}


def test_no_more_pictures_are_taken_than_there_is_room_for(corridor: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_TAKEN", 2)
    assert set(taken_pictures(corridor, named(Corridor), {})) == {0, 1}  # the nearest


def test_no_way_is_begun_after_the_time_for_pictures(corridor: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_SECONDS", -1.0)
    assert taken_pictures(corridor, named(Corridor), {}) == {}


def test_a_system_that_draws_nothing_is_refused(corridor: Atlas) -> None:
    for world in (named(Dark), "confusing-chain"):
        with pytest.raises(InvalidSettingError, match="draws no pictures"):
            taken_pictures(corridor, world, {})


def test_gymnasium_draws_its_states_and_the_command_shows_them(tmp_path: Path) -> None:
    lake = (
        "explore",
        "gym:FrozenLake-v1",
        "--radius",
        "2",
        "--epsilon",
        "1",
        "--set",
        "is_slippery=False",
        "--no-doctor",
    )
    run(*lake, "--out", tmp_path / "run")
    drawn = shown(tmp_path / "run" / "report.html")
    assert len(drawn) == len(Atlas.load(tmp_path / "run"))
    assert all(address.startswith("data:image/png") for address in drawn)
    assert len(set(drawn)) == len(drawn)
    run(*lake, "--no-pictures", "--out", tmp_path / "plain")
    assert shown(tmp_path / "plain" / "report.html") == []


def test_a_world_that_only_the_run_names_is_started_for_pictures_only_if_it_is_trusted(tmp_path: Path) -> None:
    axplore.explore(named(Corridor), 3, 1, assume="deterministic", doctor=False, run=tmp_path / "run")
    with pytest.raises(UntrustedFileError, match="--trust"):
        write_report(tmp_path / "run", pictures=True)
    assert len(shown(write_report(tmp_path / "run", pictures=True, trust=True))) == 3
    assert len(shown(Path(run("report", tmp_path / "run", "--pictures", "--trust").strip()))) == 3


def test_a_run_of_an_object_has_no_world_to_start_again(tmp_path: Path) -> None:
    axplore.explore(Corridor(), 3, 1, assume="deterministic", doctor=False, run=tmp_path / "run")
    with pytest.raises(InvalidSettingError, match="does not name its world"):
        write_report(tmp_path / "run", pictures=True, trust=True)


def test_names_and_pictures_come_from_functions_that_the_command_names(tmp_path: Path) -> None:
    axplore.explore(named(Corridor), 3, 1, assume="deterministic", doctor=False, run=tmp_path / "run")
    here = Corridor.__module__
    run("report", tmp_path / "run", "--describe", f"{here}:room_name", "--render", f"{here}:room_picture")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "room 2" in page
    assert shown(tmp_path / "run" / "report.html")[1:] == ["", ""]


def room_name(room: int) -> str:
    return f"room {room}"


def room_picture(room: int) -> Any:
    return np.zeros((2, 2, 3), dtype=np.uint8) if room == 0 else None
