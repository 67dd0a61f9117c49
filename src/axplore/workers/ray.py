"""Workers on a Ray cluster, of one machine or of many.

Each is an actor with a processor of its own. Ray restarts none of them and repeats nothing: the pool does that. An
actor for which there is no processor, for example after the loss of a machine, waits for one while the others work.
What a system prints goes to Ray's logs. axplore, and what the system needs, must be installed on every machine.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cloudpickle

from axplore.addresses import COMMAND, current_command
from axplore.errors import InvalidInputError, InvalidSettingError, WorldError
from axplore.workers.engines import (
    SINGLE_THREADED,
    Answering,
    Reply,
    Server,
    WorkerLostError,
    check_n_workers,
)

AUTO: Final = "auto"
"""In place of an address: the cluster that this machine is part of, or a local one if there is none."""

SECONDS_TO_ANSWER: Final = 10.0
"""Seconds that the machine at an address may take to answer. Ray itself would wait for minutes."""

_HTTP2_GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The greeting of a client of Ray: the preface of HTTP/2 and empty settings, a frame of type 4."""

_logger = logging.getLogger("axplore")


class RayCluster:
    """An engine whose workers are actors on a Ray cluster."""

    def __init__(self, address: str, n_workers: int | None) -> None:
        """Connects this process to the cluster, unless it is connected to one already.

        Args:
            address: `auto`, or where the cluster is: `HOST:PORT`, or `ray://HOST:PORT` from a machine outside it.
            n_workers: the number of actors; by default, the number of processors of the cluster.
        """
        if n_workers is not None:
            check_n_workers(n_workers)
        self._ray = _imported_ray()
        _CONNECTION.open(self._ray, address, n_workers or 0)
        self._is_open = True
        self._n_workers = n_workers or max(1, int(self._ray.cluster_resources().get("CPU", 0)))
        self._actor_class = self._ray.remote(num_cpus=1, max_restarts=0)(RayActor)
        self._started: list[RayWorker] = []

    @property
    def n_workers(self) -> int:
        """The number of actors."""
        return self._n_workers

    def start(self, make_server: Callable[[], Server]) -> RayWorker:
        """Starts an actor, placed where a processor is free."""
        worker = RayWorker(self._ray, self._actor_class.remote(), make_server)
        self._started = [*(other for other in self._started if other.is_in_use), worker]
        return worker

    def wait(self, workers: Sequence[RayWorker], seconds: float | None) -> list[RayWorker]:
        """Returns the workers that have a reply or are lost."""
        by_reference = {worker.reference: worker for worker in workers}
        if not by_reference:
            return []
        with _failures_of(self._ray):
            ready, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=seconds)
            if ready:
                ready, _ = self._ray.wait(list(by_reference), num_returns=len(by_reference), timeout=0)
        return [by_reference[reference] for reference in ready]

    def close(self) -> None:
        """Ends all actors, and the connection if no other engine uses it."""
        for worker in self._started:
            worker.stop()
        self._started = []
        if self._is_open:
            self._is_open = False
            _CONNECTION.close(self._ray)


