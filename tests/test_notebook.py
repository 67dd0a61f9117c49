"""The example notebook runs from top to bottom and shows what is committed with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "maze.ipynb"


def texts(notebook: Any) -> Iterator[str]:
    """What the cells print and return, as text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            yield output["text"] if "text" in output else output["data"]["text/plain"]


def test_the_notebook_shows_what_is_committed_with_it() -> None:
    committed = nbformat.read(NOTEBOOK, as_version=4)
    executed = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(executed, timeout=600, kernel_name="python3").execute()
    assert list(texts(executed)) == list(texts(committed))
    progress = executed.cells[1].outputs[0]["data"]["text/html"]
    assert "everything is proven" in progress
    assert "<svg" in executed.cells[3].outputs[0]["data"]["text/html"]
    assert "image/png" in executed.cells[7].outputs[0]["data"]
