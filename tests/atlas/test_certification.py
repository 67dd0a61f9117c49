from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import binom

import axplore
from aliased import random_model, random_policy
from axplore import RESET, EpisodeCertificate, Policy, TabularMdp
from axplore.atlas.certification import CertifyProgress
from axplore.certificate import Decision
from axplore.errors import DamagedFileError, InvalidInputError, InvalidSettingError, UnknownActionError
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from commands import run


class TwoCoins:
    """The goal comes with heads; each episode tosses one of two coins, which no label shows."""

    actions = ("toss",)

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._chance = 0.0

    def reset(self) -> str:
        self._chance = self._random.choice((0.1, 0.9))
        return "tails"

    def step(self, action: str) -> str:
        assert action == "toss"
        return "heads" if self._random.random() < self._chance else "tails"


TWO_COINS_STEPS = (1 / 0.1 + 1 / 0.9) / 2
"""Of tossing until heads, if it is never restarted."""


def toss(_: str) -> str:
    return "toss"


@pytest.mark.parametrize(("factor", "decision"), [(1.25, Decision.PROVEN), (0.8, Decision.REFUTED)])
def test_steps_are_decided_though_labels_hide_a_coin(factor: float, decision: Decision) -> None:
    """The horizon is so long that a restart hardly ever comes, so that the steps are those of the closed form."""
    certificate = axplore.certify(toss, TwoCoins, "heads", within=factor * TWO_COINS_STEPS, steps=200)
    assert certificate.decision is decision
    assert axplore.verify(certificate).holds


@pytest.mark.parametrize(("chance", "decision"), [(0.5, Decision.PROVEN), (0.7, Decision.REFUTED)])
def test_chances_are_decided_though_labels_hide_a_coin(chance: float, decision: Decision) -> None:
    """Two tosses bring heads with the chance 1 - (0.9² + 0.1²) / 2 = 0.59."""
    certificate = axplore.certify(toss, TwoCoins(), "heads", chance=chance, steps=2)
    assert certificate.decision is decision


def test_a_restart_may_prove_what_the_policy_without_it_does_not_keep() -> None:
    """Restarted after one toss, it takes a new coin after every tails: 3 steps, as half the tosses cost two."""
    within = 3.5
    assert 3.0 < within < TWO_COINS_STEPS
    certificate = axplore.certify(toss, TwoCoins, "heads", within=within, steps=1)
    assert certificate.proven
    assert "restarted by RESET whenever it has not arrived after 1 step," in str(certificate)


def test_at_most_one_claim_in_ten_is_decided_wrongly_at_delta_one_tenth() -> None:
    """Claims are false by a thousandth, where errors are likeliest, on systems whose labels hide states."""
    delta, repeats, wrong = 0.1, 120, 0
    for number in range(repeats):
        rng = np.random.default_rng([3, number])
        while True:
            model = random_model(rng, n_states=8, n_labels=4)
            policy, goal = random_policy(rng, model), 1 + number % 3
            steps = model.restarted_steps(policy.__getitem__, goal, horizon=15)
            if steps < 30:
                break
        certificate = axplore.certify(
            policy.__getitem__, model.system(number), goal, within=0.999 * steps, steps=15, delta=delta, max_steps=2000
        )
        wrong += certificate.proven
    assert wrong <= binom.ppf(1 - 1e-6, repeats, delta)


def test_clear_claims_are_decided_within_few_steps() -> None:
    for number in range(20):
        rng = np.random.default_rng([4, number])
        model = random_model(rng, n_states=8, n_labels=4)
        policy = random_policy(rng, model)
        steps = model.restarted_steps(policy.__getitem__, 1, horizon=15)
        if steps > 30:
            continue
        for factor, decision in ((0.5, Decision.REFUTED), (2.0, Decision.PROVEN)):
            certificate = axplore.certify(
                policy.__getitem__, model.system(number), 1, within=factor * steps, steps=15, max_steps=20_000
            )
            assert certificate.decision is decision


class Predictor:
    """As a model of Stable-Baselines3: arrays in, arrays out."""

    observation_space = spaces.Discrete(16)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.starts = 0

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        assert observation.shape == ()
        assert deterministic
        assert (state is None) == bool(episode_start[0])
        self.starts += bool(episode_start[0])
        action = self._policy(int(observation))
        return action if action is RESET else np.array(action), ("memory",)


def test_policies_of_every_kind_are_played_alike() -> None:
    lake = axplore.explore("gym:FrozenLake-v1", radius=3, epsilon=1, world_parameters={"is_slippery": "false"})
    policy, predictor = lake.policy(1), Predictor(lake.policy(1))
    certificates = [
        axplore.certify(given, axplore.worlds.gym_world("FrozenLake-v1", is_slippery=False), 1, within=1.5)
        for given in (lake, policy, policy.__call__, predictor)
    ]
    assert len({certificate.episodes for certificate in certificates}) == 1
    assert all(certificate.proven for certificate in certificates)
    assert predictor.starts == certificates[-1].episodes


def test_a_policy_may_roll_dice() -> None:
    rows = {0: {"left": {0: 1.0}, "right": {1: 1.0}}, 1: {"left": {0: 1.0}, "right": {1: 1.0}}}

    class Corridor:
        actions = ("left", "right")

        def reset(self) -> int:
            self._state = 0
            return 0

        def step(self, action: str) -> int:
            self._state = next(iter(rows[self._state][action]))
            return self._state

    dice = random.Random(1)
    certificate = axplore.certify(lambda _: dice.choice(("left", "right")), Corridor, 1, within=2.5, steps=100)
    assert certificate.proven
    assert len(certificate.arrivals) > 2


