"""A digest of draws by the labels of states, whatever the order in which an array lists them.

The record of a run has it as the world counted, and a certificate as it lists the known states. If the two differ, a
label stands beside the draws of another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from itertools import pairwise

from axplore.errors import InvalidLabelError
from axplore.labels import canonical_json, canonical_label
from axplore.records.counts import Counts


def draws_by_label(counts: Counts, states: Iterable[Hashable]) -> str:
    """Returns SHA-256 of everything that was drawn in some of the counted states, as hexadecimal digits.

    It is empty if a label cannot be written: there is no file then whose labels could be exchanged.
    """
    try:
        names = [canonical_label(label) for label in counts.order]
        wanted = set(map(canonical_label, states))
    except InvalidLabelError:
        return ""
    quoted = list(map(canonical_json, names))
    entries = zip(counts.successors.tolist(), counts.counts.tolist(), counts.first_draws.tolist(), strict=True)
    # A line is the canonical JSON of [name, actions, rows], put together from texts of which most are the same.
    drawn = [f"[{quoted[successor]},{count},{first}]" for successor, count, first in entries]
    rows = [f"[{','.join(drawn[first:end])}]" for first, end in pairwise(counts.row_offsets.tolist())]
    offered = {id(actions): actions for actions in counts.actions}
    actions_of = {key: canonical_json(actions.as_json()) for key, actions in offered.items()}
    lines = [
        f"[{quoted[state]},{actions_of[id(actions)]},[{','.join(rows[first:end])}]]"
        for state, actions, (first, end) in zip(
            counts.states.tolist(), counts.actions, pairwise(counts.state_pairs.tolist()), strict=True
        )
        if names[state] in wanted
    ]
    lines.sort()
    hashed = hashlib.sha256()
    for number, line in enumerate(lines):
        hashed.update(f"\n{line}".encode() if number else line.encode())
    return hashed.hexdigest()
