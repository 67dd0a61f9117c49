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


def random_limit(rng: np.random.Generator, effect: str) -> Border:
    """A limit since RESET whose length each RESET draws in secret."""
    plant = _plant(rng, WITH_RETURNS)
    way = plant.steps_to(plant.goal)
    limits = sorted({max(2, round(float(rng.uniform(1.0, 6.0)) * way)) for _ in range(3)})
    slow = plant.slowed(0.1)

    def row(state: str, left: int, action: str) -> Row:
        if left:
            return plant.row(state, action)
        return {state: 1.0} if effect == "frozen" else slow.row(state, action)

    begin: Row = {(plant.start, limit): 1 / len(limits) for limit in limits}
    rules = with_extra(plant, limits[0], row, lambda _s, left, _a, _t: {max(left - 1, 0): 1.0}, reset=lambda _: begin)
    return Border(rules.model(), plant.farthest)


def failures_in_a_row(rng: np.random.Generator, tries: int, pause: int) -> Border:
    """After so many failures in a row nothing works for some plays, also across RESETs."""
    plant = _plant(rng, (forms, line, ring, hub))

    def row(state: str, failed: int, action: str) -> Row:
        return {state: 1.0} if failed >= tries and action == plant.forward else plant.row(state, action)

    def ticked(failed: int) -> int:
        return 0 if failed + 1 >= tries + pause else failed + 1

    def then(state: str, failed: int, action: str, after: str) -> Mapping[int, float]:
        if failed >= tries:
            return {ticked(failed): 1.0}
        if action != plant.forward:
            return {failed: 1.0}
        return {failed + 1 if after == state else 0: 1.0}

    def reset(hidden: Any) -> Row:
        return {(plant.start, ticked(hidden[1]) if hidden[1] >= tries else hidden[1]): 1.0}

    return Border(with_extra(plant, 0, row, then, reset=reset).model(), plant.farthest + 1)


def sticky_cache(rng: np.random.Generator, plays: int, *, cleared: bool) -> Border:
    """What the last step forward from a state led to is given again for some plays, until RESET or beyond it."""
    plant = _plant(rng, (forms, line, ring))

    def row(state: str, cached: tuple[str, str, int] | None, action: str) -> Row:
        if cached is not None and action == plant.forward and cached[0] == state:
            return {cached[1]: 1.0}
        return plant.row(state, action)

    def then(state: str, cached: Any, action: str, after: str) -> Mapping[Any, float]:
        if cached is None:
            return {(state, after, plays) if action == plant.forward else None: 1.0}
        return {(*cached[:2], cached[2] - 1) if cached[2] > 1 else None: 1.0}

    reset: Reset | None = None if cleared else lambda hidden: {(plant.start, hidden[1]): 1.0}
    return Border(with_extra(plant, None, row, then, reset=reset).model(), plant.farthest)


