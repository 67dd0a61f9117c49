"""Walkers: how an agent that is stepped in Python carries out each kind of order.

A walker is a generator. It yields what to play in the current state, an action or RESET_ACTION, and is sent the index
of the next state; or INTERRUPTED if the system failed and was restarted; or CUT if a limit was reached, so that nothing
was played and the walker must end. It returns the outcome of the order. So one loop steps the system, whatever the
order is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from axplore.errors import UnknownActionError
from axplore.records.vectors import Vectors
from axplore.types import RESET, RESET_ACTION, Action, Reset, State
from axplore.worlds.contract import Episodes, Order, Restarts, Survey, Tour, Trials, Visit
from axplore.worlds.orders import FINELY, LARGEST, NEARBY, DiscoveredStates
from axplore.worlds.renewals import Renewals

INTERRUPTED: Final = -2
"""Sent to a walker instead of a state: the journey is lost, and the agent stands in the initial state."""

CUT: Final = -3
"""Sent to a walker instead of a state: nothing was played, and nothing more can be."""


@dataclass(slots=True)
class Agent:
    """The position of the agent.

    Attributes:
        position: the index of its state.
        steps: the steps taken so far, RESET included.
        limit: the steps from one RESET to the next after which it must be reset, before the system ends the episode by
            itself.
        deadline: the steps after which that is the case.
        last_step: the steps after which it must not be stepped.
        ends: the moment after which it must not be stepped, by the clock of `time.monotonic`; None for no such moment.
        renewals: what chooses the ages at which it is reset without need; None if it never is.
        renewal: the steps before which that is not the case; then `is_due` says whether it is.
        is_returning: whether it is on the way back from such a RESET.
    """

    position: int
    steps: int
    limit: int
    deadline: int
    last_step: int = LARGEST
    ends: float | None = None
    renewals: Renewals | None = None
    renewal: int = LARGEST
    is_returning: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether it must not be stepped any more."""
        return self.steps >= self.last_step or (self.ends is not None and time.monotonic() >= self.ends)

    @property
    def room(self) -> int:
        """The number of steps that it may take."""
        return 0 if self.is_spent else self.last_step - self.steps

    def begin(self) -> None:
        """Stands in the initial state after a RESET."""
        self.position, self.deadline = 0, self.steps + self.limit
        if self.renewals is not None:
            self.renewal = self.renewals.begin(self.steps)

    @property
    def is_due(self) -> bool:
        """Whether it is to be reset without need."""
        if self.renewals is not None and self.steps >= self.renewal:
            self.renewal = self.renewals.due
        return self.steps >= self.renewal

    def renew(self, lost: int) -> int:
        """Returns RESET_ACTION, which is played without need and ends a journey after this many steps."""
        if self.renewals is not None:
            self.renewals.pay(lost)
            self.is_returning = True
        return RESET_ACTION

    def arrive(self, journey: int) -> None:
        """Says that it is where it was going, after this many steps."""
        if self.is_returning and self.renewals is not None:
            self.renewals.pay_way_back(journey)
        self.is_returning = False


class WalkResult(NamedTuple):
    """The result of an order apart from the transitions met; see `Answer`."""

    completed: int
    arrivals: int
    travelled: int
    cut_journeys: int
    outcomes: Sequence[int] = ()


Walker: TypeAlias = Generator[int, int, WalkResult]

Chooser: TypeAlias = Callable[[State, tuple[Action, ...]], Action | None]
"""Given the label of a state and its actions, returns what to play; None ends the walk."""


def walker_of(order: Order, agent: Agent, actions: Sequence[Sequence[Action]]) -> Walker:
    """Returns the walker that carries out an order from where the agent stands."""
    match order:
        case Visit():
            return _visit(order, agent)
        case Episodes():
            return _run_episodes(order, agent)
        case Trials():
            return _run_trials(order, agent, actions)
        case Tour():
            return _tour(order, agent)
        case Survey():
            return _survey(order, agent, actions)


