"""Cohorts for tests of kernels, with pools that are large enough for all that a test does."""

from typing import Any

import numpy as np

from tidings.feed.columnar.cohort_arrays import DeliveryBuffer
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.policy import Policy

US = np.arange(64) // 4
SEQUENCE = np.arange(64)
ID_ORDER = np.arange(64)[::-1].copy()
"""Sixty-four events, four of each time; among these, ids fall as slots rise."""


def event_table() -> EventTable:
    table = EventTable()
    table.us, table.sequence, table.id_order = US, SEQUENCE, ID_ORDER
    return table


def ranked_cohort(rows: int = 3, cells: int = 5000, **policy: Any) -> RankedCohort:
    """Return a cohort with some empty rows."""
    window = {"name": "sliding", "length": "1d"}
    cohort = RankedCohort(
        Policy(**{"k": 3, "window": window, **policy}), DeliveryBuffer(), event_table()
    )
    for number in range(rows):
        cohort.enrol(number, f"u{number}")
    cohort.key = cohort.score = np.zeros(cells)
    cohort.entry = np.zeros((cells, 3), np.int32)
    cohort.ring = np.zeros(cells, np.int32)
    return cohort
