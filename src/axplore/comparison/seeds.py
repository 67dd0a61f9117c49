"""One world explored by several explorers, each with several seeds, as a folder of run folders.

Every run is the one that `explore` makes with the same seed, so it depends neither on the others nor on the worker.
Called again after an interruption, runs that have ended are kept and the others are resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from axplore.addresses import without_secrets
from axplore.errors import InvalidSettingError, NotConvergedError, WorldError
from axplore.exploring import explored, explorer_from
from axplore.records.run import StopReason
from axplore.request import Request, kept_settings
from axplore.resuming import resume
from axplore.runs.checkpoints import load_checkpoint
from axplore.runs.folder import ENDED, ENDED_FORMAT, ENDED_VERSION
from axplore.runs.manifest import NAME as ORIGIN
from axplore.runs.manifest import explorer_from_description, kept_world, load_manifest
from axplore.storage import LOCK, Lock, make_empty_folder, read_document, remove_unfinished, storage_errors
from axplore.workers.engines import engine_for
from axplore.workers.pool import results_of

Files: TypeAlias = Mapping[str, bytes]
"""The files of a run folder, by name."""


@dataclass(frozen=True)
class SeedRun:
    """A run of an explorer with a seed.

    Attributes:
        request: what is asked for, with the explorer, the seed and the folder of the run.
        failure: how the world or the explorer failed, if one did.
    """

    request: Request
    failure: str | None = None

    @property
    def explorer(self) -> str:
        """The name of the explorer."""
        return str(self.request.explorer)

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.request.run or "")


def explore_seeds(
    request: Request,
    explorers: Sequence[str],
    out: Path,
    *,
    seeds: int,
    workers: int | None = None,
    ray: str | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> list[SeedRun]:
    """Makes a run of each explorer with each seed, and returns them all, in the order of explorers and seeds.

    A run that fails does not end the others. If called again, it is tried again.

    Args:
        request: what is asked of all of them.
        explorers: names of presets.
        out: the folder for the run folders, which are called `EXPLORER-SEED`. Runs of another request are refused,
            except for a smaller `max_steps`, from which they resume.
        seeds: the number of seeds, from 0 on.
        workers: number of worker processes, each of which makes one run at a time; None for no workers. Results do not
            depend on it.
        ray: the Ray cluster that runs the workers: `auto` or an address. There a run is made in a folder of the
            worker's machine and sent back when it has ended, so one that was interrupted begins again.
        on_done: called with the finished and the total number of runs.
    """
    runs = _asked(request, explorers, out, seeds)
    made = {run.folder: run for run in runs if _has_ended(run)}
    missing = [run for run in runs if run.folder not in made]
    missing.sort(key=lambda run: run.request.seed)  # so that an interruption leaves equally many runs of each explorer
    for run in missing:
        _make_room(run.folder)
    report = on_done or (lambda _, __: None)
    report(len(made), len(runs))
    with engine_for(workers, ray) as engine:
        if ray is None:
            results = results_of(_explored, missing, engine)
        else:
            results = map(_kept, results_of(_explored_away, [(run, _files_of(run.folder)) for run in missing], engine))
        for run in results:
            made[run.folder] = run
            report(len(made), len(runs))
    return [made[run.folder] for run in runs]


def _asked(request: Request, explorers: Sequence[str], out: Path, seeds: int) -> list[SeedRun]:
    if seeds < 1:
        raise InvalidSettingError(f"seeds is {seeds}; there must be at least one")
    if not explorers:
        raise InvalidSettingError("there is no explorer to compare; name at least one")
    names = dict.fromkeys(explorers)
    for name in names:
        explorer_from(replace(request, explorer=name))  # refuses invalid requests
    return [
        SeedRun(replace(request, explorer=name, seed=seed, run=out / f"{name}-{seed}"))
        for name in names
        for seed in range(seeds)
    ]


def _has_ended(run: SeedRun) -> bool:
    """Returns whether there is nothing left to do for a run; refuses a folder that holds another."""
    if not (run.folder / ORIGIN).is_file():
        return False
    limit = _limit_of_same(run)
    path = run.folder / ENDED
    if not path.is_file():
        return False
    stop = StopReason[read_document(path, ENDED_FORMAT, ENDED_VERSION)["stop"]]
    if stop is StopReason.STEP_LIMIT:
        return limit == run.request.max_steps
    return stop not in (StopReason.INTERRUPTED, StopReason.TIME_LIMIT, StopReason.WORLD_FAILED)


def _limit_of_same(run: SeedRun) -> int | None:
    """Returns the step limit of the run in a folder; refuses one of another question."""
    manifest, request = load_manifest(run.folder), run.request
    was = manifest.world, manifest.world_name, manifest.world_parameters, manifest.settings
    if was != (without_secrets(str(request.world)), *kept_world(request), kept_settings(request)):
        seed = manifest.request.seed
        told = f"{manifest.world} with parameters {manifest.world_parameters} and seed {seed}"
        raise InvalidSettingError(f"{run.folder} holds another run, of {told}; give another folder")
    checkpoint = load_checkpoint(manifest.run, run.folder)
    try:
        explorer_from_description(manifest, checkpoint.explorer, explorer_from(request)[0])
    except InvalidSettingError as error:
        raise InvalidSettingError(f"{run.folder} holds another run: {error}; give another folder") from None
    if request.max_steps is not None and (checkpoint.max_steps is None or checkpoint.max_steps > request.max_steps):
        limit = "any number of" if checkpoint.max_steps is None else f"{checkpoint.max_steps:,}"
        raise InvalidSettingError(
            f"{run.folder} holds a run of up to {limit} steps, more than {request.max_steps:,}; give another folder"
        )
    return checkpoint.max_steps


def _explored(run: SeedRun) -> SeedRun:
    """Makes or resumes a run in the process of a worker, and returns it."""
    request, folder = run.request, run.folder
    try:
        if (folder / ORIGIN).is_file():
            # Its world is that of the request, which was checked.
            world, parameters = request.world, request.world_parameters
            atlas = resume(
                folder,
                world,
                world_parameters=parameters,
                max_steps=request.max_steps,
                max_seconds=request.max_seconds,
                trust=True,
            )
            if atlas.stop is StopReason.STEP_LIMIT and request.max_steps is None:
                resume(
                    folder, world, world_parameters=parameters, trust=True
                )  # an earlier limit ends a run once more before it is removed
        else:
            _make_room(folder)
            explored(request)
    except (WorldError, NotConvergedError) as error:
        # The message says where the run is, which is known here.
        why = error.__cause__ if getattr(error, "atlas", None) is not None else error
        return replace(run, failure=f"{type(error).__name__}: {why}")
    return run


def _make_room(folder: Path) -> None:
    """Makes an empty folder, unless there is a run in it; refuses one that holds anything else.

    It removes what a process left that was killed before its run had begun.
    """
    if (folder / ORIGIN).is_file():
        return
    if (folder / LOCK).is_file():
        with storage_errors(f"the folder {folder} cannot be used"):
            lock = Lock(folder)
            try:
                remove_unfinished(folder)
                for path in folder.glob("checkpoint-0.*"):
                    path.unlink()
            finally:
                lock.close()
            (folder / LOCK).unlink()
    make_empty_folder(folder)


def _explored_away(run_and_files: tuple[SeedRun, Files]) -> tuple[SeedRun, Files]:
    """Makes or resumes a run in a folder that the caller cannot see; returns it with the files of the folder."""
    run, files = run_and_files
    with TemporaryDirectory(prefix="axplore-") as temporary:
        folder = Path(temporary) / run.folder.name
        if files:
            _write(folder, files)
        made = _explored(replace(run, request=replace(run.request, run=folder)))
        return replace(made, request=run.request), _files_of(folder)


def _kept(run_and_files: tuple[SeedRun, Files]) -> SeedRun:
    """Returns the run of a remote worker after writing its files to its folder."""
    run, files = run_and_files
    if not files:  # it failed before it had begun
        return run
    beside = TemporaryDirectory(prefix=f".{run.folder.name}-", dir=run.folder.parent)
    with storage_errors(f"the run in {run.folder} cannot be written"), beside as temporary:
        _write(Path(temporary) / "made", files)
        run.folder.rename(Path(temporary) / "before")  # empty, or what the worker resumed from
        (Path(temporary) / "made").rename(run.folder)
    return run


def _write(folder: Path, files: Files) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _files_of(folder: Path) -> Files:
    """Returns the files in the folder of a run; none if there is no run in it."""
    if not (folder / ORIGIN).is_file():
        return {}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != LOCK}
