"""Actions that behave differently in two runs, found, and not found where nothing has changed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from axplore import Atlas, TabularMdp, explore
from axplore.atlas.difference import FailOn, failures_named
from axplore.atlas.row_changes import _log_evidence, _Row
from axplore.errors import ExitCode, UnknownNameError
from axplore.statistics.dependence import log_evidence_of_drop, log_evidence_of_two
from commands import run


def shop(paid: float = 0.95, refused: float = 0.0) -> TabularMdp:
    """A shop in which paying succeeds, fails, or, in a later release, is refused."""
    outcomes = {"thanks": paid, "error": 1 - paid - refused, "refused": refused}
    rows = {
        "start": {"browse": {"basket": 1.0}, "help": {"help": 1.0}},
        "basket": {"pay": {state: p for state, p in outcomes.items() if p > 0}, "back": {"start": 1.0}},
        "thanks": {"home": {"start": 1.0}},
        "error": {"back": {"basket": 1.0}},
        "refused": {"back": {"basket": 1.0}},
        "help": {"back": {"start": 1.0}},
    }
    return TabularMdp.from_rows(rows, "start")


def mapped(model: TabularMdp, seed: int, folder: Path | None = None) -> Atlas:
    return explore(model, radius=4, epsilon=0.08, seed=seed, run=folder)


def test_a_payment_that_fails_six_times_as_often_is_found() -> None:
    difference = mapped(shop(0.95), 0).diff(mapped(shop(0.67), 1))
    assert not difference.lost
    (change,) = difference.rows
    assert (change.state, change.action, change.worse) == ("basket", "pay", True)
    assert "thanks" in change.behind
    assert str(change).startswith("pay in basket: thanks 9")
    assert "changed (confidence 0.99" in str(change)
    assert change in difference.failures()
    assert difference.exit_code is ExitCode.REFUTED
    assert difference.exit_code_for({FailOn.LOST}) is ExitCode.DONE


def test_a_payment_that_succeeds_more_often_has_changed_and_not_for_the_worse() -> None:
    difference = mapped(shop(0.67), 1).diff(mapped(shop(0.95), 0))
    (change,) = difference.rows
    assert not change.worse
    assert difference.exit_code is ExitCode.DONE
    assert difference.exit_code_for(failures_named(["any"])) is ExitCode.REFUTED


def test_a_new_outcome_is_named() -> None:
    (change,) = mapped(shop(0.95), 0).diff(mapped(shop(0.55, refused=0.4), 1)).rows
    assert change.gained == ("refused",)
    assert "refused new" in str(change)


def test_the_draws_of_two_releases_decide() -> None:
    """112 of 119 payments against 80 of 199 with a new outcome: far beyond chance; 6 of 119 against 8 of 120: not."""
    assert log_evidence_of_two({"thanks": 112, "error": 7}, {"thanks": 80, "error": 20, "refused": 99}) > 20
    assert log_evidence_of_two({"thanks": 113, "error": 6}, {"thanks": 112, "error": 8}) < 0


def test_a_change_that_leaves_the_routes_as_they_were_is_not_for_the_worse() -> None:
    """Paying leads to thanks as often as before, or a little less by chance; only its failures have another name."""
    differences = [mapped(shop(0.6), seed).diff(mapped(shop(0.6, refused=0.4), seed + 20)) for seed in (5,)]
    changes = [change for difference in differences for change in difference.rows]
    assert len(changes) == 1
    fewer = [change for change in changes if change.new["thanks"] / sum(change.new.values()) < 0.6]
    assert fewer
    assert not any(change.worse for change in changes)


def test_evidence_of_a_drop_is_rarely_strong_without_one() -> None:
    """The mean of E is at most 1 whatever the probabilities, if the second is not the smaller one; summed exactly."""
    for p_before, p_now in ((0.3, 0.3), (0.5, 0.5), (0.2, 0.4), (0.9, 0.9)):
        n, m = 7, 9
        mean = sum(
            math.comb(n, a) * p_before**a * (1 - p_before) ** (n - a)
            * math.comb(m, b) * p_now**b * (1 - p_now) ** (m - b)
            * math.exp(log_evidence_of_drop((a, n - a), (b, m - b)))
            for a in range(n + 1) for b in range(m + 1)
        )  # fmt: skip
        assert mean <= 1
    assert log_evidence_of_drop((95, 5), (67, 33)) > 8
    assert log_evidence_of_drop((67, 33), (95, 5)) == log_evidence_of_drop((0, 0), (1, 1)) == -math.inf


def test_two_runs_of_one_system_have_no_changed_action() -> None:
    atlases = [mapped(shop(0.8, 0.1), seed) for seed in range(12)]
    assert not any(old.diff(new).rows for old in atlases for new in atlases)


def test_stopping_when_the_samples_differ_most_alarms_no_more_often_than_allowed() -> None:
    """Both samples end at the worst moment that they may: the level holds for any rule of stopping."""
    rng, alarms, level, repeats = np.random.default_rng(0), 0, 0.1, 300
    for _ in range(repeats):
        drawn = rng.choice(3, size=(2, 60), p=[0.6, 0.3, 0.1])
        most = max(
            log_evidence_of_two(_counts(drawn[0, :n]), _counts(drawn[1, :m]))
            for n in range(10, 61, 10)
            for m in range(10, 61, 10)
        )
        alarms += most >= -np.log(level)
    assert alarms <= level * repeats  # about 10 of 300 are seen; 30 are allowed


def _counts(drawn: np.ndarray) -> dict[object, int]:
    counts: dict[object, int] = {}
    for outcome in drawn.tolist():
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    mapped(shop(0.95), 0, folder / "old")
    mapped(shop(0.67), 1, folder / "new")
    return folder / "old", folder / "new"


def test_the_command_prints_every_format(runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "behaves differently" in run("diff", *runs, "--page", tmp_path / "page.html", code=1)
    assert "Actions that behave differently" in (tmp_path / "page.html").read_text()
    answer = json.loads(run("diff", *runs, "--json", code=1))
    assert [row["action"] for row in answer["rows"]] == ["pay"]
    text = run("diff", *runs, "--format", "markdown", code=1)
    assert "| pay in basket | changed |" in text
    report = fromstring(run("diff", *runs, "--format", "junit", code=1))
    assert report.attrib["failures"] == str(len(report.findall(".//failure")))
    assert "pay in basket" in [case.attrib["name"] for case in report.iter("testcase")]
    run("diff", *runs, "--fail-on", "lost", code=0)
    run("diff", *runs, "--fail-on", "lost", "--fail-on", "rows", code=1)


def test_unknown_formats_and_changes_are_named(runs: tuple[Path, Path]) -> None:
    with pytest.raises(UnknownNameError, match="no format named 'html'"):
        run("diff", *runs, "--format", "html")
    with pytest.raises(UnknownNameError, match="did you mean 'rows'"):
        run("diff", *runs, "--fail-on", "row")


def test_labels_cannot_break_out_of_markdown_or_xml(tmp_path: Path) -> None:
    name = "<b>|\n```"
    models = [
        TabularMdp.from_rows({"s": {name: {"s": p, name: 1 - p}}, name: {"go": {"s": 1.0}}}, "s") for p in (0.1, 0.9)
    ]
    for model, folder in zip(models, ("old", "new"), strict=True):
        explore(model, radius=4, epsilon=0.5, seed=3, run=tmp_path / folder)
    text = run("diff", tmp_path / "old", tmp_path / "new", "--format", "markdown", "--fail-on", "any", code=1)
    assert "<b>" not in text
    assert "|\n`" not in text
    fromstring(run("diff", tmp_path / "old", tmp_path / "new", "--format", "junit", "--fail-on", "any", code=1))


def drawn_row(draws: np.ndarray[Any, Any]) -> _Row:
    counts: dict[Any, int] = {}
    firsts: dict[Any, int] = {}
    for place, outcome in enumerate(draws.tolist(), 1):
        counts[outcome] = counts.get(outcome, 0) + 1
        firsts.setdefault(outcome, place)
    return _Row("s", "a", counts, firsts, 1.0)


def test_a_new_error_shows_in_draws_that_all_outcomes_together_do_not_decide() -> None:
    rng = np.random.default_rng(0)
    old, new = (drawn_row(rng.choice(3, n, p=p)) for n, p in ((107, [0.97, 0.03, 0]), (335, [0.76, 0.04, 0.2])))
    needed = np.log(3600)  # that of the first actions of a small system with a confidence of 0.99
    assert log_evidence_of_two(old.counts, new.counts) < needed < _log_evidence(old, new)


def test_bets_on_single_outcomes_have_a_mean_of_at_most_one_where_nothing_changed() -> None:
    rng, repeats = np.random.default_rng(1), 400
    evidence = []
    for _ in range(repeats):
        chances = rng.dirichlet(np.full(int(rng.integers(1, 8)), 0.4))
        old, new = (drawn_row(rng.choice(len(chances), int(n), p=chances)) for n in rng.integers(1, 80, 2))
        evidence.append(float(np.exp(_log_evidence(old, new))))
    assert np.mean(evidence) + 3 * np.std(evidence) / np.sqrt(repeats) < 1
