"""A world that steps a real system: anything that can be reset and stepped.

It carries out the same orders as a simulated world, with the same meaning. What a real system adds:

- Its reset must land in one state. That is checked when the world is made and at every reset after it.
- A state must always offer the same actions. That is checked in every order; see docs/worlds.md.
- It may give an answer that is not a state. This ends the exploration, or counts as a state of its own; it is never
  left out.
- It may fail: raise, hang or die. What the failed step led to is not counted, and `faults` describes it. If a factory
  was given, the world makes a new system, which is reset, and continues: both are steps. A journey that was interrupted
  has neither arrived nor been cut: it starts again. An interrupted episode is run again, and its
  outcome is that it missed the goal.
- It may end an episode by itself after a number of steps. The world resets before that: the journey or the episode
  counts as cut, and an episode that is cut has missed the goal.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

from axplore.errors import InvalidSettingError, OrdersCutError, TooManyFaultsError, WorldError
from axplore.labels import shortened
from axplore.records.findings import Fault
from axplore.types import RESET_ACTION, Action, Reset, State
from axplore.worlds.contract import NOWHERE, Answer, Examinable, Order, Restarts, WorldSnapshot
from axplore.worlds.hindsight import StepRecorder, WatchedHistory, WatchesHistory
from axplore.worlds.keys import Key, keyed
from axplore.worlds.orders import LARGEST, DiscoveredStates, Tally, check_orders, checked_seed, no_answer
from axplore.worlds.renewals import Renewals
from axplore.worlds.state_labels import check_same_kind, checked_actions, hint_at_rewards, plain_state
from axplore.worlds.supervision import MAX_FAULTS, START_CHECKS, OnInvalid, SupervisedSystem, SystemRecipe
from axplore.worlds.systems import SYSTEM_ERRORS, Factory, System, SystemAdapter, View
from axplore.worlds.walkers import (
    CUT,
    INTERRUPTED,
    Agent,
    Chooser,
    Walker,
    WalkResult,
    free_episode,
    observed_walk,
    walker_of,
)

Start: TypeAlias = Literal["fixed", "virtual"]

MANY_STARTS: Final = 10
"""Number of different starts in one order beyond which a virtual start is far from each of them."""

_logger = logging.getLogger("axplore")


class SteppedWorld(WatchesHistory, Examinable):
    """A system as a `World`."""

    def __init__(
        self,
        system: System | Factory,
        seed: int = 0,
        *,
        actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None = None,
        key: Key | None = None,
        start: Start = "fixed",
        max_episode_steps: int | None = None,
        max_faults: int = MAX_FAULTS,
        on_invalid: OnInvalid = "error",
        start_checks: int = START_CHECKS,
    ) -> None:
        """Resets the system a few times, and leaves the agent in the initial state.

        Args:
            system: what to step (see `systems`), or a function without arguments that makes one. With a function, a
                system that fails is made again.
            seed: the seed of the noise, if the system can be reseeded.
            actions: the available actions: a sequence, or a function of the state just entered. By default, the
                `actions` of the system.
            key: makes the label of a state of what the system answers; by default, the answer is the label.
            start: `fixed` refuses a reset that lands in different states; `virtual` puts a state before it, whose one
                action leads to wherever the reset lands.
            max_episode_steps: the step after which the system ends an episode by itself; the world resets before it.
            max_faults: the number of faults of the system to recover from.
            on_invalid: `error` ends the exploration when the answer to a step is not a state, such as None or NaN;
                `state` counts such a step as a transition to the state "invalid", which only resets.
            start_checks: the number of resets with which the start is checked.
        """
        _check_settings(start, max_episode_steps, max_faults, on_invalid, start_checks)
        self._seed = checked_seed(seed)
        if key is not None:
            system, actions = keyed(system, key, actions), None
        self._recipe = SystemRecipe(system, actions, start == "virtual", on_invalid)
        self._max_episode_steps = max_episode_steps
        self._system = SupervisedSystem(self._recipe, self._seed, max_faults, start_checks)
        self._discovered = DiscoveredStates([(self._system.start, self._system.start_actions)])
        self._actions, self._numbers = self._discovered.actions, self._discovered.numbers
        self._mistakable = self._discovered.mistakable
        limit = LARGEST if max_episode_steps is None else max_episode_steps - 1
        self._agent = Agent(position=0, steps=0, limit=limit, deadline=limit)
        self._beside = self._system.start_resets  # the steps of the system that are not among those of the agent
        self._was_cut = False  # whether a limit ended the last order
        self._needs_reset = False
        self._calls = 0
        self._tally = Tally()
        self._has_hinted = False
        self._recorder: StepRecorder | None = None
        self._checks_start = True  # once in an order
        self._worked: dict[int, set[int]] = {}  # the actions that have worked in each state
        self._hearsay: set[int] = set()

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by index; the initial state is the first."""
        return self._discovered.labels

    @property
    def steps(self) -> int:
        """The number of steps taken so far, RESET included."""
        return self._agent.steps

    @property
    def repeatable(self) -> bool:
        """Whether the noise of the system follows the random streams of orders."""
        return self._system.adapter.can_be_reseeded

    @property
    def max_faults(self) -> int:
        """The number of faults of the system to recover from."""
        return self._system.max_faults

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults so far. The system was restarted after each."""
        return tuple(self._system.faults)

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal."""
        return self._discovered.actions_of(state)

    def actions_at(self, label: State) -> tuple[Action, ...] | None:
        """Returns the actions of a state that may not have been met, if the system can tell."""
        if label in self._numbers:
            return self._actions[self._numbers[label]]
        adapter = self._system.adapter
        if adapter.knows_here_only:
            return None
        try:
            return checked_actions(label, adapter.actions(label))
        except SYSTEM_ERRORS:  # it has never been there
            return None

    @property
    def hearsay(self) -> Collection[int]:
        """The indices of states that only a log has met, and whose actions only the log tells."""
        return self._hearsay

    def hear(self, states: Collection[int]) -> None:
        """Takes these for `hearsay` until each of them is met."""
        self._hearsay = set(states)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and returns the answer to each; see `World.carry_out`.

        An order has a random stream of its own only if the system can be reseeded.
        """
        check_orders(orders, self._discovered.action_counts())
        call = self._calls
        self._calls += 1
        answers: list[Answer] = []
        for index, order in enumerate(orders):
            answers.append(self._answer(order, (call, index)))
            if self._was_cut:
                raise OrdersCutError([*answers, *map(no_answer, orders[index + 1 :])])
        return answers

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        """Takes from now on at most a number of steps, and begins none after a moment; see `World.limit`."""
        agent = self._agent
        agent.last_step = LARGEST if steps is None else agent.steps + steps
        agent.ends = None if math.isinf(ends) else ends

    @property
    def is_spent(self) -> bool:
        """Whether a limit leaves no room for a step."""
        return self._agent.is_spent

    @property
    def system_steps(self) -> int:
        """The steps of the system in this process, also those that are not among `steps`."""
        return self._agent.steps + self._beside

    def replica_factory(self) -> Callable[[], SteppedWorld]:
        """Returns a function that makes worlds like this one in any process; see `Replica`.

        Replicas check every reset, but do not check the start beforehand.
        """
        if not self._recipe.is_repeatable:
            raise InvalidSettingError(
                "each worker makes its own system, which needs a factory: give a function that makes the system"
            )
        return partial(
            SteppedWorld,
            self._recipe.source,
            self._seed,
            actions=self._recipe.actions,
            start="virtual" if self._recipe.virtual_start else "fixed",
            max_episode_steps=self._max_episode_steps,
            max_faults=0,
            on_invalid=self._recipe.on_invalid,
            start_checks=1,
        )

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Keeps the first `n_kept` states, forgets any others, and appends these."""
        for state in range(n_kept, len(self._discovered)):
            self._worked.pop(state, None)
        self._discovered.forget(n_kept)
        self._discovered.extend(states)

    def carry_out_batch(self, order: Order, key: Sequence[int], max_faults: int = 0) -> Answer:
        """Carries out an order, or a batch of one, after a RESET, which is a step; see `Replica`."""
        self._needs_reset = True
        self._system.max_faults = len(self._system.faults) + max_faults
        answer = self._answer(order, tuple(key))
        if self._was_cut:
            raise OrdersCutError([answer])
        return answer

    @property
    def position(self) -> int:
        """NOWHERE: a system cannot be put into a state."""
        return NOWHERE

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""
        return self._discovered.snapshot(self.steps, self._calls)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot of the same system. The next order begins with a RESET."""
        self._discovered.restore(snapshot)
        agent, undone = self._agent, self._agent.steps - snapshot.steps
        agent.steps, self._calls = snapshot.steps, snapshot.calls
        self._beside += undone  # the system has taken them all the same
        agent.last_step = LARGEST if agent.last_step == LARGEST else agent.last_step - undone
        self._needs_reset = True

    def relabel(self, view: View | None) -> None:
        """Sees the system through a view that may label its states otherwise; see `Examinable.relabel`."""
        self._system.relabel(view)
        self._discovered.forget(1)
        self._worked.clear()
        self._needs_reset = True
        self._history = None if self._history is None else WatchedHistory()

    def walk(self, choose: Chooser) -> None:
        """Plays, from a RESET on, whatever a function chooses, until that is None or the system fails.

        Args:
            choose: what to play, given the label of the state just entered and its actions. It is not asked where the
                system would end the episode by itself, which ends the walk.
        """
        self._needs_reset = True
        answer = self._carry_out(observed_walk(self._agent, self._discovered, choose), (self._calls, 0))
        self._calls += 1
        if self._was_cut:
            raise OrdersCutError([answer])

    def borrow_system(self) -> tuple[SystemAdapter, int | None]:
        """Returns the system itself, for an examination, and the step at which it ends episodes, if any.

        Its steps are not among `steps`: see `note_borrowed`. The next order begins with a RESET.
        """
        self._needs_reset = True
        return self._system.adapter, self._max_episode_steps

    def note_borrowed(self, steps: int) -> None:
        """Adds steps that a borrower has taken to `system_steps`."""
        self._beside += steps

    def run_episode(
        self, choose: Callable[[State, int], Action | Reset], goal: State, horizon: int, restarts: Restarts
    ) -> Answer:
        """Runs one episode of any policy from a RESET towards a goal; see `Examinable.run_episode`."""
        self._needs_reset = True
        walker = free_episode(self._agent, self._discovered, choose, goal, horizon, restarts)
        answer = self._carry_out(walker, (self._calls, 0))
        self._calls += 1
        if self._was_cut:
            raise OrdersCutError([answer])
        return answer

    def vary_ages(self) -> None:
        """Resets from now on at random ages, where that disturbs neither an episode nor a journey by steps."""
        if self._agent.renewals is None:
            self._agent.renewals = Renewals(self._seed, self._agent.steps)
            self._agent.renewal = self._agent.renewals.begin(self._agent.steps)

    def record_steps(self, *, is_wanted: bool) -> None:
        """Records from now on every step of batches, or none; see `RecordsSteps`."""
        self._recorder = StepRecorder() if is_wanted else None

    def recorded_steps(self) -> bytes:
        """Returns the steps that were recorded since this was last asked."""
        return b"" if self._recorder is None else self._recorder.take()

    def close(self) -> None:
        """Closes the system."""
        self._system.adapter.close()

    def _answer(self, order: Order, key: tuple[int, ...]) -> Answer:
        return self._carry_out(walker_of(order, self._agent, self._actions), key)

    def _carry_out(self, walker: Walker, key: tuple[int, ...]) -> Answer:
        agent, before = self._agent, self._agent.steps
        self._tally = Tally()
        self._checks_start = True
        self._was_cut = False
        self._begin(key)
        if self._needs_reset and not self._was_cut:
            self._reset()
            if self._witness is not None:
                self._witness.break_off()
        needs_reset = self._needs_reset and self._was_cut
        self._needs_reset = True  # until the order is over, because an exception leaves the system anywhere
        outcome = self._follow(walker)
        self._needs_reset = needs_reset or self._system.is_down
        for state, row in self._tally.rows.items():
            self._worked.setdefault(state, set()).update(row)
        if self._recipe.virtual_start and not self._has_hinted:
            self._hint_at_starts()
        return self._tally.answer(agent.steps - before, *outcome)

    def _begin(self, key: tuple[int, ...]) -> None:
        """Gives the system the stream of an order; starts another one if there is none that works."""
        agent = self._agent
        n_resets = self._system.begin(key, agent.steps, agent.room)
        if n_resets:  # a new system is running
            agent.steps += n_resets
            agent.begin()
        if self._system.is_down:
            self._cut()

    def _cut(self) -> int:
        """Notes that a limit is reached, and returns CUT."""
        self._was_cut = True
        return CUT

    def _hint_at_starts(self) -> None:
        """Warns once if the virtual start has so many successors that few states can be within the radius."""
        starts = self._tally.rows.get(0, {}).get(0, {})
        if len(starts) >= MANY_STARTS:
            self._has_hinted = True
            _logger.warning(
                "the virtual start has led to %d different states in %d draws. One that is hit one time in n takes "
                "about 2n steps, so that only the virtual start may be within the radius: fix the start, or raise the "
                "radius",
                len(starts),
                sum(times for _, times in starts.values()),
            )

    def _follow(self, walker: Walker) -> WalkResult:
        """Plays what a walker yields, and sends it the resulting states."""
        play, reset, tell = self._play, self._reset, walker.send
        try:
            chosen = next(walker)
            if self._was_cut:
                tell(CUT)
            if self._witness is not None:
                return self._follow_watched(walker, chosen, self._witness)
            while True:
                chosen = tell(reset() if chosen == RESET_ACTION else play(chosen))
        except StopIteration as end:
            outcome: WalkResult = end.value
            return outcome

    @property
    def _witness(self) -> WatchedHistory | StepRecorder | None:
        """What records every step, if anything does."""
        return self._history or self._recorder

    def _follow_watched(self, walker: Walker, chosen: int, history: WatchedHistory | StepRecorder) -> WalkResult:
        """Does the same, and records every step for the test of whether the history matters."""
        play, reset, tell = self._play, self._reset, walker.send
        while True:
            history.begin(self._agent.position)
            note = history.steps.append
            for _ in range(history.room):
                position = reset() if chosen == RESET_ACTION else play(chosen)
                if position == CUT:
                    tell(CUT)
                note(chosen)
                note(position)
                chosen = tell(position)
            history.look()

    def _play(self, action: int) -> int:
        """Plays an action, counts the transition and returns the index of the next state, or INTERRUPTED, or CUT."""
        agent = self._agent
        if agent.steps >= agent.last_step or (agent.ends is not None and agent.is_spent):
            return self._cut()
        position = agent.position
        agent.steps += 1
        try:
            label = self._system.step(self._actions[position][action])
        except SYSTEM_ERRORS as error:
            return self._recover(error, action)
        try:
            met = self._tally.rows[position][action][label]
        except (KeyError, TypeError):
            return self._count_first(label, action)
        successor = met[0]
        if successor in self._mistakable:
            check_same_kind(self._discovered.labels[successor], label)
        met[1] += 1
        agent.position = successor
        return successor

    def _count_first(self, label: State, action: int) -> int:
        """Counts what was not met before in this order; returns as `_play` does."""
        try:
            successor = self._numbers[label]
        except (KeyError, TypeError):  # new, or not a state
            successor = self._discover(label, action)
            if successor == INTERRUPTED:
                return INTERRUPTED
        known = self._discovered.labels[successor]
        if successor in self._mistakable:
            check_same_kind(known, label)
        if not self._is_as_before(successor, label, action):
            return INTERRUPTED
        self._tally.note_first(self._agent.position, action, successor, known)
        self._agent.position = successor
        return successor

    def _reset(self) -> int:
        """Resets the system, and returns the index of the initial state, 0, or CUT."""
        agent = self._agent
        if agent.is_spent:
            return self._cut()
        agent.steps += 1
        agent.steps += self._system.reset(agent.steps, agent.room, check_actions=self._checks_start)
        if self._system.is_down:
            return self._cut()
        self._checks_start = False
        agent.begin()
        return 0

    def _discover(self, label: State, action: int) -> int:
        """Returns the index of a state entered for the first time; INTERRUPTED if the answer is not a state."""
        try:
            state = plain_state(label)
            if len(self._discovered) == 1:
                hint_at_rewards(self._discovered.labels[0], label)
            return self._discovered.add(state, checked_actions(state, self._system.adapter.actions(label)))
        except SYSTEM_ERRORS as error:
            return self._recover(error, action)

    def _is_as_before(self, state: int, label: State, action: int) -> bool:
        """Returns whether a state just entered offers the actions that it had; False if the system failed to say.

        It is asked when a pair leads to the state for the first time in an order, which is often enough to notice a
        system that changes and too rare to cost anything. Refuses a state that is not what it was before.
        """
        known = self._discovered.labels[state]
        try:
            if state in self._hearsay:
                self._actions[state] = self._no_longer_hearsay(known, label, self._actions[state])
                self._hearsay.discard(state)
            self._system.check_actions(known, label, self._actions[state])
        except SYSTEM_ERRORS as error:
            self._recover(error, action)
            return False
        return True

    def _no_longer_hearsay(self, state: State, label: State, played: tuple[Action, ...]) -> tuple[Action, ...]:
        """Returns the actions of a state of a log, which is met for the first time.

        Refuses one that offers other actions than were played there: their levels depend on the number of actions.
        """
        offered = checked_actions(state, self._system.adapter.actions(label))
        if not played:
            return offered
        if set(offered) != set(played):
            raise WorldError(
                f"the log plays {shortened(list(played))} in state {shortened(state)}, and the system offers "
                f"{shortened(list(offered))} there: say which actions each state has, log_actions=... in Python, "
                "--log-actions MODULE:FUNCTION on the command line"
            )
        return played

    def _recover(self, error: BaseException, action: int) -> int:
        """Restarts the system after an action failed in the current state.

        Where a limit leaves no room for that, the system is down, and the next step is cut.
        """
        if isinstance(error, WorldError):  # the system cannot be explored, and a new one could not either
            raise error
        agent = self._agent
        label, played = self._discovered.labels[agent.position], self._actions[agent.position][action]
        has_worked = self._tally.is_met(agent.position, action) or action in self._worked.get(agent.position, ())
        try:
            agent.steps += self._system.recover(error, label, played, agent.steps, agent.room, has_worked)
        except TooManyFaultsError as too_many:
            too_many.n_draws = self._tally.n_draws
            raise
        agent.begin()
        return INTERRUPTED


def _check_settings(
    start: str, max_episode_steps: int | None, max_faults: int, on_invalid: str, start_checks: int
) -> None:
    if start not in ("fixed", "virtual"):
        raise InvalidSettingError(f"start is {start!r}; it must be 'fixed' or 'virtual'")
    if on_invalid not in ("error", "state"):
        raise InvalidSettingError(f"on_invalid is {on_invalid!r}; it must be 'error' or 'state'")
    if max_episode_steps is not None and max_episode_steps < 2:
        raise InvalidSettingError(f"max_episode_steps is {max_episode_steps}; it must be 2 or more, or None")
    if max_faults < 0 or start_checks < 1:
        raise InvalidSettingError(
            f"max_faults is {max_faults} and start_checks is {start_checks}; they must be at least 0 and 1"
        )
