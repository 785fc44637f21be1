"""Checks of a snapshot of feeds before a kernel sees it; whatever fails them is refused.

Kernels do not check indexes, and some loop until a window has moved on. So all columns of a cohort
must be as long as its rows say, every number within the range of what it refers to, no window
larger than its policy allows, and every open end one that the matches of its window lead to. The
checks take a few passes over the columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Int64s
from tidings.errors import shown
from tidings.feed.columnar import policy_codes
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels.layout import (
    HISTORY,
    JUMPING,
    MATCHING,
    NEVER,
    PERIODIC,
    PUBLISHED,
    TIME,
    PolicyCodes,
)
from tidings.feed.columnar.kernels.timing import order_keys
from tidings.feed.columnar.kernels.validate import (
    RestoredEntries,
    RestoredEvents,
    RestoredRows,
    ValidationScratch,
    first_invalid_row,
)
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.feed.snapshot_header import FRAME, Arrays
from tidings.formats.binary import check, damaged
from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import LAST_SEQUENCE
from tidings.model.values import EARLIEST_US, LATEST_US

_NAME: Final = FRAME.name
_LARGEST_SCORE: Final = 1e200
"""Sums of the scores of a history stay finite."""
_LARGEST_INT32: Final = (1 << 31) - 1
_ENTRY_COLUMNS: Final = {"score", "mark", "slot", "sizes", "members"}
_RANKED_COLUMNS: Final = (
    {f"head{number}" for number in range(7)} | _ENTRY_COLUMNS | {"ring", "disorder"}
)
_DIVERSE_COLUMNS: Final = {f"head{number}" for number in range(4)} | _ENTRY_COLUMNS
_SHARED: Final = ("subscribers", "seats", "events", "us", "sequence", "forms", "subscriptions")


class ReferencedCounts(NamedTuple):
    """The numbers of events and subscriptions that columns refer to."""

    events: int
    subscriptions: int


def check_shared(header: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Check the header, the names and the events."""
    policies, objects = header.get("policies"), header.get("objects")
    check(isinstance(policies, list), _NAME, "field 'policies' is not a list")
    check(isinstance(objects, dict), _NAME, "field 'objects' is not an object")
    assert isinstance(policies, list)
    for name in _SHARED:
        check(name in columns, _NAME, f"column {name} is missing")
    for name in ("subscribers", "events", "subscriptions"):
        _check_names(name, columns[name])
    count = len(columns["events"])
    check_integers(columns, "us", count, EARLIEST_US, LATEST_US)
    check_integers(columns, "sequence", count, UNNUMBERED, LAST_SEQUENCE)
    us = columns["us"]
    check((us[1:] >= us[:-1]).all(), _NAME, "its events are not in order of time")
    for name in ("forms", "contents"):
        texts = columns.get(name, [])  # an event has no content unless it says so
        fits = isinstance(texts, list) and len(texts) in (0, count)
        check(fits, _NAME, f"column {name} is too short")
    check_integers(columns, "seats", len(columns["subscribers"]), 0, len(policies) - 1)
    _check_ruled(header, columns)
    used = np.unique(columns["seats"])
    check(len(used) == len(policies), _NAME, "it has a policy without subscribers")


