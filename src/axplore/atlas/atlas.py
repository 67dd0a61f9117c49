"""The result of an exploration: which states can be reached, how, in how many steps, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from axplore import properties
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
from axplore.memory import Memory
from axplore.records.counts import Counts
from axplore.records.run import RunRecord, StopReason
from axplore.target import Objective, Target
from axplore.types import Action, FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from axplore.atlas.by_chance import ByChance
    from axplore.atlas.difference import Difference
    from axplore.atlas.journeys import Arrival, Route
    from axplore.atlas.next_draws import NextDraws
    from axplore.atlas.plans import Costs, Plan
    from axplore.atlas.questions import Checked, Exit, PairCosts
    from axplore.atlas.robustness import BreakEven
    from axplore.atlas.statements import Statements
    from axplore.atlas.validation import Validation
    from axplore.atlas.verdict import Verdict
    from axplore.atlas.why_not import WhyNot
    from axplore.certificate import Certificate
    from axplore.certificate.promise import PropertyBounds
    from axplore.proofs.bounds import IntervalModel
    from axplore.properties import Property
    from axplore.records.assumed import Assumed
    from axplore.records.episodes import EpisodeRecord
    from axplore.records.estimate import Estimate
    from axplore.records.findings import Fault, Finding
    from axplore.records.retired import RetiredStates

MOST_STEPS: Final = 10**7
"""The largest number of steps of `probability`, which stores a number for each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Atlas:
    """Every state found to be reliably reachable, a policy to each, and bounds on its expected steps.

    It needs access to neither the system nor the explorer. It is a collection of its states: `len(atlas)`,
    `state in atlas` and `for state in atlas` work, and a notebook shows it as a map with a table. Goals and states are
    given by their labels. Inside, a state has a number, its index in the order of `counts`, and an
    index in the order of admission.

    It is a certificate, or what an explorer without a proof found, and the record of the run. Everything that it says
    is derived from these, so that it cannot say more than its certificate.

    Attributes:
        source: the certificate, or the estimate of an explorer that proves nothing.
        run: how the exploration went.
        part: what the certificate proves for a smaller radius, if the atlas is such a part; see `within`.
    """

    source: Certificate | Estimate
    run: RunRecord
    part: Statements | None = None

    @cached_property
    def statements(self) -> Statements:
        """What is said of the states that were met."""
        from axplore.atlas.statements import statements_of

        return self.part or statements_of(self.source)

    @property
    def certificate(self) -> Certificate | None:
        """The certificate, which others can verify; None if nothing is proven, and for a part of an atlas."""
        from axplore.certificate import Certificate

        return self.source if isinstance(self.source, Certificate) and self.part is None else None

    @property
    def proven(self) -> bool:
        """Whether bounds and statuses are proven; only those of the certified explorer are."""
        from axplore.records.estimate import Estimate

        return not isinstance(self.source, Estimate)

    @property
    def world(self) -> str:
        """The name of the world."""
        return self.run.world

    @property
    def explorer(self) -> str:
        """The name of the explorer."""
        return self.run.explorer

    @property
    def steps(self) -> int:
        """The steps taken, RESET included."""
        return self.run.steps

    @property
    def rounds(self) -> int:
        """The number of rounds of the exploration."""
        return self.run.rounds

    @property
    def stop(self) -> StopReason:
        """Why the exploration ended."""
        return self.run.stop

    @cached_property
    def found_at(self) -> IntArray:
        """The steps taken when each state of the atlas was admitted, [k]."""
        if self.part is None:
            return self.run.found_at
        from axplore.atlas.statements import statements_of

        admitted = {number: index for index, number in enumerate(statements_of(self.source).numbers.tolist())}
        return self.run.found_at[[admitted[number] for number in self.numbers.tolist()]]

    @property
    def target(self) -> Target:
        """L, ε and δ."""
        return self.statements.target

    @property
    def objective(self) -> Objective | None:
        """The objective of the certified explorer; None for other explorers."""
        return self.statements.objective

    @property
    def numbers(self) -> IntArray:
        """The numbers of the states of the atlas, in order of admission; the initial state is the first, [k]."""
        return self.statements.numbers

    @property
    def frontier_numbers(self) -> IntArray:
        """The numbers of the other states met, [f]."""
        return self.statements.frontier_numbers

    @property
    def policies(self) -> Sequence[IntArray]:
        """For each state as the goal, the choices of its `Policy`, [m] or [H, m]."""
        return self.statements.policies

    @property
    def lower(self) -> FloatArray:
        """Lower bounds of the states of the atlas, and then of those of the frontier, [k + f]."""
        return self.statements.lower

    @property
    def upper(self) -> FloatArray:
        """Upper bounds of the same, [k + f]."""
        return self.statements.upper

    @property
    def regret(self) -> FloatArray:
        """What the policies may lose against the best ones, [k + f]."""
        return self.statements.regret

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses of the same, [k + f]."""
        return self.statements.statuses

    @property
    def unseen_lower(self) -> float:
        """A lower bound on the expected steps to any state that was never seen."""
        return self.statements.unseen_lower

    @property
    def complete(self) -> bool:
        """Whether everything that the objective asks for is proven: no state, seen or unseen, is open."""
        return self.statements.complete

    @property
    def tests(self) -> tuple[EpisodeRecord, ...]:
        """What episodes of single policies prove of states, by index; see `by_episodes`."""
        return self.statements.tests

    @cached_property
    def counts(self) -> Counts:
        """The transitions met; its order is that in which states are numbered."""
        counts = self.source.counts
        return structs.replace(counts, order=counts.order + self.run.uncounted) if self.run.uncounted else counts

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found of the system."""
        return self.source.findings

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The failures of the system during the exploration."""
        return self.source.faults

    @property
    def memory(self) -> Memory | None:
        """What tells situations apart, if these are the states; None if the outputs of the system are."""
        return self.source.memory

    @property
    def assumed(self) -> Assumed | None:
        """What is assumed of each pair that was counted; None if nothing is."""
        return getattr(self.source, "assumed", None)

    @property
    def retired(self) -> RetiredStates | None:
        """States that were counted while something else was assumed; None if there are none."""
        return getattr(self.source, "retired", None)

    @cached_property
    def seen(self) -> tuple[State, ...]:
        """The labels of all states met, by number, [n]."""
        return tuple(self.counts.order)

    @cached_property
    def actions(self) -> tuple[tuple[Action, ...], ...]:
        """The actions of each state of the atlas, without RESET, [k]; none of a state that was not counted."""
        offered = dict(zip(self.counts.states.tolist(), self.counts.actions, strict=True))
        return tuple(tuple(offered.get(number, ())) for number in self.numbers.tolist())

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The labels of the states that can be reached, in order of admission; the initial state is the first."""
        return tuple(self.seen[number] for number in self.numbers.tolist())

    @cached_property
    def frontier(self) -> tuple[StateReport, ...]:
        """The other states seen, in order of discovery, each with the reason why it is not in the atlas."""
        return tuple(self._report(index) for index in range(len(self.states), len(self.statuses)))

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the atlas as a whole: proven, in doubt, unfinished, contradicted or not proven."""
        from axplore.atlas.verdict import verdict_of

        return verdict_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was declared to be known of the system, as clauses that follow "if"; empty if nothing was."""
        from axplore.certificate.assumptions.registry import clauses

        return clauses(self.assumed)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of an atlas of a larger radius, which has the certificate; see `within`."""
        return self.part is not None

    @property
    def unseen_ruled_out(self) -> bool:
        """Whether states that were never seen are proven to be beyond the radius."""
        return self.can_be_relied_on and self.unseen_lower > self.target.radius

    @cached_property
    def is_refuted(self) -> bool:
        """Whether later draws refute what was assumed or had been proven, such as that a state is within reach."""
        reach = self.target.radius + self.target.epsilon
        refuted = bool((self.lower[: len(self.numbers)] > reach).any())
        contradicted = (StopReason.CONTRADICTED, StopReason.ASSUMPTION_CONTRADICTED)
        by_finding = any(finding.refutes for finding in self.findings)
        return self.stop in contradicted or by_finding or (self.proven and refuted)

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
    def transitions(self) -> Counts:
        """The transitions from the states of the atlas, by index: its order is these states, then the frontier."""
        from axplore.atlas.transitions import transitions_of

        return transitions_of(self)

    def bounds(self, goal: State) -> Bounds:
        """Returns bounds on the expected steps to a state of the atlas."""
        return self._bounds(self.index_of(goal))

    def policy(self, goal: State) -> Policy:
        """Returns the policy to a state of the atlas."""
        return Policy(goal, self.indices, self.actions, self.policies[self.index_of(goal)], self.memory)

    def by_episodes(self, goal: State) -> ByEpisodes | None:
        """Returns what episodes prove of a state of the atlas, whatever its labels hide; None if none were played.

        The certified explorer plays episodes where they are cheaper than knowing rows. `axplore.certify` plays them for
        any policy and goal.
        """
        index = self.index_of(goal)
        test = min((test for test in self.tests if test.goal == index), key=lambda test: test.steps, default=None)
        if test is None:
            return None
        actions = test.policy(len(self.states)).whole
        choices = np.broadcast_to(actions, (test.horizon, len(actions)))
        policy = Policy(goal, self.indices, self.actions, choices, self.memory)
        return ByEpisodes(goal, policy, test.steps, test.n_episodes, test.n_arrivals)

    @checked(state=label)
    def describe(self, state: State) -> StateReport:
        """Returns what is known of any state, even one never seen: certified, set aside or open, and why."""
        indices = self.indices if state in self.indices else self._frontier_indices
        return self._report(indices[state]) if state in indices else self._report_of_unseen(state)

    @checked(state=label, action=label)
    def successors(self, state: State, action: Action) -> dict[State, int]:
        """Returns the number of times that an action of a state of the atlas led to each next state."""
        index = self.index_of(state)
        if action not in self.actions[index]:
            raise UnknownActionError(
                f"state {state!r} has no action {action!r}; it has {list(self.actions[index])!r} and RESET"
            )
        rows = self.transitions
        pair = rows.state_pairs[index] + self.actions[index].index(action)
        entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        met = zip(rows.successors[entries].tolist(), rows.counts[entries].tolist(), strict=True)
        return {rows.order[successor]: times for successor, times in met}

    def path(self, goal: State) -> Route:
        """Returns the most likely route of the policy to a state of the atlas; an estimate."""
        from axplore.atlas.journeys import most_likely_route

        self.index_of(goal)
        return most_likely_route(self, goal)

    @checked(steps=whole(most=MOST_STEPS))
    def probability(self, goal: State, steps: int) -> Arrival:
        """Returns the probability that the policy reaches a state within a number of steps: an estimate and bounds."""
        from axplore.atlas.journeys import arrival

        self.index_of(goal)
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

    def by_chance(self) -> tuple[ByChance, ...]:
        """Returns the states outside the atlas that its policies may meet by chance, with estimated probabilities."""
        from axplore.atlas.by_chance import by_chance

        return by_chance(self)

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
            self.index_of(goal)
        return plans_for(self, wanted, costs, reset_cost)

    @checked(within=optional(whole(most=properties.MOST_STEPS)))
    def check(self, reach: Any, avoid: Any = None, within: int | None = None, best: str = "max") -> Checked:
        """Returns bounds of the probability of reaching some states before others, without RESET.

        Args:
            reach: the goal: a state, a set of states, or a function of a state.
            avoid: what may not be met before the goal, likewise.
            within: the number of steps; any number by default.
            best: "max" for the best policy, "min" for what happens whatever is played.
        """
        from axplore.atlas.questions import check

        return check(self, reach, avoid, within, best)

    def cost(self, reach: Any, avoid: Any = None, costs: PairCosts = None) -> Checked:
        """Returns bounds of the least expected cost of surely reaching some states, and no others, without RESET.

        It is infinite if no policy surely arrives. There is an upper bound only where every outcome on the way is known
        to have been seen, as with `min-probability`. With RESET as an action, `plan` has both bounds.

        Args:
            reach: the goal: a state, a set of states, or a function of a state.
            avoid: what may never be met before the goal, likewise.
            costs: a function of state and action, or a table `{(state, action): cost}` in which missing pairs cost 1;
                from 0 to 1e6. By default, every step costs 1.
        """
        from axplore.atlas.questions import cost

        return cost(self, reach, avoid, costs)

    def check_property(self, text: str | Property, names: Mapping[str, Any] | None = None) -> Checked:
        """Returns bounds for a property such as `Pmax=? [ !"error" U<=20 "thanks" ]`, or whether its bound is met.

        Args:
            text: the property, or what `axplore.properties.parse_property` made of it.
            names: the sets of states, or functions of a state, that names in quotation marks stand for; a name that is
                not among them is the label of a state.
        """
        from axplore.atlas.questions import check_property

        return check_property(self, text, names)

    def keep(self, answer: Checked) -> Atlas:
        """Returns the atlas with the answer to a property in its certificate: `save` writes it, `verify` checks it."""
        from axplore.atlas.questions import with_claim

        return with_claim(self, answer.claim)

    @property
    def properties(self) -> tuple[PropertyBounds, ...]:
        """The properties that its certificate answers, with their bounds."""
        return self.statements.properties

    @property
    def goals(self) -> tuple[State, ...] | None:
        """The states that were asked for, as far as they were seen; None if a map of everything was asked for."""
        goals = self.statements.goals
        return None if goals is None else tuple(self.seen[goal] for goal in goals)

    @property
    def reached_goal(self) -> State | None:
        """The nearest of these that is proven to be reached as was asked; None if none is, or a map was asked for."""
        goal = self.statements.reached_goal
        return None if goal is None else self.seen[goal]

    def can_be_left(self) -> tuple[Exit, ...]:
        """Returns for every state whose actions were drawn whether some action leads elsewhere."""
        from axplore.atlas.questions import can_be_left

        return can_be_left(self)

    @checked(confidence=real(least=0.5, most=0.999999))
    def next_draws(self) -> tuple[NextDraws, ...]:
        """Returns which actions to play next to prove what is open, the most urgent first; empty if nothing is open.

        It is the plan of the certified explorer, as if frequencies stayed as they are, for the first few open claims.
        """
        from axplore.atlas.next_draws import next_draws

        return next_draws(self)

    def diff(self, new: Atlas, confidence: float = 0.99) -> Difference:
        """Returns what changed from this atlas to a newer one: states gained and lost, slower and faster ways, rows.

        Each change says whether it is proven from the bounds of both; see docs/diff.md.

        Args:
            new: the newer atlas.
            confidence: that of all actions together that are called changed.
        """
        from axplore.atlas.difference import difference

        if not isinstance(new, Atlas):
            raise refusal("new", new, "an Atlas")
        return difference(self, new, confidence)

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
            self.index_of(goal)
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
    def indices(self) -> dict[State, int]:
        """The index of each state of the atlas in `states`."""
        return {state: index for index, state in enumerate(self.states)}

    @cached_property
    def _frontier_indices(self) -> dict[State, int]:
        return {self.seen[number]: len(self.states) + i for i, number in enumerate(self.frontier_numbers.tolist())}

    def index_of(self, goal: State) -> int:
        """Returns the index of a state in `states`."""
        if label("goal", goal) not in self.indices:
            raise UnknownStateError(
                f"{goal!r} is not among the {len(self.states)} states of the atlas; `atlas.describe({goal!r})` says why"
            )
        return self.indices[goal]

    def _bounds(self, index: int) -> Bounds:
        lower, upper, regret = (float(bounds[index]) for bounds in (self.lower, self.upper, self.regret))
        return Bounds(lower, upper, regret, self.can_be_relied_on)

    def _report(self, index: int) -> StateReport:
        """Returns the report of a state of the atlas or of its frontier."""
        member = index < len(self.states)
        state = self.states[index] if member else self.seen[self.frontier_numbers[index - len(self.states)]]
        status, bounds = self.statuses[index], self._bounds(index)
        if self.is_refuted:
            status, reason = Status.OPEN, REFUTED
        elif not self.proven:
            reason = f"{'Found' if member else 'Left out'} by {self.explorer}, which proves nothing."
        elif index == 0:
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
        elif self.proven and self.objective is not Objective.QUESTION:
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
        return state in self.indices

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the map, the table and the verdict."""
        from axplore.atlas.state_report import as_html

        return as_html(self)

    def __repr__(self) -> str:
        scope = "a question" if self.objective is Objective.QUESTION else f"a radius of {self.target.radius:g}"
        return (
            f"Atlas({len(self.states)} states for {scope} around {self.states[0]!r}, "
            f"{self.steps} steps taken, {self.verdict.kind.value})"
        )

    def __str__(self) -> str:
        from axplore.atlas.state_report import as_text

        return as_text(self)
