"""The command line: every command is one call of the library.

What a command needs is imported inside it, so that `axplore --help` is quick.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axplore.errors import AxploreError, InvalidSettingError

if TYPE_CHECKING:
    from axplore.truth import ControllableStates

app = typer.Typer(
    help="Explores an unknown, resettable, stochastic system and proves what can be reliably reached.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is printed twice as fast
)

World = Annotated[
    str,
    typer.Argument(
        metavar="WORLD", help="Name of a world, as gym:FrozenLake-v1; `axplore worlds` lists them.", show_default=False
    ),
]
Radius = Annotated[float, typer.Option(help="Expected steps within which a state counts (L).", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the world; may be repeated.", show_default=False),
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", help="So many processes step worlds of their own.", show_default="none")
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="auto|ADDRESS", help="The workers are on this Ray cluster.", show_default="this machine"),
]
SweepWorkers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="So many processes make runs, one each at a time; 0 for none. They change no number.",
        show_default="one per processor",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

EXPLORERS = (
    "certified",
    "certified-within-radius",
    "disco-theory",
    "disco-experiment",
    "ucb-explore-theory",
    "ucb-explore-experiment",
    "ucb-explore-staged-theory",
    "ucb-explore-staged-experiment",
)
"""The names of the presets, whose module is slow to import."""

EXPORTS = ("drn", "interval-drn", "prism", "umb", "dot", "csv", "policies-csv", "parquet", "policies-parquet")
"""The names of the formats."""


@app.command()
def explore(
    world: World,
    radius: Radius,
    epsilon: Annotated[float, typer.Option(help="Steps by which a policy may miss its bound (ε).")] = 0.1,
    delta: Annotated[float, typer.Option(help="Probability with which the answer may be wrong (δ).")] = 0.1,
    explorer: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(EXPLORERS)}.")] = "certified",
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="[optimal|within-radius]",
            help="Of the certified explorer: policies as good as the best, or within the radius, which is cheaper.",
            show_default="optimal, but for certified-within-radius",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulated world; the same seed gives the same answer.")] = 0,
    max_steps: Annotated[
        int | None, typer.Option(help="End after so many steps with what is known.", show_default="no limit")
    ] = None,
    states_bound: Annotated[
        int | None,
        typer.Option(help="No more states than this exist; only the theory explorers need it.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the run.", show_default="runs/WORLD-1, -2, ..."),
    ] = None,
    settings: Settings = None,
    doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Examine a system briefly before exploring it.")
    ] = True,
    workers: Workers = None,
    ray: Ray = None,
    as_json: AsJson = False,
) -> None:
    """Explore a world: what can be reached, in how many steps, and how surely.

    Ctrl-C ends with what is known so far; pressed again, at once. However it ends, `axplore resume RUN` goes on.

    \b
    Examples:
      axplore explore confusing-chain --radius 4.5 --epsilon 0.1
      axplore explore gym:FrozenLake-v1 --radius 8 --epsilon 1 --workers 4
    \b
    Exit codes:
      0    the explorer is done
      1    the counts contradict each other: the world changes, or delta has come up
      2    something given is wrong, or a file cannot be written
      3    the step limit came first; what is known is printed and kept
      130  interrupted; what is known is printed and kept, unless it was at once
    """  # noqa: D301
    from axplore.console import explore_on_console

    code = explore_on_console(
        world,
        out,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        explorer=explorer,
        objective=objective,
        seed=seed,
        max_steps=max_steps,
        states_bound=states_bound,
        world_parameters=_parsed(settings),
        doctor=doctor,
        workers=workers,
        ray=ray,
    )
    raise typer.Exit(code)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    radius: Annotated[
        float | None, typer.Option(help="Another radius from now on (L).", show_default="as before")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Another precision from now on (ε).", show_default="as before")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="[optimal|within-radius]", help="Another objective from now on.", show_default="as before"
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            help="End after so many steps of the whole run with what is known.",
            show_default="as before, unless that limit has ended the run",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many processes from now on; 0 for none.", show_default="as before"),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(metavar="auto|ADDRESS", help="Another Ray cluster.", show_default="as before")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was killed, interrupted or has ended.

    A simulated world, or one that workers step, ends with the same atlas and certificate as if nothing had happened. A
    system that is stepped without workers begins with a RESET. The certified explorer can go on with another radius,
    epsilon or objective, and keeps what it has sampled.

    \b
    Examples:
      axplore resume runs/confusing-chain-1
      axplore resume runs/confusing-chain-1 --radius 6
    \b
    Exit codes:
      0    the explorer is done
      1    the counts contradict each other: the world changes, or delta has come up
      2    something given is wrong, the run is damaged or in use, or a file cannot be written
      3    the step limit came first; what is known is printed and kept
      130  interrupted; what is known is printed and kept, unless it was at once
    """  # noqa: D301
    from axplore.console import resume_on_console

    code = resume_on_console(
        run,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        objective=objective,
        max_steps=max_steps,
        workers=workers,
        ray=ray,
    )
    raise typer.Exit(code)