class RayWorker:
    """An actor, seen from the process that started it."""

    def __init__(self, ray: Any, actor: Any, make_server: Callable[[], Server]) -> None:
        self._ray = ray
        self._actor = actor
        self._whereabouts: Whereabouts | None = None
        self.is_in_use = True
        paths = [str(Path(path).absolute()) for path in sys.path]
        self.reference = actor.start.remote(current_command(), str(Path.cwd()), paths, cloudpickle.dumps(make_server))
        """The reference to the next reply."""

    @property
    def name(self) -> str:
        """The name, with the actor and its machine once it has one."""
        return "a Ray actor that has not begun" if self._whereabouts is None else str(self._whereabouts)

    @property
    def whereabouts(self) -> Whereabouts | None:
        """Where the actor runs; None before it is ready."""
        return self._whereabouts

    def send(self, message: Any) -> None:
        """Sends a message, pickled with cloudpickle."""
        packed = cloudpickle.dumps(message)
        with _failures_of(self._ray):
            self.reference = self._actor.answer.remote(packed)

    def receive(self) -> Reply:
        """Returns the reply."""
        exceptions = self._ray.exceptions
        lost = (
            exceptions.RayActorError,
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.OutOfMemoryError,
            exceptions.ObjectLostError,
        )
        with _failures_of(self._ray):
            try:
                answer = self._ray.get(self.reference)
            except exceptions.RayTaskError as error:  # errors of the server are in its reply, so this one came before
                return Reply(error=WorldError(f"{self.name} cannot work: {_last_line(error)}"))
            except lost as error:
                raise WorkerLostError(f"{self.name} was lost: {_last_line(error)}") from None
        if self._whereabouts is None:
            self._whereabouts, answer = answer
        reply: Reply = cloudpickle.loads(answer)
        return reply

    def stop(self) -> None:
        """Ends the actor now."""
        self.is_in_use = False
        if self._ray.is_initialized():  # Ray would start a cluster to end it in
            with suppress(Exception):  # it may have ended by itself
                self._ray.kill(self._actor, no_restart=True)


@dataclass(frozen=True)
class Whereabouts:
    """Where an actor runs.

    Attributes:
        actor: its id in Ray.
        process: its process id.
        node: the id of its machine in Ray.
        machine: the address of its machine.
    """

    actor: str
    process: int
    node: str
    machine: str

    def __str__(self) -> str:
        return f"Ray actor {self.actor[:8]}, process {self.process} on {self.machine}, node {self.node[:8]}"


class RayActor:
    """The actor itself, in its own process."""

    def __init__(self) -> None:
        self._answering = Answering()

    def start(self, command: str, folder: str, paths: Sequence[str], make_server: bytes) -> tuple[Whereabouts, bytes]:
        """Makes the server as the starting process would: in its working directory, with its module paths."""
        os.environ[COMMAND] = command
        for name in SINGLE_THREADED:
            os.environ.setdefault(name, "1")
        with suppress(OSError):  # other machines may not have it
            os.chdir(folder)
        theirs = [path for path in paths if Path(path).exists()]
        sys.path[:] = [*theirs, *(path for path in sys.path if path not in theirs)]
        ray = _imported_ray()
        context = ray.get_runtime_context()
        whereabouts = Whereabouts(
            actor=context.get_actor_id(),
            process=os.getpid(),
            node=context.get_node_id(),
            machine=ray.util.get_node_ip_address(),
        )
        return whereabouts, self.answer(make_server)

    def answer(self, message: bytes) -> bytes:
        """Returns the reply to a message."""
        return self._answering.answer(message)


class _Connection:
    """The connection of this process to Ray, which all engines share."""

    def __init__(self) -> None:
        self._n_engines = 0
        self._address: str | None = None  # None for a connection that was there before
        self.is_ours = False

    def open(self, ray: Any, address: str, n_workers: int) -> None:
        """Connects, unless the process is connected already; a cluster started here has `n_workers` processors."""
        if not ray.is_initialized():
            _connect(ray, address, n_workers)
            self._n_engines, self.is_ours, self._address = 0, True, address
        elif self.is_ours and address not in (AUTO, self._address):
            raise InvalidSettingError(
                f"this process is connected to the Ray cluster {self._address!r}, so it cannot use {address!r}; "
                "close what uses the former first"
            )
        self._n_engines += 1

    def close(self, ray: Any) -> None:
        """Disconnects with the last engine, and ends a cluster started here; leaves connections of others alone."""
        self._n_engines -= 1
        if self.is_ours and not self._n_engines:
            self.is_ours = False
            ray.shutdown()


_CONNECTION: Final = _Connection()


