"""What a snapshot of feeds must hold before a kernel sees it; what does not is refused.

Kernels check no index, and some loop until a window has moved on. So all columns of a cohort are as
long as its rows say, every number lies within what it counts, no window holds more than its policy
lets it, and each waits for an end that its matches lead to. All of it takes a few passes over the
columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar import policy_codes as plans
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import UNNUMBERED, EventTable
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.decay import keys_many
from tidings.feed.columnar.kernels.validate import unsound_row
from tidings.feed.columnar.ranked_cohort import Cohort
from tidings.feed.snapshot_header import FRAME
from tidings.formats.binary import check, damaged
from tidings.model.records import LAST_SEQUENCE
from tidings.model.values import EARLIEST_US, LATEST_US

Arrays = dict[str, npt.NDArray[Any]]
_NAME: Final = FRAME.name
_LAST: Final = LAST_SEQUENCE
_MOST: Final = 1e200
"""No score is larger; sums of a history's scores stay finite."""
_TOP: Final = (1 << 31) - 1
_ENTRIES: Final = {"score", "mark", "slot", "sizes", "members"}
_RANKED: Final = {f"head{number}" for number in range(7)} | _ENTRIES | {"ring", "disorder"}
_DIVERSE: Final = {f"head{number}" for number in range(4)} | _ENTRIES
_SHARED: Final = ("subscribers", "seats", "events", "us", "sequence", "forms", "subscriptions")


class Counts(NamedTuple):
    """How many there are of what columns refer to."""

    events: int
    subscriptions: int


