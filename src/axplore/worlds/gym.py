"""Gymnasium environments as systems to explore.

- A limit on the length of episodes is not a property of states, so `TimeLimit` is removed. An environment that still
  ends an episode without `terminated` is refused, unless `max_episode_steps` says when: then it is reset before that.
- `terminated` must be a property of the state: a state that is entered both as terminal and not is refused. With
  `mark_terminal`, states entered as terminal are labelled `("terminal", label)`, which keeps the two apart.
- The environment is seeded once, at its first reset. After that every order gives its noise a new random
  stream. The start is fixed by itself, or `pinned`: then each reset uses the same seed, and the noise returns to its
  own stream right after, because seeding alone would make all episodes the same.

Of a MiniGrid environment, the label is its whole state, of which the agent sees only a part: (column, row, direction,
carried object, other objects, layout), where

- a carried object is (kind, colour), a box (kind, colour, what it holds), and nothing is None;
- other objects, row by row: (column, row, kind, colour), a door (column, row, "door", colour, "open", "closed" or
  "locked");
- walls, goals, lava and the mission, which do not change before the next reset, are hashed to eight hexadecimal
  digits, so that random layouts have different labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import Autoreset, OrderEnforcing, PassiveEnvChecker, TimeLimit

from axplore.errors import InvalidInputError, InvalidSettingError, UnknownNameError, WorldError
from axplore.records.findings import FaultKind
from axplore.types import Action, State
from axplore.worlds.child_process import isolated
from axplore.worlds.keys import Key
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.supervision import MAX_FAULTS, START_CHECKS, OnInvalid
from axplore.worlds.systems import SystemFaultError

Environment: TypeAlias = gymnasium.Env[Any, Any]
GymStart: TypeAlias = Literal["fixed", "pinned", "virtual"]

WITHOUT_EFFECT: Final = (TimeLimit, OrderEnforcing, PassiveEnvChecker)
"""Wrappers that only limit the length of episodes, or only check."""

NO_LIMIT: Final = -1
"""The argument that tells `gymnasium.make` not to add a `TimeLimit`."""


def gym_world(
    environment: str | Environment | Callable[[], Environment],
    seed: int = 0,
    *,
    key: Key | None = None,
    start: GymStart = "fixed",
    pin: int = 0,
    mark_terminal: bool = False,
    action_masks: bool = True,
    max_episode_steps: int | None = None,
    step_timeout: float | None = None,
    max_faults: int = MAX_FAULTS,
    on_invalid: OnInvalid = "error",
    start_checks: int = START_CHECKS,
    **parameters: Any,
) -> SteppedWorld:
    """Returns a Gymnasium environment as a world.

    Args:
        environment: an identifier as `gymnasium.make` takes it, an environment, or a function that makes one. An
            environment that is passed itself is used, without its `TimeLimit`, and cannot be restarted after a fault.
        seed: the seed of the noise.
        key: turns an observation into the label of its state; by default, chosen by the observation space.
        start: `fixed`: resets must land in one state by themselves. `pinned`: every reset takes the seed `pin`.
            `virtual`: a state precedes the random start, and its only action leads there.
        pin: the seed of every reset if the start is pinned.
        mark_terminal: whether to label states entered as terminal `("terminal", label)`.
        action_masks: whether to play only the actions that `info["action_mask"]` allows, where there is one.
        max_episode_steps: the step at which the environment ends an episode by itself; it is reset before that.
        step_timeout: seconds after which a step has failed. The environment then runs in a process of its own, which
            needs an identifier or a factory.
        max_faults, on_invalid: see `SteppedWorld`.
        start_checks: the number of resets with which the start is checked.
        parameters: parameters of the environment, if it is given by its identifier.
    """
    if start not in ("fixed", "pinned", "virtual"):
        raise InvalidSettingError(f"start is {start!r}; it must be 'fixed', 'pinned' or 'virtual'")
    adapt = partial(
        GymSystem,
        key=key,
        pin=pin if start == "pinned" else None,
        mark_terminal=mark_terminal,
        action_masks=action_masks,
    )
    system: Any
    if isinstance(environment, gymnasium.Env):
        if parameters or step_timeout is not None:
            refused = next(iter(parameters), "step_timeout")
            raise InvalidSettingError(f"{refused} needs an environment given by its identifier, or by a factory")
        system = adapt(environment)
    else:
        make = partial(make_environment, environment, parameters) if isinstance(environment, str) else environment
        if parameters and not isinstance(environment, str):
            raise InvalidSettingError(
                f"{next(iter(parameters))} applies only to an environment given by its identifier"
            )
        system = partial(_made, make, adapt)
        if step_timeout is not None:
            system = isolated(system, step_timeout)
    return SteppedWorld(
        system,
        seed,
        start="virtual" if start == "virtual" else "fixed",
        max_episode_steps=max_episode_steps,
        max_faults=max_faults,
        on_invalid=on_invalid,
        start_checks=start_checks,
    )


def make_environment(identifier: str, parameters: Mapping[str, Any]) -> Environment:
    """Makes an environment by its identifier; imports MiniGrid if it is needed."""
    import_minigrid_if_needed(identifier)
    try:
        return gymnasium.make(identifier, max_episode_steps=NO_LIMIT, disable_env_checker=True, **parameters)
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        raise UnknownNameError(f"Gymnasium has no environment {identifier!r}: {error}") from error
    except TypeError as error:
        raise InvalidSettingError(f"{identifier} cannot be made with {dict(parameters)}: {error}") from error


def without_time_limit(environment: Environment) -> Environment:
    """Removes `TimeLimit` from the chain of wrappers, in place, and returns the environment."""
    while isinstance(environment, WITHOUT_EFFECT):
        environment = environment.env
    outer = environment
    while isinstance(outer, gymnasium.Wrapper):
        if isinstance(outer, Autoreset):
            raise InvalidInputError("the environment resets itself (Autoreset), so its resets cannot be counted")
        if isinstance(outer.env, TimeLimit):
            outer.env = outer.env.env
        else:
            outer = outer.env
    return environment


class GymSystem:
    """An environment as a system; see `systems`."""

    knows_here_only = True

    def __init__(
        self,
        environment: Environment,
        *,
        key: Key | None = None,
        pin: int | None = None,
        mark_terminal: bool = False,
        action_masks: bool = True,
    ) -> None:
        self._environment = without_time_limit(environment)
        space = environment.action_space
        if not isinstance(space, spaces.Discrete):
            raise InvalidInputError(
                f"the actions are {space}; they must be Discrete: wrap the environment so that its actions are numbers"
            )
        self._all_actions: tuple[int, ...] = tuple(range(int(space.start), int(space.start + space.n)))
        self._key = key or minigrid_key(self._environment) or key_of(environment.observation_space)
        self._step = self._environment.step
        self._pin = pin
        self._mark_terminal, self._action_masks = mark_terminal, action_masks
        self._first_seed: int | None = 0
        self._noise = np.random.default_rng(0)
        self._is_terminal: dict[State, bool] = {}
        self._masks: dict[State, bytes] = {}
        self._steps_since_reset = 0

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise a new random stream."""
        self._noise = np.random.default_rng(seed)
        if self._first_seed is not None:  # not reset yet
            self._first_seed = int(seed.generate_state(1)[0])
        else:
            self._environment.unwrapped.np_random = self._noise

    def reset(self) -> State:
        """Resets the environment."""
        self._steps_since_reset = 0
        observation, info = self._environment.reset(seed=self._first_seed if self._pin is None else self._pin)
        self._first_seed = None
        if self._pin is not None:
            self._environment.unwrapped.np_random = self._noise
        return self._entered(self._key(observation), False, info)

    def step(self, action: Action) -> State:
        """Steps the environment."""
        observation, _, terminated, truncated, info = self._step(action)
        self._steps_since_reset += 1
        if truncated and not terminated:
            raise WorldError(
                f"the environment ended an episode by itself after {self._steps_since_reset} steps. Such a limit is "
                f"not a property of its states: remove it, or let the world reset before it, max_episode_steps="
                f"{self._steps_since_reset}"
            )
        return self._entered(self._key(observation), terminated, info)

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions of the state just entered."""
        if self._is_terminal[state]:
            return ()
        mask = self._masks.get(state)
        if mask is None:
            return self._all_actions
        return tuple(action for action, allowed in zip(self._all_actions, mask, strict=True) if allowed)

    def render(self) -> Any:
        """Returns the environment's picture of its current state; None if it was not made with a `render_mode`."""
        return self._environment.render()

    def close(self) -> None:
        """Closes the environment."""
        self._environment.close()

    def _entered(self, state: State, terminated: bool, info: Mapping[str, Any]) -> State:
        """Returns the label of the state just entered; refuses one whose properties have changed."""
        if terminated and self._mark_terminal:
            state = ("terminal", state)
        try:
            was_terminal = self._is_terminal.setdefault(state, terminated)
        except TypeError:
            raise SystemFaultError(FaultKind.INVALID, f"the label {state!r} cannot be hashed; change the key") from None
        if was_terminal != terminated:
            raise WorldError(
                f"state {state!r} was entered both as terminal and as not terminal: let the key tell the "
                "two apart, or set mark_terminal=True"
            )
        if self._action_masks and not terminated and "action_mask" in info:
            mask = np.asarray(info["action_mask"], dtype=bool).tobytes()
            if self._masks.setdefault(state, mask) != mask:
                raise WorldError(
                    f"state {state!r} has different action masks at different times: let the key tell them apart, or "
                    "set action_masks=False"
                )
        return state


