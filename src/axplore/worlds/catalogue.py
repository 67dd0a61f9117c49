"""Worlds by their names: `gym:ID`, `exec:COMMAND`, `http://HOST`, `storm:FILE`, `hypothesis:module:Class`, and more.

`world_of` turns whatever a factory may return into a world: a world, a model, a Gymnasium environment, an AALpy system,
a state machine, or any object that can be reset and stepped. `known_model` returns the model behind a named world, if
it is known: for built-in domains and Gymnasium's toy environments. It serves to compare answers with the truth; no
explorer sees it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from axplore import plugins
from axplore.addresses import was_shortened, without_secrets
from axplore.arguments import whole
from axplore.domains import DOMAINS, domain
from axplore.errors import InvalidInputError, InvalidSettingError, UnknownNameError, UntrustedFileError, WorldError
from axplore.labels import shortened
from axplore.mdp import TabularMdp
from axplore.memory import Memory
from axplore.worlds.contract import World
from axplore.worlds.keys import Key, keyed
from axplore.worlds.situations import with_situations
from axplore.worlds.state_machines import adapter_of, check_installed
from axplore.worlds.systems import BEGIN, SYSTEM_ERRORS, VIRTUAL_START, is_system

_logger = logging.getLogger("axplore")


@dataclass(frozen=True)
class Form:
    """A way to name worlds.

    Attributes:
        pattern: how a name is written.
        example: a name that can be explored.
        meaning: what it names, in a line.
        parameters: its parameters, in a line.
        needs: the package that it needs, if axplore does not depend on it.
        make: makes the world from the text after the colon, a seed and the parameters.
    """

    pattern: str
    example: str
    meaning: str
    parameters: str
    needs: str | None
    make: Callable[[str, int, Mapping[str, Any]], World]

    @property
    def is_available(self) -> bool:
        """Whether the package it needs is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


def named_world(name: str, seed: int, parameters: Mapping[str, Any]) -> World:
    """Returns the world with a name: a domain, or a form with a colon. Parameters given as text are converted."""
    if was_shortened(name):
        raise InvalidSettingError(
            f"{name} is an address of which no file keeps what may be secret; give the address itself: --world on the "
            "command line, world=... in Python"
        )
    values = _with_key(read_parameters(parameters) if ":" in name else dict(parameters))
    if ":" not in name:
        key = values.pop("key", None)
        return _simulated(domain(name, **values), seed, key)
    kind, _, rest = name.partition(":")
    if not rest:
        raise UnknownNameError.of("world", name, (), "axplore worlds")
    form = form_named(kind)
    make = partial(_from_module, kind) if form is None else form.make
    try:
        return make(rest, seed, values)
    except TypeError as error:
        unexpected = next((key for key in values if f"'{key}'" in str(error)), None)
        if unexpected is None:
            raise
        raise InvalidSettingError(f"{without_secrets(name)} has no parameter {unexpected!r}: {error}") from error


def check_consent(name: str, trust: bool) -> None:
    """Refuses a world named in a file unless it is built in or trusted: a name with a colon runs code."""
    if ":" in name and not trust:
        is_server = name.partition(":")[0] in ("http", "https")
        what = "exploring it sends requests to that address" if is_server else "starting it runs code on this machine"
        raise UntrustedFileError(
            f"the run names the world {name!r}, and {what}. If you trust the source of the run, allow it: --trust on "
            "the command line, trust=True in Python"
        )


CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "start": ("fixed", "pinned", "virtual"),
        "on_invalid": ("error", "state"),
        "engine": ("playwright", "selenium"),
    }
)
"""Texts that name no code, by the parameter that has them."""


def check_parameters(name: str, parameters: Mapping[str, Any], trust: bool) -> None:
    """Refuses parameters in a file that may name code, unless it is trusted.

    `key` names a function, of any world. What another text means is up to the world: an environment may import what its
    own parameters say, and a world that is built in does not. Numbers and truth values name nothing.
    """
    if trust:
        return
    for parameter, value in read_parameters(parameters).items():
        if ":" not in name and parameter != "key":
            continue
        if _has_text(value) and value not in CHOICES.get(parameter, ()):
            raise UntrustedFileError(
                f"the run gives the world {name!r} the parameter {parameter}={shortened(value)}, which may name code "
                "that runs on this machine. If you trust the source of the run, allow it: --trust on the command "
                "line, trust=True in Python; or give the parameters yourself: world_parameters=..."
            )


