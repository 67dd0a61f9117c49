"""The paper's tables: ours beside the published numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from axplore.statistics.summaries import MeanEstimate, estimate
from axplore.truth import ControllableStates, check_optimal, controllable_states
from axplore_studies.outputs import Table
from axplore_studies.paper import experiments as published
from axplore_studies.paper.experiments import Experiment
from axplore_studies.paper.runs import PaperRun


def sample_complexity_table(
    name: str, title: str, groups: Sequence[tuple[Experiment, Sequence[PaperRun]]], controllable: frozenset[str]
) -> Table:
    """Returns the total steps, ours and published.

    Args:
        name: the name of the files.
        title: the title of the table.
        groups: each experiment with its runs.
        controllable: S_L→, to count the runs that found all of it.
    """
    rows, lines = [], []
    for experiment, records in groups:
        ours = estimate([record.steps for record in records])
        theirs = published.sample_complexity(experiment.domain, experiment.algorithm, experiment.epsilon)
        found_all = sum(controllable <= set(record.states) for record in records)
        what = {
            "epsilon": experiment.epsilon,
            "algorithm": experiment.algorithm,
            "reading": experiment.reading or "default",
        }
        rows.append(
            {
                **what,
                "runs": len(records),
                "mean": round(ours.mean, 1),
                "half_width": _rounded(ours.half_width, 1),
                "published_mean": theirs.mean,
                "published_half_width": theirs.half_width,
                "ratio": round(ours.mean / theirs.mean, 4),
                "runs_that_found_all": found_all,
            }
        )
        lines.append(
            {
                **what,
                "ours": f"{ours.mean:,.0f} ± {ours.half_width:,.0f}",
                "paper": f"{theirs.mean:,.0f} ± {theirs.half_width:,.0f}",
                "ratio": f"{ours.mean / theirs.mean:.3f}",
                "found all": f"{found_all} of {len(records)}",
            }
        )
    return Table(name, title, rows, lines, published.source())


def hitting_steps_table(
    name: str, title: str, groups: Sequence[tuple[Experiment, Sequence[PaperRun]]], states: Sequence[str]
) -> Table:
    """Returns the expected steps of the policies to each state, ours and published, over runs that found the state."""
    rows, lines = [], []
    for experiment, records in groups:
        what = {
            "epsilon": experiment.epsilon,
            "algorithm": experiment.algorithm,
            "reading": experiment.reading or "default",
        }
        line: dict[str, Any] = dict(what)
        theirs = published.hitting_steps(experiment.domain, experiment.algorithm, experiment.epsilon)
        for state, printed in zip(states, theirs, strict=True):
            found = [record.hitting_steps[record.states.index(state)] for record in records if state in record.states]
            ours = estimate(found) if found else MeanEstimate(math.nan, math.nan)
            rows.append(
                {
                    **what,
                    "state": state,
                    "runs": len(found),
                    "mean": _rounded(ours.mean, 4),
                    "half_width": _rounded(ours.half_width, 4),
                    "published_mean": printed.mean,
                    "published_half_width": printed.half_width,
                    "ratio": _rounded(ours.mean / printed.mean, 4) if printed.mean else None,
                }
            )
            line[state] = (
                f"{ours.mean:.2f}" if round(ours.mean, 2) == printed.mean else f"{ours.mean:.2f} ({printed.mean:g})"
            )
        lines.append(line)
    return Table(name, title, rows, lines, published.source())


def promise_table(
    name: str, title: str, experiment: Experiment, records: Sequence[PaperRun], truth: ControllableStates
) -> Table:
    """Returns whether each run kept AX*: S_L→ found, and every policy within ε of the optimum on S_L→."""
    rows, lines = [], []
    for record in records:
        steps = dict(zip(record.states, record.hitting_steps, strict=True))
        kept = check_optimal(truth, steps=steps, epsilon=experiment.epsilon).holds
        for state, found_at in zip(record.states, record.found_at, strict=True):
            row = {
                "seed": record.seed,
                "state": state,
                "found_at": found_at,
                "policy_steps": round(steps[state], 9),
                "optimal_steps": round(truth.steps[state], 9) if state in truth.steps else None,
                "run_keeps_promise": kept,
            }
            rows.append({**row, "epsilon": experiment.epsilon, "steps": record.steps, "stop": record.stop})
            lines.append({**row, "found_at": f"{found_at:,}", "steps": f"{record.steps:,}"})
    return Table(name, title, rows, lines, published.source())


def certified_table(name: str, title: str, groups: Sequence[tuple[Experiment, Sequence[PaperRun]]]) -> Table:
    """Returns the steps, processor time and correctness of each explorer on each domain."""
    rows, lines = [], []
    for experiment, records in groups:
        steps = estimate([record.steps for record in records])
        seconds = estimate([record.seconds or math.nan for record in records])
        kept = sum(_kept(experiment, records))
        what = {
            "domain": experiment.place,
            "radius": experiment.radius,
            "epsilon": experiment.epsilon,
            "explorer": experiment.algorithm,
        }
        rows.append(
            {
                **what,
                "runs": len(records),
                "mean": round(steps.mean, 1),
                "half_width": _rounded(steps.half_width, 1),
                "most": max(record.steps for record in records),
                "seconds": _rounded(seconds.mean, 2),
                "runs_that_keep_the_promise": kept,
            }
        )
        spread = f" ± {steps.half_width:,.0f}" if math.isfinite(steps.half_width) else ""
        lines.append(
            {
                **what,
                "steps": f"{steps.mean:,.0f}{spread}",
                "seconds": f"{seconds.mean:.1f}",
                "correct": f"{kept} of {len(records)}",
            }
        )
    return Table(name, title, rows, lines, published.source())


def _kept(experiment: Experiment, records: Sequence[PaperRun]) -> list[bool]:
    """Returns whether each run found S_L→, nothing beyond S_{L+ε}→, and policies within ε of the optimum on S_L→."""
    mdp = experiment.mdp()
    labels = {str(state): state for state in mdp.states}
    truth = controllable_states(mdp, experiment.radius)
    wider = set(controllable_states(mdp, experiment.radius + min(experiment.epsilon, 1.0)).states)
    kept = []
    for record in records:
        steps = {labels[state]: value for state, value in zip(record.states, record.hitting_steps, strict=True)}
        optimal = check_optimal(truth, steps=steps, epsilon=experiment.epsilon).holds
        kept.append(optimal and set(steps) <= wider)
    return kept


def _rounded(value: float, digits: int) -> float | None:
    """Returns the rounded number, or None for infinity and NaN, which JSON does not have."""
    return round(value, digits) if math.isfinite(value) else None