def _visit(order: Visit, agent: Agent) -> Walker:
    staged = order.policy.ndim == 2
    policies: list[list[int]] = order.policy.tolist() if staged else [order.policy.tolist()]
    planned, target, action = order.policy.shape[-1], int(order.state), int(order.action)
    times, max_journey, max_cuts = int(order.times), int(order.max_journey), int(order.max_cuts)
    position = agent.position
    completed = cuts = cuts_in_a_row = journey = 0
    while completed < times and cuts_in_a_row < max_cuts:
        is_late = agent.steps >= agent.deadline
        if staged and journey == 0 and (position != 0 or is_late):
            position = yield RESET_ACTION
        elif is_late or (journey == max_journey and position != target):
            if position != 0 or not staged:
                position = yield RESET_ACTION
            if position != CUT:
                cuts, cuts_in_a_row, journey = cuts + 1, cuts_in_a_row + 1, 0
        elif agent.steps >= agent.renewal and not staged and agent.is_due:
            lost, journey = journey, 0
            position = yield agent.renew(lost)
        elif position == target:
            agent.arrive(journey)
            position = yield action
            if position >= 0:
                completed += 1
                journey = cuts_in_a_row = 0
        else:
            chosen = policies[journey if staged else 0][position] if position < planned else RESET_ACTION
            journey += 1
            position = yield chosen
        if position == INTERRUPTED:
            position = journey = 0
        elif position == CUT:
            break
    return WalkResult(completed, completed, 0, cuts)


def _run_episodes(order: Episodes, agent: Agent) -> Walker:
    staged = order.policy.ndim == 2
    policies: list[list[int]] = order.policy.tolist() if staged else [order.policy.tolist()]
    planned, goal = order.policy.shape[-1], int(order.goal)
    times, horizon = int(order.times), int(order.horizon)
    position = agent.position
    needed = min(horizon, agent.limit)
    completed = arrivals = travelled = cuts = journey = 0
    outcomes = [0] * (horizon + 2)
    while completed < times:
        if journey == 0 and (position != 0 or order.always_reset or agent.steps + needed > agent.deadline):
            position = yield RESET_ACTION
            if position == CUT:
                break
        has_arrived = position == goal
        is_cut = not has_arrived and journey < horizon and agent.steps >= agent.deadline
        if has_arrived or is_cut or journey == horizon:
            arrivals += has_arrived
            cuts += is_cut
            outcomes[journey if has_arrived else -1] += 1
            travelled += journey if has_arrived else horizon
            completed += 1
            journey = 0
            if travelled > completed * order.allowance + order.slack:
                break
            continue
        chosen = policies[journey if staged else 0][position] if position < planned else RESET_ACTION
        journey += 1
        position = yield chosen
        if position == INTERRUPTED:
            outcomes[-1] += 1  # to forget it would favour short episodes, which are interrupted less often
            position = journey = 0
        elif position == CUT:
            outcomes[-1] += journey > 1  # for the same reason; before its first step, nothing is known to be forgotten
            break
    return WalkResult(completed, arrivals, travelled, cuts, outcomes)