def _has_text(value: Any) -> bool:
    """Returns whether a JSON value holds any text."""
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str | dict)


def form_named(kind: str) -> Form | None:
    """Returns the form with a word before the colon, also of other packages; None if the word is a module."""
    if kind in FORMS:
        return FORMS[kind]
    return plugins.load(plugins.WORLDS, kind, Form) if kind in plugins.names(plugins.WORLDS) else None


def all_forms() -> Iterator[Form]:
    """Yields every form, those of other packages last; warns about one that cannot be imported."""
    yield from FORMS.values()
    for _, found in plugins.loadable(plugins.WORLDS, Form):
        if isinstance(found, Form):
            yield found
        else:
            _logger.warning("%s", found)


def read_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters with texts that are JSON parsed."""
    return {key: _read(value) for key, value in parameters.items()}


def world_of(thing: Any, seed: int, **options: Any) -> World:
    """Returns a world for anything that can be explored.

    Args:
        thing: a world, a `TabularMdp`, a Gymnasium environment, an AALpy system with an `alphabet`, an object with
            `reset` and `step`, a function without arguments that makes one of these, or the name of a world. Only
            with a function or a name can a system that fails be restarted.
        seed: the seed of the noise; ignored for a world, which has its own.
        options: options of `SteppedWorld`, or of `gym_world` for an environment; `step_timeout` runs the system that
            a function makes in a process of its own.
    """
    if isinstance(thing, str):
        return named_world(thing, seed, options)
    if isinstance(thing, World):
        return _without(options, thing)
    if isinstance(thing, TabularMdp):
        key = options.pop("key", None)
        return _without(options, _simulated(thing, seed, key))
    if is_system(thing) or _is_aalpy(thing):
        return _stepped(thing, thing, seed, options)
    if adapter_of(thing) is not None:
        raise InvalidInputError(
            f"{type(thing).__name__} is made anew for every RESET: give its class, or a function that makes it"
        )
    if callable(thing):
        return _world_made_by(thing, seed, options)
    raise InvalidInputError(
        f"{thing!r} cannot be explored; give a TabularMdp, a Gymnasium environment, an object with reset and step, a "
        "function that makes one, a subclass of axplore.worlds.World, or the name of a world: `axplore worlds` lists "
        "them"
    )


def _world_made_by(make: Callable[[], Any], seed: int, options: dict[str, Any]) -> World:
    """Returns the world of whatever a factory makes."""
    try:
        made = make()
    except SYSTEM_ERRORS as error:
        raise WorldError(f"{make!r} raised instead of making a system: {type(error).__name__}: {error}") from error
    adapt = adapter_of(made)
    if adapt is not None:
        return _stepped(partial(adapt, make, options.pop("key", None)), None, seed, options)
    if not is_system(made) and not _is_aalpy(made):
        return world_of(made, seed, **options)
    with suppress(Exception):  # this sample only showed its kind; the world makes its own
        made.close()
    return _stepped(make, made, seed, options)


def _simulated(mdp: TabularMdp, seed: int, key: Key | None) -> World:
    """Returns the world of a known model; with other labels, it is stepped like a system."""
    if key is None:
        from axplore.worlds.simulated import SimulatedWorld

        return SimulatedWorld(mdp, seed)
    from axplore.worlds.keys import ModelSystem
    from axplore.worlds.stepped import SteppedWorld

    return SteppedWorld(partial(ModelSystem, mdp), seed, key=key)


def _with_key(parameters: dict[str, Any]) -> dict[str, Any]:
    """Returns parameters with the function that `key` names in place of its name."""
    key = parameters.get("key")
    return {**parameters, "key": function_named(key)} if isinstance(key, str) else parameters


def parametrised_world(thing: Any, seed: int, parameters: Mapping[str, Any] | None) -> World:
    """Returns a world made of anything that can be explored; parameters are for one that is given by its name."""
    if isinstance(thing, str):
        return named_world(thing, seed, parameters or {})
    if parameters:
        raise InvalidSettingError("world_parameters are for a world given by its name; set them on the world itself")
    return world_of(thing, seed)


def is_handed_in(thing: Any) -> bool:
    """Returns whether a world, or the system behind it, belongs to who hands it in, and is for them to close."""
    return isinstance(thing, World) or is_system(thing) or _is_aalpy(thing)


@contextmanager
def world_for(
    thing: Any, seed: int, parameters: Mapping[str, Any] | None = None, memory: Memory | None = None
) -> Iterator[World]:
    """A world made of anything that can be explored, closed at the end unless the caller passed it.

    With a memory, its states are the situations that this tells apart, until the end.
    """
    world = parametrised_world(thing, seed, parameters)
    try:
        with with_situations(world, memory) as labelled:
            yield labelled
    finally:
        if not is_handed_in(thing):
            world.close()


def _stepped(source: Any, sample: Any, seed: int, options: dict[str, Any]) -> World:
    """Returns the world of a system or of a factory; the sample shows which kind it is."""
    from axplore.worlds.stepped import SteppedWorld

    if _is_environment(sample):
        from axplore.worlds.gym import gym_world

        return gym_world(source, seed, **options)
    if _is_aalpy(sample) and not is_system(sample):
        source = _aalpy(source, sample, options)
    timeout = options.pop("step_timeout", None)
    if timeout is not None:
        from axplore.worlds.child_process import isolated

        if options.get("key") is not None:  # where the system is: an answer may be none that can be sent
            source = keyed(source, options.pop("key"))
        if is_system(source):
            raise InvalidSettingError(
                "step_timeout runs the system in a process of its own, which needs a factory: pass a function"
            )
        source = isolated(source, timeout)
    return SteppedWorld(source, seed, **options)


def _aalpy(source: Any, sample: Any, options: dict[str, Any]) -> Any:
    from axplore.worlds.aalpy import AalpySystem

    alphabet = options.pop("alphabet", None) or getattr(sample, "alphabet", None)
    if alphabet is None:
        raise InvalidSettingError(
            f"{sample!r} has no alphabet: give it an attribute `alphabet`, pass AalpySystem(system, "
            "alphabet=[...]) of axplore.worlds, or on the command line --set 'alphabet=[...]'"
        )
    settings = {name: options.pop(name) for name in ("initial", "state") if name in options}
    if source is sample:
        return AalpySystem(sample, alphabet, **settings)
    return lambda: AalpySystem(source(), alphabet, **settings)


def _from_gym(identifier: str, seed: int, parameters: Mapping[str, Any]) -> World:
    """Returns a Gymnasium environment; labels are made by a `key`, or `round` gives decimal places."""
    from axplore.worlds.gym import gym_world, rounded_observation

    options = dict(parameters)
    digits = options.pop("round", None)
    if options.get("key") is not None and digits is not None:
        raise InvalidSettingError("key and round both make labels of observations: give one of them")
    if digits is not None:
        options["key"] = partial(rounded_observation, digits=int(whole(least=0, most=15)("round", digits)))
    return gym_world(identifier, seed, **options)


def _from_program(command: str, seed: int, parameters: Mapping[str, Any]) -> World:
    from axplore.worlds.program import program_world

    return program_world(command, seed, **parameters)


def _from_server(scheme: str, rest: str, seed: int, parameters: Mapping[str, Any]) -> World:
    from axplore.worlds.program import server_world

    return server_world(f"{scheme}:{rest}", seed, **parameters)


def _from_outputs(file: str, seed: int, parameters: Mapping[str, Any]) -> World:
    from axplore.worlds.output_models import output_world

    return output_world(file, seed, **parameters)


def _from_browser(address: str, seed: int, parameters: Mapping[str, Any]) -> World:
    from axplore.worlds.browser import BrowserWorld

    return BrowserWorld(address, seed, **parameters)


def _from_storm(file: str, seed: int, parameters: Mapping[str, Any]) -> World:
    from axplore.worlds.storm import storm_world

    return storm_world(file, seed, **parameters)


def _from_module(module: str, name: str, seed: int, parameters: Mapping[str, Any]) -> World:
    """Imports a user's module, which runs its code, and returns the world that its factory makes."""
    return world_of(_imported(module, name), seed, **parameters)


