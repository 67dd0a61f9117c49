"""What an explorer may ask of a world, what it gets back, and what else a world can declare that it can do.

An explorer never steps an environment. It gives *orders*, and a world carries them out and answers with the
transitions it met, counted. States are numbered in the order of discovery, the initial state is 0, and an action
is its index among the state's own actions. RESET is no action of the world: it is always there, known, and one step.

A world is a subclass of `World` with four members; the others have defaults. A world that can also be resumed has the
methods of `Resumable`, and one that workers can make for themselves those of `Replicable`.
`axplore.testing.check_world` checks all of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from axplore.labels import shortened
from axplore.types import Action, FloatArray, IntArray, State


@dataclass(frozen=True, eq=False)
class Visit:
    """Go to a state by a policy and play an action there, so many more times.

    The agent starts where it stands, and goes on from wherever the action leads. On the way every transition counts.

    By a policy that depends on the step, every journey starts in the initial state: with a RESET unless the agent
    stands there. That RESET counts as a step of the world, not of the journey. It is also the one that cuts a journey,
    so that a journey cut in the initial state takes none. A journey to the initial state has no steps.

    Attributes:
        state: the state to visit.
        action: what to play there.
        times: how often.
        policy: what to play on the way by state, [n], or by step and state, [max_journey, n]; RESET_ACTION resets, and
            so does every state from n on.
        max_journey: a journey that has not arrived after so many steps is cut: the agent resets, which is a step, and
            sets out again.
        max_cuts: after so many cut journeys in a row the order ends, with fewer visits than asked for. So it ends
            under any policy.
    """

    state: int
    action: int
    times: int
    policy: IntArray
    max_journey: int
    max_cuts: int = 1000


@dataclass(frozen=True, eq=False)
class Episodes:
    """Run a policy from the initial state towards a goal, so many times.

    An episode starts with a RESET unless the agent stands in the initial state, and ends at the goal or after `horizon`
    steps. The RESET counts as a step of the world, not of the episode; one that the policy plays counts as both. An
    episode towards the initial state has no steps.

    Attributes:
        goal: the state to reach.
        times: how many episodes at most.
        horizon: the steps after which an episode ends.
        policy: what to play by state, [n], or by step and state, [horizon, n]; RESET_ACTION resets, and so does every
            state from n on.
        allowance, slack: stop once the steps of the first j episodes exceed `j * allowance + slack`.
    """

    goal: int
    times: int
    horizon: int
    policy: IntArray
    allowance: float = math.inf
    slack: float = math.inf


@dataclass(frozen=True, eq=False)
class Tour:
    """Play several pairs so many more times each, going from one to the next by the nearest way.

    The agent starts where it stands, and goes on from wherever its actions lead. On the way every transition counts.

    - In a state with outstanding plays it plays the outstanding action with the largest remaining share, that is plays
      outstanding by plays asked for; of equal ones, the first in the order. Then it chooses a target anew.
    - In another state it heads for a target by the target's policy. It chooses the nearest one with outstanding plays
      when it sets out and after a cut; of equal ones, the first.
    - The order ends with the last play.

    A target is a distinct state among `states`, in the order in which they first appear there: see `targets`.

    Attributes:
        states, actions: the pairs to play, all different, [m] each.
        times: how often to play each, at least once, [m].
        policies: what to play in each state on the way to each target, [t, n]; RESET_ACTION resets, and so does every
            state from n on.
        distances: the expected steps to each target from each state, [t, n], at least 0 and possibly infinite. They
            only choose the nearest. Where nothing is planned they are 1 + distances[:, 0], as the agent resets there.
        max_journey: a journey that has not arrived at any play after so many steps is cut: the agent resets, which is
            a step, and chooses again.
        max_cuts: after so many cut journeys in a row the order ends, with fewer plays than asked for. So it ends
            under any policies.
    """

    states: IntArray
    actions: IntArray
    times: IntArray
    policies: IntArray
    distances: FloatArray
    max_journey: int
    max_cuts: int = 1000

    @property
    def targets(self) -> IntArray:
        """The distinct states among `states`, in the order in which they first appear there, [t]."""
        distinct, first_places = np.unique(self.states, return_index=True)
        targets: IntArray = distinct[np.argsort(first_places)]
        return targets


Order: TypeAlias = Visit | Episodes | Tour


@dataclass(frozen=True, eq=False)
class Answer:
    """What happened while an order was carried out.

    Attributes:
        steps: steps taken, RESET included.
        completed: visits or plays made, or episodes run.
        arrivals: visits or plays made, or episodes that reached the goal.
        travelled: the sum of the lengths of the episodes (those that did not arrive count `horizon`); 0 for visits and
            tours.
        cut_journeys: how many journeys were cut.
        pair_states, pair_actions: the pairs drawn from, [m], in the order in which they were first met.
        pair_draws: how often each was drawn, [m].
        entry_pairs: of each transition met, in the order in which they were first met, which of those pairs it
            belongs to, [e].
        entry_successors: where it led, [e].
        entry_counts: how often it was met, [e].
        entry_first_draws: at which draw of its pair, counted from 1 within this answer, it was met first, [e].
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


class FaultKind(Enum):
    """How a system failed; the value is the end of a sentence about it."""

    RAISED = "raised an error"
    TIMED_OUT = "did not answer in time"
    DIED = "ended"
    INVALID = "gave an invalid answer"
    LOST = "was lost with its worker"


