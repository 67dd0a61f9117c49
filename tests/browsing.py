"""A headless browser that remembers what pages asked for and complained about."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless",
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1400",
)
PATIENCE = 60
"""Seconds after which a page that has not loaded counts as frozen, on however slow a machine."""

PICTURES = os.environ.get("AXPLORE_PICTURES")
"""The folder for screenshots; None to throw them away."""

PAUSE = 0.01
"""Seconds between two looks at a page; by itself Selenium would wait half a second, which adds up."""

COLOURS, LARGEST_PICTURE = 256, 150_000
"""The colours of a screenshot, and its largest number of bytes."""

PHONE = 500
"""Screens narrower than this are those of phones."""


class Browser:
    def __init__(self, chromium: str, driver: str, folder: Path) -> None:
        options = Options()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(PATIENCE)
        self._folder = folder

    def open(self, address: str | Path, fragment: str = "") -> None:
        """Opens a page in a fresh document and waits until its script is done."""
        self.driver.get("about:blank")
        self.complaints()
        self.requests()
        address = address.as_uri() if isinstance(address, Path) else address
        self.driver.get(address + (f"#{fragment}" if fragment else ""))
        done = "return document.body.dataset.ready === 'true' || !document.getElementById('content')"
        self.wait(lambda: bool(self.run(done)))

    def open_text(self, page: str, fragment: str = "") -> None:
        path = self._folder / "page.html"
        path.write_text(page, encoding="utf-8")
        self.open(path, fragment)

    @contextmanager
    def screen(self, width: int, height: int, *, dark: bool = False) -> Iterator[None]:
        """A screen of this size, narrow ones as of phones, light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < PHONE}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def picture(self, page: Path, path: Path, width: int, height: int, *, dark: bool = False) -> None:
        """Saves what a screen of this size shows of a page, and copies it to `PICTURES`."""
        with self.screen(width, height, dark=dark):
            self.open(page)
            self.driver.save_screenshot(str(path))
        with Image.open(path) as image:
            assert image.size == (width, height)
            image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
        assert path.stat().st_size <= LARGEST_PICTURE
        if PICTURES:
            shutil.copy(path, PICTURES)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return str(self.find(selector).text)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def count(self, selector: str) -> int:
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def slide(self, slider: str, value: float) -> None:
        self.run(
            "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
            "slider.dispatchEvent(new Event('input'))",
            slider,
            value,
        )

    def wait(self, condition: Callable[[], bool]) -> None:
        WebDriverWait(self.driver, PATIENCE, PAUSE).until(lambda _: condition())

    def complaints(self) -> list[str]:
        """Errors and warnings on the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def requests(self) -> list[str]:
        """What was asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        self.driver.quit()
