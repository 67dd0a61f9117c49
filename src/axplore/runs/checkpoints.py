"""Checkpoints: everything that an exploration needs to go on from a moment between two pieces of work.

A checkpoint is a pair of files that is there once its JSON file is. Then the one before it is removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axplore import storage
from axplore.errors import AxploreError, DamagedFileError
from axplore.labels import Json
from axplore.runs.journal import decode_states, encode_states
from axplore.runs.state_codec import SavedState
from axplore.storage import storage_errors, sync_folder
from axplore.worlds.contract import WorldSnapshot

FORMAT: Final = "axplore checkpoint"
VERSION: Final = 2

_NUMBERED: Final = re.compile(r"(?:checkpoint-(\d+)\.(?:json|npz)|journal-(\d+))")


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A moment of a run.

    Attributes:
        number: counted from 0, the beginning.
        explorer: its description; see `axplore.runs.manifest.described`.
        max_steps: no piece of work begins after so many steps of the run.
        narrowed: whether the explorer was asked for less than before, so that it may know states beyond its reach.
        state: of the explorer.
        world: how far it has come.
    """

    number: int
    explorer: Mapping[str, Json]
    max_steps: int | None
    narrowed: bool
    state: SavedState
    world: WorldSnapshot


def journal_path(folder: Path, number: int) -> Path:
    """Where the calls after a checkpoint are kept."""
    return folder / f"journal-{number}"


def save_checkpoint(checkpoint: Checkpoint, run: str, folder: Path) -> None:
    """Writes a checkpoint, and then removes those before it with their journals."""
    world = checkpoint.world
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "run": run,
        "number": checkpoint.number,
        "explorer": checkpoint.explorer,
        "max_steps": checkpoint.max_steps,
        "narrowed": checkpoint.narrowed,
        "world": {
            "states": encode_states(zip(world.labels, world.actions, strict=True)),
            "steps": world.steps,
            "calls": world.calls,
            "position": world.position,
        },
        "state": checkpoint.state.content,
    }
    with storage_errors(f"checkpoint {checkpoint.number} cannot be written to {folder}"):
        storage.write_sealed(folder, _name(checkpoint.number), body, checkpoint.state.arrays)
        sync_folder(folder)
        remove_others(folder, checkpoint.number)


def load_checkpoint(run: str, folder: Path) -> Checkpoint:
    """The last checkpoint of a run."""
    numbers = [int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.json") if _number(path) >= 0]
    if not numbers:
        raise DamagedFileError(f"the run in {folder} is damaged: it has no checkpoint")
    name = _name(max(numbers))
    body, arrays = storage.read_sealed(folder, name, FORMAT, VERSION)
    path = folder / f"{name}.json"
    if body.get("run") != run or body.get("number") != max(numbers):
        raise DamagedFileError(f"{path} is not of this run")
    try:
        world = body["world"]
        states = decode_states(world["states"])
        return Checkpoint(
            number=body["number"],
            explorer=body["explorer"],
            max_steps=body["max_steps"],
            narrowed=body["narrowed"],
            state=SavedState(body["state"], arrays, str(path)),
            world=WorldSnapshot(
                labels=tuple(label for label, _ in states),
                actions=tuple(actions for _, actions in states),
                steps=world["steps"],
                calls=world["calls"],
                position=world["position"],
            ),
        )
    except (LookupError, TypeError, ValueError, AxploreError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None


def remove_others(folder: Path, number: int) -> None:
    """Removes other checkpoints than this one, and their journals."""
    # The JSON files first: without it the rest of a checkpoint does not count.
    for path in sorted(folder.iterdir(), key=lambda path: path.suffix != ".json"):
        if _number(path) not in (-1, number):
            path.unlink()


def _name(number: int) -> str:
    return f"checkpoint-{number}"


def _number(path: Path) -> int:
    """The number of a checkpoint's file or of a journal; -1 of another file."""
    match = _NUMBERED.fullmatch(path.name)
    return -1 if match is None else int(match[1] or match[2])
