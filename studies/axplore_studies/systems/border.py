"""Kinds of systems at the border of what is assumed: each hides something, changes, fails, or is as it should be.

A kind is a family of systems with random parameters. It takes a *plant*, a small random model whose states are all
seen, and adds what breaks the assumptions. Systems are drawn by address: the name of the kind and a number.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np

from axplore_studies.systems.hidden_model import FAULT, FRESH, Border, HiddenModel, Row, Rules
from axplore_studies.systems.plants import (
    PLANTS,
    WITH_RETURNS,
    Plant,
    forms,
    grid,
    hub,
    line,
    mixed,
    plain,
    ring,
    sparse,
)

ENTROPY: Final = 2509
"""The entropy of all addresses."""

ROOM: Final = (1.05, 2.0)
"""The radius lies between so many times the steps to the farthest state of a plant."""

# What breaks the assumptions ------------------------------------------------------------------------------------------
# A hidden state is the state of the plant and what is added: (state, extra).

Extra = Any
Reset = Callable[[Any], Row]


def with_extra(
    plant: Plant,
    first: Extra,
    row: Callable[[str, Extra, str], Row],
    then: Callable[[str, Extra, str, str], Mapping[Extra, float]],
    *,
    label: Callable[[Any], Any] = lambda hidden: hidden[0],
    reset: Reset | None = None,
) -> Rules:
    """Returns a plant with a hidden extra.

    Args:
        plant: what is seen.
        first: the extra of a new system.
        row: the row of a state with its extra and an action, over states.
        then: the distribution of the next extra, given the state, the extra, the action and the next state.
        label: what is shown of a hidden state.
        reset: the row of RESET; by default it leads to the start and the first extra.
    """

    def step(hidden: Any, action: str) -> Row:
        state, extra = hidden
        ahead: dict[Any, float] = {}
        for after, probability in row(state, extra, action).items():
            for later, share in then(state, extra, action, after).items():
                ahead[after, later] = ahead.get((after, later), 0.0) + probability * share
        return ahead

    return Rules((plant.start, first), plant.actions, step, label, reset, lambda hidden: plant.offers(hidden[0]))


def timer(rng: np.random.Generator, effect: str, low: float, high: float, shapes: Any = WITH_RETURNS) -> Border:
    """A limit since RESET, after which something else happens. The limit is so many times the way to the goal."""
    plant = _plant(rng, shapes)
    limit = max(2, round(float(rng.uniform(low, high)) * plant.steps_to(plant.goal)))
    slow, fast = plant.slowed(0.2), plant
    if effect == "opens":  # the way is slow until the limit, as with a cache or a job that starts
        slow, fast = plant, plant.slowed(0.3)

    def row(state: str, age: int, action: str) -> Row:
        if age < limit:
            return fast.row(state, action)
        late: dict[str, Row] = {
            "frozen": {state: 1.0},
            "no way to the goal": _without(plant.row(state, action), plant.goal, state),
            "thrown back": {plant.start: 1.0},
            "slow": slow.row(state, action),
            "opens": slow.row(state, action),
        }
        return late[effect]

    rules = with_extra(plant, 0, row, lambda _s, age, _a, _t: {min(age + 1, limit): 1.0})
    if effect == "thrown back":  # to the start, and the time begins anew
        rules = replace(rules, step=_logged_out(rules.step, limit))
    return Border(rules.model(), (slow if effect == "opens" else plant).farthest)


def _logged_out(step: Callable[[Any, str], Row], limit: int) -> Callable[[Any, str], Row]:
    def stepped(hidden: Any, action: str) -> Row:
        if hidden[1] < limit:
            return step(hidden, action)
        return {(after, 0): share for (after, _), share in step(hidden, action).items()}

    return stepped


def _without(row: Row, goal: str, instead: str) -> Row:
    """Returns a row that leads elsewhere where it led to a state; a state is not left for itself."""
    if goal not in row or instead == goal:
        return row
    kept = {after: share for after, share in row.items() if after != goal}
    return kept | {instead: kept.get(instead, 0.0) + row[goal]}


def lock_out(rng: np.random.Generator, tries: int) -> Border:
    """After so many steps forward that failed, none works until RESET."""
    plant = _plant(rng, (forms, line, ring, hub))

    def row(state: str, failed: int, action: str) -> Row:
        return {state: 1.0} if failed >= tries and action == plant.forward else plant.row(state, action)

    def then(state: str, failed: int, action: str, after: str) -> Mapping[int, float]:
        return {min(failed + (action == plant.forward and after == state), tries): 1.0}

    return Border(with_extra(plant, 0, row, then).model(), plant.farthest)


def token(rng: np.random.Generator, low: float, high: float) -> Border:
    """A token is had at the start and runs out; without it the goal is not entered."""
    plant = _plant(rng, (forms, line, ring, grid, sparse))
    life = max(2, round(float(rng.uniform(low, high)) * plant.steps_to(plant.goal)))

    def row(state: str, left: int, action: str) -> Row:
        return plant.row(state, action) if left else _without(plant.row(state, action), plant.goal, state)

    def then(_state: str, left: int, _action: str, after: str) -> Mapping[int, float]:
        return {life if after == plant.start else max(left - 1, 0): 1.0}

    return Border(with_extra(plant, life, row, then).model(), plant.farthest)


def watchdog(rng: np.random.Generator, low: float, high: float) -> Border:
    """Too many steps without a new place lead back to the start, silently."""
    plant = _plant(rng, (forms, line, ring, hub))
    patience = int(rng.integers(round(low), round(high) + 1))

    def row(state: str, idle: int, action: str) -> Row:
        return {plant.start: 1.0} if idle >= patience else plant.row(state, action)

    def then(state: str, idle: int, _action: str, after: str) -> Mapping[int, float]:
        return {0 if after != state or idle >= patience else idle + 1: 1.0}

    return Border(with_extra(plant, 0, row, then).model(), plant.farthest)


def trap(rng: np.random.Generator, rate: float, effect: str = "frozen", survives: float = 0.0) -> Border:
    """A hidden trap, entered at a rate at each step, in which nothing or little works until RESET, or beyond it."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(0.1)

    def row(state: str, trapped: bool, action: str) -> Row:
        if not trapped:
            return plant.row(state, action)
        return {state: 1.0} if effect == "frozen" else slow.row(state, action)

    def then(_state: str, trapped: bool, _action: str, _after: str) -> Mapping[bool, float]:
        return {True: 1.0} if trapped else {False: 1 - rate, True: rate}

    def reset(hidden: Any) -> Row:
        return mixed({(plant.start, True): 1.0}, {(plant.start, False): 1.0}, survives * hidden[1])

    return Border(with_extra(plant, False, row, then, reset=reset).model(), plant.farthest)


