"""Explorations to certify, each run once, and small tools to look at verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import Certificate, Verification, document
from axplore.domains import combination_lock, confusing_chain, random_sparse, slippery_grid
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.records.claims import Claim
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.records.vectors import Vector
from axplore.target import Objective, Target
from axplore.worlds.simulated import SimulatedWorld
from edited import edited


@dataclass(frozen=True)
class Setting:
    """What to explore, and how."""

    make: Callable[[], TabularMdp]
    radius: float
    epsilon: float
    objective: Objective = Objective.OPTIMAL
    max_steps: int = 40_000


def dead_ends() -> TabularMdp:
    """Two terminal states, one near and one far, and labels of several kinds."""
    return TabularMdp.from_rows(
        {
            (0, "start"): {"push": {"near": 0.9, (0, "start"): 0.1}, 1: {None: 1.0}},
            "near": {},
            None: {b"on": {None: 0.5, 2.5: 0.5}},
            2.5: {b"on": {"far": 0.1, (0, "start"): 0.9}},
            "far": {},
        },
        initial_state=(0, "start"),
    )


def one_terminal_state() -> TabularMdp:
    return TabularMdp.from_rows({"only": {}}, initial_state="only")


SETTINGS = {
    "chain": Setting(confusing_chain, 4.5, 0.1),
    "chain within radius": Setting(confusing_chain, 4.5, 0.1, Objective.WITHIN_RADIUS),
    "lock": Setting(combination_lock, 2.7, 0.2),
    "slippery grid": Setting(partial(slippery_grid, 3, 3), 4.0, 1.0),
    "deterministic grid": Setting(partial(slippery_grid, 4, 4, slip=0.0), 4.0, 1.0),
    "dead ends": Setting(dead_ends, 3.0, 0.5),
    "one terminal state": Setting(one_terminal_state, 2.0, 0.5),
    **{
        f"random {seed}": Setting(partial(random_sparse, 7, 2, (1, 3), seed), 3.0, 1.0, objective)
        for seed, objective in enumerate([Objective.OPTIMAL, Objective.OPTIMAL, Objective.WITHIN_RADIUS] * 2)
    },
}
CUT_SHORT = {
    "chain cut short": edited(SETTINGS["chain"], max_steps=2000),
    "grid cut short": edited(SETTINGS["slippery grid"], max_steps=500),
    "nothing drawn": edited(SETTINGS["chain"], max_steps=0),
}
LARGE_ENOUGH = [name for name in SETTINGS if name != "one terminal state"]


@cache
def exploration_of(name: str) -> Exploration:
    setting = (SETTINGS | CUT_SHORT)[name]
    target = Target(radius=setting.radius, epsilon=setting.epsilon, delta=0.1)
    # Proofs by vectors alone; tests/explorers/test_episode_tests.py has those by episodes.
    explorer = Certified(target=target, objective=setting.objective, by_episodes=False)
    return run(explorer, SimulatedWorld(setting.make(), 7), max_steps=setting.max_steps)


def certificate_of(name: str) -> Certificate:
    return certificate_from_exploration(exploration_of(name))


def read_again(certificate: Certificate) -> Certificate:
    """What is read after it was saved: through JSON, as with a digest that fits; files would take half of the time."""
    body, arrays = certificate.content
    return document.read(storage.parsed_json(json.dumps(body).encode()), arrays)


def failed(verdict: Verification) -> set[tuple[str, int | None]]:
    """The kind and the index of each claim that is not proven."""
    return {(claim.kind, claim.index) for claim in verdict.failures}


def with_vectors(claim: Any, **vectors: npt.NDArray[Any]) -> Any:
    """The claim with other vectors."""
    return edited(claim, **{name: Vector.complete(array) for name, array in vectors.items()})


def only(certificate: Certificate, claim: Claim) -> Certificate:
    """The certificate with this claim alone."""
    return edited(certificate, claims=(claim,), complete=False)


def with_rows(
    certificate: Certificate,
    rows: list[list[tuple[int, int, int]]],
    known: Sequence[Hashable] | None = None,
    others: Sequence[Hashable] | None = None,
    actions: Sequence[Iterable[Hashable]] | None = None,
    **changes: Any,
) -> Certificate:
    """The certificate with other rows: for each pair a list of (successor, count, first draw); and other labels."""
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 3)
    successors, counts, first_draws = (np.ascontiguousarray(column) for column in entries.T)
    known = certificate.known if known is None else known
    drawn = Counts(
        order=Labels((*known, *(certificate.others if others is None else others))),
        actions=certificate.actions if actions is None else tuple(map(Labels, actions)),
        states=np.arange(len(known)),
        row_offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        successors=successors,
        counts=counts,
        first_draws=first_draws,
    )
    return edited(certificate, counts=drawn, **changes)


def rows_of(certificate: Certificate) -> list[list[tuple[int, int, int]]]:
    """For each pair a list of (successor, count, first draw)."""
    counts = certificate.counts
    entries = list(zip(counts.successors.tolist(), counts.counts.tolist(), counts.first_draws.tolist(), strict=True))
    return [entries[first:end] for first, end in zip(counts.row_offsets[:-1], counts.row_offsets[1:], strict=True)]
