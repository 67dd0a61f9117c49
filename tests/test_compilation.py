from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import axplore

USE_A_KERNEL = """
import axplore.atlas.journeys, axplore.graphs.sweep_kernels, axplore.proofs.bounds, axplore.worlds.simulation_kernels
from axplore.compilation import is_kept
from axplore.statistics.confidence import least_mass
kept_before = is_kept(least_mass)
print(kept_before, round(least_mass(0.5, 0.0), 3), is_kept(least_mass))
import gc
assert gc.isenabled()  # it is off while a kernel is compiled
"""


FOLLOW_A_COMPILATION = """
import threading
from axplore.compilation import compiling
from axplore.statistics.confidence import least_mass
said, over = [], threading.Event()
def look():
    while not over.wait(0.01):
        said.append(compiling())
thread = threading.Thread(target=look)
thread.start()
least_mass(0.5, 0.0)
over.set()
thread.join()
words = [line for line in said if line]
print(compiling(), words[0] if words else None)
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


def test_only_the_first_use_compiles(tmp_path: Path) -> None:
    assert run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split() == ["False", "0.5", "True"]
    assert run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split() == ["True", "0.5", "True"]


KERNEL_OF_A_TUPLE = """
from typing import NamedTuple
from axplore.compilation import compiled

class {name}(NamedTuple):
    value: float

@compiled
def doubled(pair):
    return 2 * pair.value

print(doubled({name}(1.5)), doubled.stats.cache_hits)
"""


def test_a_cache_that_names_a_class_which_is_no_more_is_made_anew(tmp_path: Path) -> None:
    """As after an upgrade: Numba reads the names of classes before it sees that the source is newer."""
    for name, said in [("Before", "3.0 Counter()"), ("After", "3.0 Counter()")]:
        (tmp_path / "kernels.py").write_text(KERNEL_OF_A_TUPLE.format(name=name), encoding="utf-8")
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        assert run("import kernels", PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path)).stdout.strip() == said
    assert run("import kernels", PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path)).stdout.startswith("3.0 Counter({")


CALLED_KERNEL = """
from axplore.compilation import compiled, compiled_part
FACTOR = {factor}

@compiled_part
def scaled(number):
    return number * FACTOR
"""

CALLING_KERNEL = """
from axplore.compilation import compiled
from {package}.called import scaled

@compiled
def scaled_and_one_more(number):
    return scaled(number) + 1

print(scaled_and_one_more({number}), sum(scaled_and_one_more.stats.cache_hits.values()))
"""


def write_package(folder: Path, factor: int) -> str:
    package = folder / "kernels_of_a_test"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "called.py").write_text(CALLED_KERNEL.format(factor=factor), encoding="utf-8")
    calling = CALLING_KERNEL.format(package=package.name, number="__import__('sys').argv[1] == 'f' and 5.5 or 5")
    (package / "calling.py").write_text(calling, encoding="utf-8")
    return f"import sys; sys.argv[1:] = ['i']; sys.dont_write_bytecode = True; import {package.name}.calling"


def test_a_kernel_is_compiled_again_when_one_that_it_calls_in_another_file_has_changed(tmp_path: Path) -> None:
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    cached = tmp_path / "cache"
    for factor, said in [(2, "11 0"), (2, "11 1"), (30, "151 0"), (30, "151 1")]:
        program = write_package(tmp_path, factor)
        assert run(program, PYTHONPATH=path, NUMBA_CACHE_DIR=str(cached)).stdout.strip() == said
        # What was compiled from other sources is removed.
        assert len(list(cached.rglob("*.kernel"))) == len(list(cached.rglob("*.*"))) == 2


def test_code_that_was_cut_short_is_compiled_again(tmp_path: Path) -> None:
    program = write_package(tmp_path, 2)
    places = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    places["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    assert run(program, **places).stdout.strip() == "11 0"
    for file in (tmp_path / "cache").rglob("*.kernel"):
        file.write_bytes(file.read_bytes()[:-100])
    assert [run(program, **places).stdout.strip() for _ in range(2)] == ["11 0", "11 1"]


def test_processes_that_compile_for_other_types_at_the_same_time_do_not_mix_up_their_code(tmp_path: Path) -> None:
    program = write_package(tmp_path, 2)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    programs = [program, program.replace("'i'", "'f'")]
    expected = ["11", "12.0"]
    for hits in "01":
        started = [
            subprocess.Popen([sys.executable, "-c", each], env=environment, stdout=subprocess.PIPE, text=True)
            for each in programs
        ]
        said = [process.communicate()[0].split() for process in started]
        assert said == [[value, hits] for value in expected]


CALLED_WITH_CONSTANTS = """
from axplore.compilation import compiled, compiled_inner, specialisations