def unlucky_session(rng: np.random.Generator, rate: float) -> Border:
    """RESET draws in secret whether what follows is slow."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(0.15)

    def row(state: str, unlucky: bool, action: str) -> Row:
        return (slow if unlucky else plant).row(state, action)

    return Border(
        with_extra(
            plant,
            False,
            row,
            lambda _s, unlucky, _a, _t: {unlucky: 1.0},
            reset=lambda _: {(plant.start, True): rate, (plant.start, False): 1 - rate},
        ).model(),
        plant.farthest,
    )


def drift(rng: np.random.Generator, schedule: str, *, wears: bool = False, faster: bool = False) -> Border:
    """The step forward comes to work less often, or more often, with the steps of the whole life of the system."""
    plant = _plant(rng, PLANTS)
    factor = float(rng.uniform(0.2, 0.6))
    models = [plain(plant).model(), plain(plant.slowed(factor)).model()]
    first, later = reversed(models) if faster else models
    begins, lasts = float(rng.uniform(800, 6000)), float(rng.uniform(5000, 30000))
    period = float(rng.uniform(800, 4000))
    weights: dict[str, Callable[[int], float]] = {
        "step": partial(_linear, begins, 1.0),
        "linear": partial(_linear, 0.0, lasts),
        "slow": partial(_linear, 0.0, 100 * lasts),
        "periodic": partial(_periodic, period),
        "warm-up": partial(_linear, 0.0, begins / 4),
    }
    phases = tuple(round(period * turn / 12) for turn in range(12)) if schedule == "periodic" else (0,)
    slowest = plant.slowed(factor) if faster else plant
    return Border(
        first,
        slowest.farthest,
        later=later,
        weight=weights[schedule],
        worn_by=plant.forward if wears else None,
        phases=phases,
    )


def _linear(begins: float, lasts: float, plays: int) -> float:
    return min(max((plays - begins) / lasts, 0.0), 1.0)


def _periodic(period: float, plays: int) -> float:
    return 0.5 - 0.5 * math.cos(2 * math.pi * plays / period)


def history(rng: np.random.Generator, length: int, strength: float = 0.25) -> Border:
    """What a step forward does depends on the last actions: after some of them it seldom works."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(strength)
    needed = tuple(plant.actions[int(rng.integers(len(plant.actions)))] for _ in range(length))

    def row(state: str, last: tuple[str, ...], action: str) -> Row:
        return (slow if last == needed else plant).row(state, action)

    def then(_state: str, last: tuple[str, ...], action: str, _after: str) -> Mapping[Any, float]:
        return {(*last, action)[-length:]: 1.0}

    return Border(with_extra(plant, (), row, then).model(), plant.farthest)


