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

The levels are divided among the goals: an atlas whose bounds are true is contradicted at any goal with a probability of
at most `false_alarm`, of which the second half is approximate.

The actions of each state are compared too. What is proven is about the actions of the atlas: a state that offers
others contradicts it for certain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import checked, collection, optional, real, settings, whole
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.errors import InvalidInputError
from axplore.labels import readable
from axplore.types import RESET_ACTION, Action, IntArray, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Episodes, Visit, World

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

EPISODES: Final = 100
FALSE_ALARM: Final = 1e-3
CONFIDENCE: Final = 0.99
"""The confidence of the interval that is shown for each mean."""

HORIZON_FACTOR: Final = 20
SHORTEST_HORIZON: Final = 100
"""An episode is cut after `HORIZON_FACTOR` times as many steps as promised, but never before this many."""

BETS: Final = tuple(2.0**-k for k in range(8))
"""The λ of the first test."""

SEARCHES: Final = 50
PLAYS: Final = 8
"""The number of searches for a goal that the system has not shown yet, and of plays of each pair in a search."""

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
        arrived: the number of episodes that reached the goal; the others were cut at the horizon.
        horizon: the steps after which an episode was cut.
        mean: the mean number of steps; an episode that was cut counts as the horizon.
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
    """

    trials: tuple[Trial, ...]
    steps: int
    false_alarm: float
    other_actions: tuple[OtherActions, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the atlas."""
        return not self.contradicted and not self.other_actions

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
        atlas.place_of(goal)
    level = false_alarm / (2 * max(1, len(chosen)))
    with world_for(world, seed, world_parameters, atlas.memory) as tried:
        traveller = _Traveller(atlas, tried)
        before = tried.steps
        for goal in atlas.states:
            traveller.find(goal)
        trials = tuple(_try(traveller, goal, episodes, horizon, level) for goal in chosen)
        return Validation(trials, tried.steps - before, false_alarm, tuple(traveller.other_actions))


def _try(traveller: _Traveller, goal: State, episodes: int, horizon: int | None, level: float) -> Trial:
    promised = _promised(traveller.atlas, goal)
    if horizon is None:
        horizon = max(SHORTEST_HORIZON, math.ceil(HORIZON_FACTOR * promised[1]))
    if goal not in traveller.numbers:
        return Trial(goal, promised, 0, 0, horizon, math.nan, (math.nan, math.nan), Outcome.NEVER_MET)
    lengths, arrived = traveller.lengths(goal, episodes, horizon)
    mean, interval = float(lengths.mean()), _interval(lengths, CONFIDENCE)
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

    mean, n = float(lengths.mean()), len(lengths)
    if n < 2:
        return (0.0, math.inf)
    half = float(student.ppf((1 + confidence) / 2, n - 1)) * float(lengths.std(ddof=1)) / math.sqrt(n)
    return (mean - half, mean + half)


def _promised(atlas: Atlas, goal: State) -> tuple[float, float]:
    bounds = atlas.bounds(goal)
    if goal == atlas.states[0]:
        return (0.0, 0.0)
    if bounds.proven and math.isfinite(bounds.upper):
        return (bounds.lower, bounds.upper)
    return (0.0, atlas.target.radius + atlas.target.epsilon)


