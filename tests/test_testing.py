"""The checks of `axplore.testing`: our own worlds pass them, and worlds that break their contract do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from axplore.domains import confusing_chain, slippery_grid
from axplore.errors import BrokenContractError, InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.testing import check_world
from axplore.types import Action, State
from axplore.workers import DistributedWorld
from axplore.worlds import (
    AalpySystem,
    Answer,
    Order,
    SimulatedWorld,
    SteppedWorld,
    World,
    WorldSnapshot,
    gym_world,
    program_world,
    storm_world,
)
from axplore_studies.in_process import InProcess
from gymnasium_names import TAXI

ROOT = Path(__file__).parent.parent
ALL = ("members", "refusals", "orders", "repeatability", "resuming", "replicas", "closing")
NOT_REPEATABLE = tuple(name for name in ALL if name != "repeatability")
NOT_REPLICABLE = tuple(name for name in NOT_REPEATABLE if name != "replicas")


class Walk:
    """A walk on 0, ..., 4: an action goes that way, or stays with probability 0.3."""

    actions = ("left", "right")

    def __init__(self) -> None:
        self._state = 0
        self._noise = np.random.default_rng(0)

    def reset(self) -> int:
        self._state = 0
        return self._state

    def step(self, action: str) -> int:
        if self._noise.random() >= 0.3:
            self._state = min(max(self._state + (1 if action == "right" else -1), 0), 4)
        return self._state


class ReseededWalk(Walk):
    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._noise = np.random.default_rng(seed)


class Coin:
    """A system under learning: two letters, and a credit of at most two."""

    alphabet = ("coin", "button")

    def pre(self) -> None:
        self.credit = 0

    def post(self) -> None:
        pass

    def step(self, letter: str) -> int:
        self.credit = min(2, self.credit + 1) if letter == "coin" else 0
        return self.credit


def stormed(folder: Path) -> World:
    pytest.importorskip("stormpy")
    file = folder / "walk.prism"
    file.write_text(
        "dtmc\nmodule walk\n x : [0..3] init 0;\n [] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0);\nendmodule\n", encoding="ascii"
    )
    return storm_world(file, 1)


WORLDS: dict[str, tuple[Callable[[], World], tuple[str, ...]]] = {
    "a chain, simulated": (lambda: SimulatedWorld(confusing_chain(), 1), ALL),
    "a grid, simulated": (lambda: SimulatedWorld(slippery_grid(rows=3, columns=3), 1), ALL),
    "a model of one state": (lambda: SimulatedWorld(TabularMdp.from_rows({"only": {}}, "only"), 1), ALL),
    "a system that can be reseeded": (lambda: SteppedWorld(ReseededWalk, 1), ALL),
    "a system that cannot": (lambda: SteppedWorld(Walk, 1), NOT_REPEATABLE),
    "a system that exists once": (
        lambda: SteppedWorld(Walk(), 1),
        NOT_REPLICABLE,
    ),
    "a virtual start": (lambda: SteppedWorld(ReseededWalk, 1, start="virtual"), ALL),
    "a system that ends episodes": (lambda: SteppedWorld(ReseededWalk, 1, max_episode_steps=4), ALL),
    "Gymnasium": (lambda: gym_world("FrozenLake-v1", 1), ALL),
    "Gymnasium, pinned": (lambda: gym_world(TAXI, 1, start="pinned"), ALL),
    "a process of its own": (lambda: gym_world("FrozenLake-v1", 1, step_timeout=60.0), ALL),
    "AALpy": (lambda: SteppedWorld(AalpySystem(Coin(), Coin.alphabet), 1), NOT_REPLICABLE),
    "a program": (lambda: program_world(["bash", str(ROOT / "examples" / "random_walk.sh")], 1), NOT_REPEATABLE),
    "workers": (
        lambda: DistributedWorld(SteppedWorld(ReseededWalk, 1), InProcess(), batch=2),
        tuple(name for name in ALL if name != "replicas"),
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_of_ours_keeps_the_contract(name: str) -> None:
    make, checks = WORLDS[name]
    assert check_world(make) == checks


def test_a_storm_model_keeps_the_contract(tmp_path: Path) -> None:
    assert check_world(partial(stormed, tmp_path)) == ALL


def test_a_world_that_is_handed_in_is_not_compared_with_another() -> None:
    assert "repeatability" not in check_world(SimulatedWorld(confusing_chain(), 1))


class Lengthening:
    """A walk to the right and back, on as many places as it is told."""

    actions = ("right", "back")
    length = 4

    def reset(self) -> int:
        self._state = 0
        return self._state

    def step(self, action: str) -> int:
        self._state = min(self._state + 1, self.length - 1) if action == "right" else 0
        return self._state


def test_what_a_restored_world_does_not_discover_again_is_not_asked_for() -> None:
    """Systems that draw their own noise may discover less than they did after the same snapshot before."""
    system = Lengthening()

    class Restored(SteppedWorld):
        def restore(self, snapshot: WorldSnapshot) -> None:
            super().restore(snapshot)
            system.length = 9 if system.length == 4 else 4

    assert check_world(lambda: Restored(lambda: system)) == NOT_REPEATABLE


def test_what_is_no_world_is_refused() -> None:
    with pytest.raises(BrokenContractError, match=r"is no axplore\.worlds\.World: inherit from it"):
        check_world(lambda: gymnasium.make("FrozenLake-v1"))  # type: ignore[arg-type, return-value]


class Broken(World):
    """A simulated chain with a fault, in whatever a subclass overrides."""

    def __init__(self) -> None:
        self.inner = SimulatedWorld(confusing_chain(), 1)

    @property
    def states(self) -> Sequence[State]:
        return self.inner.states

    @property
    def steps(self) -> int:
        return self.inner.steps

    def actions_of(self, state: int) -> tuple[Action, ...]:
        return self.inner.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        return [self.changed(answer) for answer in self.inner.carry_out(orders)]

    def changed(self, answer: Answer) -> Answer:
        return answer


class Resuming(Broken):
    @property
    def position(self) -> int:
        return self.inner.position

    def snapshot(self) -> WorldSnapshot:
        return self.inner.snapshot()

    def restore(self, snapshot: WorldSnapshot) -> None:
        self.inner.restore(snapshot)


class Replicating(Broken):
    max_faults = 0

    def replica_factory(self) -> Callable[[], Any]:
        return self.inner.replica_factory()


def broken(base: type[Broken] = Broken, **members: Any) -> type[Broken]:
    return type("Faulty", (base,), members)


def test_the_world_that_the_faults_below_are_put_into_is_sound() -> None:
    assert check_world(Broken) == ("members", "refusals", "orders", "repeatability", "closing")
    assert "resuming" in check_world(Resuming)
    assert "replicas" in check_world(Replicating)


def one_more(answer: Answer, name: str) -> Answer:
    return replace(answer, **{name: getattr(answer, name) + 1})


def permissive(self: Broken, orders: Sequence[Order]) -> list[Answer]:
    try:
        return self.inner.carry_out(orders)
    except ValueError:
        return []


def late(self: Broken, orders: Sequence[Order]) -> list[Answer]:
    return [self.inner.carry_out([order])[0] for order in orders]


def without_reset(answer: Answer) -> Answer:
    return replace(answer, steps=int(answer.pair_draws.sum()))


def dropped(answer: Answer) -> Answer:
    """Leaves out the draws that led to the last successor."""
    if len(answer.entry_counts) < 2:
        return answer
    draws = answer.pair_draws.copy()
    draws[answer.entry_pairs[-1]] -= answer.entry_counts[-1]
    names = ("entry_pairs", "entry_successors", "entry_counts", "entry_first_draws")
    return replace(answer, pair_draws=draws, **{name: getattr(answer, name)[:-1] for name in names})


class Random(SimulatedWorld):
    """Every world of it has another seed."""

    n_made = 0

    def __init__(self) -> None:
        type(self).n_made += 1
        super().__init__(confusing_chain(), self.n_made)


def other_replicas(self: Replicating) -> Callable[[], Any]:
    return SimulatedWorld(confusing_chain(), 1).replica_factory() if self.steps < 0 else Random


FAULTS: dict[str, tuple[Callable[[], World], str]] = {
    "no state": (broken(states=()), "states is empty"),
    "actions as a list": (broken(actions_of=lambda self, n: list(self.inner.actions_of(n))), "it must be a tuple"),
    "actions of no state": (broken(actions_of=lambda *_: ()), r"actions_of\(-1\) must raise UnknownStateError"),
    "takes any order": (broken(carry_out=permissive), "must raise InvalidOrderError"),
    "checks late": (broken(carry_out=late), "was refused after the first step"),
    "forgets an answer": (broken(carry_out=lambda self, o: self.inner.carry_out(o)[1:]), "orders got"),
    "uncounted RESET": (broken(changed=lambda _, answer: without_reset(answer)), "but the world took"),
    "a draw too many": (broken(changed=lambda _, a: one_more(a, "pair_draws")), "but their draws are"),
    "a first draw too late": (broken(changed=lambda _, a: one_more(a, "entry_first_draws")), "first at draw 2"),
    "draws left out": (broken(changed=lambda _, a: dropped(a)), "draws of"),
    "arrivals made up": (broken(changed=lambda _, a: one_more(a, "arrivals")), "arrivals"),
    "visits made up": (broken(changed=lambda _, a: one_more(one_more(a, "completed"), "arrivals")), "visits|steps"),
    "another world each time": (Random, "another world made alike"),
    "does not resume": (broken(Resuming, restore=lambda *_: None), "does not have the states and steps"),
    "resumes elsewhere": (
        broken(Resuming, restore=lambda self, s: self.inner.restore(replace(s, calls=s.calls + 7))),
        "restored from the same snapshot|took a snapshot",
    ),
    "replicas that differ": (broken(Replicating, replica_factory=other_replicas), "another replica"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_world_that_breaks_the_contract_is_told_where(name: str) -> None:
    make, message = FAULTS[name]
    with pytest.raises(BrokenContractError, match=message):
        check_world(make)


def test_a_world_without_its_four_members_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="carry_out"):
        type("Bare", (World,), {})()


def test_an_old_snapshot_is_not_taken_for_one_of_this_system() -> None:
    with pytest.raises(InvalidSettingError, match="another system"):
        SteppedWorld(Walk).restore(WorldSnapshot(("elsewhere",), ((),), 0, 0))
