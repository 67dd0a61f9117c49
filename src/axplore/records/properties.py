"""What is claimed of properties, such as `Pmax=? [ !"error" U "thanks" ]`, each with the vectors that prove it.

Theorems 1 to 3 and section 4 of docs/algorithms/questions.md say what the vectors have to satisfy. States and actions
are those of the counts, as in `claims`; RESET has no part in a property.
"""

from __future__ import annotations

from typing import Final

from axplore.records.codec import Record
from axplore.types import FloatArray, IntArray

NO_CHOICE: Final = -1
"""In place of an action in a state where a property asks for none, and of the rank of a state that needs none."""

NO_BOUND: Final = -1.0
"""In place of the bound of the plays of a pair that has none."""


class NamedStates(Record, frozen=True):
    """The states that a name in a property stands for.

    Attributes:
        name: as it stands in the text, without quotation marks.
        states: their indices, ascending. What was never seen may be among them too.
    """

    name: str
    states: IntArray


class Witness(Record, frozen=True):
    """Episodes of one policy, which was fixed before the first of them, as a witness of a bound (Theorem 4).

    An episode begins with RESET, plays the policy, and ends where that plays nothing, or after the last step.

    Attributes:
        bound: the lower bound of the best probability, or the upper bound of the worst one.
        policy: what it plays by the number of steps done and known state, an index among its actions or NO_CHOICE,
            [steps, n].
        line: whose level it has, counted from 1.
        fractions, weights: the parts of the wealth that were staked on each episode, and the parts of the first wealth
            that staked them, [b] each.
        episodes: how many there were.
        successes: how many of them reached the goal or, for the worst probability, surely missed it.
    """

    bound: float
    policy: IntArray
    line: int
    fractions: tuple[float, ...]
    weights: tuple[float, ...]
    episodes: int
    successes: int


class JointDraws(Record, frozen=True):
    """Draws of pairs that were named before the first of them, so that one level serves them together (Theorem 5).

    Attributes:
        line: whose level they have, counted from 1; tests by episodes have other lines.
        pairs: the named pairs, ascending, [m].
        before: how often each entry of these pairs was drawn before they were named, [e].
    """

    line: int
    pairs: IntArray
    before: IntArray


class JointBound(Record, frozen=True):
    """A bound from the initial state that rests on joint draws (Theorem 5).

    Attributes:
        bound: the bound.
        price: what a nat of all named pairs costs.
        values: a bound from each known state of what is left where departing costs its price, [n].
        most_plays: a bound of the expected plays of each named pair, or NO_BOUND: such a pair has no price, [m].
        plays: the vectors that prove it, from each known state, [m, n].
        policy: the policy that the bound is of, as `PropertyClaim.policy`; empty if it is of all.
        ranks: as `PropertyClaim.ranks`; empty for an upper bound.
    """

    bound: float
    price: float
    values: FloatArray
    most_plays: FloatArray
    plays: FloatArray
    policy: IntArray
    ranks: IntArray


class PropertyClaim(Record, frozen=True, omit_defaults=True):
    """Bounds of the probability of reaching a goal before something bad, or of what that costs, from every known state.

    Which states are the goal and which are bad follows from the text and from the names, so nothing else says it.

    Attributes:
        text: the property.
        names: the states that its names stand for; other names are labels of states.
        costs: of each pair, [P]; empty for a probability.
        lower: a lower bound of the probability or cost, [n].
        upper: an upper bound of it, [n]; empty if nothing is claimed, as of costs where something unseen may happen.
        policy: what attains the lower bound of the best probability, or stays below the upper bound of the worst one or
            of the cost, [n], as an index among the actions of the state, or NO_CHOICE; empty if the number of steps is
            limited: the choice depends on the steps left then.
        ranks: the fewest seen transitions out of the states of positive probability, or NO_CHOICE, [n]; empty if the
            number of steps is limited, and for costs.
        witness: episodes that prove a bound from the initial state which the vectors do not; None if there are none.
        joint: draws of pairs that were named together; None if there are none.
        joint_lower, joint_upper: bounds from the initial state that follow from them; None where the vectors say more.
    """

    text: str
    names: tuple[NamedStates, ...]
    costs: FloatArray
    lower: FloatArray
    upper: FloatArray
    policy: IntArray
    ranks: IntArray
    witness: Witness | None = None
    joint: JointDraws | None = None
    joint_lower: JointBound | None = None
    joint_upper: JointBound | None = None