def _run_trials(order: Trials, agent: Agent, actions: Sequence[Sequence[Action]]) -> Walker:
    policies: list[list[int]] = order.policy.tolist() if order.policy.ndim == 2 else [order.policy.tolist()]
    planned, last_stage, times, horizon = (
        order.policy.shape[-1],
        len(policies) - 1,
        int(order.times),
        int(order.horizon),
    )
    needed, position = min(horizon, agent.limit), agent.position
    completed = ended = journey = 0
    beyond: dict[int, list[int]] = {}  # how often each action was played where nothing is planned
    last_step = agent.steps + int(order.most_steps)
    while completed < times and (journey > 0 or agent.steps < last_step):
        if journey == 0 and (position != 0 or order.always_reset or agent.steps + needed > agent.deadline):
            position = yield RESET_ACTION
            if position == CUT:
                break
        chosen = policies[min(journey, last_stage)][position] if position < planned else RESET_ACTION
        if order.goes_beyond and position >= planned:
            played = beyond.setdefault(position, [0] * len(actions[position]))
            chosen = played.index(min(played)) if played else RESET_ACTION
        if chosen == RESET_ACTION or journey == horizon or agent.steps >= agent.deadline:
            ended += chosen == RESET_ACTION
            completed += 1
            journey = 0
            continue
        journey += 1
        before, position = position, (yield chosen)
        if before in beyond and position >= 0:
            beyond[before][chosen] += 1
        if position == INTERRUPTED:  # to forget it would favour short trials, which are interrupted less often
            completed += 1
            position = journey = 0
        elif position == CUT:
            completed += journey > 1
            break
    return WalkResult(completed, ended, 0, completed - ended)


def free_episode(
    agent: Agent,
    discovered: DiscoveredStates,
    choose: Callable[[State, int], Action | Reset],
    goal: State,
    horizon: int,
    restarts: Restarts,
) -> Walker:
    """Returns the walker of one episode of any policy; see `Examinable.run_episode`."""
    labels, actions = discovered.labels, discovered.actions
    position = journey = 0
    while labels[position] != goal:
        if journey == horizon:
            return WalkResult(1, 0, horizon, 0)
        offered, chosen = actions[position], RESET_ACTION
        is_late = agent.steps >= agent.deadline
        if is_late and restarts is not Restarts.ALWAYS:
            return WalkResult(1, 0, journey, 1)
        if offered and not is_late:
            chosen = choice_among(offered, choose(labels[position], journey), labels[position])
        if chosen == RESET_ACTION and restarts is Restarts.NEVER:
            return WalkResult(1, 0, journey, 0)
        journey += 1
        position = yield chosen
        if position < 0:
            return WalkResult(0, 0, 0, 0)
    return WalkResult(1, 1, journey, 0)


def choice_among(offered: tuple[Action, ...], action: Action | Reset, state: State) -> int:
    """Returns the index of what a policy plays in a state, or RESET_ACTION; refuses what the state does not offer."""
    if action is RESET:
        return RESET_ACTION
    if action not in offered:
        raise UnknownActionError(
            f"the policy plays {action!r} in state {state!r}, which has {list(offered)!r} and RESET"
        )
    return offered.index(action)


def observed_walk(agent: Agent, discovered: DiscoveredStates, choose: Chooser) -> Walker:
    """Returns the walker that plays what a function chooses; see `SteppedWorld.walk`."""
    position = 0
    while position >= 0:
        offered = discovered.actions[position]
        action = choose(discovered.labels[position], offered)
        if action is None or agent.steps >= agent.deadline:
            break
        position = yield offered.index(action)
    return WalkResult(1, 0, 0, 0)


def _tour(order: Tour, agent: Agent) -> Walker:
    progress = TourProgress(order)
    waiting, actions = progress.waiting, progress.actions
    policies, planned = progress.policies, progress.planned
    times, max_journey, max_cuts = progress.outstanding, int(order.max_journey), int(order.max_cuts)
    position = agent.position
    heading: int | None = None
    cuts = cuts_in_a_row = journey = 0
    while progress.outstanding and cuts_in_a_row < max_cuts:
        target = waiting.get(position)
        if agent.steps >= agent.deadline or (journey == max_journey and target is None):
            position = yield RESET_ACTION
            if position != CUT:
                cuts, cuts_in_a_row, journey, heading = cuts + 1, cuts_in_a_row + 1, 0, None
        elif agent.steps >= agent.renewal and agent.is_due:
            lost, journey, heading = journey, 0, None
            position = yield agent.renew(lost)
        elif target is not None:
            agent.arrive(journey)
            play, state = progress.next_play(target), position
            position = yield actions[play]
            if position >= 0:
                progress.strike_off(play, state)
                heading = None
                journey = cuts_in_a_row = 0
        else:
            journey += 1
            if heading is None:
                heading = progress.nearest_from(position)
            position = yield policies[heading][position] if position < planned else RESET_ACTION
        if position == INTERRUPTED:
            position, journey, heading = 0, 0, None
        elif position == CUT:
            break
    completed = times - progress.outstanding
    return WalkResult(completed, completed, 0, cuts)