@compiled_inner
def scaled(number, factor, doubled):
    return number * factor * (2 if doubled else 1)

@compiled
def summed(number, factor):
    constant = scaled(number, 3, True) + scaled(2, 4, True)
    return constant + scaled(number, factor, False) + scaled(number, factor, factor > 1)

print(summed(5, 7), specialisations()["constants.scaled"])
"""


def test_calls_with_constants_share_the_code_of_all_others(tmp_path: Path) -> None:
    (tmp_path / "constants.py").write_text(CALLED_WITH_CONSTANTS, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    said = run("import constants", PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path)).stdout
    assert said.split() == [str(30 + 35 + 70 + 16), "1"]


CALLED_TWICE = """
from numba.core import config
from axplore.compilation import compiled, compiled_inner, compiled_part, specialisations

level = config.OPT

@compiled_part
def doubled(number):
    return 2 * number

@compiled_inner
def quadrupled(number):
    return doubled(doubled(number))

@compiled
def first(number):
    return quadrupled(number) + 1

@compiled
def second(number):
    return doubled(number) + 2

print(first(5), second(6), specialisations().get("sharing.doubled"), sum(first.stats.cache_hits.values()))
assert config.OPT is level
"""


def test_a_part_is_compiled_once_and_found_again_by_all_that_refer_to_its_code(tmp_path: Path) -> None:
    (tmp_path / "sharing.py").write_text(CALLED_TWICE, encoding="utf-8")
    places = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    places["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    assert run("import sharing", **places).stdout.split() == ["21", "14", "1", "0"]
    [part] = (tmp_path / "cache").rglob("sharing.doubled.part-*.kernel")
    [caller] = (tmp_path / "cache").rglob("sharing.first-*.kernel")
    symbol = re.search(rb"_ZN7sharing7doubled\w+", part.read_bytes())
    assert symbol is not None
    assert symbol.group() in caller.read_bytes()
    assert run("import sharing", **places).stdout.split() == ["21", "14", "1", "1"]


def test_a_kernel_is_compiled_again_when_the_part_that_it_refers_to_was_compiled_again(tmp_path: Path) -> None:
    """Another process gives the part another symbol; LLVM would end a process that looks for the one before."""
    (tmp_path / "sharing.py").write_text(CALLED_TWICE, encoding="utf-8")
    places = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    places["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    assert run("import sharing", **places).stdout.split()[-1] == "0"
    [part] = (tmp_path / "cache").rglob("sharing.doubled.part-*.kernel")
    part.unlink()
    # Numba counts what it compiles, and symbols hold the number.
    other = "from axplore.compilation import compiled\ncompiled(lambda number: number)(1)\nimport sharing"

    assert run(other, **places).stdout.split() == ["21", "14", "1", "0"]
    assert run("import sharing", **places).stdout.split() == ["21", "14", "1", "1"]


COUNT_SPECIALISATIONS = """
import axplore
from axplore.compilation import specialisations
axplore.explore({world!r}, epsilon=1, **{arguments!r})
counted = specialisations()
several = {{name for name, count in counted.items() if count > 1}}
print(sum(counted.values()) > 20, several - {{"axplore.worlds.simulation_kernels.number_in"}})
"""


@pytest.mark.parametrize(
    ("world", "arguments"),
    [
        ("slippery-grid", {"radius": 3, "world_parameters": {"rows": 3, "columns": 3}}),
        ("slippery-grid", {"radius": 3, "objective": "within-radius", "world_parameters": {"rows": 3, "columns": 3}}),
        ("maze", {"radius": 3}),
    ],
    ids=["grid", "within-radius", "maze"],
)
def test_an_exploration_compiles_each_kernel_once(world: str, arguments: dict[str, object]) -> None:
    """Apart from the one that looks up numbers, which reads tables of policies and of distances."""
    program = COUNT_SPECIALISATIONS.format(world=world, arguments=arguments)
    assert run(program).stdout.strip() == "True set()"


SLOW_CODE_OF_NUMBA = """
import re
from axplore import compilation

