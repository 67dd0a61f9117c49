from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import axplore
from axplore.assumptions import Assumptions
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import Certificate
from axplore.certificate import verify as verify_certificate
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.certified import Certified
from axplore.memory import Memory
from axplore.records.properties import PropertyClaim
from axplore.runs.checkpoints import load_checkpoint
from axplore.runs.history import history_of
from axplore.runs.manifest import load_manifest
from axplore.target import Target
from axplore.worlds.aalpy import merged_by_alergia
from axplore.worlds.output_models import OutputModel, output_world
from axplore.worlds.situation_inference import Met, SituationInference
from axplore.worlds.situations import memory_in
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.systems.output_models import MODELS, model_named, tells_all_apart
from commands import run

ALARM = model_named("faulty_car_alarm")
ALARM_WORLD = f"outputs:{MODELS / 'faulty_car_alarm.json'}"
RADIUS, EPSILON = 6.0, 1.0

# The middle hides from which side it was entered, on which it depends where an action leads.
CORRIDOR = OutputModel(
    "start",
    {"start": "start", "left": "middle", "right": "middle", "goal": "goal", "pit": "pit"},
    {
        "start": {"a": {"left": 1.0}, "b": {"right": 1.0}},
        "left": {"a": {"goal": 0.8, "pit": 0.2}, "b": {"goal": 0.7, "pit": 0.3}},
        "right": {"a": {"goal": 0.2, "pit": 0.8}, "b": {"goal": 0.3, "pit": 0.7}},
        "goal": {"a": {"start": 1.0}, "b": {"start": 1.0}},
        "pit": {"a": {"start": 1.0}, "b": {"start": 1.0}},
    },
)


def explored(**settings: Any) -> axplore.Atlas:
    return axplore.explore(ALARM.system, **{"radius": RADIUS, "epsilon": EPSILON, "memory": 8, "seed": 3, **settings})


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> axplore.Atlas:
    return explored(run=tmp_path_factory.mktemp("runs") / "alarm")


def memory_of(atlas: axplore.Atlas) -> Memory:
    assert atlas.memory is not None
    return atlas.memory


def test_without_a_memory_the_verdict_is_in_doubt() -> None:
    atlas = explored(memory=None, max_steps=20_000)
    assert atlas.memory is None
    assert atlas.verdict.doubts


