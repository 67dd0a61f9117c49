"""A web shop as a tester meets it: login, basket and checkout, and a payment that now and then fails.

Everything but the payment has one outcome, so that who tries it a few times takes the shop for deterministic.
"""

from __future__ import annotations

from random import Random
from typing import Final, TypeAlias

import numpy as np

View: TypeAlias = tuple[str, ...]
"""The page, who is logged in, and the items in the basket."""

USERS: Final = ("ann", "bob")
ITEMS: Final = ("book", "lamp")

FAILING: Final = 0.05
"""How often a payment fails."""


class Shop:
    """The shop in one session.

    Attributes:
        failing: the chance that a payment leads to the page `error`.
    """

    def __init__(self, failing: float = FAILING) -> None:
        self.failing = failing
        self._random = Random(0)
        self._page, self._user = "home", ""
        self._basket: tuple[str, ...] = ()

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Draws the failures of payments from a random stream."""
        self._random = Random(int(seed.generate_state(1, np.uint64)[0]))

    def reset(self) -> View:
        """Begins a new session."""
        self._page, self._user, self._basket = "home", "", ()
        return self._view()

    def actions(self, view: View) -> tuple[str, ...]:
        """Returns the buttons and links of a page."""
        page, user, *basket = view
        if page in ("thanks", "error"):
            return ("home",)
        if page == "checkout":
            return ("pay", "back")
        if not user:
            return tuple(f"log in as {name}" for name in USERS)
        missing = tuple(f"add {item}" for item in ITEMS if item not in basket)
        return (*missing, *(("check out",) if basket else ()), "log out")

    def step(self, action: str) -> View:
        """Follows a link or presses a button."""
        match action.split():
            case ["log", "in", "as", name]:
                self._page, self._user = "shelf", name
            case ["add", item]:
                self._basket = tuple(sorted((*self._basket, item)))
            case ["check", "out"]:
                self._page = "checkout"
            case ["back"]:
                self._page = "shelf"
            case ["pay"]:
                self._page = "error" if self._random.random() < self.failing else "thanks"
            case _:  # home, log out
                return self.reset()
        return self._view()

    def _view(self) -> View:
        return (self._page, self._user, *self._basket)


def healthy_shop() -> Shop:
    """Returns a shop in which no payment fails."""
    return Shop(0.0)
