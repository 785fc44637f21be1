"""Ranks in bulk: from the subscriptions that match an event to one rank per subscriber.

PREF Def. 5: the rank is F over the prefranks of the *most specific* matching subscriptions, those
that strictly cover no other matching one. F is max, mean, min or sum.

    subscriptions     | worth owner stamp first size | ...       one record of 32 bytes per number
    covered           | numbers that 0 covers | that 1 covers | ...
    subscribers       | stamp place aggregate | ...

An event reaches thousands of subscriptions in random order, so all that is known of one lies in
half a cache line. Stamps of earlier epochs mean nothing, so nothing is cleared between events.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.partial_match import Hits

SUBSCRIPTION: Final = np.dtype(
    [
        ("worth", np.float64),  # the prefrank, weighted, or the own score
        ("owner", np.int32),  # a subscriber's number, or -1
        ("stamp", np.int32),  # the last epoch in which it matched
        ("first", np.int32),  # of the subscriptions that it strictly covers
        ("size", np.int32),
    ],
    align=True,
)
SUBSCRIBER: Final = np.dtype(
    [("stamp", np.int32), ("place", np.int32), ("aggregate", np.int32)], align=True
)
MAX, MEAN, MIN, SUM = range(4)


class RankArrays(NamedTuple):
    """Records of subscriptions and subscribers, by their numbers."""

    subscriptions: AnyArray
    covered: Int32s  # by subscription: the others of its owner that it strictly covers
    subscribers: AnyArray
    epoch: Int32s


class RankOutput(NamedTuple):
    """Columns to fill, one entry per match; the matches of an event are adjacent."""

    starts: Int64s
    subscribers: Int32s
    ranks: Float64s
    errors: Float64s  # of the sums so far
    specific: Int32s  # how many most specific subscriptions counted
    counts: Int32s  # how many subscriptions matched
    matched: Int32s  # their numbers, subscriber by subscriber


@inner
def stamp_subscriptions(arrays: RankArrays, hits: Hits, event: int) -> int:
    """Start a new epoch and stamp the subscriptions that match in it; return the epoch."""
    epoch = arrays.epoch[0] + 1
    arrays.epoch[0] = epoch
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        arrays.subscriptions[hits.numbers[hit]]["stamp"] = epoch
    return int(epoch)


@inner
def most_specific(arrays: RankArrays, subscription: Any, epoch: int) -> bool:
    """Return whether a subscription strictly covers no other one that matches (PREF Def. 5)."""
    first = subscription["first"]
    for position in range(first, first + subscription["size"]):
        if arrays.subscriptions[arrays.covered[position]]["stamp"] == epoch:
            return False
    return True


@inner
def aggregate_worth(out: RankOutput, place: int, aggregate: int, worth: float) -> None:
    """Add the worth of one more most specific subscription; sums carry their errors (Neumaier)."""
    before = out.ranks[place]
    if out.specific[place] == 0:
        out.ranks[place] = worth
    elif aggregate == MAX:
        out.ranks[place] = max(before, worth)
    elif aggregate == MIN:
        out.ranks[place] = min(before, worth)
    else:
        total = before + worth
        larger, smaller = (before, worth) if before >= worth else (worth, before)
        out.errors[place] += (larger - total) + smaller
        out.ranks[place] = total
    out.specific[place] += 1


@inner
def finish_rank(out: RankOutput, place: int, aggregate: int) -> None:
    """Turn a sum into the rank."""
    if aggregate == MEAN:
        out.ranks[place] = rounded((out.ranks[place] + out.errors[place]) / out.specific[place])
    elif aggregate == SUM:
        out.ranks[place] = rounded(out.ranks[place] + out.errors[place])


@inner
def place_of(arrays: RankArrays, owner: int, epoch: int, out: RankOutput, size: int) -> int:
    """Return the place of a subscriber in this epoch, which is a new one at `size` if needed."""
    subscriber = arrays.subscribers[owner]
    if subscriber["stamp"] == epoch:
        return int(subscriber["place"])
    subscriber["stamp"], subscriber["place"] = epoch, size
    out.subscribers[size] = owner
    out.errors[size] = 0.0
    out.specific[size] = 0
    out.counts[size] = 0
    return size


@inner
def rank_event(
    arrays: RankArrays, hits: Hits, worths: Float64s, event: int, out: RankOutput
) -> None:
    """Rank one event for each owner of its hits, in order of their first hits.

    Two passes: all hits must be stamped before one is known to be most specific.
    """
    size = start = out.starts[event]
    epoch = stamp_subscriptions(arrays, hits, event)
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        subscription = arrays.subscriptions[hits.numbers[hit]]
        owner = subscription["owner"]
        if owner < 0:
            continue
        place = place_of(arrays, owner, epoch, out, size)
        size = max(size, place + 1)
        out.counts[place] += 1
        if most_specific(arrays, subscription, epoch):
            worth = worths[hit] if len(worths) > 0 else subscription["worth"]
            aggregate_worth(out, place, arrays.subscribers[owner]["aggregate"], worth)
    for place in range(start, size):
        finish_rank(out, place, arrays.subscribers[out.subscribers[place]]["aggregate"])
    out.starts[event + 1] = size


@inner
def group_hits(arrays: RankArrays, hits: Hits, event: int, out: RankOutput, written: int) -> int:
    """Write the hits of one event subscriber by subscriber, from `written` on; return the end."""
    for place in range(out.starts[event], out.starts[event + 1]):
        arrays.subscribers[out.subscribers[place]]["place"] = written
        written += out.counts[place]
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        owner = arrays.subscriptions[hits.numbers[hit]]["owner"]
        if owner >= 0:
            place = arrays.subscribers[owner]["place"]
            out.matched[place] = hits.numbers[hit]
            arrays.subscribers[owner]["place"] = place + 1
    return written


@inner
def rank_events(arrays: RankArrays, hits: Hits, worths: Float64s, out: RankOutput) -> None:
    """Rank a batch of events, each for the owners of its hits.

    `worths` has the worth of each hit; if it is empty, the records have them.
    """
    written = 0
    for event in range(len(hits.starts) - 1):
        rank_event(arrays, hits, worths, event, out)
        written = group_hits(arrays, hits, event, out, written)