def lock(rng: np.random.Generator, *, persistent: bool = False) -> Border:
    """The goal opens only after another state was visited, since RESET or ever."""
    plant = _plant(rng, WITH_RETURNS)
    between = [state for state in plant.rows if state not in (plant.start, plant.goal)]
    key = between[int(rng.integers(len(between)))] if between else plant.start

    def row(state: str, opened: bool, action: str) -> Row:
        return plant.row(state, action) if opened else _without(plant.row(state, action), plant.goal, state)

    def then(_state: str, opened: bool, action: str, after: str) -> Mapping[bool, float]:
        del action
        return {opened or after == key: 1.0}

    reset: Reset | None = (lambda hidden: {(plant.start, hidden[1]): 1.0}) if persistent else None
    return Border(with_extra(plant, False, row, then, reset=reset).model(), plant.farthest)


def leak(rng: np.random.Generator, rate: float) -> Border:
    """A mode in which steps seldom work is entered now and then, and RESET does not always leave it."""
    return trap(rng, float(rng.uniform(0.005, 0.05)), "slow", survives=1 - rate)


def kept_state(rng: np.random.Generator, rate: float) -> Border:
    """Where RESET leaks, it shows the start and stays where it was: the next step goes on from there."""
    plant = _plant(rng, WITH_RETURNS)

    def row(state: str, really: str | None, action: str) -> Row:
        offered = plant.rows[really or state]
        return offered.get(action, plant.row(state, action))

    def reset(hidden: Any) -> Row:
        return mixed({(plant.start, hidden[1] or hidden[0]): 1.0}, {(plant.start, None): 1.0}, rate)

    return Border(with_extra(plant, None, row, lambda _s, _r, _a, _t: {None: 1.0}, reset=reset).model(), plant.farthest)


def starts_elsewhere(rng: np.random.Generator, rate: float) -> Border:
    """RESET leads to another state now and then, and shows it."""
    plant = _plant(rng, PLANTS)
    other = next(state for state in plant.rows if state != plant.start)
    rules = replace(plain(plant), reset=lambda _: {other: rate, plant.start: 1 - rate})
    return Border(rules.model(), plant.farthest)


