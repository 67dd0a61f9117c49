"""Untrusted files: opened without following links, read within limits, and written atomically.

Every file of a run or an atlas is opened here (`open_regular`): it must be a regular file, not a symbolic link. The
folder is given by the user, and may be reached through links.

JSON and arrays are stored in a pair of files, NAME.json and NAME.npz, sealed by a digest of both. Nothing is
pickled. The digest is SHA-256 over the JSON body and the arrays in one canonical form, so it does not depend
on how they are written. It guards against damage and careless edits. It is not a signature: whoever edits a file can
recompute the digest, and what is read still has to be verified.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import stat
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
    raise ImportError("axplore needs a POSIX system, Linux or macOS: it locks run folders with flock") from error

Arrays = Mapping[str, npt.NDArray[Any]]

MAGIC: Final = b"\x93NUMPY\x01\x00"
HEADER: Final = re.compile(
    rb"\{'descr': '(?P<dtype><[if]8)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>([0-9]{1,15}(, |,|(?=\))))*)\), \} *\n"
)
"""The header of a NumPy array of 64-bit integers or floats in C order; nothing else is written or read."""

MAX_JSON_BYTES: Final = 2**26
MAX_ARRAY_BYTES: Final = 2**32
"""Larger files are refused before any memory is allocated: 64 megabytes of text, four gigabytes of arrays."""

MAX_JSON_VALUES: Final = 2**22
"""JSON of more values is refused before it is parsed: a value takes far more memory than its text."""

MAX_SEALED_BYTES: Final = 2**28
MAX_SEALED_VALUES: Final = 2**25
"""The same of JSON beside arrays, which has the labels and actions of all states: a million of them fit."""

MOST_INDENTED: Final = 2**17
"""JSON beside arrays is indented, for people, if it has at most this many values."""

MAX_EXPANSION: Final = 64
ALWAYS_EXPANDED: Final = 2**28
"""Arrays of more than 256 megabytes are written and read only if they take at most 64 times the bytes of their file."""


def digest_of(body: Mapping[str, Any], arrays: Arrays) -> str:
    """Returns the SHA-256 digest of a JSON body and arrays, in hexadecimal."""
    return _digest(canonical_json(body), arrays)


def _digest(canonical: str, arrays: Arrays) -> str:
    """Returns the digest of a body, of which this is the canonical JSON, and arrays."""
    hashed = hashlib.sha256(canonical.encode("ascii"))
    for name in sorted(arrays):
        array = _plain(arrays[name])
        hashed.update(canonical_json([name, array.dtype.str, list(array.shape)]).encode("ascii"))
        hashed.update(array.data if array.size else b"")
    return hashed.hexdigest()


def write_sealed(folder: Path, name: str, body: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes both files, each atomically; refuses what could not be read, and writes neither then."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _sealed_json(folder / f"{name}.json", body, arrays, MAX_SEALED_BYTES, MAX_SEALED_VALUES)
    expanded = sum(array.nbytes for array in arrays.values())
    _check_size(folder / f"{name}.npz", expanded, MAX_ARRAY_BYTES)
    packed = _packed(arrays, zipfile.ZIP_DEFLATED)
    if expanded > _most_expanded(len(packed)):
        packed = _packed(arrays, zipfile.ZIP_STORED)
        _check_size(folder / f"{name}.npz", len(packed), MAX_ARRAY_BYTES)
    replace_file(folder / f"{name}.npz", packed)
    replace_file(folder / f"{name}.json", text)


def _sealed_json(path: Path, body: Mapping[str, Any], arrays: Arrays, most_bytes: int, most_values: int) -> bytes:
    """Returns the text of a file with its digest; refuses one that could not be read."""
    canonical = canonical_json(body)
    sealed = {**body, "digest": _digest(canonical, arrays)}
    is_small = _most_values_in(canonical.encode("ascii")) <= MOST_INDENTED
    layout: dict[str, Any] = {"indent": 1} if is_small else {"separators": (",", ":")}
    text = json.dumps(sealed, allow_nan=False, **layout).encode("ascii") + b"\n"
    _check_size(path, len(text), most_bytes)
    flaw = _flaw_of_values(text, most_values)
    if flaw is not None:
        raise StorageError(f"{path} is not written: {flaw}. Explore fewer states")
    return text


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise StorageError(
            f"{path} is not written: it would take {size:,} bytes, and more than {limit:,} are not read. Explore fewer "
            "states, or use shorter labels: a key function (`key=`) makes one of each observation"
        )


def _flaw_of_values(text: bytes, most: int) -> str | None:
    """Returns what is wrong with a JSON text that may have more values than this; None if it has no more."""
    n_values = _most_values_in(text)
    return f"it has {n_values:,} values, and more than {most:,} are not read" if n_values > most else None


def _most_values_in(text: bytes) -> int:
    """Returns an upper bound on the values in a JSON text."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _packed(arrays: Arrays, compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name in sorted(arrays):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _plain(arrays[name]), allow_pickle=False)
    return buffer.getvalue()


