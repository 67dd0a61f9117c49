"""Runs the policies of an atlas on a real system and compares the steps that they take with the bounds.

Each goal is tried for a number of episodes, each cut at a horizon. Two questions are asked about their lengths T:

- *Too slow?* The bound says E[T] ≤ u. Then Π_i (1 + λ (T_i / u - 1)) has an expectation of at most 1 for every λ in
  [0, 1], because lengths are not negative, and cutting episodes only makes it smaller. The mean of this over several λ
  exceeds 1/α with a probability of at most α (Ville; Waudby-Smith and Ramdas, *Estimating means of bounded random
  variables by betting*, 2024). No other assumption is made.
- *Too fast?* The bound says E[T] ≥ l. No test is exact here, because rare and long episodes may be missing from any
  sample. An event with a probability of up to log(1/α) / n may not have occurred in n episodes; it is assumed to
  cost a RESET and a whole new journey each time. With this and Student's interval at the level α, and if no episode was
  cut, the mean must still be below l.

Every draw is compared with what the atlas assumes, and with what it counted (`axplore.atlas.draw_checks`). The
levels are divided among the goals and the draws: an atlas whose bounds are true is contradicted with a probability of
at most `false_alarm`, of which three eighths, those of the second question, are approximate.

The actions of each state are compared too. What is proven is about the actions of the atlas: a state that offers
others contradicts it for certain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import checked, collection, optional, real, settings, whole
from axplore.atlas.draw_checks import DrawChecks
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.errors import InvalidInputError
from axplore.labels import readable
from axplore.records.codec import pack
from axplore.records.findings import Finding
from axplore.types import RESET, Action, IntArray, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Miss, Restarts, World
from axplore.worlds.playing import Player, player_of

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

EPISODES: Final = 100
FALSE_ALARM: Final = 1e-3
CONFIDENCE: Final = 0.99
"""The confidence of the interval that is shown for each mean."""

HORIZON_FACTOR: Final = 20
SHORTEST_HORIZON: Final = 100
"""An episode is cut after `HORIZON_FACTOR` times as many steps as promised, but never before this many."""

DRAWS_SHARE: Final = 0.25
"""The part of the false alarm that goes to tests of single draws."""

BETS: Final = tuple(2.0**-k for k in range(8))
"""The λ of the first test."""

SEARCHES: Final = 50
SEARCH_FACTOR: Final = 2
"""The number of tries to find a goal that the system has not shown yet, and the steps of each as a multiple of those
promised, but never fewer than `SHORTEST_HORIZON`."""

FEWEST_FOR_MEAN: Final = 30
"""The fewest episodes from which a goal may be called too fast."""

ROUNDING: Final = 1e-9

NAMED: Final = 5
"""A summary names no more states than these."""


class Outcome(Enum):
    """How the measured steps compare with the bounds; the value is the text to print."""

    CONSISTENT = "consistent"
    TOO_SLOW = "slower than certified"
    TOO_FAST = "faster than certified"
    NEVER_MET = "never met"


@dataclass(frozen=True)
class Trial:
    """The measured performance of the policy to one goal.

    Attributes:
        goal: the goal.
        promised: the range of its expected steps: the bounds, or 0 to L + ε if nothing is proven.
        episodes: the number of episodes.
        arrived: the number of episodes that reached the goal; the others were cut, or lost to failures of the system.
        horizon: the steps after which an episode was cut.
        mean: the mean number of steps; an episode that was cut counts as the horizon, or as the steps after which the
            system would have ended it, and one that was lost does not count.
        interval: Student's confidence interval for that mean, at `CONFIDENCE`.
        outcome: how that compares with the promised range.
    """

    goal: State
    promised: tuple[float, float]
    episodes: int
    arrived: int
    horizon: int
    mean: float
    interval: tuple[float, float]
    outcome: Outcome


@dataclass(frozen=True)
class OtherActions:
    """A state that offers other actions in the world than in the atlas.

    Attributes:
        state: the state.
        added: the actions that only the world has.
        missing: the actions that only the atlas has; where a policy plays one of them, RESET is played instead.
    """

    state: State
    added: tuple[Action, ...]
    missing: tuple[Action, ...]

    def __str__(self) -> str:
        parts = [
            f"{what} {', '.join(map(readable, actions))}"
            for what, actions in (("also offers", self.added), ("does not offer", self.missing))
            if actions
        ]
        return f"state {readable(self.state)} {' and '.join(parts)}"


@dataclass(frozen=True)
class Validation:
    """The result of all trials.

    Attributes:
        trials: one for each goal.
        steps: the steps taken in the world.
        false_alarm: the probability with which true bounds are contradicted at any goal.
        other_actions: the states of the atlas that offer other actions in the world.
        findings: what single draws have shown: that an assumption is false, or that rows are others than those counted.
    """

    trials: tuple[Trial, ...]
    steps: int
    false_alarm: float
    other_actions: tuple[OtherActions, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the atlas."""
        return not self.contradicted and not self.other_actions and not self.findings

    @property
    def contradicted(self) -> tuple[Trial, ...]:
        """The trials that contradict it."""
        return tuple(trial for trial in self.trials if trial.outcome is not Outcome.CONSISTENT)

    def rows(self) -> list[tuple[str, ...]]:
        """Returns a row of text for each goal, with the columns of `HEADINGS`."""
        return [
            (
                readable(trial.goal),
                f"{trial.mean:.3f}",
                f"{trial.interval[0]:.3f} to {trial.interval[1]:.3f}",
                f"{rounded_down(trial.promised[0])} to {rounded_up(trial.promised[1])}",
                f"{trial.arrived}/{trial.episodes}",
                trial.outcome.value,
            )
            for trial in self.trials
        ]

    def summary(self) -> str:
        """Returns the conclusion in a few sentences."""
        if self.holds:
            return f"Nothing contradicts the atlas: {len(self.trials)} goals tried, {self.steps:,} steps taken."
        sentences = []
        if self.other_actions:
            named = "; ".join(map(str, self.other_actions[:NAMED]))
            sentences.append(
                f"The system does not have the actions of the atlas in {len(self.other_actions)} of its states "
                f"({named}): what is proven says nothing of them."
            )
        sentences += [str(finding) for finding in self.findings]
        if self.contradicted:
            named = ", ".join(readable(trial.goal) for trial in self.contradicted[:NAMED])
            sentences.append(
                f"The system contradicts the atlas at {len(self.contradicted)} of {len(self.trials)} goals ({named}). "
                f"If its bounds were true, this would happen with a probability of at most {self.false_alarm:g}."
            )
        return " ".join(sentences)

    def __str__(self) -> str:
        return "\n".join([*("  ".join(row) for row in (HEADINGS, *self.rows())), self.summary()])


