"""`plan`, `export` and `forecast` for people and scripts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from axplore.atlas import Atlas
from axplore.atlas.plans import Plan, read_costs
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.cli.console import print_json, print_lines, print_table
from axplore.labels import encode_label, named, text_of
from axplore.types import RESET

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 31_557_600
SHOWN_STEPS: Final = 1e6
"""From here on, steps are shown as powers of ten."""


def plan_on_console(
    folder: Path, goals: list[str], cost_file: Path | None, reset_cost: float | None, *, as_json: bool
) -> None:
    """Plans from a run for some goals, all of its states when none are given, and prints what to play."""
    atlas = Atlas.load(folder)
    costs, read_reset_cost = (None, 1.0) if cost_file is None else read_costs(atlas, cost_file)
    wanted = [named(atlas.states, goal, "state of the atlas") for goal in goals] or None
    plans = atlas.plans(wanted, costs, read_reset_cost if reset_cost is None else reset_cost)
    if as_json:
        print_json({"run": str(folder), "plans": [_plan_as_json(atlas, plan) for plan in plans.values()]})
        return
    for plan in plans.values():
        rows = [(text_of(state), text_of(plan.policy(state))) for state in atlas.states if state != plan.goal]
        print_table(f"To {text_of(plan.goal)}: expected cost about {plan.estimate:.4g}", ("state", "action"), rows)
        if plan.proven:
            print_lines([f"The best cost lies between {rounded_down(plan.lower)} and {rounded_up(plan.upper)}."])
        print_lines([plan.guarantee])


def export_on_console(folder: Path, format_name: str, out: Path) -> None:
    """Writes a run in a format."""
    from axplore.export import export

    export(Atlas.load(folder), format_name, out)
    print_lines([f"Written to {out}."])


def forecast_on_console(world: str, *, as_json: bool, **settings: Any) -> None:
    """Prints what each explorer would take."""
    from axplore.forecast import forecast

    found = forecast(world, **settings)
    if as_json:
        estimates = [
            {
                "explorer": estimate.explorer,
                "steps": _finite(estimate.steps),
                "seconds": _finite(estimate.seconds),
                "note": estimate.note,
            }
            for estimate in found.estimates
        ]
        print_json(
            {
                "world": world,
                "probe_steps": found.probe_steps,
                "states": found.states,
                "complete": found.complete,
                "steps_per_second": found.steps_per_second,
                "estimates": estimates,
            }
        )
        return
    rows = [
        (estimate.explorer, steps_text(estimate.steps), time_text(estimate.seconds), estimate.note)
        for estimate in found.estimates
    ]
    title = f"{world}: estimates from a probe of {found.probe_steps:,} steps that found {found.states} states"
    print_table(title, ("explorer", "steps", "time", "what it rests on"), rows)
    if not found.complete:
        print_lines(["The probe did not come to its end: there may be more states. Give it more steps to know better."])


def steps_text(steps: float) -> str:
    """A number of steps for reading."""
    if not math.isfinite(steps):
        return "unknown"
    return f"{steps:,.0f}" if steps < SHOWN_STEPS else f"{steps:.1e}"


def time_text(seconds: float) -> str:
    """A time for reading."""
    if not math.isfinite(seconds):
        return "unknown"
    units = ((YEAR, "years"), (DAY, "days"), (HOUR, "h"), (MINUTE, "min"))
    for length, name in units:
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {name}"
    return f"{seconds:.1f} s"


def _plan_as_json(atlas: Atlas, plan: Plan) -> dict[str, Any]:
    actions = [(state, plan.policy(state)) for state in atlas.states if state != plan.goal]
    return {
        "goal": encode_label(plan.goal),
        "estimate": _finite(plan.estimate),
        "lower": plan.lower,
        "upper": _finite(plan.upper),
        "regret": _finite(plan.regret),
        "proven": plan.proven,
        "min_cost": plan.min_cost,
        "guarantee": plan.guarantee,
        "policy": [
            {"state": encode_label(state), "reset": action is RESET}
            | ({} if action is RESET else {"action": encode_label(action)})
            for state, action in actions
        ],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
