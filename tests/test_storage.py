from __future__ import annotations

import io
import os
import shutil
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import AxploreError, storage
from axplore.atlas import Atlas
from axplore.errors import DamagedFileError, StorageError, WorldError
from axplore.report import write_report
from axplore.storage import Lock, open_regular, parsed_json, read_file, read_sealed, write_sealed
from axplore.worlds import orders

BODY = {"format": "f", "version": 1}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was cut short, with an atlas beside its checkpoint and journal."""
    folder = tmp_path_factory.mktemp("storage") / "run"
    axplore.explore("two-branch", radius=4, epsilon=0.5, max_steps=100, run=folder)
    return folder


def replaced(folder: Path, name: str, how: Callable[[Path, Path], None]) -> tuple[Path, bytes]:
    """A file elsewhere with what a file of the folder held, and its content; `how` puts something in its place."""
    elsewhere = folder.parent / f"victim of {name}"
    place = folder / name
    elsewhere.write_bytes(place.read_bytes())
    place.unlink()
    how(place, elsewhere)
    return elsewhere, elsewhere.read_bytes()


def link(place: Path, target: Path) -> None:
    place.symlink_to(target)


def second_name(place: Path, target: Path) -> None:
    place.hardlink_to(target)


def pipe(place: Path, _: Path) -> None:
    os.mkfifo(place)


WRITTEN = ("lock", "events.jsonl", "journal-1")
READ = ("run.json", "checkpoint-1.json", "checkpoint-1.npz")
ANSWER = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")


# -------------------------------------------------------------------------------------------------- files of strangers


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, how) for name in WRITTEN for how in (link, second_name, pipe)),
        *((name, how) for name in READ for how in (link, pipe)),
    ],
)
def test_resuming_follows_no_link_and_waits_for_no_pipe(
    interrupted: Path, tmp_path: Path, name: str, how: Callable[[Path, Path], None]
) -> None:
    folder = Path(shutil.copytree(interrupted, tmp_path / "run"))
    elsewhere, content = replaced(folder, name, how)
    with pytest.raises(
        AxploreError, match=r"symbolic link|not a regular file|second name|holds no run\.json|No such device"
    ):
        axplore.resume(folder)
    assert elsewhere.read_bytes() == content


@pytest.mark.parametrize("name", ANSWER)
def test_an_atlas_is_read_through_no_link(interrupted: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(interrupted, tmp_path / "run"))
    replaced(folder, name, link)
    with pytest.raises(DamagedFileError, match=f"{name} cannot be read: it is a symbolic link, which is not followed"):
        axplore.verify(folder)


def test_what_is_written_replaces_a_link_and_not_what_it_points_to(interrupted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(interrupted, tmp_path / "run"))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / "report.html").symlink_to(victim)
    (folder / "ended.json").unlink()
    write_report(folder)
    assert victim.read_text() == "precious"
    assert not (folder / "report.html").is_symlink()


def test_a_run_is_found_by_a_link_to_its_folder(interrupted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(interrupted, tmp_path / "run"))
    (tmp_path / "latest").symlink_to(folder)
    assert axplore.resume(tmp_path / "latest", max_steps=0).steps >= 100


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    with pytest.raises(OSError, match="it has 1099511627776 bytes; more than 1000 are not read"):
        read_file(path, 1000)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it is not a regular file"):
        open_regular(tmp_path, os.O_RDONLY)


# ----------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": 1, "a": 2}', b"\xff", b"{"])
def test_text_that_is_no_json_is_refused_however_deep(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed_json(text)


def test_arrays_that_would_expand_too_far_are_refused_before_they_take_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sealed(tmp_path, "a", BODY, {"zeros": np.zeros(2**20)})
    assert (tmp_path / "a.npz").stat().st_size < 10_000
    assert len(read_sealed(tmp_path, "a", "f", 1)[1]["zeros"]) == 2**20
    monkeypatch.setattr(storage, "ALWAYS_EXPANDED", 2**16)
    monkeypatch.setattr(storage, "_read_array", pytest.fail)
    with pytest.raises(DamagedFileError, match=r"bytes would take 8,388,736, more than the [0-9,]+ allowed"):
        read_sealed(tmp_path, "a", "f", 1)


def test_arrays_that_compress_too_well_are_written_so_that_they_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "ALWAYS_EXPANDED", 2**16)
    write_sealed(tmp_path, "a", BODY, {"zeros": np.zeros(2**20)})
    assert not read_sealed(tmp_path, "a", "f", 1)[1]["zeros"].any()


@pytest.mark.parametrize("shape", ["(3,)", "(99999999999999,)", "(3, 99999999999999)"])
def test_an_array_whose_shape_does_not_fit_its_size_is_refused_before_it_takes_memory(
    tmp_path: Path, shape: str
) -> None:
    write_sealed(tmp_path, "a", BODY, {"x": np.arange(2)})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        content = archive.read("x.npy")
    header = content[10:128].replace(b"(2,)", shape.encode())[:117].rstrip().ljust(117) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", content[:10] + header + content[128:])
    (tmp_path / "a.npz").write_bytes(buffer.getvalue())
    with pytest.raises(DamagedFileError, match=r"x\.npy says it has shape .* but holds 16 bytes"):
        read_sealed(tmp_path, "a", "f", 1)


def test_an_array_that_holds_less_than_the_archive_says_is_refused(tmp_path: Path) -> None:
    write_sealed(tmp_path, "a", BODY, {"x": np.arange(1000)})
    path = tmp_path / "a.npz"
    content = path.read_bytes()
    path.write_bytes(content.replace((128 + 8000).to_bytes(4, "little"), (128 + 8008).to_bytes(4, "little")))
    with pytest.raises(DamagedFileError):
        read_sealed(tmp_path, "a", "f", 1)


# ------------------------------------------------------------------------------------------------------------- the lock


def test_a_second_lock_is_refused_with_the_number_of_the_process(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(StorageError, match=f"is in use by process {os.getpid()}$"):
        Lock(tmp_path)
    lock.close()
    Lock(tmp_path).close()


def test_a_lock_file_of_a_stranger_is_not_quoted(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    (tmp_path / "lock").write_text("\x1b[2J evil")
    with pytest.raises(StorageError, match=r"is in use by another process$"):
        Lock(tmp_path)
    lock.close()


def test_a_copy_of_the_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:  # a system that forks, and lives on
        os.write(tell, b"!")
        signal.pause()
        os._exit(0)
    try:
        os.read(ready, 1)
        with pytest.raises(StorageError, match="in use"):
            Lock(tmp_path)
        lock.close()
        Lock(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(tell)


# -------------------------------------------------------------------------------------------------- a folder that moves


@pytest.mark.parametrize("replaced_by", ["nothing", "another folder"])
def test_a_folder_that_is_moved_during_a_run_is_not_made_a_second_time(tmp_path: Path, replaced_by: str) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved"

    def move(_: object) -> None:
        if not moved.exists():
            folder.rename(moved)
            if replaced_by == "another folder":
                folder.mkdir()

    with pytest.raises(StorageError, match="was moved or replaced while its run was in progress"):
        axplore.explore("two-branch", radius=4, epsilon=0.5, max_steps=100, run=folder, on_round=move)
    assert not folder.exists() or not list(folder.iterdir())
    assert axplore.resume(moved).steps >= 100


def test_a_folder_in_use_can_be_renamed_and_back(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.check_place()
    elsewhere = tmp_path.with_name("elsewhere")
    tmp_path.rename(elsewhere)
    with pytest.raises(StorageError, match="moved"):
        lock.check_place()
    elsewhere.rename(tmp_path)
    lock.check_place()
    lock.close()


def test_what_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_JSON_BYTES", "MAX_SEALED_BYTES"):
        monkeypatch.setattr(storage, limit, 1_000)
    monkeypatch.setattr(storage, "MAX_ARRAY_BYTES", 8_000)
    much = {**BODY, "text": "x" * 1_000}
    refused = r"is not written: it would take [\d,]+ bytes, and more than [\d,]+ are not read"
    with pytest.raises(StorageError, match=refused):
        write_sealed(tmp_path, "atlas", much, {})
    with pytest.raises(StorageError, match=refused):
        write_sealed(tmp_path, "atlas", BODY, {"zeros": np.zeros(1_001)})
    with pytest.raises(StorageError, match=refused):
        storage.write_document(tmp_path / "run.json", much)
    assert not list(tmp_path.iterdir())
    write_sealed(tmp_path, "atlas", {**BODY, "text": "x" * 800}, {"zeros": np.zeros(900)})
    read_sealed(tmp_path, "atlas", "f", 1)


class Wordy:
    """Ever new labels of a hundred characters."""

    actions = ("next",)

    def reset(self) -> str:
        self._place = 0
        return f"{0:0100}"

    def step(self, _: str) -> str:
        self._place += 1
        return f"{self._place:0100}"


@pytest.mark.parametrize("assume", ["deterministic", None])
def test_labels_that_fill_a_file_end_a_run_that_can_still_be_read(
    assume: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "MAX_STATES_BYTES", 1_000)
    settings: dict[str, Any] = {"radius": 1_000, "epsilon": 100, "max_steps": 100_000, "doctor": False}
    with pytest.raises(WorldError, match=r"the labels of \d+ states .*1,000 bytes.*key=") as ended:
        axplore.explore(Wordy, assume=assume, run=tmp_path, **settings)
    assert isinstance(ended.value.atlas, Atlas)
    assert Atlas.load(tmp_path).seen == ended.value.atlas.seen
    write_report(tmp_path)
    with pytest.raises(WorldError, match="the labels of"):
        axplore.resume(tmp_path, Wordy)


def test_what_a_system_says_is_kept_up_to_a_length() -> None:
    class Verbose(Wordy):
        def step(self, _: str) -> str:
            raise ValueError("no" * 10**6)

    with pytest.raises(WorldError) as ended:
        axplore.explore(Verbose(), radius=3, epsilon=1)
    assert isinstance(ended.value.atlas, Atlas)
    assert max(len(str(record)) for record in (*ended.value.atlas.faults, *ended.value.atlas.findings)) < 5_000


def test_json_of_too_many_values_is_neither_parsed_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "many.json").write_bytes(b'{"x": [' + b"[]," * (storage.MAX_JSON_VALUES // 2) + b"[]]}")
    with pytest.raises(DamagedFileError, match=r"values, and more than 4,194,304 are not read"):
        storage.read_json(tmp_path / "many.json")
    monkeypatch.setattr(storage, "MAX_JSON_VALUES", 1_000)
    with pytest.raises(StorageError, match="more than 1,000 are not read"):
        storage.write_document(tmp_path / "other.json", {"x": [0] * 1_001})
    assert not (tmp_path / "other.json").exists()
