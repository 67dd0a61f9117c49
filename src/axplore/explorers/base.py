"""The protocol of explorers: a frozen configuration, an explicit state, three methods, and declared abilities.

`start` returns the state before the first round, `advance` carries out the next round and returns the state after it,
and `finish` turns a state into a result. An explorer owns no loop (see `run`), does no input or output, and keeps
nothing outside its state. A state is a value: no round changes the one that it was given, so a state can be saved,
shown and resumed from at any time, whatever happened since.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar

import numpy as np

from axplore.arguments import optional, refusal, whole
from axplore.assumptions import NOTHING, Assumptions
from axplore.assumptions.applied import applied
from axplore.assumptions.kind import Grown
from axplore.errors import (
    Interrupted,
    InvalidInputError,
    InvalidSettingError,
    OrdersCutError,
    UnknownStateError,
    WorldError,
)
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.goals import ALL, Goal
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.statistics.counts import Transitions, no_counts, rows_of, with_answers, with_order, with_states
from axplore.target import STATES_BOUND, Objective, Target
from axplore.types import RESET_ACTION, Action, BoolArray, FloatArray, IntArray, State
from axplore.worlds.contract import Answer, Order, World

if TYPE_CHECKING:
    from axplore.certificate.promise import PropertyBounds
    from axplore.proofs.bounds import IntervalModel
    from axplore.proofs.evidence import Evidence
    from axplore.proofs.surveys import SurveyEvidence
    from axplore.records.assumed import Assumed
    from axplore.records.properties import PropertyClaim

MOSTLY_NEW: Final = 0.95
"""A pair whose draws led somewhere new in at least this part of the cases has labels without end,"""

OFTEN_NEW: Final = 0.25
LONGER: Final = 4
"""and so has one that was drawn this many times as often, and still does in this part of the cases."""

STARTING: Final = "starting"
"""What an explorer is doing until its first round is over."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplorerState:
    """The state common to all explorers; each explorer adds its own fields.

    Attributes:
        round: k, the current round, counted from 1.
        known: K, the numbers of the states admitted so far, in order of admission; the initial state is the first.
        found_at: the steps of the world at which each was admitted, [|K|].
        frontier: U, the numbers of the other states discovered so far.
        activity: a short description of the last activity.
        stop: why there is nothing left to do, or None.
        failure: what is wrong with the world, if its answers show that; `stop` is then WORLD_FAILED.
    """

    round: int
    known: tuple[int, ...]
    found_at: tuple[int, ...]
    frontier: tuple[int, ...] = ()
    activity: str = STARTING
    stop: StopReason | None = field(default=None)
    failure: str | None = None

    def check(self, actions: Sequence[int]) -> None:
        """Raises InvalidInputError if parts of a state that was read from a file do not fit each other.

        Args:
            actions: the number of actions of each state that the world has met.
        """

    def failed(self: StateT, failure: str) -> StateT:
        """Returns the state of an explorer that gives up because the world's answers cannot be right."""
        return replace(self, stop=StopReason.WORLD_FAILED, failure=failure, activity="giving up: the world failed")


@dataclass(frozen=True, eq=False)
class Logged:
    """What was logged before an exploration that continues from it.

    Attributes:
        counts: the draws.
        unsure: the numbers of states whose actions only the log tells, until they are met.
        steps: the number of transitions, those of RESET included.
    """

    counts: Counts
    unsure: tuple[int, ...]
    steps: int


StateT = TypeVar("StateT", bound=ExplorerState)


