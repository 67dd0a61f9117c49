"""The contract between explorers and worlds: orders, answers, and the optional abilities of a world.

An explorer never steps an environment. It gives *orders*, and a world carries them out and answers with the
transitions it met, counted. States are indexed in the order of discovery, the initial state is 0, and an action is
its index among the actions of its state. RESET is not one of these actions: it is always available, known, and one
step.

A world is a subclass of `World` that implements four members; the others have defaults. A world that can be resumed
also has the methods of `Resumable`, and one that workers can replicate those of `Replicable`.
`axplore.testing.check_world` checks all of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from axplore.labels import Json
from axplore.records.findings import Examined, Fault
from axplore.records.vectors import Vectors
from axplore.types import Action, FloatArray, IntArray, Reset, State


@dataclass(frozen=True, eq=False)
class Visit:
    """Go to a state by a policy and play an action there, `times` more times.

    The agent starts where it stands and continues from wherever the action leads. Transitions on the way count, too.

    Under a policy that depends on the step, every journey starts in the initial state: with a RESET unless the agent
    stands there. That RESET counts as a step of the world, not of the journey. It is also the one that cuts a journey,
    so that a journey cut in the initial state takes none. A journey to the initial state has no steps.

    Attributes:
        state: the state to visit.
        action: the action to play there.
        times: the number of times to play it.
        policy: the action to play on the way, by state, [n], or by step and state, [max_journey, n]; RESET_ACTION
            resets, and so does the agent in every state from n on.
        max_journey: the number of steps after which a journey that has not arrived is cut: the agent resets, which is
            a step, and sets out again.
        max_cuts: the number of cut journeys in a row after which the order ends, with fewer visits than asked for.
            So an order ends under any policy.
    """

    state: int
    action: int
    times: int
    policy: IntArray
    max_journey: int
    max_cuts: int = 1000


NO_GOAL: Final = -1
"""In place of the goal of episodes that all run to their horizon."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """Run a policy from the initial state towards a goal, at most `times` times.

    An episode starts with a RESET unless the agent stands in the initial state, and ends at the goal or after `horizon`
    steps. The RESET counts as a step of the world, not of the episode; one that the policy plays counts as both. An
    episode towards the initial state has no steps. One that the system would end by itself, which is not the policy's
    choice, is cut before that: it has not reached the goal.

    Where labels hide something, the agent may stand at the label of the initial state and yet not be where RESET leads.
    Only episodes that all start with a RESET are independent of each other then: see `always_reset`.

    Attributes:
        goal: the state to reach, or NO_GOAL.
        times: the largest number of episodes.
        horizon: the number of steps after which an episode ends.
        policy: the action to play, by state, [n], or by step and state, [horizon, n]; RESET_ACTION resets, and so
            does the agent in every state from n on.
        allowance, slack: stop once the steps of the first j episodes exceed `j * allowance + slack`.
        always_reset: whether an episode starts with a RESET even where the agent stands in the initial state.
    """

    goal: int
    times: int
    horizon: int
    policy: IntArray
    allowance: float = math.inf
    slack: float = math.inf
    always_reset: bool = False


@dataclass(frozen=True, eq=False)
class Trials:
    """Play a policy from the initial state until it resets, `times` times.

    A trial starts with a RESET unless the agent stands in the initial state. It ends where the policy resets, which is
    the RESET of the next trial, or after `horizon` steps, or where the system would end it by itself. So the number of
    trials that ended in such a state is that of the transitions that led there.

    Attributes:
        times: the number of trials.
        horizon: the number of steps after which a trial ends.
        policy: the action to play, by state, [n], or by step and state, [horizon, n]; RESET_ACTION ends a trial, and so
            does every state from n on. After the last step, that of the last step says where a trial has ended.
        always_reset: whether a trial starts with a RESET even where the agent stands in the initial state; see
            `Episodes`.
        goes_beyond: whether a trial continues in states from n on, where it plays the action that was played there
            least often in this order, of equal ones the first; it ends in those that have none.
        most_steps: no trial begins after this many steps of the order.
    """

    times: int
    horizon: int
    policy: IntArray
    always_reset: bool = False
    goes_beyond: bool = False
    most_steps: int = 2**62


@dataclass(frozen=True, eq=False)
class Tour:
    """Play several pairs, each a number of times, always heading for the nearest one that is outstanding.

    The agent starts where it stands and continues from wherever its actions lead. Transitions on the way count, too.

    - In a state with outstanding plays it plays the outstanding action with the largest remaining share, that is
      outstanding plays divided by plays asked for; of equal ones, the first. Then it chooses a target anew.
    - In another state it heads for a target by the target's policy. It chooses the nearest one with outstanding plays
      when it sets out and after a cut; of equal ones, the first.
    - The order ends with the last play.

    A target is a distinct state among `states`, in the order in which they first appear there: see `targets`.

    Attributes:
        states, actions: the pairs to play, all different, [m] each.
        times: the number of times to play each, at least 1, [m].
        policies: the action to play in each state on the way to each target, [t, n]; RESET_ACTION resets, and so does
            the agent in every state from n on. An array, or `Vectors` if there are very many targets and states.
        distances: the expected steps to each target from each state, [t, n], at least 0 and possibly infinite. They
            only decide which target is nearest. In states from n on they are 1 + distances[:, 0], as the agent resets.
            `Vectors` if the policies are.
        max_journey: the number of steps after which a journey that has not arrived at any play is cut: the agent
            resets, which is a step, and chooses again.
        max_cuts: the number of cut journeys in a row after which the order ends, with fewer plays than asked for.
            So an order ends under any policies.
    """

    states: IntArray
    actions: IntArray
    times: IntArray
    policies: IntArray | Vectors
    distances: FloatArray | Vectors
    max_journey: int
    max_cuts: int = 1000

    @property
    def targets(self) -> IntArray:
        """The distinct states among `states`, in the order in which they first appear there, [t]."""
        distinct, first_places = np.unique(self.states, return_index=True)
        targets: IntArray = distinct[np.argsort(first_places)]
        return targets


@dataclass(frozen=True, eq=False)
class Survey:
    """Play every action of the states near the initial one once, each taken for certain, the nearest first.

    The agent starts where it stands. It believes that an action leads to where it led before, and goes from one action
    that was never played to the next: to the nearest by what it knows, RESET included, that belongs to a state at most
    `max_depth` steps from the initial one. Where a play leads is known from then on, so new states are played in too.

    - Of the ways to the nearest state, the one counts that plays the first action where they part, and RESET last.
    - Of the actions of a state that were never played, the first is played.
    - The order ends when there is none left, after `plays` of them, or when an action led elsewhere than before.

    Attributes:
        states, actions: the pairs that were played before, all different, [m] each.
        successors: where each of them led, [m].
        max_depth: no action is to be played in states farther from the initial one than this many steps.
        plays: the number of pairs to play for the first time, at most.
    """

    states: IntArray
    actions: IntArray
    successors: IntArray
    max_depth: int
    plays: int


Order: TypeAlias = Visit | Episodes | Trials | Tour | Survey


@dataclass(frozen=True, eq=False)
class Answer:
    """What happened while an order was carried out.

    Attributes:
        steps: steps taken, RESET included.
        completed: visits or plays made, or episodes run, or trials, those included that were interrupted after a step.
        arrivals: visits or plays made, or episodes that reached the goal, or trials that ended by their policy.
        travelled: the sum of the lengths of the episodes (those that did not arrive count `horizon`); 0 for other
            orders.
        cut_journeys: the number of journeys that were cut, or of episodes that were, because the system would have
            ended them, or of trials that did not end by their policy.
        pair_states, pair_actions: the pairs drawn from, [m], in the order in which they were first met.
        pair_draws: the number of draws from each, [m].
        entry_pairs: for each transition, in the order in which they were first met, the index of its pair among
            those pairs, [e].
        entry_successors: the state it led to, [e].
        entry_counts: the number of times it was met, [e].
        entry_first_draws: the draw of its pair, counted from 1 within this answer, at which it was first met, [e].
        outcomes: the number of episodes that reached the goal after 0, 1, ..., `horizon` steps, and of those that did
            not, [horizon + 2]; the last includes those that a failing system interrupted, or a limit after their first
            step. Empty for visits and tours.
    """

    steps: int
    completed: int
    arrivals: int
    travelled: int
    cut_journeys: int
    pair_states: IntArray
    pair_actions: IntArray
    pair_draws: IntArray
    entry_pairs: IntArray
    entry_successors: IntArray
    entry_counts: IntArray
    entry_first_draws: IntArray
    outcomes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def transitions(self) -> Iterator[tuple[int, int, int, int]]:
        """Yields state, action, next state and number of draws of each transition met."""
        states, actions = self.pair_states.tolist(), self.pair_actions.tolist()
        for pair, successor, times in zip(
            self.entry_pairs.tolist(), self.entry_successors.tolist(), self.entry_counts.tolist(), strict=True
        ):
            yield states[pair], actions[pair], successor, times


class Miss(Enum):
    """Why an episode has no number of steps to its goal."""

    LATE = "it has not arrived by its horizon"
    ENDED = "a RESET came before the goal"
    CUT = "the system would have ended it before the goal"
    LOST = "what would have come is unknown"


class Restarts(Enum):
    """After which RESETs before the goal an episode continues; each is one of its steps then."""

    NEVER = "it ends at the first RESET"
    CHOSEN = "it continues after RESETs of the policy and in terminal states, and is cut where the system would end it"
    ALWAYS = "it continues after every RESET"


class IncidentKind(Enum):
    """What can happen to a worker; the value is the end of a sentence about it."""

    LOST = "was lost"
    FAILED = "failed"
    SLOW = "is slow"


@dataclass(frozen=True)
class Incident:
    """Something that happened to a worker.

    Attributes:
        kind: what happened.
        worker: the name of the worker.
        message: the details, as far as they are known.
        repeated: whether its work is repeated.
    """

    kind: IncidentKind
    worker: str
    message: str
    repeated: bool = True

    def __str__(self) -> str:
        again = ", its work is repeated" if self.repeated else ""
        return f"a worker {self.kind.value}{again}: {self.message}"


class World(ABC):
    """A system that can be reset and stepped, seen through orders.

    Four members are abstract; the others have defaults.
    """

    @property
    @abstractmethod
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by index; the initial state is the first."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of steps taken so far, RESET included."""

    @abstractmethod
    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal.

        Raises:
            UnknownStateError: no discovered state has this index.
        """

    @abstractmethod
    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and returns the answer to each.

        Orders refer to states discovered before the call. All orders are checked before the first step.

        The random stream of an order depends only on the seed of the world, the number of earlier calls, and the
        index of the order in its call; see `repeatable`.

        Raises:
            InvalidOrderError: an order cannot be carried out. No step was taken.
            OrdersCutError: a limit was reached first; it carries the answers by then. An episode that was cut after its
                first step is among the `outcomes` as one that missed its goal, and not completed.
            WorldError: the system failed or broke its contract.
        """

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:  # noqa: B027 (see below)
        """Takes from now on at most a number of steps of the system, and begins none after a moment.

        Orders that would take more are cut (`OrdersCutError`). A world that does not override this has no limits: a
        driver then looks at its steps and at the clock between rounds only.

        Args:
            steps: the number of steps; None for no limit. A step that fails and the RESET of another system in the
                place of one that failed are steps, too.
            ends: the moment, by the clock of `time.monotonic`. The step in progress is not interrupted.
        """

    @property
    def is_spent(self) -> bool:
        """Whether a limit leaves no room for a step."""
        return False

    @property
    def system_steps(self) -> int:
        """The steps of the system in this process. `restore` does not change them, unlike `steps`.

        They include what no exploration counts: RESETs that checked the start, examinations, and replays of policies.
        """
        return self.steps

    @property
    def steps_by_now(self) -> int:
        """The number of steps, including those of a call in progress as far as known. Safe to read from any thread."""
        return self.steps

    @property
    def repeatable(self) -> bool:
        """Whether the same seed and the same orders always give the same answers."""
        return True

    @property
    def fingerprint(self) -> str | None:
        """A text that two worlds share only if they behave alike, such as a digest of model and seed, or None."""
        return None

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """The sets of states that the system itself names, such as the labels of a model, as functions of a label."""
        return {}

    @property
    def labelling(self) -> Json:
        """How a wrapper labels the states, as JSON to be kept with snapshots; None if labels are the system's own."""
        return None

    @property
    def examinable(self) -> Examinable | None:
        """The world itself, if it steps a system that can be examined and followed outside orders; otherwise None."""
        return None

    def actions_at(self, label: State) -> tuple[Action, ...] | None:
        """Returns the actions of a state that may not have been met, by its label; None if that is not known."""
        try:
            return self.actions_of(list(self.states).index(label))
        except ValueError:
            return None

    @property
    def hearsay(self) -> Collection[int]:
        """The indices of states that only a log has met, and whose actions only the log tells."""
        return ()

    def hear(self, states: Collection[int]) -> None:  # noqa: B027 (a model knows its actions)
        """Takes these for `hearsay` until each of them is met."""

    def keep_batches(self, open_store: Callable[[], Any]) -> None:  # noqa: B027 (most worlds have no batches)
        """Keeps the batches of the call in progress in a store, if the world carries out orders in batches.

        Args:
            open_store: opens the store (see `axplore.workers.distributed.BatchStore`); called only if it is needed.
        """

    @property
    def faults(self) -> Sequence[Fault]:
        """The failures of the system so far. The system was restarted after each."""
        return ()

    @property
    def incidents(self) -> Sequence[Incident]:
        """The incidents of workers so far."""
        return ()

    def close(self) -> None:  # noqa: B027 (a default, not an omission: many worlds hold nothing)
        """Releases the resources of the world, such as processes and connections. May be called more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


NOWHERE: Final = -1
"""The position of an agent in a world that cannot report or restore one."""


@dataclass(frozen=True)
class WorldSnapshot:
    """All that a world needs to resume, apart from its system or model and its seed.

    Attributes:
        labels: the labels of the discovered states, by index.
        actions: the actions of each of them.
        steps: the steps taken.
        calls: the number of calls of `carry_out`.
        position: the index of the state in which the agent stands, or NOWHERE. A system cannot be put into a state, so
            its world resumes with a RESET.
        labelling: how the states are labelled, if a wrapper does that: see `World.labelling`.
    """

    labels: tuple[State, ...]
    actions: tuple[tuple[Action, ...], ...]
    steps: int
    calls: int
    position: int = NOWHERE
    labelling: Json = None


@runtime_checkable
class Resumable(Protocol):
    """A world that can resume where it, or another world with the same system and seed, was interrupted."""

    @property
    def position(self) -> int:
        """The index of the state in which the agent stands; NOWHERE if the world cannot be put there again."""

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot. With the position NOWHERE, the agent resumes in the initial state.

        Raises:
            InvalidSettingError: the snapshot is of another system.
        """


