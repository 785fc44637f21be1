"""One suite over every box index, exact and relaxed: the answers equal those of the scan."""

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.boxes import BOX_INDEXES, box_index, range_events
from tidings.model.values import Range

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = settings(max_examples=60 if JIT else 8)
SIZES = (0, 1, 63, 64, 65, 129) + ((4095, 4097, 20_000) if JIT else ())
KINDS = [(name, how) for name, kinds in BOX_INDEXES.items() for how in kinds if name != "scan"]
AGGREGATES = [
    (name, aggregate) for name, how in KINDS if how == "relaxed" for aggregate in ("sum", "max")
]

every_index = pytest.mark.parametrize(("name", "how"), KINDS)

ends = st.one_of(st.integers(0, 5).map(float), st.sampled_from([-math.inf, math.inf, -0.0, 0.1]))
sides = st.tuples(ends, ends).map(sorted)
values = st.one_of(ends, st.just(math.nan), st.just(2.5))
weights = st.one_of(st.integers(0, 3).map(float), st.sampled_from([0.1, 0.2, 0.3, 1e-13]))


@st.composite
def boxes_and_events(draw):
    """Draw boxes and events over 1 to 5 attributes and few numbers, so that ties are common."""
    attributes = draw(st.integers(1, 5))
    box = st.lists(st.tuples(sides, weights), min_size=attributes, max_size=attributes)
    boxes = draw(st.lists(box, max_size=30))
    event = st.lists(values, min_size=attributes, max_size=attributes)
    events = draw(st.lists(event, min_size=1, max_size=6))
    low = np.array([[side[0] for side, _ in row] for row in boxes]).reshape(-1, attributes)
    high = np.array([[side[1] for side, _ in row] for row in boxes]).reshape(-1, attributes)
    weight = np.array([[weight for _, weight in row] for row in boxes]).reshape(-1, attributes)
    return low, high, weight, np.array(events)


def worth(how, weight):
    return weight if how == "relaxed" else weight[:, 0]


