"""The table of the K best: few lists, and the tree behind them when k is above K."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.intervals import interval_index
from tidings.index.intervals.protocol import rank_intervals
from tidings.index.intervals.topk_table import TopkTable


def test_a_list_only_where_the_best_change():
    """Ten long intervals that score best hide what happens below them."""
    low = np.concatenate([np.zeros(10), np.arange(500.0)])
    high = np.concatenate([np.full(10, 1000.0), np.arange(500.0) + 3])
    score = np.concatenate([np.full(10, 9.0), np.ones(500)])
    index = interval_index("topk-table", low, high, score, depth=10)
    index.top(3.0, 5)
    assert index.counters()["lists"] == 2
    assert index.top(3.5, 10).tolist() == list(range(10))


@pytest.mark.parametrize("depth", [1, 2, 7, 64])
def test_any_depth(depth):
    rng = np.random.default_rng(depth)
    low = rng.integers(0, 20, 200).astype(float)
    rows = low, low + rng.integers(0, 9, 200), rng.integers(0, 5, 200)
    table = interval_index("topk-table", *rows, depth=depth)
    scan = interval_index("scan", *rows)
    for q in np.arange(-1, 30, 0.5):
        for k in (1, depth, depth + 1, 300):
            assert table.top(q, k).tolist() == scan.top(q, k).tolist()
        assert list(table.iterate(q)) == list(scan.iterate(q))


@pytest.mark.parametrize("k", [1, 3, 8])
def test_columns_have_the_rows_of_the_table(k):
    rng = np.random.default_rng(7)
    low, score = rng.integers(0, 20, 60).astype(float), rng.integers(0, 5, 60).astype(float)
    intervals = rank_intervals(low, low + rng.integers(0, 9, 60), score)
    table = TopkTable(intervals, depth=8)
    queries = np.arange(-1, 30, 0.5)
    ids, counts = table.top_many(queries, k)
    columns = table.top_columns(queries, k, score[table.lists.ids])
    assert np.diff(columns.starts).tolist() == counts.tolist()
    present = ids[np.arange(k) < counts[:, None]]
    assert columns.ids.tolist() == present.tolist()
    assert columns.scores.tolist() == score[present].tolist()


def test_the_tree_is_built_when_it_is_needed():
    index = interval_index("topk-table", [0] * 50, [1] * 50, [1] * 50, depth=8)
    before = index.nbytes
    index.top(0.5, 8)
    assert index.nbytes == before
    index.top(0.5, 9)
    assert index.nbytes > before


def test_a_depth_below_one_is_refused():
    with pytest.raises(TidingsError, match="depth = 0"):
        interval_index("topk-table", [], [], [], depth=0)
