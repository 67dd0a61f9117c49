from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from any_order import deterministic_model, deterministic_moves
from hypothesis import given
from hypothesis import strategies as st
from plain_world import as_lists, snapshot_of_labels
from scipy import stats

from axplore.domains import combination_lock, confusing_chain, random_sparse
from axplore.errors import InvalidOrderError, InvalidSettingError, UnknownStateError
from axplore.mdp import TabularMdp
from axplore.types import RESET, RESET_ACTION, IntArray
from axplore.worlds import simulated
from axplore.worlds import simulation_kernels as kernels
from axplore.worlds.contract import NOWHERE, Answer, Episodes, Order, Tour, Visit, World, WorldSnapshot
from axplore.worlds.simulated import SimulatedWorld

FALSE_ALARM = 1e-6
"""The probability with which each statistical test below would fail with a fresh seed though nothing is wrong."""

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
"""Three steps from `a` to `d`, which is terminal. Once all is discovered, a, b, c, d are 0, 1, 2, 3."""


def policy(*actions: int) -> IntArray:
    return np.array(actions, dtype=np.int64)


def all_discovered(mdp: TabularMdp, seed: int = 0) -> SimulatedWorld:
    """A world that starts in the initial state, with every state discovered: the others in the model's order."""
    world = SimulatedWorld(mdp, seed)
    others = [label for label in mdp.states if label != mdp.initial_state]
    world.restore(snapshot_of_labels(mdp, [mdp.initial_state, *others]))
    return world


def one(world: SimulatedWorld, order: Order) -> Answer:
    (answer,) = world.carry_out([order])
    return answer


def position(world: SimulatedWorld) -> Any:
    return world.states[world.snapshot().position]


def met(world: World, answer: Answer) -> dict[tuple[Any, Any], dict[Any, int]]:
    """The transitions of an answer by label: {(state, action): {successor: count}}."""
    pairs = [
        (world.states[state], world.actions_of(state)[action])
        for state, action in zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True)
    ]
    found: dict[tuple[Any, Any], dict[Any, int]] = {pair: {} for pair in pairs}
    for pair, successor, count in zip(answer.entry_pairs, answer.entry_successors, answer.entry_counts, strict=True):
        found[pairs[pair]][world.states[successor]] = int(count)
    return found


def test_a_new_world_knows_its_initial_state_alone() -> None:
    world: World = SimulatedWorld(combination_lock(), seed=0)
    assert list(world.states) == ["s3"]
    assert world.steps == 0
    assert world.actions_of(0) == ("left", "right")
    with pytest.raises(UnknownStateError, match="the discovered states are 0 to 0"):
        world.actions_of(1)


def test_states_are_numbered_in_the_order_in_which_they_are_first_entered() -> None:
    world = SimulatedWorld(combination_lock(), seed=3)
    answer = one(world, Visit(state=0, action=0, times=200, policy=policy(), max_journey=1))
    labels = world.states
    assert labels[0] == "s3"
    assert set(labels[1:]) == {"s0", "s1", "s2"}
    # Only one pair was drawn, so its successors were entered in the order of their first draws.
    assert answer.entry_successors[np.argsort(answer.entry_first_draws)].tolist() == [1, 2, 3]
    one(world, Visit(state=0, action=1, times=1, policy=policy(), max_journey=1))
    assert list(world.states) == [*labels, "s4"]


def test_a_terminal_state_has_no_action() -> None:
    world = all_discovered(LINE)
    assert [world.actions_of(state) for state in range(4)] == [("go", "stay"), ("go", "stay"), ("go",), ()]


def test_a_first_visit_to_where_the_agent_stands_takes_one_step() -> None:
    world = SimulatedWorld(LINE, seed=0)
    answer = one(world, Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1))
    assert as_lists(answer) == {
        "steps": 1, "completed": 1, "arrivals": 1, "travelled": 0, "cut_journeys": 0,
        "pair_states": [0], "pair_actions": [GO], "pair_draws": [1],
        "entry_pairs": [0], "entry_successors": [1], "entry_counts": [1], "entry_first_draws": [1],
        "outcomes": [],
    }  # fmt: skip
    assert list(world.states) == ["a", "b"]
    assert world.steps == 1


