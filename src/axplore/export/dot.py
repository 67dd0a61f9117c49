"""The DOT language of Graphviz: states as nodes, and an edge for every transition met."""

from __future__ import annotations

from axplore.atlas.naming import text_of
from axplore.export.learned import LearnedModel
from axplore.mdp import RESET


def as_dot(model: LearnedModel) -> str:
    """A graph for reading: states of the atlas solid, others dashed, edges with action and frequency; without RESET."""
    lines = [f"digraph {quoted(model.title)} {{", "  node [shape=box, style=rounded];"]
    for position, state in enumerate(model.states):
        style = "" if position < model.n_known else ', style="rounded,dashed"'
        shape = ", peripheries=2" if position == 0 else ""
        lines.append(f"  {position} [label={quoted(text_of(state))}{style}{shape}];")
    for position, choices in enumerate(model.choices):
        edges: dict[int, list[str]] = {}
        for choice in choices:
            if choice.action is RESET:
                continue
            for move in choice.moves:
                edges.setdefault(move.target, []).append(f"{text_of(choice.action)} {move.frequency:.3g}")
        for target, texts in edges.items():
            lines.append(f"  {position} -> {target} [label={quoted(chr(10).join(texts))}];")
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    """Text as a DOT string: quotes and backslashes are escaped, line ends are those of DOT, and no HTML can begin."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
