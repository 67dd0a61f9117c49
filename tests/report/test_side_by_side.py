from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from axplore import explore
from axplore.report.charts import known_over_steps, spread_chart
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
        assert f"<td>{fewest:,} to {most:,}</td>" in table


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
