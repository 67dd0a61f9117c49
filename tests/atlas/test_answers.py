"""Routes, chances, smaller radii, reasons, data frames, and policies that run."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields

import numpy as np
import pytest

import axplore
from axplore import RESET, Atlas, Status, TabularMdp
from axplore.atlas.journeys import estimated_chances
from axplore.atlas.state_report import StateRow, headings_of, rounded_down, rounded_up, rows_of, state_rows
from axplore.atlas.why_not import Reason
from axplore.errors import AxploreError, InvalidInputError, InvalidSettingError, UnknownStateError
from axplore.labels import label_of, named, text_of
from axplore.truth import controllable_states, optimal_steps
from axplore.worlds.simulated import SimulatedWorld

CHAIN = axplore.domain("confusing-chain")


@pytest.fixture(scope="module")
def slippery_stepwise() -> Atlas:
    """Its policies depend on the step, and its actions fail at times."""
    return axplore.explore("confusing-chain", 3.0, 1.0, explorer="ucb-explore-experiment", max_steps=20_000)


# ------------------------------------------------------------------------------------------------------------- routes


def test_the_most_likely_route_is_made_of_the_policys_own_moves(chain: Atlas) -> None:
    for goal in chain.states:
        route, policy = chain.path(goal), chain.policy(goal)
        assert route.states[0] == "s0"
        assert route.states[-1] == goal
        likely = 1.0
        for state, action, successor in zip(route.states, route.actions, route.states[1:], strict=False):
            assert policy(state) == action
            met = chain.successors(state, action)
            likely *= met[successor] / sum(met.values())
        assert route.probability == pytest.approx(likely)


def test_no_other_way_of_a_policy_is_likelier_than_the_route(slippery_stepwise: Atlas) -> None:
    atlas = slippery_stepwise
    for goal in atlas.states[1:]:
        policy, best, arrived = atlas.policy(goal), {atlas.states[0]: 1.0}, 0.0
        for step in range(policy.horizon or 0):
            after: dict[object, float] = {}
            for state, chance in best.items():
                action = policy(state, step)
                met = {} if action is RESET else atlas.successors(state, action)
                for successor, times in met.items():
                    after[successor] = max(after.get(successor, 0.0), chance * times / sum(met.values()))
            arrived = max(arrived, after.pop(goal, 0.0))
            best = after
        route = atlas.path(goal)
        assert route.probability == pytest.approx(arrived)
        assert [policy(state, step) for step, state in enumerate(route.states[:-1])] == list(route.actions)


def test_of_two_ways_the_likelier_is_the_route() -> None:
    # Both ways lead on to the goal; one draw in ten goes by "rare".
    model = TabularMdp.from_rows(
        {0: {"a": {"often": 0.9, "rare": 0.1}}, "often": {"b": {"end": 1}}, "rare": {"c": {"end": 1}}, "end": {}}, 0
    )
    route = axplore.explore(model, radius=3, epsilon=1).path("end")
    assert route.states == (0, "often", "end")
    assert route.actions == ("a", "b")


def test_a_route_follows_a_policy_that_depends_on_the_step(stepwise: Atlas) -> None:
    goal = stepwise.states[-1]
    route, policy = stepwise.path(goal), stepwise.policy(goal)
    assert route.states[-1] == goal
    assert all(policy(state, step) == route.actions[step] for step, state in enumerate(route.states[:-1]))


def test_there_is_no_route_to_a_state_outside_the_atlas(chain: Atlas) -> None:
    with pytest.raises(UnknownStateError, match="s9"):
        chain.path("s9")


# ------------------------------------------------------------------------------------------------------------ chances


def within_steps(mdp: TabularMdp, atlas: Atlas, goal: object, steps: int) -> list[float]:
    """The true chance to arrive within 0, 1, ... steps, by powers of the policy's transition matrix."""
    policy = atlas.policy(goal)
    matrix = np.zeros((mdp.n_states, mdp.n_states))
    for number, state in enumerate(mdp.states):
        action = policy(state)
        row = {mdp.initial_state: 1.0} if action is RESET else mdp.row(state, action)
        if state == goal:
            row = {goal: 1.0}
        for successor, probability in row.items():
            matrix[number, mdp.index_of(successor)] = probability
    mass = np.zeros(mdp.n_states)
    mass[mdp.initial_index] = 1.0
    chances = []
    for _ in range(steps + 1):
        chances.append(float(mass[mdp.index_of(goal)]))
        mass = mass @ matrix
    return chances


