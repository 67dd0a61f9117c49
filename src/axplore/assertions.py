"""Assertions about systems that can be reset and stepped, for tests: see docs/pytest.md.

    from axplore.testing import assert_never, assert_reaches, assert_unchanged

    def test_a_customer_can_pay():
        assert_reaches(Shop, "thanks", within=9)

Each ends in one of three ways. It passes if the claim is proven; it fails if it is refuted; and it fails, with
"Undecided", if the budget of steps and seconds did not decide it. Claims are wrong with a probability of at most one
minus the confidence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from axplore.arguments import checked, file_path, label, optional, real, whole
from axplore.assertion_context import context
from axplore.atlas import Atlas
from axplore.atlas.certification import certify
from axplore.atlas.difference import Difference, failures_named
from axplore.atlas.map_file import CommittedMap, map_of, read_map, write_map
from axplore.atlas.questions import Checked
from axplore.certificate import EpisodeCertificate
from axplore.certificate.episode_certificate import Decision
from axplore.certificate.promise import lower_text, upper_text
from axplore.errors import AxploreError, ExitCode, InvalidInputError, StorageError, printable
from axplore.explorers.base import Observer, RoundReport
from axplore.explorers.certified import Certified
from axplore.exploring import explore as explore_without_budget
from axplore.labels import readable
from axplore.records.run import StopReason
from axplore.report.difference_text import table_of
from axplore.report.page import write_report
from axplore.report.side_by_side import write_difference_page
from axplore.target import Objective, Target
from axplore.types import State, Status

__all__ = ["assert_never", "assert_reaches", "assert_unchanged", "explore"]

CONFIDENCE: Final = 0.99

DRAWS: Final = 100
"""How often `assert_unchanged` draws every action at least: enough to notice that 5 % became 33 %."""

LEAST_GROWTH, MOST_GROWTH = 2, 16
"""An attempt of `assert_never` draws at least and at most this many times as often as the one before."""

NOT_EXPLORED: Final = (
    "States that were not explored count as if they led there: a larger radius= explores more of them."
)

SHOWN_LINES: Final = 20
"""The most changes that a failure lists; the page has all."""

_CONFIDENCE: Final = real(above=0, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a probability")
_LIMITS: Final = {"max_steps": optional(whole(least=1)), "max_seconds": optional(real(above=0)), "seed": whole()}


class _Budget:
    """The steps and seconds that are left to an assertion."""

    def __init__(self, max_steps: int | None, max_seconds: float | None) -> None:
        self.max_steps = context().max_steps if max_steps is None else max_steps
        self.max_seconds = context().max_seconds if max_seconds is None else max_seconds
        self.taken = 0
        self._ends = time.monotonic() + self.max_seconds

    @property
    def steps(self) -> int:
        """The steps that are left."""
        return max(0, self.max_steps - self.taken)

    @property
    def seconds(self) -> float:
        """The seconds that are left; never none at all, so that it is a limit."""
        return max(1e-3, self._ends - time.monotonic())

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.steps == 0 or time.monotonic() >= self._ends

    def __str__(self) -> str:
        return (
            f"{self.taken:,} steps of {self.max_steps:,} were taken, in at most {self.max_seconds:g} seconds; "
            "max_steps= and max_seconds=, or axplore_max_steps and axplore_max_seconds in the settings of pytest, "
            "allow for more"
        )


def explore(world: Any, *arguments: Any, **settings: Any) -> Atlas:
    """Explores as `axplore.explore` does, within the budget of the test unless limits are given."""
    limits = {"max_steps": context().max_steps, "max_seconds": context().max_seconds}
    return explore_without_budget(world, *arguments, **{**limits, **settings})


@checked(goal=label, confidence=_CONFIDENCE, **_LIMITS)
def assert_reaches(
    world: Any,
    goal: State,
    *,
    within: float | None = None,
    chance: float | None = None,
    steps: int | None = None,
    policy: Any = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    max_steps: int | None = None,
    max_seconds: float | None = None,
) -> EpisodeCertificate:
    """Asserts that a policy reaches a goal within a number of expected steps, or with a chance; see `axplore.certify`.

    A short exploration finds the policy, unless one is given. Then independent episodes of it decide, whatever the
    labels of states hide. RESET is a step of the policy.

    Args:
        world: the system: a class or function that makes it, or anything else that can be explored.
        goal: the label of the state to reach.
        within: the expected steps that it may take.
        chance, steps: in its place, the least chance to arrive within a number of steps.
        policy: what to play: an atlas, a policy, a function of the label, or an object with `predict`.
        confidence: the probability with which the decision is right, at least.
        seed: the seed of the noise.
        max_steps, max_seconds: the budget; by default, that of the test.

    Returns:
        The certificate, which can be saved and verified.

    Raises:
        AssertionError: the claim is refuted, or undecided.
    """
    __tracebackhide__ = True
    budget = _Budget(max_steps, max_seconds)
    delta, atlas = _delta(confidence), None
    if policy is None:
        radius = max(1.0, float(within or steps or 1))
        policy = atlas = _found(world, goal, radius, delta, seed, budget)
    if budget.is_spent:
        raise _failure(
            f"Undecided whether {readable(goal)} is reached: no step is left to test it.", str(budget), atlas=atlas
        )
    certificate = certify(
        policy,
        world,
        goal,
        within=within,
        chance=chance,
        steps=steps,
        restarts=True,
        delta=delta,
        max_steps=budget.steps,
        max_seconds=budget.seconds,
        seed=seed + 1,
    )
    budget.taken += certificate.steps
    if not certificate.proven:
        undecided = [str(budget)] if certificate.decision is Decision.UNDECIDED else []
        raise _failure(str(certificate), *undecided, *_route(atlas, goal), atlas=atlas)
    return certificate


def _found(world: Any, goal: State, radius: float, delta: float, seed: int, budget: _Budget) -> Atlas:
    """Returns an atlas with a policy to the goal, from an exploration that ends as soon as there is one."""
    __tracebackhide__ = True
    atlas = explore_without_budget(
        world,
        radius=radius,
        epsilon=radius / 2,
        delta=delta,
        objective="within-radius",
        seed=seed,
        doctor=False,
        max_steps=max(1, budget.steps // 2),
        max_seconds=budget.seconds / 2,
        on_round=_until_known(goal),
    )
    budget.taken += atlas.run.steps_in_all
    if goal in atlas:
        return atlas
    report = atlas.describe(goal)
    refuted = f"Refuted: {readable(goal)} is not reached within {radius:g} expected steps. {report.reason}"
    undecided = f"Undecided whether {readable(goal)} is reached. {report.reason}", str(budget)
    raise _failure(*([refuted] if report.status is Status.SET_ASIDE else undecided), atlas=atlas)


def _until_known(goal: State) -> Observer:
    """Returns what ends an exploration when a state is known to be within reach."""

    def look(report: RoundReport) -> StopReason | None:
        number = report.state.counts.order.indices.get(goal)
        return StopReason.INTERRUPTED if number in report.state.known else None

    return look


@checked(
    within=whole(least=1),
    at_most=real(above=0, most=math.nextafter(1, 0), wanted="between 0 and 1, because it is a probability"),
    radius=optional(real(least=1)),
    confidence=_CONFIDENCE,
    **_LIMITS,
)
def assert_never(
    world: Any,
    state: State | Callable[[State], bool],
    *,
    within: int,
    at_most: float,
    radius: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    max_steps: int | None = None,
    max_seconds: float | None = None,
) -> Checked:
    """Asserts that a state is met with at most a small probability, whatever is played.

    What is proven: from the initial state, no policy at all meets the state within the given number of steps with a
    probability above `at_most`. Nothing less than this bound can be proven by trying, which is why there is no default:
    of an outcome that never came in n draws, only that it is rarer than about 10 / n is known. States that were seen
    and not explored count as if they led there.

    Args:
        world: the system: a class or function that makes it, or anything else that can be explored.
        state: the label of the state, or a function that says of a label whether it is meant.
        within: the number of steps.
        at_most: the probability that is allowed.
        radius: states that take more expected steps are not explored; by default, twice `within`.
        confidence: the probability with which the decision is right, at least.
        seed: the seed of the noise.
        max_steps, max_seconds: the budget; by default, that of the test.

    Returns:
        The bounds that were proven.

    Raises:
        AssertionError: a policy is proven to meet it more often, or that is undecided.
    """
    __tracebackhide__ = True
    budget = _Budget(max_steps, max_seconds)
    is_meant, name = _meant(state)
    claim = f"{name} is met within {within} steps with a probability of at most {at_most:g}, whatever is played"
    reach = 2.0 * within if radius is None else radius
    draws = math.ceil(2 * within / at_most)
    for attempt in count(1):
        # Every attempt rests on draws of its own, and has its own part of the error: a half, a quarter, ...
        target = Target(radius=reach, epsilon=reach / 2, delta=_delta(confidence) / 2**attempt)
        atlas = explore_without_budget(
            world,
            explorer=_by_counts(target, draws),
            seed=seed + attempt - 1,
            doctor=attempt == 1,
            max_steps=budget.steps,
            max_seconds=budget.seconds,
        )
        budget.taken += atlas.run.steps_in_all
        answer = atlas.check(is_meant, within=within)
        found = f"The probability is between {lower_text(answer.lower)} and {upper_text(answer.upper)}."
        if atlas.verdict.doubts:
            doubts = (f"In doubt: {doubt}" for doubt in atlas.verdict.doubts)
            raise _failure(f"Undecided whether {claim}.", *doubts, atlas=atlas)
        if answer.upper <= at_most:
            return answer
        ways = tuple(_ways_to(is_meant, atlas))
        if answer.lower > at_most:
            raise _failure(f"Refuted: it is false that {claim}. {found}", *ways, atlas=atlas)
        if budget.is_spent:
            raise _failure(f"Undecided whether {claim}. {found}", *ways, NOT_EXPLORED, str(budget), atlas=atlas)
        draws *= math.ceil(min(max(answer.upper / at_most, LEAST_GROWTH), MOST_GROWTH))
    raise AssertionError("attempts have no end")


def _meant(state: State | Callable[[State], bool]) -> tuple[Callable[[State], bool], str]:
    """Returns whether a label is meant, and what to call the state."""
    if callable(state):
        chosen = state
        return (lambda met: bool(chosen(met))), getattr(state, "__name__", "the state")
    wanted = label("state", state)
    return (lambda met: met == wanted), readable(wanted)


def _delta(confidence: float) -> float:
    """Returns δ; 0.99 leaves 0.01, without the rounding of the difference."""
    return round(1.0 - confidence, 12) or 1.0 - confidence


def _by_counts(target: Target, draws: int) -> Certified:
    """Returns an explorer whose proofs rest on counts alone, and that draws every action this often."""
    return Certified(target=target, objective=Objective.WITHIN_RADIUS, by_episodes=False, first_draws=draws)


def _ways_to(is_meant: Callable[[State], bool], atlas: Atlas) -> Iterator[str]:
    """Yields which actions led to a state, and how often."""
    for state, action in atlas.pairs:
        outcomes = atlas.successors(state, action)
        times = sum(count for outcome, count in outcomes.items() if is_meant(outcome))
        if times:
            yield f"{readable(action)} in {readable(state)} led there {times:,} of {sum(outcomes.values()):,} times"


@checked(
    path=file_path,
    radius=real(least=1),
    epsilon=optional(real(above=0)),
    draws=whole(least=1),
    confidence=_CONFIDENCE,
    **_LIMITS,
)
def assert_unchanged(
    world: Any,
    path: str | Path,
    *,
    radius: float,
    epsilon: float | None = None,
    draws: int = DRAWS,
    fail_on: str | Collection[str] = "any",
    confidence: float = CONFIDENCE,
    seed: int = 0,
    max_steps: int | None = None,
    max_seconds: float | None = None,
) -> Difference | None:
    """Asserts that a system has not changed since its map was committed.

    It explores the system and compares: states that are lost or slower, and every action whose outcomes have changed;
    see docs/diff.md. Of a system that has not changed, it fails with a probability of at most three times one minus the
    confidence. `--axplore-update` writes the map.

    Args:
        world: the system: a class or function that makes it, or anything else that can be explored.
        path: the file of the map; a relative one begins beside the file of the test.
        radius, epsilon: what is mapped: states within this many expected steps; by default, ε is a third of the radius.
        draws: how often every action is drawn at least. More draws notice smaller changes.
        fail_on: lost, slower, rows, worse, or any, or several of these; "any" also fails if a state has other actions.
        confidence: that of each bound and of all changed actions together.
        seed: the seed of the noise.
        max_steps, max_seconds: the budget; by default, that of the test.

    Returns:
        The difference, which may name states at the border of the radius; None if the map was written.

    Raises:
        AssertionError: something has changed, that is undecided, or there is no map.
    """
    __tracebackhide__ = True
    file = context().folder / path
    names = (fail_on,) if isinstance(fail_on, str) else tuple(fail_on)
    failing = failures_named(names)
    target = Target(radius=radius, epsilon=radius / 3 if epsilon is None else epsilon, delta=_delta(confidence))
    old = None if context().update else _committed(file, target)
    budget = _Budget(max_steps, max_seconds)
    new = explore_without_budget(
        world, explorer=_by_counts(target, draws), seed=seed, max_steps=budget.steps, max_seconds=budget.seconds
    )
    budget.taken += new.run.steps_in_all
    if new.verdict.exit_code is not ExitCode.DONE:
        raise _failure(f"Undecided whether {file.name} still holds.", *new.verdict.lines, str(budget), atlas=new)
    if old is None:
        write_map(map_of(new), file)
        return None
    difference = old.atlas().diff(new, confidence)
    other_actions = [change for change in difference.changes if change.actions_lost or change.actions_gained]
    if difference.failures(failing) or ("any" in names and other_actions):
        raise _failure(
            f"The system has changed since {file.name} was written.", *_changes(difference), difference=difference
        )
    if difference.exit_code_for(failing) is not ExitCode.DONE:
        headline = f"Undecided whether the system has changed since {file.name} was written."
        raise _failure(headline, *_changes(difference), difference=difference)
    return difference


def _committed(file: Path, target: Target) -> CommittedMap:
    """Returns the map that was committed; fails if there is none, or one of other settings."""
    __tracebackhide__ = True
    again = "run pytest with --axplore-update to write it"
    if not file.exists():
        raise _failure(f"There is no map {file}: {again}, look at it, and commit it.")
    try:
        committed = read_map(file)
    except (InvalidInputError, StorageError) as error:
        raise _failure(f"{error}. Restore the map, or {again} anew.") from None
    if (committed.target, committed.objective) != (target, Objective.WITHIN_RADIUS):
        made, asked = _asked(committed.target), _asked(target)
        raise _failure(f"The map {file} was made for {made}, and the test asks for {asked}: {again} anew.")
    return committed


def _asked(target: Target) -> str:
    return f"radius {target.radius:g}, epsilon {target.epsilon:g} and confidence {1 - target.delta:g}"


def _changes(difference: Difference) -> Iterator[str]:
    """Yields what changed, in the words of `axplore diff`."""
    rows = table_of(difference)
    for subject, change, why in rows[:SHOWN_LINES]:
        yield f"{subject}: {change}, {why}" if change != "changed" else why
    if len(rows) > SHOWN_LINES:
        yield f"and {len(rows) - SHOWN_LINES} more"
    yield from difference.summary
    yield "If this is meant, run pytest with --axplore-update, and commit the map."


def _route(atlas: Atlas | None, goal: State) -> Iterator[str]:
    """Yields the most likely route of a policy, if there is one."""
    if atlas is not None:
        with suppress(InvalidInputError):
            yield f"The route: {atlas.path(goal)}"


def _failure(
    headline: str, *lines: str, atlas: Atlas | None = None, difference: Difference | None = None
) -> AssertionError:
    """Returns the failure of a test: a headline, some lines, and where the page is."""
    page = None
    with suppress(AxploreError, OSError):  # what failed matters more than a page that cannot be written
        page = _page(atlas, difference)
    where = [] if page is None else [f"The page: {page}"]
    return AssertionError(printable("\n  ".join([headline, *lines, *where])))


def _page(atlas: Atlas | None, difference: Difference | None) -> Path | None:
    """Writes a page of what was found, and returns its path."""
    if difference is not None:
        return write_difference_page(difference, context().pages() / "changes.html")
    if atlas is None:
        return None
    folder = context().pages()
    atlas.save(folder)
    return write_report(folder)
