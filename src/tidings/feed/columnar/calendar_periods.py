"""Periods that end at local times: their ends for kernels, and their starts for deliveries."""

from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.kernels.layout import START, STOP, PolicyCodes
from tidings.model.calendar import Calendar

NO_PERIODS: Final = np.zeros(0, np.int64)


def calendar_of(window: Any) -> Calendar | None:
    """Return the calendar of a window; None if its periods have a length, or it has none."""
    calendar: Calendar | None = window.periods if getattr(window, "at", None) else None
    return calendar


def ends_for(calendar: Calendar | None, times: Int64s) -> Int64s:
    """Return the ends of the periods that contain some instants, in order."""
    if calendar is None:
        return NO_PERIODS
    ends, different = list[int](), np.unique(times)
    place = 0
    while place < len(different):
        ends.append(calendar.period(int(different[place])).end)
        place = int(np.searchsorted(different, ends[-1]))
    return np.array(ends, np.int64)


def first_end(calendar: Calendar | None, codes: PolicyCodes, position: int) -> int:
    """Return the first end of a period or step after a position on the axis of steps."""
    if calendar is not None:
        return calendar.period(position).end
    return codes.origin + ((position - codes.origin) // codes.step + 1) * codes.step


def set_starts(calendar: Calendar | None, columns: Int64s) -> None:
    """Set the starts of the periods behind deliveries, of which kernels know only the ends."""
    if calendar is not None and len(columns):
        ends, places = np.unique(columns[:, STOP], return_inverse=True)
        starts = [calendar.period(end - 1).start for end in ends.tolist()]
        columns[:, START] = np.array(starts, np.int64)[places]
