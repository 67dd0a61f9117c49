"""Compiled code that carries out orders on a known model.

States here are the model's own indices; `KernelTally.numbers` gives their indices in the order of discovery, called
numbers in this module to tell the two apart. Successors are drawn by the alias method (Walker 1977; tables by Vose
1991) from the bits of xoshiro256++ (Blackman and Vigna 2021), one word per draw; a row with one successor draws
nothing.

Why it is written like this, measured on the confusing chain:

- Indices are unsigned: a signed index is tested for being negative at every access, which costs a third of the speed.
- The words of the stream are local variables, and every kernel spells out how a transition is counted. A function
  that takes the arrays counts their references at every step, which takes ten times as long as the step itself.
- A step of a tour takes 1.7 to 2.1 times as long as a step of a visit. Most of that is reading at every play which pair
  to play: with one fixed pair it was 1.2 to 1.4 times. The nearest target is remembered: with 300
  targets it was computed 3,300 times in 26 million steps.
- The stream is our own because a `numpy.random.Generator` takes 6 ns per draw when compiled code calls it, and this
  one 1 ns.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_inner, compiled_part
from axplore.mdp import TabularMdp
from axplore.records.vectors import Vectors
from axplore.types import FloatArray, IntArray
from axplore.worlds.contract import Survey, Tour
from axplore.worlds.orders import FINELY, NEARBY

UnsignedArray: TypeAlias = npt.NDArray[np.uint64]

UNDISCOVERED: Final = np.uint64(2**64 - 1)
NO_TARGET: Final = np.uint64(2**64 - 1)
PAIRS, ENTRIES, STATES = 0, 1, 2
"""Indices into `KernelTally.totals`."""

_ONE: Final = np.uint64(1)
_UNIT: Final = 2.0**-53
_11, _17, _19, _23, _41, _45 = (np.uint64(bits) for bits in (11, 17, 19, 23, 41, 45))


class Tables(NamedTuple):
    """A known model, ready for drawing. The layout is that of `TabularMdp`.

    Attributes:
        initial: the initial state.
        state_pairs: [S + 1].
        row_offsets: [P + 1].
        successors: [T].
        thresholds: the share of its column that each entry keeps, [T].
        aliases: the entry that has the rest of that column, [T].
    """

    initial: int
    state_pairs: UnsignedArray
    row_offsets: UnsignedArray
    successors: UnsignedArray
    thresholds: FloatArray
    aliases: UnsignedArray


class KernelTally(NamedTuple):
    """The states discovered so far, and the transitions met in the current order.

    Only the elements listed in `pairs` and `entries` differ from zero, so that the cost of an order depends only on
    what it touched.

    Attributes:
        numbers: the number of each state, or UNDISCOVERED, [S].
        discovered: the states by number, [S].
        pair_draws: the number of draws from each pair, [P].
        pair_indices: the index of each pair in `pairs`, [P].
        entry_counts: the number of times each transition was met, [T].
        entry_first_draws: the draw of its pair at which it was first met, [T].
        pairs: the pairs drawn, in the order in which they were first met, [P].
        entries: the transitions met, likewise, [T].
        totals: the numbers of pairs, entries and discovered states, [3].
    """

    numbers: UnsignedArray
    discovered: UnsignedArray
    pair_draws: IntArray
    pair_indices: IntArray
    entry_counts: IntArray
    entry_first_draws: IntArray
    pairs: UnsignedArray
    entries: UnsignedArray
    totals: IntArray


class OrderProgress(NamedTuple):
    """The progress of an order.

    Attributes:
        position: the state in which the agent stands.
        steps, completed, arrivals, travelled, cuts: as in `Answer`.
        journey: steps since the last visit or play, or since the episode began.
        cuts_in_a_row: journeys cut since the last visit or play.
        over: whether the order has ended.
    """

    position: int
    steps: int = 0
    completed: int = 0
    arrivals: int = 0
    travelled: int = 0
    cuts: int = 0
    journey: int = 0
    cuts_in_a_row: int = 0
    over: bool = False


class PolicyTable(NamedTuple):
    """`Vectors` of policies in the form that kernels read."""

    rest: IntArray
    offsets: UnsignedArray
    states: UnsignedArray
    numbers: IntArray


class DistanceTable(NamedTuple):
    """`Vectors` of distances in the form that kernels read."""

    rest: FloatArray
    offsets: UnsignedArray
    states: UnsignedArray
    numbers: FloatArray


class TourArrays(NamedTuple):
    """A `Tour`, and what is left of it. A target is given by its index in `Tour.targets`.

    Plays are sorted by target, and within a target as in the order. Kernels write to the second group of attributes.

    Attributes:
        policies: [t, n]; without rows if there is a table of them.
        distances: [t, n], with n at least 1; likewise.
        policy_table, distance_table: the same as `Vectors`; without rows if there is an array of them.
        pairs: the pair of the model that each play draws from, [m].
        times: the number of times it was asked for, [m].
        target_plays: the index of the first play of each target, and the number of plays, [t + 1].

        shares: the remaining share of each play, [m].
        remaining: the number of times each play is outstanding, [m].
        outstanding: the number of plays outstanding at each target, [t].
        waiting: the target at each state, by number, or NO_TARGET if nothing is outstanding there; it ends with the
            last state that is a target.
        nearest: the nearest target of each state, if it has been computed, or NO_TARGET, [n]. It stays the nearest
            until nothing is outstanding there, because targets are only ever removed.
        heading: the target that the agent is on its way to, or NO_TARGET, [1].
    """

    policies: IntArray
    distances: FloatArray
    policy_table: PolicyTable
    distance_table: DistanceTable
    pairs: UnsignedArray
    times: IntArray
    target_plays: UnsignedArray

    shares: FloatArray
    remaining: IntArray
    outstanding: IntArray
    waiting: UnsignedArray
    nearest: UnsignedArray
    heading: UnsignedArray


class SurveyProgress(NamedTuple):
    """A `Survey`, with what is known so far. States and pairs are the model's own; kernels write to all of it.

    Attributes:
        leads_to: the state that each pair was seen to lead to, or UNPLAYED, [P].
        depths: the steps from the initial state by what is known, or TOO_DEEP, [S].
        queue: scratch for searches, [S].
        reached_by: the pair by which a search came to each state, or BY_RESET, [S].
        reached_from: the state from which it came, [S].
        searches: the last search that came to each state, [S].
        route: the pairs, or BY_RESET, to play next, the first of them last, [S + 1].
        steps: scratch for searches: the steps from where the agent stands, [S].
        nearest: from each state the nearest pair that is to be played is at least this far, [S],
        learned: if this is the number in `totals`; nothing is known otherwise, [S].
        totals: the length of the route, the number of searches, and how often states have come within the depth,
            after which `nearest` is learned anew, [3].
    """

    leads_to: IntArray
    depths: IntArray
    queue: IntArray
    reached_by: IntArray
    reached_from: IntArray
    searches: IntArray
    route: IntArray
    steps: IntArray
    nearest: IntArray
    learned: IntArray
    totals: IntArray


UNPLAYED: Final = -1
NO_PAIR: Final = -1
BY_RESET: Final = -2
TOO_DEEP: Final = 2**62
ROUTE, SEARCHES, LEARNED = 0, 1, 2
"""Places in `SurveyProgress.totals`."""

NONE_LEFT, FOUND, TOO_FAR = 0, 1, 2
"""What comes of a search for a pair that is to be played."""


def tables_of(mdp: TabularMdp) -> Tables:
    """Returns the tables of a model."""
    thresholds, aliases = alias_tables(mdp.row_offsets, mdp.probabilities)
    return Tables(
        initial=mdp.initial_index,
        state_pairs=mdp.state_pairs.astype(np.uint64),
        row_offsets=mdp.row_offsets.astype(np.uint64),
        successors=mdp.successors.astype(np.uint64),
        thresholds=thresholds,
        aliases=aliases,
    )


def new_record(mdp: TabularMdp) -> KernelTally:
    """Returns an empty record, in which only the initial state is discovered."""
    record = KernelTally(
        numbers=np.full(mdp.n_states, UNDISCOVERED, dtype=np.uint64),
        discovered=np.zeros(mdp.n_states, dtype=np.uint64),
        pair_draws=np.zeros(mdp.n_pairs, dtype=np.int64),
        pair_indices=np.zeros(mdp.n_pairs, dtype=np.int64),
        entry_counts=np.zeros(mdp.n_transitions, dtype=np.int64),
        entry_first_draws=np.zeros(mdp.n_transitions, dtype=np.int64),
        pairs=np.zeros(mdp.n_pairs, dtype=np.uint64),
        entries=np.zeros(mdp.n_transitions, dtype=np.uint64),
        totals=np.zeros(3, dtype=np.int64),
    )
    record.numbers[mdp.initial_index] = 0
    record.discovered[0] = mdp.initial_index
    record.totals[STATES] = 1
    return record


def tour_progress_of(tour: Tour, tables: Tables, record: KernelTally) -> TourArrays:
    """Returns the progress of a tour that has not begun."""
    targets = tour.targets.astype(np.int64)
    (n_targets, n_planned), policies, distances = tour.policies.shape, tour.policies, tour.distances
    waiting = np.full(targets.max(initial=-1) + 1, NO_TARGET, dtype=np.uint64)
    waiting[targets] = np.arange(n_targets)
    play_targets = waiting[tour.states].astype(np.int64)
    by_target = np.argsort(play_targets, kind="stable")
    times = tour.times.astype(np.int64)[by_target]
    first_pairs = tables.state_pairs[record.discovered[tour.states]]
    outstanding = np.zeros(n_targets, dtype=np.int64)
    np.add.at(outstanding, play_targets, tour.times.astype(np.int64))
    # Without planned states all targets are equally near.
    in_array = np.zeros((n_targets, 1)) if not n_planned else distances
    return TourArrays(
        # Kernels are compiled again for read-only arrays.
        policies=np.require(_without_table(policies), np.int64, ["C", "W"]),
        distances=np.require(_without_table(in_array), np.float64, ["C", "W"]),
        policy_table=PolicyTable(*_table_arrays(policies, np.int64)),
        distance_table=DistanceTable(*_table_arrays(distances, np.float64)),
        pairs=(first_pairs + tour.actions.astype(np.uint64))[by_target],
        times=times,
        target_plays=np.searchsorted(play_targets[by_target], np.arange(n_targets + 1)).astype(np.uint64),
        shares=np.ones(len(times)),
        remaining=times.copy(),
        outstanding=outstanding,
        waiting=waiting,
        nearest=np.full(max(n_planned, 1), NO_TARGET, dtype=np.uint64),
        heading=np.full(1, NO_TARGET, dtype=np.uint64),
    )


def _without_table(numbers: npt.NDArray[Any] | Vectors) -> npt.NDArray[Any]:
    """Returns the array; an empty array for vectors."""
    return np.zeros((0, numbers.length)) if isinstance(numbers, Vectors) else numbers


def _table_arrays(numbers: npt.NDArray[Any] | Vectors, dtype: type[np.generic]) -> tuple[npt.NDArray[Any], ...]:
    """Returns the arrays of vectors; those of none for an array."""
    vectors = numbers if isinstance(numbers, Vectors) else Vectors.of((), numbers.shape[1], dtype)
    rest, offsets, states, entries = vectors.compressed()
    return rest.astype(dtype), offsets.astype(np.uint64), states.astype(np.uint64), entries.astype(dtype)


def begun_survey(survey: Survey, tables: Tables, record: KernelTally) -> SurveyProgress:
    """Prepares a survey: the transitions that it names are known, and the depths that follow from them."""
    n_states, n_pairs = len(tables.state_pairs) - 1, len(tables.row_offsets) - 1
    progress = SurveyProgress(
        leads_to=np.full(n_pairs, UNPLAYED, dtype=np.int64),
        depths=np.full(n_states, TOO_DEEP, dtype=np.int64),
        queue=np.zeros(n_states, dtype=np.int64),
        reached_by=np.zeros(n_states, dtype=np.int64),
        reached_from=np.zeros(n_states, dtype=np.int64),
        searches=np.zeros(n_states, dtype=np.int64),
        route=np.zeros(n_states + 1, dtype=np.int64),
        steps=np.zeros(n_states, dtype=np.int64),
        nearest=np.zeros(n_states, dtype=np.int64),
        learned=np.full(n_states, -1, dtype=np.int64),
        totals=np.zeros(3, dtype=np.int64),
    )
    pairs = tables.state_pairs[record.discovered[survey.states]] + survey.actions.astype(np.uint64)
    progress.leads_to[pairs] = record.discovered[survey.successors].astype(np.int64)
    lower_depth(progress, tables.state_pairs, tables.initial, 0, int(survey.max_depth))
    return progress


@compiled
def lower_depth(survey: SurveyProgress, state_pairs: UnsignedArray, state: int, depth: int, max_depth: int) -> None:
    """Notes that a state is at most this deep, and what follows for the states that are known to come after it."""
    depths, leads_to, waiting = survey.depths, survey.leads_to, [state]
    if depth >= depths[state]:
        return
    if max_depth < depths[state] < TOO_DEEP and depth <= max_depth:
        survey.totals[LEARNED] += 1
    depths[state] = depth
    # A queue: depths only fall, and states are visited in ascending depth from here, so few are visited twice.
    first = 0
    while first < len(waiting):
        here = waiting[first]
        first += 1
        for pair in range(state_pairs[here], state_pairs[here + 1]):
            after = leads_to[pair]
            if after != UNPLAYED and depths[here] + 1 < depths[after]:
                if max_depth < depths[after] < TOO_DEEP and depths[here] + 1 <= max_depth:
                    survey.totals[LEARNED] += 1  # actions are to be played that were not: it may be nearer to them
                depths[after] = depths[here] + 1
                waiting.append(after)


@compiled_part
def find_unplayed(
    survey: SurveyProgress, state_pairs: UnsignedArray, initial: int, position: int, max_depth: int
) -> bool:
    """Writes the route to the nearest pair that is to be played, the pair included; whether there is one.

    Most are near. For those that are not, searches leave out what is known to be too far from all of them, and go
    farther until they find one. How far a state is never falls, whatever is played: what is new comes after a state
    that was itself as near as can be. So every state is searched in a few times, and not once for each action.
    """
    outcome = search_unplayed(survey, state_pairs, initial, position, max_depth, TOO_DEEP, NEARBY)
    bound = 0
    if outcome == TOO_FAR:
        bound = survey.steps[survey.queue[NEARBY - 1]]  # nothing is nearer than the last of those
    if survey.learned[position] == survey.totals[LEARNED]:
        bound = max(bound, survey.nearest[position])
    while outcome == TOO_FAR:
        outcome = search_unplayed(survey, state_pairs, initial, position, max_depth, bound, TOO_DEEP)
        bound += 1 if bound < FINELY else bound // 4
    return outcome == FOUND


@compiled_part
def first_unplayed(survey: SurveyProgress, state_pairs: UnsignedArray, state: int, max_depth: int) -> int:
    """Returns the first pair of a state that is to be played, or NO_PAIR."""
    if survey.depths[state] <= max_depth:
        for pair in range(np.int64(state_pairs[state]), np.int64(state_pairs[state + 1])):
            if survey.leads_to[pair] == UNPLAYED:
                return pair
    return NO_PAIR


@compiled_part
def search_unplayed(
    survey: SurveyProgress,
    state_pairs: UnsignedArray,
    initial: int,
    position: int,
    max_depth: int,
    bound: int,
    most: int,
) -> int:
    """Searches breadth first for a pair that is to be played: FOUND, NONE_LEFT or TOO_FAR.

    States are left out from which none is within `bound` steps of the position, so that they are on no shortest way;
    the order of the others stays. A search that looks at `most` states is given up.
    """
    leads_to, queue, searches = survey.leads_to, survey.queue, survey.searches
    reached_by, reached_from = survey.reached_by, survey.reached_from
    steps, nearest, learned, now = survey.steps, survey.nearest, survey.learned, survey.totals[LEARNED]
    # `searches` holds the number of the search that met a state last, which saves clearing an array for each search.
    survey.totals[SEARCHES] += 1
    search = survey.totals[SEARCHES]
    queue[0], steps[position] = position, 0
    searches[position] = search
    n_queued, first, is_whole = 1, 0, True
    while first < n_queued:
        here = queue[first]
        first += 1
        pair = first_unplayed(survey, state_pairs, here, max_depth)
        if pair != NO_PAIR:
            # Written backwards, from the pair to where the agent stands; it is played from its end.
            survey.route[0] = pair
            length = 1
            while here != position:
                survey.route[length] = reached_by[here]
                here = reached_from[here]
                length += 1
            survey.totals[ROUTE] = length
            return FOUND
        if first >= most:
            return TOO_FAR
        # RESET comes after all actions of a state: of equally short ways, one by actions counts (see `Survey`).
        end = np.int64(state_pairs[here + 1])
        for pair in range(np.int64(state_pairs[here]), end + 1):
            after = initial if pair == end else leads_to[pair]
            if after == UNPLAYED or searches[after] == search:
                continue
            searches[after] = search
            if steps[here] + 1 + (nearest[after] if learned[after] == now else 0) > bound:
                is_whole = False
                continue
            reached_by[after] = BY_RESET if pair == end else pair
            reached_from[after] = here
            steps[after] = steps[here] + 1
            queue[n_queued] = after
            n_queued += 1
    if is_whole:
        return NONE_LEFT
    for index in range(n_queued):
        state = queue[index]
        nearest[state], learned[state] = bound + 1 - steps[state], now
    return TOO_FAR


@compiled
def alias_tables(row_offsets: IntArray, probabilities: FloatArray) -> tuple[FloatArray, UnsignedArray]:
    """Returns thresholds and aliases, [T] each: a uniform column of a row, split by them, has its probabilities."""
    thresholds = np.full(len(probabilities), 1.0)
    aliases = np.empty(len(probabilities), dtype=np.uint64)
    for entry in range(len(probabilities)):
        aliases[entry] = entry
    widest = 0
    for row in range(len(row_offsets) - 1):
        widest = max(widest, row_offsets[row + 1] - row_offsets[row])
    small = np.empty(widest, np.int64)
    large = np.empty(widest, np.int64)
    remaining = np.empty(widest)
    for row in range(len(row_offsets) - 1):
        first = row_offsets[row]
        width = row_offsets[row + 1] - first
        n_small = n_large = 0
        for column in range(width):
            remaining[column] = probabilities[first + column] * width
            if remaining[column] < 1.0:
                small[n_small] = column
                n_small += 1
            else:
                large[n_large] = column
                n_large += 1
        # What is left over when one of the two lists runs out is 1 up to rounding, and keeps its whole column.
        while n_small > 0 and n_large > 0:
            n_small -= 1
            poor, rich = small[n_small], large[n_large - 1]
            thresholds[first + poor] = remaining[poor]
            aliases[first + poor] = first + rich
            remaining[rich] -= 1.0 - remaining[poor]
            if remaining[rich] < 1.0:
                n_large -= 1
                small[n_small] = rich
                n_small += 1
    return thresholds, aliases


@compiled_part
def next_word(
    s0: np.uint64, s1: np.uint64, s2: np.uint64, s3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Returns 64 random bits by one step of xoshiro256++, and its next state."""
    word = s0 + s3
    word = ((word << _23) | (word >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _45) | (s3 >> _19)
    return word, s0, s1, s2, s3


@compiled
def choose(
    first: np.uint64, width: np.uint64, word: np.uint64, thresholds: FloatArray, aliases: UnsignedArray
) -> np.uint64:
    """Returns the entry of a row that a random word chooses: its upper 53 bits give the column and the point in it."""
    # Always below `width`: the largest value, (1 - 2^-53) * width, rounds down.
    point = np.int64(word >> _11) * _UNIT * np.int64(width)
    column = np.int64(point)
    entry = first + np.uint64(column)
    return entry if point - column < thresholds[entry] else aliases[entry]


@compiled
def note_first(record: KernelTally, pair: np.uint64, entry: np.uint64, successor: np.uint64) -> None:
    """Records a transition met for the first time in this order; the draw of its pair has been counted already."""
    totals = record.totals
    draw = record.pair_draws[pair]
    if draw == 1:
        record.pairs[totals[PAIRS]] = pair
        record.pair_indices[pair] = totals[PAIRS]
        totals[PAIRS] += 1
    # In the order in which they were first met, which is that of the arrays of `Answer`.
    record.entries[totals[ENTRIES]] = entry
    record.entry_first_draws[entry] = draw
    totals[ENTRIES] += 1
    if record.numbers[successor] == UNDISCOVERED:
        record.numbers[successor] = totals[STATES]
        record.discovered[totals[STATES]] = successor
        totals[STATES] += 1


@compiled
def visit(
    tables: Tables,
    record: KernelTally,
    stream: UnsignedArray,
    policy: IntArray,
    target: int,
    action: int,
    times: int,
    max_journey: int,
    max_cuts: int,
    progress: OrderProgress,
    max_steps: int,
) -> OrderProgress:
    """Continues a `Visit` for at most `max_steps` steps; `target` is a state of the model.

    It is compiled once for policies [n] and once for [max_journey, n]; neither has the branches of the other.
    """
    initial, goal = np.uint64(tables.initial), np.uint64(target)
    state_pairs, row_offsets, successors = tables.state_pairs, tables.row_offsets, tables.successors
    thresholds, aliases = tables.thresholds, tables.aliases
    numbers, pair_draws, entry_counts = record.numbers, record.pair_draws, record.entry_counts
    goal_pair = state_pairs[goal] + np.uint64(action)
    planned = np.uint64(policy.shape[-1])
    # Local copies (see above), written back at the end: whoever continues the order draws on from the same point.
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    state, steps, completed, cuts = np.uint64(progress.position), progress.steps, progress.completed, progress.cuts
    journey, cuts_in_a_row = progress.journey, progress.cuts_in_a_row
    pause = steps + max_steps
    while completed < times and cuts_in_a_row < max_cuts and steps < pause:
        steps += 1
        # A policy that depends on the step is followed from the initial state only.
        if policy.ndim == 2 and journey == 0 and state != initial:
            state = initial
            continue
        if state == goal:
            pair = goal_pair
            completed += 1
            journey = cuts_in_a_row = 0
        elif journey == max_journey:
            if policy.ndim == 2 and state == initial:
                steps -= 1  # no RESET is needed where a journey starts
            state = initial
            journey = 0
            cuts += 1
            cuts_in_a_row += 1
            continue
        else:
            by_state = policy[np.uint64(journey)] if policy.ndim == 2 else policy
            journey += 1
            number = numbers[state]
            # States discovered after the order was given have no plan: the agent resets.
            if number >= planned or by_state[number] < 0:
                state = initial
                continue
            pair = state_pairs[state] + np.uint64(by_state[number])
        entry = row_offsets[pair]
        width = row_offsets[pair + _ONE] - entry
        if width > _ONE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            entry = choose(entry, width, word, thresholds, aliases)
        state = successors[entry]
        pair_draws[pair] += 1
        entry_counts[entry] += 1
        if entry_counts[entry] == 1:
            note_first(record, pair, entry, state)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    over = completed >= times or cuts_in_a_row >= max_cuts
    return OrderProgress(int(np.int64(state)), steps, completed, completed, 0, cuts, journey, cuts_in_a_row, over)


@compiled
def run_episodes(
    tables: Tables,
    record: KernelTally,
    stream: UnsignedArray,
    policy: IntArray,
    target: int,
    times: int,
    horizon: int,
    allowance: float,
    slack: float,
    always_reset: bool,
    outcomes: IntArray,
    limit: int,
    progress: OrderProgress,
    max_steps: int,
) -> OrderProgress:
    """Continues `Episodes` for about `max_steps` steps; the policy is [1, n] or [horizon, n].

    It adds to the outcomes as `Answer` has them, [horizon + 2]. After `limit` steps of all, it takes none.
    """
    initial, goal = np.uint64(tables.initial), np.uint64(target)
    state_pairs, row_offsets, successors = tables.state_pairs, tables.row_offsets, tables.successors
    thresholds, aliases = tables.thresholds, tables.aliases
    numbers, pair_draws, entry_counts = record.numbers, record.pair_draws, record.entry_counts
    staged = policy.shape[0] > 1
    planned = np.uint64(policy.shape[1])
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    state, steps, completed = np.uint64(progress.position), progress.steps, progress.completed
    arrivals, travelled, journey = progress.arrivals, progress.travelled, progress.journey
    stopped = False
    pause = steps + max_steps
    while completed < times and not stopped:
        # A RESET that begins an episode is a step of the world and not of the episode.
        if journey == 0 and (state != initial or always_reset):
            if steps >= pause:
                break
            state = initial
            steps += 1
        if state == goal or journey == horizon:
            # The index is the number of steps to the goal; the last one is for episodes that missed it.
            arrivals += state == goal
            outcomes[np.uint64(journey if state == goal else horizon + 1)] += 1
            travelled += journey
            completed += 1
            journey = 0
            stopped = travelled > completed * allowance + slack
            continue
        if steps >= limit or (steps >= pause and journey > 0):  # no pause between the RESET of an episode and its step
            break
        number = numbers[state]
        action = policy[np.uint64(journey if staged else 0), number] if number < planned else -1
        journey += 1
        steps += 1
        if action < 0:
            state = initial
            continue
        pair = state_pairs[state] + np.uint64(action)
        entry = row_offsets[pair]
        width = row_offsets[pair + _ONE] - entry
        if width > _ONE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            entry = choose(entry, width, word, thresholds, aliases)
        state = successors[entry]
        pair_draws[pair] += 1
        entry_counts[entry] += 1
        if entry_counts[entry] == 1:
            note_first(record, pair, entry, state)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return OrderProgress(
        int(np.int64(state)), steps, completed, arrivals, travelled, 0, journey, 0, completed >= times or stopped
    )


@compiled
def run_trials(
    tables: Tables,
    record: KernelTally,
    stream: UnsignedArray,
    policy: IntArray,
    times: int,
    horizon: int,
    always_reset: bool,
    goes_beyond: bool,
    most_steps: int,
    limit: int,
    progress: OrderProgress,
    max_steps: int,
) -> OrderProgress:
    """Continues `Trials` for about `max_steps` steps; the policy is [1, n] or [horizon, n].

    After `limit` steps of all, it takes none.
    """
    initial = np.uint64(tables.initial)
    state_pairs, row_offsets, successors = tables.state_pairs, tables.row_offsets, tables.successors
    thresholds, aliases = tables.thresholds, tables.aliases
    numbers, pair_draws, entry_counts = record.numbers, record.pair_draws, record.entry_counts
    last_stage, planned = policy.shape[0] - 1, np.uint64(policy.shape[1])
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    state, steps, completed = np.uint64(progress.position), progress.steps, progress.completed
    ended, journey = progress.arrivals, progress.journey
    pause = steps + max_steps
    while completed < times and (journey > 0 or steps < most_steps):
        if journey == 0 and (state != initial or always_reset):
            if steps >= pause or steps >= limit:
                break
            state = initial
            steps += 1
        number = numbers[state]
        action = policy[np.uint64(min(journey, last_stage)), number] if number < planned else -1
        if goes_beyond and number >= planned:
            fewest = np.int64(2**62)
            for other in range(state_pairs[state], state_pairs[state + _ONE]):
                if pair_draws[np.uint64(other)] < fewest:
                    fewest = pair_draws[np.uint64(other)]
                    action = np.int64(other) - np.int64(state_pairs[state])
        if action < 0 or journey == horizon:
            ended += action < 0
            completed += 1
            journey = 0
            continue
        if steps >= limit or (steps >= pause and journey > 0):
            break
        journey += 1
        steps += 1
        pair = state_pairs[state] + np.uint64(action)
        entry = row_offsets[pair]
        width = row_offsets[pair + _ONE] - entry
        if width > _ONE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            entry = choose(entry, width, word, thresholds, aliases)
        state = successors[entry]
        pair_draws[pair] += 1
        entry_counts[entry] += 1
        if entry_counts[entry] == 1:
            note_first(record, pair, entry, state)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    over = completed >= times or (journey == 0 and steps >= most_steps)
    return OrderProgress(int(np.int64(state)), steps, completed, ended, 0, completed - ended, journey, 0, over)


@compiled_inner
def number_in(table: PolicyTable | DistanceTable, target: np.uint64, state: np.uint64) -> Any:
    """Returns the number of a target and a state in a table."""
    first, end = table.offsets[target], table.offsets[target + _ONE]
    # The states of a target ascend: bisection.
    while first < end:
        middle = (first + end) >> _ONE
        if table.states[middle] < state:
            first = middle + _ONE
        else:
            end = middle
    if first < table.offsets[target + _ONE] and table.states[first] == state:
        return table.numbers[first]
    return table.rest[target]


@compiled_part
def nearest_target(tour_state: TourArrays, number: np.uint64) -> np.uint64:
    """Returns the nearest target with outstanding plays, of equal ones the first; there must be one."""
    distances, outstanding = tour_state.distances, tour_state.outstanding
    has_table, table = len(distances) == 0, tour_state.distance_table
    chosen, least = NO_TARGET, np.inf
    for index in range(len(outstanding)):
        target = np.uint64(index)
        if outstanding[target] == 0:
            continue
        distance = number_in(table, target, number) if has_table else distances[target, number]
        if chosen == NO_TARGET or distance < least:
            chosen, least = target, distance
    # Kept until that target has nothing outstanding: others only drop out, so it stays the nearest until then.
    tour_state.nearest[number] = chosen
    return chosen


@compiled
def tour(  # noqa: C901, PLR0912, PLR0915 (a function call would take longer than the step, see above)
    tables: Tables,
    record: KernelTally,
    stream: UnsignedArray,
    tour_state: TourArrays,
    times: int,
    max_journey: int,
    max_cuts: int,
    progress: OrderProgress,
    max_steps: int,
) -> OrderProgress:
    """Continues a `Tour` for at most `max_steps` steps; `times` is the sum of the plays asked for."""
    initial = np.uint64(tables.initial)
    state_pairs, row_offsets, successors = tables.state_pairs, tables.row_offsets, tables.successors
    thresholds, aliases = tables.thresholds, tables.aliases
    numbers, pair_draws, entry_counts = record.numbers, record.pair_draws, record.entry_counts
    policies, nearest, waiting = tour_state.policies, tour_state.nearest, tour_state.waiting
    policy_table, has_table = tour_state.policy_table, len(tour_state.policies) == 0
    play_pairs, target_plays, shares = tour_state.pairs, tour_state.target_plays, tour_state.shares
    remaining, outstanding, asked = tour_state.remaining, tour_state.outstanding, tour_state.times
    planned, up_to_last = np.uint64(policies.shape[1]), np.uint64(len(waiting))
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    heading = tour_state.heading[0]
    state, steps, completed, cuts = np.uint64(progress.position), progress.steps, progress.completed, progress.cuts
    journey, cuts_in_a_row = progress.journey, progress.cuts_in_a_row
    pause = steps + max_steps
    while completed < times and cuts_in_a_row < max_cuts and steps < pause:
        steps += 1
        number = numbers[state]
        target = waiting[number] if number < up_to_last else NO_TARGET
        # A play is due here. The largest remaining share is played, so that all pairs of a state progress alike.
        if target != NO_TARGET:
            play, end = target_plays[target], target_plays[target + _ONE]
            if end - play > _ONE:  # a single play has no share to compare, and a division takes as long as a draw
                for other in range(play + _ONE, end):
                    if shares[other] > shares[play]:
                        play = other
                remaining[play] -= 1
                shares[play] = remaining[play] / asked[play]
            outstanding[target] -= 1
            if outstanding[target] == 0:
                waiting[number] = NO_TARGET
            pair = play_pairs[play]
            completed += 1
            journey = cuts_in_a_row = 0
            heading = NO_TARGET
        elif journey == max_journey:
            state = initial
            journey = 0
            cuts += 1
            cuts_in_a_row += 1
            heading = NO_TARGET
            continue
        else:
            journey += 1
            if heading == NO_TARGET:
                # Where nothing is planned the agent resets, so distances from the initial state, number 0, decide.
                asking = number if number < planned else np.uint64(0)
                heading = nearest[asking]
                if heading == NO_TARGET or outstanding[heading] == 0:
                    heading = nearest_target(tour_state, asking)
            # A state without a plan, or with RESET planned.
            action = -1
            if number < planned:
                action = number_in(policy_table, heading, number) if has_table else policies[heading, number]
            if action < 0:
                state = initial
                continue
            pair = state_pairs[state] + np.uint64(action)
        entry = row_offsets[pair]
        width = row_offsets[pair + _ONE] - entry
        if width > _ONE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            entry = choose(entry, width, word, thresholds, aliases)
        state = successors[entry]
        pair_draws[pair] += 1
        entry_counts[entry] += 1
        if entry_counts[entry] == 1:
            note_first(record, pair, entry, state)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    tour_state.heading[0] = heading
    over = completed >= times or cuts_in_a_row >= max_cuts
    return OrderProgress(int(np.int64(state)), steps, completed, completed, 0, cuts, journey, cuts_in_a_row, over)


@compiled
def survey(
    tables: Tables,
    record: KernelTally,
    stream: UnsignedArray,
    known: SurveyProgress,
    max_depth: int,
    plays: int,
    progress: OrderProgress,
    max_steps: int,
) -> OrderProgress:
    """Goes on with a `Survey` for at most `max_steps` steps."""
    initial, state_pairs, row_offsets = tables.initial, tables.state_pairs, tables.row_offsets
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    state, steps, completed = progress.position, progress.steps, progress.completed
    pause, surprised, finished = steps + max_steps, False, False
    while completed < plays and not surprised and steps < pause:
        # A route is played to its end, since what is known of the way is taken for certain; then the next one is
        # searched.
        if known.totals[ROUTE] == 0 and not find_unplayed(known, state_pairs, initial, state, max_depth):
            finished = True
            break
        known.totals[ROUTE] -= 1
        chosen = known.route[known.totals[ROUTE]]
        steps += 1
        if chosen == BY_RESET:
            state = initial
            continue
        pair = np.uint64(chosen)
        entry = row_offsets[pair]
        width = row_offsets[pair + _ONE] - entry
        if width > _ONE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            entry = choose(entry, width, word, tables.thresholds, tables.aliases)
        before, state = state, int(np.int64(tables.successors[entry]))
        record.pair_draws[pair] += 1
        record.entry_counts[entry] += 1
        if record.entry_counts[entry] == 1:
            note_first(record, pair, entry, np.uint64(state))
        if known.leads_to[chosen] == UNPLAYED:
            completed += 1
            known.leads_to[chosen] = state
            lower_depth(known, state_pairs, state, known.depths[before] + 1, max_depth)
        # The assumption that every pair has one outcome is refuted, and the order ends.
        surprised = known.leads_to[chosen] != state
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    over = completed >= plays or surprised or finished
    return OrderProgress(state, steps, completed, completed, 0, 0, 0, 0, over)
