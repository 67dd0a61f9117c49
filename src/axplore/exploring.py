"""`explore`: from a world to an atlas in one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import structs

from axplore.addresses import without_secrets
from axplore.arguments import refusal
from axplore.assumptions import assumptions_from
from axplore.atlas import Atlas
from axplore.atlas.construction import atlas_of, with_later
from axplore.budget import Budget, moment_after
from axplore.certificate.doubts import summed_faults
from axplore.continuing import state_after_log
from axplore.errors import Interrupted, InvalidSettingError, WorldError
from axplore.explorers.base import Exploration, Explorer, ExplorerState, Observer, checked_explorer
from axplore.explorers.base import run as run_explorer
from axplore.explorers.registry import preset
from axplore.mdp import TabularMdp
from axplore.noticing import ExaminationBeside, Noticed, examination_beside, examined, hides_something
from axplore.records.findings import Fault, Finding
from axplore.records.run import StopReason
from axplore.report.progress import Pace, on_standard_error
from axplore.request import Changes, Request, WorldLike, asks
from axplore.runs.folder import begin_run
from axplore.runs.history import History
from axplore.runs.manifest import manifest_of
from axplore.runs.recording import RunRecorder
from axplore.target import Objective
from axplore.worlds.catalogue import function_named, is_handed_in, parametrised_world
from axplore.worlds.contract import Examinable, Watched, World, playable
from axplore.worlds.supervision import few_start_checks
from axplore.worlds.watched import SharedWorld

if TYPE_CHECKING:
    from axplore.refining import Refiner

_logger = logging.getLogger("axplore")

DEFAULT_EPSILON: Final = 0.1
DEFAULT_DELTA: Final = 0.1

OBJECTIVES: Final[Mapping[str, Objective]] = {
    "optimal": Objective.OPTIMAL,
    "within-radius": Objective.WITHIN_RADIUS,
}
"""The objectives of the certified explorer by their names on the command line."""


@asks(Request)
def explore(request: Request) -> Atlas:
    """Finds every state that can be reached reliably within a number of expected steps, and a policy to each.

    Everything is checked before the first step. With workers, the answer does not depend on their number; it differs
    from that without workers, where the agent does not reset for every batch.

    {settings}

    Raises:
        WorldError: the world failed. What was known by then is saved in `run`, and is the `atlas` of the error.
        KeyboardInterrupt: Ctrl-C. Once the exploration has begun, what was known by then is saved in `run`, and is the
            `atlas` of the exception, which is an `axplore.errors.Interrupted`.
    """
    return explored(request)


Ended: TypeAlias = Callable[[Atlas, Callable[[], History]], None]
"""Called with the atlas of a run when it has ended, however it did, and with what reads its history, which a damaged
log prevents."""


def explored(request: Request, on_end: Ended | None = None) -> Atlas:
    """Returns the atlas that a request asks for; see `explore`."""
    path = Path(request.run or "").absolute()  # a system may change the working directory
    explorer, explorer_name = explorer_from(request)
    budget = Budget(request.max_steps, moment_after(request.max_seconds))
    system, world_name = world_within(budget, 0, request.world, request.seed, request.world_parameters)
    with ExitStack() as closing:
        if not is_handed_in(request.world):
            closing.callback(system.close)
        explorer.goal.check_names(system.names)
        steps_before = system.steps
        local = system.examinable
        refiner = refiner_for(request, local if request.doctor else None, explorer, budget, steps_before)
        if refiner is not None:
            system = local = situations_until_end(refiner, closing)
        tried = playable(system) if request.doctor else None
        findings: tuple[Finding, ...] = ()
        examination: ExaminationBeside | None = None
        if local is not None and request.doctor:
            if request.has_workers and refiner is None:
                examination = examination_beside(local, request.seed, budget, explorer.assume)
            if examination is not None:
                closing.callback(examination.close)
            else:
                findings = examined(local, request.seed, budget, assume=explorer.assume)
        if refiner is not None:
            findings, _ = refiner.refined(findings)
        after_log = None
        if request.begin_with is not None:
            after_log, found = state_after_log(request, explorer, system)
            findings = (*findings, *told(found))
        system = shared_by_workers(system, request, closing)
        watched, tried = played_by(system, local, tried)
        session = Session(
            asked=request,
            explorer=explorer,
            explorer_name=explorer_name,
            world_name=world_name,
            steps_before=steps_before,
            budget=budget,
            state=begun(explorer, system, findings, after_log),
            findings=findings,
            watched=watched,
            tried=tried,
            confirm=request.confirm,
            refiner=refiner,
            on_end=on_end,
            examination=examination,
        )
        if request.run is None:
            return session.run(system, None)
        manifest = manifest_of(
            request, world=world_name, explorer=explorer_name, fingerprint=system.fingerprint, steps_before=steps_before
        )
        folder = closing.enter_context(begin_run(path, manifest, explorer, session.state, system, budget, findings))
        recorder = closing.enter_context(RunRecorder(folder, system, explorer, budget, tried))
        recorder.note_start("began")
        if examination is not None:
            recorder.note_examination(examination.reserved)
        return session.run(recorder.world, recorder)


def told(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Returns findings that were logged as warnings."""
    for finding in findings:
        _logger.warning("%s", finding)
    return findings


