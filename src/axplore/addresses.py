"""Addresses and commands without what may be secret in them, for everything that is written, shown or logged."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Final

HIDDEN: Final = "…"
"""Stands for what is left out. No address holds it."""

_ADDRESS: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^\s/]*@)?(?P<place>[^\s?#]*)(?P<rest>[?#]\S*)?")


COMMAND: Final = "AXPLORE_COMMAND"
"""The environment variable that tells a worker the command of the process that started it."""


def without_secrets(text: str) -> str:
    """Returns a text in whose addresses names and passwords, queries and fragments are left out."""
    return _ADDRESS.sub(_shown, text)


def current_command() -> str:
    """Returns the command of this process, or of the process that started this worker, without secrets."""
    return os.environ.get(COMMAND) or shlex.join(map(without_secrets, sys.orig_argv))


def has_secrets(text: str) -> bool:
    """Returns whether `without_secrets` leaves something out."""
    return without_secrets(text) != text


def was_shortened(text: str) -> bool:
    """Returns whether `without_secrets` has left out something of an address in a text."""
    return any(HIDDEN in address.group() for address in _ADDRESS.finditer(text))


def _shown(address: re.Match[str]) -> str:
    user = f"{HIDDEN}@" if address["user"] else ""
    rest = f"{address['rest'][0]}{HIDDEN}" if address["rest"] else ""
    return f"{address['scheme']}{user}{address['place']}{rest}"
