"""`tied=MODULE:FUNCTION`: actions of one class have the same probabilities of outcomes; their draws count together.

A user's function gives every draw a *class*, that of its pair, and an *outcome*. The pairs of a class have the same
probabilities of outcomes, and within a pair an outcome leads to one state. So the draws of all pairs of a class are
draws of one law, for which one confidence ball holds. The row of a pair is that law, carried along the map from
outcomes to states. Where an outcome leads in a pair is known once it was seen there, or if it was predicted by a second
function, `leads-to`. Until then it may lead anywhere.

docs/algorithms/certified.md has the proof, "Tied pairs".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from msgspec import structs

from axplore.arguments import refusal
from axplore.assumptions.kind import AssumptionKind, Draw, Examined, Grown, Loading, Pair
from axplore.compressed import entries_in, offsets_from
from axplore.errors import InvalidSettingError
from axplore.labels import canonical_json, decode_label, encode_label
from axplore.records.assumed import UNKNOWN, UNTIED, Assumed, Ties
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.types import Action, IntArray, State

if TYPE_CHECKING:
    from axplore.assumptions.declared import Assumptions
    from axplore.statistics.given_rows import GivenRows, Pooled

OutcomeOf: TypeAlias = Callable[[State, Action, State], tuple[Hashable, Hashable] | None]
"""Gives for a state, an action and the next state the class of the action and the name of the outcome, or None."""

LeadsTo: TypeAlias = Callable[[State, Action, Hashable], State | None]
"""Gives for a state, an action and the name of an outcome the state that it leads to, or None if that is not known."""

_NONE: Final = np.zeros(0, dtype=np.int64)
NO_TIES: Final = Ties(Labels(), _NONE, np.zeros((0, 3), dtype=np.int64), _NONE, _NONE)
"""The ties of rows without pairs."""


class _Function(AssumptionKind):
    """A kind whose value is a function."""

    def read(self, text: str, load: Loading | None) -> Any:
        """The name of a function."""
        return load(text) if text and load is not None else None

    def checked(self, value: Any) -> Any:
        """A function."""
        if value is not None and not callable(value):
            raise refusal(self.keyword, value, "a function")
        return value


class LeadsToKind(_Function):
    """A function of state, action and the name of an outcome predicts the next state; None where it cannot tell.

    Without it, what an outcome does is known once it was seen in the pair. What it says stands with the ties.
    """

    name, form = "leads-to", "leads-to=MODULE:FUNCTION"
    needs = "tied"

    def is_in(self, assumed: Assumed) -> bool:  # noqa: ARG002
        """What it says stands with the ties, and `Tied` answers for it."""
        return False

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        """`Tied` speaks for it."""
        return ""

    def applied(self, value: Any, assume: Assumptions, assumed: Assumed, grown: Grown) -> Assumed:  # noqa: ARG002
        """Predicts outcomes that were not seen in a pair, as far as their states were seen."""
        assert assumed.ties is not None
        return structs.replace(assumed, ties=_predicted(cast(LeadsTo, value), assumed.ties, grown))

    def examined(
        self,
        value: Any,
        assume: Assumptions,
        draws: Sequence[Draw],
        false_alarm: float,  # noqa: ARG002
    ) -> Examined | None:
        """Looks for an outcome that leads elsewhere."""
        for draw, _, outcome in _named_draws(draws, assume.get("tied")):
            state, action = draw.pair
            predicted = value(state, action, outcome)
            if predicted not in (None, draw.successor):
                return Examined(
                    f"'leads-to': the outcome {outcome!r} leads to {draw.successor!r}, and not to {predicted!r}, from "
                    f"state {state!r} by action {action!r}.",
                    is_false=True,
                )
        return None


class Tied(_Function):
    """A function of state, action and next state gives a class and the name of an outcome.

    All pairs of a class have the same probabilities of outcomes, and within a pair an outcome leads to one state. The
    class is that of the pair, whatever the next state; None for a pair that shares its law with no other.
    """

    name, form = "tied", "tied=MODULE:FUNCTION"

    def is_in(self, assumed: Assumed) -> bool:
        """Whether there are ties."""
        return assumed.ties is not None

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        """Whether outcomes are predicted."""
        return "tied as declared" if assume.get("leads-to") is None else "tied and predicted as declared"

    def applied(self, value: Any, assume: Assumptions, assumed: Assumed, grown: Grown) -> Assumed:  # noqa: ARG002
        """Names the outcomes of new entries."""
        return structs.replace(assumed, ties=_extended(cast(OutcomeOf, value), assumed.ties or NO_TIES, grown))

    def contradicted(self, assumed: Assumed, rows: Counts, given: GivenRows) -> IntArray:  # noqa: ARG002
        """The pairs with two classes, an outcome that leads to two states, or two outcomes that lead to one.

        Draws of two outcomes that lead to one state cannot be told apart.
        """
        assert assumed.ties is not None
        ties, pairs = assumed.ties, rows.entry_pairs
        entry_classes = np.append(class_numbers(ties), UNTIED)[ties.outcomes]
        wrong = pairs[entry_classes != pair_classes(ties, rows)[pairs]]
        tied = ties.outcomes != UNTIED
        seen = np.column_stack((pairs[tied], ties.outcomes[tied], rows.successors[tied]))
        of_pair, outcomes, successors = np.concatenate((seen, ties.predicted)).T
        keys = (
            of_pair * (outcomes.max(initial=0) + 1) + outcomes,
            of_pair * (successors.max(initial=0) + 1) + successors,
        )
        return np.unique(np.concatenate((wrong, *(of_pair[differing] for differing in _differing(*keys)))))

    def examined(
        self,
        value: Any,
        assume: Assumptions,  # noqa: ARG002
        draws: Sequence[Draw],
        false_alarm: float,
    ) -> Examined:
        """Looks for two classes of a pair and two ends of an outcome, and tests whether places of a class differ."""
        from axplore.statistics.dependence import HomogeneityTest  # only the doctor needs it

        test, classes = HomogeneityTest(false_alarm), dict[Pair, Hashable]()
        leads_to: dict[tuple[Pair, Hashable], State] = {}
        n_tied = 0
        for draw, kind, outcome in _named_draws(draws, value):
            n_tied += 1
            state, action = draw.pair
            whose = f"'tied': action {action!r} of state {state!r}"
            if classes.setdefault(draw.pair, kind) != kind:
                given = f"{whose} was given the classes {classes[draw.pair]!r} and {kind!r}."
                return Examined(given, is_false=True)
            other = leads_to.setdefault((draw.pair, outcome), draw.successor)
            if other != draw.successor:
                seen = f"{whose} leads to {other!r} and to {draw.successor!r} by the outcome {outcome!r}."
                return Examined(seen, is_false=True)
            test.add(kind, draw.pair, outcome)
        if test.alarm is not None:
            pair, table = max(test.alarm.table.items(), key=lambda row: sum(row[1].values()))
            where = f"depend on where they are drawn ({pair}: {table})."
            seen = f"'tied': the outcomes of the class {test.alarm.pair!r} {where}"
            return Examined(seen, is_false=True, is_inferred=True)
        n_classes = len(set(classes.values()))
        kinds = f"{n_classes:,} class{'es' if n_classes != 1 else ''}"
        return Examined(
            f"tied: in {n_tied:,} draws of {len(classes):,} actions of {kinds} no outcome led to two states, "
            f"and nothing showed that outcomes depend on where they are drawn (a test that alarms wrongly with a "
            f"probability of at most {false_alarm:g})."
        )


def _differing(keys: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """Places where a key, [m], stands beside another number, [m], than before, and the other way round."""

    def places(keys: IntArray, others: IntArray) -> IntArray:
        _, first, of_key = np.unique(keys, return_index=True, return_inverse=True)
        return np.flatnonzero(others != others[first][of_key])

    return places(keys, others), places(others, keys)


def class_numbers(ties: Ties) -> IntArray:
    """The class of each outcome, numbered in the order in which the names stand, [O]."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(_text(_parts(name)[0]), len(numbers)) for name in ties.names], dtype=np.int64)


