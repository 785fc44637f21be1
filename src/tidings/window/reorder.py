"""Reordering of a stream by event time, up to a lateness."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tidings.errors import InvalidForm, TidingsError
from tidings.model.records import Event, publication_order
from tidings.window import snapshot_fields
from tidings.window.snapshot_fields import FAR

T = TypeVar("T")
HOLD_US: Final = 1
"""The lateness that makes events of the newest time wait for others of the same time."""


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
        self._count += 1
        if self.passes_through:
            self.watermark_us = us
            return [item]
        heappush(self._waiting, (us, number or 0, self._count - 1, item))
        return self.advance(us)

    @property
    def passes_through(self) -> bool:
        """Whether arrivals that are not late are released at once."""
        return not self.lateness_us and not self._waiting

    def pass_through(self, times_us: Sequence[int]) -> None:
        """Note arrivals that are released at once, by their times, which do not descend."""
        self._count += len(times_us)
        self.watermark_us = times_us[-1]

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


class OrderedBatch(NamedTuple):
    """The events that a batch releases, in order, and those of the batch that are late."""

    released: list[Event]
    late: list[Event]


class BatchOrder:
    """Batches of events put in order of publication: by time, then sequence, then id.

    Events wait until the watermark, the newest time of all batches less the lateness, has reached
    them; an event before the watermark of earlier batches is late. Without a lateness, the events
    of the newest time wait for the next batch, since it may bring others of that time that come
    before them. So the order does not depend on where one batch ends and the next begins.
    """

    def __init__(self, lateness_us: int = 0) -> None:
        self._holds = lateness_us == 0
        self._lateness_us = lateness_us or HOLD_US
        self._waiting: list[Event] = []
        self.watermark_us: int | None = None

    def take(self, events: Iterable[Event]) -> OrderedBatch:
        """Add a batch, and release what the watermark has reached by then."""
        late, mark = list[Event](), self.watermark_us
        for event in events:
            is_late = mark is not None and event.published_us < mark
            (late if is_late else self._waiting).append(event)
        self._waiting.sort(key=publication_order)
        if not self._waiting:
            return OrderedBatch([], late)
        newest = self._waiting[-1].published_us - self._lateness_us
        self.watermark_us = newest if mark is None else max(mark, newest)
        return OrderedBatch(self._release(self.watermark_us), late)

    def end(self) -> list[Event]:
        """Release the events of the newest time, after the last batch of a stream that ends.

        With a lateness, nothing is released: later batches may still bring earlier events.
        """
        if not self._holds or self.watermark_us is None:
            return []
        self.watermark_us += HOLD_US
        return self._release(self.watermark_us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        waiting = [event.to_dict() for event in self._waiting]
        return {"waiting": waiting, "watermark_us": self.watermark_us}

    def restore(self, waiting: Iterable[Event], watermark_us: int | None) -> None:
        """Replace the state; `waiting` are the events of a snapshot."""
        self._waiting = sorted(waiting, key=publication_order)
        self.watermark_us = watermark_us

    def _release(self, until_us: int) -> list[Event]:
        reached = bisect_right(self._waiting, until_us, key=lambda event: event.published_us)
        released = self._waiting[:reached]
        del self._waiting[:reached]
        return released
