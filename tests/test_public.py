from __future__ import annotations

import ast
import functools
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


def modules_after(statement: str) -> set[str]:
    """The modules of axplore that a fresh process has loaded after a statement."""
    code = f"import sys; {statement}; print(*(name for name in sys.modules if name.startswith('axplore')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_a_simulated_maze_loads_no_workers_no_stepped_world_and_nothing_that_tells_situations_apart() -> None:
    loaded = modules_after("import axplore; axplore.explore('maze', radius=2, epsilon=3, max_steps=2000)")
    assert "axplore.worlds.simulated" in loaded
    unwanted = ("axplore.workers.", "axplore.worlds.stepped", "axplore.worlds.situation_inference", "axplore.refining")
    assert [name for name in sorted(loaded) if name.startswith(unwanted)] == []


@functools.cache
def sources() -> dict[str, ast.Module]:
    """The source files of the package, parsed."""
    package = ROOT / "src" / "axplore"
    files = sorted(package.rglob("*.py"))
    return {str(path.relative_to(package)): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def sources_of(*skipped: str) -> list[tuple[str, ast.Module]]:
    """The source files of the package, parsed, but for some."""
    return [(name, tree) for name, tree in sources().items() if name not in skipped]


def test_nothing_asks_whether_a_world_is_a_stepped_one() -> None:
    """Abilities of a world are declared by its contract: `examinable`, `Resumable`, `Replicable`."""
    asking = [
        name
        for name, tree in sources_of()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and "SteppedWorld" in ast.unparse(node)
    ]
    assert asking == []


def docstrings_in(tree: ast.Module) -> set[int]:
    """The constants that document something: strings that stand alone."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_explorers_are_known_by_name_in_the_registry_only() -> None:
    """A word such as 'certified' also has a meaning of its own: in a longer text, only a quoted name counts."""
    names = set(axplore.explorers.explorer_names())
    known = [
        (name, node.value)
        for name, tree in sources_of("explorers/registry.py")
        for documents in [docstrings_in(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documents
        and (node.value in names or any(f"'{explorer}'" in node.value for explorer in names))
    ]
    # The status of a state and a field of JSON have the name of an explorer by chance.
    assert known == [("cli/run_commands.py", "certified"), ("types.py", "certified")]
