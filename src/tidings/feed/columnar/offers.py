"""Matches as feeds take them: columns, so that thousands of one event need no object each."""

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.feed.protocol import Offer
from tidings.model.records import Event
from tidings.rank.matches import Matches


class OfferedEvents(NamedTuple):
    """Matches in order of publication, and the place of each event in the stream."""

    matches: Matches
    slots: Int32s
    """By event: its slot in the event table of the feeds."""
    sequences: Int64s
    """By event: the number of publications up to and including it."""


class OfferRows(NamedTuple):
    """One row per match, as cohorts take them."""

    subscribers: Int32s
    slots: Int32s
    ranks: Float64s
    sequences: Int64s


def read_offers(
    offers: Sequence[Offer], subscriber: Callable[[str], int], slot: Callable[[Event], int]
) -> OfferRows:
    """Return offers as rows."""
    return OfferRows(
        np.array([subscriber(match.subscriber) for match, _ in offers], np.int32),
        np.array([slot(match.event) for match, _ in offers], np.int32),
        np.array([match.score for match, _ in offers], np.float64),
        np.array([now.sequence for _, now in offers], np.int64),
    )


def runs_of(members: Sequence[Sequence[int]]) -> tuple[Int64s, Int32s]:
    """Return lists of numbers one after the other: where each starts, and all numbers."""
    ends = accumulate(map(len, members), initial=0)
    return np.array([*ends], np.int64), np.array([*chain.from_iterable(members)], np.int32)
