from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from random_walk import Walk, WalkThatFailsOnce

import axplore
from axplore.errors import InvalidInputError, InvalidSettingError, WorldError
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import Engine, Reply, Server, WorkerLostError
from axplore.workers.pool import WorkerPool
from axplore.workers.processes import Processes
from axplore.workers.ray import RayCluster, RayWorker
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import IncidentKind, World
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess
from waiting import PATIENCE, comes_true

ray: Any = pytest.importorskip("ray")

NODE = "AXPLORE_TEST_NODE"
NODES = ("north", "south")
"""What a machine of the cluster knows its name by, and the names."""

PROMPT = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
"""By this Ray counts a lost machine out within seconds, so that no later test is given an actor there."""

WALK = {"radius": 5.0, "epsilon": 2.0}
FROZEN_LAKE = {"radius": 5.0, "epsilon": 2.0}


class WalkThatHangsOnce(Walk):
    """The first to get far enough tells its process and its machine in a file, and hangs for long."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def step(self, action: str) -> int:
        if self.state == 2 and not self._file.exists():
            part = self._file.with_suffix(f".{os.getpid()}")
            part.write_text(f"{os.getpid()} {os.environ[NODE]}")
            try:
                os.link(part, self._file)
            except FileExistsError:
                return super().step(action)
            time.sleep(600)
        return super().step(action)


class OddError(Exception):
    """Can be packed, but not unpacked."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}, as {why}")


class Clerk:
    """Does what it is told by name."""

    def __call__(self, message: str) -> Any:
        return getattr(self, message)()

    def greet(self) -> str:
        print("a system that talks")
        return "good morning"

    def look_around(self) -> tuple[str, str, str | None]:
        return os.getcwd(), os.environ["OMP_NUM_THREADS"], os.environ.get(NODE)

    def raise_odd(self) -> None:
        raise OddError("odd", "it is")

    def raise_known(self) -> None:
        raise LookupError("as it was raised")

    def return_lock(self) -> Any:
        return threading.Lock()

    def exit(self) -> None:
        os._exit(3)


@pytest.fixture(scope="module", autouse=True)
def _apart() -> Iterator[None]:
    """Neither meets the clusters of others nor is met by them."""
    with (
        pytest.MonkeyPatch.context() as patch,
        # Ray's sockets need a short path.
        tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder,
    ):
        patch.setenv("RAY_TMPDIR", folder)
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(scope="module")
def cluster(_apart: None) -> Iterator[Any]:
    """Three machines, in a manner of speaking: a head, and two with a processor each."""
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False, _system_config=PROMPT)
        for name in NODES:
            cluster.add_node(num_cpus=1, env_vars={NODE: name})
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def held(cluster: Any) -> Iterator[list[RayCluster]]:  # noqa: ARG001 (it ends before the cluster does)
    """An engine that does nothing, if any: to connect takes a second, and others share its connection while it is."""
    engines: list[RayCluster] = []
    yield engines
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(cluster: Any, held: list[RayCluster]) -> Iterator[RayCluster]:
    if not held:
        held.append(RayCluster(cluster.address, None))
    engine = RayCluster(cluster.address, None)
    yield engine
    engine.close()


@pytest.fixture
def unconnected(held: list[RayCluster]) -> Iterator[None]:
    """This process is connected to no cluster when a test begins, and when it has ended."""
    while held:
        held.pop().close()
    assert not ray.is_initialized()
    yield
    assert not ray.is_initialized()


@pytest.fixture
def clerk(engine: RayCluster) -> RayWorker:
    worker = engine.start(Clerk)
    assert answer_of(engine, worker) == Reply()
    return worker


def answer_of(engine: RayCluster, worker: RayWorker) -> Reply:
    assert engine.wait([worker], PATIENCE) == [worker]
    return worker.receive()


def saved(world: World, settings: dict[str, float], engine: Engine, folder: Path) -> tuple[dict[str, bytes], Any]:
    """The files of the atlas of a world that is explored on an engine, and the world as the workers left it."""
    with DistributedWorld(world, engine) as worked:
        atlas = axplore.explore(worked, **settings)  # type: ignore[arg-type]
    atlas.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}, worked


