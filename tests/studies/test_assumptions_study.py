"""The study of assumptions: one row for each world, with what was right and what was noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from axplore_studies import assumptions
from axplore_studies.assumptions import AssumedWorld
from axplore_studies.loop import run_study


def test_true_assumptions_are_right_and_false_ones_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grid(slip: float) -> AssumedWorld:
        parameters = (("rows", 3), ("columns", 3), ("slip", slip))
        return AssumedWorld("slippery-grid", 3, 1, "deterministic", holds=slip == 0, parameters=parameters, runs=3)

    monkeypatch.setattr(assumptions, "WORLDS", (grid(0), grid(0.5)))
    run_study(assumptions.STUDY, tmp_path)
    true, false = json.loads((tmp_path / "assumptions.json").read_text())["rows"]
    assert (true["right"], true["verified"], true["noticed"]) == (3, 3, 0)
    assert (false["right"], false["noticed"]) == (0, 3)
    assert (tmp_path / "assumptions.csv").is_file()
