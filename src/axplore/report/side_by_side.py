"""Pages of runs side by side: what changed between two, and explorers compared over seeds. They have no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from axplore.atlas import Atlas
from axplore.atlas.difference import Difference
from axplore.atlas.drawing import as_svg
from axplore.labels import readable
from axplore.report import charts
from axplore.report.page import MAX_ROWS, rendered, write_text


class TextTable(NamedTuple):
    """A table of texts: headings, and rows of as many cells."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def write_difference_page(difference: Difference, path: Path) -> Path:
    """Writes the page that shows what changed between two atlases, and returns the file."""
    from markupsafe import Markup

    maps = [(name, atlas, Markup(as_svg(atlas))) for name, atlas in (("old", difference.old), ("new", difference.new))]
    page = rendered(
        "templates/difference.html", difference=difference, maps=maps, readable=readable, limits={"rows": MAX_ROWS}
    )
    return write_text(page, path)


def write_comparison_page(
    path: Path,
    *,
    common: str,
    groups: Mapping[str, Sequence[Atlas]],
    means: TextTable,
    runs: TextTable,
    legend: str,
    failed: int = 0,
) -> Path:
    """Writes the page of compared runs, and returns the file.

    Args:
        path: the file to write.
        common: what all runs have in common; may be empty.
        groups: the atlases of runs that differ only in their seed, by the name of the group.
        means: a row for each group.
        runs: a row for each run; failed runs last.
        legend: what the headings mean.
        failed: the number of runs that failed.
    """
    page = rendered(
        "templates/comparison.html",
        common=common,
        groups=groups,
        tables={"Explorers": means, "Runs": runs},
        legend=legend,
        failed=failed,
        charts=charts,
        limits={"rows": MAX_ROWS},
    )
    return write_text(page, path)
