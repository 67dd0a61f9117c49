"""The DRN format of Storm: the learned model with the frequencies met, or with the intervals of its confidence region.

Both count steps as the reward model `steps`. States are labelled by their names, and a comment above each holds its
label as JSON, which no label can break out of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from axplore.export.learned import UNSEEN, Choice, LearnedModel
from axplore.labels import canonical_json, encode_label

LEAST_PROBABILITY: Final = 1e-12
"""What a lower bound of zero is written as: Storm checks interval models only if every transition may be taken."""


def frequencies_as_drn(model: LearnedModel) -> str:
    """The model if the frequencies were the probabilities."""
    lines = _head(model, len(model.states), model.n_choices, interval=False)
    for position, choices in enumerate(model.choices):
        lines += _state(model, position)
        for choice in choices:
            lines.append(f"\taction {choice.name}")
            moves = sorted(choice.moves, key=lambda move: move.target)
            lines += [f"\t\t{move.target} : {move.frequency!r}" for move in moves]
    return "\n".join(lines) + "\n"


def region_as_drn(model: LearnedModel, least: float = LEAST_PROBABILITY) -> str:
    """The interval hull of the confidence region, with a state `unseen` for what was never seen to follow an action.

    It resets, as every state outside the atlas does, which is the worst that can be there. So the greatest expected
    steps over the intervals bound those in every model of the region from above. For the least ones take `unseen` as
    part of the goal, the best that can be there: R{"steps"}min=? [F "s5" | "unseen"] with a nature that helps.

    Args:
        model: rows with hulls.
        least: what to write in place of smaller lower bounds; Storm refuses 0.
    """
    unseen = len(model.states)
    lines = _head(model, unseen + 1, model.n_choices + 1, interval=True)
    for position, choices in enumerate(model.choices):
        lines += _state(model, position)
        for choice in choices:
            lines.append(f"\taction {choice.name}")
            moves = sorted(_intervals(choice, unseen, least))
            lines += [f"\t\t{target} : [{low!r}, {high!r}]" for target, low, high in moves]
    lines += [f"state {unseen} [1] {UNSEEN}", "\taction RESET", "\t\t0 : [1.0, 1.0]"]
    return "\n".join(lines) + "\n"


def _intervals(choice: Choice, unseen: int, least: float) -> Iterator[tuple[int, float, float]]:
    if choice.unseen == 0.0:  # known exactly
        yield from ((move.target, 1.0, 1.0) for move in choice.moves)
        return
    for move in choice.moves:
        low = max(move.low, least)
        yield move.target, low, max(move.high, low)
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


def _state(model: LearnedModel, position: int) -> list[str]:
    init = " init" if position == 0 else ""
    label = canonical_json(encode_label(model.states[position]))
    return [f"// {model.names[position]} is {label}", f"state {position} [1]{init} {model.names[position]}"]
