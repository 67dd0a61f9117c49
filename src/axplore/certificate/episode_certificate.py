"""What episodes of one policy prove about it, as a file, and the verifier's own check of it.

An episode begins with RESET, plays the policy, and ends at the goal, after `horizon` steps, or at the next RESET; if
restarts are part of the policy, it goes on after a RESET. The certificate holds how often each outcome came, and
nothing about states, labels or rows: it needs no model. Someone who starts with the wealth 1 and stakes the part λ of
it on each episode has 1 - λ z times as much after it, where z ≤ 1 is the *loss* of its outcome. A hypothesis under
which losses have an expectation of at least 0 lets this wealth reach 1 / δ with probability at most δ, whenever one
stops (Ville), and so does a mixture over λ that was fixed beforehand. docs/certify.md has the losses and the proofs.
Nothing here is shared with the statistics that decided when to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from axplore import storage
from axplore.certificate.claim_checks import ClaimCheck, Verification
from axplore.certificate.ranges import LEAST_DELTA, LEAST_PROBABILITY, MOST_STEPS, check_real, check_whole
from axplore.errors import DamagedFileError, ExitCode, InvalidInputError
from axplore.labels import decode_label, encode_label, readable
from axplore.records.codec import pack, unpack
from axplore.records.findings import Finding
from axplore.target import confidence_text
from axplore.types import State

FORMAT: Final = "axplore episodes"
VERSION: Final = 3

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

    The claim is one of two, each without or with restarts; `claim` has it in words. With `chance`: the policy reaches
    the goal within `horizon` steps with at least this chance. With `within`: it takes at most this number of expected
    steps; an episode that does not arrive within `horizon` steps counts as `horizon` + 1 + `within`, which is what it
    takes if it is restarted then.

    Attributes:
        world, policy: what was played on, and what was played, in words.
        goal: the label of the goal.
        within: the bound B of the expected steps; None if a chance is claimed.
        chance: the bound p of the chance; None if steps are claimed.
        horizon: the steps after which an episode ends without the goal.
        restarts: whether RESET is a step of the policy, after which an episode goes on. If not, it ends there, without
            the goal.
        delta: δ, the probability with which the decision may be wrong.
        decision: whether the claim is proven, refuted, or neither.
        arrivals: how many episodes reached the goal after each number of steps: {steps: times}.
        missed: how many did not reach the goal.
        ended: how many of these a RESET ended; none with restarts.
        lost: how many have an unknown outcome, because the system failed or showed a state for which nothing was
            planned yet; they count against whatever is decided.
        steps: that all of it took, RESET included.
        findings: what the draws have shown of the atlas that the policy is of, if it was at hand; it does not touch
            what episodes prove.
    """

    world: str
    policy: str
    goal: State
    within: float | None
    chance: float | None
    horizon: int
    restarts: bool
    delta: float
    decision: Decision
    arrivals: Mapping[int, int]
    missed: int
    ended: int
    lost: int
    steps: int
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if (self.within is None) == (self.chance is None):
            raise InvalidInputError("a claim is either of expected steps or of a chance")
        if self.within is not None:
            check_real("the number of expected steps claimed", self.within, LEAST_BOUND, MOST_STEPS)
        if self.chance is not None:
            check_real("the chance claimed", self.chance, LEAST_PROBABILITY, math.nextafter(1, 0))
        check_real("δ", self.delta, LEAST_DELTA, math.nextafter(1, 0))
        if type(self.restarts) is not bool:
            raise InvalidInputError("restarts is neither true nor false")
        check_whole("horizon", self.horizon, 1, LONGEST)
        for name in ("missed", "ended", "lost", "steps"):
            check_whole(name, getattr(self, name), 0, LONGEST)
        for steps, times in self.arrivals.items():
            check_whole("steps of an arrival", steps, 0, LONGEST)
            check_whole("times of an arrival", times, 1, LONGEST)
            if steps > self.horizon:
                raise InvalidInputError(f"an episode arrived after {steps} steps, beyond the horizon {self.horizon}")
        self._check_ends()
        if self.steps < self._least_steps:
            raise InvalidInputError(f"{self.steps} steps are too few: the episodes took {self._least_steps} at least")

    def _check_ends(self) -> None:
        if self.ended > self.missed:
            raise InvalidInputError(f"{self.ended} episodes ended before the goal, but {self.missed} missed it")
        if self.ended and self.restarts:
            raise InvalidInputError(f"{self.ended} episodes ended at a RESET, but with restarts they go on")
        if self._has_no_mean and self.decision is not Decision.UNDECIDED:
            raise InvalidInputError("expected steps are decided, though an episode ended before the goal")

    @property
    def _has_no_mean(self) -> bool:
        """Whether there are no expected steps to decide on: an episode ended, and never arrives without restarts."""
        return self.within is not None and self.ended > 0

    @property
    def _least_steps(self) -> int:
        """The fewest steps of the episodes, with the RESET that begins each."""
        arrived = sum(times * (steps + 1) for steps, times in self.arrivals.items())
        return arrived + (self.missed - self.ended) * (self.horizon + 1) + self.ended

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
        how = "with restarts" if self.restarts else "without any reset in between"
        reaches = f"{self.policy} reaches {goal}, {how}, within"
        if self.within is None:
            restarting = " (a RESET where an episode ends is one of the steps)" if self.restarts else ""
            return f"{reaches} {horizon} with a chance of at least {self.chance:g}{restarting}"
        if self.restarts:
            late = f"a RESET, which is a step, where an episode ends or has not arrived after {horizon}"
        else:
            late = f"an episode that does not arrive within {horizon} counts as {self.horizon + 1 + self.within:g}"
        return f"{reaches} {self.within:g} expected steps ({late})"

    def __str__(self) -> str:
        return " ".join((self._decided, *(f"Of the atlas: {finding}" for finding in self.findings)))

    @property
    def _decided(self) -> str:
        """What is decided, in a few sentences."""
        played = f"Episodes: {self.episodes:,}, of which {sum(self.arrivals.values()):,} arrived"
        played += f" and {self.ended:,} ended before the goal" if self.ended else ""
        played += f", in {self.steps:,} steps."
        if self._has_no_mean:
            return (
                f"Undecided whether {self.claim}: an episode ended before the goal, and one that never arrives has no "
                "number of steps. Ask for the policy with restarts (--restarts, restarts=True), or for a chance. "
                f"{played}"
            )
        if self.decision is Decision.UNDECIDED:
            return f"Undecided whether {self.claim}. {played}"
        verb = "Proven" if self.proven else "Refuted: it is false that"
        return (
            f"{verb}{': ' if self.proven else ' '}{self.claim}. This holds with a probability of at least "
            f"{confidence_text(self.delta)}, whatever the labels hide, as long as episodes are independent of each "
            f"other and alike. {played}"
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
            "restarts": self.restarts,
            "delta": self.delta,
            "decision": self.decision.value,
            "arrivals": [[steps, times] for steps, times in sorted(self.arrivals.items())],
            "missed": self.missed,
            "ended": self.ended,
            "lost": self.lost,
            "steps": self.steps,
            "findings": pack(self.findings)[0],
        }


