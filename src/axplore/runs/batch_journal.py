"""The batches of the call in progress, in a file: see `BatchJournal`. Only runs with workers have one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from axplore.runs.journal import VERSION, Call, Journal, checksum_of, read_journal
from axplore.workers.batches import BatchOutcome, Key
from axplore.worlds.contract import Order

FORMAT: Final = "axplore batches"

NAME: Final = "batches"
"""The file that stores the batches of the call in progress."""


class BatchJournal:
    """The `BatchStore` of a `DistributedWorld` as a file, so that a kill loses only the batches in progress.

    The file is a journal in which each batch is stored as a call of its own: the checksum covers the orders and the
    number of the call, `steps` is the index of the order, and `position` that of the batch. All are dropped when the
    next call begins.
    """

    def __init__(self, folder: Path, run: str) -> None:
        """Reads what an earlier process has left, and appends to it.

        Args:
            folder: the folder of the run.
            run: the name of the run.
        """
        self._path = folder / NAME
        header = {"format": FORMAT, "version": VERSION, "run": run}
        records, lengths = read_journal(self._path, header)
        self._journal = Journal(self._path, header, lengths[-1])
        self._empty = lengths[0] or self._journal.length
        self._checksum = records[-1].checksum if records else None
        self._outcomes = {
            (record.steps, record.position): BatchOutcome(
                record.answers[0], record.discovered, record.faults, record.was_cut
            )
            for record in records
            if record.checksum == self._checksum
        }

    def begin(self, call: int, orders: Sequence[Order]) -> None:
        """Drops the outcomes of other calls."""
        checksum = zlib.crc32(str(call).encode(), checksum_of(orders))
        if checksum != self._checksum:
            self._checksum = checksum
            self._outcomes.clear()
            self._journal.cut(self._empty)

    def find(self, key: Key) -> BatchOutcome | None:
        """Returns the outcome of a batch of this call, if it is known."""
        return self._outcomes.get(key[1:])

    def keep(self, key: Key, outcome: BatchOutcome) -> None:
        """Stores the outcome of a batch of this call."""
        assert self._checksum is not None
        _, order, batch = key
        call = Call(
            self._checksum, (outcome.answer,), outcome.discovered, order, batch, outcome.faults, outcome.was_cut
        )
        self._journal.append(call)

    def close(self) -> None:
        """Closes the file."""
        self._journal.close()

    def remove(self) -> None:
        """Removes the file of a run that has ended."""
        self.close()
        self._path.unlink(missing_ok=True)
