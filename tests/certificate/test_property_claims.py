"""Claims of properties: what the verifier accepts, and every way to forge them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import axplore
from axplore import Atlas, StopReason, TabularMdp
from axplore.assumptions.applied import region_given
from axplore.certificate import Certificate, verify
from axplore.certificate.binding import draws_by_label
from axplore.certificate.kinds.kind import Checking
from axplore.certificate.kinds.properties import PropertyKind
from axplore.certificate.promise import PropertyBounds
from axplore.errors import ExitCode, InvalidInputError
from axplore.explorers.base import first_counts, frontier_of, with_drawn, with_known
from axplore.proofs.bounds import interval_model
from axplore.proofs.certificates import question_certificate
from axplore.proofs.costs import CostQuestion
from axplore.proofs.property_claims import asked_of, chance_claim, cost_claim, named_states
from axplore.properties import parse_property
from axplore.records.assumed import Assumed
from axplore.records.properties import NO_CHOICE, NamedStates, PropertyClaim
from axplore.records.run import RunRecord
from axplore.report.page import page_of
from axplore.runs.history import History
from axplore.target import Target
from axplore.worlds.contract import NO_GOAL, Episodes
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.atlas_truth import true_value

MODEL = TabularMdp.from_rows(
    {
        "start": {"go": {"left": 0.7, "right": 0.3}, "wait": {"start": 1.0}},
        "left": {"risk": {"goal": 0.6, "bad": 0.4}, "back": {"start": 0.5, "pause": 0.5}},
        "right": {"on": {"goal": 0.3, "left": 0.7}},
        "pause": {"stay": {"pause": 0.9, "left": 0.1}},
        "goal": {},
        "bad": {},
    },
    "start",
)
"""Loops that may be stayed in for ever, a choice between risk and delay, and states that end everything."""

NAMES = {"good": {"goal"}, "far": {"right", "pause"}}

TEXTS = (
    'Pmax=? [ !"bad" U "goal" ]',
    'Pmin=? [ !"bad" U "goal" ]',
    'Pmax=? [ !"far" U<=4 "good" ]',
    'Pmin=? [ F<=6 "bad" ]',
    'Pmin=? [ G !"bad" ]',
    'Pmax>=0.5 [ F "good" ]',
    'Rmin=? [ F "left" | "far" ]',
)


@cache
def certificate_of(closed: bool) -> Certificate:
    """Random play of the model, with supports that are known to be closed or not."""
    world, rng = SimulatedWorld(MODEL, 1), np.random.default_rng(1)
    counts = first_counts(world)
    for _ in range(60):
        fresh = frontier_of(counts)
        counts = with_known(counts, fresh, world) if fresh else counts
        n_actions = [len(world.actions_of(number)) for number in range(len(world.states))]
        policy = np.array([[rng.integers(n) if n else -1 for n in n_actions] for _ in range(12)])
        counts = with_drawn(counts, world.carry_out([Episodes(NO_GOAL, 100, 12, policy)]), world)
    assumed = Assumed({"min-probability": np.full(len(counts.visits), 0.05)}) if closed else None
    model = interval_model(counts, region_given(counts, 1e-4, assumed), 1e6)
    labels = [world.states[number] for number in model.numbers.tolist()]
    claims = []
    for text in TEXTS:
        prop, names = parse_property(text), named_states(NAMES, labels, text)
        if prop.of_cost:
            costs = np.arange(1.0, 1.0 + len(counts.visits)) / 2
            bounds = CostQuestion(model, *prop.masks(labels, NAMES), costs).bounds()
            claims.append(cost_claim(model, costs, bounds, prop, names))
            continue
        asked = asked_of(model, labels, prop, NAMES)
        claims.append(chance_claim(asked, asked.lower(), asked.upper(), prop, names))
    target = Target(radius=1, epsilon=0.2, delta=1e-4)
    return question_certificate(counts, target, tuple(claims), assumed=assumed)


def true_of(claim: PropertyClaim, certificate: Certificate) -> float:
    names = {named.name: [certificate.counts.order[i] for i in named.states.tolist()] for named in claim.names}
    counts = certificate.counts
    pairs = [
        (state, action) for state, actions in zip(counts.order, counts.actions, strict=False) for action in actions
    ]
    return true_value(MODEL, parse_property(claim.text), names, dict(zip(pairs, claim.costs.tolist(), strict=False)))


def only(certificate: Certificate, claim: PropertyClaim) -> Certificate:
    return structs.replace(certificate, claims=(claim,), complete=False)


def is_proven(certificate: Certificate, claim: PropertyClaim, **changes: Any) -> bool:
    """Whether a changed claim is verified, and its bounds contain the truth then."""
    forged, kind = structs.replace(claim, **changes), PropertyKind()
    try:
        kind.check_shape(forged, certificate)
    except InvalidInputError:
        return False
    (check,) = kind.checks([forged], checking(certificate))
    if check.holds:
        bounds = PropertyBounds.of(forged)
        assert bounds.lower - 1e-9 <= true_of(forged, certificate) <= bounds.upper + 1e-9
    return check.holds


@cache
def checking(certificate: Certificate) -> Checking:
    """What claims are checked against: the region is computed once."""
    return Checking(certificate, set())


@pytest.mark.parametrize("closed", [False, True])
def test_every_claim_follows_and_survives_its_file(closed: bool, tmp_path: Path) -> None:
    certificate = certificate_of(closed)
    certificate.save(tmp_path)
    read = Certificate.load(tmp_path)
    assert read.digest == certificate.digest
    verification = verify(read)
    assert verification.holds, str(verification)
    assert verification.proven["property"] == len(TEXTS)
    for claim in read.of(PropertyClaim):
        assert is_proven(read, claim)
    assert TEXTS[0] in str(verification)


def test_a_question_is_complete_once_its_interval_is_narrow() -> None:
    certificate = certificate_of(True)
    (claim,) = (claim for claim in certificate.of(PropertyClaim) if claim.text == TEXTS[0])
    wide = structs.replace(only(certificate, claim), epsilon=1e-6)
    assert verify(wide).exit_code == ExitCode.UNFINISHED
    assert "does not answer it to 1e-06" in str(verify(wide).open_parts)
    narrow = structs.replace(only(certificate, claim), epsilon=0.5, complete=True)
    assert verify(narrow).exit_code == ExitCode.DONE
    assert not verify(structs.replace(wide, complete=True)).holds
    assert not verify(structs.replace(only(certificate, claim), claims=(), complete=True)).holds
    with pytest.raises(InvalidInputError, match="no radius"):
        structs.replace(narrow, radius=5.0)


def forged_arrays(array: Any, n_values: int) -> Iterator[Any]:
    """Every element changed in several ways, and the array as a whole."""
    steps = (-1, 1, n_values) if array.dtype == np.int64 else (-0.3, -0.01, 0.01, 0.3, np.nan, np.inf)
    for place in range(len(array)):
        for step in steps:
            changed = array.copy()
            changed[place] += step
            yield changed
    yield from (np.roll(array, 1), array[::-1].copy(), array[1:], np.append(array, array[-1:]), array.reshape(1, -1))
    yield from (np.zeros_like(array), np.ones_like(array), np.full_like(array, -1))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_forged_array_proves_nothing_false(text: str, closed: bool) -> None:
    certificate = certificate_of(closed)
    (claim,) = (claim for claim in certificate.of(PropertyClaim) if claim.text == text)
    kept = tried = 0
    for name in ("costs", "lower", "upper", "policy", "ranks"):
        array = getattr(claim, name)
        for forged in forged_arrays(array, 7):
            if forged.shape == array.shape and np.array_equal(forged, array):
                continue
            tried += 1
            kept += is_proven(certificate, claim, **{name: forged})
    assert tried > 80
    assert kept < 0.4 * tried  # weaker bounds, other ranks in the same order, other costs: all of them true


def test_a_sharper_bound_than_the_counts_prove_is_refused() -> None:
    for closed in (False, True):
        certificate = certificate_of(closed)
        for claim in certificate.of(PropertyClaim):
            lower, upper = claim.lower.copy(), claim.upper.copy()
            # The verifier's tangents are a little sharper than the prover's.
            lower[0] = lower[0] + 0.05
            assert not is_proven(certificate, claim, lower=lower)
            if len(upper) and upper[0] > 0.0:
                upper[0] = max(upper[0] - 0.05, 0.0)
                assert not is_proven(certificate, claim, upper=upper)


def test_a_loop_does_not_lift_itself() -> None:
    """With ranks left out or made up, W = 1 on states that lead to each other would satisfy the inequality."""
    certificate = certificate_of(True)
    (claim,) = (claim for claim in certificate.of(PropertyClaim) if claim.text == TEXTS[0])
    order = list(certificate.known)
    policy, lower = claim.policy.copy(), claim.lower.copy()
    policy[order.index("start")] = list(certificate.actions[order.index("start")]).index("wait")
    lower[order.index("start")] = 1.0
    for rank in (NO_CHOICE, 0, 1, len(order)):
        ranks = claim.ranks.copy()
        ranks[order.index("start")] = rank
        assert not is_proven(certificate, claim, policy=policy, lower=lower, ranks=ranks)


@pytest.mark.parametrize("closed", [False, True])
def test_another_question_is_not_proven_by_the_same_vectors(closed: bool) -> None:
    certificate = certificate_of(closed)
    others = (
        *TEXTS,
        'Pmax=? [ !"goal" U "bad" ]', 'Pmin=? [ F "left" ]', 'Pmax=? [ !"far" U<=3 "good" ]', "Pmax=? [ F false ]",
        'Pmax=? [ !"far" U<=5 "good" ]', 'Pmin=? [ F<=5 "bad" ]', 'Pmax=? [ G !"bad" ]', 'Pmax=? [ F "goal" ]',
        'Rmin=? [ F "goal" ]', "nonsense", "", 'Pmax=? [ F x=1 ]', 'Pmax=? [ F<=99999999 "goal" ]',
    )  # fmt: skip
    for claim in certificate.of(PropertyClaim):
        assert sum(is_proven(certificate, claim, text=text) for text in others if text != claim.text) <= 3


def test_names_stand_for_states_that_exist_once_and_in_order() -> None:
    certificate = certificate_of(True)
    (claim,) = (claim for claim in certificate.of(PropertyClaim) if claim.text == TEXTS[2])
    far, good = claim.names
    for names in (
        (), (far,), (good, far), (far, far, good), (far, NamedStates("good", far.states)),
        (far, NamedStates("good", np.array([99]))), (far, NamedStates("good", np.array([-1]))),
        (far, NamedStates("good", np.append(good.states, good.states))), (far, NamedStates("x" * 9999, good.states)),
        (far, NamedStates("good", good.states.reshape(1, -1))), (far, NamedStates("good", good.states.astype(float))),
    ):  # fmt: skip
        assert not is_proven(certificate, claim, names=names)


def test_an_atlas_of_properties_alone_speaks_of_no_radius(tmp_path: Path) -> None:
    certificate = certificate_of(True)
    record = RunRecord(
        world="w", explorer="x", steps=10, rounds=1, stop=StopReason.PROVEN,
        found_at=np.zeros(len(certificate.known), dtype=np.int64),
        draws=draws_by_label(certificate.counts, certificate.known),
    )  # fmt: skip
    Atlas(source=certificate, run=record).save(tmp_path)
    atlas = Atlas.load(tmp_path)
    assert axplore.verify(tmp_path).complete
    assert atlas.verdict.headline.startswith("Proven, if no outcome of an action is rarer than 0.05: Pmax=? [")
    page = page_of(atlas, History(), tmp_path)
    for shown in (str(atlas), repr(atlas), str(atlas.verdict), str(atlas.describe("left")), page):
        assert "1e+12" not in shown
    unfinished = Atlas(source=structs.replace(certificate, epsilon=1e-9, complete=False), run=record)
    assert unfinished.verdict.headline.startswith("Unfinished: ")
    assert 'Pmax=? [ !"bad" U "goal" ] is between' in unfinished.verdict.headline