def check_shared(header: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Refuse a snapshot unless its header, names and events are as they should be."""
    policies, objects = header.get("policies"), header.get("objects")
    check(isinstance(policies, list), _NAME, "field 'policies' is no list")
    check(isinstance(objects, dict), _NAME, "field 'objects' is no object")
    assert isinstance(policies, list)
    for name in _SHARED:
        check(name in columns, _NAME, f"column {name} is missing")
    for name in ("subscribers", "events", "subscriptions"):
        check_names(name, columns[name])
    count = len(columns["events"])
    check_whole(columns, "us", count, EARLIEST_US, LATEST_US)
    check_whole(columns, "sequence", count, UNNUMBERED, _LAST)
    us = columns["us"]
    check((us[1:] >= us[:-1]).all(), _NAME, "its events are not in order of time")
    forms = columns["forms"]
    check(isinstance(forms, list) and len(forms) in (0, count), _NAME, "column forms is too short")
    check_whole(columns, "seats", len(columns["subscribers"]), 0, len(policies) - 1)
    used = np.unique(columns["seats"])
    check(len(used) == len(policies), _NAME, "it has a policy that nobody has")


def check_names(what: str, names: object) -> None:
    """Refuse a column unless it is of texts, none empty, each once."""
    check(isinstance(names, list), _NAME, f"column {what} holds no texts")
    assert isinstance(names, list)
    distinct = set(names)
    check(len(distinct) == len(names), _NAME, f"column {what} has a name twice")
    check("" not in distinct, _NAME, f"column {what} has an empty name")


def check_whole(
    columns: Mapping[str, Any], name: str, count: int | None, low: int, high: int
) -> None:
    """Refuse a column unless it is of so many whole numbers between `low` and `high`."""
    column = columns[name]
    check(isinstance(column, np.ndarray) and column.ndim == 1, _NAME, f"column {name} is no column")
    check(column.dtype.kind in "iu", _NAME, f"column {name} holds no whole numbers")
    check(count in (None, len(column)), _NAME, f"column {name} has {len(column)} rows, not {count}")
    if len(column):
        least, most = int(column.min()), int(column.max())
        check(low <= least and most <= high, _NAME, f"column {name} has a number out of range")


def check_part(cohort: Cohort | DiverseCohort, part: Arrays, rows: int, counts: Counts) -> None:
    """Refuse the columns of a cohort as they were read, unless lengths and references fit."""
    diverse = isinstance(cohort, DiverseCohort)
    wanted = _DIVERSE if diverse else _RANKED
    check(part.keys() == wanted, _NAME, "a policy has other columns than its kind has")
    for number in range(4 if diverse else 7):
        low, high = (EARLIEST_US, LATEST_US) if number > 4 else (0, _LAST)
        check_whole(part, f"head{number}", rows, low, high if number != 2 else _LAST - at.NEVER)
    entries = _total(part["head3"])
    check_whole(part, "slot", entries, 0, counts.events - 1)
    check_whole(part, "mark", entries, 1 if diverse else 0, 2 * _LAST + 1 if diverse else _TOP)
    check_whole(part, "sizes", entries, 0, _TOP)
    check_whole(part, "members", _total(part["sizes"]), 0, counts.subscriptions - 1)
    score = part["score"]
    check(score.dtype == np.float64 and score.shape == (entries,), _NAME, "scores are missing")
    check(((score >= 0) & (score <= _MOST)).all(), _NAME, "column score has a number out of range")
    if not isinstance(cohort, DiverseCohort):
        cells = _total(part["head4"]) if cohort.rings else 0
        check_whole(part, "ring", cells, 0, counts.events - 1)
        check_whole(part, "disorder", None, 0, 1)
        check(len(part["disorder"]) == 1, _NAME, "column disorder has more than one row")


def _total(column: npt.NDArray[Any]) -> int:
    """Return the sum of a column, which is exact: lengths that overflow are refused before."""
    if len(column):
        check(int(column.max()) * len(column) <= _LAST, _NAME, "a length is out of range")
    return int(column.sum(dtype=np.int64))


def check_diverse(cohort: DiverseCohort, events: EventTable, part: Arrays) -> None:
    """Refuse windows that diversify unless each can be held, and its matches came in order."""
    seen, _, end, held = part["head"].T
    window, axis = cohort.plan[at.WINDOW], cohort.plan[at.AXIS]
    _check_held(cohort.plan, seen, end, held)
    born = part["mark"].astype(np.int64)
    starts = np.cumsum(held) - held
    numbers = born >> 1
    rising = np.ones(len(born), np.bool_)
    rising[1:] = numbers[1:] > numbers[:-1]
    rising[starts[held > 0]] = True
    check(rising.all() and (numbers > 0).all(), _NAME, "matches are not in order of arrival")
    check((numbers <= np.repeat(seen, held)).all(), _NAME, "a match came after the last one")
    if axis == at.MATCHING and plans.has_ring(cohort.plan):
        within = np.arange(len(born)) - np.repeat(starts, held)
        first = np.repeat(seen - held + 1, held)
        check((numbers == first + within).all(), _NAME, "a window has a gap")
    check(window != at.HISTORY or (held <= cohort.plan[at.K]).all(), _NAME, "a history is above k")
    _check_ends(cohort.plan, part["head"][:, [0, 2, 3]], events, part["slot"])
    bare = [slot for slot in np.unique(part["slot"]).tolist() if not events.forms[slot]]
    check(not bare, _NAME, "an event that is compared with others has no attributes")


def check_ranked(cohort: Cohort, events: EventTable, part: Arrays) -> None:
    """Refuse windows without diversity unless each can be held, and its lists are in order."""
    seen, _, end, size, held, *times = part["head"].T
    plan, window, k = cohort.plan, cohort.plan[at.WINDOW], int(cohort.plan[at.K])
    if cohort.rings:
        _check_held(plan, seen, end, held)
        check((size <= held).all(), _NAME, "a list is longer than its window")
    else:
        check((size <= k).all(), _NAME, "a list is longer than k")
        counts = window == at.PERIODIC
        check((size <= held).all() if counts else not held.any(), _NAME, "a count is wrong")
    check(window == at.PERIODIC or not np.any(times), _NAME, "a window has times it cannot have")
    check((held <= seen).all(), _NAME, "a window holds more than it has seen")
    if window != at.HISTORY:
        most = 2 * k - 1 if plan[at.PRUNE] else 1
        marks = part["mark"]
        leaves = plan[at.LEAVE]
        check(not len(marks) or leaves or marks.max() <= most, _NAME, "a mark is out of range")
    if cohort.rings:
        _check_ends(plan, np.stack([seen, end, held], axis=1), events, part["ring"])
    else:
        _check_period(plan, seen, end, held, times[1])
    _check_order(cohort, events, part)


def _check_held(plan: Int64s, seen: Int64s, end: Int64s, held: Int64s) -> None:
    """Refuse windows that hold more than they can, so that one more match would have no place."""
    check((held <= seen).all(), _NAME, "a window holds more than it has seen")
    check((held < plans.LONGEST).all(), _NAME, "a window holds too much")
    if plan[at.AXIS] != at.MATCHING or not plans.has_ring(plan):
        return
    if plan[at.WINDOW] != at.JUMPING:
        check((held <= plan[at.LENGTH]).all(), _NAME, "a window is longer than its policy")
        return
    first = np.where(end == at.NEVER, seen, end - plan[at.STEP] - plan[at.LENGTH])
    check((seen - held >= first).all(), _NAME, "a window is longer than its policy")


def _check_ends(plan: Int64s, counters: Int64s, events: EventTable, slots: Any) -> None:
    """Refuse ends that the matches of a window do not lead to.

    Steps up to an end are taken one by one, so one from long ago would take for ever.
    """
    seen, end, held = counters.T
    opened = end != at.NEVER
    if plan[at.WINDOW] not in (at.PERIODIC, at.JUMPING):
        check(not opened.any(), _NAME, "a window without periods waits for an end")
        return
    check((held[opened] > 0).all(), _NAME, "an empty window waits for an end")
    if plan[at.WINDOW] == at.JUMPING:
        check((opened | (held == 0)).all(), _NAME, "a window waits for no end")
    axis, step = plan[at.STEP_AXIS], int(plan[at.STEP])
    if axis == at.MATCHING:
        newest, farthest = seen[opened], step
    else:
        newest = _newest(events, axis, held, slots)[opened]
        farthest = step + (int(plan[at.LENGTH]) if plan[at.WINDOW] == at.JUMPING else 0)
    wait = end[opened] - newest
    check(((wait > 0) & (wait <= farthest)).all(), _NAME, "a window waits for a wrong end")


def _newest(events: EventTable, axis: int, held: Int64s, slots: Any) -> Int64s:
    """Return the last place of each window on an axis; 0 where it holds nothing."""
    found, full = np.zeros(len(held), np.int64), held > 0
    places = events.us[slots] if axis == at.TIME else events.sequence[slots] - 1
    if full.any():
        found[full] = np.maximum.reduceat(places, (np.cumsum(held) - held)[full])
    return found


def _check_period(plan: Int64s, seen: Int64s, end: Int64s, held: Int64s, newest: Int64s) -> None:
    """Refuse ends of periods that are only counted, of which the k best matches are listed."""
    opened, step = end != at.NEVER, int(plan[at.STEP])
    if plan[at.WINDOW] != at.PERIODIC:
        check(not opened.any(), _NAME, "a window without periods waits for an end")
        return
    check((held[opened] > 0).all(), _NAME, "an empty window waits for an end")
    if plan[at.STEP_AXIS] != at.PUBLISHED:
        last = seen if plan[at.STEP_AXIS] == at.MATCHING else newest
        wait = end[opened] - last[opened]
        check(((wait > 0) & (wait <= step)).all(), _NAME, "a window waits for a wrong end")


def _check_order(cohort: Cohort, events: EventTable, part: Arrays) -> None:
    """Refuse lists and rings that are not in the order that they are searched by."""
    size, held = (np.ascontiguousarray(part["head"][:, number]) for number in (3, 4))
    slots = part["slot"].astype(np.int32)
    keys = np.empty(len(slots), np.float64)
    keys_many(cohort.decay, part["score"].copy(), events.us[slots], keys)
    axis, most = cohort.plan[at.AXIS], int(held.max(initial=0))
    marks, ring = part["mark"].astype(np.int32), part["ring"].astype(np.int32)
    steps = {at.TIME: events.us, at.PUBLISHED: events.sequence}
    unordered = np.zeros(len(events.us), np.int64)
    order = (events.us, events.tie, steps.get(int(axis), unordered))
    seen = np.full((2, len(events.us)), -1, np.int64)
    scratch = (seen[0], seen[1], np.zeros(most + 1 if cohort.rings else 1, np.int64))
    prune = bool(cohort.plan[at.PRUNE])
    row = unsound_row((size, held), (slots, keys, marks, ring), order, scratch, cohort.rings, prune)
    if row >= 0:
        raise damaged(_NAME, "the list of a window is not in order")


def check_apart(states: Sequence[Mapping[str, Any]]) -> None:
    """Refuse snapshots that are to be together unless their subscribers differ and events agree."""
    people = [name for each in states for name in each["subscribers"]]
    check(len(set(people)) == len(people), _NAME, "a subscriber is in two of them")
