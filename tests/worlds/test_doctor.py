from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.stats import binom

import axplore
from axplore.domains import domain
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.records.findings import Issue
from axplore.worlds.contract import Visit
from axplore.worlds.diagnosis import MEANINGS, REMEDIES, Diagnosis
from axplore.worlds.doctor import BRIEF_STEPS, examine, examine_world
from axplore.worlds.gym import GymSystem, gym_world
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.systems import faulty
from gymnasium_names import TAXI

FAULTS = [
    (faulty.UnfixedStart, Issue.START_NOT_FIXED, "landed in"),
    (faulty.PinnedNoise, Issue.NOISE_PINNED, "with the same actions met the same states"),
    (faulty.SilentReset, Issue.TIME_LIMIT, "Step 60 after a reset led back to the start"),
    (faulty.RaisingLimit, Issue.TIME_LIMIT, "Step 60 after a reset failed"),
    (faulty.EndingLimit, Issue.TIME_LIMIT, "After step 60"),
    (faulty.Freezing, Issue.TIME_LIMIT, "From step 61 after a reset on"),
    (faulty.HiddenDirection, Issue.KEY_TOO_COARSE, "depends on where the agent came from"),
    (faulty.HiddenCoin, Issue.KEY_TOO_COARSE, "depends on"),
    (faulty.CarriedKey, Issue.KEY_TOO_COARSE, "depends on"),
    (faulty.TerminalSometimes, Issue.KEY_TOO_COARSE, "none, being terminal"),
    (faulty.Counting, Issue.KEY_TOO_FINE, "No state was met twice between two resets"),
    (faulty.RaisingAction, Issue.ACTION_FAILS, "Action 'jump' failed"),
    (faulty.RaisingSometimes, Issue.STEP_FAILS, "in state 3 it raised ValueError: stumbled"),
    (faulty.Stuck, Issue.ACTION_FAILS, "The start offers no action"),
    (faulty.BrokenReset, Issue.SYSTEM_FAILS, "no such device"),
    (faulty.UnhashableState, Issue.SYSTEM_FAILS, "cannot be hashed"),
]


@pytest.mark.parametrize(("make", "issue", "seen"), FAULTS, ids=[make.__name__ for make, _, _ in FAULTS])
def test_each_fault_is_found_and_nothing_else(make: type[faulty.Ring], issue: Issue, seen: str) -> None:
    diagnosis = examine(make(3), seed=3)
    assert {finding.issue for finding in diagnosis.findings} == {issue}
    assert seen in diagnosis.findings[0].seen
    assert not diagnosis.healthy
    text = str(diagnosis)
    assert MEANINGS[issue] in text
    assert REMEDIES[issue] in text


@pytest.mark.parametrize("make", [make for make, _, _ in FAULTS], ids=[make.__name__ for make, _, _ in FAULTS])
def test_a_brief_examination_finds_each_fault_too(make: type[faulty.Ring]) -> None:
    assert not examine(make(5), max_steps=2 * BRIEF_STEPS).healthy


class Remainders:
    """Deterministic, with a label that stands for several states: no noise is pinned."""

    actions = (1, 2, 5)

    def reset(self) -> int:
        self._number = 0
        return 0

    def step(self, action: int) -> int:
        self._number = (3 * self._number + action) % 97
        return self._number % 7


def test_a_deterministic_system_with_a_coarse_key_is_not_said_to_have_noise() -> None:
    (finding,) = examine(Remainders()).findings
    assert finding.issue is Issue.NOISE_PINNED
    assert "or the key is too coarse" in finding.title
    assert "cannot be told from outside" in finding.meaning


def test_a_key_with_noise_is_too_fine() -> None:
    """And even the start has a new name each time."""
    found = {finding.issue for finding in examine(faulty.Noisy()).findings}
    assert found == {Issue.START_NOT_FIXED, Issue.KEY_TOO_FINE}


def test_an_action_that_no_state_offers_is_found_if_it_is_expected() -> None:
    (finding,) = examine(faulty.Ring(), expected_actions=("forward", "back", "sideways"), max_steps=500).findings
    assert finding.issue is Issue.ACTION_FAILS
    assert "'sideways' was available in none of 7 states" in finding.seen


def frozen_lake(**parameters: Any) -> GymSystem:
    return GymSystem(gymnasium.make("FrozenLake-v1", **parameters))


