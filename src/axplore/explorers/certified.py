"""The certified explorer: AX* with proof, sampling only what blocks a proof.

It keeps a confidence region that holds at all times, admits a state when every model of the region lets a policy reach
it within L + ε expected steps, sets one aside when no model lets any policy reach it within L, and samples what would
decide the others. When no state is open, seen or not, S_L→ ⊆ K ⊆ S_{L+ε}→ with probability 1 - δ; then it samples until
every policy is proven ε-optimal. It needs no bound on the number of states. The proofs are in
docs/algorithms/certified.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import numpy as np

from axplore.assumptions import NOTHING, Assumptions
from axplore.assumptions.applied import contradicted_pairs, is_single, region_given
from axplore.compressed import entries_in, without
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    ForecastProbe,
    Logged,
    Outlook,
    Remaining,
    assumed_of,
    drawn,
    endless_pairs,
    exploration_of,
    first_counts,
    policy_by_number,
    with_drawn,
    with_known,
)
from axplore.goals import ALL, Goal
from axplore.proofs.bounds import WHOLE_UP_TO, IntervalModel, empirical_path, interval_model, may_be_within
from axplore.proofs.claims import (
    Draws,
    ToOptimise,
    ToProve,
    ToReach,
    ToSetAside,
    cheapest_draws,
    draws_to_refute,
    with_indices,
    with_numbers,
)
from axplore.proofs.contradictions import any_contradicted
from axplore.proofs.episode_tests import EpisodePlan, EpisodeTest, EpisodeTests, cheapest_test
from axplore.proofs.evidence import Evidence, gather_evidence
from axplore.proofs.shared_bounds import ProvenClaims
from axplore.proofs.surveys import SurveyEvidence, max_depth, survey_evidence
from axplore.proofs.tested_optimality import WayByTest, begun_test, optimal_by_test, path_to_test, tail_for, way_by_test
from axplore.proofs.travel import Travel, tour_of
from axplore.proofs.ways import among_first
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.records.run import StopReason
from axplore.statistics.confidence import EPISODE_PART, ConfidenceRegion, part_of
from axplore.statistics.counts import counted_indices, rows_of
from axplore.statistics.episodes import Bets
from axplore.statistics.given_rows import Pooled
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray, Status
from axplore.worlds.contract import Episodes, Order, Survey, Tour, World

PLANNED: Final = (1.6, 4.0, 0.8)
"""Plans ask for about this many times the steps that remain; at most, and at least (docs/progress.md has the study)."""

OPTIMAL_MORE: Final = 1.2
"""Near-optimal policies take about this many times the steps that their plans say, so corrected."""

MOST_GROWTH: Final = 1.6
"""Early on, no more states are expected than this multiple of those known."""

DISTANCE: Final = 0.1
"""Where the distance of a state is taken to be, between its bounds."""

RECENT_PLANS: Final = 5
"""Claims that there was no time to plan are estimated from this number of claims planned last."""

LEAST_SURVEY: Final = 1000
"""A round of a survey plays at least this many actions for the first time, and then half as many as all before."""

CLEARLY_CHEAPER: Final = 0.7
"""A policy is proven near-optimal by a test if that takes at most this part of the steps of a proof by draws alone."""

MOST_UNPROVEN: Final = 3
"""Of the frontier states that look nearest, admissions are looked for until this many are not proven."""

DRAWS_ON_THE_WAY: Final = 5
"""The first draws of each pair at most where one goal is asked for: most states are passed on the way to it."""

CLOSING_DRAWS: Final = 3
"""The support of a pair is closed this many draws at a time."""

SOON_CLOSED: Final = 4
"""A support that is closed after at most this many times the first draws is closed before anything is planned."""

SPREAD: Final = 2.0
"""Draws of a class are spread over its pairs that take at most this many times as many steps as the nearest."""

VISIT_PATIENCE: Final = 4
"""A way to a state of a log is given up after this many times the steps within which it is proven to arrive."""

PROBE_ENDED: Final = "the probe came to its end"


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedState(ExplorerState):
    """Where the certified explorer stands; everything else follows from the counts.

    Attributes:
        counts: transitions out of the known states, and of others that were known while something else was assumed.
        proven: claims proven since the known set last changed, each with the number of its goal in place of the
            index, which moves when states are met. They are not looked at again until no other is left; then all are
            proven anew on the counts of that time.
        tests: of policies by episodes.
        assumed: what is assumed of each counted pair; None if nothing is, or every action has one outcome.
        logged: what it began with; None if with nothing.
        evidence: everything that the counts prove, if that was found in the last round; the same is found again where
            it is missing.
    """

    counts: Counts
    proven: frozenset[ToProve] = frozenset()
    tests: EpisodeTests = field(default_factory=EpisodeTests)
    assumed: Assumed | None = None
    logged: Logged | None = None
    evidence: Evidence | None = field(default=None, compare=False, repr=False)

    def check(self, actions: Sequence[int]) -> None:
        """Refuses policies of other states than the known ones, and ties without a class."""
        offered = [actions[number] for number in self.known]
        for test in self.tests:
            plays = zip(test.states.tolist(), test.actions.tolist(), strict=True)
            if not all(0 <= state < len(offered) and 0 <= action < offered[state] for state, action in plays):
                raise InvalidInputError("a test by episodes has a policy that does not fit the known states")
        ties = None if self.assumed is None else self.assumed.ties
        if ties is not None and not all(isinstance(name, tuple) and len(name) == 2 for name in ties.names):
            raise InvalidInputError("an outcome of tied actions has no class")


@dataclass(frozen=True, kw_only=True)
class Certified(Explorer[CertifiedState]):
    """The certified explorer.

    Attributes:
        target: L, ε and δ.
        objective: AX* (`OPTIMAL`), or AX_L (`WITHIN_RADIUS`), which is cheaper.
        first_draws: how often every pair of a newly admitted state is drawn before anything is planned for it.
        growth: no order takes more than about this part of the steps so far, so that plans follow the estimates.
        least_order: nor fewer steps than this, if that many are wanted.
        endless_draws: a pair with this many draws, nearly all of which led somewhere new, ends the exploration: the
            labels have no end, and nothing could be proven of them.
        filled: an order is filled with what proves the next claims up to this part of the steps that it may take.
        by_episodes: whether states may be admitted by tests of a policy on episodes, where that is cheaper.
        assume: what is taken for true of the system; see docs/assumptions.md.
        whole_up_to: with more known states than this, a policy is kept only where it gets from the initial state.
        goal: what is asked for; everything within the radius, unless it is one goal.
    """

    state_types = (CertifiedState, ToReach, ToSetAside, ToOptimise, EpisodeTests, EpisodeTest, Bets, Assumed, Logged)

    target: Target
    objective: Objective = Objective.OPTIMAL
    first_draws: int = 10
    growth: float = 0.06
    least_order: int = 50
    filled: float = 0.3
    endless_draws: int = 1000
    by_episodes: bool = True
    assume: Assumptions = NOTHING
    whole_up_to: int = WHOLE_UP_TO
    goal: Goal = ALL

    @property
    def reach(self) -> float:
        """L + ε, within which an admitted state is proven to be reached."""
        return self.target.radius + self.target.epsilon

    def for_workers(self) -> Certified:
        """The same explorer with rounds large enough to be shared; later ones grow with the steps anyway."""
        return replace(self, least_order=max(self.least_order, 300))

    def retarget(self, target: Target, objective: Objective | None = None) -> Certified:
        """Returns the same explorer for another radius, ε or objective.

        The confidence region depends on the counts, the order of admission and δ alone. So with probability 1 - δ it
        holds at all times, and whatever radius and ε are asked of it later, in the light of anything, what it proves
        for them is true. No admitted state can be taken back: the levels of later states depend on its place.
        """
        return replace(self, target=target, objective=objective or self.objective)

    def assuming(self, assumptions: Assumptions) -> Certified:
        """Returns the same explorer with these assumptions in place of its own."""
        return replace(self, assume=assumptions)

    def towards(self, goal: Goal) -> Certified:
        """Returns the same explorer for another goal, or for everything; see docs/algorithms/goal.md."""
        return replace(self, goal=goal)

    def reopen(self, state: CertifiedState, before: Explorer[CertifiedState]) -> CertifiedState:
        """Returns the state in which nothing is proven yet of what is asked for now.

        Where something else is assumed, all states but the initial one are to be admitted anew. Their counts stay, and
        so do their levels, which go by the order in which they were first counted. Tests by episodes are given up:
        their policies belong to the order in which states were admitted.
        """
        reopened = replace(super().reopen(state, before), proven=frozenset(), evidence=None)
        # Functions that were not handed in again look like no assumption; what they said is in the state.
        by_functions = self.assume.nothing and state.assumed is not None
        if isinstance(before, Certified) and before.assume == self.assume and not by_functions:
            return reopened
        anew = replace(reopened, found_at=state.found_at[:1], assumed=None, tests=state.tests.given_up())
        return self._known_are(anew, state.counts, (0,))

    def refuse_beyond_reach(self, state: CertifiedState, world: World) -> None:
        """Raises if a known state is proven to be beyond L + ε: then not all can ever be proven within it."""
        least_steps, _ = self.bounds(state) if self.assume.all_deterministic else (None, None)
        model = self.model(state)
        for goal in range(1, model.n_known):
            least = least_steps[goal] if least_steps is not None else ToSetAside(goal, self.reach).path(model).at_least
            if least > self.reach:
                raise InvalidSettingError(
                    f"state {world.states[int(model.numbers[goal])]!r} was admitted before and takes at least "
                    f"{least:.6g} expected steps, but radius + epsilon is {self.reach:g}, and what was admitted cannot "
                    "be taken back; go back to the radius and epsilon before, where `atlas.within(radius)` answers for "
                    "a smaller radius, or begin a new run"
                )

    def forecast(self, probe: ForecastProbe) -> Outlook:
        """Returns what the probe took, if it came to its end; else that and the draws that would prove what is open."""
        if self.objective is Objective.WITHIN_RADIUS and probe.within_steps is not None:
            return Outlook(probe.within_steps, PROBE_ENDED, probe.within_seconds, counts_the_probe=True)
        if probe.ended:
            return Outlook(probe.steps, PROBE_ENDED, probe.seconds, counts_the_probe=True)
        if (probe.model.visits == 0).any():
            note = "the probe was too short to tell; give it more steps"
            return Outlook(math.inf, note, math.inf, counts_the_probe=True)
        more = self.remaining_steps(probe.model)
        seconds = probe.seconds * (1 + more / probe.steps)
        return Outlook(probe.steps + more, "the probe and what it left open", seconds, counts_the_probe=True)

    def remaining_steps(self, model: IntervalModel) -> float:
        """Returns about how many more steps would prove everything still open of the known states.

        Claims are proven one after the other; draws for one serve later ones too. States that will be admitted later
        are not counted.
        """
        return sum(plan.travel for plan in self._planned(self._claims_left(model), EpisodeTests(), model))

    def remaining(self, state: CertifiedState, seconds: float) -> Remaining | None:
        """Returns the plans for open claims one after the other, as `remaining_steps` adds them up, and more.

        Where the time does not suffice for all claims, those left are taken to be like those looked at. Plans of draws
        ask for more steps than it takes in the end, because estimates become better on the way; `PLANNED` corrects for
        that. Each state that looks as if it will be admitted counts with the mean steps that those before it took, and
        states that have not been met yet as `_to_come` expects them.
        """
        if self.assume.all_deterministic:
            return None
        model = self.model(state)
        if self._fresh_draws(state, model).any():
            return None
        proven = with_indices(state.proven, model.numbers)
        claims = [claim for claim in self._claims_left(model) if claim not in proven]
        deadline = time.monotonic() + seconds
        planned: list[float] = []
        for plan in self._planned(claims, state.tests, model):
            planned.append(plan.travel / (PLANNED[0] if isinstance(plan, Draws) else 1))
            if time.monotonic() > deadline:
                break
        looked_at = max(1, len(planned))
        more = len(claims) - looked_at if planned else 0
        recent = planned[-RECENT_PLANS:]
        unsettled = sum(travel > 0 for travel in planned) * len(claims) / looked_at
        n_claims = len(claims) + len(state.proven)
        to_admit = sum(isinstance(claim, ToReach) for claim in claims)
        steps = (
            sum(planned) + more * (sum(recent) / max(1, len(recent))) + to_admit * state.found_at[-1] / len(state.known)
        )
        if self.objective is Objective.OPTIMAL:
            steps *= OPTIMAL_MORE
        steps += self._to_come(model, to_admit) * (state.found_at[-1] + steps)
        if not math.isfinite(steps):
            return None
        fewest, most = (steps * PLANNED[0] / part for part in PLANNED[1:])
        return Remaining(n_claims - round(unsettled), n_claims, steps, fewest, most, to_admit > 0)

    def _to_come(self, model: IntervalModel, to_admit: int) -> float:
        """Returns about how many steps states that are not met yet will take, as a part of what those met take.

        While states are admitted, their number is taken to grow as the distance of the farthest does, up to the radius,
        and the steps that each takes likewise.
        """
        n_known = model.n_known
        if not to_admit or n_known < 2:
            return 0.0
        goals = range(max(1, n_known - RECENT_PLANS), n_known)
        farthest = max(self._distance(goal, model) for goal in goals)
        growth = min(MOST_GROWTH, self.target.radius / min(self.target.radius, max(1.0, farthest)))
        return max(0.0, n_known * growth - n_known - to_admit) / (n_known + to_admit) * growth

    def _distance(self, goal: int, model: IntervalModel) -> float:
        """Returns about how many steps a known state takes: near its lower bound, which is the better one early on."""
        lower = ToSetAside(goal, self.target.radius).path(model).at_least
        upper = ToReach(goal, self.reach, goal).path(model).at_most
        return lower + DISTANCE * (min(upper, 2 * self.reach) - lower)

    def _planned(
        self, claims: list[ToProve], tests: EpisodeTests, model: IntervalModel
    ) -> Iterator[Draws | EpisodePlan | WayByTest]:
        """Yields what would prove each claim if those before it were proven; draws for one serve later ones."""
        travel = Travel(model)
        for claim in claims:
            plan = self._plan(claim, tests, model, travel)
            yield plan
            if not isinstance(plan, EpisodePlan):
                more = plan.draws.more if isinstance(plan, WayByTest) else plan.more
                drawn = model.visits + np.ceil(model.per_group(more)).astype(np.int64)
                model = replace(model.with_visits(drawn.astype(np.float64)), visits=drawn)

    def _claims_left(self, model: IntervalModel) -> list[ToProve]:
        """Returns every claim to prove once: what looks near is to be reached, and admissions need no second proof."""
        claims = [claim for stage in self._stages(EpisodeTests(), model) for claim in stage]
        near = {claim.goal for claim in claims if isinstance(claim, ToReach) and claim.n_allowed is None}
        return [
            claim
            for claim in claims
            if not (isinstance(claim, ToSetAside) and claim.goal in near)
            and not (isinstance(claim, ToReach) and claim.n_allowed is not None)
        ]

    def start(self, world: World) -> CertifiedState:
        """Knows the initial state only."""
        counts = first_counts(world)
        return CertifiedState(round=1, known=(0,), found_at=(world.steps,), counts=counts)

    def start_with(self, logged: Logged, world: World) -> CertifiedState:
        """Knows the initial state only; the draws of the log count, with levels by the order in which it left states.

        All that is drawn from now on continues the martingales of the log (docs/logs.md).
        """
        state = self.resting_on(logged.counts, (0,))
        return replace(state, found_at=(world.steps,), logged=logged)

    def resting_on(self, counts: Counts, known: tuple[int, ...], steps: int = 0) -> CertifiedState:
        """Returns the state that rests on counts which were made elsewhere.

        Args:
            counts: the counts, whose order of states decides on levels.
            known: the numbers of the states that count as admitted, in this order.
            steps: those that were taken, at the end of which all of them were admitted.
        """
        state = CertifiedState(round=1, known=known, found_at=(0, *[steps] * (len(known) - 1)), counts=counts)
        return self._known_are(state, counts, known)

    def learned(self, counts: Counts, world: World) -> CertifiedState:
        """Returns the state in which all is admitted that counts, made elsewhere, prove to be within reach."""
        state = self.resting_on(counts, (0,), world.steps)
        while True:
            model = self.model(state)
            admitted = self._reachable_goals(state.tests, model)
            if not admitted and not self._fresh_draws(state, model).any():
                proven: set[ToProve] = set()
                for _ in self._open_claims(proven, state.tests, model):
                    pass
                admitted = _admitted(proven, model)
            if not admitted:
                return replace(state, stop=StopReason.LOG_ENDED)
            state = self._admit(state, world, model, admitted)

    def wanted(self, model: IntervalModel) -> Iterator[tuple[FloatArray, str]]:
        """Yields which draws would serve next, [P], and what for: the most urgent first.

        They would prove what is open, one claim after the other, if the frequencies stayed as they are.
        """
        fresh = np.maximum(float(self.first_draws) - model.visits, 0.0)
        if fresh.any():
            yield fresh, "drawing every action of new states"
            return
        travel = Travel(model)
        for claim in self._open_claims(set(), EpisodeTests(), model):
            draws = cheapest_draws(claim, model, travel)
            if draws.more.any():
                yield draws.more, self._activity(claim, model)

    def advance(self, state: CertifiedState, world: World) -> CertifiedState:
        """One round: draws the pairs of new states, or admits states, or samples what blocks a proof, or stops."""
        state = replace(state, round=state.round + 1)
        if state.logged is not None:
            state = replace(state, logged=replace(state.logged, unsure=tuple(sorted(world.hearsay))))
        if self.assume.all_deterministic:
            return self._survey(state, world)
        state = self._with_assumed(state, world)
        if self._is_contradicted(state):
            return replace(state, stop=StopReason.ASSUMPTION_CONTRADICTED, activity="an assumption is contradicted")
        return self._with_assumed(self._advance(state, world), world, state.counts)

    def _advance(self, state: CertifiedState, world: World) -> CertifiedState:
        model = self.model(state)
        fresh = self._fresh_draws(state, model)
        if fresh.any():
            return self._sample(state, world, model, fresh, "drawing every action of new states")
        if endless_pairs(state.counts, self.endless_draws).any():
            return replace(state, stop=StopReason.ENDLESS_LABELS, activity="labels have no end")
        admitted = self._reachable_goals(state.tests, model)
        return self._admit(state, world, model, admitted) if admitted else self._prove(state, world, model)

    def _prove(self, state: CertifiedState, world: World, model: IntervalModel) -> CertifiedState:
        """Samples what blocks a proof, or stops; or admits states that were proven on the way."""
        proven = with_indices(state.proven, model.numbers)
        claims = self._open_claims(proven, state.tests, model)
        first = next(claims, None)
        if first is None and not _admitted(proven, model):
            evidence = self._whole_evidence(state, model)
            if evidence is not None:
                return _ended(replace(state, evidence=evidence), is_refuted=False)
            if state.proven:  # some were proven on earlier counts only
                proven.clear()
                claims = self._open_claims(proven, state.tests, model)
                first = next(claims, None)
        admitted = _admitted(proven, model)
        if admitted:
            return self._admit(state, world, model, admitted)
        claimed = self._tested_claims(state.tests, model) if first is None else [first]
        is_refuted = any(_is_refuted(claim, model) for claim in claimed)
        if first is None:
            is_refuted = is_refuted or any_contradicted(state.tests, model)
        if is_refuted or first is None:
            return _ended(state, is_refuted)
        after = self._work_on(chain([first], claims), state, world, model)
        numbered = frozenset(with_numbers(proven, model.numbers))
        return replace(after, proven=numbered, activity=self._activity(first, model))

    def _whole_evidence(self, state: CertifiedState, model: IntervalModel) -> Evidence | None:
        """Everything that the counts prove, if nothing is open; None if something is, or one goal is asked for."""
        if model.asked is not None:
            return None
        evidence = gather_evidence(model, self.target, self.objective, state.tests)
        is_whole = evidence.complete and not any(map(evidence.is_refuted, evidence.tested))
        return evidence if is_whole else None

    def _work_on(
        self, claims: Iterable[ToProve], state: CertifiedState, world: World, model: IntervalModel
    ) -> CertifiedState:
        """Carries out the first part of what would prove the next claims soonest: draws, and episodes of tests."""
        drawn_before = 0 if state.logged is None else state.logged.steps
        budget = max(self.least_order, self.growth * (world.steps + drawn_before))
        travel = Travel(model)
        tests = state.tests.ended(claim.goal for claim in state.proven if not isinstance(claim, ToReach))
        begun: list[EpisodePlan] = []
        more, steps = np.zeros(model.n_pairs), 0.0
        for claim in claims:
            plan = self._next_part(claim, tests, model, travel)
            if isinstance(plan, EpisodePlan):
                if any(plan.test.goal == other.test.goal for other in begun):  # one test of a goal at a time
                    continue
                tests = tests.with_test(plan.test)
                begun.append(plan)
                steps += min(plan.travel, budget)
            else:
                more = np.maximum(more, plan.more)
            if steps + travel.steps(more) >= self.filled * budget:
                break
        if not begun and not more.any():  # trials are less exact than proofs: with more draws the estimates change
            more = np.ones(model.n_pairs)
        orders: list[Order] = [plan.test.order(state.known, plan.times(budget)) for plan in begun]
        if more.any():
            draws = more if travel.steps(more) <= budget else _first_part(more, model, travel, budget)
            orders.append(self._tour(model, _spread(draws, model, travel)))
        answers, _ = drawn(orders, world)
        for plan, answer in zip(begun, answers, strict=False):
            tests = tests.with_test(plan.test.after(answer))
        return self._known_are(replace(state, tests=tests), with_drawn(state.counts, answers, world), state.known)

    def finish(self, state: CertifiedState, world: World) -> Exploration:
        """The states admitted, with what is proven of each."""
        if self.assume.all_deterministic:
            return self._surveyed(state, world)
        state = self._with_assumed(state, world)
        evidence = state.evidence or self.evidence(state)
        if evidence.contradicted:  # whatever ended it
            state = replace(state, stop=StopReason.CONTRADICTED)
        return exploration_of(
            self,
            state,
            world,
            counts=state.counts,
            policies=evidence.policies,
            optimistic_steps=np.array([bound.lower[0] for bound in evidence.lower]),
            evidence=evidence,
            assumed=state.assumed,
            logged=state.logged,
        )

    def model(self, state: CertifiedState) -> IntervalModel:
        """Counts and confidence region of the known states, in order of admission."""
        rows, region = part_of(self._region(state), state.counts, np.array(state.known, dtype=np.int64))
        model = interval_model(rows, region, self.target.value_limit)
        return replace(model, whole_up_to=self.whole_up_to, asked=self._asked(state, model.numbers))

    def _asked(self, state: CertifiedState, numbers: IntArray) -> tuple[int, ...] | None:
        """The indices of the states that are asked for, among those that were seen; None if all are."""
        if self.goal.is_everything:
            return None
        order = state.counts.order
        return tuple(index for index, number in enumerate(numbers.tolist()) if self.goal.includes(order[number]))

    def _region(self, state: CertifiedState) -> ConfidenceRegion:
        """The confidence region of all counted states."""
        return region_given(state.counts, self.target.delta, state.assumed)

    def evidence(self, state: CertifiedState) -> Evidence:
        """Everything that the counts prove."""
        return gather_evidence(self.model(state), self.target, self.objective, state.tests)

    def bounds(self, state: CertifiedState) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the steps to each known state, [n] each: those of the evidence, for less work."""
        if self.assume.all_deterministic:
            exact = self.survey_evidence(state).bounds
            return exact.lower[: len(state.known)], exact.upper[: len(state.known)]
        model = self.model(state)
        lower, upper = np.zeros(model.n_known), np.zeros(model.n_known)
        for goal in range(1, model.n_known):
            if self.objective is Objective.OPTIMAL:
                optimal = ToOptimise(goal, self.target.epsilon)
                regret = optimal.regret(model)
                lower[goal], upper[goal] = regret.lower.at_least, regret.upper.at_most
                tested = optimal_by_test(state.tests, model, optimal)
                if tested is not None and regret.at_most > self.target.epsilon:
                    upper[goal] = tested.steps
            else:
                lower[goal] = ToSetAside(goal, self.target.radius).path(model).at_least
                upper[goal] = ToReach(goal, self.reach, goal).path(model).at_most
                test = state.tests.proof_of(int(model.numbers[goal]), self.reach, goal)
                if test is not None and upper[goal] > self.reach:
                    upper[goal] = test.at_most
        lower[1:] = np.maximum(lower[1:], 1.0)  # no other state is nearer than a step
        return lower, upper

    def _survey(self, state: CertifiedState, world: World) -> CertifiedState:
        """One round where every action has one outcome: plays what was never played, the nearest first, or stops."""
        state = self._admit_near(state, world)
        evidence = self.survey_evidence(state)
        if evidence.contradicted:
            return replace(state, stop=StopReason.ASSUMPTION_CONTRADICTED, activity="an assumption is contradicted")
        if evidence.finished or self._has_arrived(state, evidence):
            return replace(state, stop=StopReason.PROVEN, activity="everything is proven")
        rows = state.counts
        owners = np.repeat(np.arange(len(rows.states)), np.diff(rows.state_pairs))
        played = np.flatnonzero(rows.visits)
        order = Survey(
            states=rows.states[owners[played]],
            actions=played - rows.state_pairs[owners[played]],
            successors=rows.successors[rows.row_offsets[:-1][played]],
            max_depth=max_depth(self.target.radius),
            plays=max(LEAST_SURVEY, len(played) // 2),
        )
        (answer,), _ = drawn([order], world)
        # In the order in which states were first played: which rank a state has is known before its first draw.
        counted = set(rows.states.tolist())
        fresh = [number for number in dict.fromkeys(answer.pair_states.tolist()) if number not in counted]
        counts = with_drawn(with_known(state.counts, fresh, world), [answer], world)
        return self._admit_near(replace(state, counts=counts, activity="playing every action once"), world)

    def _admit_near(self, state: CertifiedState, world: World) -> CertifiedState:
        """Admits every state within the radius, if every action has one outcome."""
        every = survey_evidence(state.counts, self.target, self.objective)
        near = every.numbers[every.steps <= self.target.radius].tolist()
        known, counted = set(state.known), set(state.counts.states.tolist())
        admitted = [number for number in near if number not in known]
        counts = with_known(state.counts, [number for number in admitted if number not in counted], world)
        found_at = (*state.found_at, *[world.steps] * len(admitted))
        return self._known_are(replace(state, found_at=found_at), counts, (*state.known, *admitted))

    def _has_arrived(self, state: CertifiedState, evidence: SurveyEvidence) -> bool:
        """Whether one goal is asked for and was found, and the fewest steps to it are known."""
        asked = self._asked(state, evidence.numbers)
        bounds = evidence.bounds
        statuses = bounds.statuses(evidence.n_known, self.target.radius, self.target.epsilon, self.objective)
        return asked is not None and any(statuses[goal] is Status.CERTIFIED for goal in asked)

    def _surveyed(self, state: CertifiedState, world: World) -> Exploration:
        evidence = self.survey_evidence(state)
        return exploration_of(
            self,
            state,
            world,
            counts=state.counts,
            policies=evidence.policies,
            optimistic_steps=evidence.bounds.lower,
            survey=evidence,
            logged=state.logged,
        )

    def survey_evidence(self, state: CertifiedState) -> SurveyEvidence:
        """Everything that the counts prove if every action has one outcome."""
        rows = rows_of(state.counts, np.array(state.known, dtype=np.int64))
        return survey_evidence(rows, self.target, self.objective)

    def _with_assumed(self, state: CertifiedState, world: World, before: Counts | None = None) -> CertifiedState:
        """The state with what is assumed of every counted pair.

        Args:
            state: what it says is assumed belongs to the counts before.
            world: has the labels.
            before: these counts; those of the state itself when not given.
        """
        return replace(state, assumed=assumed_of(self.assume, state.assumed, state.counts, world, before))

    def _is_contradicted(self, state: CertifiedState) -> bool:
        """Whether a draw contradicts what is assumed."""
        if state.assumed is None:
            return False
        return len(contradicted_pairs(state.counts, self.target.delta, state.assumed)) > 0

    def _fresh_draws(self, state: CertifiedState, model: IntervalModel) -> FloatArray:
        """The draws of each pair that are wanted before anything is planned, [P].

        One settles a pair with one outcome. Where outcomes have a least probability and few draws close a support, that
        is done first, a few draws at a time, since it may be closed sooner than is certain.
        """
        first_draws = self.first_draws if model.asked is None else min(self.first_draws, DRAWS_ON_THE_WAY)
        wanted = np.full(model.n_pairs, float(first_draws))
        if state.assumed is None:
            return np.maximum(wanted - model.visits, 0.0)
        rows, region = state.counts, self._region(state)
        known = np.array(state.known, dtype=np.int64)
        own, part = part_of(region, rows, known)
        closed_later = np.minimum(part.closing, own.visits + CLOSING_DRAWS)
        closes_soon = part.closing <= SOON_CLOSED * self.first_draws
        wanted = np.where(closes_soon, np.where(part.closed, 0.0, closed_later), wanted)
        if part.pooled is not None:
            wanted = self._fresh_tied(wanted, own.visits, part.pooled, model)
        pairs = entries_in(rows.state_pairs, counted_indices(rows)[known])
        wanted = np.where(is_single(state.assumed, len(rows.visits))[pairs], 1.0, wanted)
        return np.maximum(wanted - own.visits, 0.0)

    def _fresh_tied(self, wanted: FloatArray, visits: IntArray, pooled: Pooled, model: IntervalModel) -> FloatArray:
        """The draws wanted where pairs may be tied, [P].

        The first draw shows the class of a pair. A class is drawn as often as any other pair, in one of its pairs. And
        where an outcome leads should be known unless it weighs less than what the ball leaves open anyway.
        """
        _, first = np.unique(pooled.groups, return_index=True)
        is_first = np.zeros(len(visits), dtype=np.bool_)
        is_first[first] = True
        missing = np.where(is_first, np.maximum(self.first_draws - pooled.rows.visits, 0), 0)
        missing = np.maximum(missing, np.where(model.rows.rest > model.rows.slack, CLOSING_DRAWS, 0))
        wanted = np.where(pooled.tied, visits + missing, wanted)
        return np.where(visits == 0, 1.0, wanted)

    def _reachable_goals(self, tests: EpisodeTests, model: IntervalModel) -> list[int]:
        """Frontier states that are proven to be within reach.

        Those that look nearest come first, and a few that are not proven end the search. What was proven along the way
        of others is found once they are admitted. Once a goal is in sight, nothing else is admitted.
        """
        goal = self._goal_in_sight(model)
        if goal is not None:
            is_tested = tests.proof_of(int(model.numbers[goal]), self.reach) is not None
            is_new = goal in model.frontier
            return [goal] if is_new and (is_tested or ToReach(goal, self.reach).is_proven(model)) else []
        begun = _with_tests(model.frontier, tests, model)
        tested = {goal for goal in begun if tests.proof_of(int(model.numbers[goal]), self.reach) is not None}
        near = (goal for goal in may_be_within(model, self.reach) if goal not in tested)
        reachable, unproven = set(tested), 0
        for goal in near:
            if ToReach(goal, self.reach).is_proven(model):
                reachable.add(goal)
            else:
                unproven += 1
            if unproven == MOST_UNPROVEN:
                break
        return sorted(reachable)

    def _admit(self, state: CertifiedState, world: World, model: IntervalModel, goals: list[int]) -> CertifiedState:
        """Admits frontier states, unless the rows contradict a test that admits one of them.

        States that a log met and never left have unknown actions, so they are visited first.
        """
        numbers = [int(model.numbers[goal]) for goal in goals]
        counted = set(state.counts.states.tolist())
        unmet = [goal for goal in goals if int(model.numbers[goal]) in set(world.hearsay) - counted]
        if unmet:
            return self._visit(state, world, model, unmet)
        tests = (state.tests.proof_of(number, self.reach) for number in numbers)
        if any_contradicted(filter(None, tests), model):
            return _ended(state, is_refuted=True)
        counts = with_known(state.counts, [number for number in numbers if number not in counted], world)
        admitted = replace(
            state,
            tests=state.tests.ended(numbers),
            found_at=(*state.found_at, *[world.steps] * len(numbers)),
            proven=frozenset(),
            activity=f"admitted {len(numbers)} states" if len(numbers) > 1 else "admitted a state",
        )
        return self._known_are(admitted, counts, (*state.known, *numbers))

    def _visit(self, state: CertifiedState, world: World, model: IntervalModel, goals: list[int]) -> CertifiedState:
        """Goes to states once, by the policy that looks shortest; draws on the way count."""
        orders: list[Order] = []
        for goal in goals:
            chosen = empirical_path(model, goal).policy
            policy = np.where(chosen == RESET_PAIR, RESET_ACTION, chosen - model.rows.state_pairs[:-1])
            horizon = math.ceil(VISIT_PATIENCE * self.reach)
            orders.append(Episodes(int(model.numbers[goal]), 1, horizon, policy_by_number(policy, state.known)))
        answers, _ = drawn(orders, world)
        counts = with_drawn(state.counts, answers, world)
        return self._known_are(replace(state, activity="visiting states of the log"), counts, state.known)

    @staticmethod
    def _known_are(state: CertifiedState, counts: Counts, known: tuple[int, ...]) -> CertifiedState:
        """The state with these counts and known states, and the frontier that follows from them."""
        rows = rows_of(counts, np.array(known, dtype=np.int64))
        frontier = without(rows.successors, rows.states)
        return replace(state, counts=counts, known=known, frontier=tuple(frontier.tolist()), evidence=None)

    def _tested_claims(self, tests: EpisodeTests, model: IntervalModel) -> list[ToProve]:
        """That known states are reachable, of those for which tests by episodes have proven it."""
        begun = _with_tests(range(1, model.n_known), tests, model)
        tested = [goal for goal in begun if tests.proof_of(int(model.numbers[goal]), self.reach, goal)]
        return [ToReach(goal, self.reach, goal) for goal in tested]

    def _open_claims(self, proven: set[ToProve], tests: EpisodeTests, model: IntervalModel) -> Iterator[ToProve]:
        """Yields the claims to work on next, in order; those that turn out to be proven are added to the others."""
        by_model = ProvenClaims(model)
        for claims in self._stages(tests, model):
            is_done = True
            for claim in claims:
                if claim in proven:
                    continue
                if _is_tested(claim, tests, model) or claim in by_model:
                    proven.add(claim)
                    continue
                rival = self._rival(claim, model)
                if rival is not None and (rival in proven or rival in by_model):
                    proven.add(rival)
                    continue
                is_done = False
                yield claim
            if not is_done:
                return

    def _goal_in_sight(self, model: IntervalModel) -> int | None:
        """The goal that looks nearest, if one is asked for and one is known or looks as if it were within reach.

        One that looks farther than L + ε / 2 might never be proven to be; then a map shows that it is beyond L, or not.
        """
        asked = model.asked or ()
        known = [goal for goal in asked if goal < model.n_known]
        if known:
            return min(known, key=lambda goal: empirical_path(model, goal).steps if goal else 0.0)
        steps = {goal: float(model.frontier_steps[goal - model.n_known]) for goal in asked}
        nearest = min(steps, key=steps.__getitem__, default=None)
        is_near = nearest is not None and steps[nearest] <= self.target.radius + self.target.epsilon / 2
        return nearest if is_near else None

    def _stages(self, tests: EpisodeTests, model: IntervalModel) -> Iterator[list[ToProve]]:
        """What has to be proven, in the order of work: a stage matters once those before it are proven."""
        radius, epsilon = self.target.radius, self.target.epsilon
        goal = self._goal_in_sight(model)
        if goal is not None:
            yield from self._stages_of(goal, tests, model)
            return
        nearest_first = (model.n_known + np.argsort(model.frontier_steps, kind="stable")).tolist()
        n_near = int(np.count_nonzero(model.frontier_steps <= radius + epsilon / 2))
        if model.asked is not None and n_near:  # the goal may be seen from the states that look nearest
            yield [ToReach(goal, self.reach) for goal in nearest_first[:n_near]]
            return
        yield [ToSetAside(model.unseen, radius), *(ToReach(goal, self.reach) for goal in nearest_first[:n_near])]
        yield [ToSetAside(goal, radius) for goal in nearest_first]
        known, reach = range(1, model.n_known), self.reach
        tested = frozenset(self._tested_claims(tests, model))
        yield [claim for goal in known if (claim := ToReach(goal, reach, goal)) not in tested]
        if self.objective is Objective.OPTIMAL and model.asked is None:
            yield [ToOptimise(goal, epsilon) for goal in known]

    def _stages_of(self, goal: int, tests: EpisodeTests, model: IntervalModel) -> Iterator[list[ToProve]]:
        """What has to be proven of one goal."""
        if goal >= model.n_known:
            yield [ToReach(goal, self.reach)]
        elif goal > 0:
            claim = ToReach(goal, self.reach, goal)
            yield [] if claim in self._tested_claims(tests, model) else [claim]
            if self.objective is Objective.OPTIMAL:
                yield [ToOptimise(goal, self.target.epsilon)]

    @staticmethod
    def _activity(claim: ToProve, model: IntervalModel) -> str:
        """What is being proven, in words."""
        if isinstance(claim, ToOptimise):
            return "proving policies near-optimal"
        if isinstance(claim, ToSetAside):
            return "ruling out states never seen" if claim.goal == model.unseen else "proving states too far"
        return "proving states within reach" if claim.goal in model.frontier else "proving the order of admission"

    def _rival(self, claim: ToProve, model: IntervalModel) -> ToProve | None:
        """That a state is within reach, instead of too far, if it looks between L and L + ε; either will do.

        No draws are planned for it the other way round, since what looks at most as far as L + ε / 2 is proven within
        reach sooner; but it may be proven too far by what was drawn for others. Where one goal is asked for that is no
        answer: it says nothing of policies through states that are not known yet.
        """
        if claim.goal not in model.frontier:
            return None
        looks_between = self.target.radius < empirical_path(model, claim.goal).steps < self.reach
        if not looks_between:
            return None
        if isinstance(claim, ToReach):
            return ToSetAside(claim.goal, self.target.radius) if model.asked is None else None
        return ToReach(claim.goal, self.reach)

    def _next_part(
        self, claim: ToProve, tests: EpisodeTests, model: IntervalModel, travel: Travel
    ) -> Draws | EpisodePlan:
        """What to do first to prove a claim; a test that was begun is continued unless draws have become cheaper."""
        begun = begun_test(tests, model, claim, self._test_share) if isinstance(claim, ToOptimise) else None
        if begun is not None:
            draws = cheapest_draws(claim, model, travel, begun.travel)
            return begun if begun.travel <= draws.travel else draws
        plan = self._plan(claim, tests, model, travel)
        return plan.plan or plan.draws if isinstance(plan, WayByTest) else plan

    def _plan(
        self, claim: ToProve, tests: EpisodeTests, model: IntervalModel, travel: Travel
    ) -> Draws | EpisodePlan | WayByTest:
        """What would prove a claim soonest, or its rival if that is cheaper: draws, a test by episodes, or both."""
        if isinstance(claim, ToReach) and _looks_refuted(claim, model):
            return draws_to_refute(claim, model, travel)
        draws, rival = cheapest_draws(claim, model, travel), self._rival(claim, model)
        if isinstance(rival, ToReach):
            draws = min(draws, cheapest_draws(rival, model, travel, draws.travel), key=_steps_of)
        if not self._may_test:
            return draws
        if isinstance(claim, ToOptimise):
            at_most = CLEARLY_CHEAPER * draws.travel
            return way_by_test(tests, model, claim, travel, self._test_share, at_most) or draws
        return self._cheapest_test(claim, tests, model, draws.travel) or draws

    def _cheapest_test(
        self, claim: ToProve, tests: EpisodeTests, model: IntervalModel, at_most: float
    ) -> EpisodePlan | None:
        """The test by episodes that would prove a frontier state within reach; None if it takes `at_most` steps."""
        path = empirical_path(model, claim.goal)
        if claim.goal not in model.frontier or path.steps >= self.reach:
            return None
        tail = None
        if self.objective is Objective.OPTIMAL:  # then it may prove the policy near-optimal as well
            path = path_to_test(model, path)
            tail = tail_for(path, self.reach)
        plan = cheapest_test(tests, model, path, self.reach, self._test_share, tail)
        return plan if plan is not None and plan.travel < at_most else None

    @property
    def _may_test(self) -> bool:
        """Whether policies may be tested by episodes; where draws of one pair serve others, no test is cheaper."""
        return self.by_episodes and self.assume.get("tied") is None

    @property
    def _test_share(self) -> float:
        """The probability with which all tests by episodes together may err."""
        return EPISODE_PART * self.target.delta

    def _sample(
        self, state: CertifiedState, world: World, model: IntervalModel, draws: FloatArray, activity: str
    ) -> CertifiedState:
        answers, _ = drawn([self._tour(model, draws)], world)
        return self._known_are(replace(state, activity=activity), with_drawn(state.counts, answers, world), state.known)

    def _tour(self, model: IntervalModel, draws: FloatArray) -> Tour:
        return tour_of(model, np.ceil(draws).astype(np.int64), self.target)


def _with_tests(indices: range, tests: EpisodeTests, model: IntervalModel) -> list[int]:
    """Of these indices those of which tests by episodes were begun, ascending."""
    if not tests.goals:
        return []
    is_begun = np.isin(model.numbers[indices.start : indices.stop], tests.goals)
    return [int(index) for index in indices.start + np.flatnonzero(is_begun)]


def _admitted(proven: set[ToProve], model: IntervalModel) -> list[int]:
    """The frontier states that are proven to be within reach, if only as rivals of what was to be proven."""
    return sorted(claim.goal for claim in proven if isinstance(claim, ToReach) and claim.goal in model.frontier)


def _ended(state: CertifiedState, is_refuted: bool) -> CertifiedState:
    if is_refuted:
        return replace(state, stop=StopReason.CONTRADICTED, activity="the counts contradict each other")
    return replace(state, stop=StopReason.PROVEN, activity="everything is proven")


def _spread(draws: FloatArray, model: IntervalModel, travel: Travel) -> FloatArray:
    """Spreads draws that pairs share over the nearest of them, [P]: then most steps are draws, and few lead back."""
    if model.groups is None:
        return draws
    per_draw, spread = travel.per_draw_of_all(), np.zeros(len(draws))
    for group in np.unique(model.groups[draws > 0]).tolist():
        pairs = np.flatnonzero(model.groups == group)
        wanted = math.ceil(draws[pairs].sum())
        near = pairs[per_draw[pairs] <= SPREAD * per_draw[pairs].min()]
        near = near[np.argsort(per_draw[near], kind="stable")][:wanted]
        spread[near] = np.diff(np.linspace(0, wanted, len(near) + 1).astype(np.int64))
    return spread


def _is_tested(claim: ToProve, tests: EpisodeTests, model: IntervalModel) -> bool:
    """Whether a test proves a policy near-optimal."""
    return isinstance(claim, ToOptimise) and optimal_by_test(tests, model, claim) is not None


def _steps_of(plan: Draws) -> float:
    return plan.travel


def _looks_refuted(claim: ToReach, model: IntervalModel) -> bool:
    """Whether an admission cannot be proven again if frequencies stay: then draws are to refute it."""
    return claim.n_allowed is not None and empirical_path(model, claim.goal, claim.n_allowed).steps > claim.steps


def _is_refuted(claim: ToProve, model: IntervalModel) -> bool:
    """Whether a known state is proven to be out of reach, or is by the states that were admitted before it.

    No sampling would ever prove its admission again.
    """
    if not isinstance(claim, ToReach) or claim.n_allowed is None:
        return False
    beyond = ToSetAside(claim.goal, claim.steps)
    return beyond.is_proven(model) or beyond.is_proven(among_first(model, claim.n_allowed))


def _first_part(more: FloatArray, model: IntervalModel, travel: Travel, budget: float) -> FloatArray:
    """Returns as many of the draws as `budget` steps allow; pairs that lack most, in proportion, come first, [P]."""
    pairs = np.flatnonzero(more > 0.0)
    visits, along, first = model.visits[pairs], travel.along(pairs), np.zeros(model.n_pairs)
    wanted = visits + more[pairs]

    def part(shortage: float) -> FloatArray:
        return np.maximum(wanted / math.exp(shortage) - visits, 0.0)

    low, high = 0.0, math.log(float((wanted / visits).max()))
    for _ in range(40):
        middle = (low + high) / 2
        if along.steps(part(middle)) > budget:
            low = middle
        else:
            high = middle
    first[pairs] = part(high)
    return first


def certified(target: Target, states_bound: int | None = None) -> Certified:  # noqa: ARG001
    """The certified explorer for AX*: its promise is proven by the counts, and it needs no S."""
    return Certified(target=target)


def certified_within_radius(target: Target, states_bound: int | None = None) -> Certified:  # noqa: ARG001
    """The certified explorer for AX_L, which takes fewer steps; it needs no S."""
    return Certified(target=target, objective=Objective.WITHIN_RADIUS)
