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
from tidings.feed.columnar.ranked_cohort import concatenated_ranges
from tidings.feed.columnar.rules.group import GOT_POOLS, HELD_POOLS, RuleGroup
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    BEFORE,
    CHOSEN,
    DIFFERENT,
    END,
    FRONT,
    HANDLE,
    HELD,
    PASSED,
    QUOTA,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    START,
)
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

_COUNTS: Final = {"passed": PASSED, "chosen": CHOSEN, "before": BEFORE, "held": HELD, "size": SIZE}
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
    *_COUNTS,
    *_CELLS,
}


def rule_columns(group: RuleGroup, rows: Int64s) -> Arrays:
    """Return the state of some rows; column `handle` has the handles of held events."""
    lines = group.lines(rows)
    kinds, counts = np.tile(group.rules.codes.kind, len(rows)), group.count[lines].astype(np.int64)
    cells = concatenated_ranges(group.span[lines, SLAB], counts[:, HELD])
    owners = np.repeat(np.arange(len(lines)), counts[:, HELD])
    cells = cells[np.lexsort((group.held_cell[cells, ARRIVAL], owners))]
    counts[kinds == layout.QUIET, SIZE] = 0  # a choice that was not delivered is made again
    got = group.got_cells(lines[kinds == DIFFERENT])
    return {
        "sent": group.sent[rows],
        "paused": group.paused[rows],
        "start": group.span[lines, START],
        "end": group.span[lines, END],
        **{name: counts[:, column] for name, column in _COUNTS.items()},
        **{name: group.held_cell[cells, column] for name, column in _CELLS.items()},
        "handle": group.held_cell[cells, HANDLE].astype(np.int32),
        "rank": group.held_rank[cells],
        "score": group.held_score[cells],
        "ranks": group.rank[group.rank_cells(lines[kinds == QUOTA])],
        "got": group.got_slot[got],
        "gotus": group.got_us[got],
    }


def check_rules(group: RuleGroup, part: Arrays, rows: int, counts: ReferencedCounts) -> None:
    """Check the lengths, the ranges and the references of columns, as they were read."""
    name, lines = FRAME.name, rows * group.places
    check(part.keys() == NAMES, name, "the columns of rules are not complete")
    check_integers(part, "sent", rows, 0, LAST_SEQUENCE)
    check_integers(part, "paused", rows, 0, 1)
    for column in _COUNTS:
        check_integers(part, column, lines, 0, _MOST)
    for column in ("start", "end"):
        check_integers(part, column, lines, -FAR, _FARTHEST_US)
    kinds, held, size = np.tile(group.rules.codes.kind, rows), part["held"], part["size"]
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


def fill_rules(group: RuleGroup, rows: AnyArray, part: Arrays, handles: Int32s) -> None:
    """Restore the state of some empty rows; slots are those of the event table."""
    lines = group.lines(rows)
    kinds = np.tile(group.rules.codes.kind, len(rows))
    group.sent[rows], group.paused[rows] = part["sent"], part["paused"]
    group.span[lines, START], group.span[lines, END] = part["start"], part["end"]
    for name, column in _COUNTS.items():
        group.count[lines, column] = part[name]
    group.count[lines, FRONT] = 0
    quotas, differents = lines[kinds == QUOTA], lines[kinds == DIFFERENT]
    group.give_slabs(group.rank_slabs, quotas, (SIZE, RING, RING_CLASS), ("rank",))
    group.rank[group.rank_cells(quotas)] = part["ranks"]
    group.give_slabs(group.got_slabs, differents, (SIZE, RING, RING_CLASS), GOT_POOLS)
    got = group.got_cells(differents)
    group.got_slot[got], group.got_us[got] = part["got"], part["gotus"]
    _fill_held(group, lines, part, handles)
    held = group.count[lines, HELD] > 0
    ends = np.where(held, group.span[lines, END], FAR).reshape(len(rows), group.places)
    group.deadline[rows] = ends.min(axis=1)
    group.note_restored(rows)


def _fill_held(group: RuleGroup, lines: Int64s, part: Arrays, handles: Int32s) -> None:
    count = len(handles)
    cells = np.zeros((count, layout.CELL_WIDTH), np.int64)
    for name, column in _CELLS.items():
        cells[:, column] = part[name]
    cells[:, HANDLE], cells[:, ARRIVAL] = handles, group.arrivals(count)
    ranks, scores = part["rank"].astype(np.float64), part["score"].astype(np.float64)
    group.give_slabs(group.held_slabs, lines, (HELD, SLAB, SLAB_CLASS), HELD_POOLS)
    held = group.count[lines, HELD].astype(np.int64)
    order = group.list_order(np.repeat(np.arange(len(lines)), held), cells, ranks, scores)
    targets = concatenated_ranges(group.span[lines, SLAB], held)
    group.held_cell[targets] = cells[order.places]
    group.held_rank[targets] = ranks[order.places]
    group.held_score[targets] = scores[order.places]
    group.held_value[targets] = order.values
