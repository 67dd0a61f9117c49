"""An explorer keeps nothing outside its state: taken up again elsewhere, it ends as if it had never stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from axplore.domains import confusing_chain
from axplore.explorers.base import RoundReport, run
from axplore.explorers.registry import preset
from axplore.statistics.counts import TransitionCounts
from axplore.worlds.contract import WorldSnapshot
from axplore.worlds.simulated import SimulatedWorld


@pytest.mark.parametrize("name", ["disco-experiment", "ucb-explore-experiment"])
def test_a_run_taken_up_from_saved_arrays_ends_like_one_that_was_never_interrupted(name: str) -> None:
    mdp = confusing_chain()
    explorer = preset(name, radius=4.5, epsilon=0.8)
    whole = run(explorer, SimulatedWorld(mdp, 5))
    first = SimulatedWorld(mdp, 5)
    saved: list[tuple[Any, dict[str, Any], WorldSnapshot]] = []

    def save(report: RoundReport, state: Any) -> None:
        if report.steps >= 3000 and not saved:
            arrays = {key: array.copy() for key, array in state.counts.to_arrays().items()}
            saved.append((state, arrays, first.snapshot()))

    run(explorer, first, on_round=save)
    ((state, arrays, snapshot),) = saved
    second = SimulatedWorld(mdp, 5)
    second.restore(snapshot)
    resumed = run(explorer, second, state=replace(state, counts=TransitionCounts.from_arrays(arrays)))
    assert (resumed.steps, resumed.states, resumed.stop) == (whole.steps, whole.states, whole.stop)
    assert resumed.found_at.tolist() == whole.found_at.tolist()
    assert resumed.counts.rows().counts.tolist() == whole.counts.rows().counts.tolist()
    assert all(np.array_equal(mine, its) for mine, its in zip(resumed.policies, whole.policies, strict=True))