def verify_episodes(certificate: EpisodeCertificate) -> Verification:
    """Checks from the outcomes alone what a certificate by episodes says to be decided."""
    goal = readable(certificate.goal)
    if certificate.decision is Decision.UNDECIDED:
        nothing = ClaimCheck("episodes", goal, None, holds=True, why="nothing is decided, so nothing is claimed")
        return Verification((nothing,), ("the claim is undecided",), (str(certificate),), ExitCode.UNFINISHED)
    wealth, needed = log_wealth(certificate), -math.log(certificate.delta)
    holds = wealth >= needed
    check = ClaimCheck(
        kind="episodes",
        subject=goal,
        index=None,
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
        "format", "version", "world", "policy", "goal", "within", "chance", "horizon", "restarts", "delta", "decision",
        "arrivals", "missed", "ended", "lost", "steps", "findings",
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
        check_whole("arrivals", row[0], 0, LONGEST)
    if [row[0] for row in rows] != sorted({row[0] for row in rows}):
        raise InvalidInputError("'arrivals' is not in order")
    decoded = {
        "goal": decode_label(body["goal"]),
        "decision": Decision(body["decision"]),
        "arrivals": dict(rows),
        "findings": unpack(tuple[Finding, ...], body["findings"]),
    }
    return EpisodeCertificate(**{key: body[key] for key in KEYS - {"format", "version"}} | decoded)
