"""The live interval index against a plain model, also while it is rebuilt and read."""

import gc
import math
import os
import sys
import weakref
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.errors import TidingsError
from tidings.index.intervals import interval_index
from tidings.index.intervals.live.index import IntervalSnapshot, LiveIntervals
from tidings.index.intervals.protocol import rank_intervals

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

ends = st.one_of(st.integers(0, 9).map(float), st.sampled_from([-math.inf, math.inf]))
scores = st.integers(0, 3).map(float)
rows = st.tuples(ends, ends, scores).map(lambda row: (*sorted(row[:2]), row[2]))


def random_table(size, seed):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 9, size).astype(float)
    return np.stack([low, low + rng.integers(0, 4, size), rng.integers(0, 4, size)], axis=1)


def live(table, **options):
    return interval_index("live", *np.reshape(table, (-1, 3)).T, **options)


def within(intervals, below, above, k):
    """Return the k best intervals with low <= below and above <= high."""
    rows = intervals.items()
    ranked = [(-row[2], id) for id, row in rows if row[0] <= below and above <= row[1]]
    return [id for _, id in sorted(ranked)[:k]]


def best(intervals, q, k):
    return within(intervals, q, q, k)


def check_answers(index, intervals, k=20):
    qs = [-1.0, 0.0, 3.0, 4.5, 9.0, math.inf]
    ids, counts = index.top_many(np.array(qs), k)
    for row, count, q in zip(ids.tolist(), counts.tolist(), qs, strict=True):
        assert row[:count] == best(intervals, q, k)
        assert row[count:] == [-1] * (k - count)
    assert index.top(3.0, k).tolist() == best(intervals, 3.0, k)
    assert len(index) == len(intervals)


@contextmanager
def paused_merge(index):
    """Start a merge that does not finish before the block ends."""
    go, build = Event(), index._build

    def wait(*arguments):
        go.wait()
        return build(*arguments)

    index._build = wait
    with index._merge.lock:
        index._start_merge()
    try:
        yield
    finally:
        go.set()
        index.settle()
        index._build = build


