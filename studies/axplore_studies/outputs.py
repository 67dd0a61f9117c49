"""What studies give: tables, documents and figures, each to save and to show."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from axplore.cli.console import print_lines, print_table
from axplore.report.figures import save_figure

if TYPE_CHECKING:
    from matplotlib import figure


class Output(Protocol):
    """The result of a study."""

    @property
    def name(self) -> str:
        """The name of its files."""

    @property
    def holds(self) -> bool:
        """Whether what the study checks is true; studies that only measure say yes."""

    def save(self, folder: Path) -> None:
        """Writes it to its files."""

    def show(self) -> None:
        """Prints it."""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: the name of its files.
        title: the title.
        rows: one dictionary per row, all with the same keys.
        lines: shorter rows to print; if empty, `rows` are printed.
        source: the source of published numbers in the table; empty if there are none.
        holds: whether what the study checks is true.
    """

    name: str
    title: str
    rows: list[dict[str, Any]]
    lines: list[dict[str, Any]] = field(default_factory=list)
    source: str = ""
    holds: bool = True

    def save(self, folder: Path) -> None:
        """Writes the table as CSV and as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows)
        _write_json({"title": self.title, "source": self.source or None, "rows": self.rows}, folder, self.name)

    def show(self) -> None:
        """Prints the table under its title."""
        lines = self.lines or self.rows
        headings = [name.replace("_", " ") for name in lines[0]]
        print_table(self.title, headings, [[_in_words(value) for value in row.values()] for row in lines])


@dataclass(frozen=True)
class Document:
    """A document of JSON values.

    Attributes:
        name: the name of its file.
        content: the values.
        holds: whether what the study checks is true.
    """

    name: str
    content: Any
    holds: bool = True

    def save(self, folder: Path) -> None:
        """Writes the document as JSON."""
        _write_json(self.content, folder, self.name)

    def show(self) -> None:
        """Prints the document as JSON."""
        print_lines([json.dumps(self.content, indent=1, ensure_ascii=False)])


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: the name of its files.
        drawing: the figure of Matplotlib.
        holds: yes, as a figure checks nothing.
    """

    name: str
    drawing: figure.Figure
    holds: bool = True

    def save(self, folder: Path) -> None:
        """Writes the figure as PNG and as SVG."""
        save_figure(self.drawing, folder, self.name)

    def show(self) -> None:
        """Prints what the files are called."""
        print_lines([f"The figure is drawn: {self.name}.png and {self.name}.svg."])


def _write_json(content: Any, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _in_words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
