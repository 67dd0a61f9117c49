"""The loop of all studies: makes trials in parallel, and keeps each result as soon as it is there.

A study is data: trials, each with an address that determines it, and a summary of their records. Records are lines of a
file. However the loop was interrupted, called again it makes only the trials that are missing.
"""

from __future__ import annotations

import fcntl
import inspect
import json
import logging
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from axplore.errors import DamagedFileError, InvalidSettingError, StorageError, UnknownNameError
from axplore.storage import storage_errors, write_all
from axplore.workers.engines import engine_for
from axplore.workers.pool import results_of
from axplore_studies.outputs import Output

Record: TypeAlias = dict[str, Any]
"""What is kept of a trial, as JSON values: its address and what came of it."""

OnDone: TypeAlias = Callable[[int, int], None]
"""Called with the finished and the total number of trials."""

COMMANDS_FILE: Final = "commands.jsonl"
"""The file that keeps the command of each result in a folder."""


@dataclass(frozen=True)
class Trial:
    """One trial of a study.

    Attributes:
        address: JSON values that tell it from all others; everything that it draws follows from them.
        work: makes it, in any process, and returns what came of it as JSON values.
        weight: how long it may take, compared with the others; the longest begin first.
    """

    address: Mapping[str, Any]
    work: Callable[[], Record]
    weight: float = 0.0


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes:
        name: its name on the command line.
        description: what it asks, in a line.
        trials: returns the trials, all with the same fields in their addresses. Its parameters are the settings of the
            study; the first is the number that scales it, if it can be scaled.
        summary: makes the result from the records, which are in the order of the trials.
        counted: what the study is scaled by; empty if it cannot be scaled.
        records_file: the name of the file of records, which studies may share; by default that of the study.
        one_at_a_time: whether trials start processes of their own, so that they are made one after the other.
    """

    name: str
    description: str
    trials: Callable[..., Sequence[Trial]]
    summary: Callable[[Sequence[Record]], Output]
    counted: str = ""
    records_file: str = ""
    one_at_a_time: bool = False

    @property
    def records_name(self) -> str:
        """The name of the file of records."""
        return self.records_file or f"{self.name}.jsonl"

    def planned(self, number: int | None = None, settings: Mapping[str, Any] | None = None) -> Sequence[Trial]:
        """Returns the trials.

        Args:
            number: the number that scales the study; the usual one by default.
            settings: settings that differ from the usual ones, by name.
        """
        names = list(inspect.signature(self.trials).parameters)
        scale = names.pop(0) if self.counted else ""
        for name in settings or ():
            if name not in names:
                raise UnknownNameError.of(f"setting of {self.name}", name, names)
        if number is None:
            return self.trials(**(settings or {}))
        if not scale:
            raise InvalidSettingError(f"{self.name} has a fixed number of trials; leave out --trials")
        if number < 1:
            raise InvalidSettingError(f"the number of {self.counted} is {number}; there must be at least one")
        return self.trials(**{scale: number}, **(settings or {}))

    def command(self, number: int | None = None, settings: Mapping[str, Any] | None = None) -> str:
        """Returns the command that makes the study."""
        scaled = [] if number is None else ["--trials", str(number)]
        set_to = [part for name, value in (settings or {}).items() for part in ("--set", f"{name}={json.dumps(value)}")]
        return shlex.join(["python", "-m", "axplore_studies", self.name, *scaled, *set_to])


def run_study(
    study: Study,
    out: Path,
    *,
    number: int | None = None,
    settings: Mapping[str, Any] | None = None,
    workers: int | None = None,
    ray: str | None = None,
    on_done: OnDone | None = None,
) -> Output:
    """Makes the trials of a study that are not in its file yet, saves the result, and returns it.

    Args:
        study: the study.
        out: the folder for the records and the result.
        number: the number that scales the study; the usual one by default.
        settings: settings that differ from the usual ones, by name.
        workers: number of worker processes, each with one trial at a time; None for no workers. Results do not depend
            on it.
        ray: the Ray cluster that runs the workers: `auto` or an address.
        on_done: called with the finished and the total number of trials.
    """
    trials = study.planned(number, settings)
    if study.one_at_a_time:
        workers, ray = None, None
    path = out / study.records_name
    result = study.summary(records_of(trials, path, workers=workers, ray=ray, on_done=on_done))
    result.save(out)
    _note_command(out, study.name, study.command(number, settings))
    return result


def records_of(
    trials: Sequence[Trial],
    path: Path,
    *,
    workers: int | None = None,
    ray: str | None = None,
    on_done: OnDone | None = None,
) -> list[Record]:
    """Makes the trials that are not in a file yet and returns the records of all, in the order of the trials.

    The arguments are those of `run_study`. The file may hold records of other trials, which stay.
    """
    wanted = {_key(trial.address): trial for trial in trials}
    if len(wanted) < len(trials):
        raise InvalidSettingError("two trials have the same address")
    fields = tuple(trials[0].address)
    report = on_done or (lambda _, __: None)
    with engine_for(workers, ray) as engine, RecordFile.open(path) as file:
        found = {key: record for record in file.records() if (key := _key_of(record, fields)) in wanted}
        missing = [trial for key, trial in wanted.items() if key not in found]
        missing.sort(key=lambda trial: -trial.weight)
        report(len(found), len(wanted))
        for record in results_of(_made, missing, engine):
            file.append(record)
            found[_key_of(record, fields)] = record
            report(len(found), len(wanted))
        if missing:  # the order does not depend on which worker was faster
            file.replace(sorted(file.records(), key=lambda record: _place_of(record, fields)))
    return [found[key] for key in wanted]


def forget(trials: Sequence[Trial], path: Path) -> None:
    """Removes the records of trials from a file, so that they are made again."""
    if not path.exists():
        return
    unwanted, fields = {_key(trial.address) for trial in trials}, tuple(trials[0].address)
    with RecordFile.open(path) as file:
        file.replace([record for record in file.records() if _key_of(record, fields) not in unwanted])


def _made(trial: Trial) -> Record:
    logger = logging.getLogger("axplore")
    level = logger.level
    logger.setLevel(logging.ERROR)  # studies count what explorations would warn of
    try:
        made = trial.work()
    finally:
        logger.setLevel(level)
    record: Record = json.loads(json.dumps({**trial.address, **made}))  # as it will be read: tuples become lists
    return record


def _key(address: Mapping[str, Any]) -> str:
    return json.dumps(address, sort_keys=True)


def _key_of(record: Record, fields: Sequence[str]) -> str:
    return _key({name: record[name] for name in fields if name in record})


def _place_of(record: Record, fields: Sequence[str]) -> list[tuple[bool, float, str]]:
    """Returns where a record stands in its file: numbers are compared as numbers, everything else as text."""
    values = [record.get(name) for name in fields]
    return [
        (True, value, "") if isinstance(value, int | float) else (False, 0.0, json.dumps(value, sort_keys=True))
        for value in values
    ]


class RecordFile:
    """A file of records, one in a line, that one process at a time adds to."""

    def __init__(self, path: Path, *, waits: bool = False) -> None:
        """Opens or makes the file.

        Args:
            path: where it is.
            waits: whether to wait while another process adds to it, instead of raising an error.
        """
        self._path = path
        with storage_errors(f"the records in {path} cannot be used"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = self._opened(waits)
            content = path.read_bytes()
            whole = content.rfind(b"\n") + 1  # a process that was killed may leave a part of a line
            if whole < len(content):
                os.ftruncate(self._descriptor, whole)

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, waits: bool = False) -> Iterator[RecordFile]:
        """Gives the file, and closes it at the end of the context."""
        file = cls(path, waits=waits)
        try:
            yield file
        finally:
            os.close(file._descriptor)

    def _opened(self, waits: bool) -> int:
        """Returns a descriptor of the file, which is locked."""
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
                if os.path.samestat(os.fstat(descriptor), self._path.stat()):  # else it was replaced meanwhile
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                raise StorageError(
                    f"another process adds to {self._path}; wait until it has ended, or give another folder"
                ) from None
            os.close(descriptor)

    def records(self) -> list[Record]:
        """Returns the records."""
        return read_records(self._path)

    def append(self, record: Record) -> None:
        """Adds a record, and returns when it is safe."""
        with storage_errors(f"the records in {self._path} cannot be written"):
            write_all(self._descriptor, _as_lines([record]))
            os.fsync(self._descriptor)

    def replace(self, records: Sequence[Record]) -> None:
        """Replaces all records at once."""
        partial = self._path.with_name(f"{self._path.name}.partial")
        with storage_errors(f"the records in {self._path} cannot be written"):
            descriptor = os.open(partial, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            write_all(descriptor, _as_lines(records))
            os.fsync(descriptor)
            partial.replace(self._path)
            os.close(self._descriptor)
            self._descriptor = descriptor


def read_records(path: Path) -> list[Record]:
    """Returns the records in a file."""
    records: list[Record] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            records.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            raise DamagedFileError(f"line {number} of {path} is not a record; remove it") from None
    return records


def _as_lines(records: Sequence[Record]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def _note_command(out: Path, name: str, command: str) -> None:
    """Keeps the command that made a result in a file beside it."""
    with RecordFile.open(out / COMMANDS_FILE, waits=True) as file:
        others = [record for record in file.records() if record["study"] != name]
        file.replace(sorted([*others, {"study": name, "command": command}], key=lambda record: str(record["study"])))
