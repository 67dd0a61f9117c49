"""How often exploring notices that labels hide states, and how often it says so of labels that hide nothing.

Each system is random. In an aliased one, two or three hidden states share a label with others. A *false promise* is an
atlas that is complete and has a bound that is false: the policy to some state takes longer than its upper bound, or
less than the lower bound of every policy. What counts is the part of them that come with a finding. Tests and the
doctor do not change what is explored, so a system is first explored without them, and explored with them only if it
gives a false promise. Systems without aliasing are always explored with them; no finding is right there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

import axplore
from axplore import Atlas
from axplore.statistics.summaries import proportion_interval
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document
from axplore_studies.systems.aliased import AliasedModel, random_model

RADIUS: Final = 4.0
EPSILON: Final = 1.0
MAX_STEPS: Final = 100_000


def trials(systems: int = 2120, healthy: int = 300) -> list[Trial]:
    """Returns the systems to explore.

    Args:
        systems: the number of systems whose labels hide states; of ten, about one gives a false promise.
        healthy: the number of systems whose labels hide nothing.
    """
    return [
        Trial({"aliased": aliased, "number": number}, partial(_explored, number, aliased))
        for aliased, times in ((True, systems), (False, healthy))
        for number in range(times)
    ]


def true_steps(model: AliasedModel, policy: Any, goal: int) -> float:
    """Returns the expected steps of a policy of labels on the hidden states, by a linear solve."""
    hidden = [state for state, label in enumerate(model.labels) if label != goal]
    chain = model.chain(policy)
    chain[[state for state, label in enumerate(model.labels) if label == goal]] = 0.0
    leads = np.linalg.matrix_power(np.eye(len(chain)) + (chain > 0), len(chain)) > 0
    met = [state for state in hidden if leads[0, state]]
    if not all(leads[state].any(where=np.array(model.labels) == goal) for state in met):
        return math.inf
    return float(np.linalg.solve(np.eye(len(met)) - chain[np.ix_(met, met)], np.ones(len(met)))[0])


def false_bounds(model: AliasedModel, atlas: Atlas) -> list[float]:
    """Returns by which factor each bound of an atlas that is false is missed."""
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
    """Returns, for each state that episodes prove to be within reach, whether that is true."""
    proofs = [proof for state in atlas.states[1:] if (proof := atlas.by_episodes(state)) is not None]
    return [
        model.restarted_steps(partial(proof.policy, step=0), int(str(proof.state)), proof.horizon)
        <= proof.within * (1 + 1e-9)
        for proof in proofs
    ]


def _explored_once(model: AliasedModel, number: int, *, doctor: bool) -> Atlas:
    world = SteppedWorld(model.system(number), number)
    world.borrow_system()  # as the doctor does, so that exploring begins with a RESET either way
    return axplore.explore(world, RADIUS, EPSILON, seed=number, max_steps=MAX_STEPS, doctor=doctor)


def _explored(number: int, aliased: bool) -> Record:
    rng = np.random.default_rng([17, number, aliased])
    n_states = int(rng.integers(4, 8))
    n_labels = max(3, n_states - int(rng.integers(1, 4))) if aliased else n_states
    model = random_model(rng, n_states, n_labels, successors=2 + number % 2, evenness=0.25)
    began = time.process_time()
    atlas = _explored_once(model, number, doctor=not aliased)
    missed = false_bounds(model, atlas)
    if aliased and atlas.complete and missed:
        alone, atlas = atlas, _explored_once(model, number, doctor=True)
        assert (alone.states, alone.steps, alone.lower.tolist()) == (atlas.states, atlas.steps, atlas.lower.tolist())
    return {
        "complete": atlas.complete,
        "false": len(missed),
        "factor": factor if math.isfinite(factor := max(missed, default=1.0)) else None,
        "issues": [finding.issue.name for finding in atlas.findings if finding.is_doubt],
        "seen": [finding.seen for finding in atlas.findings if finding.is_doubt],
        "by_episodes": by_episodes(model, atlas),
        "verdict": atlas.verdict.kind.name,
        "steps": atlas.steps,
        "seconds": time.process_time() - began,
    }


def _interval(times: int, among: int) -> list[float] | None:
    """Returns the 95 % interval of a part; None if there is nothing to take it of."""
    return [round(end, 4) for end in proportion_interval(times, among)] if among else None


def _is_false_promise(run: Record) -> bool:
    return bool(run["complete"] and run["false"])


def _factors(runs: Iterable[Record]) -> list[float | None]:
    """Returns by which factor a bound was missed, in order; None for a policy that may never arrive."""
    missed = sorted(math.inf if run["factor"] is None else run["factor"] for run in runs)
    return [round(factor, 4) if math.isfinite(factor) else None for factor in missed]


def summary(records: Sequence[Record]) -> Document:
    """Returns how many false promises were noticed, and how many alarms were false."""
    aliased = [run for run in records if run["aliased"]]
    healthy = [run for run in records if not run["aliased"]]
    false = [run for run in aliased if _is_false_promise(run)]
    noticed = [run for run in false if run["issues"]]
    along = [run for run in false if any("what came before (" in seen for seen in run["seen"])]
    in_hindsight = [run for run in false if "HISTORY_MATTERS" in run["issues"]]
    alarms = [run for run in healthy if run["issues"]]
    content = {
        "aliased_systems": len(aliased),
        "false_promises": len(false),
        "noticed": len(noticed),
        "noticed_interval": _interval(len(noticed), len(false)),
        "noticed_by_the_doctor_before": sum(
            any(issue != "HISTORY_MATTERS" for issue in run["issues"]) for run in false
        ),
        "noticed_by_the_test_that_runs_along": len(along),
        "noticed_by_replays_alone": len(in_hindsight) - len(along),
        "systems_missed": [run["number"] for run in false if not run["issues"]],
        "factors_of_those_missed": _factors(run for run in false if not run["issues"]),
        "factors_missed_but_for_the_doctor": _factors(run for run in false if run not in in_hindsight),
        "states_proven_by_episodes": sum(len(run["by_episodes"]) for run in aliased),
        "of_them_falsely": sum(run["by_episodes"].count(False) for run in aliased),
        "healthy_systems": len(healthy),
        "false_alarms": len(alarms),
        "false_alarm_interval": _interval(len(alarms), len(healthy)),
        "median_seconds": round(float(np.median([run["seconds"] for run in aliased])), 3),
        "median_steps": float(np.median([run["steps"] for run in aliased])),
    }
    return Document(STUDY.name, content)


STUDY: Final = Study(
    "hidden",
    "how often false promises about labels that hide states are noticed",
    trials,
    summary,
    counted="systems whose labels hide states",
)
