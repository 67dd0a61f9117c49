"""Claims checked by what their vectors do not share, against the check of whole vectors: the same verdicts.

Certificates are those of small worlds, kept as those of large ones are. Forgeries change what a vector has of its own,
what it shares, and with whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from explored import SETTINGS, Setting

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import AtLeast, AtMost, Certificate, NearOptimal, Reachable, TooFar, Verification, verify
from axplore.certificate import differences
from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError, lower_steps, proven_lower, proven_regret, proven_upper, upper_steps
from axplore.certificate.bounds import corrected_lower, corrected_upper
from axplore.certificate.differences import Follows, by_differences
from axplore.certificate.kinds import KINDS, kind
from axplore.domains import random_sparse, slippery_grid, star
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.records.vectors import Vector
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION
from axplore.worlds.simulated import SimulatedWorld
from edited import edited


def tree() -> TabularMdp:
    inner = {node: {"left": {2 * node: 1.0}, "right": {2 * node + 1: 1.0}} for node in range(1, 16)}
    return TabularMdp.from_rows(inner | {node: {} for node in range(16, 32)}, 1)


WORLDS = {
    **{name: SETTINGS[name] for name in ("chain", "slippery grid", "deterministic grid", "random 0", "random 2")},
    "tree": Setting(tree, 4.0, 1.0),
    "star": Setting(partial(star, 12, 1), 2.0, 1.0),
    "sparse within radius": Setting(partial(random_sparse, 25, 2, (1, 3), 4), 4.0, 2.0, Objective.WITHIN_RADIUS),
    "sparse": Setting(partial(random_sparse, 12, 2, (1, 2), 1), 4.0, 1.0),
    "grid with a border": Setting(partial(slippery_grid, 6, 6, slip=0.1), 4.0, 2.0, Objective.WITHIN_RADIUS),
}
everywhere = pytest.mark.parametrize("name", WORLDS)


@cache
def kept_as_large(name: str) -> Certificate:
    """The certificate of a small world, in which vectors are kept as those of large ones are."""
    setting = WORLDS[name]
    explorer = Certified(
        target=Target(radius=setting.radius, epsilon=setting.epsilon, delta=0.1),
        objective=setting.objective,
        by_episodes=False,
        whole_up_to=1,
    )
    return certificate_from_exploration(run(explorer, SimulatedWorld(setting.make(), 7), max_steps=setting.max_steps))


def verify_whole(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Verification:
    """The verdict if no claim is looked at by its differences."""
    with monkeypatch.context() as patched:
        patched.setattr(kind, "by_differences", lambda _, claims, __: [Follows()] * len(claims))
        return verify(certificate)


def follows_as_whole(sweeper: Sweeper, claim: Any) -> Follows:
    """What the check of whole vectors says of each bound of a claim."""
    checks: dict[str, Callable[[], Any]] = {}
    if isinstance(claim, Reachable | AtMost | NearOptimal):
        checks["upper"] = lambda: proven_upper(sweeper, claim)
    if isinstance(claim, TooFar | AtLeast | NearOptimal):
        checks["lower"] = lambda: proven_lower(sweeper, claim)
    if isinstance(claim, NearOptimal):
        upper, lower = corrected_upper(claim.upper), corrected_lower(claim.lower)
        checks["loss"] = lambda: proven_regret(sweeper, claim, upper, lower)
    return Follows(**{name: not _raises(check) for name, check in checks.items()})


def _raises(check: Callable[[], Any]) -> bool:
    try:
        check()
    except UnprovenError:
        return True
    return False


@everywhere
def test_what_an_explorer_keeps_as_differences_follows_by_them(name: str) -> None:
    """So that the time of a verification grows with the size of the certificate."""
    certificate, sweeper = kept_as_large(name), Sweeper.of(kept_as_large(name))
    assert verify(certificate).holds
    looked_at = 0
    for record in (Reachable, AtMost, TooFar, AtLeast, NearOptimal):
        claims = certificate.of(record)
        for claim, follows in zip(claims, by_differences(sweeper, claims, certificate.epsilon), strict=True):
            for bound in ("upper", "lower"):
                vector = getattr(claim, bound, None)
                if vector is not None and len(vector.indices) < vector.length:
                    assert getattr(follows, bound)
                    looked_at += 1
            if isinstance(claim, NearOptimal) and upper_steps(claim) - lower_steps(claim) > certificate.epsilon:
                parts = (claim.upper, claim.lower, claim.regret)
                assert follows.loss == all(len(part.indices) < part.length for part in parts)
    assert looked_at


def changed(vector: Vector[Any], rng: np.random.Generator, numbers: Sequence[float]) -> Vector[Any]:
    """A vector in which something of its own is changed, added or left out."""
    states, own, rest = vector.indices.tolist(), vector.numbers.tolist(), vector.rest
    state, number = int(rng.integers(vector.length)), vector.dtype.type(rng.choice(numbers))
    match rng.choice(["number", "added", "left out", "rest"]):
        case "number" if own:
            own[int(rng.integers(len(own)))] = number
        case "added" if state not in states:
            place = int(np.searchsorted(states, state))
            states.insert(place, state)
            own.insert(place, number)
        case "left out" if own:
            place = int(rng.integers(len(own)))
            del states[place], own[place]
        case _:
            rest = number
    return Vector(
        vector.length, np.array(states, dtype=np.int64), np.array(own, dtype=vector.dtype), rest, vector.base
    )


def with_other_base(claims: Sequence[Any], rng: np.random.Generator) -> Iterator[Any]:
    """The claims in which a base is changed, somewhere, a little or a lot, or exchanged for another one."""
    bases = {id(claim.lower.base): claim.lower.base for claim in claims if claim.lower.base is not None}
    if not bases:
        return
    base = list(bases.values())[int(rng.integers(len(bases)))]
    numbers = base.whole.copy()
    state = int(rng.integers(len(numbers)))
    numbers[state] = rng.choice([0.0, numbers[state] * rng.choice([0.9, 0.999, 1 + 1e-7, 1.001, 1.1, 3.0]), 1e9, 2e9])
    other = Vector.complete(numbers)
    for claim in claims:
        if claim.lower.base is base:
            own = claim.lower
            yield edited(claim, lower=Vector(own.length, own.indices, own.numbers, own.rest, other))


def forgeries(certificate: Certificate, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Claims of one kind each, of which something is changed that the counts may or may not bear."""
    for record in (Reachable, AtMost, TooFar, AtLeast, NearOptimal):
        claims = certificate.of(record)
        for _ in range(6 if claims else 0):
            edits = []
            for claim in claims:
                field = str(rng.choice([name for name in record.__struct_fields__ if name != "goal"]))
                vector = getattr(claim, field)
                if field == "policy":
                    new = with_other_action(vector, certificate, rng)
                else:
                    about = float(rng.choice(vector.whole))
                    factors = np.array([0.5, 0.999, 1 - 1e-7, 1 + 1e-7, 1.001, 1.5])
                    new = changed(vector, rng, [*(about * factors), 0.0, 1.0 + float(vector[0])])
                edits.append(edited(claim, **{field: new}))
            yield edits
            goals = next(each for each in KINDS if each.record is record).goals(certificate)
            yield [edited(claim, goal=int(rng.choice(goals))) for claim in claims]
            if hasattr(claims[0], "lower"):
                yield list(with_other_base(claims, rng))


