"""Steps per second of a compiled `Visit`, beside the same loop in C (stepping.c), in one run.

Both draw the same random words, and must meet the same transitions. Without a C compiler our speed stands alone.
Then a `Tour` beside visits that play the same pairs one after the other; of one pair both must meet the same.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from axplore.domains import confusing_chain, random_sparse
from axplore.mdp import TabularMdp
from axplore.worlds import simulation_kernels as stepping
from axplore.worlds.contract import Order, Tour, Visit, WorldSnapshot
from axplore.worlds.orders import order_seed
from axplore.worlds.simulated import SimulatedWorld

Run: TypeAlias = tuple[float, int, dict[int, int]]
"""Seconds, steps, and how often each transition of the model was met."""

SEED: Final = 1
REPEATS: Final = 5


def world_of(mdp: TabularMdp) -> SimulatedWorld:
    """A world with every state discovered; numbers are the model's own."""
    world = SimulatedWorld(mdp, SEED)
    world.restore(WorldSnapshot(mdp.states, tuple(map(mdp.actions_of, mdp.states)), steps=0, calls=0, position=0))
    return world


def run_ours(mdp: TabularMdp, order: Order) -> Run:
    """Carries out the order through the public interface."""
    world = world_of(mdp)
    start = time.perf_counter()
    (answer,) = world.carry_out([order])
    seconds = time.perf_counter() - start
    pairs = mdp.state_pairs[answer.pair_states] + answer.pair_actions
    counts = {}
    for pair, successor, count in zip(
        pairs[answer.entry_pairs], answer.entry_successors, answer.entry_counts, strict=True
    ):
        first, end = mdp.row_offsets[pair], mdp.row_offsets[pair + 1]
        counts[int(first + np.searchsorted(mdp.successors[first:end], successor))] = int(count)
    return seconds, answer.steps, counts