def clock(rng: np.random.Generator, period: int) -> Border:
    """Every so many plays, RESETs included, a step forward works otherwise. RESET does not set the clock."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(0.3)

    def row(state: str, phase: int, action: str) -> Row:
        return (slow if phase == 0 else plant).row(state, action)

    rules = with_extra(
        plant,
        0,
        row,
        lambda _s, phase, _a, _t: {(phase + 1) % period: 1.0},
        reset=lambda hidden: {(plant.start, (hidden[1] + 1) % period): 1.0},
    )
    return Border(rules.model(), plant.farthest)


def cycled_noise(rng: np.random.Generator, length: int, *, pinned: bool) -> Border:
    """The noise is a cycle of numbers: it begins anew at every RESET (pinned), or goes on for ever (seeded)."""
    plant = _plant(rng, WITH_RETURNS)
    noise = rng.random(length).tolist()

    def row(state: str, place: int, action: str) -> Row:
        successors = plant.row(state, action)
        cumulated = list(accumulate(successors.values()))
        return {list(successors)[min(bisect(cumulated, noise[place]), len(successors) - 1)]: 1.0}

    def reset(hidden: Any) -> Row:
        return {(plant.start, 0 if pinned else hidden[1]): 1.0}

    rules = with_extra(plant, 0, row, lambda _s, place, _a, _t: {(place + 1) % length: 1.0}, reset=reset)
    return Border(rules.model(), plant.farthest)


def flicker(rng: np.random.Generator, rate: float, what: str) -> Border:
    """Now and then a state offers fewer actions, or ends the episode; its label does not say so."""
    plant = _plant(rng, (line, ring, grid, sparse, forms))
    rules = with_extra(
        plant,
        False,
        lambda state, _off, action: plant.row(state, action),
        lambda _s, _off, _a, after: {True: rate, False: 1 - rate} if after != plant.start else {False: 1.0},
    )

    def offers(hidden: Any) -> tuple[str, ...]:
        state, off = hidden
        if not off:
            return plant.offers(state)
        return () if what == "ends" else tuple(name for name in plant.offers(state) if name == plant.forward)

    return Border(replace(rules, offers=offers).model(), plant.farthest)


def faults(rng: np.random.Generator, rate: float, *, only_arriving: bool = False) -> Border:
    """Steps fail now and then; where only arriving fails, what is lost depends on the outcome."""
    plant = _plant(rng, PLANTS)

    def step(state: str, action: str) -> Row:
        row = plant.row(state, action)
        if not only_arriving:
            return {after: (1 - rate) * share for after, share in row.items()} | {FAULT: rate}
        arrives = row.get(plant.goal, 0.0) if state != plant.goal else 0.0
        kept = {after: share * (1 - rate if after == plant.goal and arrives else 1.0) for after, share in row.items()}
        return kept | ({FAULT: rate * arrives} if arrives else {})

    def offers(state: str) -> tuple[str, ...]:
        return () if state == FAULT else plant.offers(state)

    return Border(Rules(plant.start, plant.actions, step, lambda state: state, offers=offers).model(), plant.farthest)


def coarse(rng: np.random.Generator, shapes: Any = (line, ring, grid, sparse, forms)) -> Border:
    """Two states show one label."""
    plant = _plant(rng, shapes)
    names = [state for state in plant.rows if state != plant.start]
    one, other = (names[int(place)] for place in rng.choice(len(names), size=2, replace=False))
    rules = replace(plain(plant), label=lambda state: one if state == other else state)
    return Border(rules.model(), plant.farthest)


def lies(rng: np.random.Generator, rate: float) -> Border:
    """A label is now and then that of another state."""
    plant = _plant(rng, (line, ring, grid, sparse, forms))
    names = list(plant.rows)
    wrong = names[int(rng.integers(1, len(names)))]
    rules = with_extra(
        plant,
        False,
        lambda state, _lies, action: plant.row(state, action),
        lambda _s, _l, _a, after: {True: rate, False: 1 - rate} if after != plant.start else {False: 1.0},
        label=lambda hidden: wrong if hidden[1] else hidden[0],
    )
    return Border(rules.model(), plant.farthest)


def rare_failure(rng: np.random.Generator, rate: float, wait: int) -> Border:
    """A step forward leads now and then to a long wait, all of it shown as one label."""
    plant = _plant(rng, WITH_RETURNS)

    def step(hidden: Any, action: str) -> Row:
        state, left = hidden
        if left:
            return {(state, left - 1): 1.0}
        row = {(after, 0): share for after, share in plant.row(state, action).items()}
        return mixed({(state, wait): 1.0}, row, rate) if action == plant.forward else row

    rules = Rules(
        (plant.start, 0),
        plant.actions,
        step,
        lambda hidden: "waiting" if hidden[1] else hidden[0],
        offers=lambda hidden: plant.offers(hidden[0]),
    )
    return Border(rules.model(), plant.farthest)


def rate_limit(rng: np.random.Generator, calls: int, window: int) -> Border:
    """In each window of plays only so many steps forward work; RESET does not open a new one."""
    plant = _plant(rng, (forms, line, ring, hub))

    def row(state: str, used: tuple[int, int], action: str) -> Row:
        return {state: 1.0} if used[1] >= calls and action == plant.forward else plant.row(state, action)

    def ticked(used: tuple[int, int], called: bool) -> tuple[int, int]:
        return (0, 0) if used[0] + 1 >= window else (used[0] + 1, min(used[1] + called, calls))

    rules = with_extra(
        plant,
        (0, 0),
        row,
        lambda _s, used, action, _t: {ticked(used, action == plant.forward): 1.0},
        reset=lambda hidden: {(plant.start, ticked(hidden[1], False)): 1.0},
    )
    return Border(rules.model(), plant.farthest)


def two_users(rng: np.random.Generator, stays: float, *, busy: float = 0.5) -> Border:
    """Another user comes and goes; while there, steps forward seldom work. RESET does not send anybody away."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(0.2)
    comes, leaves = (1 - stays) * busy, (1 - stays) * (1 - busy)

    def row(state: str, there: bool, action: str) -> Row:
        return (slow if there else plant).row(state, action)

    def moves(there: bool) -> Mapping[bool, float]:
        return {True: 1 - leaves, False: leaves} if there else {True: comes, False: 1 - comes}

    rules = with_extra(
        plant,
        False,
        row,
        lambda _s, there, _a, _t: moves(there),
        reset=lambda hidden: {(plant.start, after): share for after, share in moves(hidden[1]).items()},
    )
    return Border(rules.model(), plant.farthest)


