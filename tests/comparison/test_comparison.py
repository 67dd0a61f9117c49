from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axplore import Atlas, explore
from axplore.cli.compare_commands import common_traits, comparison_as_json, means_table, runs_table
from axplore.comparison.runs import compared, grouped, means_of, true_steps
from axplore.comparison.seeds import SeedRun
from axplore.domains import domain
from axplore.records.estimate import Estimate
from axplore.report.figures import KINDS, write_figures
from axplore.request import Request
from axplore.runs.history import History, history_of
from axplore.target import Objective


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, chain_run: Path) -> list[Path]:
    folder = tmp_path_factory.mktemp("compared")
    explore("confusing-chain", 4.5, 0.5, seed=1, run=folder / "second")
    explore("confusing-chain", 4.5, 0.8, explorer="disco-experiment", run=folder / "disco")
    explore("confusing-chain", 4.5, 0.1, max_steps=300, run=folder / "short")
    return [chain_run, folder / "second", folder / "disco", folder / "short"]


def test_steps_on_the_true_model_have_the_closed_form_of_the_chain(chain_run: Path) -> None:
    steps = true_steps(Atlas.load(chain_run), domain("confusing-chain"))
    assert {state: round(value, 9) for state, value in steps.items()} == {
        "s0": 0, "s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4,
    }  # fmt: skip


def test_a_run_is_right_where_it_is_and_wrong_where_it_is_not(runs: list[Path]) -> None:
    done, _, _, short = compared(runs)
    assert done.checks[Objective.OPTIMAL].holds
    assert done.checks[Objective.WITHIN_RADIUS].holds
    assert short.checks[Objective.OPTIMAL].missing
    headings, rows = runs_table([done, short])
    assert [row[headings.index("AX*")] for row in rows] == ["holds", "incomplete"]
    assert rows[1][headings.index("steps")].endswith("(cut short)")


def test_a_policy_that_is_too_slow_is_found_out(chain_run: Path, tmp_path: Path) -> None:
    atlas = Atlas.load(chain_run)
    forward = np.array([list(actions).index("forward") for actions in atlas.actions])
    policies = (*atlas.policies[:-1], forward)  # s5 by way of the whole chain: 5 steps instead of 4
    assert atlas.states[-1] == "s5"
    target = atlas.target
    estimate = Estimate(
        radius=target.radius,
        epsilon=target.epsilon,
        delta=target.delta,
        counts=atlas.counts,
        states=atlas.numbers,
        frontier=atlas.frontier_numbers,
        policies=policies,
        optimistic_steps=atlas.lower[: len(atlas.states)],
    )
    Atlas(source=estimate, run=atlas.run).save(tmp_path)
    (tmp_path / "run.json").write_bytes((chain_run / "run.json").read_bytes())
    (run,) = compared([tmp_path])
    assert run.checks[Objective.WITHIN_RADIUS].holds
    assert not run.checks[Objective.OPTIMAL].holds
    assert run.checks[Objective.OPTIMAL].excess == pytest.approx(1 - atlas.target.epsilon)


def test_without_a_known_truth_nothing_is_said_of_correctness(chain_run: Path, tmp_path: Path) -> None:
    Atlas.load(chain_run).save(tmp_path)
    runs = compared([tmp_path])
    assert runs_table(runs)[1][0][-3:] == ("unknown", "unknown", "unknown")
    assert comparison_as_json(runs, [])["runs"][0]["missing"] is None


def test_runs_that_differ_in_their_seed_only_are_a_group(runs: list[Path]) -> None:
    groups = [run.group for run in compared(runs)]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


def test_runs_with_another_delta_or_other_parameters_are_another_group(tmp_path: Path) -> None:
    for name, settings in {
        "first": {},
        "delta": {"delta": 0.5},
        "parameters": {"world_parameters": {"arm_length": 2}},
        "workers": {"workers": 1},
    }.items():
        explore("star", 2, 1.0, run=tmp_path / name, **settings)  # type: ignore[arg-type]
    assert len({run.group for run in compared(sorted(tmp_path.iterdir()))}) == 4


