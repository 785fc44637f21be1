"""Spans of a calendar are found by any order of questions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.rules.kernels.layout import LATEST_WIDTH, CalendarSpans
from tidings.feed.columnar.rules.kernels.spans import is_known, last_span, span_at

Spans = list[tuple[int, int]]


def spans_of(*by_place: Spans, known: tuple[int, int] = (-10, 60)) -> CalendarSpans:
    """Return the spans of some places, known within one range."""
    joined = [span for spans in by_place for span in spans]
    table = np.array(joined, np.int64).reshape(-1, 2)
    sizes = [len(spans) for spans in by_place]
    return CalendarSpans(
        table[:, 0].copy(),
        table[:, 1].copy(),
        np.cumsum([0, *sizes], dtype=np.int64),
        np.array([known] * len(by_place), np.int64),
        np.zeros((len(by_place), LATEST_WIDTH), np.int64),
    )


@st.composite
def some_spans(draw: st.DrawFn) -> Spans:
    """Draw spans in order; one may begin where the one before ends."""
    edges = sorted(draw(st.lists(st.integers(-5, 50), unique=True, max_size=8)))
    pairs = list(pairwise(edges))
    return [pair for pair in pairs if draw(st.booleans())]


@given(some_spans(), some_spans(), some_spans(), st.data())
def test_a_span_contains_its_start_and_not_its_end(
    before: Spans, spans: Spans, behind: Spans, data: st.DataObject
) -> None:
    columns = spans_of(before, spans, behind)
    questions = st.tuples(st.integers(0, 2), st.integers(-10, 59))
    for place, us in data.draw(st.lists(questions, min_size=1, max_size=30)):
        own = (before, spans, behind)[place]
        offset = int(columns.first[place])
        inside = [n for n, (start, end) in enumerate(own) if start <= us < end]
        assert span_at(columns, place, us) == (offset + inside[0] if inside else -1)
        begun = [n for n, (start, _) in enumerate(own) if start <= us]
        assert last_span(columns, place, us) == (offset + begun[-1] if begun else -1)


@pytest.mark.parametrize(("us", "known"), [(-11, 0), (-10, 1), (0, 1), (59, 1), (60, 0)])
def test_the_end_of_known_time_is_not_known(us: int, known: bool) -> None:
    assert is_known(spans_of([]), 0, us) == known


def test_the_last_answer_is_never_kept_beyond_known_time() -> None:
    for spans in ([], [(0, 5)], [(-9, -5)]):
        columns = spans_of(spans)
        for us in (-10, 2, 59):
            span_at(columns, 0, us)
            _, low, high = columns.latest[0].tolist()
            assert -10 <= low <= us < high <= 60


def test_an_answer_is_kept_for_all_instants_with_the_same() -> None:
    columns = spans_of([(0, 5), (8, 20)])
    for us, latest in {
        2: [0, 0, 5],
        5: [-1, 5, 8],
        8: [1, 8, 20],
        25: [-1, 20, 60],
        -3: [-1, -10, 0],
    }.items():
        span_at(columns, 0, us)
        assert columns.latest[0].tolist() == latest


def test_places_do_not_share_their_answers() -> None:
    columns = spans_of([(0, 5)], [(3, 9)])
    assert [span_at(columns, place, 4) for place in (0, 1)] == [0, 1]
    assert [span_at(columns, place, 6) for place in (0, 1)] == [-1, 1]
    assert [span_at(columns, place, 1) for place in (0, 1)] == [0, -1]
