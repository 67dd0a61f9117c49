from __future__ import annotations

from typing import Any

import pytest

import axplore
from axplore import TabularMdp, controllable_states
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.worlds.aalpy import START, AalpySystem, merged_by_alergia
from axplore.worlds.catalogue import world_of
from axplore.worlds.situation_inference import Met
from axplore.worlds.stepped import SteppedWorld


class Turnstile:
    """Anything with pre, step and post will do; `calls` says what was called."""

    alphabet = ("coin", "push")

    def __init__(self) -> None:
        self.open = False
        self.calls: list[str] = []

    def pre(self) -> None:
        self.calls.append("pre")
        self.open = False

    def post(self) -> None:
        self.calls.append("post")

    def step(self, letter: Any) -> str:
        self.open = letter == "coin"
        return "open" if self.open else "shut"


def test_a_system_under_learning_is_explored_as_its_automaton_says() -> None:
    pytest.importorskip("aalpy")
    from aalpy.SULs import MdpSUL
    from aalpy.utils.BenchmarkSULs import get_faulty_coffee_machine_MDP

    automaton = get_faulty_coffee_machine_MDP()
    setup = automaton.to_state_setup()
    outputs = {name: output for name, (output, _) in setup.items()}
    assert len(set(outputs.values())) == len(outputs), "every state has an output of its own"
    rows: dict[Any, Any] = {
        outputs[name]: {
            letter: {outputs[successor]: probability for successor, probability in row} for letter, row in moves.items()
        }
        for name, (_, moves) in setup.items()
    }
    mdp = TabularMdp.from_rows(rows, outputs[automaton.initial_state.state_id])
    system = AalpySystem(MdpSUL(automaton), automaton.get_input_alphabet(), initial=None)
    atlas = axplore.explore(SteppedWorld(system), 4, 1.0)
    inner, outer = controllable_states(mdp, 4), controllable_states(mdp, 5)
    assert set(inner.states) <= set(atlas.states) <= set(outer.states)
    assert len(inner.states) > 1
    for state in inner.states if set(inner.states) == set(atlas.states) else ():
        assert atlas.bounds(state).lower - 1e-9 <= inner.steps[state] <= atlas.bounds(state).upper + 1e-9


def test_outputs_are_states_and_letters_actions() -> None:
    atlas = axplore.explore(Turnstile, 2, 1.0)
    assert set(atlas.states) == {START, "open", "shut"}
    assert atlas.actions[0] == ("coin", "push")


def test_every_word_begins_with_pre_and_ends_with_post() -> None:
    turnstile = Turnstile()
    system = AalpySystem(turnstile, turnstile.alphabet)
    system.reset()
    system.step("coin")
    system.reset()
    system.close()
    system.close()
    assert turnstile.calls == ["pre", "post", "pre", "post"]


def test_a_function_may_say_more_than_the_output() -> None:
    system = AalpySystem(Turnstile(), Turnstile.alphabet, state=lambda learned, output: (output, learned.open))
    assert system.reset() == (START, False)
    assert system.step("coin") == ("open", True)


def test_letters_must_be_said() -> None:
    class Silent(Turnstile):
        alphabet = None  # type: ignore[assignment]

    with pytest.raises(InvalidSettingError, match="has no alphabet"):
        world_of(Silent(), 0)
    assert world_of(Silent(), 0, alphabet=["coin"]).actions_of(0) == ("coin",)
    with pytest.raises(InvalidInputError, match="is not a system under learning"):
        AalpySystem(object(), ())


def test_alergia_merges_histories_into_the_states_of_an_automaton() -> None:
    pytest.importorskip("aalpy")
    root = Met("quiet")
    for length in range(1, 40):
        met = root
        met.visits += 1
        for press in range(1, length + 1):
            met = met.add("press", "loud" if press % 2 == 0 else "quiet", ("press",))
    memory = merged_by_alergia(root)
    assert memory is not None
    assert sorted(map(str, memory.outputs)) == ["loud", "quiet", "quiet"]
    assert sum(memory.draws.values()) == sum(range(1, 40))
    follower = memory.follower()
    labels = [follower.reset("quiet"), *(follower.step("press", output) for output in ("quiet", "loud", "quiet"))]
    assert labels == ["quiet", "quiet | after press", "loud", "quiet | after press"]


def test_alergia_proposes_nothing_where_every_output_says_all_that_matters() -> None:
    pytest.importorskip("aalpy")
    root = Met(0)
    for _ in range(30):
        met = root
        root.visits += 1
        for state in (1, 2, 0, 1, 2, 0):
            met = met.add("on", state, ("on",))
    assert merged_by_alergia(root) is None
