"""Commands about a world, before it is explored: `doctor`, `forecast`, `truth` with its lower bound, `worlds`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from axplore.cli.console import (
    CLAIM_FAILED,
    DONE,
    AllRows,
    AsJson,
    Assume,
    Delta,
    Epsilon,
    Key,
    Radius,
    Settings,
    World,
    app,
    parsed,
    print_json,
    print_lines,
    print_table,
)
from axplore.cli.study_commands import studies_required
from axplore.errors import InvalidSettingError
from axplore.labels import encode_label, finite, readable

if TYPE_CHECKING:
    from axplore.forecast import Forecast
    from axplore.truth import ControllableStates
    from axplore.worlds.diagnosis import Diagnosis
    from axplore_studies.lower_bounds.printing import PrintedLowerBound


UNITS: Final = ((31_557_600, "years"), (86_400, "days"), (3600, "h"), (60, "min"))
"""Units of time, in seconds, the longest first."""

SHOWN_STEPS: Final = 1e6
"""The number from which steps are shown as powers of ten."""


@app.command()
def doctor(
    world: World,
    max_steps: Annotated[int, typer.Option(help="Limit on the steps of the examination.")] = 20_000,
    seconds: Annotated[float, typer.Option(help="Limit on its seconds.")] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the actions that it plays, and of the noise.")] = 0,
    settings: Settings = None,
    key: Key = None,
    assume: Assume = None,
    as_json: AsJson = False,
) -> None:
    """Look for violations of the assumptions: a hidden time limit, a state that hides information, ...

    The probability of a false alarm is at most 0.001. With --assume, what you declare to know is tested too.

    \b
    Example:
      axplore doctor gym:FrozenLake-v1
      axplore doctor gym:FrozenLake-v1 --assume min-probability=0.33
    \b
    Exit codes:
      0  no violation was found
      1  a violation was found
      2  the world cannot be examined
    """  # noqa: D301
    diagnosis = _diagnosis(world, seed, parsed(settings, key), max_steps, seconds, assume)
    if as_json:
        print_json({"world": world, **diagnosis.as_json()})
    else:
        print_lines(str(diagnosis).splitlines())
    raise typer.Exit(DONE if diagnosis.healthy else CLAIM_FAILED)


@app.command()
def forecast(
    world: World,
    radius: Radius,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    probe_steps: Annotated[int, typer.Option(help="Limit on the steps of the probe.")] = 100_000,
    states_bound: Annotated[
        int | None,
        typer.Option(help="Upper bound on the number of states.", show_default="ten times those that the probe sees"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated world.")] = 0,
    settings: Settings = None,
    assume: Assume = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the steps and the time of each explorer from a short probe.

    With --assume, also what each of these assumptions would save.

    \b
    Example:
      axplore forecast confusing-chain --radius 4.5 --epsilon 0.1
      axplore forecast gym:FrozenLake-v1 --radius 8 --epsilon 1 --assume deterministic --assume min-probability=0.33
    """  # noqa: D301
    from axplore.forecast import forecast as forecast_world

    found = forecast_world(
        world,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        probe_steps=probe_steps,
        states_bound=states_bound,
        seed=seed,
        world_parameters=parsed(settings),
        assume=assume or (),
    )
    if as_json:
        print_json(_forecast_as_json(world, found))
        return
    rows = [
        (estimate.explorer, steps_text(estimate.steps), time_text(estimate.seconds), estimate.note)
        for estimate in found.estimates
    ]
    title = f"{world}: estimates from a probe of {found.probe_steps:,} steps that found {found.states} states"
    print_table(title, ("explorer", "steps", "time", "what it rests on"), rows)
    if not found.ended:
        print_lines(
            ["The probe did not finish, so there may be more states; a larger --probe-steps gives better estimates."]
        )


@app.command()
def truth(
    world: World,
    radius: Radius,
    settings: Settings = None,
    lower_bound: Annotated[
        bool,
        typer.Option(
            "--lower-bound",
            help="Also bound the expected steps of every algorithm from below; needs a clone of the repository. Ctrl-C "
            "ends the search, and what is proven by then is printed.",
        ),
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option(help="For the lower bound: steps by which a policy may miss its bound (ε).", show_default=False),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="For the lower bound: probability that the answer may be wrong (δ).", show_default="0.1"),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="[optimal|within-radius]", help="For the lower bound.", show_default="optimal"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Limit on the seconds of the search for a lower bound.", show_default="120")
    ] = None,
    all_rows: AllRows = False,
    as_json: AsJson = False,
) -> None:
    """Print the exact atlas of a known world: states, layers, steps.

    The built-in worlds are known, and Gymnasium's toy environments, such as gym:FrozenLake-v1.

    \b
    Example:
      axplore truth confusing-chain --radius 4.5 --epsilon 0.1 --delta 0.1 --lower-bound
    """  # noqa: D301
    from axplore.truth import controllable_states
    from axplore.worlds.catalogue import known_model

    search = _lower_bound_search(lower_bound, epsilon, delta, objective, seconds)
    answer = controllable_states(known_model(world, parsed(settings)), radius)
    found = None if search is None else search(answer)
    if as_json:
        bound = {} if found is None else {"lower_bound": found.as_json()}
        print_json(_truth_as_json(world, answer) | bound)
        return
    _print_truth(world, answer, all_rows=all_rows)
    if found is not None:
        found.print()


@app.command()
def words() -> None:
    """Explain the headings and words of tables and pages."""
    from axplore.report.text import STATUS_WORDS, WORDS

    print_table("Words", ("word", "meaning"), [*STATUS_WORDS, *WORDS], all_rows=True)