def _from_machine(package: str, name: str, seed: int, parameters: Mapping[str, Any]) -> World:
    """Imports a user's module, which runs its code, and returns the world of a state machine in it."""
    check_installed(package)
    make = function_named(name)
    made = make() if callable(make) else make
    adapt = adapter_of(made)
    if adapt is None:
        raise InvalidInputError(f"{name} makes no state machine of {package}, but {shortened(made)}")
    return world_of(make, seed, **parameters)


def function_named(name: str) -> Any:
    """Returns what `module:function` stands for; the module is imported, which runs its code."""
    module, separator, attribute = name.partition(":")
    if not (separator and module and attribute):
        raise UnknownNameError(f"{name!r} names no function; write it as MODULE:FUNCTION")
    return _imported(module, attribute)


def _imported(module: str, name: str) -> Any:
    """Returns what a user's module calls by this name; the module is imported, which runs its code."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    try:
        factory: Any = importlib.import_module(module)
        for part in name.split("."):
            factory = getattr(factory, part)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise WorldError(f"{module} cannot be imported: {error}") from error
        raise UnknownNameError(
            f"there is no module {module!r}, nor a kind of world of that name: {', '.join(FORMS)}"
        ) from None
    except AttributeError:
        raise UnknownNameError(f"the module {module!r} has no {name!r}") from None
    except SYSTEM_ERRORS as error:
        raise WorldError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    return factory


def _read(value: Any) -> Any:
    """Returns a parameter from the command line: parsed if it is JSON, and as text otherwise."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _is_environment(thing: object) -> bool:
    package = sys.modules.get("gymnasium")  # an environment can only exist if Gymnasium was imported
    return package is not None and isinstance(thing, package.Env)


