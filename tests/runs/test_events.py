from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import DamagedFileError, StorageError
from axplore.report.charts import discovery_chart
from axplore.runs import events
from axplore.runs.events import NAME, EventLog, read_events, read_lines
from axplore.runs.history import History, faults_in, moments_of
from axplore.storage import MAX_JSON_BYTES
from trees import tree_atlas

TIME = "2026-01-01T00:00:00.000+00:00"

EVENTS: dict[str, dict[str, Any]] = {
    "began": {},
    "round": {"round": 1, "known": 2, "frontier": 3, "steps": 4, "activity": "drawing"},
    "bounds": {"steps": 5, "lower": [0.0, 1.0], "upper": [0, None]},
    "fault": {"kind": "RAISED", "message": "", "steps": 3},
    "worker": {"kind": "LOST", "message": "", "steps": 3},
    "ended": {"processor_seconds": 0.5},
}


def written(folder: Path, *events: Any) -> Path:
    (folder / NAME).write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def test_what_is_noted_is_read_back(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for kind, content in EVENTS.items():
        log.note(kind, **content)
    log.close()
    for event, (kind, content) in zip(read_events(tmp_path), EVENTS.items(), strict=True):
        assert {name: value for name, value in event.items() if name != "time"} == {"event": kind, **content}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("began", "time", None),
        ("began", "time", "yesterday"),
        ("began", "time", "2026-01-01T00:00:00"),  # of no time zone: it cannot be compared with the others
        ("began", "event", 7),
        ("round", "known", "2"),
        ("round", "known", None),
        ("round", "steps", -1),
        ("round", "steps", True),
        ("round", "frontier", 1.5),
        ("bounds", "steps", [5]),
        ("bounds", "lower", [0.0]),
        ("bounds", "lower", [0.0, None]),
        ("bounds", "lower", [0.0, float("nan")]),
        ("bounds", "upper", [0.0, float("inf")]),
        ("bounds", "upper", "01"),
        ("fault", "kind", ["RAISED"]),
        ("worker", "kind", {}),
        ("ended", "processor_seconds", "1"),
    ],
)
def test_a_changed_event_is_refused_by_its_line(tmp_path: Path, kind: str, name: str, value: Any) -> None:
    changed = {"time": TIME, "event": kind, **EVENTS[kind], name: value}
    with pytest.raises(DamagedFileError, match="damaged in line 2"):
        list(read_events(written(tmp_path, {"time": TIME, "event": "began"}, changed)))


@pytest.mark.parametrize("line", ["", "7", "[]", "{}", "null", "{", "[" * 100_000])
def test_a_line_that_is_no_event_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / NAME).write_text(line + "\n")
    with pytest.raises(DamagedFileError, match="damaged in line 1"):
        list(read_events(tmp_path))


def test_events_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    assert History(None, tuple(read_events(written(tmp_path, {"time": TIME, "event": "sneezed"})))).mishaps == ""


def test_a_log_that_is_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    for read in (lambda: list(read_events(tmp_path)), lambda: faults_in(tmp_path)):
        with pytest.raises(DamagedFileError, match="more than 67108864 are not read"):
            read()
    with pytest.raises(StorageError, match="more than 67108864 are not read"):
        EventLog(tmp_path)


def test_progress_never_takes_the_room_of_what_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_JSON_BYTES", 4_000)
    monkeypatch.setattr(events, "ROOM_FOR_PROGRESS", 2_000)
    log = EventLog(tmp_path)
    for size in [1] * 100 + [200]:
        log.note_progress("round", **{**EVENTS["round"], "activity": "x" * size})
    assert 0 < (tmp_path / NAME).stat().st_size < 2_000
    n_progress = len(log.read())
    log.note("fault", **EVENTS["fault"])
    assert [event["event"] for event in log.read()] == ["round"] * n_progress + ["fault"]
    with pytest.raises(StorageError, match="is full"):
        log.note("fault", **{**EVENTS["fault"], "message": "x" * 4_000})
    log.close()


def test_lines_longer_than_a_piece_are_read_whole_and_an_incomplete_one_is_dropped(tmp_path: Path) -> None:
    lines = [b"a" * 3_000_000, b"", b"b" * 10, b"c" * 2**20]
    (tmp_path / NAME).write_bytes(b"\n".join([*lines, b"incomplete"]))
    assert list(read_lines(tmp_path)) == lines
    EventLog(tmp_path).close()
    assert (tmp_path / NAME).read_bytes() == b"\n".join([*lines, b""])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(EVENTS)), st.data())
def test_whatever_is_read_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    event = {"time": TIME, "event": kind, **EVENTS[kind]}
    event[data.draw(st.sampled_from(sorted(event)))] = data.draw(json_values)
    folder = written(tmp_path_factory.mktemp("log"), event)
    try:
        history = History(None, tuple(read_events(folder)))
    except DamagedFileError:
        return
    atlas = tree_atlas(10)
    assert history.seconds is None or history.seconds == 0
    assert isinstance(history.mishaps, str)
    moments_of(atlas, history)
    discovery_chart(atlas, history)
