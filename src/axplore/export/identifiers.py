"""Names that every model checker takes, for labels of any kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from axplore.mdp import State

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """
        A C E F G I P Pmax Pmin R RESET Rmax Rmin S U W X bool ceil clock const ctmc deadlock double dtmc endinit
        endinvariant endmodule endobservables endplayer endrewards endsystem false filter floor formula func global
        init int invariant label log max mdp min mod module nondeterministic observable observables of player pomdp
        popta pow prob probabilistic pta rate rewards s smg step steps stochastic system true unseen
        """,
    )
)
"""Words of PRISM and Storm, and those that the files use themselves."""


def identifiers(labels: Sequence[State], kind: str) -> list[str]:
    """A name for each label, all different: the label itself where it is one, else `<kind>_<position>`."""
    given = {label for label in labels if isinstance(label, str) and _is_identifier(label)}
    names = []
    for position, label in enumerate(labels):
        name = str(label)
        if label not in given or not isinstance(label, str):
            name = f"{kind}_{position}"
            while name in given:
                name += "_"
        names.append(name)
    return names


def _is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED
