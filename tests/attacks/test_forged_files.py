"""Forged files are refused with an error of axplore, or say nothing false; the study `forgeries` makes thousands."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import Atlas, TabularMdp, storage
from axplore.domains import slippery_grid
from axplore.errors import DamagedFileError
from axplore_studies import forgeries
from axplore_studies.atlas_truth import false_claims
from axplore_studies.forgeries import CERTIFIED, batch_of, forged_arrays, forged_json, places_in, trials

PARTS = list(dict.fromkeys((trial.address["kind"], trial.address["part"]) for trial in trials()))


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_a_forged_file_is_refused_or_says_nothing_false(kind: str, part: str) -> None:
    became = batch_of(kind, part, batch=1000, size=4 if part in ("certificate", CERTIFIED) else 2)
    assert (became["false"], became["crashed"]) == ([], [])


def test_forging_changes_every_place_and_leaves_the_original() -> None:
    body = {"a": [1, 2, {"b": 0.5}], "c": "text"}
    before = json.dumps(body)
    forged = [forged_json(body, np.random.default_rng(seed)) for seed in range(300)]
    assert json.dumps(body) == before
    assert set(places_in(body)) == {("a",), ("a", 0), ("a", 1), ("a", 2), ("a", 2, "b"), ("c",)}
    for path in places_in(body):
        assert any(_value(one, path) != _value(body, path) for one in forged)


def _value(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            body = body[key]
        except (LookupError, TypeError):
            return None
    return body


def test_forged_arrays_differ_in_one() -> None:
    arrays = {"one": np.arange(5), "two": np.linspace(0, 1, 4)}
    for seed in range(100):
        forged = forged_arrays(arrays, np.random.default_rng(seed))
        changed = [name for name in arrays if name not in forged or forged[name].tolist() != arrays[name].tolist()]
        assert len(changed) <= 1


def explored(model: TabularMdp, **settings: Any) -> Atlas:
    return axplore.explore(model, 2.0, 1.0, doctor=False, delta=1e-4, max_steps=4000, **settings)


def test_what_is_false_is_found() -> None:
    """Bounds of one model are false of another; otherwise no forgery could be found out."""
    atlas = explored(slippery_grid(rows=2, columns=2, slip=0.1))
    assert list(false_claims(atlas, slippery_grid(rows=2, columns=2, slip=0.1))) == []
    found = list(false_claims(atlas, slippery_grid(rows=2, columns=2, slip=0.6)))
    assert any("more than" in claim for claim in found)
    assert any("takes inf" in claim for claim in false_claims(atlas, TabularMdp.from_rows({(0, 0): {}}, (0, 0))))


def test_the_law_of_the_policy_that_is_certified_sums_to_one() -> None:
    law = forgeries._arrival_law(200)
    assert math.isclose(sum(law), 1.0, abs_tol=1e-9)
    assert law[:2] == [0.0, 0.0]
    assert law[2] > 0.8


@pytest.fixture(scope="module")
def run_of_the_grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "grid"
    explored(slippery_grid(rows=2, columns=2, slip=0.1), run=folder)
    return folder


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("state", "fields", "known"), [0, 1, 1, 2]),
        (("state", "fields", "known", 1), 2**53),
        (("state", "fields", "known", 1), True),
        (("state", "fields", "found_at"), [0]),
        (("state", "fields", "counts"), []),
        (("state", "fields", "tests"), {"set": []}),
        (("state", "fields", "round"), "1"),
        (("world", "steps"), [3]),
        (("world", "position"), None),
        (("max_steps",), "many"),
        (("examining",), []),
        (("playing",), {}),
        (("in_vain",), -1),
        (("narrowed",), 0),
    ],
)
def test_a_checkpoint_that_holds_no_state_is_damaged(
    run_of_the_grid: Path, tmp_path: Path, path: tuple[Any, ...], value: Any
) -> None:
    model = slippery_grid(rows=2, columns=2, slip=0.1)
    shutil.copytree(run_of_the_grid, tmp_path / "run")
    checkpoint = max((tmp_path / "run").glob("checkpoint-*.json"))
    body = json.loads(checkpoint.read_text(encoding="utf-8"))
    body.pop("digest")
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    assert json.dumps(inner[path[-1]]) != json.dumps(value)  # True equals 1
    inner[path[-1]] = value
    storage.write_sealed(tmp_path / "run", checkpoint.stem, body, dict(np.load(checkpoint.with_suffix(".npz"))))
    with pytest.raises(DamagedFileError, match="damaged"):
        axplore.resume(tmp_path / "run", model, max_steps=50)