def with_other_action(policy: Vector[Any], certificate: Certificate, rng: np.random.Generator) -> Vector[Any]:
    whole = policy.whole.copy()
    state = int(rng.integers(len(whole)))
    whole[state] = rng.integers(RESET_ACTION, int(certificate.n_actions[state]))
    return Vector.of(whole, RESET_ACTION)


@everywhere
def test_no_forgery_follows_by_differences_that_does_not_follow_as_a_whole(name: str) -> None:
    """And hardly any honest change is only accepted as a whole: those that touch nothing follow by differences too."""
    certificate, rng = kept_as_large(name), np.random.default_rng(1)
    sweeper, quick, whole = Sweeper.of(certificate), 0, 0
    for claims in forgeries(certificate, rng):
        for claim, follows in zip(claims, by_differences(sweeper, claims, -1.0), strict=True):
            truth = follows_as_whole(sweeper, claim)
            assert truth.upper or not follows.upper, claim
            assert truth.lower or not follows.lower, claim
            assert truth.loss or not follows.loss, claim
            quick += follows.upper + follows.lower
            whole += truth.upper + truth.lower
    assert quick > 0
    assert whole > 0


@everywhere
def test_verdicts_are_the_same_claim_by_claim(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, rng = kept_as_large(name), np.random.default_rng(2)
    rejected = 0
    for claims in forgeries(certificate, rng):
        forged = edited(certificate, claims=tuple(claims), complete=False)
        quick, whole = verify(forged), verify_whole(forged, monkeypatch)
        assert [check.holds for check in quick.claims] == [check.holds for check in whole.claims]
        assert [check.why for check in quick.claims] == [check.why for check in whole.claims]
        rejected += len(whole.failures)
    assert rejected


@everywhere
@pytest.mark.parametrize(("name_of_limit", "limit"), [("MOST_AT_ONCE", 1), ("FEW", 0)])
def test_verdicts_do_not_depend_on_how_many_are_looked_at_together(
    name: str, name_of_limit: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, before = kept_as_large(name), verify(kept_as_large(name))
    monkeypatch.setattr(differences, name_of_limit, limit)
    assert str(verify(certificate)) == str(before)
