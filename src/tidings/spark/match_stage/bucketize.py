"""Matching of some events, with the matches split by the buckets of their subscribers.

Matches that cannot win their period may be pruned before they are sent: one is dropped if k better
ones of the same batch are not older (it is outside the k-skyband of rank and time). If the state
stage finds those k late, it finds the dropped one late as well, so deliveries stay the same. Only
periods of time without diversity allow it: windows by count must count, a diversifier may prefer
lower ranks, and other windows choose before the better ones come.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Int32s, Int64s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.feed.policy_key import counts_published, unregistered
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.model.records import Event
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rank.bulk.kernels.bucketize import (
    MATCHED,
    MATCHES,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    BucketedMatches,
    split_by_bucket,
)
from tidings.rank.bulk.protocol import Unranked
from tidings.rank.matches import Matches, offsets
from tidings.spark.match_stage.match_batch import MatchBatch, packed_contents

_OLDEST: Final = np.iinfo(np.int64).min


class UnrankedMatch(NamedTuple):
    """A match that its subscriber does not get because the subscriber's own scorer failed."""

    event: Event
    subscriber: str
    reason: str


class MatchesByBucket(NamedTuple):
    """Match batches of the buckets that have matches, and events that some subscriber misses.

    Subscribers that count publications get no event without a sequence number (`unnumbered`), and
    none gets an event that its own scorer could not rank (`unranked`). All others do.
    """

    batches: dict[int, MatchBatch]
    unnumbered: list[Event]
    unranked: list[UnrankedMatch]

    @property
    def matches(self) -> int:
        """Number of matches."""
        return sum(len(batch.matches.ranks) for batch in self.batches.values())


def match_by_bucket(
    matcher: OverlayMatcher, events: Sequence[Event], buckets: int, *, prune: bool = False
) -> MatchesByBucket:
    """Match events and split the matches; with `prune`, those that cannot win are left out."""
    failed: list[Unranked] = []
    matches, unnumbered = _drop_uncountable(matcher, events, matcher.match_many(events, failed))
    if prune:
        matches = prune_periods(matcher, events, matches)
    homes = (matcher.hashes % buckets).astype(np.int32)
    split, firsts, lengths = split_by_bucket(matches, homes, buckets, matcher.size)
    builder = _BatchBuilder(matcher, events, split)
    filled = np.flatnonzero(lengths[:, MATCHES]).tolist()
    batches = {bucket: builder.batch(firsts[bucket], lengths[bucket]) for bucket in filled}
    unranked = [
        UnrankedMatch(events[miss.event], _name(matcher, miss.owner), miss.reason)
        for miss in failed
    ]
    return MatchesByBucket(batches, unnumbered, unranked)


def _name(matcher: OverlayMatcher, number: int) -> str:
    return str(matcher.names.take(np.array([number])).to_pylist()[0])


def _drop_uncountable(
    matcher: OverlayMatcher, events: Sequence[Event], matches: Matches
) -> tuple[Matches, list[Event]]:
    """Drop matches of events without a sequence for subscribers that count; return these events."""
    bare = np.array([event.sequence is None for event in events], np.bool_)
    counting = matcher.numbers(_counts)[:, 0].astype(np.bool_)
    if not (bare.any() and counting.any()):
        return matches, []
    event_of = matches.events
    dropped = bare[event_of] & counting[matches.subscribers]
    unnumbered = [events[position] for position in np.unique(event_of[dropped]).tolist()]
    return matches.only(~dropped), unnumbered


def _counts(policy: Policy | None) -> tuple[int]:
    return (policy is not None and counts_published(policy),)


