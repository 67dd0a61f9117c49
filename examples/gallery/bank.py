"""A bank with two counters, simulated by SimPy: the lengths of the queue that a manager can bring about.

axplore explore examples.gallery.bank:Bank --radius 6 --epsilon 5 --objective within-radius
"""

import numpy as np
import simpy

MINUTES = 5
"""The length of a step; the manager decides once in each how many counters are open."""


class Bank:
    """The state is (customers waiting, at most six; counters open). Arrivals and services are random."""

    actions = ("one counter", "two counters", "advertise")

    def __init__(self) -> None:
        self.noise = np.random.default_rng(0)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.noise = np.random.default_rng(seed)

    def reset(self) -> tuple[int, int]:
        self.waiting, self.counters = 0, 1
        return self.waiting, self.counters

    def step(self, action: str) -> tuple[int, int]:
        self.counters = {"one counter": 1, "two counters": 2}.get(action, self.counters)
        # Times between arrivals and of service are exponential, so the state says all that matters of the past.
        minutes_between = 2.0 if action == "advertise" else 5.0
        environment = simpy.Environment()
        environment.process(self._arrivals(environment, minutes_between))
        for _ in range(self.counters):
            environment.process(self._service(environment))
        environment.run(until=MINUTES)
        return self.waiting, self.counters

    def _arrivals(self, environment: simpy.Environment, minutes_between: float) -> object:
        while True:
            yield environment.timeout(self.noise.exponential(minutes_between))
            self.waiting = min(6, self.waiting + 1)

    def _service(self, environment: simpy.Environment) -> object:
        while True:
            yield environment.timeout(self.noise.exponential(4.0))
            self.waiting = max(0, self.waiting - 1)