def test_a_visit_goes_on_from_where_the_agent_stands_and_resets_where_the_policy_ends() -> None:
    world = SimulatedWorld(LINE, seed=0)
    one(world, Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1))
    # In b: play (to c). Then twice: RESET in c, go in a, play in b.
    answer = one(world, Visit(state=1, action=GO, times=3, policy=policy(GO), max_journey=2))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (7, 3, 0)
    assert met(world, answer) == {("b", "go"): {"c": 3}, ("a", "go"): {"b": 2}}
    assert position(world) == "c"


def test_reset_in_a_terminal_state_is_a_step_and_no_transition() -> None:
    world = all_discovered(LINE)
    # go, go, play in c (to d); then RESET in d, and the same again.
    answer = one(world, Visit(state=2, action=GO, times=2, policy=policy(GO, GO, GO, RESET_ACTION), max_journey=3))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (7, 2, 0)
    assert met(world, answer) == {("a", "go"): {"b": 2}, ("b", "go"): {"c": 2}, ("c", "go"): {"d": 2}}
    assert world.steps == 7


def test_an_answer_holds_the_transitions_of_its_own_order_alone() -> None:
    world = all_discovered(LINE)
    answer = one(world, Visit(state=1, action=STAY, times=4, policy=policy(GO), max_journey=1))
    assert met(world, answer) == {("a", "go"): {"b": 1}, ("b", "stay"): {"b": 4}}
    answer = one(world, Visit(state=1, action=STAY, times=2, policy=policy(GO), max_journey=1))
    assert met(world, answer) == {("b", "stay"): {"b": 2}}
    assert world.steps == 7


@pytest.mark.parametrize(("max_journey", "steps", "cuts"), [(3, 4, 0), (2, 6, 1)])
def test_a_journey_is_cut_only_if_it_has_not_arrived_in_time(max_journey: int, steps: int, cuts: int) -> None:
    world = all_discovered(LINE)
    to_c = Visit(state=2, action=GO, times=1, policy=policy(GO, GO), max_journey=max_journey)
    one(world, to_c)
    # From d: RESET, go, go, play. If a journey has 2 steps: RESET, go, cut by RESET; go, go, play.
    answer = one(world, to_c)
    assert (answer.steps, answer.completed, answer.cut_journeys) == (steps, 1, cuts)
    assert position(world) == "d"


def test_a_visit_under_an_improper_policy_ends_after_so_many_cut_journeys_in_a_row() -> None:
    world = all_discovered(LINE)
    one(world, Visit(state=1, action=GO, times=1, policy=policy(GO), max_journey=1))
    # In c: play (1 step, one visit). Then three journeys of 5 steps that stay in b for ever, each cut by a RESET.
    answer = one(world, Visit(state=2, action=GO, times=9, policy=policy(GO, STAY), max_journey=5, max_cuts=3))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (1 + 3 * (5 + 1), 1, 3)
    assert position(world) == "a"


def test_a_visit_makes_up_for_cut_journeys_that_are_not_in_a_row() -> None:
    coin = TabularMdp.from_rows(
        {"start": {"toss": {"heads": 0.5, "tails": 0.5}}, "heads": {"on": {"start": 1.0}}, "tails": {}}, "start"
    )
    world = all_discovered(coin)
    # A journey of one toss fails every other time: forty in a row do so with probability 1e-12, single ones often.
    answer = one(world, Visit(state=1, action=0, times=10_000, policy=policy(0), max_journey=1, max_cuts=40))
    assert answer.completed == 10_000
    assert answer.cut_journeys > 1000
    # `on` leads to the start, and each toss that fails is followed by a RESET.
    assert answer.steps == 2 * 10_000 + 2 * answer.cut_journeys


