"""Compiles the kernels by using each once, so that processes that test side by side do not each compile them.

Those of explorations, and of what is computed from their answers; with `--others` those of exact solutions, of studies
and of explorers without proofs, which another process can compile meanwhile: about a quarter as many.
"""

from __future__ import annotations

import logging
import sys

import axplore
from axplore.domains import slippery_grid
from axplore.explorers.certified import Certified
from axplore.graphs.value_iteration import value_iteration
from axplore.target import Target
from axplore_studies.lower_bounds import lower_bound

WORLD = "confusing-chain"


def use_kernels() -> None:
    """Explores small worlds in every way that has kernels of its own, and asks what is computed from the answers."""
    axplore.verify(axplore.explore("maze", radius=2, epsilon=1))
    axplore.explore("star", radius=2, epsilon=1, assume="deterministic")
    atlas = axplore.explore(WORLD, radius=4.5, epsilon=0.8)
    atlas.path("s5")
    atlas.probability("s5", 10)
    atlas.within(2.0)
    atlas.break_even("s5")
    atlas.why_not(atlas.frontier[0].state)
    for best in ("max", "min"):
        atlas.check("s5", avoid="s2", best=best)
        atlas.check("s5", within=5, best=best)
    atlas.cost("s5")
    axplore.verify(axplore.check(axplore.domain(WORLD), 'Pmax=? [ F<=5 "s3" ]', max_steps=2_000).atlas)
    axplore.check(axplore.domain(WORLD), 'Pmax=? [ F "s3" ]', max_steps=2_000)
    large = Certified(target=Target(radius=4.5, epsilon=0.8, delta=0.1), whole_up_to=0)  # as for more known states
    axplore.verify(axplore.explore(WORLD, explorer=large))


def use_other_kernels() -> None:
    """Solves models, one with so many states and goals that several are solved at once, and bounds what one takes."""
    axplore.controllable_states(axplore.domain(WORLD), 4.5)
    grid = slippery_grid(rows=35, columns=30, slip=0.3)
    value_iteration(grid, grid.states[7::40], precision=1e-3)
    lower_bound(axplore.domain(WORLD), 2.5, 0.5, 0.1)
    for explorer in ("disco-experiment", "ucb-explore-experiment"):
        axplore.explore(WORLD, radius=4.5, epsilon=0.8, explorer=explorer, max_steps=2_000)


if __name__ == "__main__":
    logging.getLogger("axplore").setLevel(logging.ERROR)
    if "--others" in sys.argv:
        use_other_kernels()
    else:
        use_kernels()
