"""A certificate comes back from its files as it was, and files that are anything else are refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from explored import CUT_SHORT, SETTINGS, certificate_of, rows_of, with_rows, with_vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axplore import storage
from axplore.certificate import Certificate, Reachable, verify
from axplore.certificate.document import VERSION
from axplore.errors import DamagedFileError, InvalidInputError, InvalidLabelError
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.records.vectors import Vector
from edited import edited
from made_counts import same_counts

JSON, ARRAYS = "certificate.json", "certificate.npz"
POLICIES, BOUNDS = "claims.reachable.vectors.policy", "claims.too_far.vectors.lower"
Body = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the chain's certificate."""
    certificate_of("chain").save(tmp_path)
    return tmp_path


def parts_of(folder: Path) -> tuple[Body, Arrays]:
    body = json.loads((folder / JSON).read_text())
    del body["digest"]
    with np.load(folder / ARRAYS) as archive:
        return body, dict(archive)


def refuses(folder: Path, message: str) -> None:
    with pytest.raises(DamagedFileError, match=message):
        Certificate.load(folder)


def same(one: Certificate, other: Certificate) -> bool:
    """Whether two certificates hold the same, without asking their digests."""
    for name in Certificate.__struct_fields__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, Counts):
            if not same_counts(mine, theirs):
                return False
        elif name == "claims":
            if len(mine) != len(theirs) or not all(map(same_claim, mine, theirs)):
                return False
        elif (type(mine), mine) != (type(theirs), theirs):
            return False
    return True


def same_claim(one: Any, other: Any) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__]
    wholes = [tuple(part.whole if isinstance(part, Vector) else part for part in pair) for pair in pairs]
    return type(one) is type(other) and all(np.array_equal(mine, theirs) for mine, theirs in wholes)


@pytest.mark.parametrize("name", [*SETTINGS, *CUT_SHORT])
def test_a_certificate_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    certificate = certificate_of(name)
    certificate.save(tmp_path / "new" / "folder")
    loaded = Certificate.load(str(tmp_path / "new" / "folder"))
    assert same(certificate, loaded)
    assert loaded.digest == certificate.digest
    assert str(verify(loaded)) == str(verify(certificate))


def test_the_files_are_json_and_plain_arrays(folder: Path) -> None:
    body = json.loads((folder / JSON).read_text())
    assert (body["format"], body["version"], body["radius"]) == ("axplore certificate", VERSION, 4.5)
    assert body["counts"]["order"][0] == "s0"
    with np.load(folder / ARRAYS, allow_pickle=False) as archive:
        assert {array.dtype.str for array in archive.values()} == {"<i8", "<f8"}


def test_any_plain_label_comes_back_from_the_file(tmp_path: Path) -> None:
    known = ("</script>", "\ud800", True, 1.5, (2, b"\x00"), None)
    certificate = with_rows(certificate_of("chain"), rows_of(certificate_of("chain")), known=known)
    certificate.save(tmp_path)
    assert Certificate.load(tmp_path).known == certificate.known


def test_a_label_that_is_not_plain_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    certificate = certificate_of("chain")
    with pytest.raises(InvalidLabelError, match="key function"):
        with_rows(certificate, rows_of(certificate), known=(object(), *certificate.known[1:])).save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_saving_again_leaves_two_files_and_the_newer_certificate(folder: Path) -> None:
    certificate_of("chain cut short").save(folder)
    assert {path.name for path in folder.iterdir()} == {JSON, ARRAYS}
    assert same(Certificate.load(folder), certificate_of("chain cut short"))


@pytest.mark.parametrize("stage", ["os.fsync", "pathlib.Path.replace"])
def test_a_save_that_fails_leaves_the_files_of_the_one_before(
    folder: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stage, full)
    with pytest.raises(OSError, match="No space left"):
        certificate_of("chain cut short").save(folder)
    assert {path.name for path in folder.iterdir()} == {JSON, ARRAYS}
    assert same(Certificate.load(folder), certificate_of("chain"))


# Damage


@pytest.mark.parametrize("name", [JSON, ARRAYS])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refuses(folder, f"{name} cannot be read: No such file")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    refuses(tmp_path / "nowhere", "nowhere")


