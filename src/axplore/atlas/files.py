"""Files of an atlas: `atlas.json` and `atlas.npz` in a folder, with its certificate beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.atlas.atlas import Atlas
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.errors import AxploreError, DamagedFileError, InvalidInputError, StorageError
from axplore.explorers.base import StopReason
from axplore.labels import decode_label, encode_label
from axplore.memory import Memory
from axplore.storage import storage_errors
from axplore.target import Target
from axplore.types import RESET_ACTION, IntArray, Status

NAME: Final = "atlas"
FORMAT: Final = "axplore atlas"
VERSION: Final = 4

COUNTS: Final = "counts_"
"""The prefix of the names of count arrays."""

COUNT_ARRAYS: Final = {"states", "state_pairs", "visits", "row_offsets", "successors", "counts", "first_draws"}
"""The fields of `CountedRows`, listed here because importing its module is slow and not needed."""


def save(atlas: Atlas, folder: Path) -> None:
    """Writes an atlas into a folder; one with a certificate as the certificate and a record of the run."""
    if atlas.is_part:
        raise InvalidInputError(
            "a part of an atlas has no certificate, so it cannot be saved: save the atlas it was taken from, and "
            "take the part again with within(radius)"
        )
    with storage_errors(f"the atlas cannot be written to {folder}"):
        if atlas.certificate is not None:
            atlas.certificate.save(folder)
        storage.write_sealed(
            folder, NAME, {"format": FORMAT, "version": VERSION, **_fields_of(atlas)}, _arrays_of(atlas)
        )


def load(folder: Path) -> Atlas:
    """Reads an atlas that `save` wrote."""
    if not (folder / f"{NAME}.json").is_file():
        cut_short = (folder / "run.json").is_file()
        advice = f". The run was interrupted; resume it: axplore resume {folder}" if cut_short else ""
        raise StorageError(f"there is no atlas in {folder}: it holds no {NAME}.json{advice}")
    fields, arrays = storage.read_sealed(folder, NAME, FORMAT, VERSION)
    try:
        return _checked(_atlas_from(folder, fields, arrays))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, AxploreError):
            raise
        raise DamagedFileError(f"the atlas in {folder} is damaged: {type(error).__name__}: {error}") from None


def _fields_of(atlas: Atlas) -> dict[str, Any]:
    certificate = atlas.certificate
    n_counted = len(atlas.numbers) + len(atlas.frontier_numbers)
    record = {
        "certificate": None if certificate is None else certificate.digest,
        "world": atlas.world,
        "explorer": atlas.explorer,
        "stop": atlas.stop.name,
        "steps": atlas.steps,
        "rounds": atlas.rounds,
    }
    if certificate is not None:
        return {**record, "uncounted": [encode_label(state) for state in atlas.seen[n_counted:]]}
    return {
        **record,
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "delta": atlas.target.delta,
        "seen": [encode_label(state) for state in atlas.seen],
        "actions": [[encode_label(action) for action in offered] for offered in atlas.actions],
        "findings": [finding.as_json() for finding in atlas.findings],
        "faults": [fault.as_json() for fault in atlas.faults],
        **({} if atlas.memory is None else {"memory": atlas.memory.as_json()}),
    }


def _arrays_of(atlas: Atlas) -> dict[str, npt.NDArray[Any]]:
    if atlas.certificate is not None:
        return {"found_at": atlas.found_at}
    return {
        "found_at": atlas.found_at,
        "numbers": atlas.numbers,
        "frontier_numbers": atlas.frontier_numbers,
        "optimistic_steps": atlas.lower[: len(atlas.numbers)],
        "policy_shapes": np.array([(0, *policy.shape)[-2:] for policy in atlas.policies]),  # a horizon of 0: none
        "policy_choices": np.concatenate([policy.ravel() for policy in atlas.policies]),
        **{COUNTS + name: array for name, array in atlas.count_arrays.items()},
    }


def _atlas_from(folder: Path, fields: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Atlas:
    record: dict[str, Any] = {
        "world": fields["world"],
        "explorer": fields["explorer"],
        "found_at": arrays["found_at"],
        "steps": fields["steps"],
        "rounds": fields["rounds"],
        "stop": StopReason[fields["stop"]],
    }
    if fields["certificate"] is not None:
        from axplore.atlas.construction import atlas_from_certificate
        from axplore.certificate import Certificate

        certificate = Certificate.load(folder)
        if certificate.digest != fields["certificate"]:
            raise DamagedFileError(f"the certificate in {folder} is of another run than the atlas beside it")
        uncounted = tuple(decode_label(label) for label in fields["uncounted"])
        return atlas_from_certificate(certificate, **record, uncounted=uncounted)
    n_states, n_others = len(arrays["numbers"]), len(arrays["frontier_numbers"])
    return Atlas(
        **record,
        target=Target(radius=fields["radius"], epsilon=fields["epsilon"], delta=fields["delta"]),
        objective=None,
        seen=tuple(decode_label(label) for label in fields["seen"]),
        numbers=arrays["numbers"],
        actions=tuple(tuple(decode_label(action) for action in offered) for offered in fields["actions"]),
        policies=_policies_from(arrays["policy_shapes"], arrays["policy_choices"]),
        frontier_numbers=arrays["frontier_numbers"],
        lower=np.concatenate((arrays["optimistic_steps"], np.zeros(n_others))),
        upper=np.full(n_states + n_others, np.inf),
        regret=np.full(n_states + n_others, np.inf),
        statuses=(Status.OPEN,) * (n_states + n_others),
        unseen_lower=0.0,
        proven=False,
        complete=False,
        count_arrays={name.removeprefix(COUNTS): array for name, array in arrays.items() if name.startswith(COUNTS)},
        findings=tuple(map(FindingRecord.from_json, fields["findings"])),
        faults=tuple(map(FaultRecord.from_json, fields["faults"])),
        memory=Memory.from_json(fields["memory"]) if "memory" in fields else None,
    )


def _policies_from(shapes: npt.NDArray[Any], choices: npt.NDArray[Any]) -> tuple[IntArray, ...]:
    lengths = np.maximum(shapes[:, 0], 1) * shapes[:, 1]
    parts = np.split(choices, np.cumsum(lengths)[:-1])
    return tuple(
        part.reshape(horizon, width) if horizon else part.reshape(width)
        for part, (horizon, width) in zip(parts, shapes.tolist(), strict=True)
    )


def _is_possible(policy: IntArray, offered: IntArray) -> bool:
    """Whether a policy plays only what states offer; one of a certificate was checked with it."""
    return bool((policy >= RESET_ACTION).all() and (policy < offered[: policy.shape[-1]]).all())


def _checked(atlas: Atlas) -> Atlas:
    """Returns the atlas; refuses one whose parts are inconsistent."""
    n_states, n_places = len(atlas.numbers), len(atlas.numbers) + len(atlas.frontier_numbers)
    named = np.concatenate((atlas.numbers, atlas.frontier_numbers))
    offered = np.array([len(actions) for actions in atlas.actions])
    fits = (
        n_states > 0
        and all(type(number) is int and number >= 0 for number in (atlas.steps, atlas.rounds))
        and isinstance(atlas.world, str)
        and isinstance(atlas.explorer, str)
        and atlas.found_at.dtype == np.int64
        and atlas.found_at.ndim == 1
        and bool((np.diff(atlas.found_at) >= 0).all())
        and 0 <= atlas.found_at[0] <= atlas.found_at[-1] <= atlas.steps
        and all(len(part) == n_states for part in (atlas.found_at, atlas.actions, atlas.policies))
        and all(len(part) == n_places for part in (atlas.lower, atlas.upper, atlas.regret, atlas.statuses))
        and len(set(named.tolist())) == n_places
        and named.min() >= 0
        and named.max() < len(atlas.seen)
        and len(set(atlas.seen)) == len(atlas.seen)
        and (atlas.certificate is not None or all(_is_possible(policy, offered) for policy in atlas.policies))
        and set(atlas.count_arrays) == COUNT_ARRAYS
    )
    if not fits:
        raise DamagedFileError("the saved atlas is damaged: its parts are inconsistent")
    return atlas
