"""What is learned from a log: what it proves is true whatever policy made it, and open where it is too short."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import axplore
from axplore import RESET, Atlas, StopReason
from axplore.atlas.verdict import VerdictKind
from axplore.domains import confusing_chain
from axplore.errors import DamagedFileError, ExitCode, InvalidInputError
from axplore.explorers.certified import Certified
from axplore.target import Target
from axplore.truth import controllable_states, optimal_steps
from axplore_studies.coverage_models import KINDS, case
from axplore_studies.learned_logs import CHOOSERS, STUDY, learned, run_trial, summary, transitions
from axplore_studies.promises import violations_of
from commands import run

CHAIN = confusing_chain()


def log_of(length: int, policy: str = "random", seed: int = 0) -> list[tuple[object, object, object]]:
    return list(islice(transitions(CHAIN, policy, seed), length))


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return axplore.from_transitions(log_of(40_000), 4.5, 1, actions=CHAIN.actions_of, name="chain")


def test_a_long_log_proves_everything(atlas: Atlas) -> None:
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert atlas.stop is StopReason.PROVEN
    assert set(controllable_states(CHAIN, 4.5).states) <= set(atlas.states)
    for state in atlas.states:
        assert optimal_steps(CHAIN, state, atlas.states) in atlas.bounds(state)
    assert atlas.next_draws() == ()
    assert atlas.steps == 40_000


def test_what_was_learned_can_be_saved_and_verified(atlas: Atlas, tmp_path: Path) -> None:
    atlas.save(tmp_path / "learned")
    assert axplore.verify(tmp_path / "learned").exit_code is ExitCode.DONE
    again = Atlas.load(tmp_path / "learned")
    assert again.states == atlas.states
    assert again.verdict == atlas.verdict


@pytest.mark.parametrize("length", [1, 10, 300, 3000])
def test_a_short_log_leaves_things_open_and_says_what_to_play(length: int, tmp_path: Path) -> None:
    atlas = axplore.from_transitions(log_of(length), 4.5, 0.1, actions=CHAIN.actions_of)
    assert atlas.verdict.kind is VerdictKind.UNFINISHED
    assert atlas.stop is StopReason.LOG_ENDED
    planned = atlas.next_draws()
    assert planned
    assert {(draws.state, draws.action) for draws in planned} <= set(atlas.pairs)
    assert all(draws.draws >= 1 for draws in planned)
    atlas.save(tmp_path / "learned")
    assert axplore.verify(tmp_path / "learned").exit_code is ExitCode.UNFINISHED


def test_playing_what_is_planned_brings_the_proof() -> None:
    """Where the plan is carried out again and again, everything is proven, in fewer steps than by walking at random."""
    generator = np.random.default_rng(1)
    log = log_of(200)
    for _ in range(60):
        atlas = axplore.from_transitions(log, 4.5, 1, actions=CHAIN.actions_of)
        if atlas.complete:
            break
        for draws in atlas.next_draws():
            row = CHAIN.row(draws.state, draws.action)
            chosen = generator.choice(len(row), p=list(row.values()), size=min(draws.draws, 200))
            log += [(draws.state, draws.action, list(row)[place]) for place in chosen]
    assert atlas.complete
    assert len(log) < 40_000


def test_actions_of_the_log_alone_are_a_doubt() -> None:
    atlas = axplore.from_transitions(log_of(40_000), 4.5, 1)
    assert atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
    assert "Only the actions of the log are known" in atlas.verdict.doubts[0]


def test_a_state_never_left_has_the_actions_that_are_declared() -> None:
    """It was reached a thousand times, so it is admitted; what its actions do is open."""
    log = [("a", 0, "b"), ("b", RESET, "a")] * 1000
    declared = axplore.from_transitions(log, 3, 1, actions={"a": [0], "b": [0]})
    assert declared.states == ("a", "b")
    assert declared.actions == ((0,), (0,))
    assert not declared.complete
    assert [(draws.state, draws.action) for draws in declared.next_draws()] == [("b", 0)]
    terminal = axplore.from_transitions(log, 3, 1, actions={"a": [0], "b": []})
    assert terminal.complete


def test_draws_are_planned_only_where_something_is_proven() -> None:
    with pytest.raises(InvalidInputError, match="without assumptions"):
        axplore.explore("confusing-chain", radius=2, epsilon=1, explorer="disco-experiment").next_draws()


LOGS = 44


@pytest.mark.parametrize("policy", CHOOSERS)
def test_promises_of_adaptive_logs_hold(policy: str) -> None:
    """With δ = 0.5 at most half of the logs may break any; never while the true model is in the region."""
    kinds = list(KINDS)
    records = [run_trial(policy, 300, 0.5, kinds[n % len(kinds)], n // len(kinds)) for n in range(LOGS)]
    table = summary(records)
    assert table.holds
    broken = sum(bool(record["violations"]) for record in records)
    assert broken <= binom.ppf(0.999, LOGS, 0.5)
    assert sum(record["found"] for record in records) > LOGS  # something was proven at all


def test_a_log_from_which_outcomes_were_left_out_breaks_promises() -> None:
    """The judgement can fail: a log that keeps only what went well proves what is false."""
    broken = 0
    for seed in range(10):
        given = case("sparse", seed)
        explorer = Certified(target=Target(radius=given.radius, epsilon=0.5, delta=0.5), by_episodes=False)
        log = list(islice(transitions(given.mdp, "random", seed), 3000))
        kept = [row for row in log if row[1] is RESET or row[2] == max(given.mdp.row(*row[:2]), key=str)]
        broken += bool(violations_of(learned(kept, given, explorer)[0], given))
    assert broken > 5


def test_the_study_has_an_address_for_each_log() -> None:
    planned = STUDY.planned(number=2)
    assert len({json.dumps(trial.address) for trial in planned}) == len(planned) == 3 * 3 * 2 * 2


def test_the_command_prints_what_is_proven_and_what_to_play(tmp_path: Path) -> None:
    rows = ((state, "RESET" if action is RESET else action, after) for state, action, after in log_of(500))
    lines = ["state,action,next_state", *(",".join(map(str, row)) for row in rows)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    printed = run("learn", str(path), "--radius", "4.5", "--out", str(tmp_path / "learned"), code=3)
    assert "What to play next" in printed
    assert "Only the actions of the log are known" in printed
    assert (tmp_path / "learned" / "report.html").is_file()
    content = json.loads(run("learn", str(path), "--radius", "4.5", "--out", str(tmp_path / "other"), "--json", code=3))
    assert content["next"][0].keys() == {"state", "action", "draws", "why"}
    path.write_text("\n".join([*lines, "half a"]), encoding="utf-8")
    with pytest.raises(DamagedFileError, match="transition 501"):
        run("learn", str(path), "--radius", "4.5", "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