class Changes(RuleBasedStateMachine):
    """Changes, one and many, and rebuilds that begin and end at any point between them."""

    @initialize(
        size=st.sampled_from([0, 1, 63, 64, 65, 200]), bound=st.sampled_from([0, 3, 40, 10**6])
    )
    def start(self, size, bound):
        table = random_table(size, size)
        self.index = live(table, bound=bound)
        self.intervals = dict(enumerate(map(tuple, table.tolist())))
        self.next_id: int = size
        self.paused: Any = None

    @rule(row=rows)
    def insert(self, row):
        assert self.index.insert(*row) == self.next_id
        self.intervals[self.next_id] = row
        self.next_id += 1

    @rule(size=st.sampled_from([0, 1, 5, 130]), seed=st.integers(0, 9))
    def insert_many(self, size, seed):
        table = random_table(size, seed)
        ids = self.index.insert_many(*table.T)
        assert ids.tolist() == list(range(self.next_id, self.next_id + size))
        self.intervals |= dict(zip(ids.tolist(), map(tuple, table.tolist()), strict=True))
        self.next_id += size

    @precondition(lambda self: self.intervals)
    @rule(data=st.data())
    def delete(self, data):
        id = data.draw(st.sampled_from(sorted(self.intervals)))
        self.index.delete(id)
        del self.intervals[id]
        with pytest.raises(TidingsError, match=f"there is no interval {id}"):
            self.index.delete(id)

    @rule(share=st.sampled_from([0.1, 0.5, 1.0]), seed=st.integers(0, 9))
    def delete_many(self, share, seed):
        ids = np.array(sorted(self.intervals), np.int64)
        ids = np.random.default_rng(seed).permutation(ids)[: int(share * len(ids))]
        self.index.delete_many(ids)
        for id in ids.tolist():
            del self.intervals[id]

    @precondition(lambda self: self.intervals)
    @rule(data=st.data(), score=scores)
    def rescore(self, data, score):
        id = data.draw(st.sampled_from(sorted(self.intervals)))
        self.index.rescore(id, score)
        self.intervals[id] = (*self.intervals[id][:2], score)

    @precondition(lambda self: self.intervals)
    @rule(data=st.data(), row=rows)
    def replace(self, data, row):
        id = data.draw(st.sampled_from(sorted(self.intervals)))
        self.index.replace(id, *row)
        self.intervals[id] = row

    @rule(share=st.sampled_from([0.1, 1.0]), seed=st.integers(0, 9))
    def replace_many(self, share, seed):
        ids = np.array(sorted(self.intervals), np.int64)
        ids = np.random.default_rng(seed).permutation(ids)[: int(share * len(ids))]
        table = random_table(len(ids), seed)
        self.index.replace_many(ids, *table.T)
        self.intervals |= dict(zip(ids.tolist(), map(tuple, table.tolist()), strict=True))

    @rule(share=st.sampled_from([0.1, 1.0]), seed=st.integers(0, 9))
    def rescore_many(self, share, seed):
        rng = np.random.default_rng(seed)
        ids = np.array(sorted(self.intervals), np.int64)
        ids = rng.permutation(ids)[: int(share * len(ids))]
        new = rng.integers(0, 4, len(ids)).astype(float)
        self.index.rescore_many(ids, new)
        for id, score in zip(ids.tolist(), new.tolist(), strict=True):
            self.intervals[id] = (*self.intervals[id][:2], score)

    @precondition(lambda self: self.paused is None)
    @rule()
    def freeze(self):
        self.index.settle()
        self.paused = paused_merge(self.index)
        self.paused.__enter__()

    @precondition(lambda self: self.paused is not None)
    @rule()
    def swap(self):
        self.paused.__exit__(None, None, None)
        self.paused = None

    @invariant()
    def it_equals_the_model(self):
        check_answers(self.index, self.intervals)
        assert list(self.index.iterate(3.0)) == best(self.intervals, 3.0, len(self.intervals))
        assert self.index.ranges.top(2.5, 4.0, 20).tolist() == within(self.intervals, 4.0, 2.5, 20)
        containing = list(self.index.ranges.iterate(3.0, 4.0, "contained"))
        assert containing == within(self.intervals, 3.0, 4.0, len(self.intervals))

    def teardown(self):
        if getattr(self, "paused", None) is not None:
            self.swap()
        if hasattr(self, "index"):
            self.index.close()
            check_answers(self.index, self.intervals)


TestChanges = Changes.TestCase
TestChanges.settings = settings(
    max_examples=60 if JIT else 6, stateful_step_count=25 if JIT else 12, deadline=None
)


def test_an_index_that_is_filled_and_emptied():
    index = live([], bound=10)
    ids = index.insert_many(*random_table(300, 1).T)
    index.settle()
    index.delete_many(ids)
    assert index.top(3.0, 5).tolist() == [] == list(index.iterate(3.0))
    index.settle()
    index.rebuild()
    index.settle()
    assert len(index._snapshot.base) == 0
    assert index.insert(0.0, 9.0, 1.0) == 300
    assert index.top(3.0, 5).tolist() == [300]


def test_a_score_that_changes_back_and_forth():
    index = live([(0.0, 9.0, 1.0)], bound=10**6)
    for _ in range(200 if JIT else 140):
        index.rescore(0, 2.0)
        index.rescore(0, 1.0)
    assert index.top(3.0, 5).tolist() == [0]
    index.delete(0)
    assert index.top(3.0, 5).tolist() == []


def test_a_reader_keeps_its_snapshot():
    index = live(random_table(300, 2), bound=10**6)
    expected = list(index.iterate(3.0))
    begun = index.iterate(3.0)
    first = next(begun)
    index.delete_many(range(300))
    index.rebuild()
    index.settle()
    assert [first, *begun] == expected
    assert index.top(3.0, 5).tolist() == []


