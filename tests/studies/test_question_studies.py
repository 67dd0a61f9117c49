"""Studies of questions, with a few trials each."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.explorers.base import RoundReport, run
from axplore.explorers.directed import Directed
from axplore.properties import parse_property
from axplore.target import NO_RADIUS, Target
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies import question_coverage, questions
from axplore_studies.question_coverage import asked_at_random, random_model, value_of


def test_bounds_of_random_properties_hold_and_are_verified() -> None:
    trials = question_coverage.trials(6, walks=1)
    records = [{**trial.address, **trial.work()} for trial in trials]
    table = question_coverage.summary(records)
    assert table.holds
    assert [row["verified"] for row in table.rows] == [3, 3, 1]
    assert records[0]["value"] == asked_at_random(0)["value"]


@pytest.mark.parametrize("text", ['Pmax=? [ F<=3 "s2" ]', 'Pmin=? [ !"s4" U<=3 "s1" ]'])
def test_intervals_at_a_fixed_time_hold_the_value_and_become_narrow(text: str) -> None:
    mdp = random_model(np.random.default_rng(7))
    explorer = Directed(target=Target(radius=NO_RADIUS, epsilon=0.02, delta=0.01), question=text)
    widths: list[float] = []

    def look(report: RoundReport) -> None:
        if report.round > 1:
            lower, upper = questions.fixed_time_bounds(explorer.asked(report.state), None)
            assert lower - 1e-9 <= value_of(mdp, parse_property(text)) <= upper + 1e-9
            widths.append(upper - lower)

    run(explorer, SimulatedWorld(mdp, 1), observers=[look], max_steps=20_000)
    assert widths[-1] < 0.2


def test_without_models_there_is_nothing_to_ask() -> None:
    records = [{**trial.address, **trial.work()} for trial in questions.trials(1)]
    assert "--models" in questions.summary(records).rows[0]["question"]