def begun(
    explorer: Explorer[Any], world: World, findings: tuple[Finding, ...], after_log: ExplorerState | None = None
) -> ExplorerState:
    """Returns the first state of an explorer; it has ended if an assumption is found to be false by then."""
    state: ExplorerState = explorer.start(world) if after_log is None else after_log
    if not any(finding.refutes for finding in findings):
        return state
    return replace(state, stop=StopReason.ASSUMPTION_CONTRADICTED, activity="an assumption is contradicted")


def played_by(world: World, watched: Watched | None, tried: World | None) -> tuple[Watched | None, World | None]:
    """Returns the world to watch, and that on which policies are played: the one of the workers, if they can record it.

    Args:
        world: what is explored.
        watched: the system in this process, if it can be watched.
        tried: where policies would be played in this process, if they are.
    """
    if watched is None or not isinstance(world, SharedWorld) or not world.can_be_watched:
        return watched, tried
    return world, None if tried is None else world


def refiner_for(
    request: Request, watched: Examinable | None, explorer: Explorer[Any], budget: Budget, steps_before: int
) -> Refiner | None:
    """Returns what tells situations apart where labels hide something; None if that is not asked for."""
    if request.memory is None:
        return None
    from axplore.refining import refiner_of

    return refiner_of(request, watched, explorer, budget, steps_before)


def situations_until_end(refiner: Refiner, closing: ExitStack) -> Examinable:
    """Returns the world of a refiner; when the context ends, its system has its own labels again."""
    closing.callback(refiner.world.release)
    return refiner.world


