"""Matches as feeds take them: columns, so that thousands of one event need no object each."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.feed.protocol import Offer
from tidings.model.records import Event
from tidings.rank.matches import Matches, offsets


class OfferedEvents(NamedTuple):
    """Matches in order of publication, and the place of each event in the stream."""

    matches: Matches
    slots: Int32s
    """By event: its slot in the event table of the feeds."""
    sequences: Int64s
    """By event: the number of publications up to and including it."""


class OfferColumns(NamedTuple):
    """One row per match, as cohorts take them."""

    subscribers: Int32s
    slots: Int32s
    ranks: Float64s
    handles: Int32s
    """Handles of the matched subscriptions; see `matched_sets`."""
    sequences: Int64s


def read_offers(
    offers: Sequence[Offer],
    subscriber: Callable[[str], int],
    slot: Callable[[Event], int],
    subscription: Callable[[str], int],
) -> OfferedEvents:
    """Return offers as columns; each offer counts as an event with one match."""
    matched = [[subscription(name) for name in match.matched] for match, _ in offers]
    matches = Matches(
        np.arange(len(offers) + 1),
        np.array([subscriber(match.subscriber) for match, _ in offers], np.int32),
        np.array([match.score for match, _ in offers], np.float64),
        offsets(np.array([len(numbers) for numbers in matched], np.int64)),
        np.array([number for numbers in matched for number in numbers], np.int32),
    )
    slots = np.array([slot(match.event) for match, _ in offers], np.int32)
    return OfferedEvents(matches, slots, np.array([now.sequence for _, now in offers], np.int64))