def sticky(rng: np.random.Generator, rate: float) -> Border:
    """Now and then the last action is played again, instead of the one asked for."""
    plant = _plant(rng, (line, ring, grid, sparse, forms))

    def row(state: str, last: str | None, action: str) -> Row:
        return mixed(plant.row(state, last), plant.row(state, action), rate) if last else plant.row(state, action)

    rules = with_extra(plant, None, row, lambda _s, _l, action, _t: {action: 1.0})
    return Border(rules.model(), plant.farthest)


def delayed(rng: np.random.Generator, delay: int) -> Border:
    """An action takes effect some steps later; until then nothing moves."""
    plant = _plant(rng, (line, ring, grid, sparse, forms))

    def row(state: str, waiting: tuple[str, ...], _action: str) -> Row:
        return plant.row(state, waiting[0]) if len(waiting) == delay else {state: 1.0}

    rules = with_extra(plant, (), row, lambda _s, waiting, action, _t: {(*waiting, action)[-delay:]: 1.0})
    return Border(rules.model(), plant.farthest + delay)


def sojourn(rng: np.random.Generator, stages: int) -> Border:
    """A state is left after a number of stages that nobody sees: the time there is not that of a coin."""
    plant = _plant(rng, (forms, line, ring))
    slow = next(state for state in plant.rows if state != plant.goal)

    def row(state: str, stage: int, action: str) -> Row:
        return (
            {state: 1.0} if state == slow and stage < stages and action == plant.forward else plant.row(state, action)
        )

    def then(state: str, stage: int, _action: str, after: str) -> Mapping[int, float]:
        return {min(stage + 1, stages) if after == state == slow else 0: 1.0}

    return Border(with_extra(plant, 0, row, then).model(), plant.farthest + stages)


def battery(rng: np.random.Generator, low: float, high: float) -> Border:
    """Each step forward takes from a battery that only the start charges; empty, it hardly moves."""
    plant = _plant(rng, (forms, line, ring, grid))
    charge = max(2, round(float(rng.uniform(low, high)) * plant.steps_to(plant.goal)))
    empty = plant.slowed(0.1)

    def row(state: str, left: int, action: str) -> Row:
        return (plant if left else empty).row(state, action)

    def then(_state: str, left: int, action: str, after: str) -> Mapping[int, float]:
        return {charge if after == plant.start else max(left - (action == plant.forward), 0): 1.0}

    return Border(with_extra(plant, charge, row, then).model(), plant.farthest)


def cool_down(rng: np.random.Generator, plays: int) -> Border:
    """After a step forward that worked, the next ones do nothing for a while."""
    plant = _plant(rng, (forms, line, ring, hub))

    def row(state: str, waits: int, action: str) -> Row:
        return {state: 1.0} if waits and action == plant.forward else plant.row(state, action)

    def then(state: str, waits: int, action: str, after: str) -> Mapping[int, float]:
        return {plays if action == plant.forward and after != state else max(waits - 1, 0): 1.0}

    return Border(with_extra(plant, 0, row, then).model(), plant.farthest + 2 * plays)