class Explorer(ABC, Generic[StateT]):
    """A way to explore a world. Implementations are frozen dataclasses: their fields are the options.

    Three methods are abstract. The rest are abilities, with defaults for an explorer that does not have them.
    """

    state_types: ClassVar[tuple[type[Any], ...]] = (ExplorerState,)
    """The class of its states, then those of their parts that are dataclasses too: all that a checkpoint may hold."""

    if TYPE_CHECKING:  # a field or a property of every explorer, and no attribute of this class

        @property
        def target(self) -> Target:
            """The target of the exploration."""

    @property
    def name(self) -> str:
        """What a configuration is called that was not made by its name."""
        return type(self).__name__

    @property
    def assume(self) -> Assumptions:
        """What it takes for true of the system; nothing, unless it has a field of this name."""
        return NOTHING

    @property
    def goal(self) -> Goal:
        """What is asked for; everything within the radius, unless it has a field of this name."""
        return ALL

    @abstractmethod
    def start(self, world: World) -> StateT:
        """Returns the state before the first step. The world takes none."""

    def start_with(self, logged: Logged, world: World) -> StateT:  # noqa: ARG002
        """Returns the state that begins with what was logged; the world knows its states, in the same order.

        Raises:
            InvalidSettingError: it makes no use of draws that it has not chosen.
        """
        raise InvalidSettingError(
            f"{type(self).__name__} makes no use of a log, because it chooses its draws itself; leave begin_with out, "
            f"or explore with {DEFAULT_EXPLORER!r}"
        )

    @abstractmethod
    def advance(self, state: StateT, world: World) -> StateT:
        """Carries out the next round and returns the state after it; `state.stop` must be None.

        The state that it is given stays as it is.

        Raises:
            OrdersCutError: a limit cut its orders, and it makes no use of a part of them (see `drawn`). The driver then
                keeps the state before.
        """

    @abstractmethod
    def finish(self, state: StateT, world: World) -> Exploration:
        """Returns the result that any state stands for, whether or not the explorer has stopped by itself."""

    def for_workers(self) -> Self:
        """Returns the same explorer with orders that are large enough to be shared among workers."""
        return self

    def retarget(self, target: Target, objective: Objective | None = None) -> Self:
        """Returns the same explorer for another radius, ε or objective, for which its samples so far are of use.

        Raises:
            InvalidSettingError: the samples depend on what was asked for.
        """
        if objective is not None:
            raise InvalidSettingError(f"{type(self).__name__} has one objective only; leave objective out")
        if target != self.target:
            raise InvalidSettingError(
                f"{type(self).__name__} cannot resume with another radius or epsilon: its samples depend on them; "
                "begin a new run"
            )
        return self

    def assuming(self, assumptions: Assumptions) -> Self:
        """Returns the same explorer with these assumptions in place of its own.

        Raises:
            InvalidSettingError: it makes no use of assumptions.
        """
        if not assumptions.nothing:
            raise InvalidSettingError(
                f"{type(self).__name__} makes no use of assumptions; leave assume out, or explore with "
                f"{DEFAULT_EXPLORER!r}"
            )
        return self

    def towards(self, goal: Goal) -> Self:
        """Returns the same explorer for one goal in place of a map of everything within the radius.

        Raises:
            InvalidSettingError: it always makes a map.
        """
        if not goal.is_everything:
            raise InvalidSettingError(
                f"{type(self).__name__} makes a map of everything; leave goal out, or explore with {DEFAULT_EXPLORER!r}"
            )
        return self

    def reopen(self, state: StateT, before: Explorer[StateT]) -> StateT:  # noqa: ARG002
        """Returns the state in which the explorer continues after `retarget`, `assuming` or `towards`.

        Args:
            state: how far it had come.
            before: the explorer that had come so far.
        """
        return replace(state, stop=None, activity="asked for something else")

    def refuse_beyond_reach(self, state: StateT, world: World) -> None:
        """Raises InvalidSettingError if a known state lies beyond a target that was made smaller by `retarget`."""

    def bounds(self, state: StateT) -> tuple[FloatArray, FloatArray] | None:  # noqa: ARG002
        """Returns proven lower and upper bounds of the steps to each known state, [n] each; None if it proves none."""
        return None

    def model(self, state: StateT) -> IntervalModel | None:  # noqa: ARG002
        """Returns the frequencies and the confidence region that a state stands for; None if it has no region."""
        return None

    def answers(self, state: StateT) -> tuple[PropertyBounds, ...]:  # noqa: ARG002
        """Returns the bounds of the properties that it was asked about by now; none if it was not."""
        return ()

    def remaining(self, state: StateT, seconds: float) -> Remaining | None:  # noqa: ARG002
        """Returns what is left to do, estimated within about this many seconds; None if it cannot tell."""
        return None

    def forecast(self, probe: ForecastProbe) -> Outlook | None:  # noqa: ARG002
        """Returns what the explorer expects to take, from a probe of the world; None if it makes no forecast."""
        return None


