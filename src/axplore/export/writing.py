"""`export` writes an atlas in any of the formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final
from uuid import uuid4

from axplore.arguments import checked, file_path, instance, text
from axplore.atlas.atlas import Atlas
from axplore.errors import UnknownNameError
from axplore.export import tables
from axplore.export.formats import as_dot, as_prism, as_umb, frequencies_as_drn, region_as_drn
from axplore.export.model import check_proven, learned
from axplore.storage import storage_errors


def _region_as_drn(atlas: Atlas) -> str:
    check_proven(atlas)
    return region_as_drn(learned(atlas))


FORMATS: Final[Mapping[str, Callable[[Atlas], str | bytes]]] = MappingProxyType(
    {
        "drn": lambda atlas: frequencies_as_drn(learned(atlas)),
        "interval-drn": _region_as_drn,
        "prism": lambda atlas: as_prism(learned(atlas)),
        "umb": lambda atlas: as_umb(learned(atlas)),
        "dot": lambda atlas: as_dot(learned(atlas)),
        "csv": lambda atlas: tables.as_csv(tables.transitions(atlas)),
        "policies-csv": lambda atlas: tables.as_csv(tables.policies(atlas)),
        "parquet": lambda atlas: tables.as_parquet(tables.transitions(atlas)),
        "policies-parquet": lambda atlas: tables.as_parquet(tables.policies(atlas)),
    }
)
"""What an atlas can be written as, by the names that the command line uses."""


@checked(atlas=instance(Atlas, "an Atlas"), format_name=text, path=file_path)
def export(atlas: Atlas, format_name: str, path: str | Path) -> None:
    """Writes an atlas in a format; the file appears whole or not at all, in the place of one that was there.

    Args:
        atlas: what to write.
        format_name: one of `FORMATS`.
        path: the file.
    """
    if format_name not in FORMATS:
        raise UnknownNameError.of("format", format_name, FORMATS)
    content = FORMATS[format_name](atlas)
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    with storage_errors(f"{target} cannot be written"):
        try:
            temporary.write_bytes(data)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
