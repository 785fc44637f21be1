"""Columns of ids and windows as bytes: the same texts as those of Python."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.id_tables import MatchedSets
from tidings.feed.columnar.id_texts import IdTexts, ascending_places, gathered
from tidings.feed.columnar.kernels import texts as kernels
from tidings.feed.columnar.kernels.layout import START, STOP, WIDTH
from tidings.feed.columnar.kernels.texts import TextPool, sort_runs
from tidings.model.values import EARLIEST_US, LATEST_US, format_time

ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


def pool_of(names: list[str]) -> TextPool:
    pool = IdTexts(names).pool(len(names))
    assert pool is not None
    return pool


@given(st.lists(ids, min_size=1), st.data())
def test_texts_are_gathered_as_they_were_added_and_replaced(names: list[str], data: Any) -> None:
    texts = IdTexts(names)
    for _ in range(3):
        for number in data.draw(st.lists(st.integers(0, len(names) - 1), max_size=20)):
            names[number] = data.draw(ids)
            texts.replaced(number)
        names += data.draw(st.lists(ids, max_size=3))
        wanted = data.draw(st.lists(st.integers(0, len(names) - 1)))
        pool = texts.pool(10**6)
        assert pool is not None
        column = gathered(pool, np.array(wanted, np.int64))
        column.validate(full=True)
        assert column.to_pylist() == [names[number] for number in wanted]
        order = texts.order(10**6)
        assert order is not None
        assert order.tolist() == ascending_places(names).tolist()
        assert sorted(names) == [names[number] for number in np.argsort(order).tolist()]


def test_texts_are_written_once_they_pay() -> None:
    names = [f"u{number}" for number in range(10)]
    texts = IdTexts(names)
    assert [texts.pool(4) is None for _ in range(4)] == [True, True, False, False]
    assert [texts.order(4) is None for _ in range(4)] == [True, True, False, False]
    names.append("v")
    assert texts.pool(0) is None
    assert texts.pool(1) is not None


@given(st.lists(st.lists(ids, max_size=6), max_size=6))
def test_runs_are_sorted_as_texts_are(runs: list[list[str]]) -> None:
    names = [name for run in runs for name in run] or ["x"]
    starts = np.cumsum([0, *map(len, runs)])
    numbers = np.arange(int(starts[-1]))
    sort_runs(pool_of(names), starts, numbers)
    found = [names[number] for number in numbers.tolist()]
    assert found == [name for run in runs for name in sorted(run)]


def test_long_runs_are_left_to_the_caller() -> None:
    names = [f"s{number:03d}" for number in range(kernels.MOST_SORTED + 1)][::-1]
    numbers = np.arange(len(names))
    sort_runs(pool_of(names), np.array([0, len(names)]), numbers)
    assert numbers.tolist() == list(range(len(names)))


@given(st.integers(EARLIEST_US - 10, LATEST_US + 10) | st.integers(-(10**18), 10**18))
def test_times_are_written_as_everywhere_else(us: int) -> None:
    columns = np.zeros((1, WIDTH + 1), np.int64)
    columns[0, [START, STOP]] = us
    pieces = TextPool(np.zeros((4, 2), np.int64), np.zeros(1, np.uint8))  # all of them are empty
    starts, texts = np.zeros(2, np.int32), np.zeros(100, np.uint8)
    kernels.write_windows(columns, np.zeros(1, np.int64), pieces, starts, texts)
    assert bytes(texts[: starts[1]]).decode() == 2 * format_time(us) + "0"


def test_a_freed_number_gets_the_text_of_its_new_subscription() -> None:
    matched = MatchedSets()
    first = matched.number("old")
    assert matched.texts.pool(1) is not None
    matched.free_unused([])
    assert matched.number("new") == first
    pool = matched.texts.pool(1)
    assert pool is not None
    assert gathered(pool, np.array([first])).equals(pa.array(["new"]))
