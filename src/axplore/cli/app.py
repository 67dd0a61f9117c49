"""The command line itself, to which each command adds itself."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Explores an unknown, resettable, stochastic system and proves what can be reliably reached.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is printed twice as fast
)
