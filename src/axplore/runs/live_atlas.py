"""The atlas of a run as it stands: from its files if it has ended, else from its last checkpoint. Only read."""

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
    """A text that changes whenever `atlas_now` would give another atlas; empty if there is no run yet."""
    marks = sorted(
        f"{path.name} {path.stat().st_mtime_ns}"
        for pattern in ("checkpoint-*.json", ENDED, ATLAS)
        for path in folder.glob(pattern)
    )
    return "; ".join(marks)


def has_ended(folder: Path) -> bool:
    """Whether the run has an atlas, and does not go on."""
    return (folder / ATLAS).is_file() and ((folder / ENDED).is_file() or not any(folder.glob("checkpoint-*.json")))


def atlas_now(folder: Path) -> Atlas:
    """What the run knows: all of it if it has ended, else what it knew at its last checkpoint."""
    if has_ended(folder):
        return Atlas.load(folder)
    manifest = load_manifest(folder)
    checkpoint = load_checkpoint(manifest.run, folder)
    explorer = explorer_from_description(manifest, checkpoint.explorer, None)
    world = _MetWorld(checkpoint.world)
    # A run in progress is, for the reader, one that was interrupted just now.
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
    """What a world has shown by a checkpoint; it carries out nothing."""

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
    raise StorageError(f"a run that is only looked at carries out none of these {len(orders)} orders")
