"""How often the doctor alarms on systems without a fault, and how often it finds and names a fault that was planted.

    python tests/worlds/doctor_study.py --seeds 20 --out docs/results/doctor.json

Seeds are 0, 1, ...: the same number gives the same file.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import faulty_systems as faulty
import gymnasium

from axplore.domains import domain, random_sparse
from axplore.worlds.diagnosis import Issue, Level
from axplore.worlds.doctor import BRIEF_STEPS, STEPS, examine
from axplore.worlds.gym import GymSystem

Make = Callable[[int], Any]


def model(name: str, **parameters: Any) -> Make:
    return lambda seed: faulty.ModelSystem(domain(name, **parameters), seed)


def environment(name: str, pin: int | None = None, **parameters: Any) -> Make:
    return lambda _seed: GymSystem(gymnasium.make(name, **parameters), pin=pin)


HEALTHY: Final[Mapping[str, Make]] = {
    "ring": faulty.Ring,
    "slippery lake": environment("FrozenLake-v1"),
    "slippery lake 8x8": environment("FrozenLake-v1", map_name="8x8"),
    "frozen lake": environment("FrozenLake-v1", is_slippery=False),
    "cliff": environment("CliffWalking-v1"),
    "confusing chain": model("confusing-chain"),
    "combination lock": model("combination-lock"),
    "star": model("star"),
    "slippery grid": model("slippery-grid"),
    "large slippery grid": model("slippery-grid", rows=40, columns=40),
    "layered": model("layered"),
    "random, 30 states": lambda seed: faulty.ModelSystem(random_sparse(30, 3, seed=seed), seed),
    "random, 3,000 states": lambda seed: faulty.ModelSystem(random_sparse(3000, 3, seed=seed), seed),
    "binary tree": faulty.Tree,
    "long road": faulty.Road,
}
"""Systems whose next state depends on nothing but state and action."""

PLANTED: Final[Mapping[str, tuple[Make, Issue]]] = {
    "start of two states": (faulty.UnfixedStart, Issue.START_NOT_FIXED),
    "noise seeded at every reset": (faulty.PinnedNoise, Issue.NOISE_PINNED),
    "silent reset at step 60": (faulty.SilentReset, Issue.TIME_LIMIT),
    "error at step 60": (faulty.RaisingLimit, Issue.TIME_LIMIT),
    "end at step 60": (faulty.EndingLimit, Issue.TIME_LIMIT),
    "frozen from step 61 on": (faulty.Freezing, Issue.TIME_LIMIT),
    "direction not in the key": (faulty.HiddenDirection, Issue.KEY_TOO_COARSE),
    "coin of the episode not in the key": (faulty.HiddenCoin, Issue.KEY_TOO_COARSE),
    "thing carried not in the key": (faulty.CarriedKey, Issue.KEY_TOO_COARSE),
    "terminal at times": (faulty.TerminalSometimes, Issue.KEY_TOO_COARSE),
    "counter in the key": (faulty.Counting, Issue.KEY_TOO_FINE),
    "action that raises": (faulty.RaisingAction, Issue.ACTION_FAILS),
}


def examined(make: Make, steps: int, seeds: int) -> list[tuple[set[str], bool]]:
    """Of each examination what it found, and whether that puts a proof in doubt."""
    found = []
    for seed in range(seeds):
        findings = examine(make(seed), max_steps=steps, seconds=600, seed=seed).findings
        found.append(
            ({finding.issue.name for finding in findings}, any(finding.level is Level.DOUBT for finding in findings))
        )
    return found


def study(steps: int, seeds: int) -> dict[str, Any]:
    healthy, planted = {}, {}
    for name, make in HEALTHY.items():
        outcomes = examined(make, steps, seeds)
        healthy[name] = {
            "doubts": sum(in_doubt for _, in_doubt in outcomes),
            "notes": sum(bool(issues) and not in_doubt for issues, in_doubt in outcomes),
            "said": dict(sorted(Counter(issue for issues, _ in outcomes for issue in issues).items())),
        }
    for name, (make, issue) in PLANTED.items():
        outcomes = examined(make, steps, seeds)
        planted[name] = {
            "fault": issue.name,
            "found": sum(bool(issues) for issues, _ in outcomes),
            "named": sum(issues == {issue.name} for issues, _ in outcomes),
            "said": dict(sorted(Counter(issue for issues, _ in outcomes for issue in issues).items())),
        }
    return {"steps": steps, "seeds": seeds, "without fault": healthy, "planted": planted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    outcome = [study(steps, arguments.seeds) for steps in (BRIEF_STEPS, STEPS)]
    arguments.out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
