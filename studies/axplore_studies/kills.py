"""Kills runs at random moments, resumes them, and compares what they end with with a run never killed.

Every run explores the slippery 6×6 grid or, with workers, FrozenLake. Some are resumed, once they have ended, with
other assumptions or another radius, which are their later stages. A kill is SIGKILL to the process that explores, at a
moment drawn evenly from the time that all stages take; every third run is killed again while it is resumed. Checkpoints
are written more often than usual, so that kills fall on their writing too.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document

SEED: Final = 20
"""The seed of the moments."""

RESULTS: Final = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")
"""The files that are compared."""

PROGRAM: Final = """
import json, sys
from pathlib import Path
import axplore.runs.recording as recording
from axplore.exploring import explore
from axplore.resuming import resume
recording.SECONDS_BETWEEN_CHECKPOINTS, recording.PART_FOR_CHECKPOINTS = 0.3, 1.0
folder, stages = Path(sys.argv[1]), json.loads(sys.argv[2])
passed = folder.with_name("passed")  # one line for each stage that has ended
for number, stage in enumerate(stages):
    if passed.exists() and number < len(passed.read_text().splitlines()):
        continue
    if number > 0:
        resume(folder, trust=True, **stage)  # of a run that this study made
    elif (folder / "run.json").exists():
        resume(folder, trust=True)
    else:
        explore(**stage, run=folder)
    with passed.open("a") as file:
        file.write("passed\\n")
"""
"""Carries out the stages that are left of a run."""

GRID: Final = {"world": "slippery-grid", "radius": 6.0, "epsilon": 0.5}
LAKE: Final = {"world": "gym:FrozenLake-v1", "radius": 8.0, "epsilon": 0.5, "workers": 2}
"""What is explored, as `explore` takes it; the grid has 6×6 cells."""

LEAST: Final = {"assume": "min-probability=0.05"}
CHANGING: Final = ({**GRID, **LEAST, "max_steps": 40_000}, {"assume": "none", "max_steps": 80_000}, {"radius": 7.0})
LAKE_CHANGING: Final = ({**LAKE, **LEAST, "radius": 6.0, "epsilon": 2.0}, {"assume": "none", "workers": 2})
"""Runs whose assumptions are dropped, and whose radius then grows."""


@dataclass(frozen=True)
class WholeRun:
    """A run that was never killed: the bytes that it ended with, and the seconds that it took."""

    results: Mapping[str, bytes]
    seconds: float


def trials_of(stages: Sequence[Mapping[str, Any]], runs: int) -> list[Trial]:
    """Returns runs to kill, which explore in these stages."""
    return [
        Trial({"stages": list(stages), "number": number}, partial(killed_run, json.dumps(stages), number))
        for number in range(runs)
    ]


def killed_run(stages: str, number: int) -> Record:
    """Explores, is killed, is resumed to the end, and returns what became of it.

    Args:
        stages: what is explored and with which changes it is resumed, as JSON.
        number: the number of the run, which the moments of its kills are drawn from.
    """
    whole = _whole_run(stages)
    times = 2 if number % 3 == 2 else 1
    first, *later = np.random.default_rng([SEED, number]).uniform(0, whole.seconds, size=times).tolist()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        while not _killed_at(first, folder, stages):  # it was quicker than the run never killed
            shutil.rmtree(place)
            first /= 2
        killed_after, left = [round(first, 3)], [_left_in(folder)]
        for moment in later:
            if _killed_at(moment, folder, stages):
                killed_after.append(round(moment, 3))
                left.append(_left_in(folder))
        subprocess.run(_command(folder, stages), check=True)
        same = _results_in(folder) == whole.results
    return {
        "seconds_never_killed": round(whole.seconds, 2),
        "killed_after": killed_after,  # seconds from the beginning of the run, and then of the resumption
        "left": left,  # what each kill found: the number of the last checkpoint and the bytes of the journal after it
        "same": same,
    }


@cache
def _whole_run(stages: str) -> WholeRun:
    with tempfile.TemporaryDirectory() as place:
        compiled, whole = Path(place) / "compiled" / "run", Path(place) / "whole" / "run"
        subprocess.run(_command(compiled, stages), check=True)  # compiles outside the measurement
        with subprocess.Popen(_command(whole, stages)) as process:
            _wait_for_a_run(process, whole)
            began = time.monotonic()
        return WholeRun(_results_in(whole), time.monotonic() - began)


def _results_in(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def _killed_at(moment: float, folder: Path, stages: str) -> bool:
    """Starts a process, kills it a number of seconds after there is a run, and returns whether it was still there."""
    with subprocess.Popen(_command(folder, stages)) as process:
        _wait_for_a_run(process, folder)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the process ended with exit code {process.returncode}")
    return process.returncode != 0


def _wait_for_a_run(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Waits until the folder is a run: before that there is nothing to resume."""
    while not (folder / "run.json").exists():
        if process.poll() is not None:
            raise RuntimeError(f"the process ended with exit code {process.returncode} before there was a run")
        time.sleep(0.005)


def _left_in(folder: Path) -> tuple[int, int]:
    number = max(int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.json"))
    journal = folder / f"journal-{number}"
    return number, journal.stat().st_size if journal.exists() else 0


def _command(folder: Path, stages: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(folder), stages]


def summary_as(name: str, records: Sequence[Record]) -> Document:
    """Returns what became of the runs; it holds if all ended with the bytes of the run never killed."""
    content = {
        "stages": records[0]["stages"],
        "seconds_never_killed": records[0]["seconds_never_killed"],
        "runs": len(records),
        "kills": sum(len(record["killed_after"]) for record in records),
        "same": sum(record["same"] for record in records),
        "outcomes": [{key: record[key] for key in ("killed_after", "left", "same")} for record in records],
    }
    return Document(name, content, holds=content["same"] == len(records))


def _study(name: str, description: str, stages: Sequence[Mapping[str, Any]], usual: int) -> Study:
    def trials(runs: int = usual) -> list[Trial]:
        return trials_of(stages, runs)

    return Study(name, description, trials, partial(summary_as, name), counted="runs", one_at_a_time=True)


STUDIES: Final = (
    _study("kills", "whether runs killed at random moments end with the same bytes", [GRID], 60),
    _study("kills-with-workers", "the same with two workers", [LAKE], 30),
    _study("kills-changing", "the same where assumptions and the radius change on resuming", CHANGING, 36),
    _study("kills-changing-with-workers", "the same with two workers", LAKE_CHANGING, 24),
)
