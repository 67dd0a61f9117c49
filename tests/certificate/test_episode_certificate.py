from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore import storage
from axplore.certificate import Decision, EpisodeCertificate, verify_episodes
from axplore.certificate.episode_certificate import log_wealth
from axplore.errors import AxploreError, DamagedFileError, InvalidInputError
from axplore.statistics import episodes
from edited import edited

PROVEN = EpisodeCertificate(
    world="coins",
    policy="the policy",
    goal="heads",
    within=4.0,
    chance=None,
    horizon=8,
    restarts=False,
    delta=0.05,
    decision=Decision.PROVEN,
    arrivals={1: 60, 3: 20},
    missed=1,
    ended=0,
    lost=0,
    steps=300,
)


@given(
    horizon=st.integers(1, 30),
    bound=st.floats(0.5, 40.0),
    is_chance=st.booleans(),
    decision=st.sampled_from((Decision.PROVEN, Decision.REFUTED)),
    data=st.data(),
)
def test_the_verifiers_wealth_is_that_of_the_statistics(
    horizon: int, bound: float, is_chance: bool, decision: Decision, data: st.DataObject
) -> None:
    arrivals = data.draw(st.dictionaries(st.integers(0, horizon), st.integers(1, 500)))
    missed, lost = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 5))
    chance = bound / 41
    tests = {
        (False, Decision.PROVEN): lambda: episodes.losses_if_slower(horizon, bound),
        (False, Decision.REFUTED): lambda: episodes.losses_if_faster(horizon, bound),
        (True, Decision.PROVEN): lambda: episodes.losses_if_rarer(horizon, chance),
        (True, Decision.REFUTED): lambda: episodes.losses_if_oftener(horizon, chance),
    }
    outcomes = np.zeros(horizon + 3, dtype=np.int64)
    for steps, times in arrivals.items():
        outcomes[steps] = times
    outcomes[-2:] = missed, lost
    losses = np.append(tests[is_chance, decision](), 1.0)
    expected = episodes.log_wealth(losses, outcomes, episodes.spread_bets())
    certificate = edited(
        PROVEN,
        within=None if is_chance else bound,
        chance=chance if is_chance else None,
        horizon=horizon,
        decision=decision,
        arrivals=arrivals,
        missed=missed,
        lost=lost,
        steps=10**6,
    )
    wealth = log_wealth(certificate)
    assert wealth == pytest.approx(expected, abs=1e-6)
    assert wealth >= expected, "what the explorer decided, the verifier must accept"


def test_the_wealth_of_one_bet_is_its_closed_form() -> None:
    """After one miss nothing but the sum of w (1 - λ) is left."""
    certificate = edited(PROVEN, arrivals={}, missed=1)
    weights = [1 / (bet + 3) for bet in range(20)]
    left = sum(w * (1 - 0.98 * 0.5 ** (bet / 2)) for bet, w in enumerate(weights)) / sum(weights)
    assert log_wealth(certificate) == pytest.approx(math.log(left), abs=1e-9)


def test_outcomes_that_decide_are_verified() -> None:
    verification = verify_episodes(PROVEN)
    assert verification.complete
    assert verification.exit_code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"decision": Decision.REFUTED},
        {"missed": 20, "steps": 500},
        {"lost": 20},
        {"delta": 1e-30},
        {"within": 1.5},
        {"arrivals": {1: 6}},
        {"within": None, "chance": 0.999},
    ],
)
def test_outcomes_that_do_not_decide_are_rejected(change: dict[str, Any]) -> None:
    verification = verify_episodes(edited(PROVEN, **change))
    assert not verification.holds
    assert verification.exit_code == 1