def test_a_visit_by_a_policy_that_depends_on_the_step_begins_in_the_initial_state() -> None:
    world = all_discovered(LINE)
    staged = np.array([[STAY, STAY], [GO, STAY], [GO, STAY], [GO, GO]])
    # stay, go, stay, go, play in c (to d); the second time with a RESET before it.
    answer = one(world, Visit(state=2, action=GO, times=2, policy=staged, max_journey=4))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (5 + 6, 2, 0)
    assert met(world, answer) == {
        ("a", "stay"): {"a": 2},
        ("a", "go"): {"b": 2},
        ("b", "stay"): {"b": 2},
        ("b", "go"): {"c": 2},
        ("c", "go"): {"d": 2},
    }
    assert position(world) == "d"


def test_only_a_policy_that_depends_on_the_step_leaves_the_target_before_it_visits_it() -> None:
    # stay in b; then either stay there, or RESET and go to b again.
    for plan, steps in ((policy(GO), 1 + 3), (policy(GO)[None], 2 + 3 + 3)):
        world = all_discovered(LINE)
        answer = one(world, Visit(state=1, action=STAY, times=3, policy=plan, max_journey=1))
        assert (answer.steps, answer.completed, answer.cut_journeys) == (steps, 3, 0)


@pytest.mark.parametrize(("action", "steps"), [(GO, 1 + 3 * 2), (STAY, 4)])
def test_a_journey_by_step_to_the_initial_state_has_no_steps(action: int, steps: int) -> None:
    world = all_discovered(LINE)
    everywhere_reset = np.full((3, 4), RESET_ACTION)
    answer = one(world, Visit(state=0, action=action, times=4, policy=everywhere_reset, max_journey=3))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (steps, 4, 0)
    assert answer.pair_draws.tolist() == [4]


@pytest.mark.parametrize(
    ("last", "steps"), [(STAY, 3 * (2 + 1)), (RESET_ACTION, 3 * 2)], ids=["elsewhere", "in the initial state"]
)
def test_the_reset_that_cuts_a_journey_by_step_begins_the_next(last: int, steps: int) -> None:
    world = all_discovered(LINE)
    staged = np.array([[GO, GO], [GO, last]])
    # go, then stay in b, so that a RESET is needed, or RESET, so that none is.
    answer = one(world, Visit(state=2, action=GO, times=1, policy=staged, max_journey=2, max_cuts=3))
    assert (answer.steps, answer.completed, answer.cut_journeys) == (steps, 0, 3)
    assert position(world) == "a"


@pytest.mark.parametrize(("max_journey", "arrival"), [(1, 1 / 2), (2, 1 / 2), (3, 3 / 4), (4, 3 / 4)])
def test_journeys_by_step_arrive_as_often_and_take_as_many_steps_as_on_the_model(
    max_journey: int, arrival: float
) -> None:
    """An exact test of the cuts, which are negative binomial; the steps follow from the tosses."""
    coin = TabularMdp.from_rows(
        {
            "start": {"toss": {"heads": 0.5, "tails": 0.5}},
            "heads": {"on": {"start": 1.0}, "off": {"tails": 1.0}},
            "tails": {"turn": {"heads": 1.0}},
        },
        "start",
    )
    numbers = {label: number for number, label in enumerate(all_discovered(coin).states)}
    # Toss in the steps 0 and 2; tails reset in the steps 1 and 3, though `turn` would arrive.
    staged = np.full((max_journey, 3), RESET_ACTION)
    staged[:, numbers["start"]] = 0
    staged[::2, numbers["tails"]] = 0  # never met: tails come after an odd number of steps
    times = 20_000
    for action, resets in (("on", 0), ("off", times - 1)):  # `off` leads elsewhere, so that a RESET follows
        world = all_discovered(coin, seed=5)
        place = coin.actions_of("heads").index(action)
        answer = one(world, Visit(numbers["heads"], place, times, staged, max_journey))
        tosses = met(world, answer)["start", "toss"]
        assert tosses["heads"] == answer.completed == times
        # Every tail is followed by one RESET: that of the policy, or that of the cut.
        assert answer.steps == times + 2 * tosses["tails"] + times + resets
        cuts = stats.nbinom(times, arrival)
        assert min(cuts.cdf(answer.cut_journeys), cuts.sf(answer.cut_journeys - 1)) > FALSE_ALARM / 4
        if max_journey <= 2:
            assert answer.cut_journeys == tosses["tails"]


