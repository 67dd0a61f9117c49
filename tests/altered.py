"""Atlases that say something else than what was explored."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from msgspec import structs

from axplore.atlas import Atlas
from axplore.atlas.statements import Statements


def altered(atlas: Atlas, **changes: Any) -> Atlas:
    """The atlas with other values in the record of its run, its source, or what it says of states."""
    said = {field.name for field in fields(Statements)}
    of_run = {name: value for name, value in changes.items() if name in atlas.run.__struct_fields__}
    of_states = {name: value for name, value in changes.items() if name in said}
    of_source = {name: value for name, value in changes.items() if name not in of_run and name not in of_states}
    source = structs.replace(atlas.source, **of_source)
    part = replace(atlas.statements, **of_states) if of_states else atlas.part
    return Atlas(source=source, run=structs.replace(atlas.run, **of_run), part=part)
