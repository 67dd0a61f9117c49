"""The result of an exploration: what can be reached, how, in how many steps, and what is proven of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from axplore.arguments import checked, collection, file_path, label, optional, real, refusal, whole
from axplore.atlas.policy import Policy
from axplore.atlas.state_report import Bounds, StateReport, reason_for_member, reason_to_leave_out, rounded_down
from axplore.errors import UnknownActionError, UnknownStateError
from axplore.explorers.base import StopReason
from axplore.target import Objective, Target
from axplore.types import Action, FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from axplore.atlas.difference import Difference
    from axplore.atlas.journeys import Arrival, Route
    from axplore.atlas.learned_model import Transitions
    from axplore.atlas.plans import Costs, Plan
    from axplore.atlas.validation import Validation
    from axplore.atlas.verdict import Verdict
    from axplore.atlas.why_not import WhyNot
    from axplore.certificate import Certificate
    from axplore.certificate.doubts import FaultRecord, FindingRecord
    from axplore.proofs.bounds import IntervalModel
    from axplore.statistics.counts import CountedRows

MOST_STEPS: Final = 10**7
"""Within which `probability` tells the chance to arrive: it holds a number for each of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Atlas:
    """Every state found to be reliably reachable, the way to each, and bounds on how long it takes.

    It answers without the world and without the explorer. It is a collection of its states: `len(atlas)`,
    `state in atlas` and `for state in atlas` work, and a notebook shows it as a map with a table. Goals and states are
    the world's own labels. Inside, states are numbered in the order in which the world met them.

    Attributes:
        world: what was explored, in words.
        explorer: the name of the explorer.
        target: L, ε and δ.
        objective: what the certified explorer was asked for; None of another explorer.
        seen: the labels of all states met, by number, [n].
        numbers: of the states of the atlas, in order of admission; the initial state is the first, [k].
        found_at: the steps at which each was admitted, [k].
        actions: of each state of the atlas, beside RESET, [k].
        policies: for each as the goal the choices of its `Policy`, [m] or [H, m].
        left_out_numbers: of the other states met, [f].
        lower, upper, regret: the bounds of the states of the atlas, and then of those left out, [k + f].
        statuses: of the same, [k + f].
        unseen_lower: no state that was never seen can be reached in fewer expected steps than this.
        proven: whether bounds and statuses are proven; only those of the certified explorer are.
        complete: whether everything that the objective asks for is proven: no state is open, seen or not.
        count_arrays: the transitions met, as the arrays of `counts`.
        steps: steps taken, RESET included.
        rounds: how many rounds the exploration had.
        stop: why it ended.
        findings: what was found when the system was examined before it was explored.
        faults: failures of the system while it was explored.
        certificate: what a doubter needs; None if nothing is proven.
    """

    world: str
    explorer: str
    target: Target
    objective: Objective | None
    seen: tuple[State, ...]
    numbers: IntArray
    found_at: IntArray
    actions: tuple[tuple[Action, ...], ...]
    policies: tuple[IntArray, ...]
    left_out_numbers: IntArray
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
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        bounds = self.lower, self.upper, self.regret
        for array in (self.numbers, self.found_at, *self.policies, self.left_out_numbers, *bounds):
            array.flags.writeable = False

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The labels of the states that can be reached, in order of admission; the initial state is the first."""
        return tuple(self.seen[number] for number in self.numbers.tolist())

    @cached_property
    def left_out(self) -> tuple[StateReport, ...]:
        """The other states met, in the order in which they were met, each with the reason why it is not in."""
        return tuple(self._standing(place) for place in range(len(self.states), len(self.statuses)))

    @cached_property
    def verdict(self) -> Verdict:
        """What may be said of the atlas as a whole: proven, in doubt, unfinished, contradicted or not proven."""
        from axplore.atlas.verdict import verdict_of

        return verdict_of(self)

    @property
    def is_part(self) -> bool:
        """Whether it was taken from an atlas of a larger radius, which has the certificate; see `within`."""
        return self.proven and self.certificate is None

    @property
    def unseen_ruled_out(self) -> bool:
        """Whether states that were never seen are proven to be beyond the radius."""
        return self.proven and self.unseen_lower > self.target.radius

    @property
    def is_refuted(self) -> bool:
        """Whether a state that was admitted as within reach is proven to be beyond it."""
        reach = self.target.radius + self.target.epsilon
        return self.proven and bool((self.lower[: len(self.numbers)] > reach).any())

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
        """Frequencies and confidence region of the transitions, in the form that planning reads."""
        from axplore.atlas.learned_model import learned_model

        return learned_model(self)

    @cached_property
    def transitions(self) -> Transitions:
        """The transitions out of the states of the atlas, by place."""
        from axplore.atlas.learned_model import transitions_of

        return transitions_of(self)

    @cached_property
    def counts(self) -> CountedRows:
        """The transitions out of the states of the atlas, counted; states by number."""
        from axplore.statistics.counts import CountedRows

        return CountedRows(**self.count_arrays)

    def bounds(self, goal: State) -> Bounds:
        """Between which numbers of expected steps a state of the atlas is reached."""
        return self._bounds(self.place_of(goal))

    def policy(self, goal: State) -> Policy:
        """The way to a state of the atlas."""
        return Policy(goal, self.places, self.actions, self.policies[self.place_of(goal)])

    @checked(state=label)
    def status(self, state: State) -> StateReport:
        """What is known of any state, one that was never seen included: certified, set aside or open, and why."""
        places = self.places if state in self.places else self._places_left_out
        return self._standing(places[state]) if state in places else self._standing_of_unseen(state)

    @checked(state=label, action=label)
    def successors(self, state: State, action: Action) -> dict[State, int]:
        """How often each state came next after an action of a state of the atlas."""
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
        """The most likely way of the policy to a state of the atlas, as states and actions; an estimate."""
        from axplore.atlas.journeys import most_likely_route

        self.place_of(goal)
        return most_likely_route(self, goal)

    @checked(steps=whole(most=MOST_STEPS))
    def probability(self, goal: State, steps: int) -> Arrival:
        """The chance that the policy arrives at a state of the atlas within so many steps: an estimate and bounds."""
        from axplore.atlas.journeys import arrival

        self.place_of(goal)
        return arrival(self, goal, steps)

    @checked(radius=real())
    def within(self, radius: float) -> Atlas:
        """What is proven for a smaller radius, as an atlas; what is undecided there is open. It has no certificate."""
        from axplore.atlas.construction import within

        return within(self, radius)

    @checked(state=label)
    def why_not(self, state: State) -> WhyNot:
        """Why a state is not in: too unlikely, too far by how much, undecided until what, or never seen."""
        from axplore.atlas.why_not import why_not

        return why_not(self, state)

    @checked(reset_cost=real(above=0, most=1))
    def plan(self, goal: State, costs: Costs = None, reset_cost: float = 1.0) -> Plan:
        """A way to a state of the atlas at small cost, without the world ([DisCo] Cor. 1).

        Args:
            goal: a state of the atlas.
            costs: above 0 and at most 1. A function of state and action, a table `{(state, action): cost}` in which
                what is not named costs 1, or numbers in the order of `pairs`, [P]. Steps are counted when not given.
            reset_cost: of RESET, in every state.
        """
        return self.plans([goal], costs, reset_cost)[goal]

    @checked(goals=optional(collection("states of the atlas")), reset_cost=real(above=0, most=1))
    def plans(
        self, goals: Iterable[State] | None = None, costs: Costs = None, reset_cost: float = 1.0
    ) -> dict[State, Plan]:
        """The same for many goals, by goal; for all states of the atlas when none are given."""
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
        """A `pandas.DataFrame` with a row for each state seen. Pandas has to be installed."""
        from axplore.atlas.state_report import to_pandas

        return to_pandas(self)

    def to_networkx(self) -> Any:
        """Returns a `networkx.MultiDiGraph` of the transitions that were met; networkx has to be installed.

        Its nodes are the labels of all states met, with `in_atlas`, `status`, `lower` and `upper`. Each edge is one
        successor of one action: its key is the action, and it has the `count` of the transition and its `frequency`.
        RESET has no edges. The label of the initial state is `graph.graph["initial"]`.
        """
        from axplore.atlas.learned_model import to_networkx

        return to_networkx(self)

    def plot(self, goal: State | None = None, ax: Axes | None = None) -> Axes:
        """Draws the map with Matplotlib, which has to be installed, and returns the axes.

        Args:
            goal: a state of the atlas, to which the most likely way is drawn.
            ax: the axes to draw on; new ones when not given.
        """
        from axplore.atlas.drawing import plot

        if goal is not None:
            self.place_of(goal)
        return plot(self, goal, ax)

    def validate(self, world: Any, episodes: int = 100, **settings: Any) -> Validation:
        """Runs the policies on a world, so many episodes each, and compares the steps they take with the bounds.

        Args:
            world: a `World`, or anything else that can be explored but a name.
            episodes: for each goal.
            settings: of `axplore.atlas.validation.validate`: `goals`, `horizon`, `false_alarm`, `seed`.
        """
        from axplore.atlas.validation import validate

        return validate(self, world, episodes, **settings)

    @checked(folder=file_path)
    def save(self, folder: str | Path) -> None:
        """Writes the atlas, and the certificate if there is one, into a folder, which is made if there is none."""
        from axplore.atlas.files import save

        save(self, Path(folder))

    @classmethod
    @checked(folder=file_path)
    def load(cls, folder: str | Path) -> Atlas:
        """Reads what `save` wrote; refuses files that are damaged or of a version that it does not know."""
        from axplore.atlas.files import load

        return load(Path(folder))

    @cached_property
    def places(self) -> dict[State, int]:
        """The place of each state of the atlas in `states`."""
        return {state: place for place, state in enumerate(self.states)}

    @cached_property
    def _places_left_out(self) -> dict[State, int]:
        return {self.seen[number]: len(self.states) + i for i, number in enumerate(self.left_out_numbers.tolist())}

    def place_of(self, goal: State) -> int:
        """The place of a state in `states`."""
        if label("goal", goal) not in self.places:
            raise UnknownStateError(
                f"{goal!r} is none of the {len(self.states)} states of the atlas; `atlas.status({goal!r})` says why"
            )
        return self.places[goal]

    def _bounds(self, place: int) -> Bounds:
        return Bounds(float(self.lower[place]), float(self.upper[place]), float(self.regret[place]), self.proven)

    def _standing(self, place: int) -> StateReport:
        """Of a state of the atlas or one left out."""
        member = place < len(self.states)
        state = self.states[place] if member else self.seen[self.left_out_numbers[place - len(self.states)]]
        status, bounds = self.statuses[place], self._bounds(place)
        if not self.proven:
            reason = f"{'Found' if member else 'Left out'} by {self.explorer}, which proves nothing."
        elif place == 0:
            reason = "It is the initial state."
        elif member:
            reason = reason_for_member(status, bounds, self.target)
        else:
            reason = reason_to_leave_out(status, bounds.lower, self.target)
        return StateReport(state, status, bounds, reason)

    def _standing_of_unseen(self, state: State) -> StateReport:
        bounds = Bounds(self.unseen_lower, math.inf, math.inf, self.proven)
        # A state may have been met in a call that failed, of which nothing was counted.
        reason = "No transition to it was counted." if state in self.seen else "It was never seen."
        if self.proven:
            reason += (
                f" What was never seen takes at least {rounded_down(self.unseen_lower)} expected steps through the "
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
