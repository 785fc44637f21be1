"""Spans by number, against a dict of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.rank.bulk.span_pool import SpanPool

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
