from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.worlds.systems import StreamSeed, adapter_for


class Coin:
    """A coin that any generator of random numbers may toss."""

    actions = ("toss",)

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self.reseed(0)

    def reset(self) -> str:
        return "up"

    def step(self, _: str) -> str:
        return "heads" if self._noise.random() < 0.5 else "tails"

    def is_terminal(self, state: str) -> bool:
        return state != "up"

    def reseed(self, seed: int) -> None:
        self._noise = self._generator(seed)


@pytest.mark.parametrize("generator", [random.Random, np.random.default_rng, np.random.RandomState])
def test_the_seed_of_a_stream_suits_any_generator(generator: Any) -> None:
    atlases = [axplore.explore(lambda: Coin(generator), 4, 2, seed=seed, doctor=False) for seed in (1, 1)]
    assert set(atlases[0]) == {"up", "heads", "tails"}
    assert atlases[0].steps == atlases[1].steps


def test_numpy_takes_the_seed_of_a_stream_as_the_seed_sequence_it_was_made_of() -> None:
    sequence = np.random.SeedSequence(7, spawn_key=(1, 2))
    for seed in (StreamSeed(sequence), pickle.loads(pickle.dumps(StreamSeed(sequence)))):
        assert 0 <= seed < 2**32
        assert np.random.default_rng(seed).random() == np.random.default_rng(sequence).random()
    ours, theirs = StreamSeed(sequence).spawn(1), np.random.SeedSequence(7, spawn_key=(1, 2)).spawn(1)
    assert ours[0].generate_state(4).tolist() == theirs[0].generate_state(4).tolist()


def test_a_system_without_reseed_cannot_be_reseeded() -> None:
    class Still:
        actions = ("wait",)

        def reset(self) -> str:
            return "here"

        def step(self, _: str) -> str:
            return "here"

    assert not adapter_for(Still()).can_be_reseeded
    assert adapter_for(Coin(random.Random)).can_be_reseeded
