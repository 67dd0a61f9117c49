"""How an exploration becomes an atlas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.state_report import checked_regret
from axplore.certificate import Certificate
from axplore.errors import InvalidInputError
from axplore.explorers.base import Exploration
from axplore.proofs.certificates import certificate_from
from axplore.proofs.evidence import Evidence
from axplore.types import Status
from axplore.worlds.contract import World


def atlas_of(
    exploration: Exploration, world: World, *, world_name: str, explorer_name: str, steps_before: int = 0
) -> Atlas:
    """The atlas of an exploration.

    Args:
        exploration: what the explorer handed back.
        world: what it explored; it is asked for the labels of the states that it met, and is not kept.
        world_name: what to call it.
        explorer_name: what to call the explorer.
        steps_before: the steps that the world had taken before.
    """
    seen = tuple(world.states)
    numbers = {state: number for number, state in enumerate(seen)}
    left_out = np.array([numbers[state] for state in exploration.frontier], dtype=np.int64)
    atlas = Atlas(
        world=world_name,
        explorer=explorer_name,
        target=exploration.explorer.target,
        objective=None,
        seen=seen,
        numbers=exploration.numbers.view(),
        found_at=exploration.found_at - steps_before,
        actions=exploration.actions,
        policies=tuple(policy.view() for policy in exploration.policies),
        left_out_numbers=left_out,
        lower=np.concatenate((exploration.optimistic_steps, np.zeros(len(left_out)))),
        upper=np.full(len(exploration.states) + len(left_out), np.inf),
        regret=np.full(len(exploration.states) + len(left_out), np.inf),
        statuses=(Status.OPEN,) * (len(exploration.states) + len(left_out)),
        unseen_lower=0.0,
        proven=False,
        complete=exploration.stop.complete,
        count_arrays=exploration.counts.to_arrays(),
        steps=exploration.steps - steps_before,
        rounds=exploration.rounds,
        stop=exploration.stop,
    )
    return atlas if exploration.evidence is None else _with_proof(atlas, exploration, exploration.evidence)


def _with_proof(atlas: Atlas, exploration: Exploration, evidence: Evidence) -> Atlas:

    n_known = evidence.model.n_known
    places = range(len(evidence.lower))
    lower = np.array([path.steps for path in evidence.lower])
    upper = np.full(len(places), math.inf)
    upper[:n_known] = evidence.upper_steps
    regret = upper - lower
    for place, bound in enumerate(evidence.regrets):
        regret[place] = checked_regret(upper[place], lower[place], bound.steps, evidence.target)
    return replace(
        atlas,
        objective=evidence.objective,
        left_out_numbers=evidence.model.numbers[n_known:].view(),
        lower=lower,
        upper=upper,
        regret=regret,
        statuses=tuple(evidence.status(place) for place in places),
        unseen_lower=evidence.unseen.steps,
        proven=True,
        complete=evidence.complete,
        certificate=certificate_from_exploration(exploration),
    )


def certificate_from_exploration(exploration: Exploration) -> Certificate:
    """Returns the certificate of everything that is proven; claims that are still open are left out."""
    if exploration.evidence is None:
        raise InvalidInputError("this exploration has no evidence; only the certified explorer proves anything")
    return certificate_from(
        exploration.evidence,
        exploration.counts.rows(),
        known=exploration.states,
        others=exploration.frontier,
        actions=exploration.actions,
    )
