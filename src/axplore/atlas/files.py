"""Files of an atlas: `atlas.json` and `atlas.npz` in a folder, with its certificate beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from axplore import storage
from axplore.atlas.atlas import Atlas
from axplore.certificate import Certificate
from axplore.errors import DamagedFileError, InvalidInputError, StorageError
from axplore.records.codec import Record, pack, unpack
from axplore.records.estimate import Estimate
from axplore.records.run import RunRecord
from axplore.statistics.counts import check_counts
from axplore.storage import storage_errors

NAME: Final = "atlas"
FORMAT: Final = "axplore atlas"
VERSION: Final = 8


class AtlasFile(Record, frozen=True, kw_only=True):
    """What the files of an atlas hold.

    Attributes:
        run: how the exploration went.
        certificate: the digest of the certificate beside it; None if nothing is proven.
        estimate: what was found, if nothing is proven.
    """

    run: RunRecord
    certificate: str | None
    estimate: Estimate | None


def save(atlas: Atlas, folder: Path) -> None:
    """Writes an atlas into a folder; one with a certificate as the certificate and a record of the run."""
    if atlas.is_part:
        raise InvalidInputError(
            "a part of an atlas has no certificate, so it cannot be saved: save the atlas it was taken from, and "
            "take the part again with within(radius)"
        )
    certificate = atlas.certificate
    estimate = atlas.source if isinstance(atlas.source, Estimate) else None
    digest = None if certificate is None else certificate.digest
    body, arrays = pack(AtlasFile(run=atlas.run, certificate=digest, estimate=estimate))
    with storage_errors(f"the atlas cannot be written to {folder}"):
        if certificate is not None:
            certificate.save(folder)
        storage.write_sealed(folder, NAME, {"format": FORMAT, "version": VERSION, **body}, arrays)


def load(folder: Path) -> Atlas:
    """Reads an atlas that `save` wrote."""
    if not (folder / f"{NAME}.json").is_file():
        cut_short = (folder / "run.json").is_file()
        advice = f". The run was interrupted; resume it: axplore resume {folder}" if cut_short else ""
        raise StorageError(f"there is no atlas in {folder}: it holds no {NAME}.json{advice}")
    body, arrays = storage.read_sealed(folder, NAME, FORMAT, VERSION)
    try:
        return _atlas_in(folder, {name: body[name] for name in body if name not in ("format", "version")}, arrays)
    except DamagedFileError:
        raise
    except InvalidInputError as error:
        raise DamagedFileError(f"the atlas in {folder} is damaged: {error}") from None


def _atlas_in(folder: Path, content: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Atlas:
    file = unpack(AtlasFile, content, arrays)
    if (file.certificate is None) == (file.estimate is None):
        raise InvalidInputError("it holds neither a certificate nor an estimate, or both")
    if file.estimate is not None:
        check_counts(file.estimate.counts)
        return _checked(Atlas(source=file.estimate, run=file.run))
    certificate = Certificate.load(folder)
    if certificate.digest != file.certificate:
        raise DamagedFileError(f"the certificate in {folder} is of another run than the atlas beside it")
    return _checked(Atlas(source=certificate, run=file.run))


def _checked(atlas: Atlas) -> Atlas:
    """Returns the atlas; refuses one whose record is that of another run."""
    if len(atlas.run.found_at) != len(atlas.numbers) or len(set(atlas.seen)) != len(atlas.seen):
        raise InvalidInputError("the record of the run does not fit the states that were found")
    return atlas
