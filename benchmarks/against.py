"""The ladders of `ladder.py` with this tree and with an older commit, in the same run, as ratios.

    python benchmarks/against.py COMMIT [LADDER ...] [--seconds N]

The commit is taken out of the repository into a scratch folder with an environment of its own, which finds the
dependencies of this one. Each rung is measured twice, one commit right after the other, so that a busy machine slows
both alike.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import ladder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="parts of names; all when not given")
    parser.add_argument("--seconds", type=float, default=ladder.SECONDS, help="CPU seconds for a rung")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="axplore-bench-") as scratch:
        older = environment_of(given.commit, Path(scratch))
        first = [ladder.first_use(python) for python in (str(older), sys.executable)]
        print(f"first exploration after installing: {first[0]:.1f} s, now {first[1]:.1f} s, {first[1] / first[0]:.2f}")
        for name in ladder.LADDERS:
            if not given.ladders or any(part in name for part in given.ladders):
                compare(name, older, given.seconds)


def environment_of(commit: str, scratch: Path) -> Path:
    """Builds an environment in which `import axplore` is that of the commit, and returns its interpreter."""
    source = scratch / "source"
    with TemporaryFile() as archive:
        subprocess.run(["git", "archive", commit, "src"], stdout=archive, check=True)
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tar:
            tar.extractall(source, filter="data")
    venv.create(scratch / "env", with_pip=False, symlinks=True)
    site = next((scratch / "env").glob("lib/python*/site-packages"))
    site.joinpath("older.pth").write_text(f"{source / 'src'}\n{sysconfig.get_paths()['purelib']}\n")
    return scratch / "env" / "bin" / "python"


def compare(name: str, older: Path, seconds: float) -> None:
    """Prints a row for each rung: CPU seconds and steps of both, and their ratios."""
    heads = ("older s", "now s", "ratio", "older steps", "now steps", "ratio")
    print(f"\n{name}")
    print(f"{'rung':>8} {heads[0]:>9} {heads[1]:>9} {heads[2]:>7} {heads[3]:>14} {heads[4]:>14} {heads[5]:>7}")
    every: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
    for rung in ladder.LADDERS[name]:
        before, now = (ladder.run_rung(name, rung, seconds, python) for python in (str(older), sys.executable))
        runs = [found if found and found["ended"] else None for found in (before, now)]
        cells = [f"{found['cpu_seconds']:9.2f}" if found else f"{'cut':>9}" for found in runs]
        steps = [f"{found['steps']:14,}" if found else f"{'–':>14}" for found in runs]
        print(f"{rung:>8} {' '.join(cells)} {ratio(runs[0], runs[1], 'cpu_seconds')} {' '.join(steps)} ", end="")
        print(ratio(runs[0], runs[1], "steps"), flush=True)
        for fitted, found in zip(every, runs, strict=True):
            fitted.extend([found] if found else [])
        if runs == [None, None]:
            break
    exponents = [ladder.exponent_in_words(fitted) for fitted in every]
    print(f"time ~ states^{exponents[0]}, now states^{exponents[1]}, fitted to the rungs that ended", flush=True)


def ratio(before: dict[str, Any] | None, now: dict[str, Any] | None, key: str) -> str:
    return f"{now[key] / before[key]:7.2f}" if before and now and before[key] else f"{'–':>7}"


if __name__ == "__main__":
    main()
