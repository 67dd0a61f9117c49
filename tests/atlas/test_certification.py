from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import binom

import axplore
from axplore import RESET, EpisodeCertificate, Policy, TabularMdp
from axplore.atlas.certification import CertifyProgress
from axplore.certificate import Decision
from axplore.errors import DamagedFileError, InvalidInputError, InvalidSettingError, UnknownActionError, WorldError
from axplore.workers.distributed import DistributedWorld
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess
from axplore_studies.systems.aliased import random_model, random_policy
from commands import run
from takes_orders import TakesOrders


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
    certificate = axplore.certify(toss, TwoCoins, "heads", within=within, steps=1, restarts=True)
    assert certificate.proven
    assert "a RESET, which is a step, where an episode ends or has not arrived after 1 step)" in str(certificate)
    counted = axplore.certify(toss, TwoCoins, "heads", within=within, steps=1)
    assert counted.proven
    assert "an episode that does not arrive within 1 step counts as 5.5)" in str(counted)


class Fork:
    """One step leads to the goal or into a hole, half of the time each; the hole is terminal."""

    actions = ("go",)

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def reseed(self, seed: Any) -> None:
        self._random = random.Random(int(seed))

    def is_terminal(self, state: str) -> bool:
        return state == "hole"

    def reset(self) -> str:
        return "start"

    def step(self, action: str) -> str:
        assert action == "go"
        return self._random.choice(("goal", "hole"))


class OpenFork(Fork):
    """The hole offers an action that stays there, so that only the policy itself may reset."""

    def is_terminal(self, _: str) -> bool:
        return False


def go(_: str) -> str:
    return "go"


def go_or_reset(label: str) -> Any:
    return RESET if label == "hole" else "go"


FORK_ROWS: dict[Any, Any] = {"start": {"go": {"goal": 0.5, "hole": 0.5}}, "hole": {}, "goal": {}}
FORKS: dict[str, tuple[Any, Any]] = {
    "a system": (go, Fork),
    "a policy that resets": (go_or_reset, OpenFork),
    "a simulation": (go, TabularMdp.from_rows(FORK_ROWS, "start")),
    "workers": (go, lambda: DistributedWorld(SteppedWorld(Fork, 3), InProcess())),
}
"""Policies and worlds on which an episode reaches the goal in its first step, or ends, half of the time each."""


def ask_fork(name: str, **claim: Any) -> EpisodeCertificate:
    policy, world = FORKS[name]
    certificate = axplore.certify(policy, world() if name == "workers" else world, "goal", **claim)
    verification = axplore.verify(certificate)
    assert verification.holds or certificate.decision is Decision.UNDECIDED
    return certificate


@pytest.mark.parametrize("name", FORKS)
@pytest.mark.parametrize(
    ("chance", "restarts", "decision"),
    [
        (0.4, False, Decision.PROVEN),
        (0.6, False, Decision.REFUTED),
        (0.9, False, Decision.REFUTED),
        (0.9, True, Decision.PROVEN),
        (0.99, True, Decision.REFUTED),
    ],
)
def test_an_episode_that_ends_before_the_goal_has_missed_it_unless_it_is_restarted(
    name: str, chance: float, restarts: bool, decision: Decision
) -> None:
    """Half of the episodes arrive; with restarts, steps 1, 3, 5, 7 and 9 are a try each: 1 - 1/32 = 0.969."""
    certificate = ask_fork(name, chance=chance, steps=10, restarts=restarts)
    assert certificate.decision is decision
    assert (certificate.ended > 0) is not restarts
    assert ("with restarts" if restarts else "without any reset in between") in str(certificate)


@pytest.mark.parametrize("name", FORKS)
def test_expected_steps_are_undecided_as_soon_as_an_episode_ends_before_the_goal(name: str) -> None:
    certificate = ask_fork(name, within=100.0)
    assert certificate.decision is Decision.UNDECIDED
    assert (certificate.ended, certificate.missed) == (1, 1)
    assert "--restarts" in str(certificate)


