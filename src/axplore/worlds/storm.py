"""Models of the Storm model checker as systems: PRISM and JANI programs, and DRN files.

axplore sees no more of the model than of any other system: what orders meet. A model of at most `MOST_STATES` states is
built and simulated by compiled code, millions of steps a second. stormpy's simulator takes the steps of larger ones,
some ten thousand a second: a PRISM program is simulated directly, however large; JANI and DRN models are built first.

- The label of a state gives the values of its variables, `ok=true, x=1`, or its index where a file has none.
- The label of an action is the name of its command. An unnamed choice is `#2`, by its index among the choices of the
  state, and one that shares its name with another choice of the state is `name#2`.
- A state without choices is terminal. A state with only a loop to itself is not.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidInputError, InvalidSettingError, StorageError
from axplore.mdp import TabularMdp
from axplore.types import Action, State
from axplore.worlds.contract import World
from axplore.worlds.keys import Key
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import Start, SteppedWorld
from axplore.worlds.supervision import MAX_FAULTS

PRISM_ENDINGS: Final = (".nm", ".pm", ".prism")
JANI_ENDINGS: Final = (".jani",)
DRN_ENDINGS: Final = (".drn",)
MOST_STATES: Final = 200_000
"""The most states of a model that is built and simulated by compiled code: its labels take a few seconds."""

MOST_SECONDS, MOST_MEMORY = 5.0, 8 * 2**30
"""The time and the memory, in bytes, within which a model has to be built for that."""

STEPS_TO_LANDMARK: Final = 20
"""Number of steps with which a common successor of the initial state is chosen."""

DISCRETE: Final = ("DTMC", "MDP")
"""Model types with discrete steps and observable states. A POMDP would only show observations."""


def storm_world(
    file: str | Path,
    seed: int = 0,
    *,
    key: Key | None = None,
    start: Start = "fixed",
    max_faults: int = MAX_FAULTS,
    compiled: bool = True,
    **constants: Any,
) -> World:
    """Returns a model file as a world.

    Args:
        file: a PRISM program (`.nm`, `.pm`, `.prism`), a JANI model (`.jani`) or a DRN file (`.drn`).
        seed: the seed of the noise.
        key, start, max_faults: see `SteppedWorld`; what a key is given is the text of the values, `ok=true, x=1`. A
            compiled model has no key and a fixed start, and does not fail.
        compiled: whether a model that is small enough is simulated by compiled code, and not by stormpy.
        constants: values of the undefined constants of a PRISM or JANI model.
    """
    if compiled and key is None and start == "fixed":
        built = small_model(file, constants)
        if built is not None:
            return SimulatedWorld(built.mdp, seed, built.names)
    return SteppedStorm(file, constants, seed, key=key, start=start, max_faults=max_faults)


class SteppedStorm(SteppedWorld):
    """A model that stepwise simulation explores, whose labels cannot be names: a state tells its variables only."""

    def __init__(self, file: str | Path, constants: Mapping[str, Any], seed: int, **settings: Any) -> None:
        """Takes the arguments of `storm_world`."""
        super().__init__(partial(storm_system, file, constants), seed, **settings)
        self._model = Path(file).absolute(), constants

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """The labels that the model defines, which are refused where they are used."""
        return {name: partial(_refuse_name, name) for name in _defined_labels(*self._model)}


@cache
def _labels_of(path: Path, constants: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    description, _ = _described_model(path, dict(constants))
    if path.suffix.lower() in PRISM_ENDINGS:
        return tuple(str(label.name) for label in description.labels)
    return () if path.suffix.lower() in JANI_ENDINGS else tuple(map(str, description.labeling.get_labels()))


def _defined_labels(path: Path, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the labels that a model file defines."""
    return _labels_of(path, tuple(sorted(constants.items())))


