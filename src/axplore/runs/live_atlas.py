"""The current atlas of a run: from its files if it has ended, else from its last checkpoint. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from axplore.atlas import Atlas
from axplore.atlas.construction import atlas_of
from axplore.errors import StorageError
from axplore.explorers.base import StopReason
from axplore.runs.checkpoints import decode_state, load_checkpoint
from axplore.runs.folder import ENDED
from axplore.runs.history import faults_in
from axplore.runs.manifest import explorer_from_description, load_manifest
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Order, World, WorldSnapshot

ATLAS = "atlas.json"


def version_of(folder: Path) -> str:
    """Returns a text that changes whenever `atlas_now` would return another atlas; empty if there is no run yet."""
    marks = sorted(
        f"{path.name} {path.stat().st_mtime_ns}"
        for pattern in ("checkpoint-*.json", ENDED, ATLAS)
        for path in folder.glob(pattern)
    )
    return "; ".join(marks)


def has_ended(folder: Path) -> bool:
    """Returns whether the run has an atlas and is no longer running."""
    return (folder / ATLAS).is_file() and ((folder / ENDED).is_file() or not any(folder.glob("checkpoint-*.json")))


def atlas_now(folder: Path) -> Atlas:
    """Returns the atlas of a run that has ended, or else what it knew at its last checkpoint."""
    if has_ended(folder):
        return Atlas.load(folder)
    manifest = load_manifest(folder)
    checkpoint = load_checkpoint(manifest.run, folder)
    explorer = explorer_from_description(manifest, checkpoint.explorer, None)
    world = _MetWorld(checkpoint.world)
    # To the reader, a run in progress is one that was just interrupted.
    state = replace(decode_state(checkpoint.state, explorer), stop=StopReason.INTERRUPTED)
    exploration = explorer.finish(state, world)
    return atlas_of(
        exploration,
        world,
        world_name=manifest.world,
        explorer_name=manifest.explorer,
        steps_before=manifest.steps_before,
        findings=manifest.findings,
        faults=faults_in(folder),
    )


@dataclass(frozen=True)
class _MetWorld(World):
    """The states that a world has shown by a checkpoint. It carries out no orders."""

    at: WorldSnapshot

    @property
    def states(self) -> Sequence[State]:
        return self.at.labels

    @property
    def steps(self) -> int:
        return self.at.steps

    def actions_of(self, state: int) -> tuple[Action, ...]:
        return self.at.actions[state]

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        _refuse(orders)


def _refuse(orders: Sequence[Order]) -> NoReturn:
    raise StorageError(f"a run that is only read cannot carry out these {len(orders)} orders")