@pytest.mark.parametrize("goal", ["s0", "s1", "s3", "s5"])
def test_the_true_chance_to_arrive_lies_between_its_bounds_at_every_step(chain: Atlas, goal: str) -> None:
    chance = chain.probability(goal, 30)
    truth = np.array(within_steps(CHAIN, chain, goal, 30))
    assert (chance.lowers <= truth + 1e-12).all()
    assert (truth <= chance.uppers + 1e-12).all()
    assert (chance.lowers <= chance.estimates + 1e-12).all()
    assert (chance.estimates <= chance.uppers + 1e-12).all()
    assert (np.diff(chance.estimates) >= -1e-12).all()
    assert chance.lower == chance.lowers[-1]


def test_bounds_of_a_chance_are_worth_something(chain: Atlas) -> None:
    chance = chain.probability("s5", 20)
    assert chance.proven
    assert chance.lower > 0.9
    assert chain.probability("s5", 1).upper < 0.2  # it takes two steps at least, but for what was never seen


def test_nothing_is_proven_of_a_chance_where_nothing_is_proven(estimated: Atlas) -> None:
    chance = estimated.probability("s5", 10)
    assert not chance.proven
    assert (chance.lower, chance.upper) == (0, 1)
    assert chance.estimate == pytest.approx(within_steps(CHAIN, estimated, "s5", 10)[-1], abs=0.1)


def test_the_chance_of_a_policy_that_depends_on_the_step_is_one_in_a_deterministic_world(stepwise: Atlas) -> None:
    goal = stepwise.states[-1]
    length = len(stepwise.path(goal))
    assert stepwise.probability(goal, length).estimate == pytest.approx(1)
    assert stepwise.probability(goal, length - 1).estimate == 0


def followed_step_by_step(atlas: Atlas, goal: object, steps: int) -> list[float]:
    """The chance to have arrived after 0, 1, ... steps by the frequencies met: all journeys at once, state by state."""
    policy, mass, arrived = atlas.policy(goal), {(atlas.states[0], 0): 1.0}, [float(goal == atlas.states[0])]
    for _ in range(steps):
        after: dict[tuple[object, int], float] = {}
        reached = arrived[-1]
        for (state, step), chance in mass.items():
            action = policy(state, step)
            if action is RESET:
                after[atlas.states[0], 0] = after.get((atlas.states[0], 0), 0.0) + chance
                continue
            met = atlas.successors(state, action)
            for successor, times in met.items():
                part = chance * times / sum(met.values())
                if successor == goal:
                    reached += part
                else:
                    after[successor, step + 1] = after.get((successor, step + 1), 0.0) + part
        mass = after if arrived[0] < 1 else {}
        arrived.append(reached)
    return arrived


@pytest.mark.parametrize("which", ["chain", "unfinished", "estimated", "stepwise", "slippery_stepwise"])
def test_the_estimated_chances_are_those_of_following_the_policy(which: str, request: pytest.FixtureRequest) -> None:
    atlas: Atlas = request.getfixturevalue(which)
    for goal in atlas.states:
        assert atlas.probability(goal, 25).estimates == pytest.approx(followed_step_by_step(atlas, goal, 25))


def test_estimates_end_where_they_are_sure_enough_or_take_too_long(chain: Atlas) -> None:
    whole = chain.probability("s5", 60).estimates
    sure = estimated_chances(chain, 5, 60, enough=0.9)
    assert sure == pytest.approx(whole[: len(sure)])
    assert sure[-2] < 0.9 <= sure[-1]
    assert len(estimated_chances(chain, 5, 60, work=20)) < 20


@pytest.mark.parametrize("steps", [-1, 1.5, True, "3"])
def test_a_number_of_steps_that_is_none_is_refused(chain: Atlas, steps: object) -> None:
    with pytest.raises(InvalidSettingError, match="steps is"):
        chain.probability("s5", steps)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------- smaller radii


