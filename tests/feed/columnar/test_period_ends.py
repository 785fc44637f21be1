"""Ends of periods: rows are due once, and calendar periods have the ends and starts they need."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.kernels.layout import DELIVERY_WIDTH, START, STOP
from tidings.feed.columnar.period_ends import Deadlines, calendar_of, ends_for, set_starts
from tidings.model.values import parse_time_us
from tidings.window.continuous import Continuous
from tidings.window.periodic import Periodic


def pairs_of(*ends: int) -> np.ndarray:
    return np.array([(row, end) for row, end in enumerate(ends)], np.int64).reshape(-1, 2)


batches = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9))))
)


@given(batches, st.integers(0, 10), st.integers(0, 10))
def test_rows_are_due_once_when_their_end_has_come(
    added: list[tuple[int, list[tuple[int, int]]]], now: int, later: int
) -> None:
    deadlines = Deadlines()
    for cohort, rows in added:
        deadlines.add(cohort, np.array(rows, np.int64).reshape(-1, 2))
    pairs = {(cohort, row, end) for cohort, rows in added for row, end in rows}
    for low, high in ((-1, now), (now, max(now, later))):
        due = {cohort: rows.tolist() for cohort, rows in deadlines.pop_due(high).items()}
        expected: dict[int, list[int]] = {}
        for cohort, row, _ in sorted(pair for pair in pairs if low < pair[2] <= high):
            if row not in expected.setdefault(cohort, []):
                expected[cohort].append(row)
        assert due == {cohort: sorted(rows) for cohort, rows in expected.items()}


def test_a_forgotten_cohort_leaves_nothing() -> None:
    deadlines = Deadlines()
    deadlines.add(0, pairs_of(7, 9))
    for cohort in range(1, 1000):
        deadlines.add(cohort, pairs_of(5, 10**9 + cohort))
        deadlines.forget(cohort)
    assert len(deadlines._heap) <= 8
    assert [*deadlines._rows] == [0]
    assert deadlines.first == 7
    assert {cohort: rows.tolist() for cohort, rows in deadlines.pop_due(8).items()} == {0: [0]}
    deadlines.forget(0)
    assert deadlines.first is None
    assert deadlines.pop_due(10**10) == {}
    assert deadlines._heap == []


@given(batches, st.sets(st.integers(0, 2)))
def test_the_first_end_is_one_that_a_row_waits_for(
    added: list[tuple[int, list[tuple[int, int]]]], gone: set[int]
) -> None:
    deadlines = Deadlines()
    for cohort, rows in added:
        deadlines.add(cohort, np.array(rows, np.int64).reshape(-1, 2))
    for cohort in gone:
        deadlines.forget(cohort)
    left = [end for cohort, rows in added if cohort not in gone for _, end in rows]
    assert deadlines.first == min(left, default=None)
    assert deadlines.pop_due(99).keys() == {cohort for cohort, rows in added if rows} - gone


ATHENS = Periodic(at=["08:00", "17:30"], zone="Europe/Athens")


def us(*times: str) -> list[int]:
    return [parse_time_us(time) for time in times]


def test_only_local_times_make_a_calendar() -> None:
    assert calendar_of(Continuous()) is None
    assert calendar_of(Periodic("1d")) is None
    assert calendar_of(ATHENS) is not None
    assert len(ends_for(None, np.array([1, 2]))) == 0


def test_each_period_with_an_instant_has_its_end_once() -> None:
    times = us("2026-03-28T07:00Z", "2026-03-28T15:30Z", "2026-03-28T15:29Z", "2030-01-01T00:00Z")
    ends = ends_for(calendar_of(ATHENS), np.array(times))
    # Clocks go forward on 29 March, so the morning after is an hour earlier.
    assert ends.tolist() == us("2026-03-28T15:30Z", "2026-03-29T05:00Z", "2030-01-01T06:00Z")


def test_starts_are_those_of_the_periods_that_end() -> None:
    columns = np.zeros((2, DELIVERY_WIDTH), np.int64)
    columns[:, STOP] = us("2026-03-29T05:00Z", "2026-03-28T15:30Z")
    set_starts(calendar_of(ATHENS), columns)
    assert columns[:, START].tolist() == us("2026-03-28T15:30Z", "2026-03-28T06:00Z")
