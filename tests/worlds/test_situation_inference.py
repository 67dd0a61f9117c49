from __future__ import annotations

import pytest

from axplore.statistics.dependence import log_difference
from axplore.worlds.output_models import OutputModel
from axplore.worlds.situation_inference import ANY, Met, SituationInference, Situations
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.systems.made_models import MADE
from axplore_studies.systems.output_models import model_named, situations_of, tells_all_apart

ANYWHERE, REACH = 1e9, 36.0

# A lamp that shows nothing of its switch: two presses turn it on, a third one turns it off.
LAMP = OutputModel(
    "off",
    {"off": "dark", "armed": "dark", "on": "bright"},
    {"off": {"press": {"armed": 1.0}}, "armed": {"press": {"on": 1.0}}, "on": {"press": {"off": 1.0}}},
)

COIN = OutputModel(
    "table",
    {"table": "table", "heads": "heads", "tails": "tails"},
    {
        "table": {"toss": {"heads": 0.5, "tails": 0.5}},
        "heads": {"toss": {"table": 1.0}},
        "tails": {"toss": {"table": 1.0}},
    },
)


def told(model: OutputModel, longest: int = 12, max_steps: int = 60_000, seed: int = 0) -> tuple[object, int]:
    world = SteppedWorld(model.system, seed)
    return SituationInference(world, longest, ANYWHERE, seed).propose(max_steps), world.steps


@pytest.mark.parametrize("seed", range(3))
def test_the_seven_states_of_the_car_alarm_are_told_apart_though_it_shows_two_outputs(seed: int) -> None:
    model = model_named("faulty_car_alarm")
    memory, steps = told(model, seed=seed)
    assert memory is not None
    assert tells_all_apart(model, memory)  # type: ignore[arg-type]
    assert steps < 20_000


@pytest.mark.parametrize("name", ["deterministic, 12 states", "vending machine", "coins", "random, 8 states"])
def test_models_on_which_nothing_was_tuned_are_told_apart(name: str) -> None:
    world = SteppedWorld(MADE[name].system, 1)
    inference = SituationInference(world, 12, REACH, 1)
    proposed = [inference.propose(60_000) for _ in range(2)]
    assert any(memory is not None and tells_all_apart(MADE[name], memory) for memory in proposed)


@pytest.mark.parametrize("seed", range(4))
def test_a_lock_is_told_apart_though_nothing_is_seen_until_all_letters_are_right(seed: int) -> None:
    """What a wrong letter leaves of the right ones shows only if all the others follow, as random ones hardly do."""
    world = SteppedWorld(MADE["lock"].system, seed)
    memory = SituationInference(world, 12, REACH, seed).propose(60_000)
    assert memory is not None
    assert tells_all_apart(MADE["lock"], memory)
    assert world.steps < 6_000


def test_two_situations_are_separated_by_the_shortest_way_that_is_known() -> None:
    root = Met("off", ("press",))
    for _ in range(30):
        met = root
        for output in ("dark", "dark", "bright", "dark", "dark", "bright"):
            met = met.add("press", output, ("press",))
    situations = Situations(root, 12)
    assert situations.outputs == ["off", "dark", "dark", "bright"]
    assert situations.separating(1, 2) == (("press", ANY),)
    assert situations.separating(0, 3) is None  # nothing that follows differs


def test_situations_that_no_number_of_last_outputs_tells_apart_are_found() -> None:
    """Whether the number of presses is even is in no suffix of the history."""
    flip = OutputModel(
        "even",
        {"even": "still", "odd": "still", "won": "won", "lost": "lost"},
        {
            "even": {"wait": {"odd": 1.0}, "stop": {"won": 1.0}},
            "odd": {"wait": {"even": 1.0}, "stop": {"lost": 1.0}},
            "won": {"wait": {"won": 1.0}, "stop": {"won": 1.0}},
            "lost": {"wait": {"lost": 1.0}, "stop": {"lost": 1.0}},
        },
    )
    memory, _ = told(flip)
    assert memory is not None
    assert tells_all_apart(flip, memory)  # type: ignore[arg-type]


def test_outputs_that_say_everything_are_left_alone() -> None:
    assert told(COIN)[0] is None


def test_a_history_longer_than_allowed_begins_no_situation() -> None:
    assert told(LAMP, longest=1)[0] is not None
    deep = OutputModel(
        "0",
        {**{str(number): "dark" for number in range(4)}, "4": "bright"},
        {**{str(number): {"press": {str(number + 1): 1.0}} for number in range(4)}, "4": {"press": {"4": 1.0}}},
    )
    memory, _ = told(deep)
    assert memory is not None
    assert len(memory.outputs) == 5  # type: ignore[attr-defined]
    shallow, _ = told(deep, longest=2)
    assert shallow is not None
    assert len(shallow.outputs) < 5  # type: ignore[attr-defined]
    assert any(len(states) > 1 for states in situations_of(deep, shallow).values())  # type: ignore[arg-type]


def test_a_proposal_takes_no_more_steps_than_it_may() -> None:
    world = SteppedWorld(model_named("faulty_car_alarm").system, 0)
    SituationInference(world, 12, ANYWHERE, 0).propose(500)
    assert world.steps <= 520  # the last episode ends


def test_the_same_seed_gives_the_same_memory() -> None:
    assert told(model_named("faulty_car_alarm"), seed=4) == told(model_named("faulty_car_alarm"), seed=4)


def test_histories_that_are_followed_by_the_same_are_merged() -> None:
    root = Met("a", ("x",))
    here = root
    for _ in range(40):
        here = here.add("x", "a", ("x",))
    situations = Situations(root, 12)
    assert situations.outputs == ["a"]
    assert situations.rows == [{"x": {"a": 40}}]
    assert situations.moves == {(0, "x", "a"): 0}


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [({"a": 50}, {"b": 5}, True), ({"a": 50, "b": 50}, {"a": 5, "b": 5}, False), ({"a": 9}, {"a": 2}, False)],
)
def test_two_rows_differ_if_two_distributions_explain_them_better_than_one(
    one: dict[str, int], other: dict[str, int], differs: bool
) -> None:
    assert (log_difference(one, other) > 5) == differs  # type: ignore[arg-type]
    assert log_difference(one, other) == pytest.approx(log_difference(other, one))  # type: ignore[arg-type]
