"""The command line of the studies: `python -m axplore_studies`."""

from __future__ import annotations

import sys

import typer

from axplore.errors import AxploreError
from axplore_studies.command import app


def main() -> None:
    """Runs the command line; an error of axplore is printed as one line, with exit code 2."""
    try:
        app()
    except AxploreError as error:
        typer.echo(f"axplore_studies: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
