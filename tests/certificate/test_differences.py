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

from axplore.assumptions import NOTHING, Assumptions
from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import (
    AtLeast,
    AtMost,
    Certificate,
    NearOptimal,
    Reachable,
    TooFar,
    Verification,
    differences,
    verify,
)
from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import (
    UnprovenError,
    corrected_lower,
    corrected_upper,
    lower_steps,
    proven_lower,
    proven_regret,
    proven_upper,
    upper_steps,
)
from axplore.certificate.differences import Follows, by_differences
from axplore.certificate.kinds import KINDS, kind
from axplore.certificate.kinds.kind import VectorKind
from axplore.domains import GridTies, random_sparse, slippery_grid, star
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.records.vectors import Vector
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION
from axplore.worlds.simulated import SimulatedWorld
from edited import edited
from made_counts import made_counts


def tree() -> TabularMdp:
    inner = {node: {"left": {2 * node: 1.0}, "right": {2 * node + 1: 1.0}} for node in range(1, 16)}
    return TabularMdp.from_rows(inner | {node: {} for node in range(16, 32)}, 1)


WORLDS = {
    **{name: SETTINGS[name] for name in ("chain", "slippery grid", "deterministic grid", "random 0", "random 2")},
    "tree": Setting(tree, 4.0, 1.0),
    "star": Setting(partial(star, 12, 1), 2.0, 1.0),
    "sparse within radius": Setting(partial(random_sparse, 25, 2, (1, 3), 4), 4.0, 2.0, Objective.WITHIN_RADIUS),
    "sparse": Setting(partial(random_sparse, 12, 2, (1, 2), 1), 4.0, 1.0),
    "tied grid": Setting(partial(slippery_grid, 4, 4), 3.0, 2.0),
    "grid of likely outcomes": Setting(partial(slippery_grid, 4, 4), 3.0, 2.0),
    "grid with a border": Setting(partial(slippery_grid, 6, 6, slip=0.1), 4.0, 2.0, Objective.WITHIN_RADIUS),
}
TIES = GridTies(4, 4)
ASSUMED = {
    "tied grid": Assumptions(tied=TIES.outcome_of, leads_to=TIES.leads_to),
    "grid of likely outcomes": Assumptions(min_probability=0.05),
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
        assume=ASSUMED.get(name, NOTHING),
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
    return Vector(vector.length, np.array(states, dtype=np.int64), np.array(own, dtype=vector.dtype), rest, vector.base)


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
        for _ in range(4 if claims else 0):
            edits = []
            for claim in claims:
                field = str(
                    rng.choice([name for name in record.__struct_fields__ if name not in ("goal", "deduction")])
                )
                vector = getattr(claim, field)
                if field == "policy":
                    new = with_other_action(vector, certificate, rng)
                else:
                    about = float(rng.choice(vector.whole))
                    factors = np.array([0.5, 0.999, 1 - 1e-7, 1 + 1e-7, 1.001, 1.5])
                    new = changed(vector, rng, [*(about * factors), 0.0, 1.0 + float(vector[0]), 2e9])
                edits.append(edited(claim, **{field: new}))
            yield edits
            (own,) = (each for each in KINDS if isinstance(each, VectorKind) and each.record is record)
            yield [edited(claim, goal=int(rng.choice(own.goals(certificate)))) for claim in claims]
            if hasattr(claims[0], "lower"):
                yield list(with_other_base(claims, rng))


def with_other_action(policy: Vector[Any], certificate: Certificate, rng: np.random.Generator) -> Vector[Any]:
    whole = policy.whole.copy()
    state = int(rng.integers(len(whole)))
    whole[state] = rng.integers(RESET_ACTION, int(certificate.n_actions[state]))
    if rng.random() < 0.2 and certificate.n_actions.min() > 0:  # all others play their first action
        return Vector(len(whole), np.array([state]), whole[[state]], np.int64(0))
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


def scaled(claim: Any, field: str, state: int | None, factor: float) -> Any:
    """A claim in which the number of a state, or of all states without one of their own, is multiplied."""
    vector = getattr(claim, field)
    numbers, rest = vector.numbers, vector.rest
    if state is None:
        rest = vector.dtype.type(rest * factor)
    else:
        numbers = np.where(vector.indices == state, numbers * factor, numbers)
    return edited(claim, **{field: Vector(vector.length, vector.indices, numbers, rest, vector.base)})


def last_that_holds(holds: Callable[[float], bool], bad: float) -> float:
    """A factor nearer to the border than 1e-12, on the side of 1."""
    good = 1.0
    while abs(good - bad) > 1e-12:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


@everywhere
@pytest.mark.parametrize("field", ["upper", "lower", "regret"])
def test_the_border_of_what_follows_is_that_of_whole_vectors(name: str, field: str) -> None:
    certificate, sweeper = kept_as_large(name), Sweeper.of(kept_as_large(name))
    bad, bound = 2.0 if field == "lower" else 0.25, "loss" if field == "regret" else field
    for record in (Reachable, AtMost, TooFar, AtLeast, NearOptimal):
        for claim in certificate.of(record)[::7]:
            vector = getattr(claim, field, None)
            if vector is None or len(vector.indices) == vector.length:
                continue
            places = [*vector.indices[:: max(1, len(vector.indices) // 3)].tolist(), *([] if vector.base else [None])]
            for state in places:

                def quick(factor: float, claim: Any = claim, state: int | None = state) -> bool:
                    (follows,) = by_differences(sweeper, [scaled(claim, field, state, factor)], -1.0)
                    return bool(getattr(follows, bound))

                def whole(factor: float, claim: Any = claim, state: int | None = state) -> bool:
                    return bool(getattr(follows_as_whole(sweeper, scaled(claim, field, state, factor)), bound))

                if not quick(1.0) or whole(bad):
                    continue
                # Of whole vectors it is no nearer to 1 than by 1e-10.
                nearer = last_that_holds(quick, bad) + (1e-10 - 1e-12) / (1.0 - bad)
                assert whole(min(nearer, 1.0) if bad < 1.0 else max(nearer, 1.0))


def test_a_base_holds_for_the_claim_with_the_least_value_outside() -> None:
    """Of two bounds with one base, the inequality of a state that may lead outside holds for one of them only."""
    far = 20.0
    # The second state leads outside, the first one to the second; a third is the goal of both claims.
    rows: list[list[tuple[int, int, int]]] = [[(1, 10**6, 1)], [(3, 10**6, 1)], [(0, 10**6, 1)]]
    counts = made_counts(rows, [1, 1, 1])
    basis: dict[str, Any] = {"radius": 2.0, "epsilon": 1.0, "delta": 0.1, "objective": Objective.WITHIN_RADIUS}
    sweeper = Sweeper.of(Certificate(counts=counts, complete=False, **basis))
    base = Vector.complete(np.array([far / 2, far / 2, far / 2]))
    good = AtLeast(4, Vector(3, np.array([0]), np.array([far / 2 - 1e-3]), np.float64(0.0), base))
    low = AtLeast(4, Vector(3, np.array([0]), np.array([1.0]), np.float64(0.0), base))
    for claims in ([good, low], [low, good], [low]):
        follows = {claim: each.lower for claim, each in zip(claims, by_differences(sweeper, claims, 1.0), strict=True)}
        assert follows[low] == follows_as_whole(sweeper, low).lower is False