def _refuse_name(name: str, _: State) -> bool:
    raise InvalidInputError(
        f"{name!r} is a label of the model, which is known only of models that are built, with at most {MOST_STATES:,} "
        "states; compare variables instead, such as x=3"
    )


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model all of whose states are known.

    Attributes:
        mdp: the model, with the labels that `StormSystem` gives to states and actions.
        names: the states that the model itself names, by the name of its label.
    """

    mdp: TabularMdp
    names: dict[str, frozenset[State]]


def small_model(file: str | Path, constants: Mapping[str, Any] | None = None) -> BuiltModel | None:
    """Returns a model of at most `MOST_STATES` states; None if it has more, or takes long to build."""
    path = _existing(file)
    with _readable(path):
        description, left_out = _described_model(path, constants or {})
        if path.suffix.lower() not in DRN_ENDINGS and not _fits(description):
            return None
        model = _built(description) if path.suffix.lower() not in DRN_ENDINGS else description
        return None if model.nr_states > MOST_STATES else _converted(model, left_out)


def _fits(description: Any) -> bool:
    """Whether a model can be built within some seconds and some memory, which a process of its own finds out."""
    import multiprocessing

    # A fork: a thread of Storm would go on building, and a fresh process would take seconds to start.
    child = multiprocessing.get_context("fork").Process(target=_try_to_build, args=(description,), daemon=True)
    child.start()
    child.join(MOST_SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def _try_to_build(description: Any) -> None:
    """Builds a model in a child process, which ends with 0 if it is small enough."""
    import resource
    from contextlib import suppress

    with suppress(ValueError, OSError):  # a smaller limit may be set already
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os._exit(int(_plainly_built(description).nr_states > MOST_STATES))


def _converted(model: Any, left_out: Collection[str]) -> BuiltModel | None:
    """Returns a model that Storm has built."""
    _check_sparse(model)
    states = [_state_label(model, number, left_out) for number in range(model.nr_states)]
    if len(set(states)) < len(states):  # labels that leave something out
        return None
    deadlocked = set(model.labeling.get_states("deadlock")) if "deadlock" in model.labeling.get_labels() else set()
    action_index: dict[str, int] = {}
    pair_states: list[int] = []
    pair_actions: list[int] = []
    entry_pairs: list[int] = []
    successors: list[int] = []
    probabilities: list[float] = []
    for number, state in enumerate(model.states):
        if number in deadlocked:  # Storm adds a loop that the model does not have
            continue
        for name, action in zip(action_names(_choice_names(model, number)), state.actions, strict=True):
            for transition in action.transitions:
                entry_pairs.append(len(pair_states))
                successors.append(transition.column)
                probabilities.append(transition.value)
            pair_states.append(number)
            pair_actions.append(action_index.setdefault(name, len(action_index)))
    mdp = TabularMdp.from_entries(
        states,
        tuple(action_index),
        states[model.initial_states[0]],
        pair_states=np.array(pair_states, dtype=np.int64),
        pair_actions=np.array(pair_actions, dtype=np.int64),
        entry_pairs=np.array(entry_pairs, dtype=np.int64),
        successors=np.array(successors, dtype=np.int64),
        probabilities=np.array(probabilities),
    )
    names = {
        str(name): frozenset(states[number] for number in model.labeling.get_states(name))
        for name in model.labeling.get_labels()
    }
    return BuiltModel(mdp, names)


def storm_system(file: str | Path, constants: Mapping[str, Any] | None = None) -> StormSystem:
    """Returns the system of a model file."""
    path = _existing(file)
    with _readable(path):
        description, left_out = _described_model(path, constants or {})
        if path.suffix.lower() in PRISM_ENDINGS:
            return StormSystem(_ProgramEngine(description))
        model = description if path.suffix.lower() in DRN_ENDINGS else _built(description)
        return StormSystem(_SparseEngine(model, left_out))


def _existing(file: str | Path) -> Path:
    """Returns the path of a model file; refuses one that is not there, or of another kind."""
    path, known = Path(file), (*PRISM_ENDINGS, *JANI_ENDINGS, *DRN_ENDINGS)
    if not path.is_file():
        raise StorageError(f"there is no model file {path}")
    if path.suffix.lower() not in known:
        raise InvalidInputError(f"{path}: a model file ends in one of {', '.join(known)}")
    return path


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says which file Storm cannot read, and why."""
    try:
        yield
    except RuntimeError as error:  # Storm raises RuntimeError
        hint = ". Set each constant: --set NAME=VALUE" if "undefined constant" in str(error) else ""
        raise InvalidInputError(f"Storm cannot read {path}: {error}{hint}") from error


