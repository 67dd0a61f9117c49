"""A digest of draws by the labels of states, whatever the order in which an array lists them.

The record of a run has it as the world counted, and a certificate as it lists the known states. If the two differ, a
label stands beside the draws of another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from axplore.errors import InvalidLabelError
from axplore.labels import canonical_json, canonical_label
from axplore.records.counts import Counts

AT_A_TIME: Final = 10_000
"""The states whose draws are in memory as text at a time."""


def draws_by_label(counts: Counts, states: Iterable[Hashable]) -> str:
    """Returns SHA-256 of everything that was drawn in some of the counted states, as hexadecimal digits.

    It is empty if a label cannot be written: there is no file then whose labels could be exchanged.
    """
    try:
        names = [canonical_label(label) for label in counts.order]
        wanted = set(map(canonical_label, states))
    except InvalidLabelError:
        return ""
    lines = [
        line
        for first in range(0, len(counts.states), AT_A_TIME)
        for name, line in _lines_of(counts, names, first, min(first + AT_A_TIME, len(counts.states)))
        if name in wanted
    ]
    lines.sort()
    hashed = hashlib.sha256()
    for number, line in enumerate(lines):
        hashed.update(f"\n{line}".encode() if number else line.encode())
    return hashed.hexdigest()


def _lines_of(counts: Counts, names: Sequence[str], first: int, end: int) -> Iterator[tuple[str, str]]:
    """Yields the name of some of the counted states, and the canonical JSON of [name, actions, rows] of each."""
    pairs = counts.state_pairs[first : end + 1]
    offsets = counts.row_offsets[pairs[0] : pairs[-1] + 1]
    met = slice(int(offsets[0]), int(offsets[-1]))
    arrays = (counts.successors[met], counts.counts[met], counts.first_draws[met])
    entries = zip(*(array.tolist() for array in arrays), strict=True)
    drawn = [f"[{canonical_json(names[successor])},{count},{draw}]" for successor, count, draw in entries]
    spans = pairwise((offsets - offsets[0]).tolist())
    rows = [f"[{','.join(drawn[begin:stop])}]" for begin, stop in spans]
    spans = pairwise((pairs - pairs[0]).tolist())
    for state, actions, (begin, stop) in zip(
        counts.states[first:end].tolist(), counts.actions[first:end], spans, strict=True
    ):
        name, offered = names[state], canonical_json(actions.as_json())
        yield name, f"[{canonical_json(name)},{offered},[{','.join(rows[begin:stop])}]]"