def pair_classes(ties: Ties, rows: Counts) -> IntArray:
    """The class of each pair, that of its first outcome; UNTIED where there is none, [P]."""
    classes = np.full(len(rows.row_offsets) - 1, UNTIED)
    drawn = np.diff(rows.row_offsets) > 0
    classes[drawn] = np.append(class_numbers(ties), UNTIED)[ties.outcomes[rows.row_offsets[:-1][drawn]]]
    return classes


def totals_of(ties: Ties, counts: IntArray) -> IntArray:
    """How often each outcome was drawn in all pairs together, [O]."""
    tied = ties.outcomes != UNTIED
    drawn = np.bincount(ties.outcomes[tied], counts[tied], minlength=len(ties.names))
    total: IntArray = ties.elsewhere + drawn.astype(np.int64)
    return total


def ties_of_pairs(ties: Ties, rows: Counts, pairs: IntArray) -> Ties:
    """The part of some pairs; the draws of the others count elsewhere."""
    entries = entries_in(rows.row_offsets, pairs)
    place_of = np.full(len(rows.row_offsets) - 1, UNKNOWN)
    place_of[pairs] = np.arange(len(pairs))
    predicted = ties.predicted[place_of[ties.predicted[:, 0]] != UNKNOWN].copy()
    predicted[:, 0] = place_of[predicted[:, 0]]
    part = structs.replace(
        ties, outcomes=ties.outcomes[entries], predicted=predicted, elsewhere=np.zeros(len(ties.names), dtype=np.int64)
    )
    elsewhere = totals_of(ties, rows.counts) - totals_of(part, rows.counts[entries])
    return structs.replace(part, elsewhere=elsewhere)