def _described_model(path: Path, constants: Mapping[str, Any]) -> tuple[Any, Collection[str]]:
    """Returns a PRISM program, a JANI model, or the model of a DRN file; and what its labels leave out."""
    stormpy = imported_stormpy()
    ending = path.suffix.lower()
    if ending in PRISM_ENDINGS:
        return _with_constants(stormpy.parse_prism_program(str(path)), constants), ()
    if ending in JANI_ENDINGS:
        model, _ = stormpy.parse_jani_model(str(path))
        description = _with_constants(model, constants)
        return description, _not_of_the_state(description)
    if constants:
        raise InvalidSettingError(f"{next(iter(constants))} is set, but a DRN file has no constants")
    return _read_drn(path), ()


def imported_stormpy() -> Any:
    """Returns the package stormpy; raises an error that says how to install it."""
    try:
        import stormpy
        import stormpy.simulator
    except ImportError as error:
        raise InvalidInputError(
            f"a Storm model needs the package stormpy ({error}); install it with: pip install 'axplore[storm]'"
        ) from error
    return stormpy


class StormSystem:
    """A simulated model as a system; see `systems`."""

    knows_here_only = True

    def __init__(self, engine: _ProgramEngine | _SparseEngine) -> None:
        self._engine = engine
        self._actions: dict[State, tuple[Action, ...]] = {}
        self._choices: dict[Action, int] = {}
        self.labels: dict[State, frozenset[str]] = {}
        """The labels that the model gives to each state met so far."""

    def reset(self) -> State:
        """Returns to the initial state."""
        self._engine.reset()
        return self._entered()

    def step(self, action: Action) -> State:
        """Plays one of the actions of the current state."""
        self._engine.step(self._choices[action])
        return self._entered()

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions of a state that was met."""
        return self._actions[state]

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the simulator a new random stream."""
        self._engine.reseed(int(seed.generate_state(1)[0]))

    def _entered(self) -> State:
        state = self._engine.state()
        if state not in self._actions:
            self._actions[state] = action_names(self._engine.choice_names())
            self.labels[state] = frozenset(self._engine.labels())
        # Per state: the same name may have another index elsewhere.
        self._choices = {name: index for index, name in enumerate(self._actions[state])}
        return state


def action_names(choices: Iterable[str]) -> tuple[str, ...]:
    """Returns distinct labels for the choices of a state from their names, which may be empty or equal."""
    names = list(choices)
    times = Counter(names)
    return tuple(name if name and times[name] == 1 else f"{name}#{index}" for index, name in enumerate(names))


class _ProgramEngine:
    """A PRISM program, whose states are generated one by one."""

    def __init__(self, program: Any) -> None:
        from stormpy.developer.storage import BitVector
        from stormpy.simulator import SimulatorActionMode, create_simulator

        _check_kind(program.model_type)
        self._by_name, self._by_index = SimulatorActionMode.GLOBAL_NAMES, SimulatorActionMode.INDEX_LEVEL
        self._simulator = create_simulator(program)
        self._report = self._simulator.restart()
        # Restoring a stored state is thousands of times faster than asking for the initial one.
        self._copy = BitVector
        self._initial = BitVector(self._simulator._get_current_state())
        self._landmark = self._common_successor()

    def reset(self) -> None:
        self._report = self._simulator.restart(self._initial)

    def step(self, choice: int) -> None:
        self._report = self._simulator.step(choice)

    def state(self) -> State:
        return _described(self._report[0])

    def choice_names(self) -> list[str]:
        self._simulator.set_action_mode(self._by_name)
        names = list(self._simulator.available_actions())
        self._simulator.set_action_mode(self._by_index)  # two choices may share a name
        return names

    def labels(self) -> Iterable[str]:
        return map(str, self._report[2])

    def reseed(self, seed: int) -> None:
        """Gives the simulator a new random stream whose first draw does not depend on earlier steps.

        Storm draws among the successors of a state in the order of their indices. A step assigns new indices, but
        restoring a stored state keeps those of the step before. So the simulator always comes from the same state.
        """
        if self._landmark is not None:
            here = self._copy(self._simulator._get_current_state())
            while self._after_one_step() != self._landmark:
                pass
            self._report = self._simulator.restart(here)
        self._simulator.set_seed(seed)

    def _common_successor(self) -> State | None:
        """Returns a frequent successor of the first action of the initial state; None if there is no action."""
        if not self._simulator.nr_available_actions():
            return None
        self._simulator.set_seed(0)  # the same state in every process
        met = Counter(self._after_one_step() for _ in range(STEPS_TO_LANDMARK))
        self.reset()
        return met.most_common(1)[0][0]

    def _after_one_step(self) -> State:
        self._simulator.restart(self._initial)
        return _described(self._simulator.step(0)[0])


