"""How many steps and how much time each explorer would take, estimated before it is started.

A probe explores with the certified explorer for a limited number of steps. It gives the states within the radius, where
their actions lead, and how fast the world steps. From these:

- certified: what the probe took, if it came to its end. Else what it took so far, and the draws that would prove the
  claims still open, if the frequencies stayed as they are.
- DisCo: the visits that its allocation asks for on the set of states found ([DisCo] Eq. (budget), or without
  constants). Pairs are visited in order of admission; each visit costs the way back, and what is met on the way counts.
- UcbExplore: λ episodes for each state found, each as long as the way there and a RESET.

All of it speaks of the states that the probe found. Where it did not come to its end there may be more.
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
from axplore.explorers.base import STATES_BOUND, action_bound
from axplore.explorers.certified import Certified, CertifiedState
from axplore.explorers.disco import DisCo, spreads_of
from axplore.explorers.disco_rules import Spreads
from axplore.explorers.registry import EXPLORERS, explorer_names, factory_of
from axplore.explorers.ucb_explore import UcbExplore
from axplore.explorers.ucb_rules import Problem
from axplore.explorers.ucb_staged import StagedUcbExplore
from axplore.exploring import WorldLike, world_from
from axplore.proofs.bounds import IntervalModel, empirical_path
from axplore.proofs.claims import Claim, NearOptimal, Reachable, TooFar, cheapest_draws
from axplore.proofs.sensitivity import expected_visits
from axplore.proofs.travel import travel_per_draw
from axplore.target import Objective, Target
from axplore.types import RESET_PAIR, FloatArray
from axplore.worlds.contract import Answer, Order, Visit, World

PROBE_STEPS: Final = 100_000
TIMED_SECONDS: Final = 0.1
"""Orders grow until one takes so long; the speed of the world is that of the last."""

ASSUMED_STATES: Final = 10
"""Without a bound on the number of states, so many times those seen are assumed; only the logarithm enters."""


@dataclass(frozen=True)
class Estimate:
    """What one explorer would take.

    Attributes:
        explorer: its name.
        steps: about so many.
        seconds: about so long, on this machine.
        note: what the estimate rests on.
    """

    explorer: str
    steps: float
    seconds: float
    note: str


@dataclass(frozen=True)
class Forecast:
    """What each explorer would take.

    Attributes:
        estimates: one for each explorer.
        probe_steps: the steps that the probe took.
        states: how many states it found within the radius.
        ended: whether the probe came to its end; if not, there may be more states, and everything may take longer.
        steps_per_second: of the world, in long orders.
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


@dataclass(frozen=True, eq=False)
class Probe:
    """What a limited exploration showed.

    Attributes:
        state: of the certified explorer, where the probe ended.
        model: its counts and region.
        steps: the world's at the end.
        seconds: in all.
        within_steps, within_seconds: when everything was proven for AX_L; None if it was not.
        ended: whether the explorer had nothing left to do for AX*.
        steps_per_second: of the world, in long orders.
    """

    state: CertifiedState
    model: IntervalModel
    steps: int
    seconds: float
    within_steps: int | None
    within_seconds: float | None
    ended: bool
    steps_per_second: float


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
        world: as `explore` takes it. A `World` is stepped, and stays where the probe ends.
        radius: L.
        epsilon: ε.
        delta: δ.
        explorers: names of presets.
        states_bound: S, for the theory presets; ten times the states seen when not given.
        probe_steps: no order of the probe begins after so many steps.
        seed: of a simulated world.
        world_parameters: of a domain given by its name.
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
    """Proves AX_L and then AX*, as far as the steps allow; both start in the same way."""
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
        state=state,
        model=explorer.model(state),
        steps=steps,
        seconds=seconds,
        within_steps=within_steps,
        within_seconds=within_seconds,
        ended=state.stop is not None,
        steps_per_second=_speed(world, probe_steps),
    )


def _speed(world: World, most_steps: int) -> float:
    """Steps a second in long orders: plays of the initial state's first action, ever more of them."""
    if not world.actions_of(0):
        return math.inf
    stay = np.zeros(1, dtype=np.int64)
    world.carry_out([Visit(0, 0, 1, stay, max_journey=1000)])  # may have to compile
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
    explorer = factory_of(name)(target, states_bound)
    if isinstance(explorer, Certified):
        return _certified_estimate(name, explorer, probe)
    if isinstance(explorer, DisCo):
        steps, note = _disco_steps(explorer, probe.model, probe)
    elif isinstance(explorer, StagedUcbExplore):
        stages = [replace(explorer.final, target=replace(target, radius=radius)) for radius in explorer.radii]
        steps, note = sum(_ucb_steps(stage, probe.model) for stage in stages), "episodes of all stages"
    else:
        steps, note = _ucb_steps(explorer, probe.model), "episodes of the states found"
    if name.endswith("theory"):
        note += assumed
    if not probe.ended:
        note = f"at least, of the {probe.model.n_known} states that the probe found; {note}"
    return Estimate(name, steps, probe.seconds + steps / probe.steps_per_second, note)


