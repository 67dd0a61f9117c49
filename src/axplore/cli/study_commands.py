"""The command `reproduce`, and how commands find the studies, which only a clone of the repository has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from axplore.cli.console import Ray, SweepWorkers, app
from axplore.errors import InvalidSettingError

ASKING: Final = "questions"
"""The study of models that are not in the repository."""


@contextmanager
def studies_required(what: str) -> Iterator[None]:
    """Explains how to get the studies if an import in this context does not find them.

    Args:
        what: what needs them, as the beginning of a sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "axplore_studies":
            raise
        raise InvalidSettingError(
            f"{what} needs the studies, which are not installed with the package: clone axplore's repository and "
            "install it there with `pip install -e .`"
        ) from None


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="table2, table3, fig3, lock, fig-lock or all; or, not among all, certified, limits, "
            "assumptions, questions, or theory, which takes 10^10 steps.",
            show_default="all",
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs per row.", show_default="the paper's: 50 on the chain, 20 on the lock")
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the models that `questions` asks about.", show_default=False),
    ] = None,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for runs, tables and figures.")] = Path("results"),
) -> None:
    """Run the paper's experiments and print our numbers beside the published ones.

    It needs a clone of the repository. After an interruption, the same command resumes with what is in the folder.

    \b
    Examples:
      axplore reproduce lock
      axplore reproduce all --workers 8
      axplore reproduce all --ray auto
      axplore reproduce questions --models models/prism
    """  # noqa: D301
    with studies_required("axplore reproduce"):
        from axplore_studies.catalogue import PAPER, REPRODUCED, STUDIES
        from axplore_studies.command import chosen_from, make

    asks = what == [ASKING]
    if asks != (models is not None):
        raise InvalidSettingError(f"{ASKING} and --models belong together: axplore reproduce {ASKING} --models DIR")
    known = {name: STUDIES[name] for name in REPRODUCED}
    settings = {"models": str(models)} if asks else None
    make(chosen_from(what or ["all"], known, PAPER), out, number=runs, settings=settings, workers=workers, ray=ray)
