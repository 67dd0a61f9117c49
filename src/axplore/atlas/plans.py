"""Planning without access to the system: any goal of an atlas, any costs ([DisCo] Cor. 1)."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.arguments import real_array
from axplore.atlas.learned_model import choices_of_policy, index_in_model, known_indices
from axplore.atlas.policy import Policy
from axplore.atlas.state_report import REFUTED, rounded_up
from axplore.certificate.doubts import doubts_in
from axplore.errors import DamagedFileError, InvalidCostsError, UnknownActionError, UnknownStateError
from axplore.explorers.disco_rules import model_accuracy
from axplore.explorers.registry import THEOREMS
from axplore.graphs.evaluation import chain_of, expected_costs
from axplore.graphs.inputs import checked_costs
from axplore.labels import RESET_TEXT, decode_label, named, text_of
from axplore.proofs.bounds import GoalValues, IntervalModel, Regret, empirical_path, lower_path, regret_path, upper_path
from axplore.storage import MAX_JSON_BYTES, parsed_json, storage_errors
from axplore.target import Target, confidence_text
from axplore.types import RESET, RESET_PAIR, Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


Costs: TypeAlias = Callable[[Any, Any], float] | Mapping[tuple[Any, Any], float] | npt.ArrayLike | None
"""Costs of pairs: a function, a table (missing pairs cost 1), or numbers in the order of `pairs`."""

SIMULATION_FACTOR: Final = 0.5
"""The largest η ‖V'‖ / c_min ([DisCo] Lem. "Simulation lemma": its proof needs η ‖V'‖ <= c_min/2)."""


@dataclass(frozen=True)
class Plan:
    """A policy to a goal of small cost, planned from the counts of an atlas alone.

    Attributes:
        goal: the goal.
        policy: the policy.
        estimate: its expected cost if the observed frequencies were exact; not a bound.
        lower: a lower bound on the cost of any policy through the states of the atlas; 0 if nothing is proven.
        upper: an upper bound on the cost of this policy; infinite if nothing is proven.
        regret: the most that it may cost beyond the best policy through the states of the atlas.
        proven: whether bounds and regret are proven.
        min_cost: c_min, the smallest cost.
        guarantee: what is proven of the policy, in a sentence.
    """

    goal: State
    policy: Policy
    estimate: float
    lower: float
    upper: float
    regret: float
    proven: bool
    min_cost: float
    guarantee: str

    def __contains__(self, cost: float) -> bool:
        return self.lower <= cost <= self.upper

    def __str__(self) -> str:
        return f"to {self.goal}: expected cost about {self.estimate:.4g}. {self.guarantee}"


def plans_for(atlas: Atlas, goals: Iterable[State], costs: Costs = None, reset_cost: float = 1.0) -> dict[State, Plan]:
    """Returns a plan for each goal.

    Args:
        atlas: the atlas whose counts to plan from.
        goals: states of the atlas.
        costs: the costs of the pairs of the atlas, above 0 and at most 1; 1 by default.
        reset_cost: the cost of RESET, in every state.
    """
    model = atlas.model
    priced = model.with_costs(_pair_costs(atlas, model, costs), reset_cost)
    return {goal: _plan(atlas, priced, goal) for goal in goals}


def _plan(atlas: Atlas, model: IntervalModel, goal: State) -> Plan:
    index = index_in_model(model, int(atlas.numbers[atlas.index_of(goal)]))
    estimate = empirical_path(model, index)
    lower, upper, regret, pairs = 0.0, math.inf, math.inf, estimate.policy
    if atlas.can_be_relied_on:
        best = _best(model, index, estimate)
        lower, upper, regret, pairs = best.lower.steps, best.upper.steps, best.steps, best.upper.policy
    if not math.isfinite(upper):
        pairs = estimate.policy
    return Plan(
        goal=goal,
        policy=Policy(goal, atlas.indices, atlas.actions, choices_of_policy(atlas, model, pairs), atlas.memory),
        estimate=_expected_cost(model, pairs, index),
        lower=lower,
        upper=upper,
        regret=regret,
        proven=atlas.can_be_relied_on,
        min_cost=model.min_cost,
        guarantee=_guarantee(atlas, model.min_cost, upper, regret),
    )


def _best(model: IntervalModel, goal: int, estimate: GoalValues) -> Regret:
    """Returns the better of two policies: the robust optimum, and the optimum of the frequencies."""
    lower = lower_path(model, goal, estimate.values)
    robust = regret_path(model, upper_path(model, goal), lower)
    if (robust.upper.policy == estimate.policy).all():
        return robust
    followed = regret_path(model, upper_path(model, goal, follow=estimate), lower)
    return min(robust, followed, key=lambda regret: (regret.steps, regret.upper.steps))


def _guarantee(atlas: Atlas, min_cost: float, upper: float, regret: float) -> str:
    target = atlas.target
    in_doubt = bool(doubts_in(atlas.findings, atlas.faults))
    surely = f"ith a probability of at least {confidence_text(target.delta)}"
    surely = f"If the assumptions hold, which is in doubt, then w{surely}" if in_doubt else f"W{surely}"
    if atlas.is_refuted:
        return f"Nothing is proven of it. {REFUTED}"
    if atlas.proven and math.isfinite(upper):
        return (
            f"{surely} it costs at most {rounded_up(upper)}, and at most {rounded_up(regret)} more than the best "
            "policy through the states of the atlas."
        )
    if atlas.proven:
        return "Nothing is proven of it: no policy is proven to arrive at any cost."
    if atlas.explorer not in THEOREMS or not atlas.stop.by_own_rule:
        return "Nothing is proven of it."
    if not corollary_holds(target.radius, target.epsilon, min_cost):
        return (
            f"Nothing is proven of it: ε = {target.epsilon:g} is too large for the least cost of {min_cost:g} "
            "([DisCo] Cor. 1); explore with a smaller one."
        )
    return (
        f"{surely} it costs at most "
        f"ε/c_min = {target.epsilon / min_cost:.6g} more than the best policy through S_L→ ([DisCo] Cor. 1)."
    )


def corollary_holds(radius: float, epsilon: float, min_cost: float) -> bool:
    """Returns whether [DisCo] Cor. 1 covers costs from `min_cost` on: ε <= 1, and η (L + 1 + ε) <= c_min/2.

    η is the accuracy to which the allocation makes the model known. The paper prints η (L + 1 + ε) <= 2 c_min, but the
    proof of its simulation lemma needs the smaller number.
    """
    accuracy = model_accuracy(Target(radius=radius, epsilon=epsilon))
    return epsilon <= 1 and accuracy * (radius + 1 + epsilon) <= SIMULATION_FACTOR * min_cost


def _expected_cost(model: IntervalModel, pairs: IntArray, goal: int) -> float:
    """Returns the expected cost of a policy under the frequencies; infinite if it may never arrive."""
    rows = model.rows
    policy = np.append(pairs, np.full(len(model.frontier), RESET_PAIR))
    costs = np.append(rows.costs, rows.reset_cost)[policy]  # RESET_PAIR is the last
    chain = chain_of(rows.row_offsets, rows.successors, rows.frequencies, policy, goal)
    return float(expected_costs(chain, costs, goal)[0])


def _pair_costs(atlas: Atlas, model: IntervalModel, costs: Costs) -> FloatArray:
    """Returns the cost of each pair of the model, [P]."""
    pairs = [(atlas.states[index], action) for index in known_indices(atlas, model) for action in atlas.actions[index]]

    def pair_name(pair: int) -> str:
        return f"state {pairs[pair][0]!r}, action {pairs[pair][1]!r}"

    if costs is None:
        return np.ones(len(pairs))
    if isinstance(costs, Mapping):
        _check_table(atlas, costs)
        given: Any = [costs.get(pair, 1.0) for pair in pairs]
    elif callable(costs):
        given = [costs(state, action) for state, action in pairs]
    else:
        given = costs
        if np.shape(given) == (len(atlas.pairs),) and len(pairs) != len(atlas.pairs):
            by_pair = dict(zip(atlas.pairs, real_array("costs", given).tolist(), strict=True))
            given = [by_pair[pair] for pair in pairs]
    return checked_costs(real_array("costs", given), len(pairs), pair_name)


def _check_table(atlas: Atlas, costs: Mapping[tuple[Any, Any], float]) -> None:
    """Refuses a table with states or actions that do not exist."""
    for key in costs:
        if not isinstance(key, tuple) or len(key) != 2:
            raise InvalidCostsError(f"the costs have the key {key!r}; it must be a state and an action")
        state, action = key
        if state not in atlas.indices:
            raise UnknownStateError(f"the costs name {state!r}, which is not a state of the atlas")
        if action is RESET:
            raise InvalidCostsError(f"the costs name RESET in {state!r}; it costs the same everywhere: give reset_cost")
        offered: tuple[Action, ...] = atlas.actions[atlas.indices[state]]
        if action not in offered:
            raise UnknownActionError(f"the costs name the action {action!r} of {state!r}, which has {list(offered)!r}")


COLUMNS: Final = ("state", "action", "cost")


def read_costs(atlas: Atlas, path: Path) -> tuple[dict[tuple[State, Action], float], float]:
    """Reads a table of costs, and the cost of RESET, which defaults to 1, from a file."""
    table: dict[tuple[State, Action], float] = {}
    reset_cost = 1.0
    for number, line in enumerate(_lines(path), start=1):
        missing = [column for column in COLUMNS if line.get(column) is None]
        if missing:
            raise DamagedFileError(f"{path}, entry {number}: there is no {missing[0]}; it needs {', '.join(COLUMNS)}")
        cost = _number(path, number, line["cost"])
        if line["action"] == RESET_TEXT:
            if line["state"] not in ("", "*"):
                raise InvalidCostsError(
                    f"{path}, entry {number}: RESET costs the same everywhere; leave its state empty"
                )
            reset_cost = cost
            continue
        state = named(atlas.states, _as_text(line["state"]), "state of the atlas")
        action = named(atlas.actions[atlas.indices[state]], _as_text(line["action"]), f"action of {text_of(state)}")
        if (state, action) in table:
            raise InvalidCostsError(
                f"{path}, entry {number}: {text_of(state)} and {text_of(action)} have a cost already"
            )
        table[state, action] = cost
    return table, reset_cost


def _lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with storage_errors(f"the costs cannot be read from {path}"), path.open("rb") as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise DamagedFileError(f"{path} has more than the {MAX_JSON_BYTES:,} bytes that are read")
    try:
        text = data.decode("utf-8-sig")
        if path.suffix.lower() != ".json":
            return list(csv.DictReader(text.splitlines(keepends=True), strict=True))
        lines = parsed_json(text.encode("utf-8"))
    except (ValueError, csv.Error) as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from None
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise DamagedFileError(f"{path} must hold a list of objects with {', '.join(COLUMNS)}")
    return lines


def _as_text(label: Any) -> str:
    """Returns a label from a JSON file, or its text, as text."""
    return label if isinstance(label, str) else text_of(decode_label(label))


def _number(path: Path, number: int, cost: Any) -> float:
    try:
        return float(cost)
    except (TypeError, ValueError):
        raise InvalidCostsError(f"{path}, entry {number}: the cost is {cost!r}, which is not a number") from None
