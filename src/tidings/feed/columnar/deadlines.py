"""When periods and steps end: rows by end, so that time touches only those that are due."""

from heapq import heapify, heappop, heappush

import numpy as np

from tidings.compiled.array_types import Int64s


class Ends:
    """Rows of cohorts by the end that they wait for.

    Ends are aligned, so they are few. A row whose end has changed since stays here until then; the
    kernel looks at its own end.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._rows: dict[int, dict[int, list[Int64s]]] = {}
        self._stale = 0  # in the heap, of cohorts that are gone

    def add(self, cohort: int, ends: Int64s) -> None:
        """Note ends that were set, as rows of (row, end)."""
        mine = self._rows.setdefault(cohort, {})
        for end in np.unique(ends[:, 1]).tolist():
            if end not in mine:
                mine[end] = []
                heappush(self._heap, (end, cohort))
            mine[end].append(ends[ends[:, 1] == end, 0])

    def forget(self, cohort: int) -> None:
        """Forget all rows of a cohort, whose number is not given again; O(its ends), amortised."""
        self._stale += len(self._rows.pop(cohort, ()))
        if 2 * self._stale > len(self._heap):
            self._heap = [each for each in self._heap if each[1] in self._rows]
            heapify(self._heap)
            self._stale = 0

    @property
    def first(self) -> int | None:
        """The first end that some row may wait for."""
        while self._heap and self._heap[0][1] not in self._rows:
            heappop(self._heap)
            self._stale -= 1
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> dict[int, Int64s]:
        """Give, and forget, the rows of each cohort whose end is not after `now`."""
        found: dict[int, list[Int64s]] = {}
        while (first := self.first) is not None and first <= now:
            end, cohort = heappop(self._heap)
            found.setdefault(cohort, []).extend(self._rows[cohort].pop(end))
        return {cohort: np.unique(np.concatenate(rows)) for cohort, rows in found.items()}
