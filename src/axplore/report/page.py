"""The report: one HTML file that opens offline and asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final

from axplore.atlas import Atlas
from axplore.report import html as fragments
from axplore.report import text as words
from axplore.report.charts import discovery_chart, narrowing_chart
from axplore.report.layout import layout_of
from axplore.report.page_data import as_json, content_of
from axplore.report.transitions import transitions_of
from axplore.runs.history import History, history_of, moments_of
from axplore.storage import replace_file, storage_errors

NAME: Final = "report.html"


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Writes the report of a run.

    Args:
        folder: of the run, or of an atlas.
        out: the file to write; `report.html` in the folder when not given.

    Returns:
        The file.
    """
    folder = Path(folder)
    path = folder / NAME if out is None else Path(out)
    return write_page(Atlas.load(folder), history_of(folder), folder, path)


def write_page(atlas: Atlas, history: History, folder: Path, path: Path) -> Path:
    """Writes the page of an atlas that is at hand to a file, and returns the file; arguments as for `page_of`."""
    page = page_of(atlas, history, folder)
    with storage_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, page.encode("utf-8"))
    return path


def page_of(atlas: Atlas, history: History, folder: Path, live: dict[str, Any] | None = None) -> str:
    """The page of an atlas.

    Args:
        atlas: what to show.
        history: how the run went.
        folder: where it is.
        live: of a run that is watched: its `version` and a `message`; the page then asks for newer versions.
    """
    transitions = transitions_of(atlas)
    layout = layout_of(atlas, transitions)
    moments = moments_of(atlas, history)
    script = _part("page.js")
    checks = "".join(f"<pre><code>{escape(command)}</code></pre>" for command in words.how_to_check(atlas, folder))
    return Template(_part("page.html")).substitute(
        policy=_content_policy(script, online=live is not None),
        style=_part("page.css"),
        script=script,
        content=as_json({**content_of(atlas, transitions, layout, moments), "live": live}),
        world=escape(atlas.world),
        headline=escape(words.headline_of(atlas)),
        live=_live(live),
        key_facts=fragments.facts(words.key_facts(atlas)),
        not_drawn=_not_drawn(len(atlas.statuses) - len(layout.drawn)),
        discovery=discovery_chart(atlas, history),
        narrowing=narrowing_chart(atlas, moments),
        draws_in_words=fragments.paragraphs(fragments.draws_in_words(atlas, transitions)),
        draws=fragments.draws_table(atlas, transitions),
        goals=fragments.goals_table(atlas),
        left_out=fragments.left_out_table(atlas) if atlas.left_out else "<p>No other state was met.</p>",
        unseen=escape(atlas.status(_Unseen()).reason),
        plain_words=fragments.paragraphs(words.guarantee_in_plain_words(atlas)),
        papers_terms=fragments.paragraphs(words.guarantee_in_the_papers_terms(atlas)),
        settings=fragments.facts(words.settings_of(atlas, history)),
        checks=checks or "<p>Nothing is claimed, so there is nothing to check.</p>",
    )


class _Unseen:
    """A label that no state has."""


def _part(name: str) -> str:
    return files("axplore.report").joinpath(name).read_text(encoding="utf-8")


def _content_policy(script: str, *, online: bool) -> str:
    """Lets the browser run the one script and nothing else, and ask nobody but the watcher, if there is one."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    connections = "; connect-src 'self'" if online else ""
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:{connections}"


def _live(live: dict[str, Any] | None) -> str:
    if live is None:
        return ""
    return (
        f'<p class="live"><strong>{escape(live["message"])}</strong> '
        '<label><input type="checkbox" id="pause"> stop refreshing</label></p>'
    )


def _not_drawn(count: int) -> str:
    return f"<p>{count:,} states farther off are not drawn; search finds them.</p>" if count else ""
