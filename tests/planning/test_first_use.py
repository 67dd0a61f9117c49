from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axplore.planning import first_use

PROGRAM = """
from axplore.planning.first_use import NOTICE, needs_compiling, prepare
said = []
before = needs_compiling()
prepare(said.append)
print(before, said == [NOTICE], needs_compiling())
"""


def run(cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_only_the_first_use_compiles_and_says_so(tmp_path: Path) -> None:
    assert run(tmp_path) == "True True False"
    assert run(tmp_path) == "False False False"


def test_nothing_is_said_when_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "needs_compiling", lambda: False)
    first_use.prepare(pytest.fail)


def test_planners_are_imported_without_compiled_code() -> None:
    program = (
        "import sys, axplore.planning.exact, axplore.planning.optimistic\n"
        "print(sorted({'numba', 'llvmlite', 'scipy.sparse.linalg', 'scipy.sparse'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
