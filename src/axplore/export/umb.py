"""UMB, the binary format that model checkers share, written by the library umbi."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from axplore.errors import AxploreError
from axplore.export.learned import LearnedModel


def as_umb(model: LearnedModel) -> bytes:
    """The model if the frequencies were the probabilities, exactly as fractions. umbi has to be installed."""
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
    for position, choices in enumerate(model.choices):
        for choice in choices:
            written = system.add_state_choice(state=position)
            written.action = names.index(choice.name)
            for move in sorted(choice.moves, key=lambda move: move.target):
                written.add_branch(target=move.target, prob=Fraction(move.count, move.visits))
    steps = system.add_reward_annotation("steps")
    steps.set_state_values([Fraction(1)] * len(model.states))
    for position, name in enumerate(model.names):
        label = system.add_ap_annotation(name)
        label.set_state_values([place == position for place in range(len(model.states))])
    system.validate()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.umb"
        umb.write(system, str(path))
        return path.read_bytes()
