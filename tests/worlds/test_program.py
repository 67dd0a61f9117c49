from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import TabularMdp, controllable_states
from axplore.errors import InvalidSettingError, WorldError
from axplore.labels import label_of_json, named
from axplore.records.findings import FaultKind
from axplore.worlds.contract import Episodes, Tour, Visit
from axplore.worlds.program import Program, program_world
from axplore.worlds.stepped import SteppedWorld
from waiting import HANGS

EXAMPLE = Path(__file__).parents[2] / "examples" / "random_walk.sh"

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")

CYCLE = """
import json, sys
place = 0
for line in sys.stdin:
    place = 0 if "reset" in json.loads(line) else (place + 1) % 5
    print(json.dumps({"state": {"at": [place]}, "actions": ["on"]}), flush=True)
"""
"""A walk around five places."""


def says(*lines: str) -> list[str]:
    """A program that answers with these lines, whatever it is asked."""
    code = f"import sys\nfor answer in {list(lines)!r}:\n    sys.stdin.readline()\n    print(answer, flush=True)"
    return [sys.executable, "-c", code]


def place(number: int) -> Any:
    return (("at", (number,)),)


@needs_bash
def test_a_program_in_another_language_is_explored_as_its_model_says() -> None:
    slip = 0.2
    rows: dict[Any, Any] = {9: {}}
    for number in range(9):
        right, left = number + 1, max(number - 1, 0)
        rows[number] = {"left": {left: 1 - slip, right: slip}, "right": {right: 1 - slip, left: slip}}
    truth = controllable_states(TabularMdp.from_rows(rows, 0), 3.0)
    assert truth.states == (0, 1, 2)[: len(truth.states)]
    atlas = axplore.explore(f"exec:bash {EXAMPLE}", 3.0, 1.0)
    outer = controllable_states(TabularMdp.from_rows(rows, 0), 4.0)
    assert set(truth.states) <= set(atlas.states) <= set(outer.states)
    assert atlas.actions[0] == ("left", "right")


def test_states_and_actions_are_any_json_value() -> None:
    first = '{"state": {"b": [1, null], "a": true}, "actions": [{"go": 1}, ["stay"], 3]}'
    second = '{"state": "end", "terminal": true}'
    world = program_world(says(*[first] * 5, second))
    assert list(world.states) == [(("a", True), ("b", (1, None)))]
    assert world.actions_of(0) == ((("go", 1),), ("stay",), 3)
    world.carry_out([Visit(0, 0, 1, np.array([], dtype=np.int64), max_journey=1)])
    assert (world.states[1], world.actions_of(1)) == ("end", ())
    world.close()


