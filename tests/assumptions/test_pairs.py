from __future__ import annotations

import numpy as np
import pytest

from axplore.assumptions.applied import contradicted_pairs, given_rows
from axplore.assumptions.pairs import AssumedPair, counted_pair
from axplore.records.assumed import Assumed
from made_counts import made_counts

DELTA = 0.1


@pytest.mark.parametrize("seed", range(100))
def test_one_pair_is_contradicted_by_the_draws_that_contradict_it_among_rows(seed: int) -> None:
    """What is asked of a draw in play is what is asked of the same draw while exploring."""
    random = np.random.default_rng(seed)
    least, single = float(random.choice([0.0, 0.2, 0.3, 0.5])), float(random.random() < 0.3)
    chances = random.dirichlet(np.full(int(random.integers(1, 5)), 0.7))
    drawn = random.choice(len(chances), size=int(random.integers(1, 120)), p=chances).tolist()
    first = {outcome: drawn.index(outcome) + 1 for outcome in drawn}
    met = {outcome: (drawn.count(outcome), when) for outcome, when in sorted(first.items(), key=lambda item: item[1])}
    rows = made_counts([[(outcome, *times) for outcome, times in met.items()]])
    assumed = Assumed({"deterministic": np.array([single]), "min-probability": np.array([least])})
    given = given_rows(rows, DELTA, assumed)
    closing = given.closing[0]
    plain = counted_pair(assumed, 0, everywhere=True)
    support = frozenset(drawn[: int(closing)]) if len(drawn) >= closing else None
    pair = AssumedPair(plain.said, support, float(given.weights[0]))
    found = pair.contradicted_by({outcome: times for outcome, (times, _) in met.items()})
    assert (found is not None) == bool(len(contradicted_pairs(rows, DELTA, assumed)))
    if found is not None:
        assert found.assumption == ("deterministic" if single and len(met) > 1 else "min-probability")
        assert "is assumed to" in found.assumed
