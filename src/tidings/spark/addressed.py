"""The matches of some events, split into a parcel for each bucket of subscribers."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.fanout import Wanted
from tidings.model import Event
from tidings.sealed.served import Served
from tidings.spark.parcel import UNNUMBERED, Ints, Parcel, Shorts

Numbers = npt.NDArray[Any]


def addressed(served: Served, events: Sequence[Event], buckets: int) -> dict[int, Parcel]:
    """Match events; give the parcels of the buckets that have matches."""
    wanted = served.wanted(events)
    bucket = served.hashes[wanted.owners] % np.uint32(buckets)
    narrow = bucket.astype(np.uint16 if buckets <= 1 << 16 else np.uint32)
    order = np.argsort(narrow, kind="stable")  # of 16 bits, in O(n)
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    split = _Split(served, events, wanted)
    return {
        number: split.parcel(rows)
        for number, rows in enumerate(np.split(order, ends[:-1]))
        if len(rows)
    }


class _Split:
    """Gives the parcels of some of all matches."""

    def __init__(self, served: Served, events: Sequence[Event], wanted: Wanted) -> None:
        self._served, self._events, self._wanted = served, events, wanted
        self._event = np.repeat(np.arange(len(events)), np.diff(wanted.starts))
        self._needs = served.attributes[wanted.owners]
        self._us = np.array([event.published_us for event in events], np.int64)
        self._sequence = np.array([_number(event) for event in events], np.int64)
        self._forms: dict[int, str] = {}

    def parcel(self, rows: Ints) -> Parcel:
        """Give the parcel of matches in order of their events."""
        wanted, event = self._wanted, self._event[rows]
        first = np.flatnonzero(np.diff(event, prepend=-1))
        present = event[first]
        people, owners = numbered(wanted.owners[rows])
        size = np.diff(wanted.matched_starts)[rows]
        begin = np.concatenate([[0], np.cumsum(size)])
        places = np.repeat(wanted.matched_starts[rows] - begin[:-1], size) + np.arange(begin[-1])
        subscriptions, matched = numbered(wanted.matched[places])
        return Parcel(
            [self._events[each].id for each in present.tolist()],
            self._us[present],
            self._sequence[present],
            list(self._written(present, np.unique(event[self._needs[rows]]))),
            np.append(first, len(rows)),
            owners,
            wanted.ranks[rows],
            begin,
            matched,
            self._served.names.take(people),
            self._served.ids.take(subscriptions),
        )

    def _written(self, present: Numbers, needed: Numbers) -> Iterator[str]:
        """Give the forms of events that somebody has to compare with others; else nothing."""
        for each, needs in zip(present.tolist(), np.isin(present, needed).tolist(), strict=True):
            if needs and each not in self._forms:
                self._forms[each] = json.dumps(self._events[each].to_dict())
            yield self._forms[each] if needs else ""


def numbered(values: Shorts) -> tuple[Shorts, Shorts]:
    """Give the distinct values in order, and which of these each value is."""
    found, places = np.unique(values, return_inverse=True)
    return found, places.astype(np.int32)


def _number(event: Event) -> int:
    return UNNUMBERED if event.sequence is None else event.sequence