def _most_expanded(file_bytes: int) -> int:
    """Returns the largest number of bytes that the arrays of a file may take."""
    return min(max(MAX_EXPANSION * file_bytes, ALWAYS_EXPANDED), MAX_ARRAY_BYTES)


def read_sealed(
    folder: Path, name: str, format_name: str, version: int
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Reads what `write_sealed` wrote with this `format` and `version` in its body; refuses everything else."""
    path = folder / f"{name}.json"
    body = _object_in(path, MAX_SEALED_BYTES, MAX_SEALED_VALUES)
    check_format(path, body, format_name, version)
    claimed = body.pop("digest", None)
    canonical = _canonical(path, body)
    arrays = _read_arrays(folder / f"{name}.npz")
    if claimed != _digest(canonical, arrays):
        raise DamagedFileError(f"{path} and {name}.npz do not fit their digest: they are damaged or were edited")
    return body, arrays


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns the array in the form in which it is hashed and written."""
    plain = np.ascontiguousarray(array)
    return plain.astype("<i8" if plain.dtype.kind == "i" else "<f8", casting="safe", copy=False)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file atomically: under another name, which is then changed."""
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
    """Returns the JSON object in a file; refuses duplicate keys and numbers that are not finite."""
    body = _object_in(path, MAX_JSON_BYTES, MAX_JSON_VALUES)
    _canonical(path, body)
    return body


def _object_in(path: Path, most_bytes: int, most_values: int) -> dict[str, Any]:
    """Returns the JSON object in a file, in which numbers may not be finite."""
    content = _content(path, most_bytes)
    try:
        body = parsed_json(content, most_values)
    except ValueError as error:
        raise DamagedFileError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(body, dict):
        raise DamagedFileError(f"{path} does not hold a JSON object")
    return body


def _canonical(path: Path, body: dict[str, Any]) -> str:
    """Returns the canonical JSON of what a file holds; refuses NaN and numbers too large for a float."""
    try:
        return canonical_json(body)
    except ValueError as error:
        raise DamagedFileError(f"{path} cannot be read as JSON: {error}") from None


def parsed_json(content: bytes, most_values: int | None = None) -> Any:
    """Returns the value of a JSON text; raises ValueError for anything else, however deeply nested.

    Args:
        content: the text.
        most_values: the number of values above which it is not parsed; `MAX_JSON_VALUES` when not given.
    """
    flaw = _flaw_of_values(content, MAX_JSON_VALUES if most_values is None else most_values)
    if flaw is not None:
        raise ValueError(flaw)
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _distinct(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in items:
        if key in result:
            raise ValueError(f"the key {key!r} appears twice")
        result[key] = value
    return result


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    content = _content(path, MAX_ARRAY_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise ValueError("an array is compressed in an unknown way")
            if len({member.filename for member in members}) != len(members):
                raise ValueError("an array appears twice")
            expanded, most = sum(member.file_size for member in members), _most_expanded(len(content))
            if expanded > most:
                raise ValueError(f"its {len(content):,} bytes would take {expanded:,}, more than the {most:,} allowed")
            arrays = {}
            for member in members:
                with archive.open(member) as file:
                    arrays[member.filename.removesuffix(".npy")] = _read_array(file, member)
            return arrays
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFileError(f"{path} cannot be read as arrays: {error}") from None


def _read_array(file: IO[bytes], member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Reads one array; allocates no memory before its shape matches the size in the archive."""
    start = file.read(len(MAGIC) + 2)
    header_size = int.from_bytes(start[len(MAGIC) :], "little")
    header = HEADER.fullmatch(file.read(header_size))
    if not start.startswith(MAGIC) or header is None:
        raise ValueError(f"{member.filename} is not a plain array of whole numbers or floats")
    dtype = np.dtype(header["dtype"].decode("ascii"))
    shape = tuple(int(item) for item in header["shape"].split(b",") if item.strip())
    size = member.file_size - len(start) - header_size
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{member.filename} says it has shape {shape}, but holds {size} bytes")
    array = np.empty(shape, dtype)
    filled, room = 0, array.reshape(-1).view(np.uint8)
    while part := file.read(2**20):
        # Raises if there is not enough memory.
        room[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
        filled += len(part)
    if filled != size:
        raise ValueError(f"{member.filename} ends after {filled} of {size} bytes")
    array.flags.writeable = False
    return array


def _content(path: Path, limit: int) -> bytes:
    try:
        return read_file(path, limit)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None


def open_regular(path: Path, flags: int) -> int:
    """Opens a regular file; refuses symbolic links, pipes, devices and hard links, which may be traps.

    Returns:
        The descriptor, which child processes do not inherit.

    Raises:
        OSError: the file cannot be opened, or is refused.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "it is a symbolic link, which is not followed") from None
        raise
    found = os.fstat(descriptor)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    if stat.S_ISREG(found.st_mode) and (found.st_nlink == 1 or not writes):
        return descriptor
    os.close(descriptor)
    flaw = "it has a second name elsewhere (a hard link)" if stat.S_ISREG(found.st_mode) else "it is not a regular file"
    raise OSError(errno.EPERM, flaw)


def read_file(path: Path, limit: int = MAX_ARRAY_BYTES) -> bytes:
    """Returns the content of a regular file; raises OSError if it has more bytes than the limit."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, f"it has {size} bytes; more than {limit} are not read")
        return file.read(limit)


def lines_of(descriptor: int) -> Iterator[bytes]:
    """Yields the complete lines of an open text file, without keeping them; leaves its position alone.

    Raises:
        OSError: the file has more bytes than are read.
    """
    size = os.fstat(descriptor).st_size
    if size > MAX_JSON_BYTES:
        raise OSError(errno.EFBIG, f"it has {size} bytes; more than {MAX_JSON_BYTES} are not read")
    begun: list[bytes] = []
    for offset in range(0, size, _CHUNK):
        *complete, rest = os.pread(descriptor, min(_CHUNK, size - offset), offset).split(b"\n")
        for part in complete:
            yield b"".join((*begun, part))
            begun = []
        begun.append(rest)


_CHUNK: Final = 2**20

LOCK: Final = "lock"

_UNFINISHED: Final = re.compile(r"\..*\.[0-9a-f]{32}")
"""The suffix of a file that is still being written."""


class Lock:
    """An exclusive lock on a run folder, held until it is closed or this process ends.

    Child processes do not hold the lock, not even forked ones.
    """

    def __init__(self, folder: Path) -> None:
        """Takes the lock; raises if another process, or this one, holds it."""
        self._folder = folder
        with storage_errors(f"the run in {folder} cannot be locked"):
            self._identity = _identity_of(folder)
            self._file = os.fdopen(open_regular(folder / LOCK, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii")
            _HELD.add(self)
            self._take()
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file.fileno(), 20, 0).strip()
            self.close()
            by = f"process {int(owner)}" if owner.isdigit() else "another process"
            raise StorageError(f"the run in {self._folder} is in use by {by}") from None

    def check_place(self) -> None:
        """Raises if the folder was moved or replaced, so that no second one is made in its place."""
        try:
            stays = _identity_of(self._folder) == self._identity
        except OSError:
            stays = False
        if not stays:
            raise StorageError(
                f"the folder {self._folder} was moved or replaced while its run was in progress. Nothing is lost: "
                "resume the run where its folder is now"
            )

    def close(self) -> None:
        """Releases the lock."""
        _HELD.discard(self)
        self._file.close()


_HELD: Final[WeakSet[Lock]] = WeakSet()
"""The locks that this process holds."""


def _release_in_copy() -> None:
    """Closes the locks that a forked process has inherited; the original process keeps them."""
    for lock in list(_HELD):
        lock.close()


os.register_at_fork(after_in_child=_release_in_copy)


def _identity_of(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def write_document(path: Path, body: Mapping[str, Any]) -> None:
    """Writes a JSON object with its digest, atomically."""
    with storage_errors(f"{path} cannot be written"):
        replace_file(path, _sealed_json(path, body, {}, MAX_JSON_BYTES, MAX_JSON_VALUES))
        sync_folder(path.parent)


def read_document(path: Path, format_name: str, version: int) -> dict[str, Any]:
    """Reads what `write_document` wrote with this `format` and `version` in its body; refuses everything else."""
    body = read_json(path)
    check_format(path, body, format_name, version)
    if body.pop("digest", None) != digest_of(body, {}):
        raise DamagedFileError(f"{path} does not fit its digest: it is damaged or was edited")
    return body


def check_format(path: Path, body: Mapping[str, Any], format_name: str, version: int) -> None:
    """Refuses a file of another format or version."""
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
    """Writes all of the content, also if the system accepts it in parts."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove_unfinished(folder: Path) -> None:
    """Removes files that a killed process was still writing."""
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Makes an empty folder, and removes it again if the context fails."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    make_empty_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the error being raised says more
            for path in folder.iterdir():
                path.unlink()
            for path in missing:
                path.rmdir()
        raise


def make_empty_folder(folder: Path) -> None:
    """Makes a folder; refuses one that is not empty, or cannot be written."""
    with storage_errors(f"the folder {folder} cannot be used"):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StorageError(f"the folder {folder} is not empty; give one that is, or that does not exist yet")
        with TemporaryFile(dir=folder):
            pass


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turns an OSError into a StorageError that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from error