def leaked_bit(rng: np.random.Generator, strength: float) -> Border:
    """A session that was at the goal makes the next one slow, in every state; the one after that is as ever."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(strength)

    def row(state: str, bits: tuple[bool, bool], action: str) -> Row:
        return (slow if bits[0] else plant).row(state, action)

    rules = with_extra(
        plant,
        (False, False),
        row,
        lambda _s, bits, _a, after: {(bits[0], bits[1] or after == plant.goal): 1.0},
        reset=lambda hidden: {(plant.start, (hidden[1][1], False)): 1.0},
    )
    return Border(rules.model(), plant.farthest)


def token_bucket(rng: np.random.Generator, most: int, refill: int) -> Border:
    """Each step forward takes a token, and one comes back every few plays, RESETs included."""
    plant = _plant(rng, (forms, line, ring, hub))

    def row(state: str, held: tuple[int, int], action: str) -> Row:
        return {state: 1.0} if held[0] == 0 and action == plant.forward else plant.row(state, action)

    def ticked(held: tuple[int, int], used: bool) -> tuple[int, int]:
        left, phase = held[0] - (used and held[0] > 0), (held[1] + 1) % refill
        return min(left + (phase == 0), most), phase

    rules = with_extra(
        plant,
        (most, 0),
        row,
        lambda _s, held, action, _t: {ticked(held, action == plant.forward): 1.0},
        reset=lambda hidden: {(plant.start, ticked(hidden[1], False)): 1.0},
    )
    return Border(rules.model(), plant.farthest * 1.5)


def tides(rng: np.random.Generator) -> Border:
    """The step forward works better and worse in turn, with a short period and by little."""
    plant = _plant(rng, PLANTS)
    period = float(rng.uniform(100, 600))
    phases = tuple(round(period * turn / 12) for turn in range(12))
    models = plain(plant).model(), plain(plant.slowed(float(rng.uniform(0.6, 0.8)))).model()
    return Border(models[0], plant.farthest * 1.3, later=models[1], weight=partial(_periodic, period), phases=phases)


def builds(rng: np.random.Generator, *, alternating: bool) -> Border:
    """RESET leads to one of two builds: in turn, or to the newer one now and then."""
    plant = _plant(rng, WITH_RETURNS)
    slow, newer = plant.slowed(float(rng.uniform(0.2, 0.5))), float(rng.uniform(0.03, 0.1))

    def reset(hidden: Any) -> Row:
        if alternating:
            return {(plant.start, not hidden[1]): 1.0}
        return {(plant.start, True): newer, (plant.start, False): 1 - newer}

    rules = with_extra(
        plant, False, lambda state, new, action: (slow if new else plant).row(state, action),
        lambda _s, new, _a, _t: {new: 1.0}, reset=reset,
    )  # fmt: skip
    return Border(rules.model(), plant.farthest)


def deep_collision(rng: np.random.Generator) -> Border:
    """The two states that are farthest but for the goal show one label."""
    plant = _plant(rng, (line, ring, grid, sparse, forms))
    names = [state for state in plant.rows if state not in (plant.start, plant.goal)]
    names.sort(key=plant.steps_to)
    if len(names) < 2:
        return coarse(rng)
    one, other = names[-2:]
    rules = replace(plain(plant), label=lambda state: one if state == other else state)
    return Border(rules.model(), plant.farthest)


def faults_with_age(rng: np.random.Generator, rate: float) -> Border:
    """Steps fail more and more often, the longer ago the last RESET was."""
    plant = _plant(rng, (forms, line, ring, hub))
    most = 30

    def step(hidden: Any, action: str) -> Row:
        state, age = hidden
        fails = rate * age / most
        kept = {(after, min(age + 1, most)): (1 - fails) * share for after, share in plant.row(state, action).items()}
        return kept | ({(FAULT, 0): fails} if fails else {})

    def offers(hidden: Any) -> tuple[str, ...]:
        return () if hidden[0] == FAULT else plant.offers(hidden[0])

    rules = Rules((plant.start, 0), plant.actions, step, lambda hidden: hidden[0], offers=offers)
    return Border(rules.model(), plant.farthest)


def ends_early(rng: np.random.Generator, low: float, high: float) -> Border:
    """An episode ends after a number of steps, wherever it is; nothing but RESET is offered then."""
    plant = _plant(rng, WITH_RETURNS)
    limit = max(2, round(float(rng.uniform(low, high)) * plant.steps_to(plant.goal)))
    rules = with_extra(
        plant, 0, lambda state, _age, action: plant.row(state, action),
        lambda _s, age, _a, _t: {min(age + 1, limit): 1.0},
    )  # fmt: skip
    return Border(
        replace(rules, offers=lambda hidden: () if hidden[1] >= limit else plant.offers(hidden[0])).model(),
        plant.farthest,
    )


def shared_counter(rng: np.random.Generator, every: int) -> Border:
    """Two sessions share a counter, and each of its turns refuses a step; the other one counts now and then."""
    plant = _plant(rng, WITH_RETURNS)
    other = float(rng.uniform(0.1, 0.6))

    def row(state: str, count: int, action: str) -> Row:
        return {state: 1.0} if count == 0 and action == plant.forward else plant.row(state, action)

    def counted(count: int) -> Mapping[int, float]:
        return {(count + 1) % every: 1 - other, (count + 2) % every: other}

    rules = with_extra(
        plant,
        0,
        row,
        lambda _s, count, _a, _t: counted(count),
        reset=lambda hidden: {(plant.start, count): share for count, share in counted(hidden[1]).items()},
    )
    return Border(rules.model(), plant.farthest)


def backs_off(rng: np.random.Generator, most: int) -> Border:
    """RESETs in quick succession are punished: for a while nothing moves."""
    plant = _plant(rng, WITH_RETURNS)

    def row(state: str, debt: int, action: str) -> Row:
        return {state: 1.0} if debt > most // 2 and action == plant.forward else plant.row(state, action)

    rules = with_extra(
        plant,
        0,
        row,
        lambda _s, debt, _a, _t: {max(debt - 1, 0): 1.0},
        reset=lambda hidden: {(plant.start, min(hidden[1] + 4, most)): 1.0},
    )
    return Border(rules.model(), plant.farthest)


def tires(rng: np.random.Generator, successes: int) -> Border:
    """After some steps forward that worked, none does until as many others were played, or a RESET."""
    plant = _plant(rng, (forms, line, ring, grid))
    slow = plant.slowed(0.15)

    def row(state: str, done: int, action: str) -> Row:
        return (slow if done >= successes else plant).row(state, action)

    def then(state: str, done: int, action: str, after: str) -> Mapping[int, float]:
        worked = action == plant.forward and after != state
        return {min(done + 1, 2 * successes) if worked else max(done - (action != plant.forward), 0): 1.0}

    return Border(with_extra(plant, 0, row, then).model(), plant.farthest)


def opening_hours(rng: np.random.Generator, period: int, closed: int) -> Border:
    """For a part of a long period the goal is closed; RESETs count as plays and change nothing."""
    plant = _plant(rng, WITH_RETURNS)

    def row(state: str, phase: int, action: str) -> Row:
        return _without(plant.row(state, action), plant.goal, state) if phase < closed else plant.row(state, action)

    rules = with_extra(
        plant,
        closed,
        row,
        lambda _s, phase, _a, _t: {(phase + 1) % period: 1.0},
        reset=lambda hidden: {(plant.start, (hidden[1] + 1) % period): 1.0},
    )
    return Border(rules.model(), plant.farthest)


def cold_start(rng: np.random.Generator, plays: int) -> Border:
    """After a session that was long, the first plays of the next one are slow."""
    plant = _plant(rng, WITH_RETURNS)
    slow = plant.slowed(0.2)

    def row(state: str, extra: tuple[int, int], action: str) -> Row:
        return (slow if extra[1] else plant).row(state, action)

    rules = with_extra(
        plant,
        (0, 0),
        row,
        lambda _s, extra, _a, _t: {(min(extra[0] + 1, 12), max(extra[1] - 1, 0)): 1.0},
        reset=lambda hidden: {(plant.start, (0, plays if hidden[1][0] >= 12 else 0)): 1.0},
    )
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
    # Others of each family.
    "limit of random length: frozen": _kind(TIMER, random_limit, "frozen"),
    "limit of random length: slow": _kind(TIMER, random_limit, "slow"),
    "ends early": _kind(TIMER, ends_early, 2.0, 5.0),
    "tires": _kind(TIMER, tires, 4),
    "3 failures in a row, 20 plays": _kind(HISTORY, failures_in_a_row, 3, 20),
    "sticky cache": _kind(HISTORY, sticky_cache, 4, cleared=True),
    "sticky cache beyond RESET": _kind(HISTORY, sticky_cache, 4, cleared=False),
    "leaked bit": _kind(LEAK, leaked_bit, 0.3),
    "back-off": _kind(LEAK, backs_off, 12),
    "cold start": _kind(LEAK, cold_start, 5),
    "alternating builds": _kind(LEAK, builds, alternating=True),
    "newer build now and then": _kind(LEAK, builds, alternating=False),
    "token bucket": _kind(OTHERS, token_bucket, 4, 3),
    "shared counter": _kind(OTHERS, shared_counter, 5),
    "tides": _kind(DRIFT, tides),
    "opening hours": _kind(CLOCK, opening_hours, 60, 15),
    "faults with age 0.1": _kind(FAULTS, faults_with_age, 0.1),
    "labels that collide deep in": _kind(LABELS, deep_collision),
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
