"""What is asked of an exploration: every setting once, with its check, its default and its help.

`explore` and `resume` take the fields of `Request` and `Changes` as their parameters, the command line has them as
options, `compare` asks the same of several explorers and seeds, and a manifest keeps what `kept_settings` returns. So a
new setting is one field here, and whatever reads it.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from axplore.arguments import Check, file_path, flag, function, optional, real, refusal, settings, text, whole
from axplore.assumptions import Declared, forms
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.goals import Goal, goal_from
from axplore.target import STATES_BOUND, Objective

if TYPE_CHECKING:  # the command line shows settings without loading anything that explores
    from axplore.explorers.base import Explorer, Observer
    from axplore.labels import Json

WorldLike: TypeAlias = Any
"""What can be explored: a `World`, a `TabularMdp`, a name, or what `axplore.worlds.catalogue.world_of` accepts."""

UNASKED: Final = (
    "radius", "epsilon", "delta", "explorer", "objective", "states_bound", "goal", "begin_with", "log_actions",
)  # fmt: skip
"""Settings of `explore` that have no part in a question, or another name there."""

BY_AALPY: Final[Literal["aalpy"]] = "aalpy"
"""The value of `memory` for which AALpy merges histories into situations."""

Parameters = ParamSpec("Parameters")
Asked = TypeVar("Asked")
Result = TypeVar("Result")

_SETTING: Final = "setting"


@dataclass(frozen=True)
class Setting:
    """What is known of a setting beside its name, type and default.

    Attributes:
        help: what it is, in a sentence or two, for the documentation and for `--help`.
        check: returns a value in the form in which it is used, or raises; None where whoever reads it does so.
        kept: whether a manifest keeps it, so that `resume` finds it there; such a setting is a plain value.
        option: the type of its option on the command line; None if there is none, or one of another form.
        metavar: what the command line shows for a value.
        default: what the command line shows for the default, if the default itself says little.
    """

    help: str
    check: Check | None = None
    kept: bool = False
    option: Any = None
    metavar: str | None = None
    default: str | bool = True


def setting(help: str, check: Check | None = None, **known: Any) -> dict[str, Setting]:
    """Returns what is known of a setting as the metadata of its field; the arguments are those of `Setting`."""
    return {_SETTING: Setting(help, check, **known)}


def _memory(name: str, value: Any) -> int | Literal["aalpy"]:
    """Checks that an argument says how situations are told apart: a number of outputs, or `aalpy`."""
    if isinstance(value, str) and value == BY_AALPY:
        return BY_AALPY
    if isinstance(value, str) and not value.isdecimal():
        raise refusal(name, value, f"a number of outputs, 1 or more, or {BY_AALPY!r}")
    number: int = whole(least=1)(name, int(value) if isinstance(value, str) else value)
    return number


def _goal(name: str, value: Any) -> Goal:  # noqa: ARG001
    return goal_from(value)


def setting_of(declared: Field[Any]) -> Setting:
    """Returns what is known of the setting in a field of `Request` or `Changes`."""
    known: Setting = declared.metadata[_SETTING]
    return known


@dataclass(frozen=True, kw_only=True)
class _Common:
    """The settings of a new exploration that resuming it may change."""

    objective: Objective | str | None = field(
        default=None,
        metadata=setting(
            "For the certified explorer: `optimal` (AX*, near-optimal policies, the default) or `within-radius` (AX_L, "
            "fewer steps).",
            option=str | None,
            metavar="[optimal|within-radius]",
            default="optimal, except for certified-within-radius",
        ),
    )
    goal: Any = field(
        default=None,
        metadata=setting(
            "Prove how to reach one goal, and stop, in place of a map of everything within the radius: a state, a set "
            'of which any will do, a formula of states such as `"thanks" | x>=3`, or a function of a state. The '
            "objective is then `within-radius`, unless `optimal` is asked for. `everything` asks for the map.",
            optional(_goal),
            option=str | None,
            metavar="STATE",
            default="everything within the radius",
        ),
    )
    assume: Declared = field(
        default=None,
        metadata=setting(
            f"What is known of the system, which can save most of the steps: {forms()}, `Assumptions`, or several of "
            'these. Every promise then begins with "if", and a draw that contradicts it ends the exploration: see '
            "docs/assumptions.md.",
            option=list[str] | None,
            metavar="ASSUMPTION",
            default="nothing",
        ),
    )
    confirm: float | None = field(
        default=None,
        metadata=setting(
            "Before anything is promised that rests on what is assumed, play every action of the promised ways so "
            "often that another outcome, if it comes more often than this, would show itself with a probability of "
            "0.95: 0.05 takes 60 draws of each; 0 takes none.",
            optional(real(least=0, most=1)),
            kept=True,
            option=float | None,
            metavar="RATE",
            default="0.02, within 20,000 steps or a fifth of those of exploring",
        ),
    )
    max_steps: int | None = field(
        default=None,
        metadata=setting(
            "The most steps of the system: examining, exploring, and playing policies before anything is promised, for "
            "which a part is set aside. Orders are cut there, and what is proven by then is reported.",
            optional(whole()),
            option=int | None,
            default="no limit",
        ),
    )
    max_seconds: float | None = field(
        default=None,
        metadata=setting(
            "The seconds after which no step begins, of this call: `resume` counts anew. What is proven by then is "
            "reported.",
            optional(real(above=0)),
            option=float | None,
            default="no limit",
        ),
    )
    workers: int | None = field(
        default=None,
        metadata=setting(
            "Number of worker processes that carry out the orders. They must be able to make the world themselves: a "
            "system by a factory, a model, or a name.",
            optional(whole()),
            kept=True,
            option=int | None,
            metavar="N",
            default="none",
        ),
    )
    ray: str | None = field(
        default=None,
        metadata=setting(
            "Run the workers on this Ray cluster; see docs/scaling.md.",
            optional(text),
            kept=True,
            option=str | None,
            metavar="auto|ADDRESS",
            default="this machine",
        ),
    )
    progress: bool = field(default=False, metadata=setting("Whether to show progress on standard error.", flag))
    on_round: Observer | None = field(
        default=None,
        metadata=setting(
            "Called before the first round and after each; it ends the exploration by returning "
            "`StopReason.INTERRUPTED` or `StopReason.STEP_LIMIT`.",
            optional(function),
        ),
    )

    def __post_init__(self) -> None:
        for declared in fields(self):
            check = setting_of(declared).check
            if check is not None:
                object.__setattr__(self, declared.name, check(declared.name, getattr(self, declared.name)))

    @property
    def has_workers(self) -> bool:
        """Whether workers carry out the orders."""
        return self.workers != 0 and (self.workers is not None or self.ray is not None)


@dataclass(frozen=True, kw_only=True)
class Request(_Common):
    """What `explore` is asked for."""

    world: WorldLike = field(
        kw_only=False,
        metadata=setting(
            "A `World`, a `TabularMdp`, a Gymnasium environment, an object with `reset` and `step`, a function that "
            "makes one of these, or a name such as maze, gym:ID, exec:COMMAND, http://ADDRESS, storm:FILE, "
            "outputs:FILE or MODULE:FACTORY."
        ),
    )
    radius: float | None = field(
        default=None,
        metadata=setting(
            "Radius L: the expected steps within which a state counts; at least 1.",
            optional(real()),
            option=float | None,
            default=False,
        ),
        kw_only=False,
    )
    epsilon: float | None = field(
        default=None,
        metadata=setting(
            "Precision ε: the steps by which a policy may miss its bound.",
            optional(real()),
            option=float | None,
            default="0.1",
        ),
        kw_only=False,
    )
    delta: float | None = field(
        default=None,
        metadata=setting(
            "Probability δ that the answer may be wrong.", optional(real()), option=float | None, default="0.1"
        ),
        kw_only=False,
    )
    explorer: str | Explorer[Any] = field(
        default=DEFAULT_EXPLORER,
        metadata=setting(
            "Name of an explorer, or a configuration, which has its own L, ε and δ: leave them out then.",
            option=str,
            metavar="NAME",
        ),
    )
    seed: int = field(
        default=0,
        metadata=setting(
            "Seed of the noise, unless the world is a `World`, which has its own; the same seed gives the same answer.",
            whole(),
            kept=True,
            option=int,
        ),
    )
    states_bound: int | None = field(
        default=None,
        metadata=setting(
            "Upper bound S on the number of states; only the theory explorers need it.",
            optional(STATES_BOUND),
            kept=True,
            option=int | None,
            default=False,
        ),
    )
    world_parameters: Mapping[str, Any] | None = field(
        default=None, metadata=setting("The parameters of a world given by its name.", optional(settings))
    )
    doctor: bool = field(
        default=True,
        metadata=setting(
            "Whether to examine a stepped system briefly before exploring it. Findings are logged as warnings and "
            "become part of the atlas and its verdict.",
            flag,
        ),
    )
    memory: int | Literal["aalpy"] | None = field(
        default=None,
        metadata=setting(
            "Where labels turn out to hide something, tell situations apart by up to N outputs back, or by an "
            "automaton that AALpy learns: see docs/hidden.md.",
            optional(_memory),
            kept=True,
            option=str | None,
            metavar="N|aalpy",
            default="labels are taken as they are",
        ),
    )
    begin_with: Any = field(
        default=None,
        metadata=setting(
            "A log of transitions of the same system, from which to continue: a file (.csv, .jsonl, .ndjson, .parquet) "
            "or an iterable of (state, action, next state). See docs/logs.md.",
            option=str | None,
            metavar="LOG",
            default="nothing",
        ),
    )
    log_actions: Any = field(
        default=None,
        metadata=setting(
            "Which actions a state of the log has, where the system tells only those of the state that it is in: a "
            "function, a table, or MODULE:FUNCTION.",
            option=str | None,
            metavar="MODULE:FUNCTION",
            default="those played in the log",
        ),
    )
    run: str | Path | None = field(
        default=None,
        metadata=setting(
            "A folder for the run, new or empty. It holds what `resume` needs after an interruption, and at the end "
            "the atlas and its certificate.",
            optional(file_path),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Changes(_Common):
    """What `resume` is asked for; a setting that is left out stays as it was."""

    run: str | Path = field(kw_only=False, metadata=setting("The folder of the run.", file_path))
    world: WorldLike | None = field(
        default=None,
        metadata=setting(
            "The world that was explored. It can be omitted if it is built in, or named in the run and `trust` is set."
        ),
        kw_only=False,
    )
    world_parameters: Mapping[str, Any] | None = field(
        default=None,
        metadata=setting(
            "The parameters of a world given by its name, the same as before. They can be omitted if none of those in "
            "the run may name code, or if `trust` is set.",
            optional(settings),
        ),
    )
    radius: float | None = field(
        default=None, metadata=setting("New radius L.", optional(real()), option=float | None, default="as before")
    )
    epsilon: float | None = field(
        default=None, metadata=setting("New precision ε.", optional(real()), option=float | None, default="as before")
    )
    explorer: Explorer[Any] | None = field(
        default=None, metadata=setting("The explorer, if it was a configuration other than of the certified explorer.")
    )
    trust: bool = field(
        default=False,
        metadata=setting(
            "Whether to run code that the run names: its world and the parameters of it, its explorer if it is of "
            "another package, and its cluster; see docs/security.md.",
            flag,
        ),
    )


def kept_settings(request: Request) -> dict[str, Json]:
    """Returns the settings that a manifest keeps, by name."""
    return {declared.name: getattr(request, declared.name) for declared in fields(request) if setting_of(declared).kept}


def asks(kind: Callable[Parameters, Asked]) -> Callable[[Callable[[Asked], Result]], Callable[Parameters, Result]]:
    """Returns a decorator that gives a function of a request the parameters of the request."""
    signature = inspect.signature(kind)

    def decorate(answer: Callable[[Asked], Result]) -> Callable[Parameters, Result]:
        @wraps(answer)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            try:
                signature.bind(*arguments, **named)
            except TypeError as error:
                raise TypeError(f"{answer.__name__}() {error}") from None
            return answer(kind(*arguments, **named))

        call.__signature__ = signature.replace(return_annotation="Atlas")  # type: ignore[attr-defined]
        call.__doc__ = _with_arguments(inspect.getdoc(answer) or "", kind)
        return call

    return decorate


def _with_arguments(docstring: str, kind: Any) -> str:
    """Returns a docstring with the help of every setting in place of `{settings}`."""
    helps = (f"{declared.name}: {setting_of(declared).help}" for declared in fields(kind))
    lines = (textwrap.fill(line, 116, initial_indent="    ", subsequent_indent="        ") for line in helps)
    return docstring.replace("{settings}", "Args:\n" + "\n".join(lines))
