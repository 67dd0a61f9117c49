"""A web application in a real browser as a system: `browser:ADDRESS`, by Playwright or Selenium.

- The actions of a page are what a visitor can click: links, buttons, tabs, check boxes and the like, each called by its
  role and its name as assistive technology announces it, `button Pay`. Links to other sites, downloads and what is
  hidden or disabled are none. Texts to type are given by the user, `values={"Name": "ann"}`: then `fill Name` is an
  action.
- The label of a page is its path and its visible landmarks: headings, open dialogs, alerts and statuses, and what is
  typed or switched on. Where that does not tell apart what behaves differently, a key makes the label of the driver: a
  `Page` of Playwright, or a `WebDriver` of Selenium.
- RESET opens the address in a fresh context: no cookies, no storage. What a server remembers of earlier visitors is not
  reset; `reset_address` is opened before, for applications that offer one.
- A page is looked at when it is complete and has stayed the same for a moment (`settle`).

`render()` takes the picture of a page. The browser needs no display.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from axplore.arguments import real
from axplore.errors import InvalidSettingError
from axplore.records.findings import FaultKind
from axplore.types import Action, State
from axplore.worlds.keys import Key, label_by
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.systems import SystemFaultError

EngineName: TypeAlias = Literal["playwright", "selenium"]

EXTRA: Final = "pip install 'axplore[browser]'"

SCHEMES: Final = ("http", "https", "file")

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of programs to look for where no browser of Playwright's own is installed."""

FLAGS: Final = (
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)

WIDTH, HEIGHT = 800, 600

STEP_TIMEOUT: Final = 30.0
SETTLE: Final = 0.03
"""Seconds for which a page has to stay the same."""

