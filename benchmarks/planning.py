"""Speed and size of planning, beside Storm's sparse engine and a plain SciPy loop, in one run.

    python benchmarks/planning.py [--quick]

Times are the best of several runs, to keep other programs out; what counts are the ratios. Nobody's model building or
compilation is counted. Each solver stops by its own rule, so the error of its answer stands beside its time: the
largest distance from the optimal values, which are solved to nine digits.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.domains import random_sparse, slippery_grid
from axplore.graphs.exact import optimal_paths
from axplore.graphs.value_iteration import value_iteration
from axplore.mdp import TabularMdp
from axplore.types import FloatArray, IntArray

PRECISION: Final = 1e-6
SINGLES: Final = 4
BATCH: Final = 64
REPEATS: Final = 5
FEWER_REPEATS: Final = 3
ONE_IN: Final = 4  # one by one, every fourth goal of a batch is solved: all of them would take long
STORM_METHODS: Final = (
    ("plain value iteration", "VALUE_ITERATION"),
    ("optimistic value iteration", "OPTIMISTIC_VALUE_ITERATION"),
    ("policy iteration", "POLICY_ITERATION"),
)
KIBIBYTES_IN_MEBIBYTE: Final = 1024


@dataclass(frozen=True)
class Solver:
    """Something that solves for a goal by its place in the list of goals, and what its answer says, [S]."""

    name: str
    solve: Callable[[int], Any]
    values: Callable[[Any], FloatArray]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="small models, to see that everything runs")
    arguments.add_argument("--large", type=int, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.large:
        measure_large(chosen.large)
        return
    side = 10 if chosen.quick else 100
    compare("random sparse model", random_sparse(side**2, 4, (3, 5), seed=0))
    compare("slippery grid", slippery_grid(rows=side, columns=side))
    # In a process of its own, so that the peak of its memory is its own.
    subprocess.run([sys.executable, __file__, "--large", str(10 * side**2)], check=True)


def compare(name: str, mdp: TabularMdp) -> None:
    """Prints the times of every solver, for one goal and for a batch."""
    numbers = np.random.default_rng(1).choice(np.arange(1, mdp.n_states), BATCH, replace=False)
    goals = [mdp.states[number] for number in numbers]
    value_iteration(mdp, goals[:2], precision=PRECISION)  # compiles
    ours = Solver(
        "axplore",
        lambda place: value_iteration(mdp, goals[place], precision=PRECISION),
        lambda paths: np.asarray(paths.values[0]),
    )
    solvers = [ours, scipy_solver(mdp, numbers), *storm_solvers(mdp, numbers)]
    print(f"\n{name}: {mdp.n_states} states, {mdp.n_pairs} pairs, {mdp.n_transitions} transitions, to {PRECISION:g}")
    print_singles(solvers, optimal_paths(mdp, goals[:SINGLES]).values)
    print_batch(solvers, lambda: value_iteration(mdp, goals, precision=PRECISION, threads=1))


def print_singles(solvers: Sequence[Solver], optimal: FloatArray) -> None:
    """Prints time and error of every solver, for one goal at a time."""
    print(f"  {f'one goal (mean of {SINGLES})':36} {'ms':>9} {'times ours':>11} {'largest error':>14}")
    fastest = None
    for solver in solvers:
        runs = [timed(partial(solver.solve, place)) for place in range(SINGLES)]
        mean = float(np.mean([seconds for seconds, _ in runs]))
        fastest = fastest or mean
        errors = [np.abs(solver.values(answer) - optimal[place]).max() for place, (_, answer) in enumerate(runs)]
        print(f"    {solver.name:34} {1e3 * mean:9.2f} {mean / fastest:11.2f} {max(errors):14.1e}")


def print_batch(solvers: Sequence[Solver], solve_batch: Callable[[], Any]) -> None:
    """Prints what a goal takes in a batch, and what it takes the solvers one by one."""
    print(f"  {f'{BATCH} goals, time for each':36} {'ms':>9} {'times ours':>11}")
    each = timed(solve_batch)[0] / BATCH
    print(f"    {'axplore, as a batch':34} {1e3 * each:9.2f} {1:11.2f}")
    for solver in solvers:
        runs = [timed(partial(solver.solve, place), repeats=FEWER_REPEATS) for place in range(0, BATCH, ONE_IN)]
        mean = float(np.mean([seconds for seconds, _ in runs]))
        print(f"    {solver.name + ', one by one':34} {1e3 * mean:9.2f} {mean / each:11.2f}")


def timed(solve: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """The least seconds of CPU that it takes, and the answer."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        answer = solve()
        least = min(least, time.process_time() - start)
    return least, answer


