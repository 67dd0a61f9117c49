from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import axplore

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]


def imported_packages() -> set[str]:
    """The top-level names of everything that the package imports, wherever in a module it does so."""
    names: set[str] = set()
    for path in Path(axplore.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    # The studies come with a clone; a contract in pyproject.toml says which commands look for them.
    return names - set(sys.stdlib_module_names) - {"axplore", "axplore_studies"}


def test_what_is_imported_is_declared() -> None:
    declared = {re.split(r"[\[><=~!]", requirement)[0].lower() for requirement in REQUIREMENTS}
    homes = packages_distributions()
    for name in imported_packages():
        distributions = {distribution.lower() for distribution in homes.get(name, [name])}
        assert distributions & declared, f"{name} is imported, and pyproject.toml requires none of {distributions}"


def test_every_requirement_has_a_lowest_version_that_can_be_tested() -> None:
    printed = subprocess.run([sys.executable, ROOT / ".ci" / "lowest"], capture_output=True, text=True, check=True)
    pinned = {line.partition("==")[0] for line in printed.stdout.split()}
    assert pinned == {re.split(r"[\[>]", requirement)[0] for requirement in REQUIREMENTS} - {"axplore"}
