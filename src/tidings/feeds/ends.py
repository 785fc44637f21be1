"""When periods and steps end: rows by end, so that time touches only those that are due."""

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Ends:
    """Rows of cohorts by the end that they wait for.

    Ends are aligned, so they are few. A row whose end has changed since stays here until then; the
    kernel looks at its own end.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._rows: dict[tuple[int, int], list[Ints]] = {}

    def add(self, cohort: int, ends: Ints) -> None:
        """Note ends that were set, as rows of (row, end)."""
        for end in np.unique(ends[:, 1]).tolist():
            rows = ends[ends[:, 1] == end, 0]
            if (end, cohort) not in self._rows:
                self._rows[end, cohort] = []
                heappush(self._heap, (end, cohort))
            self._rows[end, cohort].append(rows)

    @property
    def first(self) -> int | None:
        """The first end that some row may wait for."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> dict[int, Ints]:
        """Give, and forget, the rows of each cohort whose end is not after `now`."""
        found: dict[int, list[Ints]] = {}
        while self._heap and self._heap[0][0] <= now:
            key = heappop(self._heap)
            found.setdefault(key[1], []).extend(self._rows.pop(key))
        return {cohort: np.unique(np.concatenate(rows)) for cohort, rows in found.items()}
