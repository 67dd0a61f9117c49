"""Parts of the page as HTML: everything that comes from outside is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.table import HEADINGS, StateRow, shown_columns, state_rows
from axplore.labels import readable
from axplore.report.transitions import Transitions
from axplore.types import State

MAX_LISTED: Final = 5000
"""No table has more rows than this."""

MOST_DRAWN: Final = 30
"""So many states are in the table of draws."""

MAX_ACTIONS: Final = 12
"""And so many actions."""


def paragraphs(sentences: Iterable[str]) -> str:
    """A paragraph for each."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def facts(named: Iterable[tuple[str, str]]) -> str:
    """A list of names and values."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in named)
    return f"<dl>{items}</dl>"


def goals_table(atlas: Atlas) -> str:
    """The states of the atlas; each name is a button that shows the way to it."""
    columns = shown_columns(atlas)
    numeric = {heading for name, heading in columns.items() if name not in ("state", "status")}
    rows = [
        _row(_goal_button(place, row.state), *(_cell(row, name) for name in list(columns)[1:]))
        for place, row in enumerate(state_rows(atlas)[: len(atlas.states)])
    ]
    return _table("goals", "States of the atlas", list(columns.values()), rows, numeric=numeric)


def left_out_table(atlas: Atlas) -> str:
    """The other states that were met, and why they are not in."""
    names = ("state", "lower", "status", "reason") if atlas.proven else ("state", "status", "reason")
    rows = [
        _row(_goal_button(place, row.state), *(_cell(row, name) for name in names[1:]))
        for place, row in enumerate(state_rows(atlas))
        if not row.in_atlas
    ]
    return _table("left-out", "States left out", [HEADINGS[name] for name in names], rows, numeric={HEADINGS["lower"]})


def draws_table(atlas: Atlas, transitions: Transitions) -> str:
    """How often each action was drawn, in the states where most was drawn; shaded by the logarithm."""
    names = list(dict.fromkeys(action for actions in atlas.actions for action in actions))[:MAX_ACTIONS]
    visits, first = transitions.visits, transitions.state_pairs
    most = np.argsort(-transitions.state_visits, kind="stable")[:MOST_DRAWN]
    top = max(2, int(visits.max(initial=0)))
    rows = []
    for place in most.tolist():
        drawn = dict(zip(atlas.actions[place], visits[first[place] : first[place + 1]].tolist(), strict=False))
        cells = [_shaded(drawn[name], top) if name in drawn else "<td>–</td>" for name in names]
        rows.append(_row(_text(readable(atlas.states[place])), *cells))
    headings = ("state", *(readable(name) for name in names))
    caption = "Draws of each action, in the states where most was drawn"
    return _table("draws", caption, headings, rows, numeric=set(headings[1:]), sortable=False)


def plain_table(name: str, caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of numbers."""
    cells = [_row(_text(head), *(f'<td class="number">{escape(text)}</td>' for text in rest)) for head, *rest in rows]
    return _table(name, caption, headings, cells, numeric=set(headings[1:]), sortable=False)


def draws_in_words(atlas: Atlas, transitions: Transitions) -> list[str]:
    """How unevenly the samples are spread."""
    visits = np.sort(transitions.visits)[::-1]
    total, pairs = int(visits.sum()), len(visits)
    if not total:
        return ["Nothing was drawn."]
    tenth = max(1, pairs // 10)
    share = visits[:tenth].sum() / total
    return [
        f"{total:,} draws of {pairs:,} pairs of a state and an action; the tenth drawn most often ({tenth:,}) took "
        f"{100 * share:.0f} % of them. {atlas.steps - total:,} steps more were resets and steps outside of the atlas."
    ]


def _table(
    name: str, caption: str, headings: Sequence[str], rows: list[str], *, numeric: set[str], sortable: bool = True
) -> str:
    heads = ""
    for heading in headings:
        text = f'<button type="button" class="sort">{escape(heading)}</button>' if sortable else escape(heading)
        heads += f'<th scope="col"{" class=number" if heading in numeric else ""}>{text}</th>'
    rest = len(rows) - MAX_LISTED
    more = f"<p>{rest:,} more are in the files of the run.</p>" if rest > 0 else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table id="{name}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows[:MAX_LISTED])}</tbody></table></div>{more}"
    )


def _row(head: str, *cells: str) -> str:
    return f"<tr>{head.replace('<td', '<th scope=row', 1).replace('</td>', '</th>')}{''.join(cells)}</tr>"


def _goal_button(place: int, state: State) -> str:
    return f'<td><button type="button" class="goal" data-place="{place}">{escape(readable(state))}</button></td>'


def _cell(row: StateRow, name: str) -> str:
    value = getattr(row, name)
    return _text(row.text(name)) if isinstance(value, str) else _number(row.text(name), value)


def _text(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _number(text: str, value: float) -> str:
    sortable = value if math.isfinite(value) else 1e308
    return f'<td class="number" data-value="{sortable!r}">{escape(text)}</td>'


def _shaded(count: int, top: int) -> str:
    strength = math.log1p(count) / math.log1p(top)
    return f'<td class="number" style="background:rgb(var(--heat) / {0.6 * strength:.2f})">{count:,}</td>'
