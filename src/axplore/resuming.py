"""`resume`: a run that was interrupted or has ended, from its folder to an atlas in one call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from axplore.assumptions import assumptions_from
from axplore.atlas import Atlas
from axplore.budget import Budget, moment_after
from axplore.errors import InvalidSettingError, UntrustedFileError
from axplore.explorers.base import Explorer, ExplorerState
from axplore.explorers.registry import EXPLORERS, explorer_names
from axplore.exploring import (
    Ended,
    Session,
    objective_from,
    played_by,
    refiner_for,
    shared_by_workers,
    situations_until_end,
    world_within,
)
from axplore.noticing import ExaminationBeside, examination_beside, examined
from axplore.records.findings import Finding
from axplore.request import Changes, WorldLike, asks
from axplore.runs.checkpoints import decode_state
from axplore.runs.folder import RunFolder, open_run
from axplore.runs.history import examination_due
from axplore.runs.manifest import (
    RunManifest,
    described,
    explorer_from_description,
    load_manifest,
    without_goal_function,
)
from axplore.runs.recording import RunRecorder
from axplore.worlds.catalogue import check_consent, check_parameters, function_named, is_handed_in, read_parameters
from axplore.worlds.contract import Examinable, World, playable


@asks(Changes)
def resume(changes: Changes) -> Atlas:
    """Resumes a run where it was interrupted or has ended.

    A simulated world ends with the same atlas and certificate as an uninterrupted run. So does a system that is stepped
    by workers, if it can be reseeded. A system that is stepped without workers starts with a RESET, because its state
    is unknown; what was learnt about it is kept.

    The certified explorer can resume with another radius, ε, objective or assumption. Draws are valid whatever was
    asked or assumed, so all of them are kept, and its certificate is as good as any: see docs/runs.md. A setting that
    is left out stays as it was; `max_steps` is the limit of the whole run, and one that has ended the run is removed;
    `workers=0` takes the workers away, and `assume="none"` every assumption.

    {settings}

    Raises:
        UntrustedFileError: the run names code that is not built in, and `trust` is not set.
        WorldError: the world failed, as for `explore`.
        KeyboardInterrupt: Ctrl-C, as for `explore`.
    """
    return resumed(changes)


def resumed(changes: Changes, on_end: Ended | None = None) -> Atlas:
    """Returns the atlas of a run that resumes with some changes; see `resume`."""
    path = Path(changes.run).absolute()  # a system may change the working directory
    manifest = load_manifest(path)
    changes = _with_workers(changes, manifest)
    _check_consent(changes, manifest)
    with ExitStack() as closing:
        folder = closing.enter_context(open_run(path))
        before, chosen, is_same = _explorers(changes, folder)
        folder.limit(changes.max_steps)
        last = folder.checkpoint
        budget = Budget(last.max_steps, moment_after(changes.max_seconds), last.examining, last.playing, last.in_vain)
        system = _world_again(manifest, changes, budget, last.world.steps - manifest.steps_before)
        # The RESETs with which this process begins are no part of the exploration that it continues.
        budget.examining, budget.in_vain = last.examining, budget.in_vain + budget.examining - last.examining
        if not is_handed_in(changes.world):
            closing.callback(system.close)
        chosen.goal.check_names(system.names)
        local, tried = system.examinable, playable(system)
        system = shared_by_workers(system, changes, closing)
        watched, tried = played_by(system, local, tried)
        request = replace(manifest.request, workers=changes.workers, ray=changes.ray)
        refiner = refiner_for(request, local, chosen, budget, manifest.steps_before)
        if refiner is not None:
            system = watched = tried = situations_until_end(refiner, closing)
        recorder = closing.enter_context(RunRecorder(folder, system, chosen, budget, tried))
        state = decode_state(folder.checkpoint.state, before, folder.checkpoint.world)
        if getattr(state, "logged", None) is not None:
            recorder.world.hear(state.logged.unsure)
        if not is_same:
            state = _retargeted(recorder, state, before, chosen)
        examination = None
        if local is not None and (due := examination_due(path)) is not None:
            examination = _examined_again(local, due, chosen, changes, recorder, budget)
        if examination is not None:
            closing.callback(examination.close)
        recorder.note_start("resumed")
        session = Session(
            asked=changes,
            explorer=chosen,
            explorer_name=manifest.explorer,
            world_name=manifest.world,
            steps_before=manifest.steps_before,
            budget=budget,
            state=state,
            findings=folder.findings,
            watched=watched,
            tried=tried,
            confirm=manifest.request.confirm if changes.confirm is None else changes.confirm,
            refiner=refiner,
            on_end=on_end,
            examination=examination,
        )
        return session.run(recorder.world, recorder)


def _examined_again(
    system: Examinable, due: int, chosen: Explorer[Any], changes: Changes, recorder: RunRecorder, budget: Budget
) -> ExaminationBeside | None:
    """Examines a system again whose examination was under way when the process ended: beside the workers, or now.

    Args:
        system: the world of the system.
        due: the steps that were reserved for it.
        chosen: the explorer from now on.
        changes: what is asked for.
        recorder: of the run.
        budget: what it may take.

    Returns:
        The examination that has begun; None if it is over.
    """
    folder = recorder.folder
    seed, exploring = folder.manifest.request.seed, folder.checkpoint.world.steps - folder.manifest.steps_before
    if changes.has_workers:
        examination = examination_beside(system, seed, budget, chosen.assume, exploring, due)
        if examination is not None:
            return examination
    for finding in examined(system, seed, budget, exploring, chosen.assume):
        if finding not in folder.findings:
            folder.keep_finding(finding)
    recorder.note_examined(budget.examining)
    return None


def _with_workers(changes: Changes, manifest: RunManifest) -> Changes:
    """Returns the changes with the workers of the run, if they are not to change."""
    if changes.workers is not None or changes.ray is not None:
        return changes
    before = manifest.request
    return replace(changes, workers=before.workers, ray=_trusted_cluster(before.ray, changes.trust))


def _explorers(changes: Changes, folder: RunFolder) -> tuple[Explorer[Any], Explorer[Any], bool]:
    """Returns the explorer as it was and as it is from now on, and whether it asks and assumes the same."""
    description = folder.checkpoint.explorer
    assumptions = None if changes.assume is None else assumptions_from(changes.assume, function_named)
    was_asked = description.get("goal")
    if changes.goal is not None:
        description = without_goal_function(description)
    before = explorer_from_description(
        folder.manifest, description, changes.explorer, assumed_anew=assumptions is not None
    )
    assumes_the_same = assumptions is None or described(assumptions) == description.get("assume")
    if assumptions is not None and assumes_the_same:
        before = before.assuming(assumptions)  # functions of the run, passed again
    if changes.goal is not None and described(changes.goal) == was_asked:
        before = before.towards(changes.goal)
    target = {"radius": changes.radius, "epsilon": changes.epsilon}
    wanted = replace(before.target, **{name: value for name, value in target.items() if value is not None})
    chosen = before.retarget(wanted, None if changes.objective is None else objective_from(changes.objective))
    if assumptions is not None:
        chosen = chosen.assuming(assumptions)
    if changes.goal is not None:
        chosen = chosen.towards(changes.goal)
    is_same_goal = changes.goal is None or described(changes.goal) == was_asked
    return before, chosen, assumes_the_same and is_same_goal and chosen == before


def _trusted_cluster(address: str | None, trust: bool) -> str | None:
    """Returns the cluster of a run; refuses a remote one without consent, because workers exchange pickles."""
    if address not in (None, "auto") and not trust:
        raise UntrustedFileError(
            f"the run names the Ray cluster {address!r}, with which this machine would exchange code. If you trust it, "
            "allow it: --trust on the command line, trust=True in Python; or give workers or ray yourself"
        )
    return address


def _check_consent(changes: Changes, manifest: RunManifest) -> None:
    """Refuses code that a run names and the caller has not: who names the world consents to nothing else."""
    name, trust = manifest.world_name, changes.trust
    if name is not None and changes.world is None:
        check_consent(name, trust)
    if name is not None and _makes_again(manifest, changes.world) and changes.world_parameters is None:
        check_parameters(name, manifest.world_parameters, trust)
    explorer = manifest.explorer
    if changes.explorer is None and explorer not in EXPLORERS and explorer in explorer_names() and not trust:
        raise UntrustedFileError(
            f"the run names the explorer {explorer!r} of another package, whose code would run on this machine. If you "
            "trust the source of the run, allow it: --trust on the command line, trust=True in Python; or pass the "
            "explorer yourself"
        )


def _makes_again(manifest: RunManifest, given: WorldLike | None) -> bool:
    """Returns whether the world is made by the name that the run has for it."""
    return given is None or _is_named(manifest, given)


def _is_named(manifest: RunManifest, given: WorldLike | None) -> bool:
    """Returns whether the caller names the world that the run names."""
    return isinstance(given, str) and given == manifest.world_name


def _world_again(manifest: RunManifest, changes: Changes, budget: Budget, exploring: int) -> World:
    """Returns the world of a run, made again or passed by the caller."""
    given, parameters, seed = changes.world, changes.world_parameters, manifest.request.seed
    if given is not None and not _is_named(manifest, given):
        system, _ = world_within(budget, exploring, given, seed, parameters)
    elif manifest.world_name is not None:
        before = manifest.world_parameters
        if parameters is not None and read_parameters(parameters) != read_parameters(before):
            raise InvalidSettingError(
                f"the run explored {manifest.world} with the parameters {before}; these are {dict(parameters)}"
            )
        system, _ = world_within(budget, exploring, manifest.world_name, seed, before)
    else:
        raise InvalidSettingError(
            f"the run explored {manifest.world}, which no file makes again: it was passed as an object, or its address "
            "has what may be secret. Pass it again, with its parameters: axplore.resume(run, world) in Python; an "
            "address also by --world on the command line"
        )
    if system.fingerprint != manifest.fingerprint:
        raise InvalidSettingError(
            f"the run explored {manifest.world}, but this is another world: its transitions or its seed differ"
        )
    return system


def _retargeted(
    recorder: RunRecorder, state: ExplorerState, before: Explorer[Any], chosen: Explorer[Any]
) -> ExplorerState:
    """Returns the state of a run that resumes with another target or objective, saved before anything else is done."""
    while recorder.world.repeating:  # first repeats the orders given before, so that no answer is lost
        state = before.advance(state, recorder.world)
    reopened: ExplorerState = chosen.reopen(state, before)
    narrowed = recorder.folder.checkpoint.narrowed or chosen.target.reach < before.target.reach
    assumed = recorder.folder.checkpoint.explorer.get("assume")
    kept = tuple(finding for finding in recorder.folder.findings if _is_meant(finding, assumed, chosen))
    recorder.write_checkpoint(reopened, narrowed=narrowed, findings=kept)
    return reopened


def _is_meant(finding: Finding, assumed: Any, chosen: Explorer[Any]) -> bool:
    """Returns whether a finding still says something: not where it is about an assumption that is now another one.

    Args:
        finding: the finding.
        assumed: what was assumed, as a checkpoint describes it.
        chosen: the explorer from now on.
    """
    if finding.assumption is None or not isinstance(assumed, Mapping):
        return True
    now = described(chosen.assume)
    return bool(assumed.get(finding.assumption) == now.get(finding.assumption))
