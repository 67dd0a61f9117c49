"""Random models of several kinds, each with the radius at which it is explored, on which a guarantee must hold.

A kind is a function of a generator. Models are small, so that thousands can be explored and compared with the truth,
and each kind tests another part of the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from axplore.mdp import TabularMdp
from axplore.truth import controllable_states
from axplore.types import FloatArray, IntArray

Rows: TypeAlias = dict[int, dict[int, dict[int, float]]]
"""The probability of each successor, by state and action."""

LARGEST_RADIUS: Final = 4.5


@dataclass(frozen=True, eq=False)
class CoverageCase:
    """A model to explore.

    Attributes:
        mdp: the model.
        radius: L.
    """

    mdp: TabularMdp
    radius: float


def sparse(generator: np.random.Generator) -> CoverageCase:
    """3 to 11 states, one to three actions, one to three successors."""
    return CoverageCase(_model(_sparse_rows(generator)), _radius(generator))


def wide(generator: np.random.Generator) -> CoverageCase:
    """Every action may lead to most of the states."""
    n_states = int(generator.integers(4, 9))
    rows: Rows = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(int(generator.integers(1, 3))):
            width = int(generator.integers(n_states // 2 + 1, n_states + 1))
            rows[state][action] = _row(generator, n_states, width, concentration=0.5)
    return CoverageCase(_model(rows), _radius(generator))


def near_boundary(generator: np.random.Generator) -> CoverageCase:
    """The radius is within a thousandth to a tenth of one at which some state becomes controllable."""
    while True:
        mdp = _model(_sparse_rows(generator))
        radii = controllable_states(mdp, LARGEST_RADIUS).admission_radii
        within = sorted(radius for radius in radii.values() if radius > 1.1)
        if within:
            gap = float(10 ** generator.uniform(-3, -1))
            radius = within[int(generator.integers(len(within)))] + gap * generator.choice([-1, 1])
            return CoverageCase(mdp, float(max(radius, 1.0)))


def on_boundary(generator: np.random.Generator) -> CoverageCase:
    """A state is entered with probability 1/L exactly, so that its value is the radius: it belongs to the answer."""
    radius = int(generator.integers(2, 5))
    n_states = int(generator.integers(3, 8))
    rows = _sparse_rows(generator, n_states)
    stays = {0: 1 - 1 / radius, 1: 1 / radius}
    others = generator.integers(2, n_states, size=radius - 1)
    spread = {1: 1 / radius}
    for other in others.tolist():
        spread[other] = spread.get(other, 0.0) + 1 / radius
    rows[0] = {0: stays, 1: spread, 2: _row(generator, n_states, 2)}
    for state in range(2, n_states):  # no other pair enters it more often
        rows[state] = {action: _without(row, 1) for action, row in rows[state].items()}
    rows[0][2] = _without(rows[0][2], 1)
    return CoverageCase(_model(rows), float(radius))


def on_far_boundary(generator: np.random.Generator) -> CoverageCase:
    """As `on_boundary` with ε = 1/2 less of a radius: the value is L + ε exactly, and either answer is right."""
    on = on_boundary(generator)
    return CoverageCase(on.mdp, on.radius - 0.5)


def self_loops(generator: np.random.Generator) -> CoverageCase:
    """Many actions stay where they are, more often than not."""
    rows = _sparse_rows(generator)
    for state, options in rows.items():
        for action, row in options.items():
            if generator.random() < 0.6:
                stay = float(generator.uniform(0.3, 0.8))
                options[action] = {successor: (1 - stay) * probability for successor, probability in row.items()}
                options[action][state] = options[action].get(state, 0.0) + stay
    return CoverageCase(_model(rows), _radius(generator))


def ties(generator: np.random.Generator) -> CoverageCase:
    """Several actions of a state are equally good, and routes of the same length meet."""
    n_states = int(generator.integers(4, 10))
    rows: Rows = {}
    for state in range(n_states):
        row = _even(generator, n_states)
        twin = _even(generator, n_states) if generator.random() < 0.5 else dict(row)
        rows[state] = {0: row, 1: dict(row), 2: twin}
    return CoverageCase(_model(rows), float(generator.choice([2.0, 2.5, 3.0, 4.0])))


def terminal_states(generator: np.random.Generator) -> CoverageCase:
    """About half of the states only reset; in one model of ten the initial one does."""
    rows = _sparse_rows(generator)
    for state in rows:
        if generator.random() < (0.5 if state else 0.1):
            rows[state] = {}
    return CoverageCase(_model(rows), _radius(generator))


def deterministic(generator: np.random.Generator) -> CoverageCase:
    """Every action leads to one state."""
    n_states = int(generator.integers(3, 16))
    n_actions = int(generator.integers(1, 4))
    rows = {
        state: {action: {int(generator.integers(n_states)): 1.0} for action in range(n_actions)}
        for state in range(n_states)
    }
    return CoverageCase(_model(rows), _radius(generator))


def uneven_actions(generator: np.random.Generator) -> CoverageCase:
    """States have one to six actions, each another number."""
    n_states = int(generator.integers(3, 8))
    rows: Rows = {}
    for state in range(n_states):
        n_actions = int(generator.integers(1, 7))
        rows[state] = {action: _row(generator, n_states, int(generator.integers(1, 3))) for action in range(n_actions)}
    return CoverageCase(_model(rows), _radius(generator))


def rare_successors(generator: np.random.Generator) -> CoverageCase:
    """Actions that seem certain, and in one draw of 20 to 500 lead elsewhere: unseen mass, and late discoveries."""
    n_states = int(generator.integers(4, 10))
    rows: Rows = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(int(generator.integers(1, 3))):
            usual, rare = generator.choice(n_states, size=2, replace=False).tolist()
            chance = float(np.exp(generator.uniform(np.log(1 / 500), np.log(1 / 20))))
            rows[state][action] = {usual: 1 - chance, rare: chance}
    return CoverageCase(_model(rows), _radius(generator))


KINDS: Final[Mapping[str, Callable[[np.random.Generator], CoverageCase]]] = MappingProxyType(
    {
        "sparse": sparse,
        "wide": wide,
        "near-boundary": near_boundary,
        "on-boundary": on_boundary,
        "self-loops": self_loops,
        "ties": ties,
        "terminal": terminal_states,
        "deterministic": deterministic,
        "uneven": uneven_actions,
        "rare": rare_successors,
        "on-far-boundary": on_far_boundary,
    }
)
"""The kinds by name."""


def case(kind: str, seed: int) -> CoverageCase:
    """Returns the model of a kind with this seed."""
    stream = np.random.SeedSequence(seed, spawn_key=(list(KINDS).index(kind),))
    return KINDS[kind](np.random.default_rng(stream))


def _model(rows: Rows) -> TabularMdp:
    return TabularMdp.from_rows(rows, initial_state=0)


def _radius(generator: np.random.Generator) -> float:
    return float(generator.uniform(1.5, LARGEST_RADIUS))


def _sparse_rows(generator: np.random.Generator, n_states: int | None = None) -> Rows:
    n = int(generator.integers(3, 12)) if n_states is None else n_states
    n_actions = int(generator.integers(1, 4))
    return {
        state: {action: _row(generator, n, int(generator.integers(1, 4))) for action in range(n_actions)}
        for state in range(n)
    }


def _row(generator: np.random.Generator, n_states: int, width: int, concentration: float = 1.0) -> dict[int, float]:
    """Returns a row with `width` successors and random probabilities of at least 1e-5."""
    successors: IntArray = generator.choice(n_states, size=min(width, n_states), replace=False)
    weights: FloatArray = generator.dirichlet(np.full(len(successors), concentration))
    weights = np.maximum(weights, 1e-5)
    return dict(zip(successors.tolist(), (weights / weights.sum()).tolist(), strict=True))


def _even(generator: np.random.Generator, n_states: int) -> dict[int, float]:
    """Returns a row with one or two equally likely successors."""
    successors = generator.choice(n_states, size=int(generator.integers(1, 3)), replace=False).tolist()
    return {successor: 1 / len(successors) for successor in successors}


def _without(row: dict[int, float], left_out: int) -> dict[int, float]:
    """Returns the row with the probability of one state moved to the initial one."""
    kept = {successor: probability for successor, probability in row.items() if successor != left_out}
    kept[0] = kept.get(0, 0.0) + row.get(left_out, 0.0)
    return {successor: probability for successor, probability in kept.items() if probability > 0}
