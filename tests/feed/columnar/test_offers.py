"""Offers as columns."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.offers import read_offers, runs_of
from tidings.model.records import Event, Match
from tidings.window import Moment

SUBSCRIBERS = {"ada": 4, "bob": 7}
SLOTS = {"e": 2, "f": 0}


def read(*offers: tuple[Match, Moment]):
    return read_offers(offers, SUBSCRIBERS.__getitem__, lambda event: SLOTS[event.id])


def offer(subscriber: str, event: str, score: float, sequence: int, *matched: str):
    return Match(subscriber, Event(event, {}, 0), score, matched), Moment(9, sequence)


def test_every_offer_is_a_row():
    rows = read(
        offer("bob", "e", 0.5, 3, "s", "t"),
        offer("ada", "e", 0.25, 3),
        offer("bob", "f", 1.0, 8, "t"),
    )
    assert rows.subscribers.tolist() == [7, 4, 7]
    assert rows.slots.tolist() == [2, 2, 0]
    assert rows.ranks.tolist() == [0.5, 0.25, 1.0]
    assert rows.sequences.tolist() == [3, 3, 8]


def test_rows_have_the_types_that_kernels_take():
    for rows in (read(), read(offer("ada", "e", 1, 1, "s"))):
        kinds = [column.dtype for column in rows]
        assert kinds == [np.int32, np.int32, np.float64, np.int64]


@given(st.lists(st.lists(st.integers(0, 9))))
def test_runs_are_one_after_the_other(members: list[list[int]]):
    starts, numbers = runs_of(members)
    assert [starts.dtype, numbers.dtype] == [np.int64, np.int32]
    spans = pairwise(starts.tolist())
    assert [numbers[start:stop].tolist() for start, stop in spans] == members
