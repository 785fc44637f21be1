"""Questions to one state of the index."""

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.access.event_encoder import hear
from tidings.index.access.kernels.match import (
    Asked,
    Part,
    Room,
    find_many,
    find_tops,
    scan_many,
    spread,
)
from tidings.index.access.kernels.partial_match import Touch, Touched, relaxed_tops, touch_many
from tidings.index.access.scratch import Desk
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import State
from tidings.model.records import Event, Subscription

Scored = tuple[str, float]
FIRST: Final = 1 << 12  # numbers for which there is room at first


class Found(NamedTuple):
    """The subscriptions of every event, by number: those of event e from starts[e] to starts[e+1].

    They are in no order. `subscriptions` gives them back, also after they were removed.
    """

    numbers: Int32s
    starts: Int64s
    owners: Sequence[Any]

    def subscriptions(self, event: int) -> list[Subscription]:
        """Give the subscriptions of one event."""
        numbers = self.numbers[self.starts[event] : self.starts[event + 1]]
        return [self.owners[each] for each in numbers.tolist()]


class Holding(NamedTuple):
    """The touched subscriptions of every event, and of each the predicates that hold.

    Those of the n-th number are parts[part_starts[n]:part_starts[n + 1]]; they count through the
    `groups` of the subscription.
    """

    found: Found
    part_starts: Int64s
    parts: Int32s


class Question:
    """Some events, put to one state at one desk."""

    def __init__(self, state: State, events: Sequence[Event], desk: Desk) -> None:
        self._state, self._desk = state, desk
        self._count = len(events)
        said, phrases, most = hear(state.vocabulary, events)
        self._said = said
        self.asked = Asked(said, phrases, state.vocabulary.hits)
        self._marks = desk.marks(state, said, most)

    def matching(self) -> Found:
        """Find all that cover the events."""
        room = self.room(0)
        parts = [each.part(self._state.version) for each in self._state.segments]
        found = [self._many(find_many, each, room) for each in parts]
        if self._state.size:
            ranks, starts = self._many(scan_many, self._tail, room)
            found.append((self._state.tail.rows.notes[2 * ranks], starts))
        return self._found(found)

    def touching(self) -> Holding:
        """Find all of which some predicate holds, and which do."""
        room = self.room(0)
        found = [self._touched(part, room) for part in self._partial()]
        numbers = self._found([(each.numbers, each.starts) for each in found])
        if len(found) == 1:
            return Holding(numbers, found[0].part_starts, found[0].parts)
        return Holding(numbers, *self._parts(found))

    def tops(self, k: int) -> list[list[Scored]]:
        """Find the k best by their own scores for every event."""
        k = min(k, len(self._state.table.owners))
        room = self.room(k)
        found: list[list[Scored]] = [[] for _ in range(self._count)]
        least = np.full(self._count, -np.inf)
        for segment in self._state.segments:
            best = self._best(segment, room, k, least)
            found = best if segment is self._state.segments[0] else merged(found, best, k, least)
        return merged(found, self._late(least), k, least) if self._state.size else found

    def relaxed(self, k: int) -> list[list[Scored]]:
        """Find the k best by the weights of the predicates that hold, for every event."""
        k = min(k, len(self._state.table.owners))
        room = self.room(k)
        found: list[list[Scored]] = [[] for _ in range(self._count)]
        ids = self._state.table.ids
        for part in self._partial() if k else ():
            out, scores = np.empty((self._count, k + 1), np.int64), np.empty((self._count, k))
            relaxed_tops(part, self.asked, room, self._touch(part), scores, out.ravel())
            best = named(part.rows.notes, out, scores, ids)
            found = [one + other for one, other in zip(found, best, strict=True)]
        return [nsmallest(k, each, key=best_first) for each in found]

    @property
    def _tail(self) -> Part:
        state = self._state
        return state.tail.part(state.size, state.version, state.table.ids)

    def room(self, k: int) -> Room:
        """Give room to find; for the k best, if that is what is looked for."""
        return self._desk.room(self._state, self._said, self._marks, k)

    def _partial(self) -> Iterator[Part]:
        for each in self._state.segments:
            yield each.partial(self._state.version)
        if self._state.size or not self._state.segments:
            yield self._tail

    def _touch(self, part: Part) -> Touch:
        return self._desk.touch(len(part.rows.offsets), len(part.weights.part))

    def _many(self, find: Any, part: Part, room: Room) -> tuple[Int32s, Int64s]:
        """Find the numbers of all events, with as much room as they turn out to need."""
        starts, out = np.zeros(self._count + 1, np.int64), np.empty(FIRST, np.int32)
        done = 0
        while (done := find(part, self.asked, room, done, starts, out)) < self._count:
            out = _wider(out, int(starts[done]))
        return out[: starts[-1]], starts

    def _touched(self, part: Part, room: Room) -> Touched:
        touch = self._touch(part)
        out = Touched(
            np.zeros(self._count + 1, np.int64),
            np.empty(FIRST, np.int32),
            np.zeros(FIRST + 1, np.int64),
            np.empty(FIRST, np.int32),
        )
        done = 0
        while (done := touch_many(part, self.asked, room, touch, done, out)) < self._count:
            out = Touched(out.starts, *map(_doubled, out[1:]))
        size = int(out.starts[-1])
        parts = out.parts[: out.part_starts[size]]
        return Touched(out.starts, out.numbers[:size], out.part_starts[: size + 1], parts)

    def _found(self, found: list[tuple[Int32s, Int64s]]) -> Found:
        """Put the numbers of all parts together, event by event."""
        owners = self._state.table.owners
        if len(found) == 1:
            return Found(*found[0], owners)
        starts = np.zeros(self._count + 1, np.int64)
        for _, begin in found:
            starts += begin
        numbers, ends = np.empty(int(starts[-1]), np.int32), starts[:-1].copy()
        for each, begin in found:
            spread(each, begin, ends, numbers)
        return Found(numbers, starts, owners)

    def _parts(self, found: list[Touched]) -> tuple[Int64s, Int32s]:
        """Put the predicates of all parts together, as `_found` does with the numbers."""
        sizes = [(np.diff(each.part_starts).astype(np.int32), each.starts) for each in found]
        counts = self._found(sizes).numbers
        by_event = [(each.parts, each.part_starts[each.starts]) for each in found]
        parts = self._found(by_event).numbers
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), parts

    def _best(self, segment: Segment, room: Room, k: int, least: Float64s) -> list[list[Scored]]:
        """Find the k best of a segment that are not below what is sure to be found."""
        limits = np.full(self._count, len(segment), np.int32)
        if np.any(least > -np.inf):  # else nothing is sure yet
            limits[:] = np.searchsorted(-segment.scores, -least, "right")
        out = np.empty((self._count, k + 1), np.int64)
        part = segment.part(self._state.version)
        find_tops(part, self.asked, room, limits, out.ravel())
        ranks = np.where(np.arange(k) < out[:, :1], out[:, 1:], 0)
        if segment is self._state.segments[0]:
            full = out[:, 0] == k
            least[full] = segment.scores[ranks[full, -1]]
        scores = segment.scores[ranks] if len(segment) else np.zeros((self._count, k))
        return named(segment.rows.notes, out, scores, self._state.table.ids)

    def _late(self, least: Float64s) -> list[list[Scored]]:
        """Find what the tail has that is not below what is sure to be found."""
        tail, ids = self._state.tail, self._state.table.ids
        ranks, starts = self._many(scan_many, self._tail, self.room(0))
        scores = tail.scores[ranks]
        found: list[list[Scored]] = [[] for _ in range(self._count)]
        event = np.repeat(np.arange(self._count), np.diff(starts))
        for at in np.flatnonzero(scores >= least[event]).tolist():
            number = tail.rows.notes[2 * ranks[at]]
            found[event[at]].append((ids[number], float(scores[at])))
        return found


