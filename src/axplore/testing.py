"""For tests of yours: assertions about systems (docs/pytest.md), and checks of worlds and explorers of your own.

from axplore.testing import check_explorer, check_world

def test_my_world_keeps_the_contract():
    check_world(lambda: MyWorld(seed=1))

def test_my_explorer_keeps_the_contract():
    check_explorer(MyExplorer(target=Target(radius=2, epsilon=1)))
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import cloudpickle
import numpy as np

from axplore.assertions import assert_never, assert_reaches, assert_unchanged
from axplore.errors import BrokenContractError, InvalidOrderError, InvalidSettingError, UnknownStateError
from axplore.explorers.base import Explorer
from axplore.runs.checkpoints import SavedState, decode_state, encode_state
from axplore.types import RESET_ACTION, IntArray
from axplore.worlds.contract import (
    NOWHERE,
    Answer,
    Episodes,
    Order,
    Replicable,
    Resumable,
    Survey,
    Tour,
    Trials,
    Visit,
    World,
    WorldSnapshot,
    snapshot_of,
)

__all__ = ["assert_never", "assert_reaches", "assert_unchanged", "check_explorer", "check_world"]

ROUNDS: Final = 4
"""Calls of `carry_out` with orders of all kinds, each to states that the ones before have discovered."""

TIMES: Final = 5
MAX_JOURNEY: Final = 12
MAX_CUTS: Final = 2
"""What each order asks for: little, so that slow systems can be checked too."""

MAX_PAIRS: Final = 4
"""Pairs that one call names."""


def check_explorer(explorer: Explorer[Any], rounds: int = 5) -> None:
    """Checks that an explorer keeps the contract of `axplore.explorers`, on a small simulated world.

    Args:
        explorer: a configuration.
        rounds: the number of rounds to run.

    Raises:
        BrokenContractError: the explorer breaks the contract; the message says where.
    """
    from axplore.domains import slippery_grid
    from axplore.worlds.simulated import SimulatedWorld

    _require(isinstance(explorer, Explorer), f"{explorer!r} is no axplore.explorers.Explorer: inherit from it")
    _require(is_dataclass(explorer), f"{type(explorer).__name__} is no dataclass: its fields are its options")
    world = SimulatedWorld(slippery_grid(rows=3, columns=3), 1)
    state = explorer.start(world)
    _require(world.steps == 0, "`start` takes steps; leave them to `advance`")
    _require(state.known[:1] == (0,), "the initial state, 0, must be the first known one")
    for _ in range(rounds):
        if state.stop is not None:
            break
        before = encode_state(state, explorer)
        after = explorer.advance(state, world)
        _require(_same_codes(before, encode_state(state, explorer)), "`advance` changes the state that it is given")
        result = explorer.finish(after, world)
        _require(len(result.states) == len(after.known), "`finish` returns other states than the known ones")
        again = encode_state(decode_state(encode_state(after, explorer), explorer, snapshot_of(world)), explorer)
        _require(_same_codes(again, encode_state(after, explorer)), "a state read from a checkpoint is another one")
        state = after


def _same_codes(left: SavedState, right: SavedState) -> bool:
    """Returns whether two saved states are the same: JSON, and arrays by name."""
    return (
        left.content == right.content
        and left.arrays.keys() == right.arrays.keys()
        and all(np.array_equal(left.arrays[name], right.arrays[name]) for name in left.arrays)
    )


def check_world(world: World | Callable[[], World]) -> tuple[str, ...]:
    """Checks that a world keeps the contract of `axplore.worlds`, by a few hundred steps; closes it.

    Args:
        world: a world, or a function without arguments that makes one. With a function it is also checked that worlds
            made alike behave alike, if they say that they are repeatable.

    Returns:
        The names of the checks that were made. A world that cannot be resumed or replicated is not asked to.

    Raises:
        BrokenContractError: the world breaks the contract; the message says where.
    """
    make = None if isinstance(world, World) else world
    made = world if isinstance(world, World) else world()
    _require(isinstance(made, World), f"{made!r} is no axplore.worlds.World: inherit from it")
    checked = _CheckedWorld(made)
    done = ["members", "refusals", "orders"]
    checked.check_members()
    checked.check_refusals()
    for _ in range(ROUNDS):
        checked.carry_out(checked.next_orders())
    if make is not None and made.repeatable:
        _check_repeatability(checked, make())
        done.append("repeatability")
    if isinstance(made, Resumable):
        _check_resuming(checked)
        done.append("resuming")
    if isinstance(made, Replicable) and (make_replica := _replica_factory(made)) is not None:
        _check_replicas(checked, make_replica)
        done.append("replicas")
    made.close()
    made.close()  # a second time does nothing
    return (*done, "closing")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenContractError(otherwise)


class _CheckedWorld:
    """A world whose every answer is checked, and the orders to try it with."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[tuple[list[Order], list[Answer]]] = []
        self._edges: dict[tuple[int, int], set[int]] = {}  # the successors met, by pair

    def check_members(self) -> None:
        """Checks what a world says of itself before anything is asked of it."""
        world = self.world
        _require(len(world.states) >= 1, "states is empty; it must hold the initial state")
        _require(isinstance(world.steps, int) and world.steps >= 0, f"steps is {world.steps!r}")
        _require(world.steps_by_now >= world.steps, "steps_by_now is less than steps")
        self._check_states()
        for number in (-1, len(world.states)):
            try:
                world.actions_of(number)
            except UnknownStateError:
                continue
            raise BrokenContractError(f"actions_of({number}) must raise UnknownStateError: no state has that number")

    def check_refusals(self) -> None:
        """Checks that orders that cannot be carried out are refused before the first step."""
        world = self.world
        nothing = np.zeros(0, dtype=np.int64)
        unknown = len(world.states) + 10**6  # not one that the order before it discovers
        valid: Order = Visit(0, 0, 1, nothing, MAX_JOURNEY) if world.actions_of(0) else Episodes(0, 1, 1, nothing)
        wrong: list[Order] = [
            Visit(unknown, 0, 1, nothing, MAX_JOURNEY),
            Visit(0, len(world.actions_of(0)), 1, nothing, MAX_JOURNEY),
            Episodes(unknown, 1, 1, nothing),
            Episodes(0, -1, 1, nothing),
            Trials(1, 0, nothing),
            Episodes(0, 1, 1, np.full(unknown, RESET_ACTION)),
        ]
        for order in wrong:
            before = world.steps
            try:
                world.carry_out([valid, order])
            except InvalidOrderError:
                _require(world.steps == before, f"{order} was refused after the first step: check all orders first")
                continue
            raise BrokenContractError(f"{order} cannot be carried out, and must raise InvalidOrderError")

    def carry_out(self, orders: list[Order]) -> list[Answer]:
        """Has orders carried out, and checks everything that can be said of the answers."""
        world = self.world
        n_states, steps, n_faults = len(world.states), world.steps, len(world.faults)
        labels = list(world.states)
        answers = world.carry_out(orders)
        _require(len(answers) == len(orders), f"{len(orders)} orders got {len(answers)} answers")
        _require(list(world.states[:n_states]) == labels, "the states were numbered anew; a number is for good")
        self._check_states()
        taken = sum(answer.steps for answer in answers)
        _require(
            world.steps - steps == taken, f"the answers have {taken} steps, but the world took {world.steps - steps}"
        )
        for order, answer in zip(orders, answers, strict=True):
            name = type(order).__name__
            _check_counts(name, answer, world)
            n_states = _check_numbering(name, answer, n_states)
            _check_order(order, answer, len(world.faults) - n_faults)
            self._note(answer)
        _require(
            n_states == len(world.states), f"{len(world.states) - n_states} states were discovered, but never entered"
        )
        self.calls.append((orders, answers))
        return answers

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Restores the world, and forgets the transitions to and from states that it does not know any more."""
        self.world.restore(snapshot)  # type: ignore[attr-defined]
        n_states = len(self.world.states)
        known = ((pair, successors) for pair, successors in self._edges.items() if pair[0] < n_states)
        self._edges = {pair: {state for state in successors if state < n_states} for pair, successors in known}

    def next_orders(self) -> list[Order]:
        """Returns orders of all kinds to the states discovered last."""
        world = self.world
        n_states = len(world.states)
        pairs = [(state, action) for state in range(n_states) for action in range(len(world.actions_of(state)))]
        start = [pair for pair in pairs if pair[0] == 0][:MAX_PAIRS]
        latest = pairs[-MAX_PAIRS:]
        goal = n_states - 1
        nothing = np.zeros(0, dtype=np.int64)
        orders: list[Order] = [Episodes(0, TIMES, MAX_JOURNEY, nothing)]
        orders += [Visit(state, action, TIMES, nothing, MAX_JOURNEY, MAX_CUTS) for state, action in start]
        for state, action in latest:
            way = self._policy_to(state)
            staged = np.tile(way, (MAX_JOURNEY, 1))
            orders.append(Visit(state, action, TIMES, way, MAX_JOURNEY, MAX_CUTS))
            orders.append(Visit(state, action, TIMES, staged, MAX_JOURNEY, MAX_CUTS))
        way = self._policy_to(goal)
        orders.append(Episodes(goal, TIMES, MAX_JOURNEY, way))
        orders.append(Episodes(goal, TIMES, MAX_JOURNEY, np.tile(way, (MAX_JOURNEY, 1)), allowance=0.0, slack=0.0))
        orders.append(Episodes(goal, TIMES, 1, way))
        orders.append(Episodes(goal, TIMES, MAX_JOURNEY, nothing, always_reset=True))
        ending = np.array([*way[:goal], RESET_ACTION], dtype=np.int64)
        orders.append(Trials(TIMES, MAX_JOURNEY, ending))
        orders.append(Trials(TIMES, MAX_JOURNEY, np.tile(ending, (MAX_JOURNEY, 1)), always_reset=True))
        orders.append(Trials(TIMES, 1, ending))
        orders.append(Trials(TIMES, MAX_JOURNEY, ending[:1], goes_beyond=True, most_steps=2 * MAX_JOURNEY))
        if latest:
            orders.append(self._tour(latest))
        orders.append(Survey(nothing, nothing, nothing, max_depth=1, plays=TIMES))
        return orders

    def _tour(self, pairs: Sequence[tuple[int, int]]) -> Tour:
        states, actions = np.array(pairs, dtype=np.int64).T
        times = np.arange(1, len(pairs) + 1)
        targets = list(dict.fromkeys(states.tolist()))
        policies = np.array([self._policy_to(target) for target in targets])
        return Tour(states, actions, times, policies, np.ones(policies.shape), MAX_JOURNEY, MAX_CUTS)

    def _policy_to(self, target: int) -> IntArray:
        """Returns, for every discovered state, an action that has led nearer to the target, or RESET, [n]."""
        policy = np.full(len(self.world.states), RESET_ACTION, dtype=np.int64)
        reached = {target}
        waiting = deque([target])
        while waiting:
            nearer = waiting.popleft()
            for (state, action), successors in self._edges.items():
                if nearer in successors and state not in reached:
                    reached.add(state)
                    waiting.append(state)
                    policy[state] = action
        return policy

    def _note(self, answer: Answer) -> None:
        pairs = list(zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True))
        for index, successor in zip(answer.entry_pairs.tolist(), answer.entry_successors.tolist(), strict=True):
            self._edges.setdefault(pairs[index], set()).add(successor)

    def _check_states(self) -> None:
        world = self.world
        labels = list(world.states)
        _require(len(set(labels)) == len(labels), "two states have the same label")
        for number, label in enumerate(labels):
            actions = world.actions_of(number)
            _require(isinstance(actions, tuple), f"actions_of({number}) is {actions!r}; it must be a tuple")
            _require(len(set(actions)) == len(actions), f"state {label!r} has an action twice: {actions!r}")


def _check_counts(name: str, answer: Answer, world: World) -> None:
    """Checks that draws, counts and first draws belong together, whatever the order was."""
    pairs = list(zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True))
    _require(len(set(pairs)) == len(pairs), f"{name}: a pair is listed twice")
    for state, action in pairs:
        _require(
            0 <= state < len(world.states) and 0 <= action < len(world.actions_of(state)),
            f"{name}: draws of the pair {(state, action)}, which does not exist",
        )
    counted, latest = [0] * len(pairs), [0] * len(pairs)
    met: set[tuple[int, int]] = set()
    entries = (answer.entry_pairs, answer.entry_successors, answer.entry_counts, answer.entry_first_draws)
    for pair, successor, count, first in zip(*(array.tolist() for array in entries), strict=True):
        _require(0 <= pair < len(pairs), f"{name}: an entry is of pair {pair}, but there are {len(pairs)}")
        _require((pair, successor) not in met, f"{name}: the transition {pairs[pair]} → {successor} is listed twice")
        met.add((pair, successor))
        # Before a successor is met first, every draw of the pair led to successors that are listed before it.
        _require(
            count >= 1 and latest[pair] < first <= counted[pair] + 1,
            f"{name}: {pairs[pair]} → {successor} is said to be met {count} times, first at draw {first}, but the "
            f"successors before it have {counted[pair]} draws",
        )
        counted[pair] += count
        latest[pair] = first
    draws = answer.pair_draws.tolist()
    _require(counted == draws, f"{name}: the transitions of the pairs sum to {counted}, but their draws are {draws}")
    _require(answer.steps >= sum(draws), f"{name}: {answer.steps} steps, but {sum(draws)} draws, each of which is one")


def _check_numbering(name: str, answer: Answer, n_states: int) -> int:
    """Checks that states are numbered in the order of discovery; returns how many there are after the answer."""
    for successor in answer.entry_successors.tolist():
        _require(
            0 <= successor <= n_states,
            f"{name}: state {successor} was entered when {n_states} were discovered: number states as they are met",
        )
        n_states = max(n_states, successor + 1)
    return n_states


def _check_order(order: Order, answer: Answer, n_faults: int) -> None:
    match order:
        case Visit():
            _check_visit(order, answer, n_faults)
        case Episodes():
            _check_episodes(order, answer, n_faults)
        case Trials():
            _check_trials(order, answer, n_faults)
        case Tour():
            _check_tour(order, answer)
        case Survey():
            _check_survey(order, answer)


def _check_visit(order: Visit, answer: Answer, n_faults: int) -> None:
    asked = (order.state, order.action)
    _check_plays("Visit", order.times, order.max_cuts, answer)
    _check_drawn("Visit", answer, {asked, *_planned(order.policy)})
    drawn = _draws(answer).get(asked, 0)
    _require(drawn == answer.completed, f"Visit: {answer.completed} visits, but {drawn} draws of {asked}")
    if order.state == 0 and not order.policy.size:  # the agent resets after every play that leads elsewhere
        back = _successors(answer, asked).get(0, 0)
        least, most = order.times - back - 1, 2 * order.times + 2 * n_faults
        resets = answer.steps - order.times
        _require(
            least <= resets <= most,
            f"Visit: {order.times} plays in the initial state, {back} of which led back to it, took {answer.steps} "
            "steps: RESET is one step",
        )


def _check_episodes(order: Episodes, answer: Answer, n_faults: int) -> None:
    completed, arrivals, travelled = answer.completed, answer.arrivals, answer.travelled
    told = f"Episodes: {completed} of {order.times} with a horizon of {order.horizon}, {arrivals} arrivals, {travelled}"
    _require(0 <= arrivals <= completed <= order.times, f"{told} steps")
    _require(
        (completed - arrivals) * order.horizon <= travelled <= completed * order.horizon,
        f"{told} steps: an episode that does not arrive has {order.horizon}",
    )
    _check_drawn("Episodes", answer, _planned(order.policy))
    ended_early = travelled > completed * order.allowance + order.slack
    _require(completed == order.times or ended_early, f"{told} steps: it ended without a reason")
    if order.goal == 0:
        _require(arrivals == completed and travelled == 0, f"{told} steps: to the initial state there are none to take")
    if n_faults or ended_early:
        return
    if answer.cut_journeys:  # which count as many steps as the others that did not arrive, and took fewer
        return
    least, most, rule = travelled, travelled + completed, "at most one RESET begins each"
    if order.always_reset:
        least, most, rule = most, most + completed, "a RESET begins each"
    _require(least <= answer.steps <= most, f"{told} steps, but {answer.steps} steps in all: {rule}")
    if order.horizon == 1 and order.policy.size and order.policy.flat[0] != RESET_ACTION and order.goal != 0:
        hits = _successors(answer, (0, int(order.policy.flat[0]))).get(order.goal, 0)
        _require(arrivals == hits, f"{told} steps, but {hits} draws led to the goal")


def _check_trials(order: Trials, answer: Answer, n_faults: int) -> None:
    completed, ended, drawn = answer.completed, answer.arrivals, int(answer.pair_draws.sum())
    told = f"Trials: {completed} of {order.times} with a horizon of {order.horizon}, {ended} ended by their policy"
    _require(0 <= ended <= completed <= order.times, told)
    _require(completed == order.times or answer.steps >= order.most_steps, f"{told}: it ended without a reason")
    _require(answer.cut_journeys == completed - ended, f"{told}, {answer.cut_journeys} otherwise")
    if order.goes_beyond:
        return
    _check_drawn("Trials", answer, _planned(order.policy))
    if n_faults:
        return
    least = drawn + completed * order.always_reset
    most = drawn + completed * (1 + order.always_reset)
    _require(least <= answer.steps <= most, f"{told}, {drawn} draws, but {answer.steps} steps")
    policy = np.atleast_2d(order.policy)
    ends = {number for number in range(policy.shape[1]) if (policy[:, number] == RESET_ACTION).all()}
    into = sum(count for _, _, after, count in answer.transitions() if after in ends or after >= policy.shape[1])
    if 0 not in ends:
        _require(into == ended, f"{told}, but {into} draws led to where it resets")


def _check_tour(order: Tour, answer: Answer) -> None:
    asked = dict(
        zip(zip(order.states.tolist(), order.actions.tolist(), strict=True), order.times.tolist(), strict=True)
    )
    _check_plays("Tour", sum(asked.values()), order.max_cuts, answer)
    assert isinstance(order.policies, np.ndarray)  # the tours of this module are small
    _check_drawn("Tour", answer, {*asked, *_planned(order.policies)})
    drawn = _draws(answer)
    played = sum(min(times, drawn.get(pair, 0)) for pair, times in asked.items())
    _require(played >= answer.completed, f"Tour: {answer.completed} plays, but the draws hold {played}")


def _check_survey(order: Survey, answer: Answer) -> None:
    completed, drawn = answer.completed, len(answer.pair_draws)
    _require(completed <= order.plays, f"Survey: {completed} plays, but {order.plays} were asked for")
    _require(answer.arrivals == completed, f"Survey: {completed} plays, but {answer.arrivals} arrivals")
    # What was never named before is played for the first time.
    _require(completed == drawn, f"Survey: {completed} pairs were played for the first time, but {drawn} were drawn")


def _check_plays(name: str, times: int, max_cuts: int, answer: Answer) -> None:
    completed, cuts = answer.completed, answer.cut_journeys
    _require(answer.arrivals == completed, f"{name}: {completed} plays, but {answer.arrivals} arrivals")
    _require(answer.travelled == 0, f"{name}: travelled is {answer.travelled}; it is for episodes")
    _require(
        completed == times or (completed < times and cuts >= max_cuts),
        f"{name}: {completed} plays instead of {times}, after {cuts} cut journeys",
    )


def _check_drawn(name: str, answer: Answer, allowed: set[tuple[int, int]]) -> None:
    others = [pair for pair in _draws(answer) if pair not in allowed]
    _require(not others, f"{name}: it drew the pairs {others}, which neither the order nor its policy plays")


def _planned(policy: IntArray) -> set[tuple[int, int]]:
    """Returns the pairs that a policy, [..., n], may play."""
    rows = policy.reshape(math.prod(policy.shape[:-1]), policy.shape[-1])
    return {(state, action) for row in rows.tolist() for state, action in enumerate(row) if action != RESET_ACTION}


def _draws(answer: Answer) -> dict[tuple[int, int], int]:
    pairs = zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True)
    return dict(zip(pairs, answer.pair_draws.tolist(), strict=True))


def _successors(answer: Answer, pair: tuple[int, int]) -> dict[int, int]:
    """Returns the number of times each successor of a pair was met."""
    pairs = list(_draws(answer))
    entries = (answer.entry_pairs, answer.entry_successors, answer.entry_counts)
    triples = zip(*(array.tolist() for array in entries), strict=True)
    return {successor: count for index, successor, count in triples if pairs[index] == pair}


def _check_repeatability(checked: _CheckedWorld, other: World) -> None:
    """Checks that another world made alike gives the same answers to the same orders."""
    with other:
        for number, (orders, answers) in enumerate(checked.calls):
            _require_same(answers, other.carry_out(orders), f"another world made alike, in call {number}")
        _require(list(other.states) == list(checked.world.states), "worlds made alike discover different states")


def _check_resuming(checked: _CheckedWorld) -> None:
    """Checks that a world resumes from a snapshot, and does the same again if it is repeatable."""
    world: Any = checked.world
    snapshot = world.snapshot()
    labels = tuple(world.states)
    actions = tuple(world.actions_of(number) for number in range(len(labels)))
    _require(
        (snapshot.labels, snapshot.actions, snapshot.steps, snapshot.position)
        == (labels, actions, world.steps, world.position),
        "the snapshot does not hold the states, actions, steps and position of the world",
    )
    orders = checked.next_orders()
    first = checked.carry_out(orders) if snapshot.position != NOWHERE else None
    for _ in range(2):
        checked.restore(snapshot)
        _require(
            (tuple(world.states), world.steps) == (labels, snapshot.steps),
            "a restored world does not have the states and steps of its snapshot",
        )
        again = checked.carry_out(orders)
        if first is not None and world.repeatable:
            _require_same(first, again, "a world that was restored from the same snapshot")
        first = again
    try:
        world.restore(replace(snapshot, labels=(object(),), actions=((),), position=NOWHERE))
    except InvalidSettingError:
        return
    raise BrokenContractError("restore took a snapshot of another system; it must raise InvalidSettingError")


def _replica_factory(world: Replicable) -> Callable[[], Any] | None:
    """Returns the function that makes replicas; None if the world says that its system exists only once."""
    try:
        packed = cloudpickle.dumps(world.replica_factory())
    except InvalidSettingError:
        return None
    factory: Callable[[], Any] = cloudpickle.loads(packed)
    return factory


def _check_replicas(checked: _CheckedWorld, make: Callable[[], Any]) -> None:
    """Checks that replicas know the states that they are told, and give the same answers to the same batches."""
    world = checked.world
    told = [(label, world.actions_of(number)) for number, label in enumerate(world.states)]
    orders = checked.next_orders()
    replicas = [make(), make()]
    try:
        expected = _batches(replicas[0], told, orders)
        _check_replica(replicas[0], told)
        others = [_batches(replica, told, orders) for replica in reversed(replicas)]
    finally:
        for replica in replicas:
            replica.close()
            replica.close()
    if world.repeatable:
        for answers in others:
            _require_same(expected, answers, "another replica, or the same one again")


def _check_replica(replica: Any, told: list[tuple[Any, tuple[Any, ...]]]) -> None:
    known = [(label, replica.actions_of(number)) for number, label in enumerate(replica.states[: len(told)])]
    _require(known == told, "a replica does not number the states as it was told")


def _batches(replica: Any, told: list[tuple[Any, tuple[Any, ...]]], orders: Sequence[Order]) -> list[Answer]:
    """Returns what a replica answers to each order as a batch; it forgets between them what it has discovered."""
    _require(replica.states[0] == told[0][0], f"a replica starts in {replica.states[0]!r}, the world in {told[0][0]!r}")
    answers = []
    for index, order in enumerate(orders):
        replica.learn(1, told[1:])
        answer = replica.carry_out_batch(order, (0, index, 0))
        draws = int(answer.pair_draws.sum())
        _require(answer.steps > draws, f"a batch of {draws} draws has {answer.steps} steps: the RESET before it is one")
        answers.append(answer)
    return answers


def _require_same(answers: Sequence[Answer], others: Sequence[Answer], who: str) -> None:
    for index, (answer, other) in enumerate(zip(answers, others, strict=True)):
        for field in fields(Answer):
            ours, theirs = getattr(answer, field.name), getattr(other, field.name)
            _require(
                np.array_equal(ours, theirs),
                f"{who}, answers order {index} otherwise: {field.name} is {theirs}, and was {ours}. Draw all noise "
                "from the seed of the order, or say that the world is not repeatable",
            )
