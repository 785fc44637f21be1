"""Splits matches by the buckets of their subscribers, and numbers names within each bucket.

A bucket is a contiguous range of every column, so it is sliced out without a copy. Within it,
subscribers and subscriptions get numbers from 0 on, in order of first appearance; the dictionaries
`subscriber_names` and `subscription_names` hold the number that each had before:

    bucket                0              | 1     | 2
    events                0  0  3        | 1  4  | ...     one column entry per match
    subscribers           0  1  0        | 0  0  |
    subscriber_names      17 4  .        | 9  .  |         as many as there are distinct ones
    matched               0 1  2  0      | 0  0  |         `sizes` entries per match
    subscription_names    60 61 12 .     | 33 .  |

A dictionary never outgrows the column that it numbers, so it starts at the same place.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner
from tidings.rank.matches import Matches

MATCHES, MATCHED, SUBSCRIBERS, SUBSCRIPTIONS = range(4)
"""Columns of counts by bucket: matches, their subscriptions, and the distinct ones of both."""


class BucketedMatches(NamedTuple):
    """Matches bucket by bucket, each bucket in the order of events."""

    events: Int32s
    subscribers: Int32s
    ranks: Float64s
    sizes: Int32s
    subscriber_names: Int32s
    matched: Int32s
    subscription_names: Int32s

    @classmethod
    def room(cls, matches: int, matched: int) -> "BucketedMatches":
        """Return uninitialized columns for some matches and their subscriptions."""
        return cls(
            np.empty(matches, np.int32),
            np.empty(matches, np.int32),
            np.empty(matches),
            np.empty(matches, np.int32),
            np.empty(matches, np.int32),
            np.empty(matched, np.int32),
            np.empty(matched, np.int32),
        )


class Numbering(NamedTuple):
    """By number in the matcher, one more than the number in the bucket; 0 where there is none.

    A subscriber, and so each of its subscriptions, belongs to one bucket: no array per bucket.
    """

    subscribers: Int32s
    subscriptions: Int32s


def split_by_bucket(
    matches: Matches, homes: npt.NDArray[Any], buckets: int, subscriptions: int
) -> tuple[BucketedMatches, Int64s, Int64s]:
    """Return the matches by bucket; and by bucket where its columns start, and their lengths.

    `homes` has the bucket of each subscriber; `subscriptions` is how many numbers those have.
    """
    counts = np.zeros((buckets, 4), np.int64)
    count_matches(matches, homes, counts)
    firsts, done = np.cumsum(counts, axis=0) - counts, np.zeros_like(counts)
    out = BucketedMatches.room(len(matches.subscribers), len(matches.matched))
    numbering = Numbering(np.zeros(len(homes), np.int32), np.zeros(subscriptions, np.int32))
    split_matches(matches, homes, firsts, numbering, done, out)
    return out, firsts, done


@inner
def count_matches(matches: Matches, homes: npt.NDArray[Any], counts: Int64s) -> None:
    """Count the matches of each bucket, and their subscriptions."""
    # A pass of its own: the counts give each bucket a contiguous range, so nothing moves later.
    for match in range(len(matches.subscribers)):
        bucket = homes[matches.subscribers[match]]
        counts[bucket, MATCHES] += 1
        counts[bucket, MATCHED] += matches.matched_starts[match + 1] - matches.matched_starts[match]


@inner
def number_in_bucket(numbers: Int32s, key: int, names: Int32s, first: int, size: int) -> int:
    """Return the number of a key in its bucket, which is the next one if the key is new."""
    if numbers[key] == 0:
        numbers[key] = size + 1
        names[first + size] = key
    return int(numbers[key]) - 1


@inner
def split_matches(
    matches: Matches,
    homes: npt.NDArray[Any],
    firsts: Int64s,
    numbering: Numbering,
    done: Int64s,
    out: BucketedMatches,
) -> None:
    """Write the matches of each bucket from its firsts on; `done` counts the entries written."""
    for event in range(len(matches.starts) - 1):
        for match in range(matches.starts[event], matches.starts[event + 1]):
            subscriber = matches.subscribers[match]
            bucket = homes[subscriber]
            first, place = firsts[bucket, MATCHES], firsts[bucket, MATCHES] + done[bucket, MATCHES]
            subscribers = done[bucket, SUBSCRIBERS]
            number = number_in_bucket(
                numbering.subscribers, subscriber, out.subscriber_names, first, subscribers
            )
            # A new number equals the count so far, so the maximum counts the distinct ones.
            done[bucket, SUBSCRIBERS] = max(subscribers, number + 1)
            done[bucket, MATCHES] += 1
            begin, end = matches.matched_starts[match], matches.matched_starts[match + 1]
            out.events[place], out.subscribers[place] = event, number
            out.ranks[place], out.sizes[place] = matches.ranks[match], end - begin
            first, subscriptions = firsts[bucket, MATCHED], done[bucket, SUBSCRIPTIONS]
            for position in range(begin, end):
                number = number_in_bucket(
                    numbering.subscriptions,
                    matches.matched[position],
                    out.subscription_names,
                    first,
                    subscriptions,
                )
                subscriptions = max(subscriptions, number + 1)
                out.matched[first + done[bucket, MATCHED]] = number
                done[bucket, MATCHED] += 1
            done[bucket, SUBSCRIPTIONS] = subscriptions


@inner
def sort_spans(starts: Int64s, keys: Int64s, values: Int32s) -> None:
    """Sort the values of each span by their keys, and the keys with them.

    Shell sort: most spans have a handful of values, and it needs no scratch buffer.
    """
    for span in range(len(starts) - 1):
        first, last = starts[span], starts[span + 1]
        # Knuth's gaps 1, 4, 13, ...: a span of up to three values is an insertion sort.
        gap = 1
        while 3 * gap < last - first:
            gap = 3 * gap + 1
        while gap > 0:
            for position in range(first + gap, last):
                key, value, to = keys[position], values[position], position
                while to >= first + gap and keys[to - gap] > key:
                    keys[to], values[to] = keys[to - gap], values[to - gap]
                    to -= gap
                keys[to], values[to] = key, value
            gap //= 3
