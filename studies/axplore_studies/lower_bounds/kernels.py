"""Compiled arithmetic of the local search: how cheaply rows can be changed, and least steps under forced actions.

Fix values V of the states, V = 0 at the goal and at most F everywhere. What it costs, in nats for each draw, to move
the mean of V under a row p up to m, where new mass may be put on a state of value F, is (Honda and Takemura 2010)

    min {KL(p ‖ p') : p'·V >= m} = max {∑ p ln(1 − x (V − m)) : 0 <= x <= 1 / (F − m)},

attained by p' = p / (1 − x (V − m)), whose missing mass goes to F. Downwards, where new mass goes to the goal,

    min {KL(p ‖ p') : p'·V <= m} = max {∑ p ln(1 + x (V − m)) : 0 <= x <= 1 / m}.

The derivative by m is x (downwards −x), and by V(y) it is −x p'(y) (downwards x p'(y)). No proof depends on these
kernels: they only propose rows, and every alternative is checked.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled
from axplore.types import FloatArray, IntArray

_MOST_STEPS: Final = 100
"""The iterations of the search for a multiplier: a few suffice, and bisection alone would converge by then."""

_NEARLY_ALL: Final = 1 - 1e-12
"""The share of the interval that is searched if a logarithm would be infinite at its end."""

_ITERATIONS: Final = 600
_RECENT: Final = 8
_PATIENCE: Final = 30
"""Limits of the descent: iterations, the number of earlier costs to compare with, iterations without success."""


@compiled
def _slopes(sign: float, multiplier: float, probabilities: FloatArray, gaps: FloatArray) -> tuple[float, float]:
    """Returns the first and the second derivative of ∑ p ln(1 + sign x gap) by x."""
    first = 0.0
    second = 0.0
    for place in range(len(gaps)):
        part = sign * gaps[place] / (1.0 + sign * multiplier * gaps[place])
        first += probabilities[place] * part
        second -= probabilities[place] * part * part
    return first, second


@compiled
def multiplier_of(sign: float, probabilities: FloatArray, gaps: FloatArray, largest: float) -> float:
    """Returns the best x of a row; `sign` is −1 upwards and 1 downwards, `gaps` are V − m, `largest` bounds x."""
    mean = 0.0
    for place in range(len(gaps)):
        mean += probabilities[place] * gaps[place]
    if sign * mean <= 0.0:
        return 0.0
    high = largest
    for place in range(len(gaps)):
        if 1.0 + sign * largest * gaps[place] <= 1e-14:
            high = largest * _NEARLY_ALL
    if _slopes(sign, high, probabilities, gaps)[0] >= 0.0:
        return high
    low = 0.0
    x = 0.5 * high
    for _ in range(_MOST_STEPS):
        first, second = _slopes(sign, x, probabilities, gaps)
        if first > 0.0:
            low = x
        else:
            high = x
        # A Newton step if it stays inside, otherwise bisection.
        new = x - first / second if second < 0.0 else low
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= 1e-14 * largest:
            return new
        x = new
    return x


@compiled
def change_costs(
    sign: float,
    values: FloatArray,
    pairs: IntArray,
    pair_states: IntArray,
    offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    visits: FloatArray,
    farthest: float,
    gradient: FloatArray,
    multipliers: FloatArray,
    costs: FloatArray,
) -> float:
    """Returns the cost of making `values` a bound on the steps to the goal: from below upwards, from above downwards.

    Adds the derivative by each value to `gradient`, [S]; writes the multiplier and the cost of each of the pairs, [n].
    """
    total = 0.0
    costs[:] = 0.0
    for position in range(len(pairs)):
        pair = pairs[position]
        first, end = offsets[pair], offsets[pair + 1]
        mean = values[pair_states[pair]] - 1.0
        gaps = values[successors[first:end]] - mean
        room = mean if sign > 0.0 else farthest - mean
        x = multiplier_of(sign, probabilities[first:end], gaps, 1.0 / max(1e-12, room))
        multipliers[position] = x
        if x == 0.0:
            continue
        for place in range(end - first):
            factor = 1.0 + sign * x * gaps[place]
            probability = probabilities[first + place]
            costs[position] += visits[pair] * probability * np.log(factor)
            gradient[successors[first + place]] += sign * visits[pair] * x * probability / factor
        gradient[pair_states[pair]] -= sign * visits[pair] * x
        total += costs[position]
    return total


@compiled
def least_steps(
    goal: int,
    start: int,
    row_states: IntArray,
    offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    usable: IntArray,
    fixed_state: int,
    fixed_value: float,
    enough: float,
    values: FloatArray,
    choices: IntArray,
) -> bool:
    """Value iteration from below over the usable rows, RESET among them; every iterate is a lower bound.

    Starts from `values`, which must be a lower bound, and ends when the start exceeds `enough` or nothing
    changes any more; returns whether it was the latter. `fixed_state`, unless negative, has the value `fixed_value`.
    """
    n_states = len(values)
    updated = np.empty(n_states)
    for _ in range(20_000):
        updated[:] = np.inf
        for row in range(len(row_states)):
            if usable[row] == 0:
                continue
            total = 1.0
            for entry in range(offsets[row], offsets[row + 1]):
                total += probabilities[entry] * values[successors[entry]]
            if total < updated[row_states[row]]:
                updated[row_states[row]] = total
                choices[row_states[row]] = row
        updated[goal] = 0.0
        if fixed_state >= 0:
            updated[fixed_state] = fixed_value
        change = 0.0
        for state in range(n_states):
            if updated[state] > values[state]:
                change = max(change, updated[state] - values[state])
                values[state] = updated[state]
        if change <= 1e-12:
            return True
        if values[start] > enough:
            return False
    return False


@compiled
def descend(
    sign: float,
    values: FloatArray,
    free: IntArray,
    pairs: IntArray,
    pair_states: IntArray,
    offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    visits: FloatArray,
    farthest: float,
) -> float:
    """Moves the free values to where `change_costs` is least nearby, between 1 and `farthest`; returns the cost.

    Spectral projected gradients (Birgin, Martínez and Raydan 2000): steps of Barzilai and Borwein, accepted where the
    cost falls below the largest of the last few.
    """
    multipliers, costs = np.empty(len(pairs)), np.empty(len(pairs))
    gradient = np.zeros(len(values))
    cost = change_costs(
        sign, values, pairs, pair_states, offsets, successors, probabilities, visits, farthest,
        gradient, multipliers, costs,
    )  # fmt: skip
    best, best_values = cost, values.copy()
    recent = np.full(_RECENT, cost)
    length = 1.0 / max(1e-12, np.max(np.abs(gradient[free]))) if len(free) > 0 else 0.0
    last_best, in_vain = cost, 0
    for iteration in range(_ITERATIONS if len(free) > 0 else 0):
        direction = np.clip(values[free] - length * gradient[free], 1.0, farthest) - values[free]
        slope = np.sum(direction * gradient[free])
        if slope >= -1e-12 * max(cost, 1e-12):
            break
        part = 1.0
        trial_gradient = np.zeros(len(values))
        trial = values.copy()
        trial_cost = cost
        for _ in range(30):
            trial[free] = values[free] + part * direction
            trial_gradient[:] = 0.0
            trial_cost = change_costs(
                sign, trial, pairs, pair_states, offsets, successors, probabilities, visits, farthest,
                trial_gradient, multipliers, costs,
            )  # fmt: skip
            if trial_cost <= np.max(recent) + 1e-4 * part * slope:
                break
            part *= 0.4
        moved = trial[free] - values[free]
        turned = trial_gradient[free] - gradient[free]
        curvature = np.sum(moved * turned)
        squared = np.sum(moved * moved)
        length = min(1e6, max(1e-9, squared / curvature)) if curvature > 0.0 else min(1e6, 2.0 * length)
        values[free] = trial[free]
        gradient[:] = trial_gradient
        cost = trial_cost
        recent[iteration % _RECENT] = cost
        if cost < best:
            best = cost
            best_values[:] = values
        in_vain += 1
        if in_vain >= _PATIENCE:
            if best > last_best * (1.0 - 1e-5):
                break
            last_best, in_vain = best, 0
    values[:] = best_values
    return best