@pytest.mark.parametrize("spread", [9, 9000])
def test_the_grid_accepts_intervals_outside_its_cells(spread):
    """Cuts come from the run; the new intervals are elsewhere, longer, or all in one place."""
    table = random_table(2500 if JIT else 150, 3)
    index = live(table, bound=10**6)
    intervals = dict(enumerate(map(tuple, table.tolist())))
    rng = np.random.default_rng(4)
    low = rng.integers(-spread, spread, 600 if JIT else 100).astype(float)
    new = np.stack([low, low + rng.integers(0, spread, len(low)), rng.integers(0, 9, len(low))])
    ids = index.insert_many(*new)
    intervals |= dict(zip(ids.tolist(), map(tuple, new.T.tolist()), strict=True))
    check_answers(index, intervals)
    index.delete_many(ids[::2])
    for id in ids[::2].tolist():
        del intervals[id]
    check_answers(index, intervals)
    assert list(index.iterate(4.5)) == best(intervals, 4.5, len(intervals))


def test_dead_entries_are_soon_skipped():
    """They are skipped once there are many; an earlier reader still sees them."""
    table = [(0.0, 9.0, float(size)) for size in range(640)]
    index = live(table, bound=10**6)
    begun, expected = index.iterate(3.0), list(range(639, -1, -1))
    first = next(begun)
    index.delete_many(range(100, 640))
    assert index.top(3.0, 5).tolist() == [99, 98, 97, 96, 95]
    assert index.counters()["intervals"] <= 6
    assert index.counters()["rebuilds"] == 0
    assert [first, *begun] == expected
    assert index.top(math.inf, 5).tolist() == []


