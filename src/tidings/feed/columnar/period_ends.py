"""Ends of periods and steps: which rows are due, and periods that end at local times.

Ends are sorted, so that the clock touches only the rows that are due. Kernels know calendar periods
by their ends; `set_starts` adds the starts for deliveries.
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.kernels.layout import END, NEVER, START, STOP, PolicyCodes
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
    ends, instants = list[int](), np.unique(times)
    place = 0
    while place < len(instants):
        ends.append(calendar.period(int(instants[place])).end)
        place = int(np.searchsorted(instants, ends[-1]))
    return np.array(ends, np.int64)


def first_end(calendar: Calendar | None, codes: PolicyCodes, position: int) -> int:
    """Return the first end of a period or step after a position on the axis of steps."""
    if calendar is not None:
        return calendar.period(position).end
    return codes.origin + ((position - codes.origin) // codes.step + 1) * codes.step


def open_ends(head: Int64s) -> Int64s:
    """Return (row, end) of the rows with an open period or step; `head` is that of a cohort."""
    rows = np.flatnonzero(head[:, END] != NEVER)
    return np.stack([rows, head[rows, END]], axis=1)


def set_starts(calendar: Calendar | None, columns: Int64s) -> None:
    """Set the starts of the periods behind deliveries, of which kernels know only the ends."""
    if calendar is not None and len(columns):
        ends, places = np.unique(columns[:, STOP], return_inverse=True)
        starts = [calendar.period(end - 1).start for end in ends.tolist()]
        columns[:, START] = np.array(starts, np.int64)[places]


class Deadlines:
    """Rows of cohorts by the end that they wait for, on one axis.

    Ends are aligned, so few are different, and the heap holds one entry for each end and cohort. A
    row whose end has changed since stays in the old place as well; the kernel compares its end.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._rows: dict[int, dict[int, list[Int64s]]] = {}
        self._stale = 0  # heap entries of cohorts that are gone

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, cohort: int, ends: Int64s) -> None:
        """Add pairs of (row, end)."""
        rows_by_end = self._rows.setdefault(cohort, {})
        rows, waited_for = ends[:, 0], ends[:, 1]
        # Mostly all wait for the same end, and sorting them would take longer than the rest.
        is_one = len(ends) > 0 and bool((waited_for == waited_for[0]).all())
        distinct = waited_for[:1].tolist() if is_one else np.unique(waited_for).tolist()
        for end in distinct:
            if end not in rows_by_end:
                rows_by_end[end] = []
                heappush(self._heap, (end, cohort))
            rows_by_end[end].append(rows.copy() if is_one else rows[waited_for == end])

    def forget(self, cohort: int) -> None:
        """Remove all rows of a cohort, whose number is not reused; O(its ends), amortised."""
        self._stale += len(self._rows.pop(cohort, ()))
        if 2 * self._stale > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[1] in self._rows]
            heapify(self._heap)
            self._stale = 0

    @property
    def first(self) -> int | None:
        """The first end that some row may wait for."""
        while self._heap and self._heap[0][1] not in self._rows:
            heappop(self._heap)
            self._stale -= 1
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> dict[int, Int64s]:
        """Remove and return the rows of each cohort whose end is not after `now`."""
        if not self._heap or self._heap[0][0] > now:  # as after most events
            return {}
        due: dict[int, list[Int64s]] = {}
        while (first := self.first) is not None and first <= now:
            end, cohort = heappop(self._heap)
            due.setdefault(cohort, []).extend(self._rows[cohort].pop(end))
        return {cohort: _distinct(rows) for cohort, rows in due.items()}


def _distinct(rows: list[Int64s]) -> Int64s:
    """Return all rows once, in order."""
    return rows[0] if len(rows) == 1 == len(rows[0]) else np.unique(np.concatenate(rows))
