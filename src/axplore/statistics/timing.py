"""A streaming test of whether an event comes at one moment, whatever pair is played then.

A hidden limit on the length of an episode shows as an event, the return to the start, that comes at the suspected
moment from any pair, while the same pairs do not cause it at other moments. No pair alone has enough draws at that
moment, so the test bets on all of them together, in the way of `homogeneity`:

    E = q(events at the moment, of all pairs) · Π_pairs q(events of the pair at other times)
        / Π_pairs max_p p(events of the pair at all times)

If the event depends on the pair alone, E ever reaches 1/α with a probability of at most α, whatever moments are
suspected, as long as they are before the draw.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from axplore.errors import InvalidSettingError

DOUBT: Final = 0.25
"""The r-th pair met is thought to cause the event at all with the probability DOUBT / r; this costs little if it never
does."""


@dataclass
class _Events:
    """Of one pair: how often the event did not come and did, at other times and at the suspected moment."""

    doubt: float
    other_misses: int = 0
    other_events: int = 0
    timed_misses: int = 0
    timed_events: int = 0

    def log_evidence(self) -> float:
        """What the pair adds to log E, but for the common prediction at the moment."""
        log_doubted = math.log(self.doubt) + _log_mixture(self.other_misses, self.other_events)
        never = 1.0 - self.doubt if self.other_events == 0 else 0.0
        log_predicted = math.log(never + math.exp(log_doubted)) if never else log_doubted
        events, misses = self.other_events + self.timed_events, self.other_misses + self.timed_misses
        return log_predicted - _log_largest(misses, events)


class TimingTest:
    """Bets that an event comes at suspected moments; an alarm stays."""

    def __init__(self, false_alarm: float) -> None:
        """Begins without any draw.

        Args:
            false_alarm: α, the probability with which it ever alarms although the event depends on the pair alone.
        """
        if not 0 < false_alarm < 1:
            raise InvalidSettingError(f"false_alarm is {false_alarm}; it must be between 0 and 1")
        self._log_level = -math.log(false_alarm)
        self._pairs: dict[Hashable, _Events] = {}
        self._log_pairs = 0.0
        self.timed_misses = self.timed_events = 0
        self.alarmed = False

    @property
    def log_evidence(self) -> float:
        """The logarithm of E."""
        return self._log_pairs + _log_mixture(self.timed_misses, self.timed_events)

    def add(self, pair: Hashable, suspected: bool, event: bool) -> None:
        """Adds a draw of a pair, at the suspected moment or not, with the event or not."""
        events = self._pairs.get(pair)
        if events is None:
            events = self._pairs[pair] = _Events(DOUBT / (len(self._pairs) + 1))
        before = events.log_evidence()
        if suspected:
            self.timed_events += event
            self.timed_misses += not event
            events.timed_events += event
            events.timed_misses += not event
        else:
            events.other_events += event
            events.other_misses += not event
        self._log_pairs += events.log_evidence() - before
        self.alarmed = self.alarmed or self.log_evidence >= self._log_level


def _log_mixture(misses: int, events: int) -> float:
    """The logarithm of ∫ p^events (1 - p)^misses over Jeffreys' prior (Krichevsky, Trofimov)."""
    return (
        math.lgamma(events + 0.5) + math.lgamma(misses + 0.5) - math.lgamma(events + misses + 1.0) - math.log(math.pi)
    )


def _log_largest(misses: int, events: int) -> float:
    """The logarithm of max_p p^events (1 - p)^misses."""
    draws = misses + events
    return sum(count * math.log(count / draws) for count in (misses, events) if count)
