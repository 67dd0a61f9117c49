from __future__ import annotations

from axplore_studies.paper import experiments as published
from axplore_studies.paper.experiments import CHAIN, CHAIN_EXPERIMENTS, LOCK, LOCK_EXPERIMENTS


def test_the_published_numbers_are_those_of_the_paper() -> None:
    assert published.sample_complexity(CHAIN, "disco", 0.1) == (374_263, 13_906)
    assert published.sample_complexity(CHAIN, "ucb-explore", 0.8) == (21_270, 441)
    assert published.sample_complexity(LOCK, "disco", 0.2) == (30_117, 2_087)
    assert published.hitting_steps(CHAIN, "ucb-explore", 0.4)[5] == (4.94, 0.04)
    assert "NeurIPS 2020" in published.source()


def test_every_experiment_has_a_published_number_and_a_name_of_its_own() -> None:
    experiments = [*CHAIN_EXPERIMENTS, *LOCK_EXPERIMENTS]
    for experiment in experiments:
        assert published.sample_complexity(experiment.domain, experiment.algorithm, experiment.epsilon).mean > 0
    assert len({experiment.id for experiment in experiments}) == len(experiments)


def test_the_paper_averages_over_fifty_and_twenty_runs() -> None:
    assert {experiment.runs for experiment in CHAIN_EXPERIMENTS} == {50}
    assert {experiment.runs for experiment in LOCK_EXPERIMENTS} == {20}