def used_up(rng: np.random.Generator, low: int, high: int) -> Border:
    """A stock that nothing fills up: after so many arrivals in the life of the system, the goal is closed for ever."""
    plant = _plant(rng, WITH_RETURNS)
    stock = int(rng.integers(low, high))

    def row(state: str, left: int, action: str) -> Row:
        return plant.row(state, action) if left else _without(plant.row(state, action), plant.goal, state)

    def then(state: str, left: int, _action: str, after: str) -> Mapping[int, float]:
        return {max(left - (after == plant.goal != state), 0): 1.0}

    rules = with_extra(plant, stock, row, then, reset=lambda hidden: {(plant.start, hidden[1]): 1.0})
    return Border(rules.model(), plant.farthest)


def ever_new(rng: np.random.Generator, rate: float) -> Border:
    """A step forward shows now and then a label that was never seen."""
    plant = _plant(rng, PLANTS)

    def step(state: str, action: str) -> Row:
        row = plant.row(state, action)
        return mixed({FRESH: 1.0}, row, rate) if action == plant.forward else row

    def offers(state: str) -> tuple[str, ...]:
        return () if state == FRESH else plant.offers(state)

    rules = Rules(plant.start, plant.actions, step, lambda state: state, offers=offers)
    return Border(rules.model(), plant.farthest)


def healthy(rng: np.random.Generator, shape: Callable[[np.random.Generator], Plant]) -> Border:
    """A plant as it is."""
    plant = shape(rng)
    return Border(plain(plant).model(), plant.farthest)


def _plant(rng: np.random.Generator, shapes: Any) -> Plant:
    plant: Plant = shapes[int(rng.integers(len(shapes)))](rng)
    return plant


# The kinds ------------------------------------------------------------------------------------------------------------

TIMER, TRAP, DRIFT, HISTORY = "timer since RESET", "hidden trap", "drift, wear, cache", "history, lock"
LEAK, CLOCK, FLICKER, FAULTS = "RESET leaks", "clocks and cycled noise", "flickering", "faults"
LABELS, OTHERS, HEALTHY = "labels", "limits and others", "healthy"


@dataclass(frozen=True)
class Kind:
    """A kind of systems.

    Attributes:
        family: what it belongs to.
        make: makes one from random numbers.
    """

    family: str
    make: Callable[[np.random.Generator], Border]

    @property
    def is_healthy(self) -> bool:
        """Whether it keeps all assumptions."""
        return self.family == HEALTHY


def _kind(family: str, make: Callable[..., Border], *args: Any, **settings: Any) -> Kind:
    def made(rng: np.random.Generator) -> Border:
        return make(rng, *args, **settings)

    return Kind(family, made)