def _is_aalpy(thing: object) -> bool:
    from axplore.worlds.aalpy import is_aalpy

    return is_aalpy(thing)


def _without(options: Mapping[str, Any], world: World) -> World:
    """Returns the world; refuses options, which it cannot take."""
    if options:
        raise InvalidSettingError(
            f"{next(iter(options))} applies only to a system that is stepped; set it on the world itself"
        )
    return world


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "gym": Form(
            pattern="gym:ID",
            example="gym:FrozenLake-v1",
            meaning="A Gymnasium environment with discrete actions; MiniGrid's too.",
            parameters="key (MODULE:FUNCTION), round (decimal places of a box), start (fixed, pinned or virtual), pin, "
            "mark_terminal, action_masks, max_episode_steps, step_timeout, max_faults, on_invalid (error or state); "
            "all others are the environment's own",
            needs=None,
            make=_from_gym,
        ),
        "exec": Form(
            pattern="exec:COMMAND",
            example="exec:bash examples/random_walk.sh",
            meaning="A program in any language that speaks JSON lines.",
            parameters="key (MODULE:FUNCTION), start (fixed or virtual), max_episode_steps, step_timeout, max_faults, "
            "on_invalid (error or state)",
            needs=None,
            make=_from_program,
        ),
        **{
            scheme: Form(
                pattern=f"{scheme}://HOST:PORT/PATH",
                example=f"{scheme}://localhost:8080/",
                meaning="A server that answers the JSON of exec: over HTTP.",
                parameters="key (MODULE:FUNCTION), start (fixed or virtual), max_episode_steps, step_timeout, "
                "max_faults, on_invalid (error or state)",
                needs=None,
                make=partial(_from_server, scheme),
            )
            for scheme in ("http", "https")
        },
        "storm": Form(
            pattern="storm:FILE",
            example="storm:model.prism",
            meaning="A PRISM, JANI or DRN model, by Storm's simulator.",
            parameters="key (MODULE:FUNCTION), start (fixed or virtual), max_faults; all others are constants of the "
            "model",
            needs="stormpy",
            make=_from_storm,
        ),
        **{
            kind: Form(
                pattern=f"{kind}:MODULE:CLASS",
                example=f"{kind}:mypackage.machines:Door",
                meaning=meaning,
                parameters="key (MODULE:FUNCTION of the machine), start (fixed or virtual), max_episode_steps, "
                "step_timeout, max_faults, on_invalid (error or state)",
                needs=package,
                make=partial(_from_machine, package),
            )
            for kind, package, meaning in (
                ("hypothesis", "hypothesis", "A RuleBasedStateMachine: its rules are the actions."),
                ("statemachine", "statemachine", "A machine of python-statemachine: its events are the actions."),
                ("transitions", "transitions", "A machine of transitions, or a model that has one."),
            )
        },
        "browser": Form(
            pattern="browser:ADDRESS",
            example="browser:http://localhost:8000/",
            meaning="A web application in a real browser: links and buttons are the actions.",
            parameters="key (MODULE:FUNCTION of the page), engine (playwright or selenium), values (texts to type, by "
            "the names of fields), reset_address, executable, settle, step_timeout, start (fixed or virtual), "
            "max_episode_steps, max_faults",
            needs="PIL",
            make=_from_browser,
        ),
        "outputs": Form(
            pattern="outputs:FILE",
            example="outputs:model.json",
            meaning="A model of which only outputs are seen: a table in JSON, or AALpy's .dot.",
            parameters="key (MODULE:FUNCTION)",
            needs=None,
            make=_from_outputs,
        ),
    }
)
"""Kinds of worlds by the word before the colon; other packages add theirs by entry points. Other words are modules."""

