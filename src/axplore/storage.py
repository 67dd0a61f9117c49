"""A pair of files, NAME.json and NAME.npz, sealed by a digest of what both hold.

Nothing is pickled. The digest is SHA-256 over the JSON body and the arrays in one canonical form, so it does not depend
on how they are written. It guards against damage and careless edits. It is no signature: who edits a file can make the
digest fit, and what is read still has to be verified.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final
from uuid import uuid4
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from axplore.errors import DamagedFileError, StorageError
from axplore.labels import canonical_json

try:
    import fcntl
except ImportError as error:
    raise ImportError("axplore needs a POSIX system, Linux or macOS: it locks run folders by flock") from error

Arrays = Mapping[str, npt.NDArray[Any]]

MAGIC: Final = b"\x93NUMPY\x01\x00"
HEADER: Final = re.compile(
    rb"\{'descr': '(?P<dtype><[if]8)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>([0-9]{1,15}(, |,|(?=\))))*)\), \} *\n"
)
"""How NumPy describes an array by rows of whole numbers or floats of eight bytes; nothing else is written or read."""

MAX_JSON_BYTES: Final = 2**28
MAX_ARRAY_BYTES: Final = 2**32
"""More is taken for nonsense before any memory is asked for: a quarter of a gigabyte of text, four of arrays."""


def digest_of(body: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of a JSON body and arrays, as hexadecimal digits."""
    hashed = hashlib.sha256(canonical_json(body).encode("ascii"))
    for name in sorted(arrays):
        array = _plain(arrays[name])
        hashed.update(canonical_json([name, array.dtype.str, list(array.shape)]).encode("ascii"))
        hashed.update(array.data if array.size else b"")
    return hashed.hexdigest()


def write_sealed(folder: Path, name: str, body: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes both files; each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for array_name in sorted(arrays):
            with archive.open(f"{array_name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _plain(arrays[array_name]), allow_pickle=False)
    replace_file(folder / f"{name}.npz", buffer.getvalue())
    text = json.dumps({**body, "digest": digest_of(body, arrays)}, indent=1, allow_nan=False)
    replace_file(folder / f"{name}.json", text.encode("ascii") + b"\n")


def read_sealed(
    folder: Path, name: str, format_name: str, version: int
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Reads what `write` wrote with this `format` and `version` in its body; refuses everything else."""
    path = folder / f"{name}.json"
    body = read_json(path)
    check_format(path, body, format_name, version)
    arrays = _read_arrays(folder / f"{name}.npz")
    claimed = body.pop("digest", None)
    if claimed != digest_of(body, arrays):
        raise DamagedFileError(f"{path} and {name}.npz do not fit their digest: they are damaged or were edited")
    return body, arrays


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in the form in which it is hashed and written."""
    plain = np.ascontiguousarray(array)
    return plain.astype("<i8" if plain.dtype.kind == "i" else "<f8", casting="safe", copy=False)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file beside its place and then moves it there."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; refuses keys that stand twice, and numbers that are none."""
    content = _content(path, MAX_JSON_BYTES)
    try:
        body = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct)
        canonical_json(body)  # refuses NaN and numbers too large for a float
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(body, dict):
        raise DamagedFileError(f"{path} does not hold a JSON object")
    return body


def _distinct(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in items:
        if key in result:
            raise ValueError(f"the key {key!r} stands twice")
        result[key] = value
    return result


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    buffer = io.BytesIO(_content(path, MAX_ARRAY_BYTES))
    try:
        with zipfile.ZipFile(buffer) as archive:
            members = archive.infolist()
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise ValueError("an array is compressed in an unknown way")
            if len({member.filename for member in members}) != len(members):
                raise ValueError("an array stands twice")
            if sum(member.file_size for member in members) > MAX_ARRAY_BYTES:
                raise ValueError(f"its arrays would take more than {MAX_ARRAY_BYTES} bytes")
            arrays = {}
            for member in members:
                with archive.open(member) as file:
                    arrays[member.filename.removesuffix(".npy")] = _read_array(file, member)
            return arrays
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFileError(f"{path} cannot be read as arrays: {error}") from None


def _read_array(file: IO[bytes], member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """One array; asks for no more memory than the member holds."""
    start = file.read(len(MAGIC) + 2)
    header = HEADER.fullmatch(file.read(int.from_bytes(start[len(MAGIC) :], "little")))
    if not start.startswith(MAGIC) or header is None:
        raise ValueError(f"{member.filename} is no plain array of whole numbers or floats")
    dtype = np.dtype(header["dtype"].decode("ascii"))
    shape = tuple(int(item) for item in header["shape"].split(b",") if item.strip())
    content = file.read()
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"{member.filename} says it has shape {shape}, but holds {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape)


def _content(path: Path, limit: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > limit:
            raise DamagedFileError(f"{path} has {size} bytes; more than {limit} are not read")
        return path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None


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
        _HELD.add(self)

    def close(self) -> None:
        """Releases the lock."""
        self._file.close()


_HELD: Final[WeakSet[Lock]] = WeakSet()


def _close_locks() -> None:
    """Leaves a forked process, such as a system may start, without the locks of this one, which it might outlive."""
    for lock in list(_HELD):
        lock.close()


os.register_at_fork(after_in_child=_close_locks)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_document(path: Path, body: Mapping[str, Any]) -> None:
    """Writes a JSON object with its digest; the file appears whole or not at all."""
    with storage_errors(f"{path} cannot be written"):
        text = json.dumps({**body, "digest": digest_of(body, {})}, indent=1, allow_nan=False)
        replace_file(path, text.encode("ascii") + b"\n")
        sync_folder(path.parent)


def read_document(path: Path, format_name: str, version: int) -> dict[str, Any]:
    """Reads what `write_document` wrote with this `format` and `version` in its body; refuses everything else."""
    body = read_json(path)
    check_format(path, body, format_name, version)
    if body.pop("digest", None) != digest_of(body, {}):
        raise DamagedFileError(f"{path} does not fit its digest: it is damaged or was edited")
    return body


def check_format(path: Path, body: Mapping[str, Any], format_name: str, version: int) -> None:
    """Refuses what is of another format, or of a version that is not known."""
    if body.get("format") != format_name:
        raise DamagedFileError(f"{path} is not of the format {format_name!r}")
    if type(body.get("version")) is not int or body["version"] != version:  # True equals 1
        raise DamagedFileError(
            f"{path} has version {body.get('version')!r} of its format; this axplore reads version {version}"
        )


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
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


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Makes an empty folder; if what is then done with it fails, nothing is left of it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    make_empty_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the error that is under way says more
            for path in folder.iterdir():
                path.unlink()
            for path in missing:
                path.rmdir()
        raise


def make_empty_folder(folder: Path) -> None:
    """Makes a folder; refuses one that holds anything, and a place that cannot be written to."""
    with storage_errors(f"the folder {folder} cannot be used"):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StorageError(f"the folder {folder} is not empty; give one that is, or that does not exist yet")
        with TemporaryFile(dir=folder):
            pass


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Says what could not be done when the system refuses a file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from error
