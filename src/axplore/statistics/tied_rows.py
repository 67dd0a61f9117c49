"""Pairs that share a law over outcomes: their draws count together.

A user's function gives every draw a *class*, that of its pair, and an *outcome*. The pairs of a class have the same
probabilities of outcomes, and within a pair an outcome leads to one state. So the draws of all pairs of a class are
draws of one law, for which one confidence ball holds. The row of a pair is that law, carried along the map from
outcomes to states. Where an outcome leads in a pair is known once it was seen there, or if it was predicted. Until
then it may lead anywhere.

docs/algorithms/certified.md has the proof, "Tied pairs".
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.assumptions import LeadsTo, OutcomeOf
from axplore.errors import InvalidSettingError
from axplore.labels import canonical_json, decode_label, encode_label
from axplore.statistics.counts import CountedRows, entries_in, rows_of
from axplore.types import Action, FloatArray, IntArray, State

UNTIED: Final = -1
"""In place of the class of a pair that shares its law with no other, and of its outcomes."""

UNKNOWN: Final = -1
"""In place of the state to which an outcome leads, where that is not known."""

Pair: TypeAlias = tuple[State, Action]


@dataclass(frozen=True, eq=False)
class Ties:
    """Which outcome every entry of some rows is, and which outcomes belong to one class.

    Attributes:
        outcomes: the outcome of each entry, [E]; UNTIED where the pair is not tied.
        classes: the class of each outcome, [O].
        lengths: the number of entries of each pair, [P].
        predicted: the pair, the outcome and the number of the state that it leads to there, of outcomes that were
            predicted, [Q, 3].
        names: class and outcome as JSON, of each outcome, [O].
        elsewhere: how often each outcome was drawn in states that are not among the rows, [O].
        weights: the part of the error that each pair may use, [P]; none where that follows from the rows.
    """

    outcomes: IntArray
    classes: IntArray
    lengths: IntArray
    predicted: IntArray
    names: tuple[str, ...] = ()
    elsewhere: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.elsewhere) < len(self.classes):
            object.__setattr__(self, "elsewhere", np.zeros(len(self.classes), dtype=np.int64))
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @cached_property
    def _entry_pairs(self) -> IntArray:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def pair_classes(self) -> IntArray:
        """The class of each pair, that of its first outcome; UNTIED where there is none, [P]."""
        classes = np.full(len(self.lengths), UNTIED)
        drawn = self.lengths > 0
        first = self.outcomes[(np.cumsum(self.lengths) - self.lengths)[drawn]]
        classes[drawn] = np.where(first == UNTIED, UNTIED, self.classes[first] if len(self.classes) else UNTIED)
        return classes

    def totals(self, counts: IntArray) -> IntArray:
        """How often each outcome was drawn in all pairs together, [O]."""
        tied = self.outcomes != UNTIED
        drawn = np.bincount(self.outcomes[tied], counts[tied], minlength=len(self.classes))
        total: IntArray = self.elsewhere + drawn.astype(np.int64)
        return total

    def contradicted_pairs(self, successors: IntArray) -> IntArray:
        """The pairs of which the assumption is false.

        A pair has two classes, or one of its outcomes leads to two states, or two of its outcomes to one state, so that
        their draws cannot be told apart.
        """
        pairs = self._entry_pairs
        entry_classes = np.where(self.outcomes == UNTIED, UNTIED, np.append(self.classes, UNTIED)[self.outcomes])
        wrong = {*pairs[entry_classes != self.pair_classes[pairs]].tolist()}
        leads_to: dict[tuple[int, int], int] = {}
        comes_from: dict[tuple[int, int], int] = {}
        tied = self.outcomes != UNTIED
        seen = np.column_stack((pairs[tied], self.outcomes[tied], successors[tied]))
        for pair, outcome, successor in (*seen.tolist(), *self.predicted.tolist()):
            same_state = leads_to.setdefault((pair, outcome), successor) == successor
            if not (same_state and comes_from.setdefault((pair, successor), outcome) == outcome):
                wrong.add(pair)
        return np.array(sorted(wrong), dtype=np.int64)

    def of_pairs(self, rows: CountedRows, pairs: IntArray) -> Ties:
        """The part of some pairs; the draws of the others count elsewhere."""
        entries = entries_in(rows.row_offsets, pairs)
        place_of = np.full(len(self.lengths), UNKNOWN)
        place_of[pairs] = np.arange(len(pairs))
        predicted = self.predicted[place_of[self.predicted[:, 0]] != UNKNOWN].copy()
        predicted[:, 0] = place_of[predicted[:, 0]]
        part = replace(
            self,
            outcomes=self.outcomes[entries],
            lengths=self.lengths[pairs],
            predicted=predicted,
            elsewhere=np.zeros(len(self.classes), dtype=np.int64),
        )
        return replace(part, elsewhere=self.totals(rows.counts) - part.totals(rows.counts[entries]))


_NONE: Final = np.zeros(0, dtype=np.int64)
NO_TIES: Final = Ties(_NONE, _NONE, _NONE, np.zeros((0, 3), dtype=np.int64))
"""The ties of rows without pairs."""


@dataclass(frozen=True)
class Tying:
    """What a user declares of outcomes.

    Attributes:
        outcome_of: the class of a pair and the name of the outcome that a next state is; None if it is not tied.
        leads_to: the state to which an outcome leads in a pair; None if there is no such function.
    """

    outcome_of: OutcomeOf
    leads_to: LeadsTo | None = None

    def extended(self, before: Ties, rows: CountedRows, pairs: Sequence[Pair], states: Sequence[State]) -> Ties:
        """The ties of grown rows. Entries are only ever added at the end of a row, and pairs at the end of all.

        Args:
            before: the ties of earlier rows.
            rows: what was counted.
            pairs: state and action of each pair, [P].
            states: the labels of all states, by number.
        """
        lengths = np.diff(rows.row_offsets)
        outcomes = np.full(len(rows.successors), UNTIED)
        old = np.repeat(rows.row_offsets[: len(before.lengths)], before.lengths) + _places_in_rows(before.lengths)
        outcomes[old] = before.outcomes
        is_new = np.ones(len(outcomes), dtype=np.bool_)
        is_new[old] = False
        names, classes = list(before.names), before.classes.tolist()
        numbers = {name: outcome for outcome, name in enumerate(names)}
        class_of = {_class_text(name): number for name, number in zip(names, classes, strict=True)}
        for entry in np.flatnonzero(is_new).tolist():
            named = self._named(*pairs[int(rows.entry_pairs[entry])], states[int(rows.successors[entry])])
            if named is None:
                continue
            if named not in numbers:
                numbers[named] = len(names)
                names.append(named)
                classes.append(class_of.setdefault(_class_text(named), len(class_of)))
            outcomes[entry] = numbers[named]
        ties = Ties(outcomes, np.array(classes, dtype=np.int64), lengths, before.predicted, tuple(names))
        return ties if self.leads_to is None else self._predicted(ties, rows, pairs, states)

    def _named(self, state: State, action: Action, successor: State) -> str | None:
        given = self.outcome_of(state, action, successor)
        if given is None:
            return None
        if not (isinstance(given, tuple) and len(given) == 2):
            raise InvalidSettingError(
                f"the function of tied gives {given!r} for action {action!r} of state {state!r} and the next state "
                f"{successor!r}; it must give a class and the name of an outcome, or None"
            )
        return canonical_json([encode_label(given[0]), encode_label(given[1])])

    def _predicted(self, ties: Ties, rows: CountedRows, pairs: Sequence[Pair], states: Sequence[State]) -> Ties:
        """The ties with what is predicted of outcomes that were not seen in a pair, as far as the state was seen."""
        assert self.leads_to is not None
        known = {*zip(rows.entry_pairs.tolist(), ties.outcomes.tolist(), strict=True)}
        known |= {(pair, outcome) for pair, outcome, _ in ties.predicted.tolist()}
        number_of = {state: number for number, state in enumerate(states)}
        of_class: dict[int, list[int]] = {}
        for outcome, kind in enumerate(ties.classes.tolist()):
            of_class.setdefault(kind, []).append(outcome)
        labels = [_outcome_label(name) for name in ties.names]
        fresh = []
        for pair, kind in enumerate(ties.pair_classes.tolist()):
            for outcome in of_class.get(kind, ()):
                if (pair, outcome) not in known:
                    number = number_of.get(self.leads_to(*pairs[pair], labels[outcome]), UNKNOWN)
                    fresh += [(pair, outcome, number)] if number != UNKNOWN else []
        if not fresh:
            return ties
        return replace(ties, predicted=np.concatenate((ties.predicted, np.array(fresh, dtype=np.int64))))


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows in which every tied pair shows the draws of its whole class.

    Attributes:
        rows: visits and counts of a tied pair are those of its class, and it has an entry for each outcome of that; the
            successor is UNKNOWN where it is not known what the outcome does in the pair.
        groups: equal for the pairs of one class, and different for all others, [P].
        tied: whether each pair is tied, [P].
    """

    rows: CountedRows
    groups: IntArray
    tied: npt.NDArray[np.bool_]

    def least(self, least: FloatArray) -> FloatArray:
        """The least probability of an outcome of each pair, [P]: in a class, what is assumed of all of its pairs."""
        of_group = np.ones(int(self.groups.max(initial=0)) + 1)
        np.minimum.at(of_group, self.groups, least)
        return of_group[self.groups]

    def of_states(self, states: IntArray, pairs: IntArray) -> Pooled:
        """The part of some states, by number, which have these pairs."""
        return Pooled(rows_of(self.rows, states), self.groups[pairs], self.tied[pairs])


