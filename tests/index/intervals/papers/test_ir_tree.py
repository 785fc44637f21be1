"""The IR-tree under change: it answers like a scan of its intervals, and has no holes."""

import os

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.errors import TidingsError
from tidings.index.intervals import interval_index

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

ends = st.integers(0, 9).map(float)
scores = st.integers(0, 3).map(float)


class Changes(RuleBasedStateMachine):
    """Inserts, deletes and new scores, in any order."""

    @initialize(size=st.sampled_from([0, 1, 63, 64, 65, 200]))
    def start(self, size):
        rng = np.random.default_rng(size)
        low = rng.integers(0, 9, size).astype(float)
        high = low + rng.integers(0, 4, size)
        score = rng.integers(0, 4, size).astype(float)
        self.index = interval_index("ir", low, high, score)
        self.intervals = dict(enumerate(zip(low, high, score, strict=True)))
        self.size = size

    @rule(one=ends, other=ends, score=scores, copies=st.sampled_from([1, 3, 40]))
    def insert(self, one, other, score, copies):
        low, high = min(one, other), max(one, other)
        for _ in range(copies):
            assert self.index.insert(low, high, score) == self.size
            self.intervals[self.size] = (low, high, score)
            self.size += 1

    @precondition(lambda self: self.intervals)
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.5, 0.97, 1.0]))
    def delete(self, data, share):
        some = sorted(self.intervals)[: max(1, int(share * len(self.intervals)))]
        first = data.draw(st.sampled_from(sorted(self.intervals)))
        for id in {first, *some} if share else {first}:
            self.index.delete(id)
            del self.intervals[id]

    @precondition(lambda self: self.intervals)
    @rule(data=st.data(), score=scores)
    def rescore(self, data, score):
        chosen = data.draw(st.sampled_from(sorted(self.intervals)))
        self.index.rescore(chosen, score)
        self.intervals[chosen] = (*self.intervals[chosen][:2], score)

    @invariant()
    def answers_like_a_scan(self):
        assert len(self.index) == len(self.intervals)
        for q in (0.0, 4.0, 4.5, 12.0):
            stabbed = [
                (-s, id) for id, (low, high, s) in self.intervals.items() if low <= q <= high
            ]
            expected = [id for _, id in sorted(stabbed)]
            assert self.index.top(q, 7).tolist() == expected[:7]
            assert self.index.counters()["holes"] == 0
            assert list(self.index.iterate(q)) == expected


Changes.TestCase.settings = settings(
    max_examples=60 if JIT else 5, stateful_step_count=20 if JIT else 6
)
TestChanges = Changes.TestCase


def random_index(size, seed, length):
    rng = np.random.default_rng(seed)
    low = rng.random(size)
    return interval_index("ir", low, low + length * rng.random(size), rng.random(size))


@pytest.mark.parametrize("length", [0.001, 0.1, 1.0])
def test_a_node_has_no_holes(length):
    index = random_index(5000 if JIT else 300, seed=1, length=length)
    for id in range(0, len(index), 3):
        index.delete(id)
    for q in np.random.default_rng(2).random(100):
        index.top(q, 20)
        assert index.counters()["holes"] == 0


def test_memory_is_released():
    size = 20_000 if JIT else 3000
    index = random_index(size, seed=1, length=0.1)
    before = index.nbytes
    for id in range(size - 10):
        index.delete(id)
    assert index.nbytes < before - 20 * size
    assert len(index) == 10
    assert set(index.iterate(0.5)) <= set(range(size - 10, size))


def test_every_interval_in_its_own_node():
    size = 3000 if JIT else 200
    points = np.random.default_rng(3).permutation(size).astype(float)
    index = interval_index("ir", points, points, points)
    assert [index.top(q, 2).tolist() for q in points[:20]] == [[id] for id in range(20)]
    for id in range(size):
        index.delete(id)
    assert index.top(5.0, 3).tolist() == []
    assert index.insert(5.0, 6.0, 1.0) == size
    assert index.top(5.5, 3).tolist() == [size]


def test_ascending_inserts_fill_their_blocks():
    index = interval_index("ir", [], [], [])
    for score in range(1000 if JIT else 200):
        index.insert(0.0, 1.0, float(score))
    assert index.top(0.5, 3).tolist() == [len(index) - 1, len(index) - 2, len(index) - 3]


def test_an_interval_that_does_not_exist():
    index = interval_index("ir", [0], [1], [1])
    index.delete(0)
    for wrong in (0, 1, -1):
        with pytest.raises(TidingsError, match=f"there is no interval {wrong}"):
            index.delete(wrong)


def test_a_wrong_interval_is_refused_and_changes_nothing():
    index = interval_index("ir", [0], [1], [1])
    with pytest.raises(TidingsError, match="interval 1: low 3 is above high 2"):
        index.insert(3, 2, 1)
    with pytest.raises(TidingsError, match="is not a finite number >= 0"):
        index.rescore(0, -1)
    assert index.top(0.5, 5).tolist() == [0]


def test_a_change_ends_an_iteration():
    index = interval_index("ir", [0, 0], [1, 1], [1, 2])
    ids = index.iterate(0.5)
    assert next(ids) == 1
    index.delete(0)
    with pytest.raises(TidingsError, match="changed while it was iterated"):
        next(ids)


def test_bulk_changes_equal_single_ones():
    rng = np.random.default_rng(9)
    low = rng.integers(0, 20, 300).astype(float)
    rows = low, low + rng.integers(0, 5, 300), rng.integers(0, 9, 300).astype(float)
    index = interval_index("ir", *[column[:100] for column in rows])
    assert index.insert_many(*[column[100:] for column in rows]).tolist() == list(range(100, 300))
    index.delete_many(range(0, 300, 2))
    scan = interval_index("scan", *[column[1::2] for column in rows])
    for q in range(25):
        assert index.top(q, 20).tolist() == (2 * scan.top(q, 20) + 1).tolist()
    assert len(index) == 150


def test_bulk_changes_with_a_wrong_one():
    index = interval_index("ir", [0] * 5, [1] * 5, [1] * 5)
    with pytest.raises(TidingsError, match=r"interval 1: low 5\.0 is above high 2\.0"):
        index.insert_many([0, 5], [1, 2], [1, 1])
    for good, wrong in ((4, 9), (3, -1), (2, 4)):
        with pytest.raises(TidingsError, match=f"there is no interval {wrong}"):
            index.delete_many([good, wrong, 1])
    assert index.top(0.5, 5).tolist() == [0, 1]
    assert index.insert_many([], [], []).tolist() == []
