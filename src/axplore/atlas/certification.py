"""Proves or refutes a claim about one policy by playing it, without any model: see docs/certify.md.

    certificate = axplore.certify(atlas, world, "exit", within=12)
    certificate = axplore.certify(lambda label: ..., world, "exit", chance=0.9, steps=40)

Two bets run side by side, one against the claim and one against its opposite, on the outcomes of independent episodes.
Only one of the two can bet against what is true, and it reaches 1 / δ with probability at most δ. So both have the
whole δ, and the first to reach it decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from axplore.arguments import checked, flag, function, label, optional, real, refusal, shown, whole
from axplore.atlas.atlas import Atlas
from axplore.atlas.draw_checks import DrawChecks
from axplore.atlas.policy import Policy
from axplore.budget import moment_after
from axplore.certificate.episode_certificate import LEAST_BOUND, Decision, EpisodeCertificate
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.labels import readable
from axplore.records.findings import Finding
from axplore.statistics import episodes as tests
from axplore.types import Action, FloatArray, IntArray, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Answer, Miss, Restarts, World
from axplore.worlds.playing import PlayedPolicy, Player, player_of

DELTA: Final = 0.05
MAX_STEPS: Final = 1_000_000

HORIZON_FACTOR: Final = 4
"""The default horizon of a claim about expected steps, as a multiple of the claimed steps."""

LONGEST: Final = 10**7
"""The longest episode, because a number is stored for each of its steps."""

REPORTED_EVERY: Final = 64
"""The number of episodes between two reports of progress."""


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
    restarts=flag,
    delta=real(least=1e-100, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a probability"),
    max_steps=whole(least=1),
    max_seconds=optional(real(above=0)),
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
    restarts: bool = False,
    delta: float = DELTA,
    max_steps: int = MAX_STEPS,
    max_seconds: float | None = None,
    seed: int = 0,
    on_progress: Callable[[CertifyProgress], None] | None = None,
) -> EpisodeCertificate:
    """Plays a policy until it is proven or refuted that it reaches a goal in time.

    It ends as soon as this is decided either way. Nothing is assumed about states or labels: the decision is correct
    with probability 1 - δ if episodes are independent and identically distributed.

    An episode ends at the first RESET after its start, whoever plays it: the policy, or the world in a terminal state
    or before a limit of the system. It has missed the goal then, unless `restarts` makes RESET a step of the policy.

    If the policy is given by an atlas, the draws are compared with what that assumes and with its counts; `findings` of
    the certificate has what contradicts the atlas. It does not touch what episodes prove.

    Args:
        policy: an atlas, one of its policies, a function of the label that returns an action or RESET, or an object
            with `predict`, such as a model of Stable-Baselines3. On a system that is stepped, a function may roll dice
            and remember. Other worlds take orders, so there it is asked once for each state.
        world: a `World`, or anything else that can be explored.
        goal: the label of the state to reach.
        within: B, to decide whether it takes at most B expected steps. Without restarts, an episode that has not
            arrived after `steps` steps counts as `steps` + 1 + B of them, and one that a RESET ends has no number of
            steps: the claim is undecided as soon as one comes.
        chance: p, to decide whether it arrives within `steps` steps with at least this probability.
        steps: the steps after which an episode ends; by default, four times `within`.
        restarts: whether what is tested is the policy that goes on after a RESET, which is one step, wherever an
            episode ends before the goal; with `within`, also after `steps` steps.
        delta: δ, the probability that the decision may be wrong.
        max_steps: the most steps; the claim is undecided if they do not decide it. The episode that they cut is left
            out: see docs/algorithms/episodes.md.
        max_seconds: the seconds after which no step begins.
        seed: the seed of the noise, unless `world` is a `World`, which has its own.
        on_progress: called with a `CertifyProgress` from time to time.

    Raises:
        WorldError: the system failed more often than its world allows.
    """
    horizon = _horizon(within, chance, steps)
    atlas = policy if isinstance(policy, Atlas) else None
    policy = policy if atlas is None else atlas.policy(goal)
    played_policy, described = _any_policy(policy)
    memory = policy.memory if isinstance(policy, Policy) else None
    with world_for(world, seed, memory=memory) as played:
        findings: list[Finding] = []
        notice = _noticing(atlas, played, goal, findings)
        going_on = Restarts.ALWAYS if restarts else Restarts.NEVER
        played.limit(max_steps, moment_after(max_seconds))
        try:
            player = player_of(played, played_policy, goal, horizon, going_on, notice)
            decided = _decided(player, _Bets(within, chance, horizon, restarts, delta), max_steps, on_progress)
        finally:
            played.limit()
    arrivals = sorted((steps, times) for steps, times in decided.outcomes.items() if not isinstance(steps, Miss))
    return EpisodeCertificate(
        world=world if isinstance(world, str) else type(world).__name__,
        policy=described,
        goal=goal,
        within=within,
        chance=chance,
        horizon=horizon,
        delta=delta,
        restarts=restarts,
        decision=decided.decision,
        arrivals=dict(arrivals),
        missed=decided.outcomes[Miss.LATE] + decided.outcomes[Miss.ENDED],
        ended=decided.outcomes[Miss.ENDED],
        lost=decided.outcomes[Miss.LOST],
        steps=player.steps,
        findings=tuple(findings),
    )


def _noticing(atlas: Atlas | None, world: World, goal: State, findings: list[Finding]) -> Callable[[Answer], None]:
    """Returns what compares the draws of a policy with the atlas that it is of, if that is at hand and proven."""
    if atlas is None or not atlas.proven:
        return lambda _: None
    return DrawChecks(atlas, world, "the policy was certified").noticing(goal, findings)


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
    """The wealth of the two bets.

    Attributes:
        outcomes: how many episodes had each outcome so far: a number of steps to the goal, or why there is none.
        decision: what they decide.
        over: whether more episodes would change nothing.
    """

    def __init__(self, within: float | None, chance: float | None, horizon: int, restarts: bool, delta: float) -> None:
        if within is not None:
            losses = tests.losses_if_slower(horizon, within), tests.losses_if_faster(horizon, within)
        else:
            assert chance is not None
            losses = tests.losses_if_rarer(horizon, chance), tests.losses_if_oftener(horizon, chance)
        self._indices = {Miss.LATE: horizon + 1, Miss.ENDED: horizon + 1, Miss.LOST: horizon + 2}
        # An outcome that is lost may have been the worst, whose loss is 1.
        self._losses = [np.append(of_outcomes, 1.0) for of_outcomes in losses]
        # An end before the goal leaves no expected steps to decide on: see docs/certify.md.
        self._ends_with = Miss.ENDED if within is not None and not restarts else None
        self._bets = tests.spread_bets()
        self._logs = [np.log(self._bets.weights) for _ in losses]
        self._needed = -math.log(delta)
        self._size = horizon + 3
        self.outcomes: Counter[int | Miss] = Counter()
        self.decision = Decision.UNDECIDED
        self.over = False

    @property
    def evidence(self) -> tuple[float, float]:
        """The evidence for and against the claim, as shares of what decides."""
        shares = [max(0.0, _log_sum(logs) / self._needed) for logs in self._logs]
        return shares[0], shares[1]

    def add(self, outcome: int | Miss) -> None:
        """Bets on one more episode."""
        self.outcomes[outcome] += 1
        if outcome is self._ends_with:
            self.over = True
            return
        for side, decision in enumerate((Decision.PROVEN, Decision.REFUTED)):
            self._logs[side] += np.log1p(-self._bets.fractions * self._losses[side][self._index(outcome)])
            if _log_sum(self._logs[side]) >= self._needed and self._is_certain(self._losses[side]):
                self.decision, self.over = decision, True
                return

    def _index(self, outcome: int | Miss) -> int:
        """Returns where the losses have that of an outcome."""
        return self._indices[outcome] if isinstance(outcome, Miss) else outcome

    def _is_certain(self, losses: FloatArray) -> bool:
        """Returns whether the decision holds despite rounding."""
        outcomes: IntArray = np.zeros(self._size, dtype=np.int64)
        for outcome, times in self.outcomes.items():
            outcomes[self._index(outcome)] += times
        return tests.log_wealth(losses, outcomes, self._bets) >= self._needed


def _log_sum(logs: FloatArray) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def _decided(
    player: Player, bets: _Bets, max_steps: int, on_progress: Callable[[CertifyProgress], None] | None
) -> _Bets:
    """Returns the bets when they are over, or after as many episodes as the steps allow."""
    for n_played, episode in enumerate(player.episodes(max_steps), 1):
        # An end that the system forces is an end: no policy avoids it.
        bets.add(Miss.ENDED if episode.outcome is Miss.CUT else episode.outcome)
        if on_progress is not None and (bets.over or n_played % REPORTED_EVERY == 0):
            on_progress(CertifyProgress(n_played, player.steps, max_steps, *bets.evidence))
        if bets.over:
            break
    return bets


def _any_policy(policy: Any) -> tuple[PlayedPolicy, str]:
    """Returns what a policy of any kind plays, and what to call it."""
    if isinstance(policy, Policy):
        return policy.played(), f"the policy to {readable(policy.goal)} of the atlas"
    if callable(getattr(policy, "predict", None)):
        return PlayedPolicy(_of_predictor(policy)), f"the policy of {type(policy).__name__}"
    if callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        return PlayedPolicy(lambda state, _: _action_of(policy(state))), f"the policy {name!r}"
    raise refusal("policy", policy, "an atlas, a policy, a function of the label, or an object with `predict`")


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
