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
from axplore.assumptions import Declared, assumptions_from
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.explorers.base import Explorer, ForecastProbe, run
from axplore.explorers.registry import DEFAULT_EXPLORER, EXPLORERS, explorer_names, factory_of
from axplore.exploring import world_from
from axplore.mdp import TabularMdp
from axplore.records.run import StopReason
from axplore.request import WorldLike
from axplore.target import STATES_BOUND, Objective, Target
from axplore.types import Action, State
from axplore.worlds.catalogue import function_named
from axplore.worlds.contract import Answer, Order, Visit, World
from axplore.worlds.simulated import SimulatedWorld

PROBE_STEPS: Final = 100_000
LEAST_TRIAL: Final = 10_000
"""Trials of assumptions take at most as many steps as the probe did, or this many if it took fewer."""

TIMED_SECONDS: Final = 0.1
"""Orders grow until one takes this many seconds; it gives the speed of the world."""

ASSUMED_STATES: Final = 10
"""The assumed bound on the number of states, as a multiple of those seen; only its logarithm matters."""


@dataclass(frozen=True)
class ExplorerForecast:
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

    estimates: tuple[ExplorerForecast, ...]
    probe_steps: int
    states: int
    ended: bool
    steps_per_second: float

    def __getitem__(self, explorer: str) -> ExplorerForecast:
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
    assume: Sequence[Declared] = (),
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
        assume: what might be assumed, as for `explore`. For each of these, the certified explorer is tried under it on
            the model that the probe has learnt.
    """
    if isinstance(assume, str):
        raise InvalidSettingError(
            f"assume is {assume!r}; it must be a sequence of assumptions, each of them tried alone"
        )
    target = Target(radius=radius, epsilon=epsilon, delta=delta)
    unknown = [name for name in explorers if name not in explorer_names()]
    if unknown:
        raise UnknownNameError.of("explorer", unknown[0], explorer_names())
    system, _ = world_from(world, seed, world_parameters)
    probe = _probed(system, target, probe_steps)
    bound = states_bound if states_bound is not None else ASSUMED_STATES * len(system.states)
    assumed = "" if states_bound is not None else f"; {bound} states assumed"
    estimates = tuple(_estimate(name, target, probe, bound, assumed) for name in explorers)
    estimates += tuple(_under(assumption, target, probe, system, seed) for assumption in assume)
    return Forecast(estimates, probe.steps, probe.model.n_known, probe.ended, probe.steps_per_second)


def _proving(target: Target) -> Explorer[Any]:
    """Returns the explorer whose region forecasts are made from."""
    explorer: Explorer[Any] = factory_of(DEFAULT_EXPLORER)(target, None)
    return explorer


def _probed(world: World, target: Target, probe_steps: int) -> ForecastProbe:
    """Proves AX_L and then AX*, as far as the steps allow; both begin alike."""
    explorer = _proving(target).retarget(target, Objective.WITHIN_RADIUS)
    objective = Objective.WITHIN_RADIUS
    steps_before, began = world.steps, time.perf_counter()
    state = explorer.start(world)
    within_steps, within_seconds = None, None
    while world.steps - steps_before < probe_steps:
        state = explorer.advance(state, world)
        if state.stop is None:
            continue
        if objective is Objective.OPTIMAL:
            break
        within_steps, within_seconds = world.steps - steps_before, time.perf_counter() - began
        objective = Objective.OPTIMAL
        explorer, state = explorer.retarget(target, objective), replace(state, stop=None)
    steps, seconds = world.steps - steps_before, time.perf_counter() - began
    model = explorer.model(state)
    assert model is not None
    return ForecastProbe(
        counts=state.counts,
        model=model,
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


def _estimate(name: str, target: Target, probe: ForecastProbe, states_bound: int, assumed: str) -> ExplorerForecast:
    outlook = factory_of(name)(target, states_bound).forecast(probe)
    if outlook is None:
        return ExplorerForecast(name, math.inf, math.inf, "this explorer makes no forecast")
    note = outlook.note + (assumed if outlook.needs_states_bound else "")
    if not probe.ended and not outlook.counts_the_probe:
        note = f"at least, of the {probe.model.n_known} states that the probe found; {note}"
    seconds = probe.seconds + outlook.steps / probe.steps_per_second if outlook.seconds is None else outlook.seconds
    return ExplorerForecast(name, outlook.steps, seconds, note)


def _under(assumed: Declared, target: Target, probe: ForecastProbe, world: World, seed: int) -> ExplorerForecast:
    """Returns what the certified explorer takes under an assumption, in a model with the frequencies of the probe."""
    assumptions = assumptions_from(assumed, function_named)
    name = f"{DEFAULT_EXPLORER}, if {assumptions}"
    if (probe.counts.visits == 0).any():
        return ExplorerForecast(name, math.inf, math.inf, "the probe was too short to tell; give it more steps")
    began = time.perf_counter()
    explorer = _proving(target).assuming(assumptions)
    tried = run(explorer, SimulatedWorld(_learnt_model(probe, world), seed), max_steps=max(probe.steps, LEAST_TRIAL))
    seconds = time.perf_counter() - began + tried.steps / probe.steps_per_second
    if tried.stop is StopReason.ASSUMPTION_CONTRADICTED:
        return ExplorerForecast(name, math.inf, math.inf, "what the probe met contradicts it")
    if tried.stop is not StopReason.PROVEN:
        return ExplorerForecast(name, math.inf, math.inf, f"more than the {tried.steps:,} steps of a trial")
    return ExplorerForecast(name, tried.steps, seconds, "a trial on what the probe has learnt")


def _learnt_model(probe: ForecastProbe, world: World) -> TabularMdp:
    """Returns the model with the frequencies of the probe; states that it did not admit are terminal."""
    counts, states = probe.counts, world.states
    rows: dict[State, dict[Action, dict[State, float]]] = {states[number]: {} for number in counts.successors.tolist()}
    for index, number in enumerate(counts.states.tolist()):
        first = int(counts.state_pairs[index])
        rows[states[number]] = {
            action: {
                states[int(counts.successors[entry])]: float(counts.counts[entry] / counts.visits[pair])
                for entry in range(counts.row_offsets[pair], counts.row_offsets[pair + 1])
            }
            for pair, action in enumerate(world.actions_of(number), start=first)
        }
    return TabularMdp.from_rows(rows, states[0])
