"""The PRISM language: the learned model as one module with one variable, and probabilities as exact fractions."""

from __future__ import annotations

from axplore.export.learned import LearnedModel
from axplore.labels import canonical_json, encode_label


def as_prism(model: LearnedModel) -> str:
    """The model if the frequencies were the probabilities; steps are the reward structure `steps`."""
    lines = [f"// {canonical_json(model.title)}", "mdp", "", "module learned"]
    lines.append(f"  s : [0..{max(len(model.states) - 1, 1)}] init 0;")
    for position, choices in enumerate(model.choices):
        lines.append(f"  // {model.names[position]} is {canonical_json(encode_label(model.states[position]))}")
        for choice in choices:
            moves = " + ".join(f"{move.count}/{move.visits} : (s'={move.target})" for move in choice.moves)
            lines.append(f"  [{choice.name}] s={position} -> {moves};")
    lines += ["endmodule", ""]
    lines += [f'label "{name}" = s={position};' for position, name in enumerate(model.names)]
    lines += ["", 'rewards "steps"', "  true : 1;", "endrewards"]
    return "\n".join(lines) + "\n"
