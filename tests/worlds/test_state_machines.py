"""State machines of other packages are explored as they are: compared with the models that they follow."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule
from statemachine import State, StateMachine
from transitions import Machine

import axplore
from axplore import TabularMdp, controllable_states
from axplore.errors import InvalidInputError, UnknownNameError, WorldError
from axplore.explorers.base import RoundReport
from axplore.testing import check_world
from axplore.truth import optimal_steps
from axplore.worlds.catalogue import named_world, world_of
from axplore.worlds.keys import ModelSystem, keyed
from axplore.worlds.state_machines import HypothesisSystem
from axplore.worlds.stepped import SteppedWorld

NOISE = random.Random(1)


class Till(RuleBasedStateMachine):
    """Coins of one or two cents; a fourth cent breaks it."""

    accounts = Bundle("accounts")

    @initialize(target=accounts)
    def begin(self) -> str:
        self.state = 0
        return "ann"

    @rule(amount=st.sampled_from([1, 2]))
    def pay(self, amount: int) -> None:
        self.state = min(4, self.state + amount)

    @precondition(lambda self: self.state > 0)
    @rule(account=accounts)
    def refund(self, account: str) -> None:
        assert account == "ann"
        self.state -= 1

    @rule(coin=st.just(3))
    def refuse(self, coin: int) -> None:
        assume(coin < 3)
        self.state = 0

    @invariant()
    def holds_few(self) -> None:
        assert getattr(self, "state", 0) < 4, "too many coins"


BROKEN = "failed: pay: AssertionError"
TILL = TabularMdp.from_rows(
    {
        0: {"pay": {1: 0.5, 2: 0.5}, "refuse": {0: 1.0}},
        1: {"pay": {2: 0.5, 3: 0.5}, "refund": {0: 1.0}, "refuse": {1: 1.0}},
        2: {"pay": {3: 0.5, BROKEN: 0.5}, "refund": {1: 1.0}, "refuse": {2: 1.0}},
        3: {"pay": {BROKEN: 1.0}, "refund": {2: 1.0}, "refuse": {3: 1.0}},
        BROKEN: {},
    },
    0,
)


class Door(StateMachine):
    """A door that jams every other time."""

    shut = State(initial=True)
    ajar = State()
    gone = State(final=True)
    push = shut.to(ajar, cond="moves")
    pull = ajar.to(shut)
    kick = ajar.to(gone)

    def moves(self) -> bool:
        return NOISE.random() < 0.5


DOOR = TabularMdp.from_rows(
    {
        "shut": {"push": {"ajar": 0.5, "shut": 0.5}},
        "ajar": {"pull": {"shut": 1.0}, "kick": {"gone": 1.0}},
        "gone": {},
    },
    "shut",
)


class Matter:
    """A model that has its machine, as the examples of transitions do."""

    def __init__(self) -> None:
        self.seen = 0
        moves: list[Any] = [
            {"trigger": "melt", "source": "solid", "dest": "liquid", "conditions": "is_warm"},
            ["boil", "liquid", "gas"],
            ["freeze", "liquid", "solid"],
        ]
        self.machine = Machine(self, states=["solid", "liquid", "gas"], initial="solid", transitions=moves)

    def is_warm(self) -> bool:
        return NOISE.random() < 0.7


MATTER = TabularMdp.from_rows(
    {
        "solid": {"melt": {"liquid": 0.7, "solid": 0.3}},
        "liquid": {"boil": {"gas": 1.0}, "freeze": {"solid": 1.0}},
        "gas": {},
    },
    "solid",
)


def met(make: Any, **options: Any) -> axplore.Atlas:
    return axplore.explore(
        world_of(make, 3, **options), radius=3, epsilon=2, objective="within-radius", doctor=False, max_steps=20_000
    )


@pytest.mark.parametrize(("make", "model"), [(Till, TILL), (Door, DOOR), (Matter, MATTER)])
def test_a_machine_is_explored_as_its_model_says(make: Callable[[], Any], model: TabularMdp) -> None:
    atlas = met(make)
    inner, outer = controllable_states(model, 3), controllable_states(model, 5)
    assert set(inner.states) <= set(atlas.states) <= set(outer.states)
    assert len(inner.states) > 1
    for state in atlas.states:
        assert set(atlas.actions[atlas.indices[state]]) == set(model.actions_of(state))
        assert atlas.bounds(state).lower <= optimal_steps(model, state, atlas.states) + 1e-9


def test_rules_of_hypothesis_draw_as_a_seed_says_and_keep_the_contract() -> None:
    applied = check_world(lambda: world_of(Till, 1))
    assert applied
    world = world_of(Till, 1)
    assert world.repeatable


def test_a_machine_without_a_state_needs_a_key() -> None:
    class Bare(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.lit = False

        @rule()
        def press(self) -> None:
            self.lit = not self.lit

    with pytest.raises(WorldError, match=r"has no attribute `state`.*--key"):
        world_of(Bare, 0)
    atlas = met(Bare, key=lambda machine: "lit" if machine.lit else "dark")
    assert set(atlas.states) == {"dark", "lit"}


def test_a_key_is_given_the_machine_or_the_model() -> None:
    assert set(met(Door, key=lambda door: door.configuration_values[0]).states) >= {"shut", "ajar"}
    assert set(met(Matter, key=lambda matter: matter.state.upper()).states) >= {"SOLID", "LIQUID"}


def test_a_machine_itself_cannot_be_reset() -> None:
    for machine in (Door(), Matter(), Till()):
        with pytest.raises(InvalidInputError, match="made anew for every RESET"):
            world_of(machine, 0)


def test_jumps_of_transitions_are_no_actions() -> None:
    world = world_of(Matter, 0)
    assert world.actions_of(0) == ("melt",)


def test_teardown_is_called_for_every_machine() -> None:
    ended = []

    class Ending(Till):
        def teardown(self) -> None:
            ended.append(self)

    system = HypothesisSystem(Ending)
    system.reset()
    system.reset()
    system.close()
    assert len(ended) == 2


@pytest.mark.parametrize("kind", ["hypothesis", "statemachine", "transitions"])
def test_a_name_that_makes_no_machine_is_refused(kind: str) -> None:
    with pytest.raises(InvalidInputError, match="makes no state machine"):
        named_world(f"{kind}:collections:OrderedDict", 0, {})
    with pytest.raises(UnknownNameError, match="no module"):
        named_world(f"{kind}:nowhere:Thing", 0, {})


def parity(state: Any) -> str:
    return "even" if state % 2 == 0 else "odd"


RING = TabularMdp.from_rows({place: {"on": {(place + 1) % 4: 0.8, place: 0.2}} for place in range(4)}, 0)
TWO = TabularMdp.from_rows(
    {"even": {"on": {"odd": 0.8, "even": 0.2}}, "odd": {"on": {"even": 0.8, "odd": 0.2}}}, "even"
)


def test_a_key_lumps_states_of_a_model_that_behave_alike() -> None:
    atlas = axplore.explore(world_of(RING, 0, key=parity), radius=3, epsilon=0.5)
    exact = controllable_states(TWO, 3).steps
    assert set(atlas.states) == {"even", "odd"}
    for state in atlas.states:
        assert atlas.bounds(state).lower - 1e-9 <= exact[state] <= atlas.bounds(state).upper + 1e-9


def test_a_key_works_with_workers_and_names_itself_when_it_fails() -> None:
    def wrong(state: Any) -> Any:
        raise KeyError(state)

    with pytest.raises(WorldError, match=r"the key function .*wrong raised KeyError at 0"):
        world_of(RING, 0, key=wrong)
    world = SteppedWorld(lambda: ModelSystem(RING), 0, key=parity)
    replica = world.replica_factory()()
    assert list(replica.states) == ["even"]
    assert axplore.explore(world, radius=3, epsilon=2, workers=1).states == ("even", "odd")


def test_a_key_may_leave_actions_to_the_world() -> None:
    class Counter:
        def reset(self) -> int:
            self.count = 0
            return 0

        def step(self, action: str) -> int:
            self.count = self.count + 1 if action == "up" else 0
            return self.count

    world = SteppedWorld(Counter, actions=("up", "down"), key=lambda count: min(count, 2))
    atlas = axplore.explore(world, radius=3, epsilon=2, doctor=False, on_round=_end)
    assert atlas.states[0] == 0
    assert world.actions_of(0) == ("up", "down")


def _end(report: RoundReport) -> axplore.StopReason | None:
    return axplore.StopReason.INTERRUPTED if report.round > 2 else None


def test_a_system_that_is_handed_in_may_have_a_key() -> None:
    system = keyed(ModelSystem(RING), parity)
    assert system.reset() == "even"
    assert hasattr(system, "reseed")
    assert not hasattr(system, "render")