@pytest.mark.parametrize("name", [JSON, ARRAYS])
@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"{", b"[" * 5000, b"[]", b"PK\x05\x06" + b"\x00" * 18])
def test_a_file_with_other_content_is_refused(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    refuses(folder, name)


@pytest.mark.parametrize("name", [JSON, ARRAYS])
def test_a_truncated_file_is_refused(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for end in np.linspace(0, len(content) - 2, 25).astype(int):
        (folder / name).write_bytes(content[:end])
        refuses(folder, "certificate")


@pytest.mark.parametrize("name", [JSON, ARRAYS])
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_refused_or_changes_nothing(folder: Path, name: str, data: st.DataObject) -> None:
    certificate_of("chain").save(folder)
    content = bytearray((folder / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    (folder / name).write_bytes(bytes(content))
    try:
        loaded = Certificate.load(folder)
    except DamagedFileError:
        return
    assert same(loaded, certificate_of("chain"))  # a space, or a date in the archive


# Edits


edits_of_the_body: list[Callable[[Body], object]] = [
    lambda body: body.update(delta=0.2),
    lambda body: body.update(complete=False),
    lambda body: body["counts"]["order"].reverse(),
    lambda body: body.update(note="added"),
    lambda body: body.update(radius=4),
]


@pytest.mark.parametrize("edit", edits_of_the_body)
def test_an_edited_text_is_refused_by_its_digest(folder: Path, edit: Callable[[Body], object]) -> None:
    body = json.loads((folder / JSON).read_text())
    edit(body)
    (folder / JSON).write_text(json.dumps(body))
    refuses(folder, "do not fit their digest")


@pytest.mark.parametrize(
    "name",
    [
        "counts.counts",
        "counts.first_draws",
        "claims.reachable.vectors.policy.numbers",
        "claims.too_far.vectors.lower.rest",
    ],
)
def test_an_edited_array_is_refused_by_its_digest(folder: Path, name: str) -> None:
    _, arrays = parts_of(folder)
    arrays[name].flat[0] += 1
    np.savez(folder / ARRAYS, **arrays)  # type: ignore[arg-type]
    refuses(folder, "do not fit their digest")


def test_arrays_of_another_certificate_are_refused_by_the_digest(folder: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other")
    certificate_of("chain within radius").save(other)
    (other / ARRAYS).replace(folder / ARRAYS)
    refuses(folder, "do not fit their digest")


@pytest.mark.parametrize("digest", [None, 7, "", "0" * 64])
def test_a_missing_or_wrong_digest_is_refused(folder: Path, digest: Any) -> None:
    body = json.loads((folder / JSON).read_text())
    (folder / JSON).write_text(json.dumps({**body, "digest": digest}))
    refuses(folder, "digest")
    del body["digest"]
    (folder / JSON).write_text(json.dumps(body))
    refuses(folder, "digest")


def test_files_that_only_look_different_are_read(folder: Path) -> None:
    body, arrays = json.loads((folder / JSON).read_text()), parts_of(folder)[1]
    (folder / JSON).write_text(json.dumps(dict(reversed(body.items())), indent=7))
    np.savez(folder / ARRAYS, **dict(reversed(arrays.items())))  # type: ignore[arg-type]
    assert same(Certificate.load(folder), certificate_of("chain"))


# Content that no certificate has, with a digest that fits


def test_another_version_is_named(folder: Path) -> None:
    body, arrays = parts_of(folder)
    storage.write_sealed(folder, "certificate", {**body, "version": 1}, arrays)
    refuses(folder, f"has version 1 of its format; this axplore reads version {VERSION}")


def test_true_is_no_version(tmp_path: Path) -> None:
    storage.write_document(tmp_path / "document.json", {"format": "axplore test", "version": True})
    with pytest.raises(DamagedFileError, match="has version True of its format"):
        storage.read_document(tmp_path / "document.json", "axplore test", 1)


@pytest.mark.parametrize("delta", [5e-324, 1e-200, 0.0, 1.0])
def test_a_delta_that_cannot_be_divided_is_refused(folder: Path, delta: float) -> None:
    body, arrays = parts_of(folder)
    storage.write_sealed(folder, "certificate", {**body, "delta": delta}, arrays)
    refuses(folder, f"delta is {delta:.3g}, not a number with a decimal point from 1e-100")


def test_another_format_is_named(folder: Path) -> None:
    body, arrays = parts_of(folder)
    storage.write_sealed(folder, "certificate", {**body, "format": "axplore atlas"}, arrays)
    refuses(folder, "is not of the format 'axplore certificate'")


@pytest.mark.parametrize(
    "key", ["radius", "epsilon", "delta", "objective", "complete", "counts", "claims", "assumptions"]
)
def test_a_missing_or_odd_entry_is_named(folder: Path, key: str) -> None:
    body, arrays = parts_of(folder)
    odd: list[Any] = [None, {}, "text", [1.5], [[{"float": "nan"}]], -1.0, 0.0]
    for value in odd:
        storage.write_sealed(folder, "certificate", {**body, key: value}, arrays)
        refuses(folder, "is not a certificate")
    storage.write_sealed(folder, "certificate", {name: body[name] for name in body if name != key}, arrays)
    refuses(folder, key)


def test_every_array_is_needed_and_no_other_is_read(folder: Path) -> None:
    body, arrays = parts_of(folder)
    for name in arrays:
        storage.write_sealed(folder, "certificate", body, {kept: arrays[kept] for kept in arrays if kept != name})
        refuses(folder, name)
    storage.write_sealed(folder, "certificate", body, {**arrays, "more": np.zeros(3)})
    refuses(folder, "does not name the array 'more'")
    storage.write_sealed(folder, "certificate", {**body, "more": 3}, arrays)
    refuses(folder, "unknown field `more`")


def test_arrays_of_another_shape_or_type_are_refused(folder: Path) -> None:
    body, arrays = parts_of(folder)
    for name, array in arrays.items():
        if not len(array):
            continue
        shapes: list[npt.NDArray[Any]] = [array[:-1], array[None], np.float64(3.0) * np.ones(()), array[..., None]]
        for changed in (*shapes, array.astype(np.float64) if array.dtype.kind == "i" else array.astype(np.int64)):
            storage.write_sealed(folder, "certificate", body, {**arrays, name: changed})
            refuses(folder, "is not a certificate")


@pytest.mark.parametrize("name", ["claims.reachable.vectors.policy", "claims.near_optimal.vectors.upper"])
def test_indices_that_no_vector_has_are_refused(folder: Path, name: str) -> None:
    body, arrays = parts_of(folder)
    indices, sizes = arrays[f"{name}.indices"], arrays[f"{name}.sizes"]
    named = "do not describe a vector for each claim|hold vectors that no claim has"
    assert len(indices)
    for other in (np.full_like(indices, 1), indices[::-1].copy(), indices - 1, indices + 10**6):
        storage.write_sealed(folder, "certificate", body, {**arrays, f"{name}.indices": other})
        refuses(folder, named)
    for moved in (sizes + 1, np.roll(sizes, 1) - np.arange(len(sizes)), -sizes):
        storage.write_sealed(folder, "certificate", body, {**arrays, f"{name}.sizes": moved})
        refuses(folder, named)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts.row_offsets", 10**9),
        ("counts.row_offsets", -1),
        ("counts.successors", 12),
        ("counts.successors", -1),
        ("claims.reachable.goals", 0),
        ("claims.reachable.goals", 6),
        ("claims.reachable.vectors.policy.numbers", 2),
        ("claims.reachable.vectors.policy.numbers", -2),
        ("claims.too_far.goals", 5),
        ("claims.too_far.goals", 13),
        ("claims.near_optimal.goals", 6),
        ("claims.near_optimal.vectors.policy.numbers", 2),
    ],
)
def test_positions_and_actions_that_do_not_exist_are_refused(folder: Path, name: str, value: int) -> None:
    body, arrays = parts_of(folder)
    for place in (0, -1):
        changed = arrays[name].copy()
        changed.flat[place] = value
        storage.write_sealed(folder, "certificate", body, {**arrays, name: changed})
        refuses(folder, "is not a certificate")


@pytest.mark.parametrize(
    "text",
    [
        '{"format": NaN}',
        '{"format": 1e999}',
        '{"format": ' + "9" * 5000 + "}",
        '{"format": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '"\\ud800"',
    ],
    ids=["not a number", "infinite", "a very long number", "nested very deep", "no object"],
)
def test_json_that_cannot_be_trusted_is_refused(folder: Path, text: str) -> None:
    (folder / JSON).write_text(text)
    refuses(folder, JSON)


def test_an_entry_that_stands_twice_is_refused(folder: Path) -> None:
    text = (folder / JSON).read_text()
    (folder / JSON).write_text(text.replace('"radius": 4.5', '"radius": 9.5, "radius": 4.5'))
    refuses(folder, "'radius' appears twice")


# Archives


def archive_of(members: dict[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npy_of(array: npt.NDArray[Any], **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def test_pickled_objects_are_never_opened(folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(folder / "sprung"),))

    trap = np.array([Trap()], dtype=object)
    (folder / ARRAYS).write_bytes(archive_of({"counts.counts.npy": npy_of(trap, allow_pickle=True)}))
    refuses(folder, "is not a plain array")
    assert not (folder / "sprung").exists()


def test_an_array_that_says_it_is_larger_than_it_is_takes_no_memory(folder: Path) -> None:
    claimed, actual = b"(9999999999999,), }", b"(1,), }"
    array = npy_of(np.zeros(1)).replace(actual.ljust(len(claimed)), claimed)
    (folder / ARRAYS).write_bytes(archive_of({"counts.counts.npy": array}))
    refuses(folder, "says it has shape")


def test_an_archive_that_would_unpack_to_too_much_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_ARRAY_BYTES", 100_000)
    bomb = archive_of({"counts.counts.npy": b"\x00" * 200_000}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1000
    (folder / ARRAYS).write_bytes(bomb)
    refuses(folder, "would take 200,000, more than the 100,000 allowed")
    (folder / ARRAYS).write_bytes(b"\x00" * 200_000)
    refuses(folder, "more than 100000 are not read")


def test_a_text_that_is_too_long_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_SEALED_BYTES", 100)
    refuses(folder, "more than 100 are not read")


@pytest.mark.parametrize(
    "members",
    [
        {"a.npy": b""},
        {"a.npy": b"\x93NUMPY\x01\x00"},
        {"a.npy": b"\x93NUMPY\x09\x00" + b"\x00" * 100},
        {"a.npy": b"\x93NUMPY\x01\x00\x10\x00" + b"{" * 16},
        {"a.npy": npy_of(np.zeros(3, dtype=np.complex128))},
        {"a.npy": npy_of(np.zeros(3, dtype=">f8"))},
        {"a.npy": npy_of(np.zeros((3, 2), order="F"))},
        {"a.npy": npy_of(np.zeros(3)) + b"more"},
    ],
    ids=["empty", "cut", "unknown version", "no header", "complex", "other byte order", "by columns", "too long"],
)
def test_what_is_no_plain_array_is_refused(folder: Path, members: dict[str, bytes]) -> None:
    (folder / ARRAYS).write_bytes(archive_of(members))
    refuses(folder, ARRAYS)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress_are_refused(folder: Path, compression: int) -> None:
    (folder / ARRAYS).write_bytes(archive_of({"a.npy": npy_of(np.zeros(3))}, compression=compression))
    refuses(folder, "unknown way")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_stands_twice_is_refused(folder: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.npy", npy_of(np.zeros(3)))
        archive.writestr("a.npy", npy_of(np.ones(3)))
    (folder / ARRAYS).write_bytes(buffer.getvalue())
    refuses(folder, "appears twice")


# The same holds for certificates that never were a file


def test_a_certificate_whose_parts_do_not_fit_cannot_be_made() -> None:
    certificate = certificate_of("chain")
    counts = certificate.counts
    changes: list[dict[str, Any]] = [
        {"radius": 0.5},
        {"radius": float("nan")},
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"counts": edited(counts, order=counts.order[:-1])},
        {"counts": edited(counts, order=Labels(), actions=(), states=np.zeros(0, dtype=np.int64))},
        {"counts": edited(counts, actions=counts.actions[:-1])},
        {"counts": edited(counts, states=counts.states[::-1].copy())},
        {"counts": edited(counts, counts=counts.counts[:-1])},
        {"counts": edited(counts, counts=counts.counts.astype(np.float64))},
        {"reachable": (with_vectors(certificate.of(Reachable)[0], upper=np.zeros(3)),)},
    ]
    for change in changes:
        with pytest.raises(InvalidInputError):
            edited(certificate, **change)
