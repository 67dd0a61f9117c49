"""Every block of Python and every command in the documentation runs as it stands there.

Each page is run in a folder of its own, from top to bottom; the gallery section by section, in test_gallery.py. A
block with a caption is a file. The text after a block of Python is what it prints, or how that begins. A command whose
comment says `exits with N` does so, and any other with 0.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from browsing import Browser
from commands import run
from examining import findings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^```(\{code-block\} )?(python|bash|text)\n(:caption: (\S+)\n\n)?(.*?)^```$", re.DOTALL | re.MULTILINE
)
GALLERY = DOCS / "gallery.md"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if page != GALLERY and re.search(r"^```(python|bash|\{code)", page.read_text(), re.MULTILINE)
)


class Recorder(ModuleType):
    """Stands in for a package that logs elsewhere: it takes every call."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


@pytest.fixture
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, module in list(sys.modules.items()):  # another test may have loaded an example of the same name
        if str(getattr(module, "__file__", "")).startswith(str(ROOT / "examples")):
            monkeypatch.delitem(sys.modules, name)
    for name in ("tensorboardX", "wandb"):
        monkeypatch.setitem(sys.modules, name, Recorder(name))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "examples" or str(getattr(sys.modules[name], "__file__", "")).startswith(
            str(tmp_path)
        ):
            del sys.modules[name]


@pytest.mark.usefixtures("_in_a_folder_of_its_own")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_of_a_page_runs(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for _, language, _, file, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if file:
            Path(file).write_text(code, encoding="utf-8")
        elif language == "python":
            with redirect_stdout(StringIO()) as output:
                exec(compile(code, page.name, "exec"), names)
            printed = output.getvalue()
        elif language == "bash":
            printed = "".join(map(command, code.replace("\\\n", " ").splitlines()))
        else:
            assert printed.startswith(code.rstrip("\n")), printed


def command(line: str) -> str:
    """Runs a command of a page, and returns what it prints."""
    code = re.search(r"# .*exits with (\d+)", line)
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line.partition(" #")[0])]
    if not words:
        return ""
    program, *arguments = words
    assert program == "axplore", f"{line} is no command of axplore"
    return run(*arguments, code=int(code[1]) if code else 0)


def built(folder: Path) -> Path:
    """Builds the site without a warning."""
    from sphinx.cmd.build import main

    environment = os.environ.copy()
    try:
        assert main(["-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]) == 0
    finally:
        os.environ.clear()
        os.environ.update(environment)
    return folder


def test_the_site_is_built_without_a_warning_and_can_be_read_by_everybody(tmp_path: Path, browser: Browser) -> None:
    site = built(tmp_path / "site")
    assert "autofunction" not in (site / "reference" / "api.html").read_text(encoding="utf-8")
    certified = (site / "algorithms" / "certified.html").read_text(encoding="utf-8")
    assert "<math" in certified  # formulas are drawn without a script or a network
    assert "mathjax" not in re.sub(r"\w+_ignore", "", certified).lower()
    assert "s<sub>0</sub>" in certified
    assert "$$" not in certified
    pages = [site / f"{name}.html" for name in ("index", "tutorial/simulator", "algorithms/certified")]
    with browser.screen(1280, 900):
        for page in pages[:2]:  # the last is long
            browser.open(page)
            assert findings(browser) == [], page.name
    with browser.screen(390, 844):
        for page in pages:
            browser.open(page)
            assert browser.run("return document.documentElement.scrollWidth") <= 390, page.name