def _extended(outcome_of: OutcomeOf, before: Ties, grown: Grown) -> Ties:
    """The ties of grown rows."""
    rows = grown.rows
    lengths = _NONE if grown.before is None else np.diff(grown.before.row_offsets)
    outcomes = np.full(len(rows.successors), UNTIED)
    old = np.repeat(rows.row_offsets[: len(lengths)], lengths) + _places_in_rows(lengths)
    outcomes[old] = before.outcomes
    is_new = np.ones(len(outcomes), dtype=np.bool_)
    is_new[old] = False
    names = list(before.names)
    numbers = {_text(name): outcome for outcome, name in enumerate(names)}
    for entry in np.flatnonzero(is_new).tolist():
        state, action = grown.pairs[int(rows.entry_pairs[entry])]
        name = _named(outcome_of, state, action, grown.states[int(rows.successors[entry])])
        if name is None:
            continue
        outcomes[entry] = numbers.setdefault(_text(name), len(names))
        if outcomes[entry] == len(names):
            names.append(cast(tuple[Hashable, Hashable], decode_label(encode_label(name))))  # as files have it
    elsewhere = np.append(before.elsewhere, np.zeros(len(names) - len(before.names), dtype=np.int64))
    return structs.replace(before, names=Labels(names), outcomes=outcomes, elsewhere=elsewhere)


def _predicted(leads_to: LeadsTo, ties: Ties, grown: Grown) -> Ties:
    """The ties with what is predicted of outcomes that were not seen in a pair, as far as the state was seen."""
    of_class = class_numbers(ties)
    by_class, sizes = np.argsort(of_class, kind="stable"), np.bincount(of_class)
    classes = pair_classes(ties, grown.rows)
    tied = np.flatnonzero(classes != UNTIED)
    lengths = np.append(sizes, 0)[classes[tied]]
    pairs = np.repeat(tied, lengths)
    outcomes = by_class[(np.cumsum(sizes) - sizes)[classes[pairs]] + _places_in_rows(lengths)]
    is_open = _led_to(grown.rows, ties, pairs, outcomes) == UNKNOWN
    number_of = {state: number for number, state in enumerate(grown.states)}
    fresh = []
    for pair, outcome in zip(pairs[is_open].tolist(), outcomes[is_open].tolist(), strict=True):
        name = _parts(ties.names[outcome])[1]
        state, action = grown.pairs[int(pair)]
        number = number_of.get(leads_to(state, action, name), UNKNOWN)
        fresh += [(pair, outcome, number)] if number != UNKNOWN else []
    if not fresh:
        return ties
    return structs.replace(ties, predicted=np.concatenate((ties.predicted, np.array(fresh, dtype=np.int64))))


