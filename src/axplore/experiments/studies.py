"""Studies: one world explored by several explorers, each with several seeds; and comparisons of runs.

A study is a folder of run folders. Every run is the one that `explore` makes with the same seed, so it depends neither
on the others nor on the worker. Called again after an interruption, a study keeps runs that have ended and resumes the
others.

A comparison shows the steps and times of runs, and whether they are correct where the truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from axplore.atlas import Atlas
from axplore.errors import InvalidSettingError, NotConvergedError, UnknownNameError, WorldError
from axplore.experiments.runner import policy_steps_on
from axplore.explorers.base import Explorer, StopReason, check_max_steps
from axplore.exploring import DEFAULT_DELTA, DEFAULT_EPSILON, explore, explorer_from
from axplore.mdp import TabularMdp
from axplore.resuming import resume
from axplore.runs.checkpoints import load_checkpoint
from axplore.runs.folder import ENDED, ENDED_FORMAT, ENDED_VERSION
from axplore.runs.history import History, history_of
from axplore.runs.manifest import NAME as ORIGIN
from axplore.runs.manifest import explorer_from_description, load_manifest
from axplore.statistics.summaries import estimate
from axplore.storage import LOCK, Lock, make_empty_folder, read_document, remove_unfinished, storage_errors
from axplore.target import Objective
from axplore.truth import ControllableStates, ObjectiveCheck, check_optimal, check_within_radius, controllable_states
from axplore.types import State
from axplore.workers.engines import engine_for
from axplore.workers.pool import results_of
from axplore.worlds.catalogue import known_model

Files: TypeAlias = Mapping[str, bytes]
"""The files of a run folder, by name."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the runs have in common.

    Attributes:
        world: the name of the world.
        world_parameters: the parameters of the world, as plain values.
        radius: L.
        epsilon: ε.
        delta: δ.
        max_steps: the step limit of each run.
        states_bound: S, which only the theory presets need.
    """

    world: str
    world_parameters: Mapping[str, Any] = field(default_factory=dict)
    radius: float
    epsilon: float = DEFAULT_EPSILON
    delta: float = DEFAULT_DELTA
    max_steps: int | None = None
    states_bound: int | None = None

    def explorer(self, name: str) -> Explorer[Any]:
        """Returns the explorer of that name for this question."""
        chosen, _ = explorer_from(name, self.radius, self.epsilon, self.delta, None, self.states_bound)
        return chosen


@dataclass(frozen=True)
class SeedRun:
    """A run of a study.

    Attributes:
        question: what is explored, and how precisely.
        explorer: the name of the explorer.
        seed: the seed of the world.
        folder: the folder of the run.
        failure: how the world or the explorer failed, if one did.
    """

    question: Question
    explorer: str
    seed: int
    folder: Path
    failure: str | None = None


def explore_seeds(
    question: Question,
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
        question: what is explored.
        explorers: names of presets.
        out: the folder for the run folders, which are called `EXPLORER-SEED`. Runs of another question are
            refused, except for a smaller `max_steps`, from which they resume.
        seeds: the number of seeds, from 0 on.
        workers: number of worker processes, each of which makes one run at a time; None for no workers. Results do not
            depend on it.
        ray: the Ray cluster that runs the workers: `auto` or an address. There a run is made in a folder of the
            worker's machine and sent back when it has ended, so one that was interrupted begins again.
        on_done: called with the finished and the total number of runs.
    """
    runs = _asked(question, explorers, out, seeds)
    made = {run.folder: run for run in runs if _has_ended(run)}
    missing = [run for run in runs if run.folder not in made]
    missing.sort(key=lambda run: run.seed)  # so that an interruption leaves equally many runs of each explorer
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


