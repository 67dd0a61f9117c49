"""`resume`: a run that was interrupted or has ended, from its folder to an atlas in one call."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from axplore.arguments import checked, file_path, flag, function, optional, real, text, whole
from axplore.atlas import Atlas
from axplore.errors import InvalidSettingError, UntrustedFileError
from axplore.explorers.base import Explorer, ExplorerState, Observer
from axplore.exploring import Session, WorldLike, objective_from, shared_by_workers, world_from
from axplore.runs.checkpoints import decode_state
from axplore.runs.folder import open_run
from axplore.runs.manifest import RunManifest, explorer_from_description, load_manifest
from axplore.runs.recording import RunRecorder
from axplore.target import Objective
from axplore.worlds.catalogue import check_consent, is_handed_in
from axplore.worlds.contract import World


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
) -> Atlas:
    """Resumes a run where it was interrupted or has ended.

    A simulated world ends as if nothing had happened: with the same atlas and the same certificate. So does a system
    that is stepped by workers, if it can be reseeded. One that is stepped without begins with a RESET, because nobody
    knows where it stands; what was learnt of it is kept.

    The certified explorer can resume with another radius, ε or objective. It keeps what it has sampled, and its
    certificate is as good as any: see docs/runs.md.

    Args:
        run: the folder.
        world: what was explored. A built-in world need not be given, and neither need any named one with `trust`.
        explorer: what explored it, if it was a configuration other than of the certified explorer.
        radius: L from now on.
        epsilon: ε from now on.
        objective: of the certified explorer from now on.
        max_steps: no order begins after so many steps of the whole run. Without it, a limit that has ended the run is
            lifted, and one that has not stays.
        progress: show on standard error how it goes.
        on_round: as for `explore`; it is called for repeated pieces of work too.
        workers: so many from now on, 0 for none; as before when neither this nor `ray` is given.
        ray: the cluster from now on.
        trust: start the world that the run names, and use the cluster, though that runs code: see docs/security.md.

    Raises:
        UntrustedFileError: the run names a world that is not built in, or a cluster, and `trust` is not set.
        WorldError: the world failed, as for `explore`.
        KeyboardInterrupt: Ctrl-C, as for `explore`.
    """
    manifest = load_manifest(Path(run))
    if workers is None and ray is None:
        workers, ray = manifest.workers, _trusted_cluster(manifest.ray, trust)
    if world is None and manifest.world_name is not None:
        check_consent(manifest.world_name, trust)
    with ExitStack() as closing:
        folder = closing.enter_context(open_run(Path(run)))
        manifest = folder.manifest
        before = explorer_from_description(manifest, folder.checkpoint.explorer, explorer)
        changes = {"radius": radius, "epsilon": epsilon}
        asked = replace(before.target, **{name: value for name, value in changes.items() if value is not None})
        chosen = before.retarget(asked, None if objective is None else objective_from(objective))
        system = _world_again(manifest, world)
        if not is_handed_in(world):
            closing.callback(system.close)
        system = shared_by_workers(system, workers, ray, closing)
        folder.limit(max_steps)
        recorder = closing.enter_context(RunRecorder(folder, system, chosen))
        state = decode_state(folder.checkpoint.state, before)
        if chosen != before:
            state = _retargeted(recorder, state, before, chosen)
        recorder.note_start("resumed")
        limit = folder.checkpoint.max_steps
        session = Session(
            chosen,
            manifest.explorer,
            manifest.world,
            manifest.steps_before,
            limit,
            progress,
            on_round,
            state,
            manifest.findings,
        )
        return session.run(recorder.world, recorder)


def _trusted_cluster(address: str | None, trust: bool) -> str | None:
    """The cluster of a run; refuses another than the one of this machine without consent, as workers send pickles."""
    if address not in (None, "auto") and not trust:
        raise UntrustedFileError(
            f"the run names the Ray cluster {address!r}, with which this machine would exchange code. If you trust it, "
            "consent: --trust on the command line, trust=True in Python; or give workers or ray yourself"
        )
    return address


def _world_again(manifest: RunManifest, given: WorldLike | None) -> World:
    """The world of a run, made again or handed in."""
    if given is not None and not (isinstance(given, str) and given == manifest.world_name):
        system, _ = world_from(given, manifest.seed)
    elif manifest.world_name is not None:
        system, _ = world_from(manifest.world_name, manifest.seed, manifest.world_parameters)
    else:
        raise InvalidSettingError(
            f"the run explored {manifest.world}, which was handed in as an object; resume it from Python, and hand it "
            "in again: axplore.resume(run, world)"
        )
    if system.fingerprint != manifest.fingerprint:
        raise InvalidSettingError(
            f"the run explored {manifest.world}, but this is another world: its transitions or its seed differ"
        )
    return system


def _retargeted(
    recorder: RunRecorder, state: ExplorerState, before: Explorer[Any], chosen: Explorer[Any]
) -> ExplorerState:
    """The state of a run that resumes with another target or objective, saved before anything else is done."""
    while recorder.world.repeating:  # to the orders that were given before, so that no answer is lost
        state = before.advance(state, recorder.world)
    reopened: ExplorerState = chosen.reopen(state)
    narrowed = recorder.folder.checkpoint.narrowed or chosen.target.reach < before.target.reach
    recorder.write_checkpoint(reopened, narrowed=narrowed)
    return reopened
