"""The kinds of claims that a certificate may hold: one file each, and one list."""

from __future__ import annotations

from typing import Any, Final

from axplore.certificate.kinds.at_least import AtLeastKind
from axplore.certificate.kinds.at_most import AtMostKind
from axplore.certificate.kinds.distances import DistancesKind
from axplore.certificate.kinds.episodes import EpisodesKind
from axplore.certificate.kinds.kind import Kind
from axplore.certificate.kinds.near_optimal import NearOptimalKind
from axplore.certificate.kinds.properties import PropertyKind
from axplore.certificate.kinds.reachable import ReachableKind
from axplore.certificate.kinds.too_far import TooFarKind

KINDS: Final[tuple[Kind[Any], ...]] = (
    ReachableKind(),
    TooFarKind(),
    AtMostKind(),
    AtLeastKind(),
    NearOptimalKind(),
    DistancesKind(),
    EpisodesKind(),
    PropertyKind(),
)
"""In this order claims are checked and concluded from."""