def _made(make: Callable[[], Environment], adapt: Callable[[Environment], GymSystem]) -> GymSystem:
    return adapt(make())


LARGEST_BOX: Final = 64
"""The largest box that has a default key. A larger one, such as an image, hardly ever repeats."""


def key_of(space: spaces.Space[Any]) -> Key:
    """Returns the key for observations of a space; refuses a space that has none."""
    match space:
        case spaces.Discrete():
            return int
        case spaces.Text():
            return str
        case spaces.MultiDiscrete() | spaces.MultiBinary() | spaces.Box() if _is_small(space):
            return _flattened
        case spaces.Tuple():
            keys = tuple(map(key_of, space.spaces))
            return lambda observation: tuple(key(part) for key, part in zip(keys, observation, strict=True))
        case spaces.Sequence():
            each = key_of(space.feature_space)
            return lambda observation: tuple(map(each, observation))
        case spaces.Dict():
            named = tuple((name, key_of(space.spaces[name])) for name in sorted(space.spaces))
            return lambda observation: tuple((name, key(observation[name])) for name, key in named)
    raise InvalidInputError(
        f"there is no label for observations of {space}; give a function key=... that turns an observation into "
        "numbers, text or tuples of these; on the command line --key MODULE:FUNCTION, or --set round=1 for numbers"
    )


