"""Forecasts against committed results and measured runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean

import pytest

import axplore
from axplore.cli.world_commands import steps_text, time_text
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.forecast import Forecast, forecast

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FACTOR = 3
"""Within which a forecast promises to be on the paper's domains."""


def close(estimate: float, real: float) -> bool:
    return real / FACTOR <= estimate <= real * FACTOR


def published(name: str, algorithm: str, epsilon: float) -> float:
    rows = json.loads((RESULTS / name).read_text())["rows"]
    (mean,) = [
        row["mean"]
        for row in rows
        if row["algorithm"] == algorithm and row["reading"] == "default" and row["epsilon"] == epsilon
    ]
    return float(mean)


@pytest.fixture(scope="module", params=[0.1, 0.2, 0.4, 0.6, 0.8])
def chain(request: pytest.FixtureRequest) -> tuple[float, Forecast]:
    return request.param, forecast("confusing-chain", 4.5, request.param, states_bound=12)


def test_forecasts_on_the_chain_are_near_the_committed_totals(chain: tuple[float, Forecast]) -> None:
    epsilon, found = chain
    assert close(found["disco-experiment"].steps, published("table2.json", "disco", epsilon))
    assert close(found["ucb-explore-experiment"].steps, published("table2.json", "ucb-explore", epsilon))
    assert found.ended
    assert found.states == 6


def test_forecasts_on_the_chain_are_near_what_certified_takes_with_other_seeds(chain: tuple[float, Forecast]) -> None:
    epsilon, found = chain
    for explorer in ("certified", "certified-within-radius"):
        steps = [
            axplore.explore("confusing-chain", 4.5, epsilon, explorer=explorer, seed=seed).steps
            for seed in range(11, 16)
        ]
        assert close(found[explorer].steps, mean(steps))


def test_disco_with_all_constants_is_seen_to_take_ten_thousand_million_steps() -> None:
    real = json.loads((RESULTS / "theory.json").read_text())["rows"][0]
    found = forecast("confusing-chain", 4.5, real["epsilon"], states_bound=12)["disco-theory"]
    assert close(found.steps, real["steps"])
    assert found.steps > 5e9
    tiny = forecast("confusing-chain", 4.5, 0.1, states_bound=12)["disco-theory"]
    assert "e+10 visits of a pair" in tiny.note


def test_forecasts_on_the_lock_are_near_real_runs() -> None:
    found = forecast("combination-lock", 2.7, 0.2)
    for explorer in ("certified", "certified-within-radius", "disco-experiment", "ucb-explore-experiment"):
        real = axplore.explore("combination-lock", 2.7, 0.2, explorer=explorer, seed=1).steps
        assert close(found[explorer].steps, real), explorer


def test_a_probe_cut_short_says_so_and_counts_what_it_left_open() -> None:
    cut = forecast("combination-lock", 2.7, 0.2, probe_steps=3000)
    whole = forecast("combination-lock", 2.7, 0.2)
    assert not cut.ended
    assert cut.probe_steps < whole.probe_steps
    assert close(cut["certified"].steps, whole["certified"].steps)
    assert "at least" in cut["disco-experiment"].note


def test_nothing_remains_where_everything_is_proven() -> None:
    from axplore.explorers.certified import Certified
    from axplore.target import Target

    explorer = Certified(target=Target(radius=4.5, epsilon=0.4))
    atlas = axplore.explore("confusing-chain", explorer=explorer)
    assert explorer.remaining_steps(atlas.model) == pytest.approx(0, abs=20)


def test_bad_settings_are_refused_before_the_probe() -> None:
    with pytest.raises(InvalidSettingError, match="probe_steps is 0"):
        forecast("confusing-chain", 4.5, probe_steps=0)
    with pytest.raises(UnknownNameError, match="no explorer named 'magic'"):
        forecast("confusing-chain", 4.5, explorers=["magic"])


def test_an_explorer_that_is_no_name_is_refused_like_an_unknown_one() -> None:
    with pytest.raises(UnknownNameError, match="no explorer named 1 "):
        forecast("two-branch", 2, 1, explorers=[1])  # type: ignore[list-item]


def test_a_target_beyond_all_measure_is_forecast_too() -> None:
    found = forecast("two-branch", 2, 1e12, explorers=["certified"], probe_steps=10)
    assert found["certified"].steps > 0


def test_an_initial_state_without_actions_takes_no_time() -> None:
    found = forecast(axplore.TabularMdp.from_rows({0: {}}, 0), 2)
    assert found.states == 1
    assert found.ended


def test_numbers_are_shown_for_reading() -> None:
    assert steps_text(12_345.6) == "12,346"
    assert steps_text(1.5e10) == "1.5e+10"
    assert time_text(0.5) == "0.5 s"
    assert time_text(7_200) == "2 h"
    assert time_text(math.inf) == "unknown"


def test_each_assumption_is_tried_on_what_the_probe_has_learnt() -> None:
    certain = {"rows": 3, "columns": 3, "slip": 0}
    found = forecast(
        "slippery-grid",
        3,
        1,
        explorers=("certified",),
        world_parameters=certain,
        assume=["deterministic", "min-probability=0.5"],
    )
    alone, exact, least = found.estimates
    real = axplore.explore("slippery-grid", 3, 1, world_parameters=certain, assume="deterministic").steps
    assert exact.explorer == "certified, if deterministic"
    assert exact.steps == real
    assert exact.steps < min(least.steps, alone.steps)
    slippery = forecast(
        "slippery-grid", 3, 1, explorers=(), world_parameters={**certain, "slip": 0.6}, assume=["deterministic"]
    )
    assert slippery.estimates[0].steps == math.inf
    assert slippery.estimates[0].note == "what the probe met contradicts it"


def test_assumptions_to_try_are_a_sequence() -> None:
    with pytest.raises(InvalidSettingError, match="each of them tried alone"):
        forecast("slippery-grid", 3, 1, assume="deterministic")
