"""The example of an explorer of one's own keeps the contract, and finds what is there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore.target import Target
from axplore.testing import check_explorer

PATH = Path(__file__).parent.parent / "examples" / "uniform_explorer.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("uniform_explorer", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["uniform_explorer"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_it_keeps_the_contract(example: Any) -> None:
    check_explorer(example.uniform(Target(radius=3, epsilon=1)))


def test_it_finds_the_controllable_states_of_a_chain(example: Any) -> None:
    chain = axplore.domain("confusing-chain")
    atlas = axplore.explore(chain, radius=4.2, explorer=example.Uniform(target=Target(radius=4.2, epsilon=1)), seed=1)
    assert set(atlas) == set(axplore.controllable_states(chain, 4.2).states)
    assert not atlas.proven