@pytest.fixture(scope="module")
def walk_atlas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the exploration of the walk ends with in this process."""
    atlas, world = saved(SteppedWorld(Walk), WALK, InProcess(), tmp_path_factory.mktemp("walks") / "here")
    assert len(atlas) == 4
    assert len(world.states) > 3
    return atlas


def test_frozen_lake_has_the_same_atlas_on_ray_as_in_processes_and_here(cluster: Any, tmp_path: Path) -> None:
    engines: dict[str, Callable[[], Engine]] = {
        "here": InProcess,
        "processes": lambda: Processes(2),
        "ray": lambda: RayCluster(cluster.address, None),
    }
    atlases = {
        name: saved(named_world("gym:FrozenLake-v1", 0, {}), FROZEN_LAKE, make(), tmp_path / name)[0]
        for name, make in engines.items()
    }
    assert set(atlases["here"]) == {"atlas.json", "atlas.npz", "certificate.json", "certificate.npz"}
    assert atlases["processes"] == atlases["here"]
    assert atlases["ray"] == atlases["here"]


def once_there_is(file: Path, act: Callable[[], object]) -> threading.Thread:
    """Waits for a file elsewhere, and then acts."""

    def wait_and_act() -> None:
        comes_true(file.exists)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def test_a_node_lost_in_the_middle_changes_nothing(cluster: Any, walk_atlas: dict[str, bytes], tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    lost_nodes = []

    def lose_node() -> None:
        name = hung.read_text().split()[1]
        (node,) = [node for node in cluster.worker_nodes if node._ray_params.env_vars == {NODE: name}]
        cluster.remove_node(node, allow_graceful=False)
        lost_nodes.append((name, node.node_id))

    killer = once_there_is(hung, lose_node)
    try:
        world = SteppedWorld(partial(WalkThatHangsOnce, hung))
        atlas, worked = saved(world, WALK, RayCluster(cluster.address, None), tmp_path / "atlas")
    finally:
        killer.join()
        for name, _ in lost_nodes:
            cluster.add_node(num_cpus=1, env_vars={NODE: name})
        cluster.wait_for_nodes()
    ((_, node_id),) = lost_nodes
    assert atlas == walk_atlas
    # Their replacements may be lost, too, if Ray places them on the node while it still counts it.
    lost, *_ = [incident for incident in worked.incidents if incident.kind is IncidentKind.LOST]
    assert f"process {hung.read_text().split()[0]} on" in lost.message
    assert f"node {node_id[:8]} was lost: " in lost.message


def test_a_killed_actor_changes_nothing_and_nothing_is_said_on_standard_output(
    cluster: Any,
    engine: RayCluster,
    walk_atlas: dict[str, bytes],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "axplore")
    hung = tmp_path / "hung"
    killer = once_there_is(hung, lambda: os.kill(int(hung.read_text().split()[0]), signal.SIGKILL))
    world = SteppedWorld(partial(WalkThatHangsOnce, hung))
    atlas, worked = saved(world, WALK, RayCluster(cluster.address, engine.n_workers), tmp_path / "atlas")
    killer.join()
    assert atlas == walk_atlas
    (lost,) = [incident for incident in worked.incidents if incident.kind is IncidentKind.LOST]
    assert f"process {hung.read_text().split()[0]} on" in lost.message
    assert "its worker process has died" in lost.message
    assert comes_true(lambda: "Ray says: A worker died" in caplog.text)
    assert capfd.readouterr().out == ""


def test_a_system_that_fails_on_one_worker_only_changes_nothing(
    cluster: Any, walk_atlas: dict[str, bytes], tmp_path: Path
) -> None:
    world = SteppedWorld(partial(WalkThatFailsOnce, tmp_path / "licence"))
    atlas, worked = saved(world, WALK, RayCluster(cluster.address, None), tmp_path / "atlas")
    assert atlas == walk_atlas
    assert {incident.kind for incident in worked.incidents} == {IncidentKind.FAILED}
    assert {incident.worker for incident in worked.incidents} == {worked.incidents[0].worker}
    assert "this machine has no licence" in worked.incidents[0].message


def test_actors_without_a_processor_do_not_hold_up_others(
    cluster: Any, walk_atlas: dict[str, bytes], tmp_path: Path
) -> None:
    atlas, worked = saved(SteppedWorld(Walk), WALK, RayCluster(cluster.address, 7), tmp_path)
    assert atlas == walk_atlas
    assert not worked.incidents


def test_there_are_as_many_workers_as_processors_unless_told(cluster: Any, engine: RayCluster) -> None:
    assert engine.n_workers == len(NODES)
    other = RayCluster(cluster.address, 5)
    assert other.n_workers == 5
    other.close()


@pytest.mark.parametrize("n_workers", [0, -1, True, 1.5])
def test_a_number_of_workers_that_is_none_is_refused(n_workers: Any) -> None:
    with pytest.raises(InvalidSettingError, match="workers is"):
        RayCluster("auto", n_workers)


def test_a_worker_is_named_by_its_actor_and_node_once_it_has_begun(engine: RayCluster) -> None:
    worker = engine.start(Clerk)
    assert worker.name == "a Ray actor that has not begun"
    assert answer_of(engine, worker) == Reply()
    assert worker.whereabouts is not None
    assert worker.whereabouts.node in {node["NodeID"] for node in ray.nodes()}
    assert worker.name.startswith(f"Ray actor {worker.whereabouts.actor[:8]}, process {worker.whereabouts.process} on ")


def test_a_worker_uses_one_thread_and_works_in_the_folder_of_the_process_that_started_it(
    engine: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    worker = engine.start(Clerk)
    assert answer_of(engine, worker) == Reply()
    worker.send("look_around")
    folder, threads, _ = answer_of(engine, worker).value
    assert Path(folder) == tmp_path
    assert threads == "1"


def test_modules_are_found_where_the_process_that_started_a_worker_finds_them(
    engine: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("from random_walk import Walk\n\n\ndef make():\n    return Walk()\n")
    monkeypatch.chdir(tmp_path)  # after Ray has noted where to look
    monkeypatch.syspath_prepend("")
    worker = engine.start(partial(_server_of, "only_here"))
    assert answer_of(engine, worker) == Reply()
    worker.send("right")
    assert answer_of(engine, worker).value in (0, 1)


def _server_of(module: str) -> Server:
    from importlib import import_module

    walk = import_module(module).make()
    step: Server = walk.step
    return step


def test_classes_of_the_main_program_go_by_value(engine: RayCluster, clerk: RayWorker) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("class Doubling:\n    def __call__(self, message):\n        return 2 * message\n", namespace)
    worker = engine.start(namespace["Doubling"])
    assert answer_of(engine, worker) == Reply()
    worker.send(21)
    clerk.send("greet")
    assert answer_of(engine, worker) == Reply(42)
    assert answer_of(engine, clerk) == Reply("good morning")


def test_waiting_returns_all_workers_that_have_answered(engine: RayCluster) -> None:
    clerks = [engine.start(Clerk) for _ in NODES]
    waiting = list(clerks)
    while waiting:
        for worker in engine.wait(waiting, PATIENCE):
            waiting.remove(worker)
            worker.receive()
    for worker in clerks:
        worker.send("greet")
    assert comes_true(lambda: len(engine.wait(clerks, PATIENCE)) == len(NODES))
    assert engine.wait([], 1) == []


def test_waiting_ends_when_the_time_has_passed(engine: RayCluster, clerk: RayWorker) -> None:
    clerk.send("greet")
    assert answer_of(engine, clerk) == Reply("good morning")
    unplaced = [engine.start(Clerk) for _ in range(engine.n_workers)]
    for worker in unplaced[:-1]:
        answer_of(engine, worker)
    assert engine.wait(unplaced[-1:], 0.3) == []


def test_errors_of_a_server_are_replies_and_the_worker_goes_on(engine: RayCluster, clerk: RayWorker) -> None:
    clerk.send("raise_known")
    reply = answer_of(engine, clerk)
    assert isinstance(reply.error, LookupError)
    assert str(reply.error) == "as it was raised"
    clerk.send("raise_odd")
    reply = answer_of(engine, clerk)
    assert isinstance(reply.error, RuntimeError)
    assert "OddError: odd, as it is cannot be sent: TypeError" in str(reply.error)
    clerk.send("return_lock")
    reply = answer_of(engine, clerk)
    assert isinstance(reply.error, RuntimeError)
    assert "the worker's answer cannot be sent: TypeError" in str(reply.error)
    clerk.send("greet")
    assert answer_of(engine, clerk) == Reply("good morning")


def test_an_error_in_making_a_server_is_raised_by_the_crew(engine: RayCluster) -> None:
    def make() -> Server:
        raise WorldError("no such model")

    with pytest.raises(WorldError, match="no such model"):
        list(WorkerPool(engine, make).results(["anything"]))


def test_a_process_that_ends_is_a_lost_worker(engine: RayCluster, clerk: RayWorker) -> None:
    clerk.send("exit")
    assert engine.wait([clerk], PATIENCE) == [clerk]
    with pytest.raises(
        WorkerLostError, match=r"^Ray actor .{8}, process \d+ on .*, node .{8} was lost: The actor is dead"
    ):
        clerk.receive()


def test_what_a_worker_has_started_ends_with_it(engine: RayCluster) -> None:
    worker = engine.start(partial(_server_with_child, "sleep 600"))
    assert answer_of(engine, worker) == Reply()
    worker.send("who")
    child = answer_of(engine, worker).value
    os.kill(child, 0)
    worker.stop()
    assert comes_true(lambda: not _is_running(child))


def _server_with_child(command: str) -> Server:
    child = subprocess.Popen(command.split())
    return lambda _: child.pid


def _is_running(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_dismissed_worker_makes_room_for_another(engine: RayCluster) -> None:
    for _ in range(engine.n_workers + 1):
        worker = engine.start(Clerk)
        assert answer_of(engine, worker) == Reply()
        worker.stop()


@pytest.mark.usefixtures("unconnected")
def test_a_connection_that_was_there_before_stays(cluster: Any) -> None:
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        engine = RayCluster("auto", 1)
        worker = engine.start(Clerk)
        assert answer_of(engine, worker) == Reply()
        engine.close()
        engine.close()
        assert ray.is_initialized()
        with pytest.raises(WorkerLostError, match=r"killed by `ray\.kill`"):
            ask_until_lost(engine, worker)
    finally:
        ray.shutdown()


def ask_until_lost(engine: RayCluster, worker: RayWorker) -> None:
    """An actor may have time for an answer or two after it was said to be killed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        worker.send("greet")
        answer_of(engine, worker)


