"""A lower bound that the draws of all rows prove together, in place of each row by itself: how many draws it takes.

The bound is that of Theorem 5 in docs/algorithms/certified.md. Stakes are fixed before the draws: a vector W about the
values of a goal, how often each state may be visited, and what is bet on each draw. Then bets on 1 + W(s') - W(s) along
the best policy of the true model, in proportion to how often it visits s, win what W exceeds the true value by, to
first and to second order. So errors of rows add like the legs of a right angle.

The study asks how often every pair would have to be drawn to prove that a state is too far, row by row and together, if
the frequencies were the true probabilities. A part of the draws comes before the stakes are fixed, and counts for rows
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_part
from axplore.domains import domain
from axplore.errors import NotConvergedError
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import IntervalModel, empirical_path, lower_path
from axplore.proofs.row_kernels import RegionRows, least_mean
from axplore.target import Target
from axplore.truth import controllable_states
from axplore.types import FloatArray, State
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.oracle import Oracle
from axplore_studies.outputs import Table

DELTA: Final = 0.1
NATS: Final = 9.0
"""Those of a level of δ / 800: a tenth of δ, divided among some eighty goals."""

BEFORE: Final = 0.3
"""The part of the draws that comes before the stakes."""

SCALES: Final = (1.4, 1.8, 2.3)
"""Stakes that are tried, as multiples of the nats by what the bound may lack; the best of them counts."""

ROOM: Final = 1.2
"""By how much more visits are allowed than the frequencies say: the true model may hold more."""

LEAST_VISITS, MOST_VISITS = 0.03, 20.0
HALVINGS: Final = 9
"""Between these the visits of each state are sought, by halving the logarithm."""

MOST_STAKED: Final = 0.95
"""No draw may lose more than this part of the wealth."""

MOST_SWEEPS, SETTLED, FAR_BELOW = 5000, 1e-7, -50.0
MARGIN: Final = 1e-5
"""What shortfalls lack to their inequalities when they have settled, so that these hold."""

MOST_DRAWS, LEAST_DRAWS, FINENESS = 2.0**21, 16.0, 1.05
"""Between these numbers of draws of each pair the least one is sought, up to this factor."""


@dataclass(frozen=True, eq=False)
class Stakes:
    """What is fixed before the draws.

    Attributes:
        values: W, 0 in the goal and 1 more than in the initial state outside the known states, [n + others].
        visits: X, how often each known state may be visited without a price, [n].
        scale: θ, what is bet on a unit of W and visit.
        per_draw: y, the part of this that is bet on each draw of a pair, about 1 over the draws to come, [P].
    """

    values: FloatArray
    visits: FloatArray
    scale: float
    per_draw: FloatArray

    @classmethod
    def towards(cls, model: IntervalModel, goal: int, gap: float, scale: float, draws: FloatArray) -> Stakes:
        """Stakes for a bound that lacks at most a gap to the estimate, with draws to come, [P]."""
        estimate = empirical_path(model, goal)
        values = np.minimum(estimate.values, 1.0 + estimate.steps)
        values[model.n_known :] = 1.0 + estimate.steps
        values[goal] = 0.0
        visits = ROOM * _visits(model, goal, values, gap)
        largest = scale * visits[model.owners] * _largest_loss(model, goal, values)
        return cls(values, visits, scale, np.minimum(1.0 / draws, MOST_STAKED / largest))


def joint_lower_bound(model: IntervalModel, goal: int, stakes: Stakes, drawn: FloatArray, nats: float) -> float:
    """A bound of the expected steps of every policy restricted to the known states; 0 if there is none.

    Args:
        model: the region after all draws.
        goal: the index of a state that was seen.
        stakes: fixed before some of the draws.
        drawn: the number of these by entry, [E].
        nats: minus the logarithm of the probability with which the bound may be false inside the region.
    """
    rows, values, n_known = model.rows_for(goal, -1.0), stakes.values, model.n_known
    offsets, slopes = _worth(model, goal, stakes, drawn)
    resets = 1.0 + values[0] - values[:n_known]
    settle = partial(_settle, rows, goal, offsets - MARGIN, slopes, values, resets)
    shortfall = np.zeros(len(values))
    if not settle(0, 0.0, shortfall):
        return 0.0
    price = nats / stakes.scale
    worst = shortfall[0] - price
    for state in range(n_known):
        if state != goal:
            charged = shortfall.copy()
            if not settle(state, price / stakes.visits[state], charged):
                return 0.0
            worst = min(worst, charged[0])
    return max(0.0, float(values[0] + worst))


def _worth(model: IntervalModel, goal: int, stakes: Stakes, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each pair the line below what a visit is worth, as a function of the mean of W: offset and slope, [P].

    With δ for the expectation of 1 + W(s') - W(s), a visit is worth δ + (sum of log(1 + ν y (D - δ))) / ν. That is
    concave, so it is at least what a line through, or below, its values at the least and the greatest δ has.
    """
    owners, pairs, values = model.owners, model.pair_of_entries, stakes.values
    nu = stakes.scale * stakes.visits[owners]
    observed = 1.0 + values[model.rows.successors] - values[owners[pairs]]
    least = 1.0 + _least_means(model.rows_for(goal, -1.0), values) - values[owners]
    most = _greatest(model, goal, values)

    def worth(mean: FloatArray) -> FloatArray:
        won = drawn * np.log1p((nu * stakes.per_draw)[pairs] * (observed - mean[pairs]))
        total: FloatArray = mean + np.bincount(pairs, won, minlength=len(nu)) / nu
        return total

    low, high = worth(least), worth(most)
    slopes = np.clip((high - low) / np.maximum(most - least, MARGIN), 0.0, 1.0)
    at_zero = np.minimum(low - slopes * least, high - slopes * most)
    return at_zero + slopes * (1.0 - values[owners]), slopes


