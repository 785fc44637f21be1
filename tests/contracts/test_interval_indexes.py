"""One suite over every interval index: the answers equal those of the scan."""

import math
import os
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.intervals import INTERVAL_INDEXES, interval_index

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
NAMES = [name for name in INTERVAL_INDEXES if name != "scan"]
SIZES = (0, 1, 2, 49, 50, 51, 63, 64, 65, 129) + ((2500, 2501, 4097) if JIT else ())
EXAMPLES = settings(max_examples=100 if JIT else 15)

every_index = pytest.mark.parametrize("name", NAMES)

ends = st.one_of(
    st.integers(0, 8).map(float), st.sampled_from([-math.inf, math.inf, -0.0, 1e300, 5e-324, 0.1])
)
intervals = st.lists(
    st.tuples(ends, ends, st.integers(0, 3).map(float)).map(
        lambda row: (min(row[:2]), max(row[:2]), row[2])
    ),
    max_size=40,
)
points = st.one_of(ends, st.floats(allow_nan=False), st.just(4.5))


def build(name, rows, **options):
    low, high, score = np.array(rows, float).reshape(-1, 3).T
    return interval_index(name, low, high, score, **options)


def workload(size, seed, spread):
    """Return random intervals on whole numbers, so that ties and equal ends are common."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, spread, size).astype(float)
    high = low + rng.integers(0, max(2, spread // 3), size)
    low[rng.random(size) < 0.05] = -np.inf
    high[rng.random(size) < 0.05] = np.inf
    return np.stack([low, high, rng.integers(0, 9, size).astype(float)], axis=1)


def same(index, scan, qs, k):
    ids, counts = index.top_many(np.array(qs), k)
    expected, expected_counts = scan.top_many(np.array(qs), k)
    assert counts.tolist() == expected_counts.tolist()
    assert ids.tolist() == expected.tolist()
    for q in qs:
        assert index.top(q, k).tolist() == scan.top(q, k).tolist()


def ids_by_definition(rows, low, high, mode):
    """Return the intervals that overlap or contain a range, by score, then by id."""
    matches = {
        "overlaps": lambda row: max(low, row[0]) <= min(high, row[1]),
        "contained": lambda row: row[0] <= low and high <= row[1],
    }[mode]
    ranked = [(-row[2], id) for id, row in enumerate(rows) if matches(row)]
    return [id for _, id in sorted(ranked)]


@every_index
@EXAMPLES
@given(rows=intervals, qs=st.lists(points, min_size=1, max_size=6), k=st.integers(0, 45))
def test_answers_equal_those_of_the_scan(name, rows, qs, k):
    index, scan = build(name, rows), build("scan", rows)
    same(index, scan, qs, k)
    for q in qs:
        assert list(index.iterate(q)) == list(scan.iterate(q))


@every_index
@EXAMPLES
@given(
    rows=intervals,
    spans=st.lists(st.tuples(points, points).map(sorted), min_size=1, max_size=5),
    k=st.integers(0, 45),
    mode=st.sampled_from(["overlaps", "contained"]),
)
def test_ranges_match_the_definition(name, rows, spans, k, mode):
    index = build(name, rows)
    expected = [ids_by_definition(rows, low, high, mode) for low, high in spans]
    found, counts = index.ranges.top_many(*np.array(spans).T, k, mode)
    assert [row[:count] for row, count in zip(found.tolist(), counts, strict=True)] == [
        ids[:k] for ids in expected
    ]
    for (low, high), ids in zip(spans, expected, strict=True):
        assert index.ranges.top(low, high, k, mode).tolist() == ids[:k]
        assert list(index.ranges.iterate(low, high, mode)) == ids


@every_index
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 2501 if JIT else 129])
@pytest.mark.parametrize("mode", ["overlaps", "contained"])
def test_ranges_at_sizes_around_node_boundaries(name, size, mode):
    rows = workload(size, seed=size, spread=30)
    index = build(name, rows)
    for low, high in [(-1.0, 0.0), (7.0, 7.0), (12.5, 14.0), (0.0, 29.0), (-math.inf, math.inf)]:
        expected = ids_by_definition(rows, low, high, mode)
        assert index.ranges.top(low, high, 20, mode).tolist() == expected[:20]
        assert list(index.ranges.iterate(low, high, mode)) == expected


@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_wrong_ranges_are_refused(name):
    ranges = build(name, [(0.0, 1.0, 1.0)]).ranges
    with pytest.raises(TidingsError, match=r"low 2\.0 is above its high 1\.0"):
        ranges.top(2, 1, 5)
    with pytest.raises(TidingsError, match="low nan"):
        ranges.iterate(math.nan, 1)
    with pytest.raises(TidingsError, match=r"range 1: low 3\.0 is above high 2\.0"):
        ranges.top_many([0, 3], [1, 2], 5)
    with pytest.raises(TidingsError, match="do not fit"):
        ranges.top_many([0, 3], [1], 5)
    with pytest.raises(TidingsError, match="not 'within'"):
        ranges.top(0, 1, 5, "within")
    with pytest.raises(TidingsError, match="k = -1"):
        ranges.top(0, 1, -1)


@every_index
@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_node_boundaries(name, size):
    rows = workload(size, seed=size, spread=30)
    index, scan = build(name, rows), build("scan", rows)
    same(index, scan, [-1.0, 0.0, 7.0, 12.5, 29.0, 50.0, math.inf, -math.inf], 20)
    assert list(index.iterate(11.0)) == list(scan.iterate(11.0))


@every_index
@pytest.mark.parametrize("k", [1, 31, 32, 33, 1000])
def test_any_k(name, k):
    rows = workload(400, seed=k, spread=10)
    same(build(name, rows), build("scan", rows), [3.0, 4.5, 9.0], k)


@every_index
@pytest.mark.parametrize("order", [1, -1])
def test_adversarial_nesting(name, order):
    """Each interval inside the next: the best innermost, and the best outermost."""
    size = 300
    depth = np.arange(size, dtype=float)
    rows = np.stack([depth, 2 * size - depth, 500 + order * depth], axis=1)
    same(build(name, rows), build("scan", rows), [0.0, 150.0, 299.0, 300.0, 301.0, 600.0], 20)


@every_index
def test_staircase_of_holes(name):
    """Scores alternate between the two ends of the line, the worst case of a scored R-tree."""
    size = 300
    low = np.where(np.arange(size) % 2, 0.0, 1000.0) + np.arange(size)
    rows = np.stack([low, low + 5, np.arange(size, 0, -1.0)], axis=1)
    same(build(name, rows), build("scan", rows), [500.0, 3.0, 1100.0, 1299.0], 20)


@every_index
def test_equal_scores_are_ordered_by_id(name):
    rows = [(0.0, 9.0, 1.0)] * 130
    assert build(name, rows).top(5.0, 100).tolist() == list(range(100))


@every_index
def test_one_point_intervals(name):
    rows = [(float(n % 7), float(n % 7), float(n % 3)) for n in range(150)]
    same(build(name, rows), build("scan", rows), [0.0, 3.0, 3.5, 6.0, 7.0], 20)


@every_index
def test_neighbouring_floats_are_distinguished(name):
    """Ends that differ only in the last bit, which float32 cannot represent."""
    one = 0.1
    next_one = np.nextafter(one, 1)
    rows = [(one, one, 1.0), (next_one, next_one, 2.0), (-1.0, one, 3.0)] * 20
    rows += [(next_one, 1.0, 4.0)] * 20
    same(build(name, rows), build("scan", rows), [one, next_one, np.nextafter(next_one, 1)], 50)


@every_index
def test_nan_stabs_nothing(name):
    index = build(name, [(-math.inf, math.inf, 1.0)] * 70)
    assert index.top(math.nan, 5).tolist() == []
    assert index.top_many(np.array([math.nan, 0.0]), 1)[1].tolist() == [0, 1]


@every_index
def test_an_empty_index(name):
    index = build(name, [])
    assert index.top(1.0, 5).tolist() == []
    assert index.top_many(np.array([1.0]), 2)[0].tolist() == [[-1, -1]]
    assert list(index.iterate(1.0)) == []


@every_index
def test_no_queries(name):
    ids, counts = build(name, [(0.0, 1.0, 1.0)]).top_many(np.array([]), 3)
    assert (ids.shape, counts.shape) == ((0, 3), (0,))


@every_index
def test_an_iterator_resumes_where_it_stopped(name):
    rows = workload(500, seed=3, spread=4)
    index, scan = build(name, rows), build("scan", rows)
    one, other = index.iterate(2.0), index.iterate(1.0)
    expected = list(scan.iterate(2.0))
    assert list(islice(one, 10)) == expected[:10]
    assert next(other) == next(scan.iterate(1.0))
    assert list(one) == expected[10:]


@every_index
def test_counters_and_memory(name):
    index = build(name, workload(200, seed=1, spread=10))
    index.top(5.0, 20)
    counters = index.counters()
    assert {"nodes", "leaves", "intervals"} <= set(counters)
    assert counters["intervals"] >= 20
    assert index.nbytes > 0
    assert index.name == name


@every_index
def test_k_below_zero_is_refused(name):
    with pytest.raises(TidingsError, match="k = -1 is below 0"):
        build(name, [(0.0, 1.0, 1.0)]).top(0.5, -1)


def test_an_unknown_index_is_refused():
    with pytest.raises(TidingsError, match="unknown index 'b-tree'; expected one of: scan"):
        interval_index("b-tree", [], [], [])