@pytest.mark.parametrize("name", FORKS)
@pytest.mark.parametrize(("within", "decision"), [(3.6, Decision.PROVEN), (2.5, Decision.REFUTED)])
def test_expected_steps_with_restarts_count_every_reset(name: str, within: float, decision: Decision) -> None:
    """V = 1 + (1 + V) / 2 = 3."""
    assert ask_fork(name, within=within, steps=60, restarts=True).decision is decision


class Limited(gymnasium.Env[Any, Any]):
    """Every step arrives half of the time, and the environment truncates an episode at its third step."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self._age = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self._age += 1
        assert action == 0
        assert self._age <= 3
        return int(self.np_random.random() < 0.5), 0.0, False, self._age == 3, {}


@pytest.mark.parametrize(
    ("chance", "restarts", "decision"),
    [
        (0.65, False, Decision.PROVEN),
        (0.85, False, Decision.REFUTED),
        (0.9, True, Decision.PROVEN),
    ],
)
def test_a_truncated_episode_has_missed_the_goal_unless_it_is_restarted(
    chance: float, restarts: bool, decision: Decision
) -> None:
    """Two steps fit before the one at which the environment ends an episode: 3/4; six of the eight with restarts."""
    world = axplore.worlds.gym_world(Limited, max_episode_steps=3)
    certificate = axplore.certify(lambda _: 0, world, 1, chance=chance, steps=8, restarts=restarts)
    assert certificate.decision is decision


def test_a_truncation_that_nobody_declared_is_refused() -> None:
    with pytest.raises(WorldError, match="max_episode_steps=3"):
        axplore.certify(lambda _: 0, axplore.worlds.gym_world(Limited), 1, chance=0.9, steps=8)


def test_workers_whose_systems_end_episodes_do_not_count_them_as_late_where_restarts_are_claimed() -> None:
    """A batch of episodes is cut there; what a restart would have brought is unknown, so nothing is refuted."""
    world = DistributedWorld(axplore.worlds.gym_world(Limited, max_episode_steps=3), InProcess())
    certificate = axplore.certify(lambda _: 0, world, 1, chance=0.9, steps=8, restarts=True, max_steps=2_000)
    assert certificate.decision is Decision.UNDECIDED
    assert certificate.lost > 0 == certificate.missed


def test_an_episode_that_a_world_had_to_run_again_is_lost() -> None:
    """To count only the second try would favour short episodes, which fail less often."""

    class Failing(Fork):
        def step(self, action: str) -> str:
            if self._random.random() < 0.1:
                raise RuntimeError("out of luck")
            return super().step(action)

    seeds = iter(range(10**6))
    system = SteppedWorld(lambda: Failing(next(seeds)), max_faults=10**6)
    certificate = axplore.certify(go, TakesOrders(system), "goal", chance=0.2, steps=10)
    assert certificate.proven
    assert 0 < certificate.lost <= len(system.faults)


def test_chances_of_episodes_that_end_are_decided_wrongly_at_most_as_often_as_delta() -> None:
    """A chance of 1/2 is claimed to be a thousandth more, or a thousandth less: 60 times each at δ = 0.1."""
    delta, repeats = 0.1, 60
    for chance, wrong in ((0.501, Decision.PROVEN), (0.499, Decision.REFUTED)):
        decisions = [
            axplore.certify(go, Fork, "goal", chance=chance, steps=10, delta=delta, max_steps=200, seed=seed).decision
            for seed in range(repeats)
        ]
        assert decisions.count(wrong) <= binom.ppf(1 - 1e-6, repeats, delta)


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
    assert "with restarts" in run("certify", folder, "s5", "--chance", "0.5", "--steps", "6", "--restarts")
    assert EpisodeCertificate.load(file).restarts
    run("certify", folder, "s5", "--within", "4.1", "--max-steps", "10", code=3)
    assert "nothing is decided" in run("verify", file, code=3)


def test_a_file_that_was_edited_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    axplore.certify(toss, TwoCoins, "heads", within=20).save(file)
    file.write_text(file.read_text().replace('"missed": ', '"missed": 1'))
    with pytest.raises(DamagedFileError, match="edited"):
        axplore.verify(file)