@app.command()
def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Check from the counts alone everything that a run says to be certified.

    \b
    Example:
      axplore verify runs/confusing-chain-1
    \b
    Exit codes:
      0  every claim is proven
      1  some claim is not
      2  the run is missing, damaged, or has nothing to verify
    """  # noqa: D301
    from axplore.console import verify_on_console

    raise typer.Exit(verify_on_console(run, as_json=as_json))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write.", show_default="RUN/report.html")
    ] = None,
) -> None:
    """Write the page of a run: one file that opens offline.

    \b
    Example:
      axplore report runs/confusing-chain-1 -o chain.html
    """  # noqa: D301
    from axplore.console import report_on_console

    raise typer.Exit(report_on_console(run, out))


@app.command()
def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    port: Annotated[int, typer.Option(help="Port on this machine.", show_default="any that is free")] = 0,
) -> None:
    """Serve the page of a run while it goes on, on this machine only.

    It only reads; the run does not notice when it starts or ends.
    """
    from axplore.console import watch_on_console

    raise typer.Exit(watch_on_console(run, port))


@app.command()
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Folders of runs.", show_default=False)
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            metavar="WORLD", help="Explore this world first, with every explorer and seed.", show_default="no"
        ),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Expected steps within which a state counts (L).", show_default=False)
    ] = None,
    explorer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Of {', '.join(EXPLORERS)}; may be repeated.", show_default=False),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Seeds 0 to N-1.", show_default="20")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Steps by which a policy may miss its bound (ε).", show_default="0.1")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability with which the answer may be wrong (δ).", show_default="0.1")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="End each run after so many steps.", show_default="no limit")
    ] = None,
    states_bound: Annotated[
        int | None,
        typer.Option(help="No more states than this exist; only the theory explorers need it.", show_default=False),
    ] = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the runs, as DIR/NAME-SEED.", show_default=False)
    ] = None,
    workers: SweepWorkers = None,
    ray: Ray = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for figures as PNG, SVG and PDF.", show_default="no figures"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print runs side by side: steps, time, and whether they are right where the truth is known.

    With --world, the runs are made first: one of each explorer with each seed, several at a time, each as `axplore
    explore` would make it without workers. The same command goes on after an interruption, and makes what is missing.

    \b
    Examples:
      axplore compare runs/confusing-chain-1 runs/confusing-chain-2 --figures figures
      axplore compare --world gym:FrozenLake-v1 --radius 4 --epsilon 1 --explorer certified \\
        --explorer disco-experiment --seeds 20 --out runs/lake
    \b
    Exit codes:
      0    compared
      1    some run failed; the others are compared
      2    something given is wrong, or a run is missing or damaged
      130  interrupted
    """  # noqa: D301
    from axplore.console import compare_on_console

    question = {
        "radius": radius,
        "epsilon": epsilon,
        "delta": delta,
        "max_steps": max_steps,
        "states_bound": states_bound,
        "world_parameters": _parsed(settings) or None,
    }
    how = {"explorers": explorer, "out": out, "seeds": seeds, "workers": workers, "ray": ray}
    sweep = _sweep(world, question, how)
    if sweep is None and not runs:
        raise InvalidSettingError("there is nothing to compare: give folders of runs, or a --world to explore")
    raise typer.Exit(compare_on_console(runs or [], sweep, figures, as_json=as_json))


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
    from axplore.console import doctor_on_console

    code = doctor_on_console(
        world, as_json=as_json, seed=seed, world_parameters=_parsed(settings), max_steps=max_steps, seconds=seconds
    )
    raise typer.Exit(code)


