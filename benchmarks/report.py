"""How long the page of a run takes: to make, and to load in a headless browser if there is one.

Each page is loaded several times, and the median is shown.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))

from axplore.report.page import page_of
from axplore.runs.history import History
from browsing import Browser
from trees import tree_atlas

SIZES = ((40, 10), (250, 50), (1700, 300))
LOADS = 5


def main() -> None:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    with tempfile.TemporaryDirectory() as folder:
        pages = [_made(*size, Path(folder)) for size in SIZES]
        if chromium is None or driver is None:
            print("there is no chromium with its chromedriver to load them in")
            return
        browser = Browser(chromium, driver, Path(folder))
        browser.open(pages[0])  # the first page of a browser is slow
        for size, page in zip(SIZES, pages, strict=True):
            seconds = [_loaded(browser, page) for _ in range(LOADS)]
            print(f"{sum(size):5,} states: loaded in {statistics.median(seconds):.2f} s")
        browser.close()


def _made(members: int, frontier: int, folder: Path) -> Path:
    atlas = tree_atlas(members, frontier)
    page_of(tree_atlas(3), History(), folder)  # compiles
    began = time.perf_counter()
    page = page_of(atlas, History(), folder)
    seconds = time.perf_counter() - began
    path = folder / f"{members}.html"
    path.write_text(page, encoding="utf-8")
    print(f"{members + frontier:5,} states: made in {seconds:.2f} s, {path.stat().st_size / 1e6:.2f} MB")
    return path


def _loaded(browser: Browser, page: Path) -> float:
    began = time.perf_counter()
    browser.open(page)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
