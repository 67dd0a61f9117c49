"""Work done by several processes, and its results as lines of JSON that survive an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_processes(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """The results of tasks, in the order in which they are done; by this process if one is enough."""
    if jobs == 1 or len(tasks) <= 1:
        yield from map(function, tasks)
        return
    # A fresh interpreter per process: forking one that holds threads or compiled code is not safe.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn")) as pool:
        futures: list[Future[Result]] = [pool.submit(function, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; none if there is no file.

    The last line may have been cut by an interruption; it is passed over, and removed so that the next line is whole.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def sort_lines(path: Path, order: Callable[[dict[str, Any]], Any]) -> None:
    """Puts the lines of a file in a fixed order, so that it does not tell which process was faster."""
    lines = set(path.read_text(encoding="utf-8").splitlines())
    ordered = sorted(lines, key=lambda line: (order(json.loads(line)), line))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
    partial.replace(path)