@app.command()
def validate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    world: Annotated[
        str | None, typer.Option(metavar="WORLD", help="Where to try it.", show_default="the world of the run")
    ] = None,
    episodes: Annotated[int, typer.Option(help="For each goal.")] = 100,
    horizon: Annotated[
        int | None, typer.Option(help="Steps after which an episode is cut.", show_default="20 times those promised")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the noise; another than the run's, or it is the same noise.")] = 1,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Run the policies of a run on the real system and compare the steps they take with the bounds.

    \b
    Example:
      axplore validate runs/confusing-chain-1 --episodes 1000
    \b
    Exit codes:
      0  nothing contradicts the bounds
      1  something does
      2  the run or the world is missing, or they do not belong together
    """  # noqa: D301
    from axplore.console import validate_on_console

    code = validate_on_console(
        run,
        world,
        as_json=as_json,
        seed=seed,
        world_parameters=_parsed(settings),
        episodes=episodes,
        horizon=horizon,
    )
    raise typer.Exit(code)


@app.command()
def plan(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    goals: Annotated[
        list[str] | None, typer.Argument(metavar="[GOAL]...", help="States of its atlas.", show_default="all")
    ] = None,
    cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Costs above 0 and at most 1: CSV with the columns state, action, cost, or JSON with a list of such "
            "objects. What it does not name costs 1. The action RESET, with no state, sets what RESET costs.",
            show_default="every step costs 1",
        ),
    ] = None,
    reset_cost: Annotated[float | None, typer.Option(help="Of RESET.", show_default="the file's, or 1")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan for goals at any costs, from what a run has counted and without its system.

    \b
    Example:
      axplore plan runs/confusing-chain-1 s5 --cost costs.csv
    \b
    Exit codes:
      0  planned
      2  something given is wrong: a goal outside the atlas, costs outside (0, 1], a damaged run
    """  # noqa: D301
    from axplore.queries import plan_on_console

    plan_on_console(run, goals or [], cost, reset_cost, as_json=as_json)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(EXPORTS)}.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default=False)],
) -> None:
    """Write what a run has learned for model checkers, graphs and tables.

    \b
    Example:
      axplore export runs/confusing-chain-1 --format drn -o chain.drn
    \b
    Exit codes:
      0  written
      2  something given is wrong, or the file cannot be written
    """  # noqa: D301
    from axplore.queries import export_on_console

    export_on_console(run, format_name, out)


