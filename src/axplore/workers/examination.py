"""An examination of a system in a process of its own, while workers explore it.

The doctor plays one episode after the other and cannot be shared out. But unless it looks for what contradicts an
assumption, nothing that it finds prevents exploring, so nobody has to wait for it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from axplore.records.findings import Finding
from axplore.workers.engines import Server, WorkerLostError
from axplore.workers.processes import Processes
from axplore.worlds.contract import Examinable, Replicable
from axplore.worlds.doctor import examine_world


@dataclass(frozen=True)
class Outcome:
    """What came of an examination.

    Attributes:
        findings: what was found.
        steps: the steps of the system, those with which it began included.
    """

    findings: tuple[Finding, ...]
    steps: int


class Examination:
    """An examination under way."""

    def __init__(self, world: Replicable, max_steps: int, seconds: float, seed: int, ends: float = math.inf) -> None:
        """Begins it, without waiting for anything.

        Args:
            world: the world whose system is examined, or rather one that is made like it.
            max_steps: the most steps, that with which the system begins included.
            seconds: the time after which no step begins.
            seed: of the actions that are played.
            ends: the moment after which no step begins either, by the clock of `time.monotonic`.
        """
        self._engine = Processes(1)
        make_replica = world.replica_factory()

        def examined() -> Server:
            result = Outcome((), 0)
            if time.monotonic() < ends:
                replica = make_replica()
                assert isinstance(replica, Examinable)
                with replica:
                    result = _examined(replica, max_steps - replica.system_steps, seconds, seed, ends)
            return lambda _: result

        self._worker = self._engine.start(examined)

    def result(self) -> Outcome | None:
        """Waits for the end, and returns what came of it; None if the system cannot be made there, or ended it."""
        try:
            self._engine.wait([self._worker], None)
            if self._worker.receive().error is not None:
                return None
            self._worker.send(None)
            self._engine.wait([self._worker], None)
            reply = self._worker.receive()
        except WorkerLostError:
            return None
        finally:
            self.close()
        return reply.value if isinstance(reply.value, Outcome) else None

    def close(self) -> None:
        """Ends it, wherever it is."""
        self._engine.close()


def _examined(replica: Examinable, max_steps: int, seconds: float, seed: int, ends: float) -> Outcome:
    """Returns what comes of an examination in this process."""
    seconds = min(seconds, ends - time.monotonic())
    if max_steps < 1 or seconds <= 0:
        return Outcome((), replica.system_steps)
    findings = examine_world(replica, max_steps=max_steps, seconds=seconds, seed=seed).findings
    return Outcome(findings, replica.system_steps)
