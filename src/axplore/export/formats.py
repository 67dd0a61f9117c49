"""The learned model in the formats of model checkers, graphs and tables.

DRN (Storm) holds the observed frequencies or the intervals of the confidence region; PRISM, UMB and DOT (Graphviz) hold
the frequencies. Steps are the reward `steps`. DRN and PRISM name each state by an identifier; a comment above it holds
its label as JSON, which no label can break out of.

Tables are columns by name, written as CSV or Parquet. Their labels are written by `text_of`, so that `label_of` reads
them back exactly. `export` writes any of these formats.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from unicodedata import normalize

from axplore.arguments import checked, file_path, flag, instance, text
from axplore.atlas.atlas import Atlas
from axplore.errors import AxploreError, UnknownNameError
from axplore.export.model import STAY, UNSEEN, Choice, LearnedModel, check_proven, learned
from axplore.labels import canonical_json, encode_label, label_of, text_of
from axplore.storage import replace_file, storage_errors
from axplore.types import RESET

LEAST_PROBABILITY: Final = 1e-12
"""Written in place of a lower bound of zero, because Storm only checks interval models with positive lower bounds."""


def frequencies_as_drn(model: LearnedModel) -> str:
    """Returns the model with the observed frequencies as probabilities."""
    lines = _head(model, len(model.states), model.n_choices, interval=False)
    for index, choices in enumerate(model.choices):
        lines += _state(model, index)
        for choice in choices:
            lines.append(f"\taction {choice.name}")
            moves = sorted(choice.moves, key=lambda move: move.target)
            lines += [f"\t\t{move.target} : {move.frequency!r}" for move in moves]
    return "\n".join(lines) + "\n"


def region_as_drn(model: LearnedModel, least: float = LEAST_PROBABILITY) -> str:
    """Returns the interval hull of the confidence region, with a state `unseen` for all successors never seen.

    It resets, as every state outside the atlas does, which is the worst case. So the largest expected steps over the
    intervals bound those in every model of the region from above. For a lower bound, count `unseen` as part of the
    goal, the best case: R{"steps"}min=? [F "s5" | "unseen"] with a cooperative nature.

    Without RESET it stays, and so do states in which nothing was drawn, which have the label `unseen` too. For the
    probability of a goal before something bad, count it as nothing for a lower bound, and as the goal for an upper one:
    Pmax=? [ !"bad" U ("goal" | ("unseen" & !"bad")) ].

    Args:
        model: the rows, with hulls.
        least: replaces smaller lower bounds, because Storm refuses 0.
    """
    unseen = len(model.states)
    lines = _head(model, unseen + 1, model.n_choices + 1, interval=True)
    for index, choices in enumerate(model.choices):
        lines += _state(model, index)
        for choice in choices:
            lines.append(f"\taction {choice.name}")
            moves = sorted(_intervals(choice, unseen, least))
            lines += [f"\t\t{target} : [{low!r}, {high!r}]" for target, low, high in moves]
    target, action = (0, "RESET") if model.has_reset else (unseen, STAY)
    lines += [f"state {unseen} [1] {UNSEEN}", f"\taction {action}", f"\t\t{target} : [1.0, 1.0]"]
    return "\n".join(lines) + "\n"


def _intervals(choice: Choice, unseen: int, least: float) -> Iterator[tuple[int, float, float]]:
    if not choice.moves:  # never played
        yield unseen, 1.0, 1.0
        return
    if choice.unseen == 0.0 and len(choice.moves) == 1:  # known exactly
        yield choice.moves[0].target, 1.0, 1.0
        return
    for move in choice.moves:
        low = max(move.low, least)
        yield move.target, low, max(move.high, low)
    if choice.unseen > 0.0:
        yield unseen, least, max(choice.unseen, least)


def _head(model: LearnedModel, n_states: int, n_choices: int, *, interval: bool) -> list[str]:
    return [
        f"// {canonical_json(model.title)}",
        "@type: MDP",
        *(["@value_type: double-interval"] if interval else []),
        "@parameters",
        "",
        "@reward_models",
        "steps",
        "@nr_states",
        str(n_states),
        "@nr_choices",
        str(n_choices),
        "@model",
    ]


def _state(model: LearnedModel, index: int) -> list[str]:
    init = " init" if index == 0 else ""
    label = canonical_json(encode_label(model.states[index]))
    return [f"// {model.names[index]} is {label}", f"state {index} [1]{init} {model.labels(index)}"]


def as_dot(model: LearnedModel) -> str:
    """Returns a graph: states of the atlas solid, others dashed, edges with action and frequency; without RESET."""
    lines = [f"digraph {quoted(model.title)} {{", "  node [shape=box, style=rounded];"]
    for index, state in enumerate(model.states):
        style = "" if index < model.n_known else ', style="rounded,dashed"'
        shape = ", peripheries=2" if index == 0 else ""
        lines.append(f"  {index} [label={quoted(text_of(state))}{style}{shape}];")
    for index, choices in enumerate(model.choices):
        edges: dict[int, list[str]] = {}
        for choice in choices:
            if choice.action is RESET:
                continue
            for move in choice.moves:
                edges.setdefault(move.target, []).append(f"{text_of(choice.action)} {move.frequency:.3g}")
        for target, texts in edges.items():
            lines.append(f"  {index} -> {target} [label={quoted(chr(10).join(texts))}];")
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    """Returns text as a DOT string: quotes, backslashes and line ends are escaped, and it is never HTML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'


