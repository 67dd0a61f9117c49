"""The doctor's tests of what a user declares to know: what the draws of an examination say of each assumption.

A contradiction is either observed, as a second outcome is, or has a probability of at most the false alarm if the
assumption is true. Where nothing contradicts an assumption, it is said how large a violation would have shown. How each
kind is examined is in its file, see `axplore.assumptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from axplore.assumptions import Assumptions
from axplore.assumptions.kind import Draw
from axplore.records.findings import Finding, Level
from axplore.worlds.diagnosis import assumption_finding

Report: TypeAlias = tuple[list[Finding], list[str]]
"""What contradicts an assumption, and what was found where nothing does."""


def examined_assumptions(draws: Sequence[Draw], assume: Assumptions, false_alarm: float) -> Report:
    """Returns findings on assumptions that are false, and a sentence on each that nothing contradicts.

    Args:
        draws: every step of an examination, in order.
        assume: what is assumed.
        false_alarm: the probability with which a true assumption may be called false, for each of them.
    """
    findings, sentences = [], []
    for kind, value in assume.kinds():
        examined = kind.examined(value, assume, draws, false_alarm)
        if examined is None:
            continue
        if examined.is_false:
            level = Level.DOUBT if examined.is_inferred else Level.REFUTED
            findings.append(assumption_finding(kind.name, examined.text, level))
        else:
            sentences.append(examined.text)
    return findings, sentences
