"""The memtable: appended records equal those of a segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.memtable import (
    RECORDS,
    Memtable,
    StoredConjunction,
    _halves,
    conjunctions_of,
    stored_conjunctions,
)
from tidings.index.access.segment import Segment
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.index.protocol import own_score

COUNT = 60


@given(st.floats(allow_nan=False))
def test_two_words_have_the_order_of_the_float(value: float) -> None:
    high, low = _halves(value)
    assert (high << 32) | (low & 0xFFFFFFFF) == int(ordered(value)[0])


def filled(seed: int) -> tuple[Memtable, list[str], Vocabulary]:
    memtable, vocabulary = Memtable(), Vocabulary()
    wanted = subscriptions(COUNT, seed)
    for number, one in enumerate(wanted):
        conjunctions = conjunctions_of(one, vocabulary)
        assert memtable.fits(conjunctions)
        assert memtable.append(number, own_score(one), conjunctions) == number
    return memtable, [one.id for one in wanted], vocabulary


@pytest.mark.parametrize("seed", range(3))
def test_appended_subscriptions_are_those_that_were_encoded(seed: int) -> None:
    memtable, ids, vocabulary = filled(seed)
    expected = encode(subscriptions(COUNT, seed), range(COUNT), vocabulary)
    encoded = memtable.encoded(0, ids)
    for name in ("numbers", "scores", "by_id", "owner", "size", "term", "part", "members"):
        assert np.array_equal(getattr(encoded, name), getattr(expected, name)), name


def test_tombstones_hide_and_a_view_ends_at_its_size() -> None:
    memtable, ids, _ = filled(1)
    size = memtable.size
    memtable.bury([0, 2], 3)
    assert memtable.dead == 2
    assert len(memtable.encoded(2, ids)) == COUNT
    assert memtable.encoded(3, ids).numbers.tolist() == [1, *range(3, COUNT)]
    assert memtable.view(size, 3, ids).size == size


def test_stored_conjunctions_can_be_appended_again() -> None:
    memtable, ids, vocabulary = filled(2)
    encoded = encode(subscriptions(COUNT, 2), range(COUNT), vocabulary)
    segment = Segment(encoded, vocabulary, sort=False)
    copy = Memtable()
    for number in range(COUNT):
        rank = int(np.flatnonzero(segment.numbers == number)[0])
        copy.append(number, float(segment.scores[rank]), stored_conjunctions(segment, rank))
        stored = stored_conjunctions(memtable, number)
        assert [list(one.words) for one in stored] == [
            list(one.words) for one in stored_conjunctions(copy, number)
        ]
    assert np.array_equal(copy.encoded(0, ids).part, memtable.encoded(0, ids).part)


def test_a_full_memtable_takes_no_more() -> None:
    memtable, one = Memtable(), StoredConjunction([1], [0], [1.0])
    for number in range(RECORDS):
        assert memtable.fits([one])
        memtable.append(number, 1.0, [one])
    assert not memtable.fits([one])
    assert not Memtable().fits([StoredConjunction([1], [1 << 16], [1.0])])
