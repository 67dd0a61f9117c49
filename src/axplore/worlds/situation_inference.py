"""Finds the situations of a system that share an output and can be told apart by what came before.

The system is played from RESET, again and again, and a tree keeps what followed each history of actions and outputs.
Histories are then merged into situations, the shortest first: a history is taken for a situation with the same output
unless what followed the two differs clearly, here or anywhere later (state merging as in ALERGIA: Carrasco, Oncina
1994; Mao et al. 2016). What followed merged histories is pooled. Where draws are lacking to merge or to tell apart, the
next episodes lead there, and then play what was played least.

The result is a proposal. Nothing rests on how it was found: labels are a function of the history whatever it says, and
exploring begins anew with them, on draws of its own. Whether they say all that matters is for the tests of
`axplore.worlds.hindsight` and `axplore.atlas.replays` to judge.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import cycle
from typing import Final, TypeAlias

from axplore.memory import History, Memory, memory_of
from axplore.statistics.dependence import log_difference
from axplore.types import Action, State
from axplore.worlds.contract import Examinable

CLEAR: Final = 5.0
"""Rows of two histories differ clearly from this logarithm of a Bayes factor on, beside that of the number of rows."""

FEWEST_STEPS: Final = 4_000
FEWEST_PLAYS: Final = 30
FEWEST_PASSES: Final = 12
"""What a first proposal rests on: steps in all, plays of each action in each situation, passes from one situation to
the next. A further proposal has twice of each."""

MOST_PLAYS: Final = 400
"""After this many plays of an action, no more are made for the sake of its rare outcomes."""

MOST_REPEATS: Final = 50
"""A history that ended with a rare outcome is tried again about this many times."""

AMBIGUOUS_FACTOR: Final = 4
"""The factor of passes where several situations could follow."""

GROWTH: Final = 1.15
"""The factor of steps from one round to the next."""

SMALLEST_ROUND: Final = 200

STEADY_ROUNDS: Final = 3
"""The number of situations has to be the same for this many rounds."""

LONGEST_TAIL: Final = 6
"""An episode plays at most this many actions after it has arrived where draws are lacking."""

EPISODES_IN_A_ROW: Final = 2

LEAST_DECIDED: Final = 5
"""The number of least-sampled moves to replay, beside random walks, where no draws are lacking."""

LONGEST_SEPARATION: Final = 8
LIKELY: Final = 0.1
"""Two situations are told apart by at most this many actions, through outputs that are at least this likely in both."""

Row: TypeAlias = dict[State, int]
"""How often each output followed."""

Move: TypeAlias = tuple[int, Action, State]
"""A situation, an action, and the output that followed."""


Way: TypeAlias = History
"""What to play from RESET on, and which output to expect each time, or `ANY`."""

ANY: Final = object()


class Met:
    """What followed a history.

    Attributes:
        output: the last output of the history.
        actions: the actions offered then.
        visits: how often the history was met.
        later: the longer histories, by action and output.
        before: the history that is shorter by one action, and that action; None for the empty one.
    """

    __slots__ = ("actions", "before", "later", "output", "visits")

    def __init__(
        self, output: State, actions: tuple[Action, ...] = (), before: tuple[Met, Action] | None = None
    ) -> None:
        self.output, self.actions, self.before = output, actions, before
        self.visits = 0
        self.later: dict[Action, dict[State, Met]] = {}

    def add(self, action: Action, output: State, offered: tuple[Action, ...]) -> Met:
        """Counts an action with its output, and returns the longer history."""
        by_output = self.later.setdefault(action, {})
        longer = by_output.get(output)
        if longer is None:
            longer = by_output[output] = Met(output, offered, (self, action))
        longer.visits += 1
        return longer

    @property
    def history(self) -> History:
        """The history itself."""
        pairs: list[tuple[Action, State]] = []
        met = self
        while met.before is not None:
            shorter, action = met.before
            pairs.append((action, met.output))
            met = shorter
        return tuple(reversed(pairs))

    def plays_of(self, action: Action) -> int:
        """Returns how often an action was played."""
        return sum(longer.visits for longer in self.later.get(action, {}).values())


class Situations:
    """Histories merged into situations; the first one is where RESET leads.

    Attributes:
        outputs: what is seen in each.
        actions: the actions of each.
        rows: how often each output followed each action, by situation and action.
        histories: the shortest history that leads to each.
        moves: the situation that each move leads to.
        examples: a history that ends with each move.
        ambiguous: the moves that might as well lead to another situation, each with all that they may lead to, of
            which the first is taken.
        decided_on: the number of draws from which it was decided where each move leads.
    """

    def __init__(self, root: Met, longest: int) -> None:
        """Merges all histories of a tree.

        Args:
            root: the tree.
            longest: the largest number of outputs of a history that may begin a situation of its own; beyond it, a
                history is merged with whatever it differs from least.
        """
        self.outputs: list[State] = []
        self.actions: list[tuple[Action, ...]] = []
        self.rows: list[dict[Action, Row]] = []
        self.histories: list[History] = []
        self.moves: dict[Move, int] = {}
        self.examples: dict[Move, Met] = {}
        self.ambiguous: dict[Move, list[int]] = {}
        self.decided_on: dict[Move, int] = {}
        self._waiting: dict[Move, list[Met]] = {}
        self._queue: list[tuple[int, int, Move]] = []
        self._longest = longest
        self._begin(root, ())
        self._fold(0, [root])
        while self._queue:
            _, _, move = heappop(self._queue)
            self.decided_on[move] = sum(met.visits for met in self._waiting[move])
            target = self._target(move)
            self.moves[move] = target
            self._fold(target, self._waiting.pop(move))

    def as_memory(self) -> Memory | None:
        """Returns the situations as a memory; None if every output has only one."""
        draws = {(here, action, output): self.rows[here][action][output] for here, action, output in self.moves}
        return memory_of(self.outputs, self.histories, self.moves, draws)

    def distances(self) -> tuple[dict[int, float], dict[int, Move]]:
        """Returns the steps to each situation along its likeliest way, and the last move of that way.

        A move that comes one time in n counts n steps.
        """
        steps, last, queue = {0: 0.0}, dict[int, Move](), [(0.0, 0)]
        while queue:
            so_far, situation = heappop(queue)
            if so_far > steps[situation]:
                continue
            for action, row in self.rows[situation].items():
                plays = sum(row.values())
                for output, times in row.items():
                    move = situation, action, output
                    target, there = self.moves[move], so_far + plays / times
                    if there < steps.get(target, math.inf):
                        steps[target], last[target] = there, move
                        heappush(queue, (there, target))
        return steps, last

    def separating(self, one: int, other: int) -> Way | None:
        """Returns the shortest way from either of two situations to an action that is known to tell them apart.

        None if there is none among ways of outputs that are likely in both.
        """
        queue: deque[tuple[int, int, Way]] = deque([(one, other, ())])
        met = {(one, other)}
        while queue:
            here, there, way = queue.popleft()
            if len(way) > LONGEST_SEPARATION:
                return None
            for action, row in self.rows[here].items():  # in an order that does not depend on hashes
                rows = row, self.rows[there].get(action, {})
                if not rows[1]:
                    continue
                if log_difference(*rows) > CLEAR:
                    return (*way, (action, ANY))
                for output in filter(rows[1].__contains__, row):
                    after = self.moves[here, action, output], self.moves[there, action, output]
                    likely = all(counts[output] >= LIKELY * sum(counts.values()) for counts in rows)
                    if likely and after not in met and after[0] != after[1]:
                        met.add(after)
                        queue.append((*after, (*way, (action, output))))
        return None

    def _begin(self, met: Met, history: History) -> int:
        self.outputs.append(met.output)
        self.actions.append(met.actions)
        self.rows.append({})
        self.histories.append(history)
        return len(self.outputs) - 1

    def _target(self, move: Move) -> int:
        """Returns the situation that a move leads to, which may be a new one."""
        source, action, output = move
        clear = CLEAR + math.log(1 + sum(map(len, self.rows)))
        compared = [
            (self._difference(move, number, clear), number)
            for number, seen in enumerate(self.outputs)
            if seen == output
        ]
        (is_clear, _), nearest = min(compared, default=((True, 0.0), -1))
        if is_clear and (not compared or len(self.histories[source]) < self._longest):
            return self._begin(self._waiting[move][0], (*self.histories[source], (action, output)))
        alike = [number for (differs, _), number in sorted(compared) if not differs]
        if len(alike) > 1:
            self.ambiguous[move] = alike
        return nearest

    def _fold(self, situation: int, histories: Iterable[Met]) -> None:
        """Adds what followed histories to a situation and to those after it, as far as these are known."""
        stack = [(situation, met) for met in histories]
        while stack:
            here, met = stack.pop()
            for action, by_output in met.later.items():
                row = self.rows[here].setdefault(action, {})
                for output, longer in by_output.items():
                    row[output] = row.get(output, 0) + longer.visits
                    move = here, action, output
                    self.examples.setdefault(move, longer)
                    if move in self.moves:
                        stack.append((self.moves[move], longer))
                        continue
                    if move not in self._waiting:
                        self._waiting[move] = []
                        heappush(self._queue, (len(self.histories[here]), len(self.moves) + len(self._waiting), move))
                    self._waiting[move].append(longer)

    def _difference(self, move: Move, candidate: int, clear: float) -> tuple[bool, float]:
        """Returns whether what followed a move differs clearly from a situation, and by how much in all.

        If the move leads to the situation, then all later rows are draws from those of the situations that they would
        lead to. They are compared with these level by level, so that most differences are seen at once.
        """
        pooled: dict[Place, dict[Action, Row]] = {}
        known = _Known(self, move, candidate, self._waiting)
        level: list[tuple[Place, Met]] = [(candidate, met) for met in self._waiting[move]]
        while level:
            touched: dict[tuple[Place, Action], Row] = {}
            following: list[tuple[Place, Met]] = []
            for place, met in level:
                rows = pooled.setdefault(place, {})
                for action, by_output in met.later.items():
                    row = touched[place, action] = rows.setdefault(action, {})
                    for output, longer in by_output.items():
                        row[output] = row.get(output, 0) + longer.visits
                        after = known.after(place, action, output)
                        if after is not None:
                            following.append((after, longer))
            for (place, action), row in touched.items():
                gain = log_difference(row, known.row(place, action))
                if gain > clear:
                    return True, gain
            level = following
        return False, sum(
            log_difference(row, known.row(place, action))
            for place, rows in pooled.items()
            for action, row in rows.items()
        )


Place: TypeAlias = "int | tuple[Place, Action, State]"
"""A situation, or what comes after a move whose target is not known yet."""


class _Known:
    """What is known to follow situations, and moves whose target is not known yet."""

    def __init__(self, situations: Situations, move: Move, candidate: int, waiting: dict[Move, list[Met]]) -> None:
        self._situations, self._move, self._candidate = situations, move, candidate
        self._histories: dict[Place, list[Met]] = dict(waiting)  # type: ignore[arg-type]
        self._rows: dict[tuple[Place, Action], Row] = {}

    def after(self, place: Place, action: Action, output: State) -> Place | None:
        """Returns where a move leads; None if nothing is known of what comes after it."""
        move = place, action, output
        if isinstance(place, int):
            if move == self._move:
                return self._candidate
            target = self._situations.moves.get((place, action, output))
            if target is not None:
                return target
            return move if move in self._histories else None
        if move not in self._histories:
            longer = (met.later.get(action, {}).get(output) for met in self._histories[place])
            self._histories[move] = [met for met in longer if met is not None]
        return move if self._histories[move] else None

    def row(self, place: Place, action: Action) -> Row:
        """Returns how often each output is known to have followed an action."""
        if isinstance(place, int):
            return self._situations.rows[place].get(action, {})
        row = self._rows.get((place, action))
        if row is None:
            row = self._rows[place, action] = {}
            for met in self._histories[place]:
                for output, longer in met.later.get(action, {}).items():
                    row[output] = row.get(output, 0) + longer.visits
        return row


class SituationInference:
    """Plays a system, and proposes memories for it, each on more draws than the one before."""

    def __init__(
        self,
        world: Examinable,
        longest: int,
        reach: float,
        seed: int,
        merge: Callable[[Met], Memory | None] | None = None,
        effort: int = 1,
    ) -> None:
        """Begins without any draw.

        Args:
            world: the system, with its own labels. Its steps are counted.
            longest: the largest number of outputs of a history that may begin a situation of its own.
            reach: the number of steps beyond which situations need not be told apart.
            seed: of what is played.
            merge: makes the memory of all histories met, in place of `Situations`, which then only say where draws are
                lacking.
            effort: the factor of the draws of the first proposal.
        """
        self._world, self._longest, self._reach, self._merge = world, longest, reach, merge
        self._random = random.Random(seed)
        self._root: Met | None = None
        self._repeats: Counter[Hashable] = Counter()
        self._effort = effort

    def propose(self, max_steps: int) -> Memory | None:
        """Returns a memory; None if no output is told apart by its history.

        Args:
            max_steps: the largest number of steps to take.
        """
        first = self._world.steps
        situations = self._situations()
        n_before, steady = 0, 0
        while self._world.steps < first + max_steps:
            lacking = self._lacking(situations)
            enough = self._world.steps - first >= FEWEST_STEPS * self._effort
            if enough and not lacking and steady >= STEADY_ROUNDS:
                break
            taken = self._world.steps - first
            self._play(
                lacking or self._least_decided(situations),
                first + min(max(int(taken * GROWTH), taken + SMALLEST_ROUND), max_steps),
            )
            n_before, situations = len(situations.outputs), self._situations()
            steady = steady + 1 if len(situations.outputs) == n_before else 0
        self._effort *= 2
        if self._merge is None or self._root is None:
            return situations.as_memory()
        return self._merge(self._root)

    def _situations(self) -> Situations:
        if self._root is None:
            self._walk((), 0)
        assert self._root is not None
        return Situations(self._root, self._longest)

    def _lacking(self, situations: Situations) -> list[Way]:
        """Returns the ways to where draws are lacking, those first where most are.

        To a move that was made too seldom there are two: by the situations before it, and as it was met once. If they
        are not the same, then what was met once may have been taken for a situation that it is not.
        """
        steps, last = situations.distances()
        found: list[tuple[float, float, Way]] = []
        for situation, distance in steps.items():
            if distance > self._reach:
                continue
            way: list[tuple[Action, State]] = []
            here = situation
            while here:
                here, *played = last[here]
                way.insert(0, (played[0], played[1]))
            for action in situations.actions[situation]:
                row = situations.rows[situation].get(action, {})
                plays = sum(row.values())
                share = plays / (FEWEST_PLAYS * self._effort)
                if share < 1:
                    found.append((share, distance, (*way, (action, ANY))))
                for output, times in row.items():
                    move = situation, action, output
                    factor = AMBIGUOUS_FACTOR if move in situations.ambiguous else 1
                    share = times / (FEWEST_PASSES * factor * self._effort)
                    too_rare = plays > MOST_PLAYS * self._effort or distance + plays / times > self._reach
                    planned, example = (*way, (action, output)), situations.examples[move]
                    decided = situations.decided_on[move] / (FEWEST_PASSES * factor * self._effort)
                    if decided < 1 and not too_rare and self._repeats[move] < MOST_REPEATS * self._effort:
                        found.append((decided, distance, (*situations.histories[situation], (action, output))))
                        self._repeats[move] += EPISODES_IN_A_ROW
                    if share < 1 and not too_rare:
                        found.append((share, distance, planned))
                    if min(share, decided) >= 1 and not too_rare and move in situations.ambiguous:
                        found += self._separations(situations, move, distance)
                    if share < 1 and self._repeats[example] < MOST_REPEATS * self._effort:
                        history = example.history
                        if history != planned:
                            found.append((share, distance, history))
                            self._repeats[example] += EPISODES_IN_A_ROW
        found.sort(key=lambda entry: entry[:2])
        return [way for _, _, way in found]

    def _least_decided(self, situations: Situations) -> list[Way]:
        """Returns a random walk, and the ways along those moves of which it was decided on the fewest draws."""
        steps, _ = situations.distances()
        moves = [move for move in situations.moves if steps.get(move[0], math.inf) <= self._reach]
        moves.sort(key=situations.decided_on.__getitem__)
        return [
            (),
            *((*situations.histories[here], (action, output)) for here, action, output in moves[:LEAST_DECIDED]),
        ]

    def _separations(self, situations: Situations, move: Move, distance: float) -> Iterator[tuple[float, float, Way]]:
        """Yields ways along a move that might lead to several situations, and on to what tells these apart.

        Random actions would hardly ever find a long one: a lock looks the same until all of its letters were right.
        """
        source, *played = move
        nearest, *others = situations.ambiguous[move]
        for other in others:
            onward = situations.separating(nearest, other)
            if onward is not None and self._repeats[move, onward] < MOST_REPEATS * self._effort:
                self._repeats[move, onward] += EPISODES_IN_A_ROW
                yield 1.0, distance, (*situations.histories[source], (played[0], played[1]), *onward)

    def _play(self, lacking: list[Way], until: int) -> None:
        """Plays episodes to where draws are lacking, until a number of steps."""
        for way in cycle(lacking):
            for _ in range(EPISODES_IN_A_ROW):
                if self._world.steps >= until:
                    return
                self._walk(way, self._random.randint(1, LONGEST_TAIL))

    def _walk(self, way: Way, tail: int) -> None:
        """Plays one episode: along a way while the outputs are those expected, and then what was played least."""
        met: Met | None = None
        ahead, left = iter(way), tail
        expected: tuple[Action, State] | None = None
        played: Action = None

        def choose(output: State, offered: tuple[Action, ...]) -> Action | None:
            nonlocal met, expected, played, left
            if met is None:
                met = self._root = self._root or Met(output, offered)
                met.visits += 1
                expected = next(ahead, None)
            else:
                met = met.add(played, output, offered)
                expected = next(ahead, None) if expected is not None and expected[1] in (output, ANY) else None
            left -= expected is None
            if left < 0 or not offered:
                return None
            played = self._least_played(met) if expected is None else expected[0]
            return played

        self._world.walk(choose)

    def _least_played(self, met: Met) -> Action:
        if self._random.random() < 0.2:
            return self._random.choice(met.actions)
        return min(met.actions, key=lambda action: (met.plays_of(action), self._random.random()))
