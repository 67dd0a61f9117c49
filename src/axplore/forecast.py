"""Forecasts: estimates of the steps and the time that each explorer would take.

A probe explores with the certified explorer for a limited number of steps. It gives the states within the radius, where
their actions lead, and how fast the world steps. Each explorer makes its own forecast from these (`Explorer.forecast`),
or none.

Forecasts are about the states that the probe found. If it did not finish, there may be more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from axplore.arguments import checked, collection, optional, settings, whole
from axplore.errors import UnknownNameError
from axplore.explorers.base import STATES_BOUND, Probe
from axplore.explorers.certified import Certified
from axplore.explorers.registry import EXPLORERS, explorer_names, factory_of
from axplore.exploring import WorldLike, world_from
from axplore.target import Objective, Target
from axplore.worlds.contract import Answer, Order, Visit, World

PROBE_STEPS: Final = 100_000
TIMED_SECONDS: Final = 0.1
"""Orders grow until one takes this many seconds; it gives the speed of the world."""

ASSUMED_STATES: Final = 10
"""The assumed bound on the number of states, as a multiple of those seen; only its logarithm matters."""


@dataclass(frozen=True)
class Estimate:
    """The forecast of one explorer.

    Attributes:
        explorer: its name.
        steps: the estimated steps.
        seconds: the estimated time on this machine.
        note: what the estimate is based on.
    """

    explorer: str
    steps: float
    seconds: float
    note: str


@dataclass(frozen=True)
class Forecast:
    """The forecasts of all explorers.

    Attributes:
        estimates: one for each explorer.
        probe_steps: the steps that the probe took.
        states: the number of states it found within the radius.
        ended: whether the probe finished; if not, there may be more states, and everything may take longer.
        steps_per_second: the speed of the world in long orders.
    """

    estimates: tuple[Estimate, ...]
    probe_steps: int
    states: int
    ended: bool
    steps_per_second: float

    def __getitem__(self, explorer: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.explorer == explorer:
                return estimate
        raise KeyError(explorer)


@checked(
    states_bound=optional(STATES_BOUND),
    explorers=collection("names of explorers"),
    probe_steps=whole(least=1),
    seed=whole(),
    world_parameters=optional(settings),
)
def forecast(
    world: WorldLike,
    radius: float,
    epsilon: float = 0.1,
    delta: float = 0.1,
    *,
    explorers: Sequence[str] = tuple(EXPLORERS),
    states_bound: int | None = None,
    probe_steps: int = PROBE_STEPS,
    seed: int = 0,
    world_parameters: Mapping[str, Any] | None = None,
) -> Forecast:
    """Estimates steps and time of each explorer from a probe of at most about `probe_steps` steps.

    Args:
        world: as for `explore`. A `World` is stepped, and stays where the probe ends.
        radius: L.
        epsilon: ε.
        delta: δ.
        explorers: names of presets.
        states_bound: S, for the theory presets; by default, ten times the states seen.
        probe_steps: the step limit of the probe.
        seed: the seed of a simulated world.
        world_parameters: the parameters of a world given by its name.
    """
    target = Target(radius=radius, epsilon=epsilon, delta=delta)
    unknown = [name for name in explorers if name not in explorer_names()]
    if unknown:
        raise UnknownNameError.of("explorer", unknown[0], explorer_names())
    system, _ = world_from(world, seed, world_parameters)
    probe = _probed(system, target, probe_steps)
    bound = states_bound if states_bound is not None else ASSUMED_STATES * len(system.states)
    assumed = "" if states_bound is not None else f"; {bound} states assumed"
    estimates = tuple(_estimate(name, target, probe, bound, assumed) for name in explorers)
    return Forecast(estimates, probe.steps, probe.model.n_known, probe.ended, probe.steps_per_second)


def _probed(world: World, target: Target, probe_steps: int) -> Probe:
    """Proves AX_L and then AX*, as far as the steps allow; both begin alike."""
    explorer = Certified(target=target, objective=Objective.WITHIN_RADIUS)
    steps_before, began = world.steps, time.perf_counter()
    state = explorer.start(world)
    within_steps, within_seconds = None, None
    while world.steps - steps_before < probe_steps:
        state = explorer.advance(state, world)
        if state.stop is None:
            continue
        if explorer.objective is Objective.OPTIMAL:
            break
        within_steps, within_seconds = world.steps - steps_before, time.perf_counter() - began
        explorer, state = replace(explorer, objective=Objective.OPTIMAL), replace(state, stop=None)
    steps, seconds = world.steps - steps_before, time.perf_counter() - began
    return Probe(
        counts=state.counts.rows(),
        model=explorer.model(state),
        steps=steps,
        seconds=seconds,
        within_steps=within_steps,
        within_seconds=within_seconds,
        ended=state.stop is not None,
        steps_per_second=_speed(world, probe_steps),
    )


def _speed(world: World, most_steps: int) -> float:
    """Returns the steps per second in long orders: plays of the first action of the initial state, more each time."""
    if not world.actions_of(0):
        return math.inf
    stay = np.zeros(1, dtype=np.int64)
    world.carry_out([Visit(0, 0, 1, stay, max_journey=1000)])  # the first call may have to compile
    times = 100
    while True:
        order: Order = Visit(0, 0, times, stay, max_journey=1000)
        began = time.perf_counter()
        answers: list[Answer] = world.carry_out([order])
        seconds = max(time.perf_counter() - began, 1e-9)
        if seconds >= TIMED_SECONDS or 2 * answers[0].steps > most_steps:
            return answers[0].steps / seconds
        times *= 2


def _estimate(name: str, target: Target, probe: Probe, states_bound: int, assumed: str) -> Estimate:
    outlook = factory_of(name)(target, states_bound).forecast(probe)
    if outlook is None:
        return Estimate(name, math.inf, math.inf, "this explorer makes no forecast")
    note = outlook.note + (assumed if outlook.needs_states_bound else "")
    if not probe.ended and not outlook.counts_the_probe:
        note = f"at least, of the {probe.model.n_known} states that the probe found; {note}"
    seconds = probe.seconds + outlook.steps / probe.steps_per_second if outlook.seconds is None else outlook.seconds
    return Estimate(name, outlook.steps, seconds, note)
