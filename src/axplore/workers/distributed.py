"""A world whose orders are carried out by workers, with the same result for any number of workers.

Every order is cut into batches. Each begins with a RESET, and its random stream depends only on its key. The answers of
the batches are merged in the order of the batches, and new states are indexed in the order in which they appear there.
So nothing depends on which worker carried out a batch, or when. The price is the RESET, and the way back to where the
work is.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final, Protocol

import numpy as np
from msgspec import structs

from axplore.errors import InvalidSettingError, OrdersCutError, TooManyFaultsError, WorldError
from axplore.records.findings import Fault, FaultKind
from axplore.types import Action, IntArray, State
from axplore.workers.batches import (
    BATCH,
    LEAST_STEPS,
    BatchOutcome,
    BatchRequest,
    BatchServer,
    Key,
    Quota,
    cut,
    n_counted,
    wave_after,
)
from axplore.workers.engines import Engine
from axplore.workers.pool import Memory, WorkerPool
from axplore.worlds.contract import (
    NOWHERE,
    Answer,
    Episodes,
    Incident,
    IncidentKind,
    Order,
    Replicable,
    World,
    WorldSnapshot,
)
from axplore.worlds.hindsight import WatchesHistory
from axplore.worlds.orders import DiscoveredStates, Tally, check_orders, no_answer
from axplore.worlds.systems import is_worth_a_line
from axplore.worlds.watched import RecordsSteps, SharedWorld

FAULTLESS_ATTEMPTS: Final = 2
"""The number of times that a batch is repeated after a fault of its system. After that, faults are attributed to the
system, and the batch recovers from them as a world without workers does."""

SECONDS_OF_BUNDLE: Final = 0.02
BUNDLES_OF_WORKER: Final = 8
"""Batches are sent in bundles of at most this many seconds that leave this many bundles for each worker."""

STEPS_WORTH_SHARING: Final = 400
"""Where a limit leaves fewer steps than this for each, fewer batches are carried out."""

SHORTEST: Final = 1e-6
"""The shortest time that is measured, in seconds."""

_logger = logging.getLogger("axplore")


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch of an order: its key, the order, its size, and the most steps that it may take."""

    key: Key
    order: Order
    quota: Quota
    max_steps: int | None = None


@dataclass(frozen=True, eq=False)
class _Work:
    """An order in progress: all of its batches, and the outcomes of the first ones."""

    order: Order
    batches: Sequence[_Batch]
    outcomes: list[BatchOutcome]

    @property
    def answers(self) -> list[Answer]:
        return [outcome.answer for outcome in self.outcomes]

    def next_wave(self) -> list[_Batch]:
        return [self.batches[index] for index in wave_after(self.order, self.answers, len(self.batches))]


class BatchStore(Protocol):
    """Stores the outcomes of the batches of a call until the next one, so that they need not be repeated."""

    def begin(self, call: int, orders: Sequence[Order]) -> None:
        """Drops the outcomes of other calls."""

    def find(self, key: Key) -> BatchOutcome | None:
        """Returns the outcome of a batch of this call, if it is known."""

    def keep(self, key: Key, outcome: BatchOutcome) -> None:
        """Stores the outcome of a batch of this call."""


