"""Why a state is not in an atlas, and what would decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from axplore.atlas.learned_model import index_in_model, known_indices
from axplore.atlas.state_report import rounded_down
from axplore.proofs.bounds import IntervalModel, empirical_path
from axplore.proofs.claims import Draws, ToReach, ToSetAside, cheapest_draws
from axplore.proofs.travel import Travel
from axplore.statistics.confidence import row_hulls
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


class Reason(Enum):
    """The kind of reason why a state is not in an atlas; the value is a phrase for the reader."""

    IS_IN = "it is in the atlas"
    NEVER_SEEN = "it was never seen"
    TOO_UNLIKELY = "no action leads there often enough"
    TOO_FAR = "every way there is too long"
    UNDECIDED = "it is undecided"
    NOT_FOUND = "the explorer left it out, which proves nothing"


@dataclass(frozen=True)
class WhyNot:
    """Why a state is not in an atlas.

    Attributes:
        state: its label.
        reason: the kind of reason.
        text: the reason with its numbers.
        beyond: the number of expected steps by which it is proven to exceed the radius; 0 if that is not proven.
        estimate: the expected steps by the observed frequencies; infinite if no route was met. Not a bound.
        draws: for an undecided state, the additional draws of each pair that would decide it, if the frequencies
            do not change.
        steps: about how many steps these take.
    """

    state: State
    reason: Reason
    text: str
    beyond: float = 0.0
    estimate: float = np.inf
    draws: Mapping[tuple[State, Action], int] = field(default_factory=dict)
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.state}: {self.text}"


def why_not(atlas: Atlas, state: State) -> WhyNot:
    """Returns why a state is not in an atlas: too unlikely, too far, undecided, or never seen."""
    if state in atlas.indices:
        return WhyNot(state, Reason.IS_IN, "It is in the atlas.", estimate=atlas.plan(state).estimate)
    if state not in atlas.seen:
        return WhyNot(state, Reason.NEVER_SEEN, atlas.describe(state).reason)
    model = atlas.model
    index = index_in_model(model, atlas.seen.index(state))
    estimate = empirical_path(model, index).steps if index != model.unseen else np.inf
    report = atlas.describe(state)
    if not atlas.can_be_relied_on:
        return WhyNot(state, Reason.NOT_FOUND, f"{report.reason} {_estimated(atlas, estimate)}", estimate=estimate)
    beyond = report.bounds.lower - atlas.target.radius
    if beyond > 0:
        reason, text = _ruled_out(atlas, model, index, beyond)
        return WhyNot(state, reason, text, beyond=beyond, estimate=estimate)
    return _undecided(atlas, model, state, index, estimate)


def _ruled_out(atlas: Atlas, model: IntervalModel, index: int, beyond: float) -> tuple[Reason, str]:
    """Returns the reason for a state that is proven too far: the last step alone, or the whole way."""
    radius = atlas.target.radius
    far = (
        f"Every policy through the states of the atlas takes at least {rounded_down(radius + beyond)} expected steps, "
        f"which is {rounded_down(beyond)} more than the radius of {radius:g}."
    )
    likeliest = greatest_chance(model, index)
    if likeliest < 1 / radius:
        return Reason.TOO_UNLIKELY, (
            f"No action leads there with a probability above {likeliest:.3g}, and each state within the radius is "
            f"reached by some action with at least 1/{radius:g}. {far}"
        )
    return Reason.TOO_FAR, far


def greatest_chance(model: IntervalModel, index: int) -> float:
    """Returns the largest probability with which, in any model of the region, an action leads to a state."""
    _, high, unseen = row_hulls(model.rows.row_offsets, model.rows.shares, model.rows.slack)
    seen = model.rows.successors == index
    pairs = np.repeat(np.arange(model.n_pairs), np.diff(model.rows.row_offsets))
    elsewhere = np.setdiff1d(np.arange(model.n_pairs), pairs[seen])
    return float(max(high[seen].max(initial=0.0), unseen[elsewhere].max(initial=0.0)))


def _undecided(atlas: Atlas, model: IntervalModel, state: State, index: int, estimate: float) -> WhyNot:
    target = atlas.target
    looks_near = estimate <= target.radius + target.epsilon / 2
    claim = ToReach(index, target.radius + target.epsilon) if looks_near else ToSetAside(index, target.radius)
    if (model.visits == 0).any():
        wanted = dict.fromkeys(_named(atlas, model, np.flatnonzero(model.visits == 0)), 1)
        never_played = "Some actions of the states of the atlas were never played; play them first."
        text = f"{atlas.describe(state).reason} {never_played}"
        return WhyNot(state, Reason.UNDECIDED, text, estimate=estimate, draws=wanted, steps=len(wanted))
    draws = cheapest_draws(claim, model, Travel(model))
    pairs = np.flatnonzero(np.ceil(draws.more) > 0)
    wanted = dict(zip(_named(atlas, model, pairs), np.ceil(draws.more[pairs]).astype(int).tolist(), strict=True))
    text = f"{atlas.describe(state).reason} {_estimated(atlas, estimate)} {_what_decides(draws, wanted, looks_near)}"
    return WhyNot(state, Reason.UNDECIDED, text, 0.0, estimate, wanted, round(draws.travel))


def _what_decides(draws: Draws, wanted: Mapping[tuple[State, Action], int], looks_near: bool) -> str:
    most = max(wanted, key=lambda pair: wanted[pair], default=None)
    if most is None:
        return "No number of further draws is known that would decide it alone."
    return (
        f"About {draws.travel:,.0f} more steps would prove it {'within reach' if looks_near else 'too far'}, if the "
        f"frequencies do not change: above all {wanted[most]:,} more draws of {most[1]!r} in {most[0]!r}."
    )


def _estimated(atlas: Atlas, estimate: float) -> str:
    if not np.isfinite(estimate):
        return "By the observed frequencies no route there is worth counting."
    radius = atlas.target.radius
    return f"By the observed frequencies it takes about {estimate:.4g} expected steps; the radius is {radius:g}."


def _named(atlas: Atlas, model: IntervalModel, pairs: np.typing.NDArray[np.int64]) -> list[tuple[State, Action]]:
    owners = np.searchsorted(model.rows.state_pairs, pairs, side="right") - 1
    indices = known_indices(atlas, model)
    first = model.rows.state_pairs
    return [
        (atlas.states[indices[owner]], atlas.actions[indices[owner]][pair - first[owner]])
        for pair, owner in zip(pairs.tolist(), owners.tolist(), strict=True)
    ]
