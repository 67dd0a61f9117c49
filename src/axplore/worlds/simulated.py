"""A world that simulates a known model, tens of millions of steps a second."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError, OrdersCutError, UnknownStateError
from axplore.labels import shortened
from axplore.mdp import TabularMdp
from axplore.types import Action, IntArray, State
from axplore.worlds import simulation_kernels as kernels
from axplore.worlds.contract import (
    NO_GOAL,
    NOWHERE,
    Answer,
    Episodes,
    Order,
    Survey,
    Tour,
    Trials,
    Visit,
    World,
    WorldSnapshot,
)
from axplore.worlds.orders import LARGEST, check_orders, checked_seed, no_answer, order_seed
from axplore.worlds.simulation_kernels import ENTRIES, PAIRS, STATES, UNDISCOVERED, OrderProgress, UnsignedArray

STEPS_BETWEEN_PAUSES: Final = 5_000_000
"""Steps after which compiled code returns to Python, about a second on the largest models, to handle Ctrl-C,"""

STEPS_BETWEEN_LOOKS: Final = 200_000
"""or to look at the clock, where that limits it."""


class SimulatedWorld(World):
    """A known model as a `World`: it reveals only the transitions that orders meet."""

    def __init__(self, mdp: TabularMdp, seed: int, names: Mapping[str, frozenset[State]] | None = None) -> None:
        """Places the agent in the initial state of the model.

        Args:
            mdp: the model to simulate.
            seed: with the orders, it determines everything that happens; not negative.
            names: sets of states that the model names.
        """
        self._mdp, self._names = mdp, names or {}
        self._seed = checked_seed(seed)
        self._action_counts = np.diff(mdp.state_pairs)
        self._offered: IntArray = np.zeros(0, dtype=np.int64)  # the number of actions of each discovered state
        self._tables = kernels.tables_of(mdp)
        self._record = kernels.new_record(mdp)
        self._position = mdp.initial_index
        self._steps = 0
        self._beside = 0  # the steps of this process that are not among those
        self._last_step, self._ends = LARGEST, math.inf
        self._was_cut = False  # whether a limit ended the last order
        self._calls = 0
        self._labels: tuple[State, ...] = (mdp.initial_state,)

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by index; the initial state is the first."""
        fresh = self._discovered()[len(self._labels) :]
        if fresh.size:
            self._labels += tuple(self._mdp.states[index] for index in fresh)
        return self._labels

    @property
    def steps(self) -> int:
        """The number of steps taken so far, RESET included."""
        return self._steps

    @property
    def is_spent(self) -> bool:
        """Whether a limit leaves no room for a step."""
        return self._steps >= self._last_step or time.monotonic() >= self._ends

    @property
    def system_steps(self) -> int:
        """The number of steps simulated in this process."""
        return self._steps + self._beside

    @property
    def position(self) -> int:
        """The index of the state in which the agent stands."""
        return int(self._record.numbers[self._position])

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """The sets of states that the model names."""
        return {name: states.__contains__ for name, states in self._names.items()}

    @property
    def fingerprint(self) -> str:
        """The SHA-256 digest of the seed and of the model without its labels: worlds that behave alike share it."""
        mdp = self._mdp
        hashed = hashlib.sha256(f"{mdp.initial_index} {self._seed}".encode())
        for array in (mdp.state_pairs, mdp.row_offsets, mdp.successors, mdp.probabilities):
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal."""
        discovered = self._discovered()
        if not 0 <= state < len(discovered):
            raise UnknownStateError(f"no state {state!r}; the discovered states are 0 to {len(discovered) - 1}")
        return self._mdp.actions_of(self._mdp.states[discovered[state]])

    def actions_at(self, label: State) -> tuple[Action, ...]:
        """Returns the actions of a state of the model; refuses another label."""
        if label not in self._mdp:
            raise InvalidSettingError(f"the model has no state {shortened(label)}")
        return self._mdp.actions_of(label)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and returns the answer to each; see `World.carry_out`."""
        check_orders(orders, self._offered_by_now())
        call = self._calls
        self._calls += 1
        answers: list[Answer] = []
        for index, order in enumerate(orders):
            answers.append(self._answer(order, order_seed(self._seed, call, index)))
            if self._was_cut:
                raise OrdersCutError([*answers, *map(no_answer, orders[index + 1 :])])
        return answers

    def _offered_by_now(self) -> IntArray:
        """Returns the number of actions of each discovered state, [n]; short orders come by the thousand."""
        discovered = self._discovered()
        if len(self._offered) < len(discovered):
            self._offered = self._action_counts[discovered]
        return self._offered

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        """Takes from now on at most a number of steps, and begins none long after a moment; see `World.limit`."""
        self._last_step = LARGEST if steps is None else self._steps + steps
        self._ends = ends

    @property
    def max_faults(self) -> int:
        """0: a simulation does not fail."""
        return 0

    def replica_factory(self) -> Callable[[], SimulatedWorld]:
        """Returns a function that makes worlds like this one in any process; see `Replica`."""
        return partial(SimulatedWorld, self._mdp, self._seed)

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Keeps the first `n_kept` states, forgets any others, and appends these."""
        self._number(n_kept, self._mdp.indices_of([label for label, _ in states]))

    def carry_out_batch(self, order: Order, key: Sequence[int], max_faults: int = 0) -> Answer:  # noqa: ARG002 (of all)
        """Carries out an order, or a batch of one, after a RESET, which is a step; see `Replica`."""
        if self._steps >= self._last_step:
            raise OrdersCutError([no_answer(order)])
        self._position = self._mdp.initial_index
        self._steps += 1
        answer = self._answer(order, order_seed(self._seed, *key))
        answer = replace(answer, steps=answer.steps + 1)
        if self._was_cut:
            raise OrdersCutError([answer])
        return answer

    def snapshot(self) -> WorldSnapshot:
        """Returns everything that has changed since the world was made, for `restore` with the same model and seed."""
        labels = tuple(self.states)
        actions = tuple(map(self._mdp.actions_of, labels))
        return WorldSnapshot(labels, actions, self._steps, self._calls, self.position)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Sets the world to a snapshot, as if it had never stopped."""
        position = 0 if snapshot.position == NOWHERE else snapshot.position
        discovered = self._indices_of(snapshot.labels)
        if not 0 <= position < len(discovered) or snapshot.steps < 0 or snapshot.calls < 0:
            raise InvalidSettingError(
                f"the snapshot is inconsistent: state {position} of {len(discovered)}, {snapshot.steps} steps "
                f"and {snapshot.calls} calls"
            )
        self._number(0, discovered)
        self._position = int(discovered[position])
        undone = self._steps - snapshot.steps
        self._steps = snapshot.steps
        self._beside += undone
        self._last_step = LARGEST if self._last_step == LARGEST else self._last_step - undone
        self._calls = snapshot.calls

    def _indices_of(self, labels: Sequence[State]) -> IntArray:
        """Returns the model's index of each state of a snapshot, [n]; refuses a snapshot of another model."""
        unknown = [label for label in labels if label not in self._mdp]
        if unknown:
            raise InvalidSettingError(f"the snapshot is of another model: this one has no state {unknown[0]!r}")
        if labels[:1] != (self._mdp.initial_state,) or len(set(labels)) != len(labels):
            raise InvalidSettingError(
                "the snapshot is of another model: its states must be distinct, the initial state of this one first"
            )
        return self._mdp.indices_of(labels)

    def _number(self, n_kept: int, indices: IntArray) -> None:
        """Replaces the states discovered after the first `n_kept` by those with these indices in the model."""
        record, n_states = self._record, n_kept + len(indices)
        record.numbers[self._discovered()[n_kept:]] = UNDISCOVERED
        record.numbers[indices] = np.arange(n_kept, n_states)
        record.discovered[n_kept:n_states] = indices
        record.totals[STATES] = n_states
        self._offered = self._offered[:n_kept]
        self._labels = self._labels[:n_kept]  # the others are looked up when they are asked for

    def _discovered(self) -> UnsignedArray:
        """Returns the model's index of each discovered state, [n]."""
        return self._record.discovered[: self._record.totals[STATES]]

    def _answer(self, order: Order, seed: np.random.SeedSequence) -> Answer:
        stream = seed.generate_state(4, np.uint64).astype(np.uint64)
        outcomes = np.zeros(int(order.horizon) + 2 if isinstance(order, Episodes) else 0, dtype=np.int64)
        room = self._last_step - self._steps
        advance = self._kernel_of(order, stream, outcomes, room)
        progress = OrderProgress(position=self._position)
        is_searching = isinstance(order, Survey)  # which takes longer than the steps
        pause = STEPS_BETWEEN_LOOKS if is_searching or math.isfinite(self._ends) else STEPS_BETWEEN_PAUSES
        try:
            is_out = False
            while not progress.over and not is_out:
                before, is_late = progress.steps, time.monotonic() >= self._ends
                progress = advance(progress, 0 if is_late else min(pause, room - before))
                self._position = progress.position
                self._steps += progress.steps - before
                is_out = is_late or progress.steps >= room
            self._was_cut = not progress.over
            if isinstance(order, Episodes) and self._was_cut:
                outcomes[-1] += progress.journey > 0  # see `Answer`
            if isinstance(order, Trials) and self._was_cut and progress.journey > 0:
                progress = progress._replace(completed=progress.completed + 1, cuts=progress.cuts + 1)
            return self._counted(progress, outcomes)
        finally:
            self._clear()

    def _kernel_of(
        self, order: Order, stream: UnsignedArray, outcomes: IntArray, room: int
    ) -> Callable[[OrderProgress, int], OrderProgress]:
        """Returns a function that continues the order from its progress, for at most a number of steps."""
        match order:
            case Visit():
                return partial(
                    kernels.visit, self._tables, self._record, stream, _writable(order.policy),
                    self._index_of(order.state), int(order.action), int(order.times), int(order.max_journey),
                    int(order.max_cuts),
                )  # fmt: skip
            case Episodes():
                return partial(
                    kernels.run_episodes, self._tables, self._record, stream, np.atleast_2d(_writable(order.policy)),
                    self._goal_of(order), int(order.times), int(order.horizon), float(order.allowance),
                    float(order.slack), bool(order.always_reset), outcomes, room,
                )  # fmt: skip
            case Trials():
                return partial(
                    kernels.run_trials, self._tables, self._record, stream, np.atleast_2d(_writable(order.policy)),
                    int(order.times), int(order.horizon), bool(order.always_reset), bool(order.goes_beyond),
                    int(order.most_steps), room,
                )  # fmt: skip
            case Tour():
                return partial(
                    kernels.tour, self._tables, self._record, stream,
                    kernels.tour_progress_of(order, self._tables, self._record), int(order.times.sum()),
                    int(order.max_journey), int(order.max_cuts),
                )  # fmt: skip
            case Survey():
                return partial(
                    kernels.survey, self._tables, self._record, stream,
                    kernels.begun_survey(order, self._tables, self._record), int(order.max_depth), int(order.plays),
                )  # fmt: skip

    def _goal_of(self, order: Episodes) -> int:
        """Returns the model's index of the goal of episodes; one that no state has if there is no goal."""
        return self._mdp.n_states if order.goal == NO_GOAL else self._index_of(order.goal)

    def _index_of(self, number: int) -> int:
        return int(self._record.discovered[number])

    def _touched(self) -> tuple[IntArray, IntArray]:
        """Returns the pairs drawn and the transitions met in this order."""
        record = self._record
        pairs = record.pairs[: record.totals[PAIRS]].astype(np.int64)
        return pairs, record.entries[: record.totals[ENTRIES]].astype(np.int64)

    def _counted(self, progress: OrderProgress, outcomes: IntArray) -> Answer:
        """Returns the answer to an order that is over."""
        mdp, record = self._mdp, self._record
        pairs, entries = self._touched()
        pair_states = mdp.pair_states[pairs]
        return Answer(
            steps=progress.steps,
            completed=progress.completed,
            arrivals=progress.arrivals,
            travelled=progress.travelled,
            cut_journeys=progress.cuts,
            pair_states=record.numbers[pair_states].astype(np.int64),
            pair_actions=pairs - mdp.state_pairs[pair_states],
            pair_draws=record.pair_draws[pairs],
            entry_pairs=record.pair_indices[mdp.transition_pairs[entries]],
            entry_successors=record.numbers[mdp.successors[entries]].astype(np.int64),
            entry_counts=record.entry_counts[entries],
            entry_first_draws=record.entry_first_draws[entries],
            outcomes=outcomes,
        )

    def _clear(self) -> None:
        """Empties the record for the next order, however this one ended."""
        pairs, entries = self._touched()
        self._record.pair_draws[pairs] = 0
        self._record.entry_counts[entries] = 0
        self._record.totals[[PAIRS, ENTRIES]] = 0


def _writable(policy: IntArray) -> IntArray:
    """Returns the policy as a writable array, because kernels are compiled again for read-only ones."""
    return np.require(policy, np.int64, ["C", "W"])
