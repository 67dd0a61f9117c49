"""The linear programme: the least draws that tell the model from finitely many alternatives, and a proof of its value.

Minimise ∑ N(s,a) + ∑ N(s,RESET) subject to

    flow, for every s:   ∑_a N(s,a) + N(s,RESET) − ∑ N(y,b) p(s|y,b) − 1{s = s0} ∑_y N(y,RESET) <= 1{s = s0}
    information, for every alternative j:   ∑ N(s,a) KL_j(s,a) >= kl(δ, 1 − δ).

The value is not taken from the solver. Any φ >= 0 and w >= 0 with

    ∑_j w_j KL_j(s,a) − φ(s) + ∑_y p(y|s,a) φ(y) <= 1 for every pair   and   φ(s0) − φ(s) <= 1 for every s

give the bound kl(δ, 1 − δ) ∑_j w_j − φ(s0), by weak duality. The solver's multipliers are clipped at zero, divided by
the largest left side if that is above one, and evaluated: inexact multipliers weaken the bound and never break it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.errors import NotConvergedError
from axplore.mdp import TabularMdp
from axplore.types import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


ROUNDING: Final = 1e-9
"""The share of the bound that is subtracted for rounding, far more than double precision can lose."""


@dataclass(frozen=True, eq=False)
class Solution:
    """An allocation of draws, with the bound that it proves.

    Attributes:
        steps: a lower bound on the value of the programme.
        visits: the expected draws of each pair, N(s,a), [P].
        resets: the expected resets in each state, N(s,RESET), [S].
        shares: the steps that each alternative adds, [J].
    """

    steps: float
    visits: FloatArray
    resets: FloatArray
    shares: FloatArray


def solve(mdp: TabularMdp, divergences: Sequence[FloatArray], information: float) -> Solution:
    """Solves the programme.

    Args:
        mdp: the model.
        divergences: for each alternative, KL_j(s,a) of each pair, [P].
        information: kl(δ, 1 − δ).
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    needed = np.array(divergences).reshape(len(divergences), mdp.n_pairs) / max(information, 1e-300)
    flow = flow_matrix(mdp)
    # Each alternative is scaled so that its largest entry is one: solvers prefer numbers of similar size.
    scales = np.maximum(needed.max(axis=1, initial=0.0), 1e-300)
    learned = np.hstack((needed / scales[:, None], np.zeros((len(needed), mdp.n_states))))
    arriving = np.zeros(mdp.n_states)
    arriving[mdp.initial_index] = 1.0
    found = linprog(  # type: ignore[call-overload]  # its stubs know dense matrices only
        np.ones(mdp.n_pairs + mdp.n_states),
        A_ub=vstack((flow, csr_array(-learned))),
        b_ub=np.concatenate((arriving, -1 / scales)),
        method="highs",
    )
    if found.x is None:
        raise NotConvergedError(f"the linear programme could not be solved: {found.message}")
    duals = np.maximum(-found.ineqlin.marginals, 0.0)
    steps, shares = _proven(mdp, needed, duals[: mdp.n_states], duals[mdp.n_states :] / scales)
    visits = np.maximum(found.x, 0.0)
    return Solution(steps, visits[: mdp.n_pairs], visits[mdp.n_pairs :], shares)


def _proven(
    mdp: TabularMdp, needed: FloatArray, potentials: FloatArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Returns the bound that the multipliers prove, and the part of it that each alternative adds, [J]."""
    means = np.bincount(mdp.transition_pairs, mdp.probabilities * potentials[mdp.successors], minlength=mdp.n_pairs)
    pairs = weights @ needed - potentials[mdp.pair_states] + means
    resets = potentials[mdp.initial_index] - potentials
    excess = max(1.0, float(pairs.max(initial=0.0)), float(resets.max(initial=0.0)))
    steps = (float(weights.sum()) - float(potentials[mdp.initial_index])) / excess
    return max(0.0, steps * (1 - ROUNDING)), weights / excess


def flow_matrix(mdp: TabularMdp) -> csr_array[np.float64]:
    """Returns plays minus expected arrivals in each state, by pair and then by RESET, [S, P + S]."""
    from scipy.sparse import csr_array

    n_states, n_pairs = mdp.n_states, mdp.n_pairs
    states = np.arange(n_states)
    rows = np.concatenate((mdp.pair_states, mdp.successors, states, np.full(n_states, mdp.initial_index)))
    columns = np.concatenate((np.arange(n_pairs), mdp.transition_pairs, n_pairs + states, n_pairs + states))
    entries = np.concatenate((np.ones(n_pairs), -mdp.probabilities, np.ones(n_states), -np.ones(n_states)))
    return csr_array((entries, (rows, columns)), shape=(n_states, n_pairs + n_states))


_SMALL: Final = 0.01
_TERMS: Final = 11
"""Below `_SMALL` the series up to this power is exact to double precision."""


def divergence(probabilities: FloatArray, others: FloatArray) -> float:
    """Returns KL(p ‖ q) of two distributions on the same outcomes; infinite if q misses an outcome of p.

    The sum of p ln(p/q) − p + q has no negative terms, so nothing cancels where p and q are close.
    """
    if np.any((probabilities > 0) & (others <= 0)):
        return math.inf
    seen = probabilities > 0
    ratios = others[seen] / probabilities[seen]
    return float(np.sum(probabilities[seen] * _above_logarithm(ratios - 1.0)) + np.sum(others[~seen]))


def _above_logarithm(excess: FloatArray) -> FloatArray:
    """Returns the difference x − ln(1 + x); by its series near zero, where the difference would cancel."""
    small = np.abs(excess) < _SMALL
    near = np.where(small, excess, 0.0)
    series = sum((-1) ** power * near**power / power for power in range(2, _TERMS))
    return np.where(small, series, excess - np.log1p(excess))


def needed_information(delta: float) -> float:
    """Returns kl(δ, 1 − δ) in nats: the information that an algorithm with error probability δ needs per alternative.

    For δ of 1/2 or more it is 0: a guess is right often enough.
    """
    if delta >= 0.5:
        return 0.0
    return (1 - 2 * delta) * math.log((1 - delta) / delta)
