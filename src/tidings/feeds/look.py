"""One window of a cohort as it stands, on demand; nothing changes."""

import numpy as np
import numpy.typing as npt

from tidings.feeds.choice import END, EVERYTHING, Choice, DiverseCohort, Extent
from tidings.feeds.cohort import Cohort
from tidings.feeds.events import EventTable
from tidings.feeds.turns import after, enough, members, period
from tidings.kernels import window_layout as at
from tidings.window import Moment

Ints = npt.NDArray[np.int64]


def current(cohort: Cohort, events: EventTable, row: int, now: Moment) -> tuple[Ints, list[int]]:
    """Give the pool places of what is chosen now, best first; and the start, stop and width."""
    listed, window = cohort.entries(np.array([row])), cohort.plan[at.WINDOW]
    if window == at.PERIODIC:
        return listed, _period(cohort, row, now)
    if window == at.HISTORY:
        listed = listed[_members(cohort, events, row, now)]
    if not cohort.rings:
        return listed, _extent(events, cohort.who[listed, at.SLOT], now)
    slots = _within(cohort, events, row, now)
    listed = listed[np.isin(cohort.who[listed, at.SLOT], slots)]
    there = listed if cohort.plan[at.LEAVE] else slots
    waits = cohort.plan[at.WAIT] and window != at.CONTINUOUS
    k = 0 if waits and len(there) < cohort.plan[at.K] else cohort.plan[at.K]
    return listed[:k], _extent(events, slots, now)


def _extent(events: EventTable, slots: npt.NDArray[np.int32], now: Moment) -> list[int]:
    start = int(events.us[slots].min()) if len(slots) else now.us
    return [start, now.us, len(slots)]


def _period(cohort: Cohort, row: int, now: Moment) -> list[int]:
    """Give the extent of the open period so far."""
    head, plan = cohort.head[row], cohort.plan
    end, count = int(head[at.END]), int(head[at.COUNT])
    if plan[at.STEP_AXIS] == at.TIME and end != at.NEVER:
        return [end - int(plan[at.STEP]), end, count]
    return [int(head[at.OLDEST_US]), now.us, count]


def _within(cohort: Cohort, events: EventTable, row: int, now: Moment) -> npt.NDArray[np.int32]:
    """Give the events of the ring that the window holds at `now`."""
    slots = cohort.ring[cohort.cells(np.array([row]))]
    if cohort.plan[at.AXIS] == at.MATCHING:
        return slots[-int(cohort.plan[at.LENGTH]) :]
    return slots[_inside(cohort, events, slots, now)]


def _members(cohort: Cohort, events: EventTable, row: int, now: Moment) -> npt.NDArray[np.bool_]:
    """Tell which entries of a history are delivered members at `now`."""
    who = cohort.who[cohort.entries(np.array([row]))]
    shown = (who[:, at.MARK] & at.DONE).astype(bool)
    if cohort.plan[at.AXIS] == at.MATCHING:
        ages = (cohort.head[row, at.SEEN] - (who[:, at.MARK] >> 1)) & at.BORN_MASK
        return np.asarray(shown & (ages < cohort.plan[at.LENGTH]))
    return np.asarray(shown & _inside(cohort, events, who[:, at.SLOT], now))


def _inside(
    cohort: Cohort, events: EventTable, slots: npt.NDArray[np.int32], now: Moment
) -> npt.NDArray[np.bool_]:
    """Tell which events lie in the window of time, or of published events, at `now`."""
    timed = cohort.plan[at.AXIS] == at.TIME
    places = events.us[slots] if timed else events.sequence[slots] - 1
    end = now.us + 1 if timed else now.sequence
    return np.asarray((places >= end - cohort.plan[at.LENGTH]) & (places < end))


def current_diverse(
    cohort: DiverseCohort, events: EventTable, row: int, now: Moment
) -> tuple[Choice, Extent]:
    """Give what a window that diversifies would choose now, and what it covers."""
    cohort.events = events
    window, stop = cohort.plan[at.WINDOW], after(cohort, row, now)
    if window == at.HISTORY:
        return members(cohort, row, now, shown=True)
    bounded = window not in (at.PERIODIC, at.BEST)
    look = cohort.look(row, (stop - int(cohort.plan[at.LENGTH]), stop) if bounded else EVERYTHING)
    extent = Extent(look.oldest, now.us, look.held, now.us)
    if window == at.PERIODIC:
        extent = period(cohort, look, int(cohort.head[row, END]), now.us)
    waits = window in (at.SLIDING, at.JUMPING) and not enough(cohort, look)
    if waits or not len(look.places):
        return Choice(look.places[:0], np.empty(0)), extent
    return cohort.choose(look, now.us), extent
