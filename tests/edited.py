"""Records and results with other values in them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from msgspec import structs

from axplore.certificate import Certificate, kinds

Kind = TypeVar("Kind")


def edited(value: Kind, **changes: Any) -> Kind:
    """A record or dataclass with other values; the claims of a certificate are given by the name of their kind."""
    if isinstance(value, Certificate):
        by_kind = {kind.name: changes.pop(kind.name, value.of(kind.record)) for kind in kinds.KINDS}
        changes.setdefault("claims", tuple(claim for claims in by_kind.values() for claim in claims))
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **changes)  # type: ignore[type-var]
    return structs.replace(value, **changes)  # type: ignore[type-var]