class _SparseEngine:
    """A model whose states have all been built."""

    def __init__(self, model: Any, left_out: Collection[str] = ()) -> None:
        from stormpy.simulator import create_simulator

        _check_sparse(model)
        self._model, self._left_out = model, left_out
        self._simulator = create_simulator(model)
        self._number: int = self._simulator.restart()[0]

    def reset(self) -> None:
        self._number = self._simulator.restart()[0]

    def step(self, choice: int) -> None:
        self._number = self._simulator.step(choice)[0]

    def state(self) -> State:
        return _state_label(self._model, self._number, self._left_out)

    def choice_names(self) -> list[str]:
        return _choice_names(self._model, self._number)

    def labels(self) -> Iterable[str]:
        names: Iterable[str] = self._model.labeling.get_labels_of_state(self._number)
        return names

    def reseed(self, seed: int) -> None:
        self._simulator.set_seed(seed)


def _state_label(model: Any, number: int, left_out: Collection[str]) -> State:
    """Returns the label of a state of a model that was built."""
    if not model.has_state_valuations():
        return number
    return _described(model.state_valuations.to_json(number), left_out)


def _choice_names(model: Any, number: int) -> list[str]:
    """Returns the name of each choice of a state of a model that was built; none where it has no choices."""
    if "deadlock" in model.labeling.get_labels_of_state(number):  # Storm adds a loop that the model does not have
        return []
    rows = model.transition_matrix
    choices = range(rows.get_row_group_start(number), rows.get_row_group_end(number))
    if not model.has_choice_labeling():
        return [""] * len(choices)
    return ["+".join(sorted(model.choice_labeling.get_labels_of_choice(choice))) for choice in choices]


def _check_sparse(model: Any) -> None:
    """Refuses a model that was built and cannot be explored."""
    _check_kind(model.model_type)
    if len(model.initial_states) != 1:
        raise InvalidInputError(f"the model has {len(model.initial_states)} initial states; it must have one")


def _described(valuation: Any, left_out: Collection[str] = ()) -> str:
    """Returns the values of the variables, `ok=true, x=1`, in Storm's order."""
    values = json.loads(str(valuation))
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in values.items() if name not in left_out)


def _not_of_the_state(jani: Any) -> set[str]:
    """Returns names in JANI valuations that carry no information: transient variables, and single locations."""
    automata = list(jani.automata)
    variables = [*jani.global_variables, *(variable for automaton in automata for variable in automaton.variables)]
    lonely = {f"_loc_{automaton.name}" for automaton in automata if len(list(automaton.locations)) == 1}
    return lonely | {variable.name for variable in variables if variable.is_transient}


def _check_kind(kind: Any) -> None:
    if kind.name not in DISCRETE:
        raise InvalidInputError(f"the model is a {kind.name}; only {' and '.join(DISCRETE)} can be explored")


def _with_constants(description: Any, constants: Mapping[str, Any]) -> Any:
    """Returns the PRISM program or JANI model with its undefined constants set."""
    values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in constants.items()}
    definitions = ",".join(f"{name}={value}" for name, value in values.items())
    described, _ = imported_stormpy().instantiate_constants(description, definitions)
    return described


def _plainly_built(description: Any) -> Any:
    """Builds a model without anything but its transitions."""
    stormpy = imported_stormpy()
    return stormpy.build_model[float](description, options=stormpy.BuilderOptions())


def _built(description: Any) -> Any:
    stormpy = imported_stormpy()
    options = stormpy.BuilderOptions()
    options.set_build_all_labels(True)
    options.set_build_choice_labels(True)
    options.set_build_state_valuations(True)
    return stormpy.build_model[float](description, options=options)


def _read_drn(path: Path) -> Any:
    stormpy = imported_stormpy()
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    return stormpy.build_model_from_drn[float](str(path), options=options)