class _RowsOf:
    """Policies that are made when they are asked for."""

    def __init__(self, policies: Vectors) -> None:
        self._row = lru_cache(maxsize=64)(lambda target: policies[target].tolist())

    def __getitem__(self, target: int) -> list[int]:
        row: list[int] = self._row(target)
        return row


class TourProgress:
    """What is left of a tour. A target is given by its index in `Tour.targets`.

    Attributes:
        outstanding: the number of plays left.
        actions: the action of each play, [m].
        policies: the action to play in each state on the way to each target, [t][n].
        planned: n, the number of states that the policies cover.
        waiting: the target at each state, if plays are outstanding there.
    """

    __slots__ = (
        "_asked", "_distances", "_left", "_nearest", "_plays_at", "_remaining", "_shares", "actions", "outstanding",
        "planned", "policies", "waiting",
    )  # fmt: skip

    def __init__(self, tour: Tour) -> None:
        targets: list[int] = tour.targets.tolist()
        self.policies = _RowsOf(tour.policies) if isinstance(tour.policies, Vectors) else tour.policies.tolist()
        self.planned = tour.policies.shape[1]
        self.waiting = {state: target for target, state in enumerate(targets)}
        self.actions: list[int] = tour.actions.tolist()
        self._asked: list[int] = tour.times.tolist()
        self._left = list(self._asked)
        self._shares = [1.0] * len(self._asked)
        self._plays_at: list[list[int]] = [[] for _ in targets]
        for play, state in enumerate(tour.states.tolist()):
            self._plays_at[self.waiting[state]].append(play)
        self._remaining = [sum(self._asked[play] for play in plays) for plays in self._plays_at]
        self.outstanding = sum(self._asked)
        self._distances = tour.distances
        # The nearest target stays the nearest until nothing is outstanding there: targets are only ever removed.
        self._nearest: dict[int, int] = {}

    def next_play(self, target: int) -> int:
        """Returns the outstanding play of a target with the largest remaining share; of equal ones the first."""
        return max(self._plays_at[target], key=self._shares.__getitem__)

    def strike_off(self, play: int, state: int) -> None:
        """Records that a play was made in a state where it was outstanding."""
        target = self.waiting[state]
        self._left[play] -= 1
        self._shares[play] = self._left[play] / self._asked[play]
        self._remaining[target] -= 1
        self.outstanding -= 1
        if self._remaining[target] == 0:
            del self.waiting[state]

    def nearest_from(self, state: int) -> int:
        """Returns the nearest target with outstanding plays, of equal ones the first; there must be one."""
        # Where nothing is planned the agent resets, so distances from the initial state, index 0, decide.
        asking = state if state < self.planned else 0
        target = self._nearest.get(asking)
        if target is None or self._remaining[target] == 0:
            open_targets = [target for target, remaining in enumerate(self._remaining) if remaining]
            if self.planned:
                distances = self._distances[:, asking].tolist()
                target = min(open_targets, key=lambda index: float(distances[index]))
            else:
                target = open_targets[0]
            self._nearest[asking] = target
        return target


