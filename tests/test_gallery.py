"""Every example of the gallery is short, does what its section says, and has a picture of its page.

`make pictures` takes the pictures again. The commands of a section are run as they stand there; that of the shop, which
takes a minute in a real browser, with a smaller radius.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import axplore
from axplore import Atlas
from axplore.worlds.catalogue import function_named
from test_documentation import BLOCK, GALLERY, ROOT, command

if TYPE_CHECKING:
    from browsing import Browser

EXAMPLES = ROOT / "examples" / "gallery"
LONGEST = 80
ALIKE = 1.5
"""The factor by which the steps of a run may differ from those that its section names."""

SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
SECTIONS = dict(SECTION.findall(GALLERY.read_text(encoding="utf-8")))
RUN = {name: text for name, text in SECTIONS.items() if any(block[1] == "bash" for block in BLOCK.findall(text))}


@pytest.fixture(scope="module", autouse=True)
def at_hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of their own from which the examples are imported."""
    folder = tmp_path_factory.mktemp("gallery")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
            patch.delitem(sys.modules, name)
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        yield folder


@cache
def ran(name: str, folder: Path) -> list[Path]:
    """The folders of the runs that the commands of a section make, which are run once."""
    before = set(folder.glob("runs/*"))
    for block in BLOCK.findall(RUN[name]):
        if block[1] == "bash":
            for line in block[4].replace("\\\n", " ").splitlines():
                command(line)
    return sorted(path for path in set(folder.glob("runs/*")) - before if (path / "atlas.json").exists())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_an_example_is_short_and_in_the_gallery(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.name in GALLERY.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RUN)
def test_a_section_does_what_it_says(name: str, request: pytest.FixtureRequest, at_hand: Path, tmp_path: Path) -> None:
    folders = ran(name, at_hand)
    for folder in folders:
        steps = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) steps", RUN[name])]
        taken = Atlas.load(folder).steps
        assert not steps or any(told / ALIKE <= taken <= ALIKE * told for told in steps), f"{taken:,} steps taken"
    if folders and shutil.which("chromium") and shutil.which("chromedriver"):
        browser: Browser = request.getfixturevalue("browser")
        browser.picture(folders[-1] / "report.html", tmp_path / f"gallery-{folders[-1].name}.png", 1100, 700)


def test_sections_have_pictures() -> None:
    shown = re.findall(r"!\[.+?\]\((images/gallery-[\w-]+\.png)\)", GALLERY.read_text(encoding="utf-8"))
    assert len(shown) == len(SECTIONS)
    assert all((ROOT / "docs" / picture).is_file() for picture in shown)


def test_a_shop_is_explored_in_a_real_browser() -> None:
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("there is no chromium with its chromedriver; .ci/chromium installs them on Debian, as root")
    shop: Any = function_named("examples.gallery.web_shop:WebShop")
    atlas = axplore.explore(shop, radius=1, epsilon=1, objective="within-radius", doctor=False)
    assert {"home", "results", "basket"} <= set(atlas)
    assert atlas.complete


def test_the_states_of_a_mail_server_are_found_from_its_response_codes(at_hand: Path) -> None:
    """They are: no greeting yet, greeted, sender named, recipient named, each after 250 or 503; and a message."""
    server: Any = function_named("examples.gallery.mail_server:MailServer")
    (run,) = ran("A mail server", at_hand)
    atlas = Atlas.load(run)
    assert atlas.memory is not None
    follower = atlas.memory.follower()
    system = server()
    try:
        follower.reset(system.reset())
        greeted = follower.step("EHLO", system.step("EHLO"))
        sender = follower.step("MAIL", system.step("MAIL"))
        recipient = follower.step("RCPT", system.step("RCPT"))
        again = follower.step("NOOP", system.step("NOOP"))
        message = follower.step("DATA", system.step("DATA"))
    finally:
        system.close()
    assert len({"220", greeted, sender, recipient, message}) == 5
    assert again == recipient
    assert message == "354"
