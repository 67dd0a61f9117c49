"""The commands that make studies: `python -m axplore_studies`, and what `axplore reproduce` calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from axplore.cli.console import (
    CLAIM_FAILED,
    DONE,
    INTERRUPTED,
    Ray,
    SweepWorkers,
    notify,
    parsed,
    print_lines,
    print_table,
    progress_bar,
    sweep_workers,
)
from axplore.errors import UnknownNameError
from axplore_studies.catalogue import STUDIES
from axplore_studies.loop import OnDone, Study, forget, run_study

ALL: Final = "all"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def studies(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Studies to make, or all.", show_default="list them")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The number that scales the study; the list says of what.", show_default="usual"
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=JSON", help="A setting of the study; may be repeated.", show_default="the usual ones"
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Make trials again that are in the folder.")] = False,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for records and results.")] = Path("results"),
) -> None:
    """Make studies, or list them.

    After an interruption, the same command resumes with what is in the folder.

    \b
    Examples:
      python -m axplore_studies coverage --trials 100 --set "deltas=[0.2]"
      python -m axplore_studies all --out docs/results
    \b
    Exit codes:
      0    made
      1    what a study checks is not true
      2    an argument is wrong, or a file is damaged
      130  interrupted
    """  # noqa: D301
    if not names:
        _list_studies()
        return
    chosen = chosen_from(names, STUDIES, all_names=list(STUDIES))
    make(chosen, out, number=trials, settings=_values(settings), again=again, workers=workers, ray=ray)


def _list_studies() -> None:
    rows = [(study.name, study.description, study.counted or "–") for study in STUDIES.values()]
    print_table("Studies: python -m axplore_studies NAME", ("name", "what it asks", "--trials is the number of"), rows)


def _values(settings: list[str] | None) -> dict[str, Any]:
    """Returns settings with their values: JSON where it is, else text."""
    values: dict[str, Any] = {}
    for name, text in parsed(settings).items():
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            values[name] = text
    return values


def chosen_from(names: Sequence[str], known: Mapping[str, Study], all_names: Sequence[str]) -> list[Study]:
    """Returns the studies of these names, each once, and for "all" those of `all_names`."""
    chosen = dict.fromkeys(part for name in names for part in (all_names if name == ALL else [name]))
    for name in chosen:
        if name not in known:
            raise UnknownNameError.of("study", name, [*known, ALL])
    return [known[name] for name in chosen]


def make(
    chosen: Sequence[Study],
    out: Path,
    *,
    number: int | None = None,
    settings: Mapping[str, Any] | None = None,
    again: bool = False,
    workers: int | None = None,
    ray: str | None = None,
) -> None:
    """Makes studies one after the other, shows progress and results, and ends the command.

    Args:
        chosen: the studies.
        out: the folder for records and results.
        number: the number that scales each study; the usual one by default.
        settings: settings that differ from the usual ones, by name.
        again: whether trials that are in the folder are made again.
        workers: number of worker processes, 0 for none; by default one for each processor.
        ray: the Ray cluster that runs the workers: `auto` or an address.
    """
    planned = [study.planned(number, settings) for study in chosen]  # refuses wrong settings before the first is made
    if again:
        for study, trials in zip(chosen, planned, strict=True):
            forget(trials, out / study.records_name)
    holds = True
    try:
        for study in chosen:
            with progress_bar(study.name) as show:
                result = run_study(
                    study,
                    out,
                    number=number,
                    settings=settings,
                    workers=sweep_workers(workers, ray),
                    ray=ray,
                    on_done=_telling_what_is_kept(study, out, show),
                )
            result.show()
            holds = holds and result.holds
            if not result.holds:
                notify(f"{study.name}: what it checks is not true")
    except KeyboardInterrupt:
        notify(f"Interrupted; the same command resumes it{', without --again' if again else ''}.")
        raise typer.Exit(INTERRUPTED) from None
    print_lines([f"Records and results are in {out}."])
    raise typer.Exit(DONE if holds else CLAIM_FAILED)


def _telling_what_is_kept(study: Study, out: Path, show: OnDone) -> OnDone:
    """Returns what shows progress, and says first how many trials are not made because they are in the folder."""
    is_first = True

    def on_done(done: int, total: int) -> None:
        nonlocal is_first
        if is_first and done:
            notify(
                f"{study.name}: {done:,} of {total:,} trials are in {out / study.records_name}; --again repeats them."
            )
        is_first = False
        show(done, total)

    return on_done
