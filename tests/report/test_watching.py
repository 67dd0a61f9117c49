from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axplore import Atlas, explore
from axplore.errors import StorageError
from axplore.explorers.base import RoundReport
from axplore.report.watching import HOST, MAX_CONNECTIONS, WatchServer
from axplore.runs.folder import atlas_now, has_ended, version_of
from browsing import Browser
from waiting import PATIENCE, comes_true


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every piece of work."""
    monkeypatch.setattr("axplore.runs.recording.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("axplore.runs.recording.PART_FOR_CHECKPOINTS", 1e9)


@contextmanager
def serving(folder: Path) -> Iterator[WatchServer]:
    with WatchServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: WatchServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str]:
    connection = HTTPConnection(HOST, server.server_port, timeout=PATIENCE)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def content_of(page: str) -> Any:
    (content,) = re.findall(r'id="content">(.*?)</script>', page)
    return json.loads(content)


def test_before_the_run_has_begun_there_is_a_page_to_wait_on(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        status, page = ask(server, "/")
    assert status == 200
    assert "Waiting" in page
    assert 'http-equiv="refresh"' in page


@pytest.mark.usefixtures("eager")
def test_a_run_in_progress_is_shown_as_of_its_checkpoint_and_does_not_notice(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    pages: list[str] = []
    news: list[Any] = []

    def look(report: RoundReport) -> None:
        if report.known == 4 and not pages:
            before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
            with serving(folder) as server:
                pages.append(ask(server, "/")[1])
                news.append(json.loads(ask(server, "/news")[1]))
            assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before

    watched = explore("confusing-chain", 4.5, 0.5, run=folder, on_round=look)
    alone = explore("confusing-chain", 4.5, 0.5)

    content = content_of(pages[0])
    assert content["members"] in (3, 4)
    assert content["proven"]
    assert content["live"]["version"] == news[0]["version"] != ""
    assert news[0]["message"].startswith("In progress: known 4 · ")
    assert news[0]["curves"]["known"][-1] == 4
    assert len(news[0]["curves"]["steps"]) == len(news[0]["curves"]["met"])
    assert "It is in progress" in pages[0] or "it is in progress" in pages[0]
    assert "interrupted" not in pages[0].partition("<main>")[0]
    assert watched.states == alone.states
    assert watched.steps == alone.steps
    assert np.array_equal(watched.upper, alone.upper)


def test_the_atlas_of_the_last_checkpoint_is_that_of_the_ended_run(chain_run: Path, tmp_path: Path) -> None:
    ended = Atlas.load(chain_run)
    for path in chain_run.iterdir():
        if not path.name.startswith(("atlas", "ended")):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert not has_ended(tmp_path)
    now = atlas_now(tmp_path)
    assert now.states == ended.states
    assert np.array_equal(now.lower, ended.lower)
    assert np.array_equal(now.upper, ended.upper)


@pytest.mark.parametrize("explorer", ["disco-experiment", "ucb-explore-experiment", "ucb-explore-staged-experiment"])
@pytest.mark.parametrize("max_steps", [0, 3000])
def test_every_explorer_can_be_watched_from_its_first_step(tmp_path: Path, explorer: str, max_steps: int) -> None:
    ended = explore("confusing-chain", 3.0, 1.0, explorer=explorer, max_steps=max_steps, run=tmp_path)
    for name in ("atlas.json", "ended.json"):
        (tmp_path / name).unlink()
    now = atlas_now(tmp_path)
    assert now.states == ended.states
    assert all(np.array_equal(one, other) for one, other in zip(now.policies, ended.policies, strict=True))
    with serving(tmp_path) as server:
        assert content_of(ask(server, "/")[1])["members"] == len(ended.states)


def test_the_watcher_shows_the_steps_done_of_those_expected(browser: Browser, chain_run: Path, tmp_path: Path) -> None:
    events = [json.loads(line) for line in (chain_run / "events.jsonl").read_text().splitlines()]
    rounds = [event for event in events if event["event"] == "round"]
    left = {"settled": 3, "claims": 9, "steps": 300.0, "fewest": 100.0, "most": 900.0, "may_grow": False, "taken": 100}
    shown = [event for event in events if event["event"] != "ended"]
    last = {**rounds[-1], "steps": 100, "remaining": left, "time": datetime.now(UTC).isoformat()}
    for path in chain_run.iterdir():
        if not path.name.startswith(("atlas", "ended", "events")):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in (*shown, last)))
    with serving(tmp_path) as server:
        browser.open(server.address)
        assert browser.find("#live-bar").get_attribute("value") == "0.25"
        message = browser.text("#live-message")
        assert message.startswith("In progress: 25 % · 100 of about 400 steps (200 to 1,000)")
        assert browser.count("#live-chart .curve") == 2
        assert browser.complaints() == []


def test_a_run_without_news_for_long_may_have_been_stopped(chain_run: Path, tmp_path: Path) -> None:
    for path in chain_run.iterdir():
        if not path.name.startswith(("atlas", "ended")):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    old = [json.dumps({**json.loads(line), "time": "2020-01-01T00:00:00+00:00"}) for line in lines]
    (tmp_path / "events.jsonl").write_text("\n".join(old) + "\n")
    with serving(tmp_path) as server:
        message = json.loads(ask(server, "/news")[1])["message"]
    assert "it may have been stopped, and resumes with `axplore resume`" in message


def test_an_ended_run_says_so(chain_run: Path) -> None:
    with serving(chain_run) as server:
        page = unescape(ask(server, "/")[1])
    assert "The run has ended." in page
    assert content_of(page.replace("&", "\\u0026"))["members"] == 6


@pytest.mark.usefixtures("eager")
def test_the_version_changes_with_every_checkpoint_only(tmp_path: Path) -> None:
    versions = []
    folder = tmp_path / "run"
    explore("confusing-chain", 4.5, 0.5, run=folder, on_round=lambda _: versions.append(version_of(folder)))
    assert len(set(versions)) > 3
    assert version_of(folder) == version_of(folder)
    assert version_of(tmp_path / "nothing") == ""


def test_a_folder_without_a_run_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no folder"):
        WatchServer(tmp_path / "nope")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(StorageError, match="holds no run"):
        WatchServer(tmp_path)


@pytest.mark.parametrize("kind", ["round", "bounds", "ended"])
def test_a_damaged_log_is_told_on_the_page(chain_run: Path, tmp_path: Path, kind: str) -> None:
    shutil.copytree(chain_run, tmp_path / "run")
    log = tmp_path / "run" / "events.jsonl"
    log.write_text(log.read_text().replace(f'"event": "{kind}"', f'"event": "{kind}", "time": 7'))
    with serving(tmp_path / "run") as server:
        status, page = ask(server, "/")
        news = json.loads(ask(server, "/news")[1])
    assert status == 200
    assert "events.jsonl is damaged in line" in page
    assert "events.jsonl is damaged in line" in news["message"]


def test_many_silent_connections_hold_few_threads_and_keep_nobody_out(chain_run: Path) -> None:
    before = threading.active_count()
    with serving(chain_run) as server:
        silent = []
        try:
            for _ in range(200):
                silent.append(socket.create_connection((HOST, server.server_port)))
                time.sleep(0.002)  # one that finds the queue full waits for seconds
            assert ask(server, "/news")[0] == 200
            assert comes_true(lambda: threading.active_count() <= before + 1 + MAX_CONNECTIONS)
        finally:
            for connection in silent:
                connection.close()


def test_a_silent_connection_is_closed_after_a_while(chain_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.report.watching._Handler.timeout", 0.05)
    with serving(chain_run) as server, socket.create_connection((HOST, server.server_port)) as silent:
        silent.settimeout(PATIENCE)
        assert silent.recv(1) == b""


def test_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    with WatchServer(tmp_path) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_foreign_name_for_this_machine_is_refused(chain_run: Path) -> None:
    with serving(chain_run) as server:
        assert ask(server, "/", host=f"evil.example:{server.server_port}")[0] == 403
        assert ask(server, "/", host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("path", ["/atlas.json", "/../atlas.json", "/run.json", "/?x"])
def test_nothing_but_the_page_and_its_news_is_served(chain_run: Path, path: str) -> None:
    with serving(chain_run) as server:
        assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_only_reads(chain_run: Path, method: str) -> None:
    with serving(chain_run) as server:
        assert ask(server, "/", method)[0] == 501


def test_a_port_in_use_is_an_error_in_a_line(tmp_path: Path) -> None:
    with WatchServer(tmp_path) as server, pytest.raises(StorageError, match="cannot be used"):
        WatchServer(tmp_path, server.server_port)


def test_a_watched_page_loads_refreshes_and_outlives_its_watcher(browser: Browser, chain_run: Path) -> None:
    with serving(chain_run) as server:
        browser.open(server.address, "state=s4")
        assert browser.text("#panel-title") == "Route to s4"
        assert browser.complaints() == []
        assert {url.partition("#")[0] for url in browser.requests() if not url.startswith("data:")} == {server.address}
        (chain_run / "ended.json").touch()
        browser.wait(lambda: any(url.endswith("/news") for url in browser.requests()))
        browser.wait(lambda: browser.run("return document.body.dataset.ready") == "true")
        assert browser.text("#panel-title") == "Route to s4"
    browser.wait(lambda: "The watcher has ended" in browser.text(".live strong"))
