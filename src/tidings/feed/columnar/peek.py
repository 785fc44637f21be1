"""The current list of one window, on demand; nothing changes."""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.feed.columnar.diverse_cohort import ChosenPlaces, DiverseCohort
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels.diverse_choose import RangeSize
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CONTINUOUS,
    COUNT,
    DONE,
    END,
    FAR,
    HISTORY,
    JUMPING,
    MARK,
    MATCHED,
    MATCHING,
    NEVER,
    NUMBER_MASK,
    OLDEST_US,
    PERIODIC,
    SEEN,
    SLIDING,
    SLOT,
    TIME,
    WindowExtent,
)
from tidings.feed.columnar.kernels.timing import axis_end
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.window import Moment


class CurrentList(NamedTuple):
    """The matches that a window would choose now, in order, and the extent of the window."""

    slot: Int32s
    handle: Int32s
    rank: Float64s
    extent: WindowExtent


def current_ranked(cohort: RankedCohort, row: int, now: Moment) -> CurrentList:
    """Return the current list of a window without diversity."""
    cells, extent = _chosen_cells(cohort, row, now)
    slot = cohort.entry[cells, SLOT]
    fresh, times = cohort.policy.decay.fresh, cohort.events.us[slot].tolist()
    pairs = zip(cohort.score[cells].tolist(), times, strict=True)
    ranks = np.array([fresh(score, us, now.us) for score, us in pairs], np.float64)
    return CurrentList(slot, cohort.entry[cells, MATCHED], ranks, extent)


def _chosen_cells(cohort: RankedCohort, row: int, now: Moment) -> tuple[Int64s, WindowExtent]:
    """Return the cells of the chosen entries, best first, and the extent of the window."""
    cells, codes = cohort.entries(np.array([row])), cohort.codes
    if codes.window == PERIODIC:
        return cells, _open_period(cohort, row, now)
    if codes.window == HISTORY:
        cells = cells[_delivered_members(cohort, row, now)]
    if not cohort.has_rings:
        return cells, _extent(cohort.events, cohort.entry[cells, SLOT], now)
    slots = _slots_in_window(cohort, row, now)
    cells = cells[np.isin(cohort.entry[cells, SLOT], slots)]
    available = cells if codes.leave else slots
    waits = codes.wait and codes.window != CONTINUOUS and len(available) < codes.k
    return cells[: 0 if waits else codes.k], _extent(cohort.events, slots, now)


def _extent(events: EventTable, slots: Int32s, now: Moment) -> WindowExtent:
    start = int(events.us[slots].min()) if len(slots) else now.us
    return WindowExtent(start, now.us, len(slots), now.us)


def _open_period(cohort: RankedCohort, row: int, now: Moment) -> WindowExtent:
    head, codes = cohort.head[row], cohort.codes
    end, count = int(head[END]), int(head[COUNT])
    if codes.step_axis == TIME and end != NEVER:
        return WindowExtent(_period_start(cohort, end), end, count, now.us)
    return WindowExtent(int(head[OLDEST_US]), now.us, count, now.us)


def _period_start(cohort: RankedCohort | DiverseCohort, end: int) -> int:
    if cohort.calendar is not None:
        return cohort.calendar.period(end - 1).start
    return end - cohort.codes.step


def _slots_in_window(cohort: RankedCohort, row: int, now: Moment) -> Int32s:
    """Return the events of the ring that the window holds at `now`."""
    slots: Int32s = cohort.ring[cohort.cells(np.array([row]))]
    if cohort.codes.axis == MATCHING:
        return slots[-cohort.codes.length :]
    return slots[_is_inside(cohort, slots, now)]


def _delivered_members(cohort: RankedCohort, row: int, now: Moment) -> Bools:
    """Return which entries of a history are delivered, and inside the window at `now`."""
    entries = cohort.entry[cohort.entries(np.array([row]))]
    delivered = (entries[:, MARK] & DONE).astype(bool)
    if cohort.codes.axis == MATCHING:
        ages = (cohort.head[row, SEEN] - (entries[:, MARK] >> 1)) & NUMBER_MASK
        return np.asarray(delivered & (ages < cohort.codes.length))
    return np.asarray(delivered & _is_inside(cohort, entries[:, SLOT], now))


def _is_inside(cohort: RankedCohort, slots: Int32s, now: Moment) -> Bools:
    """Return which events lie in the window of time or of publications at `now`."""
    events, timed = cohort.events, cohort.codes.axis == TIME
    positions = events.us[slots] if timed else events.sequence[slots] - 1
    end = now.us + 1 if timed else now.sequence
    return np.asarray((positions >= end - cohort.codes.length) & (positions < end))


def current_diverse(cohort: DiverseCohort, row: int, now: Moment) -> CurrentList:
    """Return the current list of a diverse window."""
    codes = cohort.codes
    high = axis_end(codes.axis, int(cohort.head[row, SEEN]), now.us, now.sequence)
    low = high - codes.length
    if codes.window in (PERIODIC, BEST):
        low, high = -FAR, FAR
    waits = codes.window in (SLIDING, JUMPING) and codes.wait
    chosen, size = cohort.peek(row, low, high, now.us, codes.k if waits else 1)
    if codes.window == HISTORY:
        delivered = (cohort.window(row, "mark")[chosen.places] & DONE).astype(bool)
        chosen = ChosenPlaces(chosen.places[delivered], chosen.ranks[delivered])
    slot = cohort.window(row, "slot")[chosen.places]
    if codes.window == HISTORY:
        extent = _extent(cohort.events, slot, now)
    else:
        extent = _diverse_extent(cohort, row, size, now)
    return CurrentList(slot, cohort.window(row, "handle")[chosen.places], chosen.ranks, extent)


def _diverse_extent(cohort: DiverseCohort, row: int, size: RangeSize, now: Moment) -> WindowExtent:
    codes, end = cohort.codes, int(cohort.head[row, END])
    if codes.window == PERIODIC and codes.step_axis == TIME and end != NEVER:
        return WindowExtent(_period_start(cohort, end), end, size.held, now.us)
    return WindowExtent(size.oldest_us, now.us, size.held, now.us)