def test_no_visits_and_no_episodes_take_no_step() -> None:
    world = all_discovered(LINE)
    for order in (
        Visit(state=2, action=GO, times=0, policy=policy(GO, GO), max_journey=2),
        Episodes(goal=2, times=0, horizon=2, policy=policy(GO, GO)),
    ):
        answer = one(world, order)
        assert (answer.steps, answer.completed, answer.pair_states.size, answer.entry_pairs.size) == (0, 0, 0, 0)
    assert world.steps == 0


def test_an_episode_starts_with_a_reset_unless_the_agent_stands_in_the_initial_state() -> None:
    world = all_discovered(LINE)
    answer = one(world, Episodes(goal=2, times=3, horizon=10, policy=policy(GO, GO)))
    assert (answer.steps, answer.completed, answer.arrivals, answer.travelled) == (2 + 3 + 3, 3, 3, 6)
    assert position(world) == "c"
    answer = one(world, Episodes(goal=2, times=1, horizon=10, policy=policy(GO, GO)))
    assert (answer.steps, answer.travelled) == (3, 2)


@pytest.mark.parametrize(("always_reset", "steps"), [(False, 3 * 2), (True, 3 * (1 + 2))])
def test_an_episode_that_ends_in_the_initial_state_is_followed_by_a_reset_if_that_is_asked_for(
    always_reset: bool, steps: int
) -> None:
    world = all_discovered(LINE)
    order = Episodes(goal=2, times=3, horizon=2, policy=policy(STAY, GO), always_reset=always_reset)
    answer = one(world, order)
    assert (answer.steps, answer.completed, answer.arrivals, answer.travelled) == (steps, 3, 0, 6)


@pytest.mark.parametrize(("horizon", "arrivals", "steps"), [(1, 0, 1 + 2 + 2), (2, 3, 2 + 3 + 3)])
def test_an_episode_ends_at_its_horizon(horizon: int, arrivals: int, steps: int) -> None:
    world = all_discovered(LINE)
    answer = one(world, Episodes(goal=2, times=3, horizon=horizon, policy=policy(GO, GO)))
    assert (answer.arrivals, answer.travelled, answer.steps) == (arrivals, 3 * horizon, steps)
    assert answer.cut_journeys == 0


def test_a_policy_may_depend_on_the_step() -> None:
    world = all_discovered(LINE)
    staged = np.array([[STAY, STAY], [GO, GO], [GO, STAY], [STAY, GO]])
    answer = one(world, Episodes(goal=2, times=2, horizon=4, policy=staged))
    assert (answer.steps, answer.arrivals, answer.travelled) == (4 + 5, 2, 8)
    assert met(world, answer) == {
        ("a", "stay"): {"a": 2},
        ("a", "go"): {"b": 2},
        ("b", "stay"): {"b": 2},
        ("b", "go"): {"c": 2},
    }


def test_a_reset_played_by_the_policy_is_a_step_of_the_episode() -> None:
    world = all_discovered(LINE)
    staged = np.array([[GO, GO], [GO, RESET_ACTION], [GO, GO], [GO, GO]])
    answer = one(world, Episodes(goal=2, times=2, horizon=4, policy=staged))
    assert (answer.steps, answer.arrivals, answer.travelled) == (4 + 5, 2, 8)
    assert met(world, answer) == {("a", "go"): {"b": 4}, ("b", "go"): {"c": 2}}


def test_episodes_under_an_improper_policy_end() -> None:
    world = all_discovered(LINE)
    answer = one(world, Episodes(goal=2, times=3, horizon=7, policy=policy(RESET_ACTION)))
    assert (answer.steps, answer.arrivals, answer.travelled) == (21, 0, 21)
    assert answer.pair_states.size == 0