def test_what_follows_a_reset_is_looked_at_before_anything_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The label of the start is shown again and again, so that the policies of an explorer by rows never reset."""
    monkeypatch.setattr("axplore.exploring.examined", lambda *_, **__: ())
    monkeypatch.setattr("axplore.worlds.stepped.SteppedWorld.vary_ages", lambda _: None)
    by_rows = Certified(target=Target(radius=RADIUS, epsilon=EPSILON), by_episodes=False)
    atlas = axplore.explore(ALARM.system, explorer=by_rows, seed=3, max_steps=20_000)
    assert atlas.complete
    assert atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
    assert any("RESET" in finding.seen for finding in atlas.findings)


def test_with_a_memory_every_hidden_state_is_found_and_what_is_promised_of_it_is_true(atlas: axplore.Atlas) -> None:
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert tells_all_apart(ALARM, memory_of(atlas))
    assert len(atlas.states) == len(ALARM.outputs)
    validation = atlas.validate(ALARM.system, episodes=300, seed=8)
    assert validation.holds


def test_the_verdict_the_certificate_and_its_check_say_that_labels_are_situations(atlas: axplore.Atlas) -> None:
    says = "2 outputs stand for 7 situations"
    assert any(says in sentence for sentence in atlas.verdict.sentences)
    assert isinstance(atlas.certificate, Certificate)
    assert atlas.certificate.memory == atlas.memory
    assert says in str(axplore.verify(atlas))


def test_labels_are_readable(atlas: axplore.Atlas) -> None:
    assert {"N", "A | after start, d", "N | after (d, A), l"} <= set(atlas.states)


def test_an_atlas_keeps_its_memory_in_its_files(atlas: axplore.Atlas, tmp_path: Path) -> None:
    atlas.save(tmp_path)
    again = axplore.Atlas.load(tmp_path)
    assert again.memory == atlas.memory
    assert again.policy("N | after (d, A), l").memory == atlas.memory


def test_a_policy_of_situations_is_certified_by_episodes_on_the_system(atlas: axplore.Atlas) -> None:
    world = SteppedWorld(ALARM.system, 5)
    certificate = axplore.certify(atlas, world, "N | after (d, A), l", within=3.5)
    assert certificate.decision.name == "PROVEN"
    assert world.states == ["N"]  # its own labels again


def test_a_policy_of_situations_cannot_be_played_where_nothing_is_followed(atlas: axplore.Atlas) -> None:
    with pytest.raises(axplore.errors.InvalidInputError, match="what came before"):
        atlas.policy("A | after start, d").run("confusing-chain")


def test_all_steps_are_counted_those_of_telling_apart_too(atlas: axplore.Atlas) -> None:
    counted = int(atlas.counts.visits.sum())
    assert counted < atlas.steps
    assert atlas.steps > 2_000


def test_too_short_a_memory_leaves_the_doubt() -> None:
    atlas = explored(memory=1, max_steps=40_000)
    assert atlas.verdict.doubts or not atlas.complete


def test_a_system_that_hides_nothing_is_explored_as_without_a_memory() -> None:
    class Line:
        actions = ("on", "back")
        at = 0

        def reset(self) -> int:
            self.at = 0
            return 0

        def step(self, action: str) -> int:
            self.at = min(self.at + 1, 4) if action == "on" else max(self.at - 1, 0)
            return self.at

    with_memory, without = (axplore.explore(Line, 3, 0.5, memory=memory) for memory in (4, None))
    assert with_memory.memory is None
    assert with_memory.verdict.kind is VerdictKind.PROVEN
    assert with_memory.states == without.states


# Which of two hidden states it is shows only in what presses lead to: every second one rings.
SWITCH = OutputModel(
    "off",
    {"off": "quiet", "on": "quiet", "ringing": "loud"},
    {"off": {"press": {"on": 1.0}}, "on": {"press": {"ringing": 1.0}}, "ringing": {"press": {"off": 1.0}}},
)


def test_aalpy_may_learn_the_automaton_whose_states_are_the_labels() -> None:
    pytest.importorskip("aalpy")
    atlas = axplore.explore(SWITCH.system, 3.0, 0.5, memory="aalpy", seed=1)
    assert tells_all_apart(SWITCH, memory_of(atlas))
    assert atlas.states == ("quiet", "quiet | after press", "loud")
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(atlas).complete


def test_where_a_test_rejects_what_aalpy_proposes_it_learns_again_from_more_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aalpy")
    poor = Memory(("N", "A", "A"), ("N", "A", "A | after d"), {(0, "d", "A"): 1, (1, "d", "A"): 2})
    visits: list[int] = []

    def poor_at_first(root: Met) -> Memory | None:
        visits.append(root.visits)
        return poor if len(visits) == 1 else merged_by_alergia(root)

    monkeypatch.setattr("axplore.refining.merged_by_alergia", poor_at_first)
    atlas = explored(memory="aalpy", seed=1, radius=8.0, epsilon=0.5, objective="within-radius", run=tmp_path / "run")
    assert len(visits) > 1
    assert visits == sorted(set(visits))
    assert tells_all_apart(ALARM, memory_of(atlas))
    assert atlas.verdict.kind is VerdictKind.PROVEN
    again = axplore.resume(tmp_path / "run", SteppedWorld(ALARM.system, 1), radius=9.0)
    assert again.memory == atlas.memory
    assert load_manifest(tmp_path / "run").request.memory == "aalpy"


def test_without_aalpy_its_memory_is_refused_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aalpy", None)
    with pytest.raises(InvalidSettingError, match=r"pip install 'axplore\[aalpy\]'"):
        explored(memory="aalpy")


def test_a_memory_is_a_number_or_aalpy(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="a number of outputs, 1 or more, or 'aalpy'"):
        explored(memory="something")
    with pytest.raises(InvalidSettingError, match="memory is '-1'"):
        run("explore", ALARM_WORLD, "--radius", "6", "--memory", "-1", "--out", tmp_path / "run")


@pytest.mark.parametrize("settings", [{"workers": 2}, {"doctor": False}, {"memory": 0}])
def test_a_memory_that_cannot_be_is_refused_before_the_first_step(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match="memory"):
        explored(**settings)


def test_known_models_have_no_use_for_a_memory() -> None:
    with pytest.raises(InvalidSettingError, match="hide nothing"):
        axplore.explore("confusing-chain", 4, memory=3)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[axplore.Atlas, Path]:
    folder = tmp_path_factory.mktemp("asked") / "run"
    question = 'Pmin=? [ G<=1 !"middle" ]'
    return axplore.check(CORRIDOR.system, question, precision=0.2, memory=3, seed=1, run=folder).atlas, folder


def test_an_output_in_a_question_is_each_of_the_situations_that_it_stands_for(
    asked: tuple[axplore.Atlas, Path],
) -> None:
    """Every action leads into the middle, from whichever side."""
    atlas, folder = asked
    assert len([output for output in memory_of(atlas).outputs if output == "middle"]) == 2
    (bounds,) = atlas.properties
    assert bounds.lower == 0.0
    assert 'where "middle" is middle | after' in str(atlas.verdict)
    assert axplore.verify(atlas).complete
    for again in (atlas, axplore.Atlas.load(folder)):
        assert again.check_property('Pmin=? [ F<=1 "middle" ]').lower > 0.8
        assert axplore.verify(again.keep(again.check_property('Pmax=? [ F<=2 "goal" ]'))).holds
        with pytest.raises(InvalidInputError, match="have no fields"):
            again.check_property("Pmax=? [ F x=1 ]")
    of_a_set = axplore.check(
        CORRIDOR.system, reach={"middle"}, within=1, best="min", precision=0.2, memory=3, seed=1, max_steps=20_000
    )
    assert of_a_set.lower > 0.5


def test_a_claim_that_does_not_say_which_situations_it_means_is_refused(asked: tuple[axplore.Atlas, Path]) -> None:
    certificate = asked[0].certificate
    assert certificate is not None
    (claim,) = certificate.of(PropertyClaim)
    nameless = structs.replace(certificate, claims=(structs.replace(claim, names=()),))
    assert "several situations" in str(verify_certificate(nameless))
    assert not verify_certificate(nameless).holds


@pytest.mark.parametrize(
    "settings",
    [
        {"goal": "middle"},
        {"goal": lambda state: state == "middle"},
        {"assume": Assumptions(deterministic=lambda *_: True)},
    ],
)
def test_what_is_written_for_outputs_is_refused_where_labels_will_be_others(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match="memory makes labels"):
        axplore.explore(CORRIDOR.system, 5, 1, memory=3, **settings)


@pytest.mark.parametrize("question", [{"reach": lambda state: state == "middle"}, {"question": "Pmax=? [ F x=1 ]"}])
def test_so_are_functions_and_fields_in_a_question(question: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match="memory makes labels"):
        axplore.check(CORRIDOR.system, memory=3, **question)


def test_a_run_resumes_with_the_memory_that_it_had(tmp_path: Path) -> None:
    first = axplore.explore(ALARM.system, 3.0, EPSILON, memory=8, seed=3, run=tmp_path / "run")
    world = SteppedWorld(ALARM.system, 3)
    farther = axplore.resume(tmp_path / "run", world, radius=RADIUS)
    assert farther.memory == first.memory
    assert farther.verdict.kind is VerdictKind.PROVEN
    assert set(first.states) <= set(farther.states)
    assert (
        memory_in(load_checkpoint(load_manifest(tmp_path / "run").run, tmp_path / "run").world.labelling)
        == first.memory
    )


def test_a_run_that_is_killed_resumes_with_the_memory_that_it_had(tmp_path: Path) -> None:
    """The process is killed as soon as it has counted something with refined labels."""
    folder = tmp_path / "run"
    code = f"import sys, axplore\naxplore.explore({ALARM_WORLD!r}, {RADIUS}, 0.02, memory=8, seed=3, run=sys.argv[1])\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": "src"}
    )
    try:
        while process.poll() is None and not (folder / "journal-0").is_file():
            time.sleep(0.02)
        while process.poll() is None and (folder / "journal-0").stat().st_size < 500:
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before = memory_in(load_checkpoint(load_manifest(folder).run, folder).world.labelling)
    assert before is not None
    atlas = axplore.resume(folder, trust=True, epsilon=EPSILON)
    assert atlas.memory == before
    assert atlas.verdict.kind is VerdictKind.PROVEN


def test_the_test_that_runs_along_ends_an_attempt_and_the_next_begins_with_situations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is found or told apart before the run, so that only the tests of the run itself can find anything."""
    monkeypatch.setattr("axplore.exploring.examined", lambda *_, **__: ())
    told_nothing: list[SituationInference] = []
    propose = SituationInference.propose

    def blind_at_first(inference: SituationInference, max_steps: int) -> Memory | None:
        if told_nothing:
            return propose(inference, max_steps)
        told_nothing.append(inference)
        return None

    monkeypatch.setattr(SituationInference, "propose", blind_at_first)
    atlas = axplore.explore(CORRIDOR.system, 4.0, 0.3, memory=8, seed=3, run=tmp_path / "run")
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert tells_all_apart(CORRIDOR, memory_of(atlas))
    events = [event["event"] for event in history_of(tmp_path / "run").events]
    assert "refined" in events
    rounds = history_of(tmp_path / "run").rounds
    assert all(label in atlas.states for event in rounds for label in event.get("admitted", ()))


def test_the_command_line_tells_apart_and_its_page_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ("--radius", "6", "--epsilon", "1", "--memory", "8", "--seed", "3")
    printed = run("explore", ALARM_WORLD, *arguments, "--out", folder)
    assert "2 outputs stand for 7 situations" in printed
    assert "N | after (d, A), l" in (folder / "report.html").read_text(encoding="utf-8")
    assert "situations" in run("verify", folder)
    run("certify", folder, "A | after start, d", "--within", "2", "--trust")


def test_outputs_of_a_file_can_be_explored_and_a_file_that_holds_none_is_refused(tmp_path: Path) -> None:
    with output_world(MODELS / "faulty_car_alarm.json", 1) as world:
        assert world.states == ["N"]
    (tmp_path / "wrong.json").write_text('{"initial": "a", "outputs": {"a": 1}, "transitions": {"a": {"x": {"b": 1}}}}')
    with pytest.raises(axplore.errors.InvalidInputError, match="no row of probabilities"):
        output_world(tmp_path / "wrong.json")
    with pytest.raises(axplore.errors.DamagedFileError, match="nowhere"):
        output_world(tmp_path / "nowhere.json")
