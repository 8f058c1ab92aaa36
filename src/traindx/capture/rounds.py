"""Counting steps when several optimizers take turns.

One step number covers one turn of every optimizer that is in use: a GAN's discriminator and
generator share it. With a single optimizer a step is simply one `optimizer.step()`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

_IDLE = 64
"""Rounds without a turn after which an optimizer no longer counts as in use."""
_MANY = 16
"""Optimizers whose own turns say when to measure; with more of them the rounds do.

A program that makes an optimizer for every task would have nothing but first turns.
"""


class Rounds:
    """Steps as rounds of optimizer turns.

    Attributes:
        step: Number of the round going on, from 0.
    """

    def __init__(self) -> None:
        self.step = 0
        self._turns: dict[Hashable, int] = {}
        self._last_seen: dict[Hashable, int] = {}
        self._current: frozenset[Hashable] = frozenset()
        self._previous: frozenset[Hashable] = frozenset()
        self._joined = False
        self._joined_at = -1
        self._in_use: list[Hashable] = []
        self._vain: set[tuple[frozenset[Hashable], frozenset[Hashable]]] = set()

    def turns(self, optimizer: Hashable) -> int:
        """Turns this optimizer has completed."""
        return self._turns.get(optimizer, 0)

    def count(self, optimizer: Hashable) -> int:
        """What says whether its next turn is to be measured."""
        return self.step if len(self._turns) > _MANY else self.turns(optimizer)

    def turned(self) -> bool:
        """Whether any optimizer has ever completed a turn."""
        return bool(self._turns)

    def repeats(self, optimizer: Hashable) -> bool:
        """Whether this turn would be its second in the round, so that the round ended before it.

        That happens when another optimizer, expected to take its turn, has stopped.
        """
        return optimizer in self._current

    def took_turn(self, optimizer: Hashable) -> bool:
        """Note a completed turn; True if it completes the round.

        The first turn of all of an optimizer does, so that a round begins where the script's own
        iteration does. Otherwise the round waits for those of the one before, unless waiting in
        this very place was once in vain (a critic that steps five times in a row).
        """
        if optimizer not in self._turns:
            self._joined, self._joined_at = True, self.step
        self._current |= {optimizer}
        self._turns[optimizer] = self.turns(optimizer) + 1
        self._last_seen[optimizer] = self.step
        return self._joined or self._complete() or (self._current, self._previous) in self._vain

    def _complete(self) -> bool:
        return self._current >= self._previous

    def alone(self) -> Hashable | None:
        """The optimizer whose every turn is a round, as long as no other one joins."""
        if len(self._in_use) != 1 or self._current or self._previous != frozenset(self._in_use):
            return None
        return self._in_use[0]

    def alone_turned(self, optimizer: Hashable, count: int) -> None:
        """Note the turns, of the one that is alone, that the last so many rounds were."""
        self._turns[optimizer] += count
        self._last_seen[optimizer] = self.step - 1

    def pending(self) -> bool:
        """Whether the round has had a turn but waits for another."""
        return bool(self._current)

    def end(self) -> None:
        """Begin the next round."""
        if self._joined:
            self._current |= self._previous
        elif not self._complete():
            self._vain.add((self._current, self._previous))
        self._previous, self._current, self._joined = self._current, frozenset(), False
        self.step += 1

    def any_due(self, due: Callable[[int], bool]) -> bool:
        """Whether an optimizer in use has a turn coming that is to be measured.

        The one that takes a turn in every fifth round only stays due until its turn has come.
        """
        if self._joined_at == self.step - 1 or self.step % _IDLE == 0:
            oldest = self.step - _IDLE
            self._last_seen = {k: seen for k, seen in self._last_seen.items() if seen >= oldest}
            self._in_use = [*self._last_seen]
        if not self._in_use:
            return due(self.step)
        return any(due(self.count(key)) for key in self._in_use)
