"""Admission by episodes: lines of tests, forecasts, and what the certified explorer makes of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import axplore
from axplore.atlas.atlas import Atlas
from axplore.atlas.construction import atlas_of, certificate_from_exploration
from axplore.atlas.journeys import arrival_bounds
from axplore.atlas.verification import verify as verify_atlas
from axplore.certificate import Certificate, Reachable, verify
from axplore.domains import combination_lock, confusing_chain, slippery_grid
from axplore.errors import DamagedFileError
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified, CertifiedState
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import empirical_path
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests, arrivals_by_frequency, cheapest_test
from axplore.records.episodes import EpisodeRecord
from axplore.records.run import StopReason
from axplore.runs.checkpoints import decode_state, encode_state
from axplore.statistics.episodes import focused_bets, level_after, line_level, log_wealth, losses_if_slower
from axplore.target import Objective, Target
from axplore.truth import policy_steps_on
from axplore.types import RESET_ACTION, RESET_PAIR, Action, State, Status
from axplore.workers.distributed import DistributedWorld
from axplore.worlds.contract import Episodes, Visit
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.coverage_models import CoverageCase
from axplore_studies.in_process import InProcess
from axplore_studies.promises import policy_steps_of, violations_of
from edited import edited
from tested_policies import with_play

GRID = slippery_grid(4, 4)
PRECISION = Target(radius=6.0, epsilon=1.0)


@cache
def explored() -> tuple[Exploration, Atlas]:
    return explore(GRID, Certified(target=PRECISION, objective=Objective.WITHIN_RADIUS))


def explore(mdp: TabularMdp, explorer: Certified) -> tuple[Exploration, Atlas]:
    world = SimulatedWorld(mdp, 5)
    found = run(explorer, world)
    return found, atlas_of(found, world, world_name="a world", explorer_name="certified")


SHARE = 0.01


def a_test(line: int, turn: int, *, proven: bool, goal: int = 1, **other: Any) -> EpisodeTest:
    test = EpisodeTest(
        goal=goal,
        states=np.array([0]),
        actions=np.array([0]),
        horizon=2,
        bound=3.0,
        tail=4.0,
        line=line,
        turn=turn,
        level=line_level(SHARE, line),
        bets=focused_bets(0.9),
        outcomes=np.array([0, 40 if proven else 1, 0, 0]),
    )
    return edited(test, **other)


def test_a_line_has_room_after_a_proof_and_not_beside_a_test_that_is_open() -> None:
    tests = EpisodeTests()
    assert tests.next_place(1, SHARE) == (1, 1, SHARE / 2)
    tests = tests.with_test(a_test(1, 1, proven=True))
    assert tests.next_place(2, SHARE) == (1, 2, SHARE / 2)
    tests = tests.with_test(a_test(1, 2, proven=False, goal=2))
    assert tests.next_place(3, SHARE) == (2, 1, SHARE / 6)
    tests = tests.with_test(a_test(2, 1, proven=False, goal=3))
    assert tests.next_place(4, SHARE) == (3, 1, SHARE / 12)
    tests = tests.with_test(a_test(1, 2, proven=True, goal=2))
    assert [(test.line, test.turn) for test in tests] == [(1, 1), (1, 2), (2, 1)]
    assert tests.next_place(4, SHARE) == (1, 3, SHARE / 2)


def test_a_new_test_of_a_goal_ends_those_before_it_and_may_stand_in_their_line() -> None:
    tests = EpisodeTests().with_test(a_test(1, 1, proven=False)).with_test(a_test(2, 1, proven=False, goal=2))
    assert tests.next_place(1, SHARE)[:2] == (1, 2)
    assert tests.next_place(2, SHARE)[:2] == (2, 2)  # at the level of the second line, above that of the third
    after = tests.with_test(a_test(1, 2, proven=False, bound=2.5))
    assert [test.is_over for test in after] == [True, False, False]
    assert after.open_of(1) == [after.begun[2]]


def test_a_test_that_is_over_leaves_what_it_has_not_lost() -> None:
    lost = a_test(1, 1, proven=False, outcomes=np.array([0, 0, 0, 2]))
    tests = EpisodeTests().with_test(lost)
    assert tests.next_place(2, SHARE)[:2] == (2, 1)
    assert tests.ended([1]).next_place(2, SHARE)[:2] == (
        2,
        1,
    )  # what the first line has left is less than the level of the second
    part = math.exp(log_wealth(losses_if_slower(2, 3.0), lost.outcomes, lost.bets))
    assert part < 0.3
    assert tests.ended([1]).begun[0].level_after == pytest.approx(part * SHARE / 2, rel=1e-12)
    won = EpisodeTests().with_test(a_test(1, 1, proven=False)).ended([1])
    assert won.next_place(2, SHARE) == (1, 2, SHARE / 2)


def test_a_test_proves_the_least_bound_that_its_outcomes_allow() -> None:
    test = a_test(1, 1, proven=False, bound=1.5, tail=6.0, outcomes=np.array([0, 20, 20, 1]))
    assert 1.5 < test.at_most < 5.0
    assert test.proves(test.at_most)
    assert not test.proves(test.at_most - 1e-6)
    assert test.proves(5.0)
    assert test.proves(100.0)
    assert test.is_open
    assert not a_test(1, 1, proven=False, bound=1.5, tail=6.0, outcomes=np.array([0, 1, 0, 1])).proves_any


def errs(generator: np.random.Generator, level: float, is_ended: Callable[[float], bool]) -> bool:
    """Whether a line of tests ever rejects a hypothesis, all of which are true and at their border.

    With a horizon of 1, at which half of the episodes have arrived, a policy that restarts takes 3 expected steps: an
    arrival wins the stake, and a miss loses it.
    """
    bets = focused_bets(0.6)
    for _ in range(40):
        wealth = bets.weights.copy()
        while not is_ended(wealth.sum()) and wealth.sum() > 1e-3:
            wealth *= 1.0 + bets.fractions * (1 if generator.random() < 0.5 else -1)
            if wealth.sum() >= 1.0 / level:
                return True
        level = level_after(level, math.log(wealth.sum()))
        if level < 1e-5:
            break
    return False


@pytest.mark.parametrize(
    "is_ended",
    [lambda _: False, lambda wealth: wealth < 0.3, lambda wealth: wealth < 0.9, lambda wealth: not 0.5 < wealth < 1.5],
)
def test_however_tests_are_ended_a_line_errs_with_its_level_at_most(is_ended: Callable[[float], bool]) -> None:
    """Null simulation of Eq. 11, with tests that are ended when they lose, or as soon as they win."""
    generator, repeats, level = np.random.default_rng(7), 1000, 0.1
    assert losses_if_slower(1, 3.0).tolist() == [-1.5, -1.0, 1.0]
    wrong = sum(errs(generator, level, is_ended) for _ in range(repeats))
    assert wrong <= binom.isf(1e-6, repeats, level)


def test_a_proof_counts_for_its_goal_and_bound_alone() -> None:
    tests = EpisodeTests((a_test(1, 1, proven=True), a_test(1, 2, proven=False, goal=2)))
    assert tests.proof_of(1, 3.0) is tests.begun[0]
    assert tests.proof_of(1, 2.9) is None
    assert tests.proof_of(2, 3.0) is None
    assert tests.open_of(2) == [tests.begun[1]]


def test_the_law_of_arrivals_is_that_of_the_frequencies() -> None:
    found, _ = explored()
    assert found.evidence is not None
    model = found.evidence.model
    for goal in (3, 9, model.n_known):
        policy = empirical_path(model, goal).policy
        times = arrivals_by_frequency(model, goal, policy, 20)
        certain = model.rows._replace(shares=model.rows.frequencies, slack=np.zeros(model.n_pairs))
        chances = arrival_bounds(certain, goal, policy, len(model.numbers), 20)
        assert times.cumsum() == pytest.approx(chances[:, 0], abs=1e-4)
    at_once = arrivals_by_frequency(model, 0, np.full(model.n_known, RESET_PAIR), 2)
    assert at_once.tolist() == [1.0, 0.0, 0.0]


def test_an_open_test_is_gone_on_with_while_it_is_the_cheapest() -> None:
    found, _ = explored()
    assert found.evidence is not None
    model = found.evidence.model
    estimate = empirical_path(model, 5)
    begun = cheapest_test(EpisodeTests(), model, estimate, 7.0, 0.01)
    assert begun is not None
    half = edited(begun.test, outcomes=begun.test.outcomes + 0)
    half.outcomes[3] = 5
    again = cheapest_test(EpisodeTests((half,)), model, estimate, 7.0, 0.01)
    assert again is not None
    assert again.test is half
    assert again.travel < begun.travel
    # A test whose episodes all missed is ended: a new one, in the next line, is cheaper.
    lost = edited(begun.test, outcomes=begun.test.outcomes + 0)
    lost.outcomes[3], lost.outcomes[-1] = 0, 400
    other = cheapest_test(EpisodeTests((lost,)), model, estimate, 7.0, 0.01)
    assert other is not None
    assert (other.test.line, other.test.turn) == (2, 1)
    assert cheapest_test(EpisodeTests(), model, estimate, 0.5 * estimate.steps, 0.01) is None


@pytest.mark.parametrize("objective", [Objective.WITHIN_RADIUS, Objective.OPTIMAL])
@pytest.mark.parametrize(("mdp", "radius", "epsilon"), [(combination_lock(), 2.7, 0.2), (confusing_chain(), 4.5, 0.4)])
def test_what_is_admitted_by_episodes_keeps_the_promise(
    mdp: TabularMdp, radius: float, epsilon: float, objective: Objective
) -> None:
    explorer = Certified(target=Target(radius=radius, epsilon=epsilon), objective=objective)
    found, atlas = explore(mdp, explorer)
    assert_promise_kept(found, atlas, mdp)
    assert found.evidence is not None
    assert any(test.proves_any for test in found.evidence.tests) or objective is Objective.OPTIMAL


def test_the_grid_is_explored_as_promised() -> None:
    assert_promise_kept(*explored(), GRID)


def assert_promise_kept(found: Exploration, atlas: Atlas, mdp: TabularMdp) -> None:
    assert found.evidence is not None
    assert found.stop is StopReason.PROVEN
    assert violations_of(found, CoverageCase(mdp, found.explorer.target.radius)) == []
    assert verify(certificate_from_exploration(found)).complete
    assert verify_atlas(atlas).complete
    assert atlas.complete


def test_most_states_of_a_slippery_grid_are_admitted_by_episodes_in_far_fewer_steps() -> None:
    found, _ = explored()
    assert found.evidence is not None
    assert sum(test.proves_any for test in found.evidence.tests) >= 5
    without = Certified(target=PRECISION, objective=Objective.WITHIN_RADIUS, by_episodes=False)
    slower = run(without, SimulatedWorld(GRID, 3))
    assert slower.evidence is not None
    assert not slower.evidence.tests.begun
    assert found.steps < 0.6 * slower.steps


def test_every_bound_of_the_atlas_belongs_to_the_policy_beside_it() -> None:
    found, atlas = explored()
    assert any(policy.ndim == 2 for policy in atlas.policies)
    for place, state in enumerate(atlas.states):
        assert atlas.statuses[place] is Status.CERTIFIED
        bounds = atlas.bounds(state)
        assert policy_steps_on(GRID, atlas.states, atlas.policies[place], state) <= bounds.upper <= 7.0
        assert policy_steps_of(found, GRID, state) <= bounds.upper


def test_a_part_of_the_atlas_keeps_what_episodes_have_proven() -> None:
    _, atlas = explored()
    same = atlas.within(PRECISION.radius)
    assert set(same.states) == set(atlas.states)
    part = atlas.within(5.0)
    assert 1 < len(part.states) < len(atlas.states)
    for some in (same, part):
        for place, state in enumerate(some.states):
            steps = policy_steps_on(GRID, some.states, some.policies[place], state)
            assert steps <= some.bounds(state).upper <= some.target.radius + some.target.epsilon


def forged(change: Callable[[EpisodeRecord], EpisodeRecord]) -> Certificate:
    """The certificate with one record changed: of a state that no vector proves to be reachable."""
    certificate = certificate_from_exploration(explored()[0])
    by_vectors = {claim.goal for claim in certificate.of(Reachable)}
    records = list(certificate.of(EpisodeRecord))
    times = Counter(record.goal for record in records)
    place = next(
        place for place, record in enumerate(records) if record.goal not in by_vectors and times[record.goal] == 1
    )
    records[place] = change(records[place])
    return edited(certificate, episodes=tuple(records))


def to_misses(record: EpisodeRecord) -> EpisodeRecord:
    arrived = [max(times - 5, 0) for times in record.outcomes[:-1]]
    return edited(record, outcomes=(*arrived, record.n_episodes - sum(arrived)))


FORGERIES: dict[str, Callable[[EpisodeRecord], EpisodeRecord]] = {
    "arrivals turned into misses": to_misses,
    "a tighter bound": lambda record: edited(record, bound=record.bound / 2, at_most=record.bound / 2),
    "a bound below the least": lambda record: edited(record, at_most=record.bound / 2),
    "a larger horizon": lambda record: edited(record, horizon=record.horizon + 1),
    "a horizon beyond all memory": lambda record: edited(record, horizon=10**12),
    "a later line": lambda record: edited(record, line=record.line + 1),
    "another turn": lambda record: edited(record, turn=record.turn + 1),
    "states that are not known": lambda record: edited(record, **with_play(record, 40, 0)),
    "an action that is none": lambda record: edited(record, **with_play(record, 0, 7)),
    "a stake for each": lambda record: edited(record, weights=(1.0,) * len(record.weights)),
    "a hundred times the episodes": lambda record: edited(record, outcomes=tuple(100 * n for n in record.outcomes)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_records_are_refused(forgery: str, tmp_path: Path) -> None:
    """What is read back from files, so that their digest fits."""
    certificate = forged(FORGERIES[forgery])
    certificate.save(tmp_path)
    verdict = verify(Certificate.load(tmp_path))
    assert not verdict.holds
    assert not verdict.complete
    kinds = {failure.kind for failure in verdict.failures}
    assert "complete" in kinds
    assert kinds & {"reachable", "at most"}


def test_a_policy_that_plays_in_its_goal_proves_no_admission() -> None:
    certificate = forged(lambda record: edited(record, **with_play(record, record.goal, 0)))
    assert {failure.kind for failure in verify(certificate).failures} == {"complete"}


def test_a_bound_beyond_the_reach_proves_nothing_reachable() -> None:
    verdict = verify(forged(lambda record: edited(record, bound=7.5, at_most=7.5, tail=8.5)))
    assert not verdict.complete
    assert any("not claimed to be reachable" in part for part in verdict.open_parts)


def test_without_its_record_a_state_is_not_claimed_to_be_reachable() -> None:
    certificate = certificate_from_exploration(explored()[0])
    verdict = verify(edited(certificate, episodes=()))
    assert not verdict.complete
    assert any("not claimed to be reachable" in part for part in verdict.open_parts)


def test_a_certificate_with_records_is_read_back(tmp_path: Path) -> None:
    certificate = certificate_from_exploration(explored()[0])
    certificate.save(tmp_path)
    assert Certificate.load(tmp_path).of(EpisodeRecord) == certificate.of(EpisodeRecord)
    path = tmp_path / "certificate.json"
    path.write_text(path.read_text().replace('"turn": 1', '"turn": 2', 1))
    with pytest.raises(DamagedFileError, match="digest"):
        Certificate.load(tmp_path)


def test_a_run_cut_short_certifies_what_its_tests_have_proven() -> None:
    for max_steps in (3000, 6000):
        found = run(
            Certified(target=PRECISION, objective=Objective.WITHIN_RADIUS),
            SimulatedWorld(GRID, 3),
            max_steps=max_steps,
        )
        assert verify(certificate_from_exploration(found)).holds


def test_the_state_of_an_explorer_with_tests_is_kept_exactly() -> None:
    explorer = Certified(target=PRECISION, objective=Objective.WITHIN_RADIUS)
    world = SimulatedWorld(GRID, 3)
    state = explorer.start(world)
    while not any(test.outcomes.any() for test in state.tests):
        state = explorer.advance(state, world)
    again = decode_state(encode_state(state, explorer), explorer, world.snapshot())
    assert isinstance(again, CertifiedState)
    for old, new in zip(state.tests, again.tests, strict=True):
        assert (old.goal, old.line, old.turn, old.level, old.at_most) == (
            new.goal,
            new.line,
            new.turn,
            new.level,
            new.at_most,
        )
    following, repeated = SimulatedWorld(GRID, 3), SimulatedWorld(GRID, 3)
    for copy in (following, repeated):
        copy.restore(world.snapshot())
    for _ in range(5):
        state, again = explorer.advance(state, following), explorer.advance(again, repeated)
    assert following.steps == repeated.steps
    assert [test.level_after for test in state.tests] == [test.level_after for test in again.tests]


class Pit:
    """One step leads to the goal, or into a pit that nothing but RESET leads out of, half of the time each."""

    actions = ("go",)

    def reseed(self, seed: int) -> None:
        self._random = random.Random(int(seed))

    def reset(self) -> str:
        self._state = "start"
        return self._state

    def step(self, action: str) -> str:
        assert action == "go"
        if self._state == "start":
            self._state = self._random.choice(("goal", "pit"))
        return self._state


@pytest.mark.parametrize("limit", [3, 6, None])
def test_a_limit_of_the_system_does_not_shorten_the_policy_that_is_tested(limit: int | None) -> None:
    """Restarted after 20 steps it takes 1 + 21 = 22 expected steps; a RESET at each limit would make it 4 or 7.

    So the hypothesis that it takes more than 10 is true, and a test at the level 0.05 rejects it with probability 0.05
    at most: in 40 tests more than 10 times with probability 3e-6.
    """
    rejected = 0
    for seed in range(40):
        world = SteppedWorld(Pit, seed, max_episode_steps=limit)
        world.carry_out([Visit(0, 0, 20, np.zeros(0, dtype=np.int64), 1)])
        goal = list(world.states).index("goal")
        known = [0, list(world.states).index("pit")]
        test = EpisodeTest(
            goal, np.arange(2), np.zeros(2, dtype=np.int64), horizon=20, bound=10.0, tail=11.0, line=1, turn=1,
            level=0.05, bets=focused_bets(0.5), outcomes=np.zeros(22, dtype=np.int64),
        )  # fmt: skip
        for _ in range(20):
            test = test.after(world.carry_out([test.order(known, 5)])[0])
            if test.proves_any:
                rejected += 1
                break
        assert test.outcomes[1:-1].tolist()[1:] == [0] * 19
    assert rejected <= 10


class SteppedGrid:
    """`GRID` as a system that is stepped."""

    def actions(self, state: State) -> tuple[Action, ...]:
        return GRID.actions_of(state)

    def reseed(self, seed: int) -> None:
        self._random = random.Random(int(seed))

    def reset(self) -> State:
        self._state = GRID.initial_state
        return self._state

    def step(self, action: Action) -> State:
        pair = int(GRID.state_pairs[GRID.index_of(self._state)]) + self.actions(self._state).index(action)
        row = slice(GRID.row_offsets[pair], GRID.row_offsets[pair + 1])
        (place,) = self._random.choices(GRID.successors[row].tolist(), GRID.probabilities[row].tolist())
        self._state = GRID.states[place]
        return self._state


def test_what_episodes_prove_beyond_a_limit_of_the_system_is_true_after_a_resume_too(tmp_path: Path) -> None:
    limit, folder = 8, tmp_path / "run"
    axplore.explore(
        SteppedWorld(SteppedGrid, max_episode_steps=limit),
        radius=PRECISION.radius,
        epsilon=PRECISION.epsilon,
        objective=Objective.WITHIN_RADIUS,
        run=folder,
        max_steps=6000,
    )
    atlas = axplore.resume(folder, SteppedWorld(SteppedGrid, max_episode_steps=limit))
    assert verify_atlas(atlas).complete
    assert atlas.certificate is not None
    assert any(record.horizon >= limit for record in atlas.certificate.of(EpisodeRecord))
    for place, goal in enumerate(atlas.states):
        assert policy_steps_on(GRID, atlas.states, atlas.policies[place], goal) <= atlas.upper[place]


def test_workers_merge_the_outcomes_of_their_batches() -> None:
    world = DistributedWorld(SimulatedWorld(confusing_chain(), 1), InProcess(), batch=4)
    policy = np.full(1, RESET_ACTION)
    (first,) = world.carry_out([Episodes(0, 30, 5, policy)])
    assert first.outcomes.tolist() == [30, 0, 0, 0, 0, 0, 0]
    policy[0] = 0
    (answer,) = world.carry_out([Episodes(0, 3, 1, policy)])
    goal = len(world.states) - 1
    assert answer.outcomes.tolist() == [3, 0, 0]
    (answer,) = world.carry_out([Episodes(goal, 40, 6, np.zeros(len(world.states), dtype=np.int64))])
    assert answer.outcomes.sum() == answer.completed == 40
    assert answer.outcomes[:-1].sum() == answer.arrivals
    assert answer.outcomes @ np.array([*range(7), 6]) == answer.travelled


def test_with_workers_the_promise_is_kept() -> None:
    explorer = Certified(target=PRECISION, objective=Objective.WITHIN_RADIUS).for_workers()
    found = run(explorer, DistributedWorld(SimulatedWorld(GRID, 2), InProcess(), batch=25))
    assert found.evidence is not None
    assert any(test.proves_any for test in found.evidence.tests)
    assert violations_of(found, CoverageCase(GRID, PRECISION.radius)) == []
    assert verify(certificate_from_exploration(found)).complete
