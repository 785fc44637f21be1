"""Ends: who is due, and nobody else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.deadlines import Ends


def noting(*ends: int) -> np.ndarray:
    return np.array([(row, end) for row, end in enumerate(ends)], np.int64).reshape(-1, 2)


noted = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9))))
)


@given(noted, st.integers(0, 10), st.integers(0, 10))
def test_due_is_what_was_noted_up_to_now_and_only_once(
    batches: list[tuple[int, list[tuple[int, int]]]], now: int, later: int
) -> None:
    ends = Ends()
    for cohort, rows in batches:
        ends.add(cohort, np.array(rows, np.int64).reshape(-1, 2))
    pairs = {(cohort, row, end) for cohort, rows in batches for row, end in rows}
    for low, high in ((-1, now), (now, max(now, later))):
        found = {cohort: rows.tolist() for cohort, rows in ends.due(high).items()}
        expected: dict[int, list[int]] = {}
        for cohort, row, _ in sorted(each for each in pairs if low < each[2] <= high):
            if row not in expected.setdefault(cohort, []):
                expected[cohort].append(row)
        assert found == {cohort: sorted(rows) for cohort, rows in expected.items()}


def test_a_cohort_that_is_gone_leaves_nothing() -> None:
    ends = Ends()
    ends.add(0, noting(7, 9))
    for cohort in range(1, 1000):
        ends.add(cohort, noting(5, 10**9 + cohort))
        ends.forget(cohort)
    assert len(ends._heap) <= 8
    assert [*ends._rows] == [0]
    assert ends.first == 7
    assert {cohort: rows.tolist() for cohort, rows in ends.due(8).items()} == {0: [0]}
    ends.forget(0)
    assert ends.first is None
    assert ends.due(10**10) == {}
    assert ends._heap == []


@given(noted, st.sets(st.integers(0, 2)))
def test_the_first_end_is_one_that_somebody_waits_for(
    batches: list[tuple[int, list[tuple[int, int]]]], gone: set[int]
) -> None:
    ends = Ends()
    for cohort, rows in batches:
        ends.add(cohort, np.array(rows, np.int64).reshape(-1, 2))
    for cohort in gone:
        ends.forget(cohort)
    left = [end for cohort, rows in batches if cohort not in gone for _, end in rows]
    assert ends.first == min(left, default=None)
    assert ends.due(99).keys() == {cohort for cohort, rows in batches if rows} - gone
