from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest

from axplore.domains import confusing_chain, domain
from axplore.errors import InvalidInputError, InvalidSettingError, UnknownStateError
from axplore.runs.journal import Call, checksum_of
from axplore.runs.recorded import RecordedWorld
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Episodes, Order, Visit, World, WorldSnapshot, snapshot_of
from axplore.worlds.simulated import SimulatedWorld

POLICY = np.zeros(1, dtype=np.int64)
ORDERS: list[Order] = [Visit(0, action, 20, POLICY, 10) for action in (0, 1)]


def forget(_: Call) -> None:
    """Keeps nothing."""


def world() -> SimulatedWorld:
    return SimulatedWorld(confusing_chain(), 7)


def recorded(n_calls: int) -> tuple[WorldSnapshot, list[Call], SimulatedWorld]:
    """The record of a new world, so many calls of it, and the world after them."""
    inner = world()
    record = snapshot_of(inner)
    calls: list[Call] = []
    outer = RecordedWorld(inner, record, calls.append)
    for _ in range(n_calls):
        outer.carry_out(ORDERS)
    return record, calls, inner


def same(answers: list[Answer], others: list[Answer]) -> bool:
    return all(
        (mine.steps, mine.completed) == (its.steps, its.completed)
        and np.array_equal(mine.entry_counts, its.entry_counts)
        and np.array_equal(mine.entry_successors, its.entry_successors)
        for mine, its in zip(answers, others, strict=True)
    )


def test_a_recorded_world_answers_as_the_world_itself() -> None:
    plain, inner = world(), world()
    outer = RecordedWorld(inner, snapshot_of(inner), forget)
    for _ in range(3):
        assert same(outer.carry_out(ORDERS), plain.carry_out(ORDERS))
        assert (tuple(outer.states), outer.steps) == (tuple(plain.states), plain.steps)
    assert [outer.actions_of(number) for number in range(len(outer.states))] == [
        plain.actions_of(number) for number in range(len(plain.states))
    ]
    assert outer.snapshot() == snapshot_of(plain)
    with pytest.raises(UnknownStateError):
        outer.actions_of(99)


def test_kept_answers_come_again_and_then_the_world_goes_on_as_if_it_had_never_stopped() -> None:
    record, calls, inner = recorded(3)
    kept: list[Call] = []
    outer = RecordedWorld(world(), record, kept.append, calls)
    for call in calls:
        assert outer.repeating
        assert same(outer.carry_out(ORDERS), list(call.answers))
    assert not outer.repeating
    assert kept == []
    assert outer.snapshot() == snapshot_of(inner)
    assert same(outer.carry_out(ORDERS), inner.carry_out(ORDERS))
    assert len(kept) == 1


def test_kept_answers_to_other_orders_are_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    record, calls, _ = recorded(3)
    kept: list[Call] = []
    dropped: list[int] = []
    outer = RecordedWorld(world(), record, kept.append, calls, dropped.append)
    outer.carry_out(ORDERS)
    with caplog.at_level(logging.WARNING, "axplore"):
        answers = outer.carry_out(ORDERS[:1])
    assert "gives other orders" in caplog.text
    assert dropped == [2]
    plain = world()
    plain.carry_out(ORDERS)
    assert same(answers, plain.carry_out(ORDERS[:1]))
    assert len(kept) == 1


def test_checksums_tell_orders_apart() -> None:
    distinct: list[list[Order]] = [
        [],
        ORDERS[:1],
        ORDERS,
        ORDERS[::-1],
        [Visit(0, 0, 21, POLICY, 10)],
        [Visit(0, 0, 20, POLICY + 1, 10)],
        [Visit(0, 0, 20, np.zeros(2, dtype=np.int64), 10)],
        [Episodes(0, 20, 10, POLICY)],
        [Episodes(0, 20, 10, POLICY[None])],
    ]
    assert len({checksum_of(orders) for orders in distinct}) == len(distinct)
    assert checksum_of(ORDERS) == checksum_of([Visit(0, action, 20, POLICY.copy(), 10) for action in (0, 1)])


def test_a_world_of_another_model_is_refused() -> None:
    record, calls, _ = recorded(2)
    with pytest.raises(InvalidSettingError, match="not the one that was explored: 's0' had"):
        RecordedWorld(SimulatedWorld(domain("star"), 7), record, forget, calls)
    stranger = WorldSnapshot(("s0", "nowhere"), (("forward", "skip"), ()), 9, 1, 0)
    with pytest.raises(InvalidSettingError, match="another model: this one has no state 'nowhere'"):
        RecordedWorld(world(), stranger, forget)


def test_a_world_that_cannot_be_put_in_place_is_refused() -> None:
    class Rigid(World):
        @property
        def states(self) -> Sequence[State]:
            return ("here",)

        @property
        def steps(self) -> int:
            return 0

        def actions_of(self, _: int) -> tuple[Action, ...]:
            return ("go",)

        def carry_out(self, _: Sequence[Order]) -> list[Answer]:
            return []

    fresh = snapshot_of(Rigid())
    assert RecordedWorld(Rigid(), fresh, forget).carry_out([]) == []
    with pytest.raises(InvalidInputError, match="Rigid cannot resume where it was interrupted"):
        RecordedWorld(Rigid(), WorldSnapshot(("here",), (("go",),), 9, 1, -1), forget)
