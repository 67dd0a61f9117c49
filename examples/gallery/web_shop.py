"""A web application in a real browser: headless Chromium, driven by Selenium.

axplore explore examples.gallery.web_shop:WebShop --radius 6 --epsilon 3 --objective within-radius
"""

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PAGE = Path(__file__).with_name("shop.html").as_uri()


class WebShop:
    """The state is the name of the screen, and the actions are the buttons on it."""

    def __init__(self) -> None:
        options = Options()
        options.binary_location = shutil.which("chromium") or ""
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        self.browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def reset(self) -> str:
        self.browser.get(PAGE)
        return self._screen()

    def step(self, label: str) -> str:
        next(button for button in self._buttons() if button.text == label).click()
        return self._screen()

    def actions(self, _screen: str) -> tuple[str, ...]:
        return tuple(button.text for button in self._buttons())

    def close(self) -> None:
        self.browser.quit()

    def _screen(self) -> str:
        return self.browser.find_element(By.TAG_NAME, "body").get_attribute("data-screen")

    def _buttons(self) -> list:
        return self.browser.find_elements(By.TAG_NAME, "button")