def test_an_episode_towards_the_initial_state_has_no_steps() -> None:
    world = all_discovered(LINE)
    home = Episodes(goal=0, times=4, horizon=5, policy=policy(GO, GO))
    answer = one(world, home)
    assert (answer.steps, answer.completed, answer.arrivals, answer.travelled) == (0, 4, 4, 0)
    one(world, Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1))
    answer = one(world, home)
    assert (answer.steps, answer.completed, answer.arrivals, answer.travelled) == (1, 4, 4, 0)


@pytest.mark.parametrize(
    ("allowance", "slack", "completed"),
    [(1.0, 3.0, 4), (2.0, 0.0, 9), (1.5, 0.0, 1), (0.0, 5.9, 3), (math.inf, 0.0, 9)],
)
def test_episodes_stop_once_they_took_more_steps_than_allowed(allowance: float, slack: float, completed: int) -> None:
    world = all_discovered(LINE)
    order = Episodes(goal=2, times=9, horizon=5, policy=policy(GO, GO), allowance=allowance, slack=slack)
    answer = one(world, order)
    assert (answer.completed, answer.travelled) == (completed, 2 * completed)


@pytest.mark.parametrize(
    "make",
    [
        lambda actions: np.array(actions, dtype=np.int8),
        lambda actions: np.array([actions, actions]).T[:, 0],
        lambda actions: np.broadcast_to(np.array(actions, dtype=np.int64), np.shape(actions)),
    ],
    ids=["narrow", "strided", "read-only"],
)
def test_a_policy_may_be_any_array_of_integers(make: Any) -> None:
    world = all_discovered(LINE)
    assert one(world, Visit(state=2, action=GO, times=1, policy=make([GO, GO]), max_journey=2)).steps == 3
    staged = make([[GO, GO], [GO, GO]])
    assert one(world, Visit(state=2, action=GO, times=1, policy=staged, max_journey=2)).steps == 4
    assert one(world, Episodes(goal=2, times=1, horizon=2, policy=make([GO, GO]))).steps == 3


