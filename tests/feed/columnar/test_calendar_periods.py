"""Calendar periods for kernels: the ends that offers need, and the starts behind deliveries."""

import numpy as np

from tidings.feed.columnar.calendar_periods import calendar_of, ends_for, set_starts
from tidings.feed.columnar.kernels.layout import DELIVERY_WIDTH, START, STOP
from tidings.model.values import parse_time_us
from tidings.window.continuous import Continuous
from tidings.window.periodic import Periodic

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
