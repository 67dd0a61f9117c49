"""How the certified explorer grows with the world: CPU time, steps and memory on ladders of models.

    python benchmarks/ladder.py [LADDER ...] [--seconds N] [--json FILE]

Every rung runs in a process of its own, and is cut after N seconds of CPU time; then the row says how far it came. The
exponent compares a rung with the one before: time ~ states^exponent. `make bench-against COMMIT` runs the same ladders
with an older commit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

import axplore
from axplore import TabularMdp
from axplore.assumptions import Assumptions
from axplore.domains import GridTies

SECONDS: Final = 120
"""CPU seconds after which a rung is cut, unless given otherwise."""

Rows = dict[Any, dict[Any, dict[Any, float]]]
Rung = tuple[Callable[[], TabularMdp], dict[str, Any]]
"""A model, and the arguments of `explore`; `until` ends it at a number of known states."""


class EnoughError(Exception):
    """The time is up, or as many states are known as were asked for."""


def grid(size: int, slip: float) -> TabularMdp:
    return axplore.domain("slippery-grid", rows=size, columns=size, slip=slip)


def binary_tree(depth: int) -> TabularMdp:
    """A complete tree; `left` and `right` go down."""
    inner: Rows = {node: {"left": {2 * node: 1.0}, "right": {2 * node + 1: 1.0}} for node in range(1, 2**depth)}
    leaves: Rows = {node: {} for node in range(2**depth, 2 ** (depth + 1))}
    return TabularMdp.from_rows(inner | leaves, 1)


def random_sparse(states: int) -> TabularMdp:
    return axplore.domain("random-sparse", states=states, actions=4, branching=(1, 3), seed=1)


def random_graph(states: int) -> TabularMdp:
    """Every action leads to some state, so that a survey finds what is left at the other end of everything."""
    return axplore.domain("random-sparse", states=states, actions=4, branching=(1, 1), seed=1)


def many_actions(actions: int) -> TabularMdp:
    """Thirty states in a ring; the first action leads to the next state, the others stay."""
    n_states = 30
    rows: Rows = {
        state: {action: {(state + 1) % n_states if action == 0 else state: 1.0} for action in range(actions)}
        for state in range(n_states)
    }
    return TabularMdp.from_rows(rows, 0)


def fan(width: int) -> TabularMdp:
    """One action with `width` equally likely outcomes, from each of which only RESET leads on."""
    rows: Rows = {0: {"spin": dict.fromkeys(range(1, width + 1), 1 / width)}}
    return TabularMdp.from_rows(rows | {state: {} for state in range(1, width + 1)}, 0)


def counter(length: int) -> TabularMdp:
    """A corridor with a single action that advances nine times out of ten."""
    rows: Rows = {state: {"go": {state + 1: 0.9, state: 0.1}} for state in range(length)}
    return TabularMdp.from_rows(rows | {length: {}}, 0)


def interface(screens: int, buttons: int = 4, seed: int = 0) -> TabularMdp:
    """A graph like that of a user interface: each button of a screen leads to one other screen, and may do nothing."""
    generator = np.random.default_rng(seed)
    rows: Rows = {}
    for screen in range(screens):
        near = np.clip(generator.integers(screen - 5, 3 * screen + 12, size=buttons), 0, screens - 1)
        rows[screen] = {}
        for button in range(buttons):
            goal = int(near[button])
            rows[screen][button] = {goal: 0.95, screen: 0.05} if goal != screen and button == 0 else {goal: 1.0}
    return TabularMdp.from_rows(rows, 0)


def ties(size: int) -> dict[str, Any]:
    """That the floor of a grid is equally slippery everywhere, and where its steps lead."""
    grid_ties = GridTies(size, size)
    return {"assume": Assumptions(tied=grid_ties.outcome_of, leads_to=grid_ties.leads_to)}


def settings(radius: float, epsilon: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"radius": radius, "epsilon": epsilon, **more}


LADDERS: Final[Mapping[str, dict[str, Rung]]] = {
    "small slippery grid n×n, slip 0.2": {
        f"{n}": (partial(grid, n, 0.2), settings(radius)) for n, radius in ((4, 6), (6, 8), (10, 10))
    },
    "slippery grid n×n, L = n": {f"{n}": (partial(grid, n, 0.1), settings(n)) for n in (6, 10, 15)},
    "large slippery grid n×n": {
        f"{n}": (partial(grid, n, 0.1), settings(radius)) for n, radius in ((20, 15), (30, 25), (60, 50))
    },
    "deterministic grid n×n, L = n": {f"{n}": (partial(grid, n, 0.0), settings(n)) for n in (10, 20, 40)},
    "star of n arms": {
        f"{n}": (partial(axplore.domain, "star", arms=n, arm_length=1), settings(2))
        for n in (500, 1000, 2000, 5000, 20_000)
    },
    "binary tree of depth d": {f"{d}": (partial(binary_tree, d), settings(d)) for d in (6, 8, 10, 11)},
    "first known states of 2,000, random sparse, L = 8": {
        f"{n}": (partial(random_sparse, 2000), settings(8, until=n)) for n in (29, 57, 114)
    },
    "actions of 30 states": {f"{n}": (partial(many_actions, n), settings(30)) for n in (5, 20, 100)},
    "uniform fan, L = 2n": {f"{n}": (partial(fan, n), settings(2 * n)) for n in (5, 20, 100)},
    "counter": {f"{n}": (partial(counter, n), settings(2 * n)) for n in (30, 100, 300)},
    "user interface": {
        f"{n}": (partial(interface, n), settings(7, 3.0, objective="within-radius"))
        for n in (100, 500, 2500, 5000, 10_000)
    },
    "tied slippery grid n×n": {
        f"{n}": (partial(grid, n, slip), settings(radius, **ties(n)))
        for n, slip, radius in ((6, 0.2, 8), (20, 0.1, 15), (40, 0.1, 30))
    },
    "random maze n×n, all of it, deterministic by assumption": {
        f"{n}": (partial(axplore.domain, "random-maze", rows=n, columns=n), settings(n * n, assume="deterministic"))
        for n in (100, 225, 1000)
    },
    "random graph of n² states, deterministic by assumption": {
        f"{n}": (partial(random_graph, n * n), settings(60, assume="deterministic")) for n in (100, 225, 1000)
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="parts of names; all when not given")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU seconds for a rung")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--rung", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rung:
        print(json.dumps(measured(given.rung[0], given.rung[1], given.seconds)))
        return
    print(f"first exploration after installing: {first_use():.1f} s of CPU time", flush=True)
    figures = {}
    for name in LADDERS:
        if not given.ladders or any(part in name for part in given.ladders):
            figures[name] = list(climbed(name, given.seconds))
            print(f"time ~ states^{exponent_in_words(figures[name])}, fitted", flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def measured(ladder: str, rung: str, seconds: float) -> dict[str, Any]:
    """Explores one model and returns what it took; compilation is done before on a small model."""
    import resource

    make, arguments = LADDERS[ladder][rung]
    until = arguments.get("until", math.inf)
    arguments = {name: value for name, value in arguments.items() if name != "until"}
    small = {name: value for name, value in arguments.items() if name in ("epsilon", "objective")}
    axplore.explore("slippery-grid", radius=3, world_parameters={"rows": 3, "columns": 3}, **small)
    mdp = make()
    began = time.process_time()
    found = {"steps": 0, "states": 0, "ended": True}

    def watch(report: Any) -> None:
        found.update(steps=report.steps, states=report.known)
        found["ended"] = time.process_time() - began <= seconds
        if not found["ended"] or report.known >= until:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        atlas = axplore.explore(mdp, on_round=watch, **arguments)
        found.update(steps=int(atlas.steps), states=len(atlas.states))
    return {
        "rung": rung,
        "cpu_seconds": round(time.process_time() - began, 3),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **found,
    }


def climbed(ladder: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Measures the rungs of a ladder, smallest first, until one takes too long; prints a row for each."""
    print(f"\n{ladder}\n{'rung':>8} {'CPU s':>9} {'steps':>14} {'states':>7} {'MB':>6} {'exponent':>9}", flush=True)
    before: dict[str, Any] | None = None
    for rung in LADDERS[ladder]:
        found = run_rung(ladder, rung, seconds)
        if found is None:
            return
        exponent = growth(before, found) if found["ended"] else "cut"
        print(
            f"{rung:>8} {found['cpu_seconds']:9.2f} {found['steps']:14,} {found['states']:7} {found['megabytes']:6} "
            f"{exponent:>9}",
            flush=True,
        )
        yield found
        if not found["ended"]:
            return
        before = found


