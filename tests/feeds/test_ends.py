"""Ends: who is due, and nobody else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feeds.ends import Ends

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
