"""The folder of a run: in use by one process, which writes to it, or only read.

| file                  | what it holds                                            |
|-----------------------|----------------------------------------------------------|
| `run.json`            | how the run began                                        |
| `checkpoint-N.*`      | where it can resume                                      |
| `journal-N`           | what the world answered since                            |
| `batches`             | with workers: what came of the call in progress          |
| `events.jsonl`        | what happened, for people                                |
| `atlas.*`, `ended.json` | what the run found, and that it has ended              |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from axplore.atlas import Atlas
from axplore.atlas.construction import atlas_of, with_findings
from axplore.budget import Budget
from axplore.errors import AxploreError, StorageError
from axplore.explorers.base import Explorer, ExplorerState
from axplore.labels import Json, finite
from axplore.records.codec import pack
from axplore.records.findings import Finding
from axplore.records.run import StopReason
from axplore.runs.checkpoints import (
    Checkpoint,
    decode_state,
    encode_state,
    journal_path,
    load_checkpoint,
    remove_others,
    save_checkpoint,
)
from axplore.runs.events import EventLog
from axplore.runs.history import ANSWERED, FINDING, faults_in, findings_since
from axplore.runs.journal import Call, Journal, header_of, read_journal
from axplore.runs.manifest import NAME as MANIFEST
from axplore.runs.manifest import RunManifest, described, explorer_from_description, load_manifest, save_manifest
from axplore.storage import Lock, new_folder, read_document, remove_unfinished, storage_errors, write_document
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Order, World, WorldSnapshot, snapshot_of
from axplore.worlds.situations import memory_in

if TYPE_CHECKING:
    from axplore.atlas.questions import Checked
    from axplore.certificate.promise import PropertyBounds
    from axplore.runs.batch_journal import BatchJournal

ATLAS: Final = "atlas.json"
ENDED: Final = "ended.json"
ENDED_FORMAT: Final = "axplore end of a run"
ENDED_VERSION: Final = 1


class RunFolder:
    """A run folder that is locked by this process. Close it, or use it as a context manager."""

    def __init__(self, path: Path, lock: Lock, manifest: RunManifest, checkpoint: Checkpoint) -> None:
        """Opens the event log of a folder that is locked; see `begin_run` and `open_run`.

        Args:
            path: the path of the folder.
            lock: the lock on it.
            manifest: how the run began.
            checkpoint: the last checkpoint.
        """
        self._path = path
        self._lock = lock
        self._manifest = manifest
        self._checkpoint = checkpoint
        self._events = EventLog(path)
        self._findings = _findings_by_now(path, checkpoint)
        self._journal: Journal | None = None
        self._lengths = [0]
        self._batches: BatchJournal | None = None

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return self._path

    @property
    def manifest(self) -> RunManifest:
        """How the run began."""
        return self._manifest

    @property
    def checkpoint(self) -> Checkpoint:
        """The last checkpoint."""
        return self._checkpoint

    @property
    def events(self) -> EventLog:
        """The log of what happens."""
        return self._events

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found of the system so far, under the labels of the last checkpoint."""
        return self._findings

    def keep_finding(self, finding: Finding) -> None:
        """Writes a finding to the disk, which stays for as long as the labels do."""
        self._events.note(FINDING, checkpoint=self._checkpoint.number, message=str(finding), record=pack(finding)[0])
        self._events.sync()
        self._findings = (*self._findings, finding)

    def note_answer(self, answer: Checked | PropertyBounds, steps: int) -> None:
        """Writes the bounds of a property to the log, with the steps that they rest on."""
        bounds = {"lower": finite(answer.lower), "upper": finite(answer.upper)}
        self._events.note_progress(ANSWERED, property=answer.text, **bounds, steps=steps)

    @property
    def stop_name(self) -> str | None:
        """Why the run has ended; None if it was killed."""
        path = self._path / ENDED
        return read_document(path, ENDED_FORMAT, ENDED_VERSION).get("stop") if path.exists() else None

    def limit(self, max_steps: int | None) -> None:
        """Sets another step limit. None removes a limit that has ended the run, and keeps any other."""
        if max_steps is not None or self.stop_name == StopReason.STEP_LIMIT.name:
            self._checkpoint = replace(self._checkpoint, max_steps=max_steps)
            save_checkpoint(self._checkpoint, self._manifest.run, self._path)

    def open_journal(self) -> list[Call]:
        """Opens the journal of the last checkpoint for more calls, and returns those that it holds."""
        path, header = self._journal_file()
        past, self._lengths = read_journal(path, header)
        self._journal = Journal(path, header, self._lengths[-1])
        return past

    def append(self, call: Call) -> None:
        """Writes a call to the journal."""
        assert self._journal is not None
        self._journal.append(call)

    def drop(self, n_dropped: int) -> None:
        """Drops the last of the calls that `open_journal` returned."""
        assert self._journal is not None
        self._journal.cut(self._lengths[-1 - n_dropped])
        self._events.note("dropped", calls=n_dropped)

    def open_batches(self) -> BatchJournal:
        """Opens the journal of the batches of one call."""
        from axplore.runs.batch_journal import BatchJournal

        self._batches = BatchJournal(self._path, self._manifest.run)
        return self._batches

    def mark_open(self) -> None:
        """Removes the mark of a run that has ended."""
        with storage_errors(f"{self._path / ENDED} cannot be removed"):
            (self._path / ENDED).unlink(missing_ok=True)

    def check_place(self) -> None:
        """Refuses to write if the folder was moved or replaced."""
        self._lock.check_place()

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint and begins its journal; the ones before are removed."""
        self.check_place()
        self._close_journal()
        save_checkpoint(checkpoint, self._manifest.run, self._path)
        self._checkpoint, self._findings = checkpoint, checkpoint.findings
        self._journal = Journal(*self._journal_file(), 0)

    def end(self, atlas: Atlas, *, is_whole: bool) -> None:
        """Writes the atlas and marks the run as ended.

        Args:
            atlas: the atlas.
            is_whole: whether the last checkpoint holds everything, so that stored batches are no longer needed.
        """
        self.check_place()
        with storage_errors(f"the atlas in {self._path} cannot be replaced"):
            # The files of an atlas are replaced one by one; without this one there is no atlas.
            (self._path / ATLAS).unlink(missing_ok=True)
        atlas.save(self._path)
        write_document(self._path / ENDED, {"format": ENDED_FORMAT, "version": ENDED_VERSION, "stop": atlas.stop.name})
        if self._batches is not None and is_whole:
            self._batches.remove()
            self._batches = None

    def close(self) -> None:
        """Closes the files and releases the lock."""
        self._close_journal()
        if self._batches is not None:
            self._batches.close()
            self._batches = None
        self._events.close()
        self._lock.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            with suppress(AxploreError):  # the error being raised says more
                self._events.note("failed", error=f"{kind.__name__}: {error}")
        self.close()

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _journal_file(self) -> tuple[Path, dict[str, Any]]:
        number = self._checkpoint.number
        return journal_path(self._path, number), header_of(self._manifest.run, number)


def begin_run(
    path: Path,
    manifest: RunManifest,
    explorer: Explorer[Any],
    state: ExplorerState,
    world: World,
    budget: Budget,
    findings: tuple[Finding, ...],
) -> RunFolder:
    """Begins a run in a folder, which must be empty or not exist, with the explorer in its first state."""
    checkpoint = Checkpoint(
        number=0,
        explorer=described(explorer),
        max_steps=budget.max_steps,
        examining=budget.examining,
        playing=budget.playing,
        in_vain=budget.in_vain,
        narrowed=False,
        state=encode_state(state, explorer),
        world=snapshot_of(world),
        findings=findings,
    )
    with new_folder(path):
        lock = Lock(path)
        try:
            save_checkpoint(checkpoint, manifest.run, path)
            # Written last: a folder is a run once it holds this file.
            save_manifest(manifest, path)
            return RunFolder(path, lock, manifest, checkpoint)
        except BaseException:
            lock.close()
            raise


def open_run(path: Path) -> RunFolder:
    """Opens a run that was interrupted or has ended; refuses one that is in use by another process, or damaged."""
    manifest = load_manifest(path)
    lock = Lock(path)
    try:
        with storage_errors(f"the folder {path} cannot be used"):
            remove_unfinished(path)
            checkpoint = load_checkpoint(manifest.run, path)
            remove_others(path, checkpoint.number)
        return RunFolder(path, lock, manifest, checkpoint)
    except BaseException:
        lock.close()
        raise


def keep_findings(path: Path, findings: tuple[Finding, ...]) -> Atlas:
    """Keeps in a run that has ended what was found of its system since, and returns its atlas with that.

    Raises:
        StorageError: the folder holds no run, or another process uses it.
    """
    with open_run(path) as folder:
        for finding in findings:
            if finding not in folder.findings:
                folder.keep_finding(finding)
        atlas = with_findings(Atlas.load(path), findings)
        folder.end(atlas, is_whole=False)
        return atlas


def keep_answer(path: Path, answer: Checked) -> Atlas:
    """Keeps the answer to a property in the certificate of an atlas, and returns the atlas with it.

    Raises:
        StorageError: another process uses the run, or nothing can be written.
    """
    if not (path / MANIFEST).is_file():
        atlas = Atlas.load(path).keep(answer)
        atlas.save(path)
        return atlas
    with open_run(path) as folder:
        atlas = Atlas.load(path).keep(answer)
        folder.end(atlas, is_whole=False)
        folder.note_answer(answer, atlas.steps)
        return atlas


def answered_before(path: Path, atlas: Atlas) -> Atlas:
    """Returns the new atlas of a run with answers to the properties that its last one answered."""
    if not (path / ATLAS).is_file():
        return atlas
    from axplore.atlas.questions import answered_again

    with suppress(AxploreError):  # the last one is about to be replaced, whatever is wrong with it
        return answered_again(Atlas.load(path), atlas)
    return atlas


def version_of(folder: Path) -> str:
    """Returns a text that changes whenever `atlas_now` would return another atlas; empty if there is no run yet."""
    marks = sorted(
        f"{path.name} {path.stat().st_mtime_ns}"
        for pattern in ("checkpoint-*.json", ENDED, ATLAS)
        for path in folder.glob(pattern)
    )
    return "; ".join(marks)


def has_ended(folder: Path) -> bool:
    """Returns whether the run has an atlas and is no longer running."""
    return (folder / ATLAS).is_file() and ((folder / ENDED).is_file() or not any(folder.glob("checkpoint-*.json")))


def atlas_now(folder: Path) -> Atlas:
    """Returns the atlas of a run that has ended, or else what it knew at its last checkpoint."""
    if has_ended(folder):
        return Atlas.load(folder)
    manifest = load_manifest(folder)
    checkpoint = load_checkpoint(manifest.run, folder)
    explorer = explorer_from_description(manifest, checkpoint.explorer, None, assumed_anew=True)
    world = _MetWorld(checkpoint.world)
    state = replace(decode_state(checkpoint.state, explorer, checkpoint.world), stop=StopReason.IN_PROGRESS)
    exploration = explorer.finish(state, world)
    return atlas_of(
        exploration,
        world,
        world_name=manifest.world,
        explorer_name=manifest.explorer,
        steps_before=manifest.steps_before,
        findings=_findings_by_now(folder, checkpoint),
        faults=faults_in(folder),
    )


def _findings_by_now(folder: Path, checkpoint: Checkpoint) -> tuple[Finding, ...]:
    """What was found of the system by a checkpoint, and since."""
    return (*checkpoint.findings, *findings_since(folder, checkpoint.number))


@dataclass(frozen=True)
class _MetWorld(World):
    """The states that a world has shown by a checkpoint. It carries out no orders."""

    at: WorldSnapshot

    @property
    def states(self) -> Sequence[State]:
        return self.at.labels

    @property
    def steps(self) -> int:
        return self.at.steps

    @property
    def labelling(self) -> Json:
        return self.at.labelling

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        memory = memory_in(self.at.labelling)
        return {} if memory is None else {name: labels.__contains__ for name, labels in memory.names.items()}

    def actions_of(self, state: int) -> tuple[Action, ...]:
        return self.at.actions[state]

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        _refuse(orders)


def _refuse(orders: Sequence[Order]) -> NoReturn:
    raise StorageError(f"a run that is only read cannot carry out these {len(orders)} orders")
