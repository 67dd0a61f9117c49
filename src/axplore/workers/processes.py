"""Workers that are processes on this machine.

Each runs this module and communicates through a pair of sockets. It ends when the other end is closed, and so with the
process that started it, however that ends. What a system prints goes to standard error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

import cloudpickle

from axplore.addresses import COMMAND, current_command
from axplore.workers.engines import (
    SINGLE_THREADED,
    Answering,
    Reply,
    Server,
    WorkerLostError,
    check_n_workers,
)
from axplore.worlds.child_process import SECONDS_TO_END, GuardedProcess, how_it_ended, interpreter_environment


class Processes:
    """An engine whose workers are processes on this machine."""

    def __init__(self, n_workers: int) -> None:
        check_n_workers(n_workers)
        self._n_workers = n_workers
        self._started: list[ProcessWorker] = []

    @property
    def n_workers(self) -> int:
        """The number of processes."""
        return self._n_workers

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [worker.pid for worker in self._started if worker.is_running]

    def start(self, make_server: Callable[[], Server]) -> ProcessWorker:
        """Starts a process."""
        worker = ProcessWorker(make_server)
        self._started = [*(other for other in self._started if other.is_running), worker]
        return worker

    def wait(self, workers: Sequence[ProcessWorker], seconds: float | None) -> list[ProcessWorker]:
        """Returns the workers that have a reply or are lost."""
        by_connection = {worker.connection: worker for worker in workers}
        ready = wait(list(by_connection), seconds)
        return [by_connection[connection] for connection in ready]  # type: ignore[index]

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._started:  # they end in parallel
            worker.hang_up()
        for worker in self._started:
            worker.stop()
        self._started = []


class ProcessWorker:
    """A worker process."""

    def __init__(self, make_server: Callable[[], Server]) -> None:
        self.connection, theirs = Pipe()
        environment = {**dict.fromkeys(SINGLE_THREADED, "1"), **interpreter_environment(), COMMAND: current_command()}
        try:
            self._process = GuardedProcess(
                [sys.executable, "-m", "axplore.workers.processes", str(theirs.fileno())],
                environment,
                stdin=subprocess.DEVNULL,
                files=[theirs.fileno()],
            )
        finally:
            theirs.close()
        with suppress(WorkerLostError):  # noticed when the worker is waited for
            self.send(make_server)

    @property
    def name(self) -> str:
        """The name, with the process id."""
        return f"process {self.pid}"

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self._process.code is None

    def send(self, message: Any) -> None:
        """Sends a message, pickled with cloudpickle."""
        packed = cloudpickle.dumps(message)
        try:
            self.connection.send_bytes(packed)
        except OSError:
            raise self._lost() from None

    def receive(self) -> Reply:
        """Returns the reply."""
        try:
            reply: Reply = cloudpickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise self._lost() from None
        return reply

    def hang_up(self) -> None:
        """Closes the connection, which ends the process."""
        self.connection.close()

    def stop(self) -> None:
        """Kills the process and its children."""
        self.hang_up()
        self._process.end()

    def _lost(self) -> WorkerLostError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        code = self._process.code
        if code is None:
            return WorkerLostError(f"{self.name} has closed its connection")
        how = f"was {how_it_ended(code)}" if code < 0 else f"ended with status {code}"
        return WorkerLostError(f"{self.name} {how}")


def serve(connection: Connection) -> None:
    """Makes a server, and answers messages until the other end is closed."""
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, messages), daemon=True).start()
    answering = Answering()
    while True:
        connection.send_bytes(answering.answer(messages.get()))


def _read(connection: Connection, messages: SimpleQueue[bytes]) -> None:
    """Reads messages, and ends the process with the connection, even within a batch."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(connection.recv_bytes())
    os._exit(0)


if __name__ == "__main__":
    os.dup2(2, 1)
    serve(Connection(int(sys.argv[1])))
