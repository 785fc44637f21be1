"""The records behind the ranks: epochs, covers, and memory that is reclaimed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.access.kernels.partial_match import Hits
from tidings.rank.bulk.rank_table import RankRows, RankTable, SpanPool

NONE = np.empty(0, np.int64), np.empty(0, np.int32)
PAIR = RankRows(
    np.array([0, 1], np.int32),
    np.zeros(2, np.int32),
    np.array([0.9, 0.5]),
    np.array([0, 1, 1]),
    np.array([1], np.int32),
)


def hits(*events: list[int]) -> Hits:
    numbers = np.array([number for event in events for number in event], np.int32)
    return Hits(np.cumsum([0, *map(len, events)]), numbers, *NONE)


def written(times: int) -> RankTable:
    table = RankTable()
    for _ in range(times):
        table.put(PAIR)
    table.set_aggregate(0, "max")
    return table


def test_only_the_most_specific_counts():
    matches = written(1).rank(hits([0], [0, 1], [1]))
    assert matches.ranks.tolist() == [0.9, 0.5, 0.5]
    spans = ((0, 1), (1, 3), (3, 4))
    assert [matches.matched[a:b].tolist() for a, b in spans] == [[0], [0, 1], [1]]


def test_worths_of_hits_replace_those_of_the_records():
    matches = written(1).rank(hits([0], [1]), np.array([0.1, 0.2]))
    assert matches.ranks.tolist() == [0.1, 0.2]


def test_an_unknown_number_has_no_owner():
    matches = RankTable().rank(hits([0, 700]))
    assert matches.starts.tolist() == [0, 0]
    assert len(matches.subscribers) == len(matches.matched) == 0


def test_a_removed_subscription_has_no_owner():
    table = written(1)
    table.remove([1, 5000])
    matches = table.rank(hits([1], [0]))
    assert (matches.starts.tolist(), matches.ranks.tolist()) == ([0, 0, 1], [0.9])


def test_unused_covers_are_reclaimed():
    assert written(5_000).nbytes < 64 * 1024
    assert written(5_000).rank(hits([1, 0])).ranks.tolist() == [0.5]


def test_epochs_that_run_out_start_again(monkeypatch):
    monkeypatch.setattr("tidings.rank.bulk.rank_table.EPOCHS", 5)
    table = written(1)
    for _ in range(10):
        assert table.rank(hits([0], [0, 1])).ranks.tolist() == [0.9, 0.5]


STEPS = st.lists(
    st.tuples(st.integers(0, 200), st.lists(st.integers(0, 99), max_size=9) | st.none()),
    max_size=60,
)


@given(STEPS)
def test_a_span_is_the_last_one_written(steps):
    pool, model = SpanPool(np.int32), dict[int, list[int]]()
    for number, values in steps:
        if values is None:
            pool.drop([number])
            model.pop(number, None)
        else:
            pool.put(number, np.array(values, np.int32))
            model[number] = values
    spans = pool.spans(201)
    for number in range(201):
        first, values = spans.firsts[number], model.get(number, [])
        assert (first < 0) == (number not in model)
        assert spans.values[first : first + len(values)].tolist() == values
        assert pool.get(number).tolist() == values


def test_dropped_spans_are_reclaimed():
    pool = SpanPool(np.int64)
    for number in range(20_000):
        pool.put(number % 10, np.arange(1 + number % 50))
        pool.drop([number % 10])
    assert pool.nbytes < 10_000
