"""The claim that a policy keeps a bound, by its episodes.

A record says of one test that the policy, played from the initial state and restarted by RESET after `horizon` steps
without the goal, reaches the goal within `at_most` expected steps. That is proven by the outcomes of the episodes
alone, without the rows. An episode that took k steps multiplies what was staked by
1 - λ (k - at_most) / (horizon + tail - bound), where one that missed counts as horizon + tail steps. If the policy took
longer, that product would be a supermartingale that starts at 1, so it would hardly ever reach 1 / level. The same bets
serve for every bound from `bound` on, the least that was to be proven. docs/algorithms/episodes.md has the proof.

A miss is counted as `tail` more steps, at least those of a restart, 1 + `at_most`. So the record proves more: the
policy *that does not restart* keeps the bound too, if from wherever it may stand after `horizon` steps it needs at most
`tail` more.

Levels are given to *lines* of tests. The tests of a line are numbered by *turns* 1, 2, ...; each began only after the
one before it had ended. The first has the level share / (line (line + 1)), and each leaves to the next what its wealth,
by the least bound, has not lost of its own. So a record is worth nothing unless all earlier turns of its line stand
beside it; those that prove no bound stand there for what they left.

Every draw of an episode is counted in the rows too. So a record is refused if the rows cannot hold its episodes, or
prove that its policy takes longer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.certificate.bounds import ROUNDING as CORRECTION
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.kinds.kind import Checking, Kind, subject_of
from axplore.certificate.kinds.tested_optimality import optimal_by_test
from axplore.certificate.levels import EPISODES
from axplore.certificate.promise import lower_text, upper_text
from axplore.certificate.ranges import LEAST_STEPS, MOST_STEPS, check_each_whole, check_real, check_whole
from axplore.certificate.region import Region, spans
from axplore.errors import InvalidInputError
from axplore.records.counts import Counts
from axplore.records.episodes import EpisodeRecord
from axplore.types import RESET_ACTION, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.certificate.bellman import Sweeper
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate

ROUNDING: Final = 1e-13
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""

LEAST_STAKE: Final = 1e-100
"""The smallest part of a wealth that may be staked."""

SWEEPS: Final = 100
"""How often, at most, a lower bound of what a policy takes is improved; each is a lower bound."""

MOST_AT_ONCE: Final = 2**17
"""Policies that play about as many actions are looked at together, so that memory does not grow with all of them."""

SETTLED: Final = 1e-6
"""A lower bound that grows by less than this in a sweep is not improved further."""


class EpisodesKind(Kind[EpisodeRecord]):
    """A policy reaches the goal within a bound, whatever the labels hide."""

    record, name, words = EpisodeRecord, "episodes", "reachable"

    def check_shape(self, claim: EpisodeRecord, certificate: Certificate) -> None:
        check_ranges(claim)
        check_whole("the goal of a record of episodes", claim.goal, 1, len(certificate.counts.order) - 1)

    def checks(self, claims: Sequence[EpisodeRecord], checking: Checking) -> Iterator[ClaimCheck]:
        certificate = checking.certificate
        refusals = check_records(claims, EpisodeSetting(EPISODES * certificate.delta, certificate.counts))
        steps = least_steps(claims, checking.sweeper)
        for record, refused, least in zip(claims, refusals, steps.tolist(), strict=True):
            if record.at_most is None and refused is None:
                continue  # it says nothing of its goal
            why_not = refused or _contradiction(record, least)
            by = "by states admitted before it" if record.plays_before_goal else "by all known states"
            why = f"{record.n_episodes} episodes {by}: within {upper_text(record.steps)} expected steps"
            why += f", of {certificate.reach:.6g}, whatever the labels hide"
            words = self.words if record.plays_before_goal else "at most"
            subject = subject_of(certificate, record.goal), record.goal
            yield ClaimCheck(words, *subject, why_not is None, why_not or why)
        yield from self._check_tested(checking)

    def _check_tested(self, checking: Checking) -> Iterator[ClaimCheck]:
        """Checks of each policy that is near-optimal by its test whether all claims that this rests on are proven."""
        for goal, tested in optimal_by_test(checking.certificate).items():
            lower, upper = tested.lower, tested.upper
            interval = f"between {lower_text(lower)} and {upper_text(upper)} expected steps"
            why = f"{interval}, at most {upper_text(upper - lower)} from the best"
            holds = goal not in checking.failed
            why = why if holds else "it rests on a claim that is not proven"
            yield ClaimCheck("near-optimal", subject_of(checking.certificate, goal), goal, holds, why)

    def conclude(self, claims: Sequence[EpisodeRecord], draft: Draft) -> None:
        certificate, n_known = draft.certificate, len(draft.certificate.known)
        for record in reversed(claims):
            if record.steps <= certificate.reach and record.plays_before_goal:
                draft.reached.add(record.goal)
                if record.goal not in draft.ways:  # what the region proves comes first
                    draft.use(record.goal, record.policy(n_known), record.steps, record.horizon)
        for goal, tested in optimal_by_test(certificate).items():
            draft.optimal.add(goal)
            draft.use(goal, tested.way.policy, tested.upper)


def check_ranges(record: EpisodeRecord) -> None:
    """Refuses numbers that no test has."""
    for name in ("goal", "horizon", "line", "turn"):
        check_whole(f"{name!r} in a record of episodes", getattr(record, name), 1)
    for name, least in (("states", 0), ("actions", 0), ("outcomes", 0)):
        check_each_whole(f"{name!r} in a record of episodes", getattr(record, name), least)
    if len(record.states) != len(record.actions) or any(a >= b for a, b in pairwise(record.states)):
        raise InvalidInputError("a record of episodes does not say once for each state what its policy plays")
    for name in ("bound", "tail", *(() if record.at_most is None else ("at_most",))):
        check_real(f"{name!r} in a record of episodes", getattr(record, name), LEAST_STEPS, MOST_STEPS)
    for name in ("fractions", "weights"):
        for item in getattr(record, name):
            check_real(f"{name!r} in a record of episodes", item, LEAST_STAKE, 1.0)


@dataclass(frozen=True)
class EpisodeSetting:
    """What the records of a certificate are checked against.

    Attributes:
        share: the part of δ that all tests by episodes have together, as a probability.
        counts: every draw, those of the episodes included; the states counted are the known ones.
    """

    share: float
    counts: Counts

    @cached_property
    def n_actions(self) -> list[int]:
        """Of each known state beside RESET, in the order of admission, [n]."""
        return [len(actions) for actions in self.counts.actions]

    @cached_property
    def entries(self) -> IntArray:
        """How often a draw led to each state, [n + others]."""
        led = np.bincount(self.counts.successors, self.counts.counts, minlength=len(self.counts.order))
        return led.astype(np.int64)


def check_records(records: Sequence[EpisodeRecord], setting: EpisodeSetting) -> tuple[str | None, ...]:
    """For each record None if it is accepted, or else the reason why it is not."""
    by_turn: dict[tuple[int, int], list[int]] = {}
    for number, record in enumerate(records):
        by_turn.setdefault((record.line, record.turn), []).append(number)
    reached, begun = Counter[int](), Counter[int]()
    for record in records:
        reached[record.goal] += record.n_arrivals
        begun[_first_action(record)] += record.n_arrivals
    refusals = [
        _policy_misfit(record, setting)
        or _bound_misfit(record)
        or _test_misfit(record)
        or _unsupported(record, reached[record.goal], begun[_first_action(record)], setting)
        for record in records
    ]
    left: dict[int, tuple[int, float]] = {}  # by line: the last turn that is in order, and the nats that the next needs
    for (line, turn), numbers in sorted(by_turn.items()):
        first = numbers[0]
        before, needed = left.get(line, (0, -math.log(level_of(line, setting.share))))
        if len(numbers) > 1:
            for number in numbers:
                refusals[number] = f"turn {turn} of line {line} stands {len(numbers)} times"
        elif before != turn - 1:
            refusals[first] = refusals[first] or f"turn {turn - 1} of its line {line} is missing, or refused"
        elif refusals[first] is None:
            refusals[first] = _unproven(records[first], needed)
            left[line] = turn, needed - min(0.0, log_wealth(records[first], records[first].bound))
    return tuple(refusals)


def _unproven(record: EpisodeRecord, needed: float) -> str | None:
    """Why the evidence, in nats, does not suffice for the bound of a record; None if it does, or there is none."""
    if record.at_most is not None and not (wealth := log_wealth(record, record.at_most)) >= needed:
        return f"its {record.n_episodes} episodes gain {wealth:.6g} nats, of {needed:.6g}"
    return None


def _policy_misfit(record: EpisodeRecord, setting: EpisodeSetting) -> str | None:
    """What is wrong with the goal and the policy; None if nothing is."""
    if record.at_most is not None and not record.goal < len(setting.n_actions):
        return "its goal is no known state"
    if record.states and record.states[-1] >= len(setting.n_actions):
        return "its policy plays in states that are not known"
    plays = zip(record.states, record.actions, strict=True)
    if any(action >= setting.n_actions[state] for state, action in plays):
        return "its policy plays an action that does not exist"
    if record.states[:1] != (0,):
        return "its policy never leaves the initial state"
    return None


def _bound_misfit(record: EpisodeRecord) -> str | None:
    """What is wrong with the bounds; None if nothing is."""
    bound = record.bound if record.at_most is None else record.at_most
    if bound < record.bound:
        return f"it claims {bound:g} steps, fewer than the least bound of its bets"
    if record.tail < 1.0 + bound:
        return f"its misses are counted as {record.tail:g} more steps, fewer than a restart takes"
    return None


def _test_misfit(record: EpisodeRecord) -> str | None:
    """What is wrong with the outcomes and the bets; None if nothing is."""
    if len(record.outcomes) != record.horizon + 2:
        return f"it has {len(record.outcomes)} outcomes, which do not fit a horizon of {record.horizon} steps"
    if record.outcomes[0]:
        return "no episode can reach another state than the initial one without a step"
    if not record.fractions or len(record.fractions) != len(record.weights) or max(record.fractions) >= 1:
        return "its bets are invalid"
    if math.fsum(record.weights) > 1:
        return "it stakes more than the wealth it starts with"
    return None


def level_of(line: int, share: float) -> float:
    """The level of a line; those of all lines sum to the share, because 1/(j (j + 1)) = 1/j - 1/(j + 1)."""
    return share / (line * (line + 1.0))


def log_wealth(record: EpisodeRecord, bound: float) -> float:
    """The logarithm of the final wealth of bets on a bound, rounded down."""
    terms = [_log_wealth_of(record, bound, *bet) for bet in zip(record.fractions, record.weights, strict=True)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - ROUNDING


def _log_wealth_of(record: EpisodeRecord, bound: float, fraction: float, weight: float) -> float:
    terms, most = [math.log(weight)], record.horizon + (record.tail - record.bound)
    for steps, times in enumerate(record.outcomes):
        taken = steps if steps <= record.horizon else record.horizon + record.tail
        if times:
            terms.append(times * math.log1p(-fraction * min(1.0, (taken - bound) / most)))
    return math.fsum(terms) - ROUNDING * (1.0 + math.fsum(map(abs, terms)))


def _first_action(record: EpisodeRecord) -> int:
    """What the policy plays in the initial state."""
    return record.actions[0] if record.states[:1] == (0,) else RESET_ACTION


def _unsupported(record: EpisodeRecord, reached: int, begun: int, setting: EpisodeSetting) -> str | None:
    """Why the rows, which count every draw of the episodes, cannot hold these; None if they can.

    Args:
        record: the record.
        reached: how often the episodes of all records with its goal reached that.
        begun: how many arrivals of all records began with its action of the initial state.
        setting: with the draws.
    """
    entered = int(setting.entries[record.goal])
    if reached > entered:
        return f"its episodes reached the goal {reached} times, the draws only {entered} times"
    drawn = int(setting.counts.visits[record.actions[0]])
    if begun > drawn:
        return f"{begun} arrivals begin with an action of the initial state that was drawn {drawn} times"
    return _impossible_arrival(record, setting.counts)


def _impossible_arrival(record: EpisodeRecord, counts: Counts) -> str | None:
    """What no walk along the draws that were counted can have done under the policy; None if there is nothing."""
    walk = _Walk.of(record, counts)
    if record.n_arrivals > walk.n_entries:
        return f"its policy entered the goal {walk.n_entries} times, fewer than its {record.n_arrivals} arrivals"
    taken = [steps for steps, times in enumerate(record.outcomes[:-1]) if times]
    possible = walk.arrivals(max(taken, default=0))
    for steps in taken:
        if not possible[steps]:
            return f"no draws that were counted lead its policy to the goal in {steps} steps"
    return None


@dataclass(frozen=True, eq=False)
class _Walk:
    """Where a policy may lead by what was drawn, among the states in which it plays, the goal, and all others.

    Attributes:
        goal: its index among these; that of all others, where it resets, is the next.
        sources, targets: the steps that are possible, [e] each.
        n_entries: how often the draws of the policy led to the goal.
    """

    goal: int
    sources: IntArray
    targets: IntArray
    n_entries: int

    @classmethod
    def of(cls, record: EpisodeRecord, counts: Counts) -> _Walk:
        states = np.array(record.states, dtype=np.int64)
        pairs, goal = counts.state_pairs[states] + np.array(record.actions, dtype=np.int64), len(states)
        lengths = np.diff(counts.row_offsets)[pairs]
        entries = spans(counts.row_offsets[pairs], lengths)
        targets = _places_among(states, counts.successors[entries], record.goal)
        return cls(
            goal=goal,
            sources=np.append(np.repeat(np.arange(goal), lengths), goal + 1),
            targets=np.append(targets, 0),
            n_entries=int(counts.counts[entries][targets == goal].sum()),
        )

    def arrivals(self, most: int) -> BoolArray:
        """Whether the goal can be met for the first time after 0, 1, ..., `most` steps, [most + 1]."""
        possible = np.zeros(most + 1, dtype=np.bool_)
        here = np.zeros(self.goal + 2, dtype=np.bool_)
        here[0] = True
        met: dict[bytes, int] = {}
        for steps in range(1, most + 1):
            if here.tobytes() in met:  # from here on everything repeats
                period = steps - met[here.tobytes()]
                possible[steps:] = np.resize(possible[steps - period : steps], most + 1 - steps)
                break
            met[here.tobytes()] = steps
            reached = self.targets[here[self.sources]]
            here = np.zeros(self.goal + 2, dtype=np.bool_)
            here[reached] = True
            possible[steps], here[self.goal] = here[self.goal], False
        return possible


def _places_among(states: IntArray, found: IntArray, goal: int) -> IntArray:
    """Where states stand among some that ascend; the goal after these, and all others after the goal."""
    places = np.minimum(np.searchsorted(states, found), len(states) - 1)
    places[states[places] != found] = len(states) + 1
    places[found == goal] = len(states)
    return places


def _contradiction(record: EpisodeRecord, least: float) -> str | None:
    """What the rows prove against a record, by a lower bound of the steps of its policy; None if nothing."""
    if least > record.steps:
        return f"its policy takes more than {least:.6g} expected steps by the rows, of {record.steps:.6g} claimed"
    return None


def least_steps(records: Sequence[EpisodeRecord], sweeper: Sweeper) -> FloatArray:
    """Lower bounds, over the region, of the expected steps of policies that may also RESET whenever they like, [r].

    A policy that restarts after a horizon is one of these. From below, every sweep gives a lower bound. Records with
    policies that cannot be are not looked at.
    """
    steps, n_actions = np.zeros(len(records)), np.diff(sweeper.state_pairs)
    possible = [place for place, record in enumerate(records) if _is_possible(record, n_actions)]
    first = 0
    while first < len(possible):
        sizes = np.cumsum([len(records[place].states) for place in possible[first:]])
        some = possible[first : first + 1 + int(np.searchsorted(sizes[1:], MOST_AT_ONCE))]
        steps[some] = _Least.of([records[place] for place in some], sweeper).steps()
        first += len(some)
    return steps


def _is_possible(record: EpisodeRecord, n_actions: IntArray) -> bool:
    """Whether a policy leaves the initial state, and plays what there is."""
    if record.states[:1] != (0,) or record.states[-1] >= len(n_actions):
        return False
    return bool((np.array(record.actions) < n_actions[list(record.states)]).all())


@dataclass(frozen=True, eq=False)
class _Least:
    """Lower bounds of the steps of some policies, in the states in which they play.

    Attributes:
        records: of which the policies are.
        region: that of the pairs which they play, one policy after the other.
        first: the first pair of each, [r].
        owners: the policy of each pair, [m].
        at_goal: the pairs that are played in the goal, where nothing is to be done, [m].
        leads_to: for each entry of these pairs the place of its value: that of a pair, or of what is outside a policy,
            or of the goal, [E''].
    """

    records: Sequence[EpisodeRecord]
    region: Region
    first: IntArray
    owners: IntArray
    at_goal: BoolArray
    leads_to: IntArray

    @classmethod
    def of(cls, records: Sequence[EpisodeRecord], sweeper: Sweeper) -> _Least:
        lengths = np.array([len(record.states) for record in records])
        first, owners = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(records)), lengths)
        states = np.concatenate([record.states for record in records]).astype(np.int64)
        actions = np.concatenate([record.actions for record in records]).astype(np.int64)
        goals = np.array([record.goal for record in records])
        region, found = sweeper.region.among(sweeper.state_pairs[states] + actions)
        of_entry = np.repeat(owners, np.diff(region.supports.row_offsets))
        keys = owners * sweeper.n_seen + states
        leads_to = np.minimum(np.searchsorted(keys, of_entry * sweeper.n_seen + found), len(keys) - 1)
        is_outside = keys[leads_to] != of_entry * sweeper.n_seen + found
        leads_to[is_outside] = len(keys) + of_entry[is_outside]
        leads_to[(found == goals[of_entry]) | (found < 0)] = len(keys) + len(records)
        return cls(records, region, first, owners, states == goals[owners], leads_to)

    def steps(self) -> FloatArray:
        """Those from the initial state, [r]."""
        limits = np.array([record.steps for record in self.records])
        lower, is_done = np.zeros(len(self.owners)), np.zeros(len(self.records), dtype=np.bool_)
        for _ in range(SWEEPS):
            start = lower[self.first]
            means = self.region.least_means(np.concatenate((lower, 1.0 + start, [0.0]))[self.leads_to], -np.inf)
            better = np.minimum(1.0 + start[self.owners], 1.0 + means)
            better[self.first] = 1.0 + means[self.first]  # RESET leads nowhere from there
            better[self.at_goal | is_done[self.owners]] = 0.0
            gained = np.maximum.reduceat(better - lower, self.first)
            lower = np.maximum(lower, better)
            is_done |= (gained < SETTLED) | (lower[self.first] / (1.0 + CORRECTION) > limits)
            if is_done.all():
                break
        return lower[self.first] / (1.0 + CORRECTION)
