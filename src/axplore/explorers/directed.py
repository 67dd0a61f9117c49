"""The directed explorer: samples what decides a question, and stops once it is answered.

The question is a property such as `Pmax=? [ !"error" U "thanks" ]`. Every state that is met is counted, unless the
question is decided in it, in the order in which states are met; so the levels of the region are those of
docs/algorithms/questions.md, section 6, and its bounds hold at all times together. What is sampled next is what narrows
the bounds soonest (`axplore.proofs.narrowing`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import structs

from axplore.arguments import real
from axplore.assumptions import NOTHING, Assumptions
from axplore.assumptions.applied import contradicted_pairs, region_given
from axplore.certificate.promise import PropertyBounds
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    Remaining,
    assumed_of,
    drawn,
    endless_pairs,
    exploration_of,
    first_counts,
    with_drawn,
    with_known,
)
from axplore.explorers.registry import DIRECTED
from axplore.goals import Goal
from axplore.labels import decode_label, text_of
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.proofs.chances import Asked, Chance, Question
from axplore.proofs.joint import CLEARLY, JointBall, JointBounds, JointTest, Side
from axplore.proofs.naming import pairs_to_name
from axplore.proofs.narrowing import Narrowing, by_number
from axplore.proofs.property_claims import chance_claim, is_in, named_states
from axplore.proofs.witnesses import EpisodesOfPolicy, Witnessing
from axplore.properties import Property, StateSet, parse_property
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.records.properties import NamedStates, PropertyClaim
from axplore.records.run import StopReason
from axplore.target import NO_RADIUS, Objective, Target
from axplore.types import RESET_ACTION, IntArray
from axplore.worlds.contract import Answer, Order, Trials, World

OPEN, GOAL, BAD = range(3)
"""What a question says of a state: nothing, that it is reached, or that it is to be avoided."""

LONGEST_TRIAL, BEYOND = 20.0, 200
"""A trial is cut after this many times its expected steps, and some more for states that it may meet."""

MOST_PRECISE: Final = 1e-6
"""The smallest width of bounds that may be asked for."""

WIDEST: Final = 0.5
"""No policy is tested by episodes while the bounds are farther apart: another will be the best one soon."""

POORER: Final = 0.1
"""A test goes on unless its policy is worse than the best one by this part of the width."""

SPREAD: Final = 4.0
"""The steps left are expected to lie between this part of the estimate and this many times as many."""

JOINT_WIDEST: Final = 0.2
"""Pairs are named once the bounds are no farther apart, when it shows which of them matter;"""

NAME_AGAIN, NAME_LATER = 4, 1.5
"""again after this many times as many, when it shows better, and sooner where none were worth naming."""

MANY_NEW: Final = 0.05
"""While a round finds more than this part of all states, plans rest on little, and rounds are short:"""

STEPS_PER_STATE: Final = 10
"""they take about this many steps for each state known so far."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DirectedState(ExplorerState):
    """Where the directed explorer stands; everything else follows from the counts.

    Attributes:
        counts: transitions out of all states that were met, but for those in which the question is decided.
        decided: what the question says of each state that was met, by number: OPEN, GOAL or BAD.
        lower, upper: the bounds of the probability after the last round.
        steps, steps_before: those of the world at that time, and a round before.
        assumed: what is assumed of each counted pair; None if nothing is.
        tests: of policies by episodes, in the order in which they began; the last one is continued.
        joint: pairs that were named before their draws: at most two tests, the earlier one first.
        names_from: the steps from which on pairs are to be named again.
    """

    counts: Counts
    decided: IntArray
    lower: float = 0.0
    upper: float = 1.0
    steps: int = 0
    steps_before: int = 0
    assumed: Assumed | None = None
    tests: tuple[EpisodesOfPolicy, ...] = ()
    joint: tuple[JointTest, ...] = ()
    names_from: int = 0

    def check(self, actions: Sequence[int]) -> None:  # noqa: ARG002 (of all explorers)
        """Refuses joint tests that do not fit the counts."""
        for test in self.joint:
            if not test.fits(self.counts):
                raise InvalidInputError("pairs that were named together do not fit what was counted")

    @property
    def next_line(self) -> int:
        """The first line of tests that none has."""
        lines = [test.line for test in self.tests] + [test.line for test in self.joint]
        return 1 + max(lines, default=0)


