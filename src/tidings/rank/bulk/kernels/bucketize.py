"""Matches split by the buckets of their subscribers, with numbers that count within a bucket."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner

MATCHES, MATCHED, PEOPLE, WISHES = range(4)


class Given(NamedTuple):
    """Matches event by event, as a fan-out gives them, and the bucket of each subscriber."""

    starts: Int64s
    owners: Int32s
    ranks: Float64s
    matched_starts: Int64s
    matched: Int32s
    buckets: npt.NDArray[Any]


class Known(NamedTuple):
    """By number in the fan-out, one more than the number in the bucket; 0 where there is none."""

    people: Int32s
    wishes: Int32s


class Split(NamedTuple):
    """The matches bucket by bucket, each in the order of events; and what its numbers stand for."""

    events: Int32s
    owners: Int32s
    ranks: Float64s
    sizes: Int32s
    people: Int32s
    matched: Int32s
    wishes: Int32s

    @classmethod
    def room(cls, matches: int, matched: int) -> "Split":
        """Give room for so many matches, by so many subscriptions."""
        return cls(
            np.empty(matches, np.int32),
            np.empty(matches, np.int32),
            np.empty(matches),
            np.empty(matches, np.int32),
            np.empty(matches, np.int32),
            np.empty(matched, np.int32),
            np.empty(matched, np.int32),
        )


@inner
def count_matches(given: Given, counts: Int64s) -> None:
    """Count the matches of each bucket, and the subscriptions of these."""
    for match in range(len(given.owners)):
        bucket = given.buckets[given.owners[match]]
        counts[bucket, MATCHES] += 1
        counts[bucket, MATCHED] += given.matched_starts[match + 1] - given.matched_starts[match]


@inner
def number_in(known: Int32s, of: int, names: Int32s, first: int, size: int) -> int:
    """Give the number of something in its bucket, which is the next one if it is new."""
    if known[of] == 0:
        known[of] = size + 1
        names[first + size] = of
    return int(known[of]) - 1


@inner
def split_matches(given: Given, firsts: Int64s, known: Known, done: Int64s, out: Split) -> None:
    """Write the matches of each bucket from its firsts on; `done` counts all that is written."""
    for event in range(len(given.starts) - 1):
        for match in range(given.starts[event], given.starts[event + 1]):
            owner = given.owners[match]
            bucket = given.buckets[owner]
            first, place = firsts[bucket, MATCHES], firsts[bucket, MATCHES] + done[bucket, MATCHES]
            people = done[bucket, PEOPLE]
            number = number_in(known.people, owner, out.people, first, people)
            done[bucket, PEOPLE] = max(people, number + 1)
            done[bucket, MATCHES] += 1
            begin, end = given.matched_starts[match], given.matched_starts[match + 1]
            out.events[place], out.owners[place] = event, number
            out.ranks[place], out.sizes[place] = given.ranks[match], end - begin
            first, wishes = firsts[bucket, MATCHED], done[bucket, WISHES]
            for at in range(begin, end):
                number = number_in(known.wishes, given.matched[at], out.wishes, first, wishes)
                wishes = max(wishes, number + 1)
                out.matched[first + done[bucket, MATCHED]] = number
                done[bucket, MATCHED] += 1
            done[bucket, WISHES] = wishes


@inner
def sort_spans(starts: Int64s, keys: Int64s, values: Int32s) -> None:
    """Sort the values of each span by their keys, and the keys with them; most have few."""
    for span in range(len(starts) - 1):
        first, last = starts[span], starts[span + 1]
        gap = 1
        while 3 * gap < last - first:
            gap = 3 * gap + 1
        while gap > 0:
            for at in range(first + gap, last):
                key, value, to = keys[at], values[at], at
                while to >= first + gap and keys[to - gap] > key:
                    keys[to], values[to] = keys[to - gap], values[to - gap]
                    to -= gap
                keys[to], values[to] = key, value
            gap //= 3
