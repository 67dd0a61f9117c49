"""Explores models through their outputs only, AALpy's and made-up ones, and compares what was learnt with them.

    make hidden-models

Each model is explored with a memory and a limit on the steps. What counts: whether the situations found are the hidden
states, in how many steps, beside those of AALpy's L* for MDPs with its defaults; what is proven; and by how much the
largest probability of seeing an output within n steps, as its memory estimates it, differs from the exact one.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import axplore
from axplore.worlds.stepped import SteppedWorld
from hidden_models import model_named, tells_all_apart
from made_models import MADE

WITHIN = (2, 5, 10, 20)


@dataclass(frozen=True)
class Setting:
    """How a model is explored, and the steps that AALpy takes."""

    radius: float
    epsilon: float
    max_steps: int
    steps_of_aalpy: int | None


SETTINGS = {
    "faulty_car_alarm": Setting(8.0, 0.5, 100_000, 131_000),
    "mqtt": Setting(8.0, 4.0, 275_000, 291_000),
    "first_grid": Setting(20.0, 5.0, 400_000, 2_460_000),
    **{name: Setting(8.0, 1.0, 300_000, None) for name in MADE},
}
MEMORY = 12


def study(name: str, seed: int, memory: Any) -> dict[str, Any]:
    setting, model = SETTINGS[name], MADE.get(name) or model_named(name)
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
        "seed": seed,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int)
    parser.add_argument("--model", action="append")
    parser.add_argument("--aalpy", action="store_true", help="have AALpy merge histories into situations")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.getLogger("axplore").setLevel(logging.ERROR)
    results: dict[str, Any] = {}
    for name in arguments.model or SETTINGS:
        setting, model = SETTINGS[name], MADE.get(name) or model_named(name)
        results[name] = {
            "hidden_states": len(model.outputs),
            "outputs": len(set(model.outputs.values())),
            "steps_of_aalpy": setting.steps_of_aalpy,
            "radius": setting.radius,
            "epsilon": setting.epsilon,
            "runs": [],
        }
        for seed in range(arguments.seeds):
            results[name]["runs"].append(study(name, seed, "aalpy" if arguments.aalpy else MEMORY))
            print(name, results[name]["runs"][-1], flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