def _check_ruled(header: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Check the groups of rules, each of one policy and with some subscribers."""
    rules, policies = header.get("rules", []), header["policies"]
    check(isinstance(rules, list), _NAME, "field 'rules' is not a list")
    for form in rules:
        fits = isinstance(form, dict) and form.keys() == {"policy", "rules", "owed"}
        check(fits, _NAME, f"rules have a policy, rules and what is owed, not {shown(form)}")
        index, listed = form["policy"], isinstance(form["rules"], list)
        known = type(index) is int and 0 <= index < len(policies)
        fits = known and listed and type(form["owed"]) is bool and isinstance(policies[index], dict)
        check(fits and "rules" not in policies[index], _NAME, f"rules are not {shown(form)}")
        check(bool(form["rules"]) or form["owed"], _NAME, "a group has no rules")
    if rules or "ruled" in columns:
        check("ruled" in columns, _NAME, "column ruled is missing")
        check_integers(columns, "ruled", len(columns["subscribers"]), 0, len(rules))
        seats = {*zip(columns["ruled"].tolist(), columns["seats"].tolist(), strict=True)}
        used = sorted(pair for pair in seats if pair[0])
        expected = [(number, form["policy"]) for number, form in enumerate(rules, start=1)]
        check(used == expected, _NAME, "the groups of rules are not those of the policies")


def check_disjoint(states: Sequence[Mapping[str, Any]]) -> None:
    """Check that no subscriber is in two snapshots that are restored together."""
    names = [name for columns in states for name in columns["subscribers"]]
    check(len(set(names)) == len(names), _NAME, "a subscriber is in two of them")


def _check_names(column: str, names: object) -> None:
    """Check that a column holds different texts, none of them empty."""
    check(isinstance(names, list), _NAME, f"column {column} does not hold texts")
    assert isinstance(names, list)
    distinct = set(names)
    check(len(distinct) == len(names), _NAME, f"column {column} has a name twice")
    check("" not in distinct, _NAME, f"column {column} has an empty name")


def check_integers(
    columns: Mapping[str, Any], name: str, count: int | None, low: int, high: int
) -> None:
    """Check that a column holds `count` integers from `low` to `high`."""
    column = columns[name]
    flat = isinstance(column, np.ndarray) and column.ndim == 1
    check(flat, _NAME, f"column {name} is not a flat array")
    check(column.dtype.kind in "iu", _NAME, f"column {name} does not hold integers")
    check(count in (None, len(column)), _NAME, f"column {name} has {len(column)} rows, not {count}")
    if len(column):
        least, most = int(column.min()), int(column.max())
        check(low <= least and most <= high, _NAME, f"column {name} has a number out of range")


def check_columns(
    cohort: RankedCohort | DiverseCohort, part: Arrays, rows: int, counts: ReferencedCounts
) -> None:
    """Check the lengths and the references of the columns of a cohort, as they were read."""
    diverse = isinstance(cohort, DiverseCohort)
    expected = _DIVERSE_COLUMNS if diverse else _RANKED_COLUMNS
    check(part.keys() == expected, _NAME, "the columns of a policy are not those of its kind")
    for number in range(4 if diverse else 7):
        low, high = (EARLIEST_US, LATEST_US) if number > 4 else (0, LAST_SEQUENCE)
        high = LAST_SEQUENCE - NEVER if number == 2 else high
        check_integers(part, f"head{number}", rows, low, high)
    entries = total(part["head3"])
    check_integers(part, "slot", entries, 0, counts.events - 1)
    marks = (1, 2 * LAST_SEQUENCE + 1) if diverse else (0, _LARGEST_INT32)
    check_integers(part, "mark", entries, *marks)
    check_integers(part, "sizes", entries, 0, _LARGEST_INT32)
    check_integers(part, "members", total(part["sizes"]), 0, counts.subscriptions - 1)
    check_scores(part, "score", entries)
    if not isinstance(cohort, DiverseCohort):
        cells = total(part["head4"]) if cohort.has_rings else 0
        check_integers(part, "ring", cells, 0, counts.events - 1)
        check_integers(part, "disorder", None, 0, 1)
        check(len(part["disorder"]) == 1, _NAME, "column disorder has more than one row")


def check_scores(part: Arrays, name: str, count: int) -> None:
    """Check that a column holds `count` ranks or scores."""
    column = part[name]
    check(column.dtype == np.float64 and column.shape == (count,), _NAME, f"{name}s are missing")
    in_range = ((column >= 0) & (column <= _LARGEST_SCORE)).all()
    check(in_range, _NAME, f"column {name} has a number out of range")


def total(column: AnyArray) -> int:
    """Return the sum of a column; lengths whose sum might overflow are refused."""
    if len(column):
        largest = int(column.max()) * len(column)
        check(largest <= LAST_SEQUENCE, _NAME, "a length is out of range")
    return int(column.sum(dtype=np.int64))


def check_diverse(cohort: DiverseCohort, part: Arrays) -> None:
    """Check that diverse windows have a valid size, and matches in order of arrival."""
    codes, events = cohort.codes, cohort.events
    seen, _, end, held = part["head"].T
    _check_held(codes, seen, end, held)
    numbers = part["mark"].astype(np.int64) >> 1
    starts = np.cumsum(held) - held
    rising = np.ones(len(numbers), np.bool_)
    rising[1:] = numbers[1:] > numbers[:-1]
    rising[starts[held > 0]] = True
    check(rising.all() and (numbers > 0).all(), _NAME, "matches are not in order of arrival")
    check((numbers <= np.repeat(seen, held)).all(), _NAME, "a match came after the last one")
    if codes.axis == MATCHING and policy_codes.has_ring(codes):
        within = np.arange(len(numbers)) - np.repeat(starts, held)
        first = np.repeat(seen - held + 1, held)
        check((numbers == first + within).all(), _NAME, "a window has a gap")
    fits = codes.window != HISTORY or (held <= codes.k).all()
    check(fits, _NAME, "a history holds more than k matches")
    _check_ends(codes, part["head"][:, [0, 2, 3]], events, part["slot"])
    bare = any(not events.forms[slot] for slot in np.unique(part["slot"]).tolist())
    check(not bare, _NAME, "an event that is compared with others has no attributes")


def check_ranked(cohort: RankedCohort, part: Arrays) -> None:
    """Check that windows without diversity have a valid size, and lists in order."""
    codes, window = cohort.codes, cohort.codes.window
    seen, _, end, size, held, *times = part["head"].T
    if cohort.has_rings:
        _check_held(codes, seen, end, held)
        check((size <= held).all(), _NAME, "a list is longer than its window")
    else:
        check((size <= codes.k).all(), _NAME, "a list is longer than k")
        counted = (size <= held).all() if window == PERIODIC else not held.any()
        check(counted, _NAME, "a count is wrong")
    check(window == PERIODIC or not np.any(times), _NAME, "a window has times it cannot have")
    check((held <= seen).all(), _NAME, "a window holds more than it has seen")
    if window != HISTORY and not codes.leave and len(part["mark"]):
        most = 2 * codes.k - 1 if codes.prune else 1
        check(part["mark"].max() <= most, _NAME, "a mark is out of range")
    if cohort.has_rings:
        counters = np.stack([seen, end, held], axis=1)
        _check_ends(codes, counters, cohort.events, part["ring"])
    else:
        _check_period(codes, seen, end, held, times[1])
    _check_order(cohort, part)


def _check_held(codes: PolicyCodes, seen: Int64s, end: Int64s, held: Int64s) -> None:
    """Check that windows are not so full that the next match has no place."""
    check((held <= seen).all(), _NAME, "a window holds more than it has seen")
    check((held < policy_codes.LONGEST).all(), _NAME, "a window holds too many matches")
    if codes.axis != MATCHING or not policy_codes.has_ring(codes):
        return
    if codes.window != JUMPING:
        check((held <= codes.length).all(), _NAME, "a window is longer than its policy allows")
        return
    first = np.where(end == NEVER, seen, end - codes.step - codes.length)
    check((seen - held >= first).all(), _NAME, "a window is longer than its policy allows")


def _check_ends(codes: PolicyCodes, counters: Int64s, events: EventTable, slots: AnyArray) -> None:
    """Check that the matches of a window lead to its open end.

    Steps up to an end are taken one by one, so one from long ago would take forever.
    """
    seen, end, held = counters.T
    is_open = end != NEVER
    if codes.window not in (PERIODIC, JUMPING):
        check(not is_open.any(), _NAME, "a window without periods waits for an end")
        return
    check((held[is_open] > 0).all(), _NAME, "an empty window waits for an end")
    if codes.window == JUMPING:
        check((is_open | (held == 0)).all(), _NAME, "a window does not wait for its next step")
    if codes.step_axis == MATCHING:
        newest, farthest = seen[is_open], codes.step
    else:
        newest = _newest(events, codes.step_axis, held, slots)[is_open]
        farthest = codes.step + (codes.length if codes.window == JUMPING else 0)
    wait = end[is_open] - newest
    check(((wait > 0) & (wait <= farthest)).all(), _NAME, "a window waits for a wrong end")


def _newest(events: EventTable, axis: int, held: Int64s, slots: AnyArray) -> Int64s:
    """Return the last position of each window on an axis; 0 if it is empty."""
    newest, full = np.zeros(len(held), np.int64), held > 0
    positions = events.us[slots] if axis == TIME else events.sequence[slots] - 1
    if full.any():
        newest[full] = np.maximum.reduceat(positions, (np.cumsum(held) - held)[full])
    return newest


def _check_period(
    codes: PolicyCodes, seen: Int64s, end: Int64s, held: Int64s, newest: Int64s
) -> None:
    """Check the open ends of windows without a ring, of which only periods have any."""
    is_open = end != NEVER
    if codes.window != PERIODIC:
        check(not is_open.any(), _NAME, "a window without periods waits for an end")
        return
    check((held[is_open] > 0).all(), _NAME, "an empty window waits for an end")
    if codes.step_axis != PUBLISHED:
        last = seen if codes.step_axis == MATCHING else newest
        wait = end[is_open] - last[is_open]
        check(((wait > 0) & (wait <= codes.step)).all(), _NAME, "a window waits for a wrong end")


def _check_order(cohort: RankedCohort, part: Arrays) -> None:
    """Check that lists and rings are in the order that they are searched by."""
    events, rings = cohort.events, cohort.has_rings
    size, held = (np.ascontiguousarray(part["head"][:, number]) for number in (3, 4))
    slots, count = part["slot"].astype(np.int32), len(events.us)
    keys = np.empty(len(slots), np.float64)
    order_keys(cohort.decay, part["score"].copy(), events.us[slots], keys)
    positions = {TIME: events.us, PUBLISHED: events.sequence}
    axis = positions.get(cohort.codes.axis, np.zeros(count, np.int64))
    tree = np.zeros(int(held.max(initial=0)) + 1 if rings else 1, np.int64)
    row = first_invalid_row(
        RestoredRows(size, held),
        RestoredEntries(slots, keys, part["mark"].astype(np.int32), part["ring"].astype(np.int32)),
        RestoredEvents(events.us, events.id_order, axis),
        ValidationScratch(np.full(count, -1), np.full(count, -1), tree),
        rings,
        cohort.codes.prune,
    )
    if row >= 0:
        raise damaged(_NAME, "the list of a window is not in order")
