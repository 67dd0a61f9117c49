"""The colours of the map, the same on the page, in notebooks and in figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from axplore.types import FloatArray, Status

RAMP: Final = ("#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
"""From near to far: viridis without its darkest end, which a dark page would swallow."""

UNKNOWN: Final = "#d0d7de"
"""The colour of a state of the atlas without a value."""

PAPER, INK, SOFT, LINE, WAY = "#ffffff", "#1b1f24", "#59636e", "#afb8c1", "#d55e00"
"""The background, text, fine text, lines and routes."""

OUTLINE: Final = {Status.CERTIFIED: SOFT, Status.OPEN: "#e69f00", Status.SET_ASIDE: "#6e7781"}
"""The colours of the outlines of states."""


def on_ramp(values: FloatArray) -> list[str]:
    """Returns the colour of each value, from the least to the greatest; of none, where it is not finite."""
    finite = np.isfinite(values)
    least, greatest = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 0.0)
    shares = np.where(finite, values - least, 0.0) / max(float(greatest - least), 1e-300)
    stops = np.array([channels(colour) for colour in RAMP], dtype=np.float64)
    at = np.linspace(0.0, 1.0, len(RAMP))
    mixed = np.rint(np.stack([np.interp(shares, at, stops[:, channel]) for channel in range(3)], axis=1)).astype(int)
    return [_hex(colour) if is_known else UNKNOWN for colour, is_known in zip(mixed.tolist(), finite, strict=True)]


def ink_on(colour: str) -> str:
    """Returns black or white, whichever is read better on a colour."""
    red, green, blue = channels(colour)
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 125 else "#000000"


def channels(colour: str) -> tuple[int, int, int]:
    """Returns red, green and blue of a colour."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _hex(colour: Sequence[int]) -> str:
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"
