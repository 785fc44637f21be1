"""The matches of some events, split into a parcel for each bucket of subscribers."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.feed.policy_key import counts_published
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.model.records import Event
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
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.period_pruning import pruned


class Lost(NamedTuple):
    """A match that a subscriber does not get, since its own scorer failed, and why."""

    event: Event
    subscriber: str
    reason: str


class Addressed(NamedTuple):
    """The parcels of the buckets that have matches, and what somebody cannot get.

    Who counts all publications gets no event that has no number (`refused`); the others do. Nor
    does anybody get what its scorer could not rank (`lost`).
    """

    parcels: dict[int, Parcel]
    refused: list[Event]
    lost: list[Lost]

    @property
    def matches(self) -> int:
        """How many matches there are."""
        return sum(len(each.matches.ranks) for each in self.parcels.values())


def addressed(
    served: OverlayMatcher, events: Sequence[Event], buckets: int, *, prune: bool = False
) -> Addressed:
    """Match events and split the matches; with `prune`, those that cannot win are left out."""
    unranked: list[Unranked] = []
    wanted, refused = _countable(served, events, served.wanted(events, unranked))
    if prune:
        wanted = pruned(served, events, wanted)
    homes = (served.hashes % buckets).astype(np.int32)
    split, firsts, done = split_by_bucket(wanted, homes, buckets, served.size)
    parcels = _Parcels(served, events, split)
    filled = np.flatnonzero(done[:, MATCHES]).tolist()
    found = {bucket: parcels.of(firsts[bucket], done[bucket]) for bucket in filled}
    return Addressed(found, refused, [_lost(served, events, each) for each in unranked])


def _lost(served: OverlayMatcher, events: Sequence[Event], unranked: Unranked) -> Lost:
    name = served.names.take(np.array([unranked.owner])).to_pylist()[0]
    return Lost(events[unranked.event], name, unranked.reason)


def _countable(
    served: OverlayMatcher, events: Sequence[Event], wanted: Matches
) -> tuple[Matches, list[Event]]:
    """Leave out the matches of who counts with events without a number; give these events."""
    bare = np.array([event.sequence is None for event in events], np.bool_)
    counts = served.numbers(_counts)[:, 0].astype(np.bool_)
    if not (bare.any() and counts.any()):
        return wanted, []
    whose = wanted.events
    lost = bare[whose] & counts[wanted.subscribers]
    refused = [events[place] for place in np.unique(whose[lost]).tolist()]
    return wanted.only(~lost), refused


def _counts(policy: Policy | None) -> tuple[int]:
    return (policy is not None and counts_published(policy),)


class _Parcels:
    """Takes the parcels out of what was split."""

    def __init__(
        self, served: OverlayMatcher, events: Sequence[Event], split: BucketedMatches
    ) -> None:
        self._served, self._events, self._split = served, events, split
        self._us = np.array([event.published_us for event in events], np.int64)
        self._sequence = np.array([_number(event) for event in events], np.int64)
        self._forms: dict[int, str] = {}

    def of(self, firsts: Int64s, done: Int64s) -> Parcel:
        """Give the parcel of a bucket: where it begins, and how much there is."""
        split, first, begin = self._split, firsts[MATCHES], firsts[MATCHED]
        rows = slice(first, first + done[MATCHES])
        events = split.events[rows]
        starts = np.flatnonzero(np.diff(events, prepend=-1))
        people = split.subscriber_names[first : first + done[SUBSCRIBERS]]
        needs = self._served.attributes[people][split.subscribers[rows]]
        present = events[starts]
        return Parcel(
            [self._events[each].id for each in present.tolist()],
            self._us[present],
            self._sequence[present],
            list(self._written(present, np.logical_or.reduceat(needs, starts).tolist())),
            Matches(
                np.append(starts, done[MATCHES]),
                split.subscribers[rows],
                split.ranks[rows],
                offsets(split.sizes[rows]),
                split.matched[begin : begin + done[MATCHED]],
            ),
            self._served.names.take(people),
            self._served.ids.take(split.subscription_names[begin : begin + done[SUBSCRIPTIONS]]),
        )

    def _written(self, present: Int32s, needs: Sequence[bool]) -> Iterator[str]:
        """Give the forms of events that somebody has to compare with others; else nothing."""
        for each, needed in zip(present.tolist(), needs, strict=True):
            if needed and each not in self._forms:
                self._forms[each] = json.dumps(self._events[each].to_dict())
            yield self._forms[each] if needed else ""


def _number(event: Event) -> int:
    return UNNUMBERED if event.sequence is None else event.sequence
