"""The table of attacks names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_in_the_table_is_where_it_says() -> None:
    page = (ROOT / "docs" / "results" / "attacks.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `(tests/\S+\.py)` \| `(test_\w+)` \|", page)
    assert len(named) > 20
    missing = [(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert missing == []
