"""What a single line of the verifier decides: every test here fails if that line is changed a little (make mutants)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from axplore.certificate import Certificate, Reachable, TooFar, verify
from axplore.certificate.assumptions.given import Given, given_rows
from axplore.certificate.assumptions.min_probability import FALSE_ALARM, MinProbability, log_rarity
from axplore.certificate.assumptions.outcomes import Outcomes
from axplore.certificate.assumptions.tied import pooled
from axplore.certificate.bellman import Sweeper, bounds_along_way
from axplore.certificate.bounds import (
    LARGEST,
    UnprovenError,
    check_numbers,
    corrected_lower,
    corrected_upper,
    margin,
    proven_lower,
    proven_upper,
    upper_steps,
)
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.conclusions import conclusions_of
from axplore.certificate.doubts import summed_faults
from axplore.certificate.kinds.distances import ExactBounds, exact_bounds, shortest_ways
from axplore.certificate.kinds.episodes import least_steps
from axplore.certificate.kinds.kind import Checking
from axplore.certificate.kinds.properties import PropertyKind
from axplore.certificate.levels import CLOSING, JOINING, SHARED
from axplore.certificate.promise import promise
from axplore.certificate.property_proofs import MARGIN
from axplore.certificate.ranges import LEAST_PROBABILITY, check_named
from axplore.certificate.region import ROUNDING, SERIES, _rounded_down, confidence_region
from axplore.certificate.situations import misplaced_situation
from axplore.errors import InvalidInputError
from axplore.memory import Memory
from axplore.records.assumed import UNKNOWN, Assumed, Ties
from axplore.records.claims import AtLeast
from axplore.records.counts import Counts
from axplore.records.distances import NO_PAIR, Distances
from axplore.records.episodes import EpisodeRecord
from axplore.records.findings import Fault, FaultKind
from axplore.records.order import Labels
from axplore.records.properties import NO_CHOICE, NamedStates, PropertyClaim
from axplore.records.vectors import Vector
from axplore.target import NO_RADIUS, Objective
from axplore.types import RESET_ACTION, Status
from made_counts import made_counts

DELTA = 0.1
MANY = 10**6
FIRST_WEIGHT = 1 / 11
"""The part of δ of the pairs of the first state, together."""


def certificate(counts: Counts, **settings: Any) -> Certificate:
    """Counts without claims, or with those given."""
    basis: dict[str, Any] = {
        "radius": 2.0,
        "epsilon": 0.5,
        "delta": DELTA,
        "objective": Objective.WITHIN_RADIUS,
        "counts": counts,
        "complete": False,
    }
    return Certificate(**basis | settings)


def two_states() -> Counts:
    """A certain step from each state to the other."""
    return made_counts([[(1, MANY, 1)], [(0, MANY, 1)]], labels=["s0", "s1"])


def floats(*values: float) -> Vector[np.float64]:
    return Vector.complete(np.array(values))


def one_step(upper: float) -> Reachable:
    """The claim that the second of two states is a step away."""
    return Reachable(1, Vector.complete(np.array([0, RESET_ACTION])), floats(upper, 0.0))


class TestMinProbability:
    kind = MinProbability()

    def given(self, rows: list[list[tuple[int, int, int]]], numbers: list[float]) -> Given:
        counts = made_counts(rows, [len(rows)])
        return given_rows(counts, [len(rows)], DELTA, self.assumed(numbers), None)

    def assumed(self, numbers: list[float]) -> Assumed:
        return Assumed({self.kind.name: np.array(numbers)})

    def test_zero_says_nothing_and_every_other_number_something(self) -> None:
        assert self.given([[], [], []], [0.0, 0.5, 0.01]).most == [math.inf, 2, 100]

    def test_its_range_includes_both_ends(self) -> None:
        inside = (LEAST_PROBABILITY, 1.0)
        outside = (math.nextafter(LEAST_PROBABILITY, 0.0), math.nextafter(1.0, 2.0))
        assert all(map(self.kind.means_something, inside))
        assert not any(map(self.kind.means_something, outside))

    def test_closing_takes_its_part_of_delta(self) -> None:
        given = self.given([[(0, 9, 1)]], [0.5])
        assert given.closes_by_chance
        assert given.closing == [math.ceil(math.log2(2 / (CLOSING * DELTA * FIRST_WEIGHT)))]

    def test_what_closing_takes_the_shared_martingale_lacks(self) -> None:
        counts = made_counts([[(0, 9, 1)], [(0, MANY, 1)]], [2])
        region = confidence_region(counts, [2], DELTA, self.assumed([0.5, 0.0]))
        budget = -math.log((SHARED - CLOSING) * JOINING[0][1] * DELTA) - math.log1p(-FIRST_WEIGHT / 2 / 2)
        assert region.slack[region.pairs.tolist().index(1)] == pytest.approx(budget / (MANY - 1), rel=1e-9)

    def test_a_support_closes_with_just_that_draw(self) -> None:
        last = int(self.given([[]], [0.1]).closing[0])
        for draws, closed in ((last - 1, False), (last, True)):
            counts = made_counts([[(0, draws - 9, 1), (1, 9, 2)]], [1])
            region = confidence_region(counts, [1], DELTA, self.assumed([0.1]))
            assert region.supports.closed.tolist() == [closed]

    def test_an_outcome_is_too_rare_once_its_share_of_false_alarms_is_spent(self) -> None:
        needed = math.log(10 / (FALSE_ALARM * FIRST_WEIGHT))
        found = []
        for count in range(1, 100):
            drawn = self.given([[(0, count, 1), (1, 1000 - count, 2)]], [0.1]).drawn
            found.append(self.kind.contradiction(self.assumed([0.1]), drawn) is not None)
            assert found[-1] == (log_rarity(count, 1000, 0.1) >= needed)
        assert 0 < sum(found) < len(found)

    def test_a_probability_near_one_is_contradicted_too(self) -> None:
        drawn = self.given([[(0, 900, 1), (1, 100, 2)]], [0.995]).drawn
        assert self.kind.contradiction(self.assumed([0.995]), drawn) is not None

    def test_what_came_as_often_as_assumed_is_not_rare(self) -> None:
        assert log_rarity(10, 100, 0.1) == 0.0

    def test_it_is_said_whether_all_numbers_are_the_same(self) -> None:
        (alike,), (other,) = (self.kind.clauses(self.assumed(numbers)) for numbers in ([0.1, 0.1], [0.2, 0.1]))
        assert alike == "no outcome of an action is rarer than 0.1"
        assert other == "no outcome of an action is rarer than declared, 0.1 at the least"


def test_a_number_of_outcomes_is_whole() -> None:
    assert [Outcomes().means_something(number) for number in (1.0, 2.0, 2.5, 3.0)] == [False, True, False, True]


def test_tied_pairs_show_the_draws_of_their_class_where_these_lead() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    counts = made_counts([[(0, 3, 1), (1, 2, 2)], [(0, 4, 1)], [(1, 5, 1)]], [1, 1, 1])
    names = Labels([("class", "x"), ("class", "y")])
    ties = Ties(names, np.array([0, 1, 0, -1]), nothing.reshape(0, 3), np.zeros(2, dtype=np.int64), nothing)
    rows = pooled(counts, ties, [0, 0, -1])
    assert rows.successors.tolist() == [0, 1, 0, UNKNOWN, 1]
    assert rows.counts.tolist() == [7, 2, 7, 2, 5]


def test_a_way_may_lead_to_the_first_state_that_is_not_known() -> None:
    counts = made_counts([[(1, 1001, 1)]], [1])
    bounds = bounds_along_way(counts, np.array([0, 1]), 1, Vector.complete(np.array([0])), 0.5)
    assert bounds is not None
    assert bounds[0] == pytest.approx(1 + 2 * math.expm1(0.5 / 1000), rel=1e-6)


def test_what_is_concluded_of_a_policy_is_the_bound_that_is_proven() -> None:
    subject, claim = certificate(two_states()), one_step(1.1)
    assert upper_steps(claim) == pytest.approx(proven_upper(Sweeper.of(subject), claim)[0], rel=1e-12)


def test_bounds_go_up_to_the_largest() -> None:
    check_numbers(floats(LARGEST), 1)
    for number in (math.nextafter(LARGEST, math.inf), math.nan):
        with pytest.raises(UnprovenError):
            check_numbers(floats(number), 1)
    with pytest.raises(InvalidInputError):
        certificate(two_states(), claims=(one_step(-math.nextafter(0.0, 1.0)),))


def last_that_holds(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """The number next to the border, on its good side."""
    while good != (middle := (good + bad) / 2) != bad:
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


class TestMargins:
    """No bound is accepted that holds by less than its margin: it is what a sweep might owe to rounding."""

    @pytest.fixture
    def sweeper(self) -> Sweeper:
        return Sweeper.of(certificate(made_counts([[(0, 3000, 1), (1, 7000, 2)]], [1], labels=["s0", "other"])))

    def test_of_upper_bounds(self, sweeper: Sweeper) -> None:
        policy = np.array([0])

        def holds(upper: float) -> bool:
            claim = Reachable(1, Vector.complete(policy), floats(upper))
            try:
                return bool(proven_upper(sweeper, claim)[0])
            except UnprovenError:
                return False

        least = corrected_upper(floats(last_that_holds(holds, 3.0, 1.0)))
        mean = sweeper.greatest_means(least, 1, 1.0 + least[0], policy, np.full(1, -np.inf))[0]
        assert 0.9 * margin(least) <= least[0] - (1.0 + mean) <= 1.1 * margin(least) + 1e-15

    def test_of_lower_bounds(self, sweeper: Sweeper) -> None:
        def holds(lower: float) -> bool:
            try:
                return bool(proven_lower(sweeper, TooFar(1, floats(lower)))[0])
            except UnprovenError:
                return False

        greatest = corrected_lower(floats(last_that_holds(holds, 1.0, 3.0)))
        mean = sweeper.least_means(greatest, 1, np.full(1, np.inf))[0]
        assert 0.9 * margin(greatest) <= 1.0 + mean - greatest[0] <= 1.1 * margin(greatest) + 1e-15


def test_sums_of_logarithms_lack_what_rounding_may_have_added() -> None:
    terms = np.array([1e6]), np.array([-1e6])
    assert _rounded_down(*terms)[0] == pytest.approx(-2 * ROUNDING * (SERIES + 1e6), rel=1e-2)


class TestConclusions:
    def test_the_promise_of_a_goal_says_how_it_is_reached(self) -> None:
        goal = NamedStates("", np.array([1]))
        verdict = verify(certificate(two_states(), goal=goal, claims=(one_step(1.1),)))
        assert verdict.complete
        assert "is reached within 1.100001 expected steps by its policy" in verdict.conclusion[0]

    def test_what_is_missing_is_counted(self) -> None:
        verdict = verify(certificate(two_states()))
        first, *others = verdict.open_parts
        assert others
        assert f"NOT COMPLETE: {first}, and {len(others)} more are open." in verdict.conclusion

    @pytest.mark.parametrize(
        ("objective", "status"), [(Objective.OPTIMAL, Status.OPEN), (Objective.WITHIN_RADIUS, Status.CERTIFIED)]
    )
    def test_only_where_the_best_policy_is_asked_for_it_takes_more_than_reaching(
        self, objective: Objective, status: Status
    ) -> None:
        subject = certificate(two_states(), objective=objective, claims=(one_step(1.1),))
        assert conclusions_of(subject).statuses[1] is status

    def test_that_the_first_state_set_aside_is_no_goal_within_reach_takes_a_map(self) -> None:
        counts = made_counts([[(0, MANY, 1)], [(1, 5, 1)]], [2], labels=["s0", "other"])
        claims = tuple(TooFar(goal, floats(3.0)) for goal in (1, 2))
        subject = certificate(counts, goal=NamedStates("", np.array([1])), claims=claims)
        assert conclusions_of(subject).open_parts == ()

    def test_draws_that_contradict_an_assumption_are_named(self) -> None:
        counts = made_counts([[(0, 1, 1), (1, 1, 2)], [(0, 5, 1)]], labels=["s0", "s1"])
        verdict = verify(certificate(counts, assumed=Assumed({"deterministic": np.ones(2)})))
        assert "action 'a0' of state 's0' led to 's0' and 's1'" in verdict.conclusion[0]

    def test_every_state_but_the_initial_one_may_be_at_least_some_steps_away(self) -> None:
        assert verify(certificate(two_states(), claims=(AtLeast(1, floats(1.0, 0.0)),))).holds
        with pytest.raises(InvalidInputError):
            certificate(two_states(), claims=(AtLeast(0, floats(0.0, 1.0)),))

    def test_one_state_is_the_initial_one(self) -> None:
        assert promise(1, 2.0, 0.5, None).startswith("the initial state is")
        assert promise(2, 2.0, 0.5, None).startswith("2 states are")

    def test_faults_of_one_kind_and_pair_are_summed(self) -> None:
        first, again = Fault(FaultKind.LOST, "first", None, 1), Fault(FaultKind.LOST, "again", None, 5, 2)
        other = Fault(FaultKind.CLOSED, "other", None, 3)
        assert summed_faults([first, other, again]) == (structs.replace(first, count=3), other)


class TestDistances:
    def test_shortest_ways_are_followed_from_the_initial_state(self) -> None:
        ways = shortest_ways(np.array([NO_PAIR, 1, 2]), np.array([0, 2, 4, 6]))
        reset = RESET_ACTION
        assert [way.tolist() for way in ways] == [[reset] * 3, [1, reset, reset], [1, 0, reset]]

    def test_the_limit_of_reach_is_the_radius_and_epsilon(self) -> None:
        bounds = ExactBounds(lower=np.array([0, 2, 2, 3.0]), upper=np.array([0, 2.5, 2.6, math.inf]), unseen=3.0)
        certified, is_open, beyond = Status.CERTIFIED, Status.OPEN, Status.SET_ASIDE
        statuses = bounds.statuses(3, 2.0, 0.5, Objective.WITHIN_RADIUS)
        assert statuses == (certified, certified, is_open, beyond)

    def test_a_pair_never_drawn_may_lead_anywhere(self) -> None:
        counts = made_counts([[(1, 1, 1)], []], labels=["s0", "s1"])
        bounds = exact_bounds(Distances(np.array([0, 1]), np.array([NO_PAIR, 0])), counts, np.array([0, 1]))
        assert (bounds.lower.tolist(), bounds.upper.tolist(), bounds.unseen) == ([0, 1], [0, 1], 2)


def test_the_fewest_steps_of_a_record_are_those_from_the_initial_state() -> None:
    """From the second state it takes one more, by a RESET; that this is beyond the bound says nothing."""
    rows = [[(0, 50_000, 1), (2, 50_000, 2)], [(1, 10, 1)], [(1, 100_000, 1)], []]
    record = EpisodeRecord(
        goal=2, states=(0, 1), actions=(0, 0), horizon=1, bound=1.9, at_most=1.9, tail=3.0, line=1, turn=1,
        fractions=(0.5,), weights=(1.0,), outcomes=(0, 1, 0),
    )  # fmt: skip
    assert 1.9 < least_steps([record], Sweeper.of(certificate(made_counts(rows, [2, 1, 1]))))[0] <= 2.0


class TestProperties:
    kind = PropertyKind()

    def question(self, counts: Counts, **settings: Any) -> Certificate:
        return certificate(counts, radius=NO_RADIUS, objective=Objective.QUESTION, **settings)

    def checked(self, claim: PropertyClaim, subject: Certificate) -> ClaimCheck:
        self.kind.check_shape(claim, subject)
        (check,) = self.kind.checks([claim], Checking(subject, set()))
        return check

    def claim(self, lower: list[float], upper: list[float], policy: list[int], ranks: list[int]) -> PropertyClaim:
        return PropertyClaim(
            text='Pmax=? [ F "goal" ]', names=(), costs=np.zeros(0), lower=np.array(lower), upper=np.array(upper),
            policy=np.array(policy, dtype=np.int64), ranks=np.array(ranks, dtype=np.int64),
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("within", "ranks", "enough"), [("", [0], math.inf), ("<=1", [], -math.inf)], ids=["at some time", "in a step"]
    )
    def test_what_rounding_might_add_to_a_mean_is_no_proof(self, within: str, ranks: list[int], enough: float) -> None:
        """Forged by less than the margin: the bounds are the means themselves."""
        counts = made_counts([[(1, 5000, 1), (2, 5000, 2)]], [1], labels=["s0", "goal", "bad"])
        subject = self.question(counts)
        region = Sweeper.of(subject).region
        least = float(region.least_means(np.array([0.0, 1.0, 0.0]), enough)[0])
        greatest = 1.0 - float(region.least_means(np.array([0.0, 0.0, 1.0]), enough)[0])

        def holds(lower: float, upper: float) -> bool:
            claim = structs.replace(
                self.claim([lower], [upper], [0] if ranks else [], ranks),
                text=f'Pmax=? [ !"bad" U{within} "goal" ]',
            )
            return self.checked(claim, subject).holds

        assert holds(least - 2 * MARGIN, greatest + 2 * MARGIN)
        assert not holds(least, greatest + 2 * MARGIN)
        assert not holds(least - 2 * MARGIN, greatest)

    def test_a_state_that_is_not_known_may_lead_to_the_goal(self) -> None:
        subject = self.question(made_counts([[(1, MANY, 1), (2, 2, 5)]], [1], labels=["s0", "other", "goal"]))
        assert self.checked(self.claim([0.0], [1.0], [0], [NO_CHOICE]), subject).holds
        assert not self.checked(self.claim([0.0], [0.01], [0], [NO_CHOICE]), subject).holds

    def test_ranks_begin_with_zero(self) -> None:
        subject = self.question(made_counts([[(1, MANY, 1)]], [1], labels=["s0", "goal"]))
        assert self.checked(self.claim([0.9], [1.0], [0], [0]), subject).holds
        assert not self.checked(self.claim([0.9], [1.0], [0], [NO_CHOICE]), subject).holds

    def test_no_probability_is_above_one_and_no_policy_plays_where_nothing_can_be_played(self) -> None:
        subject = self.question(made_counts([[(1, MANY, 1)]], [1, 0], labels=["s0", "goal"]))
        ranks = [0, NO_CHOICE]
        assert self.checked(self.claim([0.9, 1.0], [1.0, 1.0], [0, NO_CHOICE], ranks), subject).holds
        with pytest.raises(InvalidInputError, match="not a number from"):
            self.checked(self.claim([0.9, 1.0], [1.05, 1.0], [0, NO_CHOICE], ranks), subject)
        with pytest.raises(InvalidInputError, match="an action that does not exist"):
            self.checked(self.claim([0.9, 1.0], [1.0, 1.0], [0, 0], ranks), subject)

    def test_what_rounding_might_add_to_a_cost_is_no_proof(self) -> None:
        rows = made_counts([[(0, 3000, 1), (1, 7000, 2)]], [1], labels=["s0", "goal"])
        subject = self.question(rows, assumed=Assumed({"outcomes": np.full(1, 2.0)}))
        checking, empty, cost = Checking(subject, set()), np.zeros(0, dtype=np.int64), 1.0

        def holds(lower: float, upper: float) -> bool:
            claim = PropertyClaim(
                text='Rmin=? [ F "goal" ]', names=(), costs=np.array([cost]), lower=np.array([lower]),
                upper=np.array([upper]), policy=np.array([0]), ranks=empty,
            )  # fmt: skip
            (check,) = self.kind.checks([claim], checking)
            return check.holds

        region = checking.sweeper.region
        lower = last_that_holds(lambda lower: holds(lower, 9.0), 1.0, 3.0)
        upper = last_that_holds(lambda upper: holds(1.0, upper), 9.0, 1.0)
        least = float(region.least_means(np.array([lower, 0.0]))[0])
        greatest = upper - float(region.least_means(np.array([0.0, upper]))[0])
        assert cost + least - lower >= 0.9 * margin(np.array([lower]))
        assert upper - (cost + greatest) >= 0.9 * margin(np.array([upper]))

    @pytest.mark.parametrize(("upper", "holds"), [(1.0 + 1e-9, True), (1.0, False), (0.995, False), (0.5, False)])
    def test_no_policy_costs_less_than_its_first_action(self, upper: float, holds: bool) -> None:
        """After it nothing more is to be paid, and what would be left for that is not negative."""
        rows = made_counts([[(1, 5, 1)]], [1], labels=["s0", "goal"])
        claim = PropertyClaim(
            text='Rmin=? [ F "goal" ]', names=(), costs=np.array([1.0]), lower=np.zeros(1), upper=np.array([upper]),
            policy=np.array([0]), ranks=np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        subject = self.question(rows, assumed=Assumed({"deterministic": np.ones(1)}))
        assert self.checked(claim, subject).holds == holds

    @pytest.mark.parametrize(("last", "holds"), [(0.25, True), (0.0, False)])
    def test_a_policy_of_bounded_cost_plays_nothing_for_free(self, last: float, holds: bool) -> None:
        counts = made_counts([[(1, MANY, 1)], [(2, MANY, 1)]], labels=["s0", "s1", "goal"])
        subject = self.question(counts, assumed=Assumed({"deterministic": np.ones(2)}))
        empty = np.zeros(0, dtype=np.int64)
        claim = PropertyClaim(
            text='Rmin=? [ F "goal" ]', names=(), costs=np.array([1.0, last]), lower=np.zeros(2),
            upper=np.array([1.5, 0.4]), policy=np.array([0, 0]), ranks=empty,
        )  # fmt: skip
        check = self.checked(claim, subject)
        assert check.holds == holds
        assert ("costs nothing" in check.why) != holds


def test_the_states_of_a_name_are_among_those_seen() -> None:
    check_named("a name", NamedStates("name", np.array([0, 2])), 3)
    with pytest.raises(InvalidInputError, match="whole number from 0 to 2"):
        check_named("a name", NamedStates("name", np.array([0, 3])), 3)


def test_an_output_that_a_memory_has_never_met_is_a_state_of_its_own() -> None:
    counts = made_counts([[(1, 3, 1)]], [1], labels=["s0", "new"])
    assert misplaced_situation(Memory(("seen",), ("s0",), {}), counts) is None