@app.command()
def forecast(
    world: World,
    radius: Radius,
    epsilon: Annotated[float, typer.Option(help="Steps by which a policy may miss its bound (ε).")] = 0.1,
    delta: Annotated[float, typer.Option(help="Probability with which the answer may be wrong (δ).")] = 0.1,
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
    from axplore.queries import forecast_on_console

    forecast_on_console(
        world,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        probe_steps=probe_steps,
        states_bound=states_bound,
        seed=seed,
        world_parameters=_parsed(settings),
    )


@app.command()
def truth(
    world: World,
    radius: Radius,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Print the exact atlas of a known world: states, layers, steps."""
    from axplore.domains import domain
    from axplore.truth import controllable_states

    answer = controllable_states(domain(world, **_parsed(settings)), radius)
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
    from axplore.console import print_table

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


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="table2, table3, fig3, lock, fig-lock or all; or theory, which takes 10^10 steps, not among all.",
            show_default="all",
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs per row.", show_default="the paper's: 50 on the chain, 20 on the lock")
    ] = None,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for runs, tables and figures.")] = "results",
) -> None:
    """Run the paper's experiments and print our numbers beside the published ones.

    Called again after an interruption, it goes on with what is in the folder.

    \b
    Examples:
      axplore reproduce lock
      axplore reproduce all --workers 8
      axplore reproduce all --ray auto
    """  # noqa: D301
    from axplore.experiments.console import reproduce_on_console

    reproduce_on_console(what or ["all"], Path(out), runs=runs, workers=_sweep_workers(workers, ray), ray=ray)


@app.command()
def coverage(
    models: Annotated[int, typer.Option(help="Random models for each objective and delta.")] = 2000,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="[optimal|within-radius]", help="What is promised; may be repeated.", show_default="both"),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="Probability of failure that is allowed (δ); may be repeated.", show_default="0.1 and 0.5"),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Steps by which a policy may miss its bound (ε).")] = 0.5,
    max_steps: Annotated[int, typer.Option(help="Give a model up after so many steps, and say so.")] = 2_000_000,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for trials and table.")] = Path("results"),
) -> None:
    """Test the guarantee: explore random models, compare with the truth, and count broken promises.

    Called again after an interruption, it goes on with what is in the folder.

    \b
    Example:
      axplore coverage --models 100 --delta 0.1 --workers 8
    """  # noqa: D301
    from axplore.experiments.console import coverage_on_console
    from axplore.experiments.coverage import DELTAS, OBJECTIVES

    coverage_on_console(
        out,
        models=models,
        objectives=objective or tuple(OBJECTIVES),
        deltas=delta or DELTAS,
        epsilon=epsilon,
        max_steps=max_steps,
        workers=_sweep_workers(workers, ray),
        ray=ray,
    )


def main() -> None:
    """Runs the command line; an error that axplore raises on purpose is one line and exit code 2."""
    try:
        app()
    except AxploreError as error:
        typer.echo(f"axplore: {error}", err=True)
        sys.exit(2)


def _sweep(world: str | None, question: dict[str, Any], how: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of `explore_seeds`; None if there is nothing to explore."""
    asked = {name: value for name, value in question.items() if value is not None}
    given = {name: value for name, value in how.items() if value is not None}
    if world is None:
        if asked or given:
            raise InvalidSettingError("what is to be explored is missing: give a --world, or folders of runs alone")
        return None
    for name, option in {"radius": "--radius", "explorers": "--explorer", "out": "--out"}.items():
        if name not in asked and name not in given:
            raise InvalidSettingError(f"a --world to explore needs {option} as well")
    from axplore.experiments.seeds import Question

    workers = _sweep_workers(how["workers"], how["ray"])
    return {"seeds": 20, **given, "workers": workers, "question": Question(world=world, **asked)}


def _sweep_workers(workers: int | None, ray: str | None) -> int | None:
    """Of runs that have nothing to do with each other, each processor makes one; a cluster has its own number."""
    return os.cpu_count() if workers is None and ray is None else workers


def _parsed(settings: list[str] | None) -> dict[str, str]:
    parameters = {}
    for setting in settings or ():
        name, separator, value = setting.partition("=")
        if not separator:
            raise InvalidSettingError(f"--set {setting}: write it as NAME=VALUE")
        parameters[name.replace("-", "_")] = value
    return parameters


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
    from axplore.console import print_table

    rows = [
        (str(number), str(state), f"{answer.steps[state]:.6g}", "on the boundary" if state in answer.boundary else "")
        for number, layer in enumerate(answer.layers)
        for state in layer
    ]
    title = f"{world}: {len(answer.states)} states are controllable within {answer.radius:g} expected steps"
    print_table(title, ("layer", "state", "steps", "note"), rows)
