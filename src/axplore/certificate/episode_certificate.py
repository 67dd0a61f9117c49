"""What episodes of one policy prove about it, as a file, and the verifier's own check of it.

An episode begins with RESET, plays the policy, and ends at the goal or after `horizon` steps. The certificate holds how
often each outcome came, and nothing about states, labels or rows: it needs no model. Someone who starts with the wealth
1 and stakes the part λ of it on each episode has 1 - λ z times as much after it, where z ≤ 1 is the *loss* of its
outcome. A hypothesis under which losses have an expectation of at least 0 lets this wealth reach 1 / δ with probability
at most δ, whenever one stops (Ville), and so does a mixture over λ that was fixed beforehand. docs/certify.md
has the losses and the proofs. Nothing here is shared with the statistics that decided when to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from axplore import storage
from axplore.certificate.claim_checks import ClaimCheck, ClaimKind, Verification
from axplore.certificate.document import LEAST_DELTA
from axplore.errors import DamagedFileError, ExitCode, InvalidInputError
from axplore.labels import decode_label, encode_label, readable
from axplore.target import confidence_text
from axplore.types import State

FORMAT: Final = "axplore episodes"
VERSION: Final = 1

N_BETS: Final = 20
LARGEST_BET: Final = 0.98
FIRST_WEIGHT: Final = 3
"""The λ staked are 0.98 / √2^i for i = 0, ..., 19, with weights that decrease like 1 / (i + 3)."""

ROUNDING: Final = 1e-13
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""

LEAST_BOUND: Final = 1e-6
"""Of expected steps; with a smaller one, losses would not be numbers any more."""

LONGEST: Final = 10**12
"""No horizon, and no number of episodes, is larger."""


class Decision(Enum):
    """What the episodes decide; the value is what to call it."""

    PROVEN = "proven"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class EpisodeCertificate:
    """A claim about one policy, the outcomes of its episodes, and what they decide.

    The claim is one of two. With `within`: the policy, restarted by RESET whenever it has not reached the goal after
    `horizon` steps, reaches it within this number of expected steps. With `chance`: it reaches the goal within
    `horizon` steps with at least this chance.

    Attributes:
        world, policy: what was played on, and what was played, in words.
        goal: the label of the goal.
        within: the bound B of the expected steps; None if a chance is claimed.
        chance: the bound p of the chance; None if steps are claimed.
        horizon: the steps after which an episode ends without the goal.
        delta: δ, the probability with which the decision may be wrong.
        decision: whether the claim is proven, refuted, or neither.
        arrivals: how many episodes reached the goal after each number of steps: {steps: times}.
        missed: how many ended without the goal.
        lost: how many have an unknown outcome, because the system failed or showed a state for which nothing was
            planned yet; they count against whatever is decided.
        steps: that all of it took, RESET included.
    """

    world: str
    policy: str
    goal: State
    within: float | None
    chance: float | None
    horizon: int
    delta: float
    decision: Decision
    arrivals: Mapping[int, int]
    missed: int
    lost: int
    steps: int

    def __post_init__(self) -> None:
        if (self.within is None) == (self.chance is None):
            raise InvalidInputError("a claim is either of expected steps or of a chance")
        if self.within is not None and not (_is_real(self.within) and self.within >= LEAST_BOUND):
            raise InvalidInputError(f"{self.within!r} expected steps cannot be claimed")
        if self.chance is not None and not (_is_real(self.chance) and 0 < self.chance < 1):
            raise InvalidInputError(f"a chance of {self.chance!r} cannot be claimed")
        if not (_is_real(self.delta) and LEAST_DELTA <= self.delta < 1):
            raise InvalidInputError(f"δ is {self.delta!r}, which is no probability between 0 and 1")
        for name, value, least in (("horizon", self.horizon, 1), ("missed", self.missed, 0), ("lost", self.lost, 0)):
            _check_whole(name, value, least)
        _check_whole("steps", self.steps, 0)
        for steps, times in self.arrivals.items():
            _check_whole("steps of an arrival", steps, 0)
            _check_whole("times of an arrival", times, 1)
            if steps > self.horizon:
                raise InvalidInputError(f"an episode arrived after {steps} steps, beyond the horizon {self.horizon}")

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return sum(self.arrivals.values()) + self.missed + self.lost

    @property
    def proven(self) -> bool:
        """Whether the claim is proven."""
        return self.decision is Decision.PROVEN

    @property
    def claim(self) -> str:
        """The claim in words."""
        goal, horizon = readable(self.goal), f"{self.horizon} step{'' if self.horizon == 1 else 's'}"
        if self.chance is not None:
            return f"{self.policy} reaches {goal} within {horizon} with a chance of at least {self.chance:g}"
        return (
            f"{self.policy}, restarted by RESET whenever it has not arrived after {horizon}, reaches {goal} within "
            f"{self.within:g} expected steps"
        )

    def __str__(self) -> str:
        seen = f"{self.episodes:,} episodes, {sum(self.arrivals.values()):,} of which arrived; {self.steps:,} steps"
        if self.decision is Decision.UNDECIDED:
            return f"Undecided whether {self.claim} ({seen})."
        verb = "Proven" if self.proven else "Refuted: it is false that"
        return (
            f"{verb}{': ' if self.proven else ' '}{self.claim}. This holds with a probability of at least "
            f"{confidence_text(self.delta)}, whatever the labels hide, as long as episodes are independent of each "
            f"other and alike ({seen})."
        )

    def save(self, path: Path | str) -> None:
        """Writes the certificate as a JSON file."""
        storage.write_document(Path(path), self._body())

    @classmethod
    def load(cls, path: Path | str) -> EpisodeCertificate:
        """Reads what `save` wrote; refuses a file that is missing, damaged, edited or of another version."""
        body = storage.read_document(Path(path), FORMAT, VERSION)
        try:
            return _assembled(body)
        except InvalidInputError as error:
            raise DamagedFileError(f"{path} is not a certificate by episodes: {error}") from None

    def _body(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **self.as_json()}

    def as_json(self) -> dict[str, Any]:
        """The certificate for machines."""
        return {
            "world": self.world,
            "policy": self.policy,
            "goal": encode_label(self.goal),
            "within": self.within,
            "chance": self.chance,
            "horizon": self.horizon,
            "delta": self.delta,
            "decision": self.decision.value,
            "arrivals": [[steps, times] for steps, times in sorted(self.arrivals.items())],
            "missed": self.missed,
            "lost": self.lost,
            "steps": self.steps,
        }


def verify_episodes(certificate: EpisodeCertificate) -> Verification:
    """Checks from the outcomes alone what a certificate by episodes says to be decided."""
    goal = readable(certificate.goal)
    if certificate.decision is Decision.UNDECIDED:
        nothing = ClaimCheck(
            ClaimKind.EPISODES, goal, None, holds=True, why="nothing is decided, so nothing is claimed"
        )
        return Verification((nothing,), ("the claim is undecided",), (str(certificate),), ExitCode.UNFINISHED)
    wealth, needed = log_wealth(certificate), -math.log(certificate.delta)
    holds = wealth >= needed
    check = ClaimCheck(
        kind=ClaimKind.EPISODES,
        subject=goal,
        position=None,
        holds=holds,
        why=f"{certificate.episodes:,} episodes gain {wealth:.6g} nats, of {needed:.6g} needed",
    )
    return Verification((check,), (), (str(certificate),), ExitCode.DONE if certificate.proven else ExitCode.REFUTED)


def log_wealth(certificate: EpisodeCertificate) -> float:
    """The logarithm of what betting against the opposite of the decision has brought, rounded down."""
    loss, missed = _losses(certificate)
    outcomes = [(loss(steps), times) for steps, times in certificate.arrivals.items()]
    # A loss of 1 is the largest: an unknown outcome counts as the worst that it may have been.
    outcomes += [(missed, certificate.missed), (1.0, certificate.lost)]
    total = math.fsum(1.0 / (bet + FIRST_WEIGHT) for bet in range(N_BETS))
    terms = []
    for bet in range(N_BETS):
        fraction = LARGEST_BET * 0.5 ** (bet / 2)
        logarithms = [-math.log((bet + FIRST_WEIGHT) * total)]
        logarithms += [times * math.log1p(-fraction * lost) for lost, times in outcomes if times]
        terms.append(math.fsum(logarithms) - ROUNDING * (1.0 + math.fsum(map(abs, logarithms))))
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - 20 * ROUNDING


def _losses(certificate: EpisodeCertificate) -> tuple[Callable[[int], float], float]:
    """The loss of an episode that arrives after a number of steps, and of one that misses."""
    horizon, proven = certificate.horizon, certificate.proven
    if certificate.within is not None:
        bound = certificate.within
        if proven:
            return (lambda steps: (steps - bound) / (horizon + 1.0)), 1.0
        return (lambda steps: 1.0 - steps / bound), -(horizon + 1.0) / bound
    assert certificate.chance is not None
    chance = certificate.chance
    if proven:
        return (lambda _: 1.0 - 1.0 / chance), 1.0
    return (lambda _: 1.0), -chance / (1.0 - chance)


KEYS: Final = frozenset(
    (
        "format", "version", "world", "policy", "goal", "within", "chance", "horizon", "delta", "decision", "arrivals",
        "missed", "lost", "steps",
    )
)  # fmt: skip


def _assembled(body: Mapping[str, Any]) -> EpisodeCertificate:
    """The certificate of a file; refuses everything that `save` does not write."""
    if body.keys() != KEYS:
        raise InvalidInputError(f"it needs {', '.join(sorted(KEYS))}, and nothing else")
    if not isinstance(body["world"], str) or not isinstance(body["policy"], str):
        raise InvalidInputError("'world' and 'policy' must be text")
    if body["decision"] not in [decision.value for decision in Decision]:
        raise InvalidInputError(f"there is no decision {body['decision']!r}")
    rows = body["arrivals"]
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 2 for row in rows):
        raise InvalidInputError("'arrivals' is not a list of steps and times")
    for row in rows:
        _check_whole("arrivals", row[0], 0)
    if [row[0] for row in rows] != sorted({row[0] for row in rows}):
        raise InvalidInputError("'arrivals' is not in order")
    rest = {key: body[key] for key in ("world", "policy", "within", "chance", "horizon", "delta", "missed", "lost")}
    return EpisodeCertificate(
        **rest,
        steps=body["steps"],
        goal=decode_label(body["goal"]),
        decision=Decision(body["decision"]),
        arrivals=dict(rows),
    )


def _is_real(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _check_whole(name: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value <= LONGEST:
        raise InvalidInputError(f"{name} is {value!r}, not a whole number from {least} to {LONGEST}")
