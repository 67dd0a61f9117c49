"""The errors that axplore raises, and the text that may be printed of them.

    AxploreError
    ├── InvalidInputError (also a ValueError)
    │   ├── InvalidModelError        a known model that is not an MDP
    │   ├── InvalidSettingError      a radius, epsilon, delta, ... outside its range
    │   ├── InvalidCostsError        costs outside [min_cost, 1]
    │   ├── InvalidOrderError        an order that a world cannot carry out
    │   ├── InvalidLabelError        a label that cannot be stored in a file
    │   ├── DamagedFileError         a file that is not what was saved
    │   ├── UntrustedFileError       a file that names code to run, without consent
    │   ├── UnknownStateError        a label that no state has
    │   ├── UnknownActionError       an action that the state does not have
    │   └── UnknownNameError         a world, explorer, table, ... that does not exist
    ├── BrokenContractError          a world or explorer of yours that fails its check (also an AssertionError)
    ├── NotConvergedError            a solver that stopped before its stopping rule held
    ├── StorageError                 a file or folder that cannot be read or written
    ├── OrdersCutError               a limit of steps or seconds ended orders early; carries what they drew
    └── WorldError                   the system under exploration broke its contract
        ├── UnfixedStartError        its reset lands in different states
        ├── InvalidAnswerError       its answer is not a state
        └── TooManyFaultsError       it failed more often than is allowed

    KeyboardInterrupt
    └── Interrupted                  Ctrl-C, with what was known by then

A message names the first offending item and says what to do about it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import IntEnum
from typing import Any


def printable(text: str) -> str:
    """Returns the text with control and invisible characters escaped; line ends stay.

    Labels, answers of programs and names in untrusted files may contain escape sequences that move the cursor, rewrite
    what was printed or change its direction. All printed text passes through here.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


class _PrintableFilter(logging.Filter):
    """Makes everything that axplore logs printable, whoever prints it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), ()
        return True


logging.getLogger("axplore").addFilter(_PrintableFilter())


class AxploreError(Exception):
    """Base class of all errors of axplore."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInputError(AxploreError, ValueError):
    """An argument or input cannot be used."""


class InvalidModelError(InvalidInputError):
    """A known model that is not a Markov decision process."""


class InvalidSettingError(InvalidInputError):
    """A setting outside its range."""


class InvalidCostsError(InvalidInputError):
    """Costs outside [min_cost, 1]."""


class InvalidOrderError(InvalidInputError):
    """An order that a world cannot carry out."""


class InvalidLabelError(InvalidInputError):
    """A label of a state or an action that cannot be written to a file."""


class DamagedFileError(InvalidInputError):
    """A file that is missing, damaged, edited, or of another format than it should be."""


class UntrustedFileError(InvalidInputError):
    """A file names a world or a cluster that runs code, and the user has not allowed it."""


class UnknownStateError(InvalidInputError):
    """A label that no state of the model has."""


class UnknownActionError(InvalidInputError):
    """An action that the state does not have."""


class UnknownNameError(InvalidInputError):
    """A name of a world, an explorer, a table, ... that does not exist."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str], listing: str | None = None) -> UnknownNameError:
        """Returns the error for a name that is not among the known ones, with the one that may be meant.

        Args:
            kind: the kind of thing that the name stands for.
            name: the name that was given.
            known: the existing names.
            listing: the command that lists them; without it, the message lists them.
        """
        from difflib import get_close_matches

        names = list(known)
        close = get_close_matches(str(name), names, n=1)  # strangers give other things than text
        guess = f"; did you mean {close[0]!r}?" if close else ""
        what_there_is = f"there are {', '.join(names)}" if listing is None else f"`{listing}` lists them"
        return cls(f"no {kind} named {name!r}{guess} ({what_there_is})")


class BrokenContractError(AxploreError, AssertionError):
    """A world or an explorer breaks its contract; raised only by the checks of `axplore.testing`."""


class NotConvergedError(AxploreError):
    """A solver stopped before its stopping rule held, so its result cannot be used."""


class StorageError(AxploreError):
    """A file or folder cannot be read or written."""


class OrdersCutError(AxploreError):
    """A limit of steps or seconds was reached before orders were over; see `axplore.worlds.World.limit`.

    Attributes:
        answers: an answer to each order, with what was drawn by then.
    """

    def __init__(self, answers: Iterable[Any]) -> None:
        super().__init__("a limit of steps or seconds was reached before the orders were over")
        self.answers = list(answers)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.answers,)


class WorldError(AxploreError):
    """The system under exploration broke its contract.

    Attributes:
        atlas: what was known by then, if it was being explored.
    """

    atlas: object | None = None


class UnfixedStartError(WorldError):
    """Resets land in different states."""


class InvalidAnswerError(WorldError):
    """The answer of the system is not a state."""


class TooManyFaultsError(WorldError):
    """The system failed more often than is allowed.

    Attributes:
        n_draws: the number of draws that are lost with it.
    """

    n_draws: int = 0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a system was being explored.

    Attributes:
        state: the state of the explorer before the round that was interrupted, or when it had ended.
        atlas: what was known by then, if `explore` or `resume` was called.
    """

    def __init__(self, state: object) -> None:
        super().__init__()
        self.state = state
        self.atlas: object | None = None


class ExitCode(IntEnum):
    """The exit codes of commands; docs/verdicts.md lists them by verdict."""

    DONE = 0
    """Everything asked for is proven; or nothing was to be proven, and the command did what it does."""
    REFUTED = 1
    """Something that was claimed or proven is refuted."""
    FAILED = 2
    """An argument is wrong, a file cannot be read or written, or the system failed."""
    UNFINISHED = 3
    """Some of what was asked for is not proven yet."""
    IN_DOUBT = 4
    """Everything is proven or done, but something was seen that the proofs assume away."""
    CRASHED = 70
    """A defect of axplore or of a plugin, printed with where it happened; nothing is said about what was asked."""
    INTERRUPTED = 130
    """Ended by the user before everything was proven."""