@pytest.mark.parametrize("radius", [1, 2, 2.5, 3.4, 4])
def test_an_atlas_within_a_smaller_radius_keeps_the_promise_for_it(chain: Atlas, radius: float) -> None:
    part = chain.within(radius)
    inside = set(controllable_states(CHAIN, radius).states)
    outside = set(controllable_states(CHAIN, radius + chain.target.epsilon).states)
    assert set(part.states) <= outside
    missing = inside - set(part.states)
    assert all(part.describe(state).status is Status.OPEN for state in missing)  # honest about what is undecided
    assert not (part.complete and missing)
    for state in part.states:
        best = optimal_steps(CHAIN, state, allowed=part.states)
        assert part.bounds(state).lower <= best + 1e-9
        assert best <= part.bounds(state).upper + 1e-9
    for report in part.frontier:
        assert report.bounds.lower <= optimal_steps(CHAIN, report.state, allowed=part.states) + 1e-9


def test_a_part_of_an_atlas_can_be_asked_like_the_whole(chain: Atlas) -> None:
    part = chain.within(2.5)
    assert set(part.states) == {"s0", "s1", "s2"}
    assert part.complete
    assert part.why_not("s5").reason is Reason.TOO_FAR
    assert 2 in part.plan("s2")
    assert part.probability("s2", 5).lower > 0.8
    assert part.path("s2").states == ("s0", "s1", "s2")
    with pytest.raises(InvalidInputError, match="certificate"):
        axplore.verify(part)


def test_a_larger_radius_and_an_unproven_atlas_are_refused(chain: Atlas, estimated: Atlas) -> None:
    with pytest.raises(InvalidSettingError, match="larger than that of the atlas"):
        chain.within(5)
    with pytest.raises(InvalidInputError, match="nothing is proven"):
        estimated.within(2)


# ------------------------------------------------------------------------------------------------------------ reasons


def test_a_state_too_far_is_told_by_how_much(chain: Atlas) -> None:
    for number in range(6, 12):
        why = chain.why_not(f"s{number}")
        assert why.reason in (Reason.TOO_FAR, Reason.TOO_UNLIKELY)
        assert 0 < why.beyond <= 11 - 4.5
        assert why.beyond == chain.describe(f"s{number}").bounds.lower - 4.5


def test_a_state_too_unlikely_is_called_so() -> None:
    # One play in 50 leads to "rare", where 1/3 would be needed.
    model = TabularMdp.from_rows({0: {"a": {0: 0.49, 1: 0.49, "rare": 0.02}}, 1: {}, "rare": {}}, 0)
    why = axplore.explore(model, radius=3, epsilon=0.5, seed=1).why_not("rare")
    assert why.reason is Reason.TOO_UNLIKELY
    assert why.beyond > 0


def test_an_undecided_state_is_told_what_would_decide_it(unfinished: Atlas) -> None:
    undecided = [report.state for report in unfinished.frontier if report.status is Status.OPEN]
    assert undecided
    for state in undecided:
        why = unfinished.why_not(state)
        assert why.reason is Reason.UNDECIDED
        assert why.steps > 0
        assert set(why.draws) <= set(unfinished.pairs)
        assert all(times > 0 for times in why.draws.values())
        assert str(max(why.draws, key=lambda pair: why.draws[pair])[0]) in why.text


def test_members_and_strangers_are_told_apart(chain: Atlas, estimated: Atlas) -> None:
    assert chain.why_not("s3").reason is Reason.IS_IN
    assert chain.why_not("nowhere").reason is Reason.NEVER_SEEN
    assert "never seen" in chain.why_not("nowhere").text
    frontier = estimated.frontier[0].state
    assert estimated.why_not(frontier).reason is Reason.NOT_FOUND


# ---------------------------------------------------------------------------------------------- policies, data frames


def test_predict_answers_as_stable_baselines_does(chain: Atlas) -> None:
    policy = chain.policy("s5")
    assert policy.predict("s0") == (policy("s0"), None)
    assert policy.predict("s9", deterministic=False) == (RESET, None)
    numbered = axplore.explore(TabularMdp.from_rows({0: {"go": {1: 1}}, 1: {}}, 0), radius=1, epsilon=1).policy(1)
    assert numbered.predict(np.array(0)) == ("go", None)
    assert numbered.predict(np.int64(0)) == ("go", None)


