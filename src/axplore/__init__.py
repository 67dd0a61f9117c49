"""Finds every state that can be reliably reached within a number of expected steps, and proves it.

The names below are loaded when first used, so that importing axplore is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from axplore.lazy import lazy_names

if TYPE_CHECKING:
    from axplore.assumptions import Assumptions
    from axplore.atlas import Atlas, Bounds, Policy, StateReport
    from axplore.atlas.certification import certify
    from axplore.atlas.verification import verify
    from axplore.certificate import EpisodeCertificate
    from axplore.checking import check
    from axplore.domains import DOMAINS, domain
    from axplore.errors import AxploreError
    from axplore.exploring import explore
    from axplore.learning import from_transitions
    from axplore.mdp import TabularMdp
    from axplore.records.run import StopReason
    from axplore.resuming import resume
    from axplore.target import Objective
    from axplore.truth import (
        ControllableStates,
        ObjectiveCheck,
        check_optimal,
        check_staged,
        check_within_radius,
        controllable_states,
        l_controllable,
        optimal_steps,
    )
    from axplore.types import RESET, Status

__version__ = "1.0.0rc1"

__all__ = [
    "DOMAINS",
    "RESET",
    "Assumptions",
    "Atlas",
    "AxploreError",
    "Bounds",
    "ControllableStates",
    "EpisodeCertificate",
    "Objective",
    "ObjectiveCheck",
    "Policy",
    "StateReport",
    "Status",
    "StopReason",
    "TabularMdp",
    "certify",
    "check",
    "check_optimal",
    "check_staged",
    "check_within_radius",
    "controllable_states",
    "domain",
    "explore",
    "from_transitions",
    "l_controllable",
    "optimal_steps",
    "resume",
    "verify",
]

_HOMES: Final = {
    "axplore.assumptions": ("Assumptions",),
    "axplore.atlas": ("Atlas", "Bounds", "Policy", "StateReport"),
    "axplore.atlas.certification": ("certify",),
    "axplore.atlas.verification": ("verify",),
    "axplore.certificate": ("EpisodeCertificate",),
    "axplore.checking": ("check",),
    "axplore.domains": ("DOMAINS", "domain"),
    "axplore.errors": ("AxploreError",),
    "axplore.records.run": ("StopReason",),
    "axplore.exploring": ("explore",),
    "axplore.learning": ("from_transitions",),
    "axplore.mdp": ("TabularMdp",),
    "axplore.resuming": ("resume",),
    "axplore.target": ("Objective",),
    "axplore.truth": (
        "ControllableStates",
        "ObjectiveCheck",
        "check_optimal",
        "check_staged",
        "check_within_radius",
        "controllable_states",
        "l_controllable",
        "optimal_steps",
    ),
    "axplore.types": ("RESET", "Status"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
