from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from axplore import Atlas, explore
from axplore.atlas.drawing.states import labels_of
from axplore.report import write_report
from axplore.report.charts import known_over_steps, spread_chart
from axplore.report.side_by_side import write_difference_page
from browsing import Browser
from commands import run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("<b>compared")
    for seed in (0, 1):
        explore("confusing-chain", 2, 1, seed=seed, run=folder / f"certified-{seed}")
        explore("confusing-chain", 2, 1, explorer="disco-experiment", seed=seed, run=folder / f"disco-{seed}")
    explore("confusing-chain", 2, 1, seed=2, max_steps=30, run=folder / "certified-short")
    return sorted(folder.iterdir())


def test_the_page_of_a_comparison_has_a_dot_for_each_run_and_a_row_for_each_explorer(
    runs: list[Path], tmp_path: Path
) -> None:
    page = tmp_path / "compared.html"
    said = run("compare", *runs, "--page", page)
    assert said.splitlines()[-1] == f"See it: {page}"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count('<circle class="run group-') == 4
    assert text.count('<circle class="run cut-short group-0"') == 1
    table = text[text.index('<table id="explorers">') : text.index("</table>", text.index('<table id="explorers">'))]
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == ["certified AX*", "disco-experiment"]
    assert "2 of 3" in table
    means = json.loads(run("compare", *runs, "--json"))["means"]
    for group in means:
        fewest, most = group["steps"]
        assert f'<td class="number">{fewest:,} to {most:,}</td>' in table
    assert text.count('aria-label="Map of ') == 2 * 2  # of each explorer: the region, and the picture in it


def test_runs_with_a_report_are_linked_from_the_page_of_a_comparison(runs: list[Path]) -> None:
    first, second = runs[:2]
    page = first.parent / "pages" / "compared.html"
    write_report(first)
    run("compare", first, second, "--page", page)
    (first / "report.html").unlink()
    links = re.findall(r'<a href="(.*?)">', page.read_text(encoding="utf-8"))
    assert links == [f"../{first.name}/report.html"]


@pytest.fixture(scope="module")
def shops() -> tuple[Atlas, Atlas]:
    """A shop in two releases: the second lost its help, has offers, and payments that fail more often."""
    return explore(Screens(OLD, 0.95), 8, 2), explore(Screens(NEW, 0.25), 8, 2)


OLD = {"home": {"help": "help", "buy": "pay"}, "help": {"back": "home"}, "pay": {"go": "done"}, "done": {"on": "home"}}
NEW = {"home": {"new": "deal", "buy": "pay"}, "deal": {"back": "home"}, "pay": {"go": "done"}, "done": {"on": "home"}}


class Screens:
    def __init__(self, screens: dict[str, dict[str, str]], accepted: float) -> None:
        self._screens, self._accepted = screens, accepted
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        self._random = random.Random(seed)

    def reset(self) -> str:
        self._at = "home"
        return self._at

    def actions(self, screen: str) -> tuple[str, ...]:
        return tuple(self._screens[screen])

    def step(self, button: str) -> str:
        if button != "go" or self._random.random() < self._accepted:
            self._at = self._screens[self._at][button]
        return self._at


def test_what_changed_is_one_map_with_every_state_at_one_place(shops: tuple[Atlas, Atlas], tmp_path: Path) -> None:
    change = shops[0].diff(shops[1])
    page = write_difference_page(change, tmp_path / "changes.html").read_text(encoding="utf-8")
    picture = ET.fromstring(
        page[page.index("<svg") : page.index("</svg>") + 6].replace(
            "<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1
        )
    )
    titles = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    for expected in ("help: lost", "deal: gained", "home: same"):
        assert sum(title.startswith(expected) for title in titles) == 1
    assert [title for title in titles if title.startswith("done: slower")]
    classes = {group.get("class") for group in picture.iter("{http://www.w3.org/2000/svg}g")}
    assert {"lost only-old", "gained only-new", "slower"} <= classes
    changed = [title for title in titles if title.startswith("go ") and "→" in title]
    assert [row for row in change.rows if row.state == "pay"]
    assert len(changed) == 1
    assert "<script" not in page


def test_the_map_of_what_changed_shows_the_old_or_the_new_run(
    shops: tuple[Atlas, Atlas], browser: Browser, tmp_path: Path
) -> None:
    browser.open(write_difference_page(shops[0].diff(shops[1]), tmp_path / "changes.html"))
    shown = (
        "return [...document.querySelectorAll('.one-map svg > g > text:first-of-type')]"
        ".filter((text) => text.getClientRects().length).map((text) => text.textContent)"
    )
    both, names = browser.run(shown), {}
    for name in ("old", "new"):
        browser.find(f"#show-{name}").click()
        names[name] = browser.run(shown)
    assert {"help", "deal", "home"} <= set(both)
    assert "deal" not in names["old"]
    assert "help" in names["old"]
    assert "deal" in names["new"]
    assert "help" not in names["new"]
    assert browser.complaints() == []


def test_what_changed_in_a_grid_keeps_its_cells(tmp_path: Path) -> None:
    small, large = (
        explore("slippery-grid", radius, 1, world_parameters={"rows": 3, "columns": 3, "slip": 0.0})
        for radius in (2, 3)
    )
    page = write_difference_page(small.diff(large), tmp_path / "changes.html").read_text(encoding="utf-8")
    picture = page[page.index("<svg") : page.index("</svg>")]
    assert picture.count("gained only-new") == len(large) - len(small)
    assert picture.count("<title>") == len({*labels_of(small), *labels_of(large)})


def test_the_page_of_a_comparison_escapes_names_runs_no_script_and_asks_for_nothing(
    runs: list[Path], tmp_path: Path
) -> None:
    run("compare", *runs, "--page", tmp_path / "compared.html")
    text = (tmp_path / "compared.html").read_text(encoding="utf-8")
    assert "<b>compared" not in text
    assert "&lt;b&gt;compared" in text
    assert "<script" not in text
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text.replace("&#39;", "'")
    assert not re.search(r"https?://", text)


def test_states_known_are_counted_over_the_steps_of_all_runs() -> None:
    atlas = explore("confusing-chain", 2, 1)
    grid, known = known_over_steps({"a": [atlas, atlas]}, points=50)
    assert known["a"].shape == (2, 50)
    assert grid[-1] == pytest.approx(atlas.steps)
    assert known["a"][:, -1].tolist() == [len(atlas)] * 2
    assert known["a"][0, 0] == sum(atlas.found_at <= grid[0])


def test_a_single_run_has_no_interval() -> None:
    atlas = explore("confusing-chain", 2, 1)
    assert "interval" not in spread_chart({"a": [atlas]})
    assert "interval" in spread_chart({"a": [atlas, atlas]})
