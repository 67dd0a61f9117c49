"""Pages of runs side by side: what changed between two, and explorers compared over seeds. They have no scripts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote

from axplore.atlas import Atlas
from axplore.atlas.difference import Difference
from axplore.atlas.drawing import as_svg
from axplore.labels import readable
from axplore.report import charts
from axplore.report.difference_map import DifferenceMap
from axplore.report.page import MAX_ROWS, rendered, write_text
from axplore.report.page import NAME as REPORT

MOST_MAPS: Final = 6
"""The largest number of groups of which the page of a comparison shows a map."""


class TextTable(NamedTuple):
    """A table of texts: headings, rows of as many cells, and the folders that first cells name."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    folders: Mapping[str, Path] = MappingProxyType({})

    def addresses(self, page: Path) -> dict[str, str]:
        """Returns the addresses of reports in the folders that there are, from the place of a page."""
        reports = {name: folder / REPORT for name, folder in self.folders.items()}
        return {
            name: quote(os.path.relpath(report.resolve(), page.parent.resolve()))
            for name, report in reports.items()
            if report.is_file()
        }


def write_difference_page(difference: Difference, path: Path) -> Path:
    """Writes the page that shows what changed between two atlases, and returns the file."""
    from markupsafe import Markup

    page = rendered(
        "templates/difference.html",
        difference=difference,
        map=Markup(DifferenceMap(difference).as_svg()),
        readable=readable,
        limits={"rows": MAX_ROWS},
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
    from markupsafe import Markup

    page = rendered(
        "templates/comparison.html",
        common=common,
        groups=groups,
        tables={"Explorers": means, "Runs": runs},
        addresses=runs.addresses(path),
        maps={name: Markup(as_svg(atlases[0])) for name, atlases in list(groups.items())[:MOST_MAPS]},
        legend=legend,
        failed=failed,
        charts=charts,
        limits={"rows": MAX_ROWS},
    )
    return write_text(page, path)
