from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_walk import LoggedWalk, Walk, WalkThatBreaks, WalkThatFailsOnce

from axplore.domains import confusing_chain, slippery_grid
from axplore.errors import InvalidOrderError, InvalidSettingError, TooManyFaultsError, UnfixedStartError, WorldError
from axplore.explorers.base import run
from axplore.explorers.registry import DIRECTED, EXPLORERS, preset
from axplore.records.findings import FaultKind
from axplore.truth import controllable_states
from axplore.types import RESET_ACTION, IntArray
from axplore.workers import distributed as world_module
from axplore.workers.batches import WAVE, BatchOutcome, BatchRequest, BatchServer
from axplore.workers.distributed import BUNDLES_OF_WORKER, DistributedWorld
from axplore.workers.engines import TryElsewhereError
from axplore.worlds.contract import Answer, Episodes, Incident, IncidentKind, Order, Tour, Visit, World
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess


def policy(*actions: int) -> IntArray:
    return np.array(actions, dtype=np.int64)


def always_right(n_states: int) -> IntArray:
    return np.ones(n_states, dtype=np.int64)


def walk_orders(n_states: int = 1) -> list[Order]:
    """Orders for a walk of which so many states are known, from left to right."""
    newest = n_states - 1
    distances = np.abs(np.arange(n_states)[None, :] - np.array([[newest], [0]]))
    return [
        Visit(state=newest, action=1, times=33, policy=always_right(n_states), max_journey=99),
        Episodes(goal=newest, times=5, horizon=4, policy=always_right(n_states)),
        Tour(
            states=policy(newest, newest, 0)[: n_states + 1],
            actions=policy(0, 1, 1)[: n_states + 1],
            times=policy(7, 23, 9)[: n_states + 1],
            policies=np.array([always_right(n_states), np.zeros(n_states, dtype=np.int64)])[: min(n_states, 2)],
            distances=distances[: min(n_states, 2)],
            max_journey=99,
        ),
    ]


def as_lists(answer: Answer) -> dict[str, Any]:
    return {name: getattr(value, "tolist", lambda value=value: value)() for name, value in vars(answer).items()}


def counted(log: list[tuple[int, str, int] | None], numbers: dict[int, int]) -> dict[str, list[int]]:
    """What an answer must hold if exactly this was met, counted another way than answers are."""
    draws: dict[tuple[int, int], list[int]] = {}
    firsts: list[tuple[tuple[int, int], int, int]] = []
    for entry in log:
        if entry is not None:
            state, action, successor = entry
            pair = (numbers[state], Walk.actions.index(action))
            row = draws.setdefault(pair, [])
            row.append(numbers[successor])
            if row.count(numbers[successor]) == 1:
                firsts.append((pair, numbers[successor], len(row)))
    places = list(draws)
    return {
        "pair_states": [state for state, _ in places],
        "pair_actions": [action for _, action in places],
        "pair_draws": [len(row) for row in draws.values()],
        "entry_pairs": [places.index(pair) for pair, _, _ in firsts],
        "entry_successors": [successor for _, successor, _ in firsts],
        "entry_counts": [Counter(draws[pair])[successor] for pair, successor, _ in firsts],
        "entry_first_draws": [first for _, _, first in firsts],
    }


@pytest.fixture
def log() -> list[tuple[int, str, int] | None]:
    LoggedWalk.log.clear()
    return LoggedWalk.log


def test_an_answer_holds_exactly_what_the_batches_met(log: list[tuple[int, str, int] | None]) -> None:
    world = DistributedWorld(SteppedWorld(LoggedWalk, seed=3), InProcess(), batch=4)
    for round_ in range(5):
        for order in walk_orders(round_ + 1):
            log.clear()
            before = world.steps
            (answer,) = world.carry_out([order])
            numbers = {int(label): number for number, label in enumerate(world.states)}  # type: ignore[call-overload]
            met = list(log)
            if round_ == 0 and isinstance(order, Visit):
                met = met[1:]  # a new world resets once before its first batch, which is no step of anybody
            assert {name: as_lists(answer)[name] for name in counted(met, numbers)} == counted(met, numbers)
            assert answer.steps == world.steps - before == len(met), "every step and every reset counts once"
        assert list(world.states) == list(range(round_ + 2)), "one cell further every time"


def test_every_batch_begins_with_a_reset(log: list[tuple[int, str, int] | None]) -> None:
    world = DistributedWorld(SteppedWorld(LoggedWalk), InProcess(), batch=10)
    world.carry_out([Visit(state=0, action=0, times=1, policy=policy(1), max_journey=9)])
    log.clear()
    world.carry_out([Visit(state=0, action=0, times=30, policy=policy(1), max_journey=9)])
    assert log.count(None) == 3
    assert log[0] is log[11] is log[22] is None


