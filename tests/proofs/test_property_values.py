"""Bounds of properties of tiny random models, each against the exact value by Storm, and each verified."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axplore import TabularMdp
from axplore.assumptions.applied import region_given
from axplore.certificate import verify
from axplore.certificate.promise import PropertyBounds
from axplore.proofs.bounds import interval_model
from axplore.proofs.certificates import question_certificate
from axplore.proofs.costs import CostQuestion
from axplore.proofs.property_claims import asked_of, chance_claim, cost_claim, named_states
from axplore.properties import parse_property
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.records.properties import PropertyClaim
from axplore.target import Target
from axplore_studies.atlas_truth import true_value
from made_counts import made_counts

MODELS = range(200)

CHANCES = (
    'Pmax=? [ !"bad" U "goal" ]',
    'Pmin=? [ !"bad" U "goal" ]',
    'Pmax=? [ !"bad" U<=5 "goal" ]',
    'Pmin=? [ !"bad" U<=4 "goal" ]',
)
COSTS = 'Rmin=? [ !"bad" U "goal" ]'

DELTA = 1e-6
"""So small that no bound is wrong by chance."""


def tiny_model(rng: np.random.Generator) -> tuple[dict[int, dict[str, dict[int, float]]], float]:
    """A model of three to six states with loops and ends, and the least probability in it."""
    n_states, least = int(rng.integers(3, 7)), 1.0
    rows: dict[int, dict[str, dict[int, float]]] = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(int(rng.integers(1, 4)) if state < n_states - 1 else 0):
            successors = rng.choice(n_states, size=int(rng.integers(1, 4)), replace=False)
            parts = np.round(rng.dirichlet(np.ones(len(successors))) * 0.7 + 0.3 / len(successors), 2)
            parts[-1] = 1.0 - parts[:-1].sum()
            rows[state][f"a{action}"] = dict(zip(successors.tolist(), parts.tolist(), strict=True))
            least = min(least, float(parts.min()))
    return rows, least


def drawn(rows: dict[int, dict[str, dict[int, float]]], rng: np.random.Generator, draws: int) -> Counts:
    """Draws of every pair."""
    entries = []
    for actions in rows.values():
        for row in actions.values():
            met = rng.choice(list(row), size=draws, p=list(row.values()))
            labels, first, times = np.unique(met, return_index=True, return_counts=True)
            order = np.argsort(first)
            entries.append([(int(labels[i]), int(times[i]), int(first[i]) + 1) for i in order])
    return made_counts(entries, [len(actions) for actions in rows.values()], labels=list(rows))


def storm_values(rows: Any, goal: set[int], bad: set[int], costs: Any, folder: Path) -> dict[str, float]:
    """The exact values; what is bad ends everything, so that a cost is infinite there."""
    stormpy = pytest.importorskip("stormpy")
    lines = ["@type: MDP", "@parameters", "", "@reward_models", "cost", "@nr_states", str(len(rows)), "@nr_choices"]
    body = []
    n_choices = 0
    for state, actions in rows.items():
        marks = [*(["init"] if state == 0 else []), *(["goal"] if state in goal else [])]
        marks += ["bad"] if state in bad else []
        body.append(f"state {state} [0] {' '.join(marks)}")
        ends = state in bad | goal or not actions
        for number, (action, row) in enumerate([("end", {state: 1.0})] if ends else actions.items()):
            body.append(f"\taction {number} [{0.0 if ends else costs[state, action]}]")
            body += [f"\t\t{successor} : {row[successor]}" for successor in sorted(row)]
            n_choices += 1
    path = folder / "model.drn"
    path.write_text("\n".join([*lines, str(n_choices), "@model", *body]) + "\n")
    model = stormpy.build_model_from_drn(str(path))
    values = {}
    for text in (*CHANCES, COSTS):
        asked = text.replace('!"bad" U', "F") if text == COSTS else text
        (formula,) = stormpy.parse_properties(asked)
        result = stormpy.model_checking(model, formula, environment=stormpy.environments.sound())
        values[text] = float(result.get_value(model.initial_states[0]))
    return values


def claims_of(
    counts: Counts, assumed: Assumed | None, goal: set[int], bad: set[int], costs: Any
) -> tuple[PropertyClaim, ...]:
    model = interval_model(counts, region_given(counts, DELTA, assumed), 1e6)
    labels = [counts.order[number] for number in model.numbers.tolist()]
    names: dict[str, Any] = {"goal": goal, "bad": bad}
    claims = []
    for text in CHANCES:
        prop = parse_property(text)
        asked = asked_of(model, labels, prop, names)
        claims.append(chance_claim(asked, asked.lower(), asked.upper(), prop, named_states(names, counts.order, text)))
    prop = parse_property(COSTS)
    priced = np.array([costs[counts.order[s], a] for s in counts.states for a in counts.actions[s]])
    bounds = CostQuestion(model, *prop.masks(labels, names), priced).bounds()
    claims.append(cost_claim(model, priced, bounds, prop, named_states(names, counts.order, COSTS)))
    return tuple(claims)


def test_every_bound_of_tiny_models_holds_the_value_that_storm_finds_and_is_verified(tmp_path: Path) -> None:
    widths: dict[str, list[float]] = {text: [] for text in (*CHANCES, COSTS)}
    for number in MODELS:
        rng = np.random.default_rng([11, number])
        rows, least = tiny_model(rng)
        others = rng.permutation(np.arange(1, len(rows))).tolist()
        goal, bad = set(others[:1]), set(others[1:2])
        costs = {(s, a): float(rng.integers(1, 5)) / 2 for s, actions in rows.items() for a in actions}
        counts = drawn(rows, rng, int(rng.choice([30, 3000])))
        assumed = Assumed({"min-probability": np.full(len(counts.visits), least)}) if number % 2 else None
        claims = claims_of(counts, assumed, goal, bad, costs)
        truth = storm_values(rows, goal, bad, costs, tmp_path)
        for claim in claims:
            bounds, true = PropertyBounds.of(claim), truth[claim.text]
            assert bounds.lower <= true + 1e-7, (number, claim.text, bounds.lower, true)
            assert bounds.upper >= true - 1e-7, (number, claim.text, bounds.upper, true)
            if claim.text != COSTS:
                names = {"goal": goal, "bad": bad}
                assert true == pytest.approx(true_value(TabularMdp.from_rows(rows, 0), bounds.prop, names), abs=1e-6)
            if number % 2 and math.isfinite(true):
                widths[claim.text].append((bounds.upper - bounds.lower) / max(true, 1.0))
        if number % 4 == 1:
            verification = verify(question_certificate(
                counts, Target(radius=1, epsilon=1, delta=DELTA), claims, assumed=assumed
            ))  # fmt: skip
            assert verification.holds, (number, str(verification))
    for text, found in widths.items():
        assert np.quantile(found, 0.25) < 0.2, (text, np.quantile(found, 0.25))  # half of them are drawn often
