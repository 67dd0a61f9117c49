from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import axplore
from axplore import Atlas

if TYPE_CHECKING:
    from browsing import Browser

# The first example of a property may compile kernels, which no deadline allows for. Every run repeats the same
# examples, so that a commit always passes or always fails; `make random-examples` looks for new ones.
settings.register_profile("axplore", deadline=None, derandomize="AXPLORE_RANDOM_EXAMPLES" not in os.environ)
settings.load_profile("axplore")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the tests of workers: no process that has nothing left to do takes some of these from another.

    It would have to start a cluster of its own for them. And whoever waits for workers leaves its processor to others.
    """
    items.sort(key=lambda item: "workers" not in item.path.parts)


def pytest_collection_finish() -> None:
    """Looks for cyclic garbage less often, and not among what stays: that would take a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def _files_need_not_survive_a_power_cut() -> Iterator[None]:
    """Does not wait for the disk: what a killed process has written is not lost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Tests that were started in the background ignore Ctrl-C, which some of them send to themselves."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def _only_worker_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process be the worker where there is only one: it need not be started, and two find the same as it."""
    from axplore.workers import engines
    from axplore_studies.in_process import InProcess

    engine_from = engines.engine_from

    def engine_of_one(workers: int | None, ray: str | None) -> engines.Engine | None:
        return InProcess() if workers == 1 and ray is None else engine_from(workers, ray)

    monkeypatch.setattr(engines, "engine_from", engine_of_one)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless browser to look at reports with."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver; .ci/chromium installs them on Debian, as root")
    from browsing import Browser

    browser = Browser(chromium, driver, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def chain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on the confusing chain, complete and proven."""
    from axplore import explore

    folder = tmp_path_factory.mktemp("runs") / "chain"
    explore("confusing-chain", radius=4.5, epsilon=0.5, run=folder)
    return folder


@pytest.fixture(scope="session")
def chain() -> Atlas:
    """The confusing chain, complete and proven."""
    return axplore.explore("confusing-chain", radius=4.5, epsilon=0.1)


@pytest.fixture(scope="session")
def unfinished() -> Atlas:
    """The same, cut short."""
    return axplore.explore("confusing-chain", radius=4.5, epsilon=0.1, max_steps=500)


@pytest.fixture(scope="session")
def estimated() -> Atlas:
    """The same, by an explorer that proves nothing."""
    return axplore.explore("confusing-chain", radius=4.5, epsilon=0.8, explorer="disco-experiment")


@pytest.fixture(scope="session")
def stepwise() -> Atlas:
    """Its policies depend on the step."""
    return axplore.explore("star", 2, 1, explorer="ucb-explore-experiment", world_parameters={"arms": 2})
