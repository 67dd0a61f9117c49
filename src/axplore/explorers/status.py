"""What is known of a state."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """What is known of a state; the value is what to call it."""

    CERTIFIED = "certified"
    """Proven within reach, with a policy as good as the objective asks for."""
    SET_ASIDE = "set aside"
    """Proven too far for every policy through the known states."""
    OPEN = "open"
    """Neither."""
