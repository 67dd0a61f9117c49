"""Honest certificates are accepted, and what they say is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from explored import CUT_SHORT, SETTINGS, certificate_of, exploration_of

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import AtLeast, Certificate, NearOptimal, Reachable, TooFar, verify
from axplore.certificate.conclusions import conclusions_of
from axplore.domains import confusing_chain
from axplore.errors import InvalidInputError
from axplore.explorers.base import run
from axplore.explorers.disco import disco_experiment
from axplore.proofs.evidence import gather_evidence
from axplore.target import Objective, Target
from axplore.truth import controllable_states
from axplore.types import Status
from axplore.worlds.simulated import SimulatedWorld
from edited import edited


@pytest.mark.parametrize("name", SETTINGS)
def test_what_an_exploration_proves_is_accepted_as_complete(name: str) -> None:
    certificate = certificate_of(name)
    verdict = verify(certificate)
    assert certificate.complete
    assert verdict.complete, str(verdict)
    n_known, n_others = len(certificate.known), len(certificate.others)
    optimal = n_known - 1 if certificate.objective is Objective.OPTIMAL else 0
    assert verdict.proven == {
        kind: number
        for kind, number in {
            "counts": 1,
            "reachable": n_known - 1,
            "too far": n_others + 1,
            "near-optimal": optimal,
            "at least": n_known - 1 - optimal,
            "complete": 1,
        }.items()
        if number
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_what_large_models_keep_is_accepted_and_says_the_same(name: str, tmp_path: Path) -> None:
    whole = certificate_of(name)
    exploration = exploration_of(name)
    before_it = exploration.evidence
    assert before_it is not None
    evidence = gather_evidence(edited(before_it.model, whole_up_to=0), before_it.target, before_it.objective)
    kept = certificate_from_exploration(edited(exploration, evidence=evidence))
    kept.save(tmp_path)
    kept = Certificate.load(tmp_path)
    verdict = verify(kept)
    assert verdict.complete, str(verdict)
    before, after = conclusions_of(whole), conclusions_of(kept)
    # Bounds that follow from that of the unseen may be sharper; only small models deduct.
    assert np.allclose(before.lower, after.lower, rtol=1e-2)
    assert before.statuses == after.statuses
    assert [policy[0] for policy in before.policies[1:]] == [policy[0] for policy in after.policies[1:]]
    assert (after.upper[: len(kept.known)] <= kept.radius + 2 * kept.epsilon).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_states_of_an_accepted_certificate_are_the_controllable_ones(name: str) -> None:
    certificate, setting = certificate_of(name), SETTINGS[name]
    least = controllable_states(setting.make(), setting.radius).states
    most = controllable_states(setting.make(), setting.radius + setting.epsilon).states
    assert set(least) <= set(certificate.known) <= set(most)


def test_the_bounds_of_the_chain_hold_its_distances() -> None:
    certificate = certificate_of("chain")
    bounds = {certificate.known[claim.goal]: (claim.lower[0], claim.upper[0]) for claim in certificate.of(NearOptimal)}
    assert set(bounds) == {"s1", "s2", "s3", "s4", "s5"}
    for state, steps in {"s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4}.items():
        lower, upper = bounds[state]
        assert lower <= steps <= upper


@pytest.mark.parametrize("name", CUT_SHORT)
def test_a_run_cut_short_certifies_what_is_proven_so_far(name: str) -> None:
    certificate = certificate_of(name)
    verdict = verify(certificate)
    assert verdict.holds
    assert not certificate.complete
    assert not verdict.complete
    assert verdict.open_parts
    assert "NOT COMPLETE" in str(verdict)


def test_fewer_claims_are_made_where_less_was_drawn() -> None:
    early, late = certificate_of("chain cut short"), certificate_of("chain")
    assert (
        0 < len(early.of(Reachable)) + len(early.of(NearOptimal)) < len(late.of(Reachable)) + len(late.of(NearOptimal))
    )
    assert early.of(AtLeast)
    assert not late.of(AtLeast)


@pytest.mark.parametrize(("radius", "epsilon"), [(1.2, 0.1), (2.0, 0.5), (4.5, 0.05), (4.5, 1e-6), (6.0, 0.1)])
def test_only_what_the_evidence_proves_is_claimed(radius: float, epsilon: float) -> None:
    exploration = exploration_of("chain")
    assert exploration.evidence is not None
    evidence = edited(exploration.evidence, target=Target(radius=radius, epsilon=epsilon))
    certificate = certificate_from_exploration(edited(exploration, evidence=evidence))
    lower = [*evidence.lower, evidence.unseen]
    known = range(1, len(exploration.states))
    assert [claim.goal for claim in certificate.of(Reachable)] == [
        goal for goal in known if evidence.reachable[goal].upper[0] <= radius + epsilon
    ]
    assert [claim.goal for claim in certificate.of(NearOptimal)] == [
        goal for goal in known if evidence.regrets[goal].steps <= epsilon
    ]
    assert [claim.goal for claim in certificate.of(TooFar)] == [
        goal for goal in range(len(exploration.states), len(lower)) if lower[goal].lower[0] > radius
    ]
    assert not certificate.complete
    assert verify(certificate).holds


def test_without_near_optimal_policies_the_best_ones_are_not_claimed() -> None:
    exploration = exploration_of("chain")
    assert exploration.evidence is not None
    for objective in (Objective.OPTIMAL, Objective.WITHIN_RADIUS):
        evidence = edited(exploration.evidence, regrets=(), objective=objective)
        certificate = certificate_from_exploration(edited(exploration, evidence=evidence))
        assert certificate.complete == (objective is Objective.WITHIN_RADIUS)


def test_a_verdict_has_a_line_for_each_claim_and_says_what_is_promised() -> None:
    certificate = certificate_of("chain")
    lines = str(verify(certificate)).splitlines()
    assert len(lines) == len(certificate.claims) + 4  # the counts, completeness, the summary and the promise
    assert any(line.startswith("ok") and "reachable" in line and "state 's4'" in line for line in lines)
    assert any(line.startswith("ok") and "too far" in line and "every state never seen" in line for line in lines)
    assert lines[-2] == "VERIFIED: all 19 claims follow from the counts."
    assert lines[-1].startswith("With probability at least 0.9 over the draws: 6 states are reliably reachable within")


def test_what_no_claim_sets_aside_is_not_concluded_to_be_beyond_the_radius_however_close_its_bound() -> None:
    """A bound between L and what an explorer asks for would rule states out and leave the certificate incomplete."""
    certificate = certificate_of("chain")
    bounds = tuple(AtLeast(claim.goal, claim.lower) for claim in certificate.of(TooFar))
    weaker = edited(certificate, too_far=(), at_least=bounds, complete=False)
    assert verify(weaker).holds
    concluded = conclusions_of(weaker)
    assert concluded.unseen_lower == certificate.radius < conclusions_of(certificate).unseen_lower
    for position in range(len(certificate.known), certificate.n_seen):
        assert concluded.statuses[position] is Status.OPEN
        assert concluded.lower[position] <= certificate.radius


def test_an_explorer_without_proof_gives_no_certificate() -> None:
    explorer = disco_experiment(Target(radius=1.5, epsilon=0.5))
    exploration = run(explorer, SimulatedWorld(confusing_chain(), 0), max_steps=100)
    with pytest.raises(InvalidInputError, match="only the certified explorer"):
        certificate_from_exploration(exploration)


def test_a_certificate_does_not_change_with_the_exploration_it_was_made_of() -> None:
    assert certificate_of("chain").digest == certificate_from_exploration(exploration_of("chain")).digest
    assert certificate_of("chain").digest != certificate_of("chain within radius").digest


def test_verifying_loads_neither_solvers_nor_a_compiler(tmp_path: Path) -> None:
    certificate_of("chain").save(tmp_path)
    script = (
        "import sys\n"
        "from axplore.certificate import AtLeast, Certificate, NearOptimal, Reachable, TooFar, verify\n"
        f"assert verify(Certificate.load({str(tmp_path)!r})).complete\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('numba', 'scipy', 'llvmlite')\n"
        "    or name.startswith(('axplore.graphs', 'axplore.statistics', 'axplore.explorers', 'axplore.worlds'))]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