@pytest.mark.parametrize("make", [partial(SteppedWorld, Walk), lambda seed: SimulatedWorld(slippery_grid(), seed)])
def test_what_happens_depends_on_the_seed_and_the_place_and_on_nothing_else(make: Callable[[int], World]) -> None:
    def met(seed: int, orders: list[list[Order]]) -> list[dict[str, Any]]:
        world = DistributedWorld(make(seed), InProcess(), batch=8)
        return [as_lists(answer) for call in orders for answer in world.carry_out(call)]

    same: Order = Visit(state=0, action=1, times=40, policy=policy(1), max_journey=9)
    other: Order = Visit(state=0, action=0, times=17, policy=policy(0), max_journey=9)
    assert met(0, [[same, other]]) == met(0, [[same, other]])
    assert met(0, [[same, other]])[0] == met(0, [[same]])[0], "not on the orders after it"
    assert met(0, [[same]]) != met(1, [[same]])
    assert met(0, [[same], [same]])[0] != met(0, [[same], [same]])[1]
    counts = [answer["entry_counts"] for answer in met(0, [[same, same]])]
    assert counts[0] != counts[1]


def test_batches_of_one_order_have_streams_of_their_own(log: list[tuple[int, str, int] | None]) -> None:
    world = DistributedWorld(SteppedWorld(LoggedWalk), InProcess(), batch=30)
    world.carry_out([Episodes(goal=0, times=0, horizon=1, policy=policy(1))])
    log.clear()
    world.carry_out([Visit(state=0, action=1, times=60, policy=policy(1), max_journey=99)])
    resets = [place for place, entry in enumerate(log) if entry is None]
    first, second = log[1 : resets[1]], log[resets[1] + 1 :]
    assert first != second


def test_an_order_for_nothing_is_answered_with_nothing() -> None:
    world = DistributedWorld(SteppedWorld(Walk), InProcess())
    (answer,) = world.carry_out([Visit(state=0, action=0, times=0, policy=policy(1), max_journey=9)])
    assert (answer.steps, answer.completed, world.steps) == (0, 0, 0)


def test_orders_are_checked_before_the_first_step() -> None:
    world = DistributedWorld(SteppedWorld(Walk), InProcess())
    with pytest.raises(InvalidOrderError, match="state is 3"):
        world.carry_out([*walk_orders(), Visit(state=3, action=0, times=1, policy=policy(1), max_journey=9)])
    assert world.steps == 0


def test_episodes_that_end_early_do_so_after_a_batch_and_all_that_was_met_counts() -> None:
    world = DistributedWorld(SteppedWorld(Walk), InProcess(), batch=5)
    for n_states in (1, 2):
        world.carry_out(walk_orders(n_states))
    goal, before = 2, world.steps
    # No policy goes two cells in two steps for sure, so the second batch at the latest exceeds what is allowed.
    order = Episodes(goal, times=1000, horizon=50, policy=always_right(2), allowance=2.0, slack=0.5)
    (answer,) = world.carry_out([order])
    assert answer.completed in (5, 10)
    assert answer.travelled > answer.completed * order.allowance + order.slack
    assert answer.arrivals == answer.completed
    assert answer.steps == world.steps - before
    assert answer.pair_draws.sum() > answer.travelled, "the other batches of the wave are counted too"
    assert answer.steps <= WAVE * 5 * 51


def test_a_snapshot_takes_a_world_back() -> None:
    world = DistributedWorld(SteppedWorld(Walk), InProcess(), batch=5)
    world.carry_out(walk_orders())
    snapshot = world.snapshot()
    first = [as_lists(answer) for answer in world.carry_out(walk_orders())]
    states, steps = list(world.states), world.steps
    world.restore(snapshot)
    assert [as_lists(answer) for answer in world.carry_out(walk_orders())] == first
    assert (list(world.states), world.steps) == (states, steps)


@pytest.mark.parametrize("name", [name for name in EXPLORERS if "theory" not in name and name != DIRECTED])
def test_every_explorer_can_have_its_orders_carried_out_by_workers(name: str) -> None:
    """But for those with the constants of the proofs, whose orders differ in size only."""
    mdp = confusing_chain()
    explorer = preset(name, radius=4.5, epsilon=0.8, delta=0.1)
    exploration = run(explorer, DistributedWorld(SimulatedWorld(mdp, 0), InProcess()))
    assert set(exploration.states) == set(controllable_states(mdp, 4.5).states)