def _greatest(model: IntervalModel, goal: int, values: FloatArray) -> FloatArray:
    """The greatest expectation of 1 + W(s') - W(s) under each pair, [P]."""
    above = float(values.max())
    return 1.0 + above - _least_means(model.rows_for(goal, 1.0), above - values) - values[model.owners]


def _largest_loss(model: IntervalModel, goal: int, values: FloatArray) -> FloatArray:
    """By how much a draw of each pair may fall below its expectation: if it leads to the goal at once, [P]."""
    return np.maximum(_greatest(model, goal, values) - 1.0 + values[model.owners], MARGIN)


def _visits(model: IntervalModel, goal: int, values: FloatArray, gap: float) -> FloatArray:
    """How often each known state is visited at most, by the frequencies, by policies that waste little, [n].

    Further visits have a price of half the gap for each time that the visits allowed are used up, and policies that
    take more steps than W says have what they waste to pay for it.
    """
    owners, pairs = model.owners, model.pair_of_entries
    observed = 1.0 + values[model.rows.successors] - values[owners[pairs]]
    wasted = np.maximum(np.bincount(pairs, model.rows.frequencies * observed, minlength=model.n_pairs), 0.0)
    found = np.zeros(model.n_known)
    for state in range(model.n_known):
        low, high = LEAST_VISITS, MOST_VISITS
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            most = _most_visits(model.rows, goal, state, 2.0 * middle / gap * wasted, len(values))
            low, high = (low, middle) if most <= middle else (middle, high)
        found[state] = high
    return found


@compiled
def _least_means(rows: RegionRows, values: FloatArray) -> FloatArray:
    """The least mean of values, none of them negative, under each pair, [P]."""
    means = np.empty(len(rows.slack))
    for pair in range(len(means)):
        means[pair] = least_mean(rows, pair, values, 0.0, -1.0, rows.slack[pair])[0]
    return means


@compiled
def _most_visits(rows: RegionRows, goal: int, visited: int, costs: FloatArray, n_seen: int) -> float:
    """The most visits of a state from the initial one, by frequencies, less the costs of the pairs played."""
    n_known = len(rows.state_pairs) - 1
    values = np.zeros(n_seen)
    for _ in range(MOST_SWEEPS):
        change = 0.0
        for state in range(n_known):
            if state == goal:
                continue
            best = 0.0
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                value = -costs[pair]
                for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                    value += rows.frequencies[entry] * values[rows.successors[entry]]
                best = max(best, value)
            if state == visited:
                best += 1.0
            change = max(change, best - values[state])
            values[state] = best
        for state in range(n_known, n_seen):
            if state != goal:
                values[state] = values[0]
        if change < 1e-5 or values[0] > MOST_VISITS:
            break
    return float(values[0])


@compiled
def _settle(
    rows: RegionRows,
    goal: int,
    offsets: FloatArray,
    slopes: FloatArray,
    reference: FloatArray,
    resets: FloatArray,
    charged: int,
    price: float,
    shortfall: FloatArray,
) -> bool:
    """Lowers Ψ, [n + others], until it satisfies its inequalities, with a price for every visit of a state."""
    n_known, apart = len(resets), np.zeros(len(shortfall))
    for _ in range(MOST_SWEEPS):
        change = 0.0
        for state in range(n_known):
            if state == goal:
                continue
            least, least_sum = min(shortfall.min(), 0.0), (shortfall + reference).min()
            value = resets[state] + shortfall[0] if state > 0 else np.inf
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                mean = _least_sum(rows, pair, slopes[pair], reference, shortfall, least, least_sum, apart)
                value = min(value, offsets[pair] + mean)
            if state == charged:
                value -= price
            change = max(change, abs(value - shortfall[state]))
            shortfall[state] = value
        for state in range(n_known, len(shortfall)):
            if state != goal:
                shortfall[state] = shortfall[0]
        if change < SETTLED:
            return True
        if shortfall[0] < FAR_BELOW:
            return False
    return False


@compiled_part
def _least_sum(
    rows: RegionRows,
    pair: int,
    slope: float,
    reference: FloatArray,
    shortfall: FloatArray,
    least: float,
    least_sum: float,
    apart: FloatArray,
) -> float:
    """The least mean of slope W + Ψ over the row of a pair, where what was never seen may have the least of any state.

    That is at least the slope times the least of W + Ψ and the rest of one times the least of Ψ.
    """
    free = slope * least_sum + (1.0 - slope) * least
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        successor = rows.successors[entry]
        apart[successor] = slope * reference[successor] + shortfall[successor] - free
    return free + least_mean(rows, pair, apart, 0.0, -1.0, rows.slack[pair])[0]


