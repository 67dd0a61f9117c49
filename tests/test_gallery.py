"""The examples of the gallery are small; their commands are run with the documentation."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import axplore

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "examples" / "gallery"
LONGEST = 80


@pytest.fixture
def _examples_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.*")), ids=lambda path: path.name)
def test_an_example_is_short_and_in_the_gallery(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.name in (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("_examples_at_hand")
def test_a_shop_is_explored_in_a_real_browser() -> None:
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("there is no chromium with its chromedriver; .ci/chromium installs them on Debian, as root")
    from axplore.worlds.catalogue import function_named

    shop: Any = function_named("examples.gallery.web_shop:WebShop")
    atlas = axplore.explore(shop, radius=1, epsilon=1, objective="within-radius", doctor=False)
    assert {"home", "results", "basket"} <= set(atlas)
    assert atlas.complete
