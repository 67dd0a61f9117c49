"""Models of the Storm model checker as systems: PRISM and JANI programs, and DRN files.

stormpy's simulator takes the steps, so axplore sees no more of the model than of any other system. A PRISM program is
simulated directly, however large; JANI and DRN models are built first.

- The label of a state gives the values of its variables, `ok=true, x=1`, or its index where a file has none.
- The label of an action is the name of its command. An unnamed choice is `#2`, by its index among the choices of the
  state, and one that shares its name with another choice of the state is `name#2`.
- A state without choices is terminal. A state with only a loop to itself is not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidInputError, InvalidSettingError, StorageError
from axplore.types import Action, State
from axplore.worlds.keys import Key
from axplore.worlds.stepped import Start, SteppedWorld
from axplore.worlds.supervision import MAX_FAULTS

PRISM_ENDINGS: Final = (".nm", ".pm", ".prism")
JANI_ENDINGS: Final = (".jani",)
DRN_ENDINGS: Final = (".drn",)
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
    **constants: Any,
) -> SteppedWorld:
    """Returns a model file as a world.

    Args:
        file: a PRISM program (`.nm`, `.pm`, `.prism`), a JANI model (`.jani`) or a DRN file (`.drn`).
        seed: the seed of the noise.
        key, start, max_faults: see `SteppedWorld`; what a key is given is the text of the values, `ok=true, x=1`.
        constants: values of the undefined constants of a PRISM or JANI model.
    """
    return SteppedWorld(partial(storm_system, file, constants), seed, key=key, start=start, max_faults=max_faults)


def storm_system(file: str | Path, constants: Mapping[str, Any] | None = None) -> StormSystem:
    """Returns the system of a model file."""
    path = Path(file)
    if not path.is_file():
        raise StorageError(f"there is no model file {path}")
    stormpy = imported_stormpy()
    ending = path.suffix.lower()
    try:
        if ending in PRISM_ENDINGS:
            program = _with_constants(stormpy.parse_prism_program(str(path)), constants or {})
            return StormSystem(_ProgramEngine(program))
        if ending in JANI_ENDINGS:
            model, _ = stormpy.parse_jani_model(str(path))
            description = _with_constants(model, constants or {})
            return StormSystem(_SparseEngine(_built(description), _not_of_the_state(description)))
        if ending in DRN_ENDINGS:
            if constants:
                raise InvalidSettingError(f"{next(iter(constants))} is set, but a DRN file has no constants")
            return StormSystem(_SparseEngine(_read_drn(path)))
    except RuntimeError as error:  # Storm raises RuntimeError
        hint = ". Set each constant: --set NAME=VALUE" if "undefined constant" in str(error) else ""
        raise InvalidInputError(f"Storm cannot read {path}: {error}{hint}") from error
    known = ", ".join((*PRISM_ENDINGS, *JANI_ENDINGS, *DRN_ENDINGS))
    raise InvalidInputError(f"{path}: a model file ends in one of {known}")


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

        _check_kind(model.model_type)
        if len(model.initial_states) != 1:
            raise InvalidInputError(f"the model has {len(model.initial_states)} initial states; it must have one")
        self._model, self._left_out = model, left_out
        self._simulator = create_simulator(model)
        self._number: int = self._simulator.restart()[0]

    def reset(self) -> None:
        self._number = self._simulator.restart()[0]

    def step(self, choice: int) -> None:
        self._number = self._simulator.step(choice)[0]

    def state(self) -> State:
        if not self._model.has_state_valuations():
            return self._number
        return _described(self._model.state_valuations.to_json(self._number), self._left_out)

    def choice_names(self) -> list[str]:
        if "deadlock" in self.labels():  # Storm adds a loop that the model does not have
            return []
        indices = range(self._simulator.nr_available_actions())
        if not self._model.has_choice_labeling():
            return [""] * len(indices)
        index, labelling = self._model.get_choice_index, self._model.choice_labeling
        return ["+".join(sorted(labelling.get_labels_of_choice(index(self._number, choice)))) for choice in indices]

    def labels(self) -> Iterable[str]:
        names: Iterable[str] = self._model.labeling.get_labels_of_state(self._number)
        return names

    def reseed(self, seed: int) -> None:
        self._simulator.set_seed(seed)


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
