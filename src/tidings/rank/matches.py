"""The matches of a batch of events as columns: the form in which they travel from rank to feed.

    starts           0           2     3  3         matches of event e: starts[e] to starts[e + 1]
    subscribers      7     4     7                  one number per match
    ranks            0.9   0.5   1.0                one rank per match
    matched_starts   0     2     3     4            matched subscriptions of match m
    matched          12 31 8     12

Two offset columns make every event and every match a slice, so a stage that changes the numbering,
drops matches or takes some events works on whole arrays and makes no object per match. Each stage
numbers subscribers and subscriptions in its own way and exchanges those two columns only.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets, run_indexes


class Matches(NamedTuple):
    """Matches event by event; within an event their order is unspecified."""

    starts: Int64s
    subscribers: Int32s
    ranks: Float64s
    matched_starts: Int64s
    matched: Int32s

    @classmethod
    def empty(cls, events: int = 0) -> "Matches":
        """Return no matches of `events` events."""
        none, zero = np.empty(0, np.int32), np.zeros(1, np.int64)
        return cls(np.zeros(events + 1, np.int64), none, np.empty(0), zero, none)

    @classmethod
    def concatenated(cls, batches: "Sequence[Matches]") -> "Matches":
        """Return the matches of the events of several batches, one batch after the other."""
        return cls(
            offsets(np.concatenate([np.diff(batch.starts) for batch in batches])),
            np.concatenate([batch.subscribers for batch in batches]),
            np.concatenate([batch.ranks for batch in batches]),
            offsets(np.concatenate([np.diff(batch.matched_starts) for batch in batches])),
            np.concatenate([batch.matched for batch in batches]),
        )

    @property
    def events(self) -> Int64s:
        """The event of each match, by its place in the batch."""
        if len(self.starts) == 2:  # of one event
            return np.zeros(len(self.ranks), np.int64)
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def rows(self, event: int) -> Iterator[tuple[int, float, list[int]]]:
        """Yield subscriber, rank and matched subscriptions of each match of one event."""
        for match in range(self.starts[event], self.starts[event + 1]):
            span = slice(self.matched_starts[match], self.matched_starts[match + 1])
            yield (
                int(self.subscribers[match]),
                float(self.ranks[match]),
                self.matched[span].tolist(),
            )

    def of_events(self, start: int, stop: int) -> "Matches":
        """Return the matches of consecutive events, from `start` to before `stop`, as views."""
        if stop - start == len(self.starts) - 1:  # these are all
            return self
        first, last = int(self.starts[start]), int(self.starts[stop])
        begin, end = self.matched_starts[first], self.matched_starts[last]
        return Matches(
            self.starts[start : stop + 1] - first,
            self.subscribers[first:last],
            self.ranks[first:last],
            self.matched_starts[first : last + 1] - begin,
            self.matched[begin:end],
        )

    def select(self, events: Int64s) -> "Matches":
        """Return the matches of some events, in the order in which the events are listed."""
        sizes = np.diff(self.starts)[events]
        matches = run_indexes(self.starts[events], sizes)
        counts = np.diff(self.matched_starts)[matches]
        return Matches(
            offsets(sizes),
            self.subscribers[matches],
            self.ranks[matches],
            offsets(counts),
            self.matched[run_indexes(self.matched_starts[matches], counts)],
        )

    def only(self, mask: Bools) -> "Matches":
        """Return the matches that a mask keeps; all events stay, some without a match."""
        if mask.all():
            return self
        counts = np.diff(self.matched_starts)
        return Matches(
            offsets(mask)[self.starts],
            self.subscribers[mask],
            self.ranks[mask],
            offsets(counts[mask]),
            self.matched[np.repeat(mask, counts)],
        )


def joined(parts: Sequence[Matches]) -> Matches:
    """Return all matches of the same events, those of earlier parts first within an event."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(part.matched_starts) for part in parts])
    order = np.argsort(np.concatenate([part.events for part in parts]), kind="stable")
    place = np.repeat(np.argsort(order, kind="stable"), counts)
    return Matches(
        np.sum([part.starts for part in parts], axis=0),
        np.concatenate([part.subscribers for part in parts])[order],
        np.concatenate([part.ranks for part in parts])[order],
        offsets(counts[order]),
        np.concatenate([part.matched for part in parts])[np.argsort(place, kind="stable")],
    )
