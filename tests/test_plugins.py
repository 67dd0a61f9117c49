"""Worlds of other packages are found by entry points, and a broken package costs nobody else anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import axplore
import commands
from axplore import plugins
from axplore.errors import InvalidInputError

MODULE = """
from axplore.worlds.catalogue import Form
from axplore.worlds.simulated import SimulatedWorld
from axplore import domain

def make(rest, seed, parameters):
    return SimulatedWorld(domain(rest, **parameters), seed)

ROBOT = Form("robot:NAME", "robot:star", "A robot.", "those of the domain", None, make)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with one good world, one that cannot be imported, and one that is no world."""
    (tmp_path / "robots_for_tests.py").write_text(MODULE)
    (tmp_path / "leaving_for_tests.py").write_text("import sys\nsys.exit(0)\n")
    metadata = tmp_path / "robots-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: robots\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[axplore.worlds]\nrobot = robots_for_tests:ROBOT\n"
        "broken = missing_for_tests:WORLD\nodd = robots_for_tests:make\nleaving = leaving_for_tests:WORLD\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("robots_for_tests", None)


@pytest.mark.usefixtures("package")
def test_a_world_of_another_package_is_explored_by_its_name() -> None:
    assert "robot" in plugins.names(plugins.WORLDS)
    atlas = axplore.explore("robot:star", radius=1, epsilon=1, world_parameters={"arms": 2, "arm_length": 1})
    assert len(atlas.states) == 3


@pytest.mark.usefixtures("package")
def test_a_package_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(
        InvalidInputError, match=r"'broken' \(missing_for_tests:WORLD, of the package 'robots'\) cannot be"
    ):
        axplore.explore("broken:x", radius=2)
    with pytest.raises(InvalidInputError, match=r"'odd' .* is a function; it must be a Form"):
        axplore.explore("odd:x", radius=2)


@pytest.mark.usefixtures("package")
def test_the_list_of_worlds_has_those_of_other_packages(caplog: pytest.LogCaptureFixture) -> None:
    assert "robot:NAME" in commands.run("worlds")
    assert "'broken'" in caplog.text
    assert "'leaving'" in caplog.text