def pooled(rows: CountedRows, ties: Ties, apart: npt.NDArray[np.bool_]) -> Pooled:
    """Returns the rows with the draws of each class in all of its pairs, except for pairs that are known apart, [P]."""
    classes = np.where(apart, UNTIED, ties.pair_classes)
    tied = classes != UNTIED
    totals = ties.totals(rows.counts)
    by_class = np.argsort(ties.classes, kind="stable")
    n_classes = int(ties.classes.max(initial=UNTIED)) + 1
    sizes = np.bincount(ties.classes, minlength=n_classes)
    class_visits = np.bincount(ties.classes, totals, minlength=n_classes).astype(np.int64)
    lengths = np.where(tied, np.append(sizes, 0)[classes], np.diff(rows.row_offsets))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    owners = np.repeat(np.arange(len(tied)), lengths)
    places = _places_in_rows(lengths)
    shared = tied[owners]
    own = entries_in(rows.row_offsets, np.flatnonzero(~tied))
    outcomes = by_class[(np.cumsum(sizes) - sizes)[classes[owners[shared]]] + places[shared]]
    successors, counts, first_draws = (np.zeros(len(owners), dtype=np.int64) for _ in range(3))
    successors[~shared], counts[~shared] = rows.successors[own], rows.counts[own]
    first_draws[~shared] = rows.first_draws[own]
    counts[shared] = totals[outcomes]
    successors[shared] = _led_to(rows, ties, owners[shared], outcomes)
    grown = replace(
        rows,
        visits=np.where(tied, np.append(class_visits, 0)[classes], rows.visits),
        row_offsets=offsets,
        successors=successors,
        counts=counts,
        first_draws=first_draws,
    )
    groups = np.where(tied, classes, n_classes + np.arange(len(tied)))
    return Pooled(grown, groups, tied)


def _led_to(rows: CountedRows, ties: Ties, pairs: IntArray, outcomes: IntArray) -> IntArray:
    """The state to which each outcome leads in a pair, UNKNOWN where it was neither seen nor predicted there, [m]."""
    n_outcomes = max(len(ties.classes), 1)
    seen = ties.outcomes != UNTIED
    keys = np.concatenate(
        (
            ties.predicted[:, 0] * n_outcomes + ties.predicted[:, 1],
            rows.entry_pairs[seen] * n_outcomes + ties.outcomes[seen],
        )
    )
    states = np.concatenate((ties.predicted[:, 2], rows.successors[seen]))
    order = np.argsort(keys, kind="stable")
    keys, states = keys[order], states[order]
    wanted = pairs * n_outcomes + outcomes
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    led_to: IntArray = np.where(keys[places] == wanted, states[places], UNKNOWN)
    return led_to


def _places_in_rows(lengths: IntArray) -> IntArray:
    """0, 1, ... in each row."""
    places: IntArray = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return places


def _class_text(name: str) -> str:
    return canonical_json(json.loads(name)[0])


def _outcome_label(name: str) -> Hashable:
    return decode_label(json.loads(name)[1])
