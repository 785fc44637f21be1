"""When windows that diversify choose, and from what: the rules of `tidings.window`, over arrays."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.feeds.choice import END, FAR, HELD, SEEN, Choice, DiverseCohort, Extent, Look
from tidings.feeds.cohort import Found
from tidings.feeds.events import EventTable
from tidings.kernels import window_layout as at
from tidings.kernels.window_diverse import swap_values
from tidings.window import Moment


class Turn(NamedTuple):
    """A match that is offered: its place among the offers, and what it is."""

    place: int
    row: int
    slot: int
    score: float
    handle: int
    now: Moment


def offer(cohort: DiverseCohort, events: EventTable, offers: tuple[Any, ...]) -> Found:
    """Offer matches, as rows, slots, scores, handles and numbers of the stream."""
    cohort.events = events
    cohort.traits.note(events, offers[1])
    take = OFFERS[int(cohort.plan[at.WINDOW])]
    times = events.us[offers[1]].tolist()
    rows = zip(*(each.tolist() for each in offers), times, strict=True)
    for place, (row, slot, score, handle, sequence, us) in enumerate(rows):
        take(cohort, Turn(place, row, slot, score, handle, Moment(us, sequence)))
    return cohort.take()


def advance(cohort: DiverseCohort, events: EventTable, rows: Any, now: Moment) -> Found:
    """Say to some rows that the stream has come to a moment."""
    cohort.events = events
    close = _close if cohort.plan[at.WINDOW] == at.PERIODIC else _step
    for row in rows.tolist():
        close(cohort, 0, row, now)
    return cohort.take()


def _slide(cohort: DiverseCohort, turn: Turn) -> None:
    _enter(cohort, turn)
    look = cohort.look(turn.row)
    if enough(cohort, look):
        us = turn.now.us
        extent = Extent(look.oldest, us, look.held, us)
        cohort.hand_out(turn.place, turn.row, cohort.choose(look, us), extent)


def _continue(cohort: DiverseCohort, turn: Turn) -> None:
    """Deliver what is chosen of the newest match and those held back; the others are passed."""
    _enter(cohort, turn)
    if cohort.plan[at.WAIT] and cohort.head[turn.row, HELD] < cohort.k:
        return
    us, look = turn.now.us, cohort.look(turn.row)
    extent = Extent(look.oldest, us, look.held, us)
    cohort.hand_out(turn.place, turn.row, cohort.choose(look, us), extent)
    cohort.window(turn.row, 3)[look.places] |= at.DONE


def _group(cohort: DiverseCohort, turn: Turn) -> None:
    """Close the period before the match, add it, and close the group that it completes."""
    _aligned(cohort, turn, _close)


def _jump(cohort: DiverseCohort, turn: Turn) -> None:
    """Take the steps before the match, add it, and take the step that it completes."""
    _aligned(cohort, turn, _step)


def _aligned(cohort: DiverseCohort, turn: Turn, pass_ends: Callable[..., None]) -> None:
    row, now = turn.row, turn.now
    pass_ends(cohort, turn.place, row, Moment(now.us, now.sequence - 1))
    cohort.add(row, turn.slot, turn.score, turn.handle)
    if cohort.head[row, END] == at.NEVER:
        step, origin = int(cohort.plan[at.STEP]), int(cohort.plan[at.ORIGIN])
        stands = _stands(cohort, int(cohort.plan[at.STEP_AXIS]), turn)
        cohort.wait_until(row, origin + ((stands - origin) // step + 1) * step)
    pass_ends(cohort, turn.place, row, now)


def _stands(cohort: DiverseCohort, axis: int, turn: Turn) -> int:
    """Give where the newest match stands on an axis."""
    if axis == at.TIME:
        return turn.now.us
    number = cohort.events.sequence[turn.slot] if axis == at.PUBLISHED else None
    return int(cohort.head[turn.row, SEEN] if number is None else number) - 1


def _passed(cohort: DiverseCohort, row: int, now: Moment) -> bool:
    """Tell whether nothing before the end that a window waits for can still come."""
    end, axis = int(cohort.head[row, END]), cohort.plan[at.STEP_AXIS]
    if end == at.NEVER:
        return False
    if axis == at.TIME:
        return end <= now.us
    return bool(end <= (now.sequence if axis == at.PUBLISHED else cohort.head[row, SEEN]))


def _close(cohort: DiverseCohort, place: int, row: int, now: Moment) -> None:
    """Close the open period if the stream has passed its end; that is when it chooses."""
    if not _passed(cohort, row, now):
        return
    end = int(cohort.head[row, END])
    cohort.wait_until(row, at.NEVER)
    if cohort.plan[at.WAIT] and cohort.head[row, HELD] < cohort.k:
        return
    look = cohort.look(row)
    us = end if cohort.plan[at.STEP_AXIS] == at.TIME else look.newest
    choice = cohort.choose(look, us)
    cohort.hand_out(place, row, choice, period(cohort, look, end, us))
    cohort.empty(row)


def period(cohort: DiverseCohort, look: Look, end: int, now_us: int) -> Extent:
    """Give the extent of a period, or of a group of matches, that ends here."""
    if cohort.plan[at.STEP_AXIS] == at.TIME and end != at.NEVER:
        return Extent(end - int(cohort.plan[at.STEP]), end, look.held, now_us)
    return Extent(look.oldest, now_us, look.held, now_us)


def _step(cohort: DiverseCohort, place: int, row: int, now: Moment) -> None:
    """Choose at every step that the stream has passed since the window last held something."""
    length = int(cohort.plan[at.LENGTH])
    aligned = cohort.plan[at.AXIS] == cohort.plan[at.STEP_AXIS]
    while _passed(cohort, row, now):
        end = int(cohort.head[row, END])
        stop = end if aligned else after(cohort, row, now)
        look = cohort.look(row, (stop - length, stop))
        us = now.us if not look.held else look.newest
        us = end if cohort.plan[at.STEP_AXIS] == at.TIME else us
        if enough(cohort, look):
            extent = Extent(look.oldest, us, look.held, us)
            cohort.hand_out(place, row, cohort.choose(look, us), extent)
        cohort.drop_below(row, stop - length)
        left = cohort.head[row, HELD] > 0
        cohort.wait_until(row, end + int(cohort.plan[at.STEP]) if left else at.NEVER)


def after(cohort: DiverseCohort, row: int, now: Moment) -> int:
    """Give the first place after a moment on the axis of the window."""
    if cohort.axis == at.TIME:
        return now.us + 1
    return now.sequence if cohort.axis == at.PUBLISHED else int(cohort.head[row, SEEN])


def enough(cohort: DiverseCohort, look: Look) -> bool:
    """Tell whether there are candidates, and with `wait` k of them."""
    return len(look.places) >= (cohort.k if cohort.plan[at.WAIT] else 1)


def _enter(cohort: DiverseCohort, turn: Turn) -> None:
    """Drop what the window leaves behind as a match comes, and add the match."""
    low = _leave_behind(cohort, turn)
    cohort.add(turn.row, turn.slot, turn.score, turn.handle)
    _drop_late(cohort, turn, low)


def _leave_behind(cohort: DiverseCohort, turn: Turn) -> int:
    """Drop what the window leaves behind as a match comes; give where it begins then."""
    if cohort.axis == at.EVER:
        return -FAR
    one_more = cohort.axis == at.MATCHING
    low = after(cohort, turn.row, turn.now) + one_more - int(cohort.plan[at.LENGTH])
    cohort.drop_below(turn.row, low)
    return low


def _drop_late(cohort: DiverseCohort, turn: Turn, low: int) -> None:
    """Drop a match that the window had left behind before it came."""
    if cohort.axis == at.PUBLISHED and cohort.events.sequence[turn.slot] <= low:
        cohort.drop_below(turn.row, low)


def _better(cohort: DiverseCohort, turn: Turn) -> None:
    """Deliver the match for a free place of the history or for a swap, or forget it."""
    low, row = _leave_behind(cohort, turn), turn.row
    full = cohort.head[row, HELD] >= cohort.k
    place = cohort.add(row, turn.slot, turn.score, turn.handle)
    if full:
        dropped = _swapped(cohort, row, place, turn.now.us)
        cohort.remove(row, dropped)
    _drop_late(cohort, turn, low)
    if full and dropped == place:
        return
    if not full and cohort.plan[at.WAIT] and cohort.head[row, HELD] < cohort.k:
        return
    choice, extent = members(cohort, row, turn.now)
    cohort.hand_out(turn.place, row, choice, extent)
    born = cohort.window(row, 3)
    born[born > 0] |= at.DONE


def _swapped(cohort: DiverseCohort, row: int, new: int, now_us: int) -> int:
    """Give the member whose place the match takes (PREF Def. 14), or the match if there is none.

    Of equal sets the one without the oldest; candidates are listed newest first.
    """
    look = cohort.look(row)
    ranks, _ = cohort.rank(look, now_us)
    matrix, values = cohort.distances(look).matrix, np.empty(len(ranks))
    swap_values(matrix, ranks, float(cohort.policy.diversify.sigma), values)
    others = np.flatnonzero(look.places != new)
    as_is = values[look.places == new][0]
    best = others[np.flatnonzero(values[others] == values[others].max())[-1]]
    better = values[best] > as_is or (values[best] == as_is and not cohort.plan[at.STRICT])
    return int(look.places[best]) if better else new


def members(
    cohort: DiverseCohort, row: int, now: Moment, shown: bool = False
) -> tuple[Choice, Extent]:
    """Give the history at a moment, best rank first; only what was delivered if it is `shown`."""
    stop = after(cohort, row, now)
    look = cohort.look(row, (stop - int(cohort.plan[at.LENGTH]), stop))
    if not len(look.places):
        return Choice(look.places, np.empty(0)), Extent(now.us, now.us, 0, now.us)
    ranks, keys = cohort.rank(look, now.us)
    order = np.argsort(-keys, kind="stable")
    if shown:
        order = order[(cohort.window(row, 3)[look.places[order]] & at.DONE).astype(bool)]
    chosen = look.places[order]
    times = cohort.events.us[cohort.window(row, 0)[chosen]]
    start = int(times.min()) if len(times) else now.us
    return Choice(chosen, ranks[order]), Extent(start, now.us, len(chosen), now.us)


OFFERS: Final[dict[int, Callable[[DiverseCohort, Turn], None]]] = {
    at.SLIDING: _slide,
    at.CONTINUOUS: _continue,
    at.BEST: _continue,
    at.PERIODIC: _group,
    at.JUMPING: _jump,
    at.HISTORY: _better,
}
