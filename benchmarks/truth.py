"""How long the exact truth takes: controllable states of slippery grids, and a plain SciPy loop beside it.

Then the states within a radius for policies without restrictions, on a grid of 99,856 states, beside the former.

    python benchmarks/truth.py

Seconds depend on the machine; the last column, time for time in the same run, hardly does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from axplore.domains import slippery_grid
from axplore.mdp import TabularMdp
from axplore.truth import ControllableStates, controllable_states, l_controllable, optimal_steps

CASES = (("60 x 60, from a corner", (0, 0), 25.0), ("60 x 60, from the centre", (30, 30), 25.0))
PLAIN_GOALS = 20
PRECISION = 1e-10

Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def plain_steps(mdp: TabularMdp, goal: int) -> float:
    """V*(s0→goal) by value iteration with SciPy matrix products, and nothing clever."""
    matrix = csr_array((mdp.probabilities, mdp.successors, mdp.row_offsets), shape=(mdp.n_pairs, mdp.n_states))
    playing = np.flatnonzero(np.diff(mdp.state_pairs))
    first_pairs = mdp.state_pairs[playing]
    values = np.zeros(mdp.n_states)
    while True:
        updated = np.full(mdp.n_states, 1.0 + values[mdp.initial_index])
        best = 1.0 + np.minimum.reduceat(np.asarray(matrix @ values), first_pairs)
        updated[playing] = np.minimum(updated[playing], best)
        updated[goal] = 0.0
        if np.abs(updated - values).max() <= PRECISION:
            return float(updated[mdp.initial_index])
        values = updated


def plain_time_per_goal(truth: ControllableStates) -> float:
    """Seconds that the plain loop takes for one state, on the same vicinity; checks the values on the way."""
    model = truth.mdp.vicinity_of(truth.states)
    goals = truth.states[:: max(1, len(truth.states) // PLAIN_GOALS)]
    seconds, steps = timed(lambda: [plain_steps(model, model.index_of(goal)) for goal in goals])
    np.testing.assert_allclose(steps, [truth.steps[goal] for goal in goals], atol=1e-6)
    return seconds / len(goals)


def main() -> None:
    loading, _ = timed(lambda: optimal_steps(slippery_grid(3, 3), (2, 2)))
    print(f"loading, or compiling, the kernels: {loading:.2f} s")
    print(f"{'slippery grid, slip 0.2':<26}{'radius':>7}{'states':>8}{'layers':>8}{'seconds':>9}{'plain / ours':>14}")
    for name, start, radius in CASES:
        mdp = slippery_grid(60, 60, start=start)
        seconds, truth = timed(partial(controllable_states, mdp, radius))
        states = len(truth.states)
        # The plain loop would solve each state once at least, for its steps alone.
        ratio = plain_time_per_goal(truth) * states / seconds
        print(f"{name:<26}{radius:>7g}{states:>8}{len(truth.layers):>8}{seconds:>9.3f}{ratio:>14.1f}")
    compare_unrestricted()


def compare_unrestricted() -> None:
    """Prints what `l_controllable` takes, as a multiple of `controllable_states`."""
    print(f"\n{'316 x 316, radius 10':<26}{'incremental':>12}{'unrestricted':>13}{'ratio':>7}   (reference: at most 5)")
    for name, start in (("from a corner", (0, 0)), ("from the centre", (158, 158))):
        mdp = slippery_grid(316, 316, start=start)
        incremental, _ = timed(partial(controllable_states, mdp, 10.0))
        unrestricted, _ = timed(partial(l_controllable, mdp, 10.0))
        print(f"{name:<26}{incremental:>12.3f}{unrestricted:>13.3f}{unrestricted / incremental:>7.1f}")


if __name__ == "__main__":
    main()