def fitted_exponent(rungs: list[dict[str, Any]]) -> float | None:
    """The exponent of the time in the number of states found, fitted to all rungs that ended; None for fewer than two.

    The slope of the logarithms, by least squares.
    """
    ended = [rung for rung in rungs if rung["ended"] and rung["states"] > 0 and rung["cpu_seconds"] > 0]
    if len({rung["states"] for rung in ended}) < 2:
        return None
    states, seconds = np.log([[rung["states"], rung["cpu_seconds"]] for rung in ended]).T
    return float(np.polyfit(states, seconds, 1)[0])


def exponent_in_words(rungs: list[dict[str, Any]]) -> str:
    exponent = fitted_exponent(rungs)
    return "–" if exponent is None else f"{exponent:.2f}"


FIRST_USE: Final = """
import time, axplore
axplore.explore("slippery-grid", radius=4, epsilon=1, world_parameters={"rows": 4, "columns": 4})
print(time.process_time())
"""


def first_use(python: str = sys.executable) -> float:
    """The CPU seconds of the first exploration after installing, from the import on: everything is compiled."""
    with TemporaryDirectory(prefix="axplore-first-") as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        if python != sys.executable:
            environment["PYTHONPATH"] = ""
        ended = subprocess.run([python, "-c", FIRST_USE], env=environment, capture_output=True, text=True, check=True)
    return float(ended.stdout.splitlines()[-1])


def run_rung(ladder: str, rung: str, seconds: float, python: str = sys.executable) -> dict[str, Any] | None:
    """Measures a rung in a process of its own; None if it fails, which is printed, or a round takes far too long."""
    allowance = 2 * math.ceil(seconds) + 60  # compiling and importing come before the measurement
    command = [python, str(Path(__file__).resolve()), "--seconds", str(seconds), "--rung", ladder, rung]
    paths = {} if python == sys.executable else {"PYTHONPATH": ""}
    ended = subprocess.run(
        ["bash", "-c", f'ulimit -t {allowance}; exec "$@"', "bash", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **paths},
    )
    if ended.returncode:
        print(f"{rung:>8} failed:", *ended.stderr.strip().splitlines()[-1:] or ["too long"], file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def growth(before: dict[str, Any] | None, now: dict[str, Any]) -> str:
    """The exponent of the time in the number of states found, against the rung before."""
    if before is None or now["states"] <= before["states"] or before["cpu_seconds"] <= 0:
        return "–"
    ratio = math.log(now["cpu_seconds"] / before["cpu_seconds"])
    return f"{ratio / math.log(now['states'] / before['states']):.2f}"


if __name__ == "__main__":
    main()