@dataclass(frozen=True)
class Fault:
    """One failure of a system, after which it was started again. What it was doing then is left out of the counts.

    A failure at a step may depend on where the step led, and then the counts are biased; so may the loss of a worker,
    with which a whole batch of draws is lost.

    Attributes:
        kind: how it failed.
        message: what it said.
        state: the label of the state in which an action was played; None if it was being reset, or is not known.
        action: the action, likewise.
        steps: the steps of the world before it.
    """

    kind: FaultKind
    message: str
    state: State | None
    action: Action | None
    steps: int

    def __str__(self) -> str:
        if self.action is not None:
            where = f" at action {shortened(self.action)} in state {shortened(self.state)}"
        else:
            where = "" if self.kind is FaultKind.LOST else " at a reset"
        return f"the system {self.kind.value}{where}, after {self.steps} steps: {self.message}"


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
        message: what is known of it.
        repeated: whether its work is done again.
    """

    kind: IncidentKind
    worker: str
    message: str
    repeated: bool = True

    def __str__(self) -> str:
        again = ", its work is done again" if self.repeated else ""
        return f"a worker {self.kind.value}{again}: {self.message}"


class World(ABC):
    """A system that can be reset and stepped, seen through orders.

    Four members are abstract; the rest are defaults for a world that has nothing more to say.
    """

    @property
    @abstractmethod
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by number; the initial state is the first."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of steps taken so far, RESET included."""

    @abstractmethod
    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal.

        Raises:
            UnknownStateError: no discovered state has this number.
        """

    @abstractmethod
    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and answers each.

        An order may name the states discovered before the call. All orders are checked before the first step.

        The random stream of an order depends on the seed of the world, on the number of calls before, and on the
        index of the order in its call, on nothing else; see `repeatable`.

        Raises:
            InvalidOrderError: an order cannot be carried out. No step was taken.
            WorldError: the system failed or broke its contract.
        """

    @property
    def steps_by_now(self) -> int:
        """The steps including those of the call in progress, as far as known; safe to read from another thread."""
        return self.steps

    @property
    def repeatable(self) -> bool:
        """Whether the same seed and the same orders always give the same answers."""
        return True

    @property
    def fingerprint(self) -> str | None:
        """A text that worlds share only if they behave alike, such as a digest of model and seed; None if unknown."""
        return None

    @property
    def faults(self) -> Sequence[Fault]:
        """The failures of the system so far, after each of which it was started again."""
        return ()

    @property
    def incidents(self) -> Sequence[Incident]:
        """What happened to workers so far."""
        return ()

    def close(self) -> None:  # noqa: B027 (a default, not an omission: many worlds hold nothing)
        """Frees what the world holds: processes, connections. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


NOWHERE: Final = -1
"""The position of an agent whose world does not tell it."""


@dataclass(frozen=True)
class WorldSnapshot:
    """How far a world has come: all that it needs to resume, beside its system or model and its seed.

    Attributes:
        labels: of the discovered states, by number.
        actions: of each of them.
        steps: steps taken.
        calls: the number of calls of `carry_out`.
        position: the number of the state in which the agent stands; NOWHERE if the world does not tell. A system cannot
            be put into a state, so its world resumes with a RESET.
    """

    labels: tuple[State, ...]
    actions: tuple[tuple[Action, ...], ...]
    steps: int
    calls: int
    position: int = NOWHERE


@runtime_checkable
class Resumable(Protocol):
    """A world that can resume where it, or another one of the same system and seed, was interrupted."""

    @property
    def position(self) -> int:
        """The number of the state in which the agent stands; NOWHERE if the world cannot be put there again."""

    def snapshot(self) -> WorldSnapshot:
        """Returns how far the world has come."""

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot. With the position NOWHERE, the agent resumes in the initial state.

        Raises:
            InvalidSettingError: the snapshot is of another system.
        """


@runtime_checkable
class Replica(Protocol):
    """What carries out batches of orders for a world, whose numbering of states it takes over."""

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states, by number; the initial state is the first."""

    @property
    def faults(self) -> Sequence[Fault]:
        """The failures of the system so far."""

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a state."""

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Numbers these states, with their actions, from `n_kept` on, and forgets any others from there on."""

    def carry_out_batch(self, order: Order, key: Sequence[int], max_faults: int = 0) -> Answer:
        """Carries out an order, or a batch of one, after a RESET, which is a step.

        Args:
            order: what to do.
            key: of its random stream, see `axplore.worlds.orders.order_seed`.
            max_faults: the number of failures of the system to recover from.

        Raises:
            TooManyFaultsError: the system failed more often.
        """

    def close(self) -> None:
        """Frees what the replica holds. May be called again."""


@runtime_checkable
class Replicable(Protocol):
    """A world that workers can make for themselves, so that they carry out its orders side by side."""

    @property
    def max_faults(self) -> int:
        """The number of failures of the system to recover from, by all replicas together."""

    def replica_factory(self) -> Callable[[], Replica]:
        """Returns a function that makes replicas in any process: cloudpickle must be able to pack it.

        Raises:
            InvalidSettingError: the system exists only once.
        """


def snapshot_of(world: World) -> WorldSnapshot:
    """Returns how far a world has come; of one that cannot be resumed, as far as it tells."""
    if isinstance(world, Resumable):
        return world.snapshot()
    labels = tuple(world.states)
    actions = tuple(tuple(world.actions_of(number)) for number in range(len(labels)))
    return WorldSnapshot(labels, actions, world.steps, calls=0)


def position_in(world: World) -> int:
    """Returns the number of the state in which the agent of a world stands; NOWHERE if the world does not tell."""
    return world.position if isinstance(world, Resumable) else NOWHERE