def test_new_scores_may_be_anything():
    """Even scores that no interval of that length, or none at all, had when cuts were made."""
    rng = np.random.default_rng(11)
    size = 3000 if JIT else 200
    low = rng.integers(0, 900, size).astype(float)
    length = rng.integers(0, 900, size)
    table = np.stack([low, low + length, 900.0 - length], axis=1)
    index = live(table, bound=10**6)
    intervals = dict(enumerate(map(tuple, table.tolist())))
    ids = rng.permutation(size)[: size // 2]
    new = rng.choice([0.0, 1.0, 450.0, 899.0, 901.0, 10.0**6], len(ids))
    index.rescore_many(ids, new)
    for id, score in zip(ids.tolist(), new.tolist(), strict=True):
        intervals[id] = (*intervals[id][:2], score)
    for q in (0.0, 300.0, 450.5, 899.0, 1500.0):
        for k in (1, 20, 400):
            assert index.top(q, k).tolist() == best(intervals, q, k)


def test_ids_with_gaps_are_found():
    """A position is searched for between no gaps and all of them."""
    index = live(random_table(300, 12), bound=10**6)
    intervals = dict(enumerate(map(tuple, random_table(300, 12).tolist())))
    gone = [*range(40), *range(50, 250, 3), *range(290, 300)]
    index.delete_many(gone)
    index.rebuild()
    index.settle()
    for id in gone:
        del intervals[id]
    for id in (-1, 0, 39, 50, 299, 300, 10**9):
        with pytest.raises(TidingsError, match=f"there is no interval {id}"):
            index.delete(id)
    for id in sorted(intervals):
        index.rescore(id, 7.0)
        intervals[id] = (*intervals[id][:2], 7.0)
    check_answers(index, intervals)


def test_at_most_one_rebuild_is_under_way():
    index = live(random_table(10, 4), bound=0)
    with paused_merge(index):
        thread = index._merge._thread
        for score in range(5):
            index.insert(0.0, 9.0, float(score))
        index.rebuild()
        assert index._merge._thread is thread
        assert "a rebuild is under way" in index.describe()
    assert index.counters()["rebuilds"] == 1
    assert "no rebuild is under way, 1 done" in index.describe()


def test_memory_of_the_old_run_is_released():
    index = live(random_table(500, 5), bound=10**6)
    old = weakref.ref(index._snapshot.base)
    reader = index.iterate(3.0)
    next(reader)
    index.delete_many(range(400))
    index.rebuild()
    index.settle()
    gc.collect()
    assert old() is not None, "a reader holds it"
    reader.close()
    gc.collect()
    assert old() is None
    assert index.nbytes < live(random_table(500, 5)).nbytes


def test_a_writer_that_outruns_the_rebuild_waits_for_it(monkeypatch):
    monkeypatch.setattr("tidings.index.intervals.live.index.AHEAD", 50)
    index = live(random_table(100, 6), bound=10)
    with paused_merge(index):
        for number in range(161 - index._changes):
            index.insert(0.0, 9.0, float(number % 4))
        assert index._changes > index._most_changes == 160
        waiting = Thread(target=index.insert, args=(0.0, 9.0, 9.0))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        assert len(index.top(3.0, 500)) > 160, "readers do not wait"
    waiting.join()
    index.close()
    assert index.top(3.0, 1).tolist() == [261]


def test_deleting_everything_releases_the_memory():
    empty = live([]).nbytes
    index = live(random_table(5000 if JIT else 300, 8), bound=100)
    index.insert_many(*random_table(3000 if JIT else 200, 9).T)
    index.delete_many(range(8000 if JIT else 500))
    index.settle()
    index.rebuild()
    index.settle()
    assert len(index) == 0
    assert index.nbytes <= empty


def test_a_failed_rebuild_is_raised_to_the_next_writer(monkeypatch):
    index = live(random_table(50, 6), bound=10**6)
    intervals = dict(enumerate(map(tuple, random_table(50, 6).tolist())))

    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(index, "_build", fail)
    index.rebuild()
    index.settle()
    check_answers(index, intervals)
    with pytest.raises(TidingsError, match=r"the last merge failed .*no room.*nothing is lost"):
        index.delete(0)
    monkeypatch.undo()
    index.delete(0)
    del intervals[0]
    index.rebuild()
    index.settle()
    check_answers(index, intervals)


def test_a_closed_index_answers_but_takes_no_changes():
    with live([(0.0, 9.0, 1.0)]) as index:
        index.rebuild()
    assert not index._merge.running
    assert index.top(1.0, 1).tolist() == [0]
    with pytest.raises(TidingsError, match="closed"):
        index.insert(0.0, 1.0, 1.0)


def test_wrong_changes_are_refused():
    index = live([(0.0, 9.0, 1.0), (0.0, 9.0, 2.0)])
    with pytest.raises(TidingsError, match="low 2 is above high 1"):
        index.insert(2, 1, 1.0)
    with pytest.raises(TidingsError, match="score nan"):
        index.rescore(0, math.nan)
    with pytest.raises(TidingsError, match="score -1"):
        index.rescore_many([0], [-1.0])
    with pytest.raises(TidingsError, match="given twice"):
        index.rescore_many([0, 0], [1.0, 2.0])
    with pytest.raises(TidingsError, match="2 ids do not fit 1 changes"):
        index.rescore_many([0, 1], [1.0])
    with pytest.raises(TidingsError, match="there is no interval -1"):
        index.rescore(-1, 1.0)
    with pytest.raises(TidingsError, match="bound = -1"):
        live([], bound=-1)
    with pytest.raises(TidingsError, match="there is no interval 7"):
        index.delete_many([1, 7, 0])
    assert index.top(1.0, 5).tolist() == [0]
    with pytest.raises(TidingsError, match="there is no interval 8"):
        index.rescore_many([0, 8], [3.0, 3.0])


class RecordedWriter:
    """A writer's changes, the number begun and ended, and the intervals after each."""

    def __init__(self, index, intervals, seed):
        self.index, self.intervals = index, intervals
        self.rng = np.random.default_rng(seed)
        self.begun, self.states = 0, [dict(intervals)]

    def run(self, changes):
        for _ in range(changes):
            after = dict(self.intervals)
            apply = self.change(after)
            self.begun += 1
            apply()
            self.states.append(after)
            self.intervals = after

    def change(self, after):
        kind, score = self.rng.integers(0, 5), float(self.rng.integers(0, 4))
        ids = self.rng.permutation(sorted(after))[:5].tolist()
        if kind == 0 or len(ids) < 5:
            row = (float(self.rng.integers(0, 5)), 6.0, score)
            after[self.index._next_id] = row
            return lambda: self.index.insert(*row)
        if kind == 1:
            del after[ids[0]]
            return lambda: self.index.delete(ids[0])
        chosen = ids if kind == 2 else ids[:1]
        for id in chosen:
            after[id] = (*after[id][:2], score)
        if kind == 2:
            return lambda: self.index.rescore_many(chosen, [score] * len(chosen))
        return lambda: self.index.rescore(ids[0], score)


class PublishedSnapshots(LiveIntervals):
    """A live index that keeps every snapshot it publishes."""

    published: list[IntervalSnapshot]

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_snapshot":
            self.__dict__.setdefault("published", []).append(value)


@pytest.mark.parametrize("bound", [30, 10**6])
def test_every_snapshot_is_before_or_after_a_change(bound):
    table = random_table(60, 9)
    index = PublishedSnapshots(rank_intervals(*table.T), bound=bound)
    writer = RecordedWriter(index, dict(enumerate(map(tuple, table.tolist()))), seed=10)
    for _ in range(600 if JIT else 200):
        index.published.clear()
        before = writer.intervals
        writer.run(1)
        for state in list(index.published):
            ids = state.top(4.0, 50)[0].tolist()
            assert ids in (best(before, 4.0, 50), best(writer.intervals, 4.0, 50))
    index.close()


def test_a_rescored_interval_is_in_every_snapshot():
    """Even when a larger grid replaces a full one."""
    index = PublishedSnapshots(rank_intervals([0.0], [9.0], [1.0]), bound=10**6)
    for number in range(300):
        index.rescore(0, float(number % 3))
    assert len(index.published) == 301
    assert all(state.top(4.0, 5)[0].tolist() == [0] for state in index.published)


class RecordedReader:
    """Queries, each with the range of changes that it may see."""

    def __init__(self, writer):
        self.writer, self.seen = writer, []

    def run(self, stop):
        qs = np.array([1.0, 4.0, 6.0])
        while not stop.is_set():
            ended = len(self.writer.states) - 1
            ids, counts = self.writer.index.top_many(qs, 8)
            one = self.writer.index.top(4.0, 8).tolist()
            begun = self.writer.begun
            many = [row[:count] for row, count in zip(ids.tolist(), counts, strict=True)]
            self.seen.append((ended, begun, many, one))

    def check(self):
        for ended, begun, many, one in self.seen:
            states = self.writer.states[ended : begun + 1]
            assert many in [[best(state, q, 8) for q in (1.0, 4.0, 6.0)] for state in states]
            assert one in [best(state, 4.0, 8) for state in states]


@pytest.fixture
def frequent_switches():
    """Switch threads often, so that changes fall between the steps of a reader."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("bound", [20, 10**6])
def test_every_answer_is_that_of_one_snapshot(bound):
    table = random_table(60, 7)
    index = live(table, bound=bound)
    writer = RecordedWriter(index, dict(enumerate(map(tuple, table.tolist()))), seed=8)
    readers, stop = [RecordedReader(writer), RecordedReader(writer)], Event()
    threads = [Thread(target=reader.run, args=(stop,)) for reader in readers]
    for thread in threads:
        thread.start()
    try:
        writer.run(1500 if JIT else 150)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    index.close()
    assert bound > 20 or index.counters()["rebuilds"] > 0
    for reader in readers:
        assert reader.seen
        reader.check()
    check_answers(index, writer.intervals)
