"""What changed between two runs, as text for terminals, pull requests and test reports."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from axplore.atlas.difference import Difference, FailOn
from axplore.atlas.row_changes import RowChange
from axplore.errors import printable
from axplore.labels import readable
from axplore.types import State

FORMATS: Final = ("text", "json", "markdown", "junit")

NAMED: Final = 3
"""The number of states behind an action that are named."""

CHANGED: Final = "changed"
"""What the change of an action is called."""


def table_of(difference: Difference) -> list[tuple[str, str, str]]:
    """Returns what changed, how, and what is proven of it; a row for each state and action that differs."""
    states = [(readable(change.state), change.kind.value, change.why) for change in difference.differing]
    return states + [(_name(change), CHANGED, _with_goals(change, difference)) for change in difference.rows]


def markdown_of(difference: Difference, old: str, new: str) -> str:
    """Returns the difference as a comment for a pull request."""
    lines = [f"### From {_cell(old)} to {_cell(new)}", "", *map(_cell, difference.summary)]
    rows = table_of(difference)
    if rows:
        lines += ["", "| what | change | what is proven |", "|---|---|---|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def junit_of(difference: Difference, fail_on: Collection[FailOn], name: str) -> str:
    """Returns the difference as a JUnit report: a test for each state and each changed action."""
    failing = {id(change) for change in difference.failures(fail_on)}
    cases = [(readable(change.state), change.why, id(change) in failing) for change in difference.changes]
    cases += [(_name(change), _with_goals(change, difference), id(change) in failing) for change in difference.rows]
    suite = Element(
        "testsuite", name=printable(f"axplore diff {name}"), tests=str(len(cases)), failures=str(len(failing))
    )
    for subject, why, fails in cases:
        case = SubElement(suite, "testcase", classname="axplore.diff", name=printable(subject))
        if fails:
            SubElement(case, "failure", message=printable(why))
    indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suite, encoding="unicode")


def _name(change: RowChange) -> str:
    return f"{readable(change.action)} in {readable(change.state)}"


def _with_goals(change: RowChange, difference: Difference) -> str:
    """Returns what changed, and what that means for the states on whose way it is: their bounds before and now."""
    behind = ", ".join(_meaning(goal, difference) for goal in change.behind[:NAMED])
    more = f" and {len(change.behind) - NAMED} more" if len(change.behind) > NAMED else ""
    return f"{change}" + (f"; on the way to {behind}{more}" if behind else "")


def _meaning(goal: State, difference: Difference) -> str:
    """Returns a state with its bounds in both runs."""
    before, now = (atlas.describe(goal).bounds for atlas in (difference.old, difference.new))
    return f"{readable(goal)} ({before} before, {now} now)"


def _cell(text: str) -> str:
    """Returns text that Markdown shows as it is, in one line: labels of a system may hold anything."""
    safe = printable(text).replace("\n", " ").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{character}" if character in "\\`*_{}[]()#|~!" else character for character in safe)
