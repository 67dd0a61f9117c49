"""The page of a run: one HTML file that opens offline and uses no network.

It is made of templates, in which all data is escaped. A section is a folder of `sections/` and an entry
of `SECTIONS`: its `section.html`, and its `section.js` if it needs a script. A template may use everything in the
context of `page_of`; a script may use the modules of `scripts/`, and what `page_data` computed.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from axplore.arguments import checked, file_path, flag, function, optional
from axplore.atlas import Atlas
from axplore.atlas.drawing.graph import graph_of
from axplore.atlas.drawing.layered import SCRIPTS as LAYERING
from axplore.atlas.drawing.layout import GridLayout, layout_of
from axplore.atlas.drawing.states import labels_of
from axplore.atlas.state_report import HEADINGS, legend_of, shown_columns, state_rows
from axplore.errors import InvalidSettingError
from axplore.report import charts, text
from axplore.report.appearance import Appearance, Names, Render
from axplore.report.nearest_part import nearest_part
from axplore.report.page_data import as_json, content_of
from axplore.report.pictures import Pictures, taken_pictures
from axplore.report.questions import question_map, questions_of
from axplore.runs.history import History, history_of, moments_of
from axplore.storage import replace_file, storage_errors
from axplore.worlds.catalogue import check_consent, check_parameters

if TYPE_CHECKING:
    from jinja2 import Environment

NAME: Final = "report.html"

FOLDER: Final = Path(__file__).parent
"""Holds templates/, sections/ and scripts/."""

MAX_ROWS: Final = 5000
"""The largest number of rows of a table."""

SCRIPTS: Final = ("elements", "atlas", "selection", "tables")
"""Scripts that all sections may use, in the order in which they are loaded."""

LAST_SCRIPT: Final = "start"

STATIC_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The content security policy of a page without scripts."""


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        name: the name of its folder; its anchor on the page is #NAME-section.
        link: the text of its link in the navigation.
        title: its heading.
        modules: scripts of its folder that its `section.js` uses, in the order in which they are loaded.
    """

    name: str
    link: str
    title: str
    modules: tuple[str, ...] = ()

    @property
    def template(self) -> str:
        """The file of its template."""
        return f"sections/{self.name}/section.html"


SECTIONS: Final[Sequence[Section]] = (
    Section("map", "map", "The map", modules=("canvas", "grid", "graph", "colours", "arrows", "panel", "saving")),
    Section("questions", "questions", "The questions"),
    Section("curves", "curves", "The curves"),
    Section("states", "states", "The states"),
    Section("chance", "chance", "What can happen by chance"),
    Section("frontier", "frontier", "Seen, but outside the atlas, and why"),
    Section("guarantee", "guarantee", "What you can rely on"),
    Section("settings", "settings", "Settings and versions"),
)
"""The sections of the page, from the top."""


@checked(folder=file_path, out=optional(file_path), render=optional(function), pictures=flag, trust=flag)
def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    describe: Names = None,
    action_names: Names = None,
    render: Render | None = None,
    pictures: bool = False,
    trust: bool = False,
) -> Path:
    """Writes the page of a run.

    Args:
        folder: the folder of the run, or of an atlas.
        out: the file to write; by default, `report.html` in the folder.
        describe: names of states for reading, by label: a table or a function; by default, the labels.
        action_names: the same for actions; Gymnasium environments whose actions are numbers have names already.
        render: returns the picture of a state, red, green and blue as bytes, [height, width, 3], shown beside its way;
            None for a state that has none.
        pictures: whether to start the world of the run again and let it draw its states, with Gymnasium's own pictures
            or a method `render()` of your system, as many as take a few seconds.
        trust: whether to start a world that only the run names, which runs code: see docs/security.md.

    Returns:
        The path of the file.

    Raises:
        UntrustedFileError: pictures are asked for, and `trust` is not set.
    """
    folder = Path(folder)
    path = folder / NAME if out is None else Path(out)
    atlas, history = Atlas.load(folder), history_of(folder)
    known = Appearance.of_world(atlas.world)
    if pictures and render is None:
        render = own_pictures(atlas, history, trust=trust).get
    look = Appearance(
        known.describe if describe is None else describe,
        known.action_names if action_names is None else action_names,
        render,
    )
    return write_page(atlas, history, folder, path, look)


def own_pictures(atlas: Atlas, history: History, *, trust: bool) -> Pictures:
    """Returns pictures that the world of a run draws, by label; the world has to be named in the run, and trusted."""
    manifest = history.manifest
    if manifest is None or manifest.world_name is None:
        raise InvalidSettingError("the run does not name its world, so it cannot be started again; give render=")
    check_consent(manifest.world_name, trust)
    check_parameters(manifest.world_name, manifest.world_parameters, trust)
    return taken_pictures(atlas, manifest.world_name, manifest.world_parameters)


def write_page(atlas: Atlas, history: History, folder: Path, path: Path, look: Appearance | None = None) -> Path:
    """Writes the page of an atlas to a file, and returns its path; see `page_of` for the arguments."""
    return write_text(page_of(atlas, history, folder, look=look), path)


def write_text(page: str, path: Path) -> Path:
    """Writes a page to a file, in folders made for it where they are missing, and returns the path."""
    with storage_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, page.encode("utf-8"))
    return path


def page_of(
    atlas: Atlas,
    history: History,
    folder: Path,
    live: dict[str, Any] | None = None,
    look: Appearance | None = None,
) -> str:
    """Returns the page of an atlas.

    Args:
        atlas: the atlas to show.
        history: the history of the run.
        folder: the folder of the run.
        live: for a run that is watched, its `version` and a `message`; the page then polls for newer versions.
        look: how states and actions are shown; by default, as is known of the world.
    """
    from markupsafe import Markup

    look = Appearance.of_world(atlas.world) if look is None else look
    whole, atlas = atlas, nearest_part(atlas)
    moments = moments_of(atlas, history) if atlas is whole else []  # those of the whole have other states
    rows = [replace(row, state=look.state(row.state)) for row in state_rows(atlas)]
    pictures = look.pictures(atlas.states)
    pictured = [index for index, picture in enumerate(pictures) if picture]
    layout = layout_of(atlas, lambda: graph_of(atlas, [str(row.state) for row in rows], look.action, pictured))
    questions = questions_of(atlas, history)
    scripts = list(_scripts(layered=not isinstance(layout, GridLayout)))
    frontier = ("state", "lower", "status", "reason") if atlas.proven else ("state", "status", "reason")
    return rendered(
        "templates/page.html",
        atlas=atlas,
        whole=whole,
        history=history,
        folder=folder,
        look=look,
        indices={label: index for index, label in enumerate(labels_of(atlas))},
        live=live,
        hidden=len(atlas.statuses) - len(layout.drawn) if isinstance(layout, GridLayout) else 0,
        moments=moments,
        rows=rows,
        columns=shown_columns(atlas),
        frontier_columns={name: HEADINGS[name] for name in frontier},
        legend=legend_of(atlas),
        limits={"rows": MAX_ROWS},
        charts=charts,
        text=text,
        questions=questions,
        question_map=lambda question: question_map(question, layout),
        sections=[section for section in SECTIONS if section.name != "questions" or questions],
        scripts=[Markup(script) for script in scripts],
        content=Markup(as_json({**content_of(atlas, layout, moments, rows, look, pictures), "live": live})),
        security_policy=_security_policy(scripts, online=live is not None),
    )


def rendered(template: str, **context: Any) -> str:
    """Renders a template; text in the context is escaped unless it is `Markup`.

    A page without a `security_policy` of its own may run no script and request nothing.
    """
    from markupsafe import Markup

    common = {"style": Markup(_file("templates/style.css")), "security_policy": STATIC_POLICY}
    return _environment(FOLDER).get_template(template).render(common | context)


@cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(folder)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["sortable"] = _sortable
    return environment


def _sortable(value: float | None) -> str:
    """Returns a number as text for scripts to sort by; none comes last."""
    return repr(value) if value is not None and math.isfinite(value) else "1e308"


def _scripts(*, layered: bool) -> Iterator[str]:
    """Yields the scripts of the page, in the order in which they are loaded; those that lay out graphs if needed."""
    if layered:
        yield from (path.read_text(encoding="utf-8") for path in LAYERING)
    for name in SCRIPTS:
        yield _file(f"scripts/{name}.js")
    for section in SECTIONS:
        for module in section.modules:
            yield _file(f"sections/{section.name}/{module}.js")
        if (FOLDER / "sections" / section.name / "section.js").is_file():
            yield _file(f"sections/{section.name}/section.js")
    yield _file(f"scripts/{LAST_SCRIPT}.js")


def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _security_policy(scripts: Sequence[str], *, online: bool) -> str:
    """Returns a policy that lets browsers run only these scripts, and connect only to the watcher, if there is one."""
    digests = [base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    connections = "; connect-src 'self'" if online else ""
    return f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:{connections}"
