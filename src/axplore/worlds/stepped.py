"""A world that steps a real system: anything that can be reset and stepped.

It carries out the same orders as a simulated world, with the same meaning. What a real system adds:

- Its reset must land in one state. That is checked when the world is made and at every reset after it.
- A state must always offer the same actions. That is checked in every order; see docs/worlds.md.
- It may give an answer that is not a state. This ends the exploration, or counts as a state of its own; it is never
  left out.
- It may fail: raise, hang or die. The failed step is not counted, and `faults` describes it. If a factory was given,
  the world makes a new system, which stands in the initial state, and continues; that is one step. A journey that was
  interrupted has neither arrived nor been cut: it starts again. An interrupted episode is run again, and its
  outcome is that it missed the goal.
- It may end an episode by itself after a number of steps. The world resets before that: on a visit or a tour the
  journey counts as cut, and an episode continues as if the policy had played RESET.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal, TypeAlias

from axplore.errors import InvalidSettingError, TooManyFaultsError, WorldError
from axplore.memory import Memory
from axplore.statistics.dependence import Dependence
from axplore.types import RESET_ACTION, Action, Reset, State
from axplore.worlds.contract import NOWHERE, Answer, Fault, Order, World, WorldSnapshot
from axplore.worlds.hindsight import WatchedHistory
from axplore.worlds.orders import LARGEST, DiscoveredStates, Tally, check_orders, checked_seed
from axplore.worlds.state_labels import check_same_kind, checked_actions, plain_state
from axplore.worlds.supervision import MAX_FAULTS, START_CHECKS, OnInvalid, SupervisedSystem, SystemRecipe
from axplore.worlds.systems import SYSTEM_ERRORS, Factory, System, SystemAdapter
from axplore.worlds.walkers import INTERRUPTED, Agent, Chooser, Outcome, Walker, free_episode, observed_walk, walker_of

Start: TypeAlias = Literal["fixed", "virtual"]

MANY_STARTS: Final = 10
"""Number of different starts in one order beyond which a virtual start is far from each of them."""

_logger = logging.getLogger("axplore")


class SteppedWorld(World):
    """A system as a `World`."""

    def __init__(
        self,
        system: System | Factory,
        seed: int = 0,
        *,
        actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None = None,
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
        self._recipe = SystemRecipe(system, actions, start == "virtual", on_invalid)
        self._max_episode_steps = max_episode_steps
        self._steps_between_resets = LARGEST if max_episode_steps is None else max_episode_steps - 1
        self._system = SupervisedSystem(self._recipe, self._seed, max_faults, start_checks)
        self._discovered = DiscoveredStates([(self._system.start, self._system.start_actions)])
        self._actions, self._numbers = self._discovered.actions, self._discovered.numbers
        self._agent = Agent(position=0, steps=0, deadline=self._steps_between_resets)
        self._needs_reset = False
        self._calls = 0
        self._tally = Tally()
        self._has_hinted = False
        self._history: WatchedHistory | None = None
        self._checks_start = True  # once in an order
        self._worked: dict[int, set[int]] = {}  # the actions that have worked in each state

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

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and returns the answer to each; see `World.carry_out`.

        An order has a random stream of its own only if the system can be reseeded.
        """
        check_orders(orders, self._discovered.action_counts())
        call = self._calls
        self._calls += 1
        return [self._answer(order, (call, index)) for index, order in enumerate(orders)]

    def replica_factory(self) -> Callable[[], SteppedWorld]:
        """Returns a function that makes worlds like this one in any process; see `Replica`.

        Replicas check every reset, but do not check the start beforehand.
        """
        if not self._recipe.is_repeatable:
            raise InvalidSettingError(
                "each worker makes its own system, which needs a factory: give a function that makes the system"
            )
        if self.memory is not None:
            raise InvalidSettingError("workers cannot follow a system with a memory: leave workers out")
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
        return self._answer(order, tuple(key))

    @property
    def position(self) -> int:
        """NOWHERE: a system cannot be put into a state."""
        return NOWHERE

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""
        return replace(self._discovered.snapshot(self.steps, self._calls), memory=self.memory)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot of the same system. The next order begins with a RESET."""
        if snapshot.memory != self.memory:
            self.remember(snapshot.memory)
        self._discovered.restore(snapshot)
        self._agent.steps, self._calls = snapshot.steps, snapshot.calls
        self._needs_reset = True

    @property
    def memory(self) -> Memory | None:
        """What tells situations apart, which are then the states; None if the answers of the system are."""
        return self._system.memory

    def remember(self, memory: Memory | None) -> None:
        """Takes the situations of a memory for states, or without one the answers of the system.

        All states but the initial one are forgotten, and the test of the history begins anew. The next order begins
        with a RESET.
        """
        self._system.remember(memory)
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
        self._carry_out(observed_walk(self._agent, self._discovered, choose), (self._calls, 0))
        self._calls += 1

    def lend(self) -> tuple[SystemAdapter, int | None]:
        """Returns the system itself, for an examination, and the step at which it ends episodes, if any.

        Steps of the examination are not counted. The next order begins with a RESET.
        """
        self._needs_reset = True
        return self._system.adapter, self._max_episode_steps

    def run_episode(self, choose: Callable[[State, int], Action | Reset], goal: State, horizon: int) -> int | None:
        """Runs one episode of any policy, which may roll dice or remember, from a RESET towards a goal.

        Its steps are those of the world, and its transitions are not counted.

        Args:
            choose: what to play, given the label of the state and the number of steps of the episode so far. In a
                terminal state, and where the system would end the episode by itself, RESET is played without asking.
            goal: the label of the state to reach; it need not have been met.
            horizon: the steps after which the episode ends.

        Returns:
            The steps to the goal, or more than the horizon if it was missed; None if the system failed on the way.
        """
        self._needs_reset = True
        walker = free_episode(self._agent, self._discovered, choose, goal, horizon)
        answer = self._carry_out(walker, (self._calls, 0))
        self._calls += 1
        return answer.travelled if answer.completed else None

    def watch_history(self) -> None:
        """Tests from now on, at every step, whether what follows a pair depends on the pair before it."""
        self._history = self._history or WatchedHistory()

    @property
    def has_alarmed(self) -> bool:
        """Whether the test of the history has found something by its last look."""
        return self._history is not None and self._history.alarm is not None

    @property
    def history_alarm(self) -> Dependence | None:
        """What the test of the history has found so far; None if nothing, or if it is not asked."""
        if self._history is None:
            return None
        self._history.look()
        return self._history.alarm

    def close(self) -> None:
        """Closes the system."""
        self._system.adapter.close()

    def _answer(self, order: Order, key: tuple[int, ...]) -> Answer:
        return self._carry_out(walker_of(order, self._agent, self._actions), key)

    def _carry_out(self, walker: Walker, key: tuple[int, ...]) -> Answer:
        agent, before = self._agent, self._agent.steps
        if self._system.begin(key, agent.steps):
            self._stand_at_start()
        self._tally = Tally()
        self._checks_start = True
        if self._needs_reset:
            self._reset()
            if self._history is not None:
                self._history.break_off()
        self._needs_reset = True  # until the order is over, because an exception leaves the system anywhere
        outcome = self._follow(walker)
        self._needs_reset = False
        for state, action in self._tally.rows:
            self._worked.setdefault(state, set()).add(action)
        if self._recipe.virtual_start and not self._has_hinted:
            self._hint_at_starts()
        return self._tally.answer(agent.steps - before, *outcome)

    def _hint_at_starts(self) -> None:
        """Warns once if the virtual start has so many successors that few states can be within the radius."""
        starts = self._tally.rows.get((0, 0), {})
        if len(starts) >= MANY_STARTS:
            self._has_hinted = True
            _logger.warning(
                "the virtual start has led to %d different states in %d draws. One that is hit one time in n takes "
                "about 2n steps, so that only the virtual start may be within the radius: fix the start, or raise the "
                "radius",
                len(starts),
                sum(starts.values()),
            )

    def _follow(self, walker: Walker) -> Outcome:
        """Plays what a walker yields, and sends it the resulting states."""
        play, reset, tell = self._play, self._reset, walker.send
        try:
            chosen = next(walker)
            if self._history is not None:
                return self._follow_watched(walker, chosen, self._history)
            while True:
                chosen = tell(reset() if chosen == RESET_ACTION else play(chosen))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _follow_watched(self, walker: Walker, chosen: int, history: WatchedHistory) -> Outcome:
        """Does the same, and records every step for the test of whether the history matters."""
        play, reset, tell = self._play, self._reset, walker.send
        while True:
            history.begin(self._agent.position)
            note = history.steps.append
            for _ in range(history.room):
                position = reset() if chosen == RESET_ACTION else play(chosen)
                note(chosen)
                note(position)
                chosen = tell(position)
            history.look()

    def _play(self, action: int) -> int:
        """Plays an action, counts the transition and returns the index of the next state, or INTERRUPTED."""
        agent = self._agent
        position = agent.position
        agent.steps += 1
        try:
            label = self._system.step(self._actions[position][action])
        except SYSTEM_ERRORS as error:
            return self._recover(error, action)
        try:
            successor = self._numbers[label]
        except (KeyError, TypeError):  # new, or not a state
            successor = self._discover(label, action)
            if successor == INTERRUPTED:
                return INTERRUPTED
        pair = (position, action)
        try:
            self._tally.rows[pair][successor] += 1
        except KeyError:
            if not self._is_as_before(successor, label, action):
                return INTERRUPTED
            self._tally.note_first(pair, successor)
        agent.position = successor
        return successor

    def _reset(self) -> int:
        """Resets the system, and returns the index of the initial state, 0."""
        agent = self._agent
        agent.steps += 1
        self._system.reset(agent.steps, check_actions=self._checks_start)
        self._checks_start = False
        agent.position, agent.deadline = 0, agent.steps + self._steps_between_resets
        return 0

    def _discover(self, label: State, action: int) -> int:
        """Returns the index of a state entered for the first time; INTERRUPTED if the answer is not a state."""
        try:
            state = plain_state(label)
            return self._discovered.add(state, checked_actions(state, self._system.adapter.actions(label)))
        except SYSTEM_ERRORS as error:
            return self._recover(error, action)

    def _is_as_before(self, state: int, label: State, action: int) -> bool:
        """Returns whether a state just entered offers the actions that it had; False if the system failed to say.

        It is asked when a pair leads to the state for the first time in an order, which is often enough to notice a
        system that changes and too rare to cost anything. Refuses a state that is not what it was before.
        """
        known = self._discovered.labels[state]
        check_same_kind(known, label)
        try:
            self._system.check_actions(known, label, self._actions[state])
        except SYSTEM_ERRORS as error:
            self._recover(error, action)
            return False
        return True

    def _recover(self, error: BaseException, action: int) -> int:
        """Restarts the system after an action failed in the current state."""
        if isinstance(error, WorldError):  # the system cannot be explored, and a new one could not either
            raise error
        agent = self._agent
        label, played = self._discovered.labels[agent.position], self._actions[agent.position][action]
        pair = agent.position, action
        has_worked = pair in self._tally.rows or action in self._worked.get(agent.position, ())
        try:
            self._system.recover(error, label, played, agent.steps, has_worked)
        except TooManyFaultsError as too_many:
            too_many.n_draws = self._tally.n_draws
            raise
        self._stand_at_start()
        return INTERRUPTED

    def _stand_at_start(self) -> None:
        """Records that a new system is running, which stands in the initial state."""
        self._agent.position = 0
        self._agent.deadline = self._agent.steps + self._steps_between_resets


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