def test_an_action_is_sent_back_as_it_was_named(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    code = f"""
import sys
for line in sys.stdin:
    open({str(asked)!r}, "a").write(line)
    print('{{"state": 1, "actions": [{{"b": [2]}}]}}', flush=True)
"""
    program = Program([sys.executable, "-c", code])
    program.reset()
    (action,) = program.actions(1)
    assert action == (("b", (2,)),)
    program.step(action)
    assert asked.read_text().splitlines() == ['{"reset": true}', '{"action": {"b": [2]}}']
    program.close()


def test_actions_left_out_are_those_of_the_answer_before() -> None:
    world = program_world(says(*['{"state": 0, "actions": ["a"]}'] * 5, '{"state": 1}'))
    world.carry_out([Visit(0, 0, 1, np.array([], dtype=np.int64), max_journey=1)])
    assert world.actions_of(1) == ("a",)
    world.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("hello", "it is not JSON"),
        ("", "it is not JSON"),
        ('{"state": NaN, "actions": []}', "NaN is not a JSON number"),
        ("__import__('os')", "it is not JSON"),
        ("[1]", "it must be an object with a state"),
        ('{"actions": []}', "it must be an object with a state"),
        ('{"state": 1}', "it must name its actions"),
        ('{"state": 1, "actions": 3}', "its actions must be a list"),
        ('{"state": 1, "actions": [1, 1]}', "its actions are not all different"),
        ('{"state": 1, "actions": [], "terminal": 1}', "terminal must be true or false"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_a_malformed_answer_is_refused_with_what_is_wrong(answer: str, message: str) -> None:
    with pytest.raises(WorldError, match=message):
        program_world(says(answer))


def test_a_program_that_says_more_than_it_was_asked_is_refused() -> None:
    with pytest.raises(WorldError, match="more than one line per request"):
        program_world(says('{"state": 1, "actions": []}\n{"state": 2}', ""))


def test_a_program_that_cannot_be_run_ends_or_is_silent_is_refused() -> None:
    with pytest.raises(WorldError, match="'no-such-program' cannot be run"):
        program_world("no-such-program --fast")
    with pytest.raises(WorldError, match="exit status 3"):
        program_world([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(WorldError, match=r"no answer within 0\.2 s"):
        program_world([sys.executable, "-c", "import time; time.sleep(60)"], step_timeout=0.2)
    with pytest.raises(InvalidSettingError, match="no command"):
        program_world("")
    with pytest.raises(InvalidSettingError, match="step_timeout"):
        program_world("true", step_timeout=0)


def test_a_state_whose_actions_change_is_refused() -> None:
    answers = ['{"state": 0, "actions": ["a"]}'] * 5 + ['{"state": 0, "actions": ["b"]}']
    world = program_world(says(*answers))
    with pytest.raises(WorldError, match="tell the two states apart"):
        world.carry_out([Visit(0, 0, 1, np.array([], dtype=np.int64), max_journey=1)])
    world.close()


def orders() -> list[Any]:
    on = np.zeros(5, dtype=np.int64)
    return [
        Visit(4, 0, 400, on, max_journey=10),
        Episodes(4, 300, 10, on),
        Tour(np.array([4, 2]), np.array([0, 0]), np.array([300, 300]), np.zeros((2, 5), dtype=np.int64),
             np.array([[4.0, 3, 2, 1, 0], [2, 1, 0, 3, 3]]), max_journey=10),
    ]  # fmt: skip


def test_a_program_killed_in_the_middle_of_an_order_costs_no_run_and_no_wrong_count() -> None:
    class Killed(Program):
        """Is killed as it takes its 900th step."""

        taken = 0

        def step(self, action: Any) -> Any:
            self.taken += 1
            if self.taken == 900:
                os.kill(self.pid, signal.SIGKILL)
            return super().step(action)

    with SteppedWorld(lambda: Killed([sys.executable, "-c", CYCLE])) as world:
        for number in range(4):
            world.carry_out([Visit(number, 0, 1, np.zeros(number, dtype=np.int64), max_journey=10)])
        answers = world.carry_out(orders())
    assert len(world.faults) > 2
    assert {fault.kind for fault in world.faults} == {FaultKind.DIED}
    assert "SIGKILL" in world.faults[0].message
    assert list(world.states) == [place(number) for number in range(5)]
    assert [answer.completed for answer in answers] == [400, 300, 600]
    for answer in answers:
        # Each place leads to the next, and nothing was counted that did not happen.
        sources = answer.pair_states[answer.entry_pairs]
        np.testing.assert_array_equal(answer.entry_successors, (sources + 1) % 5)
        np.testing.assert_array_equal(answer.entry_counts, answer.pair_draws[answer.entry_pairs])
        assert answer.pair_draws.sum() <= answer.steps


def test_a_program_that_hangs_is_killed_and_started_again(tmp_path: Path) -> None:
    mark = tmp_path / "hung"
    code = CYCLE.replace(
        "    print(",
        f"    import os, time\n    if place == 3 and not os.path.exists({str(mark)!r}):\n"
        f"        open({str(mark)!r}, 'w').close(); time.sleep(100)\n    print(",
    )
    world = program_world([sys.executable, "-c", code], step_timeout=HANGS)
    for number in range(3):
        (answer,) = world.carry_out([Visit(number, 0, 1, np.zeros(number, dtype=np.int64), max_journey=10)])
        assert answer.completed == 1
    assert [fault.kind for fault in world.faults] == [FaultKind.TIMED_OUT]
    assert list(world.states) == [place(number) for number in range(4)]
    world.close()


def test_a_closed_world_leaves_no_process(tmp_path: Path) -> None:
    started = tmp_path / "pids"
    code = f"import os; open({str(started)!r}, 'w').write(str(os.getpid()))\n{CYCLE}"
    program_world([sys.executable, "-c", code]).close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_world_made_by_explore_is_closed_by_it(tmp_path: Path) -> None:
    started = tmp_path / "pids"
    code = f"import os; open({str(started)!r}, 'w').write(str(os.getpid()))\n{CYCLE}"
    script = tmp_path / "cycle.py"
    script.write_text(code)
    axplore.explore(f"exec:{sys.executable} {script}", 1, 1.0, max_steps=20)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


@pytest.mark.parametrize(
    ("value", "label"),
    [([1, [2]], (1, (2,))), ({"b": [], "a": None}, (("a", None), ("b", ()))), (1.5, 1.5), ("x", "x")],
)
def test_json_becomes_hashable(value: Any, label: Any) -> None:
    assert label_of_json(value) == label
    hash(label_of_json(value))


def test_an_object_and_the_list_of_its_names_and_values_are_not_taken_for_one_state() -> None:
    program = Program(says('{"state": {"k": 1}, "actions": ["a"]}', '{"state": [["k", 1.0]]}'))
    assert program.reset() == (("k", 1),)
    with pytest.raises(WorldError, match="have the same label"):
        program.step("a")
    program.close()


def test_a_state_may_be_named_as_the_program_writes_it() -> None:
    states = [(("c", 2), ("v", "idle")), (("c", 3), ("v", "idle"))]
    assert named(states, '{"v": "idle", "c": 3}', "state") == states[1]