def workload(size, attributes, seed, spread=9):
    """Return random boxes on whole numbers, some attributes free, and events that lack some."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, spread, (size, attributes)).astype(float)
    high = low + rng.integers(0, max(2, spread // 2), (size, attributes))
    low[rng.random(low.shape) < 0.3] = -np.inf
    high[rng.random(low.shape) < 0.3] = np.inf
    weight = rng.integers(0, 5, (size, attributes)) / 10
    events = rng.integers(-1, spread + 2, (9, attributes)).astype(float)
    events[rng.random(events.shape) < 0.15] = np.nan
    return low, high, weight, events


def same(index, scan, events, k):
    for column, expected in zip(index.top_many(events, k), scan.top_many(events, k), strict=True):
        np.testing.assert_array_equal(column, expected)
    for event in events:
        for column, expected in zip(index.top(event, k), scan.top(event, k), strict=True):
            assert column.tolist() == expected.tolist()


def check_against_scan(name, how, work, k, **options):
    low, high, weight, events = work
    index = box_index(name, low, high, worth(how, weight), **options)
    same(index, box_index("scan", low, high, worth(how, weight), **options), events, k)
    return index


@every_index
@EXAMPLES
@given(work=boxes_and_events(), k=st.integers(0, 35))
def test_answers_equal_those_of_the_scan(name, how, work, k):
    check_against_scan(name, how, work, k)


@pytest.mark.parametrize(("name", "aggregate"), AGGREGATES)
@EXAMPLES
@given(work=boxes_and_events(), k=st.integers(0, 35))
def test_aggregates(name, aggregate, work, k):
    check_against_scan(name, "relaxed", work, k, aggregate=aggregate)


@every_index
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("attributes", [1, 2, 5])
def test_sizes_around_block_boundaries(name, how, size, attributes):
    if size > 10_000 and name in ("threshold", "intersection"):
        size = 1000
    check_against_scan(name, how, workload(size, attributes, seed=size), 20)


@every_index
@pytest.mark.parametrize("attributes", [8, 9, 17, 33])
def test_more_attributes_than_a_group(name, how, attributes):
    check_against_scan(name, how, workload(300, attributes, seed=attributes), 10)


@every_index
@pytest.mark.parametrize("k", [1, 64, 65, 1000])
def test_any_k(name, how, k):
    check_against_scan(name, how, workload(400, 3, seed=k), k)


@every_index
def test_equal_weights_are_ordered_by_id(name, how):
    low, high, _, events = workload(500, 4, seed=1)
    check_against_scan(name, how, (low, high, np.ones((500, 4)), events), 20)
    full = np.zeros((150, 2)), np.ones((150, 2)), np.ones((150, 2)), np.full((5, 2), 0.5)
    assert check_against_scan(name, how, full, 100).top([0.5, 0.5], 100)[0].tolist() == list(
        range(100)
    )


@every_index
def test_all_weights_zero_still_match(name, how):
    low, high, weight, events = workload(200, 3, seed=2)
    check_against_scan(name, how, (low, high, 0 * weight, events), 20)


@every_index
@pytest.mark.parametrize("scale", [1e-300, 1e-13, 1e5, 1e250])
def test_weights_of_any_magnitude(name, how, scale):
    low, high, weight, events = workload(200, 3, seed=3)
    check_against_scan(name, how, (low, high, scale * weight, events), 20)


@every_index
def test_weights_of_very_different_magnitude(name, how):
    rng = np.random.default_rng(4)
    low, high, _, events = workload(400, 6, seed=4)
    check_against_scan(name, how, (low, high, 10.0 ** rng.integers(-14, 9, (400, 6)), events), 20)


@every_index
def test_more_numbers_than_codes(name, how):
    rng = np.random.default_rng(5)
    low = rng.random((2000 if JIT else 300, 3))
    high = low + rng.random(low.shape) / 2
    work = low, high, rng.random(low.shape), rng.random((8, 3))
    check_against_scan(name, how, work, 20)
    check_against_scan(name, how, (*work[:3], low[:20]), 20)


@every_index
def test_neighbouring_floats_are_distinguished(name, how):
    rng = np.random.default_rng(6)
    points = 0.1 + rng.integers(0, 5, (400, 2)) * np.spacing(0.1)
    filler = rng.random((400, 2))
    low, weight = np.concatenate([points, filler]), np.ones((800, 2))
    check_against_scan(name, how, (low, low, weight, points[:10]), 20)


@every_index
def test_an_event_without_attributes(name, how):
    low, high, weight, _ = workload(300, 3, seed=7)
    low[::7], high[::7] = -np.inf, np.inf
    index = check_against_scan(name, how, (low, high, weight, np.full((2, 3), np.nan)), 5)
    assert len(index.top([np.nan] * 3, 5)[0]) == (5 if how == "exact" else 0)


@every_index
def test_unconstrained_attributes_never_count(name, how):
    low, high = np.full((70, 2), -np.inf), np.full((70, 2), np.inf)
    index = check_against_scan(name, how, (low, high, np.ones((70, 2)), np.zeros((1, 2))), 5)
    assert index.top([0, 0], 5)[0].tolist() == ([0, 1, 2, 3, 4] if how == "exact" else [])


@every_index
def test_infinite_events(name, how):
    low, high, weight, _ = workload(300, 2, seed=8)
    events = np.array([[np.inf, -np.inf], [-np.inf, 3.0], [np.inf, np.nan]])
    check_against_scan(name, how, (low, high, weight, events), 20)


@every_index
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 67])
def test_any_split_into_batches_gives_the_same(name, how, count):
    low, high, weight, _ = workload(300, 3, seed=9)
    events = np.random.default_rng(9).integers(0, 9, (count, 3)).astype(float)
    check_against_scan(name, how, (low, high, weight, events), 4)


@every_index
def test_counters_and_description(name, how):
    low, high, weight, events = workload(300, 3, seed=10)
    index = box_index(name, low, high, worth(how, weight))
    index.top(events[0], 5)
    one = index.counters()
    index.top_many(events, 5)
    assert all(index.counters()[kind] >= count >= 0 for kind, count in one.items())
    assert index.nbytes > 0
    assert index.name == name
    assert "300 subscriptions over 3 attributes" in index.describe()


@every_index
def test_wrong_queries_are_refused(name, how):
    low, high, weight, events = workload(10, 3, seed=11)
    index = box_index(name, low, high, worth(how, weight))
    with pytest.raises(TidingsError, match="k = -1 is below 0"):
        index.top_many(events, -1)
    with pytest.raises(TidingsError, match="rows of 3 numbers"):
        index.top([1.0, 2.0], 5)


points = st.one_of(st.integers(-1, 6).map(float), st.just(math.nan))
ranges = st.tuples(
    st.integers(-1, 6), st.integers(0, 4), st.sampled_from(["overlaps", "contained"])
).map(lambda parts: Range(parts[0], parts[0] + parts[1], parts[2]))
chances = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])


@st.composite
def boxes_and_ranges(draw):
    """Draw boxes, and events with ranges and probabilities."""
    low, high, weight, _ = draw(boxes_and_events())
    attributes = low.shape[1]
    row = st.lists(st.one_of(points, ranges), min_size=attributes, max_size=attributes)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    share = st.lists(chances, min_size=attributes, max_size=attributes)
    shares = draw(st.lists(share, min_size=len(rows), max_size=len(rows)))
    return low, high, weight, rows, shares


def holds(value, low, high):
    """Return whether a predicate holds, by the definition of `Range`; a point is a range of one."""
    if low == -math.inf and high == math.inf:
        return False
    if isinstance(value, float) and math.isnan(value):
        return False
    as_range = value if isinstance(value, Range) else Range(value, value)
    return as_range.satisfies("between", (low, high))


def answers_by_definition(how, work, k):
    """Return the k best for each event in plain Python, box by box."""
    low, high, weight, rows, shares = work
    answers = []
    for row, share in zip(rows, shares, strict=True):
        matches = []
        for id in range(len(low)):
            predicates = list(zip(row, low[id], high[id], strict=True))
            held = [holds(*predicate) for predicate in predicates]
            free = [predicate[1:] == (-math.inf, math.inf) for predicate in predicates]
            parts = zip(held, weight[id], share, strict=True)
            score = sum((w * p for h, w, p in parts if h), 0.0)
            if how == "exact" and all(h or f for h, f in zip(held, free, strict=True)):
                matches.append((-weight[id, 0], id))
            if how == "relaxed" and any(held):
                matches.append((-round(score, 12), id))
        answers.append([id for _, id in sorted(matches)[:k]])
    return answers


@pytest.mark.parametrize(("name", "how"), [*KINDS, ("scan", "exact"), ("scan", "relaxed")])
@EXAMPLES
@given(work=boxes_and_ranges(), k=st.integers(0, 35))
def test_ranges_and_probabilities_match_the_definition(name, how, work, k):
    low, high, weight, rows, shares = work
    index = box_index(name, low, high, worth(how, weight))
    events = range_events(rows, shares)
    ids, _, counts = index.top_many(events, k)
    rows_of_ids = [row[:count].tolist() for row, count in zip(ids, counts, strict=True)]
    assert rows_of_ids == answers_by_definition(how, work, k)
    assert index.top(events[:1], k)[0].tolist() == rows_of_ids[0]


@every_index
@pytest.mark.parametrize("attributes", [2, 8, 17])
@pytest.mark.parametrize("mode", ["overlaps", "contained"])
def test_ranges_over_many_boxes(name, how, attributes, mode):
    size = 3000 if JIT and name not in ("threshold", "intersection") else 200
    low, high, weight, events = workload(size, attributes, seed=attributes)
    width = np.random.default_rng(1).integers(0, 3, events.shape)
    sides = zip(events.ravel().tolist(), (events + width).ravel().tolist(), strict=True)
    values = [one if math.isnan(one) else Range(one, other, mode) for one, other in sides]
    rows = [values[i : i + attributes] for i in range(0, len(values), attributes)]
    shares = np.random.default_rng(2).random(events.shape)
    index = box_index(name, low, high, worth(how, weight))
    same_many(index, box_index("scan", low, high, worth(how, weight)), range_events(rows, shares))
    same_many(index, box_index("scan", low, high, worth(how, weight)), range_events(rows))


def same_many(index, scan, events):
    for column, expected in zip(index.top_many(events, 20), scan.top_many(events, 20), strict=True):
        np.testing.assert_array_equal(column, expected)


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("attributes", [2, 8])
@pytest.mark.parametrize("spread", [9, 200])
def test_enough_directories_to_look_ahead(attributes, spread):
    low, high, weight, events = workload(60_000, attributes, seed=12, spread=spread)
    for aggregate in ("sum", "max"):
        index = box_index("blocks", low, high, weight, aggregate=aggregate)
        scan = box_index("scan", low, high, weight, aggregate=aggregate)
        same_many(index, scan, events)


def test_wrong_ranges_are_refused():
    with pytest.raises(TidingsError, match="is not in"):
        range_events([[1.0, 2.0]], [0.5, 1.5])
    with pytest.raises(TidingsError, match="rows of at least one number or range"):
        range_events([])
    index = box_index("blocks", [[0.0]], [[1.0]], [[1.0]])
    with pytest.raises(TidingsError, match="expected one event, not 2"):
        index.top(range_events([[1.0], [2.0]]), 1)
    with pytest.raises(TidingsError, match="expected rows of 1 numbers"):
        index.top_many(range_events([[1.0, 2.0]]), 1)
