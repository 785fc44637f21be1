"""The records behind the ranks: epochs, and room that is given back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.rank.bulk.rank_table import Layout, Ledger
from tidings.rank.bulk.span_pool import Spans

PAIR = Layout(
    np.array([0, 1], np.int32),
    np.zeros(2, np.int32),
    np.array([0.9, 0.5]),
    np.array([0, 1, 1]),
    np.array([1], np.int32),
)


def laid(times: int) -> Ledger:
    ledger = Ledger()
    for _ in range(times):
        ledger.lay(PAIR)
    ledger.aggregate(0, "max")
    return ledger


def test_only_the_most_specific_counts():
    hits, starts = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 3, 4])
    wanted = laid(1).rank(hits, starts)
    assert wanted.ranks.tolist() == [0.9, 0.5, 0.5]
    assert [wanted.matched[a:b].tolist() for a, b in ((0, 1), (1, 3), (3, 4))] == [[0], [0, 1], [1]]


def test_an_unknown_number_belongs_to_nobody():
    wanted = Ledger().rank(np.array([0, 700], np.int32), np.array([0, 2]))
    assert wanted.starts.tolist() == [0, 0]
    assert len(wanted.subscribers) == len(wanted.matched) == 0


def test_covers_that_nobody_uses_are_given_back():
    assert laid(5_000).nbytes < 64 * 1024
    hits = np.array([1, 0], np.int32)
    assert laid(5_000).rank(hits, np.array([0, 2])).ranks.tolist() == [0.5]


def test_epochs_that_run_out_begin_again(monkeypatch):
    monkeypatch.setattr("tidings.rank.bulk.rank_table.EPOCHS", 5)
    ledger, hits = laid(1), np.array([0, 0, 1], np.int32)
    for _ in range(10):
        assert ledger.rank(hits, np.array([0, 1, 3])).ranks.tolist() == [0.9, 0.5]


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.lists(st.integers(0, 99), max_size=9) | st.none()),
        max_size=60,
    )
)
def test_spans_hold_what_was_put_last(steps):
    spans, model = Spans(np.int32), dict[int, list[int]]()
    for number, values in steps:
        if values is None:
            spans.drop([number])
            model.pop(number, None)
        else:
            spans.put(number, np.array(values, np.int32))
            model[number] = values
    pool = spans.pool(201)
    for number in range(201):
        first = pool.firsts[number]
        assert (first < 0) == (number not in model)
        size = len(model.get(number, ()))
        assert pool.parts[first : first + size].tolist() == model.get(number, [])


def test_spans_give_back_what_was_dropped():
    spans = Spans(np.int64)
    for number in range(20_000):
        spans.put(number % 10, np.arange(1 + number % 50))
        spans.drop([number % 10])
    assert spans.nbytes < 10_000