def _imported_ray() -> Any:
    """Returns the package ray; raises an error that says how to install it."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise InvalidInputError(
            f"workers on a Ray cluster need the package ray ({error}); install it with: pip install 'axplore[ray]'"
        ) from error
    return ray


def _connect(ray: Any, address: str, n_workers: int) -> None:
    """Connects this process to a cluster, with usage reports disabled and nothing written to standard output."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    where = _running_cluster() if address == AUTO else address
    if where is None:
        # Systems that wait share processors well, so there may be more workers than processors.
        room = max(os.cpu_count() or 1, n_workers)
        options: dict[str, Any] = {"address": "local", "include_dashboard": False, "num_cpus": room}
    else:
        _check_reachable(where)
        # Ray authenticates itself only with a cluster that it finds itself.
        options = {} if address == AUTO else {"address": where}
    _keep_off_standard_output(ray)
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises many kinds of errors here
        what = "no Ray cluster can be started here" if where is None else f"the Ray cluster at {where} cannot be used"
        because = "" if error.__cause__ is None else f" ({_last_line(error.__cause__)})"
        raise InvalidSettingError(f"{what}: {_last_line(error)}{because}") from error


def _running_cluster() -> str | None:
    """Returns the address of the cluster that this machine is part of, as Ray finds it; None if it does not answer.

    Ray itself does not recover from a cluster that has ended silently.
    """
    if named := os.environ.get("RAY_ADDRESS"):
        return named
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or tempfile.gettempdir()
    try:
        noted = (Path(folder) / "ray" / "ray_current_cluster").read_text().strip()
        _check_reachable(noted)
    except (OSError, InvalidSettingError):
        return None
    return noted


def _check_reachable(address: str) -> None:
    """Refuses an address where no Ray cluster answers."""
    scheme, _, host_and_port = address.rpartition("://")
    if scheme not in ("", "ray"):
        return  # Ray may support other kinds of addresses
    host, _, port = host_and_port.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidSettingError(f"ray is {address!r}; it must be {AUTO!r}, HOST:PORT or ray://HOST:PORT")
    try:
        answer = _answer_to_greeting(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise InvalidSettingError(f"there is no Ray cluster at {address}: {error}") from error
    if not _is_encrypted() and answer[3:4] != b"\x04":
        raise InvalidSettingError(
            f"the server at {address} is not a Ray cluster; that of `ray start --head` has port 6379"
        )


def _answer_to_greeting(host: str, port: int) -> bytes:
    """Returns the first bytes of the answer; none if the connection would be encrypted."""
    with socket.create_connection((host, port), timeout=SECONDS_TO_ANSWER) as connection:
        if _is_encrypted():
            return b""
        connection.sendall(_HTTP2_GREETING)
        return connection.recv(9)


def _is_encrypted() -> bool:
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def _keep_off_standard_output(ray: Any) -> None:
    """Makes Ray report lost actors in the log while the connection is ours.

    Ray has no setting for that, so a private function is replaced. If a version of Ray does not have this function, its
    reports go to standard output.
    """
    with suppress(AttributeError):
        driver = ray._private.worker
        tell = driver.print_to_stdstream
        if getattr(tell, "__module__", None) == __name__:
            return

        def tell_in_log(data: dict[str, Any], *rest: Any, **named: Any) -> None:
            if _CONNECTION.is_ours and data.get("pid") == "raylet":
                _logger.info("Ray says: %s", "\n".join(data["lines"]))
            else:
                tell(data, *rest, **named)

        driver.print_to_stdstream = tell_in_log


@contextmanager
def _failures_of(ray: Any) -> Iterator[None]:
    """Turns errors of Ray itself, not of a worker, into an error of one sentence."""
    try:
        yield
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise WorldError(f"Ray failed: {_last_line(error)}") from error


def _last_line(error: BaseException) -> str:
    """Returns the reason of an error of Ray: its last line, without lengthy advice."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    return (lines[-1] if lines else type(error).__name__).strip().partition(" Some common causes")[0]