def test_a_policy_that_depends_on_the_step_is_played_by_step() -> None:
    """It plays `right` at its first step and `up` at its second, which alone leads to the goal."""
    rows = {
        "s": {"right": {"t": 1.0}, "up": {"s": 1.0}},
        "t": {"right": {"s": 1.0}, "up": {"goal": 1.0}},
        "goal": {"right": {"goal": 1.0}, "up": {"goal": 1.0}},
    }
    model = TabularMdp.from_rows(rows, "s")
    staged = Policy("goal", {"s": 0, "t": 1}, (("right", "up"),) * 2, np.array([[0, 0], [1, 1]]))
    certificate = axplore.certify(staged, model, "goal", within=2.5)
    assert certificate.proven
    assert certificate.arrivals.keys() == {2}


def test_an_episode_in_which_the_world_shows_an_unplanned_state_counts_against_both() -> None:
    """A world that takes orders resets in a state that it shows for the first time, so what follows is unknown."""
    rows: dict[Any, Any] = {0: {"go": {1: 0.5, 2: 0.5}}, 1: {"go": {3: 1.0}}, 2: {"go": {3: 1.0}}, 3: {}}
    certificate = axplore.certify(
        lambda _: "go", SimulatedWorld(TabularMdp.from_rows(rows, 0), 5), 3, within=2.5, delta=0.01
    )
    assert certificate.proven
    assert certificate.arrivals.keys() == {2}
    assert certificate.lost <= 1
    assert certificate.missed == 0


def test_an_episode_in_which_the_system_fails_counts_against_both() -> None:
    class Failing(TwoCoins):
        def step(self, action: str) -> str:
            if self._random.random() < 0.02:
                raise RuntimeError("out of luck")
            return super().step(action)

    seeds = iter(range(10**6))
    world = SteppedWorld(lambda: Failing(next(seeds)), max_faults=10**6)
    certificate = axplore.certify(toss, world, "heads", within=30, steps=60)
    assert certificate.proven
    assert certificate.lost == len(world.faults) > 0


def test_a_goal_that_never_comes_refutes_every_bound_on_a_system() -> None:
    assert axplore.certify(toss, TwoCoins, "edge", within=50).decision is Decision.REFUTED


def test_the_start_is_reached_without_a_step() -> None:
    certificate = axplore.certify(toss, TwoCoins, "tails", within=0.5)
    assert certificate.proven
    assert certificate.arrivals.keys() == {0}


def test_what_the_steps_do_not_decide_stays_undecided() -> None:
    progress: list[CertifyProgress] = []
    certificate = axplore.certify(
        toss, TwoCoins, "heads", chance=0.59, steps=2, delta=1e-9, max_steps=2_000, on_progress=progress.append
    )
    assert certificate.decision is Decision.UNDECIDED
    assert 2_000 <= certificate.steps < 2_010
    assert progress[-1].steps <= 2_010
    assert 0 <= max(progress[-1].evidence_for, progress[-1].evidence_against) < 1
    verification = axplore.verify(certificate)
    assert (verification.complete, verification.exit_code) == (False, 3)


@pytest.mark.parametrize(
    "claim", [{}, {"within": 3, "chance": 0.5}, {"chance": 0.5}, {"within": 0}, {"chance": 1.0, "steps": 3}]
)
def test_a_claim_that_is_none_is_refused(claim: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        axplore.certify(toss, TwoCoins, "heads", **claim)


def test_an_action_that_the_world_does_not_have_is_refused() -> None:
    for world in (TwoCoins, "confusing-chain"):
        with pytest.raises(UnknownActionError, match="'fly'"):
            axplore.certify(lambda _: "fly", world, "heads", within=3)


def test_a_model_that_expects_other_observations_is_refused() -> None:
    class Pilot(Predictor):
        observation_space = spaces.Box(0, 1, (3,))  # type: ignore[assignment]

    with pytest.raises(InvalidInputError, match="pass a function"):
        axplore.certify(Pilot(Policy("x", {}, (), np.zeros(0, dtype=np.int64))), TwoCoins, "heads", within=3)


def test_the_command_writes_a_file_that_verify_checks(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    axplore.explore("confusing-chain", radius=4.5, epsilon=0.5, run=folder)
    assert "Proven: the policy to s5 of the atlas" in run("certify", folder, "s5", "--within", "6")
    file = folder / "certified-s5.json"
    assert "VERIFIED" in run("verify", file)
    assert axplore.verify(file).exit_code == 0
    refuted = json.loads(run("certify", folder, "s5", "--within", "2", "--json", code=1))
    assert refuted["decision"] == "refuted"
    assert "Refuted" in run("verify", file, code=1)
    run("certify", folder, "s5", "--chance", "0.5", "--steps", "6", "-o", tmp_path / "chance.json")
    assert EpisodeCertificate.load(tmp_path / "chance.json").chance == 0.5
    run("certify", folder, "s5", "--within", "4.1", "--max-steps", "10", code=3)
    assert "nothing is decided" in run("verify", file, code=3)


def test_a_file_that_was_edited_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    axplore.certify(toss, TwoCoins, "heads", within=20).save(file)
    file.write_text(file.read_text().replace('"missed": ', '"missed": 1'))
    with pytest.raises(DamagedFileError, match="edited"):
        axplore.verify(file)
