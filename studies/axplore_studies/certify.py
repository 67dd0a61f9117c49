"""How often `certify` errs on systems whose labels hide states.

Each system is random, has several hidden states for most labels, and is asked one question whose answer is known
exactly: of expected steps or of a chance, true or false, by a gap from a thousandth to a half of the true value. A
claim just on the wrong side is the hardest: there the error comes nearest to δ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.stats import beta

import axplore
from axplore.certificate import Decision
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document
from axplore_studies.systems.aliased import random_model, random_policy

DELTA: Final = 0.1
GAPS: Final = (0.001, 0.05, 0.2, 0.5)
MAX_STEPS: Final = 20_000


def trials(systems: int = 2000) -> list[Trial]:
    """Returns the questions, one for each system."""
    return [Trial({"number": number}, partial(_asked, number)) for number in range(systems)]


def _asked(number: int) -> Record:
    """Asks one question about one system, and returns what came of it."""
    rng = np.random.default_rng([17, number])
    gap, is_true, is_chance = GAPS[number % 4], number // 4 % 2 == 0, number // 8 % 2 == 0
    while True:
        model = random_model(rng, n_states=int(rng.integers(6, 13)), n_labels=int(rng.integers(3, 6)))
        policy, goal = random_policy(rng, model), int(rng.integers(1, max(model.labels) + 1))
        horizon = int(rng.integers(5, 40))
        steps = model.restarted_steps(policy.__getitem__, goal, horizon)
        arrives = 1.0 - float(model.arrival_law(policy.__getitem__, goal, horizon)[-1])
        if 1.5 <= steps <= 60 and 0.05 <= arrives <= 0.95:
            break
    chance = arrives * (1 - gap) if is_true else arrives + (1 - arrives) * gap
    within = steps * (1 + gap) if is_true else steps * (1 - gap)
    certificate = axplore.certify(
        policy.__getitem__,
        model.system(number),
        goal,
        within=None if is_chance else within,
        chance=chance if is_chance else None,
        steps=horizon,
        delta=DELTA,
        max_steps=MAX_STEPS,
    )
    assert axplore.verify(certificate).holds
    wrong = Decision.REFUTED if is_true else Decision.PROVEN
    return {
        "gap": gap,
        "is_true": is_true,
        "question": "chance" if is_chance else "steps",
        "decision": certificate.decision.value,
        "wrong": certificate.decision is wrong,
        "steps": certificate.steps,
    }


def summary(records: Sequence[Record]) -> Document:
    """Returns the errors on all systems, and on those of each question."""
    groups = {
        f"{question}, {'true' if is_true else 'false'} by {gap:g}": [
            record
            for record in records
            if (record["question"], record["is_true"], record["gap"]) == (question, is_true, gap)
        ]
        for question in ("steps", "chance")
        for is_true in (True, False)
        for gap in GAPS
    }
    whole = _counted(records)
    content = {
        "delta": DELTA,
        "max_steps": MAX_STEPS,
        "all": whole,
        "by_question": {name: _counted(group) for name, group in groups.items() if group},
    }
    return Document(STUDY.name, content, holds=whole["error_interval"][0] <= DELTA)


def _counted(answers: Sequence[Record]) -> dict[str, Any]:
    """Returns errors with their 99 % interval (Clopper and Pearson), and the median steps to a decision."""
    errors, asked = sum(answer["wrong"] for answer in answers), len(answers)
    decided = [answer["steps"] for answer in answers if answer["decision"] != "undecided"]
    return {
        "systems": asked,
        "errors": errors,
        "error_interval": [
            round(float(beta.ppf(0.005, errors, asked - errors + 1)), 5) if errors else 0.0,
            round(float(beta.ppf(0.995, errors + 1, asked - errors)), 5),
        ],
        "decisions": dict(sorted(Counter(answer["decision"] for answer in answers).items())),
        "median_steps_to_decision": float(np.median(decided)) if decided else None,
    }


STUDY: Final = Study(
    "certify",
    "how often `certify` errs on systems whose labels hide states",
    trials,
    summary,
    counted="systems",
)