def test_a_refused_order_leaves_the_world_as_it_was() -> None:
    world = SimulatedWorld(LINE, seed=0)
    sound = Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1)
    with pytest.raises(InvalidOrderError, match="order 1 of 2"):
        world.carry_out([sound, Visit(state=1, action=GO, times=1, policy=policy(), max_journey=1)])
    assert (world.steps, list(world.states), world.snapshot().calls) == (0, ["a"], 0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with pytest.raises(InvalidSettingError, match="seed"):
        SimulatedWorld(LINE, seed)


@st.composite
def visits_by_step(draw: st.DrawFn, action_counts: Sequence[int]) -> Visit:
    """Any visit by a policy that depends on the step; there must be an action."""
    pairs = [(state, action) for state, n_actions in enumerate(action_counts) for action in range(n_actions)]
    longest = draw(st.integers(1, 6))
    plan = [[draw(st.integers(-1, n_actions - 1)) for n_actions in action_counts] for _ in range(longest)]
    times, max_cuts = draw(st.tuples(st.integers(0, 6), st.integers(1, 3)))
    return Visit(*draw(st.sampled_from(pairs)), times, np.array(plan, dtype=np.int64), longest, max_cuts)


@given(moves=deterministic_moves().filter(lambda moves: any(moves.values())), data=st.data())
def test_a_visit_by_step_is_so_many_times_an_episode_and_a_play_where_it_ends(
    moves: dict[int, list[int]], data: st.DataObject
) -> None:
    mdp = deterministic_model(moves, data.draw(st.sampled_from(sorted(moves))))
    together, apart = all_discovered(mdp), all_discovered(mdp)
    order = data.draw(visits_by_step([len(together.actions_of(number)) for number in range(len(moves))]))
    answer = one(together, order)
    there = Episodes(order.state, times=1, horizon=order.max_journey, policy=order.policy)
    play = Visit(order.state, order.action, times=1, policy=policy(), max_journey=1)
    draws: Counter[tuple[Any, Any]] = Counter()
    completed = misses = 0
    while completed < order.times and misses < order.max_cuts:
        journey = one(apart, there)
        parts = [journey, one(apart, play)] if journey.arrivals else [journey]
        completed, misses = completed + journey.arrivals, misses + 1 - journey.arrivals
        for part in parts:
            draws.update({pair: sum(row.values()) for pair, row in met(apart, part).items()})
    assert (answer.completed, answer.cut_journeys) == (completed, misses)
    assert {pair: sum(row.values()) for pair, row in met(together, answer).items()} == draws
    # The RESET that cuts the last journey begins no other.
    assert together.steps == apart.steps + (misses > 0 and apart.position != 0)


def test_each_successor_is_drawn_with_the_probability_of_the_model() -> None:
    """Exact binomial tests of every transition of a random model, with the false alarm shared among them."""
    mdp = random_sparse(states=12, actions=2, branching=(1, 9), seed=5)
    world = all_discovered(mdp, seed=11)
    times = 40_000
    by_number = [mdp.index_of(label) for label in world.states]
    orders = [
        # On the way a walk by the first action; RESET comes with the cut.
        Visit(state, action, times, policy=np.zeros(mdp.n_states, dtype=np.int64), max_journey=100, max_cuts=10**9)
        for state in range(mdp.n_states)
        for action in range(2)
    ]
    for order, answer in zip(orders, world.carry_out(orders), strict=True):
        label = mdp.states[by_number[order.state]]
        action = mdp.actions[order.action]
        counts = met(world, answer)[label, action]
        assert sum(counts.values()) == times
        for successor, probability in mdp.row(label, action).items():
            p_value = stats.binomtest(counts.get(successor, 0), times, probability).pvalue
            assert p_value > FALSE_ALARM / mdp.n_transitions, (label, action, successor)


def test_a_draw_does_not_depend_on_the_draw_before() -> None:
    """Three states with the same row: the next state must not depend on the present one."""
    row = {"x": 0.5, "y": 0.3, "z": 0.2}
    mdp = TabularMdp.from_rows({state: {"draw": row} for state in row}, "x")
    world = all_discovered(mdp, seed=2)
    answer = one(world, Visit(state=0, action=0, times=200_000, policy=policy(0, 0, 0), max_journey=10**6))
    table = met(world, answer)
    for state in row:
        observed = np.array([table[state, "draw"][successor] for successor in row])
        expected = observed.sum() * np.array(list(row.values()))
        assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM / len(row)


def test_first_draws_of_many_orders_are_geometric() -> None:
    """Chi-square of when a successor of probability 0.2 is met first; every order has a stream of its own."""
    mdp = TabularMdp.from_rows({"s": {"try": {"s": 0.8, "t": 0.2}}, "t": {"on": {"s": 1.0}}}, "s")
    world = all_discovered(mdp, seed=8)
    visit = Visit(state=0, action=0, times=100, policy=policy(0, 0), max_journey=1)
    first = [
        int(answer.entry_first_draws[answer.entry_successors.tolist().index(1)])
        for answer in world.carry_out([visit] * 4000)
        if 1 in answer.entry_successors  # the chance that one is missing in all is below 1e-6
    ]
    assert len(first) == 4000
    longest = 20
    observed = np.bincount(np.minimum(first, longest), minlength=longest + 1)[1:]
    probabilities = 0.2 * 0.8 ** np.arange(longest)
    probabilities[-1] = 0.8 ** (longest - 1)
    assert stats.chisquare(observed, 4000 * probabilities).pvalue > FALSE_ALARM


def steps_within_horizon(
    mdp: TabularMdp, plan: Mapping[Any, Any], goal: Any, horizon: int
) -> tuple[float, float, float]:
    """Mean and variance of min(τ, horizon), and P(τ ≤ horizon), for the time τ to the goal; exact, by propagation."""
    move = np.zeros((mdp.n_states, mdp.n_states))
    for state in mdp.states:
        action = plan.get(state, RESET)
        row = {mdp.initial_state: 1.0} if action is RESET else mdp.row(state, action)
        for successor, probability in row.items():
            move[mdp.index_of(state), mdp.index_of(successor)] = probability
    move[mdp.index_of(goal)] = 0.0
    under_way = np.zeros(mdp.n_states)
    under_way[mdp.initial_index] = 1.0
    under_way[mdp.index_of(goal)] = 0.0
    mean = second = 0.0
    for step in range(horizon):
        mean += under_way.sum()
        second += (2 * step + 1) * under_way.sum()
        under_way = under_way @ move
        under_way[mdp.index_of(goal)] = 0.0
    return mean, second - mean**2, 1 - under_way.sum()


@pytest.mark.parametrize(
    ("plan", "untruncated"),
    [
        ({"s0": "forward", "s1": "skip"}, 4.0),  # one step, then a skip that works one time in three
        ({"s0": "skip", "s7": "forward"}, 12.0),  # two steps that work one time in six, with a RESET otherwise
    ],
    ids=["skip", "confusing"],
)
@pytest.mark.parametrize("horizon", [6, 200])
def test_episodes_take_as_many_steps_as_the_policy_does_on_the_model(
    plan: dict[str, str], untruncated: float, horizon: int
) -> None:
    """Bernstein's inequality for the mean length, an exact binomial test for the arrivals, half the alarm each."""
    mdp = confusing_chain()
    world = all_discovered(mdp, seed=21)
    actions = [mdp.actions_of(label).index(plan[str(label)]) if label in plan else RESET_ACTION for label in mdp.states]
    times = 100_000
    mean, variance, arrival = steps_within_horizon(mdp, plan, "s5", horizon)
    if horizon == 200:
        assert mean == pytest.approx(untruncated, abs=1e-6)
    answer = one(world, Episodes(mdp.index_of("s5"), times, horizon, policy(*actions)))
    logarithm = math.log(2 / (FALSE_ALARM / 2))
    # The t with times * t^2 / (2 * (variance + horizon * t / 3)) = logarithm.
    linear = horizon * logarithm / 3
    deviation = (linear + math.sqrt(linear**2 + 2 * times * variance * logarithm)) / times
    assert abs(answer.travelled / times - mean) < deviation
    assert stats.binomtest(answer.arrivals, times, min(arrival, 1.0)).pvalue > FALSE_ALARM / 2


def test_the_steps_of_visits_add_up_on_the_chain() -> None:
    world = all_discovered(confusing_chain(), seed=4)
    times = 30_000
    answer = one(world, Visit(state=1, action=1, times=times, policy=policy(0, 0, 0, 0, 0, 0), max_journey=10))
    skips = met(world, answer)["s1", "skip"]["s5"]
    # One step to s1, a step for each play, and two (s5 to s0 to s1) after each skip that worked but the last.
    assert answer.steps == 1 + times + 2 * (skips - (position(world) == "s5"))


def some_orders() -> list[Order]:
    return [
        Visit(state=0, action=1, times=50, policy=policy(0, 0, 0, 0, 0), max_journey=9),
        Visit(state=2, action=1, times=50, policy=policy(0, 0, 0, 0, 0), max_journey=9),
        Visit(state=5, action=1, times=50, policy=np.tile(policy(0, 1, 0, 0, 0), (4, 1)), max_journey=4),
        Episodes(goal=5, times=50, horizon=8, policy=policy(0, 1, 0, 0, 0)),
        Tour(
            states=policy(3, 1, 0, 1),
            actions=policy(1, 1, 1, 0),
            times=policy(20, 30, 5, 10),
            policies=np.zeros((3, 5), dtype=np.int64),
            distances=np.array([[3, 2, 1, 0, 5], [1, 0, 4, 3, 2], [0, 1, 1, 1, 1]], dtype=np.float64),
            max_journey=9,
        ),
    ]


def answers_of(world: SimulatedWorld, calls: int = 2) -> list[dict[str, Any]]:
    return [as_lists(answer) for _ in range(calls) for answer in world.carry_out(some_orders())]


def test_the_same_seed_gives_the_same_answers_and_another_seed_others() -> None:
    chain = confusing_chain()
    assert answers_of(all_discovered(chain, seed=1)) == answers_of(all_discovered(chain, seed=1))
    assert answers_of(all_discovered(chain, seed=1)) != answers_of(all_discovered(chain, seed=2))


def test_every_place_and_every_call_has_a_stream_of_its_own() -> None:
    world = all_discovered(confusing_chain())
    visit = Visit(state=0, action=1, times=60, policy=policy(), max_journey=9)
    counts = [tuple(sorted(met(world, answer)["s0", "skip"].items())) for answer in world.carry_out([visit] * 20)]
    counts += [tuple(sorted(met(world, one(world, visit))["s0", "skip"].items())) for _ in range(20)]
    assert len(set(counts)) == len(counts)


def test_the_stream_of_an_order_does_not_depend_on_the_other_orders() -> None:
    alone, accompanied = (all_discovered(confusing_chain(), seed=6) for _ in range(2))
    visit = Visit(state=0, action=1, times=60, policy=policy(), max_journey=9)
    # Both first orders end in a confusing state, whichever it is.
    _, after_short = alone.carry_out([visit, visit])
    _, after_long = accompanied.carry_out([Visit(state=0, action=1, times=999, policy=policy(), max_journey=9), visit])
    assert as_lists(after_short) == as_lists(after_long)


def test_a_restored_world_goes_on_as_if_it_had_never_stopped() -> None:
    chain = confusing_chain()
    world = SimulatedWorld(chain, seed=1)
    first = Visit(state=0, action=1, times=40, policy=policy(), max_journey=9)
    world.carry_out([first, first])
    snapshot = world.snapshot()
    onward = [Visit(state=3, action=0, times=5, policy=policy(1), max_journey=9), first]
    expected = [as_lists(answer) for answer in world.carry_out(onward)]
    for later in (SimulatedWorld(chain, seed=1), world):
        later.restore(snapshot)
        assert (later.steps, len(later.states)) == (snapshot.steps, len(snapshot.labels))
        assert [as_lists(answer) for answer in later.carry_out(onward)] == expected
        assert list(later.states) == list(world.states)


def test_a_snapshot_does_not_change_while_the_world_goes_on() -> None:
    world = SimulatedWorld(LINE, seed=0)
    snapshot = world.snapshot()
    one(world, Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1))
    assert (snapshot.position, snapshot.labels, snapshot.steps, snapshot.calls) == (0, ("a",), 0, 0)