def _certified_estimate(name: str, explorer: Certified, probe: Probe) -> Estimate:
    if explorer.objective is Objective.WITHIN_RADIUS and probe.within_steps is not None:
        return Estimate(name, probe.within_steps, probe.within_seconds or 0.0, "the probe came to its end")
    if probe.ended:
        return Estimate(name, probe.steps, probe.seconds, "the probe came to its end")
    if (probe.model.visits == 0).any():
        return Estimate(name, math.inf, math.inf, "the probe was too short to tell; give it more steps")
    more = remaining_steps(explorer, probe.model)
    seconds = probe.seconds * (1 + more / probe.steps)
    return Estimate(name, probe.steps + more, seconds, "the probe and what it left open")


def remaining_steps(explorer: Certified, model: IntervalModel) -> float:
    """About how many more steps would prove everything still open of the known states, one claim after the other.

    Draws for a claim serve later ones too. States that will be admitted later are not counted.
    """
    travel = travel_per_draw(model)
    total = 0.0
    for claim in _claims(explorer, model):
        draws = cheapest_draws(claim, model, travel)
        total += draws.travel
        drawn = model.visits + np.ceil(draws.more).astype(np.int64)
        model = replace(model.with_visits(drawn.astype(np.float64)), visits=drawn)
    return total


def _claims(explorer: Certified, model: IntervalModel) -> list[Claim]:
    radius, epsilon = explorer.target.radius, explorer.target.epsilon
    claims: list[Claim] = [TooFar(model.unseen, radius)]
    for goal in model.frontier:
        near = empirical_path(model, goal).steps <= radius + epsilon / 2
        claims.append(Reachable(goal, explorer.reach) if near else TooFar(goal, radius))
    if explorer.objective is Objective.OPTIMAL:
        claims += [NearOptimal(goal, epsilon) for goal in range(1, model.n_known)]
    return claims


def _disco_steps(explorer: DisCo, model: IntervalModel, probe: Probe) -> tuple[float, str]:
    """Visits every pair as often as the allocation asks for, in order of admission, in expectation."""
    rows = probe.state.counts.rows()
    within_known, with_goal = spreads_of(rows)
    n_actions = action_bound(explorer.actions_bound, rows)
    spreads = Spreads(within_known, with_goal, len(rows.states), n_actions, explorer.states_bound)
    required = explorer.allocation(spreads, explorer.capped_target).astype(np.float64)
    visits, steps = np.zeros(model.n_pairs), 0.0
    for pair in range(model.n_pairs):
        missing = max(required[pair] - visits[pair], 0.0)
        if missing:
            met, per_visit = _round_trip(model, pair)
            times = missing / max(met[pair], 1.0)
            visits += times * met
            steps += times * per_visit
    return steps, f"{required.max(initial=0.0):.2g} visits of a pair at most"


def _round_trip(model: IntervalModel, pair: int) -> tuple[FloatArray, float]:
    """The expected plays of each pair, [P], and steps, of one visit: the pair itself and the way back to its state."""
    rows = model.rows
    state = int(np.searchsorted(rows.state_pairs, pair, side="right")) - 1
    path = empirical_path(model, state)
    played = np.zeros(model.n_pairs)
    played[pair] = 1.0
    start = np.zeros(model.n_known)
    steps = 1.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        successor, frequency = int(rows.successors[entry]), float(rows.frequencies[entry])
        outside = successor >= model.n_known
        start[0 if outside else successor] += frequency
        steps += frequency * float(path.values[successor])
    ends = np.zeros(model.n_known, dtype=np.int64)
    met = expected_visits(rows, state, path.policy, rows.frequencies, 0, ends, start)
    for place, times in enumerate(met.tolist()):
        if place != state and path.policy[place] != RESET_PAIR:
            played[path.policy[place]] += times
    return played, steps


def _ucb_steps(explorer: UcbExplore, model: IntervalModel) -> float:
    """λ episodes for each state found, of the length of the way there and a RESET."""
    reach = explorer.target.radius + explorer.target.epsilon
    total = 0.0
    n_known = 1
    for goal in range(1, model.n_known):
        way = empirical_path(model, goal).steps
        if way <= reach:
            total += explorer.episodes(_problem(explorer, n_known, model)) * (way + 1)
            n_known += 1
    return total


def _problem(explorer: UcbExplore, n_known: int, model: IntervalModel) -> Problem:
    n_actions = int(np.diff(model.rows.state_pairs).max(initial=1))
    return Problem(explorer.target, explorer.accuracy, explorer.horizon, n_known, n_actions, explorer.states_bound)
