"""Names of environments that differ between versions of Gymnasium."""

from __future__ import annotations

from typing import Final

import gymnasium

TAXI: Final = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"
