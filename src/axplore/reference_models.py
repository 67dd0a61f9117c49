"""The models behind named worlds, where they are known: of built-in domains, and of Gymnasium's toy environments.

They are for comparing answers with the truth. No explorer sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from axplore.domains import DOMAINS, domain
from axplore.errors import UnknownNameError
from axplore.mdp import TabularMdp
from axplore.worlds.catalogue import read_parameters
from axplore.worlds.systems import BEGIN, VIRTUAL_START

TOYS: Final = "gymnasium.envs.toy_text"
"""Where the environments are that move as their table `P` says."""

NOT_IN_TABLE: Final = ("fickle_passenger",)
"""What makes such an environment move otherwise."""

OF_WORLD: Final = ("start", "pin", "action_masks", "max_faults", "step_timeout", "render_mode")
"""Parameters of a world that are not the environment's. Any other changes the labels or the steps."""


def known_model(name: str, parameters: Mapping[str, Any]) -> TabularMdp:
    """The model of a world by its name; refuses one that is not known."""
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
    """The model of a toy environment with its states, and where it starts at random, with the virtual start."""
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
