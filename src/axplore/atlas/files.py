"""How an atlas is kept: `atlas.json` and `atlas.npz` in a folder, and its certificate beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.atlas.atlas import Atlas
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.errors import AxploreError, DamagedFileError, StorageError
from axplore.explorers.base import StopReason
from axplore.labels import decode_label, encode_label
from axplore.storage import storage_errors
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION, IntArray, Status

NAME: Final = "atlas"
FORMAT: Final = "axplore atlas"
VERSION: Final = 2

STATUS_CODES: Final = tuple(Status)
COUNTS: Final = "counts_"
"""Before the names of the arrays of counts."""

COUNT_ARRAYS: Final = {"states", "state_pairs", "visits", "row_offsets", "successors", "counts", "first_draws"}
"""The fields of `CountedRows`, whose module compiles code and is not needed to read an atlas."""


def save(atlas: Atlas, folder: Path) -> None:
    """Writes an atlas, and its certificate if it has one, into a folder."""
    with storage_errors(f"the atlas cannot be written to {folder}"):
        if atlas.certificate is not None:
            atlas.certificate.save(folder)
        storage.write_sealed(
            folder, NAME, {"format": FORMAT, "version": VERSION, **_fields_of(atlas)}, _arrays_of(atlas)
        )


def load(folder: Path) -> Atlas:
    """Reads what `save` wrote."""
    if not (folder / f"{NAME}.json").is_file():
        cut_short = (folder / "run.json").is_file()
        advice = f". The run was cut short; go on with it: axplore resume {folder}" if cut_short else ""
        raise StorageError(f"there is no atlas in {folder}: it holds no {NAME}.json{advice}")
    fields, arrays = storage.read_sealed(folder, NAME, FORMAT, VERSION)
    try:
        return _checked(_atlas_from(folder, fields, arrays))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, AxploreError):
            raise
        raise DamagedFileError(f"the atlas in {folder} is damaged: {type(error).__name__}: {error}") from None


def _fields_of(atlas: Atlas) -> dict[str, Any]:
    return {
        "world": atlas.world,
        "explorer": atlas.explorer,
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "delta": atlas.target.delta,
        "objective": None if atlas.objective is None else atlas.objective.value,
        "proven": atlas.proven,
        "complete": atlas.complete,
        "stop": atlas.stop.name,
        "steps": atlas.steps,
        "rounds": atlas.rounds,
        "unseen_lower": atlas.unseen_lower,
        "seen": [encode_label(state) for state in atlas.seen],
        "actions": [[encode_label(action) for action in offered] for offered in atlas.actions],
        "findings": [finding.as_json() for finding in atlas.findings],
        "faults": [fault.as_json() for fault in atlas.faults],
        "certified": atlas.certificate is not None,
    }


def _arrays_of(atlas: Atlas) -> dict[str, npt.NDArray[Any]]:
    return {
        "numbers": atlas.numbers,
        "found_at": atlas.found_at,
        "left_out_numbers": atlas.left_out_numbers,
        "lower": atlas.lower,
        "upper": atlas.upper,
        "regret": atlas.regret,
        "statuses": np.array([STATUS_CODES.index(status) for status in atlas.statuses]),
        "policy_shapes": np.array([(0, *policy.shape)[-2:] for policy in atlas.policies]),  # a horizon of 0: none
        "policy_choices": np.concatenate([policy.ravel() for policy in atlas.policies]),
        **{COUNTS + name: array for name, array in atlas.count_arrays.items()},
    }


def _atlas_from(folder: Path, fields: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Atlas:
    certificate = None
    if fields["certified"]:
        from axplore.certificate import Certificate

        certificate = Certificate.load(folder)
    return Atlas(
        world=fields["world"],
        explorer=fields["explorer"],
        target=Target(radius=fields["radius"], epsilon=fields["epsilon"], delta=fields["delta"]),
        objective=None if fields["objective"] is None else Objective(fields["objective"]),
        seen=tuple(decode_label(label) for label in fields["seen"]),
        numbers=arrays["numbers"],
        found_at=arrays["found_at"],
        actions=tuple(tuple(decode_label(action) for action in offered) for offered in fields["actions"]),
        policies=_policies_from(arrays["policy_shapes"], arrays["policy_choices"]),
        left_out_numbers=arrays["left_out_numbers"],
        lower=arrays["lower"],
        upper=arrays["upper"],
        regret=arrays["regret"],
        statuses=tuple(STATUS_CODES[code] for code in arrays["statuses"].tolist()),
        unseen_lower=fields["unseen_lower"],
        proven=fields["proven"],
        complete=fields["complete"],
        count_arrays={name.removeprefix(COUNTS): array for name, array in arrays.items() if name.startswith(COUNTS)},
        steps=fields["steps"],
        rounds=fields["rounds"],
        stop=StopReason[fields["stop"]],
        findings=tuple(map(FindingRecord.from_json, fields["findings"])),
        faults=tuple(map(FaultRecord.from_json, fields["faults"])),
        certificate=certificate,
    )


def _policies_from(shapes: npt.NDArray[Any], choices: npt.NDArray[Any]) -> tuple[IntArray, ...]:
    lengths = np.maximum(shapes[:, 0], 1) * shapes[:, 1]
    parts = np.split(choices, np.cumsum(lengths)[:-1])
    return tuple(
        part.reshape(horizon, width) if horizon else part.reshape(width)
        for part, (horizon, width) in zip(parts, shapes.tolist(), strict=True)
    )


def _checked(atlas: Atlas) -> Atlas:
    """The atlas, if its parts fit each other."""
    n_states, n_places = len(atlas.numbers), len(atlas.numbers) + len(atlas.left_out_numbers)
    named = np.concatenate((atlas.numbers, atlas.left_out_numbers))
    offered = np.array([len(actions) for actions in atlas.actions])
    fits = (
        n_states > 0
        and all(len(part) == n_states for part in (atlas.found_at, atlas.actions, atlas.policies))
        and all(len(part) == n_places for part in (atlas.lower, atlas.upper, atlas.regret, atlas.statuses))
        and len(set(named.tolist())) == n_places
        and named.min() >= 0
        and named.max() < len(atlas.seen)
        and len(set(atlas.seen)) == len(atlas.seen)
        and all((policy >= RESET_ACTION).all() for policy in atlas.policies)
        and all((policy < offered[: policy.shape[-1]]).all() for policy in atlas.policies)
        and set(atlas.count_arrays) == COUNT_ARRAYS
    )
    if not fits:
        raise DamagedFileError("the saved atlas is damaged: its parts do not fit each other")
    return atlas
