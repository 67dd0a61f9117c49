"""What a user declares to know of a system, beyond what every proof takes for granted.

    explore(world, radius=8, assume="deterministic")
    explore(world, radius=8, assume=["min-probability=0.1", Assumptions(deterministic=is_motion)])
    explore(world, radius=8, assume=Assumptions(tied=law_and_outcome))

Assumptions are used to the full, written into the certificate, and part of every promise: "if ...". A draw that
contradicts one ends the exploration. docs/assumptions.md says what each of them means for a real system.

There is one file for each kind. `registry` lists the kinds, `declared` makes values of what users write, and `applied`
applies these to counts.
"""

from __future__ import annotations

from axplore.assumptions.declared import NOTHING, Assumptions, Declared, assumptions_from
from axplore.assumptions.registry import forms

__all__ = ["NOTHING", "Assumptions", "Declared", "assumptions_from", "forms"]
