"""Explorers decide which orders to give. The protocol, the driver, presets by name, one file per explorer.

The names below are loaded when first used, so that importing one explorer does not import the kernels of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from axplore.lazy import lazy_names

if TYPE_CHECKING:
    from axplore.explorers.base import (
        Exploration,
        Explorer,
        ExplorerState,
        ForecastProbe,
        Observer,
        Outlook,
        RoundReport,
        run,
    )
    from axplore.explorers.certified import Certified
    from axplore.explorers.disco import DisCo
    from axplore.explorers.registry import description_of, explorer_names, preset
    from axplore.explorers.ucb_explore import UcbExplore
    from axplore.explorers.ucb_staged import StagedUcbExplore
    from axplore.records.run import StopReason
    from axplore.target import Objective, Target

__all__ = [
    "Certified",
    "DisCo",
    "Exploration",
    "Explorer",
    "ExplorerState",
    "ForecastProbe",
    "Objective",
    "Observer",
    "Outlook",
    "RoundReport",
    "StagedUcbExplore",
    "StopReason",
    "Target",
    "UcbExplore",
    "description_of",
    "explorer_names",
    "preset",
    "run",
]

_HOMES: Final = {
    "axplore.records.run": ("StopReason",),
    "axplore.explorers.base": (
        "Exploration",
        "Explorer",
        "ExplorerState",
        "Observer",
        "Outlook",
        "ForecastProbe",
        "RoundReport",
        "run",
    ),
    "axplore.explorers.certified": ("Certified",),
    "axplore.explorers.disco": ("DisCo",),
    "axplore.explorers.registry": ("description_of", "explorer_names", "preset"),
    "axplore.explorers.ucb_explore": ("UcbExplore",),
    "axplore.explorers.ucb_staged": ("StagedUcbExplore",),
    "axplore.target": ("Objective", "Target"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
