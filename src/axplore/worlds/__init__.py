"""Worlds: the contract, the adapters to many kinds of systems, and the doctor.

The names below are loaded on first use, so that importing one adapter does not import the packages of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from axplore.lazy import lazy_names

if TYPE_CHECKING:
    from axplore.records.findings import Fault, FaultKind, Finding, Issue
    from axplore.records.vectors import Vectors
    from axplore.worlds.aalpy import AalpySystem
    from axplore.worlds.browser import BrowserWorld
    from axplore.worlds.catalogue import named_world, world_of
    from axplore.worlds.contract import (
        NOWHERE,
        Answer,
        Episodes,
        Incident,
        IncidentKind,
        Order,
        Replica,
        Replicable,
        Resumable,
        Survey,
        Tour,
        Trials,
        Visit,
        World,
        WorldSnapshot,
    )
    from axplore.worlds.diagnosis import Diagnosis
    from axplore.worlds.doctor import examine
    from axplore.worlds.gym import gym_world
    from axplore.worlds.program import program_world
    from axplore.worlds.simulated import SimulatedWorld
    from axplore.worlds.stepped import SteppedWorld
    from axplore.worlds.storm import storm_world
    from axplore.worlds.systems import System, SystemFaultError

__all__ = [
    "NOWHERE",
    "AalpySystem",
    "Answer",
    "BrowserWorld",
    "Diagnosis",
    "Episodes",
    "Fault",
    "FaultKind",
    "Finding",
    "Incident",
    "IncidentKind",
    "Issue",
    "Order",
    "Replica",
    "Replicable",
    "Resumable",
    "SimulatedWorld",
    "SteppedWorld",
    "Survey",
    "System",
    "SystemFaultError",
    "Tour",
    "Trials",
    "Vectors",
    "Visit",
    "World",
    "WorldSnapshot",
    "examine",
    "gym_world",
    "named_world",
    "program_world",
    "storm_world",
    "world_of",
]

_HOMES: Final = {
    "axplore.records.findings": ("Fault", "FaultKind", "Finding", "Issue"),
    "axplore.records.vectors": ("Vectors",),
    "axplore.worlds.aalpy": ("AalpySystem",),
    "axplore.worlds.browser": ("BrowserWorld",),
    "axplore.worlds.catalogue": ("named_world", "world_of"),
    "axplore.worlds.contract": (
        "NOWHERE",
        "Answer",
        "Episodes",
        "Incident",
        "IncidentKind",
        "Order",
        "Replica",
        "Replicable",
        "Resumable",
        "Survey",
        "Tour",
        "Trials",
        "Visit",
        "World",
        "WorldSnapshot",
    ),
    "axplore.worlds.diagnosis": ("Diagnosis",),
    "axplore.worlds.doctor": ("examine",),
    "axplore.worlds.gym": ("gym_world",),
    "axplore.worlds.program": ("program_world",),
    "axplore.worlds.simulated": ("SimulatedWorld",),
    "axplore.worlds.stepped": ("SteppedWorld",),
    "axplore.worlds.storm": ("storm_world",),
    "axplore.worlds.systems": ("System", "SystemFaultError"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
