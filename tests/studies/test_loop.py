from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from axplore.errors import DamagedFileError, InvalidSettingError, StorageError, UnknownNameError
from axplore_studies.loop import Record, RecordFile, Study, Trial, forget, read_records, records_of, run_study
from axplore_studies.outputs import Document
from killed_workers import Killer


def squares(numbers: int = 4, power: int = 2) -> list[Trial]:
    """Trials that any process can make: their work is that of a built-in function."""
    return [
        Trial({"number": number, "power": power}, partial(dict, value=number**power), weight=number)
        for number in range(numbers)
    ]


def total(records: Sequence[Record]) -> Document:
    return Document("squares", sum(record["value"] for record in records))


SQUARES = Study("squares", "what numbers come to", squares, total, counted="numbers")
WANTED = [{"number": number, "power": 2, "value": number**2} for number in range(4)]


def never() -> Record:
    raise AssertionError("this trial is in the file")


def unmade(trials: Sequence[Trial]) -> list[Trial]:
    return [Trial(trial.address, never) for trial in trials]


# ---------------------------------------------------------------------------------------------------------- the result


def test_a_study_keeps_its_records_its_result_and_its_command(tmp_path: Path) -> None:
    assert run_study(SQUARES, tmp_path).name == "squares"
    assert read_records(tmp_path / "squares.jsonl") == WANTED
    assert json.loads((tmp_path / "squares.json").read_text()) == 14
    assert read_records(tmp_path / "commands.jsonl") == [
        {"study": "squares", "command": "python -m axplore_studies squares"}
    ]
    run_study(SQUARES, tmp_path, number=2, settings={"power": 3})
    (kept,) = read_records(tmp_path / "commands.jsonl")
    assert kept["command"] == "python -m axplore_studies squares --trials 2 --set power=3"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commands.jsonl", "squares.json", "squares.jsonl"]


def test_the_longest_trials_begin_first_and_records_are_in_the_order_of_addresses(tmp_path: Path) -> None:
    begun: list[int] = []

    def noting(number: int) -> Record:
        begun.append(number)
        return {}

    trials = [Trial({"number": number}, partial(noting, number), weight=number % 3) for number in (10, 9, 2)]
    assert [record["number"] for record in records_of(trials, tmp_path / "records")] == [10, 9, 2]
    assert begun == [2, 10, 9]
    assert [record["number"] for record in read_records(tmp_path / "records")] == [2, 9, 10]


def test_progress_counts_finished_trials(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    records_of(squares(2), tmp_path / "records", on_done=lambda *call: calls.append(call))
    records_of(squares(3), tmp_path / "records", on_done=lambda *call: calls.append(call))
    assert calls == [(0, 2), (1, 2), (2, 2), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("number", "settings", "error", "message"),
    [
        (0, {}, InvalidSettingError, "the number of numbers is 0"),
        (None, {"powr": 2}, UnknownNameError, "no setting of squares named 'powr'; did you mean 'power'"),
        (None, {"numbers": 2}, UnknownNameError, "no setting of squares named 'numbers'"),
    ],
)
def test_wrong_settings_are_refused(
    number: int | None, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SQUARES.planned(number, settings)


def test_a_study_of_fixed_trials_cannot_be_scaled() -> None:
    with pytest.raises(InvalidSettingError, match="fixed number of trials"):
        Study("fixed", "", squares, total).planned(2)


def test_two_trials_with_one_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="the same address"):
        records_of([*squares(2), *squares(1)], tmp_path / "records")


# -------------------------------------------------------------------------------------------------------- interruptions


def test_only_missing_trials_are_made(tmp_path: Path) -> None:
    path = tmp_path / "records"
    records_of(squares(2), path)
    lines = path.read_text()
    path.write_text(lines + '{"number": 2, "po')  # a process was killed while it wrote
    assert records_of([*unmade(squares(2)), *squares(4)[2:]], path) == WANTED
    assert read_records(path) == WANTED


def test_a_failure_loses_no_finished_trial(tmp_path: Path) -> None:
    path = tmp_path / "records"
    with pytest.raises(AssertionError):
        records_of([*squares(2), replace(squares(3)[2], work=never, weight=-1)], path)
    assert sorted(record["number"] for record in read_records(path)) == [0, 1]
    assert records_of([*unmade(squares(2)), *squares(4)[2:]], path) == WANTED


def test_what_is_forgotten_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "records"
    cubes = records_of(squares(2, power=3), path)
    path.write_text(path.read_text() + json.dumps({**WANTED[1], "value": -1}) + "\n")
    assert records_of(squares(), path)[1]["value"] == -1
    forget(squares(), path)
    assert read_records(path) == cubes
    assert records_of(squares(), path) == WANTED
    assert read_records(path) == [WANTED[0], cubes[0], WANTED[1], cubes[1], *WANTED[2:]]


def test_records_of_other_settings_stay_and_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "records"
    other = {"number": 1, "value": "of an older study"}
    path.write_text(json.dumps(other) + "\n" + json.dumps({**WANTED[1], "power": 7}) + "\n")
    assert records_of(squares(), path) == WANTED
    assert other in read_records(path)
    assert len(read_records(path)) == 6


KILLED = """
import os, signal, sys, time
from dataclasses import replace
from functools import partial
from pathlib import Path
from axplore_studies.loop import Trial, records_of

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it

def slow(number):
    if number == 3:
        time.sleep(600)
    return {"process": os.getpid()}

records_of([Trial({"number": number}, partial(slow, number)) for number in range(5)], Path(sys.argv[1]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_a_killed_process_loses_no_finished_trial(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "records"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stderr=subprocess.DEVNULL) as process:
        while not path.exists() or path.read_text().count("\n") < 3:
            assert process.poll() is None
            time.sleep(0.01)
        with pytest.raises(StorageError, match="another process adds to"):
            RecordFile(path)
        process.send_signal(how)
    trials = [Trial({"number": number}, partial(dict, process=os.getpid())) for number in range(5)]
    made_by = [record["process"] for record in records_of(trials, path)]
    assert made_by == [process.pid] * 3 + [os.getpid()] * 2


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "records").write_text('{"number": 0}\n[1, 2]\n')
    with pytest.raises(DamagedFileError, match=r"line 2 of .*records is not a record"):
        records_of(squares(), tmp_path / "records")


# -------------------------------------------------------------------------------------------------------------- workers


def test_workers_killed_in_the_middle_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killer = Killer(monkeypatch, 1)
    path = tmp_path / "records"
    assert records_of(squares(), path, workers=2, on_done=killer.on_done) == WANTED
    assert len(killer.started) > 2
    assert "was killed by SIGKILL" in caplog.text
    assert read_records(path) == WANTED


def test_trials_that_start_processes_are_made_one_after_the_other_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    study = Study("alone", "", squares, total, one_at_a_time=True)
    run_study(study, tmp_path, workers=2)
    assert not killer.started
