"""One ball for several rows, by bets on what was seen before the rows were named.

Who has drawn a row before knows about what it is. Bets with the frequencies so far, which follow the further draws, win
against every row that is not about that, and the logarithm of what they win is linear in the logarithms of the
probabilities. A draw moves the wealth of its own row only, so the product over rows that were named beforehand is one
martingale, and one level serves all of them (Theorem 5 of docs/algorithms/questions.md).
"""

from __future__ import annotations

import math
from typing import Final

from axplore.compilation import compiled
from axplore.types import FloatArray, IntArray

NOVELTY: Final = 0.02
"""What is staked on a successor that was never seen, as if it had been drawn this often."""


@compiled
def joint_ball(
    row_offsets: IntArray, before: FloatArray, drawn: FloatArray, shares: FloatArray, weights: FloatArray
) -> float:
    """Writes shares, [e], and weights, [m], of the ball of some rows, and returns what they cost together, in nats.

    The logarithm of the wealth of a row is the weight times KL(shares || row), less what the row costs. So with the
    level α the sum of weights times distances is below log(1/α) plus all costs.

    Args:
        row_offsets: the first entry of each row, and the end of the last one, [m + 1].
        before: how often each entry was drawn before the rows were named; 0 for what was first seen later, [e].
        drawn: how often since, [e].
        shares: the result, summing to one in a row with a positive weight, [e].
        weights: the result, [m]; 0 where nothing was drawn.
    """
    cost = 0.0
    for row in range(len(weights)):
        total, draws, weight, log_wealth = NOVELTY, 0.0, 0.0, 0.0
        for entry in range(row_offsets[row], row_offsets[row + 1]):
            total += before[entry]
            draws += drawn[entry]
            shares[entry] = drawn[entry]
            if before[entry] > 0.0:
                log_wealth += math.lgamma(before[entry] + drawn[entry]) - math.lgamma(before[entry])
            elif drawn[entry] > 0.0:  # the first time it was new, and won at least what was staked on that
                log_wealth += math.log(NOVELTY) + math.lgamma(drawn[entry])
                shares[entry] -= 1.0
            weight += shares[entry]
        weights[row] = weight
        cost -= log_wealth + math.lgamma(total) - math.lgamma(total + draws)
        for entry in range(row_offsets[row], row_offsets[row + 1]):
            if shares[entry] > 0.0:
                shares[entry] /= weight
                cost += weight * shares[entry] * math.log(shares[entry])
    return cost
