from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from plain_world import snapshot_of_labels

from axplore.domains import confusing_chain
from axplore.mdp import TabularMdp
from axplore.types import RESET_ACTION
from axplore.worlds import simulated
from axplore.worlds import simulation_kernels as stepping
from axplore.worlds.contract import Answer, Tour, Visit
from axplore.worlds.simulated import SimulatedWorld

GO, STAY = 0, 1

LINE = TabularMdp.from_rows(
    {
        "a": {"go": {"b": 1.0}, "stay": {"a": 1.0}},
        "b": {"go": {"c": 1.0}, "stay": {"b": 1.0}},
        "c": {"go": {"d": 1.0}},
        "d": {},
    },
    initial_state="a",
)
"""Three steps from `a` to `d`, which is terminal."""

FORK = TabularMdp.from_rows(
    {
        "hub": {"left": {"l": 1.0}, "right": {"r": 1.0}, "up": {"u": 1.0}},
        "l": {"back": {"hub": 1.0}},
        "r": {"back": {"hub": 1.0}},
        "u": {"back": {"hub": 1.0}},
    },
    initial_state="hub",
)

# The shortest ways on the line, for a, b and c; nothing is planned for d.
TO_A, STEPS_TO_A = (RESET_ACTION, RESET_ACTION, RESET_ACTION), (0, 1, 1)
TO_B, STEPS_TO_B = (GO, STAY, RESET_ACTION), (1, 0, 2)
TO_C, STEPS_TO_C = (GO, GO, RESET_ACTION), (2, 1, 0)


def world_of(mdp: TabularMdp, seed: int = 0) -> SimulatedWorld:
    """A world that starts in the initial state, the model's first, with every state discovered in its order."""
    world = SimulatedWorld(mdp, seed)
    world.restore(snapshot_of_labels(mdp, mdp.states))
    return world


def tour(
    plays: Mapping[tuple[int, int], int],
    ways: Sequence[tuple[Sequence[int], Sequence[float]]],
    max_journey: int = 9,
    max_cuts: int = 1000,
) -> Tour:
    """A tour from {(state, action): times} and the policy and the distances of each target."""
    return Tour(
        states=np.array([state for state, _ in plays], dtype=np.int64),
        actions=np.array([action for _, action in plays], dtype=np.int64),
        times=np.array(list(plays.values()), dtype=np.int64),
        policies=np.array([actions for actions, _ in ways], dtype=np.int64),
        distances=np.array([distances for _, distances in ways], dtype=np.float64),
        max_journey=max_journey,
        max_cuts=max_cuts,
    )


def followed(world: SimulatedWorld, order: Tour, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Answer]:
    """Carries out a tour with a pause after every step: the labels of the states entered, and the answer."""
    entered = []
    carry_on = stepping.tour

    def observed(*arguments: Any) -> stepping.OrderProgress:
        progress = carry_on(*arguments)
        entered.append(world.states[int(world._record.numbers[progress.position])])
        return progress

    with monkeypatch.context() as patch:
        patch.setattr(simulated, "STEPS_BETWEEN_PAUSES", 1)
        patch.setattr(stepping, "tour", observed)
        (answer,) = world.carry_out([order])
    assert len(entered) == answer.steps == world.steps
    return entered, answer


def test_targets_stand_in_the_order_in_which_they_first_appear() -> None:
    plays = {(2, 0): 1, (0, 0): 1, (2, 1): 1, (1, 0): 1, (0, 1): 1}
    assert tour(plays, [((), ())] * 3).targets.tolist() == [2, 0, 1]


def test_a_tour_plays_on_its_way_what_is_outstanding_there(monkeypatch: pytest.MonkeyPatch) -> None:
    # It heads for c, which is said to be nearest, but stands in a and passes b.
    order = tour({(2, GO): 1, (0, STAY): 2, (1, STAY): 1}, [(TO_C, (0, 0, 0)), (TO_A, STEPS_TO_A), (TO_B, STEPS_TO_B)])
    entered, answer = followed(world_of(LINE), order, monkeypatch)
    assert entered == ["a", "a", "b", "b", "c", "d"]
    assert (answer.completed, answer.arrivals, answer.travelled, answer.cut_journeys) == (4, 4, 0, 0)
    pairs = zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), answer.pair_draws.tolist(), strict=True)
    assert list(pairs) == [(0, STAY, 2), (0, GO, 1), (1, STAY, 1), (1, GO, 1), (2, GO, 1)]


def test_a_tour_goes_on_from_where_its_plays_lead_and_ends_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    order = tour({(1, GO): 2, (2, GO): 2}, [(TO_B, STEPS_TO_B), (TO_C, STEPS_TO_C)])
    entered, answer = followed(world_of(LINE), order, monkeypatch)
    assert entered == ["b", "c", "d", "a", "b", "c", "d"]
    assert answer.completed == 4


