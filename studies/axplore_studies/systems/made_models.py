"""Models that were made up: with outputs, on which no constant of telling apart was tuned, and one like protocols.

An output, the state and the action before determine the next state in those with outputs, as in AALpy's models.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

import numpy as np

from axplore.mdp import TabularMdp
from axplore.worlds.output_models import OutputModel

Rows = dict[str, dict[Hashable, dict[str, float]]]


def random_machine(seed: int, n_states: int, n_outputs: int, n_actions: int, most: int) -> OutputModel:
    """States with random outputs; an action leads to at most `most` states, which all show different outputs."""
    rng = np.random.default_rng(seed)
    names = [f"q{number}" for number in range(n_states)]
    shown = [f"o{number % n_outputs}" for number in range(n_states)]
    rng.shuffle(shown)
    by_output = {output: [name for name, seen in zip(names, shown, strict=True) if seen == output] for output in shown}
    rows: Rows = {}
    for name in names:
        rows[name] = {}
        for action in range(n_actions):
            outputs = rng.permutation(sorted(by_output))[: int(rng.integers(1, most + 1))]
            shares = rng.dirichlet([2.0] * len(outputs))
            rows[name][f"a{action}"] = {
                str(rng.choice(by_output[str(output)])): float(share)
                for output, share in zip(outputs, shares, strict=True)
            }
    return OutputModel(names[0], dict(zip(names, shown, strict=True)), rows)


def lock(secret: str = "bacb") -> OutputModel:
    """A door that opens after a secret; a wrong letter starts it anew, and nothing is seen until it opens."""
    states = [*(f"{place} right" for place in range(len(secret))), "open"]
    rows: Rows = {
        state: {
            letter: {states[place + 1] if letter == right else states[1 if letter == secret[0] else 0]: 1.0}
            for letter in "abc"
        }
        for place, (state, right) in enumerate(zip(states, secret, strict=False))
    }
    rows["open"] = {letter: {states[0]: 1.0} for letter in "abc"}
    return OutputModel(states[0], {state: "open" if state == "open" else "closed" for state in states}, rows)


def vending(coins: int = 3) -> OutputModel:
    """Coins are counted inside. With all of them the button serves, or fails one time in ten and keeps them."""
    states = [f"{count} coins" for count in range(coins + 1)]
    outputs = dict.fromkeys(states, "ready") | {"served": "coffee", "failed": "beep"}
    rows: Rows = {}
    for count, state in enumerate(states):
        more = states[min(count + 1, coins)]
        press = {"served": 0.9, "failed": 0.1} if count == coins else {states[0]: 1.0}
        rows[state] = {"coin": {more: 1.0}, "button": press}
    rows["served"] = {"coin": {states[1]: 1.0}, "button": {states[0]: 1.0}}
    rows["failed"] = {"coin": {states[coins]: 1.0}, "button": {"served": 0.9, "failed": 0.1}}
    return OutputModel(states[0], outputs, rows)


def reels(spins: int = 3) -> OutputModel:
    """Two reels may be spun a few times in all; then the machine pays and is over. The number of spins is hidden."""
    shown = list(product("xo", repeat=2))
    outputs = {f"{''.join(pair)} {left}": "".join(pair) for pair in shown for left in range(spins + 1)}
    outputs |= {"won": "won", "lost": "lost"}
    rows: Rows = {}
    for (one, two), left in product(shown, range(spins + 1)):
        name = f"{one}{two} {left}"
        end = "won" if one == two == "o" else "lost"
        rows[name] = {"stop": {end: 1.0}}
        for reel in ("first", "second"):
            faces = {face: f"{face}{two} {left - 1}" if reel == "first" else f"{one}{face} {left - 1}" for face in "xo"}
            rows[name][reel] = {faces["x"]: 0.7, faces["o"]: 0.3} if left else {end: 1.0}
    for end in ("won", "lost"):
        rows[end] = {action: {end: 1.0} for action in ("stop", "first", "second")}
    return OutputModel(f"xx {spins}", outputs, rows)


def grid(rows: int = 3, columns: int = 4, slip: float = 0.15) -> OutputModel:
    """Cells show the ground that they are on. A step may go astray to the side, if that shows another ground."""
    ground = ("mud", "sand", "grass", "stone")
    cells = list(product(range(rows), range(columns)))
    outputs = {f"{row},{column}": ground[(2 * row + 3 * column + row * column) % len(ground)] for row, column in cells}
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def after(row: int, column: int, move: tuple[int, int]) -> str:
        return f"{min(max(row + move[0], 0), rows - 1)},{min(max(column + move[1], 0), columns - 1)}"

    table: Rows = {}
    for row, column in cells:
        table[f"{row},{column}"] = {}
        for name, (down, right) in moves.items():
            aimed, astray = after(row, column, (down, right)), after(row, column, (right, down))
            split = outputs[aimed] != outputs[astray]
            table[f"{row},{column}"][name] = {aimed: 1 - slip, astray: slip} if split else {aimed: 1.0}
    return OutputModel("0,0", outputs, table)


def ring(length: int = 9) -> OutputModel:
    """Cells that look the same, but for one; a step on may fail, which is seen."""
    cells = [f"{number}" for number in range(length)]
    outputs = {cell: "gate" if cell == "0" else "wall" for cell in cells} | {f"{cell} stuck": "stuck" for cell in cells}
    rows: Rows = {}
    for number, cell in enumerate(cells):
        on, back = cells[(number + 1) % length], cells[number - 1]
        rows[cell] = rows[f"{cell} stuck"] = {"on": {on: 0.8, f"{cell} stuck": 0.2}, "back": {back: 1.0}}
    return OutputModel("0", outputs, rows)


def coins() -> OutputModel:
    """Which of two coins is tossed shows only in how often heads come: 65 or 35 times in 100."""
    rows: Rows = {"start": {"take": {"fair": 1.0}, "swap": {"unfair": 1.0}}}
    for coin, heads in (("fair", 0.35), ("unfair", 0.65)):
        rows[coin] = {"toss": {"heads": heads, "tails": 1 - heads}, "put back": {"start": 1.0}}
    rows |= {side: {"again": {"start": 1.0}} for side in ("heads", "tails")}
    return OutputModel("start", {"start": "start", "fair": "coin", "unfair": "coin", "heads": "h", "tails": "t"}, rows)


MADE = {
    "random, 8 states": random_machine(1, 8, 4, 3, 3),
    "random, 15 states": random_machine(2, 15, 5, 3, 3),
    "deterministic, 12 states": random_machine(3, 12, 3, 3, 1),
    "lock": lock(),
    "vending machine": vending(),
    "reels": reels(),
    "grid": grid(),
    "ring": ring(),
    "coins": coins(),
}


def protocol(seed: int, n_states: int = 40, n_actions: int = 8, noisy: float = 0.1) -> TabularMdp:
    """A model like those of protocols: many actions, nearly all with one outcome, a part of which fail now and then.

    Args:
        seed: of the model.
        n_states: how many states there are; most actions lead back or a few states on.
        n_actions: of every state.
        noisy: the part of the pairs that lead elsewhere with a probability of 0.02 to 0.2.
    """
    rng = np.random.default_rng(seed)
    rows: dict[int, dict[int, dict[int, float]]] = {}
    for state in range(n_states):
        rows[state] = {}
        for action in range(n_actions):
            ahead = min(n_states, state + 4)
            target = int(rng.integers(0, ahead)) if rng.random() < 0.7 else state
            rows[state][action] = {target: 1.0}
            if rng.random() < noisy:
                failure, elsewhere = float(rng.choice([0.02, 0.05, 0.1, 0.2])), int(rng.integers(0, n_states))
                if elsewhere != target:
                    rows[state][action] = {target: 1.0 - failure, elsewhere: failure}
    return TabularMdp.from_rows(rows, 0)
