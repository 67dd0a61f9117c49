"""Whether promises are kept with workers, too: `make coverage-with-workers`.

The models and checks are those of `axplore coverage`; rounds, batches and the merging of answers are those of workers.
The engine is the process itself, because the number of workers and their engine change no draw.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import product
from pathlib import Path

from rich.progress import track

from axplore.experiments.coverage import DELTAS, OBJECTIVES, Trial, run_trial
from axplore.experiments.coverage_models import KINDS
from axplore.statistics.summaries import proportion_interval
from axplore.workers import DistributedWorld
from axplore.worlds.contract import World
from in_process import InProcess


def shared(world: World) -> World:
    """Returns the world with workers; its trial ends with the process."""
    return DistributedWorld(world, InProcess())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("seeds", type=int, help="the number of models of each kind")
    arguments.add_argument("--out", type=Path, required=True)
    given = arguments.parse_args()
    rows = []
    for objective, delta in product(OBJECTIVES, DELTAS):
        counts: Counter[str] = Counter()
        for seed, kind in track([*product(range(given.seeds), KINDS)], f"{objective}, δ = {delta}"):
            found = run_trial(Trial(kind, seed, objective, delta, epsilon=0.5, max_steps=2_000_000), shared)
            is_broken = bool(found.violations)
            counts.update(
                models=1,
                broken=is_broken,
                broken_inside_region=is_broken and not found.left_region,
                left_region=found.left_region,
                given_up=found.stop != "PROVEN",
                steps=found.steps,
            )
        interval = proportion_interval(counts["broken"], counts["models"])
        rows.append({"objective": objective, "delta": delta, **counts, "interval": interval})
    given.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