class DistributedWorld(WatchesHistory, SharedWorld):
    """A `World` whose orders are carried out by workers."""

    def __init__(self, world: World, engine: Engine, *, batch: int = BATCH) -> None:
        """Continues from the current state of a world, which it does not use again.

        Args:
            world: the world that workers replicate.
            engine: the engine that runs the workers; it is closed with this world.
            batch: the largest number of visits, plays or episodes of a batch. Unlike the number of workers, it affects
                the results.
        """
        if batch < 1:
            raise InvalidSettingError(f"batch is {batch}; it must be 1 or more")
        if not isinstance(world, Replicable):
            raise InvalidSettingError(
                f"{type(world).__name__} cannot have workers: they replicate it, for which it needs the members "
                "of axplore.worlds.Replicable"
            )
        self._engine = engine
        self._size = batch
        self._repeatable, self._fingerprint, self._names = world.repeatable, world.fingerprint, world.names
        self._max_faults = world.max_faults
        self._discovered = DiscoveredStates(
            (label, world.actions_of(number)) for number, label in enumerate(world.states)
        )
        self._steps, self._calls = world.steps, 0
        self._restored = 0  # how often
        self._faults: list[Fault] = []
        self._incidents: list[Incident] = []
        self._seconds_of_batch = math.inf  # of the last batches
        self._steps_under_way = 0
        self._last_step: int | None = None
        self._ends = math.inf
        self._spent = 0  # of the steps up to the last one: those counted, and those of attempts that were repeated
        self._beside = 0  # of the system, at most, and not among those that count
        self._reservations: dict[Key, list[int]] = {}  # of attempts at batches, each a number of steps
        self._store: BatchStore | None = None  # asked before a batch is carried out, and given its outcome afterwards
        self._can_be_watched = isinstance(world, RecordsSteps)
        self._is_recording = False
        self._recorded: list[IntArray] = []
        self._busy_seconds, self._busy_steps = 0.0, 0
        self._pool = WorkerPool(
            engine,
            partial(BatchServer, world.replica_factory()),
            make_message=self._requests,
            on_incident=self._note_incident,
            on_failure=self._note_failed,
            on_slow="repeat" if self._repeatable else "wait",
        )

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        """Lets workers take at most a number of steps together, and begin none after a moment; see `World.limit`.

        What is left is shared among the batches that are carried out at the same time, whatever the number of workers.
        One that needs more is cut, although others may have needed less; so is the call then.
        """
        self._last_step, self._ends, self._spent = steps, ends, 0

    @property
    def system_steps(self) -> int:
        """The steps of all systems at most: one more for each batch, whose worker may have had to start."""
        return self._steps + self._beside

    @property
    def is_spent(self) -> bool:
        """Whether a limit leaves no room for a batch."""
        is_out = self._last_step is not None and self._last_step - self._spent < LEAST_STEPS
        return is_out or time.monotonic() >= self._ends

    def keep_batches(self, open_store: Callable[[], BatchStore]) -> None:
        """Keeps the batches of the call in progress in a store."""
        self._store = open_store()

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by index; the initial state is the first."""
        return self._discovered.labels

    @property
    def steps(self) -> int:
        """The number of steps taken so far, RESET included; those of repeated batches count once."""
        return self._steps

    @property
    def steps_by_now(self) -> int:
        """The number of steps, including those of completed batches of the call in progress."""
        return self._steps + self._steps_under_way

    @property
    def repeatable(self) -> bool:
        """Whether the replicated world is repeatable."""
        return self._repeatable

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the replicated world, if it has one."""
        return self._fingerprint

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """The sets of states that the replicated world names."""
        return self._names

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults of the system from which batches recovered."""
        return tuple(self._faults)

    @property
    def incidents(self) -> Sequence[Incident]:
        """The incidents because of which batches were repeated."""
        return tuple(self._incidents)

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal."""
        return self._discovered.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders in parallel and returns the answer to each; see `World.carry_out`."""
        check_orders(orders, self._discovered.action_counts())
        call = self._calls
        self._calls += 1
        self._steps_under_way = 0
        store = self._store_of_call
        if store is not None:
            store.begin(call, orders)
        works = [_Work(order, self._cut(order, call, index), []) for index, order in enumerate(orders)]
        was_cut = False
        while not was_cut and any(waves := [work.next_wave() for work in works]):
            batches = [batch for wave in waves for batch in wave]
            affordable = self._affordable(batches)
            outcomes = self._done(affordable)
            was_cut = len(affordable) < len(batches) or any(outcome.was_cut for outcome in outcomes)
            done = iter(outcomes)
            for work, wave in zip(works, waves, strict=True):
                work.outcomes.extend(islice(done, len(wave)))
        self._steps_under_way = 0
        n_shared = len(self._discovered)
        answers = [self._merged(work, n_shared) for work in works]
        self._check_faults()
        if was_cut:
            raise OrdersCutError(answers)
        return answers

    def _affordable(self, batches: Sequence[_Batch]) -> list[_Batch]:
        """Returns the first of some batches, each with its share of the steps that are left."""
        if self._last_step is None:
            return list(batches)
        left = max(0, self._last_step - self._spent)
        n_batches = min(len(batches), max(1, left // STEPS_WORTH_SHARING))
        # Half of it is for batches that have to be repeated.
        share = left if n_batches == 1 else left // (2 * n_batches)
        return [replace(batch, max_steps=share) for batch in batches[:n_batches]]

    @property
    def position(self) -> int:
        """NOWHERE: every batch begins with a RESET."""
        return NOWHERE

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""
        return self._discovered.snapshot(self._steps, self._calls)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot as if it had never stopped."""
        self._restored += 1  # calls have the numbers of earlier ones, whose orders workers may have
        n_states = len(snapshot.labels)
        first = tuple(self._discovered.labels[:n_states]), tuple(self._discovered.actions[:n_states])
        if first == (snapshot.labels, snapshot.actions):
            self._discovered.forget(n_states)
            self._pool.change_memories(partial(_forget_states, n_states))
        else:
            self._discovered.restore(snapshot)
            self._pool.close()  # workers know other states
        self._beside += self._steps - snapshot.steps
        self._steps, self._calls = snapshot.steps, snapshot.calls

    # What is played before a promise is watched; see `axplore.worlds.watched`.

    @property
    def can_be_watched(self) -> bool:
        """Whether workers can record their steps."""
        return self._can_be_watched

    @property
    def busy_seconds(self) -> float:
        """The time that all batches have taken by now, each where it was carried out."""
        return self._busy_seconds

    @property
    def seconds_of_step(self) -> float:
        """The mean time of a step by now; 0 if none was taken."""
        return self._busy_seconds / max(1, self._busy_steps)

    @property
    def recorded(self) -> Sequence[IntArray]:
        """The steps of each order of the last call of `carry_out_watched`; see `SharedWorld.recorded`."""
        return self._recorded

    def carry_out_watched(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders as `carry_out` does, and hands their steps to the tests of the history.

        No batch is stored: its steps would be missing when it is found again.
        """
        longest = max((int(order.horizon) for order in orders if isinstance(order, Episodes)), default=0)
        self._pool.expect(longest * self.seconds_of_step)
        self._recorded, self._is_recording = [], True
        try:
            return self.carry_out(orders)
        finally:
            self._is_recording = False

    def affordable(self, steps: int, most: int) -> int:
        """Returns how many batches of at most this many steps can be carried out at once; at least one."""
        if self._last_step is None:
            return most
        left = self._last_step - self._spent
        return max(1, min(most, left // STEPS_WORTH_SHARING, left // (2 * steps)))

    def vary_ages(self) -> None:
        """Does nothing: every batch begins with a RESET."""

    @property
    def _store_of_call(self) -> BatchStore | None:
        """Where the batches of the call in progress are kept, if they are."""
        return None if self._is_recording else self._store

    def _note_recorded(self, batches: Sequence[IntArray]) -> None:
        """Keeps the steps of an order, and hands them to the tests of the history."""
        self._recorded.append(np.concatenate(batches))
        if self._history is not None:
            for steps in batches:
                self._history.add(steps)

    def close(self) -> None:
        """Ends the workers."""
        self._pool.close()
        self._engine.close()

    def _cut(self, order: Order, call: int, index: int) -> list[_Batch]:
        return [_Batch((call, index, batch), order, quota) for batch, quota in enumerate(cut(order, self._size))]

    def _done(self, batches: Sequence[_Batch]) -> list[BatchOutcome]:
        """Returns the outcomes of batches, in their order."""
        store = self._store_of_call
        find = store.find if store is not None else lambda _: None
        found = {batch.key: outcome for batch in batches if (outcome := find(batch.key)) is not None}
        left = [batch for batch in batches if batch.key not in found]
        self._spent += sum(outcome.answer.steps + 1 for outcome in found.values())
        bundles = self._bundled(left)
        began = time.monotonic()
        for index, outcomes in self._pool.results(bundles):
            for batch, outcome in zip(bundles[index], outcomes, strict=True):
                self._beside += 1
                self._give_back([batch], outcome.answer.steps + 1)
                found[batch.key] = outcome
                self._steps_under_way += outcome.answer.steps
                self._busy_seconds += outcome.seconds
                self._busy_steps += outcome.answer.steps
                if store is not None:
                    store.keep(batch.key, outcome)
        self._note_lost()
        if left:
            at_work = min(len(bundles), self._engine.n_workers)
            self._seconds_of_batch = max(time.monotonic() - began, SHORTEST) * at_work / len(left)
        return [found[batch.key] for batch in batches]

    def _bundled(self, batches: Sequence[_Batch]) -> list[Sequence[_Batch]]:
        """Returns batches in bundles, each for one worker: short ones are sent together if all workers stay busy."""
        shared = math.ceil(len(batches) / (BUNDLES_OF_WORKER * self._engine.n_workers))
        size = max(1, min(shared, int(SECONDS_OF_BUNDLE / self._seconds_of_batch)))
        return [batches[index : index + size] for index in range(0, len(batches), size)]

    def _requests(self, batches: Sequence[_Batch], failures: int, memory: Memory) -> list[BatchRequest]:
        """Returns the requests for batches to a worker, given what it was sent before."""
        return [self._request(batch, failures, memory) for batch in batches]

    def _reserved(self, batch: _Batch) -> int | None:
        """Returns the steps that an attempt at a batch may take, and reserves them; 0 if they are not there."""
        if self._last_step is None or batch.max_steps is None:
            return None
        steps = batch.max_steps if self._spent + batch.max_steps <= self._last_step else 0
        self._spent += steps
        self._reservations.setdefault(batch.key, []).append(steps)
        return steps

    def _note_failed(self, batches: Sequence[_Batch], taken: int) -> None:
        """Counts the steps of an attempt that is repeated."""
        self._beside += taken
        self._give_back(batches, taken)

    def _note_lost(self) -> None:
        """Counts what attempts have reserved that never ended."""
        self._beside += sum(map(sum, self._reservations.values()))
        self._reservations.clear()

    def _give_back(self, batches: Sequence[_Batch], taken: int) -> None:
        """Gives back what an attempt at some batches has reserved and not taken; that of a lost worker stays away."""
        reserved = [self._reservations[batch.key].pop() for batch in batches if batch.key in self._reservations]
        self._spent -= max(0, sum(reserved) - taken)

    def _request(self, batch: _Batch, failures: int, memory: Memory) -> BatchRequest:
        call, index, _ = batch.key
        if memory.get("call") != (self._restored, call):
            memory |= {"call": (self._restored, call), "orders": set()}
        order = None if index in memory["orders"] else batch.order
        memory["orders"].add(index)
        n_kept, memory["n_states"] = memory.get("n_states", 0), len(self._discovered)
        is_final = failures >= FAULTLESS_ATTEMPTS
        return BatchRequest(
            key=batch.key,
            order=order,
            quota=batch.quota,
            n_kept=n_kept,
            states=self._discovered.since(n_kept),
            # If another attempt would draw differently, the draws before a fault are kept.
            max_faults=0 if self._repeatable and not is_final else self._max_faults,
            is_final=is_final,
            repeatable=self._repeatable,
            max_steps=self._reserved(batch),
            seconds=self._ends - time.monotonic(),
            is_recorded=self._is_recording,
        )

    def _merged(self, work: _Work, n_shared: int) -> Answer:
        """Returns the merged answer to an order whose batches knew the first `n_shared` states."""
        tally = Tally()
        recorded = [np.empty((0, 2), dtype=np.int64)]
        for outcome in work.outcomes:
            discovered = [self._number_of(label, actions) for label, actions in outcome.discovered]
            numbers = np.array([*range(n_shared), *discovered], dtype=np.int64)
            tally.add(outcome.answer, numbers)
            recorded.append(_renumbered(outcome.recorded, numbers))
            for fault in outcome.faults:
                self._note_fault(structs.replace(fault, steps=self._steps))
            self._steps += outcome.answer.steps
        if self._is_recording:
            self._note_recorded(recorded)
        answers = work.answers
        counted = answers[: n_counted(work.order, answers)] or [no_answer(work.order)]
        return tally.answer(
            steps=sum(answer.steps for answer in answers),
            completed=sum(answer.completed for answer in counted),
            arrivals=sum(answer.arrivals for answer in counted),
            travelled=sum(answer.travelled for answer in counted),
            cut_journeys=sum(answer.cut_journeys for answer in counted),
            outcomes=[sum(times) for times in zip(*(answer.outcomes.tolist() for answer in counted), strict=True)],
        )

    def _number_of(self, label: State, actions: tuple[Action, ...]) -> int:
        """Returns the index of a state that a batch has met; other batches may have met it before."""
        number = self._discovered.numbers.get(label)
        if number is None:
            return self._discovered.add(label, actions)
        before = self._discovered.actions[number]
        if before != actions:
            raise WorldError(
                f"state {label!r} has the actions {list(before)} at one worker and {list(actions)} at another: the "
                "actions must be a property of the state"
            )
        return number

    def _check_faults(self) -> None:
        failures = [fault for fault in self._faults if fault.kind is not FaultKind.LOST]
        if len(failures) > self._max_faults:
            raise TooManyFaultsError(f"{failures[-1]}. That is fault {len(failures)}; {self._max_faults} are allowed")

    def _note_fault(self, fault: Fault) -> None:
        self._faults.append(fault)
        if is_worth_a_line(len(self._faults)):
            _logger.warning("%s; it was restarted (fault %d)", fault, len(self._faults))

    def _note_incident(self, incident: Incident) -> None:
        self._incidents.append(incident)
        if is_worth_a_line(len(self._incidents)):
            _logger.warning("%s (incident %d)", incident, len(self._incidents))
        if incident.kind is IncidentKind.LOST and incident.repeated and not self._repeatable:
            # Another attempt draws differently, and the loss may be related to where the draws led.
            self._faults.append(Fault(FaultKind.LOST, incident.message, None, self._steps))


def _forget_states(n_kept: int, memory: Memory) -> None:
    """Notes that a worker is to forget all states but the first ones; see `BatchRequest.n_kept`."""
    memory["n_states"] = min(n_kept, memory.get("n_states", 0))


def _renumbered(recorded: bytes, numbers: IntArray) -> IntArray:
    """Returns the steps that a batch has recorded, [m, 2], with the states renumbered.

    Args:
        recorded: the steps.
        numbers: for each state of the batch, its index here, [n].
    """
    steps = np.frombuffer(recorded, dtype=np.int64).reshape(-1, 2).copy()
    is_state = steps[:, 1] >= 0
    steps[is_state, 1] = numbers[steps[is_state, 1]]
    return steps