@dataclass(frozen=True)
class JointCase:
    """A world, and what is asked of it.

    Attributes:
        made: makes the model.
        radius, epsilon: L and ε.
    """

    made: Callable[[], TabularMdp]
    radius: float
    epsilon: float = 1.0


def line(length: int, advance: float = 0.8) -> TabularMdp:
    """Returns a line of states, in each of which `on` leads to the next with this probability, and else nowhere."""
    rows = {state: {"on": {state + 1: advance, state: 1.0 - advance}} for state in range(length)}
    return TabularMdp.from_rows({**rows, length: {}}, initial_state=0)


CASES: Final = {
    "line of 5": JointCase(lambda: line(5), 5 / 0.8 - 0.9),
    "line of 10": JointCase(lambda: line(10), 10 / 0.8 - 0.9),
    "line of 20": JointCase(lambda: line(20), 20 / 0.8 - 0.9),
    "line of 40": JointCase(lambda: line(40), 40 / 0.8 - 0.9),
    "combination-lock": JointCase(lambda: domain("combination-lock"), 2.7, 0.2),
    "slippery-grid 4×4": JointCase(lambda: domain("slippery-grid", rows=4, columns=4), 6.0),
    "slippery-grid 6×6": JointCase(lambda: domain("slippery-grid", rows=6, columns=6), 8.0),
    "slippery-grid 10×10": JointCase(lambda: domain("slippery-grid", rows=10, columns=10), 10.0),
    "slippery-grid 20×20, slip 0.1": JointCase(lambda: domain("slippery-grid", rows=20, columns=20, slip=0.1), 15.0),
}


def trials() -> list[Trial]:
    """Returns the worlds to examine; nothing is drawn, so that there is one trial of each."""
    return [Trial({"world": name}, partial(_compared, name)) for name in CASES]


def _compared(name: str) -> Record:
    """The draws of each pair that prove the nearest state beyond L + ε / 2 too far, row by row and together."""
    case = CASES[name]
    mdp, target = case.made(), Target(radius=case.radius, epsilon=case.epsilon, delta=DELTA)
    known = _known(mdp, case)
    oracle = Oracle(mdp, known, target)
    model = _after(oracle, 1000.0)
    goal = min(model.frontier, key=lambda goal: empirical_path(model, goal).steps)
    steps = empirical_path(model, goal).steps
    by_rows = _least_draws(lambda draws: lower_path(_after(oracle, draws), goal).at_least > case.radius)
    together = _least_draws(partial(_proves, oracle, goal, case.radius, steps - case.radius))
    return {"known": len(known), "steps": round(steps, 3), "by rows": round(by_rows), "together": round(together)}


def _known(mdp: TabularMdp, case: JointCase) -> list[State]:
    """The states that an exploration would admit: all that are controllable within L + ε / 2."""
    return list(controllable_states(mdp, case.radius + case.epsilon / 2.0).steps)


def _after(oracle: Oracle, draws: float) -> IntervalModel:
    return replace(oracle.model_after(np.full(oracle.model.n_pairs, draws)), limit=oracle.target.value_limit)


def _proves(oracle: Oracle, goal: int, steps: float, gap: float, draws: float) -> bool:
    """Whether the draws of each pair prove together that the goal takes more steps."""
    model, later = _after(oracle, draws), (1.0 - BEFORE) * draws
    at_stakes = _after(oracle, BEFORE * draws)
    for scale in SCALES:
        stakes = Stakes.towards(at_stakes, goal, gap, scale * NATS / gap, np.full(model.n_pairs, later))
        if joint_lower_bound(model, goal, stakes, model.rows.frequencies * later, NATS) > steps:
            return True
    return False


def _least_draws(proves: Callable[[float], bool]) -> float:
    """The least number of draws that proves a claim."""
    low, high = LEAST_DRAWS, MOST_DRAWS
    if not proves(high):
        raise NotConvergedError(f"{high:,.0f} draws of each pair do not prove the claim")
    while high > FINENESS * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def summary(records: Sequence[Record]) -> Table:
    """Returns the draws of each pair, and how many times fewer they are together."""
    rows = [{**record, "times fewer": round(record["by rows"] / record["together"], 2)} for record in records]
    lines = [
        {
            "world": row["world"],
            "known": row["known"],
            "steps to the goal": f"{row['steps']:.3f}",
            "by rows": f"{row['by rows']:,.0f}",
            "together": f"{row['together']:,.0f}",
            "times fewer": f"{row['times fewer']:.2f}",
        }
        for row in rows
    ]
    return Table(STUDY.name, "Draws of each pair that prove a state too far, row by row and together", rows, lines)


STUDY: Final = Study(
    "joint-lower",
    "what lower bounds would take if the draws of all rows proved them together",
    trials,
    summary,
)
