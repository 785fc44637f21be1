"""Who is beaten by k others that are not older, against counting them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.match_stage.kernels.skyband import mark_beaten

GROUPS = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.integers(-2, 4), min_size=1, max_size=9)), max_size=4
)


@given(GROUPS)
def test_the_beaten_are_those_with_k_better_ones_that_are_not_older(
    drawn: list[tuple[int, list[int]]],
) -> None:
    groups = [number for number, (_, times) in enumerate(drawn) for _ in times]
    k = [room for room, times in drawn for _ in times]
    us = [each for _, times in drawn for each in times]
    found = np.zeros(len(us), np.bool_)
    mark_beaten(np.array(groups, np.int64), np.array(us, np.int64), np.array(k, np.int64), found)
    expected = [
        sum(each >= times[at] for each in times[:at]) >= room
        for room, times in drawn
        for at in range(len(times))
    ]
    assert found.tolist() == expected
