"""The numbers that the paper prints, read from `published.json` beside this file."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """A mean with the half-width of its 95 % confidence interval."""

    mean: float
    half_width: float


@cache
def _published() -> dict[str, Any]:
    text = (files("axplore.experiments") / "published.json").read_text(encoding="utf-8")
    numbers: dict[str, Any] = json.loads(text)
    return numbers


def source() -> str:
    """Where the numbers are printed."""
    return str(_published()["source"])


def sample_complexity(domain: str, algorithm: str, epsilon: float) -> Estimate:
    """The steps an algorithm took ([DisCo] Tab. (new_results) and App. "Combination Lock")."""
    return Estimate(*_published()[domain]["sample_complexity"][f"{epsilon:g}"][algorithm])


def hitting_steps(domain: str, algorithm: str, epsilon: float) -> list[Estimate]:
    """The expected steps of the policies to s_0, s_1, ... ([DisCo] Tab. (expectedtime.confusing))."""
    return [Estimate(*pair) for pair in _published()[domain]["hitting_steps"][algorithm][f"{epsilon:g}"]]
