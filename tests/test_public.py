from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import axplore
import axplore.explorers
import axplore.workers
import axplore.worlds

ROOT = Path(__file__).parent.parent
SLOW_TO_IMPORT = ("numba", "scipy.sparse.linalg", "gymnasium", "matplotlib", "stormpy")


FACADES = (axplore, axplore.explorers, axplore.worlds, axplore.workers)


@pytest.mark.parametrize("package", FACADES)
def test_every_public_name_exists_and_is_listed_once(package: Any) -> None:
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("package", FACADES)
def test_every_name_that_can_be_loaded_is_public(package: Any) -> None:
    assert {name for names in package._HOMES.values() for name in names} == set(package.__all__)


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'atlantis'"):
        axplore.atlantis  # noqa: B018


@pytest.mark.parametrize(
    "statement", ["import axplore", "import axplore.cli", "import axplore.explorers, axplore.worlds, axplore.workers"]
)
def test_nothing_slow_is_imported_before_it_is_used(statement: str) -> None:
    code = f"{statement}; import sys; print([name for name in {SLOW_TO_IMPORT!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_readmes_example_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (match,) = re.finditer(r"```python\n(.*?)```\s*```text\n(.*?)```", text, flags=re.DOTALL)
    exec(match[1], {})
    assert capsys.readouterr().out == match[2]
