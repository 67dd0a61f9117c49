"""How often play before a promise tells that an assumption is false, and how often it doubts one that is true.

Everything is explored with the default of `confirm`. Of the systems whose assumption is false it is counted how many
runs say so, by whom, and how many promise something; of the others, how many are doubted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import structs

from axplore import Assumptions, Atlas, explore
from axplore.atlas.construction import with_findings
from axplore.atlas.replays import replay
from axplore.atlas.verdict import VerdictKind
from axplore.domains import GridTies, domain
from axplore.records.run import StopReason
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document
from axplore_studies.systems.faulty import ModelSystem
from axplore_studies.systems.shop import Shop, healthy_shop


class Case(NamedTuple):
    """What is explored: a world, or a function of the seed that makes a system, with what is assumed of it.

    If it is not examined, nothing but exploring and play can tell.
    """

    world: Any
    settings: Mapping[str, Any]
    by_seed: Callable[[int], Any] | None = None
    examined: bool = True


def grid(slip: float) -> Any:
    """Returns a small grid that slips."""
    return domain("slippery-grid", rows=4, columns=4, slip=slip)


def stepped(slip: float) -> Callable[[int], Any]:
    """Returns what makes the grid a system that is stepped."""
    return lambda seed: ModelSystem(grid(slip), seed)


SURE: Final = {"assume": "deterministic"}

FALSE: Final[Mapping[str, Case]] = {
    "shop, 1 of 20 payments fails": Case(Shop, {"radius": 8, **SURE}),
    "shop, 1 of 20 payments fails, play alone": Case(Shop, {"radius": 8, **SURE}, examined=False),
    "shop, 1 of 50 payments fails, play alone": Case(partial(Shop, 0.02), {"radius": 8, **SURE}, examined=False),
    "maze that slips, simulated": Case("maze", {"radius": 8, **SURE}),
    "grid with slip 0.05, simulated": Case(grid(0.05), {"radius": 6, **SURE}),
    "grid with slip 0.05, stepped": Case(None, {"radius": 6, **SURE}, stepped(0.05)),
    "grid of tenths, min-probability=0.2": Case(
        grid(0.2), {"radius": 5, "epsilon": 1, "assume": "min-probability=0.2"}
    ),
}
"""Systems of which something false is assumed."""

TRUE: Final[Mapping[str, Case]] = {
    "shop without failures": Case(healthy_shop, {"radius": 8, **SURE}),
    "grid without slips, simulated": Case(grid(0.0), {"radius": 6, **SURE}),
    "grid without slips, stepped": Case(None, {"radius": 6, **SURE}, stepped(0.0)),
    "slippery grid, nothing assumed": Case(grid(0.2), {"radius": 4, "epsilon": 2}),
    "slippery grid, stepped, nothing assumed": Case(None, {"radius": 4, "epsilon": 2}, stepped(0.2)),
    "slippery grid, min-probability=0.1": Case(grid(0.2), {"radius": 4, "epsilon": 2, "assume": "min-probability=0.1"}),
    "slippery grid, tied": Case(
        grid(0.2), {"radius": 4, "epsilon": 1, "assume": Assumptions(tied=GridTies(4, 4).outcome_of)}
    ),
}
"""Systems of which nothing false is assumed."""


def trials(seeds: int = 20) -> list[Trial]:
    """Returns the runs of all systems."""
    cases = {**FALSE, **TRUE}
    return [Trial({"system": name, "seed": seed}, partial(_run, name, seed)) for name in cases for seed in range(seeds)]


def _run(name: str, seed: int) -> Record:
    """Returns what a run says, and who said it."""
    case = {**FALSE, **TRUE}[name]
    world = case.world if case.by_seed is None else partial(case.by_seed, seed)
    atlas = explore(world, seed=seed, **case.settings) if case.examined else _played_alone(case, seed)
    played = atlas.run.played
    return {
        "verdict": atlas.verdict.kind.name,
        "told_by": _told_by(atlas),
        "states": len(atlas),
        "steps": atlas.steps,
        "played": 0 if played is None else played.steps,
    }


def _played_alone(case: Case, seed: int) -> Atlas:
    """Returns the atlas of a system that nobody examined before it was explored."""
    with SteppedWorld(case.world, seed) as world:
        atlas = explore(world, doctor=False, **case.settings)
        if not atlas.complete:
            return atlas
        shown = replay(atlas, world)
    run = structs.replace(atlas.run, played=shown.played)
    return with_findings(replace(atlas, run=run), shown.findings)


def _told_by(atlas: Atlas) -> str:
    """Returns who has told that something is wrong."""
    if atlas.verdict.kind is VerdictKind.PROVEN:
        return "nobody"
    if atlas.stop is not StopReason.ASSUMPTION_CONTRADICTED:
        return "play"
    return "exploring" if atlas.steps else "the doctor"


def summary(records: Sequence[Record]) -> Document:
    """Returns how many runs of each system have told that something is wrong, and who did."""
    return Document(STUDY.name, {"false": _counted(records, FALSE), "true": _counted(records, TRUE)})


def _counted(records: Sequence[Record], cases: Mapping[str, Case]) -> dict[str, Any]:
    content = {}
    for name in cases:
        runs = [record for record in records if record["system"] == name]
        content[name] = {
            "runs": len(runs),
            "told": sum(run["told_by"] != "nobody" for run in runs),
            "by": dict(sorted(Counter(run["told_by"] for run in runs).items())),
            "steps": round(sum(run["steps"] for run in runs) / max(1, len(runs))),
            "played": round(sum(run["played"] for run in runs) / max(1, len(runs))),
        }
    return content


STUDY: Final = Study(
    "play",
    "how often play tells that an assumption is false, and doubts one that is true",
    trials,
    summary,
    counted="runs of each system",
)