files, path_of = set(), compilation._KernelFiles._path

def noted(kernel, key):
    files.add(path_of(kernel, key))
    return path_of(kernel, key)

compilation._KernelFiles._path = noted
{program}
symbols = {{symbol for file in files for symbol in re.findall(r"_ZN5numba\\w+", file.read_bytes().decode("latin-1"))}}
slow = ("sort", "unique", "unicode", "raise_with_shape", "np_max", "npy_max", "concatenate", "append", "cumsum")
print(len(files), *(part for part in slow if any(part in symbol for symbol in symbols)))
"""

FIRST_EXPLORATION = """
import axplore
axplore.explore("slippery-grid", radius=3, epsilon=1, world_parameters={"rows": 3, "columns": 3})
"""


def test_no_kernel_of_a_first_exploration_uses_what_takes_numba_long_to_compile() -> None:
    """Sorting took Numba as long as ten kernels, and checking the shapes of arrays in an assignment still longer."""
    n_files, *slow = run(SLOW_CODE_OF_NUMBA.format(program=FIRST_EXPLORATION)).stdout.split()
    assert int(n_files) > 60
    assert slow == []


SLOW_KERNEL = """
import numpy
from axplore.compilation import compiled, compiled_part

@compiled_part
def largest(numbers):
    return numpy.max(numbers)

@compiled
def summed(numbers):
    return numpy.cumsum(numbers)[-1] + largest(numbers)

summed(numpy.ones(3))
"""


def test_what_numba_adds_to_a_kernel_can_be_read_in_its_file(tmp_path: Path) -> None:
    """So the test above would notice it."""
    (tmp_path / "slow_kernel.py").write_text(SLOW_KERNEL, encoding="utf-8")
    places = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    places["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    for _ in range(2):  # compiled, then read from files
        said = run(SLOW_CODE_OF_NUMBA.format(program="import slow_kernel"), **places).stdout
        assert said.split() == ["2", "npy_max", "cumsum"]


CALLED_BY_BOTH_KINDS = """
import numpy as np
from numba.core.event import Listener, register
from numba.core.targetconfig import TargetConfig
from axplore.compilation import compiled, compiled_part
made = []

class Heard(Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("numba."):
            made.append((function.__code__, str(event.data["args"])))
    def on_end(self, event):
        pass

@compiled_part
def halves(length):
    return np.full(length, 0.5)

@compiled
def added(length):
    return np.full(length, 0.25)[0] + halves(length)[0]

if __name__ != "__main__":
    before = TargetConfig.values
    register("numba:compile", Heard())
    print(added(5), len(made) > 1, len(made) == len(set(made)), TargetConfig.values is before)
"""


def test_what_becomes_of_functions_of_numpy_serves_kernels_with_and_without_wrappers(tmp_path: Path) -> None:
    """None of them is compiled twice for the same arguments; afterwards Numba is as it was."""
    (tmp_path / "both.py").write_text(CALLED_BY_BOTH_KINDS, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    said = run("import both", PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path)).stdout
    assert said.split() == ["0.75", "True", "True", "True"]


def test_what_is_being_compiled_is_said_in_words_with_an_end(tmp_path: Path) -> None:
    first, again = (run(FOLLOW_A_COMPILATION, NUMBA_CACHE_DIR=str(tmp_path)).stdout.strip() for _ in range(2))
    assert re.fullmatch(r"None compiling, on first use only: 0 of at most \d+ functions", first)
    assert again == "None None"


def test_it_runs_where_neither_the_package_nor_the_home_can_be_written(tmp_path: Path) -> None:
    # Where a file stands in place of a folder nobody can write, not even root, whom permissions do not stop.
    package = tmp_path / "axplore"
    shutil.copytree(Path(axplore.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    places = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}

    ran = run(USE_A_KERNEL, PYTHONPATH=str(tmp_path), **places)

    assert ran.stdout.split() == ["False", "0.5", "False"]
    assert ran.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert "Traceback" not in ran.stderr


def test_planners_are_imported_without_compiled_code() -> None:
    program = (
        "import sys, axplore.graphs.exact, axplore.graphs.optimistic\n"
        "print(sorted({'numba', 'llvmlite', 'scipy.sparse.linalg', 'scipy.sparse'} & set(sys.modules)))"
    )
    assert run(program).stdout.strip() == "[]"