def _asked(question: Question, explorers: Sequence[str], out: Path, seeds: int) -> list[SeedRun]:
    if seeds < 1:
        raise InvalidSettingError(f"seeds is {seeds}; there must be at least one")
    if not explorers:
        raise InvalidSettingError("there is no explorer to compare; name at least one")
    check_max_steps(question.max_steps)
    for name in explorers:
        question.explorer(name)  # refuses invalid questions
    names = dict.fromkeys(explorers)
    return [SeedRun(question, name, seed, out / f"{name}-{seed}") for name in names for seed in range(seeds)]


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
        return limit == run.question.max_steps
    return stop not in (StopReason.INTERRUPTED, StopReason.WORLD_FAILED)


def _limit_of_same(run: SeedRun) -> int | None:
    """Returns the step limit of the run in a folder; refuses one of another question."""
    manifest, question = load_manifest(run.folder), run.question
    was = (
        manifest.world_name,
        dict(manifest.world_parameters),
        manifest.seed,
        manifest.states_bound,
        manifest.has_workers,
    )
    if was != (question.world, dict(question.world_parameters), run.seed, question.states_bound, False):
        told = f"{manifest.world} with parameters {dict(manifest.world_parameters)} and seed {manifest.seed}"
        raise InvalidSettingError(f"{run.folder} holds another run, of {told}; give another folder")
    checkpoint = load_checkpoint(manifest.run, run.folder)
    try:
        explorer_from_description(manifest, checkpoint.explorer, question.explorer(run.explorer))
    except InvalidSettingError as error:
        raise InvalidSettingError(f"{run.folder} holds another run: {error}; give another folder") from None
    if question.max_steps is not None and (checkpoint.max_steps is None or checkpoint.max_steps > question.max_steps):
        limit = "any number of" if checkpoint.max_steps is None else f"{checkpoint.max_steps:,}"
        raise InvalidSettingError(
            f"{run.folder} holds a run of up to {limit} steps, more than {question.max_steps:,}; give another folder"
        )
    return checkpoint.max_steps


def _explored(run: SeedRun) -> SeedRun:
    """Makes or resumes a run in the process of a worker, and returns it."""
    question, folder = run.question, run.folder
    try:
        if (folder / ORIGIN).is_file():
            # Its world is that of the question, which was checked.
            atlas = resume(folder, max_steps=question.max_steps, trust=True)
            if atlas.stop is StopReason.STEP_LIMIT and question.max_steps is None:
                resume(folder, trust=True)  # an earlier limit ends a run once more before it is removed
        else:
            _make_room(folder)
            explore(**vars(question), explorer=run.explorer, seed=run.seed, run=folder)
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
    with TemporaryDirectory(prefix="axplore-") as place:
        folder = Path(place) / run.folder.name
        if files:
            _write(folder, files)
        made = _explored(replace(run, folder=folder))
        return replace(made, folder=run.folder), _files_of(folder)