@dataclass(frozen=True)
class Functions:
    """Sets of states that functions of a label give, by name; no file holds them."""

    by_name: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Directed(Explorer[DirectedState]):
    """The directed explorer.

    Attributes:
        target: ε is the width of the bounds at which it stops; a bound that is asked about may be decided before. There
            is no radius (`NO_RADIUS`).
        question: a property, see `axplore.properties`.
        named: sets of states that the question names, as JSON: the labels by name.
        functions: the same as functions of a label; a run cannot be kept with these.
        assume: what is taken for true of the system; see docs/assumptions.md.
        growth: no round takes more than about this part of the steps so far.
        least_round: nor fewer steps than this.
        parts: the number of policies that are sampled in a round.
        endless_draws: a pair with this many draws, nearly all of which led somewhere new, ends the exploration.
    """

    state_types = (DirectedState, Assumed, EpisodesOfPolicy, JointTest, Side)

    target: Target
    question: str = ""
    named: str = "{}"
    functions: Functions | None = None
    assume: Assumptions = NOTHING
    growth: float = 0.1
    least_round: int = 1000
    parts: int = 8
    endless_draws: int = 1000

    @property
    def name(self) -> str:
        """What it is called."""
        return DIRECTED

    @cached_property
    def asks(self) -> Property:
        """The question."""
        if not self.question:
            raise InvalidSettingError(
                f"the explorer {DIRECTED!r} needs a question: ask it with `axplore check WORLD PROPERTY` or "
                "`axplore.check(world, property)`"
            )
        asked = parse_property(self.question)
        if asked.of_cost:
            raise InvalidInputError("expected costs are planned with RESET as an action: `axplore plan`, `atlas.plan`")
        return asked

    @cached_property
    def names(self) -> dict[str, StateSet]:
        """The sets that the question may name."""
        sets = {
            name: frozenset(decode_label(label) for label in labels) for name, labels in json.loads(self.named).items()
        }
        return {**sets, **({} if self.functions is None else self.functions.by_name)}

    def _names(self, world: World) -> dict[str, StateSet]:
        """What names stand for: what the world has names for, and the sets that were given with the question.

        A set may hold what the world has a name for, such as an output that stands for several situations.
        """

        def widened(states: StateSet) -> StateSet:
            if callable(states):
                return states
            named = [more for name in map(text_of, states) if (more := world.names.get(name))]
            if not named:
                return states
            return lambda label: is_in(label, states) or any(is_in(label, more) for more in named)

        return {**world.names, **{name: widened(states) for name, states in self.names.items()}}

    def for_workers(self) -> Directed:
        """The same explorer with larger rounds, so that workers are busy."""
        return replace(self, growth=max(self.growth, 0.3), least_round=max(self.least_round, 5000))

    def retarget(self, target: Target, objective: Objective | None = None) -> Directed:
        """Returns the same explorer for another precision, for which all draws and tests are as good as before."""
        if objective is not None or target.radius != self.target.radius:
            raise InvalidSettingError(
                "a question has no radius and no objective; only its epsilon, the precision, changes"
            )
        real(least=MOST_PRECISE, most=1)("epsilon", target.epsilon)
        return replace(self, target=target)

    def towards(self, goal: Goal) -> Directed:
        """Returns the same explorer; a question has no goal beside its own."""
        if not goal.is_everything:
            raise InvalidSettingError("a question has no goal beside its own; ask another with `axplore check`")
        return self

    def assuming(self, assumptions: Assumptions) -> Directed:
        """Returns the same explorer with these assumptions in place of its own."""
        return replace(self, assume=assumptions)

    def reopen(self, state: DirectedState, before: Explorer[DirectedState]) -> DirectedState:
        """Returns the state in which the explorer continues; draws and tests are valid whatever is assumed."""
        reopened = super().reopen(state, before)
        same = isinstance(before, Directed) and before.assume == self.assume
        if same:
            return reopened
        # How often a pair is played at most was bounded with what was assumed before.
        return replace(reopened, assumed=None, joint=tuple(test.without_sides() for test in state.joint))

    def start(self, world: World) -> DirectedState:
        """Knows the initial state only."""
        self.asks  # noqa: B018 (a question that is none is refused before the first step)
        state = DirectedState(
            round=1, known=(0,), found_at=(world.steps,), counts=first_counts(world), steps=world.steps,
            decided=np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        return self._met(state, world)

    def advance(self, state: DirectedState, world: World) -> DirectedState:
        """One round: counts new states, bounds the probability, and samples what narrows the bounds, or stops."""
        state = self._assumed(self._counted(replace(state, round=state.round + 1), world), world, state.counts)
        if state.assumed is not None and len(contradicted_pairs(state.counts, self.target.delta, state.assumed)):
            return replace(state, stop=StopReason.ASSUMPTION_CONTRADICTED, activity="an assumption is contradicted")
        asked = self.asked(state)
        low, high = asked.lower(), asked.upper()
        state = replace(state, lower=low.value, upper=high.value, steps=world.steps, steps_before=state.steps)
        state, joint = self._joined(self._witnessed(state), asked, low, high)
        state = replace(state, activity=self._words(state))
        (bounds,) = self.answers(state)
        if bounds.is_settled(self.target.epsilon):
            return replace(state, stop=StopReason.PROVEN)
        if bounds.upper - bounds.lower <= self.target.epsilon:  # too close to the bound that is asked about
            return replace(state, stop=StopReason.NARROW_ENOUGH)
        if endless_pairs(state.counts, self.endless_draws).any():
            return replace(state, stop=StopReason.ENDLESS_LABELS, activity="labels have no end")
        state, orders = self._orders(state, asked, low, high, world, joint)
        answers, _ = drawn(orders, world)
        counted, fresh = set(state.counts.states.tolist()), []
        # In the order in which states were first played: which rank a state has is known before its first draw.
        for answer in answers:
            fresh += [number for number in dict.fromkeys(answer.pair_states.tolist()) if number not in counted]
            counted.update(fresh)
        after = self._with_counted(state, fresh, world)
        after = replace(after, counts=with_drawn(after.counts, answers, world))
        after = self._tested(self._met(after, world), orders, answers)
        return self._assumed(after, world, state.counts)

    def finish(self, state: DirectedState, world: World) -> Exploration:
        """The states that were counted, and the bounds that follow from the counts."""
        state = self._assumed(state, world)
        asked = self.asked(state)
        labels = [world.states[number] for number in asked.model.numbers.tolist()]
        names = named_states(self._names(world), labels, self.question)
        n_known = asked.model.n_known
        return exploration_of(
            self,
            replace(state, frontier=tuple(asked.model.numbers[n_known:].tolist())),
            world,
            counts=state.counts,
            policies=[np.full(n_known, RESET_ACTION)] * n_known,
            optimistic_steps=np.zeros(n_known),
            properties=(self._claim(state, asked, names),),
            assumed=state.assumed,
        )

    def _claim(self, state: DirectedState, asked: Asked, names: Sequence[NamedStates]) -> PropertyClaim:
        """The claim of both bounds, with the test that proves most if it proves more than the region."""
        low, high = asked.lower(), asked.upper()
        claim = self._with_joint(chance_claim(asked, low, high, self.asks, names), state, asked, low, high)
        tests = [test.record(asked, self.target.delta) for test in state.tests if test.episodes]
        if self.asks.maximise:
            tests = [test for test in tests if low.value < test.bound <= high.value]
        else:
            tests = [test for test in tests if low.value <= test.bound < high.value]
        best = max(tests, key=lambda test: test.bound if self.asks.maximise else -test.bound, default=None)
        return claim if best is None else structs.replace(claim, witness=best)

    def answers(self, state: DirectedState) -> tuple[PropertyBounds, ...]:
        """The bounds of the question after the last round."""
        return (PropertyBounds(self.asks, *self.interval(state)),)

    def model(self, state: DirectedState) -> IntervalModel:
        """Counts and confidence region of all counted states."""
        region = region_given(state.counts, self.target.delta, state.assumed)
        return interval_model(state.counts, region, self.target.value_limit)

    def asked(self, state: DirectedState) -> Asked:
        """The question about the counts of a state."""
        model = self.model(state)
        question = Question(
            state.decided[model.numbers] == GOAL,
            state.decided[model.numbers] == BAD,
            self.asks.within,
            self.asks.maximise,
        )
        return Asked(model, question)

    def interval(self, state: DirectedState) -> tuple[float, float]:
        """The bounds of the probability that is asked for."""
        return self.asks.of_path(state.lower, state.upper)

    def remaining(self, state: DirectedState, seconds: float) -> Remaining | None:  # noqa: ARG002 (of all explorers)
        """Returns about how many more steps it takes, if the width falls like one over the square root of the steps."""
        width, lower, upper = state.upper - state.lower, *self.interval(state)
        if width >= 1.0 or not state.steps:
            return None
        wanted = self.target.epsilon
        if self.asks.comparison is not None:  # a bound is decided about when the middle of the interval says so
            wanted = max(wanted, min(2.0 * abs((lower + upper) / 2 - self.asks.bound), width))
        steps = state.steps * max((width / wanted) ** 2 - 1.0, 0.0)
        return Remaining(0, 1, steps, steps / SPREAD, steps * SPREAD, bool(state.frontier))

    def _words(self, state: DirectedState) -> str:
        (bounds,) = self.answers(state)
        return bounds.interval

    def _orders(
        self, state: DirectedState, asked: Asked, low: Chance, high: Chance, world: World, joint: JointBounds | None
    ) -> tuple[DirectedState, list[Order]]:
        """Trials of the policies that narrow the bounds soonest, and of a witness, for as many steps as a round takes.

        Returns:
            The state, with the test that is continued, and the orders; that of the test is the first, if there is one.
        """
        budget = self._budget(state, world)
        model = asked.model
        closing = region_given(state.counts, self.target.delta, state.assumed).closing
        narrowing = Narrowing(asked, low, high, state.counts.visits, closing, bool(state.tests))
        state = self._named(state, asked, low, high, narrowing)
        if joint is not None:
            (below, low), (above, high) = joint.below, joint.above
            narrowing = Narrowing(asked, low, high, state.counts.visits, closing, below=below, above=above)
        orders: list[Order] = []
        state, episodes, steps = self._witness(
            state, Witnessing(asked, low, high, narrowing, self.target.delta), budget
        )
        if episodes:
            orders.append(state.tests[-1].order(episodes))
            budget -= steps
        if budget < 1.0:
            return state, orders
        for sampling in narrowing.samplings(budget, self.parts):
            policy = by_number(sampling.policy, model.rows.state_pairs[:-1], model.numbers[: model.n_known])
            horizon = math.ceil(min(LONGEST_TRIAL * sampling.steps, budget)) + BEYOND
            most_steps = math.ceil(1.5 * sampling.trials * sampling.steps)
            orders.append(Trials(sampling.trials, horizon, policy, goes_beyond=True, most_steps=most_steps))
        return state, orders

    def _witness(self, state: DirectedState, witnessing: Witnessing, budget: float) -> tuple[DirectedState, int, float]:
        """The state with the test to continue, how many episodes of it pay in this round, and what they take."""
        if state.upper - state.lower > WIDEST or not witnessing.is_possible:
            return state, 0, 0.0
        best = witnessing.tried()
        tested = witnessing.tried(state.tests[-1]) if state.tests else None
        if tested is None or tested.chance + POORER * (state.upper - state.lower) < best.chance:
            new = witnessing.new_test(best, state.next_line, state.steps)
            if new is not None:
                state, tested = replace(state, tests=(*state.tests, new)), best
        if tested is None:
            return state, 0, 0.0
        episodes = witnessing.worth(state.tests[-1], tested, budget)
        return state, episodes, episodes * tested.steps

    def _named(
        self, state: DirectedState, asked: Asked, low: Chance, high: Chance, narrowing: Narrowing
    ) -> DirectedState:
        """The state with another joint test, if there are many more steps than when the last one began."""
        is_possible = (
            self.asks.within is None and asked.model.groups is None and state.upper - state.lower <= JOINT_WIDEST
        )
        if not is_possible or state.steps < state.names_from:
            return state
        line = state.next_line
        pairs = pairs_to_name(asked, low, high, narrowing.weights, state.counts, line, self.target.delta)
        if not len(pairs):
            return replace(state, names_from=math.ceil(NAME_LATER * state.steps))
        joint = (*state.joint[-1:], JointTest.of(state.counts, pairs, line, state.steps))
        return replace(state, joint=joint, names_from=NAME_AGAIN * state.steps)

    def _joined(
        self, state: DirectedState, asked: Asked, low: Chance, high: Chance
    ) -> tuple[DirectedState, JointBounds | None]:
        """The state with what the better joint test proves, and these bounds; None unless they say clearly more."""
        if asked.model.groups is not None:  # a draw of one pair is one of others
            return state, None
        found = [self._joint_bounds(test, state, asked, low, high) for test in state.joint]
        if not found:
            return state, None
        bounds = min(found, key=lambda bounds: bounds.upper - bounds.lower)
        if self._within(state, bounds, self.target.epsilon):  # the plays are bounded as a certificate needs them
            bounds = self._joint_bounds(bounds.test, state, asked, low, high, anew=True)
            found = [bounds if bounds.test.line == other.test.line else other for other in found]
        joint = tuple(other.test for other in found)
        lower, upper = max(state.lower, bounds.lower), min(state.upper, bounds.upper)
        is_clear = bounds.upper - bounds.lower < CLEARLY * (high.value - low.value)
        return replace(state, joint=joint, lower=lower, upper=upper), bounds if is_clear else None

    def _joint_bounds(
        self, test: JointTest, state: DirectedState, asked: Asked, low: Chance, high: Chance, *, anew: bool = False
    ) -> JointBounds:
        ball = JointBall.of(test, state.counts, self.target.delta)
        return JointBounds(asked, low, high, test, ball, state.steps, anew=anew)

    @staticmethod
    def _within(state: DirectedState, bounds: JointBounds, width: float) -> bool:
        return min(state.upper, bounds.upper) - max(state.lower, bounds.lower) <= width

    def _with_joint(
        self, claim: PropertyClaim, state: DirectedState, asked: Asked, low: Chance, high: Chance
    ) -> PropertyClaim:
        """The claim with what the better joint test proves, where that is more."""
        if not state.joint or asked.model.groups is not None:
            return claim
        found = [self._joint_bounds(test, state, asked, low, high, anew=True) for test in state.joint]
        bounds = min(found, key=lambda bounds: bounds.upper - bounds.lower)
        below = bounds.bound_record(is_upper=False) if low.value < bounds.lower <= high.value else None
        above = bounds.bound_record(is_upper=True) if low.value <= bounds.upper < high.value else None
        if below is None and above is None:
            return claim
        return structs.replace(claim, joint=bounds.draws_record(), joint_lower=below, joint_upper=above)

    def _witnessed(self, state: DirectedState) -> DirectedState:
        """The state with the bounds that tests by episodes prove."""
        bounds = [test.bound(self.target.delta, self.asks.maximise) for test in state.tests]
        if self.asks.maximise:
            return replace(state, lower=min(max([state.lower, *bounds]), state.upper))
        return replace(state, upper=max(min([state.upper, *bounds]), state.lower))

    def _tested(self, state: DirectedState, orders: Sequence[Order], answers: Sequence[Answer]) -> DirectedState:
        """The state with the outcomes of the episodes of a round."""
        if not (answers and state.tests and isinstance(orders[0], Trials) and orders[0].always_reset):
            return state
        test, counts = state.tests[-1], state.counts
        if self.asks.maximise:
            after = test.reached(answers[0], np.flatnonzero(state.decided == GOAL))
        else:
            stays = counts.states[np.diff(counts.state_pairs) == 0]
            stays = stays[state.decided[stays] == OPEN]
            after = test.missed(answers[0], np.append(np.flatnonzero(state.decided == BAD), stays))
        return replace(state, tests=(*state.tests[:-1], after))

    def _budget(self, state: DirectedState, world: World) -> float:
        """The steps of a round: fewer than would narrow the bounds more than asked for."""
        left, n_known = self.remaining(state, 0.0), len(state.known)
        most = max(self.least_round, self.growth * world.steps)
        n_new = n_known - int(np.searchsorted(state.found_at, state.steps_before, side="right"))
        if n_new > MANY_NEW * n_known:
            return min(most, self.least_round + STEPS_PER_STATE * n_known)
        return most if left is None else max(min(most, left.steps), self.least_round, 0.01 * world.steps)

    def _met(self, state: DirectedState, world: World) -> DirectedState:
        """The state with what the question says of states met since."""
        fresh, names = world.states[len(state.decided) :], self._names(world)
        in_goal, is_bad = self.asks.masks(fresh, names)
        decided = np.append(state.decided, np.where(in_goal, GOAL, np.where(is_bad, BAD, OPEN)))
        waiting = decided == OPEN
        waiting[state.counts.states] = False
        return replace(state, decided=decided, frontier=tuple(np.flatnonzero(waiting).tolist()))

    def _counted(self, state: DirectedState, world: World) -> DirectedState:
        """The state in which everything that was met is counted, unless the question is decided there."""
        return replace(self._with_counted(state, state.frontier, world), frontier=())

    @staticmethod
    def _with_counted(state: DirectedState, fresh: Sequence[int], world: World) -> DirectedState:
        """The state in which these states are counted, too."""
        found_at = (*state.found_at, *[world.steps] * len(fresh))
        counts = with_known(state.counts, fresh, world)
        return replace(state, counts=counts, known=(*state.known, *fresh), found_at=found_at)

    def _assumed(self, state: DirectedState, world: World, before: Counts | None = None) -> DirectedState:
        """The state with what is assumed of every counted pair; `before` are the counts that it was assumed of."""
        return replace(state, assumed=assumed_of(self.assume, state.assumed, state.counts, world, before))


def directed(target: Target, states_bound: int | None = None) -> Directed:  # noqa: ARG001
    """The directed explorer, which samples what decides a question: `axplore check WORLD PROPERTY` asks one."""
    return Directed(target=replace(target, radius=NO_RADIUS))
