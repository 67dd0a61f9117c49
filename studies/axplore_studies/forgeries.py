"""Forges every part of every kind of file, with a digest that fits, and asks axplore to read it.

Nothing is known here of what the files hold: a forgery changes some values of JSON or of arrays, wherever they are. It
may be refused, with an error of axplore. It may also be read and verified, and then it must not say what is false: as
long as the draws that it rests on are those of the original, everything that it concludes is compared with the exact
truth. (Other draws are other evidence. No reader can know that they were made up.)
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import axplore
from axplore import Assumptions, Atlas, StopReason, TabularMdp, storage
from axplore.certificate import EpisodeCertificate
from axplore.domains import GridTies, confusing_chain, slippery_grid
from axplore.errors import AxploreError
from axplore.runs.folder import keep_answer
from axplore.runs.history import history_of
from axplore.truth import ACCURACY
from axplore_studies.atlas_truth import false_claims
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table
from axplore_studies.systems.made_models import vending

SEED: Final = 4
"""The entropy of all forgeries."""

BATCH: Final = 25
"""Forgeries of a trial."""

DELTA: Final = 1e-4
"""So small that chance explains no false claim."""

Json = Any
Arrays = dict[str, npt.NDArray[Any]]


# What is forged -------------------------------------------------------------------------------------------------------

GRID: Final = slippery_grid(rows=2, columns=2, slip=0.1)
GOAL: Final = (1, 1)
TIES: Final = GridTies(rows=2, columns=2)
TIED: Final = Assumptions(tied=TIES.outcome_of, leads_to=TIES.leads_to)


@dataclass(frozen=True)
class Original:
    """A run to forge.

    Attributes:
        model: what it explored.
        settings: how.
        then: how it was resumed; None if it was not.
        properties: what was asked of it, and kept.
    """

    model: Callable[[], TabularMdp]
    settings: dict[str, Any]
    then: dict[str, Any] | None = None
    properties: tuple[str, ...] = ()


def _grid(slip: float) -> Callable[[], TabularMdp]:
    return partial(slippery_grid, rows=2, columns=2, slip=slip)


PROPERTIES: Final = (
    'Pmax=? [ !"(0, 1)" U "(1, 1)" ]', 'Pmin=? [ F "(1, 1)" ]', 'Pmax=? [ F<=3 "(1, 1)" ]', 'Pmin=? [ G<=2 !"(1, 0)" ]',
)  # fmt: skip
"""What is asked of the grid: the best and the worst policy, with and without a number of steps."""

ORIGINALS: Final[dict[str, Original]] = {
    "optimal": Original(_grid(0.1), {"epsilon": 1.0}),
    "episodes": Original(_grid(0.1), {"epsilon": 1.0, "objective": "within-radius"}),
    "chain, interrupted": Original(confusing_chain, {"radius": 4.5, "epsilon": 0.5, "max_steps": 2500}),
    "nothing assumed of a deterministic world": Original(
        partial(slippery_grid, rows=3, columns=3, slip=0.0), {"epsilon": 0.5, "radius": 4.0}
    ),
    "deterministic": Original(_grid(0.0), {"epsilon": 1.0, "assume": "deterministic"}),
    "least probability": Original(_grid(0.1), {"epsilon": 1.0, "assume": "min-probability=0.05"}),
    "tied": Original(_grid(0.1), {"epsilon": 1.0, "assume": TIED}),
    "no longer tied": Original(_grid(0.1), {"epsilon": 1.0, "assume": TIED, "max_steps": 300}, {"assume": "none"}),
    "properties": Original(_grid(0.1), {"epsilon": 1.0}, properties=PROPERTIES),
    "properties, closed": Original(
        _grid(0.1), {"epsilon": 1.0, "assume": "min-probability=0.05"}, properties=PROPERTIES
    ),
    "one goal": Original(_grid(0.1), {"epsilon": 1.0, "radius": 3.0, "goal": GOAL}),
    "another explorer": Original(_grid(0.1), {"epsilon": 1.0, "explorer": "disco-experiment", "max_steps": 3000}),
}
"""Runs on known models, by name."""

MEMORY: Final = "memory"
"""The run in which situations are told apart: of its hidden model, which no atlas shows, only errors are looked for."""

CERTIFIED: Final = "certify"
"""The file of `certify`."""


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Returns the place of all originals, which is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="axplore-forgeries-")


@cache
def _folder_of(kind: str) -> Path:
    """Returns the folder of an original, made once in each process."""
    folder = Path(_place().name) / kind
    if kind == MEMORY:
        axplore.explore(vending().system, 5.0, 1.0, run=folder, memory=8, max_steps=6000)
        return folder
    original = ORIGINALS[kind]
    settings = {"radius": 2.0, "delta": DELTA, "doctor": False, "max_steps": 6000} | original.settings
    axplore.explore(original.model(), run=folder, seed=1, **settings)
    if original.then is not None:
        axplore.resume(folder, original.model(), on_round=lambda _: StopReason.STEP_LIMIT, **original.then)
    for text in original.properties:
        keep_answer(folder, Atlas.load(folder).check_property(text))
    return folder


@cache
def _certified() -> Path:
    """Returns the file of a certificate by episodes."""
    path = Path(_place().name) / "certify.json"
    axplore.certify(_towards_goal, GRID, GOAL, within=3.5, delta=DELTA).save(path)
    return path


def _towards_goal(state: Any) -> str:
    return "right" if state[1] == 0 else "down"


# Forging --------------------------------------------------------------------------------------------------------------

DEEP: Final[list[Any]] = []
_inner = DEEP
for _ in range(300):
    _inner.append([])
    _inner = _inner[0]

VALUES: Final[tuple[Any, ...]] = (
    0, 1, -1, 2, 0.5, 2**53, 2**63, 10**400, 1e-320, 1e308, "", "x", "0", None, True, False, [], {}, [0], {"": 0}, DEEP,
)  # fmt: skip
NUMBERS: Final = (0, -1, 1, 2, 2**31, 2**53, 2**63 - 1, -(2**63))
FLOATS: Final = (0.0, -1.0, 0.5, 1e-320, 1e9, 1e308, math.nan, math.inf, -math.inf)


def places_in(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields where something stands in JSON."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*path, key))


def forged_json(body: Json, rng: np.random.Generator) -> Json:
    """Returns a copy of JSON in which one to three values are others, gone, twice there, or exchanged."""
    body = copy.deepcopy(body)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        places = list(places_in(body))
        if not places:
            break
        _forge_at(body, places[int(rng.integers(len(places)))], places, rng)
    return body


def _forge_at(body: Json, path: tuple[Any, ...], places: Sequence[tuple[Any, ...]], rng: np.random.Generator) -> None:
    inner = _at(body, path[:-1])
    value, key = inner[path[-1]], path[-1]
    match int(rng.integers(7)):
        case 0:
            inner[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
        case 1 if isinstance(value, int | float):
            inner[key] = _near(value, rng)
        case 2:
            inner[key] = copy.deepcopy(_at(body, places[int(rng.integers(len(places)))]))
        case 3:
            del inner[key]
        case 4 if isinstance(inner, list):
            inner.insert(int(rng.integers(len(inner) + 1)), copy.deepcopy(value))
        case 5 if isinstance(value, list):
            rng.shuffle(value)
        case _ if isinstance(inner, list):
            other = int(rng.integers(len(inner)))
            inner[key], inner[other] = inner[other], inner[key]
        case _:
            inner[key] = [value]


def _near(value: float, rng: np.random.Generator) -> float:
    """Returns a number of the same kind that is near."""
    if isinstance(value, bool):
        return not value
    changed = (value + 1, value - 1, 2 * value, value // 2 if isinstance(value, int) else value * 0.99, value * 10)
    return changed[int(rng.integers(len(changed)))]


def _at(body: Json, path: tuple[Any, ...]) -> Json:
    for key in path:
        body = body[key]
    return body


def forged_arrays(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Returns the arrays, of which one is another."""
    name = list(arrays)[int(rng.integers(len(arrays)))]
    array = arrays[name].copy()
    values = FLOATS if array.dtype.kind == "f" else NUMBERS
    place = int(rng.integers(array.size)) if array.size else 0
    match int(rng.integers(9)):
        case 0 if array.size:
            array.flat[place] = values[int(rng.integers(len(values)))]
        case 1 | 2 if array.size:
            array.flat[place] = _near(array.flat[place].item(), rng) if abs(array.flat[place]) < 2**58 else 0
        case 3 if array.size:
            array[:] = array.flat[place]
        case 4:
            array = rng.permutation(array)
        case 5:
            array = array[: array.size // 2]
        case 6:
            array = np.concatenate([array, array[-1:]])
        case 7:
            other = list(arrays.values())[int(rng.integers(len(arrays)))]
            array = other.copy()
        case _:
            return (
                {kept: item for kept, item in arrays.items() if kept != name}
                if rng.random() < 0.3
                else (arrays | {name: array.reshape(1, -1) if rng.random() < 0.5 else array.astype("f8")})
            )
    return arrays | {name: array}


def _write_forged(folder: Path, name: str, rng: np.random.Generator) -> str:
    """Forges a file of a folder, or the two files of a name; returns which part of them."""
    path = folder / f"{name}.json"
    if name == "events.jsonl":
        return _write_forged_lines(folder / name, rng)
    body = json.loads(path.read_text(encoding="utf-8"))
    sealed = body.pop("digest", None)
    has_arrays = (folder / f"{name}.npz").exists()
    arrays = dict(np.load(folder / f"{name}.npz")) if has_arrays else {}
    part = "arrays" if arrays and rng.random() < 0.5 else "document"
    if part == "arrays":
        arrays = forged_arrays(arrays, rng)
    else:
        body = forged_json(body, rng)
    try:
        if has_arrays:
            storage.write_sealed(folder, name, body, arrays)
        else:
            storage.write_document(path, body)
    except (AxploreError, ValueError, TypeError, OverflowError, RecursionError):  # has no digest: as it is
        path.write_text(json.dumps({**body, "digest": sealed} if isinstance(body, dict) else body), encoding="utf-8")
    _link(folder, sealed, path)
    return part


def _link(folder: Path, before: str | None, path: Path) -> None:
    """Writes the digest of a forged certificate into the atlas that rests on it."""
    atlas = folder / "atlas.json"
    if path.name == "certificate.json" and atlas.exists():
        now = json.loads(path.read_text(encoding="utf-8"))["digest"]
        body = json.loads(atlas.read_text(encoding="utf-8").replace(str(before), str(now)))
        body.pop("digest")
        storage.write_sealed(folder, "atlas", body, dict(np.load(folder / "atlas.npz")))


def _write_forged_lines(path: Path, rng: np.random.Generator) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    place = int(rng.integers(len(lines)))
    if rng.random() < 0.7:
        lines[place] = json.dumps(forged_json(json.loads(lines[place]), rng))
    elif rng.random() < 0.5:
        lines[place] = lines[place][: int(rng.integers(len(lines[place])))]
    else:
        lines.insert(place, lines[int(rng.integers(len(lines)))])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "lines"


# Reading --------------------------------------------------------------------------------------------------------------

ACCEPTED, REFUSED, REJECTED = "read", "refused with an error", "not verified"


def evidence_in(atlas: Atlas) -> Any:
    """Returns what an atlas rests on and no reader can check: draws by label, episodes, assumptions, situations."""
    rows = {
        (repr(state), repr(action)): sorted(
            (repr(after), times) for after, times in atlas.successors(state, action).items()
        )
        for state, action in atlas.pairs
    }
    episodes = sorted(np.asarray(test.outcomes).tolist() for test in atlas.tests)
    return rows, episodes, atlas.assumptions, atlas.memory


def _read_atlas(folder: Path) -> tuple[str, Atlas]:
    """Reads an atlas and all that it says; returns whether it is verified."""
    atlas = Atlas.load(folder)
    text = str(atlas.verdict)
    for state in atlas.seen:
        text += str(atlas.describe(state))
    if not atlas.proven:
        return ACCEPTED, atlas
    return ACCEPTED if axplore.verify(atlas).holds else REJECTED, atlas


def _read_run(folder: Path, kind: str) -> tuple[str, Atlas]:
    """Resumes a run for a few steps."""
    history_of(folder)
    if kind == MEMORY:
        return ACCEPTED, axplore.resume(folder, vending().system, max_steps=50)
    functions: dict[str, Any] = {"assume": TIED} if kind == "tied" else {}
    return ACCEPTED, axplore.resume(folder, ORIGINALS[kind].model(), max_steps=50, **functions)


PARTS: Final = ("certificate", "atlas", "run", "checkpoint", "ended", "events.jsonl")
"""What is forged of a run."""


def forged(kind: str, part: str, number: int) -> tuple[str, str, list[str]]:
    """Forges a part of an original, and returns which part of it, what became of it, and what is false in it."""
    rng = np.random.default_rng([SEED, *map(ord, kind + part), number])
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if part == CERTIFIED:
            return _forged_episodes(Path(place), rng)
        folder = Path(place) / "run"
        shutil.copytree(_folder_of(kind), folder)
        name = max(folder.glob("checkpoint-*.json")).stem if part == "checkpoint" else part
        where = _write_forged(folder, name, rng)
        try:
            what, atlas = _read_atlas(folder) if part in ("certificate", "atlas") else _read_run(folder, kind)
            if what != ACCEPTED or kind == MEMORY or not atlas.proven or not _same_evidence(atlas, kind, part):
                return where, what, []
            return where, what, list(false_claims(atlas, ORIGINALS[kind].model()))
        except AxploreError:
            return where, REFUSED, []


def _same_evidence(atlas: Atlas, kind: str, part: str) -> bool:
    if part == "checkpoint":  # which holds the draws, and what they were explored for
        return False
    if part in ("run", "ended", "events.jsonl"):  # which hold none
        return True
    return bool(evidence_in(atlas) == evidence_in(Atlas.load(_folder_of(kind))))


def _forged_episodes(folder: Path, rng: np.random.Generator) -> tuple[str, str, list[str]]:
    path = folder / "certify.json"
    shutil.copy(_certified(), path)
    _write_forged(folder, "certify", rng)
    try:
        certificate = EpisodeCertificate.load(path)
        if not axplore.verify(path).holds:
            return "document", REJECTED, []
    except AxploreError:
        return "document", REFUSED, []
    original = EpisodeCertificate.load(_certified())
    outcomes = ("arrivals", "missed", "ended", "lost", "policy", "goal", "world")
    if any(getattr(certificate, name) != getattr(original, name) for name in outcomes) or not certificate.proven:
        return "document", ACCEPTED, []
    return "document", ACCEPTED, list(_false_of_episodes(certificate))


def _false_of_episodes(certificate: EpisodeCertificate) -> Iterator[str]:
    """Yields what is false of the policy, whose law on the grid is computed step by step."""
    law = _arrival_law(min(certificate.horizon, 10_000))
    missed = max(1.0 - sum(law), 0.0)
    if certificate.chance is not None and 1.0 - missed < certificate.chance - ACCURACY:
        yield f"it arrives with {1 - missed:g}, less than {certificate.chance:g}"
    if certificate.within is not None:
        late = certificate.horizon + 1 + certificate.within  # what an episode counts as that has missed
        steps = sum(step * share for step, share in enumerate(law)) + missed * late
        if steps > certificate.within + ACCURACY:
            yield f"it takes {steps:g} steps, more than {certificate.within:g}"


def _arrival_law(horizon: int) -> list[float]:
    """Returns the probability that the policy arrives after 0, ..., H steps."""
    mass: dict[Any, float] = {GRID.initial_state: 1.0}
    law = []
    for _ in range(horizon + 1):
        law.append(mass.pop(GOAL, 0.0))
        ahead: dict[Any, float] = {}
        for state, share in mass.items():
            for after, probability in GRID.row(state, _towards_goal(state)).items():
                ahead[after] = ahead.get(after, 0.0) + share * probability
        mass = ahead
    return law


def trials(forgeries: int = 5000) -> list[Trial]:
    """Returns the forgeries in batches, spread over the parts of all originals.

    Args:
        forgeries: how many in all, at least.
    """
    parts = [(kind, part) for kind in (*ORIGINALS, MEMORY) for part in PARTS] + [(CERTIFIED, CERTIFIED)]
    parts = [(kind, part) for kind, part in parts if (kind, part) != ("another explorer", "certificate")]
    batches = math.ceil(forgeries / BATCH)
    return [
        Trial(
            {"kind": kind, "part": part, "batch": number // len(parts)},
            partial(batch_of, kind, part, number // len(parts)),
        )
        for number in range(batches)
        for kind, part in [parts[number % len(parts)]]
    ]


def batch_of(kind: str, part: str, batch: int, size: int = BATCH) -> Record:
    """Makes a batch of forgeries, and returns what became of them."""
    became = {ACCEPTED: 0, REJECTED: 0, REFUSED: 0}
    false, crashed = [], []
    for number in range(batch * BATCH, batch * BATCH + size):
        try:
            _, what, claims = forged(kind, part, number)
        except Exception as error:
            crashed.append([number, f"{type(error).__name__}: {error}"[:300]])
            continue
        became[what] += 1
        if claims:
            false.append([number, claims[0][:300]])
    return {**became, "false": false, "crashed": crashed}


def summary(records: Sequence[Record]) -> Table:
    """Returns what became of the forgeries of each part of each kind of file."""
    names = dict.fromkeys((record["kind"], record["part"]) for record in records)
    rows = [
        _row(kind, part, [run for run in records if (run["kind"], run["part"]) == (kind, part)]) for kind, part in names
    ]
    rows.append(_row("all", "all", records))
    title = "Forgeries with a digest that fits"
    holds = not any(row["read_and_false"] or row["crashed"] for row in rows)
    return Table(STUDY.name, title, rows, holds=holds)


def _row(kind: str, part: str, runs: Sequence[Record]) -> dict[str, Any]:
    counted = {name: sum(run[name] for run in runs) for name in (ACCEPTED, REJECTED, REFUSED)}
    false, crashed = (sum(len(run[name]) for run in runs) for name in ("false", "crashed"))
    total = sum(counted.values()) + crashed
    return {"run": kind, "part": part, "forgeries": total, **counted, "read_and_false": false, "crashed": crashed}


STUDY: Final = Study(
    "forgeries",
    "whether forged files are refused, or say nothing false",
    trials,
    summary,
    counted="forgeries",
)
