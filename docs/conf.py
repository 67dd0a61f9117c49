"""Settings of the documentation site: `make docs` builds it offline, and every warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))

import axplore  # noqa: E402

project = "axplore"
author = "The axplore developers"
copyright = author
version = release = axplore.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"axplore {version}"
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True
napoleon_use_rtype = False

_CODE = re.compile(r"(`+)(.+?)\1")


def _as_markup(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: nothing else in them is markup."""
    for place, line in enumerate(lines):
        parts = _CODE.split(line)
        for i in range(0, len(parts), 3):
            parts[i] = re.sub(r"([*|\\])", r"\\\1", parts[i])
        texts, codes = parts[::3], parts[2::3]
        lines[place] = "".join(
            text + (f"``{code}``" if code else "") for text, code in zip(texts, [*codes, ""], strict=True)
        )


def _write_commands() -> None:
    """Writes the page of all commands from their own help texts."""
    import typer
    from typer.testing import CliRunner

    from axplore.cli import app

    names = list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    pages = ["# Commands\n", "What `axplore COMMAND --help` prints.\n"]
    for name in names:
        text = CliRunner().invoke(app, [name, "--help"], prog_name="axplore", env={"COLUMNS": "100"}).stdout
        pages.append(f"## {name}\n\n```text\n{text.strip()}\n```\n")
    path, content = HERE / "reference" / "commands.md", "\n".join(pages)
    if not path.exists() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    _write_commands()
    app.connect("autodoc-process-docstring", _as_markup, priority=400)
