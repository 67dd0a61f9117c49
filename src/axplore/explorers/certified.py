"""The certified explorer: AX* with proof, sampling only what blocks a proof.

It keeps a confidence region that holds at all times, admits a state when every model of the region lets a policy reach
it within L + ε expected steps, sets one aside when no model lets any policy reach it within L, and samples what would
decide the others. When no state is open, seen or not, S_L→ ⊆ K ⊆ S_{L+ε}→ with probability 1 - δ; then it samples until
every policy is proven ε-optimal. It needs no bound on the number of states. The proofs are in
docs/algorithms/certified.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from axplore.explorers.base import Exploration, ExplorerState, StopReason, exploration_of, frontier_of
from axplore.proofs.bounds import IntervalModel, empirical_path, interval_model
from axplore.proofs.claims import Claim, Draws, NearOptimal, Reachable, TooFar, cheapest_draws, surely_within
from axplore.proofs.evidence import Evidence, gather_evidence
from axplore.proofs.travel import tour_of, travel_per_draw
from axplore.statistics.confidence import confidence_region
from axplore.statistics.counts import TransitionCounts
from axplore.target import Objective, Target
from axplore.types import FloatArray
from axplore.worlds.contract import World


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedState(ExplorerState):
    """Where the certified explorer stands; everything else follows from the counts.

    Attributes:
        counts: transitions out of the known states.
        proven: claims proven since the known set last changed. They are not looked at again until no other is left;
            then all are proven anew on the counts of that time.
    """

    counts: TransitionCounts
    proven: frozenset[Claim] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Certified:
    """The certified explorer.

    Attributes:
        target: L, ε and δ.
        objective: AX* (`OPTIMAL`), or AX_L (`WITHIN_RADIUS`), which is cheaper.
        first_draws: how often every pair of a newly admitted state is drawn before anything is planned for it.
        growth: no order takes more than about this part of the steps so far, so that plans follow the estimates.
        least_order: nor fewer steps than this, if that many are wanted.
        compared: how many open claims are compared before the cheapest is worked on.
        fill_orders: whether the next cheapest ones are worked on in the same order as long as it has room.
    """

    target: Target
    objective: Objective = Objective.OPTIMAL
    first_draws: int = 10
    growth: float = 0.03
    least_order: int = 50
    compared: int = 4
    fill_orders: bool = False

    @property
    def reach(self) -> float:
        """L + ε, within which an admitted state is proven to be reached."""
        return self.target.radius + self.target.epsilon

    def for_workers(self) -> Certified:
        """The same explorer with rounds large enough to be shared: fewer plans, and a few per cent more steps."""
        return replace(self, growth=max(self.growth, 0.1), least_order=max(self.least_order, 1000), fill_orders=True)

    def start(self, world: World) -> CertifiedState:
        """Knows the initial state only."""
        counts = TransitionCounts()
        counts.add_state(0, len(world.actions_of(0)))
        return CertifiedState(round=1, known=(0,), found_at=(world.steps,), counts=counts)

    def advance(self, state: CertifiedState, world: World) -> CertifiedState:
        """One round: draws the pairs of new states, or admits states, or samples what blocks a proof, or stops."""
        state = replace(state, round=state.round + 1)
        model = self.model(state)
        if (model.visits < self.first_draws).any():
            fresh = np.maximum(self.first_draws - model.visits, 0).astype(np.float64)
            return self._sample(state, world, model, fresh, "drawing every action of new states")
        admitted = [goal for goal in model.frontier if self._is_reachable(model, goal)]
        if admitted:
            return self._admit(state, world, model, admitted)
        claims, proven, activity = self._open_claims(state.proven, model)
        if not claims and state.proven:  # some were proven on earlier counts only
            claims, proven, activity = self._open_claims(frozenset(), model)
        if not claims:
            return replace(state, stop=StopReason.PROVEN, activity="everything is proven")
        if any(_is_refuted(claim, model) for claim in claims):
            return replace(state, stop=StopReason.CONTRADICTED, activity="an admission is contradicted")
        travel = travel_per_draw(model)
        plans = self._plans(claims, model, travel)
        draws = self._next_draws(plans, model, travel, max(self.least_order, self.growth * world.steps))
        return self._sample(replace(state, proven=proven), world, model, draws, activity)

    def finish(self, state: CertifiedState, world: World) -> Exploration:
        """The states admitted, with what is proven of each."""
        evidence = self.evidence(state)
        return exploration_of(
            self,
            state,
            world,
            counts=state.counts,
            policies=tuple(evidence.actions(path.policy) for path in evidence.best_upper),
            optimistic_steps=np.array([path.steps for path in evidence.lower]),
            evidence=evidence,
        )

    def model(self, state: CertifiedState) -> IntervalModel:
        """Counts and confidence region of the known states."""
        rows = state.counts.rows()
        limit = 3 * self.reach + 20  # nothing is decided by values so large
        return interval_model(rows, confidence_region(rows, self.target.delta), limit)

    def evidence(self, state: CertifiedState) -> Evidence:
        """Everything that the counts prove."""
        return gather_evidence(self.model(state), self.target, self.objective)

    def bounds(self, state: CertifiedState) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the steps to each known state, [n] each: those of the evidence, for less work."""
        model = self.model(state)
        lower, upper = np.zeros(model.n_known), np.zeros(model.n_known)
        for goal in range(1, model.n_known):
            if self.objective is Objective.OPTIMAL:
                regret = NearOptimal(goal, self.target.epsilon).regret(model)
                lower[goal], upper[goal] = regret.lower.steps, regret.upper.steps
            else:
                lower[goal] = TooFar(goal, self.target.radius).path(model).steps
                upper[goal] = Reachable(goal, self.reach, goal).path(model).steps
        return lower, upper

    def _is_reachable(self, model: IntervalModel, goal: int) -> bool:
        if empirical_path(model, goal).steps > self.reach:
            return False
        return surely_within(Reachable(goal, self.reach).path(model).steps, self.reach)

    def _admit(self, state: CertifiedState, world: World, model: IntervalModel, goals: list[int]) -> CertifiedState:
        numbers = [int(model.numbers[goal]) for goal in goals]
        for number in numbers:
            state.counts.add_state(number, len(world.actions_of(number)))
        return replace(
            state,
            known=(*state.known, *numbers),
            found_at=(*state.found_at, *[world.steps] * len(numbers)),
            frontier=frontier_of(state.counts),
            proven=frozenset(),
            activity=f"admitted {len(numbers)} states" if len(numbers) > 1 else "admitted a state",
        )

    def _open_claims(self, proven: frozenset[Claim], model: IntervalModel) -> tuple[list[Claim], frozenset[Claim], str]:
        """The next few claims to work on, the ones proven by then, and in words what is being proven."""
        for claims, activity in self._stages(model):
            unproven = []
            for claim in claims:
                if claim in proven:
                    continue
                if claim.gain(model) is None:
                    proven |= {claim}
                    continue
                rival = self._rival(claim, model)
                if rival in proven:
                    continue
                if rival is not None and rival.gain(model) is None:
                    proven |= {rival}
                    continue
                unproven.append(claim)
                if len(unproven) == self.compared:
                    break
            if unproven:
                return unproven, proven, activity
        return [], proven, ""

    def _stages(self, model: IntervalModel) -> Iterator[tuple[list[Claim], str]]:
        """What has to be proven, in the order of work: a stage matters once those before it are proven."""
        radius, epsilon = self.target.radius, self.target.epsilon
        yield [TooFar(model.unseen, radius)], "ruling out states never seen"
        estimates = sorted((empirical_path(model, goal).steps, goal) for goal in model.frontier)
        near = [goal for steps, goal in estimates if steps <= radius + epsilon / 2]
        yield [Reachable(goal, self.reach) for goal in near], "proving states within reach"
        yield [TooFar(goal, radius) for _, goal in estimates], "proving states too far"
        known = range(1, model.n_known)
        yield [Reachable(goal, self.reach, goal) for goal in known], "proving the order of admission"
        if self.objective is Objective.OPTIMAL:
            yield [NearOptimal(goal, epsilon) for goal in known], "proving policies near-optimal"

    def _rival(self, claim: Claim, model: IntervalModel) -> Claim | None:
        """The other claim that would decide the same state, if it looks between L and L + ε; either will do."""
        radius = self.target.radius
        if claim.goal not in model.frontier or not radius < empirical_path(model, claim.goal).steps < self.reach:
            return None
        return TooFar(claim.goal, radius) if isinstance(claim, Reachable) else Reachable(claim.goal, self.reach)

    def _plans(self, claims: list[Claim], model: IntervalModel, travel: FloatArray) -> list[Draws]:
        """What would prove each claim, or its rival if that is cheaper.

        A plan is not followed beyond the cheapest one found before, unless orders are filled with several.
        """
        plans: list[Draws] = []
        for claim in claims:
            rival = self._rival(claim, model)
            known = plans if not self.fill_orders else []
            at_most = min((plan.travel for plan in known), default=np.inf)
            plan = cheapest_draws(claim, model, travel, at_most)
            if rival is not None:
                plan = min(plan, cheapest_draws(rival, model, travel, min(at_most, plan.travel)), key=_steps_of)
            plans.append(plan)
        return plans

    def _next_draws(self, plans: list[Draws], model: IntervalModel, travel: FloatArray, budget: float) -> FloatArray:
        """The draws of the cheapest plans, as far as an order of so many steps has room for them, [P]."""
        cheapest, *others = sorted(plans, key=_steps_of)
        more = cheapest.more
        for plan in others if self.fill_orders else ():
            if more @ travel < budget:
                more = np.maximum(more, plan.more)
        return more if more @ travel <= budget else _first_part(more, model, travel, budget)

    def _sample(
        self, state: CertifiedState, world: World, model: IntervalModel, draws: FloatArray, activity: str
    ) -> CertifiedState:
        order = tour_of(model, np.ceil(draws).astype(np.int64), self.target)
        (answer,) = world.carry_out([order])
        state.counts.add(answer)
        return replace(state, frontier=frontier_of(state.counts), activity=activity)


def _steps_of(plan: Draws) -> float:
    return plan.travel


def _is_refuted(claim: Claim, model: IntervalModel) -> bool:
    """Whether a known state is proven to be out of reach. No sampling would ever prove its admission again."""
    if not isinstance(claim, Reachable) or claim.n_allowed is None:
        return False
    return TooFar(claim.goal, claim.steps).path(model).steps > claim.steps


def _first_part(more: FloatArray, model: IntervalModel, travel: FloatArray, budget: float) -> FloatArray:
    """As much of the draws as so many steps allow; pairs that lack most, in proportion, come first, [P]."""
    wanted = model.visits + more

    def part(shortage: float) -> FloatArray:
        return np.maximum(wanted / math.exp(shortage) - model.visits, 0.0)

    low, high = 0.0, math.log(float((wanted / model.visits).max()))
    for _ in range(40):
        middle = (low + high) / 2
        if part(middle) @ travel > budget:
            low = middle
        else:
            high = middle
    return part(high)
