"""Counts of a known model, made by hand: what planning with a confidence region is tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

import axplore
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.proofs.row_kernels import UNKNOWN_SHIFT
from axplore.records.counts import Counts
from axplore.statistics.confidence import ConfidenceRegion, confidence_region
from axplore.target import Target
from axplore.types import RESET_PAIR, FloatArray, IntArray
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.coverage_models import case
from made_counts import made_counts


def random_model(seed: int, n_states: int = 5, longest: int = 3) -> TabularMdp:
    """A random model from state 0 on, with one to three actions, and some terminal states behind the first three."""
    generator = np.random.default_rng(seed)
    rows: dict[int, dict[int, dict[int, float]]] = {}
    for state in range(n_states):
        n_actions = int(generator.integers(1, 4)) if state < 3 else int(generator.integers(0, 3))
        rows[state] = {}
        for action in range(n_actions):
            successors = generator.choice(n_states, size=int(generator.integers(1, longest + 1)), replace=False)
            weights = generator.dirichlet(np.ones(len(successors)))
            rows[state][action] = dict(zip(successors.tolist(), weights.tolist(), strict=True))
    return TabularMdp.from_rows(rows, 0)


def expected_counts(mdp: TabularMdp, known: Sequence[int], visits: float) -> Counts:
    """What about so many draws of every pair of the known states bring on average; at least two of each successor."""
    return _rows(mdp, known, np.ceil(visits * mdp.probabilities).astype(np.int64) + 1)


def drawn_counts(mdp: TabularMdp, known: Sequence[int], visits: int, seed: int) -> Counts:
    """So many draws of every pair of the known states."""
    generator = np.random.default_rng(seed)
    counts = np.zeros(mdp.n_transitions, dtype=np.int64)
    for pair in range(mdp.n_pairs):
        entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
        counts[entries] = generator.multinomial(visits, mdp.probabilities[entries])
    return _rows(mdp, known, counts)


def _rows(mdp: TabularMdp, known: Sequence[int], counts: IntArray) -> Counts:
    pairs = [pair for state in known for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1])]
    rows = [
        [entry for entry in range(mdp.row_offsets[pair], mdp.row_offsets[pair + 1]) if counts[entry]] for pair in pairs
    ]
    n_actions = [int(mdp.state_pairs[state + 1] - mdp.state_pairs[state]) for state in known]
    entries = [[(mdp.successors[entry], counts[entry], draw) for draw, entry in enumerate(row, 1)] for row in rows]
    return made_counts(entries, n_actions, states=known, labels=range(mdp.n_states))


def model_of(counts: Counts, delta: float = 0.1, limit: float = 100.0) -> IntervalModel:
    """Counts with their confidence region."""
    return interval_model(counts, confidence_region(counts, delta), limit)


def is_in_region(mdp: TabularMdp, counts: Counts, region: ConfidenceRegion) -> bool:
    """Whether the true rows are within their balls."""
    truth = true_rows(mdp, counts)
    for pair in range(len(counts.visits)):
        entries = slice(counts.row_offsets[pair], counts.row_offsets[pair + 1])
        shares, row = region.shares[entries], truth[pair, counts.successors[entries]]
        positive = shares > 0
        if shares[positive] @ np.log(shares[positive] / row[positive]) > region.slack[pair]:
            return False
    return True


def true_rows(mdp: TabularMdp, counts: Counts) -> FloatArray:
    """The transition probabilities of each pair of the known states, [P, S]."""
    rows = []
    for state in counts.states:
        for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1]):
            row = np.zeros(mdp.n_states)
            entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
            row[mdp.successors[entries]] = mdp.probabilities[entries]
            rows.append(row)
    return np.array(rows).reshape(-1, mdp.n_states)


def policy_on(mdp: TabularMdp, model: IntervalModel, policy: IntArray) -> IntArray:
    """A policy of the pairs of the known states as one of the model's own pairs, with -1 for RESET, [S]."""
    on_model = np.full(mdp.n_states, -1, dtype=np.int64)
    for place, pair in enumerate(policy):
        if pair != RESET_PAIR:
            state = model.numbers[place]
            on_model[state] = mdp.state_pairs[state] + pair - model.rows.state_pairs[place]
    return on_model


def made_up_model(rows: Sequence[Sequence[Mapping[int, float]]], slack: float) -> IntervalModel:
    """Known states 0, 1, ... with the shares of each of their pairs, by successor, and one slack for all."""
    pairs = [pair for options in rows for pair in options]
    entries = [[(successor, 1, draw) for draw, successor in enumerate(pair, 1)] for pair in pairs]
    counts = made_counts(entries, [len(options) for options in rows])
    shares = np.array([share for pair in pairs for share in pair.values()], dtype=np.float64)
    return interval_model(counts, ConfidenceRegion(shares, np.full(len(pairs), slack), ()), limit=100.0)


@cache
def nothing_known(model: IntervalModel) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """What `lower_residual` is told of policy, shifts and worth of pairs by a reader who trusts no solver."""
    unknown = np.full(model.n_pairs, UNKNOWN_SHIFT)
    worth, seen = np.full(model.n_pairs, -np.inf), np.zeros(len(model.rows.shares))
    return np.full(model.n_known, RESET_PAIR), unknown, worth, seen


def explored_model(name: str, steps: int = 4000) -> IntervalModel:
    """What is known of a world after some steps."""
    if name == "star":
        mdp, target = axplore.domain("star", arms=40, arm_length=1), Target(radius=2, epsilon=1, delta=0.1)
    else:
        made = case(name, 1)
        mdp, target = made.mdp, Target(radius=made.radius, epsilon=1, delta=0.1)
    explored = run(Certified(target=target), SimulatedWorld(mdp, 3), max_steps=steps)
    assert explored.evidence is not None
    return explored.evidence.model
