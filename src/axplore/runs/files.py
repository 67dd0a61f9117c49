"""Files of a run: one process at a time, each file whole or not at all."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from axplore.atlas.files import storage_errors
from axplore.certificate import sealed
from axplore.errors import DamagedFileError, StorageError

LOCK: Final = "lock"

_UNFINISHED: Final = re.compile(r"\..*\.[0-9a-f]{32}")
"""How a file is called before it is moved to its place."""


class Lock:
    """The sole right to a run folder, for as long as this process lives or until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock; refuses if another process, or this one, holds it."""
        with storage_errors(f"the run in {folder} cannot be locked"):
            self._file = (folder / LOCK).open("a+", encoding="ascii")
        if not _locked(self._file.fileno()):
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise StorageError(f"the run in {folder} is in use by another process, whose number is {owner}")
        with storage_errors(f"the run in {folder} cannot be locked"):
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()

    def close(self) -> None:
        """Gives the folder free."""
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int) -> bool:
        # Beyond the end of the file, so that others can still read whose lock it is.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def write_document(path: Path, body: Mapping[str, Any]) -> None:
    """Writes a JSON object with its digest; the file appears whole or not at all."""
    with storage_errors(f"{path} cannot be written"):
        text = json.dumps({**body, "digest": sealed.digest_of(body, {})}, indent=1, allow_nan=False)
        sealed.replace_file(path, text.encode("ascii") + b"\n")
        sync_folder(path.parent)


def read_document(path: Path, format_name: str, version: int) -> dict[str, Any]:
    """Reads what `write_document` wrote with this `format` and `version` in its body; refuses everything else."""
    body = sealed.read_json(path)
    check_format(path, body, format_name, version)
    if body.pop("digest", None) != sealed.digest_of(body, {}):
        raise DamagedFileError(f"{path} does not fit its digest: it is damaged or was edited")
    return body


def check_format(path: Path, body: Mapping[str, Any], format_name: str, version: int) -> None:
    """Refuses what is of another format, or of a version that is not known."""
    if body.get("format") != format_name:
        raise DamagedFileError(f"{path} is not of the format {format_name!r}")
    if body.get("version") != version:
        raise DamagedFileError(
            f"{path} has version {body.get('version')!r} of its format; this axplore reads version {version}"
        )


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk; systems that cannot open a folder do so by themselves."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Writes all of it, however often the system takes a part only."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove_unfinished(folder: Path) -> None:
    """Removes what a killed process was still writing."""
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()
