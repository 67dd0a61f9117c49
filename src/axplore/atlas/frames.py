"""An atlas as a pandas data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axplore.errors import AxploreError

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def to_pandas(atlas: Atlas) -> Any:
    """A `pandas.DataFrame` with a row for each state seen: those of the atlas first, in order of admission."""
    try:
        import pandas as pd
    except ImportError:
        raise AxploreError(
            "pandas is not installed; `pip install pandas`, or use `axplore export --format csv`"
        ) from None
    standings = [*(atlas.status(state) for state in atlas.states), *atlas.left_out]
    found_at = [*atlas.found_at.tolist(), *[None] * len(atlas.left_out)]
    return pd.DataFrame(
        {
            "state": pd.Series([standing.state for standing in standings], dtype=object),
            "in_atlas": [place < len(atlas.states) for place in range(len(standings))],
            "status": [standing.status.value for standing in standings],
            "lower": [standing.bounds.lower for standing in standings],
            "upper": [standing.bounds.upper for standing in standings],
            "regret": [standing.bounds.regret for standing in standings],
            "found_at": pd.array(found_at, dtype="Int64"),
            "reason": [standing.reason for standing in standings],
        }
    )
