"""The segment tree: every list on a path is stabbed, so a query looks at nothing in vain."""

from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, ranked, rows, stabbed, within

from tidings.index.intervals.papers.segment_tree import segment


@given(rows, st.integers(0, 25))
def test_answers_are_those_of_the_definition(drawn: list[Row], k: int) -> None:
    index = segment(ranked(drawn))
    for q in POINTS:
        expected = stabbed(drawn, q)
        assert index.top(q, k).tolist() == expected[:k]
        assert index.counters()["intervals"] == min(k, len(expected))
        assert list(index.iterate(q)) == expected
    assert list(index.ranges.iterate(2.0, 4.0)) == within(drawn, 4.0, 2.0)


def test_an_interval_is_stored_a_few_times() -> None:
    size = 300
    index = segment(ranked(many_rows(size, 1000)))
    _, starts, ranks, _ = index.tree
    cells = len(starts) // 2 - 1
    assert size <= len(ranks) <= size * 2 * cells.bit_length()


def test_a_query_visits_one_path() -> None:
    drawn = many_rows(300, 1000)
    index = segment(ranked(drawn))
    assert index.top(500.0, 9).tolist() == stabbed(drawn, 500.0)[:9]
    cells = len(index.tree[1]) // 2 - 1
    assert index.counters()["leaves"] == 1
    assert index.counters()["nodes"] <= (2 * cells).bit_length()


def test_the_arrays_kept_for_ranges_count_as_bytes() -> None:
    index = segment(ranked(many_rows(10)))
    cells, *rest = index.tree
    tree = sum(column.nbytes for column in (*cells, *rest))
    assert index.nbytes == tree + 2 * 10 * 8
