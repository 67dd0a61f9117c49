from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from axplore.errors import InvalidInputError
from axplore.worlds.output_models import OutputModel, load_output_model, model_of_automaton, output_world
from axplore_studies.systems.output_models import MODELS, model_named

COIN = OutputModel("q", {"q": "no", "r": "yes"}, {"q": {"toss": {"q": 0.75, "r": 0.25}}, "r": {"toss": {"r": 1.0}}})


def test_the_chance_to_see_an_output_is_that_of_the_best_policy() -> None:
    assert [COIN.reaching("yes", n) for n in (0, 1, 2)] == pytest.approx([0, 0.25, 0.4375])


@pytest.mark.parametrize(
    ("name", "hidden", "outputs"), [("first_grid", 35, 7), ("mqtt", 62, 50), ("faulty_car_alarm", 7, 2)]
)
def test_aalpys_models_are_read(name: str, hidden: int, outputs: int) -> None:
    model = model_named(name)
    assert len(model.outputs) == hidden
    assert len(set(model.outputs.values())) == outputs


def test_a_system_shows_outputs_only_with_the_frequencies_of_the_model() -> None:
    system = COIN.system()
    system.reseed(np.random.SeedSequence(4))
    seen = []
    for _ in range(4_000):
        assert system.reset() == "no"
        seen.append(system.step("toss"))
    assert seen.count("yes") / len(seen) == pytest.approx(0.25, abs=0.03)


def test_a_world_of_a_file_offers_the_actions_of_its_states() -> None:
    with output_world(MODELS / "mqtt.json") as world:
        assert world.states == ["start"]
        assert len(world.actions_of(0)) == 9


def test_a_model_of_aalpy_is_read_from_its_file_and_from_its_object(tmp_path: Path) -> None:
    automata = pytest.importorskip("aalpy.automata")
    mdp = automata.Mdp.from_state_setup(
        {"q": ("no", {"toss": [("q", 0.75), ("r", 0.25)]}), "r": ("yes", {"toss": [("r", 1.0)]})}
    )
    assert model_of_automaton(mdp).reaching("yes", 2) == pytest.approx(0.4375)
    mdp.save(str(tmp_path / "coin"))
    assert load_output_model(tmp_path / "coin.dot").reaching("yes", 2) == pytest.approx(0.4375)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"initial": "a", "outputs": {"b": 1}, "transitions": {"b": {}}}',
        '{"initial": "a", "outputs": {"a": [1]}, "transitions": {"a": {}}}',
        '{"initial": "a", "outputs": {"a": 1}, "transitions": {"a": {"x": {"a": 0.5}}}}',
        '{"initial": "a", "outputs": {"a": 1}, "transitions": {"a": {"x": {"b": 1}}}}',
        '{"initial": "a", "outputs": {"a": 1}, "transitions": {"a": {"x": {"a": "1"}}}}',
        '{"initial": "a", "outputs": 3, "transitions": []}',
        "[]",
    ],
)
def test_a_file_that_holds_no_model_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError):
        load_output_model(file)