HEALTHY: dict[str, Any] = {
    "ring": faulty.Ring,
    "slippery lake": frozen_lake,
    "frozen lake": lambda: frozen_lake(is_slippery=False),
    "cliff": lambda: GymSystem(gymnasium.make("CliffWalking-v1")),
    "slippery cliff": lambda: GymSystem(gymnasium.make("CliffWalking-v1", is_slippery=True)),
    "rainy taxi": lambda: GymSystem(gymnasium.make(TAXI, is_rainy=True), pin=3),
    "chain": lambda: faulty.ModelSystem(domain("confusing-chain")),
    "lock": lambda: faulty.ModelSystem(domain("combination-lock")),
    "grid": lambda: faulty.ModelSystem(domain("slippery-grid")),
    "star": lambda: faulty.ModelSystem(domain("star")),
}


@pytest.mark.parametrize("make", HEALTHY.values(), ids=list(HEALTHY))
def test_nothing_is_found_on_a_system_without_fault(make: Any) -> None:
    """The study `doctor` does this with twenty seeds."""
    diagnosis = examine(make())
    assert diagnosis.findings == ()
    assert diagnosis.steps >= 20_000
    assert diagnosis.steps_per_second > 0
    assert str(diagnosis).startswith("Nothing found.")


def test_false_alarms_are_as_rare_as_stated() -> None:
    """On systems without fault, at a level at which they would show, and at the level that is used."""
    repeats = 150
    alarms = {0.5: 0, 1e-3: 0}
    for seed in range(repeats):
        for level in alarms:
            alarms[level] += not examine(faulty.Ring(seed), seed=seed, max_steps=600, false_alarm=level).healthy
    for level, times in alarms.items():
        assert times <= binom.ppf(1 - 1e-6, repeats, level)


def test_an_examination_is_the_same_for_the_same_seed() -> None:
    def outcome(diagnosis: Diagnosis) -> Any:
        return diagnosis.findings, diagnosis.steps, diagnosis.resets, diagnosis.states, diagnosis.longest

    first, again = (examine(faulty.HiddenCoin(1), seed=7, max_steps=3000) for _ in range(2))
    assert outcome(first) == outcome(again)


def test_noise_that_is_pinned_is_found_where_episodes_are_short() -> None:
    class Pinned(GymSystem):
        def reset(self) -> Any:
            self._environment.unwrapped.np_random = np.random.default_rng(5)
            return super().reset()

    diagnosis = examine(Pinned(gymnasium.make("FrozenLake-v1")))
    assert [finding.issue for finding in diagnosis.findings] == [Issue.NOISE_PINNED]


def test_a_limit_that_the_world_respects_is_not_found() -> None:
    world = SteppedWorld(faulty.SilentReset, max_episode_steps=60)
    diagnosis = examine_world(world)
    assert diagnosis.healthy
    assert diagnosis.longest == 59


def test_a_world_goes_on_after_an_examination() -> None:
    with gym_world("FrozenLake-v1", is_slippery=False) as world:
        examine_world(world, max_steps=500)
        assert world.steps == 0
        (answer,) = world.carry_out([Visit(0, 2, 1, np.array([-1]), max_journey=5)])
        assert answer.steps == 2  # the RESET, and the play
        assert list(world.states) == [0, 1]


def test_actions_may_be_given_apart_from_the_system() -> None:
    class Bare:
        def reset(self) -> int:
            return 0

        def step(self, action: int) -> int:
            return action

    assert examine(Bare, actions=(0, 1), max_steps=300).states == 2
    with pytest.raises(InvalidInputError, match="does not say which actions"):
        examine(Bare)


@pytest.mark.parametrize("settings", [{"max_steps": 0}, {"seconds": 0.0}, {"false_alarm": 0.0}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        examine(faulty.Ring(), **settings)


def test_a_diagnosis_is_told_to_machines() -> None:
    told = examine(faulty.Stuck(), max_steps=100).as_json()
    assert told["healthy"] is False
    assert [finding["issue"] for finding in told["findings"]] == ["ACTION_FAILS"]
    assert set(told["findings"][0]) == {"issue", "seen", "meaning", "remedy", "level"}


def test_every_issue_has_a_meaning_and_a_remedy() -> None:
    assert set(MEANINGS) == set(REMEDIES) == set(Issue)


def test_exploring_warns_of_what_a_short_examination_finds(caplog: pytest.LogCaptureFixture) -> None:
    settings: dict[str, Any] = {"radius": 2, "epsilon": 0.5, "max_steps": 12_000}
    axplore.explore(faulty.SilentReset, doctor=False, **settings)
    assert not caplog.records
    examined = axplore.explore(faulty.SilentReset, **settings)
    (record,) = caplog.records
    assert "Behaviour depends on the time since the reset" in record.getMessage()
    assert examined.states  # it warns, and continues


def test_exploring_says_nothing_of_a_system_without_fault(caplog: pytest.LogCaptureFixture) -> None:
    axplore.explore("gym:FrozenLake-v1", radius=3, epsilon=0.5, max_steps=2000)
    assert not caplog.records
