"""What episodes prove, and the verifier's own check of it.

A record says of one test that the policy, played from the initial state and restarted by RESET after `horizon` steps
without the goal, reaches the goal within `bound` expected steps. It is checked from the outcomes of the episodes alone,
without the rows: an episode that took k steps multiplies what was staked by 1 - λ (k - bound) / (horizon + 1), and one
that missed by 1 - λ. If the policy took longer than the bound, that product would be a supermartingale that starts at
1, so it would hardly ever reach 1 / level. docs/algorithms/episodes.md has the proof.

A miss may be counted as dearer than a restart: as `tail` more steps, where a restart takes 1 + `bound`. Then
horizon + tail - bound stands in place of horizon + 1, and the record proves more: the policy *that does not restart*
keeps the bound too, if from wherever it may stand after `horizon` steps it needs at most `tail` more.

Levels are given to *lines* of tests. The tests of a line are numbered by *turns* 1, 2, ...; each began only after the
one before it was proven. So one level, share / (line (line + 1)), serves a whole line, however long it gets, and a
record is worth nothing unless all earlier turns of its line stand beside it and are proven too.

Nothing here is shared with the statistics and planning of the explorer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from axplore.errors import InvalidInputError

RESET_ACTION: Final = -1
"""How a policy says RESET."""

ROUNDING: Final = 1e-13
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""


@dataclass(frozen=True)
class EpisodeRecord:
    """A test of one policy by episodes: what was fixed before the first of them, and what came of them.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each of the first m known states: the position of an action, or RESET_ACTION. Every
            other state resets.
        horizon: the steps after which an episode without the goal ends, and the policy restarts.
        bound: of the expected steps of the policy that restarts.
        tail: the steps that a miss is counted to take beyond the horizon, at least 1 + `bound`.
        line, turn: whose level the test uses, and as the how-many-th of its line, each counted from 1.
        fractions: the parts λ of the wealth that were staked on each episode, [b].
        weights: the parts of the first wealth that staked them, [b].
        outcomes: how many episodes took k = 0, ..., horizon steps, and how many missed, [horizon + 2].
    """

    goal: int
    policy: tuple[int, ...]
    horizon: int
    bound: float
    tail: float
    line: int
    turn: int
    fractions: tuple[float, ...]
    weights: tuple[float, ...]
    outcomes: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("goal", "horizon", "line", "turn"):
            _check_whole(name, getattr(self, name), 1)
        for name, least in (("policy", RESET_ACTION), ("outcomes", 0)):
            for item in getattr(self, name):
                _check_whole(name, item, least)
        for number in (self.bound, self.tail, *self.fractions, *self.weights):
            if not isinstance(number, float) or not 0 < number < math.inf:
                raise InvalidInputError(f"the record of episodes holds {number!r} where a positive number belongs")

    @property
    def plays_before_goal(self) -> bool:
        """Whether the policy is restricted to states admitted before the goal, as the order of admission needs it."""
        return len(self.policy) <= self.goal

    @property
    def n_episodes(self) -> int:
        """How many episodes there were."""
        return sum(self.outcomes)

    @property
    def n_arrivals(self) -> int:
        """How many of them reached the goal."""
        return sum(self.outcomes[:-1])

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Any) -> EpisodeRecord:
        """The record of plain data; refuses everything that `to_json` does not give."""
        names = [field.name for field in fields(cls)]
        if not isinstance(data, dict) or sorted(data) != sorted(names):
            raise InvalidInputError(f"a record of episodes needs {', '.join(names)}, and nothing else")
        for name in ("policy", "fractions", "weights", "outcomes"):
            if not isinstance(data[name], list):
                raise InvalidInputError(f"{name!r} in a record of episodes is not a list")
        items: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**items)


@dataclass(frozen=True)
class EpisodeSetting:
    """What the records of a certificate are checked against.

    Attributes:
        share: the part of δ that all tests by episodes have together, as a probability.
        n_actions: of each known state beside RESET, in the order of admission, [n].
        draws: how often each action of each known state was drawn, [n][A].
        entries: how often a draw led to each known state, by position, [n].
    """

    share: float
    n_actions: Sequence[int]
    draws: Sequence[Sequence[int]]
    entries: Sequence[int]


def check_records(records: Sequence[EpisodeRecord], setting: EpisodeSetting) -> tuple[str | None, ...]:
    """For each record None if it is accepted, or else the reason why it is not."""
    by_place: dict[tuple[int, int], list[int]] = {}
    for number, record in enumerate(records):
        by_place.setdefault((record.line, record.turn), []).append(number)
    refusals = [refusal(record, setting) or _unsupported(record, records, setting) for record in records]
    proven_turns: dict[int, int] = {}
    for (line, turn), numbers in sorted(by_place.items()):
        first = numbers[0]
        if len(numbers) > 1:
            for number in numbers:
                refusals[number] = f"turn {turn} of line {line} stands {len(numbers)} times"
        elif proven_turns.get(line, 0) != turn - 1:
            refusals[first] = refusals[first] or f"turn {turn - 1} of its line {line} is missing, or not proven"
        elif refusals[first] is None:
            proven_turns[line] = turn
    return tuple(refusals)


def refusal(record: EpisodeRecord, setting: EpisodeSetting) -> str | None:
    """Why a record, taken by itself, does not prove its bound at the level of its line; None if it does."""
    misfit = _policy_misfit(record, setting) or _test_misfit(record)
    if misfit:
        return misfit
    if not 0 < setting.share < 1:
        return f"a share of {setting.share:g} of the error leaves nothing to tests by episodes"
    needed, wealth = -math.log(level_of(record.line, setting.share)), log_wealth(record)
    if not wealth >= needed:
        return f"its {record.n_episodes} episodes gain {wealth:.6g} nats, of {needed:.6g}"
    return None


def _policy_misfit(record: EpisodeRecord, setting: EpisodeSetting) -> str | None:
    """What is wrong with the goal and the policy; None if nothing is."""
    if not record.goal < len(setting.n_actions):
        return "its goal is no known state"
    if len(record.policy) > len(setting.n_actions):
        return "its policy plays in states that are not known"
    if any(action >= n for action, n in zip(record.policy, setting.n_actions, strict=False)):
        return "its policy plays an action that does not exist"
    if record.policy[:1] in ((), (RESET_ACTION,)):
        return "its policy never leaves the initial state"
    return None


def _test_misfit(record: EpisodeRecord) -> str | None:
    """What is wrong with the outcomes and the bets; None if nothing is."""
    if len(record.outcomes) != record.horizon + 2:
        return f"it has {len(record.outcomes)} outcomes, which do not fit a horizon of {record.horizon} steps"
    if record.tail < 1.0 + record.bound:
        return f"its misses are counted as {record.tail:g} more steps, fewer than a restart takes"
    if record.outcomes[0]:
        return "no episode can reach another state than the initial one without a step"
    if not record.fractions or len(record.fractions) != len(record.weights) or max(record.fractions) >= 1:
        return "its bets are none"
    if math.fsum(record.weights) > 1:
        return "it stakes more than the wealth it starts with"
    return None


def level_of(line: int, share: float) -> float:
    """The level of a line; those of all lines sum to the share, because 1/(j (j + 1)) = 1/j - 1/(j + 1)."""
    return share / (line * (line + 1.0))


def log_wealth(record: EpisodeRecord) -> float:
    """The logarithm of the final wealth, rounded down."""
    terms = [_log_wealth_of(record, *bet) for bet in zip(record.fractions, record.weights, strict=True)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - ROUNDING


def _log_wealth_of(record: EpisodeRecord, fraction: float, weight: float) -> float:
    terms = [math.log(weight)]
    for steps, times in enumerate(record.outcomes):
        missed = steps > record.horizon
        loss = 1.0 if missed else (steps - record.bound) / (record.horizon + (record.tail - record.bound))
        if times:
            terms.append(times * math.log1p(-fraction * loss))
    return math.fsum(terms) - ROUNDING * (1.0 + math.fsum(map(abs, terms)))


def _unsupported(record: EpisodeRecord, records: Sequence[EpisodeRecord], setting: EpisodeSetting) -> str | None:
    """Why the counts of the rows, which hold every draw of the episodes, cannot hold these; None if they can."""
    reached, entered = sum(other.n_arrivals for other in records if other.goal == record.goal), setting.entries
    if reached > entered[record.goal]:
        return f"its episodes reached the goal {reached} times, the draws only {entered[record.goal]} times"
    first = record.policy[0]
    begun, drawn = sum(other.n_arrivals for other in records if other.policy[:1] == (first,)), setting.draws[0][first]
    if begun > drawn:
        return f"{begun} arrivals begin with an action of the initial state that was drawn {drawn} times"
    return None


def _check_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInputError(f"{name!r} in a record of episodes holds {value!r}, not a whole number from {least} on")


def records_from_json(data: Any) -> tuple[EpisodeRecord, ...]:
    """The records of a document."""
    if not isinstance(data, list):
        raise InvalidInputError("the records of episodes are no list")
    return tuple(map(EpisodeRecord.from_json, data))


def records_to_json(records: Sequence[EpisodeRecord]) -> list[Mapping[str, Any]]:
    """The records as a document holds them."""
    return [record.to_json() for record in records]
