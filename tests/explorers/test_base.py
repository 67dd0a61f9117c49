"""The one loop, with an explorer that only counts."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from axplore.domains import confusing_chain
from axplore.errors import InvalidSettingError
from axplore.explorers.base import Exploration, Explorer, ExplorerState, RoundReport, first_counts, run
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.worlds.contract import Visit, World
from axplore.worlds.simulated import SimulatedWorld

PRECISION = Target(radius=2.0, epsilon=0.5)


@dataclass(frozen=True)
class Walker(Explorer[ExplorerState]):
    """Plays one action per piece of work, so many times."""

    pieces: int
    target: Target = PRECISION

    def start(self, world: World) -> ExplorerState:
        return ExplorerState(round=1, known=(0,), found_at=(world.steps,))

    def advance(self, state: ExplorerState, world: World) -> ExplorerState:
        assert state.stop is None
        world.carry_out([Visit(0, 0, times=1, policy=np.full(1, -1), max_journey=5)])
        done = state.round == self.pieces
        return replace(state, round=state.round + 1, stop=StopReason.PROVEN if done else None, activity="walking")

    def finish(self, state: ExplorerState, world: World) -> Exploration:
        return Exploration(
            states=(world.states[0],), numbers=np.zeros(1, dtype=np.int64), found_at=np.zeros(1, dtype=np.int64),
            policies=(), optimistic_steps=np.zeros(1), frontier=(), frontier_numbers=np.zeros(0, dtype=np.int64),
            counts=first_counts(world), steps=world.steps, rounds=state.round, stop=state.stop or StopReason.STEP_LIMIT,
            explorer=self,
        )  # fmt: skip


def new_world() -> SimulatedWorld:
    return SimulatedWorld(confusing_chain(), 0)


def test_the_loop_ends_when_the_explorer_stops() -> None:
    result = run(Walker(4), new_world())
    assert (result.rounds, result.stop) == (5, StopReason.PROVEN)


def test_no_step_is_taken_after_the_step_limit() -> None:
    # The first visit takes 1 step, and every other 2: a RESET and the action. So the third is cut.
    result = run(Walker(100), new_world(), max_steps=4)
    assert (result.steps, result.stop) == (4, StopReason.STEP_LIMIT)


def test_no_step_is_taken_after_the_moment_at_which_it_has_to_end() -> None:
    result = run(Walker(10**9), new_world(), ends=time.monotonic() + 0.05)
    assert result.stop is StopReason.TIME_LIMIT
    assert run(Walker(100), new_world(), ends=time.monotonic()).steps == 0


def test_a_world_has_no_limit_once_the_loop_has_ended() -> None:
    world = new_world()
    run(Walker(100), world, max_steps=4)
    assert run(Walker(4), world).stop is StopReason.PROVEN


def test_a_limit_of_zero_steps_takes_none() -> None:
    result = run(Walker(100), new_world(), max_steps=0)
    assert (result.steps, result.stop) == (0, StopReason.STEP_LIMIT)


def test_a_negative_step_limit_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="max_steps"):
        run(Walker(1), new_world(), max_steps=-1)


def test_observers_see_the_start_and_every_piece_of_work() -> None:
    reports: list[RoundReport] = []
    run(Walker(3), new_world(), observers=[reports.append])
    assert [(report.round, report.steps, report.activity) for report in reports] == [
        (1, 0, "starting"), (2, 1, "walking"), (3, 3, "walking"), (4, 5, "walking"),
    ]  # fmt: skip


def test_a_run_goes_on_from_a_state() -> None:
    states: list[ExplorerState] = []
    world = new_world()
    run(Walker(5), world, observers=[lambda report: states.append(report.state)], max_steps=3)
    result = run(Walker(5), world, state=states[-1])
    assert (result.rounds, result.stop, result.steps) == (6, StopReason.PROVEN, 9)


def test_a_reason_from_an_observer_ends_the_exploration_there() -> None:
    result = run(
        Walker(9), new_world(), observers=[lambda report: StopReason.INTERRUPTED if report.round == 3 else None]
    )
    assert (result.rounds, result.stop, result.steps) == (3, StopReason.INTERRUPTED, 3)


def test_an_explorer_that_has_stopped_keeps_its_own_reason() -> None:
    result = run(Walker(1), new_world(), observers=[lambda report: StopReason.INTERRUPTED if report.steps else None])
    assert result.stop is StopReason.PROVEN


def test_only_three_reasons_are_the_explorers_own_rule() -> None:
    own = {StopReason.NO_CANDIDATES, StopReason.ALL_TOO_FAR, StopReason.PROVEN}
    assert {reason for reason in StopReason if reason.by_own_rule} == own