class _Traveller:
    """Runs the policies of an atlas by orders to a world, which indexes states in its own order."""

    def __init__(self, atlas: Atlas, world: World) -> None:
        self.atlas, self._world = atlas, world
        self._places = {state: place for place, state in enumerate(atlas.states)}
        self._n_looked_at = 0
        self.numbers: dict[State, int] = {}  # places of the states of the atlas that the world has shown
        self._choice_maps: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.other_actions: list[OtherActions] = []
        if world.states[0] != atlas.states[0]:
            raise InvalidInputError(
                f"the atlas starts in {atlas.states[0]!r}, and the world in {world.states[0]!r}: it is another world"
            )
        self._look()

    def find(self, goal: State) -> None:
        """Plays towards a goal until the world has shown it, or gives up."""
        for _ in range(SEARCHES):
            if goal in self.numbers:
                return
            orders = [
                Visit(self.numbers[state], action, PLAYS, self._policy(state), SHORTEST_HORIZON, max_cuts=3)
                for state, action in self._pairs_towards(goal)
            ]
            if not orders:
                return
            self._world.carry_out(orders)
            self._look()

    def lengths(self, goal: State, episodes: int, horizon: int) -> tuple[IntArray, int]:
        """Runs episodes and returns their lengths, [episodes], and the number of arrivals."""
        while True:
            policy = self._policy(goal, horizon)
            orders = [Episodes(self.numbers[goal], 1, horizon, policy)] * episodes
            answers = self._world.carry_out(orders)
            # If the world showed a state of the atlas only now, the agent reset there instead of following the policy.
            if not self._look():
                lengths = np.array([answer.travelled for answer in answers], dtype=np.int64)
                return lengths, sum(answer.arrivals for answer in answers)

    def _look(self) -> bool:
        """Records the states that the world has shown since; returns whether a state of the atlas was among them."""
        labels = self._world.states
        met = False
        for number in range(self._n_looked_at, len(labels)):
            place = self._places.get(labels[number])
            if place is not None:
                self.numbers[labels[number]] = number
                self._choice_maps[place] = number, self._choices_of(number, place)
                met = True
        self._n_looked_at = len(labels)
        return met

    def _choices_of(self, number: int, place: int) -> tuple[int, ...]:
        """Where the world has each action of a state of the atlas among the state's own; RESET_ACTION if it has not."""
        offered = self._world.actions_of(number)
        known = self.atlas.actions[place]
        added = tuple(action for action in offered if action not in known)
        missing = tuple(action for action in known if action not in offered)
        if added or missing:
            self.other_actions.append(OtherActions(self.atlas.states[place], added, missing))
        return tuple(RESET_ACTION if action in missing else offered.index(action) for action in known)

    def _pairs_towards(self, goal: State) -> list[tuple[State, int]]:
        """Returns the pairs that the policy to a goal plays in states that the world has shown."""
        choices = np.atleast_2d(self.atlas.policies[self._places[goal]])
        pairs = []
        for place in range(choices.shape[1]):
            if place in self._choice_maps and place != self._places[goal]:
                translation = self._choice_maps[place][1]
                played = {translation[choice] for choice in choices[:, place].tolist() if choice != RESET_ACTION}
                pairs += [(self.atlas.states[place], action) for action in sorted(played - {RESET_ACTION})]
        return pairs

    def _policy(self, goal: State, horizon: int | None = None) -> IntArray:
        """Returns the policy to a goal in the indices of the world, [n], or [horizon, n] if it depends on the step.

        A visit has no steps, so it uses the choices of the first one.
        """
        planned = self.atlas.policies[self._places[goal]]
        staged = np.atleast_2d(planned)
        translated = np.full((len(staged), self._n_looked_at), RESET_ACTION, dtype=np.int64)
        for place in range(staged.shape[1]):
            if place in self._choice_maps:
                number, choices = self._choice_maps[place]
                translated[:, number] = [
                    choices[choice] if choice >= 0 else RESET_ACTION for choice in staged[:, place]
                ]
        first: IntArray = translated[0]
        if horizon is None or planned.ndim == 1:
            return first
        return _repeated(translated, horizon)


def _repeated(staged: IntArray, horizon: int) -> IntArray:
    """Returns a policy by step, [H, n], repeated with a RESET after its last step, [horizon, n]."""
    reset = np.full((1, staged.shape[1]), RESET_ACTION, dtype=np.int64)
    journey = np.concatenate((staged, reset))
    times = -(-horizon // len(journey))
    repeated: IntArray = np.tile(journey, (times, 1))[:horizon]
    return repeated


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