def pooled(rows: Counts, ties: Ties, apart: npt.NDArray[np.bool_]) -> Pooled:
    """Returns the rows with the draws of each class in all of its pairs, except for pairs that are known apart, [P]."""
    from axplore.statistics.given_rows import Pooled  # it takes time to import

    class_of = class_numbers(ties)
    classes = np.where(apart, UNTIED, pair_classes(ties, rows))
    tied = classes != UNTIED
    totals = totals_of(ties, rows.counts)
    by_class = np.argsort(class_of, kind="stable")
    n_classes = int(class_of.max(initial=UNTIED)) + 1
    sizes = np.bincount(class_of, minlength=n_classes)
    lengths = np.where(tied, np.append(sizes, 0)[classes], np.diff(rows.row_offsets))
    owners = np.repeat(np.arange(len(tied)), lengths)
    shared = tied[owners]
    own = entries_in(rows.row_offsets, np.flatnonzero(~tied))
    outcomes = by_class[(np.cumsum(sizes) - sizes)[classes[owners[shared]]] + _places_in_rows(lengths)[shared]]
    successors, counts, first_draws = (np.zeros(len(owners), dtype=np.int64) for _ in range(3))
    successors[~shared], counts[~shared] = rows.successors[own], rows.counts[own]
    first_draws[~shared] = rows.first_draws[own]  # the draws of a class have no common order: none of them comes late
    counts[shared] = totals[outcomes]
    successors[shared] = _led_to(rows, ties, owners[shared], outcomes)
    grown = structs.replace(
        rows, row_offsets=offsets_from(lengths), successors=successors, counts=counts, first_draws=first_draws
    )
    groups = np.where(tied, classes, n_classes + np.arange(len(tied)))
    return Pooled(grown, groups, tied)


def _led_to(rows: Counts, ties: Ties, pairs: IntArray, outcomes: IntArray) -> IntArray:
    """The state to which each outcome leads in a pair, UNKNOWN where it was neither seen nor predicted there, [m]."""
    n_outcomes = max(len(ties.names), 1)
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
    indices = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    led_to: IntArray = np.where(keys[indices] == wanted, states[indices], UNKNOWN)
    return led_to


def _named_draws(draws: Sequence[Draw], outcome_of: Any) -> Iterator[tuple[Draw, Hashable, Hashable]]:
    """Yields the draws of tied pairs with class and outcome."""
    for draw in draws:
        name = _named(outcome_of, *draw.pair, draw.successor)
        if name is not None:
            yield draw, *name


def _named(outcome_of: OutcomeOf, state: State, action: Action, successor: State) -> tuple[Hashable, Hashable] | None:
    given = outcome_of(state, action, successor)
    if given is not None and not (isinstance(given, tuple) and len(given) == 2):
        raise InvalidSettingError(
            f"the function of tied gives {given!r} for action {action!r} of state {state!r} and the next state "
            f"{successor!r}; it must give a class and the name of an outcome, or None"
        )
    return given


def _parts(name: Hashable) -> tuple[Hashable, Hashable]:
    """The class and the outcome of a name."""
    return cast(tuple[Hashable, Hashable], name)


def _places_in_rows(lengths: IntArray) -> IntArray:
    """0, 1, ... in each row."""
    indices: IntArray = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return indices


def _text(label: Hashable) -> str:
    """A label so that labels are equal if they are written alike."""
    return canonical_json(encode_label(label))
