"""`resume`: a run that was interrupted or has ended, from its folder to an atlas in one call."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from axplore.arguments import checked, file_path, flag, function, optional, real, text, whole
from axplore.assumptions import Assumed, assumptions_from
from axplore.atlas import Atlas
from axplore.errors import InvalidSettingError, UntrustedFileError
from axplore.explorers.base import Explorer, ExplorerState, Observer
from axplore.exploring import Session, WorldLike, objective_from, shared_by_workers, world_from
from axplore.refining import examined, refiner_of
from axplore.runs.checkpoints import decode_state
from axplore.runs.folder import open_run
from axplore.runs.manifest import RunManifest, described, explorer_from_description, load_manifest
from axplore.runs.recording import RunRecorder
from axplore.target import Objective
from axplore.workers.engines import has_workers
from axplore.worlds.catalogue import check_consent, function_named, is_handed_in
from axplore.worlds.contract import World
from axplore.worlds.stepped import SteppedWorld


@checked(
    run=file_path,
    radius=optional(real()),
    epsilon=optional(real()),
    max_steps=optional(whole()),
    progress=flag,
    on_round=optional(function),
    workers=optional(whole()),
    ray=optional(text),
    trust=flag,
)
def resume(
    run: str | Path,
    world: WorldLike | None = None,
    *,
    explorer: Explorer[Any] | None = None,
    radius: float | None = None,
    epsilon: float | None = None,
    objective: Objective | str | None = None,
    max_steps: int | None = None,
    progress: bool = False,
    on_round: Observer | None = None,
    workers: int | None = None,
    ray: str | None = None,
    trust: bool = False,
    assume: Assumed = None,
) -> Atlas:
    """Resumes a run where it was interrupted or has ended.

    A simulated world ends with the same atlas and certificate as an uninterrupted run. So does a system that is stepped
    by workers, if it can be reseeded. A system that is stepped without workers starts with a RESET, because its state
    is unknown; what was learnt about it is kept.

    The certified explorer can resume with another radius, ε or objective. It keeps all samples, and its certificate is
    as good as any: see docs/runs.md.

    Args:
        run: the folder of the run.
        world: the world that was explored. It can be omitted if it is built in, or named in the run and `trust` is set.
        explorer: the explorer, if it was a configuration other than of the certified explorer.
        radius: the new L.
        epsilon: the new ε.
        objective: the new objective of the certified explorer.
        max_steps: the step limit of the whole run. Without it, a limit that has ended the run is removed, and any other
            stays.
        progress: whether to show progress on standard error.
        on_round: as for `explore`; it is also called for repeated rounds.
        workers: the new number of workers, 0 for none; unchanged if neither this nor `ray` is given.
        ray: the new cluster.
        trust: whether to start the world that the run names, and use its cluster, which runs code: see
            docs/security.md.
        assume: the new assumptions, `none` for none; as before when not given. Draws are valid whatever was assumed,
            and all of them are kept.

    Raises:
        UntrustedFileError: the run names a world that is not built in, or a cluster, and `trust` is not set.
        WorldError: the world failed, as for `explore`.
        KeyboardInterrupt: Ctrl-C, as for `explore`.
    """
    place = Path(run).absolute()  # a system may change the working directory
    manifest = load_manifest(place)
    if workers is None and ray is None:
        workers, ray = manifest.workers, _trusted_cluster(manifest.ray, trust)
    if world is None and manifest.world_name is not None:
        check_consent(manifest.world_name, trust)
    with ExitStack() as closing:
        folder = closing.enter_context(open_run(place))
        manifest = folder.manifest
        assumptions = None if assume is None else assumptions_from(assume, function_named)
        before = explorer_from_description(
            manifest, folder.checkpoint.explorer, explorer, assumed_anew=assumptions is not None
        )
        is_same = assumptions is None or described(assumptions) == folder.checkpoint.explorer.get("assume")
        if assumptions is not None and is_same:
            before = before.assuming(assumptions)  # functions of the run, passed again
        changes = {"radius": radius, "epsilon": epsilon}
        asked = replace(before.target, **{name: value for name, value in changes.items() if value is not None})
        chosen = before.retarget(asked, None if objective is None else objective_from(objective))
        if assumptions is not None:
            chosen = chosen.assuming(assumptions)
        system = _world_again(manifest, world)
        if not is_handed_in(world):
            closing.callback(system.close)
        watched = system if isinstance(system, SteppedWorld) else None
        system = shared_by_workers(system, workers, ray, closing)
        folder.limit(max_steps)
        limit = folder.checkpoint.max_steps
        last_step = None if limit is None else manifest.steps_before + limit
        refiner = refiner_of(
            manifest.memory, watched, chosen, manifest.seed, last_step, has_workers=has_workers(workers, ray)
        )
        recorder = closing.enter_context(RunRecorder(folder, system, chosen))
        state = decode_state(folder.checkpoint.state, before)
        if chosen != before or not is_same:
            state = _retargeted(recorder, state, before, chosen)
        recorder.note_start("resumed")
        findings = manifest.findings
        if watched is not None and watched.memory is not None:  # what was found of other labels says nothing of these
            findings = examined(watched, manifest.seed)
        session = Session(
            explorer=chosen,
            explorer_name=manifest.explorer,
            world_name=manifest.world,
            steps_before=manifest.steps_before,
            max_steps=limit,
            progress=progress,
            on_round=on_round,
            state=state,
            findings=findings,
            watched=watched,
            refiner=refiner,
        )
        return session.run(recorder.world, recorder)


def _trusted_cluster(address: str | None, trust: bool) -> str | None:
    """Returns the cluster of a run; refuses a remote one without consent, because workers exchange pickles."""
    if address not in (None, "auto") and not trust:
        raise UntrustedFileError(
            f"the run names the Ray cluster {address!r}, with which this machine would exchange code. If you trust it, "
            "allow it: --trust on the command line, trust=True in Python; or give workers or ray yourself"
        )
    return address


def _world_again(manifest: RunManifest, given: WorldLike | None) -> World:
    """Returns the world of a run, made again or passed by the caller."""
    if given is not None and not (isinstance(given, str) and given == manifest.world_name):
        system, _ = world_from(given, manifest.seed)
    elif manifest.world_name is not None:
        system, _ = world_from(manifest.world_name, manifest.seed, manifest.world_parameters)
    else:
        raise InvalidSettingError(
            f"the run explored {manifest.world}, which was passed as an object; resume it from Python, and pass it "
            "again: axplore.resume(run, world)"
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
    recorder.write_checkpoint(reopened, narrowed=narrowed)
    return reopened
