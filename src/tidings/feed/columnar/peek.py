"""One window of a cohort as it stands, on demand; nothing changes."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.diverse_cohort import Choice, DiverseCohort
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.diverse_layout import FAR
from tidings.feed.columnar.kernels.ring_buffer import axis_end
from tidings.feed.columnar.ranked_cohort import Cohort
from tidings.window import Moment

EVERYTHING: Final = (-FAR, FAR)


class Extent(NamedTuple):
    """What a window covered: from, to, how many matches; and when it was decided."""

    start: int
    stop: int
    width: int
    when: int


def current(cohort: Cohort, events: EventTable, row: int, now: Moment) -> tuple[Int64s, list[int]]:
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
    window, plan = cohort.plan[at.WINDOW], cohort.plan
    stop = axis_end(int(plan[at.AXIS]), int(cohort.head[row, at.SEEN]), now.us, now.sequence)
    bounded = window not in (at.PERIODIC, at.BEST)
    span = (stop - int(plan[at.LENGTH]), stop) if bounded else EVERYTHING
    waits = window in (at.SLIDING, at.JUMPING) and plan[at.WAIT]
    choice, (oldest, _, held) = cohort.peek(row, span, now.us, int(plan[at.K]) if waits else 1)
    if window == at.HISTORY:
        return _shown(cohort, events, row, choice, now)
    end = int(cohort.head[row, at.END])
    if window == at.PERIODIC and plan[at.STEP_AXIS] == at.TIME and end != at.NEVER:
        return choice, Extent(end - int(plan[at.STEP]), end, int(held), now.us)
    return choice, Extent(int(oldest), now.us, int(held), now.us)


def _shown(
    cohort: DiverseCohort, events: EventTable, row: int, choice: Choice, now: Moment
) -> tuple[Choice, Extent]:
    """Give those members of a history that were delivered."""
    done = (cohort.window(row, 3)[choice.places] & at.DONE).astype(bool)
    shown = Choice(choice.places[done], choice.ranks[done])
    start, stop, width = _extent(events, cohort.window(row, 0)[shown.places], now)
    return shown, Extent(start, stop, width, now.us)
