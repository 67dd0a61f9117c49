"""Independent answers: a linear programme, dense linear algebra, a model checker; nothing of the library's solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import oracle
from axplore.mdp import TabularMdp
from axplore.types import FloatArray, IntArray


def dense_rows(mdp: TabularMdp) -> FloatArray:
    """The transition probabilities of each pair, [P, S]."""
    rows = np.zeros((mdp.n_pairs, mdp.n_states))
    rows[mdp.transition_pairs, mdp.successors] = mdp.probabilities
    return rows


def operator(
    mdp: TabularMdp,
    goal: int,
    values: FloatArray,
    costs: FloatArray | None = None,
    reset_costs: FloatArray | None = None,
) -> tuple[FloatArray, list[list[tuple[float, int]]]]:
    """Lu, and of each state what every choice costs: (cost, pair), RESET being pair -1."""
    pair_costs = np.ones(mdp.n_pairs) if costs is None else costs
    resets = np.ones(mdp.n_states) if reset_costs is None else reset_costs
    pair_values = pair_costs + dense_rows(mdp) @ values
    choices = [
        [(float(resets[state] + values[mdp.initial_index]), -1)]
        + [(float(pair_values[pair]), pair) for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1])]
        for state in range(mdp.n_states)
    ]
    best = np.array([min(cost for cost, _ in options) for options in choices])
    best[goal] = 0.0
    return best, choices


def optimal_values(
    mdp: TabularMdp, goal: int, costs: FloatArray | None = None, reset_costs: FloatArray | None = None
) -> FloatArray:
    """V* by a linear programme, [S]: the largest v below every backup; the goal must be within reach."""
    from scipy.optimize import linprog

    n = mdp.n_states
    resets = -np.eye(n)
    resets[:, mdp.initial_index] += 1
    pairs = dense_rows(mdp)
    pairs[np.arange(mdp.n_pairs), mdp.pair_states] -= 1
    matrix = -np.concatenate((pairs, resets))
    limits = np.concatenate(
        (
            np.ones(mdp.n_pairs) if costs is None else costs,
            np.ones(n) if reset_costs is None else reset_costs,
        )
    )
    applies = np.concatenate((mdp.pair_states, np.arange(n))) != goal
    bounds = [(0, 0) if state == goal else (0, None) for state in range(n)]
    answer = linprog(
        -np.ones(n),
        matrix[applies],
        limits[applies],
        bounds=bounds,
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return np.asarray(answer.x, dtype=np.float64)


def policy_values(
    mdp: TabularMdp, policy: IntArray, goal: int, costs: FloatArray | None = None, reset_costs: FloatArray | None = None
) -> FloatArray:
    """V^π by dense linear algebra, [S]; the policy must be proper everywhere."""
    chain = np.zeros((mdp.n_states, mdp.n_states))
    chain[:, mdp.initial_index] = 1.0
    playing = policy >= 0
    chain[playing] = dense_rows(mdp)[policy[playing]]
    paid = np.ones(mdp.n_states) if reset_costs is None else np.array(reset_costs)
    paid[playing] = 1.0 if costs is None else costs[policy[playing]]
    chain[goal] = 0.0
    paid[goal] = 0.0
    return np.asarray(np.linalg.solve(np.eye(mdp.n_states) - chain, paid), dtype=np.float64)


def storm_values(mdp: TabularMdp, goal: int) -> FloatArray:
    """V* by Storm, to 1e-9 relatively and soundly, [S]; RESET is a further choice of each state."""
    import stormpy

    builder = stormpy.datastructures.SparseMatrixBuilder[float](
        rows=0, columns=0, entries=0, force_dimensions=False, has_custom_row_grouping=True, row_groups=0
    )
    line = 0
    for state in range(mdp.n_states):
        builder.new_row_group(line)
        for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1]):
            for entry in range(mdp.row_offsets[pair], mdp.row_offsets[pair + 1]):
                builder.add_next_value(line, int(mdp.successors[entry]), float(mdp.probabilities[entry]))
            line += 1
        builder.add_next_value(line, mdp.initial_index, 1.0)
        line += 1
    labelling = stormpy.models.StateLabeling(mdp.n_states)
    for label, state in (("goal", goal), ("init", mdp.initial_index)):
        labelling.add_label(label)
        labelling.add_label_to_state(label, state)
    steps = stormpy.models.SparseRewardModel[float](optional_state_reward_vector=[1.0] * mdp.n_states)
    model = stormpy.models.SparseMdp[float](
        stormpy.models.SparseModelComponents[float](
            transition_matrix=builder.build(), state_labeling=labelling, reward_models={"steps": steps}
        )
    )
    environment = stormpy.environments.sound()
    environment.solver().min_max().precision = stormpy.Rational("1/1000000000")
    formula = stormpy.parse_properties('R{"steps"}min=? [F "goal"]')[0]
    result = stormpy.model_checking(model, formula, environment=environment)
    return np.array([result.get_value(state) for state in range(mdp.n_states)])


@st.composite
def models_with_goals(draw: st.DrawFn, max_states: int = 5) -> tuple[TabularMdp, int]:
    """A small model, and a goal that its initial state can reach."""
    mdp = draw(oracle.tiny_models(max_states=max_states))
    reach = np.linalg.matrix_power(np.eye(mdp.n_states) + _adjacency(mdp), mdp.n_states)[mdp.initial_index] > 0
    return mdp, int(draw(st.sampled_from(np.flatnonzero(reach).tolist())))


def _adjacency(mdp: TabularMdp) -> FloatArray:
    adjacency = np.zeros((mdp.n_states, mdp.n_states))
    adjacency[mdp.pair_states[mdp.transition_pairs], mdp.successors] = 1.0
    return adjacency


@st.composite
def costs_for(draw: st.DrawFn, n: int) -> FloatArray:
    """Costs from 0.1 to 1, [n]."""
    return np.array(draw(st.lists(st.integers(1, 10), min_size=n, max_size=n))) / 10


def mixed_rows(seed: int, n_states: int, longest: int) -> TabularMdp:
    """A random model whose rows have from one to `longest` successors, some states terminal."""
    generator = np.random.default_rng(seed)
    rows: dict[int, dict[Any, dict[int, float]]] = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(int(generator.integers(0, 4)) if state else 3):
            successors = generator.choice(n_states, size=int(generator.integers(1, longest + 1)), replace=False)
            weights = generator.dirichlet(np.ones(len(successors)))
            rows[state][action] = dict(zip(successors.tolist(), weights.tolist(), strict=True))
    return TabularMdp.from_rows(rows, 0)
