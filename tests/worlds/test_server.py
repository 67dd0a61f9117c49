"""A server as a system: its answers, its time-outs, and what is refused."""

from __future__ import annotations

import json
import runpy
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import parse_headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.errors import InvalidSettingError, WorldError
from axplore.records.findings import FaultKind
from axplore.testing import check_world
from axplore.types import RESET_ACTION
from axplore.worlds.contract import Visit
from axplore.worlds.program import Server, server_world
from axplore.worlds.systems import SystemFaultError
from commands import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "server.py"

Answering = Callable[[BaseHTTPRequestHandler, Any], tuple[int, bytes]]


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Starts servers, given a handler or a function that answers, and stops them in the end."""
    servers: list[ThreadingHTTPServer] = []

    def start(answering: Any) -> str:
        handler = answering if isinstance(answering, type) else handler_of(answering)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def handler_of(answering: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = answering(self, request)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class Raw:
    """A server that sends, in place of each answer, whatever bytes it is told to."""

    def __init__(self, send: Callable[[socket.socket, int], None]) -> None:
        self._send, self._listening, self.n_requests = send, socket.create_server(("127.0.0.1", 0)), 0
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listening.accept()[0]
            except OSError:
                return
            with connection, connection.makefile("rb") as requests, suppress(OSError):
                while requests.readline():
                    requests.read(int(parse_headers(requests)["Content-Length"]))
                    self.n_requests += 1
                    self._send(connection, self.n_requests)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def serve_raw() -> Iterator[Callable[[Callable[[socket.socket, int], None]], Raw]]:
    servers: list[Raw] = []

    def start(send: Callable[[socket.socket, int], None]) -> Raw:
        servers.append(Raw(send))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def whole(body: bytes = b'{"state": 0, "actions": ["a"]}') -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def dripping(begin: bytes, drip: bytes) -> Callable[[socket.socket, int], None]:
    def send(connection: socket.socket, _: int) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(drip)
            time.sleep(0.02)

    return send


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CHUNKED + b"5;", b"x"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"Trailer: x\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    ],
    ids=["header", "continue", "chunk line", "trailers", "body"],
)
def test_an_answer_that_never_ends_exceeds_the_one_deadline(serve_raw: Any, begin: bytes, drip: bytes) -> None:
    server = Server(serve_raw(dripping(begin, drip)).address, step_timeout=0.2)
    with pytest.raises(SystemFaultError, match="no answer within") as fault:
        server.reset()
    assert fault.value.kind is FaultKind.TIMED_OUT


@pytest.mark.parametrize(
    "cut",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"state": 1',
        CHUNKED + b'b\r\n{"state": 1\r\n',
        b'HTTP/1.1 200 OK\r\n\r\n{"state": 1',
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ],
)
def test_an_answer_that_is_cut_off_is_a_fault_and_never_a_state(serve_raw: Any, cut: bytes) -> None:
    def send(connection: socket.socket, n_requests: int) -> None:
        is_step = n_requests == 2
        connection.sendall(cut if is_step else whole())
        if is_step:
            connection.shutdown(socket.SHUT_RDWR)

    world = server_world(serve_raw(send).address, on_invalid="state", start_checks=1)
    world.carry_out([Visit(0, 0, 1, np.array([RESET_ACTION]), max_journey=1)])
    assert list(world.states) == [0]
    assert [(fault.kind, fault.is_doubt) for fault in world.faults] == [(FaultKind.DIED, True)]
    world.close()


def test_a_connection_closed_between_requests_loses_no_outcome(serve_raw: Any) -> None:
    closed = threading.Event()

    def send(connection: socket.socket, n_requests: int) -> None:
        connection.sendall(whole())
        if n_requests in (1, 3):
            connection.shutdown(socket.SHUT_RDWR)
            closed.set()

    raw = serve_raw(send)
    server = Server(raw.address)
    server.reset()
    assert closed.wait(5)
    assert server.reset() == 0  # over another connection
    closed.clear()
    assert server.step("a") == 0
    assert closed.wait(5)
    with pytest.raises(SystemFaultError) as fault:
        server.step("a")
    assert (fault.value.kind, raw.n_requests) == (FaultKind.CLOSED, 3)
    server.close()


def test_the_example_is_explored_as_its_walk_says(serve: Callable[[Any], str], tmp_path: Path) -> None:
    address = serve(runpy.run_path(str(EXAMPLE))["Walk"])
    said = run("explore", address, "--radius", "3", "--epsilon", "1.5", "--no-doctor", "--out", tmp_path / "run")
    atlas = axplore.Atlas.load(tmp_path / "run")
    assert atlas.complete
    assert 1.25 in atlas.bounds(1)  # one step in five stays at 0
    assert "http://127.0.0.1" in said


def test_a_server_keeps_the_contract_of_worlds_and_sessions_are_apart(serve: Callable[[Any], str]) -> None:
    address = serve(runpy.run_path(str(EXAMPLE))["Walk"])
    first, second = Server(address), Server(address)
    first.reset()
    second.reset()
    while first.step("right") != 2:
        pass
    assert second.reset() == 0
    assert first.step("right") in (1, 3)
    for server in (first, second):
        server.close()
    with server_world(address) as world:
        check_world(world)


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (302, b"", FaultKind.INVALID, "redirects are not followed"),
        (500, b"the database is gone", FaultKind.RAISED, "status 500: the database is gone"),
        (200, b"hello", FaultKind.INVALID, "it is not JSON"),
        (200, b'{"actions": ["a"]}', FaultKind.INVALID, "object with a state"),
    ],
)
def test_other_answers_are_faults_that_say_what_came(
    serve: Callable[[Any], str], status: int, body: bytes, kind: FaultKind, told: str
) -> None:
    server = Server(serve(lambda *_: (status, body)))
    with pytest.raises(SystemFaultError, match=told) as fault:
        server.reset()
    assert fault.value.kind is kind


def test_a_server_that_is_silent_or_gone_has_failed(serve: Callable[[Any], str]) -> None:
    def slow(*_: Any) -> tuple[int, bytes]:
        time.sleep(1)
        return 200, b'{"state": 0, "actions": ["a"]}'

    with pytest.raises(SystemFaultError, match=r"no answer within 0\.1 s") as fault:
        Server(serve(slow), step_timeout=0.1).reset()
    assert fault.value.kind is FaultKind.TIMED_OUT
    with pytest.raises(WorldError, match="the server cannot be reached"):
        axplore.explore("http://127.0.0.1:1/", 2)


@pytest.mark.parametrize(
    "address", ["http:localhost", "http://", "ftp://host/", "http://user@host/", "http://host:port/", "http://a b/"]
)
def test_what_is_not_an_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidSettingError, match="not an address of a server"):
        server_world(address)


def test_requests_and_answers_are_as_the_schema_says(serve: Callable[[Any], str]) -> None:
    schema = json.loads((EXAMPLE.parents[1] / "docs" / "protocol.schema.json").read_text(encoding="utf-8"))
    asked = []

    def answer(_: Any, request: Any) -> tuple[int, bytes]:
        asked.append(request)
        return 200, b'{"state": 0, "actions": ["a"]}'

    server = Server(serve(answer))
    server.reset()
    server.step("a")
    server.close()
    assert asked == [{"reset": True}, {"action": "a"}]
    kinds = schema["$defs"]["request"]["oneOf"]
    assert [kind["required"] for kind in kinds] == [list(request) for request in asked]
    assert set(schema["$defs"]["answer"]["properties"]) == {"state", "actions", "terminal"}


def test_a_key_is_named_and_boxes_are_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys.py").write_text("def side(observation):\n    return 'left' if observation[0] < 0 else 'right'\n")
    monkeypatch.chdir(tmp_path)
    command = "explore", "gym:CartPole-v1", "--radius", "3", "--epsilon", "2", "--max-steps", "50", "--no-doctor"
    pinned = "--set", "start=pinned", "--set", "mark_terminal=true"
    run(*command, *pinned, "--key", "keys:side", "--out", "run", code=3)
    assert {"left", "right"} & set(axplore.Atlas.load("run").seen)
    assert all(
        str(state).strip("()").split(", ")[0] in ("left", "right", "'terminal'") for state in axplore.Atlas.load("run")
    )
    run(*command, *pinned, "--set", "round=1", "--out", "rounded", code=3)
    for state in axplore.Atlas.load("rounded").seen:
        assert isinstance(state, tuple)
        assert all(part == round(part, 1) for part in state)
    with pytest.raises(InvalidSettingError, match="give one of them"):
        run(*command, *pinned, "--set", "round=1", "--key", "keys:side", "--out", "both")
