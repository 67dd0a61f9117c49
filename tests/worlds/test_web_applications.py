"""A web application in a real browser, by each of the drivers; skipped where there is no browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from web_application import served

from axplore import explore
from axplore.errors import InvalidSettingError
from axplore.worlds.browser import BrowserSystem, BrowserWorld, installed_browser
from axplore.worlds.catalogue import named_world

needs_browser = pytest.mark.skipif(installed_browser() is None, reason="no Chromium is installed here")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as where:
        yield where


def system_of(engine: Any, address: str, **settings: Any) -> BrowserSystem:
    pytest.importorskip(engine)
    if engine == "selenium" and shutil.which("chromedriver") is None:
        pytest.skip("no chromedriver is installed here")
    return BrowserSystem(address, engine=engine, **settings)


@needs_browser
@pytest.mark.parametrize("engine", ["playwright", "selenium"])
def test_a_visitor_can_do_what_assistive_technology_announces(engine: str, address: str) -> None:
    system = system_of(engine, address, values={"Name": "ann"})
    try:
        assert system.reset() == "/ · Bakery"
        assert system.actions(None) == ("link Buy bread", "link Basket", "fill Name", "button Greet")
        assert system.step("fill Name") == "/ · Bakery · Name=ann"
        assert system.step("button Greet") == "/greet?name=ann · Hello ann"
        assert system.step("link Home") == "/ · Bakery"
        assert system.step("link Buy bread") == "/basket?add=1 · Basket"
        assert system.actions(None) == ("button Pay", "link Home")
        assert system.step("button Pay") == "/basket?add=1 · Basket · dialog Really?"
        assert system.actions(None) == ("link Yes", "button No"), "a dialog covers the page"
        assert system.step("button No") == "/basket?add=1 · Basket"
        assert system.render().shape[1:] == (800, 3)
        assert system.reset() == "/ · Bakery"
        assert system.step("link Basket") == "/basket · Basket · Nothing here", "the session is another one"
    finally:
        system.close()


@needs_browser
def test_a_web_application_is_explored(address: str) -> None:
    pytest.importorskip("playwright")

    def last_part(page: Any) -> str:
        address: str = page.url
        return address.rpartition("/")[2] or "home"

    world = named_world(f"browser:{address}", 0, {"start_checks": 2, "key": last_part})
    with world:
        assert isinstance(world, BrowserWorld)
        atlas = explore(world, radius=2, epsilon=2, objective="within-radius", doctor=False, max_steps=14)
    assert set(atlas.seen) >= {"home", "basket", "basket?add=1"}
    assert atlas.successors("home", "link Basket").keys() <= {"basket"}
    assert not world.faults


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engine": "lynx"}, "must be playwright or selenium"),
        ({"values": ["ann"]}, "table of texts"),
        ({"reset_address": "localhost"}, "must begin with one of http://"),
        ({"settle": 0}, "settle"),
    ],
)
def test_settings_are_checked_before_a_browser_is_started(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidSettingError, match=told):
        named_world("browser:http://localhost/", 0, settings)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="must begin with one of"):
        named_world("browser:localhost", 0, {})
