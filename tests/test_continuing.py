"""Explorations that begin with a log: what is proven is true, a log that does not fit is noticed, nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import RESET, Atlas, StopReason, TabularMdp
from axplore.atlas.verdict import VerdictKind
from axplore.domains import confusing_chain
from axplore.errors import ExitCode, InvalidSettingError, WorldError
from axplore.explorers.base import RoundReport
from axplore.records.findings import Issue
from axplore.statistics.dependence import log_evidence_of_two
from axplore.statistics.two_samples import rows_that_differ
from axplore.truth import controllable_states, optimal_steps
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.learned_logs import STUDY_OF_CONTINUED, continued_trial, transitions
from commands import run

CHAIN = confusing_chain()
SCREENS = {
    "home": {"buy": "basket", "help": "help"},
    "basket": {"pay": "thanks", "back": "home"},
    "thanks": {"again": "home"},
    "help": {"back": "home"},
}


class Shop:
    """Payments succeed in `paid` of the cases."""

    knows_here_only = False

    def __init__(self, paid: float = 0.9) -> None:
        self.paid, self.noise = paid, random.Random(0)

    def reseed(self, seed: int) -> None:
        self.noise = random.Random(seed)

    def reset(self) -> str:
        self.screen = "home"
        return self.screen

    def step(self, button: str) -> str:
        if button != "pay" or self.noise.random() < self.paid:
            self.screen = SCREENS[self.screen][button]
        return self.screen

    def actions(self, screen: str) -> tuple[str, ...]:
        return tuple(SCREENS[screen])


class Quiet(Shop):
    """Tells the actions of the screen that it shows, and of no other."""

    knows_here_only = True

    def actions(self, screen: str) -> tuple[str, ...]:
        assert screen == self.screen
        return super().actions(screen)


def shop_log(length: int, paid: float = 0.9, without: tuple[str, ...] = ()) -> list[tuple[Any, Any, Any]]:
    shop, choice, log = Shop(paid), random.Random(1), list[tuple[Any, Any, Any]]()
    screen = shop.reset()
    while len(log) < length:
        offered = [action for action in shop.actions(screen) if action not in without]
        if not offered or choice.random() < 0.1:
            log.append((screen, RESET, shop.reset()))
        else:
            action = choice.choice(offered)
            log.append((screen, action, shop.step(action)))
        screen = log[-1][2]
    return log


def chain_log(length: int) -> list[tuple[Any, Any, Any]]:
    return list(islice(transitions(CHAIN, "random", 0), length))


def explored(log: Any, **settings: Any) -> Atlas:
    return axplore.explore(CHAIN, 4.5, 0.5, seed=1, begin_with=log, **settings)


def check_truth(atlas: Atlas) -> None:
    assert set(controllable_states(CHAIN, 4.5).states) <= set(atlas.states)
    for state in atlas.states:
        assert optimal_steps(CHAIN, state, atlas.states) in atlas.bounds(state)


@pytest.fixture(scope="module")
def from_nothing() -> Atlas:
    return axplore.explore(CHAIN, 4.5, 0.5, seed=1)


@pytest.mark.parametrize("length", [1, 10_000, 40_000])
def test_a_log_saves_the_draws_that_it_has(length: int, from_nothing: Atlas) -> None:
    atlas = explored(chain_log(length))
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(atlas).exit_code is ExitCode.DONE
    check_truth(atlas)
    if length > 1:
        assert atlas.steps < from_nothing.steps
        assert any("come from a log" in sentence for sentence in atlas.verdict.sentences)
        assert "nothing was left out" in atlas.verdict.assumptions[-1]
    if length == 40_000:
        assert atlas.steps < 100


def test_levels_go_by_the_order_in_which_the_log_left_states() -> None:
    log = chain_log(2_000)
    left = list(dict.fromkeys(state for state, action, _ in log if action is not RESET))
    atlas = explored(log, max_steps=1)
    assert [atlas.counts.order[number] for number in atlas.counts.states.tolist()] == [
        state for state in left if state in atlas.states
    ]


def stop_after(rounds: int) -> Callable[[RoundReport], StopReason | None]:
    return lambda report: StopReason.INTERRUPTED if report.round >= rounds else None


def test_an_interrupted_run_resumes_to_the_same_atlas(tmp_path: Path) -> None:
    whole = explored(chain_log(3_000), run=tmp_path / "whole")
    cut = explored(chain_log(3_000), run=tmp_path / "cut", on_round=stop_after(3))
    assert cut.stop is StopReason.INTERRUPTED
    again = axplore.resume(tmp_path / "cut", CHAIN)
    assert (again.steps, again.states, again.run.logged) == (whole.steps, whole.states, whole.run.logged)
    np.testing.assert_array_equal(again.counts.counts, whole.counts.counts)
    assert again.verdict == whole.verdict
    wider = axplore.resume(tmp_path / "cut", CHAIN, epsilon=1.0)
    assert wider.complete


def test_a_run_that_is_killed_while_it_meets_states_of_its_log_loses_nothing(tmp_path: Path) -> None:
    log = [("home", "buy", "basket"), ("home", "help", "help")] * 20
    cut = axplore.explore(Quiet, 4, 2, begin_with=log, run=tmp_path / "run", on_round=stop_after(4), doctor=False)
    assert cut.stop is StopReason.INTERRUPTED
    (tmp_path / "run" / "ended.json").unlink()
    again = axplore.resume(tmp_path / "run", Quiet)
    assert again.complete
    assert again.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(again).exit_code is ExitCode.DONE


@pytest.mark.usefixtures("_only_worker_here")
def test_workers_continue_from_a_log_and_their_number_does_not_matter() -> None:
    one, two = (explored(chain_log(3_000), workers=n) for n in (1, 2))
    assert one.complete
    np.testing.assert_array_equal(one.counts.counts, two.counts.counts)


def test_budgets_hold_for_steps_of_the_system_alone() -> None:
    atlas = explored(chain_log(3_000), max_steps=100)
    assert atlas.run.steps_in_all <= 100
    assert atlas.verdict.kind is VerdictKind.UNFINISHED
    assert atlas.run.logged > 0


def test_a_log_may_contradict_an_assumption() -> None:
    atlas = axplore.explore(Shop, 4, 2, begin_with=shop_log(400), assume="deterministic")
    assert atlas.verdict.exit_code is ExitCode.REFUTED
    given = axplore.explore(Shop, 4, 2, begin_with=shop_log(400), assume="min-probability=0.1", doctor=False)
    assert given.complete
    assert given.assumptions


def test_a_system_that_has_changed_since_its_log_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    fits = axplore.explore(Shop, 4, 1, begin_with=shop_log(300), doctor=False)
    assert fits.verdict.kind is VerdictKind.PROVEN
    atlas = axplore.explore(Shop, 4, 0.5, begin_with=shop_log(600, paid=0.4), doctor=False)
    assert [finding.issue for finding in atlas.findings] == [Issue.LOG_DIFFERS]
    assert atlas.verdict.exit_code is not ExitCode.DONE
    assert "Action pay in state basket led to" in caplog.text


def test_what_only_replays_show_names_the_log_too() -> None:
    atlas = axplore.explore(Shop, 4, 2, begin_with=shop_log(4_000, paid=0.5))
    assert atlas.steps == 0, "the log proves all there is to prove"
    assert [finding.issue for finding in atlas.findings] == [Issue.LOG_DIFFERS]


def test_a_log_that_changes_in_its_course_is_noticed(tmp_path: Path) -> None:
    log = shop_log(1_500, paid=0.95) + shop_log(1_500, paid=0.5)
    learned = axplore.from_transitions(log, 4, 2, actions=lambda screen: SCREENS[screen])
    assert [finding.issue for finding in learned.findings] == [Issue.LOG_CHANGES]
    assert "in the first half" in learned.findings[0].seen
    steady = axplore.from_transitions(shop_log(3_000), 4, 2, actions=lambda screen: SCREENS[screen])
    assert not steady.findings
    begun = axplore.explore(Shop, 4, 2, begin_with=log, run=tmp_path / "run", doctor=False)
    assert begun.verdict.doubts


def test_states_of_a_log_that_tell_their_actions_only_when_met() -> None:
    """Where the log has played them all, nothing is in doubt once every state was met; else the system is asked for."""
    atlas = axplore.explore(Quiet, 4, 2, begin_with=shop_log(3_000))
    assert atlas.verdict.kind is VerdictKind.PROVEN
    short = axplore.explore(Quiet, 4, 2, begin_with=shop_log(12))
    assert short.verdict.kind is VerdictKind.PROVEN, "states that the log never left are visited before they count"
    missing = shop_log(60, without=("back",))
    with pytest.raises(WorldError, match=r"the log plays \['pay'\] in state 'basket'.*--log-actions"):
        axplore.explore(Quiet, 4, 2, begin_with=missing, doctor=False)
    with pytest.raises(InvalidSettingError, match=r"never leaves the state 'help'.*--log-actions"):
        axplore.explore(Quiet, 4, 2, begin_with=missing, workers=1)
    told = axplore.explore(Quiet, 4, 2, begin_with=missing, log_actions=SCREENS, doctor=False)
    assert told.verdict.kind is VerdictKind.PROVEN
    asked = axplore.explore(Shop, 4, 2, begin_with=missing, doctor=False)
    assert asked.verdict.kind is VerdictKind.PROVEN


def test_states_that_nobody_has_met_are_a_doubt() -> None:
    world = SteppedWorld(Quiet, 0)
    atlas = axplore.explore(world, 4, 2, begin_with=shop_log(3_000), doctor=False)
    assert atlas.steps == 0, "the log proves all there is to prove, and nothing is played"
    assert [finding.issue for finding in atlas.findings] == [Issue.ACTIONS_OF_LOG]
    assert "The system was never in 3 of the states" in atlas.findings[0].seen
    assert atlas.verdict.exit_code is ExitCode.IN_DOUBT


@pytest.mark.parametrize(
    ("log", "settings", "told"),
    [
        ([("nowhere", "a", "nowhere")], {}, "the initial state .* is not in the log"),
        ([("s0", "a", "moon")], {}, "the model has no state 'moon'|which actions lacks"),
        ("log.txt", {}, "its name must end in"),
        ([("s0", "x", "s0")], {}, "which actions lacks"),
    ],
)
def test_a_log_of_another_system_is_refused(log: Any, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidSettingError, match=told):
        explored(log, **settings)


def test_who_makes_no_use_of_a_log_says_so() -> None:
    with pytest.raises(InvalidSettingError, match="makes no use of a log"):
        explored(chain_log(10), explorer="disco-experiment")
    with pytest.raises(InvalidSettingError, match="memory makes others"):
        axplore.explore(Shop, 4, begin_with=shop_log(10), memory=2)


def test_the_command_begins_with_a_file(tmp_path: Path) -> None:
    lines = ["state,action,next_state", *(f"{s},{'RESET' if a is RESET else a},{n}" for s, a, n in chain_log(3_000))]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    settings = ("--radius", "4.5", "--epsilon", "0.5", "--begin-with", tmp_path / "log.csv", "--out", tmp_path / "run")
    output = run("explore", "confusing-chain", *settings)
    assert "draws that this rests on come from a log" in output
    assert axplore.verify(tmp_path / "run").exit_code is ExitCode.DONE


def test_rows_that_differ_are_those_that_the_test_of_each_row_finds() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 5, 300)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    first, second = rng.integers(0, 40, (2, offsets[-1])) * rng.integers(0, 2, (2, offsets[-1]))
    levels = np.full(len(lengths), 0.05)
    expected = {}
    for row, (begin, end) in enumerate(pairwise(offsets.tolist())):
        samples: list[dict[Any, int]] = [
            {entry: int(times[entry]) for entry in range(begin, end) if times[entry]} for times in (first, second)
        ]
        if all(samples) and (evidence := log_evidence_of_two(*samples)) >= -np.log(0.05):
            expected[row] = evidence
    assert dict(rows_that_differ(offsets, first, second, levels)) == expected
    assert expected


@pytest.mark.parametrize("seed", range(3))
def test_what_is_proven_after_a_log_is_true_on_random_models(seed: int) -> None:
    record = continued_trial(policy="rare", length=300, delta=0.1, kind="sparse", seed=seed)
    assert not record["violations"]
    assert record["proven"]
    assert STUDY_OF_CONTINUED.summary([record]).holds


def test_a_log_with_two_models_of_a_start_is_refused() -> None:
    mdp = TabularMdp.from_rows({"a": {"go": {"b": 1.0}}, "b": {"go": {"a": 1.0}}}, "a")
    with pytest.raises(InvalidSettingError, match="RESET leads to b"):
        axplore.explore(mdp, 2, begin_with=[("a", "go", "b"), ("b", RESET, "b")])
