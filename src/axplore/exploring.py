"""`explore`: from a world to an atlas in one call."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from axplore.arguments import checked, file_path, flag, function, optional, real, refusal, settings, text, whole
from axplore.assumptions import Assumed, assumptions_from
from axplore.atlas import Atlas
from axplore.atlas.construction import atlas_of, fault_records, finding_records
from axplore.certificate.doubts import FindingRecord
from axplore.errors import Interrupted, InvalidSettingError, WorldError
from axplore.explorers.base import (
    STATES_BOUND,
    Exploration,
    Explorer,
    ExplorerState,
    Observer,
    StopReason,
    checked_explorer,
)
from axplore.explorers.base import run as run_explorer
from axplore.explorers.registry import DEFAULT_EXPLORER, preset
from axplore.mdp import TabularMdp
from axplore.refining import Refiner, examined, hides_something, memory_setting, refiner_of
from axplore.report.progress import Pace, on_standard_error
from axplore.runs.folder import begin_run
from axplore.runs.manifest import RunManifest, plain_parameters
from axplore.runs.recording import RunRecorder
from axplore.target import Objective
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import engine_for, has_workers
from axplore.worlds.catalogue import function_named, is_handed_in, parametrised_world
from axplore.worlds.contract import World
from axplore.worlds.stepped import SteppedWorld

WorldLike: TypeAlias = World | TabularMdp | str | Any
"""What `explore` accepts as a world; `world_of` judges anything but the first three."""

_logger = logging.getLogger("axplore")

DEFAULT_EPSILON: Final = 0.1
DEFAULT_DELTA: Final = 0.1

OBJECTIVES: Final[Mapping[str, Objective]] = {
    "optimal": Objective.OPTIMAL,
    "within-radius": Objective.WITHIN_RADIUS,
}
"""The objectives of the certified explorer by their names on the command line."""


@checked(
    radius=optional(real()),
    epsilon=optional(real()),
    delta=optional(real()),
    seed=whole(),
    max_steps=optional(whole()),
    run=optional(file_path),
    progress=flag,
    states_bound=optional(STATES_BOUND),
    world_parameters=optional(settings),
    on_round=optional(function),
    doctor=flag,
    workers=optional(whole()),
    ray=optional(text),
    memory=optional(memory_setting),
)
def explore(
    world: WorldLike,
    radius: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    explorer: str | Explorer[Any] = DEFAULT_EXPLORER,
    objective: Objective | str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    run: str | Path | None = None,
    progress: bool = False,
    states_bound: int | None = None,
    world_parameters: Mapping[str, Any] | None = None,
    on_round: Observer | None = None,
    doctor: bool = True,
    workers: int | None = None,
    ray: str | None = None,
    assume: Assumed = None,
    memory: int | Literal["aalpy"] | None = None,
) -> Atlas:
    """Finds every state that can be reached reliably within a number of expected steps, and a policy to each.

    Everything is checked before the first step.

    Args:
        world: a `World`, a `TabularMdp`, a Gymnasium environment, an object with `reset` and `step`, a function that
            makes one of these, or a name: of a domain (see `DOMAINS`), `gym:ID`, `exec:COMMAND` or `module:factory`.
        radius: L, the expected steps within which a state counts; at least 1.
        epsilon: ε, the steps by which a policy may miss its bound; 0.1 by default.
        delta: δ, the probability that the answer may be wrong; 0.1 by default.
        explorer: the name of a preset, or a configuration. A configuration has its own L, ε and δ: leave them out here.
        objective: for the certified explorer: `optimal` (AX*, the default) or `within-radius` (AX_L, fewer steps).
        seed: the seed of the noise, unless `world` is a `World`, which has its own.
        max_steps: the step limit. No order begins after it, and what is known then is returned.
        run: a folder for the run, new or empty. It holds what `resume` needs after an interruption, and at the end the
            atlas and its certificate.
        progress: whether to show progress on standard error.
        states_bound: S, an upper bound on the number of states, which only the theory presets need.
        world_parameters: the parameters of a world given by its name.
        on_round: called before the first round and after each; it ends the exploration by returning
            `StopReason.INTERRUPTED` or `StopReason.STEP_LIMIT`.
        doctor: whether to examine a stepped system briefly first. Findings are logged as warnings and become part of
            the atlas and its verdict. The steps of the examination are not counted.
        workers: the number of worker processes that carry out the orders, or None. They must be able to make the world
            themselves: a system by a factory, a model, or a name. The answer does not depend on their number; it
            differs from that without workers, where the agent does not reset for every batch.
        ray: the Ray cluster that runs the workers: `auto` or an address; see docs/scaling.md.
        assume: what is known of the system, which can save most of the steps: `deterministic`, `min-probability=P`,
            `tied=MODULE:FUNCTION`, `Assumptions`, or several of these. Every promise then begins with "if", and a draw
            that contradicts it ends the exploration: see docs/assumptions.md.
        memory: N, to tell situations apart that share a label, by histories of at most N outputs, whenever a test finds
            that labels hide something. Exploring then begins anew with a label for each situation: see docs/hidden.md.
            With `aalpy`, AALpy (an extra) learns the automaton of situations.

    Raises:
        WorldError: the world failed. What was known by then is saved in `run`, and is the `atlas` of the error.
        KeyboardInterrupt: Ctrl-C. Once the exploration has begun, what was known by then is saved in `run`, and is the
            `atlas` of the exception, which is an `axplore.errors.Interrupted`.
    """
    place = Path(run or "").absolute()  # a system may change the working directory
    chosen, explorer_name = explorer_from(explorer, radius, epsilon, delta, objective, states_bound)
    if has_workers(workers, ray) and isinstance(explorer, str):
        chosen = chosen.for_workers()
    if assume is not None:
        chosen = chosen.assuming(assumptions_from(assume, function_named))
    system, world_name = world_from(world, seed, world_parameters)
    with ExitStack() as closing:
        if not is_handed_in(world):
            closing.callback(system.close)
        watched = system if doctor and isinstance(system, SteppedWorld) else None
        steps_before = system.steps
        last_step = None if max_steps is None else steps_before + max_steps
        refiner = refiner_of(memory, watched, chosen, seed, last_step, has_workers=has_workers(workers, ray))
        findings = () if watched is None else examined(watched, seed)
        if refiner is not None:
            findings = refiner.refined(findings)
        system = shared_by_workers(system, workers, ray, closing)
        state = chosen.start(system)
        session = Session(
            explorer=chosen,
            explorer_name=explorer_name,
            world_name=world_name,
            steps_before=steps_before,
            max_steps=max_steps,
            progress=progress,
            on_round=on_round,
            state=state,
            findings=findings,
            watched=watched,
            refiner=refiner,
        )
        if run is None:
            return session.run(system, None)
        manifest = RunManifest(
            world=world_name,
            **_name_and_parameters(world, world_parameters),
            seed=seed,
            fingerprint=system.fingerprint,
            explorer=explorer_name,
            states_bound=states_bound,
            steps_before=steps_before,
            workers=workers,
            ray=ray,
            memory=memory,
            findings=findings,
        )
        folder = closing.enter_context(begin_run(place, manifest, chosen, state, system, max_steps))
        recorder = closing.enter_context(RunRecorder(folder, system, chosen))
        recorder.note_start("began")
        return session.run(recorder.world, recorder)


def shared_by_workers(world: World, workers: int | None, ray: str | None, closing: ExitStack) -> World:
    """Returns the world as shared by workers until the end of the context; the world itself without workers."""
    engine = closing.enter_context(engine_for(workers, ray))
    if engine is None:
        return world
    if not world.repeatable:
        _logger.warning(
            "the system has no method reseed(seed), so no two runs with workers are alike; what they prove holds"
        )
    shared = DistributedWorld(world, engine)
    closing.callback(shared.close)
    return shared


@dataclass(frozen=True, kw_only=True)
class Session:
    """What is to be explored in this process, with a world and perhaps in a run.

    Attributes:
        explorer: what decides.
        explorer_name, world_name: what to call them.
        steps_before: the steps of the world before the first of this exploration.
        max_steps: the step limit of this exploration.
        progress: whether to show how it goes.
        on_round: what else to call.
        state: where to begin.
        findings: what was found when the system was examined.
        watched: the world whose system is tested, while it is explored and before anything is promised, for what its
            labels hide; None for none.
        refiner: what tells situations apart where labels hide something; None if nothing does.
    """

    explorer: Explorer[Any]
    explorer_name: str
    world_name: str
    steps_before: int
    max_steps: int | None
    progress: bool
    on_round: Observer | None
    state: ExplorerState
    findings: tuple[FindingRecord, ...] = ()
    watched: SteppedWorld | None = None
    refiner: Refiner | None = None

    def run(self, world: World, recorder: RunRecorder | None) -> Atlas:
        """Explores, and writes the atlas into the run folder; errors of the world and Ctrl-C carry the atlas.

        Where labels turn out to hide something and a refiner tells situations apart, it explores again.
        """
        session, atlas, failure = self, *self._attempted(world, recorder)
        while failure is None and (again := session._refined(atlas, world, recorder)) is not None:
            session, world = again
            atlas, failure = session._attempted(world, recorder)
        if recorder is not None:
            recorder.end(atlas, is_whole=failure is None)
        if isinstance(failure, Interrupted):
            failure.atlas = atlas
            raise failure
        if failure is not None:
            raise _with_atlas(failure, atlas, None if recorder is None else recorder.folder.path)
        return atlas

    def _attempted(self, world: World, recorder: RunRecorder | None) -> tuple[Atlas, WorldError | Interrupted | None]:
        """Explores with the labels as they are; returns the atlas, and the failure that ended it early, if any."""
        if self.watched is not None:
            self.watched.watch_history()
        with on_standard_error(world) if self.progress else nullcontext() as watch:
            alarm = None if self.refiner is None else self.refiner.note
            observers = (None if recorder is None else recorder.note, watch, self.on_round, alarm)
            pace = Pace(self.explorer, [observer for observer in observers if observer is not None])
            exploration, failure = self._explored(world, [pace])
        make = partial(
            atlas_of,
            exploration,
            world,
            world_name=self.world_name,
            explorer_name=self.explorer_name,
            steps_before=self.steps_before,
            faults=fault_records(world.faults) if recorder is None else recorder.faults_so_far(),
        )
        atlas = make(findings=self.findings)
        if self.watched is not None:
            found = _found_in_hindsight(self.watched, world, atlas)
            atlas = make(findings=(*self.findings, *found)) if found else atlas
        return atlas, failure

    def _refined(self, atlas: Atlas, world: World, recorder: RunRecorder | None) -> tuple[Session, World] | None:
        """Returns how to explore again, and where, if labels hide something that can be told apart; None if not."""
        refiner, watched = self.refiner, self.watched
        if refiner is None or watched is None:
            return None
        stopped, refiner.stopped = refiner.stopped, None
        ended = stopped is not None or atlas.stop.by_own_rule or atlas.stop is StopReason.CONTRADICTED
        if not (ended and (atlas.stop is StopReason.CONTRADICTED or hides_something(atlas.findings))):
            return None
        before = watched.memory
        findings = refiner.refined(atlas.findings)
        if watched.memory == before:
            if stopped is None:
                return None
            # It ended only because of the finding, which stays: the labels are as good as they get.
            return replace(self, state=replace(stopped, stop=None), findings=atlas.findings, refiner=None), world
        state = self.explorer.start(watched)
        if recorder is not None:
            recorder.begin_anew(state, 0 if watched.memory is None else len(watched.memory.outputs))
        return replace(self, state=state, findings=findings), watched if recorder is None else recorder.world

    def _explored(
        self, world: World, observers: Sequence[Observer]
    ) -> tuple[Exploration, WorldError | Interrupted | None]:
        """Returns the exploration, and the failure that ended it early, if any."""
        limit = None if self.max_steps is None else self.steps_before + self.max_steps
        try:
            exploration = run_explorer(self.explorer, world, state=self.state, max_steps=limit, observers=observers)
        except Interrupted as interrupted:
            return self.explorer.finish(interrupted.state, world), interrupted
        return exploration, exploration.failure


def _with_atlas(failure: WorldError, atlas: Atlas, run: str | Path | None) -> WorldError:
    """Returns the same error, with what was known when it happened."""
    where = "" if run is None else f" What was known by then is in {run}."
    error = type(failure)(f"{failure}.{where}" if where else str(failure))
    error.atlas = atlas
    error.__cause__ = failure
    return error


def _found_in_hindsight(system: SteppedWorld, explored: World, atlas: Atlas) -> tuple[FindingRecord, ...]:
    """Returns what the test that ran along has found; if that is nothing, what playing the policies finds."""
    from axplore.atlas.replays import history_finding, replay

    finding = history_finding(system)
    if finding is None and atlas.complete:
        finding = replay(atlas, system, explored)
    if finding is None:
        return ()
    _logger.warning("%s", finding)
    return finding_records([finding])


def world_from(spec: WorldLike, seed: int, parameters: Mapping[str, Any] | None = None) -> tuple[World, str]:
    """Returns the world for a specification, and its name."""
    world = parametrised_world(spec, seed, parameters)
    if isinstance(spec, str):
        return world, spec
    if isinstance(spec, TabularMdp):
        return world, f"a model of {spec.n_states} states"
    return world, getattr(spec, "__qualname__", type(spec).__name__)


def explorer_from(
    spec: str | Explorer[Any],
    radius: float | None,
    epsilon: float | None,
    delta: float | None,
    objective: Objective | str | None,
    states_bound: int | None,
) -> tuple[Explorer[Any], str]:
    """Returns the explorer for a specification, and its name."""
    if not isinstance(spec, str):
        chosen, name = checked_explorer(spec), type(spec).__name__
        _check_agreement(chosen, states_bound, radius=radius, epsilon=epsilon, delta=delta)
    elif radius is None:
        raise InvalidSettingError("radius is missing: the expected steps within which a state counts")
    else:
        name = spec
        chosen = preset(
            name,
            radius=radius,
            epsilon=DEFAULT_EPSILON if epsilon is None else epsilon,
            delta=DEFAULT_DELTA if delta is None else delta,
            states_bound=states_bound,
        )
    if objective is not None:
        chosen = chosen.retarget(chosen.target, objective_from(objective))
    return chosen, name


def _check_agreement(explorer: Explorer[Any], states_bound: int | None, **target: float | None) -> None:
    """Refuses settings that contradict a configuration."""
    for setting, value in target.items():
        configured = getattr(explorer.target, setting)
        if value is not None and value != configured:
            raise InvalidSettingError(
                f"{setting} is {value}, but the explorer is configured for {configured}; leave {setting} out"
            )
    if states_bound is not None:
        raise InvalidSettingError("states_bound applies only to a preset; set it in the configuration of the explorer")


def objective_from(spec: Objective | str) -> Objective:
    """Returns the objective for a specification."""
    wanted = OBJECTIVES.get(spec) if isinstance(spec, str) else spec
    if not isinstance(wanted, Objective) or wanted not in OBJECTIVES.values():
        raise refusal("objective", spec, f"one of {', '.join(OBJECTIVES)}")
    return wanted


def _name_and_parameters(world: WorldLike, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the name from which a world can be made again, if there is one, and its parameters."""
    plain = plain_parameters(parameters or {})
    if isinstance(world, str) and plain is not None:
        return {"world_name": world, "world_parameters": plain}
    return {"world_name": None, "world_parameters": {}}
