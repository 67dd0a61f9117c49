"""A shop with a payment that fails now and then. `pytest examples/shop` tests it: see docs/pytest.md."""

import random

SCREENS = {
    "home": {"search": "results", "basket": "basket"},
    "results": {"first": "product", "back": "home"},
    "product": {"buy": "basket", "back": "results"},
    "basket": {"pay": "payment", "back": "home"},
    "payment": {"confirm": "thanks", "back": "basket"},
    "thanks": {"again": "home"},
}


class Shop:
    """The state is the name of the screen, and the actions are its buttons."""

    screens = SCREENS
    accepted = 0.95

    def __init__(self) -> None:
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Begins the noise anew, so that a test always ends alike."""
        self._random = random.Random(seed)

    def reset(self) -> str:
        """Returns to the first screen."""
        self.screen = "home"
        return self.screen

    def actions(self, screen: str) -> tuple[str, ...]:
        """Returns the buttons of a screen."""
        return tuple(self.screens[screen])

    def step(self, button: str) -> str:
        """Presses a button, and returns the next screen; a payment that is not accepted stays where it is."""
        if button != "confirm" or self._random.random() < self.accepted:
            self.screen = self.screens[self.screen][button]
        return self.screen