def _survey(order: Survey, agent: Agent, actions: Sequence[Sequence[Action]]) -> Walker:
    known = SurveyedGraph(order, actions)
    position, completed = agent.position, 0
    route: list[int] = []
    while completed < order.plays:
        if agent.steps >= agent.deadline:
            position, route = (yield RESET_ACTION), []
            if position == CUT:
                break
            continue
        route = route or known.route_to_unplayed(position)
        if not route:
            break
        state, action = position, route.pop()
        position = yield action
        if position == CUT:
            break
        if position == INTERRUPTED:
            position, route = 0, []
        elif action != RESET_ACTION:
            expected = known.leads_to[state].get(action)
            if expected is None:
                completed += 1
                known.note(state, action, position)
            elif expected != position:
                break
    return WalkResult(completed, completed, 0, 0)


class SurveyedGraph:
    """What a survey knows: where actions led, and how deep states are.

    Attributes:
        leads_to: by state and action, the state that it led to.
    """

    def __init__(self, survey: Survey, actions: Sequence[Sequence[Action]]) -> None:
        self._actions = actions
        self._max_depth = int(survey.max_depth)
        self.leads_to: dict[int, dict[int, int]] = {}
        self._depths: dict[int, int] = {}
        self._nearest: dict[int, int] = {}  # from each state the nearest action to be played is at least this far
        known = zip(survey.states.tolist(), survey.actions.tolist(), survey.successors.tolist(), strict=True)
        for state, action, successor in known:
            self.leads_to.setdefault(state, {})[action] = successor
        self._lower_depth(0, 0)

    def note(self, state: int, action: int, successor: int) -> None:
        """Adds where an action led."""
        self.leads_to[state][action] = successor
        self._lower_depth(successor, self._depths[state] + 1)

    def route_to_unplayed(self, position: int) -> list[int]:
        """What to play to get to the nearest action that is to be played, and this action; the last comes first.

        It searches as `find_unplayed` of the kernels does, which says why that takes little time.
        """
        route = self._searched(position, LARGEST, NEARBY)
        bound = self._nearest.get(position, 0)
        while route is None:
            route = self._searched(position, bound, LARGEST)
            bound += 1 if bound < FINELY else bound // 4
        return route

    def _searched(self, position: int, bound: int, most: int) -> list[int] | None:
        """The same by one search, which leaves out what is too far from all; None if all are, or it was given up."""
        reached = {position: (position, RESET_ACTION)}
        steps, queue, is_whole = {position: 0}, deque([position]), True
        while queue:
            here = queue.popleft()
            leads_to = self.leads_to.setdefault(here, {})
            if self._is_open(here):
                route = [next(action for action in range(len(self._actions[here])) if action not in leads_to)]
                while here != position:
                    here, action = reached[here]
                    route.append(action)
                return route
            if len(steps) - len(queue) >= most:
                return None
            for action in (*sorted(leads_to), RESET_ACTION):
                after = 0 if action == RESET_ACTION else leads_to[action]
                if after in reached:
                    continue
                reached[after] = here, action
                if steps[here] + 1 + self._nearest.get(after, 0) > bound:
                    is_whole = False
                else:
                    steps[after] = steps[here] + 1
                    queue.append(after)
        if is_whole:
            return []
        self._nearest.update((state, bound + 1 - taken) for state, taken in steps.items())
        return None

    def _is_open(self, state: int) -> bool:
        """Whether an action of a state is to be played."""
        is_near = self._depths.get(state, self._max_depth + 1) <= self._max_depth
        return is_near and len(self.leads_to[state]) < len(self._actions[state])

    def _lower_depth(self, state: int, depth: int) -> None:
        """Notes that a state is at most this deep, and what follows for those that come after it."""
        waiting = deque([(state, depth)])
        while waiting:
            here, depth = waiting.popleft()
            before = self._depths.get(here, depth + 1)
            if depth < before:
                if here in self._depths and depth <= self._max_depth < before:
                    self._nearest.clear()  # there are actions to be played where there were none
                self._depths[here] = depth
                waiting.extend((after, depth + 1) for after in self.leads_to.setdefault(here, {}).values())
