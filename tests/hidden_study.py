"""How often exploring notices that labels hide states, and how often it says so of labels that hide nothing.

    make hidden-study

Each system is random. In an aliased one, two or three hidden states share a label with others. A *false promise* is an
atlas that is complete and has a bound that is false: the policy to some state takes longer than its upper bound, or
less than the lower bound of every policy. What counts is the part of them that come with a finding. Tests and the
doctor do not change what is explored, so a system is first explored without them, and explored with them only if it
gives a false promise. Systems without aliasing are always explored with them; no finding is right there.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

import axplore
from aliased import AliasedModel, random_model
from axplore import Atlas
from axplore.worlds.stepped import SteppedWorld

RADIUS, EPSILON, MAX_STEPS = 4.0, 1.0, 100_000


def true_steps(model: AliasedModel, policy: Any, goal: int) -> float:
    """The expected steps of a policy of labels on the hidden states, by a linear solve."""
    hidden = [state for state, label in enumerate(model.labels) if label != goal]
    chain = model.chain(policy)
    chain[[state for state, label in enumerate(model.labels) if label == goal]] = 0.0
    leads = np.linalg.matrix_power(np.eye(len(chain)) + (chain > 0), len(chain)) > 0
    met = [state for state in hidden if leads[0, state]]
    if not all(leads[state].any(where=np.array(model.labels) == goal) for state in met):
        return math.inf
    return float(np.linalg.solve(np.eye(len(met)) - chain[np.ix_(met, met)], np.ones(len(met)))[0])


def false_bounds(model: AliasedModel, atlas: Atlas) -> list[float]:
    """By which factor each bound of an atlas that is false is missed."""
    missed = []
    for state in atlas.states[1:]:
        policy = atlas.policy(state)
        if policy.horizon is not None:
            continue
        bounds, steps = atlas.bounds(state), true_steps(model, policy, int(str(state)))
        if steps > bounds.upper * (1 + 1e-9):
            missed.append(steps / bounds.upper)
        elif steps < bounds.lower * (1 - 1e-9):
            missed.append(bounds.lower / steps)
    return missed


def by_episodes(model: AliasedModel, atlas: Atlas) -> list[bool]:
    """Of each state that episodes prove to be within reach, whatever labels hide, whether that is true."""
    proofs = [proof for state in atlas.states[1:] if (proof := atlas.by_episodes(state)) is not None]
    return [
        model.restarted_steps(partial(proof.policy, step=0), int(str(proof.state)), proof.horizon)
        <= proof.within * (1 + 1e-9)
        for proof in proofs
    ]


def explored_once(model: AliasedModel, number: int, *, doctor: bool) -> Atlas:
    world = SteppedWorld(model.system(number), number)
    world.lend()  # as the doctor does, so that exploring begins with a RESET either way
    return axplore.explore(world, RADIUS, EPSILON, seed=number, max_steps=MAX_STEPS, doctor=doctor)


def explored(number: int, aliased: bool) -> dict[str, Any]:
    logging.getLogger("axplore").setLevel(logging.ERROR)
    rng = np.random.default_rng([17, number, aliased])
    n_states = int(rng.integers(4, 8))
    n_labels = max(3, n_states - int(rng.integers(1, 4))) if aliased else n_states
    model = random_model(rng, n_states, n_labels, successors=2 + number % 2, evenness=0.25)
    began = time.process_time()
    atlas = explored_once(model, number, doctor=not aliased)
    missed = false_bounds(model, atlas)
    if aliased and atlas.complete and missed:
        alone, atlas = atlas, explored_once(model, number, doctor=True)
        assert (alone.states, alone.steps, alone.lower.tolist()) == (atlas.states, atlas.steps, atlas.lower.tolist())
    return {
        "number": number,
        "complete": atlas.complete,
        "false": len(missed),
        "factor": max(missed, default=1.0),
        "issues": [finding.issue for finding in atlas.findings if finding.is_doubt],
        "seen": [finding.seen for finding in atlas.findings if finding.is_doubt],
        "by_episodes": by_episodes(model, atlas),
        "verdict": atlas.verdict.kind.name,
        "steps": atlas.steps,
        "seconds": time.process_time() - began,
    }


def interval(times: int, among: int) -> list[float]:
    """Clopper and Pearson's, of 95 %."""
    low = float(beta.ppf(0.025, times, among - times + 1)) if times else 0.0
    high = float(beta.ppf(0.975, times + 1, among - times)) if times < among else 1.0
    return [round(low, 4), round(high, 4)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("false_promises", type=int, help="go on until there are this many false promises")
    parser.add_argument("healthy", type=int, help="the number of systems without aliasing")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    aliased: list[dict[str, Any]] = []
    healthy: list[dict[str, Any]] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        while sum(is_false_promise(run) for run in aliased) < arguments.false_promises:
            aliased += pool.map(partial(explored, aliased=True), range(len(aliased), len(aliased) + 40), chunksize=5)
            more = range(len(healthy), min(len(healthy) + 10, arguments.healthy))
            healthy += pool.map(partial(explored, aliased=False), more, chunksize=2)
            text = json.dumps(summary(aliased, healthy), indent=1)
            print(text, flush=True)
            if arguments.out:
                arguments.out.write_text(text + "\n", encoding="ascii")


def is_false_promise(run: dict[str, Any]) -> bool:
    return bool(run["complete"] and run["false"])


def factors(runs: Iterable[dict[str, Any]]) -> list[float | None]:
    """By which factor a bound was missed; None for a policy that may never arrive."""
    missed = sorted(run["factor"] for run in runs)
    return [round(factor, 4) if math.isfinite(factor) else None for factor in missed]


def summary(aliased: list[dict[str, Any]], healthy: list[dict[str, Any]]) -> dict[str, Any]:
    """What was found in all runs so far."""
    false = [run for run in aliased if is_false_promise(run)]
    noticed = [run for run in false if run["issues"]]
    along = [run for run in false if any("what came before (" in seen for seen in run["seen"])]
    in_hindsight = [run for run in false if "HISTORY_MATTERS" in run["issues"]]
    alarms = [run for run in healthy if run["issues"]]
    return {
        "aliased_systems": len(aliased),
        "false_promises": len(false),
        "noticed": len(noticed),
        "noticed_interval": interval(len(noticed), len(false)),
        "noticed_by_the_doctor_before": sum(
            any(issue != "HISTORY_MATTERS" for issue in run["issues"]) for run in false
        ),
        "noticed_by_the_test_that_runs_along": len(along),
        "noticed_by_replays_alone": len(in_hindsight) - len(along),
        "systems_missed": [run["number"] for run in false if not run["issues"]],
        "factors_of_those_missed": factors(run for run in false if not run["issues"]),
        "factors_missed_but_for_the_doctor": factors(run for run in false if run not in in_hindsight),
        "states_proven_by_episodes": sum(len(run["by_episodes"]) for run in aliased),
        "of_them_falsely": sum(run["by_episodes"].count(False) for run in aliased),
        "healthy_systems": len(healthy),
        "false_alarms": len(alarms),
        "false_alarm_interval": interval(len(alarms), len(healthy)),
        "median_seconds": round(float(np.median([run["seconds"] for run in aliased])), 3),
        "median_steps": float(np.median([run["steps"] for run in aliased])),
    }


if __name__ == "__main__":
    main()