PAGE_SCRIPT: Final = (Path(__file__).parent / "browser_page.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Seen:
    """What is on a page.

    Attributes:
        path: the path of its address, with the query and the fragment.
        landmarks: the names of its visible headings, dialogs, alerts and statuses, in their order.
        actions: what can be done, by role and name; all different.
        is_complete: whether the document and its scripts are loaded.
        content: the text of the page, to see whether it still changes.
    """

    path: str
    landmarks: tuple[str, ...]
    actions: tuple[str, ...]
    is_complete: bool
    content: str

    @property
    def label(self) -> str:
        """The label of the page unless a key makes another."""
        return " · ".join((self.path, *self.landmarks))


class Engine(Protocol):
    """A browser with one page."""

    driver: Any
    """What a key is given."""

    def open_fresh(self, address: str, before: str | None) -> None:
        """Opens an address in a fresh context, after another one that resets the application, if there is one."""

    @property
    def is_busy(self) -> bool:
        """Whether the page waits for an answer of its server, as far as that is known."""

    def run(self, script: str, *arguments: Any) -> Any:
        """Calls a function of JavaScript on the page, and returns its value."""

    def click(self, index: int) -> None:
        """Clicks an element that the last look has found."""

    def fill(self, index: int, value: str) -> None:
        """Types a text into an element that the last look has found."""

    def picture(self) -> bytes:
        """Returns the picture of the page as PNG."""

    def close(self) -> None:
        """Ends the browser."""


class BrowserSystem:
    """A web application as a system; see `systems`."""

    knows_here_only = True

    def __init__(
        self,
        address: str,
        *,
        key: Key | None = None,
        engine: EngineName | None = None,
        values: Mapping[str, str] | None = None,
        reset_address: str | None = None,
        executable: str | None = None,
        settle: float = SETTLE,
        step_timeout: float = STEP_TIMEOUT,
    ) -> None:
        self._address, self._reset_address = address, reset_address
        self._key, self._values = key, dict(values or {})
        self._settle, self._timeout = settle, step_timeout
        self._engine = _started(engine, executable, step_timeout)
        self._seen: Seen | None = None

    def reset(self) -> State:
        """Opens the address in a fresh context."""
        self._engine.open_fresh(self._address, self._reset_address)
        return self._settled()

    def step(self, action: Action) -> State:
        """Clicks or fills what an action names."""
        seen = self._look()
        if action not in seen.actions:
            raise SystemFaultError(FaultKind.RAISED, f"{action!r} is no longer on the page {seen.path}")
        index, name = seen.actions.index(str(action)), str(action).partition(" ")[2]
        if str(action).startswith("fill "):
            self._engine.fill(index, self._values[name])
        else:
            self._engine.click(index)
        return self._settled()

    def actions(self, state: State) -> tuple[Action, ...]:  # noqa: ARG002
        """Returns what can be done on the page just entered."""
        return () if self._seen is None else self._seen.actions

    def render(self) -> npt.NDArray[np.uint8]:
        """Returns the picture of the page."""
        from PIL import Image

        return np.asarray(Image.open(BytesIO(self._engine.picture())).convert("RGB"))

    def close(self) -> None:
        """Ends the browser."""
        self._engine.close()

    def _settled(self) -> State:
        """Waits until the page stays the same for a moment, and returns its label."""
        deadline = time.monotonic() + self._timeout
        seen = self._look()
        while time.monotonic() < deadline:
            time.sleep(self._settle)
            before, seen = seen, self._look()
            if seen.is_complete and seen == before and not self._engine.is_busy:
                self._seen = seen
                return seen.label if self._key is None else label_by(self._key, self._engine.driver)
        raise SystemFaultError(FaultKind.TIMED_OUT, f"{seen.path} still changes after {self._timeout:g} s")

    def _look(self) -> Seen:
        """Returns what is on the page; a navigation that is under way may take it away meanwhile."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                found = self._engine.run(PAGE_SCRIPT, sorted(self._values))
            except Exception as error:  # of whichever driver
                if time.monotonic() >= deadline or not _is_passing(error):
                    raise
                time.sleep(self._settle)
                continue
            return Seen(
                found["path"], tuple(found["landmarks"]), tuple(found["actions"]), found["complete"], found["content"]
            )


def _is_passing(error: Exception) -> bool:
    """Whether an error only says that the page is being left."""
    told = str(error)
    return any(hint in told for hint in ("context was destroyed", "navigat", "stale element", "no such execution"))


class BrowserWorld(SteppedWorld):
    """A web application as a `World`."""

    def __init__(
        self,
        address: str,
        seed: int = 0,
        *,
        key: Key | None = None,
        engine: EngineName | None = None,
        values: Mapping[str, str] | None = None,
        reset_address: str | None = None,
        executable: str | None = None,
        settle: float = SETTLE,
        step_timeout: float = STEP_TIMEOUT,
        **options: Any,
    ) -> None:
        """Starts a browser and opens the address a few times.

        Args:
            address: where the application begins: http://..., https://... or file://...
            seed: not used: the noise is the application's own.
            key: makes the label of a page of the driver; by default, the path and the visible landmarks.
            engine: playwright or selenium; by default, the first of them that is installed.
            values: texts to type, by the names of the fields.
            reset_address: opened before each start, for applications whose server has to be reset.
            executable: the program of the browser; by default, Playwright's own, or one of this machine.
            settle: the seconds for which a page has to stay the same before it is looked at.
            step_timeout: the seconds after which a page that is not ready has failed.
            options: `start`, `max_episode_steps`, `max_faults`, `on_invalid`, `start_checks` of `SteppedWorld`.
        """
        settings = {
            "key": key, "engine": engine, "values": values, "reset_address": reset_address, "executable": executable,
            "settle": real(above=0)("settle", settle), "step_timeout": real(above=0)("step_timeout", step_timeout),
        }  # fmt: skip
        _check_settings(address, reset_address, engine, values)
        super().__init__(partial(BrowserSystem, address, **settings), seed, **options)


def _check_settings(address: str, reset_address: str | None, engine: str | None, values: Any) -> None:
    for name, given in (("the address", address), ("reset_address", reset_address)):
        if given is not None and urlsplit(str(given)).scheme not in SCHEMES:
            schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise InvalidSettingError(f"{name} is {given!r}; it must begin with one of {schemes}")
    if engine not in (None, "playwright", "selenium"):
        raise InvalidSettingError(f"engine is {engine!r}; it must be playwright or selenium")
    table = {} if values is None else values
    if not isinstance(table, Mapping) or not all(isinstance(part, str) for item in table.items() for part in item):
        raise InvalidSettingError(f"values is {values!r}; it must be a table of texts by the names of fields")


def _started(engine: EngineName | None, executable: str | None, timeout: float) -> Engine:
    """Starts a browser."""
    makers: dict[EngineName, Callable[[str | None, float], Engine]] = {
        "playwright": _PlaywrightEngine,
        "selenium": _SeleniumEngine,
    }
    missing = []
    for name in (engine,) if engine else makers:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
            continue
        return makers[name](executable, timeout)
    raise InvalidSettingError(f"a browser needs the package {' or '.join(missing)}: {EXTRA}")


def installed_browser(executable: str | None = None) -> str | None:
    """Returns the program of a browser on this machine; None if there is none to be found."""
    return executable or next(filter(None, map(shutil.which, BROWSERS)), None)


def _flags() -> list[str]:
    return [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


class _PlaywrightEngine:
    """A browser by Playwright: its own Chromium, or else the one of this machine."""

    def __init__(self, executable: str | None, timeout: float) -> None:
        from playwright.sync_api import Error, sync_playwright

        self._playwright = sync_playwright().start()
        self._timeout = 1000 * timeout
        self._context: Any = None
        self.driver: Any = None
        self._pending: set[Any] = set()
        launch = partial(self._playwright.chromium.launch, args=_flags())
        try:
            own = self._playwright.chromium.executable_path
            self._browser = launch(executable_path=executable or (own if Path(own).exists() else installed_browser()))
        except Error as error:
            self._playwright.stop()
            raise InvalidSettingError(
                "no browser can be started; install one (`playwright install chromium`), or name its program: "
                f"--set executable=PATH ({str(error).splitlines()[0]})"
            ) from error

    def open_fresh(self, address: str, before: str | None) -> None:
        if self._context is not None:
            self._context.close()
        self._context = self._browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        self._context.set_default_timeout(self._timeout)
        self.driver = self._context.new_page()
        self.driver.on("dialog", lambda dialog: dialog.accept())
        self._pending.clear()
        self.driver.on("request", self._begun)
        for over in ("requestfinished", "requestfailed"):
            self.driver.on(over, self._ended)
        if before is not None:
            self.driver.goto(before)
        self.driver.goto(address)

    def _begun(self, request: Any) -> None:
        self._pending.add(request)

    def _ended(self, request: Any) -> None:
        self._pending.discard(request)

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.evaluate(f"(given) => ({script})(...given)", list(arguments))

    def _element(self, index: int) -> Any:
        return self.driver.evaluate_handle("(index) => window.axploreElements[index]", index).as_element()

    def click(self, index: int) -> None:
        self._element(index).click()

    def fill(self, index: int, value: str) -> None:
        self._element(index).fill(value)

    def picture(self) -> bytes:
        taken: bytes = self.driver.screenshot()
        return taken

    def close(self) -> None:
        with suppress(Exception):  # whatever is left of it
            self._browser.close()
        with suppress(Exception):
            self._playwright.stop()


class _SeleniumEngine:
    """Chromium by Selenium."""

    def __init__(self, executable: str | None, timeout: float) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        options = Options()
        options.binary_location = installed_browser(executable) or ""
        options.unhandled_prompt_behavior = "accept"
        for flag in ("--headless", f"--window-size={WIDTH},{HEIGHT}", *_flags()):
            options.add_argument(flag)
        self.driver: Any = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(timeout)
        self.driver.set_script_timeout(timeout)

    def open_fresh(self, address: str, before: str | None) -> None:
        self.driver.switch_to.new_window("tab")  # a tab has a session storage of its own
        fresh = self.driver.current_window_handle
        for handle in self.driver.window_handles:
            if handle != fresh:
                self.driver.switch_to.window(handle)
                self.driver.close()
        self.driver.switch_to.window(fresh)
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        parts = urlsplit(address)
        origin = {"origin": f"{parts.scheme}://{parts.netloc}", "storageTypes": "all"}
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", origin)
        if before is not None:
            self.driver.get(before)
        self.driver.get(address)

    @property
    def is_busy(self) -> bool:
        return False  # it does not tell

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return ({script})(...arguments)", *arguments)

    def _element(self, index: int) -> Any:
        return self.driver.execute_script("return window.axploreElements[arguments[0]]", index)

    def click(self, index: int) -> None:
        self._element(index).click()

    def fill(self, index: int, value: str) -> None:
        element = self._element(index)
        element.clear()
        element.send_keys(value)

    def picture(self) -> bytes:
        taken: bytes = self.driver.get_screenshot_as_png()
        return taken

    def close(self) -> None:
        with suppress(Exception):
            self.driver.quit()