def test_a_tour_takes_fewer_steps_than_a_visit_for_each_pair() -> None:
    world = world_of(LINE)
    visits: list[Any] = [
        Visit(state=1, action=GO, times=2, policy=np.array(TO_B), max_journey=9),
        Visit(state=2, action=GO, times=2, policy=np.array(TO_C), max_journey=9),
    ]
    # To b and play (2), RESET, again (3); in c play (1), RESET, to c and play (4).
    assert [answer.steps for answer in world.carry_out(visits)] == [5, 5]
    (answer,) = world_of(LINE).carry_out([tour({(1, GO): 2, (2, GO): 2}, [(TO_B, STEPS_TO_B), (TO_C, STEPS_TO_C)])])
    assert answer.steps == 7


@pytest.mark.parametrize(
    ("to_left", "to_right", "first"),
    [(1, 2, "l"), (2, 1, "r"), (1, 1, "l"), (math.inf, math.inf, "l"), (math.inf, 5, "r")],
)
def test_a_tour_heads_for_the_nearest_target_and_of_equal_ones_for_the_first(
    to_left: float, to_right: float, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = [((0, RESET_ACTION, RESET_ACTION), (to_left, 0, 1)), ((1, RESET_ACTION, RESET_ACTION), (to_right, 1, 0))]
    entered, _ = followed(world_of(FORK), tour({(1, 0): 2, (2, 0): 2}, ways), monkeypatch)
    second = "lr".replace(first, "")
    assert entered == [first, "hub", first, "hub", second, "hub", second, "hub"]


def test_a_tour_stays_with_its_target_until_it_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    # From the hub l is nearest, and its way goes up and resets there; from u r is, and its way would go back.
    ways = [((2, 0, 0, RESET_ACTION), (1, 0, 0, 9)), ((1, 0, 0, 0), (2, 0, 0, 1))]
    order = tour({(1, 0): 1, (2, 0): 1}, ways, max_journey=4, max_cuts=1)
    entered, answer = followed(world_of(FORK), order, monkeypatch)
    assert entered == ["u", "hub", "u", "hub", "hub"]
    assert (answer.pair_states.tolist(), answer.pair_draws.tolist()) == ([0], [2])
    assert (answer.completed, answer.cut_journeys) == (0, 1)


def test_a_tour_chooses_anew_after_a_play_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # From a the far end is nearest, by way of b. The play in b leads to c; from there b is nearest, by a RESET.
    on = TabularMdp.from_rows(
        {"a": {"go": {"b": 1.0}}, "b": {"go": {"c": 1.0}}, "c": {"go": {"d": 1.0}}, "d": {"go": {"a": 1.0}}}, "a"
    )
    ways = [((GO, GO, GO), (1, 1, 9)), ((GO, GO, RESET_ACTION), (2, 0, 1))]
    entered, answer = followed(world_of(on), tour({(3, GO): 1, (1, GO): 2}, ways), monkeypatch)
    assert entered == ["b", "c", "a", "b", "c", "d", "a"]
    assert (answer.completed, answer.cut_journeys) == (3, 0)


def test_a_tour_plays_the_action_with_the_largest_remaining_share(monkeypatch: pytest.MonkeyPatch) -> None:
    both = TabularMdp.from_rows({"s": {"x": {"t": 1.0}, "y": {"u": 1.0}}, "t": {}, "u": {}}, "s")
    order = tour({(0, 1): 2, (0, 0): 4}, [((), ())])
    entered, _ = followed(world_of(both), order, monkeypatch)
    # Shares of y (2 asked for) and x (4): 1 1, 1/2 1, 1/2 3/4, 1/2 1/2, 0 1/2, 0 1/4. Of equal ones the first: y.
    assert entered[::2] == ["u", "t", "t", "u", "t", "t"]
    assert entered[1::2] == ["s"] * 5


def test_where_nothing_is_planned_a_tour_resets_and_goes_where_the_initial_state_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of(FORK)
    world.restore(snapshot_of_labels(FORK, FORK.states, position=3))
    # Only the hub is planned, and r is nearer to it than l. The agent stands in u.
    order = tour({(1, 0): 1, (2, 0): 1}, [((0,), (2,)), ((1,), (1,))])
    entered, answer = followed(world, order, monkeypatch)
    assert entered == ["hub", "r", "hub", "l", "hub"]
    assert answer.completed == 2


@pytest.mark.parametrize(("max_journey", "entered", "cuts"), [(3, "abcd", 0), (2, "ababcd", 1)])
def test_a_journey_is_cut_only_if_it_has_not_arrived_in_time(
    max_journey: int, entered: str, cuts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(LINE)
    world.restore(snapshot_of_labels(LINE, LINE.states, position=3))
    order = tour({(2, GO): 1}, [(TO_C, STEPS_TO_C)], max_journey)
    # From d: RESET, go, go, play. If a journey has 2 steps: RESET, go, cut by RESET; go, go, play.
    found, answer = followed(world, order, monkeypatch)
    assert (found, answer.completed, answer.cut_journeys) == (list(entered), 1, cuts)


def test_a_tour_under_an_improper_policy_ends_after_so_many_cut_journeys_in_a_row() -> None:
    world = world_of(LINE)
    # Play in a (1 step); then three journeys of 5 steps that stay in b for ever, each cut by a RESET.
    ways = [((RESET_ACTION, RESET_ACTION), (0, 1)), ((GO, STAY), (2, 1))]
    order = tour({(0, STAY): 1, (2, GO): 9}, ways, max_journey=5, max_cuts=3)
    (answer,) = world.carry_out([order])
    assert (answer.steps, answer.completed, answer.arrivals, answer.cut_journeys) == (1 + 3 * (5 + 1), 1, 1, 3)


def test_cut_journeys_that_are_not_in_a_row_do_not_end_a_tour() -> None:
    coin = TabularMdp.from_rows(
        {"start": {"toss": {"heads": 0.5, "tails": 0.5}}, "heads": {"on": {"start": 1.0}}, "tails": {}}, "start"
    )
    # A journey of one toss fails every other time: forty in a row do so with probability 1e-12, single ones often.
    order = tour({(1, 0): 10_000}, [((0,), (2,))], max_journey=1, max_cuts=40)
    (answer,) = world_of(coin).carry_out([order])
    assert answer.completed == 10_000
    assert answer.cut_journeys > 1000
    # `on` leads to the start, and each toss that fails is followed by a RESET.
    assert answer.steps == 2 * 10_000 + 2 * answer.cut_journeys


def test_a_tour_of_one_pair_is_a_visit() -> None:
    plan, far = [0, 0, 0, 0, 0], [3, 2, 1, 0, 4]
    (toured,) = world_of(confusing_chain(), seed=5).carry_out([tour({(3, 1): 500}, [(plan, far)], 4)])
    visit = Visit(state=3, action=1, times=500, policy=np.array(plan), max_journey=4)
    (visited,) = world_of(confusing_chain(), seed=5).carry_out([visit])
    assert visited.completed == 500
    for name, value in vars(visited).items():
        np.testing.assert_array_equal(getattr(toured, name), value, err_msg=name)


def test_an_empty_tour_takes_no_step() -> None:
    nothing = np.empty(0, dtype=np.int64)
    order = Tour(nothing, nothing, nothing, np.empty((0, 4), dtype=np.int64), np.empty((0, 4)), max_journey=1)
    (answer,) = world_of(LINE).carry_out([order])
    assert (answer.steps, answer.completed, answer.pair_states.size) == (0, 0, 0)


def test_a_tour_leaves_its_order_as_it_was() -> None:
    order = tour({(1, GO): 2, (2, GO): 2}, [(TO_B, STEPS_TO_B), (TO_C, STEPS_TO_C)])
    world = world_of(LINE)
    first, second = world.carry_out([order, order])
    # The second starts in d, with a RESET.
    assert (first.steps, second.steps, second.completed) == (7, 8, 4)
    assert order.times.tolist() == [2, 2]


@pytest.mark.parametrize("kind", ["narrow", "strided", "read-only"])
def test_the_arrays_of_a_tour_may_be_of_any_kind(kind: str) -> None:
    def made(array: Any) -> Any:
        match kind:
            case "narrow":
                return array.astype(np.float32 if array.dtype.kind == "f" else np.int8)
            case "strided":
                return np.repeat(array, 2, axis=-1)[..., ::2]
        array.flags.writeable = False
        return array

    order = tour({(1, GO): 2, (2, GO): 2}, [(TO_B, STEPS_TO_B), (TO_C, STEPS_TO_C)])
    arrays = (order.states, order.actions, order.times, order.policies, order.distances)
    states, actions, times, policies, distances = map(made, arrays)
    (answer,) = world_of(LINE).carry_out([Tour(states, actions, times, policies, distances, max_journey=9)])
    assert (answer.steps, answer.completed) == (7, 4)


def test_states_discovered_on_a_tour_are_numbered_and_reset() -> None:
    world = SimulatedWorld(LINE, seed=0)
    # In a: go, which discovers b; there nothing is planned. RESET, and again.
    (answer,) = world.carry_out([tour({(0, GO): 3}, [((RESET_ACTION,), (0,))])])
    assert (answer.steps, answer.completed) == (5, 3)
    assert list(world.states) == ["a", "b"]
