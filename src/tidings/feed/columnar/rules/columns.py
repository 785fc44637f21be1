"""The state of rules as columns of a snapshot, without unused cells, and back.

    by subscriber    sent, paused
    by line          start, end, passed, chosen, before, held, size
    by held event    slot, handle, position, opened, closed, width, at, rank, score
    by ring          ranks (quota), got and gotus (different)

Lines are in the order of subscribers and places, held events in that of their arrival.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.policy_codes import LONGEST
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    BEFORE,
    CHOSEN,
    DIFFERENT,
    FRONT,
    HANDLE,
    HELD,
    PASSED,
    QUOTA,
    SIZE,
)
from tidings.feed.columnar.rules.rows import ReceivedEvents, RuleRows
from tidings.feed.columnar.snapshot_check import (
    ReferencedCounts,
    check_integers,
    check_scores,
    total,
)
from tidings.feed.snapshot_header import FRAME, Arrays
from tidings.formats.binary import check
from tidings.model.records import LAST_SEQUENCE
from tidings.model.values import EARLIEST_US, LATEST_US

_RING_COLUMNS: Final = {"passed": PASSED, "chosen": CHOSEN, "before": BEFORE, "size": SIZE}
_CELLS: Final = {
    "slot": layout.EVENT,
    "position": layout.POSITION,
    "opened": layout.WINDOW_START,
    "closed": layout.WINDOW_STOP,
    "width": layout.WIDTH,
    "at": layout.AT,
}
_MOST: Final = 1 << 30
_FARTHEST_US: Final = 1 << 60
NAMES: Final = {
    *("sent", "paused", "start", "end", "sizes", "members", "rank", "score"),
    *("ranks", "got", "gotus"),
    *("held", *_RING_COLUMNS),
    *_CELLS,
}


def rule_columns(state: RuleRows, rows: Int64s) -> Arrays:
    """Return the state of some rows; column `handle` has the handles of held events."""
    lines, rings = state.lines(rows), state.ring_numbers(rows)
    kinds = np.tile(state.rules.codes.kind, len(rows))
    cells, held = state.held_cells(lines), state.lists[lines, HELD].astype(np.int64)
    owners = np.repeat(np.arange(len(lines)), held)
    cells = cells[np.lexsort((state.held_cell[cells, ARRIVAL], owners))]
    has_ring, ring_kinds = (kinds == DIFFERENT) | (kinds == QUOTA), _ring_kinds(state, len(rows))
    by_line = np.zeros((len(lines), layout.RING_WIDTH), np.int64)
    by_line[has_ring] = state.rings[rings]
    got = state.received(state.got_cells(rings[ring_kinds == DIFFERENT]))
    return {
        "sent": state.sent[rows],
        "paused": state.paused[rows],
        "start": state.starts(lines),
        "end": np.where(kinds == DIFFERENT, -FAR, state.end[lines]),
        "held": held,
        **{name: by_line[:, column] for name, column in _RING_COLUMNS.items()},
        **{name: state.held_cell[cells, column] for name, column in _CELLS.items()},
        "handle": state.held_cell[cells, HANDLE].astype(np.int32),
        "rank": state.held_rank[cells],
        "score": state.held_score[cells],
        "ranks": state.packed.get(state.rank_cells(rings[ring_kinds == QUOTA])),
        "got": got.slot,
        "gotus": got.us,
    }


def check_rules(state: RuleRows, part: Arrays, rows: int, counts: ReferencedCounts) -> None:
    """Check the lengths, the ranges and the references of columns, as they were read."""
    name, lines = FRAME.name, rows * state.places
    check(part.keys() == NAMES, name, "the columns of rules are not complete")
    check_integers(part, "sent", rows, 0, LAST_SEQUENCE)
    check_integers(part, "paused", rows, 0, 1)
    for column in ("held", *_RING_COLUMNS):
        check_integers(part, column, lines, 0, _MOST)
    for column in ("start", "end"):
        check_integers(part, column, lines, -FAR, _FARTHEST_US)
    kinds, held, size = np.tile(state.rules.codes.kind, rows), part["held"], part["size"]
    check((held < LONGEST).all() and (size < LONGEST).all(), name, "a rule holds too much")
    check(not held[kinds == DIFFERENT].any(), name, "a rule holds events that cannot")
    check((size[kinds == QUOTA] <= layout.REMEMBERED).all(), name, "a quota has too many ranks")
    check(not size[(kinds != QUOTA) & (kinds != DIFFERENT)].any(), name, "a ring has no rule")
    events = total(held)
    check_integers(part, "slot", events, 0, counts.events - 1)
    check_integers(part, "position", events, 1, LAST_SEQUENCE)
    check_integers(part, "width", events, 0, LAST_SEQUENCE)
    for column in ("opened", "closed"):
        check_integers(part, column, events, EARLIEST_US, LATEST_US)
    check_integers(part, "at", events, -_FARTHEST_US, _FARTHEST_US)
    check_integers(part, "sizes", events, 0, _MOST)
    check_integers(part, "members", total(part["sizes"]), 0, counts.subscriptions - 1)
    for column in ("rank", "score"):
        check_scores(part, column, events)
    check_scores(part, "ranks", total(size[kinds == QUOTA]))
    check_integers(part, "got", total(size[kinds == DIFFERENT]), 0, counts.events - 1)
    check_integers(part, "gotus", len(part["got"]), -_FARTHEST_US, _FARTHEST_US)


def fill_rules(state: RuleRows, rows: AnyArray, part: Arrays, handles: Int32s) -> None:
    """Restore the state of some empty rows; slots are those of the event table."""
    lines, rings = state.lines(rows), state.ring_numbers(rows)
    kinds, ring_kinds = np.tile(state.rules.codes.kind, len(rows)), _ring_kinds(state, len(rows))
    state.sent[rows], state.paused[rows] = part["sent"], part["paused"]
    state.end[lines] = np.where(kinds == DIFFERENT, part["start"], part["end"])
    state.lists[lines, HELD] = part["held"]
    has_ring = (kinds == DIFFERENT) | (kinds == QUOTA)
    for name, column in _RING_COLUMNS.items():
        state.rings[rings, column] = part[name][has_ring]
    state.rings[rings, FRONT] = 0
    quotas, differents = rings[ring_kinds == QUOTA], rings[ring_kinds == DIFFERENT]
    state.give_slabs(state.ranks, quotas)
    state.packed.put(state.rank_cells(quotas), part["ranks"])
    state.give_slabs(state.got, differents)
    received = ReceivedEvents(part["got"], part["gotus"])
    state.put_received(state.got_cells(differents), received)
    _fill_held(state, lines, part, handles)
    held = state.lists[lines, HELD] > 0
    ends = np.where(held, state.end[lines], FAR).reshape(len(rows), state.places)
    state.deadline[rows] = ends.min(axis=1)
    state.note_restored(rows)


def _ring_kinds(state: RuleRows, rows: int) -> Int64s:
    return np.tile(state.rules.codes.kind[: state.ringed], rows)


def _fill_held(state: RuleRows, lines: Int64s, part: Arrays, handles: Int32s) -> None:
    count = len(handles)
    cells = np.zeros((count, layout.CELL_WIDTH), np.int64)
    for name, column in _CELLS.items():
        cells[:, column] = part[name]
    cells[:, HANDLE], cells[:, ARRIVAL] = handles, state.arrivals(count)
    ranks, scores = part["rank"].astype(np.float64), part["score"].astype(np.float64)
    state.give_slabs(state.held, lines)
    held = state.lists[lines, HELD].astype(np.int64)
    order = state.list_order(np.repeat(np.arange(len(lines)), held), cells, ranks, scores)
    targets = state.held_cells(lines)  # as they lie, so that they are positions as well
    state.held_cell[targets] = cells[order.places]
    state.held_rank[targets] = ranks[order.places]
    state.held_score[targets] = scores[order.places]
    state.held_value[targets] = order.values