@app.command()
def worlds(as_json: AsJson = False) -> None:
    """List the worlds that can be explored, with their parameters."""
    from axplore.domains import DOMAINS
    from axplore.worlds.catalogue import MODULE_FORM, all_forms

    parameters = {
        name: {key: parameter.default for key, parameter in inspect.signature(build).parameters.items()}
        for name, build in DOMAINS.items()
    }
    forms = (*all_forms(), MODULE_FORM)
    if as_json:
        systems = {form.pattern: {"example": form.example, "available": form.is_available} for form in forms}
        print_json({**parameters, **systems})
        return
    rows = [
        (name, (inspect.getdoc(DOMAINS[name]) or "").splitlines()[0], _listed(values))
        for name, values in parameters.items()
    ]
    print_table("Built-in worlds", ("world", "what it is", "parameters and defaults"), rows)
    systems_rows = [
        (
            form.pattern,
            f"{form.meaning}\n{form.example if form.is_available else f'Needs {form.needs}.'}",
            form.parameters,
        )
        for form in forms
    ]
    print_table("Your own systems", ("world", "what it is, and an example", "parameters"), systems_rows)


def _diagnosis(
    world: str, seed: int, parameters: dict[str, str], max_steps: int, seconds: float, assume: list[str] | None
) -> Diagnosis:
    from axplore.assumptions import assumptions_from
    from axplore.errors import InvalidInputError, UnfixedStartError
    from axplore.exploring import world_from
    from axplore.records.findings import Issue
    from axplore.worlds.catalogue import function_named
    from axplore.worlds.diagnosis import Diagnosis, finding_of
    from axplore.worlds.doctor import FALSE_ALARM, examine_world

    try:
        system, _ = world_from(world, seed, parameters)
        examinable = system.examinable
        if examinable is None:
            raise InvalidInputError(f"{world} is a simulation of a known model: there is nothing to examine")
        with system:
            assumptions = assumptions_from(assume, function_named)
            return examine_world(examinable, seed=seed, max_steps=max_steps, seconds=seconds, assume=assumptions)
    except UnfixedStartError as error:  # the world refuses it before it can be examined
        seen = str(error).partition(", so that")[0].capitalize()
        finding = finding_of(Issue.START_NOT_FIXED, f"{seen}.")
        return Diagnosis((finding,), 0, 0, 0, 0.0, 0, FALSE_ALARM)


def _forecast_as_json(world: str, found: Forecast) -> dict[str, Any]:

    return {
        "world": world,
        "probe_steps": found.probe_steps,
        "states": found.states,
        "ended": found.ended,
        "steps_per_second": found.steps_per_second,
        "estimates": [
            {
                "explorer": estimate.explorer,
                "steps": finite(estimate.steps),
                "seconds": finite(estimate.seconds),
                "note": estimate.note,
            }
            for estimate in found.estimates
        ],
    }


def steps_text(steps: float) -> str:
    """Returns a number of steps as text."""
    if not math.isfinite(steps):
        return "unknown"
    return f"{steps:,.0f}" if steps < SHOWN_STEPS else f"{steps:.1e}"


def time_text(seconds: float) -> str:
    """Returns a time as text."""
    if not math.isfinite(seconds):
        return "unknown"
    for length, name in UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {name}"
    return f"{seconds:.1f} s"


def _listed(parameters: dict[str, Any]) -> str:
    return "\n".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in parameters.items()
    )


def _truth_as_json(world: str, answer: ControllableStates) -> dict[str, Any]:

    return {
        "world": world,
        "radius": answer.radius,
        "states": [encode_label(state) for state in answer.states],
        "layers": [[encode_label(state) for state in layer] for layer in answer.layers],
        "steps": [answer.steps[state] for state in answer.states],
        "boundary": [encode_label(state) for state in answer.boundary],
    }


def _print_truth(world: str, answer: ControllableStates, *, all_rows: bool) -> None:

    rows = [
        (
            str(number),
            readable(state),
            f"{answer.steps[state]:.6g}",
            "on the boundary" if state in answer.boundary else "",
        )
        for number, layer in enumerate(answer.layers)
        for state in layer
    ]
    title = f"{world}: {len(answer.states)} states are controllable within {answer.radius:g} expected steps"
    print_table(title, ("layer", "state", "steps", "note"), rows, all_rows=all_rows)


OBJECTIVES: Final = ("optimal", "within-radius")
"""The objectives of a lower bound, as the option names them."""


def _lower_bound_search(
    is_wanted: bool, epsilon: float | None, delta: float | None, objective: str | None, seconds: float | None
) -> Callable[[ControllableStates], PrintedLowerBound] | None:
    """Returns what searches for the lower bound; None if none is wanted. Refuses inconsistent options."""
    given = {"--epsilon": epsilon, "--delta": delta, "--objective": objective, "--seconds": seconds}
    if not is_wanted:
        for name, value in given.items():
            if value is not None:
                raise InvalidSettingError(f"{name} needs --lower-bound")
        return None
    if epsilon is None:
        raise InvalidSettingError("--lower-bound needs --epsilon: the bound depends on it")
    if objective is not None and objective not in OBJECTIVES:
        raise InvalidSettingError(f"objective is {objective!r}; it must be one of {', '.join(OBJECTIVES)}")
    with studies_required("axplore truth --lower-bound"):
        from axplore_studies.lower_bounds.printing import search
    return partial(
        search,
        epsilon=epsilon,
        delta=0.1 if delta is None else delta,
        objective=objective or OBJECTIVES[0],
        seconds=seconds,
    )