class _BatchBuilder:
    """Builds the match batch of a bucket from slices of the split columns."""

    def __init__(
        self, matcher: OverlayMatcher, events: Sequence[Event], split: BucketedMatches
    ) -> None:
        self._matcher, self._events, self._split = matcher, events, split
        self._us = np.array([event.published_us for event in events], np.int64)
        self._sequence = np.array(
            [UNNUMBERED if event.sequence is None else event.sequence for event in events], np.int64
        )
        self._contents = packed_contents(event.content_json or "" for event in events)
        self._forms: dict[int, str] = {}

    def batch(self, firsts: Int64s, lengths: Int64s) -> MatchBatch:
        """Return the match batch of a bucket, given where its columns start and their lengths."""
        split, first, begin = self._split, firsts[MATCHES], firsts[MATCHED]
        rows = slice(first, first + lengths[MATCHES])
        event_of = split.events[rows]
        starts = np.flatnonzero(np.diff(event_of, prepend=-1))
        subscribers = split.subscriber_names[first : first + lengths[SUBSCRIBERS]]
        subscriptions = split.subscription_names[begin : begin + lengths[SUBSCRIPTIONS]]
        compares = self._matcher.attributes[subscribers][split.subscribers[rows]]
        present = event_of[starts]
        return MatchBatch(
            [self._events[position].id for position in present.tolist()],
            self._us[present],
            self._sequence[present],
            list(self._write_forms(present, np.logical_or.reduceat(compares, starts).tolist())),
            Matches(
                np.append(starts, lengths[MATCHES]),
                split.subscribers[rows],
                split.ranks[rows],
                offsets(split.sizes[rows]),
                split.matched[begin : begin + lengths[MATCHED]],
            ),
            self._matcher.names.take(subscribers),
            self._matcher.ids.take(subscriptions),
            packed_contents(self._contents[position] for position in present.tolist())
            if self._contents
            else (),
        )

    def _write_forms(self, present: Int32s, needed: Sequence[bool]) -> Iterator[str]:
        """Yield the JSON text, without content, of events that are compared, else an empty text."""
        for position, is_needed in zip(present.tolist(), needed, strict=True):
            if is_needed and position not in self._forms:
                self._forms[position] = json.dumps(self._events[position].dict_without_content())
            yield self._forms[position] if is_needed else ""


class PrunablePeriod(NamedTuple):
    """Parameters of a policy that pruning needs; k = 0 means that it must not be pruned."""

    k: int = 0
    length_us: int = 1
    origin_us: int = 0

    @classmethod
    def of(cls, policy: Policy | None) -> "PrunablePeriod":
        """Return the periods of a policy, with k = 0 for a policy that does not allow pruning."""
        window: Any = policy.window if policy else None
        if policy is None or window.name != "periodic" or policy.diversify.name != "none":
            return cls()
        if window.length is None or window.length.us is None or unregistered(policy):
            return cls()
        return cls(policy.k, window.length.us, parse_time_us(window.origin))


def prune_periods(matcher: OverlayMatcher, events: Sequence[Event], matches: Matches) -> Matches:
    """Return the matches that may win; subscribers with at most k matches cost nothing more."""
    periods = matcher.numbers(PrunablePeriod.of)
    above_k = np.bincount(matches.subscribers, minlength=len(periods)) > periods[:, 0]
    rows = np.flatnonzero((above_k & (periods[:, 0] > 0))[matches.subscribers])
    if not len(rows):
        return matches
    us, recency = _recency(events)
    event = matches.events[rows]
    owner, rank = matches.subscribers[rows], matches.ranks[rows]
    k, length, origin = periods[owner].T
    period = (us[event] - origin) // length
    order = np.lexsort((recency[event], -rank, period, owner))
    edges = np.diff(owner[order], prepend=-1) != 0
    edges |= np.diff(period[order], prepend=period[order[0]]) != 0
    beaten = np.zeros(len(order), np.bool_)
    mark_beaten(np.cumsum(edges), us[event][order], k[order], beaten)
    kept = np.ones(len(matches.subscribers), np.bool_)
    kept[rows[order[beaten]]] = False
    return matches.only(kept)


def _recency(events: Sequence[Event]) -> tuple[Int64s, Int64s]:
    """Return the times of events, and their positions with the newer, then the smaller id first."""
    us = np.array([event.published_us for event in events], np.int64)
    order = sorted(range(len(events)), key=lambda event: (-int(us[event]), events[event].id))
    position = np.empty(len(events), np.int64)
    position[order] = np.arange(len(events))
    return us, position


@kernel
def mark_beaten(groups: Int64s, us: Int64s, k: Int64s, beaten: Bools) -> None:
    """Mark rows for which k rows before them in their group are not older; O(n k) at most.

    A group is contiguous, best rows first; its k is that of its first row. `newest` holds the k
    latest times so far in descending order, so its last one decides.
    """
    newest = np.empty(1, np.int64)
    group, size = -1, 0
    for row in range(len(groups)):
        if row == 0 or groups[row] != group:
            group, size = groups[row], k[row]
            newest = np.full(size, _OLDEST, np.int64)
        beaten[row] = newest[size - 1] != _OLDEST and newest[size - 1] >= us[row]
        place = size - 1
        if us[row] > newest[place] or newest[place] == _OLDEST:
            while place > 0 and us[row] > newest[place - 1]:
                newest[place] = newest[place - 1]
                place -= 1
            newest[place] = us[row]