def measure_large(n_states: int) -> None:
    """Prints time and peak of memory on a model of this size."""
    mdp = random_sparse(n_states, 4, (3, 5), seed=0)
    value_iteration(mdp, mdp.states[:2], precision=0.5)  # compiles
    print(f"\nrandom sparse model: {mdp.n_states} states, {mdp.n_pairs} pairs, {mdp.n_transitions} transitions")
    goal = mdp.states[-1]
    seconds, paths = timed(lambda: value_iteration(mdp, goal, precision=PRECISION), repeats=1)
    print(f"  one goal to {PRECISION:g}: {seconds:.2f} s, {paths.sweeps[0]} sweeps, {paths.steps(goal):.2f} steps away")
    goals = mdp.states[-16:]
    seconds, _ = timed(lambda: value_iteration(mdp, goals, precision=PRECISION, threads=1), repeats=1)
    print(f"  {len(goals)} goals at once: {seconds / len(goals):.2f} s for each")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIBIBYTES_IN_MEBIBYTE
    print(f"  peak of memory: {peak:.0f} MiB")


def scipy_solver(mdp: TabularMdp, goals: IntArray) -> Solver:
    """Value iteration as one would write it with SciPy: a matrix product and a minimum."""
    from scipy.sparse import csr_array

    matrix = csr_array((mdp.probabilities, mdp.successors, mdp.row_offsets), shape=(mdp.n_pairs, mdp.n_states))

    def solve(place: int) -> FloatArray:
        values = np.zeros(mdp.n_states)
        while True:
            shortest = np.minimum.reduceat(np.asarray(matrix @ values), mdp.state_pairs[:-1])
            updated: FloatArray = 1.0 + np.minimum(shortest, values[mdp.initial_index])
            updated[goals[place]] = 0.0
            if np.abs(updated - values).max() <= PRECISION:
                return updated
            values = updated

    return Solver("SciPy, a plain loop", solve, lambda values: values)


def storm_solvers(mdp: TabularMdp, goals: IntArray) -> list[Solver]:
    """Storm's sparse engine with its own precision, 1e-6 relatively: as stormpy starts it, and without soundness."""
    if importlib.util.find_spec("stormpy") is None:
        print("stormpy is not installed; Storm is left out")
        return []
    import stormpy

    model = storm_model(mdp, goals)

    def solver(name: str, environment: Any) -> Solver:
        def solve(place: int) -> Any:
            formula = stormpy.parse_properties(f'R{{"steps"}}min=? [F "goal{place}"]')[0]
            return stormpy.model_checking(model, formula, environment=environment)

        return Solver(name, solve, lambda result: np.array([result.get_value(state) for state in range(mdp.n_states)]))

    return [
        solver("Storm, default (sound)", stormpy.environments.default(model)),
        *(solver(f"Storm, {name}", environment_with(method)) for name, method in STORM_METHODS),
    ]


def environment_with(method: str) -> Any:
    """Storm's own settings, with this method for minima over actions."""
    import stormpy

    environment = stormpy.Environment()
    environment.solver().min_max().method = getattr(stormpy.environments.MinMaxMethod, method)
    return environment


def storm_model(mdp: TabularMdp, goals: IntArray) -> Any:
    """The model with RESET as a further choice of each state, a reward of 1 a step, and a label for each goal."""
    import stormpy

    builder = stormpy.datastructures.SparseMatrixBuilder[float](
        rows=0, columns=0, entries=0, force_dimensions=False, has_custom_row_grouping=True, row_groups=0
    )
    line = 0
    for state in range(mdp.n_states):
        builder.new_row_group(line)
        for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1]):
            for entry in range(mdp.row_offsets[pair], mdp.row_offsets[pair + 1]):
                builder.add_next_value(line, int(mdp.successors[entry]), float(mdp.probabilities[entry]))
            line += 1
        builder.add_next_value(line, mdp.initial_index, 1.0)
        line += 1
    labelling = stormpy.models.StateLabeling(mdp.n_states)
    labelling.add_label("init")
    labelling.add_label_to_state("init", mdp.initial_index)
    for place, goal in enumerate(goals):
        labelling.add_label(f"goal{place}")
        labelling.add_label_to_state(f"goal{place}", int(goal))
    steps = stormpy.models.SparseRewardModel[float](optional_state_reward_vector=[1.0] * mdp.n_states)
    components = stormpy.models.SparseModelComponents[float](
        transition_matrix=builder.build(), state_labeling=labelling, reward_models={"steps": steps}
    )
    return stormpy.models.SparseMdp[float](components)


if __name__ == "__main__":
    main()
