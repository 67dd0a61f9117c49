"""Commands about a world, before it is explored."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axplore.cli.options import AsJson, Delta, Epsilon, Radius, Settings, World, app, parsed

if TYPE_CHECKING:
    from axplore.truth import ControllableStates


@app.command()
def doctor(
    world: World,
    max_steps: Annotated[int, typer.Option(help="Steps that the examination may take.")] = 20_000,
    seconds: Annotated[float, typer.Option(help="Seconds that it may take.")] = 30.0,
    seed: Annotated[int, typer.Option(help="Of what it plays, and of the noise.")] = 0,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Look for what would make a certificate worthless: a hidden time limit, a state that hides something, ...

    A system without fault is said to hide something with a probability of at most 0.001.

    \b
    Example:
      axplore doctor gym:FrozenLake-v1
    \b
    Exit codes:
      0  nothing was found
      1  something was found
      2  the world cannot be examined
    """  # noqa: D301
    from axplore.cli.console import doctor_on_console

    code = doctor_on_console(
        world, as_json=as_json, seed=seed, world_parameters=parsed(settings), max_steps=max_steps, seconds=seconds
    )
    raise typer.Exit(code)


@app.command()
def forecast(
    world: World,
    radius: Radius,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    probe_steps: Annotated[int, typer.Option(help="Steps that the probe may take.")] = 100_000,
    states_bound: Annotated[
        int | None,
        typer.Option(help="No more states than this exist.", show_default="ten times those that the probe sees"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulated world.")] = 0,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Estimate, from a short probe, the steps and the time that each explorer would take.

    \b
    Example:
      axplore forecast confusing-chain --radius 4.5 --epsilon 0.1
    """  # noqa: D301
    from axplore.cli.queries import forecast_on_console

    forecast_on_console(
        world,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        probe_steps=probe_steps,
        states_bound=states_bound,
        seed=seed,
        world_parameters=parsed(settings),
    )


@app.command()
def truth(
    world: World,
    radius: Radius,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Print the exact atlas of a known world: states, layers, steps.

    Known are the built-in worlds, and Gymnasium's toy environments, as gym:FrozenLake-v1.
    """
    from axplore.reference_models import known_model
    from axplore.truth import controllable_states

    answer = controllable_states(known_model(world, parsed(settings)), radius)
    if as_json:
        typer.echo(json.dumps(_truth_as_json(world, answer), indent=2))
    else:
        _print_truth(world, answer)


@app.command()
def worlds(as_json: AsJson = False) -> None:
    """List the worlds that can be explored, with their parameters."""
    from axplore.domains import DOMAINS
    from axplore.worlds.catalogue import FORMS, MODULE_FORM

    parameters = {
        name: {key: parameter.default for key, parameter in inspect.signature(build).parameters.items()}
        for name, build in DOMAINS.items()
    }
    forms = (*FORMS.values(), MODULE_FORM)
    if as_json:
        systems = {form.pattern: {"example": form.example, "available": form.is_available} for form in forms}
        typer.echo(json.dumps({**parameters, **systems}, indent=2))
        return
    from axplore.cli.console import print_table

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


def _listed(parameters: dict[str, Any]) -> str:
    return "\n".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in parameters.items()
    )


def _truth_as_json(world: str, answer: ControllableStates) -> dict[str, Any]:
    return {
        "world": world,
        "radius": answer.radius,
        "states": list(answer.states),
        "layers": [list(layer) for layer in answer.layers],
        "steps": [answer.steps[state] for state in answer.states],
        "boundary": list(answer.boundary),
    }


def _print_truth(world: str, answer: ControllableStates) -> None:
    from axplore.cli.console import print_table

    rows = [
        (str(number), str(state), f"{answer.steps[state]:.6g}", "on the boundary" if state in answer.boundary else "")
        for number, layer in enumerate(answer.layers)
        for state in layer
    ]
    title = f"{world}: {len(answer.states)} states are controllable within {answer.radius:g} expected steps"
    print_table(title, ("layer", "state", "steps", "note"), rows)
