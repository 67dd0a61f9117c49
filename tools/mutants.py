"""Changes one comparison, number or operator at a time, and lists the changes that no test of the package notices.

A mutant is a copy of the source with one change. It is killed if a test of its package fails, or hangs, with it; if all
pass, it survives, and either a test is missing or the change makes no difference. The tests that run the changed line
are tried first, the shortest before the others (tools/traced.py), and all tests of the package only if these pass.
Results are appended to a file, by the text of the mutant: a run that was interrupted, or one with a larger sample, does
the rest.

    python tools/mutants.py --sample 200                     # the same 200 mutants every time
    python tools/mutants.py src/axplore/certificate/tied.py  # all of a file
    python tools/mutants.py --list                           # what has survived so far
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[1]
COPIED: Final = ("src", "studies", "tests", "docs", "examples", "README.md", "pyproject.toml")
"""What the tests of these packages need."""

PACKAGES: Final = {
    "src/axplore/certificate": ("tests/certificate",),
    "src/axplore/statistics": ("tests/statistics", "tests/certificate/test_one_rule.py"),
    "src/axplore/atlas/verdict.py": ("tests/atlas/test_verdict.py",),
}
"""What is changed, and the tests that are to notice."""

ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": "src:studies", "PYTHONDONTWRITEBYTECODE": "1"}

SHIFT: Final = 0.01
"""By how much the threshold of a comparison is moved, up and down."""

FACTOR: Final = 1.1
"""By what a number with a decimal point is multiplied."""

Change: TypeAlias = tuple[ast.expr, ast.expr]
"""An expression and what replaces it."""

STRICTNESS: Final = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES: Final = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: Final = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
EXTREMES: Final = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: of the file, from the root of the repository.
        line: of the change.
        within: the text of that line.
        before: the expression.
        after: what replaces it.
        span: of the expression in the file, in bytes.
        earlier: how many mutants before it in the file have the same texts.
    """

    path: str
    line: int
    within: str
    before: str
    after: str
    span: tuple[int, int]
    earlier: int = 0

    @property
    def key(self) -> str:
        """What tells it from others, and stays when lines move."""
        return f"{self.path}|{self.within}|{self.before}|{self.after}|{self.earlier}"

    def of(self, text: bytes) -> bytes:
        """The text of the file with the change."""
        start, end = self.span
        return text[:start] + self.after.encode() + text[end:]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed by a test, timed out, or survived."""

    key: str
    mutant: str
    outcome: str
    killer: str
    seconds: float


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of the text."""
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    seen: Counter[tuple[str, str, str]] = Counter()
    for before, after in _changes(ast.parse(text)):
        assert before.end_lineno is not None
        assert before.end_col_offset is not None
        start = starts[before.lineno - 1] + before.col_offset
        end = starts[before.end_lineno - 1] + before.end_col_offset
        within = lines[before.lineno - 1].decode().strip()
        old, new = text[start:end].decode(), f"({ast.unparse(after)})"
        earlier = seen[within, old, new]
        seen[within, old, new] += 1
        yield Mutant(str(path.relative_to(ROOT)), before.lineno, within, old, new, (start, end), earlier)


def _changes(tree: ast.AST) -> Iterator[Change]:
    """The changes of what is computed; annotations, decorators and messages are left alone."""
    skipped: list[ast.AST | None] = []
    match tree:
        case ast.AnnAssign() | ast.arg():
            skipped = [tree.annotation]
        case ast.FunctionDef() | ast.ClassDef():
            skipped = [getattr(tree, "returns", None), *tree.decorator_list]
    for node in ast.iter_child_nodes(tree):
        if node in skipped or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.expr):
            yield from ((node, after) for after in _mutations(node))
        yield from _changes(node)