@dataclass(frozen=True, eq=False)
class ForecastProbe:
    """The result of a limited exploration.

    Attributes:
        counts: the counts.
        model: the counts and their confidence region.
        steps: the steps of the world at the end.
        seconds: the total time.
        within_steps, within_seconds: when everything was proven for AX_L; None if it was not.
        ended: whether the explorer had nothing left to do for AX*.
        steps_per_second: the speed of the world in long orders.
    """

    counts: Counts
    model: IntervalModel
    steps: int
    seconds: float
    within_steps: int | None
    within_seconds: float | None
    ended: bool
    steps_per_second: float


@dataclass(frozen=True)
class Outlook:
    """The forecast of an explorer about itself.

    Attributes:
        steps: the estimated total steps.
        note: what the estimate is based on.
        seconds: the estimated time; None if it follows from the steps and the speed of the world.
        needs_states_bound: whether the estimate depends on a bound on the number of states.
        counts_the_probe: whether the estimate accounts for states that an unfinished probe has not found.
    """

    steps: float
    note: str
    seconds: float | None = None
    needs_states_bound: bool = False
    counts_the_probe: bool = False


@dataclass(frozen=True)
class Remaining:
    """An estimate of what is left to do. No proof depends on it.

    Attributes:
        settled: the number of claims that are proven by now.
        claims: the number of all claims to prove of the states met so far.
        steps: about how many more steps that takes,
        fewest, most: and between which numbers they are expected.
        may_grow: whether states are likely to be admitted that bring claims of their own, of which nothing is known.
        taken: the steps that had been taken when the estimate was made.
    """

    settled: int
    claims: int
    steps: float
    fewest: float
    most: float
    may_grow: bool = False
    taken: int = 0


HOOK_REASONS: Final = (StopReason.INTERRUPTED, StopReason.STEP_LIMIT)
"""The reasons with which a hook may end an exploration. A hook cannot claim that something is proven."""


def checked_explorer(given: Any) -> Explorer[Any]:
    """Returns an explorer; refuses anything else."""
    if not isinstance(given, Explorer):
        raise refusal("explorer", given, "a configuration of an axplore.explorers.base.Explorer, or the name of one")
    return given


def required_states_bound(states_bound: int | None) -> int:
    """Returns S, which the paper's guarantees need; raises if it is missing or impossible."""
    if states_bound is None:
        raise InvalidSettingError(
            "states_bound is missing: the constants of the theory contain an upper bound S on the number of states; "
            "give one (only its logarithm enters), or use an experiment preset, which carries no guarantee"
        )
    return int(STATES_BOUND("states_bound", states_bound))


MOST_ATTAINABLE: Final = 1e15
"""The most steps that any run can take: at a hundred million per second they last four months."""


def check_attainable(what: str, amount: float, target: Target, most: float = MOST_ATTAINABLE) -> None:
    """Refuses a target for which an explorer's constants ask for more than any run can do.

    Args:
        what: the name of what is counted.
        amount: the number that the constants ask for.
        target: the target from which they follow.
        most: the largest number that is possible.
    """
    if not amount <= most:
        raise InvalidSettingError(
            f"radius {target.radius:g} and epsilon {target.epsilon:g} ask for {amount:.3g} {what}, and no more than "
            f"{most:.3g} are possible; choose a smaller radius or a larger epsilon"
        )


def action_bound(actions_bound: int | None, rows: Counts) -> int:
    """A, the most actions that any state has beside RESET, which is known and needs no estimate.

    Differs from [DisCo], where A is given: without a bound it is that of the known states.
    """
    met = int(np.diff(rows.state_pairs).max(initial=1))
    if actions_bound is not None and met > actions_bound:
        raise InvalidSettingError(f"actions_bound is {actions_bound}, but a known state has {met} actions")
    return met if actions_bound is None else actions_bound


def first_counts(world: World) -> Counts:
    """Returns counts without a draw, of the initial state alone."""
    return with_known(no_counts(Labels(world.states)), [0], world)


