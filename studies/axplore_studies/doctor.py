"""How often the doctor alarms on systems without a fault, and how often it finds and names a fault that was planted.

Systems are examined briefly, as before every exploration, and at length, as by `axplore doctor`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import gymnasium

from axplore.domains import domain, random_sparse
from axplore.records.findings import Issue, Level
from axplore.worlds.doctor import BRIEF_STEPS, STEPS, examine
from axplore.worlds.gym import GymSystem
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document
from axplore_studies.systems import faulty

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


def trials(seeds: int = 20) -> list[Trial]:
    """Returns the examinations of each system, brief ones and long ones."""
    return [
        Trial({"steps": steps, "system": name, "seed": seed}, partial(_examined, name, steps, seed))
        for steps in (BRIEF_STEPS, STEPS)
        for name in (*HEALTHY, *PLANTED)
        for seed in range(seeds)
    ]


def _examined(name: str, steps: int, seed: int) -> Record:
    """Returns what an examination found, and whether that puts a proof in doubt."""
    make = HEALTHY[name] if name in HEALTHY else PLANTED[name][0]
    findings = examine(make(seed), max_steps=steps, seconds=600, seed=seed).findings
    return {
        "issues": sorted({finding.issue.name for finding in findings}),
        "in_doubt": any(finding.level is Level.DOUBT for finding in findings),
    }


def summary(records: Sequence[Record]) -> Document:
    """Returns false alarms, and faults that were found and named, by the number of steps and the system."""
    content = []
    for steps in (BRIEF_STEPS, STEPS):
        runs: dict[str, list[Record]] = {name: [] for name in (*HEALTHY, *PLANTED)}
        for record in records:
            if record["steps"] == steps:
                runs[record["system"]].append(record)
        content.append(
            {
                "steps": steps,
                "seeds": max(map(len, runs.values())),
                "without fault": {name: _alarms(runs[name]) for name in HEALTHY},
                "planted": {name: _finds(runs[name], issue) for name, (_, issue) in PLANTED.items()},
            }
        )
    return Document(STUDY.name, content)


def _alarms(runs: Sequence[Record]) -> dict[str, Any]:
    return {
        "doubts": sum(run["in_doubt"] for run in runs),
        "notes": sum(bool(run["issues"]) and not run["in_doubt"] for run in runs),
        "said": _said(runs),
    }


def _finds(runs: Sequence[Record], issue: Issue) -> dict[str, Any]:
    return {
        "fault": issue.name,
        "found": sum(bool(run["issues"]) for run in runs),
        "named": sum(run["issues"] == [issue.name] for run in runs),
        "said": _said(runs),
    }


def _said(runs: Sequence[Record]) -> dict[str, int]:
    return dict(sorted(Counter(issue for run in runs for issue in run["issues"]).items()))


STUDY: Final = Study(
    "doctor",
    "how often the doctor alarms without a fault, and finds one that is there",
    trials,
    summary,
    counted="examinations of each system",
)
