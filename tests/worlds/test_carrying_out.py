"""Every world carries out every order as it is carried out step by step in plain Python."""

from __future__ import annotations

from any_order import deterministic_model, deterministic_moves, orders
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_world import DrawingWorld, Moves, PlainWorld, Words, as_lists

from axplore.domains import random_sparse
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld


def position_of(world: SimulatedWorld | SteppedWorld) -> int:
    """The number of the state in which the agent stands; a snapshot of a system does not say."""
    return world._agent.position if isinstance(world, SteppedWorld) else world.snapshot().position


@settings(max_examples=150)
@given(moves=deterministic_moves(), data=st.data())
def test_on_deterministic_systems_every_order_is_carried_out_as_in_plain_python(
    moves: dict[int, list[int]], data: st.DataObject
) -> None:
    initial_state = data.draw(st.sampled_from(sorted(moves)))
    worlds: list[SimulatedWorld | SteppedWorld] = [SimulatedWorld(deterministic_model(moves, initial_state), seed=0)]
    if moves[initial_state]:  # a system whose start offers nothing is refused
        worlds.append(SteppedWorld(Moves(moves, initial_state)))
    plain = PlainWorld(moves, initial_state)
    for _ in range(data.draw(st.integers(1, 4))):
        order = data.draw(orders([len(moves[label]) for label in plain.states]))
        expected = as_lists(plain.carry_out(order))
        for world in worlds:
            (answer,) = world.carry_out([order])
            assert as_lists(answer) == expected
            assert list(world.states) == plain.states
            assert (world.steps, position_of(world)) == (plain.steps, plain.position)


@settings(max_examples=100)
@given(model_seed=st.integers(0, 20), seed=st.integers(0, 3), data=st.data())
def test_with_the_same_random_words_every_order_is_carried_out_as_in_plain_python(
    model_seed: int, seed: int, data: st.DataObject
) -> None:
    mdp = random_sparse(states=7, actions=2, branching=(1, 3), seed=model_seed)
    worlds: list[SimulatedWorld | SteppedWorld] = [SimulatedWorld(mdp, seed), SteppedWorld(Words(mdp), seed)]
    plain = DrawingWorld(mdp, seed)
    for _ in range(data.draw(st.integers(1, 4))):
        order = data.draw(orders([2] * len(plain.states)))
        expected = as_lists(plain.carry_out(order))
        for world in worlds:
            (answer,) = world.carry_out([order])
            assert as_lists(answer) == expected
            assert list(world.states) == [mdp.states[index] for index in plain.states]
            assert (world.steps, position_of(world)) == (plain.steps, plain.position)