def with_known(counts: Counts, numbers: Iterable[int], world: World) -> Counts:
    """Returns counts that count the transitions out of these newly admitted states too."""
    met = with_order(counts, Labels(world.states))
    return with_states(met, {number: world.actions_of(number) for number in numbers})


def with_drawn(counts: Counts, answers: Iterable[Transitions], world: World) -> Counts:
    """Returns the counts with what a world answered."""
    return with_answers(counts, answers, Labels(world.states))


def frontier_of(counts: Counts) -> tuple[int, ...]:
    """U: the numbers of the successors met outside the known set, ascending."""
    return tuple(sorted(set(counts.successors.tolist()) - set(counts.states.tolist())))


def endless_pairs(rows: Counts, draws: int) -> BoolArray:
    """Returns which pairs lead somewhere new again and again, so that no number of draws would end it, [P].

    These are pairs that were drawn a number of times and led somewhere new nearly every time, and those that were drawn
    `LONGER` times as often and still do in a good part of their draws, as often in the last quarter as in the one
    before. Finitely many successors, or ever rarer ones, show less and less that is new: of N that are equally likely,
    the part e^(-n / N) after n draws. Ten thousand of them would take more draws than anybody has.
    """
    visits, distinct = rows.visits, np.diff(rows.row_offsets)
    endless: BoolArray = (visits >= draws) & (distinct >= MOSTLY_NEW * visits)
    for pair in np.flatnonzero((visits >= LONGER * draws) & (distinct >= OFTEN_NEW / 4 * visits)).tolist():
        quarter = int(visits[pair]) // 4
        first_seen = rows.first_draws[rows.row_offsets[pair] : rows.row_offsets[pair + 1]]
        last, before = (int((((visits[pair] - first_seen) // quarter) == which).sum()) for which in (0, 1))
        endless[pair] |= last >= OFTEN_NEW * quarter and last + 2.0 * math.sqrt(last + before) >= before
    return endless


def assumed_of(
    assume: Assumptions, assumed: Assumed | None, rows: Counts, world: World, before: Counts | None = None
) -> Assumed | None:
    """Returns what is assumed of every counted pair; None if nothing is.

    Args:
        assume: what is declared.
        assumed: what is assumed of each pair of the counts before; None if it was not looked at.
        rows: what was counted.
        world: has the labels.
        before: the counts before; the same when not given.
    """
    if assume.nothing or (assumed is not None and (before is None or before is rows)):
        return assumed
    pairs = [(world.states[number], action) for number in rows.states.tolist() for action in world.actions_of(number)]
    return applied(assume, assumed, Grown(rows, None if assumed is None else before, pairs, world.states))


def estimates_of(rows: Counts) -> FloatArray:
    """p̂(s'|s,a) = N(s,a,s')/N(s,a) of each transition met, [E]."""
    estimates: FloatArray = rows.counts / rows.visits[rows.entry_pairs]
    return estimates


def policy_by_number(policy: IntArray, known: tuple[int, ...]) -> IntArray:
    """Returns a policy by index in the known set, [m] or [H, m], as one by number in the world, [n] or [H, n]."""
    numbers = np.array(known[: policy.shape[-1]])
    by_number = np.full((*policy.shape[:-1], numbers.max() + 1), RESET_ACTION, dtype=np.int64)
    by_number[..., numbers] = policy
    return by_number


@dataclass(frozen=True, eq=False)
class Exploration:
    """The states that an explorer found, and the way to each of them.

    Attributes:
        states: the labels of the controllable states, in order of admission; the initial state is the first, [k].
        numbers: their numbers in the world, [k].
        found_at: the steps of the world at which each was admitted, [k].
        policies: for each state as the goal, what to play in the first m of `states`, [m], or by step and state,
            [H, m]: the index among the actions of the state, or RESET_ACTION. Every other state resets, and so
            does the agent after H steps.
        optimistic_steps: the explorer's optimistic estimate of the steps to each, [k].
        frontier: the labels of the other states discovered.
        frontier_numbers: their numbers in the world.
        counts: the transitions met.
        steps: the steps taken in the world, RESET included.
        rounds: the number of rounds.
        stop: why the exploration ended.
        explorer: the configuration that was run.
        evidence: what is proven of each state; only for the certified explorer.
        survey: the same where every action is assumed to have one outcome; one of the two is None.
        properties: what is proven of properties, where nothing else was asked for; then every counted state is one of
            `states`, in the order of counting.
        assumed: what is assumed of each counted pair; None if nothing is.
        actions: the actions of each of `states` beside RESET, [k].
        failure: how the world failed, if `stop` is WORLD_FAILED.
        logged: the number of draws that come from a log.
    """

    states: tuple[State, ...]
    numbers: IntArray
    found_at: IntArray
    policies: Sequence[IntArray]
    optimistic_steps: FloatArray
    frontier: tuple[State, ...]
    frontier_numbers: IntArray
    counts: Counts
    steps: int
    rounds: int
    stop: StopReason
    explorer: Explorer[Any]
    evidence: Evidence | None = None
    survey: SurveyEvidence | None = None
    properties: tuple[PropertyClaim, ...] = ()
    assumed: Assumed | None = None
    actions: tuple[tuple[Action, ...], ...] = ()
    failure: WorldError | None = None
    logged: int = 0

    def __post_init__(self) -> None:
        proven = self.evidence or self.survey
        if proven is not None and not np.array_equal(proven.numbers, self.all_numbers):
            raise InvalidInputError(
                "the evidence is about other states than the exploration, or about the same in another order; this is "
                "an error of axplore: please report it"
            )

    @property
    def all_numbers(self) -> IntArray:
        """The number of each state by index: the controllable ones, then the frontier."""
        return np.concatenate((self.numbers, self.frontier_numbers))

    def index_of(self, state: State) -> int:
        """Returns the index of a state in `states`."""
        try:
            return self.states.index(state)
        except ValueError:
            raise UnknownStateError(
                f"{state!r} is not among the {len(self.states)} states found to be controllable"
            ) from None

    def policy(self, goal: State) -> IntArray:
        """Returns the policy towards a goal, [m] or [H, m]; see `policies`."""
        return self.policies[self.index_of(goal)]


def exploration_of(
    explorer: Explorer[Any],
    state: ExplorerState,
    world: World,
    *,
    counts: Counts,
    policies: Sequence[IntArray],
    optimistic_steps: FloatArray,
    evidence: Evidence | None = None,
    survey: SurveyEvidence | None = None,
    properties: tuple[PropertyClaim, ...] = (),
    assumed: Assumed | None = None,
    logged: Logged | None = None,
) -> Exploration:
    """Returns the exploration that a state stands for; the other arguments are those of `Exploration`."""
    labels = world.states
    return Exploration(
        states=tuple(labels[number] for number in state.known),
        numbers=np.array(state.known, dtype=np.int64),
        found_at=np.array(state.found_at, dtype=np.int64),
        policies=policies,
        optimistic_steps=optimistic_steps,
        frontier=tuple(labels[number] for number in state.frontier),
        frontier_numbers=np.array(state.frontier, dtype=np.int64),
        counts=counts,
        steps=world.steps,
        rounds=state.round,
        stop=state.stop or StopReason.STEP_LIMIT,
        explorer=explorer,
        evidence=evidence,
        survey=survey,
        properties=properties,
        assumed=assumed,
        actions=tuple(world.actions_of(number) for number in state.known),
        failure=None if state.failure is None else WorldError(state.failure),
        logged=0 if logged is None else _logged_draws(logged.counts, state.known),
    )


def _logged_draws(log: Counts, known: tuple[int, ...]) -> int:
    """The number of draws of a log in states that are known."""
    counted = set(log.states.tolist())
    return int(rows_of(log, np.array([number for number in known if number in counted], dtype=np.int64)).counts.sum())


@dataclass(frozen=True)
class RoundReport:
    """The progress of an exploration after a round.

    Attributes:
        round: the current round, counted from 1.
        known: the number of states known to be controllable.
        frontier: the number of others discovered.
        steps: steps taken in the world so far.
        activity: a short description of the last activity.
        state: the state of the explorer, for more details.
        remaining: the last estimate of what is left to do, which may be some seconds old; None if there is none.
        speed: the steps per second over the last seconds; None before there is anything to measure.
    """

    round: int
    known: int
    frontier: int
    steps: int
    activity: str
    state: Any = field(default=None, repr=False, compare=False)
    remaining: Remaining | None = None
    speed: float | None = None

    @property
    def expected_steps(self) -> tuple[float, float, float] | None:
        """About how many steps the exploration takes in all, and its range; None if unknown."""
        left = self.remaining
        if left is None:
            return None
        about, fewest, most = (max(self.steps, left.taken + steps) for steps in (left.steps, left.fewest, left.most))
        return about, fewest, most

    @property
    def seconds_left(self) -> tuple[float, float, float] | None:
        """The estimated time left at the current speed, and its range; None if unknown."""
        expected, speed = self.expected_steps, self.speed
        if expected is None or not speed:
            return None
        about, fewest, most = ((steps - self.steps) / speed for steps in expected)
        return about, fewest, most


Observer: TypeAlias = Callable[[RoundReport], "StopReason | None"]
"""Called with every report; a reason that it returns ends the exploration."""


def run(
    explorer: Explorer[StateT],
    world: World,
    *,
    state: StateT | None = None,
    max_steps: int | None = None,
    ends: float = math.inf,
    observers: Iterable[Observer] = (),
) -> Exploration:
    """Explores a world until the explorer stops, a limit is reached, an observer ends it, or the world fails.

    Args:
        explorer: the explorer.
        world: the world.
        state: the state to begin with; by default, that of `explorer.start`.
        max_steps: the number of steps of the world that is not exceeded: orders are cut (see `World.limit`).
        ends: the moment after which no step begins, by the clock of `time.monotonic`.
        observers: called in turn before the first round and after each. They end the exploration by returning
            `StopReason.INTERRUPTED` or `STEP_LIMIT`; no other reason is allowed.

    Returns:
        The result of the last state. If the world failed, that is the state before the round that failed,
        `stop` is WORLD_FAILED and `failure` is the world's error.

    Raises:
        Interrupted: a KeyboardInterrupt came; its `state` is the last one.
    """
    optional(whole())("max_steps", max_steps)
    state = explorer.start(world) if state is None else state
    observers = tuple(observers)
    failure: WorldError | None = None
    try:
        world.limit(None if max_steps is None else max(0, max_steps - world.steps), ends)
        try:
            while (state := _observed(state, world, observers, max_steps, ends)).stop is None:
                # Most explorers count what was drawn by then; one that does not begins the round again.
                with suppress(OrdersCutError):
                    state = explorer.advance(state, world)
        except WorldError as error:
            state, failure = replace(state, stop=StopReason.WORLD_FAILED), error
        finally:
            world.limit()
        found = explorer.finish(state, world)
        return found if failure is None else replace(found, failure=failure)
    except KeyboardInterrupt as interruption:
        raise Interrupted(replace(state, stop=state.stop or StopReason.INTERRUPTED)) from interruption


def drawn(orders: Sequence[Order], world: World) -> tuple[list[Answer], bool]:
    """Returns the answers to orders, and whether a limit cut them: then they have what was drawn by then."""
    try:
        return world.carry_out(orders), False
    except OrdersCutError as cut:
        return cut.answers, True


def _observed(state: StateT, world: World, observers: Iterable[Observer], max_steps: int | None, ends: float) -> StateT:
    """Returns the state after every observer has seen it, with a reason to stop if there is one."""
    report = RoundReport(state.round, len(state.known), len(state.frontier), world.steps, state.activity, state)
    reasons = [state.stop, *[_checked_reason(observer(report)) for observer in observers]]
    if time.monotonic() >= ends:
        reasons.append(StopReason.TIME_LIMIT)
    elif world.is_spent or (max_steps is not None and world.steps >= max_steps):
        reasons.append(StopReason.STEP_LIMIT)
    return replace(state, stop=next((reason for reason in reasons if reason is not None), None))


def _checked_reason(reason: object) -> StopReason | None:
    """Returns the reason that a hook returned; refuses those that it may not give."""
    if reason is None or (isinstance(reason, StopReason) and reason in (*HOOK_REASONS, StopReason.LOG_DIFFERS)):
        return reason
    allowed = " or ".join(f"StopReason.{allowed.name}" for allowed in HOOK_REASONS)
    raise refusal("what on_round returned", reason, f"None to continue, or {allowed} to end the exploration")