KINDS: Final[Mapping[str, Kind]] = {
    # Timers since RESET.
    **{
        f"after {word} limit: {effect}": _kind(TIMER, timer, effect, low, high)
        for word, low, high in (("a short", 1.0, 2.0), ("a middle", 2.0, 4.0), ("a long", 4.0, 8.0))
        for effect in ("frozen", "no way to the goal", "slow")
    },
    "after a middle limit: thrown back": _kind(TIMER, timer, "thrown back", 2.0, 4.0),
    "after a short limit: opens": _kind(TIMER, timer, "opens", 0.5, 1.5),
    "lock-out after 3 tries": _kind(TIMER, lock_out, 3),
    "lock-out after 8 tries": _kind(TIMER, lock_out, 8),
    "token that runs out": _kind(TIMER, token, 1.0, 4.0),
    "watchdog": _kind(TIMER, watchdog, 2, 6),
    # Traps.
    **{f"trap {rate:g}": _kind(TRAP, trap, rate) for rate in (3e-3, 1e-3, 1e-4)},
    **{f"slow trap {rate:g}": _kind(TRAP, trap, rate, "slow") for rate in (1e-2, 1e-3)},
    "unlucky session 0.1": _kind(TRAP, unlucky_session, 0.1),
    "unlucky session 0.01": _kind(TRAP, unlucky_session, 0.01),
    # Drift.
    "step": _kind(DRIFT, drift, "step"),
    "step, faster": _kind(DRIFT, drift, "step", faster=True),
    "linear drift": _kind(DRIFT, drift, "linear"),
    "linear drift, faster": _kind(DRIFT, drift, "linear", faster=True),
    "slow drift": _kind(DRIFT, drift, "slow"),
    "periodic drift": _kind(DRIFT, drift, "periodic"),
    "wear": _kind(DRIFT, drift, "linear", wears=True),
    "worn out at once": _kind(DRIFT, drift, "step", wears=True),
    "warm-up": _kind(DRIFT, drift, "warm-up", faster=True),
    # History.
    **{f"history of {length}": _kind(HISTORY, history, length) for length in (1, 2, 3)},
    "weak history of 1": _kind(HISTORY, history, 1, 0.7),
    "lock": _kind(HISTORY, lock),
    "lock that stays open": _kind(HISTORY, lock, persistent=True),
    "sticky actions 0.25": _kind(HISTORY, sticky, 0.25),
    "delayed by 1": _kind(HISTORY, delayed, 1),
    "delayed by 2": _kind(HISTORY, delayed, 2),
    "hidden stages": _kind(HISTORY, sojourn, 3),
    # RESET.
    **{f"RESET leaves a mode, but {rate:g}": _kind(LEAK, leak, rate) for rate in (0.3, 0.6, 0.9)},
    **{f"RESET stays {rate:g}": _kind(LEAK, kept_state, rate) for rate in (0.001, 0.01, 0.03, 0.1, 0.3)},
    **{f"RESET elsewhere {rate:g}": _kind(LEAK, starts_elsewhere, rate) for rate in (1e-4, 1e-3, 1e-2, 0.1)},
    # Clocks and noise.
    **{f"clock of period {period}": _kind(CLOCK, clock, period) for period in (2, 3, 7)},
    "seeded noise, 16 numbers": _kind(CLOCK, cycled_noise, 16, pinned=False),
    "seeded noise, 60 numbers": _kind(CLOCK, cycled_noise, 60, pinned=False),
    "pinned noise, 16 numbers": _kind(CLOCK, cycled_noise, 16, pinned=True),
    "pinned noise, 60 numbers": _kind(CLOCK, cycled_noise, 60, pinned=True),
    # Flickering.
    **{
        f"{what} flicker {rate:g}": _kind(FLICKER, flicker, rate, what)
        for what in ("actions", "ends")
        for rate in (0.3, 0.01, 0.001)
    },
    # Faults.
    **{f"faults {rate:g}": _kind(FAULTS, faults, rate) for rate in (1e-3, 1e-2, 0.1, 0.3)},
    "arrivals fail 0.3": _kind(FAULTS, faults, 0.3, only_arriving=True),
    "arrivals fail 0.01": _kind(FAULTS, faults, 0.01, only_arriving=True),
    # Labels.
    "colliding labels": _kind(LABELS, coarse),
    **{f"labels lie {rate:g}": _kind(LABELS, lies, rate) for rate in (0.1, 1e-2, 1e-3)},
    **{f"new labels {rate:g}": _kind(LABELS, ever_new, rate) for rate in (0.6, 0.05)},
    # Limits and others.
    "waits 0.01 for 20": _kind(OTHERS, rare_failure, 0.01, 20),
    "waits 0.001 for 60": _kind(OTHERS, rare_failure, 0.001, 60),
    "rate limit 4 of 10": _kind(OTHERS, rate_limit, 4, 10),
    "rate limit 3 of 8": _kind(OTHERS, rate_limit, 3, 8),
    "two users, quick": _kind(OTHERS, two_users, 0.5),
    "two users, slow": _kind(OTHERS, two_users, 0.98),
    "two users, rare": _kind(OTHERS, two_users, 0.995, busy=0.05),
    "battery": _kind(OTHERS, battery, 1.5, 4.0),
    "cool-down": _kind(OTHERS, cool_down, 3),
    "used up": _kind(OTHERS, used_up, 20, 60),
    # Healthy.
    **{f"healthy {shape.__name__}": _kind(HEALTHY, healthy, shape) for shape in PLANTS},
}
"""All kinds by their names."""


def drawn(kind: str, number: int) -> Border:
    """Returns a system of a kind; its number determines its parameters, and the radius to explore it with."""
    address = np.random.SeedSequence(ENTROPY, spawn_key=(zlib.crc32(kind.encode()), number))
    rng = np.random.default_rng(address)
    border = KINDS[kind].make(rng)
    return replace(border, radius=math.ceil(10 * float(rng.uniform(*ROOM)) * border.radius) / 10)


def labels_of(model: HiddenModel) -> list[Any]:
    """Returns the labels that a system can show, each once."""
    return [label for label in dict.fromkeys(model.labels) if label not in (FAULT, FRESH)]
