"""The pictures in the documentation are screenshots of pages, made here.

`make pictures` writes them into docs/images. Without it, smaller runs are looked at, and the pictures thrown away.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image

from axplore import explore
from axplore.report import write_report
from axplore.report.page import write_page
from axplore.runs.history import History
from browsing import COLOURS, LARGEST_PICTURE, PICTURES, Browser
from commands import run
from trees import tree_atlas

DOCS = Path(__file__).parent.parent.parent / "docs"
SHOWN = sorted((DOCS / "images").glob("*.png"))


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "maze"
    explore("maze", 12, 3, run=folder, max_steps=None if PICTURES else 1500)
    return write_report(folder)


def test_a_maze(browser: Browser, maze: Path, tmp_path: Path) -> None:
    browser.picture(maze, tmp_path / "maze.png", 1400, 900)


def test_a_maze_on_a_phone_in_the_dark(browser: Browser, maze: Path, tmp_path: Path) -> None:
    browser.picture(maze, tmp_path / "maze-phone.png", 390, 844, dark=True)


def test_a_maze_of_six_hundred_cells(browser: Browser, tmp_path: Path) -> None:
    size = {"rows": 25, "columns": 24}
    explore("random-maze", 400, 1, world_parameters=size, assume="deterministic", run=tmp_path / "run")
    browser.picture(write_report(tmp_path / "run"), tmp_path / "large-maze.png", 1400, 900, dark=True)


def test_a_shop(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS.parent / "examples" / "shop"))
    shop = import_module("shop").Shop
    explore(shop, 8, 2, run=tmp_path / "run", max_steps=None if PICTURES else 1500)
    browser.picture(write_report(tmp_path / "run"), tmp_path / "shop.png", 1400, 900)


def test_clusters(browser: Browser, tmp_path: Path) -> None:
    page = write_page(tree_atlas(300, 300), History(), tmp_path, tmp_path / "page.html")
    browser.picture(page, tmp_path / "clusters.png", 1400, 900)


def test_explorers_compared(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    question = ("--world=confusing-chain", "--radius=4.5", "--epsilon=0.8", "--workers=0", "--max-steps=100000")
    explorers = [f"--explorer={name}" for name in ("certified", "disco-experiment", "ucb-explore-experiment")]
    seeds = f"--seeds={6 if PICTURES else 1}"
    run("compare", *question, seeds, *explorers[: None if PICTURES else 1], "--out=runs", "--page=page.html")
    browser.picture(tmp_path / "page.html", tmp_path / "comparison.png", 1400, 900)


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_a_picture_of_the_documentation_is_small_and_shown(path: Path) -> None:
    assert path.stat().st_size <= LARGEST_PICTURE
    assert len(Image.open(path).convert("RGB").getcolors(10 * COLOURS) or []) > 10, "the page is blank"
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    assert any(f"images/{path.name}" in page.read_text(encoding="utf-8") for page in pages)
