"""One verdict for everything that speaks of an atlas, and only a proof without doubts promises without a condition."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from altered import altered
from axplore import Atlas, Objective, Status, StopReason, TabularMdp
from axplore.atlas.verdict import ASSUMPTIONS, Verdict, VerdictKind, verdict_of
from axplore.certificate.doubts import fault_text
from axplore.errors import ExitCode, InvalidInputError
from axplore.records.codec import pack, unpack
from axplore.records.episodes import EpisodeRecord
from axplore.records.findings import Fault, FaultKind, Finding, Issue, Level
from axplore.records.order import Labels
from commands import run
from turning_world import TurningWorld

PINNED = Finding(Issue.NOISE_PINNED, "Seen.", "Nothing holds.", "Mend it.", Level.DOUBT)
HIDDEN = Finding(Issue.HISTORY_MATTERS, "Seen.", "Nothing holds.", "Mend it.", Level.DOUBT)
TOO_FINE = Finding(Issue.KEY_TOO_FINE, "It is.", "It holds.", "Leave it.", Level.NOTE)
FAULT = Fault(FaultKind.RAISED, "OSError: gone", Labels(["s0", "forward"]), 7, count=3)
FAULT_AT_RESET = Fault(FaultKind.TIMED_OUT, "no answer", None, 7)

UNCONDITIONAL = re.compile(r"^Proven: |^All this, and every bound, holds", re.MULTILINE)


class HiddenCounter:
    """What an action leads to depends on how many steps were taken since the reset, which no state says."""

    actions = ("go",)

    def reset(self) -> str:
        self.age = 0
        return "start"

    def step(self, _action: str) -> str:
        self.age += 1
        return "even" if self.age % 3 == 0 else "odd"


class Failing:
    """Fails now and then, and works when it is made anew."""

    actions = ("go",)
    fails_at: Sequence[int] = ()
    fails_at_reset = False
    steps = 0

    def reset(self) -> str:
        if self.fails_at_reset and type(self).steps > 3:
            type(self).fails_at_reset = False
            raise OSError("cannot reset")
        self.state = "start"
        return self.state

    def step(self, _action: str) -> str:
        type(self).steps += 1
        if type(self).steps in self.fails_at:
            raise OSError("out of order")
        self.state = "goal" if self.state == "start" else "start"
        return self.state


@pytest.fixture(scope="module")
def contradicted() -> Atlas:
    def chances(chance: float) -> TabularMdp:
        rows = {"s": {"go": {"t": chance, "s": 1 - chance}}, "t": {"go": {"u": 1.0}}, "u": {"go": {"s": 1.0}}}
        return TabularMdp.from_rows(rows, "s")

    return axplore.explore(TurningWorld(chances(0.9), chances(0.05), 3), radius=2, epsilon=0.5, max_steps=100_000)


def verdict_with(atlas: Atlas, **changes: Any) -> Verdict:
    return verdict_of(altered(atlas, **changes))


def test_a_complete_proof_without_doubts_is_promised(chain: Atlas) -> None:
    verdict = chain.verdict
    assert (verdict.kind, verdict.exit_code, verdict.open_states) == (VerdictKind.PROVEN, 0, 0)
    assert verdict.headline == (
        "Proven: 6 states are reliably reachable within 4.6 expected steps, and no other within 4.5; each policy is "
        "within 0.1 steps of the best one through these states."
    )
    assert "a probability of at least 0.9" in verdict.sentences[0]
    assert verdict.assumptions == ASSUMPTIONS
    assert all(assumption in str(verdict) for assumption in ASSUMPTIONS)


def test_one_state_and_one_step_are_told_in_the_singular() -> None:
    alone = axplore.explore(TabularMdp.from_rows({"only": {"stay": {"only": 1.0}}}, "only"), radius=2, epsilon=1)
    assert alone.verdict.headline == (
        "Proven: the initial state is reliably reachable within 3 expected steps, and no other within 2; each policy "
        "is within 1 step of the best one through these states."
    )


def test_a_finding_puts_everything_under_doubt(chain: Atlas) -> None:
    verdict = verdict_with(chain, findings=(PINNED,))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.PROVEN_UNDER_DOUBT, 4)
    assert "the noise is pinned" in verdict.headline
    assert verdict.sentences[0].startswith("If the assumptions hold, then with a probability of at least 0.9")
    assert verdict.doubts == (str(PINNED),)


def test_steps_that_failed_put_everything_under_doubt(chain: Atlas) -> None:
    verdict = verdict_with(chain, faults=(FAULT,))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.PROVEN_UNDER_DOUBT, 4)
    assert "3 steps failed and are not counted" in verdict.headline
    assert "failed 3 times at action 'forward' in state 's0': OSError: gone" in verdict.doubts[0]


def test_what_leaves_the_proof_as_it_is_becomes_a_note(chain: Atlas) -> None:
    verdict = verdict_with(chain, findings=(TOO_FINE,), faults=(FAULT_AT_RESET,))
    assert (verdict.kind, verdict.doubts) == (VerdictKind.PROVEN, ())
    assert verdict.notes == (str(TOO_FINE), fault_text(FAULT_AT_RESET))


def test_what_is_open_is_counted_and_the_reason_named(unfinished: Atlas) -> None:
    verdict = unfinished.verdict
    reports = [*(unfinished.describe(state) for state in unfinished.states), *unfinished.frontier]
    n_open = sum(report.status is axplore.Status.OPEN for report in reports)
    assert (verdict.kind, verdict.exit_code, verdict.open_states) == (VerdictKind.UNFINISHED, 3, n_open)
    assert verdict.headline.startswith(f"Unfinished: the step limit was reached; {n_open} states are open")


def test_what_is_open_is_said_in_full(unfinished: Atlas) -> None:
    assert unfinished.verdict.lines[:6] == (
        "Unfinished: the step limit was reached; 10 states are open.",
        "What is called certified or set aside, and every bound, holds at once with a probability of at least 0.9.",
        "States within the radius may be missing.",
        "8 states seen and undecided: s8, s11, s6, s9, s10 and 3 more.",
        "2 states of the atlas not fully proven: s2, s3.",
        "Until they are decided, policies are compared only with others through the states above.",
    )
    within_radius = verdict_with(unfinished, objective=Objective.WITHIN_RADIUS)
    assert "compared" not in str(within_radius)


def test_where_nothing_is_missing_an_unfinished_exploration_says_so() -> None:
    atlas = axplore.explore("confusing-chain", radius=4.5, epsilon=0.1, max_steps=3300)
    assert atlas.verdict.lines[:4] == (
        "Unfinished: the step limit was reached; 3 states are open.",
        "What is called certified or set aside, and every bound, holds at once with a probability of at least 0.9.",
        "Nothing within the radius is missing: the 6 other states seen and all states never seen take more than 4.5 "
        "expected steps.",
        "3 states of the atlas not fully proven: s3, s4, s5.",
    )
    assert "compared" not in str(atlas.verdict)


def test_states_never_seen_that_are_not_ruled_out_are_told() -> None:
    atlas = axplore.explore("star", 1.5, 1, world_parameters={"arms": 9}, max_steps=60)
    assert atlas.verdict.headline.endswith("; 9 states are open, and states never seen are not ruled out.")
    lower = f"{math.floor(atlas.unseen_lower * 1000) / 1000:.3f}"
    assert (
        f"States never seen are not ruled out: that they take at least {lower} expected steps is all that is proven."
        in atlas.verdict.sentences
    )


def record_of(goal: int, bound: float) -> EpisodeRecord:
    return EpisodeRecord(goal, (0,), (0,), 9, bound, bound, 1.0 + bound, 1, 1, (0.5,), (1.0,), (0,) * 11)


def test_what_episodes_prove_is_told_where_labels_may_hide_something(chain: Atlas, contradicted: Atlas) -> None:
    tests = (record_of(1, 2.0), record_of(1, 3.0), record_of(2, 4.25), record_of(2, 9.0), record_of(3, 3.0))
    anyway = (
        "Whatever the labels hide, 3 states are reached within 4.250 expected steps from RESET, by policies that "
        "restart (`by episodes`)."
    )
    assert any(line.startswith(anyway) for line in verdict_with(chain, tests=tests, findings=(HIDDEN,)).sentences)
    assert any(line.startswith(anyway) for line in verdict_with(contradicted, tests=tests).sentences)
    assert "Whatever" not in str(verdict_with(chain, tests=tests))
    # Episodes whose noise repeats prove nothing, whatever else was found.
    assert "Whatever" not in str(verdict_with(chain, tests=tests, findings=(HIDDEN, PINNED)))


@pytest.mark.parametrize(
    ("stop", "code"),
    [(StopReason.INTERRUPTED, 130), (StopReason.WORLD_FAILED, 2), (StopReason.STEP_LIMIT, 3), (StopReason.PROVEN, 3)],
)
def test_an_unfinished_exploration_exits_by_its_reason_and_promises_nothing(
    unfinished: Atlas, stop: StopReason, code: int
) -> None:
    verdict = verdict_with(unfinished, stop=stop)
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.UNFINISHED, code)
    assert not UNCONDITIONAL.search(str(verdict))


def test_a_limit_that_came_when_all_was_proven_takes_nothing_away(chain: Atlas) -> None:
    assert verdict_with(chain, stop=StopReason.STEP_LIMIT).kind is VerdictKind.PROVEN


def test_a_contradicted_exploration_promises_nothing_and_is_not_complete(contradicted: Atlas) -> None:
    assert contradicted.stop is StopReason.CONTRADICTED
    assert not contradicted.complete
    assert (contradicted.verdict.kind, contradicted.verdict.exit_code) == (VerdictKind.CONTRADICTED, 1)
    assert contradicted.verdict.headline == (
        "Contradicted: the counts refute what earlier counts had proven, so nothing here can be relied on."
    )
    assert "Nothing within the radius is missing" not in str(contradicted)
    assert not UNCONDITIONAL.search(str(contradicted))
    assert axplore.verify(contradicted).exit_code == 1


def test_a5_no_answer_of_a_contradicted_atlas_is_called_proven(contradicted: Atlas) -> None:
    forged = altered(contradicted, stop=StopReason.STEP_LIMIT)  # the record of a run is not proven
    for atlas in (contradicted, forged):
        goal = atlas.states[-1]
        assert atlas.verdict.kind is VerdictKind.CONTRADICTED
        assert not atlas.bounds(goal).proven
        assert not atlas.plan(goal).proven
        assert not atlas.probability(goal, 5).proven
        assert not atlas.nothing_missing
        assert atlas.describe(goal).status is Status.OPEN
        for said in (atlas.plan(goal), atlas.describe(goal).reason, atlas.why_not("elsewhere")):
            assert "refute" in str(said)
            assert not UNCONDITIONAL.search(str(said))


def test_a7_a_plan_promises_only_on_condition_where_the_assumptions_are_in_doubt(chain: Atlas) -> None:
    goal = chain.states[-1]
    assert chain.plan(goal).guarantee.startswith("With a probability of at least 0.9")
    doubted = altered(chain, findings=(PINNED,)).plan(goal).guarantee
    assert doubted.startswith("If the assumptions hold, which is in doubt, then with a probability of at least 0.9")


@pytest.mark.parametrize(("explorer", "words"), [("disco-theory", "[DisCo] Thm. 1"), ("any", "without a guarantee")])
def test_an_explorer_without_proof_is_said_to_have_none(estimated: Atlas, explorer: str, words: str) -> None:
    verdict = verdict_with(estimated, explorer=explorer)
    assert (verdict.kind, verdict.exit_code, verdict.assumptions) == (VerdictKind.NOT_PROVEN, 0, ())
    assert verdict.open_states == 0
    assert words in verdict.headline
    assert not estimated.complete
    assert verdict_with(estimated, findings=(PINNED,)).exit_code == 4
    assert verdict_with(estimated, stop=StopReason.STEP_LIMIT).kind is VerdictKind.UNFINISHED


def test_only_a_proof_without_doubts_promises_without_a_condition(
    chain: Atlas, unfinished: Atlas, contradicted: Atlas, estimated: Atlas
) -> None:
    doubted = altered(chain, findings=(PINNED,))
    kinds = {atlas.verdict.kind: atlas for atlas in (chain, doubted, unfinished, contradicted, estimated)}
    assert set(kinds) == set(VerdictKind)
    for kind, atlas in kinds.items():
        for text in (str(atlas), str(atlas.verdict)):
            assert bool(UNCONDITIONAL.search(text)) == (kind is VerdictKind.PROVEN)
        assert kind.value in repr(atlas)


def test_a_part_of_an_atlas_has_the_verdict_of_the_part(chain: Atlas) -> None:
    for radius in np.linspace(1, 4.5, 8):
        part = chain.within(float(radius))
        if part.complete:
            assert part.verdict.kind is VerdictKind.PROVEN
            assert "open" not in str(part)
        else:
            assert part.verdict.headline.startswith("Unfinished: the counts do not decide everything for the radius of")
            assert chain.stop.value not in str(part)
            assert not UNCONDITIONAL.search(str(part))


@pytest.mark.parametrize("reason", [StopReason.PROVEN, StopReason.NO_CANDIDATES, StopReason.WORLD_FAILED, "enough", 3])
def test_a_hook_cannot_say_that_something_is_proven(reason: Any) -> None:
    with pytest.raises(InvalidInputError, match="what on_round returned is"):
        axplore.explore("confusing-chain", 4.5, on_round=lambda _: reason)


def test_a_small_delta_is_not_rounded_to_certainty(chain: Atlas) -> None:
    verdict = verdict_with(chain, target=replace(chain.target, delta=1e-9))
    assert "a probability of at least 1 - 1e-09" in str(verdict)


# What the doctor found and what failed belongs to the run.


def test_a_finding_is_kept_in_run_atlas_and_certificate(tmp_path: Path) -> None:
    atlas = axplore.explore(HiddenCounter, radius=2, epsilon=1, run=tmp_path / "run")
    assert atlas.complete
    finding = atlas.findings[0]
    assert (finding.issue, finding.level) == (Issue.NOISE_PINNED, Level.DOUBT)
    loaded = Atlas.load(tmp_path / "run")
    assert loaded.certificate is not None
    assert loaded.findings == loaded.certificate.findings == atlas.findings
    assert loaded.verdict == atlas.verdict
    assert set(axplore.resume(tmp_path / "run", HiddenCounter).findings) >= set(atlas.findings)
    assert "In doubt: Episodes repeat each other" in run("verify", str(tmp_path / "run"), code=4)
    answer = json.loads(run("verify", str(tmp_path / "run"), "--json", code=4))
    assert (answer["verdict"]["kind"], answer["exit_code"]) == ("PROVEN_UNDER_DOUBT", 4)


def test_the_doctor_can_be_left_out() -> None:
    """Only the tests that run along find something then."""
    findings = axplore.explore(HiddenCounter, radius=2, epsilon=1, doctor=False).findings
    assert {finding.issue for finding in findings} <= {Issue.HISTORY_MATTERS}


def test_steps_that_fail_are_counted_in_run_atlas_and_certificate(tmp_path: Path) -> None:
    class Now(Failing):
        fails_at = (5, 6)

    atlas = axplore.explore(Now, radius=2, epsilon=1, run=tmp_path, doctor=False)
    (fault,) = atlas.faults
    assert (fault.kind, fault.pair, fault.count) == (FaultKind.RAISED, Labels(["start", "go"]), 2)
    assert atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
    assert atlas.certificate is not None
    assert Atlas.load(tmp_path).faults == atlas.certificate.faults == atlas.faults
    assert axplore.resume(tmp_path, Now, epsilon=0.9).faults == atlas.faults
    assert axplore.explore(Now, radius=2, epsilon=1, doctor=False).faults == ()


def test_a_failure_at_a_reset_loses_no_outcome() -> None:
    class AtReset(Failing):
        fails_at_reset = True

        def is_terminal(self, state: str) -> bool:
            return state == "goal"

    atlas = axplore.explore(AtReset, radius=2, epsilon=1, doctor=False)
    assert [fault.pair for fault in atlas.faults] == [None]
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert atlas.verdict.notes


def test_a_verdict_is_told_to_machines(chain: Atlas) -> None:
    told = json.loads(json.dumps(verdict_with(chain, findings=(PINNED,)).as_json()))
    assert (told["kind"], told["exit_code"], told["open_states"]) == ("PROVEN_UNDER_DOUBT", 4, 0)
    assert told["doubts"] == [str(PINNED)]


def test_the_documentation_has_every_verdict_and_every_exit_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    for kind in VerdictKind:
        assert f"| `{kind.name}` |" in text
    for code in ExitCode:
        assert f"\n| {code.value} |" in text


@pytest.mark.parametrize("record", [PINNED, TOO_FINE, FAULT, FAULT_AT_RESET])
def test_a_record_of_a_doubt_survives_a_file(record: Any) -> None:
    assert unpack(type(record), json.loads(json.dumps(pack(record)[0]))) == record


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (PINNED, {"level": "harmless"}),
        (PINNED, {"seen": 3}),
        (FAULT, {"count": 0}),
        (FAULT, {"count": True}),
        (FAULT, {"pair": ["s0"]}),
        (FAULT, {"kind": None}),
        (FAULT, {"more": 1}),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(record: Any, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        unpack(type(record), {**pack(record)[0], **change})


def test_draws_that_were_lost_with_a_worker_and_cannot_be_repeated_are_a_doubt() -> None:
    lost = Fault(FaultKind.LOST, "process 7 was killed by SIGKILL", None, 7, count=2)
    assert lost.is_doubt
    assert "lost with a worker 2 times" in fault_text(lost)
    assert not FAULT_AT_RESET.is_doubt
