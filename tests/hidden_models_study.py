"""Explores AALpy's models through their outputs only, and compares what was learnt with the models themselves.

    make hidden-models

Each model is explored with a memory and a limit on the steps. What counts: whether the situations found are the hidden
states, in how many steps, beside those of AALpy's L* for MDPs with its defaults; what is proven; and by how much the
largest probability of seeing an output within n steps, by the counts of the atlas, differs from the exact one.
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
from axplore.types import State
from axplore.worlds.output_models import OutputModel
from axplore.worlds.stepped import SteppedWorld
from hidden_models import model_named, tells_all_apart

WITHIN = (2, 5, 10, 20)


@dataclass(frozen=True)
class Setting:
    """How a model is explored, and the steps that AALpy takes."""

    radius: float
    epsilon: float
    max_steps: int
    steps_of_aalpy: int


SETTINGS = {
    "faulty_car_alarm": Setting(8.0, 0.5, 100_000, 131_000),
    "mqtt": Setting(12.0, 6.0, 250_000, 291_000),
    "first_grid": Setting(20.0, 5.0, 400_000, 2_460_000),
}
MEMORY = 12


def learnt_chances(atlas: axplore.Atlas, outputs: dict[State, State], n_steps: int) -> dict[State, float]:
    """The largest probability of seeing each output within a number of steps, if observed frequencies were exact."""
    rows, chances = atlas.counts, {}
    labels = list(atlas.seen)
    transitions: dict[State, list[dict[State, float]]] = {label: [] for label in labels}
    for row, state in enumerate(rows.states.tolist()):
        for pair in range(int(rows.state_pairs[row]), int(rows.state_pairs[row + 1])):
            entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
            times = rows.counts[entries]
            if times.sum():
                successors = [labels[number] for number in rows.successors[entries].tolist()]
                transitions[labels[state]].append(dict(zip(successors, (times / times.sum()).tolist(), strict=True)))
    model = OutputModel.__new__(OutputModel)  # rows are lists here, and some are missing
    del model
    for output in sorted(set(outputs.values()), key=str):
        value = {label: float(outputs[label] == output) for label in labels}
        goals = dict(value)
        for _ in range(n_steps):
            value = {
                label: goals[label]
                or max((sum(p * value[after] for after, p in row.items()) for row in transitions[label]), default=0.0)
                for label in labels
            }
        chances[output] = value[labels[0]]
    return chances


def study(name: str, seed: int) -> dict[str, Any]:
    setting, model = SETTINGS[name], model_named(name)
    began = time.process_time()
    world = SteppedWorld(model.system, seed)
    atlas = axplore.explore(
        world, setting.radius, setting.epsilon, objective="within-radius", seed=seed, memory=MEMORY,
        max_steps=setting.max_steps,
    )  # fmt: skip
    assert atlas.memory is not None
    counted = int(np.asarray(atlas.counts.visits).sum())
    outputs = dict(zip(atlas.memory.labels, atlas.memory.outputs, strict=True))
    outputs |= {label: label for label in atlas.seen if label not in outputs}
    errors = {}
    for n_steps in WITHIN:
        learnt = learnt_chances(atlas, outputs, n_steps)
        exact = {output: model.reaching(output, n_steps) for output in set(model.outputs.values())}
        errors[n_steps] = round(max(abs(learnt.get(output, 0.0) - exact[output]) for output in exact), 4)
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
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.getLogger("axplore").setLevel(logging.ERROR)
    results: dict[str, Any] = {}
    for name in arguments.model or SETTINGS:
        setting, model = SETTINGS[name], model_named(name)
        results[name] = {
            "hidden_states": len(model.outputs),
            "outputs": len(set(model.outputs.values())),
            "steps_of_aalpy": setting.steps_of_aalpy,
            "radius": setting.radius,
            "epsilon": setting.epsilon,
            "runs": [],
        }
        for seed in range(arguments.seeds):
            results[name]["runs"].append(study(name, seed))
            print(name, results[name]["runs"][-1], flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