def rounded_observation(observation: Any, digits: int) -> State:
    """Returns the numbers of an observation, rounded to a number of decimal places; -0.0 is 0.0."""
    numbers = np.asarray(observation, dtype=np.float64).ravel()
    return tuple((np.round(numbers, digits) + 0.0).tolist())


def _is_small(space: spaces.Space[Any]) -> bool:
    return not isinstance(space, spaces.Box) or int(np.prod(space.shape)) <= LARGEST_BOX


def _flattened(observation: Any) -> State:
    return tuple(np.asarray(observation).ravel().tolist())


DIRECTIONS: Final = ("right", "down", "left", "up")
PREFIXES: Final = ("MiniGrid-", "BabyAI-")
STATIC: Final = frozenset({"wall", "goal", "lava", "floor"})


def import_minigrid_if_needed(identifier: str) -> None:
    """Imports MiniGrid, which registers its environments, if the identifier is one of them."""
    if not identifier.startswith(PREFIXES):
        return
    try:
        import minigrid  # noqa: F401
    except ImportError:
        raise InvalidInputError(f"{identifier} needs MiniGrid: pip install 'axplore[minigrid]'") from None


def minigrid_key(environment: Any) -> Any | None:
    """Removes the step limit of a MiniGrid environment and returns its key; None for any other environment."""
    package = sys.modules.get("minigrid.minigrid_env")
    grid = environment.unwrapped
    if package is None or not isinstance(grid, package.MiniGridEnv):
        return None
    grid.max_steps = sys.maxsize
    if environment is grid:
        grid.gen_obs = dict  # rendering the agent's view takes most of the time of a step, and the key does not need it
    return lambda _: full_state(grid)


def full_state(grid: Any) -> tuple[State, ...]:
    """Returns the whole state of a MiniGrid environment as a label."""
    moving: list[State] = []
    layout = [grid.mission, f"{grid.width}x{grid.height}"]
    for index, thing in enumerate(grid.grid.grid):
        if thing is None:
            continue
        row, column = divmod(index, grid.grid.width)
        if thing.type in STATIC:
            layout.append(f"{column} {row} {thing.type} {thing.color}")
        else:
            moving.append((column, row, *_object(thing)))
    column, row = map(int, grid.agent_pos)
    carried = None if grid.carrying is None else _object(grid.carrying)
    digest = blake2b("\n".join(layout).encode(), digest_size=4).hexdigest()
    return (column, row, DIRECTIONS[grid.agent_dir], carried, tuple(moving), digest)


def _object(thing: Any) -> tuple[State, ...]:
    match thing.type:
        case "door":
            return ("door", thing.color, "open" if thing.is_open else "locked" if thing.is_locked else "closed")
        case "box":
            return ("box", thing.color, None if thing.contains is None else _object(thing.contains))
        case kind:
            return (kind, thing.color)