def _mutations(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression is replaced by, one after the other."""
    match node:
        case ast.Compare():
            for index in range(len(node.ops)):
                yield from _compared_otherwise(node, index)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            yield ast.Constant(value * FACTOR if value else SHIFT)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield node.operand
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(op)](), node.right)
        case ast.Call(func=ast.Name(id=name)) if name in EXTREMES:
            yield ast.Call(ast.Name(EXTREMES[name]), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in EXTREMES:
            yield ast.Call(ast.Attribute(value, EXTREMES[name]), node.args, node.keywords)


def _compared_otherwise(node: ast.Compare, index: int) -> Iterator[ast.expr]:
    """The comparison with another operator, and where an order is asked for with a threshold moved either way."""
    kind, threshold = type(node.ops[index]), node.comparators[index]
    changed = copy.copy(node)
    changed.ops = [*node.ops]
    changed.ops[index] = (STRICTNESS.get(kind) or OPPOSITES[kind])()
    yield changed
    if kind in STRICTNESS and not _is_whole(threshold):
        for operator in (ast.Add(), ast.Sub()):
            moved = copy.copy(node)
            moved.comparators = [*node.comparators]
            moved.comparators[index] = ast.BinOp(threshold, operator, ast.Constant(SHIFT))
            yield moved


def _is_whole(threshold: ast.expr) -> bool:
    """Whether it is certainly a whole number, of which a small part makes no difference."""
    match threshold:
        case ast.Constant(value=int()) | ast.Call(func=ast.Name(id="len")):
            return True
    return False


def package_of(path: str) -> str:
    """The entry of PACKAGES that a file belongs to."""
    for package in PACKAGES:
        if path == package or path.startswith(f"{package}/"):
            return package
    raise SystemExit(f"{path} is not in {', '.join(PACKAGES)}: add it to PACKAGES, with its tests")


def chosen(paths: Sequence[str], sample: int | None, seed: int) -> list[Mutant]:
    """The mutants to try: all, or a sample that a larger one with the same seed begins with."""
    files = [file for path in paths for file in (sorted((ROOT / path).rglob("*.py")) or [ROOT / path])]
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    if sample is not None:
        random.Random(seed).shuffle(mutants)
        mutants = mutants[:sample]
    return mutants


class Workshop:
    """A copy of the repository in which one mutant after the other is tested.

    Attributes:
        folder: of the copy.
        timeout: seconds after which tests count as failed.
        tests: those that run a line, by file and line; for all workshops together.
        killers: what has killed other mutants of a file, the last first.
    """

    def __init__(self, folder: Path, timeout: float, tests: dict[str, list[str]]) -> None:
        self.folder, self.timeout, self.tests = folder, timeout, tests
        self.killers: dict[str, list[str]] = {}
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():  # with times and compiled kernels, which need not be compiled again
                shutil.copytree(source, folder / name)
            else:
                shutil.copy2(source, folder / name)

    def result(self, mutant: Mutant) -> Result:
        """What becomes of a mutant."""
        target, began = self.folder / mutant.path, time.monotonic()
        original, times = target.read_bytes(), target.stat()
        target.write_bytes(mutant.of(original))
        try:
            outcome, killer = self._test(mutant)
        finally:
            target.write_bytes(original)
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))  # by which compiled kernels are known
        return Result(mutant.key, str(mutant), outcome, killer, round(time.monotonic() - began, 1))

    def check(self, packages: Iterable[str]) -> None:
        """Refuses to begin where a test fails without any change, which would kill all; notes what tests run."""
        for package in packages:
            into = self.folder / "traced.json"
            tracing = {"PYTHONPATH": f"src:studies:{ROOT / 'tools'}", "TRACED": package, "TRACED_INTO": str(into)}
            outcome, killer = self._tested(["-p", "traced", *PACKAGES[package]], ENVIRONMENT | tracing)
            if outcome != "survived":
                raise SystemExit(f"without any change, the tests of {package} {outcome}: {killer}. Mend this first")
            self.tests.update(json.loads(into.read_text()))

    def _test(self, mutant: Mutant) -> tuple[str, str]:
        """The outcome, and the first test that failed."""
        likely = self.killers.setdefault(mutant.path, [])  # what killed others of the file is tried first
        environment = dict(ENVIRONMENT)
        if "@compiled" in (self.folder / mutant.path).read_text():  # kernels of other files hold the code of this one
            environment["NUMBA_CACHE_DIR"] = str(self.folder / "compiled")
            shutil.rmtree(self.folder / "compiled", ignore_errors=True)
        outcome, killer = "survived", ""
        if first := [*dict.fromkeys([*likely, *self.tests.get(f"{mutant.path}:{mutant.line}", ())])]:
            outcome, killer = self._tested(first, environment)
        if outcome == "survived":  # what a shared fixture runs was seen in one test only, and compiled code in none
            outcome, killer = self._tested(PACKAGES[package_of(mutant.path)], environment)
        if "::" in killer:
            likely[:] = [killer, *(other for other in likely if other != killer)][:5]
        return outcome, killer

    def _tested(self, tests: Sequence[str], environment: dict[str, str]) -> tuple[str, str]:
        """What tests find, and the first that failed or the last line of what was said instead."""
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", "-rf", *tests]
        options: Any = {"cwd": self.folder, "env": environment, "capture_output": True, "text": True}
        try:
            done = subprocess.run(command, timeout=self.timeout, check=False, **options)
        except subprocess.TimeoutExpired:
            return "timed out", ""
        if done.returncode == 0:
            return "survived", ""
        said = (done.stdout + done.stderr).strip().splitlines()
        failed = [line.removeprefix("FAILED ").split(" - ")[0] for line in said if line.startswith("FAILED ")]
        return "killed", failed[0] if failed else said[-1]


def results_in(file: Path) -> dict[str, Result]:
    """What is known already, by the key of a mutant; the last word counts."""
    if not file.exists():
        return {}
    lines = (json.loads(line) for line in file.read_text().splitlines())
    return {line["key"]: Result(**line) for line in lines}


def try_all(mutants: Sequence[Mutant], results: Path, folder: Path, processes: int, timeout: float) -> None:
    """Tests every mutant of which nothing is known yet, and appends what becomes of it."""
    known = results_in(results)
    waiting = [mutant for mutant in mutants if mutant.key not in known]
    print(f"{len(mutants)} mutants, {len(waiting)} of them to try; results in {results}", flush=True)
    workshops: SimpleQueue[Workshop] = SimpleQueue()
    tests: dict[str, list[str]] = {}  # of each line, as the first workshop finds them
    for number in range(processes):
        workshop = Workshop(folder / str(number), timeout, tests)
        if not number:
            workshop.check(sorted({package_of(mutant.path) for mutant in waiting}))
        workshops.put(workshop)

    def tried(mutant: Mutant) -> Result:
        workshop = workshops.get()
        try:
            return workshop.result(mutant)
        finally:
            workshops.put(workshop)

    results.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(processes) as pool, results.open("a") as out:
        for number, result in enumerate(pool.map(tried, waiting), 1):
            out.write(json.dumps(asdict(result)) + "\n")
            out.flush()
            print(f"{number}/{len(waiting)} {result.outcome} in {result.seconds:.0f} s  {result.mutant}", flush=True)


def show(mutants: Sequence[Mutant], results: Path) -> None:
    """Lists those that survived."""
    known = results_in(results)
    tried = [known[mutant.key] for mutant in mutants if mutant.key in known]
    survivors = [result for result in tried if result.outcome == "survived"]
    for result in survivors:
        print(result.mutant)
    print(f"{len(survivors)} of {len(tried)} mutants that were tried survived; there are {len(mutants)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=[*PACKAGES], help="files or folders; by default all of PACKAGES")
    parser.add_argument("--sample", type=int, help="how many mutants to try; by default all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds after which a mutant counts as killed")
    parser.add_argument("--results", type=Path, default=ROOT / "build/mutants.jsonl")
    parser.add_argument("--list", action="store_true", help="list the survivors so far, and try nothing")
    arguments = parser.parse_args()
    mutants = chosen(arguments.paths, arguments.sample, arguments.seed)
    if not arguments.list:
        folder = ROOT / "build/mutants"
        try_all(mutants, arguments.results, folder, arguments.processes, arguments.timeout)
    show(mutants, arguments.results)


if __name__ == "__main__":
    main()