HEADINGS: Final = ("goal", "mean steps", "99 % interval", "promised", "arrived", "outcome")


@checked(
    episodes=whole(least=1),
    goals=optional(collection("states of the atlas")),
    horizon=optional(whole(least=1)),
    false_alarm=real(least=1e-100, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a probability"),
    seed=whole(),
    world_parameters=optional(settings),
)
def validate(
    atlas: Atlas,
    world: Any,
    episodes: int = EPISODES,
    *,
    goals: Collection[State] | None = None,
    horizon: int | None = None,
    false_alarm: float = FALSE_ALARM,
    seed: int = 0,
    world_parameters: Mapping[str, Any] | None = None,
) -> Validation:
    """Runs the policies of an atlas on a world; see the module.

    Args:
        atlas: what to try.
        world: where: a `World`, or what can be made one (see `axplore.worlds.catalogue.world_of`). Its start must be
            that of the atlas.
        episodes: how many for each goal.
        goals: which; all states of the atlas when not given.
        horizon: the steps after which an episode is cut; 20 times those promised when not given.
        false_alarm: the probability with which an atlas whose bounds are true may be contradicted.
        seed: of the noise of a world made here; a `World` has its own.
        world_parameters: of a world given by its name.
    """
    chosen = tuple(atlas.states if goals is None else goals)
    for goal in chosen:
        atlas.index_of(goal)
    level = (1 - DRAWS_SHARE) * false_alarm / (2 * max(1, len(chosen)))
    with world_for(world, seed, world_parameters, atlas.memory) as tried:
        trier, before = _Trier(atlas, tried, DRAWS_SHARE * false_alarm), tried.steps
        found = {goal for goal in atlas.states if trier.find(goal)}
        trials = tuple(_try(trier, goal, goal in found, episodes, horizon, level) for goal in chosen)
        steps, findings = tried.steps - before, tuple(trier.findings)
        return Validation(trials, steps, false_alarm, tuple(trier.other_actions), findings)


def _try(trier: _Trier, goal: State, is_found: bool, episodes: int, horizon: int | None, level: float) -> Trial:
    promised = _promised(trier.atlas, goal)
    if horizon is None:
        horizon = max(SHORTEST_HORIZON, math.ceil(HORIZON_FACTOR * promised[1]))
    if not is_found:
        return Trial(goal, promised, 0, 0, horizon, math.nan, (math.nan, math.nan), Outcome.NEVER_MET)
    lengths, arrived = trier.play(goal, episodes, horizon)
    mean, interval = float(lengths.mean()) if len(lengths) else math.nan, _interval(lengths, CONFIDENCE)
    if log_evidence_of_slowness(lengths, promised[1]) >= -math.log(level):
        outcome = Outcome.TOO_SLOW
    elif arrived == episodes >= FEWEST_FOR_MEAN and largest_mean(lengths, promised[1], level) < promised[0] - ROUNDING:
        outcome = Outcome.TOO_FAST
    else:
        outcome = Outcome.CONSISTENT
    return Trial(goal, promised, episodes, arrived, horizon, mean, interval, outcome)


def log_evidence_of_slowness(lengths: IntArray, upper: float) -> float:
    """Returns the logarithm of the evidence of lengths, [n], against a mean of at most `upper`."""
    if upper <= 0:
        return math.inf if (lengths > 0).any() else 0.0
    relative = lengths / upper - 1.0 - ROUNDING
    with np.errstate(divide="ignore"):  # λ = 1 loses everything at a length of 0
        gains = [np.log1p(np.maximum(bet * relative, -1.0)).sum() for bet in BETS]
    return float(np.logaddexp.reduce(gains) - math.log(len(BETS)))


def largest_mean(lengths: IntArray, upper: float, level: float) -> float:
    """Returns an approximate upper bound on the expected length, given lengths, [n]; see the module docstring."""
    unseen = min(1.0, -math.log(level) / len(lengths))
    return _interval(lengths, 1 - 2 * level)[1] + unseen * (1 + upper)


def _interval(lengths: IntArray, confidence: float) -> tuple[float, float]:
    from scipy.stats import t as student

    n = len(lengths)
    if n < 2:
        return (0.0, math.inf)
    mean = float(lengths.mean())
    half = float(student.ppf((1 + confidence) / 2, n - 1)) * float(lengths.std(ddof=1)) / math.sqrt(n)
    return (mean - half, mean + half)


def _promised(atlas: Atlas, goal: State) -> tuple[float, float]:
    bounds = atlas.bounds(goal)
    if goal == atlas.states[0]:
        return (0.0, 0.0)
    if bounds.proven and math.isfinite(bounds.upper):
        return (bounds.lower, bounds.upper)
    return (0.0, atlas.target.radius + atlas.target.epsilon)


class _Trier:
    """Plays the policies of an atlas in a world, and compares the actions that its states have in both.

    Attributes:
        atlas: the atlas.
        other_actions: the states of the atlas that offer other actions in the world.
        findings: what single draws have shown.
    """

    def __init__(self, atlas: Atlas, world: World, false_alarm: float) -> None:
        self.atlas, self._world = atlas, world
        self.other_actions: list[OtherActions] = []
        self.findings: list[Finding] = []
        during = "the policies were tried"
        self._checks = DrawChecks(atlas, world, during, false_alarm=false_alarm) if atlas.proven else None
        self._n_looked_at = 0
        self._lacking: dict[State, tuple[Action, ...]] = {}  # of the states that the world has shown
        if world.states[0] != atlas.states[0]:
            raise InvalidInputError(
                f"the atlas starts in {atlas.states[0]!r}, and the world in {world.states[0]!r}: it is another world"
            )

    def find(self, goal: State) -> bool:
        """Plays towards a goal until the world has shown it, or gives up; returns whether it has."""
        if not self._has_shown(goal):
            horizon = max(SHORTEST_HORIZON, math.ceil(SEARCH_FACTOR * _promised(self.atlas, goal)[1]))
            self._player(goal, horizon).meet(SEARCHES)
        return self._has_shown(goal)

    def play(self, goal: State, episodes: int, horizon: int) -> tuple[IntArray, int]:
        """Plays episodes and returns the lengths of those that were not lost, [n], and the number of arrivals."""
        played = self._player(goal, horizon).play_through(episodes)
        lengths = [episode.least_steps for episode in played if episode.outcome is not Miss.LOST]
        return np.array(lengths, dtype=np.int64), sum(episode.has_arrived for episode in played)

    def _player(self, goal: State, horizon: int) -> Player:
        policy = self.atlas.policy(goal).played()

        def choose(state: State, step: int) -> Action | Reset:
            action = policy.choose(state, step)
            return RESET if self._has_shown(state) and action in self._lacking[state] else action

        played = replace(policy, choose=choose)
        if self._checks is None:
            return player_of(self._world, played, goal, horizon, Restarts.CHOSEN)
        notice = self._checks.noticing(goal, self.findings)
        return player_of(self._world, played, goal, horizon, Restarts.CHOSEN, notice)

    def _has_shown(self, state: State) -> bool:
        """Returns whether the world has shown a state of the atlas by now."""
        if state not in self._lacking:
            for number in range(self._n_looked_at, len(self._world.states)):
                self._compare(number)
            self._n_looked_at = len(self._world.states)
        return state in self._lacking

    def _compare(self, number: int) -> None:
        """Compares the actions of a state of the world with those of the atlas."""
        state, offered = self._world.states[number], self._world.actions_of(number)
        index = self.atlas.indices.get(state)
        if index is None:
            return
        known = self.atlas.actions[index]
        added = tuple(action for action in offered if action not in known)
        self._lacking[state] = tuple(action for action in known if action not in offered)
        if added or self._lacking[state]:
            self.other_actions.append(OtherActions(state, added, self._lacking[state]))


def validation_as_json(validation: Validation) -> Mapping[str, Any]:
    """Returns a validation as JSON values; labels are written as in the file of an atlas."""
    from axplore.labels import encode_label

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "holds": validation.holds,
        "steps": validation.steps,
        "false_alarm": validation.false_alarm,
        "other_actions": [
            {
                "state": encode_label(other.state),
                "added": [encode_label(action) for action in other.added],
                "missing": [encode_label(action) for action in other.missing],
            }
            for other in validation.other_actions
        ],
        "findings": [pack(finding)[0] for finding in validation.findings],
        "goals": [
            {
                "goal": encode_label(trial.goal),
                "promised": [finite(bound) for bound in trial.promised],
                "episodes": trial.episodes,
                "arrived": trial.arrived,
                "horizon": trial.horizon,
                "mean": finite(trial.mean),
                "interval": [finite(bound) for bound in trial.interval],
                "outcome": trial.outcome.name,
            }
            for trial in validation.trials
        ],
    }