def as_prism(model: LearnedModel) -> str:
    """Returns the model with the observed frequencies as probabilities; steps are the reward structure `steps`."""
    lines = [f"// {canonical_json(model.title)}", "mdp", "", "module learned"]
    lines.append(f"  s : [0..{max(len(model.states) - 1, 1)}] init 0;")
    for index, choices in enumerate(model.choices):
        lines.append(f"  // {model.names[index]} is {canonical_json(encode_label(model.states[index]))}")
        for choice in choices:
            moves = " + ".join(f"{move.count}/{move.visits} : (s'={move.target})" for move in choice.moves)
            lines.append(f"  [{choice.name}] s={index} -> {moves};")
    lines += ["endmodule", ""]
    lines += [f'label "{name}" = s={index};' for index, name in enumerate(model.names)]
    if not model.has_reset and model.n_known < len(model.states):
        lines.append(f'label "{UNSEEN}" = s>={model.n_known};')
    lines += ["", 'rewards "steps"', "  true : 1;", "endrewards"]
    return "\n".join(lines) + "\n"


def as_umb(model: LearnedModel) -> bytes:
    """Returns the model with the observed frequencies as exact fractions. Needs umbi."""
    try:
        from umbi import ats as umb
    except ImportError:
        raise AxploreError("umbi is not installed; `pip install umbi`, or use --format drn") from None
    system = umb.ExplicitAts()
    system.time = umb.TimeType.DISCRETE
    system.num_players = 1
    names = list(dict.fromkeys(choice.name for choices in model.choices for choice in choices))
    system.choice_action_to_name = names
    system.num_choice_actions = len(names)
    for _ in model.states:
        system.add_state()
    system.set_initial_states([0])
    for index, choices in enumerate(model.choices):
        for choice in choices:
            written = system.add_state_choice(state=index)
            written.action = names.index(choice.name)
            for move in sorted(choice.moves, key=lambda move: move.target):
                written.add_branch(target=move.target, prob=Fraction(move.count, move.visits))
    steps = system.add_reward_annotation("steps")
    steps.set_state_values([Fraction(1)] * len(model.states))
    for index, name in enumerate(model.names):
        label = system.add_ap_annotation(name)
        label.set_state_values([other == index for other in range(len(model.states))])
    system.validate()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.umb"
        umb.write(system, str(path))
        return path.read_bytes()


