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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from axplore.errors import DamagedFileError
from axplore.labels import canonical_json

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


def write(folder: Path, name: str, body: Mapping[str, Any], arrays: Arrays) -> None:
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


def read(folder: Path, name: str, format_name: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Reads what `write` wrote with this `format` and `version` in its body; refuses everything else."""
    path = folder / f"{name}.json"
    body = read_json(path)
    if body.get("format") != format_name:
        raise DamagedFileError(f"{path} is not of the format {format_name!r}")
    if body.get("version") != version:
        raise DamagedFileError(
            f"{path} has version {body.get('version')!r} of its format; this axplore reads version {version}"
        )
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
