"""A map to commit beside tests: what was drawn, as one small file that people can read and merge.

    {
      "format": "axplore map", "version": 1, ...
      "draws": {
        "checkout": {
          "pay": {"thanks": [114, 1], "error": [6, 12]}
        }
      }
    }

`pay` in `checkout` led to `thanks` 114 times, first at draw 1, and to `error` 6 times, first at draw 12. States stand
in the order in which they were admitted, on which their levels depend. Everything that the atlas said is computed again
from these counts, so the file holds no claim that could be edited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore import storage
from axplore.arguments import real
from axplore.errors import DamagedFileError, InvalidInputError
from axplore.labels import label_of, shortened, text_of
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.statistics.counts import check_counts
from axplore.target import Objective, Target
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas
    from axplore.explorers.certified import Certified

FORMAT: Final = "axplore map"
VERSION: Final = 1

MOST_DRAWS: Final = 2**53
"""Of an outcome; larger numbers are not exact in every reader of JSON."""

KEYS: Final = ("format", "version", "world", "radius", "epsilon", "delta", "objective", "steps", "draws")


@dataclass(frozen=True, eq=False)
class CommittedMap:
    """What a map holds.

    Attributes:
        world: the name of the world.
        target, objective: what was asked for.
        steps: the steps that exploring took.
        counts: what was drawn; all states with draws were admitted, in this order.
    """

    world: str
    target: Target
    objective: Objective
    steps: int
    counts: Counts

    @property
    def explorer(self) -> Certified:
        """The explorer that made it, as far as proofs depend on it."""
        from axplore.explorers.certified import Certified

        return Certified(target=self.target, objective=self.objective, by_episodes=False)

    def atlas(self) -> Atlas:
        """Returns the atlas of the map: what its counts prove."""
        from axplore.atlas.construction import atlas_of
        from axplore.worlds.recorded import RecordedWorld

        world = RecordedWorld(self.counts, self.steps)
        state = self.explorer.resting_on(self.counts, tuple(self.counts.states.tolist()), self.steps)
        exploration = self.explorer.finish(replace(state, stop=StopReason.PROVEN), world)
        return atlas_of(exploration, world, world_name=self.world, explorer_name=type(self.explorer).__name__)


def map_of(atlas: Atlas) -> CommittedMap:
    """Returns the map of an atlas; refuses one whose proofs rest on more than counts."""
    if atlas.certificate is None or atlas.objective is None:
        raise InvalidInputError("a map is made of an atlas of the certified explorer; this one proves nothing")
    if atlas.tests or atlas.assumed is not None or atlas.memory is not None:
        raise InvalidInputError(
            "a map holds counts alone, and this atlas rests on more: on tests by episodes, assumptions or a memory"
        )
    return CommittedMap(atlas.world, atlas.target, atlas.objective, atlas.steps, atlas.counts)


def write_map(committed: CommittedMap, path: Path) -> None:
    """Writes a map, atomically, in folders made for it where they are missing."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "world": committed.world,
        "radius": committed.target.radius,
        "epsilon": committed.target.epsilon,
        "delta": committed.target.delta,
        "objective": committed.objective.name.lower().replace("_", "-"),
        "steps": committed.steps,
    }
    lines = [f"  {_text(name)}: {_text(value)}," for name, value in head.items()]
    content = "\n".join(["{", *lines, '  "draws": {', *_state_lines(committed.counts), "  }", "}", ""])
    with storage.storage_errors(f"the map {path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.replace_file(path, content.encode("utf-8"))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _state_lines(counts: Counts) -> Iterator[str]:
    """Yields the lines of the draws: one for each pair."""
    offsets, pair = counts.row_offsets.tolist(), 0
    for index, (number, actions) in enumerate(zip(counts.states.tolist(), counts.actions, strict=True)):
        comma = "" if index == len(counts.states) - 1 else ","
        name = _text(text_of(counts.order[number]))
        rows = []
        for action in actions:
            entries = range(offsets[pair], offsets[pair + 1])
            outcomes = {
                text_of(counts.order[int(counts.successors[entry])]):
                [int(counts.counts[entry]), int(counts.first_draws[entry])]
                for entry in entries
            }  # fmt: skip
            rows.append(f"      {_text(text_of(action))}: {_text(outcomes)}")
            pair += 1
        yield from (f"    {name}: {{", ",\n".join(rows), f"    }}{comma}") if rows else (f"    {name}: {{}}{comma}",)


def read_map(path: Path) -> CommittedMap:
    """Reads a map; refuses a file that is missing, damaged, of another version, or that no exploration can have made.

    Raises:
        StorageError: it cannot be read.
        DamagedFileError: it is not a map.
    """
    body = storage.read_json(path)
    storage.check_format(path, body, FORMAT, VERSION)
    try:
        return _map_in(body)
    except InvalidInputError as error:
        raise DamagedFileError(f"the map {path} is damaged: {error}") from None


def _map_in(body: Mapping[str, Any]) -> CommittedMap:
    if set(body) != set(KEYS):
        raise InvalidInputError(f"it needs {', '.join(KEYS)}, and nothing else")
    objectives = {objective.name.lower().replace("_", "-"): objective for objective in Objective}
    if not isinstance(body["world"], str) or not isinstance(body["objective"], str):
        raise InvalidInputError("'world' or 'objective' is not text")
    if body["objective"] not in objectives:
        raise InvalidInputError(f"there is no objective {shortened(body['objective'])}")
    target = Target(**{name: real()(name, body[name]) for name in ("radius", "epsilon", "delta")})
    counts = _counts_in(body["draws"])
    steps = _whole(body["steps"], int(counts.counts.sum()))
    return CommittedMap(body["world"], target, objectives[body["objective"]], steps, counts)


def _counts_in(draws: Any) -> Counts:
    """Returns the counts; states are numbered in the order in which they were admitted, then by appearance."""
    numbers: dict[State, int] = {_label(text): number for number, text in enumerate(_table(draws, "draws"))}
    if not numbers:
        raise InvalidInputError("it has no state")
    actions: list[Labels] = []
    entries: list[tuple[int, int, int]] = []
    row_offsets = [0]
    for state, rows in draws.items():
        offered: list[Action] = []
        for action, outcomes in _table(rows, state).items():
            offered.append(_label(action))
            drawn_before = 0
            for outcome, (times, first_draw) in _outcomes(outcomes, action):
                if first_draw > drawn_before + 1:
                    raise InvalidInputError(f"{shortened(outcome)} cannot come first at draw {first_draw}")
                entries.append((numbers.setdefault(outcome, len(numbers)), times, first_draw))
                drawn_before += times
            row_offsets.append(len(entries))
        actions.append(Labels(offered))
    columns = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
    states = np.arange(len(actions), dtype=np.int64)
    counts = Counts(Labels(numbers), tuple(actions), states, np.array(row_offsets, dtype=np.int64), *columns)
    check_counts(counts)
    return counts


def _outcomes(outcomes: Any, action: str) -> Iterator[tuple[State, tuple[int, int]]]:
    """Yields the outcomes of an action, each with how often it came, and at which draw first."""
    for outcome, drawn in _table(outcomes, action).items():
        if not isinstance(drawn, list) or len(drawn) != 2:
            raise InvalidInputError(f"{shortened(drawn)} is not [times, first draw]")
        yield _label(outcome), (_whole(drawn[0], 1), _whole(drawn[1], 1))


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInputError(f"{shortened(name)} is not a table by name")
    return value


def _label(text: str) -> State:
    label = label_of(text)
    if text_of(label) != text:
        raise InvalidInputError(f"{shortened(text)} is not how a label is written")
    return label


def _whole(value: Any, least: int) -> int:
    if type(value) is not int or not least <= value <= MOST_DRAWS:
        raise InvalidInputError(f"{shortened(value)} is not a whole number of at least {least}")
    return value