MODULE_FORM: Final = Form(
    pattern="MODULE:FACTORY",
    example="mypackage.machines:make",
    meaning="Whatever a function of your own returns. Importing its module runs its code.",
    parameters="key (MODULE:FUNCTION), start (fixed or virtual), max_episode_steps, step_timeout, max_faults, "
    "on_invalid (error or state), alphabet",
    needs=None,
    make=named_world,
)


TOYS: Final = "gymnasium.envs.toy_text"
"""Where the environments are that move as their table `P` says."""

NOT_IN_TABLE: Final = ("fickle_passenger",)
"""What makes such an environment move otherwise."""

OF_WORLD: Final = ("start", "pin", "action_masks", "max_faults", "step_timeout", "render_mode")
"""Parameters of a world that are not the environment's. Any other changes the labels or the steps."""


def known_model(name: str, parameters: Mapping[str, Any]) -> TabularMdp:
    """Returns the model of a world by its name; refuses one that is not known."""
    kind, colon, identifier = name.partition(":")
    if not colon:
        return domain(name, **parameters)
    model = _toy_model(identifier, read_parameters(parameters)) if kind == "gym" else None
    if model is None:
        raise UnknownNameError(
            f"the truth about {name} is not known; it is of {', '.join(DOMAINS)}, and of Gymnasium's toy environments, "
            "as gym:FrozenLake-v1"
        )
    return model


def _toy_model(identifier: str, parameters: Mapping[str, Any]) -> TabularMdp | None:
    """Returns the model of a toy environment with its states, and where it starts at random, with the virtual start."""
    from axplore.worlds.gym import make_environment

    own = {name: value for name, value in parameters.items() if name not in OF_WORLD}
    if {"mark_terminal", "max_episode_steps"} & {*own} or not _is_toy(identifier):
        return None
    environment: Any = make_environment(identifier, own).unwrapped
    if not type(environment).__module__.startswith(TOYS) or not hasattr(environment, "P"):
        return None
    if any(getattr(environment, name, False) for name in NOT_IN_TABLE):
        return None
    return _with_start(environment, parameters.get("start", "fixed"), parameters.get("pin", 0))


def _is_toy(identifier: str) -> bool:
    """Whether an identifier is of a toy environment; found out without making it, as a stranger's run may name it."""
    import gymnasium

    meant = [spec for name, spec in gymnasium.registry.items() if identifier in (name, name.rpartition("-v")[0])]
    return bool(meant) and all(str(spec.entry_point).startswith(TOYS) for spec in meant)


def _with_start(environment: Any, start: str, pin: int) -> TabularMdp | None:
    chances = np.asarray(environment.initial_state_distrib)
    possible = np.flatnonzero(chances).tolist()
    if start == "pinned":
        state, _ = environment.reset(seed=pin)
        possible = [int(state)]
    elif start == "virtual":
        begin = [(float(chances[state]), state, 0, False) for state in possible]
        table: dict[Any, Any] = {VIRTUAL_START: {BEGIN: begin}, **_reachable(environment.P, possible)}
        return TabularMdp.from_gymnasium(table, VIRTUAL_START)
    if len(possible) > 1:
        return None
    return TabularMdp.from_gymnasium(_reachable(environment.P, possible), possible[0])


def _reachable(table: Mapping[int, Any], starts: Iterable[int]) -> dict[int, Any]:
    """The part of a table that can be reached: the rest may contradict it, because nothing ever happens there."""
    reached: dict[int, Any] = {}
    waiting = list(starts)
    while waiting:
        state = waiting.pop()
        if state in reached:
            continue
        reached[state] = table[state]
        outcomes = [outcome for options in table[state].values() for outcome in options if outcome[0] > 0]
        waiting += [int(successor) for _, successor, _, terminated in outcomes if not terminated]
        for _, successor, _, terminated in outcomes:
            if terminated:
                reached.setdefault(int(successor), {})
    return reached
