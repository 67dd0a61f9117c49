"""The paper's experiments, as data ([DisCo] App. "Experiments").

Where the paper can be read in more than one way, each reading is an experiment of its own; the first is the one that
the presets use.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from axplore.domains import domain
from axplore.errors import InvalidSettingError
from axplore.explorers.base import Explorer
from axplore.explorers.disco_rules import JourneyPolicies, maximum_allocation
from axplore.explorers.registry import preset
from axplore.explorers.ucb_explore import experiment_episodes, lock_bernstein_bonus, lock_episodes
from axplore.mdp import TabularMdp
from axplore.statistics.summaries import MeanEstimate

CHAIN: Final = "confusing-chain"
LOCK: Final = "combination-lock"
CHAIN_EPSILONS: Final = (0.1, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Experiment:
    """One explorer on one domain at one precision, repeated over seeds 0, 1, 2, ...

    Attributes:
        domain: the name of the domain, one of `axplore.domains.DOMAINS`.
        algorithm: the column of the paper's tables that it is compared with.
        reading: the reading of the paper; empty for the first.
        preset: the name of the explorer.
        options: options that differ from the preset, as (name, value).
        radius: L.
        epsilon: ε.
        runs: the number of runs to average over; on the paper's domains, as many as in the paper.
        domain_parameters: parameters of the domain that differ from its defaults, as (name, value).
    """

    domain: str
    algorithm: str
    reading: str
    preset: str
    options: tuple[tuple[str, Any], ...]
    radius: float
    epsilon: float
    runs: int
    domain_parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def place(self) -> str:
        """The domain with its parameters, as text."""
        parameters = ", ".join(f"{name} {value:g}" for name, value in self.domain_parameters)
        return f"{self.domain} ({parameters})" if parameters else self.domain

    @property
    def id(self) -> str:
        """A readable and unique name."""
        reading = f", {self.reading}" if self.reading else ""
        return f"{self.place}/{self.algorithm}{reading}/epsilon={self.epsilon:g}"

    def mdp(self) -> TabularMdp:
        """Returns the model that is explored."""
        return domain(self.domain, **dict(self.domain_parameters))

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines its runs besides the seed, as text."""
        options = {name: _in_words(value) for name, value in self.options}
        return {"radius": self.radius, "epsilon": self.epsilon, "explorer": self.preset, "options": options}

    def explorer(self) -> Explorer[Any]:
        """Returns the explorer to run."""
        return preset(self.preset, radius=self.radius, epsilon=self.epsilon, **dict(self.options))


def _in_words(value: object) -> str:
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, partial):
        bound = ", ".join(f"{name}={bound!r}" for name, bound in value.keywords.items())
        return f"{value.func.__name__}({bound})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return str(value.__name__)  # type: ignore[attr-defined]
    raise InvalidSettingError(f"an experiment cannot record the option {value!r}")


_REPLANNED: Final = ("journey_policies", JourneyPolicies.REPLANNED)


def _chain(algorithm: str, reading: str, preset_name: str, *options: tuple[str, Any]) -> list[Experiment]:
    return [
        Experiment(CHAIN, algorithm, reading, preset_name, options, radius=4.5, epsilon=epsilon, runs=50)
        for epsilon in CHAIN_EPSILONS
    ]


def _lock(algorithm: str, reading: str, preset_name: str, *options: tuple[str, Any]) -> Experiment:
    return Experiment(LOCK, algorithm, reading, preset_name, options, radius=2.7, epsilon=0.2, runs=20)


CHAIN_EXPERIMENTS: Final = (
    *_chain("disco", "", "disco-experiment"),
    *_chain("disco", "replanned", "disco-experiment", _REPLANNED),
    *_chain("ucb-explore", "", "ucb-explore-experiment"),
    *_chain("ucb-explore", "c = 1", "ucb-explore-experiment", ("episodes", partial(experiment_episodes, constant=1.0))),
)
LOCK_EXPERIMENTS: Final = (
    _lock("disco", "", "disco-experiment", ("allocation", maximum_allocation)),
    _lock("disco", "replanned", "disco-experiment", ("allocation", maximum_allocation), _REPLANNED),
    _lock("ucb-explore", "", "ucb-explore-experiment", ("episodes", lock_episodes), ("bonus", lock_bernstein_bonus)),
)


def _beside(
    domain_name: str, radius: float, epsilon: float, runs: int, *disco_options: tuple[str, Any], **parameters: float
) -> list[Experiment]:
    """Returns the certified explorer, and DisCo with the paper's experimental settings."""
    shared: dict[str, Any] = {
        "radius": radius, "epsilon": epsilon, "runs": runs, "domain_parameters": tuple(parameters.items()),
    }  # fmt: skip
    return [
        Experiment(domain_name, "certified", "", "certified", (), **shared),
        Experiment(domain_name, "disco", "", "disco-experiment", disco_options, **shared),
    ]


GRID: Final = "slippery-grid"
CERTIFIED_EXPERIMENTS: Final = tuple(
    experiment
    for pair in (
        *(_beside(CHAIN, 4.5, epsilon, 20) for epsilon in CHAIN_EPSILONS),
        _beside(LOCK, 2.7, 0.2, 20, ("allocation", maximum_allocation)),
        _beside(GRID, 6, 1.0, 20, rows=4, columns=4, slip=0.2),
        _beside(GRID, 8, 1.0, 20, rows=6, columns=6, slip=0.2),
        _beside(GRID, 8, 1.0, 20, rows=6, columns=6, slip=0.0),
        _beside(GRID, 10, 1.0, 20, rows=10, columns=10, slip=0.2),
        _beside(GRID, 20, 1.0, 1, rows=20, columns=20, slip=0.0),  # every run of a deterministic world is the same
    )
    for experiment in pair
)
"""The certified explorer beside DisCo with the settings of the paper's simulations, which carry no guarantee."""

THEORY_EXPERIMENT: Final = Experiment(
    CHAIN, "disco", "theory", "disco-theory", (("states_bound", 12),), radius=4.5, epsilon=0.8, runs=1
)
"""DisCo with every constant of its proofs, which takes about 10^10 steps. The paper has no such run."""


@cache
def _published() -> dict[str, Any]:
    text = (files("axplore_studies.paper") / "published.json").read_text(encoding="utf-8")
    numbers: dict[str, Any] = json.loads(text)
    return numbers


def source() -> str:
    """Returns the source of the published numbers."""
    return str(_published()["source"])


def sample_complexity(domain: str, algorithm: str, epsilon: float) -> MeanEstimate:
    """Returns the published steps of an algorithm ([DisCo] Tab. (new_results) and App. "Combination Lock")."""
    return MeanEstimate(*_published()[domain]["sample_complexity"][f"{epsilon:g}"][algorithm])


def hitting_steps(domain: str, algorithm: str, epsilon: float) -> list[MeanEstimate]:
    """Returns the expected steps of the policies to s_0, s_1, ... ([DisCo] Tab. (expectedtime.confusing))."""
    return [MeanEstimate(*pair) for pair in _published()[domain]["hitting_steps"][algorithm][f"{epsilon:g}"]]
