"""The result of an exploration: which states can be reached, how, in how many steps, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import checked, collection, file_path, label, optional, real, refusal, whole
from axplore.atlas.policy import Policy
from axplore.atlas.state_report import (
    REFUTED,
    Bounds,
    ByEpisodes,
    StateReport,
    reason_for_member,
    reason_to_leave_out,
    rounded_down,
)
from axplore.errors import UnknownActionError, UnknownStateError
from axplore.explorers.base import StopReason
from axplore.memory import Memory
from axplore.target import Objective, Target
from axplore.types import Action, FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from axplore.atlas.difference import Difference
    from axplore.atlas.journeys import Arrival, Route
    from axplore.atlas.plans import Costs, Plan
    from axplore.atlas.robustness import BreakEven
    from axplore.atlas.transitions import Transitions
    from axplore.atlas.validation import Validation
    from axplore.atlas.verdict import Verdict
    from axplore.atlas.why_not import WhyNot
    from axplore.certificate import Certificate
    from axplore.certificate.assumed import Apart, Assumed
    from axplore.certificate.doubts import FaultRecord, FindingRecord
    from axplore.certificate.episode_records import EpisodeRecord
    from axplore.proofs.bounds import IntervalModel
    from axplore.statistics.counts import CountedRows

MOST_STEPS: Final = 10**7
"""The largest number of steps of `probability`, which stores a number for each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Atlas:
    """Every state found to be reliably reachable, a policy to each, and bounds on its expected steps.

    It needs access to neither the system nor the explorer. It is a collection of its states: `len(atlas)`,
    `state in atlas` and `for state in atlas` work, and a notebook shows it as a map with a table. Goals and states are
    given by their labels. Inside, a state has a number, its index in the order in which the world met it, and a place,
    its index in the order of admission.

    Attributes:
        world: the name of the world.
        explorer: the name of the explorer.
        target: L, ε and δ.
        objective: the objective of the certified explorer; None for other explorers.
        seen: the labels of all states met, by number, [n].
        numbers: the numbers of the states of the atlas, in order of admission; the initial state is the first, [k].
        found_at: the steps taken when each was admitted, [k].
        actions: the actions of each state of the atlas, without RESET, [k].
        policies: for each as the goal, the choices of its `Policy`, [m] or [H, m].
        frontier_numbers: the numbers of the other states met, [f].
        lower, upper, regret: the bounds of the states of the atlas, and then of those of the frontier, [k + f].
        statuses: their statuses, in the same order, [k + f].
        unseen_lower: a lower bound on the expected steps to any state that was never seen.
        proven: whether bounds and statuses are proven; only those of the certified explorer are.
        complete: whether everything that the objective asks for is proven: no state, seen or unseen, is open.
        count_arrays: the transitions met, as the arrays of `counts`.
        steps: the steps taken, RESET included.
        rounds: the number of rounds of the exploration.
        stop: why the exploration ended.
        findings: the findings of the examination before the exploration.
        faults: the failures of the system during the exploration.
        assumed: what is assumed of each pair that was counted; None if nothing is.
        apart: states that were counted while something else was assumed; None if there are none.
        memory: what tells situations apart, if these are the states; None if the outputs of the system are.
        tests: what episodes of single policies prove of states, by place; see `by_episodes`.
        certificate: the certificate, which others can verify; None if nothing is proven.
    """

    world: str
    explorer: str
    target: Target
    objective: Objective | None
    seen: tuple[State, ...]
    numbers: IntArray
    found_at: IntArray
    actions: tuple[tuple[Action, ...], ...]
    policies: Sequence[IntArray]
    frontier_numbers: IntArray
    lower: FloatArray
    upper: FloatArray
    regret: FloatArray
    statuses: tuple[Status, ...]
    unseen_lower: float
    proven: bool
    complete: bool
    count_arrays: Mapping[str, IntArray]
    steps: int
    rounds: int
    stop: StopReason
    findings: tuple[FindingRecord, ...] = ()
    faults: tuple[FaultRecord, ...] = ()
    assumed: Assumed | None = None
    apart: Apart | None = None
    memory: Memory | None = None
    tests: tuple[EpisodeRecord, ...] = ()
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        bounds = self.lower, self.upper, self.regret
        policies = self.policies if isinstance(self.policies, tuple) else ()  # others are made when asked for
        for array in (self.numbers, self.found_at, *policies, self.frontier_numbers, *bounds):
            array.flags.writeable = False

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The labels of the states that can be reached, in order of admission; the initial state is the first."""
        return tuple(self.seen[number] for number in self.numbers.tolist())

    @cached_property
    def frontier(self) -> tuple[StateReport, ...]:
        """The other states seen, in order of discovery, each with the reason why it is not in the atlas."""
        return tuple(self._report(place) for place in range(len(self.states), len(self.statuses)))

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the atlas as a whole: proven, in doubt, unfinished, contradicted or not proven."""
        from axplore.atlas.verdict import verdict_of

        return verdict_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was declared to be known of the system, as clauses that follow "if"; empty if nothing was."""
        return () if self.assumed is None else self.assumed.sentences

    @property
    def is_part(self) -> bool:
        """Whether it is a part of an atlas of a larger radius, which has the certificate; see `within`."""
        return self.proven and self.certificate is None

    @property
    def unseen_ruled_out(self) -> bool:
        """Whether states that were never seen are proven to be beyond the radius."""
        return self.can_be_relied_on and self.unseen_lower > self.target.radius

    @property
    def is_refuted(self) -> bool:
        """Whether later counts refute what was assumed or had been proven, such as that a state is within reach."""
        reach = self.target.radius + self.target.epsilon
        refuted = bool((self.lower[: len(self.numbers)] > reach).any())
        contradicted = (StopReason.CONTRADICTED, StopReason.ASSUMPTION_CONTRADICTED)
        return self.stop in contradicted or (self.proven and refuted)

    @property
    def can_be_relied_on(self) -> bool:
        """Whether bounds and statuses are proven, and no later counts refute them."""
        return self.proven and not self.is_refuted

    @property
    def nothing_missing(self) -> bool:
        """Whether every state outside the atlas, seen or not, is proven to be beyond the radius."""
        others = self.statuses[len(self.numbers) :]
        return self.unseen_ruled_out and all(status is Status.SET_ASIDE for status in others)

    @cached_property
    def pairs(self) -> tuple[tuple[State, Action], ...]:
        """Every state of the atlas with each of its actions, in order of admission, [P]."""
        return tuple(
            (state, action) for state, offered in zip(self.states, self.actions, strict=True) for action in offered
        )

    @cached_property
    def model(self) -> IntervalModel:
        """The frequencies and the confidence region of the transitions, for planning."""
        from axplore.atlas.learned_model import learned_model

        return learned_model(self)

    @cached_property
    def transitions(self) -> Transitions:
        """The transitions from the states of the atlas, by place."""
        from axplore.atlas.transitions import transitions_of

        return transitions_of(self)

    @cached_property
    def counts(self) -> CountedRows:
        """The counts of transitions from the states of the atlas, by number."""
        from axplore.statistics.counts import CountedRows

        return CountedRows(**self.count_arrays)

    def bounds(self, goal: State) -> Bounds:
        """Returns bounds on the expected steps to a state of the atlas."""
        return self._bounds(self.place_of(goal))

    def policy(self, goal: State) -> Policy:
        """Returns the policy to a state of the atlas."""
        return Policy(goal, self.places, self.actions, self.policies[self.place_of(goal)], self.memory)

    def by_episodes(self, goal: State) -> ByEpisodes | None:
        """Returns what episodes prove of a state of the atlas, whatever its labels hide; None if none were played.

        The certified explorer plays episodes where they are cheaper than knowing rows. `axplore.certify` plays them for
        any policy and goal.
        """
        place = self.place_of(goal)
        test = min((test for test in self.tests if test.goal == place), key=lambda test: test.bound, default=None)
        if test is None:
            return None
        choices = np.broadcast_to(np.array(test.policy, dtype=np.int64), (test.horizon, len(test.policy)))
        policy = Policy(goal, self.places, self.actions, choices, self.memory)
        return ByEpisodes(goal, policy, test.bound, test.n_episodes, test.n_arrivals)

    @checked(state=label)
    def describe(self, state: State) -> StateReport:
        """Returns what is known of any state, even one never seen: certified, set aside or open, and why."""
        places = self.places if state in self.places else self._frontier_places
        return self._report(places[state]) if state in places else self._report_of_unseen(state)

    @checked(state=label, action=label)
    def successors(self, state: State, action: Action) -> dict[State, int]:
        """Returns the number of times that an action of a state of the atlas led to each next state."""
        place = self.place_of(state)
        if action not in self.actions[place]:
            raise UnknownActionError(
                f"state {state!r} has no action {action!r}; it has {list(self.actions[place])!r} and RESET"
            )
        counts = self.count_arrays
        (row,) = (counts["states"] == self.numbers[place]).nonzero()
        pair = counts["state_pairs"][row[0]] + self.actions[place].index(action)
        entries = slice(counts["row_offsets"][pair], counts["row_offsets"][pair + 1])
        numbers, met = counts["successors"][entries].tolist(), counts["counts"][entries].tolist()
        return {self.seen[number]: times for number, times in zip(numbers, met, strict=True)}

    def path(self, goal: State) -> Route:
        """Returns the most likely route of the policy to a state of the atlas; an estimate."""
        from axplore.atlas.journeys import most_likely_route

        self.place_of(goal)
        return most_likely_route(self, goal)

    @checked(steps=whole(most=MOST_STEPS))
    def probability(self, goal: State, steps: int) -> Arrival:
        """Returns the probability that the policy reaches a state within a number of steps: an estimate and bounds."""
        from axplore.atlas.journeys import arrival

        self.place_of(goal)
        return arrival(self, goal, steps)

    @checked(radius=real())
    def within(self, radius: float) -> Atlas:
        """Returns the atlas that is proven for a smaller radius; undecided states are open. It has no certificate."""
        from axplore.atlas.learned_model import within

        return within(self, radius)

    @checked(state=label)
    def why_not(self, state: State) -> WhyNot:
        """Returns why a state is not in the atlas: too unlikely, too far, undecided, or never seen."""
        from axplore.atlas.why_not import why_not

        return why_not(self, state)

    @checked(state=label)
    def break_even(self, state: State) -> BreakEven:
        """Returns how wrong every row may be, in total variation, for each claim about a state to hold."""
        from axplore.atlas.robustness import break_even

        return break_even(self, state)

    @checked(reset_cost=real(above=0, most=1))
    def plan(self, goal: State, costs: Costs = None, reset_cost: float = 1.0) -> Plan:
        """Returns a policy to a state of the atlas of small cost, without access to the system ([DisCo] Cor. 1).

        Args:
            goal: a state of the atlas.
            costs: costs above 0 and at most 1: a function of state and action, a table `{(state, action): cost}` in
                which missing pairs cost 1, or numbers in the order of `pairs`, [P]. By default, every step costs 1.
            reset_cost: the cost of RESET, in every state.
        """
        return self.plans([goal], costs, reset_cost)[goal]

    @checked(goals=optional(collection("states of the atlas")), reset_cost=real(above=0, most=1))
    def plans(
        self, goals: Iterable[State] | None = None, costs: Costs = None, reset_cost: float = 1.0
    ) -> dict[State, Plan]:
        """Returns the plans for many goals, by goal; by default, for all states of the atlas."""
        from axplore.atlas.plans import plans_for

        wanted = self.states if goals is None else tuple(goals)
        for goal in wanted:
            self.place_of(goal)
        return plans_for(self, wanted, costs, reset_cost)

    def diff(self, new: Atlas) -> Difference:
        """Returns what changed from this atlas to a newer one: states gained and lost, slower and faster ways.

        Each change says whether it is proven from the bounds of both; see docs/diff.md.
        """
        from axplore.atlas.difference import difference

        if not isinstance(new, Atlas):
            raise refusal("new", new, "an Atlas")
        return difference(self, new)

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame` with a row for each state seen. Needs pandas."""
        from axplore.atlas.state_report import to_pandas

        return to_pandas(self)

    def to_networkx(self) -> Any:
        """Returns a `networkx.MultiDiGraph` of the transitions met. Needs networkx.

        Its nodes are the labels of all states met, with `in_atlas`, `status`, `lower` and `upper`. Each edge is one
        successor of one action: its key is the action, and it has the `count` of the transition and its `frequency`.
        RESET has no edges. The label of the initial state is `graph.graph["initial"]`.
        """
        from axplore.atlas.transitions import to_networkx

        return to_networkx(self)

    def plot(self, goal: State | None = None, ax: Axes | None = None) -> Axes:
        """Draws the map with Matplotlib, and returns the axes.

        Args:
            goal: a state of the atlas, to which the most likely route is drawn.
            ax: the axes to draw on; new ones by default.
        """
        from axplore.atlas.drawing import plot

        if goal is not None:
            self.place_of(goal)
        return plot(self, goal, ax)

    def validate(self, world: Any, episodes: int = 100, **settings: Any) -> Validation:
        """Runs the policies on a world and compares the steps that they take with the bounds.

        Args:
            world: a `World`, or anything else that can be explored except a name.
            episodes: the number of episodes for each goal.
            settings: the options of `axplore.atlas.validation.validate`: `goals`, `horizon`, `false_alarm`, `seed`.
        """
        from axplore.atlas.validation import validate

        return validate(self, world, episodes, **settings)

    @checked(folder=file_path)
    def save(self, folder: str | Path) -> None:
        """Writes the atlas, and its certificate if there is one, into a folder, which is created if necessary."""
        from axplore.atlas.files import save

        save(self, Path(folder))

    @classmethod
    @checked(folder=file_path)
    def load(cls, folder: str | Path) -> Atlas:
        """Reads an atlas that `save` wrote; refuses files that are damaged or of an unknown version."""
        from axplore.atlas.files import load

        return load(Path(folder))

    @cached_property
    def places(self) -> dict[State, int]:
        """The place of each state of the atlas in `states`."""
        return {state: place for place, state in enumerate(self.states)}

    @cached_property
    def _frontier_places(self) -> dict[State, int]:
        return {self.seen[number]: len(self.states) + i for i, number in enumerate(self.frontier_numbers.tolist())}

    def place_of(self, goal: State) -> int:
        """Returns the place of a state in `states`."""
        if label("goal", goal) not in self.places:
            raise UnknownStateError(
                f"{goal!r} is not among the {len(self.states)} states of the atlas; `atlas.describe({goal!r})` says why"
            )
        return self.places[goal]

    def _bounds(self, place: int) -> Bounds:
        lower, upper, regret = (float(bounds[place]) for bounds in (self.lower, self.upper, self.regret))
        return Bounds(lower, upper, regret, self.can_be_relied_on)

    def _report(self, place: int) -> StateReport:
        """Returns the report of a state of the atlas or of its frontier."""
        member = place < len(self.states)
        state = self.states[place] if member else self.seen[self.frontier_numbers[place - len(self.states)]]
        status, bounds = self.statuses[place], self._bounds(place)
        if self.is_refuted:
            status, reason = Status.OPEN, REFUTED
        elif not self.proven:
            reason = f"{'Found' if member else 'Left out'} by {self.explorer}, which proves nothing."
        elif place == 0:
            reason = "It is the initial state."
        elif member:
            reason = reason_for_member(status, bounds, self.target)
        else:
            reason = reason_to_leave_out(status, bounds.lower, self.target)
        return StateReport(state, status, bounds, reason, self.by_episodes(state) if member else None)

    def _report_of_unseen(self, state: State) -> StateReport:
        bounds = Bounds(self.unseen_lower, math.inf, math.inf, self.can_be_relied_on)
        # A state may have been met in a call that failed, in which nothing was counted.
        reason = "No transition to it was counted." if state in self.seen else "It was never seen."
        if self.is_refuted:
            reason += f" {REFUTED}"
        elif self.proven:
            reason += (
                f" States never seen take at least {rounded_down(self.unseen_lower)} expected steps through the "
                f"states of the atlas; the radius is {self.target.radius:g}."
            )
        return StateReport(state, Status.SET_ASIDE if self.unseen_ruled_out else Status.OPEN, bounds, reason)

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    @checked(state=label)
    def __contains__(self, state: State) -> bool:
        return state in self.places

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the map, the table and the verdict."""
        from axplore.atlas.state_report import as_html

        return as_html(self)

    def __repr__(self) -> str:
        return (
            f"Atlas({len(self.states)} states for a radius of {self.target.radius:g} around {self.states[0]!r}, "
            f"{self.steps} steps taken, {self.verdict.kind.value})"
        )

    def __str__(self) -> str:
        from axplore.atlas.state_report import as_text

        return as_text(self)
