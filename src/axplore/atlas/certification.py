"""Proves or refutes a claim about one policy by playing it, without any model: see docs/certify.md.

    certificate = axplore.certify(atlas, world, "exit", within=12)
    certificate = axplore.certify(lambda label: ..., world, "exit", chance=0.9, steps=40)

Two bets run side by side, one against the claim and one against its opposite, on the outcomes of independent episodes.
Only one of the two can bet against what is true, and it reaches 1 / δ with probability at most δ. So both have the
whole δ, and the first to reach it decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from axplore.arguments import checked, function, label, optional, real, refusal, shown, whole
from axplore.atlas.atlas import Atlas
from axplore.atlas.policy import Policy
from axplore.certificate.episode_certificate import LEAST_BOUND, Decision, EpisodeCertificate
from axplore.errors import InvalidInputError, InvalidSettingError, UnknownActionError
from axplore.labels import readable
from axplore.memory import Memory
from axplore.statistics import episodes as tests
from axplore.types import RESET, RESET_ACTION, Action, FloatArray, IntArray, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Answer, Episodes, Visit, World
from axplore.worlds.stepped import SteppedWorld

DELTA: Final = 0.05
MAX_STEPS: Final = 1_000_000

HORIZON_FACTOR: Final = 4
"""The default horizon of a claim about expected steps, as a multiple of the claimed steps."""

LONGEST: Final = 10**7
"""The longest episode, because a number is stored for each of its steps."""

LARGEST_BATCH: Final = 64
"""The most episodes between two reports of progress, and the most orders in a call."""

PLAYS: Final = 8
MAX_CUTS: Final = 3
"""Used to lead a world to a goal that it has not shown: the number of times that each pair of the policy is played in
turn, and the cut journeys in a row after which the next pair is tried."""


@dataclass(frozen=True)
class CertifyProgress:
    """The progress of a test.

    Attributes:
        episodes: the number of episodes played.
        steps: the steps that they took.
        max_steps: the step limit.
        evidence_for, evidence_against: the share of the evidence needed to prove and to refute the claim; it is
            decided at 1.
    """

    episodes: int
    steps: int
    max_steps: int
    evidence_for: float
    evidence_against: float


@checked(
    goal=label,
    within=optional(real(least=LEAST_BOUND)),
    chance=optional(real(above=0, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a chance")),
    steps=optional(whole(least=1, most=LONGEST)),
    delta=real(least=1e-100, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a probability"),
    max_steps=whole(least=1),
    seed=whole(),
    on_progress=optional(function),
)
def certify(
    policy: Any,
    world: Any,
    goal: State,
    *,
    within: float | None = None,
    chance: float | None = None,
    steps: int | None = None,
    delta: float = DELTA,
    max_steps: int = MAX_STEPS,
    seed: int = 0,
    on_progress: Callable[[CertifyProgress], None] | None = None,
) -> EpisodeCertificate:
    """Plays a policy until it is proven or refuted that it reaches a goal in time.

    It ends as soon as this is decided either way. Nothing is assumed about states or labels: the decision is correct
    with probability 1 - δ if episodes are independent and identically distributed.

    Args:
        policy: an atlas, one of its policies, a function of the label that returns an action or RESET, or an object
            with `predict`, such as a model of Stable-Baselines3. On a system that is stepped, a function may roll dice
            and remember. Other worlds take orders, so there it is asked once for each state.
        world: a `World`, or anything else that can be explored.
        goal: the label of the state to reach.
        within: B, to decide whether it takes at most B expected steps, if restarted by RESET whenever it has not
            arrived after `steps` steps.
        chance: p, to decide whether it arrives within `steps` steps with at least this probability.
        steps: the steps after which an episode ends; by default, four times `within`.
        delta: δ, the probability that the decision may be wrong.
        max_steps: the step limit, after which the claim is undecided.
        seed: the seed of the noise, unless `world` is a `World`, which has its own.
        on_progress: called with a `CertifyProgress` from time to time.

    Raises:
        WorldError: the system failed more often than its world allows.
    """
    horizon = _horizon(within, chance, steps)
    played_policy = _any_policy(policy, goal)
    with world_for(world, seed, memory=played_policy.memory) as played:
        arena = _arena(played, played_policy, goal, horizon, max_steps)
        decided = _played(arena, _Bets(within, chance, horizon, delta), on_progress)
    arrivals = {outcome: times for outcome, times in sorted(decided.outcomes.items()) if outcome <= horizon}
    return EpisodeCertificate(
        world=world if isinstance(world, str) else type(world).__name__,
        policy=played_policy.described,
        goal=goal,
        within=within,
        chance=chance,
        horizon=horizon,
        delta=delta,
        decision=decided.decision,
        arrivals=arrivals,
        missed=decided.outcomes[horizon + 1],
        lost=decided.outcomes[horizon + 2],
        steps=arena.steps,
    )


def _horizon(within: float | None, chance: float | None, steps: int | None) -> int:
    """Returns the steps after which an episode ends; refuses anything but exactly one claim."""
    if (within is None) == (chance is None):
        raise InvalidSettingError("give either within=B, a bound of the expected steps, or chance=p with steps=n")
    if steps is not None:
        return steps
    if within is None:
        raise InvalidSettingError("steps is missing: a chance is that to arrive within a number of steps")
    return max(1, math.ceil(min(HORIZON_FACTOR * within, LONGEST)))


class _Bets:
    """The wealth of the two bets, and the outcomes so far: steps to the goal, horizon + 1 if missed, + 2 if lost."""

    def __init__(self, within: float | None, chance: float | None, horizon: int, delta: float) -> None:
        if within is not None:
            losses = tests.losses_if_slower(horizon, within), tests.losses_if_faster(horizon, within)
        else:
            assert chance is not None
            losses = tests.losses_if_rarer(horizon, chance), tests.losses_if_oftener(horizon, chance)
        # An outcome that is lost may have been the worst, whose loss is 1.
        self._losses = [np.append(of_outcomes, 1.0) for of_outcomes in losses]
        self._bets = tests.spread_bets()
        self._logs = [np.log(self._bets.weights) for _ in losses]
        self._needed = -math.log(delta)
        self._size = horizon + 3
        self.outcomes: Counter[int] = Counter()
        self.decision = Decision.UNDECIDED

    @property
    def evidence(self) -> tuple[float, float]:
        """The evidence for and against the claim, as shares of what decides."""
        shares = [max(0.0, _log_sum(logs) / self._needed) for logs in self._logs]
        return shares[0], shares[1]

    def add(self, outcome: int) -> bool:
        """Bets on one more episode; returns whether that decides."""
        self.outcomes[outcome] += 1
        for side, decision in enumerate((Decision.PROVEN, Decision.REFUTED)):
            self._logs[side] += np.log1p(-self._bets.fractions * self._losses[side][outcome])
            if _log_sum(self._logs[side]) >= self._needed and self._is_certain(self._losses[side]):
                self.decision = decision
                return True
        return False

    def _is_certain(self, losses: FloatArray) -> bool:
        """Returns whether the decision holds despite rounding."""
        outcomes: IntArray = np.zeros(self._size, dtype=np.int64)
        for outcome, times in self.outcomes.items():
            outcomes[outcome] = times
        return tests.log_wealth(losses, outcomes, self._bets) >= self._needed


def _log_sum(logs: FloatArray) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def _played(arena: _Arena, bets: _Bets, on_progress: Callable[[CertifyProgress], None] | None) -> _Bets:
    """Returns the bets after as many episodes as decide, or as the steps allow."""
    n_played = reported = 0
    for batch in arena.batches():
        for outcome in batch:
            n_played += 1
            if bets.add(outcome):
                break
        decided = bets.decision is not Decision.UNDECIDED
        if on_progress is not None and (decided or n_played >= reported + LARGEST_BATCH):
            reported = n_played
            on_progress(CertifyProgress(n_played, arena.steps, arena.max_steps, *bets.evidence))
        if decided:
            break
    return bets


class _Arena(ABC):
    """Where episodes are played."""

    def __init__(self, world: World, policy: _AnyPolicy, goal: State, horizon: int, max_steps: int) -> None:
        self._world, self._policy, self._goal, self._horizon = world, policy, goal, horizon
        self._before = world.steps
        self.max_steps = max_steps

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._world.steps - self._before

    @property
    def lost(self) -> int:
        """The outcome that stands for one that is not known."""
        return self._horizon + 2

    @abstractmethod
    def batches(self) -> Iterator[list[int]]:
        """Yields the outcomes of further episodes, until the steps are used up."""


class _SteppedArena(_Arena):
    """A system that is stepped: the policy is asked at every step."""

    def batches(self) -> Iterator[list[int]]:
        world = self._world
        assert isinstance(world, SteppedWorld)
        while self.steps < self.max_steps:
            outcome = world.run_episode(self._policy.choose, self._goal, self._horizon)
            yield [self.lost if outcome is None else outcome]


class _OrderedArena(_Arena):
    """A world that takes orders: the policy is asked once for each state, as soon as the world shows it."""

    def __init__(self, world: World, policy: _AnyPolicy, goal: State, horizon: int, max_steps: int) -> None:
        super().__init__(world, policy, goal, horizon, max_steps)
        self._table: list[list[int]] = []  # by state and step

    def batches(self) -> Iterator[list[int]]:
        goal = self._met()
        size = 1
        while goal is not None and self.steps < self.max_steps:
            n_planned = len(self._table)
            episode = Episodes(goal, 1, self._horizon, self._choices(self._horizon), always_reset=True)
            answers = self._world.carry_out([episode] * size)
            self._learn()
            yield [self._outcome(answer, goal, n_planned) for answer in answers]
            size = min(2 * size, LARGEST_BATCH)

    def _outcome(self, answer: Answer, goal: int, n_planned: int) -> int:
        """Returns the outcome of an episode; it is lost if the world reset where the policy would not have."""
        fresh = [number for number in answer.entry_successors.tolist() if number >= n_planned]
        if any(set(self._table[number]) != {RESET_ACTION} for number in fresh if number != goal):
            return self.lost
        return answer.travelled if answer.arrivals else self._horizon + 1

    def _met(self) -> int | None:
        """Returns the index of the goal, after leading the world there if necessary; None if that fails."""
        tried: Counter[tuple[int, int]] = Counter()
        while self.steps < self.max_steps:
            self._learn()
            if self._goal in self._world.states:
                return list(self._world.states).index(self._goal)
            pairs = [(state, action) for state, row in enumerate(self._table) for action in sorted(set(row))]
            pairs = [pair for pair in pairs if pair[1] != RESET_ACTION]
            if not pairs:
                return None
            state, action = min(pairs, key=tried.__getitem__)
            tried[state, action] += 1
            self._world.carry_out([Visit(state, action, PLAYS, self._choices(1), self._horizon, MAX_CUTS)])
        return None

    def _learn(self) -> None:
        """Asks the policy about the states that the world has shown since."""
        for number in range(len(self._table), len(self._world.states)):
            label, offered = self._world.states[number], self._world.actions_of(number)
            steps = range(self._policy.period)
            actions = [self._policy.choose(label, step) if offered else RESET for step in steps]
            for action in actions:
                if action is not RESET and action not in offered:
                    raise UnknownActionError(
                        f"the policy plays {action!r} in state {label!r}, which has {list(offered)!r} and RESET"
                    )
            self._table.append([RESET_ACTION if action is RESET else offered.index(action) for action in actions])

    def _choices(self, horizon: int) -> IntArray:
        """Returns the choices by state, [n], or by step and state, [horizon, n], if the policy depends on the step."""
        by_step: IntArray = np.array(self._table, dtype=np.int64).T
        if self._policy.period == 1 or horizon == 1:
            first: IntArray = by_step[0]
            return first
        repeated: IntArray = np.tile(by_step, (-(-horizon // len(by_step)), 1))[:horizon]
        return repeated


def _arena(world: World, policy: _AnyPolicy, goal: State, horizon: int, max_steps: int) -> _Arena:
    kind = _SteppedArena if isinstance(world, SteppedWorld) else _OrderedArena
    return kind(world, policy, goal, horizon, max_steps)


@dataclass(frozen=True)
class _AnyPolicy:
    """A policy of any kind.

    Attributes:
        choose: returns the action, given the label of the state and the number of steps of the episode so far.
        described: its description.
        period: the number of steps after which it starts again, if it depends on them.
        memory: what tells situations apart, if it is a policy of these.
    """

    choose: Callable[[State, int], Action | Reset]
    described: str
    period: int = 1
    memory: Memory | None = None


def _any_policy(policy: Any, goal: State) -> _AnyPolicy:
    """Returns what a policy of any kind plays, and what to call it."""
    if isinstance(policy, Atlas):
        policy = policy.policy(goal)
    if isinstance(policy, Policy):
        return _of_atlas(policy)
    if callable(getattr(policy, "predict", None)):
        return _AnyPolicy(_of_predictor(policy), f"the policy of {type(policy).__name__}")
    if callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        return _AnyPolicy(lambda state, _: _action_of(policy(state)), f"the policy {name!r}")
    raise refusal("policy", policy, "an atlas, a policy, a function of the label, or an object with `predict`")


def _of_atlas(policy: Policy) -> _AnyPolicy:
    described = f"the policy to {readable(policy.goal)} of the atlas"
    if policy.horizon is None:
        return _AnyPolicy(lambda state, _: policy(state), described, memory=policy.memory)
    period = policy.horizon + 1  # a journey, with the RESET that ends it
    return _AnyPolicy(lambda state, step: policy(state, step % period), described, period, policy.memory)


def _of_predictor(model: Any) -> Callable[[State, int], Action | Reset]:
    """Returns the choices of a model as in Stable-Baselines3; its hidden state is reset with every episode."""
    space = getattr(model, "observation_space", None)
    memory: Any = None

    def choose(state: State, step: int) -> Action | Reset:
        nonlocal memory
        starts = step == 0
        action, memory = model.predict(
            _observation(space, state), state=None if starts else memory, episode_start=np.array([starts])
        )
        return _action_of(action)

    return choose


def _action_of(answer: Any) -> Action | Reset:
    """Returns the action that a policy means: a NumPy number, or an array of one, stands for the number."""
    if isinstance(answer, np.ndarray):
        if answer.size != 1:
            raise InvalidInputError(f"the policy returned {shown(answer)}, which is no single action")
        answer = answer.item()
    action: Action | Reset = label("the action that the policy returned", answer)
    return action


def _observation(space: Any, state: State) -> Any:
    """Returns the observation of which a state is the label by the keys that axplore uses unless it is given one."""
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if shape is None or dtype is None:
        return state
    try:
        return np.asarray(state, dtype=dtype).reshape(shape)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{state!r} is no observation for the model, which expects {space}: pass a function of the label that "
            "asks the model itself"
        ) from None