def test_a_system_without_a_factory_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="needs a factory"):
        DistributedWorld(SteppedWorld(Walk()), InProcess())


def test_a_world_of_ones_own_must_say_how_to_make_another() -> None:
    with pytest.raises(InvalidSettingError, match=r"DistributedWorld cannot have workers: .*Replicable"):
        DistributedWorld(DistributedWorld(SteppedWorld(Walk), InProcess()), InProcess())


def test_workers_whose_systems_start_elsewhere_are_refused() -> None:
    class Elsewhere(Walk):
        made = 0

        def reset(self) -> int:
            self.state = 1
            return super().reset() if Elsewhere.made < 2 else 1

        def __init__(self) -> None:
            super().__init__()
            Elsewhere.made += 1

    world = DistributedWorld(SteppedWorld(Elsewhere), InProcess())
    Elsewhere.made = 2
    with pytest.raises(UnfixedStartError, match="starts in 0, but that of a worker in 1"):
        world.carry_out(walk_orders())


def test_states_that_differ_between_workers_are_refused() -> None:
    class Changing(Walk):
        """Offers something else in a state whenever it has been reset."""

        resets = 0

        def reset(self) -> int:
            Changing.resets += 1
            return super().reset()

        def actions(self, state: int) -> tuple[str, ...]:  # type: ignore[override]
            return ("left", "right") if state == 0 else ("left", "right", f"{Changing.resets}")

    world = DistributedWorld(SteppedWorld(Changing), InProcess(), batch=10)
    with pytest.raises(WorldError, match=r"state 1 has the actions .* at one worker and .* at another"):
        world.carry_out([Visit(state=0, action=1, times=30, policy=policy(1), max_journey=9)])