@pytest.mark.usefixtures("unconnected")
def test_engines_share_a_connection_until_the_last_is_closed(cluster: Any) -> None:
    engine, other = RayCluster(cluster.address, None), RayCluster("auto", 1)
    with pytest.raises(InvalidSettingError, match="is connected to the Ray cluster"):
        RayCluster("127.0.0.1:1", 1)
    other.close()
    assert ray.is_initialized()
    worker = engine.start(Clerk)
    assert answer_of(engine, worker) == Reply()
    engine.close()
    assert not ray.is_initialized()


@pytest.mark.usefixtures("unconnected")
def test_auto_finds_the_running_cluster() -> None:
    engine = RayCluster("auto", None)
    try:
        assert engine.n_workers == len(NODES)
    finally:
        engine.close()


@pytest.mark.usefixtures("unconnected")
def test_auto_starts_a_cluster_where_the_last_one_has_ended(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()
        Path(folder, "ray", "ray_current_cluster").write_text("127.0.0.1:1")
        engine = RayCluster("auto", 1)
        try:
            assert ray.get_runtime_context().gcs_address != cluster.address
            worker = engine.start(Clerk)
            assert answer_of(engine, worker) == Reply()
            worker.send("greet")
            assert answer_of(engine, worker) == Reply("good morning")
        finally:
            engine.close()
    assert capfd.readouterr().out == ""
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.usefixtures("unconnected")
def test_an_address_where_nothing_answers_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"there is no Ray cluster at 127\.0\.0\.1:1: .*refused"):
        RayCluster("127.0.0.1:1", 1)
    with pytest.raises(InvalidSettingError, match="there is no Ray cluster at ray://127"):
        RayCluster("ray://127.0.0.1:1", 1)
    with pytest.raises(InvalidSettingError, match="there is no Ray cluster at nowhere"):
        RayCluster("nowhere.invalid:6379", 1)


@pytest.mark.usefixtures("unconnected")
def test_an_address_in_the_environment_where_nothing_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InvalidSettingError, match="there is no Ray cluster at 127"):
        RayCluster("auto", 1)


@pytest.mark.parametrize("address", ["", "head", "head:", ":6379", "head:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidSettingError, match="it must be 'auto', HOST:PORT or ray://HOST:PORT"):
        RayCluster(address, 1)


@pytest.mark.usefixtures("unconnected")
def test_an_address_where_something_else_answers_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad BatchRequest\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        port = listening.getsockname()[1]
        with pytest.raises(InvalidSettingError, match=f"the server at 127.0.0.1:{port} is not a Ray cluster"):
            RayCluster(f"127.0.0.1:{port}", 1)
        answering.join()


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'axplore\[ray\]'"):
        RayCluster("auto", 1)


def test_ray_is_imported_where_it_is_used() -> None:
    program = "import sys, axplore, axplore.workers.ray, axplore.workers.engines; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
