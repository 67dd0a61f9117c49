"""The study of assumptions: one row for each world, with what was right and what was noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from axplore.experiments import assumption_study
from axplore.experiments.assumption_study import AssumedWorld, assumptions_table


def test_true_assumptions_are_right_and_false_ones_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grid(slip: float) -> AssumedWorld:
        parameters = (("rows", 3), ("columns", 3), ("slip", slip))
        return AssumedWorld("slippery-grid", 3, 1, "deterministic", holds=slip == 0, parameters=parameters)

    monkeypatch.setattr(assumption_study, "WORLDS", (grid(0), grid(0.5)))
    monkeypatch.setattr(assumption_study, "SEEDS", 3)
    true, false = assumptions_table(tmp_path).rows
    assert (true["right"], true["verified"], true["noticed"]) == (3, 3, 0)
    assert (false["right"], false["noticed"]) == (0, 3)
    assert (tmp_path / "assumptions.csv").is_file()
