"""Offers as columns, one event for each."""

import numpy as np

from tidings.feed.columnar.match_batch import read_offers
from tidings.model.records import Event, Match
from tidings.window import Moment

SUBSCRIBERS = {"ada": 4, "bob": 7}
SLOTS = {"e": 2, "f": 0}
SUBSCRIPTIONS = {"s": 5, "t": 1}


def read(*offers: tuple[Match, Moment]):
    return read_offers(
        offers,
        SUBSCRIBERS.__getitem__,
        lambda event: SLOTS[event.id],
        SUBSCRIPTIONS.__getitem__,
    )


def offer(subscriber: str, event: str, score: float, sequence: int, *matched: str):
    return Match(subscriber, Event(event, {}, 0), score, matched), Moment(9, sequence)


def test_every_offer_is_an_event_with_one_match():
    offered = read(
        offer("bob", "e", 0.5, 3, "s", "t"),
        offer("ada", "e", 0.25, 3),
        offer("bob", "f", 1.0, 8, "t"),
    )
    assert offered.slots.tolist() == [2, 2, 0]
    assert offered.sequences.tolist() == [3, 3, 8]
    assert [list(offered.matches.rows(event)) for event in range(3)] == [
        [(7, 0.5, [5, 1])],
        [(4, 0.25, [])],
        [(7, 1.0, [1])],
    ]


def test_columns_have_the_types_that_kernels_take():
    for offered in (read(), read(offer("ada", "e", 1, 1, "s"))):
        assert offered.slots.dtype == np.int32
        assert offered.sequences.dtype == np.int64
        assert offered.matches.subscribers.dtype == np.int32
        assert offered.matches.ranks.dtype == np.float64
        assert offered.matches.matched_starts.dtype == np.int64
        assert offered.matches.matched.dtype == np.int32


def test_no_offers_are_no_events():
    offered = read()
    assert len(offered.slots) == len(offered.sequences) == 0
    assert offered.matches.starts.tolist() == offered.matches.matched_starts.tolist() == [0]
