"""How far the stream has come: times, with the number that publications had reached by then."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s


class Tick(NamedTuple):
    """The stream has come to this time and number."""

    us: int
    sequence: int


class Ticks:
    """Ticks that the watermark has not reached yet, in order of time, and what those before said.

    Of two ticks, the one that is not earlier and has no larger number says nothing new.
    """

    def __init__(self, held: Iterable[Tick] = (), sequence: int = 0) -> None:
        self.sequence = sequence
        self._us, self._sequence = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.add(held)

    @property
    def held(self) -> list[Tick]:
        """The ticks that wait."""
        pairs = zip(self._us.tolist(), self._sequence.tolist(), strict=True)
        return [Tick(*pair) for pair in pairs]

    def add(self, ticks: Iterable[Tick]) -> None:
        """Take ticks in whatever order."""
        found = sorted({*self.held, *ticks})
        us, numbers = (np.array([each[at] for each in found], np.int64) for at in range(2))
        above = np.maximum.accumulate(np.concatenate([[self.sequence], numbers]))
        news = numbers > above[:-1]
        self._us, self._sequence = us[news], numbers[news]

    def numbers(self, us: Int64s, sequence: Int64s) -> Int64s:
        """Give the number of the stream at events in order of publication.

        That is the largest one of them so far, and of the ticks before them.
        """
        before = np.searchsorted(self._us, us, side="left")
        said = np.concatenate([[self.sequence], self._sequence])[before]
        return np.maximum.accumulate(np.maximum(said, sequence))

    def pass_until(self, watermark_us: int, sequence: int) -> None:
        """Let go of ticks that the watermark has reached, with the largest number of events."""
        passed = self._us <= watermark_us
        self.sequence = max(self.sequence, sequence, *self._sequence[passed].tolist())
        waits = self._sequence > self.sequence
        self._us, self._sequence = self._us[waits], self._sequence[waits]
