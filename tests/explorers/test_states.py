"""An explorer's state is a value: no round changes it, and resumed elsewhere it ends as if it had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.domains import confusing_chain
from axplore.errors import WorldError
from axplore.explorers.base import Explorer, RoundReport, run
from axplore.explorers.registry import preset
from axplore.records.run import StopReason
from axplore.runs.checkpoints import encode_state
from axplore.storage import digest_of
from axplore.worlds.contract import Answer, Order
from axplore.worlds.simulated import SimulatedWorld

NAMES = ("certified", "disco-experiment", "ucb-explore-experiment", "ucb-explore-staged-experiment")


def written(state: Any, explorer: Explorer[Any]) -> str:
    saved = encode_state(state, explorer)
    return digest_of(saved.content, saved.arrays)


@pytest.mark.parametrize("name", NAMES)
def test_no_round_changes_the_state_that_it_was_given(name: str) -> None:
    explorer = preset(name, radius=4.5, epsilon=0.8)
    world = SimulatedWorld(confusing_chain(), 5)
    state = explorer.start(world)
    for _ in range(30):
        before = written(state, explorer)
        after = explorer.advance(state, world)
        assert written(state, explorer) == before
        state = after
    assert world.steps > 100


@pytest.mark.parametrize("name", NAMES)
def test_a_run_resumed_from_an_earlier_state_ends_like_one_that_was_never_interrupted(name: str) -> None:
    mdp = confusing_chain()
    explorer = preset(name, radius=4.5, epsilon=0.8)
    saved: list[tuple[Any, Any]] = []

    def save(report: RoundReport) -> None:
        if report.steps >= 1000 and not saved:
            saved.append((report.state, first.snapshot()))

    first = SimulatedWorld(mdp, 5)
    whole = run(explorer, first, observers=[save])
    ((state, snapshot),) = saved
    second = SimulatedWorld(mdp, 5)
    second.restore(snapshot)
    resumed = run(explorer, second, state=state)
    assert (resumed.steps, resumed.states, resumed.stop) == (whole.steps, whole.states, whole.stop)
    assert resumed.found_at.tolist() == whole.found_at.tolist()
    assert resumed.counts.counts.tolist() == whole.counts.counts.tolist()
    assert all(np.array_equal(mine, its) for mine, its in zip(resumed.policies, whole.policies, strict=True))


class Turning:
    """A corridor whose doors all lead into a side room after a number of steps, and from there nowhere else."""

    def __init__(self, steps: int) -> None:
        self.left, self.state = steps, "0"

    def reset(self) -> str:
        self.state = "0"
        return self.state

    def step(self, _: str) -> str:
        self.left -= 1
        if self.left < 0:
            self.state = "side room"
        elif self.state != "side room":
            self.state = str(min(int(self.state) + 1, 3))
        return self.state

    def actions(self, _: str) -> tuple[str, ...]:
        return ("go",)


@pytest.mark.parametrize(("explorer", "steps"), [("disco-experiment", 10), ("ucb-explore-experiment", 80)])
def test_an_atlas_of_a_world_that_changed_has_seen_every_state_that_its_counts_show(
    explorer: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axplore.explorers.ucb_explore.MAX_MISSES", 50)
    with pytest.raises(WorldError, match="check that the world does not change over time") as failure:
        axplore.explore(Turning(steps), 3.0, 1.0, explorer=explorer, doctor=False)
    atlas = failure.value.atlas
    assert isinstance(atlas, axplore.Atlas)
    assert atlas.stop is StopReason.WORLD_FAILED
    assert atlas.successors("0", "go")["side room"] > 300
    assert "side room" in [report.state for report in atlas.frontier]
    assert "never seen" not in atlas.describe("side room").reason


class Breaking(SimulatedWorld):
    """Carries out a number of calls and then breaks, or is interrupted."""

    def __init__(self, calls: int, error: BaseException) -> None:
        super().__init__(confusing_chain(), 0)
        self._calls_left, self._error = calls, error

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        self._calls_left -= 1
        answers = super().carry_out(orders)
        if self._calls_left < 0:
            raise self._error
        return answers


@pytest.mark.parametrize("name", NAMES)
def test_a_world_that_breaks_ends_the_exploration_with_the_state_before_the_call(name: str) -> None:
    reports: list[RoundReport] = []
    failure = WorldError("the cable is out")
    explorer, world = preset(name, radius=4.5, epsilon=0.8), Breaking(6, failure)
    found = run(explorer, world, observers=[reports.append])
    assert (found.stop, found.failure) == (StopReason.WORLD_FAILED, failure)
    before = explorer.finish(reports[-1].state, world)
    assert found.counts.visits.tolist() == before.counts.visits.tolist()
    assert found.counts.visits.sum() > 0


def test_a_state_met_only_in_the_call_that_failed_is_not_said_to_be_never_seen() -> None:
    with pytest.raises(WorldError, match="the cable is out") as failure:
        axplore.explore(Breaking(0, WorldError("the cable is out")), 4.5, 0.8)
    atlas = failure.value.atlas
    assert isinstance(atlas, axplore.Atlas)
    assert atlas.seen[1:]
    assert atlas.describe(atlas.seen[1]).reason.startswith("No transition to it was counted.")


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_carries_the_atlas_known_by_then(name: str) -> None:
    with pytest.raises(KeyboardInterrupt) as interrupt:
        axplore.explore(Breaking(6, KeyboardInterrupt()), 4.5, 0.8, explorer=name)
    atlas = interrupt.value.atlas  # type: ignore[attr-defined]
    assert isinstance(atlas, axplore.Atlas)
    assert atlas.stop is StopReason.INTERRUPTED
    assert atlas.counts.visits.sum() > 0
    if atlas.proven:
        assert axplore.verify(atlas).holds
