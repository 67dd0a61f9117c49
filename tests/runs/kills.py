"""Kills runs at random moments, takes them up again, and compares what they end with with a run never killed.

    python tests/runs/kills.py [RUNS] [--workers N] [--out FILE]

Every run explores the slippery 6×6 grid or, with workers, FrozenLake. A kill is SIGKILL to the process that explores,
at a moment drawn evenly from the time that the exploration takes; every third run is killed again while it is resumed.
Checkpoints are written more often than usual, so that kills fall on their writing too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20
"""Of the moments."""

RESULTS = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")

PROGRAM = """
import json, sys
import axplore.runs.recording as recording
from axplore.exploring import explore
from axplore.resuming import resume
recording.SECONDS_BETWEEN_CHECKPOINTS, recording.PART_FOR_CHECKPOINTS = 0.3, 1.0
what, folder, settings = sys.argv[1:]
if what == "explore":
    explore(**json.loads(settings), run=folder)
else:
    resume(folder)
"""

GRID = {"world": "slippery-grid", "radius": 6.0, "epsilon": 0.5}
LAKE = {"world": "gym:FrozenLake-v1", "radius": 8.0, "epsilon": 0.5}
"""What is explored, as `explore` takes it; the grid has 6×6 cells unless told otherwise."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        killed_after: seconds from the beginning of the run, and then of the resumption, at which it was killed.
        left: what a kill found: the number of the last checkpoint and the bytes of the journal after it.
        same: whether it ended with the same bytes as the run never killed.
    """

    killed_after: list[float]
    left: list[tuple[int, int]]
    same: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", type=int, default=30)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    settings = GRID if arguments.workers is None else {**LAKE, "workers": arguments.workers}
    with tempfile.TemporaryDirectory() as place:  # kernels that were never used are compiled outside the measurement
        subprocess.run(_command("explore", Path(place) / "run", settings), check=True)
    summary = kill_and_compare(arguments.runs, settings)
    print(f"{summary['runs']} runs, {summary['kills']} kills: {summary['same']} ended with the same bytes")
    if arguments.out is not None:
        arguments.out.write_text(_as_text(summary))
    sys.exit(summary["same"] != summary["runs"])


def _as_text(summary: dict[str, Any]) -> str:
    """JSON with a line for each run."""
    *head, (last, outcomes) = summary.items()
    lines = [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in head]
    runs = ",\n  ".join(json.dumps(outcome) for outcome in outcomes)
    return "{\n " + "\n ".join([*lines, f"{json.dumps(last)}: ["]) + f"\n  {runs}\n ]\n}}\n"


def kill_and_compare(runs: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Kills so many runs and says what became of each."""
    generator = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        with subprocess.Popen(_command("explore", whole, settings)) as process:
            _wait_for_a_run(process, whole)
            began = time.monotonic()
        seconds = time.monotonic() - began
        outcomes = []
        for number in range(runs):
            moments = generator.uniform(0, seconds, size=2 if number % 3 == 2 else 1).tolist()
            outcome = _killed(Path(place) / str(number), whole, moments, settings)
            outcomes.append(outcome)
            print(f"run {number + 1}: killed after {outcome.killed_after} s; same: {outcome.same}", flush=True)
    return {
        "settings": settings,
        "seconds_never_killed": round(seconds, 2),
        "runs": runs,
        "kills": sum(len(outcome.killed_after) for outcome in outcomes),
        "same": sum(outcome.same for outcome in outcomes),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def _killed(folder: Path, whole: Path, moments: list[float], settings: dict[str, Any]) -> Outcome:
    """Explores, is killed at each of the moments, and is resumed to the end."""
    first, *later = moments
    while not _killed_at(first, "explore", folder, settings):  # it was quicker than the run never killed
        shutil.rmtree(folder)
        first /= 2
    killed_after, left = [round(first, 3)], [_left_in(folder)]
    for moment in later:
        if _killed_at(moment, "resume", folder, settings):
            killed_after.append(round(moment, 3))
            left.append(_left_in(folder))
    subprocess.run(_command("resume", folder, settings), check=True)
    same = all((folder / name).read_bytes() == (whole / name).read_bytes() for name in RESULTS)
    return Outcome(killed_after, left, same)


def _killed_at(moment: float, what: str, folder: Path, settings: dict[str, Any]) -> bool:
    """Starts a process and kills it so many seconds after there is a run; says whether it was still there."""
    with subprocess.Popen(_command(what, folder, settings)) as process:
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


def _command(what: str, folder: Path, settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-c", PROGRAM, what, str(folder), json.dumps(settings)]


if __name__ == "__main__":
    main()
