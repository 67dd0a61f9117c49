"""Options of commands made from the settings of a request, so that a new setting is an option by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, fields
from functools import wraps
from typing import Annotated, Any, Final, get_type_hints

import typer

from axplore.request import setting_of

ASKED: Final = "asked"
"""The parameter of a command that receives the settings by name."""


def options_of(
    kind: Any,
    *,
    required: Collection[str] = (),
    without: Collection[str] = (),
    default: str | None = None,
    **helps: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator that gives a command the settings of a kind of request as options.

    The options stand in place of the parameter `asked` of the command, which receives the settings that were given.

    Args:
        kind: `Request` or `Changes`.
        required: the settings that must be given.
        without: settings for which the command has an option of its own, or none.
        default: what `--help` shows for every default, if that is the same for all.
        helps: what `--help` says of a setting where the command means something else by it, by name.
    """
    settings = [item for item in fields(kind) if setting_of(item).option is not None and item.name not in without]
    settings.sort(key=lambda item: bool(item.kw_only))  # the target first

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            asked = {item.name: given.pop(item.name) for item in settings}
            command(**given, asked={name: value for name, value in asked.items() if value is not None})

        hints = get_type_hints(command, include_extras=True)
        parameters = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name == ASKED:
                parameters += [_option(item, helps.get(item.name), default, required) for item in settings]
            else:
                parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def _option(item: Field[Any], text: str | None, default: str | None, required: Collection[str]) -> inspect.Parameter:
    """Returns the parameter of a command for a setting."""
    known, is_required = setting_of(item), item.name in required
    option = typer.Option(
        metavar=known.metavar, help=text or known.help, show_default=not is_required and (default or known.default)
    )
    return inspect.Parameter(
        item.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else item.default,
        annotation=Annotated[known.option, option],
    )
