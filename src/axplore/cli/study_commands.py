"""Commands that make many runs, or look at many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from axplore.cli.options import EXPLORERS, AsJson, Epsilon, Ray, Settings, StatesBound, SweepWorkers, app, parsed
from axplore.errors import InvalidSettingError


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
    states_bound: StatesBound = None,
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
    from axplore.cli.console import compare_on_console

    question = {
        "radius": radius,
        "epsilon": epsilon,
        "delta": delta,
        "max_steps": max_steps,
        "states_bound": states_bound,
        "world_parameters": parsed(settings) or None,
    }
    how = {"explorers": explorer, "out": out, "seeds": seeds, "workers": workers, "ray": ray}
    sweep = _sweep(world, question, how)
    if sweep is None and not runs:
        raise InvalidSettingError("there is nothing to compare: give folders of runs, or a --world to explore")
    raise typer.Exit(compare_on_console(runs or [], sweep, figures, as_json=as_json))


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
    from axplore.cli.study_console import reproduce_on_console

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
    epsilon: Epsilon = 0.5,
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
    from axplore.cli.study_console import coverage_on_console
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
