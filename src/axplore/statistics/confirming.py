"""How often an action has to be played until another outcome would have shown itself.

An outcome that comes with a probability above r each time stays away in n draws with a probability of at most
(1 - r)^n. So after log(1 - SEEN_WITH) / log(1 - r) draws, rounded up, it would have been seen with a probability of
`SEEN_WITH`. docs/assumptions.md says what follows for many actions at once.
"""

from __future__ import annotations

import math
from typing import Final

SEEN_WITH: Final = 0.95
"""Detection probability that messages quote."""


def draws_to_see(rate: float) -> int:
    """Returns after how many draws an outcome that comes more often than this would have been seen."""
    return 1 if rate >= 1.0 else math.ceil(math.log(1.0 - SEEN_WITH) / math.log1p(-rate))


def rate_seen(draws: int) -> float:
    """Returns above which probability an outcome would have been seen in this many draws; 1 for none."""
    return -math.expm1(math.log(1.0 - SEEN_WITH) / draws) if draws else 1.0