def named(notes: Int32s, out: Int64s, scores: Float64s, ids: Sequence[str]) -> list[list[Scored]]:
    """Give counted rows of ranks as ids with their scores."""
    counts = out[:, 0]
    there = np.arange(scores.shape[1]) < counts[:, None]
    numbers = notes[2 * out[:, 1:][there]].tolist()
    pairs = list(zip(map(ids.__getitem__, numbers), scores[there].tolist(), strict=True))
    ends = np.cumsum(counts).tolist()
    return [pairs[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


def merged(
    found: list[list[Scored]], more: list[list[Scored]], k: int, least: Float64s
) -> list[list[Scored]]:
    """Put what more was found among the k best, and raise what is sure to be found."""
    for event, new in enumerate(more):
        if new:
            found[event] = sorted(found[event] + new, key=best_first)[:k]  # runs are merged
            if len(found[event]) == k:
                least[event] = found[event][-1][1]
    return found


def best_first(scored: Scored) -> tuple[float, str]:
    """Give the order of answers: the greater score, then the smaller id."""
    return (-scored[1], scored[0])


def _wider(array: Any, filled: int) -> Any:
    """Give the array with twice the room; what is not filled is lost."""
    wider = np.empty(2 * len(array), array.dtype)
    wider[:filled] = array[:filled]
    return wider


def _doubled(array: Any) -> Any:
    return _wider(array, len(array))
