"""Many tasks that have nothing to do with each other, such as the runs of an experiment, done by workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from axplore.workers.crew import Crew
from axplore.workers.engine import Engine

Task = TypeVar("Task")
Result = TypeVar("Result")

_logger = logging.getLogger("axplore")


def results_of(
    function: Callable[[Task], Result], tasks: Sequence[Task], engine: Engine | None = None
) -> Iterator[Result]:
    """The result of every task, in the order in which they are done; an error of one ends it.

    Args:
        function: does a task. It is called again, elsewhere, for a task whose worker was lost.
        tasks: what to do, the longest first if that is known.
        engine: where it is done; by this process when there is none.
    """
    if engine is None:
        yield from map(function, tasks)
        return
    crew = Crew(
        engine,
        lambda: function,
        on_incident=lambda incident: _logger.warning("%s", incident),
        repeat_slow=False,  # how long a task takes says nothing of another
    )
    try:
        for _, result in crew.results(tasks):
            yield result
    finally:
        crew.close()
