"""Explorers by name. One line each: where the function is that makes it.

Such a function takes the target and S, an upper bound on the number of states, if there is one, and returns a
configuration with every option set; the first line of its docstring describes it. Explorers of other packages are
found by entry points (see `axplore.plugins`). Nothing is imported before it is named, so that listing names is quick.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from axplore import plugins
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.target import Target

if TYPE_CHECKING:
    from axplore.explorers.base import Explorer

ExplorerFactory: TypeAlias = Callable[[Target, int | None], Any]

EXPLORERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "certified": "certified:certified",
        "certified-within-radius": "certified:certified_within_radius",
        "directed": "directed:directed",
        "disco-theory": "disco:disco_theory",
        "disco-experiment": "disco:disco_experiment",
        "ucb-explore-theory": "ucb_explore:ucb_explore_theory",
        "ucb-explore-experiment": "ucb_explore:ucb_explore_experiment",
        "ucb-explore-staged-theory": "ucb_staged:staged_ucb_explore_theory",
        "ucb-explore-staged-experiment": "ucb_staged:staged_ucb_explore_experiment",
    }
)
"""The explorers of axplore by the names that the command line uses: module in this package, and function."""

DEFAULT_EXPLORER: Final = "certified"

DIRECTED: Final = "directed"
"""The explorer that answers a question, and needs one."""

THEOREMS: Final[Mapping[str, str]] = MappingProxyType({"disco-theory": "[DisCo] Thm. 1"})
"""Explorers whose result is correct with probability 1 - δ by a theorem, though no certificate shows it."""


def explorer_names() -> tuple[str, ...]:
    """Returns the names of all explorers, those of other packages last."""
    return (*EXPLORERS, *(name for name in plugins.names(plugins.EXPLORERS) if name not in EXPLORERS))


def factory_of(name: str) -> ExplorerFactory:
    """Imports and returns the function that makes an explorer."""
    if name in EXPLORERS:
        module, _, function = EXPLORERS[name].partition(":")
        factory: ExplorerFactory = getattr(import_module(f"axplore.explorers.{module}"), function)
        return factory
    if name in plugins.names(plugins.EXPLORERS):
        return plugins.load(plugins.EXPLORERS, name, FunctionType)
    raise UnknownNameError.of("explorer", name, explorer_names())


def description_of(name: str) -> str:
    """Returns what an explorer is, in a line."""
    return (inspect.getdoc(factory_of(name)) or "").split("\n", maxsplit=1)[0]


def preset(
    name: str, *, radius: float, epsilon: float, delta: float = 0.1, states_bound: int | None = None, **options: Any
) -> Explorer[Any]:
    """Returns the explorer of that name for a radius, an epsilon and a delta.

    Args:
        name: one of `explorer_names()`.
        radius: L.
        epsilon: ε.
        delta: δ.
        states_bound: S, an upper bound on the number of states; the theory presets need it, the certified ones do not.
        options: fields of the explorer's configuration to set otherwise.
    """
    explorer = factory_of(name)(Target(radius=radius, epsilon=epsilon, delta=delta), states_bound)
    known = [option.name for option in fields(explorer)]
    for option in options:
        if option not in known:
            raise InvalidSettingError(f"the explorer {name!r} has no option {option!r}; it has {', '.join(known)}")
    return replace(explorer, **options)  # type: ignore[no-any-return]
