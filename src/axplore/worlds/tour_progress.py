"""A `Tour`, and how much of it is left, for worlds that are stepped in Python."""

from __future__ import annotations

from axplore.worlds.contract import Tour


class TourProgress:
    """What is outstanding of a tour. Targets are known by their place in `Tour.targets`.

    Attributes:
        outstanding: how many plays are left.
        actions: what each play plays, [m].
        policies: what to play in each state on the way to each target, [t][n].
        planned: n, for how many states that is.
        waiting: the target that each state is, if plays are outstanding there.
    """

    __slots__ = (
        "_asked", "_distances", "_left", "_nearest", "_plays_at", "_remaining", "_shares", "actions", "outstanding",
        "planned", "policies", "waiting",
    )  # fmt: skip

    def __init__(self, tour: Tour) -> None:
        targets: list[int] = tour.targets.tolist()
        self.policies: list[list[int]] = tour.policies.tolist()
        self.planned = tour.policies.shape[1]
        self.waiting = {state: target for target, state in enumerate(targets)}
        self.actions: list[int] = tour.actions.tolist()
        self._asked: list[int] = tour.times.tolist()
        self._left = list(self._asked)
        self._shares = [1.0] * len(self._asked)
        self._plays_at: list[list[int]] = [[] for _ in targets]
        for play, state in enumerate(tour.states.tolist()):
            self._plays_at[self.waiting[state]].append(play)
        self._remaining = [sum(self._asked[play] for play in plays) for plays in self._plays_at]
        self.outstanding = sum(self._asked)
        self._distances = tour.distances
        # The nearest target of a state stays so until nothing is outstanding there: targets are only ever struck off.
        self._nearest: dict[int, int] = {}

    def next_play(self, target: int) -> int:
        """The outstanding play of a target with the largest remaining share; of equal ones the first."""
        return max(self._plays_at[target], key=self._shares.__getitem__)

    def strike_off(self, play: int, state: int) -> None:
        """Notes that a play was made in a state that waited for it."""
        target = self.waiting[state]
        self._left[play] -= 1
        self._shares[play] = self._left[play] / self._asked[play]
        self._remaining[target] -= 1
        self.outstanding -= 1
        if self._remaining[target] == 0:
            del self.waiting[state]

    def nearest_from(self, state: int) -> int:
        """The nearest target with outstanding plays, of equal ones the first; there must be one."""
        # Where nothing is planned the agent resets, so the initial state chooses, whose number is 0.
        asking = state if state < self.planned else 0
        target = self._nearest.get(asking)
        if target is None or self._remaining[target] == 0:
            open_targets = [target for target, remaining in enumerate(self._remaining) if remaining]
            if self.planned:
                distances = self._distances[:, asking].tolist()
                target = min(open_targets, key=lambda place: float(distances[place]))
            else:
                target = open_targets[0]
            self._nearest[asking] = target
        return target