def test_a_policy_runs_on_a_world_that_never_met_its_goal(chain: Atlas) -> None:
    for goal in ("s1", "s5"):
        journeys = chain.policy(goal).run(SimulatedWorld(CHAIN, 5), times=4000)
        assert journeys.arrivals == 4000
        expected = {"s1": 1.0, "s5": 4.0}[goal]
        # A journey to s5 has a standard deviation below 4 steps: five of their mean's are below 0.32.
        assert journeys.mean_steps == pytest.approx(expected, abs=0.32)


def test_a_policy_says_that_a_world_is_another_one(chain: Atlas) -> None:
    with pytest.raises(InvalidInputError, match="another world"):
        chain.policy("s5").run(SimulatedWorld(TabularMdp.from_rows({"s0": {"x": {"s0": 1}}}, "s0"), 0))
    alike = TabularMdp.from_rows({"s0": {"forward": {"s0": 1}, "skip": {"s0": 1}}}, "s0")
    with pytest.raises(InvalidInputError, match="does not lead to 's1'"):
        chain.policy("s1").run(SimulatedWorld(alike, 0))


def test_pandas_is_asked_for_by_name_where_it_is_missing(chain: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AxploreError, match="pip install pandas"):
        chain.to_pandas()


def test_a_data_frame_has_a_row_for_each_state_seen(chain: Atlas) -> None:
    pytest.importorskip("pandas")
    frame = chain.to_pandas()
    assert list(frame["state"]) == [*chain.states, *(report.state for report in chain.frontier)]
    assert list(frame[frame["in_atlas"]]["lower"]) == [chain.bounds(state).lower for state in chain.states]
    assert list(frame.columns) == [field.name for field in fields(StateRow)]


@pytest.mark.parametrize("which", ["chain", "unfinished", "estimated"])
def test_a_row_says_what_the_atlas_says_of_its_state(which: str, request: pytest.FixtureRequest) -> None:
    atlas: Atlas = request.getfixturevalue(which)
    rows = state_rows(atlas)
    assert [row.state for row in rows] == [*atlas.states, *(report.state for report in atlas.frontier)]
    for row in rows:
        report = atlas.describe(row.state)
        assert (row.lower, row.upper, row.regret) == (report.bounds.lower, report.bounds.upper, report.bounds.regret)
        assert row.reason == report.reason
        assert row.status == (report.status.value if atlas.proven else "not proven")
        assert (row.found_at is not None) == row.in_atlas == (row.state in atlas.states)
        assert json.dumps(row.as_json(), allow_nan=False)
    for row, actions in zip(rows, atlas.actions, strict=False):
        assert row.visits == sum(sum(atlas.successors(row.state, action).values()) for action in actions)


def test_tables_for_people_show_the_rows_with_headings_of_one_list(chain: Atlas, estimated: Atlas) -> None:
    assert headings_of(chain) == ("state", "lower", "upper", "regret", "by episodes", "status", "visits", "found at")
    assert headings_of(estimated) == ("state", "estimate", "status", "visits", "found at")
    assert rows_of(chain)[-1][:3] == ("s5", rounded_down(chain.lower[5]), rounded_up(chain.upper[5]))


# -------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "label",
    ["s0", "7", 7, 7.0, True, "true", None, "null", (0, 1), "[0,1]", "(0, 1)", 'say "hi"', "two\nlines", "</script>",
     "", " ", "RESET", b"\x00", frozenset({1, "1"}), "é", -1, 2**70],
)  # fmt: skip
def test_the_text_of_a_label_reads_back_as_the_label(label: object) -> None:
    again = label_of(text_of(label))
    assert again == label
    assert type(again) is type(label)


def test_a_label_may_be_written_as_python_prints_it() -> None:
    labels = [(0, 1), (1, 0), "a", "7"]
    assert named(labels, "(0, 1)", "state") == (0, 1)
    assert named(labels, "[1,0]", "state") == (1, 0)
    assert named(labels, "(1,0)", "state") == (1, 0)
    assert named([(np.int64(2), np.int64(3))], "(2, 3)", "state") == (2, 3)
    assert named(labels, "7", "state") == "7"
    with pytest.raises(UnknownStateError, match="no state named 'b'"):
        named(labels, "b", "state")


def test_infinite_estimates_are_honest(unfinished: Atlas) -> None:
    assert math.isinf(unfinished.why_not("nowhere").estimate)
