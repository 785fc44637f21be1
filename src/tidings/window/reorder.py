"""Reordering of a stream by event time, up to a lateness."""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Generic, TypeVar

from tidings.errors import InvalidForm, TidingsError
from tidings.window import snapshot_fields
from tidings.window.snapshot_fields import FAR

T = TypeVar("T")


class Late(TidingsError):
    """An arrival from before the watermark."""


class Arrivals(Generic[T]):
    """A buffer that holds arrivals until the watermark, the newest time less the lateness, passes.

    They are released by time; of equal times by number, if they have one, or else in order of
    arrival. Without a lateness they are released at once, and an arrival that is older than its
    predecessor is late.
    """

    def __init__(self, lateness_us: int = 0) -> None:
        if lateness_us < 0:
            raise TidingsError(f"lateness must be at least 0, not {lateness_us / 1e6:g} s")
        self.lateness_us = lateness_us
        self._waiting: list[tuple[int, int, int, T]] = []
        self._count = 0
        self.watermark_us: int | None = None

    def offer(self, us: int, item: T, number: int | None = None) -> list[T]:
        """Add an arrival of time `us` and return the items it releases; raise `Late` if too old."""
        if self.watermark_us is not None and us < self.watermark_us:
            raise Late(f"published {(self.watermark_us - us) / 1e6:g} s before the watermark")
        heappush(self._waiting, (us, number or 0, self._count, item))
        self._count += 1
        return self.advance(us)

    def advance(self, us: int) -> list[T]:
        """Advance the stream to `us`, and return the items released by then."""
        mark = us - self.lateness_us
        self.watermark_us = mark if self.watermark_us is None else max(mark, self.watermark_us)
        released = []
        while self._waiting and self._waiting[0][0] <= self.watermark_us:
            released.append(heappop(self._waiting)[3])
        return released

    def snapshot(self, dump: Callable[[T], Any]) -> dict[str, Any]:
        """Return the state as JSON."""
        waiting = [[*key, dump(item)] for *key, item in sorted(self._waiting, key=lambda w: w[:3])]
        return {"watermark_us": self.watermark_us, "count": self._count, "waiting": waiting}

    def restore(self, state: Mapping[str, Any], load: Callable[[Any], T]) -> None:
        """Continue from a snapshot."""
        mark = snapshot_fields.whole(state, "watermark_us", -FAR, FAR, missing=True)
        count, waiting = snapshot_fields.whole(state, "count"), list[tuple[int, int, int, T]]()
        for us, number, arrival, item in snapshot_fields.items(state, "waiting", width=4):
            snapshot_fields.number(
                "the time of an arrival", us, -FAR if mark is None else mark + 1, FAR
            )
            snapshot_fields.number("the number of an arrival", number)
            snapshot_fields.number("the place of an arrival", arrival, 0, count - 1)
            waiting.append((us, number, arrival, load(item)))
        if any(one[:3] >= other[:3] for one, other in pairwise(waiting)):
            raise InvalidForm("field 'waiting' must be in order of time, number and arrival")
        self.watermark_us, self._count, self._waiting = mark, count, waiting
