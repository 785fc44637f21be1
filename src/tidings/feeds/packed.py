"""Windows that diversify, without their holes: what a snapshot keeps of them, and back."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.feeds.choice import COUNTERS, GRADE, HELD, LAST, SEAT, DiverseCohort
from tidings.feeds.cohort import spread
from tidings.feeds.events import EventTable
from tidings.feeds.shelves import COLUMNS

Arrays = dict[str, npt.NDArray[Any]]
Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


def columns(cohort: DiverseCohort, rows: Ints) -> Arrays:
    """Give the state of some rows, their matches in order of arrival."""
    found: list[list[npt.NDArray[Any]]] = [[np.zeros(0, kind)] for kind in (*COLUMNS, np.int64)]
    grades = cohort.head[rows, GRADE]
    for grade, pool in enumerate(cohort.shelves.pools):
        owners = np.flatnonzero(grades == grade)
        seats = cohort.head[rows[owners], SEAT]
        which, places = (pool[3][seats] > 0).nonzero()
        entries: tuple[npt.NDArray[Any], ...] = pool[:4]
        for column, parts in zip(entries, found[:4], strict=True):
            parts.append(column[seats[which], places])
        found[4].append(owners[which])
    slot, handle, score, mark, owner = (np.concatenate(each) for each in found)
    order = np.lexsort((mark, owner))
    whole = {"score": score, "mark": mark, "slot": slot, "handle": handle}
    head = cohort.head[rows[:, None], COUNTERS]
    return {"head": head} | {name: each[order] for name, each in whole.items()}


def fill(cohort: DiverseCohort, events: EventTable, state: Arrays, handles: Ids) -> None:
    """Take over the state of all rows, enrolled in its order and still empty.

    What choosing needs to know of a window's events is found out when it is touched.
    """
    cohort.events = events
    sizes = state["head"][:, COUNTERS.index(HELD)]
    cohort.head[: len(sizes), COUNTERS] = state["head"]
    starts, grades = np.cumsum(sizes) - sizes, cohort.shelves.grades(sizes)
    whole = (state["slot"], handles, state["score"], state["mark"])
    for grade in np.unique(grades[grades >= 0]).tolist():
        rows = np.flatnonzero(grades == grade)
        seats, wanted = cohort.shelves.take_many(grade, len(rows)), sizes[rows]
        source, places = spread(starts[rows], wanted), spread(np.zeros_like(wanted), wanted)
        entries: tuple[npt.NDArray[Any], ...] = cohort.shelves.pools[grade][:4]
        for column, each in zip(entries, whole, strict=True):
            column[np.repeat(seats, wanted), places] = each[source]
        cohort.head[rows, GRADE], cohort.head[rows, SEAT] = grade, seats
        cohort.head[rows, LAST] = wanted - 1
        cohort.asleep.update(rows.tolist())
