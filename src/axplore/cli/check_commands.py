"""The command that answers questions, from the counts of a run or by sampling a world: `check`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axplore.addresses import without_secrets
from axplore.cli.console import AsJson, Key, Settings, app, parsed, print_json, print_lines
from axplore.cli.explore_commands import RUNS, exit_code_of, explored_or_interrupted, fresh_folder, write_page
from axplore.cli.options import options_of
from axplore.errors import ExitCode, InvalidSettingError, StorageError
from axplore.request import UNASKED, Request

if TYPE_CHECKING:
    from axplore.atlas import Atlas
    from axplore.atlas.questions import Checked
    from axplore.properties import Property


@app.command()
@options_of(Request, without=UNASKED)
def check(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN|WORLD", help="Folder of a run, or the name of a world to sample.", show_default=False
        ),
    ],
    question: Annotated[
        str, typer.Argument(metavar="PROPERTY", help="Such as 'Pmax=? [ F \"thanks\" ]'.", show_default=False)
    ],
    asked: dict[str, Any],
    precision: Annotated[
        float | None,
        typer.Option(help="Of a world: sample until the bounds are this close together.", show_default="0.01"),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Of a world: probability δ that the answer may be wrong.", show_default="0.1"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the run of a world.", show_default="runs/WORLD-1, -2, ..."),
    ] = None,
    settings: Settings = None,
    key: Key = None,
    doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Examine the system briefly before sampling it.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Bound the probability of a property: from the counts of a run, or by sampling what decides it in a world.

    Of a run, no step of the system is taken. The answer is kept in the certificate of the run, where `axplore verify`
    checks it. A world is sampled until the bounds are as close together as --precision says, or until a bound such as
    P>=0.9 is decided; `axplore resume RUN` continues.

    A property has no RESET. A name in quotation marks is the label of a state, or a label that a Storm model defines;
    x=3 compares a field of the state.

    \b
    Examples:
      axplore check runs/shop-1 'Pmax=? [ !"error" U "thanks" ]'
      axplore check storm:model.prism 'Pmin=? [ F "done" ]' --precision 0.01 --assume min-probability=0.1
      axplore check mypackage:make 'P>=0.9 [ F<=20 "thanks" ]' --max-steps 100000
    \b
    Exit codes:
      0    the value is bounded, or the bound holds
      1    the bound does not hold; or the draws contradict what was assumed
      2    the property, the run or an argument is wrong, or the system failed
      3    open: more draws would decide it, or bring the bounds closer
      4    as 0 or 1, but the run is in doubt: see docs/verdicts.md
      130  interrupted by Ctrl-C or SIGTERM; what is proven so far is printed and saved
    """  # noqa: D301
    if is_run(subject):
        _refuse_sampling(subject, {**asked, "precision": precision, "delta": delta, "out": out})
        code = _check_run(Path(subject), question, as_json=as_json)
    else:
        parameters = parsed(settings, key)
        folder = out or fresh_folder(RUNS, without_secrets(subject))
        options = {**asked, "world_parameters": parameters, "doctor": doctor, "run": folder, "progress": True}
        exactness = {"precision": precision, "delta": delta}
        code = _check_world(subject, question, exactness, folder, options, as_json=as_json)
    raise typer.Exit(int(code))


def is_run(subject: str) -> bool:
    """Returns whether a text names the folder of a run, or a place where there might be one, and no world."""
    from axplore.atlas.files import NAME as ATLAS
    from axplore.runs.manifest import NAME

    folder = Path(subject)
    if folder.is_dir() and any((folder / name).exists() for name in (NAME, f"{ATLAS}.json")):
        return True
    return len(folder.parts) > 1 and ":" not in subject


def _refuse_sampling(run: str, given: dict[str, Any]) -> None:
    """Refuses options of sampling for a run."""
    defaults = {declared.name: declared.default for declared in fields(Request)}
    for name, value in given.items():
        if value is not None and value != defaults.get(name):
            raise InvalidSettingError(
                f"--{name.replace('_', '-')} is for sampling, but {run} is a run, whose counts are taken as they are; "
                f"to draw more: axplore resume {run}"
            )


def _check_run(run: Path, asked: str, *, as_json: bool) -> ExitCode:
    """Answers from the counts of a run, and keeps the answer there."""
    from axplore.atlas import Atlas
    from axplore.properties import parse_property

    question, atlas = parse_property(asked), Atlas.load(run)
    answer = atlas.check_property(question)
    code = _exit_code(question, answer, atlas)
    kept = _keep_answer(run, answer) if answer.proven else None
    if as_json:
        is_kept = {"kept": answer.proven and kept is None}
        print_json({"run": str(run), "property": asked, **answer.as_json(), **is_kept, "exit_code": int(code)})
    else:
        print_lines([asked, str(answer), *([kept] if kept else [])])
        print_lines([f"IN DOUBT: {doubt}" for doubt in atlas.verdict.doubts])
    return code


def _check_world(
    world: str,
    asked: str,
    exactness: dict[str, float | None],
    folder: Path,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> ExitCode:
    """Samples a world until the question is answered."""
    from axplore.checking import request_for
    from axplore.exploring import explored

    given: dict[str, Any] = {name: value for name, value in exactness.items() if value is not None}
    request = request_for(world, asked, options=options, **given)
    atlas, history = explored_or_interrupted(
        lambda on_round, on_end: explored(replace(request, on_round=on_round), on_end=on_end)
    )
    page = write_page(atlas, history, folder, None)
    answer = atlas.properties[0]
    code = exit_code_of(atlas)
    if as_json:
        bounds = {"lower": answer.lower, "upper": answer.upper, "holds": answer.holds}
        place = {"run": str(folder), "report": None if page is None else str(page)}
        print_json(
            {"world": atlas.world, "property": asked, **bounds, "steps": atlas.run.steps_in_all,
             "verdict": atlas.verdict.as_json(), **place, "exit_code": int(code)}
        )  # fmt: skip
        return code
    print_lines([*atlas.verdict.lines, f"{atlas.run.steps_in_words}.", f"The run is in {folder}."])
    hint = f"Check it: axplore verify {folder}"
    print_lines([hint if atlas.stop.by_own_rule else f"{hint}. Resume it: axplore resume {folder}"])
    if page is not None:
        print_lines([f"See it: {page}"])
    return code


def _exit_code(question: Property, answer: Checked, atlas: Atlas) -> ExitCode:
    """Returns the exit code of an answer from the counts of a run."""
    if not answer.proven:  # the draws contradict each other, or what was assumed
        return ExitCode.REFUTED
    if question.comparison is not None and answer.holds is None:
        return ExitCode.UNFINISHED
    if atlas.verdict.exit_code == ExitCode.IN_DOUBT:
        return ExitCode.IN_DOUBT
    return ExitCode.REFUTED if answer.holds is False else ExitCode.DONE


def _keep_answer(run: Path, answer: Checked) -> str | None:
    """Keeps an answer in a run; returns in words why it is not kept, if it is not."""
    from axplore.runs.folder import keep_answer

    try:
        keep_answer(run, answer)
    except StorageError as error:
        return f"The answer is not kept: {error}"
    return None
