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
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"axplore {version}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Formulas become MathML when the site is built: it opens offline, and every current browser draws it.
html_math_renderer = "mathml"

# Several classes have attributes of one name, such as `states`, and texts do not link to them.
suppress_warnings = ["ref.python"]

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


_INDEXED = re.compile(
    r"(?<!\w)(?P<base>(?:AX|KL|max|min|[^\W\d_])[°*'′]?|[∑∏])_(?P<below>\{[^{}]+\}|\d+|[^\W_]→?)"
    r"|(?<=[\w)°])\^(?P<above>\{(?:[^{}]|\{[^{}]*\})+\}|\d+|[^\W_])"
)
"""Symbols in running text, such as `s_0`, `S_{L+ε}` and `p^n`."""


def _with_indices(text: str) -> list[Any]:
    """Returns text with its indices and exponents lowered and raised, as nodes."""
    from docutils import nodes

    found: list[Any] = []
    end = 0
    for match in _INDEXED.finditer(text):
        found.append(nodes.Text(text[end : match.start()] + (match["base"] or "")))
        kind, inner = (nodes.subscript, match["below"]) if match["below"] else (nodes.superscript, match["above"])
        found.append(kind("", "", *_with_indices(inner.strip("{}") if inner.startswith("{") else inner)))
        end = match.end()
    return [*found, nodes.Text(text[end:])]


def _lower_indices(_app: Any, document: Any, _name: str) -> None:
    """Draws the indices of symbols in running text, on every page."""
    from docutils import nodes

    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)):
            continue
        if _INDEXED.search(text):
            text.parent.replace(text, _with_indices(str(text)))


_TAG = re.compile(r"\\tag\{(.+?)\}")


def _inline_formula(translator: Any, node: Any) -> None:
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext()))
    raise SkipNode


def _displayed_formula(translator: Any, node: Any) -> None:
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    formula = node.astext()
    tag = _TAG.search(formula)
    number = f'<span class="formula-number">({tag[1]})</span>' if tag else ""
    shown = convert(_TAG.sub("", formula), display="block")
    translator.body.append(f'<div class="formula" tabindex="0">{shown}{number}</div>')
    raise SkipNode


def _give_captions_a_level(_app: Any, _page: str, _template: str, context: dict[str, Any], _document: Any) -> None:
    """Sphinx makes captions of lists headings without a level, which screen readers need."""
    for name in ("body", "furo_navigation_tree"):
        if name in context:
            context[name] = context[name].replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", _give_captions_a_level, priority=900)  # after the theme
    _write_commands()
    app.connect("doctree-resolved", _lower_indices)
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_displayed_formula, None))
    app.connect("autodoc-process-docstring", _as_markup, priority=400)
