"""Draws beside the exploration: each kind of assumption, wherever axplore plays."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore import Assumptions, Atlas
from axplore.atlas import replays
from axplore.atlas.draw_checks import DrawChecks
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import EpisodeCertificate
from axplore.certificate import verify as verify_certificate
from axplore.records.findings import Finding, Issue, Level
from axplore.workers import engines
from axplore.worlds import examine
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess

STEPS = {"slow": 1, "fast": 2}


class Road:
    """Places 0 to 4; an action leads on, and once `gone_wrong` something else happens now and then at place 2."""

    actions = ("slow", "fast")

    def __init__(self, chances: dict[str, float], wrong: dict[str, float]) -> None:
        self.gone_wrong = False
        self._random, self._place = random.Random(3), 0
        self._chances, self._wrong = chances, wrong

    def reset(self) -> int:
        self._place = 0
        return 0

    def step(self, action: str) -> int:
        chances = self._wrong if self.gone_wrong and self._place == 2 else self._chances
        (what,) = self._random.choices(list(chances), list(chances.values()))
        moved = {"on": STEPS[action], "stay": 0, "back": -1}[what]
        self._place = min(max(self._place + moved, 0), 4)
        return self._place


def outcome_of(place: Any, action: Any, after: Any) -> tuple[str, str]:
    """Where nothing stands in the way, all steps share one law; at the end each has its own."""
    if place + STEPS[action] > 4:
        return f"{action} at {place}", str(after - place)
    return "free", "on" if after > place else "stay" if after == place else "back"


CASES: dict[str, tuple[Any, dict[str, float], dict[str, float], float]] = {
    "deterministic": ("deterministic", {"on": 1.0}, {"on": 0.9, "stay": 0.1}, 0.1),
    "deterministic where declared": (
        Assumptions(deterministic=lambda place, _: place == 2),
        {"on": 1.0},
        {"on": 0.9, "stay": 0.1},
        1.0,
    ),
    "more outcomes than there can be": ("min-probability=0.4", {"on": 0.5, "stay": 0.5}, {"on": 0.5, "back": 0.5}, 1.0),
    "an outcome where none was left": ("min-probability=0.3", {"on": 0.5, "stay": 0.5}, {"on": 0.5, "back": 0.5}, 1.0),
}


def explored(case: str, **settings: Any) -> tuple[Road, SteppedWorld, Atlas]:
    """Returns a road that has gone wrong since it was explored."""
    assume, chances, wrong, epsilon = CASES[case]
    road = Road(chances, wrong)
    world = SteppedWorld(lambda: road)
    settings = {"doctor": False, **settings}
    atlas = axplore.explore(world, radius=6, epsilon=epsilon, assume=assume, **settings)
    assert atlas.verdict.kind is VerdictKind.PROVEN
    road.gone_wrong = True
    return road, world, atlas


def replayed(atlas: Atlas, world: SteppedWorld) -> tuple[Finding, ...]:
    return replays.replay(atlas, world).findings


def validated(atlas: Atlas, world: SteppedWorld) -> tuple[Finding, ...]:
    validation = atlas.validate(world, episodes=300)
    assert not validation.holds
    return validation.findings


def certified(atlas: Atlas, world: SteppedWorld) -> tuple[Finding, ...]:
    return axplore.certify(atlas, world, 4, chance=0.5, steps=60, restarts=True, delta=1e-90).findings


PLAYED = [replayed, validated, certified]


@pytest.mark.parametrize("play", PLAYED)
@pytest.mark.parametrize("case", CASES)
def test_a_draw_that_contradicts_an_assumption_is_told_with_the_draw(
    case: str, play: Callable[[Atlas, SteppedWorld], tuple[Finding, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    _, world, atlas = explored(case)
    (finding,) = play(atlas, world)
    assert finding.issue is Issue.ASSUMPTION_FALSE
    assert finding.level is Level.REFUTED
    assert finding.assumption == ("deterministic" if "deterministic" in case else "min-probability")
    assert "in state 2 led to" in finding.seen
    assert "assumed" in finding.seen
    if play is not replayed:
        assert "in state 2 led to" in caplog.text


@pytest.mark.parametrize("play", PLAYED)
def test_an_outcome_of_a_class_that_leads_elsewhere_is_told(
    play: Callable[[Atlas, SteppedWorld], tuple[Finding, ...]],
) -> None:
    road = Road({"on": 0.7, "stay": 0.3}, {"on": 0.4, "back": 0.6})
    world = SteppedWorld(lambda: road)
    assume = Assumptions(tied=outcome_of)
    atlas = axplore.explore(world, radius=6, epsilon=1, assume=assume, doctor=False)
    assert atlas.verdict.kind is VerdictKind.PROVEN
    road.gone_wrong = True
    (finding,) = play(atlas, world)
    assert finding.level is Level.DOUBT
    assert finding.issue in (Issue.HISTORY_MATTERS, Issue.ASSUMPTION_FALSE)


def test_pairs_of_a_class_that_differ_are_told_by_what_exploring_and_play_drew_together() -> None:
    road = Road({"on": 0.9, "stay": 0.1}, {"on": 0.4, "stay": 0.6})
    road.gone_wrong = True  # from the beginning: no row changes, but place 2 is not like the others
    world = SteppedWorld(lambda: road)
    atlas = axplore.explore(world, radius=9, epsilon=2, assume=Assumptions(tied=outcome_of), doctor=False)
    (finding,) = replays.replay(atlas, world, assume=Assumptions(tied=outcome_of)).findings
    assert (finding.issue, finding.assumption, finding.level) == (Issue.ASSUMPTION_FALSE, "tied", Level.DOUBT)
    assert "in state 2" in finding.seen


def test_an_outcome_that_leads_to_two_states_refutes_a_tie() -> None:
    def leads_to_one(place: Any, action: Any, after: Any) -> tuple[str, str]:
        kind, name = outcome_of(place, action, after)
        return kind, "stay" if name == "back" else name

    road = Road({"on": 0.7, "stay": 0.3}, {"on": 0.7, "back": 0.3})
    world = SteppedWorld(lambda: road)
    assume = Assumptions(tied=leads_to_one)
    atlas = axplore.explore(world, radius=6, epsilon=1, assume=assume, doctor=False)
    road.gone_wrong = True
    (finding,) = replays.replay(atlas, world, assume=assume).findings
    assert (finding.assumption, finding.level) == ("tied", Level.REFUTED)
    assert "the outcome stay is assumed to lead to 2 there" in finding.seen


@pytest.mark.parametrize("play", PLAYED[1:])
def test_rows_that_have_changed_are_told_where_nothing_is_assumed(
    play: Callable[[Atlas, SteppedWorld], tuple[Finding, ...]],
) -> None:
    road = Road({"on": 0.7, "stay": 0.3}, {"on": 0.3, "stay": 0.7})
    world = SteppedWorld(lambda: road)
    atlas = axplore.explore(world, radius=6, epsilon=1, doctor=False)
    road.gone_wrong = True
    (finding,) = play(atlas, world)
    assert (finding.issue, finding.level) == (Issue.HISTORY_MATTERS, Level.DOUBT)
    assert "in state 2 leads to depends on the way there" in finding.seen


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_found_where_everything_is_as_assumed(case: str) -> None:
    road, world, atlas = explored(case)
    road.gone_wrong = False
    assert replayed(atlas, world) == ()
    assert atlas.validate(world, episodes=300).holds
    assert certified(atlas, world) == ()


@pytest.mark.parametrize("case", CASES)
def test_the_doctor_tells_before_a_step_is_counted(case: str, tmp_path: Path) -> None:
    assume, _, wrong, epsilon = CASES[case]
    road = Road(wrong if "deterministic" in case else {"on": 0.4, "stay": 0.3, "back": 0.3}, wrong)
    if case == "an outcome where none was left":
        assume = "min-probability=0.34"
    atlas = axplore.explore(lambda: road, radius=6, epsilon=epsilon, assume=assume, run=tmp_path)
    (finding,) = [finding for finding in atlas.findings if finding.refutes]
    assert finding.issue is Issue.ASSUMPTION_FALSE
    assert atlas.steps == 0
    assert atlas.verdict.kind is VerdictKind.CONTRADICTED
    assert atlas.verdict.exit_code == 1
    assert axplore.verify(atlas).exit_code == 1
    freed = axplore.resume(tmp_path, lambda: road, assume="none", max_steps=4_000)
    assert freed.verdict.kind is not VerdictKind.CONTRADICTED
    assert not any(finding.refutes for finding in freed.findings)


def test_the_doctor_leaves_what_a_test_says_of_an_assumption_in_doubt() -> None:
    road = Road({"on": 0.9, "stay": 0.1}, {"on": 0.4, "stay": 0.6})
    road.gone_wrong = True
    (finding,) = examine(road, assume=Assumptions(tied=outcome_of)).findings
    assert (finding.issue, finding.level) == (Issue.ASSUMPTION_FALSE, Level.DOUBT)


def begins_with_replays(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a road go wrong when its policies are played."""
    replay = replays.replay

    def begin(*arguments: Any) -> Any:
        road.gone_wrong = True
        return replay(*arguments)

    monkeypatch.setattr(replays, "replay", begin)