class Watched(World):
    """A world whose system is watched while it is stepped, in this process or by workers.

    The tests of the history ask whether what follows a pair depends on more than the pair.
    """

    @abstractmethod
    def watch_history(self) -> None:
        """Tests from now on, at every step, whether what follows a pair depends on more than the pair."""

    @abstractmethod
    def vary_ages(self) -> None:
        """Resets from now on at random ages, where that disturbs no episode; see `axplore.worlds.renewals`."""

    @property
    @abstractmethod
    def has_alarmed(self) -> bool:
        """Whether a test of the history has found something by its last look."""

    @property
    @abstractmethod
    def history_alarm(self) -> Any:
        """What the tests of the history have found first; None if nothing, or if they are not asked."""

    @property
    @abstractmethod
    def other_alarms(self) -> Sequence[Any]:
        """What each of the tests of the history that alarmed has found so far."""

    @property
    @abstractmethod
    def examined(self) -> Examined:
        """How much the tests of the history have seen."""

    @abstractmethod
    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""

    @abstractmethod
    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot of the same system."""


class Examinable(Watched):
    """A world whose system can be examined, followed and played outside orders.

    None of what is played there is counted as a draw of an order.
    """

    @property
    def examinable(self) -> Self:
        """The world itself."""
        return self

    @abstractmethod
    def relabel(self, view: Callable[[Any], Any] | None) -> None:
        """Sees the system through a view that may label its states otherwise, or without one as it is.

        All states but the initial one are forgotten, and the test of the history begins anew. The next order begins
        with a RESET.

        Args:
            view: returns the adapter to step, given that of the system. It keeps the label of the initial state. It is
                called again for a system that replaces one that failed.
        """

    @abstractmethod
    def walk(self, choose: Callable[[State, tuple[Action, ...]], Action | None]) -> None:
        """Plays, from a RESET on, whatever a function chooses, until that is None or the system fails."""

    @abstractmethod
    def run_episode(
        self, choose: Callable[[State, int], Action | Reset], goal: State, horizon: int, restarts: Restarts
    ) -> Answer:
        """Runs one episode of any policy, which may roll dice or remember, from a RESET towards a goal.

        Args:
            choose: what to play, given the label of the state and the number of steps of the episode so far. It is not
                asked in a terminal state, or where the system would end the episode by itself: there is only RESET.
            goal: the label of the state to reach; it need not have been met.
            horizon: the steps after which the episode ends.
            restarts: after which RESETs the episode continues.

        Returns:
            The transitions and how the episode ended: `completed` is 0 if the system failed, `arrivals` 1 if it reached
            the goal, `cut_journeys` 1 if it was cut where the system would have ended it, and `travelled` its steps.

        Raises:
            OrdersCutError: a limit was reached before the episode was over.
        """

    @abstractmethod
    def borrow_system(self) -> tuple[Any, int | None]:
        """Returns the adapter of the system itself, and the step at which it ends episodes, if any."""

    @abstractmethod
    def note_borrowed(self, steps: int) -> None:
        """Adds steps that a borrower has taken to `system_steps`."""


@runtime_checkable
class Replica(Protocol):
    """A copy of a world that carries out batches of its orders. It uses the state indices of that world."""

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states, by index; the initial state is the first."""

    @property
    def faults(self) -> Sequence[Fault]:
        """The failures of the system so far."""

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a state."""

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Keeps the first `n_kept` states, forgets any others, and appends these, each with its actions."""

    @property
    def system_steps(self) -> int:
        """The steps of the system so far; see `World.system_steps`."""

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        """Takes from now on at most a number of steps, and begins none after a moment; see `World.limit`."""

    def carry_out_batch(self, order: Order, key: Sequence[int], max_faults: int = 0) -> Answer:
        """Carries out an order, or a batch of one, after a RESET, which is a step.

        Args:
            order: the order.
            key: the key of its random stream, see `axplore.worlds.orders.order_seed`.
            max_faults: the number of failures of the system to recover from.

        Raises:
            OrdersCutError: a limit was reached first.
            TooManyFaultsError: the system failed more often than that.
        """

    def close(self) -> None:
        """Releases the resources of the replica. May be called more than once."""


@runtime_checkable
class Replicable(Protocol):
    """A world that workers can replicate, to carry out its orders in parallel."""

    @property
    def max_faults(self) -> int:
        """The number of failures of the system that all replicas together recover from."""

    def replica_factory(self) -> Callable[[], Replica]:
        """Returns a function that makes replicas in any process. cloudpickle must be able to pickle it.

        Raises:
            InvalidSettingError: the world has no factory of its system.
        """


def snapshot_of(world: World) -> WorldSnapshot:
    """Returns the snapshot of a world; for one that is not `Resumable`, what its public members tell."""
    if isinstance(world, Resumable):
        return world.snapshot()
    labels = tuple(world.states)
    actions = tuple(tuple(world.actions_of(number)) for number in range(len(labels)))
    return WorldSnapshot(labels, actions, world.steps, calls=0)


def position_in(world: World) -> int:
    """Returns the index of the state in which the agent of a world stands; NOWHERE if the world does not tell."""
    return world.position if isinstance(world, Resumable) else NOWHERE


def playable(world: World) -> World | None:
    """Returns the world itself, if policies can be played on it and it be as before afterwards; None if not."""
    return world if isinstance(world, Resumable) else None