def _region_as_drn(atlas: Atlas, reset: bool = True) -> str:
    check_proven(atlas)
    return region_as_drn(learned(atlas, reset=reset, unplayed=not reset))


Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""Columns of equal length, by name."""

FORMULA_STARTS: Final = ("=", "+", "-", "@")


def transitions(atlas: Atlas) -> Columns:
    """Returns every transition met, with bounds on its probability if the atlas is proven."""
    model = learned(atlas)
    rows = [
        (state, choice, move)
        for state, choices in zip(model.states, model.choices, strict=True)
        for choice in choices
        if choice.action is not RESET
        for move in choice.moves
    ]
    columns: dict[str, Sequence[Any]] = {
        "state": [text_of(state) for state, _, _ in rows],
        "action": [text_of(choice.action) for _, choice, _ in rows],
        "successor": [text_of(model.states[move.target]) for _, _, move in rows],
        "count": [move.count for _, _, move in rows],
        "visits": [move.visits for _, _, move in rows],
        "frequency": [move.frequency for _, _, move in rows],
    }
    if atlas.proven:
        columns["lower"] = [move.low for _, _, move in rows]
        columns["upper"] = [move.high for _, _, move in rows]
    return columns


def policies(atlas: Atlas) -> Columns:
    """Returns the choice of each policy in each state of the atlas, with the step if it depends on the step."""
    rows = []
    for goal in atlas.states:
        policy = atlas.policy(goal)
        for step in (None,) if policy.horizon is None else range(policy.horizon):
            rows += [(goal, state, policy(state, step), step) for state in atlas.states if state != goal]
    columns: dict[str, Sequence[Any]] = {
        "goal": [text_of(goal) for goal, _, _, _ in rows],
        "state": [text_of(state) for _, state, _, _ in rows],
        "action": [text_of(action) for _, _, action, _ in rows],
    }
    if any(step is not None for _, _, _, step in rows):
        columns["step"] = [step for _, _, _, step in rows]
    return columns


def as_csv(columns: Columns) -> str:
    """Returns the table as CSV, with fields quoted where necessary.

    Spreadsheets evaluate text that begins like a formula. Such a label is written as its JSON text, which begins with a
    quotation mark; `label_of` reads it back just the same.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_without_formula(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def _without_formula(cell: Any) -> Any:
    # Some spreadsheets take a full-width sign for the plain one.
    if isinstance(cell, str) and normalize("NFKC", cell[:1]).startswith(FORMULA_STARTS) and label_of(cell) == cell:
        return json.dumps(cell)
    return cell


def as_parquet(columns: Columns) -> bytes:
    """Returns the table as Parquet. Needs pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise AxploreError("pyarrow is not installed; `pip install pyarrow`, or use --format csv") from None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(columns)), sink)
    return bytes(sink.getvalue().to_pybytes())


FORMATS: Final[Mapping[str, Callable[..., str | bytes]]] = MappingProxyType(
    {
        "drn": lambda atlas, reset=True: frequencies_as_drn(learned(atlas, reset=reset)),
        "interval-drn": _region_as_drn,
        "prism": lambda atlas, reset=True: as_prism(learned(atlas, reset=reset)),
        "umb": lambda atlas, reset=True: as_umb(learned(atlas, reset=reset)),
        "dot": lambda atlas, _=True: as_dot(learned(atlas)),
        "csv": lambda atlas, _=True: as_csv(transitions(atlas)),
        "policies-csv": lambda atlas, _=True: as_csv(policies(atlas)),
        "parquet": lambda atlas, _=True: as_parquet(transitions(atlas)),
        "policies-parquet": lambda atlas, _=True: as_parquet(policies(atlas)),
    }
)
"""The formats that an atlas can be written in, with RESET or without, by their names on the command line."""


@checked(atlas=instance(Atlas, "an Atlas"), format_name=text, path=file_path, reset=flag)
def export(atlas: Atlas, format_name: str, path: str | Path, *, reset: bool = True) -> None:
    """Writes an atlas in a format, atomically; replaces an existing file.

    Args:
        atlas: the atlas to write.
        format_name: one of `FORMATS`.
        path: the path of the file.
        reset: whether RESET is an action of a model; properties have none.
    """
    if format_name not in FORMATS:
        raise UnknownNameError.of("format", format_name, FORMATS)
    content = FORMATS[format_name](atlas, reset)
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(path)
    with storage_errors(f"{target} cannot be written"):
        replace_file(target, data)
