"""How certificates and their verification grow with the world: size, CPU time and memory on ladders of models.

    python benchmarks/verifying.py [LADDER ...] [--json FILE]

Each rung is explored, saved and verified in a process of its own. Exponents are those of the known states, fitted to
rungs with more than `WHOLE_UP_TO` of these: up to there every vector has a number for every state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

import axplore
from axplore.certificate import Certificate, verify
from axplore.proofs.bounds import WHOLE_UP_TO
from ladder import LADDERS

RUNGS: Final = {
    "star of n arms": ("2000", "5000", "20000"),
    "binary tree of depth d": ("8", "10", "11"),
    "user interface": ("500", "2500", "5000", "10000"),
    "deterministic grid n×n, L = n": ("10", "20", "40"),
    "large slippery grid n×n": ("20", "30"),
}
MEASURES: Final = ("kilobytes", "cpu_seconds", "megabytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="parts of names; all when not given")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--rung", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rung:
        print(json.dumps(measured(*given.rung)))
        return
    figures = {}
    for name, rungs in RUNGS.items():
        if not given.ladders or any(part in name for part in given.ladders):
            print(f"\n{name}\n{'rung':>8} {'states':>7} {'claims':>7} {'kB':>7} {'CPU s':>7} {'MB':>6}", flush=True)
            figures[name] = [climbed(name, rung) for rung in rungs]
            large = [found for found in figures[name] if found["states"] > WHOLE_UP_TO]
            print("fitted:", ", ".join(f"{measure} ~ states^{exponent(large, measure)}" for measure in MEASURES))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def climbed(name: str, rung: str) -> dict[str, Any]:
    """Measures a rung in a process of its own, and prints its row."""
    command = [sys.executable, str(Path(__file__).resolve()), "--rung", name, rung]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    print(
        f"{rung:>8} {found['states']:7} {found['claims']:7} {found['kilobytes']:7} {found['cpu_seconds']:7.2f} "
        f"{found['megabytes']:6.1f}",
        flush=True,
    )
    return found


def measured(name: str, rung: str) -> dict[str, Any]:
    """Explores a model, and returns how large its certificate is, and what its verification took beside it."""
    make, arguments = LADDERS[name][rung]
    atlas = axplore.explore(make(), **arguments)
    assert atlas.certificate is not None
    with TemporaryDirectory(prefix="axplore-verifying-") as folder:
        atlas.certificate.save(folder)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        certificate = Certificate.load(folder)
    began = time.process_time()
    verification = verify(certificate)
    seconds = time.process_time() - began
    assert verification.holds, verification.summary
    tracemalloc.start()
    verify(certificate)
    _, peak = tracemalloc.get_traced_memory()
    return {
        "rung": rung,
        "states": len(certificate.known),
        "claims": len(verification.claims),
        "kilobytes": size // 1000,
        "cpu_seconds": round(seconds, 3),
        "megabytes": round(peak / 1e6, 1),
    }


def exponent(rungs: list[dict[str, Any]], measure: str) -> str:
    """The exponent of a measure in the number of known states, by least squares; none for fewer than two rungs."""
    if len({rung["states"] for rung in rungs}) < 2:
        return "–"
    states, found = np.log([[rung["states"], max(rung[measure], 1e-3)] for rung in rungs]).T
    return f"{np.polyfit(states, found, 1)[0]:.2f}"


if __name__ == "__main__":
    main()
