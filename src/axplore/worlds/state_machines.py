"""State machines that exist already: those of python-statemachine and transitions, and Hypothesis's rules.

A machine is made anew for every RESET, so it is given by its class, or by a function that makes it. Its events or rules
are the actions, and its state is the label, unless a key makes one of the machine: where a machine has variables beside
its state that matter, the key must name them.

- An event that a guard refuses leaves the machine where it is; that is an outcome like any other.
- The arguments of a rule of Hypothesis are drawn from its strategies, afresh every time, as noise. A rule or an
  invariant that fails ends in a state `failed: RULE: ERROR`, which only resets: the atlas says how to get there.
"""

from __future__ import annotations

import logging
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidInputError, InvalidSettingError, WorldError
from axplore.labels import shortened
from axplore.types import Action, State
from axplore.worlds.keys import Key, label_by
from axplore.worlds.systems import is_worth_a_line

_logger = logging.getLogger("axplore")

EXTRA: Final = "pip install 'axplore[machines]'"


class MachineSystem(ABC):
    """A state machine as a system; see `systems`.

    Args:
        make: makes a machine in its initial state.
        key: makes the label of the machine, or of its model in `transitions`; by default, that is its state.
    """

    knows_here_only = True

    def __init__(self, make: Callable[[], Any], key: Key | None = None) -> None:
        self._make, self._key = make, key
        self._machine: Any = None

    def reset(self) -> State:
        """Makes another machine."""
        self.close()
        self._machine = self._make()
        return self._label()

    def step(self, action: Action) -> State:
        """Sends an event to the machine."""
        self._send(action)
        return self._label()

    @abstractmethod
    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the events that the state just entered knows."""

    def close(self) -> None:  # noqa: B027 (most machines need no end)
        """Ends the machine."""

    def _label(self) -> State:
        return self._state() if self._key is None else label_by(self._key, self._subject())

    def _subject(self) -> Any:
        """What a key is given."""
        return self._machine

    @abstractmethod
    def _send(self, event: Action) -> None: ...

    @abstractmethod
    def _state(self) -> State:
        """The label without a key."""


class StatemachineSystem(MachineSystem):
    """A machine of python-statemachine, whose states are called by their identifiers."""

    def actions(self, state: State) -> tuple[Action, ...]:  # noqa: ARG002
        """Returns the events of the transitions from the active states, whatever their guards say."""
        return tuple(dict.fromkeys(str(event) for event in self._machine.allowed_events))

    def _send(self, event: Action) -> None:
        from statemachine.exceptions import TransitionNotAllowed

        try:
            self._machine.send(event)
        except TransitionNotAllowed:  # a guard refused it
            return

    def _state(self) -> State:
        active = tuple(state.id for state in self._machine.configuration)
        return active[0] if len(active) == 1 else active


class TransitionsSystem(MachineSystem):
    """A machine of transitions, or a model that has one; its triggers are the actions, without those named `to_...`."""

    def reset(self) -> State:
        """Makes another machine."""
        made = self._make()
        self._machine, self._model = _machine_and_model(made)
        jumps = getattr(self._machine, "get_nested_state_names", lambda: list(self._machine.states))()
        self._jumps = {f"to_{name}" for name in jumps} if self._machine.auto_transitions else set()
        return self._label()

    def actions(self, state: State) -> tuple[Action, ...]:  # noqa: ARG002
        """Returns the triggers of the current state."""
        names = self._machine.get_triggers(*_listed(getattr(self._model, self._machine.model_attribute)))
        return tuple(name for name in dict.fromkeys(names) if name not in self._jumps)

    def _send(self, event: Action) -> None:
        self._machine.events[event].trigger(self._model)

    def _subject(self) -> Any:
        return self._model

    def _state(self) -> State:
        active = tuple(
            state.name if isinstance(state, Enum) else state
            for state in _listed(getattr(self._model, self._machine.model_attribute))
        )
        return active[0] if len(active) == 1 else active


def _listed(state: Any) -> list[Any]:
    return list(state) if isinstance(state, list | tuple) else [state]


def _machine_and_model(made: Any) -> tuple[Any, Any]:
    """Returns the machine of transitions that was made, or that a model has, and its model."""
    from transitions import Machine

    if isinstance(made, Machine):
        if len(made.models) != 1:
            raise InvalidInputError(
                f"the machine has {len(made.models)} models; give a function that makes one with a single model"
            )
        return made, made.models[0]
    for value in vars(made).values():
        if isinstance(value, Machine) and any(model is made for model in value.models):
            return value, made
    raise InvalidInputError(f"{shortened(made)} is neither a Machine of transitions nor the model of one")


class HypothesisSystem(MachineSystem):
    """A RuleBasedStateMachine of Hypothesis, whose rules are the actions.

    The rules of `@initialize` are run at every RESET, in the order of their names. A rule that calls `assume(False)`,
    or whose strategies have nothing to draw, leaves the machine where it is.
    """

    def __init__(self, make: Callable[[], Any], key: Key | None = None) -> None:
        super().__init__(make, key)
        self._random = random.Random(0)
        self._failure: State | None = None
        self._n_failures = 0

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the strategies another random stream."""
        self._random = random.Random(int(seed.generate_state(1)[0]))

    def reset(self) -> State:
        """Makes another machine and initializes it."""
        self.close()
        self._failure = None
        self._machine = self._make()
        self._guarded("the start", self._check_invariants)
        for rule in sorted(self._machine.setup_state().initializers, key=_name):
            if self._failure is None:
                self._run(rule)
        self._machine._initialize_rules_to_run = []
        return self._label()

    def actions(self, state: State) -> tuple[Action, ...]:  # noqa: ARG002
        """Returns the rules whose preconditions hold and whose bundles have something."""
        if self._failure is not None:
            return ()
        return tuple(_name(rule) for rule in self._machine.rules if self._is_offered(rule))

    def _is_offered(self, rule: Any) -> bool:
        has_values = all(self._machine.bundle(bundle.name) for bundle in rule.bundles)
        return has_values and all(holds(self._machine) for holds in rule.preconditions)

    def close(self) -> None:
        """Tears the machine down."""
        if self._machine is not None:
            self._machine.teardown()
            self._machine = None

    def _send(self, event: Action) -> None:
        self._run(next(rule for rule in self._machine.rules if _name(rule) == event))

    def _label(self) -> State:
        return super()._label() if self._failure is None else self._failure

    def _state(self) -> State:
        if not hasattr(self._machine, "state"):
            raise WorldError(
                f"{type(self._machine).__name__} has no attribute `state` to label its states by: give a key, a "
                "function of the machine: --key MODULE:FUNCTION, or key=..."
            )
        state: State = self._machine.state
        return state

    def _run(self, rule: Any) -> None:
        """Runs a rule with arguments drawn from its strategies, as Hypothesis does."""
        from hypothesis.control import BuildContext
        from hypothesis.errors import StopTest, UnsatisfiedAssumption
        from hypothesis.internal.conjecture.data import ConjectureData
        from hypothesis.stateful import MultipleResults

        data = ConjectureData(random=random.Random(self._random.getrandbits(64)))
        data.hypothesis_runner = self._machine
        with BuildContext(data, is_final=False, wrapped_test=self._make):
            try:
                drawn = {name: data.draw(strategy) for name, strategy in rule.arguments_strategies.items()}
            except (StopTest, UnsatisfiedAssumption):
                return
            arguments = {name: self._looked_up(value) for name, value in drawn.items()}
            try:
                result = self._guarded(_name(rule), partial(rule.function, self._machine, **arguments))
            except (StopTest, UnsatisfiedAssumption):
                return
            if self._failure is None:
                results = result.values if isinstance(result, MultipleResults) else [result]
                self._machine._add_results_to_targets(rule.targets, results)
                self._guarded(_name(rule), self._check_invariants)

    def _looked_up(self, value: Any) -> Any:
        """Returns what a reference to a bundle stands for."""
        from hypothesis.stateful import VarReference

        if isinstance(value, VarReference):
            return self._machine.names_to_values[value.name]
        if isinstance(value, list) and value and all(isinstance(item, VarReference) for item in value):
            return [self._machine.names_to_values[item.name] for item in value]
        return value

    def _check_invariants(self) -> None:
        for invariant in self._machine.invariants:
            if all(holds(self._machine) for holds in invariant.preconditions):
                invariant.function(self._machine)

    def _guarded(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs a part of the machine; what it raises becomes a state of its own."""
        from hypothesis.errors import HypothesisException

        try:
            return run()
        except HypothesisException:
            raise
        except Exception as error:
            self._failure = f"failed: {name}: {type(error).__name__}"
            self._n_failures += 1
            if is_worth_a_line(self._n_failures):
                _logger.warning("%s (%s)", self._failure, shortened(str(error)))
            return None


def _name(rule: Any) -> str:
    name: str = rule.function.__name__
    return name


KINDS: Final[tuple[tuple[str, str, type[MachineSystem]], ...]] = (
    ("hypothesis.stateful", "RuleBasedStateMachine", HypothesisSystem),
    ("statemachine", "StateChart", StatemachineSystem),
    ("statemachine", "StateMachine", StatemachineSystem),
    ("transitions", "Machine", TransitionsSystem),
)
"""The module and the name of each kind of machine, and what adapts it."""


def adapter_of(thing: object) -> type[MachineSystem] | None:
    """Returns what adapts a state machine, or the model of one; None for anything else."""
    for module, name, adapter in KINDS:
        kind = getattr(sys.modules.get(module), name, None)  # a machine can only exist if its package was imported
        if kind is not None and isinstance(thing, kind):
            return adapter
    machine = getattr(sys.modules.get("transitions"), "Machine", None)
    if machine is None:
        return None
    attributes = getattr(thing, "__dict__", {}).values()
    models = [model for value in attributes if isinstance(value, machine) for model in value.models]
    return TransitionsSystem if any(model is thing for model in models) else None


def check_installed(package: str) -> None:
    """Raises if a package whose machines are to be explored is not installed."""
    try:
        __import__(package)
    except ImportError:
        raise InvalidSettingError(f"such a machine needs the package {package}: {EXTRA}") from None
