"""Atlases: the result of an exploration, which answers questions without access to the system."""

from __future__ import annotations

from axplore.atlas.atlas import Atlas
from axplore.atlas.policy import Policy
from axplore.atlas.state_report import Bounds, StateReport

__all__ = ["Atlas", "Bounds", "Policy", "StateReport"]