def _kept(run_and_files: tuple[SeedRun, Files]) -> SeedRun:
    """Returns the run of a remote worker after writing its files to its folder."""
    run, files = run_and_files
    if not files:  # it failed before it had begun
        return run
    beside = TemporaryDirectory(prefix=f".{run.folder.name}-", dir=run.folder.parent)
    with storage_errors(f"the run in {run.folder} cannot be written"), beside as place:
        _write(Path(place) / "made", files)
        run.folder.rename(Path(place) / "before")  # empty, or what the worker resumed from
        (Path(place) / "made").rename(run.folder)
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


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run in a comparison.

    Attributes:
        folder: the folder of the run.
        atlas: its atlas.
        history: its history.
        truth: the truth about its world and radius, if that is known.
        checks: whether AX_L and AX* hold on the true model; empty if that is not known.
    """

    folder: Path
    atlas: Atlas
    history: History
    truth: ControllableStates | None
    checks: Mapping[Objective, ObjectiveCheck]

    @property
    def traits(self) -> tuple[str, ...]:
        """The world, the explorer, L, ε and δ."""
        atlas, manifest, target = self.atlas, self.history.manifest, self.atlas.target
        parameters = {} if manifest is None else manifest.world_parameters
        told = ", ".join(f"{name}={value}" for name, value in parameters.items())
        objective = "" if atlas.objective is None else f" {atlas.objective.value}"
        by_workers = " with workers" if manifest is not None and manifest.has_workers else ""
        return (
            f"{atlas.world} ({told})" if told else atlas.world,
            f"{atlas.explorer}{objective}{by_workers}",
            f"L={target.radius:g}",
            f"ε={target.epsilon:g}",
            f"δ={target.delta:g}",
        )

    @property
    def group(self) -> str:
        """The name shared by runs that differ only in their seed."""
        world, *others = self.traits
        return f"{world}: {', '.join(others)}"


def compared(folders: Sequence[Path]) -> list[ComparedRun]:
    """Returns the runs in these folders. Truths are computed once for each world and radius."""
    truths: dict[tuple[Any, ...], ControllableStates | None] = {}
    runs = []
    for folder in folders:
        atlas, history = Atlas.load(folder), history_of(folder)
        manifest = history.manifest
        parameters = {} if manifest is None else dict(manifest.world_parameters)
        key = (None if manifest is None else manifest.world_name, str(parameters), atlas.target.radius)
        if key not in truths:
            truths[key] = _truth(key[0], parameters, atlas.target.radius)
        truth = truths[key]
        runs.append(ComparedRun(folder, atlas, history, truth, {} if truth is None else _checks(atlas, truth)))
    return runs


def grouped(runs: Sequence[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """Returns the runs of each group, by its name."""
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return groups


def means_of(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    """Returns the states and steps of each group, fewest and most, its mean steps, and how many runs are correct.

    The half-width is that of the 95 % confidence interval, None for a single run. The steps of runs that were cut short
    count as they are, so their mean is too small.
    """
    means = []
    for what, group in grouped(runs).items():
        steps = estimate([run.atlas.steps for run in group])
        means.append(
            {
                "what": what,
                "runs": len(group),
                "states": _fewest_and_most(len(run.atlas.states) for run in group),
                "steps": _fewest_and_most(run.atlas.steps for run in group),
                "mean_steps": steps.mean,
                "half_width": steps.half_width if math.isfinite(steps.half_width) else None,
                "cut_short": sum(not run.atlas.stop.by_own_rule for run in group),
                "right": {
                    objective.value: _number_right(group, objective)
                    for objective in (Objective.WITHIN_RADIUS, Objective.OPTIMAL)
                },
            }
        )
    return means


def _fewest_and_most(numbers: Iterable[int]) -> tuple[int, int]:
    values = list(numbers)
    return min(values), max(values)


def true_steps(atlas: Atlas, mdp: TabularMdp) -> dict[State, float]:
    """Returns the expected steps of the policy to each state of an atlas, on the model that was explored; exact."""
    plans = zip(atlas.states, atlas.policies, strict=True)
    return {goal: policy_steps_on(mdp, atlas.states, policy, goal) for goal, policy in plans}


def _truth(name: str | None, parameters: Mapping[str, Any], radius: float) -> ControllableStates | None:
    if name is None:
        return None
    try:
        model = known_model(name, parameters)
    except UnknownNameError:
        return None
    return controllable_states(model, radius)


def _checks(atlas: Atlas, truth: ControllableStates) -> dict[Objective, ObjectiveCheck]:
    steps, epsilon = true_steps(atlas, truth.mdp), atlas.target.epsilon
    checks = [check(truth, steps=steps, epsilon=epsilon) for check in (check_within_radius, check_optimal)]
    return {check.objective: check for check in checks}


def _number_right(group: Sequence[ComparedRun], objective: Objective) -> int | None:
    """Returns the number of runs that keep an objective on the true model; None if that is not known for all."""
    checks = [run.checks.get(objective) for run in group]
    return None if None in checks else sum(check is not None and check.holds for check in checks)
