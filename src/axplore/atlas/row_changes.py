"""Which actions behave differently in two runs: outcomes gained and lost, and probabilities that changed.

Every action that both runs drew is tested: can one distribution explain its outcomes in both? The test is that of
`axplore.statistics.dependence`, with the run as the context. It holds whatever the runs chose to draw and whenever they
ended, as long as neither was made in the light of the other. The error is shared among all actions: the pair of the
i-th state that the old run counted, which has A actions, has the part w_i / A of it, as in Eq. 2 of
docs/algorithms/certified.md. So of two runs of one system, any action at all is called changed, or worse, with a
probability of at most one minus the confidence.

Half of the part of a pair is for the question whether it has changed, and half for whether it leads less often to where
routes of the old run went on. Which outcomes these are depends on the draws, so the r-th outcome that the old run saw
has the part 1 / (r (r + 1)) of that half, and only what was drawn after it was first seen counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from axplore.labels import encode_label, readable
from axplore.statistics.confidence import pair_weights
from axplore.statistics.dependence import log_evidence_of_drop, log_evidence_of_shares, log_evidence_of_two
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


Routes: TypeAlias = dict[tuple[State, Action], dict[State, State]]
"""For each pair the goals on whose way it is played, and the next state on that way."""


@dataclass(frozen=True)
class RowChange:
    """An action of a state that is proven to behave differently.

    Attributes:
        state, action: the pair.
        old, new: how often it led to each next state in each run.
        behind: the states to which the most likely route, of either run, plays it.
        worse: whether it is proven to lead less often to where routes of the old run went on.
        confidence: that of all changed actions together.
    """

    state: State
    action: Action
    old: Mapping[State, int]
    new: Mapping[State, int]
    behind: tuple[State, ...]
    worse: bool
    confidence: float

    @property
    def gained(self) -> tuple[State, ...]:
        """Outcomes that only the new run has met."""
        return tuple(state for state in self.new if state not in self.old)

    @property
    def lost(self) -> tuple[State, ...]:
        """Outcomes that only the old run has met."""
        return tuple(state for state in self.old if state not in self.new)

    def __str__(self) -> str:
        drawn = sum(self.old.values()), sum(self.new.values())
        parts = [
            f"{readable(state)} {_outcome(self.old.get(state), self.new.get(state), *drawn)}"
            for state in sorted(
                {**self.old, **self.new}, key=lambda state: -self.old.get(state, 0) - self.new.get(state, 0)
            )
        ]
        where = f"{readable(self.action)} in {readable(self.state)}"
        draws = f"{drawn[0]:,} and {drawn[1]:,} draws"
        return f"{where}: {', '.join(parts)}: changed (confidence {self.confidence:g}, {draws})"

    def as_json(self) -> dict[str, Any]:
        """Returns the change as JSON values; labels are written as in files."""
        return {
            "state": encode_label(self.state),
            "action": encode_label(self.action),
            "old": [[encode_label(state), times] for state, times in self.old.items()],
            "new": [[encode_label(state), times] for state, times in self.new.items()],
            "gained": [encode_label(state) for state in self.gained],
            "lost": [encode_label(state) for state in self.lost],
            "behind": [encode_label(state) for state in self.behind],
            "worse": self.worse,
            "confidence": self.confidence,
        }


def _outcome(before: int | None, now: int | None, drawn_before: int, drawn_now: int) -> str:
    if before is None:
        return f"new ({(now or 0) / drawn_now:.3g})"
    if now is None:
        return f"gone ({before / drawn_before:.3g} before)"
    return f"{before / drawn_before:.0%} → {now / drawn_now:.0%}"


@dataclass(frozen=True, eq=False)
class _Row:
    """The draws of a pair.

    Attributes:
        state, action: the pair.
        counts: how often it led to each next state, in the order in which these were first seen.
        first_draws: at which of its draws each came first, counted from 1.
        weight: the part of the error that it may use.
    """

    state: State
    action: Action
    counts: dict[State, int]
    first_draws: dict[State, int]
    weight: float

    def log_level(self, confidence: float) -> float:
        """The logarithm of the level of each of the two questions."""
        return math.log((1.0 - confidence) * self.weight / 2)

    def is_rarer_in(self, now: Mapping[State, int], outcome: State, confidence: float) -> bool:
        """Whether an outcome is proven to be less probable in the new run."""
        rank = list(self.counts).index(outcome) + 1
        again = self.counts[outcome] - 1
        before = again, sum(self.counts.values()) - self.first_draws[outcome] - again
        hits = now.get(outcome, 0)
        evidence = log_evidence_of_drop(before, (hits, sum(now.values()) - hits))
        return evidence >= math.log(rank * (rank + 1)) - self.log_level(confidence)


def changed_rows(old: Atlas, new: Atlas, confidence: float) -> tuple[RowChange, ...]:
    """Returns the actions that are proven to behave differently, those with the strongest evidence first."""
    found = []
    drawn_now = {(row.state, row.action): row for row in _rows(new)}
    for row in _rows(old):
        now = drawn_now.get((row.state, row.action))
        if now is None or not row.counts or not now.counts:
            continue
        evidence = _log_evidence(row, now)
        if evidence >= -row.log_level(confidence):
            found.append((evidence, row, now.counts))
    if not found:
        return ()
    routes = _routes_by_pair(old), _routes_by_pair(new)
    found.sort(key=lambda item: -item[0])
    return tuple(_change(row, now, routes, confidence) for _, row, now in found)


def _log_evidence(old: _Row, new: _Row) -> float:
    """Returns log E that no one distribution explains the draws of both runs: that of a mixture of bets.

    One half bets on all outcomes at once. The other bets on the share of each outcome alone, which shows soonest that
    one is new or gone: of what one run saw, the r-th outcome with the part 1 / (r (r + 1)), from its first sight on, in
    the rest of that run and in the other one.
    """
    bets = [log_evidence_of_two(old.counts, new.counts) - math.log(2)]
    for seen, other in ((old, new), (new, old)):
        drawn, n_other = sum(seen.counts.values()), sum(other.counts.values())
        for rank, (outcome, times) in enumerate(seen.counts.items(), 1):
            later = times - 1, drawn - seen.first_draws[outcome] - (times - 1)
            hits = other.counts.get(outcome, 0)
            evidence = log_evidence_of_shares(later, (hits, n_other - hits))
            bets.append(evidence - math.log(4 * rank * (rank + 1)))
    return float(np.logaddexp.reduce(bets))


def _change(row: _Row, now: Mapping[State, int], routes: tuple[Routes, Routes], confidence: float) -> RowChange:
    pair = row.state, row.action
    relied_on = routes[0].get(pair, {})
    behind = dict.fromkeys([*relied_on, *routes[1].get(pair, {})])
    worse = any(row.is_rarer_in(now, outcome, confidence) for outcome in set(relied_on.values()))
    return RowChange(*pair, row.counts, now, tuple(behind), worse, confidence)


def _rows(atlas: Atlas) -> Iterator[_Row]:
    """Yields the draws of each pair."""
    counts = atlas.counts
    weights = pair_weights(counts).tolist()
    for index, number in enumerate(counts.states.tolist()):
        first = int(counts.state_pairs[index])
        for choice, action in enumerate(counts.actions[index]):
            entries = slice(*counts.row_offsets[first + choice : first + choice + 2].tolist())
            met = [counts.order[successor] for successor in counts.successors[entries].tolist()]
            yield _Row(
                counts.order[number],
                action,
                dict(zip(met, counts.counts[entries].tolist(), strict=True)),
                dict(zip(met, counts.first_draws[entries].tolist(), strict=True)),
                weights[first + choice],
            )


def _routes_by_pair(atlas: Atlas) -> Routes:
    """Returns for each pair the goals on whose most likely route it is played, and where each route goes from there."""
    routes: Routes = {}
    for goal in atlas.states[1:]:
        if atlas.proven and not math.isfinite(atlas.bounds(goal).upper):
            continue
        route = atlas.path(goal)
        for state, action, next_state in zip(route.states, route.actions, route.states[1:], strict=False):
            routes.setdefault((state, action), {})[goal] = next_state
    return routes
