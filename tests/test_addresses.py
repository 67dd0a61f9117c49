"""What may be secret in an address is in no file, message or name of a folder."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

import axplore
from axplore.addresses import was_shortened, without_secrets
from axplore.errors import InvalidSettingError
from axplore.worlds.program import server_world
from commands import run

EXAMPLE = Path(__file__).parents[1] / "examples" / "server.py"
SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://host:8080/path", "http://host:8080/path"),
        ("http://host/path?token=s3cr3t&x=1", "http://host/path?…"),
        ("https://me:s3cr3t@host/", "https://…@host/"),
        ("https://me:s3?cr3t@host/?a", "https://…@host/?…"),
        ("https://host/#s3cr3t", "https://host/#…"),
        ("exec:client --server wss://host?key=s3cr3t --fast", "exec:client --server wss://host?… --fast"),
        ("gym:FrozenLake-v1", "gym:FrozenLake-v1"),
    ],
)
def test_addresses_are_shown_without_secrets(address: str, shown: str) -> None:
    assert without_secrets(address) == without_secrets(shown) == shown
    assert was_shortened(shown) == (address != shown)
    assert not was_shortened(address)


def test_an_address_that_is_refused_does_not_show_its_password() -> None:
    with pytest.raises(InvalidSettingError, match="not an address") as refusal:
        server_world("http://me:s3cr3t@host/")
    assert SECRET not in str(refusal.value)


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), runpy.run_path(str(EXAMPLE))["Walk"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/?token={SECRET}"
    server.shutdown()
    server.server_close()


def test_no_file_of_a_run_holds_the_secret_and_resuming_asks_for_the_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.orig_argv", ["axplore", "explore", address])
    said = run("explore", address, "--radius", "2", "--epsilon", "1.5", "--max-steps", "20", "--no-doctor", code=3)
    (folder,) = (tmp_path / "runs").iterdir()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"run.json", "events.jsonl", "report.html"} <= {path.name for path in files}
    assert not [path.name for path in files if SECRET.encode() in path.read_bytes()]
    assert SECRET not in said + folder.name
    shown = without_secrets(address)
    assert axplore.Atlas.load(folder).world == shown
    for name in (None, shown):
        with pytest.raises(InvalidSettingError, match="secret"):
            axplore.resume(folder, name, trust=True)
    assert "Unfinished" in run("resume", folder, "--world", address, "--max-steps", "40", code=3)
