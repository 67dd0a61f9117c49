"""What is assumed of one pair, and which draws of it contradict that, while exploring or not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from axplore.assumptions.declared import Assumptions
from axplore.assumptions.kind import PairKind
from axplore.assumptions.registry import pair_kinds
from axplore.records.assumed import Assumed
from axplore.types import Action, State


class Contradiction(NamedTuple):
    """An assumption that draws contradict.

    Attributes:
        assumption: its name, as `assume` takes it.
        assumed: what is assumed, as a clause that follows "though".
    """

    assumption: str
    assumed: str


@dataclass(frozen=True)
class AssumedPair:
    """What is assumed of one pair.

    Attributes:
        said: each kind that says something of it, and the number that it says.
        support: the outcomes that there are, if it is taken for closed; None if it is not.
        weight: the part of the error that the pair may use for alarms that may be wrong; 0 where there are none.
        everywhere: whether the same is assumed of all pairs, for the words.
    """

    said: tuple[tuple[PairKind, float], ...] = ()
    support: frozenset[Hashable] | None = None
    weight: float = 0.0
    everywhere: bool = True

    @cached_property
    def single(self) -> bool:
        """Whether it is assumed to have one outcome."""
        return any(kind.most_outcomes(np.array([number]))[0] == 1.0 for kind, number in self.said)

    def contradicted_by(self, outcomes: Mapping[Hashable, int]) -> Contradiction | None:
        """Returns which assumption all draws of the pair contradict; None if none.

        Args:
            outcomes: how often each outcome came.
        """
        comes_late = self.support is not None and bool(outcomes.keys() - self.support)
        for kind, number in self.said:
            if kind.contradicted_by(number, outcomes, self.weight) or (comes_late and kind.closes):
                return Contradiction(kind.name, kind.clause(number, everywhere=self.everywhere))
        return None


def counted_pair(assumed: Assumed, pair: int, *, everywhere: bool) -> AssumedPair:
    """Returns what is assumed of a counted pair, without what its draws have closed.

    Args:
        assumed: what is assumed of all of them.
        pair: its number.
        everywhere: what `is_everywhere` says, which is asked once for all pairs.
    """
    kinds = [(kind, assumed.numbers[kind.name]) for kind in pair_kinds() if kind.is_in(assumed)]
    said = tuple((kind, float(numbers[pair])) for kind, numbers in kinds if numbers[pair])
    return AssumedPair(said, everywhere=everywhere)


def is_everywhere(assumed: Assumed) -> bool:
    """Returns whether the same is assumed of all counted pairs."""
    kinds = [assumed.numbers[kind.name] for kind in pair_kinds() if kind.is_in(assumed)]
    return all(bool((numbers == numbers[:1]).all()) for numbers in kinds)


def other_pair(assumed: Assumed, assume: Assumptions, state: State, action: Action) -> AssumedPair:
    """Returns what is assumed of a pair that was not counted: what is declared of it, or of all that were."""
    declared = {
        kind.name: kind.number(value, state, action) for kind, value in assume.kinds() if isinstance(kind, PairKind)
    }
    for name, numbers in assumed.numbers.items():
        if len(numbers) and (numbers == numbers[0]).all():
            declared.setdefault(name, float(numbers[0]))
    return AssumedPair(tuple((kind, declared[kind.name]) for kind in pair_kinds() if declared.get(kind.name)))