@pytest.mark.parametrize(
    ("position", "labels", "steps"),
    [(0, "", 0), (0, "b", 0), (0, "ax", 0), (0, "abb", 0), (2, "ab", 0), (-2, "ab", 0), (0, "a", -1)],
)
def test_a_snapshot_of_another_world_is_refused(position: int, labels: str, steps: int) -> None:
    with pytest.raises(InvalidSettingError, match="the snapshot"):
        SimulatedWorld(LINE, seed=0).restore(WorldSnapshot(tuple(labels), ((),) * len(labels), steps, 0, position))


def test_a_snapshot_without_a_position_is_resumed_in_the_initial_state() -> None:
    world = all_discovered(LINE)
    one(world, Visit(state=0, action=GO, times=1, policy=policy(), max_journey=1))
    world.restore(replace(world.snapshot(), position=NOWHERE))
    assert position(world) == "a"


@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_pauses_change_nothing(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers_of(all_discovered(confusing_chain(), seed=3))
    monkeypatch.setattr(simulated, "STEPS_BETWEEN_PAUSES", steps)
    assert answers_of(all_discovered(confusing_chain(), seed=3)) == expected


def test_after_an_interruption_the_next_answer_holds_nothing_of_the_interrupted_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = all_discovered(LINE)
    visit = Visit(state=2, action=GO, times=10, policy=policy(GO, GO), max_journey=3)
    carry_on = kernels.visit

    def interrupted(*arguments: Any) -> kernels.OrderProgress:
        if world.steps == 5:
            raise KeyboardInterrupt
        return carry_on(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(simulated, "STEPS_BETWEEN_PAUSES", 5)
        patch.setattr(kernels, "visit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.carry_out([visit])
    assert (world.steps, position(world)) == (5, "b")
    answer = one(world, Visit(state=1, action=STAY, times=2, policy=policy(), max_journey=1))
    assert met(world, answer) == {("b", "stay"): {"b": 2}}
