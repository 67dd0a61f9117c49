"""Every study: its trials can be told apart and sent to workers, and a few of them give a result."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from axplore.worlds.doctor import BRIEF_STEPS
from axplore_studies import doctor, episode_tests, hidden, steps_budget, worker_steps
from axplore_studies.catalogue import STUDIES
from axplore_studies.loop import Study, Trial, records_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def few(study: Study) -> list[Trial]:
    return list(study.planned(1 if study.counted else None))


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_trials_have_addresses_of_their_own_and_can_be_sent_to_workers(study: Study) -> None:
    trials = few(study)
    assert len({json.dumps(trial.address, sort_keys=True) for trial in trials}) == len(trials)
    assert len({tuple(trial.address) for trial in trials}) == 1
    assert cloudpickle.loads(cloudpickle.dumps(trials[0])).address == trials[0].address


def results(study: Study, trials: list[Trial], tmp_path: Path) -> Any:
    study.summary(records_of(trials, tmp_path / "records")).save(tmp_path)
    return json.loads((tmp_path / f"{study.name}.json").read_text(encoding="utf-8"))


def same_keys(ours: Any, committed: Any) -> bool:
    """Whether a result has the shape of the committed one."""
    if isinstance(ours, dict) and isinstance(committed, dict):
        return ours.keys() <= committed.keys() and all(same_keys(ours[key], committed[key]) for key in ours)
    return type(ours) is type(committed) or None in (ours, committed) or {type(ours), type(committed)} == {int, float}


def committed(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_certify_counts_errors_by_question(tmp_path: Path) -> None:
    study = STUDIES["certify"]
    result = results(study, list(study.planned(2)), tmp_path)
    assert result["all"]["systems"] == 2
    assert result["all"]["errors"] == 0
    assert same_keys(result, committed("certify"))


def test_hidden_counts_systems_with_and_without_aliasing(tmp_path: Path) -> None:
    result = results(STUDIES["hidden"], hidden.trials(systems=2, healthy=1), tmp_path)
    assert (result["aliased_systems"], result["healthy_systems"], result["false_alarms"]) == (2, 1, 0)
    assert same_keys(result, committed("hidden"))


def test_the_doctor_finds_a_planted_fault_and_none_in_a_ring(tmp_path: Path) -> None:
    wanted = ("ring", "start of two states")
    trials = [t for t in doctor.trials(1) if t.address["system"] in wanted and t.address["steps"] == BRIEF_STEPS]
    brief, _ = results(STUDIES["doctor"], trials, tmp_path)
    assert brief["without fault"]["ring"] == {"doubts": 0, "notes": 0, "said": {}}
    assert brief["planted"]["start of two states"]["named"] == 1
    assert same_keys(brief, committed("doctor")[0])


def test_coverage_with_workers_counts_broken_promises(tmp_path: Path) -> None:
    study = STUDIES["coverage-with-workers"]
    rows = results(study, few(study), tmp_path)
    assert [(row["objective"], row["delta"], row["models"]) for row in rows] == [
        ("optimal", 0.1, 1), ("optimal", 0.5, 1), ("within-radius", 0.1, 1), ("within-radius", 0.5, 1)
    ]  # fmt: skip
    assert all(same_keys(row, known) for row, known in zip(rows, committed(study.name), strict=True))


def test_worker_steps_compares_the_same_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_steps, "CASES", (worker_steps.WorkerCase("star", 4.0, 2.0),))
    (row,) = results(STUDIES["worker-steps"], worker_steps.trials(2), tmp_path)["rows"]
    assert row["runs"] == 2
    assert row["ratio"] == pytest.approx(row["with"] / row["without"], abs=1e-3)


def test_a_sharper_region_of_a_steps_budget_needs_fewer_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A joint budget of the nats of one row is never worse than one look at every row with as many."""
    monkeypatch.setattr(steps_budget, "FUNCTIONAL", -math.log(steps_budget.DELTA))
    trials = [trial for trial in steps_budget.trials(1) if trial.address["world"] == "combination-lock, ε 0.2"]
    monkeypatch.setattr(
        steps_budget, "CASES", {name: steps_budget.CASES[name] for name in ("combination-lock, ε 0.2",)}
    )
    (row,) = results(STUDIES["steps-budget"], trials, tmp_path)["rows"]
    assert row["goals"] == 3
    for level, look, functional in zip(row["one level"], row["one look"], row["one functional"], strict=True):
        assert 1.0 < level < look <= 1.1 * functional
    assert same_keys(row, committed("steps-budget")["rows"][0])


@pytest.mark.parametrize(
    ("name", "world"), [("episode-tests", "lock"), ("progress", "star"), ("hidden-models", "vending machine")]
)
def test_one_world_gives_a_result(name: str, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_tests, "REPEATS", 3)
    study = STUDIES[name]
    result = results(study, [t for t in few(study) if world in t.address.values()], tmp_path)
    assert result
    if (RESULTS / f"{name}.json").exists():
        assert same_keys(result, committed(name))