def test_a_certificate_is_read_as_it_was_written(tmp_path: Path) -> None:
    for certificate in (PROVEN, edited(PROVEN, within=None, chance=0.5, goal=(1, ("a", None)))):
        certificate.save(tmp_path / "proof.json")
        assert EpisodeCertificate.load(tmp_path / "proof.json") == certificate


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"version": True},
        {"format": "axplore certificate"},
        {"delta": 0.0},
        {"delta": 5e-324},
        {"delta": "0.1"},
        {"within": None},
        {"within": -1.0},
        {"within": 4},
        {"chance": 0.5},
        {"horizon": 0},
        {"horizon": 2.0},
        {"missed": -1},
        {"missed": True},
        {"lost": None},
        {"restarts": 1},
        {"restarts": None},
        {"restarts": True, "ended": 1},
        {"ended": 1},
        {"ended": 2, "within": None, "chance": 0.5},
        {"steps": 208},
        {"steps": True},
        {"arrivals": {"1": 60}},
        {"arrivals": [[1, 60], [1, 20]]},
        {"arrivals": [[9, 60]]},
        {"arrivals": [["1", 60]]},
        {"arrivals": [[1, 0]]},
        {"decision": "true"},
        {"decision": None},
        {"world": 3},
        {"goal": {"code": "os"}},
        {"more": 1},
    ],
)
def test_a_file_of_another_shape_is_refused_though_its_digest_fits(tmp_path: Path, change: dict[str, Any]) -> None:
    PROVEN.save(tmp_path / "proof.json")
    body = storage.read_json(tmp_path / "proof.json")
    body.pop("digest")
    storage.write_document(tmp_path / "proof.json", body | change)
    with pytest.raises(DamagedFileError):
        EpisodeCertificate.load(tmp_path / "proof.json")


def test_restarts_change_the_sentence_of_every_claim() -> None:
    """Whoever turns the flag over claims something else, and says so."""
    for certificate in (PROVEN, edited(PROVEN, within=None, chance=0.5)):
        restarted = edited(certificate, restarts=True)
        assert "without any reset in between" in str(certificate)
        assert "with restarts" not in str(certificate)
        assert "with restarts" in str(restarted)
        assert "without any reset" not in str(restarted)
        assert verify_episodes(restarted).conclusion == (str(restarted),)


def test_a_claim_of_expected_steps_without_restarts_is_decided_only_if_every_episode_may_arrive() -> None:
    for decision in (Decision.PROVEN, Decision.REFUTED):
        with pytest.raises(InvalidInputError, match="an episode ended before the goal"):
            edited(PROVEN, decision=decision, ended=1)
    assert "--restarts" in str(edited(PROVEN, decision=Decision.UNDECIDED, ended=1))


def test_the_fewest_steps_are_those_of_the_outcomes_with_a_reset_each() -> None:
    """60 arrivals after one step, 20 after three and one miss after eight: 120 + 80 + 9."""
    assert verify_episodes(edited(PROVEN, steps=209)).complete
    with pytest.raises(InvalidInputError, match="208 steps are too few: the episodes took 209"):
        edited(PROVEN, steps=208)
    ended = edited(PROVEN, within=None, chance=0.5, ended=1, steps=201)
    assert verify_episodes(ended).complete


def test_no_file_is_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(AxploreError):
        EpisodeCertificate.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("arrivals", [[[[1], 2]], [["1", 2]], [[None, 2]]])
def test_steps_of_an_arrival_that_are_no_number_are_refused(tmp_path: Path, arrivals: Any) -> None:
    storage.write_document(tmp_path / "proof.json", PROVEN._body() | {"arrivals": arrivals})
    with pytest.raises(DamagedFileError):
        EpisodeCertificate.load(tmp_path / "proof.json")


def test_an_episode_may_arrive_without_a_step_and_every_episode_is_counted(tmp_path: Path) -> None:
    certificate = edited(PROVEN, arrivals={0: 3, 1: 40}, missed=2, lost=1, steps=10**6)
    certificate.save(tmp_path / "proof.json")
    assert EpisodeCertificate.load(tmp_path / "proof.json").arrivals == {0: 3, 1: 40}
    assert certificate.episodes == 46
