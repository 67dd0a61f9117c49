"""What a kind of assumption is on the side of those who declare and use it.

A kind owns, in its own file: how it is written and checked, its words, what it says of the pairs of some counts, what
contradicts it, what follows from it for confidence regions, and how the doctor examines it. Everything else loops over
`KINDS` in the registry. The verifier has its own account of each kind, in `axplore.certificate.assumptions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from msgspec import structs

from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.types import Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.assumptions.declared import Assumptions
    from axplore.statistics.given_rows import GivenRows

Pair: TypeAlias = tuple[State, Action]

Loading: TypeAlias = Callable[[str], Any]
"""Returns the function that `MODULE:FUNCTION` stands for."""


class Draw(Protocol):
    """A step of an examination."""

    @property
    def pair(self) -> Pair: ...
    @property
    def successor(self) -> State: ...


@dataclass(frozen=True)
class Examined:
    """What draws say of an assumption.

    Attributes:
        text: what contradicts it, a sentence; or, where nothing does, how large a violation would have shown.
        is_false: whether it is contradicted.
        is_inferred: whether a test says so that may alarm wrongly, and not a draw that cannot be.
    """

    text: str
    is_false: bool = False
    is_inferred: bool = False


@dataclass(frozen=True, eq=False)
class Grown:
    """Counts that have grown. Entries are only ever added at the end of a row, and pairs at the end of all.

    Attributes:
        rows: what was counted.
        before: what was counted when assumptions were last applied; None if they never were.
        pairs: state and action of each pair, [P].
        states: the labels of all states, by number.
    """

    rows: Counts
    before: Counts | None
    pairs: Sequence[Pair]
    states: Sequence[State]


class AssumptionKind(ABC):
    """A kind of assumption. What is declared of it is a *value*, which may be a function of the user.

    Attributes:
        name: how it is called on the command line; in Python with underscores.
        form: how it is written there, for help and errors.
        needs: the name of a kind without which it says nothing; None if there is none.
    """

    name: ClassVar[str]
    form: ClassVar[str]
    needs: ClassVar[str | None] = None

    @property
    def keyword(self) -> str:
        """Its name as an argument in Python."""
        return self.name.replace("-", "_")

    @abstractmethod
    def read(self, text: str, load: Loading | None) -> Any:
        """Returns the value that is written behind `name=`, empty if nothing is; None if nothing can be read so.

        Args:
            text: what is written.
            load: imports the functions that texts name; None if that is not allowed.
        """

    @abstractmethod
    def checked(self, value: Any) -> Any:
        """Returns a value in the form in which it is kept, None if it assumes nothing; raises if it is no value."""

    @abstractmethod
    def words(self, value: Any, assume: Assumptions) -> str:
        """Returns a value in a few words; empty if another kind speaks for it."""

    @abstractmethod
    def applied(self, value: Any, assume: Assumptions, assumed: Assumed, grown: Grown) -> Assumed:
        """Returns what was assumed of earlier counts with what this kind says of the grown ones."""

    @abstractmethod
    def is_in(self, assumed: Assumed) -> bool:
        """Whether it is part of what is assumed of the pairs of some counts."""

    def contradicted(self, assumed: Assumed, rows: Counts, given: GivenRows) -> IntArray:  # noqa: ARG002
        """The pairs whose draws contradict it, beyond too many outcomes and those that come too late."""
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def examined(self, value: Any, assume: Assumptions, draws: Sequence[Draw], false_alarm: float) -> Examined | None:
        """Returns what the draws of an examination say of it; None if another kind speaks for it.

        Args:
            value: what is assumed.
            assume: all that is assumed.
            draws: every step, in order.
            false_alarm: the probability with which it may be called false if it is true.
        """


class PairKind(AssumptionKind):
    """A kind that says one number of each pair, and nothing where the number is 0.

    Attributes:
        closes: whether it may close the support of a pair while it is drawn. One draw settles a pair that has one
            outcome: that is no closing.
        closes_by_chance: whether it may take a support for closed that is not, for which it needs a part of δ.
    """

    closes: ClassVar[bool] = True
    closes_by_chance: ClassVar[bool] = False

    @abstractmethod
    def number(self, value: Any, state: State, action: Action) -> float:
        """What a value says of a pair."""

    @abstractmethod
    def clause(self, number: float, *, everywhere: bool) -> str:
        """What a number says, as a clause that follows "though".

        Args:
            number: of a pair, not 0.
            everywhere: whether the same is said of every pair.
        """

    def most_outcomes(self, numbers: FloatArray) -> FloatArray:
        """How many outcomes each pair can have, [P]; infinite where that is not known."""
        return np.full(len(numbers), np.inf)

    def contradicted_by(self, number: float, outcomes: Mapping[Hashable, int], weight: float) -> bool:  # noqa: ARG002
        """Whether all draws of one pair contradict the number that is said of it.

        Args:
            number: of the pair, not 0.
            outcomes: how often each outcome came.
            weight: the part of the error that the pair may use for an alarm that may be wrong; 0 for none.
        """
        return len(outcomes) > float(self.most_outcomes(np.array([number]))[0])

    def floors(self, numbers: FloatArray) -> FloatArray:
        """How likely each outcome of a pair is at least, [P]; 0 where that is not known."""
        return np.zeros(len(numbers))

    def closing_draws(self, numbers: FloatArray, levels: FloatArray) -> FloatArray:  # noqa: ARG002
        """After how many draws no outcome of a pair is left unseen, but with the probability `levels`, [P]."""
        return np.full(len(numbers), np.inf)

    def of_groups(self, numbers: FloatArray, groups: IntArray) -> FloatArray:
        """What is said of all pairs of a group, for each pair, [P]: the least, if greater numbers say more."""
        of_group = np.full(int(groups.max(initial=0)) + 1, np.inf)
        np.minimum.at(of_group, groups, numbers)
        return of_group[groups]

    def is_in(self, assumed: Assumed) -> bool:
        """Whether there are numbers of it."""
        return self.name in assumed.numbers

    def applied(self, value: Any, assume: Assumptions, assumed: Assumed, grown: Grown) -> Assumed:  # noqa: ARG002
        """Returns what was assumed with a number for each new pair."""
        before = assumed.numbers.get(self.name, np.zeros(0))
        fresh = [self.number(value, *pair) for pair in grown.pairs[len(before) :]]
        numbers = np.append(before, fresh).astype(np.float64)
        return structs.replace(assumed, numbers={**assumed.numbers, self.name: numbers})