def test_a_fault_on_one_machine_only_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Here the machine is always the same one; it gets its licence after the first attempt."""
    plain = DistributedWorld(SteppedWorld(Walk), InProcess(), batch=5)
    file = tmp_path / "licence"
    file.write_text("0", encoding="ascii")
    failing = DistributedWorld(SteppedWorld(partial(WalkThatFailsOnce, file)), InProcess(), batch=5)
    file.unlink()

    class Licensing(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            file.write_text("0", encoding="ascii")

    handler = Licensing()
    logging.getLogger("axplore").addHandler(handler)
    try:
        answers = failing.carry_out(walk_orders())
    finally:
        logging.getLogger("axplore").removeHandler(handler)
    assert [as_lists(answer) for answer in answers] == [as_lists(answer) for answer in plain.carry_out(walk_orders())]
    assert "its work is repeated: the system raised an error at action 'right' in state 0" in caplog.text
    assert [incident.kind.name for incident in failing.incidents] == ["FAILED"]
    assert not failing.faults


def test_a_system_that_fails_by_itself_goes_on_after_its_faults_in_the_same_way_everywhere() -> None:
    def explored() -> tuple[list[dict[str, Any]], list[str]]:
        world = DistributedWorld(SteppedWorld(WalkThatBreaks, seed=5, max_faults=1000), InProcess(), batch=50)
        answers = [answer for _ in range(10) for answer in world.carry_out(walk_orders())]
        return [as_lists(answer) for answer in answers], [fault.message for fault in world.faults]

    answers, faults = explored()
    assert faults, "the test is about nothing if it does not fail"
    assert set(faults) == {"RuntimeError: broken by its own noise"}
    assert (answers, faults) == explored()


def test_a_system_that_fails_too_often_is_given_up() -> None:
    world = DistributedWorld(SteppedWorld(WalkThatBreaks, seed=5, max_faults=2), InProcess(), batch=50)
    with pytest.raises(TooManyFaultsError, match="2 are allowed"):
        repeat(world, 100)


class Lottery:
    """Half of the steps lead to x. After x, the system crashes with a probability of 0.3. It cannot be reseeded."""

    actions = ("draw",)
    noise = np.random.default_rng(7)  # of all instances: one that is started again does not repeat another

    def reset(self) -> str:
        self.state = "start"
        return self.state

    def step(self, _: str) -> str:
        if self.state == "x" and self.noise.random() < 0.3:
            raise RuntimeError("crashed")
        self.state = "x" if self.noise.random() < 0.5 else "y"
        return self.state


def test_without_reseeding_no_draw_is_dropped_when_the_system_crashes_after_some_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(world_module, "SECONDS_OF_BUNDLE", 0.0)
    world = DistributedWorld(SteppedWorld(Lottery, max_faults=10**6), InProcess(), batch=5)
    world.carry_out([Visit(0, 0, 50, policy(), max_journey=1)])
    x = world.states.index("x")
    # The agent plays on in x and y, so that every x may end in a crash.
    n_plays, n_orders = 1000, 6
    answers = world.carry_out([Visit(0, 0, n_plays, policy(RESET_ACTION, 0, 0), max_journey=1)] * n_orders)
    n_x = 0
    for answer in answers:
        of_start = answer.pair_states.tolist().index(0)
        assert int(answer.pair_draws[of_start]) == n_plays
        n_x += int(answer.entry_counts[(answer.entry_pairs == of_start) & (answer.entry_successors == x)].sum())
    assert len(world.faults) > 500
    n_draws = n_plays * n_orders
    assert abs(n_x / n_draws - 0.5) < 5.0 * math.sqrt(0.25 / n_draws)  # fails less than one time in a million


def test_a_worker_that_is_lost_with_draws_that_cannot_be_repeated_is_a_fault() -> None:
    for system, kinds in ((Lottery, [FaultKind.LOST]), (Walk, [])):
        world = DistributedWorld(SteppedWorld(system), InProcess())
        world._note_incident(Incident(IncidentKind.LOST, "process 1", "process 1 was killed"))
        world._note_incident(Incident(IncidentKind.LOST, "process 2", "process 2 had nothing to do", repeated=False))
        assert [fault.kind for fault in world.faults] == kinds


@pytest.mark.parametrize(("system", "on_slow"), [(Lottery, "wait"), (Walk, "repeat")])
def test_slow_batches_are_done_twice_only_if_both_would_draw_the_same(
    system: Callable[[], Any], on_slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {}
    monkeypatch.setattr(world_module, "WorkerPool", lambda *_, **named: settings.update(named))
    DistributedWorld(SteppedWorld(system), InProcess())
    assert settings["on_slow"] == on_slow


def test_draws_are_not_dropped_for_another_attempt_that_would_draw_otherwise() -> None:
    class Fragile(Lottery):
        def step(self, action: str) -> str:
            if type(self).left == 0:
                raise RuntimeError("no licence here")
            type(self).left -= 1
            return super().step(action)

        left = 3

    world = SteppedWorld(Fragile)
    serve = BatchServer(world.replica_factory())
    state = ("start", ("draw",))
    order = Visit(0, 0, 5, policy(), max_journey=1)
    request = BatchRequest((0, 0, 0), order, 5, 0, (state,), max_faults=0, repeatable=False)
    with pytest.raises(TooManyFaultsError):  # three draws would be lost
        serve([request])
    with pytest.raises(TryElsewhereError):  # none
        serve([request])
    Fragile.left = 5
    with pytest.raises(TooManyFaultsError):  # those of the batch before it
        serve([request, request])


def repeat(world: World, times: int) -> None:
    for _ in range(times):
        world.carry_out(walk_orders())


def test_quick_batches_are_sent_together_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    class Counting(BatchServer):
        def __call__(self, requests: Sequence[BatchRequest]) -> list[BatchOutcome]:
            sent.append(len(requests))
            return super().__call__(requests)

    def explored(seconds: float) -> list[dict[str, Any]]:
        sent.clear()
        monkeypatch.setattr(world_module, "SECONDS_OF_BUNDLE", seconds)
        world = DistributedWorld(SteppedWorld(Walk), InProcess(), batch=1)
        return [as_lists(answer) for _ in range(5) for answer in world.carry_out(walk_orders())]

    monkeypatch.setattr(world_module, "BatchServer", Counting)
    one_by_one = explored(0.0)
    assert set(sent) == {1}
    together = explored(1000.0)
    assert together == one_by_one
    assert max(sent) > 1
    # After the first wave, nobody has fewer bundles than allow all workers to take part.
    assert max(sent) <= math.ceil((33 + 5 + 30) / BUNDLES_OF_WORKER)


def test_steps_of_batches_that_are_done_are_told_before_the_order_is() -> None:
    told: list[tuple[int, int]] = []

    class Listening:
        """A store that keeps nothing, and looks at the world whenever a batch is done."""

        def begin(self, *_: object) -> None: ...
        def find(self, _: object) -> None: ...
        def keep(self, _key: object, outcome: BatchOutcome) -> None:
            told.append((world.steps_by_now, outcome.answer.steps))

    world = DistributedWorld(SteppedWorld(Walk), InProcess(), batch=5)
    world.keep_batches(Listening)
    world.carry_out(walk_orders())
    sums = np.cumsum([steps for _, steps in told])
    assert [by_now for by_now, _ in told] == sums.tolist()
    assert world.steps_by_now == world.steps == sums[-1]
