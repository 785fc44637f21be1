"""How far the stream has come: a plain list of ticks judges the arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.state_stage.clock_marks import Tick, Ticks

ticks = st.lists(st.builds(Tick, st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(st.lists(st.tuples(ticks, st.integers(0, 9)), max_size=5))
def test_numbers_are_those_of_all_ticks_before(steps: list[tuple[list[Tick], int]]) -> None:
    found, every, watermark, passed = Ticks(), list[Tick](), 0, 0
    for new, us in steps:
        found.add(new)
        every += new
        times = np.arange(watermark, 10)
        before = [max([passed, *(s for at, s in every if at < time)]) for time in times.tolist()]
        assert found.numbers(times, np.zeros(len(times), np.int64)).tolist() == before
        watermark = max(watermark, us)
        passed = max([passed, *(s for at, s in every if at <= watermark)])
        found.pass_until(watermark, 0)
        assert found.sequence == passed
        found = Ticks(found.held, found.sequence)
        assert len(found.held) <= 9


def test_events_count_as_ticks_do() -> None:
    found = Ticks([Tick(5, 7)], 2)
    us, numbers = np.array([1, 4, 5, 6]), np.array([-1, 4, 3, 6])
    assert found.numbers(us, numbers).tolist() == [2, 4, 4, 7]
    found.pass_until(4, 9)
    assert (found.sequence, found.held) == (9, [])
