"""What holds under every assumption that proofs rest on: the answer is right, costs less, and needs the assumption."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import axplore
from axplore.assumptions import Assumptions
from axplore.atlas import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import verify
from axplore.domains import GridTies, slippery_grid
from axplore.mdp import TabularMdp
from axplore.truth import controllable_states, optimal_steps
from edited import edited

THIRDS = TabularMdp.from_rows(
    {
        0: {"go": {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, "wait": {0: 1.0}},
        1: {"go": {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}},
        2: {"go": {0: 1 / 3, 1: 2 / 3}},
        3: {"go": {3: 1.0}},
    },
    initial_state=0,
)
GRID = slippery_grid(rows=3, columns=3, slip=0.2)
FLOOR = GridTies(rows=3, columns=3)
ONE_LAW = "if the actions of each of the 6 classes listed share one law of outcomes"


@dataclass(frozen=True)
class Setting:
    """A model, what is assumed of it, how the verdict says so, and how many times fewer steps that takes at least."""

    mdp: TabularMdp
    assume: str | Assumptions
    words: str
    saving: int
    radius: float
    epsilon: float

    def explored(self, assume: str | Assumptions | None, workers: int = 0) -> Atlas:
        return axplore.explore(self.mdp, radius=self.radius, epsilon=self.epsilon, assume=assume, workers=workers)


SETTINGS = {
    "least probability": Setting(
        THIRDS, "min-probability=0.33", "if no outcome of an action is rarer than 0.33", 5, 7, 0.5
    ),
    "tied": Setting(GRID, Assumptions(tied=FLOOR.outcome_of), ONE_LAW, 3, 4, 1),
    "tied and predicted": Setting(GRID, Assumptions(tied=FLOOR.outcome_of, leads_to=FLOOR.leads_to), ONE_LAW, 3, 4, 1),
}


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


@pytest.fixture(scope="module")
def atlas(setting: Setting) -> Atlas:
    return setting.explored(setting.assume)


def test_the_answer_is_right_and_verified_given_the_assumption(setting: Setting, atlas: Atlas) -> None:
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert setting.words in atlas.verdict.headline
    assert axplore.verify(atlas).complete
    assert set(controllable_states(setting.mdp, setting.radius).states) <= set(atlas.states)
    for state in atlas.states[1:]:
        assert optimal_steps(setting.mdp, state, allowed=atlas.states) in atlas.bounds(state)


def test_it_takes_far_fewer_steps(setting: Setting, atlas: Atlas) -> None:
    assert setting.saving * atlas.steps < setting.explored(None).steps


def test_without_the_assumption_the_claims_do_not_follow(atlas: Atlas) -> None:
    assert atlas.certificate is not None
    assert atlas.certificate.assumed is not None
    assert verify(edited(atlas.certificate, assumed=None)).failures


def test_a_part_of_the_atlas_and_a_saved_one_prove_the_same(atlas: Atlas, tmp_path: Path) -> None:
    assert atlas.within(2).verdict.kind is VerdictKind.PROVEN
    atlas.save(tmp_path / "atlas")
    saved = Atlas.load(tmp_path / "atlas")
    assert saved.certificate is not None
    assert atlas.certificate is not None
    assert saved.certificate.digest == atlas.certificate.digest
    assert axplore.verify(tmp_path / "atlas").complete


@pytest.mark.usefixtures("_only_worker_here")
def test_with_workers_the_answer_does_not_depend_on_their_number(setting: Setting) -> None:
    one, two = (setting.explored(setting.assume, workers).certificate for workers in (1, 2))
    assert one is not None
    assert two is not None
    assert one.digest == two.digest