def test_the_mean_of_a_group_has_the_half_width_of_students_t(runs: list[Path]) -> None:
    chosen = compared(runs)
    first, second = (run.atlas.steps for run in chosen[:2])
    certified, disco, short = means_of(chosen)
    assert certified["mean_steps"] == (first + second) / 2
    assert certified["half_width"] == pytest.approx(12.7062047362 * abs(first - second) / 2)  # of one degree of freedom
    assert certified["right"] == {"AX_L": 2, "AX*": 2}
    assert (disco["runs"], disco["half_width"], disco["cut_short"]) == (1, None, 0)
    assert (short["cut_short"], short["right"]) == (1, {"AX_L": 0, "AX*": 0})


def test_means_are_told_with_what_differs_only(runs: list[Path]) -> None:
    chosen = compared(runs)
    assert common_traits(chosen) == "confusing-chain, L=4.5, δ=0.1"
    headings, rows = means_table(chosen)
    assert [row[0] for row in rows] == ["certified AX*, ε=0.5", "disco-experiment, ε=0.8", "certified AX*, ε=0.1"]
    assert [row[headings.index("AX*")] for row in rows] == ["2 of 2", "1 of 1", "0 of 1"]
    assert " ± " in rows[0][headings.index("mean steps")]
    assert " ± " not in rows[1][headings.index("mean steps")]


def test_without_a_known_truth_nobody_is_counted_right(chain_run: Path, tmp_path: Path) -> None:
    Atlas.load(chain_run).save(tmp_path)
    runs = compared([tmp_path])
    assert means_of(runs)[0]["right"] == {"AX_L": None, "AX*": None}
    assert means_table(runs)[1][0][-2:] == ("unknown", "unknown")


def test_a_failed_run_is_a_row_that_says_why(runs: list[Path]) -> None:
    request = Request(world="confusing-chain", radius=4.5)
    failed = SeedRun(replace(request, seed=3, run="runs/certified-3"), "WorldError: worn out")
    headings, rows = runs_table(compared(runs[:1]), [failed])
    assert len(rows) == 2
    assert rows[1][:3] == ("runs/certified-3", "certified: WorldError: worn out", "failed")
    assert len(rows[1]) == len(headings)
    assert runs_table([], [failed])[1] == [rows[1]]


def test_figures_are_written_in_every_format_the_same_each_time(runs: list[Path], tmp_path: Path) -> None:
    chosen = {name: [run.atlas for run in group] for name, group in grouped(compared(runs)).items()}
    first = write_figures(chosen, tmp_path / "first")
    second = write_figures(chosen, tmp_path / "second")
    names = {f"{name}.{kind}" for name in ("discovery", "allocation", "comparison") for kind in KINDS}
    assert {path.name for path in first} == names
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_the_time_of_a_run_leaves_out_the_pause_before_it_was_resumed() -> None:
    moments = [("began", 0), ("round", 5), ("resumed", 100), ("round", 107), ("ended", 110)]
    events = tuple({"event": kind, "time": f"2026-01-01T00:{at // 60:02}:{at % 60:02}+00:00"} for kind, at in moments)
    assert History(None, events).seconds == 15


def test_the_time_of_the_processor_is_unknown_after_a_kill(chain_run: Path) -> None:
    history = history_of(chain_run)
    assert history.processor_seconds is not None
    assert history.processor_seconds > 0
    killed = tuple(event for event in history.events if event["event"] != "ended")
    assert History(None, killed).processor_seconds is None
    assert History(None, (*killed, *history.events)).processor_seconds is None


def test_an_atlas_without_a_run_has_no_time(tmp_path: Path) -> None:
    assert history_of(tmp_path).seconds is None


def test_a_history_tells_what_went_wrong_and_was_made_good() -> None:
    lost = {"event": "worker", "kind": "LOST", "time": "2026-01-01T00:00:00"}
    fault = {"event": "fault", "kind": "RAISED", "time": "2026-01-01T00:00:00"}
    assert History(None, (lost, fault, lost)).mishaps == (
        "once the system failed and was restarted, 2 times a worker was lost"
    )
    assert not History().mishaps
