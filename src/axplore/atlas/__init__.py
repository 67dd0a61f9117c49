"""Atlases: what an exploration found, in a form that answers questions without the world."""

from __future__ import annotations

from axplore.atlas.atlas import Atlas
from axplore.atlas.policy import Policy
from axplore.atlas.state_report import Bounds, StateReport

__all__ = ["Atlas", "Bounds", "Policy", "StateReport"]
