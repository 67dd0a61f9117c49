"""`explore`: from a world to an atlas in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from axplore.atlas import Atlas
from axplore.atlas.files import make_empty_folder
from axplore.atlas.making import atlas_of
from axplore.domains import domain
from axplore.errors import InvalidInputError, InvalidSettingError, WorldError
from axplore.explorers.certified import Certified
from axplore.explorers.driver import RoundReport, check_max_steps
from axplore.explorers.driver import run as run_explorer
from axplore.explorers.interface import Explorer, ExplorerState
from axplore.explorers.presets import DEFAULT_EXPLORER, preset
from axplore.explorers.result import Exploration
from axplore.explorers.stopping import StopReason
from axplore.labels import encode_label
from axplore.mdp import TabularMdp
from axplore.objective import Objective
from axplore.progress import Watcher, showing
from axplore.worlds.catalogue import named_world, world_of
from axplore.worlds.orders import World
from axplore.worlds.simulated import SimulatedWorld

WorldLike: TypeAlias = World | TabularMdp | str | Any
"""What `explore` takes as a world; what is none of the first three is for `world_of` to judge."""

OnRound: TypeAlias = Callable[[RoundReport], StopReason | None]
"""Called with every report; a reason that it returns ends the exploration."""

_Hook: TypeAlias = Callable[[RoundReport, ExplorerState], StopReason | None]

DEFAULT_EPSILON: Final = 0.1
DEFAULT_DELTA: Final = 0.1

OBJECTIVES: Final[Mapping[str, Objective]] = {
    "optimal": Objective.OPTIMAL,
    "within-radius": Objective.WITHIN_RADIUS,
}
"""The objectives of the certified explorer by the names that the command line uses."""


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
    on_round: OnRound | None = None,
) -> Atlas:
    """Finds every state that can be reliably reached within a number of expected steps, and the way to each.

    Everything is checked before the first step.

    Args:
        world: a `World`, a `TabularMdp`, a Gymnasium environment, an object with `reset` and `step`, a function that
            makes one of these, or a name: of a domain (see `DOMAINS`), `gym:ID`, `exec:COMMAND` or `module:factory`.
        radius: L, the expected steps within which a state counts; at least 1.
        epsilon: ε, the steps by which a policy may miss its bound; 0.1 unless given.
        delta: δ, the probability with which the answer may be wrong; 0.1 unless given.
        explorer: the name of a preset, or a configuration. A configuration has its own L, ε and δ: leave them out here.
        objective: of the certified explorer: `optimal` (AX*, the default) or `within-radius` (AX_L, fewer steps).
        seed: of the noise of a world made here; a `World` has its own.
        max_steps: no order begins after so many steps; what is known then is returned.
        run: a folder for the atlas and the certificate; a new one, or an empty one.
        progress: show on standard error how it goes.
        states_bound: S, an upper bound on the number of states, which only the theory presets need.
        world_parameters: of a world given by its name.
        on_round: called before the first piece of work and after each; a reason that it returns ends the exploration.

    Raises:
        WorldError: the world failed. What was known by then is kept, in `run` and as the error's `atlas`.
    """
    chosen, explorer_name = explorer_from(explorer, radius, epsilon, delta, objective, states_bound)
    check_max_steps(max_steps)
    system, world_name = world_from(world, seed, world_parameters)
    with ExitStack() as closing:
        if system is not world and hasattr(system, "close"):
            closing.callback(system.close)
        if run is not None:
            make_empty_folder(Path(run))
        steps_before = system.steps
        last_step = None if max_steps is None else steps_before + max_steps
        with _progress_of(chosen) if progress else nullcontext() as watch:
            hook = _hook(system, watch, on_round, check_labels=run is not None)
            exploration, failure = _run_to_the_end(chosen, system, last_step, hook)
        atlas = atlas_of(
            exploration, system, world_name=world_name, explorer_name=explorer_name, steps_before=steps_before
        )
    if run is not None:
        atlas.save(run)
    if failure is not None:
        raise _with_atlas(failure, atlas, run)
    return atlas


def _run_to_the_end(
    explorer: Explorer[Any], world: World, max_steps: int | None, hook: _Hook
) -> tuple[Exploration, WorldError | None]:
    """Runs an explorer; where the world fails, what was known before the last piece of work, and the failure."""
    latest: ExplorerState | None = None

    def remembering(report: RoundReport, state: ExplorerState) -> StopReason | None:
        nonlocal latest
        latest = state
        return hook(report, state)

    try:
        return run_explorer(explorer, world, max_steps=max_steps, on_round=remembering), None
    except WorldError as failure:
        if latest is None:
            raise
        return explorer.finish(replace(latest, stop=StopReason.WORLD_FAILED), world), failure


def _with_atlas(failure: WorldError, atlas: Atlas, run: str | Path | None) -> WorldError:
    """The same error, with what was known when it happened."""
    where = "" if run is None else f" What was known by then is in {run}."
    error = type(failure)(f"{failure}.{where}" if where else str(failure))
    error.atlas = atlas
    error.__cause__ = failure
    return error


def world_from(spec: WorldLike, seed: int, parameters: Mapping[str, Any] | None = None) -> tuple[World, str]:
    """The world that is meant, and what to call it."""
    if isinstance(spec, str):
        if ":" in spec:
            return named_world(spec, seed, parameters or {}), spec
        return SimulatedWorld(domain(spec, **(parameters or {})), seed), spec
    if parameters:
        raise InvalidSettingError("world_parameters are for a world given by its name; set them on the world itself")
    if isinstance(spec, TabularMdp):
        return SimulatedWorld(spec, seed), f"a model of {spec.n_states} states"
    return world_of(spec, seed), getattr(spec, "__qualname__", type(spec).__name__)


def explorer_from(
    spec: str | Explorer[Any],
    radius: float | None,
    epsilon: float | None,
    delta: float | None,
    objective: Objective | str | None,
    states_bound: int | None,
) -> tuple[Explorer[Any], str]:
    """The explorer that is meant, and what to call it."""
    if not isinstance(spec, str):
        if not all(hasattr(spec, part) for part in ("precision", "start", "advance", "finish")):
            raise InvalidInputError(f"{spec!r} is no explorer; give the name of a preset or a configuration")
        chosen, name = spec, type(spec).__name__
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
    return (chosen if objective is None else _with_objective(chosen, name, objective)), name


def _check_agreement(explorer: Explorer[Any], states_bound: int | None, **precision: float | None) -> None:
    """Refuses settings that contradict a configuration."""
    for setting, value in precision.items():
        configured = getattr(explorer.precision, setting)
        if value is not None and value != configured:
            raise InvalidSettingError(
                f"{setting} is {value}, but the explorer is configured for {configured}; leave {setting} out"
            )
    if states_bound is not None:
        raise InvalidSettingError("states_bound is for a preset; set it in the configuration of the explorer")


def _with_objective(explorer: Explorer[Any], name: str, objective: Objective | str) -> Explorer[Any]:
    wanted = OBJECTIVES.get(objective) if isinstance(objective, str) else objective
    if wanted is None or wanted not in OBJECTIVES.values():
        raise InvalidSettingError(f"objective is {objective!r}; it must be one of {', '.join(OBJECTIVES)}")
    if not isinstance(explorer, Certified):
        raise InvalidSettingError(f"the explorer {name} has one objective only; leave objective out")
    return replace(explorer, objective=wanted)


def _hook(world: World, watch: Watcher | None, on_round: OnRound | None, *, check_labels: bool) -> _Hook:
    """What the loop calls after every piece of work."""
    n_checked = 0

    def hook(report: RoundReport, _: ExplorerState) -> StopReason | None:
        nonlocal n_checked
        # A label that no file can hold is refused when it is met, not when the work is done and would be lost.
        for number in range(n_checked, len(world.states) if check_labels else 0):
            encode_label(world.states[number])
            encode_label(tuple(world.actions_of(number)))
            n_checked += 1
        if watch is not None:
            watch(report)
        return None if on_round is None else on_round(report)

    return hook


@contextmanager
def _progress_of(explorer: Explorer[Any]) -> Iterator[Watcher]:
    from rich.console import Console

    from axplore.planning import interval_kernels
    from axplore.planning.first_use import NOTICE, is_kept
    from axplore.worlds import stepping

    console = Console(stderr=True)
    if not is_kept(interval_kernels.upper_bound if isinstance(explorer, Certified) else stepping.visit):
        console.print(NOTICE)
    with showing(console) as watch:
        yield watch
