"""Explores models through their outputs only, AALpy's and made-up ones, and compares what was learnt with them.

Each model is explored with a memory and a limit on the steps. What counts: whether the situations found are the hidden
states, in how many steps, beside those of AALpy's L* for MDPs with its defaults; what is proven; and by how much the
largest probability of seeing an output within n steps, as its memory estimates it, differs from the exact one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import axplore
from axplore.worlds.output_models import OutputModel
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document
from axplore_studies.systems.made_models import MADE
from axplore_studies.systems.output_models import model_named, tells_all_apart

WITHIN: Final = (2, 5, 10, 20)


@dataclass(frozen=True)
class HiddenSetting:
    """How a model is explored, and the steps that AALpy takes."""

    radius: float
    epsilon: float
    max_steps: int
    steps_of_aalpy: int | None


SETTINGS: Final = {
    "faulty_car_alarm": HiddenSetting(8.0, 0.5, 100_000, 131_000),
    "mqtt": HiddenSetting(8.0, 4.0, 275_000, 291_000),
    "first_grid": HiddenSetting(20.0, 5.0, 400_000, 2_460_000),
    **{name: HiddenSetting(8.0, 1.0, 300_000, None) for name in MADE},
}
MEMORY: Final = 12


def trials(seeds: int = 2, memory: int | str = MEMORY) -> list[Trial]:
    """Returns the explorations of each model.

    Args:
        seeds: the number of explorations of each.
        memory: the largest memory, or "aalpy" to have AALpy merge histories into situations.
    """
    return [
        Trial({"model": name, "seed": seed, "memory": memory}, partial(_explored, name, seed, memory))
        for name in SETTINGS
        for seed in range(seeds)
    ]


def _model(name: str) -> OutputModel:
    return MADE.get(name) or model_named(name)


def _explored(name: str, seed: int, memory: Any) -> Record:
    setting, model = SETTINGS[name], _model(name)
    began = time.process_time()
    world = SteppedWorld(model.system, seed)
    atlas = axplore.explore(
        world, setting.radius, setting.epsilon, objective="within-radius", seed=seed, memory=memory,
        max_steps=setting.max_steps,
    )  # fmt: skip
    assert atlas.memory is not None
    counted = int(np.asarray(atlas.counts.visits).sum())
    errors = {
        n_steps: round(
            max(
                abs(atlas.memory.chance(output, n_steps) - model.reaching(output, n_steps))
                for output in set(model.outputs.values())
            ),
            4,
        )
        for n_steps in WITHIN
    }
    return {
        "steps": atlas.steps,
        "of_them_with_the_last_labels": counted,
        "situations": len(atlas.memory.outputs),
        "are_the_hidden_states": tells_all_apart(model, atlas.memory),
        "verdict": atlas.verdict.kind.name,
        "states_of_the_atlas": len(atlas.states),
        "proven_reachable": sum(bool(np.isfinite(upper)) for upper in atlas.upper[: len(atlas.states)]),
        "largest_error_within": errors,
        "seconds": round(time.process_time() - began, 1),
    }


def summary(records: Sequence[Record]) -> Document:
    """Returns the explorations of each model, beside what it is."""
    content = {}
    for name in dict.fromkeys(record["model"] for record in records):
        setting, model = SETTINGS[name], _model(name)
        content[name] = {
            "hidden_states": len(model.outputs),
            "outputs": len(set(model.outputs.values())),
            "steps_of_aalpy": setting.steps_of_aalpy,
            "radius": setting.radius,
            "epsilon": setting.epsilon,
            "runs": [
                {key: value for key, value in record.items() if key not in ("model", "memory")}
                for record in records
                if record["model"] == name
            ],
        }
    return Document(STUDY.name, content)


STUDY: Final = Study(
    "hidden-models",
    "what is learnt of models of which only outputs are seen",
    trials,
    summary,
    counted="explorations of each model",
)
