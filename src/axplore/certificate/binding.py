"""A digest of draws by the labels of states, whatever the order in which an array lists them.

The record of a run has it as the world counted, and a certificate as it lists the known states. If the two differ, a
label stands beside the draws of another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from itertools import pairwise

from axplore.errors import InvalidLabelError
from axplore.labels import canonical_json, encode_label
from axplore.records.counts import Counts


def draws_by_label(counts: Counts, states: Iterable[Hashable]) -> str:
    """Returns SHA-256 of everything that was drawn in some of the counted states, as hexadecimal digits.

    It is empty if a label cannot be written: there is no file then whose labels could be exchanged.
    """
    try:
        names = [canonical_json(encode_label(label)) for label in counts.order]
        wanted = {canonical_json(encode_label(state)) for state in states}
    except InvalidLabelError:
        return ""
    entries = zip(counts.successors.tolist(), counts.counts.tolist(), counts.first_draws.tolist(), strict=True)
    drawn = [[names[successor], count, first] for successor, count, first in entries]
    rows = [drawn[first:end] for first, end in pairwise(counts.row_offsets.tolist())]
    lines = []
    for index, state in enumerate(counts.states.tolist()):
        if names[state] in wanted:
            first, end = counts.state_pairs[index : index + 2].tolist()
            lines.append(canonical_json([names[state], counts.actions[index].as_json(), rows[first:end]]))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