@pytest.mark.parametrize("workers", [None, 1])
def test_a_contradiction_stays_in_every_file_and_through_resuming(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = Road({"on": 1.0}, {"on": 0.8, "stay": 0.2})
    begins_with_replays(road, monkeypatch)
    monkeypatch.setattr(engines, "engine_from", lambda workers, _: InProcess() if workers else None)
    settings: dict[str, Any] = {"radius": 6, "assume": "deterministic", "run": tmp_path, "workers": workers}
    atlas = axplore.explore(lambda: road, **settings)
    monkeypatch.undo()
    headline = atlas.verdict.headline
    assert "in state 2 led to 2, and otherwise to" in headline
    assert "though every action is assumed to have one outcome" in headline
    road.gone_wrong = False
    resumed = axplore.resume(tmp_path, lambda: road, workers=0)
    farther = axplore.resume(tmp_path, lambda: road, epsilon=0.05, workers=0)
    for told in (atlas, Atlas.load(tmp_path), resumed, farther):
        assert told.verdict.kind is VerdictKind.CONTRADICTED
        assert told.verdict.headline == headline
        assert told.verdict.exit_code == 1
        assert axplore.verify(told).exit_code == 1
        assert headline in str(axplore.verify(told))
        assert told.certificate is not None
        assert "CONTRADICTED" in str(verify_certificate(told.certificate))
        assert not told.bounds(3).proven
    freed = axplore.resume(tmp_path, lambda: road, assume="none", epsilon=1, workers=0)
    assert freed.verdict.kind is VerdictKind.PROVEN
    assert freed.assumptions == ()


def test_a_finding_stays_while_its_own_assumption_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road({"on": 1.0}, {"on": 0.8, "stay": 0.2})
    begins_with_replays(road, monkeypatch)
    axplore.explore(lambda: road, radius=6, assume="deterministic", run=tmp_path)
    monkeypatch.undo()
    road.gone_wrong = False
    still = axplore.resume(tmp_path, lambda: road, assume=["deterministic", "min-probability=0.2"])
    assert still.verdict.kind is VerdictKind.CONTRADICTED
    weaker = axplore.resume(tmp_path, lambda: road, assume="min-probability=0.2", epsilon=1)
    assert weaker.verdict.kind is VerdictKind.PROVEN


@pytest.mark.parametrize("every", [7, 40])
def test_faults_do_not_hide_a_contradiction(every: int) -> None:
    class Frail(Road):
        n = 0

        def step(self, action: str) -> int:
            self.n += 1
            if self.gone_wrong and self.n % every == 0:
                raise ValueError("stumbled")
            return super().step(action)

    road = Frail({"on": 1.0}, {"on": 0.9, "stay": 0.1})
    world = SteppedWorld(lambda: road, max_faults=10**6)
    atlas = axplore.explore(world, radius=6, assume="deterministic", doctor=False)
    road.gone_wrong = True
    (finding,) = replayed(atlas, world)
    assert finding.refutes
    assert world.faults


def test_what_certify_saw_of_the_atlas_is_kept_in_its_file(tmp_path: Path) -> None:
    _, world, atlas = explored("deterministic")
    certificate = axplore.certify(atlas, world, 4, chance=0.5, steps=60, restarts=True, delta=1e-90)
    certificate.save(tmp_path / "file.json")
    loaded = EpisodeCertificate.load(tmp_path / "file.json")
    assert loaded == certificate
    assert "Of the atlas: A declared assumption is false." in str(loaded)
    assert axplore.verify(tmp_path / "file.json").exit_code == 0  # what episodes prove needs no assumption


def test_a_policy_without_an_atlas_is_certified_as_before() -> None:
    _, world, atlas = explored("deterministic")
    assert axplore.certify(atlas.policy(4), world, 4, chance=0.5, steps=60, restarts=True).findings == ()


def test_draws_are_tested_when_the_last_of_a_batch_or_a_new_one_has_come() -> None:
    chances = {"on": 0.5, "stay": 0.5}
    world = SteppedWorld(lambda: Road(chances, chances))
    atlas = axplore.explore(world, radius=6, epsilon=1.0, doctor=False)
    start, ahead, far = (world.states.index(place) for place in (0, 1, 3))
    always_on = start, world.actions_of(start).index("slow"), ahead, 400
    new = *always_on[:2], far, 1

    checks = DrawChecks(atlas, world, "policies were played")
    assert checks.add(1, [always_on], more=True) is None
    finding = checks.add(1, [])
    assert finding is not None
    assert finding.issue is Issue.HISTORY_MATTERS
    assert DrawChecks(atlas, world, "policies were played").add(1, [always_on, new], more=True) is not None
