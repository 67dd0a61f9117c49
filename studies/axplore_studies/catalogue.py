"""All studies, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from axplore_studies import (
    assumptions,
    border,
    certify,
    changes,
    coverage,
    coverage_with_assumptions,
    coverage_with_workers,
    decomposition,
    doctor,
    engines,
    episode_tests,
    forgeries,
    hard_worlds,
    hidden,
    hidden_models,
    joint_lower,
    kills,
    learned_logs,
    limits,
    play,
    progress,
    question_coverage,
    questions,
    steps_budget,
    worker_steps,
)
from axplore_studies.loop import Study
from axplore_studies.paper import studies as paper

STUDIES: Final[Mapping[str, Study]] = {
    study.name: study
    for study in (
        *paper.PAPER,
        limits.STUDY,
        *paper.BESIDE,
        assumptions.STUDY,
        coverage.STUDY,
        coverage_with_workers.STUDY,
        coverage_with_assumptions.STUDY,
        learned_logs.STUDY,
        learned_logs.STUDY_OF_CONTINUED,
        questions.STUDY,
        question_coverage.STUDY,
        certify.STUDY,
        changes.STUDY,
        hidden.STUDY,
        hidden_models.STUDY,
        border.STUDY,
        forgeries.STUDY,
        doctor.STUDY,
        play.STUDY,
        hard_worlds.STUDY,
        decomposition.STUDY,
        steps_budget.STUDY,
        joint_lower.STUDY,
        worker_steps.STUDY,
        episode_tests.STUDY,
        progress.STUDY,
        *kills.STUDIES,
        engines.STUDY,
    )
}

PAPER: Final = tuple(study.name for study in paper.PAPER)
"""The tables and figures of the paper."""

REPRODUCED: Final = (
    *PAPER,
    *(study.name for study in (limits.STUDY, *paper.BESIDE, assumptions.STUDY, questions.STUDY)),
)
"""What `axplore reproduce` makes."""