def run_c(library: Any, mdp: TabularMdp, visit: Visit) -> Run:
    """Carries it out in C."""
    tables, record = stepping.tables_of(mdp), stepping.new_record(mdp)
    record.numbers[:] = record.discovered[:] = np.arange(mdp.n_states)
    record.totals[stepping.STATES] = mdp.n_states
    stream = order_seed(SEED, 0, 0).generate_state(4, np.uint64)
    end = np.zeros(3, dtype=np.int64)

    def word(value: int) -> ctypes.c_int64:
        return ctypes.c_int64(value)

    def pointer(array: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    arguments = [
        word(tables.initial), *map(pointer, tables[1:]), *map(pointer, record), pointer(stream), pointer(visit.policy),
        word(len(visit.policy)), word(visit.state), word(visit.action), word(visit.times), word(visit.max_journey),
        word(visit.max_cuts), word(mdp.initial_index), pointer(end),
    ]  # fmt: skip
    start = time.perf_counter()
    steps = int(library.visit(*arguments))
    seconds = time.perf_counter() - start
    met = np.flatnonzero(record.entry_counts)
    return seconds, steps, dict(zip(met.tolist(), record.entry_counts[met].tolist(), strict=True))


@contextmanager
def compiled_c() -> Iterator[Any | None]:
    """The C loop as a library, or nothing where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "stepping.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
        library = ctypes.CDLL(str(target))
        library.visit.restype = ctypes.c_int64
        yield library


def cases() -> list[tuple[str, TabularMdp, Visit]]:
    chain, large = confusing_chain(), random_sparse(states=100_000, actions=4, seed=0)
    forward = np.zeros(6, dtype=np.int64)
    skipping = forward.copy()
    skipping[1] = 1
    walk = np.zeros(large.n_states, dtype=np.int64)
    return [
        ("chain: skip in s1", chain, Visit(1, 1, 12_000_000, forward, max_journey=100)),
        ("chain: skip in s3", chain, Visit(3, 1, 7_000_000, forward, max_journey=100)),
        ("chain: forward in s4", chain, Visit(4, 0, 4_000_000, forward, max_journey=100)),
        ("chain: confusing action in s0", chain, Visit(0, 1, 10_000_000, skipping, max_journey=100)),
        ("100,000 random states: a walk", large, Visit(5, 1, 20, walk, max_journey=10_000, max_cuts=10**6)),
    ]


def plays_on_the_chain() -> list[tuple[str, list[tuple[int, int, int]]]]:
    """What to play there: names, and (state, action, times)."""
    chain = confusing_chain()
    everything = [
        (state, action, 1_000_000) for state in range(5) for action in range(len(chain.actions_of(chain.states[state])))
    ]
    return [
        ("chain: skip in s1", [(1, 1, 12_000_000)]),
        ("chain: forward in s4", [(4, 0, 4_000_000)]),
        ("chain: every action in s0 to s4", everything),
    ]


def tour_of(plays: Sequence[tuple[int, int, int]]) -> Tour:
    """All plays in one order; forward is the way to everything."""
    states, actions, times = np.array(plays, dtype=np.int64).T
    targets = np.unique(states)
    here = np.arange(6)
    distances = np.where(here <= targets[:, None], targets[:, None] - here, 1 + targets[:, None]).astype(np.float64)
    return Tour(states, actions, times, np.zeros((len(targets), 6), dtype=np.int64), distances, max_journey=100)


def visits_of(plays: Sequence[tuple[int, int, int]]) -> list[Order]:
    """An order for each play."""
    return [Visit(*play, np.zeros(6, dtype=np.int64), max_journey=100) for play in plays]


def run_orders(orders: Sequence[Order]) -> Run:
    """Carries out orders on the chain in one call; what was met is told of a single order only."""
    chain = confusing_chain()
    if len(orders) == 1:
        return run_ours(chain, orders[0])
    world = world_of(chain)
    start = time.perf_counter()
    world.carry_out(orders)
    return time.perf_counter() - start, world.steps, {}


def compare_tours() -> None:
    print(f"\n{'plays':32} {'tour':>12} {'visits':>12} {'ratio':>7}   (million steps a second) and steps by steps")
    for name, plays in plays_on_the_chain():
        results = best([partial(run_orders, [tour_of(plays)]), partial(run_orders, visits_of(plays))])
        if len(plays) == 1 and results[0][1:] != results[1][1:]:
            raise SystemExit(f"{name}: the tour met other transitions than the visit")
        speeds = [steps / seconds / 1e6 for seconds, steps, _ in results]
        fewer = results[0][1] / results[1][1]
        print(f"{name:32} {speeds[0]:12.1f} {speeds[1]:12.1f} {speeds[0] / speeds[1]:7.2f} {fewer:7.2f}")


def best(runs: Sequence[partial[Run]]) -> list[Run]:
    """The fastest of several runs of each, taken in turn, after one that does not count."""
    results = [run() for run in runs]
    fastest = [math.inf] * len(runs)
    for _ in range(REPEATS):
        for place, run in enumerate(runs):
            fastest[place] = min(fastest[place], run()[0])
    return [(seconds, steps, counts) for seconds, (_, steps, counts) in zip(fastest, results, strict=True)]


def main() -> None:
    print(f"{'order':32} {'axplore':>12} {'C -O3':>12} {'ratio':>7}   (million steps a second; reference: ratio 0.5)")
    with compiled_c() as library:
        for name, mdp, visit in cases():
            runs = [partial(run_ours, mdp, visit)]
            if library is not None:
                runs.append(partial(run_c, library, mdp, visit))
            results = best(runs)
            if any(result[1:] != results[0][1:] for result in results):
                raise SystemExit(f"{name}: C met other transitions than axplore")
            speeds = [steps / seconds / 1e6 for seconds, steps, _ in results]
            beside = f"{speeds[1]:12.1f} {speeds[0] / speeds[1]:7.2f}" if library is not None else "no compiler"
            print(f"{name:32} {speeds[0]:12.1f} {beside:>12}")
    compare_tours()


if __name__ == "__main__":
    main()