def shared_by_workers(world: World, asked: Request | Changes, closing: ExitStack) -> World:
    """Returns the world as shared by workers until the end of the context; the world itself without workers."""
    if not asked.has_workers:
        return world
    from axplore.workers.distributed import DistributedWorld
    from axplore.workers.engines import engine_for

    engine = closing.enter_context(engine_for(asked.workers, asked.ray))
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
        asked: what `explore` or `resume` was asked for.
        explorer: what decides.
        explorer_name, world_name: what to call them.
        steps_before: the steps of the world before the first of this exploration.
        budget: what it may take in all, and has taken beside exploring.
        state: where to begin.
        findings: what was found of the system before.
        watched: the world whose system is tested for what its labels hide, while it is explored or, by workers, played;
            None for none.
        tried: the world on which the policies are played before anything is promised; None for none.
        confirm: the rate above which a violation of what is assumed is looked for then; None for the default.
        refiner: what tells situations apart where labels hide something; None if nothing does.
        on_end: called when a run has ended.
        examination: an examination of the system that is under way; None for none.
    """

    asked: Request | Changes
    explorer: Explorer[Any]
    explorer_name: str
    world_name: str
    steps_before: int
    budget: Budget
    state: ExplorerState
    findings: tuple[Finding, ...]
    watched: Watched | None
    tried: World | None
    confirm: float | None
    refiner: Refiner | None
    on_end: Ended | None = None
    examination: ExaminationBeside | None = None

    def run(self, world: World, recorder: RunRecorder | None) -> Atlas:
        """Explores, and writes the atlas into the run folder; errors of the world and Ctrl-C carry the atlas.

        Where labels turn out to hide something and a refiner tells situations apart, it explores again.
        """
        session, atlas, failure = self, *self._attempted(world, recorder)
        try:
            while failure is None and (again := session._refined(atlas, world, recorder)) is not None:
                session, world = again
                atlas, failure = session._attempted(world, recorder)
        except KeyboardInterrupt:
            failure = Interrupted(session.state)
        if recorder is not None:
            atlas, interrupted = _done(partial(recorder.end, atlas, is_whole=failure is None))
            failure = failure or (Interrupted(session.state) if interrupted else None)
            if self.on_end is not None:
                self.on_end(atlas, recorder.history)
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
            self.watched.vary_ages()
        noticed = Noticed(
            self.watched,
            self.findings,
            None if recorder is None else recorder.folder.keep_finding,
            tried=self.tried,
            assume=self.explorer.assume,
            confirm=self.confirm,
        )
        with on_standard_error(world) if self.asked.progress else nullcontext() as watch:
            alarm = None if self.refiner is None else self.refiner.note
            observers = (noticed.look, None if recorder is None else recorder.note, watch, self.asked.on_round, alarm)
            pace = Pace(self.explorer, [observer for observer in observers if observer is not None])
            exploration, failure = self._explored(world, [pace])
        failure = self._examined(noticed, world, recorder, failure)

        def noticed_by_now() -> dict[str, Any]:
            return {
                "findings": noticed.findings,
                "faults": self._faults_so_far(world, recorder),
                "examined": noticed.examined(self.budget.examining),
                "playing": self.budget.playing,
            }

        make = partial(
            atlas_of,
            exploration,
            world,
            world_name=self.world_name,
            explorer_name=self.explorer_name,
            steps_before=self.steps_before,
            examining=self.budget.examining,
        )
        atlas, interrupted = _done(lambda: make(**noticed_by_now()))
        # A model that is simulated has no steps to save: what is played on it is not counted.
        counted = None if self.watched is None else self.tried
        with nullcontext() if counted is None else self._playing(counted, world):
            stopped = interrupted or isinstance(failure, Interrupted)
            interrupted |= noticed.judge(atlas, world, self.budget, interrupted=stopped)
        atlas, once_more = _done(partial(with_later, atlas, world, **noticed_by_now()))
        atlas = replace(atlas, run=structs.replace(atlas.run, played=noticed.played))
        return atlas, failure or (Interrupted(self.state) if interrupted or once_more else None)

    def _examined(
        self, noticed: Noticed, world: World, recorder: RunRecorder | None, failure: WorldError | Interrupted | None
    ) -> WorldError | Interrupted | None:
        """Keeps what an examination under way finds; Ctrl-C ends it, and a run that resumes begins it again.

        Returns:
            The failure that ended the exploration early; Ctrl-C if that came now.
        """
        examination = self.examination
        if examination is None or isinstance(failure, Interrupted):
            return failure
        try:
            noticed.keep(examination.finish(world.steps - self.steps_before))
            if recorder is not None:
                recorder.note_examined(self.budget.examining)
        except KeyboardInterrupt:
            return failure or Interrupted(self.state)
        return failure

    def _playing(self, played: World, explored: World) -> AbstractContextManager[None]:
        """Counts the steps of playing policies, and lets them take what is left."""
        return self.budget.counted("playing", played, explored.steps - self.steps_before)

    def _faults_so_far(self, world: World, recorder: RunRecorder | None) -> tuple[Fault, ...]:
        """Returns the failures of the system, also where its policies were tried beside the workers."""
        if recorder is not None:
            return recorder.faults_so_far()
        tried = () if self.tried in (None, world) else self.tried.faults
        return summed_faults([*world.faults, *tried])

    def _refined(self, atlas: Atlas, world: World, recorder: RunRecorder | None) -> tuple[Session, World] | None:
        """Returns how to explore again, and where, if labels hide something that can be told apart; None if not."""
        refiner = self.refiner
        if refiner is None:
            return None
        stopped, refiner.stopped = refiner.stopped, None
        ended = stopped is not None or atlas.stop.by_own_rule or atlas.stop is StopReason.CONTRADICTED
        if not (ended and (atlas.stop is StopReason.CONTRADICTED or hides_something(atlas.findings))):
            return None
        findings, has_changed = refiner.refined(atlas.findings)
        if not has_changed:
            if stopped is None:
                return None
            # It ended only because of the finding, which stays: the labels are as good as they get.
            return replace(self, state=replace(stopped, stop=None), findings=atlas.findings, refiner=None), world
        state = begun(self.explorer, refiner.world, findings)
        if recorder is not None:
            recorder.begin_anew(state, refiner.n_situations, findings)
        return replace(self, state=state, findings=findings), refiner.world if recorder is None else recorder.world

    def _explored(
        self, world: World, observers: Sequence[Observer]
    ) -> tuple[Exploration, WorldError | Interrupted | None]:
        """Returns the exploration, and the failure that ended it early, if any."""
        is_tested = self.tried is not None and self.watched is not None  # models are played with what is left
        plays = is_tested and self.explorer.model(self.state) is not None
        most = self.budget.to_explore(plays=plays)
        limit = None if most is None else self.steps_before + most
        beside = world.system_steps - world.steps
        try:
            exploration = run_explorer(
                self.explorer, world, state=self.state, max_steps=limit, ends=self.budget.ends, observers=observers
            )
        except Interrupted as interrupted:
            return self.explorer.finish(interrupted.state, world), interrupted
        finally:
            self.budget.in_vain += world.system_steps - world.steps - beside
        return exploration, exploration.failure


Result = TypeVar("Result")


def _done(work: Callable[[], Result]) -> tuple[Result, bool]:
    """Does what takes a moment and must not be lost: begins again if Ctrl-C comes meanwhile, and returns whether."""
    try:
        return work(), False
    except KeyboardInterrupt:
        return work(), True


def _with_atlas(failure: WorldError, atlas: Atlas, run: str | Path | None) -> WorldError:
    """Returns the same error, with what was known when it happened."""
    where = "" if run is None else f" What was known by then is in {run}."
    error = type(failure)(f"{failure}.{where}" if where else str(failure))
    error.atlas = atlas
    error.__cause__ = failure
    return error


def world_within(
    budget: Budget, exploring: int, spec: WorldLike, seed: int, parameters: Mapping[str, Any] | None
) -> tuple[World, str]:
    """Returns the world for a specification, as `world_from` does; counts the RESETs with which its start is checked.

    Args:
        budget: what they may take, too.
        exploring: the steps of exploring so far.
        spec, seed, parameters: see `world_from`.
    """
    left = budget.left(exploring)
    is_stepped = not isinstance(spec, World | TabularMdp) and (not isinstance(spec, str) or ":" in spec)
    if is_stepped and left == 0:
        raise InvalidSettingError(
            f"max_steps is {budget.max_steps:,}, and no step is left of it to reset the system, from which everything "
            "begins; give more"
        )
    with few_start_checks(left):
        world, name = world_from(spec, seed, parameters)
    if not isinstance(spec, World):
        budget.examining += world.system_steps - world.steps
    return world, name


def world_from(spec: WorldLike, seed: int, parameters: Mapping[str, Any] | None = None) -> tuple[World, str]:
    """Returns the world for a specification, and what to call it; secrets of an address are left out."""
    world = parametrised_world(spec, seed, parameters)
    if isinstance(spec, str):
        return world, without_secrets(spec)
    if isinstance(spec, TabularMdp):
        return world, f"a model of {spec.n_states} states"
    return world, getattr(spec, "__qualname__", type(spec).__name__)


def explorer_from(request: Request) -> tuple[Explorer[Any], str]:
    """Returns the explorer that a request asks for, and its name."""
    chosen, name = _configured(request)
    if request.goal is not None:
        chosen = chosen.towards(request.goal)
        if not request.goal.is_everything:
            chosen = chosen.retarget(chosen.target, Objective.WITHIN_RADIUS)
    if request.objective is not None:
        chosen = chosen.retarget(chosen.target, objective_from(request.objective))
    if request.has_workers and isinstance(request.explorer, str):
        chosen = chosen.for_workers()
    if request.assume is not None:
        chosen = chosen.assuming(assumptions_from(request.assume, function_named))
    return chosen, name


def _configured(request: Request) -> tuple[Explorer[Any], str]:
    """Returns the explorer before anything but its target is set, and its name."""
    target = {"radius": request.radius, "epsilon": request.epsilon, "delta": request.delta}
    if not isinstance(request.explorer, str):
        explorer = checked_explorer(request.explorer)
        _check_agreement(explorer, request.states_bound, **target)
        return explorer, explorer.name
    if request.radius is None:
        raise InvalidSettingError("radius is missing: the expected steps within which a state counts")
    defaults = {"epsilon": DEFAULT_EPSILON, "delta": DEFAULT_DELTA}
    given = {name: value for name, value in target.items() if value is not None}
    return preset(request.explorer, states_bound=request.states_bound, **{**defaults, **given}), request.explorer


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
