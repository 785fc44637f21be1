"""Rows of rules: they are opened and freed, and their pools compacted and lengthened."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import (
    ROW,
    content_of,
    finish,
    group_for,
    picks_of,
    play,
    rule_group,
    slots_of,
    tables_of,
)
from tests.rules import streams

from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.codes import rule_set
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    HELD,
    MOST_CELLS,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
)
from tidings.feed.columnar.rules.rows import ReceivedEvents, RuleRows
from tidings.model.records import Event
from tidings.policy import Policy
from tidings.window import Pick

SECOND = 1_000_000
LATER = 30 * 1_440 * streams.MINUTE_US
RULES = ["different", {"name": "quota", "n": 2, "per": "9s"}, "quiet"]


def rows_of(*rules: object) -> RuleRows:
    return RuleRows(rule_set(Policy(rules=rules), owed=False), tables_of([]))


def test_new_rows_are_empty_and_not_due() -> None:
    rows = rows_of(*RULES)
    assert len(rows) == 0
    assert rows.enrol_many(np.array([7, 3])).tolist() == [0, 1]
    assert len(rows) == 2
    assert rows.subscriber[:2].tolist() == [7, 3]
    assert rows.sent[:2].tolist() == [0, 0]
    assert rows.deadline[:2].tolist() == [FAR, FAR]
    assert rows.lists[:6, [HELD, SLAB_CLASS]].tolist() == [[0, -1]] * 6
    assert rows.rings[:4, [SIZE, RING_CLASS]].tolist() == [[0, -1]] * 4
    assert (rows.end[:6] == -FAR).all()
    assert rows.soonest == FAR


def test_a_row_that_was_freed_is_given_to_the_next() -> None:
    rows = rows_of("quiet")
    rows.enrol_many(np.arange(5))
    rows.free(3)
    assert len(rows) == 4
    assert rows.enrol_many(np.array([9])).tolist() == [3]
    assert rows.subscriber[3] == 9
    assert len(rows) == 5


@given(st.lists(st.integers(0, 40), max_size=6))
def test_rows_are_distinct_however_many_come_at_once(sizes: list[int]) -> None:
    rows, given_out = rows_of("quiet"), list[int]()
    for size in sizes:
        given_out += rows.enrol_many(np.arange(size)).tolist()
        assert len(rows) == len(given_out)
    assert len({*given_out}) == len(given_out)
    assert max(given_out, default=-1) < len(rows.heads)
    assert len(rows.heads) <= 2 * len(given_out) + 16
    assert rows.deadline[given_out].tolist() == [FAR] * len(given_out)


def test_lines_and_rings_of_rows_follow_each_other() -> None:
    rows = rows_of(*RULES)
    assert rows.lines(np.array([2, 0])).tolist() == [6, 7, 8, 0, 1, 2]
    assert rows.ring_numbers(np.array([2, 0])).tolist() == [4, 5, 0, 1]
    assert rows.lines(np.zeros(0, np.int64)).tolist() == []
    assert rows_of("quiet").ring_numbers(np.array([3])).tolist() == []


def test_the_soonest_deadline_is_never_late() -> None:
    rows = rows_of("quiet")
    rows.enrol_many(np.arange(3))
    rows.deadline[:2] = 50, 30
    rows.note_deadlines(np.array([50, 30]))
    assert rows.soonest == 30
    rows.note_deadlines(np.zeros(0, np.int64))
    rows.note_deadlines(np.array([90]))
    assert rows.soonest == 30
    rows.deadline[1] = FAR
    assert rows.soonest == 30  # until somebody looks
    rows.find_soonest()
    assert rows.soonest == 50


def test_restored_rows_are_noted() -> None:
    rows = rows_of("different")
    rows.enrol_many(np.arange(4))
    assert not rows.any_restored
    rows.note_restored(np.array([1, 3]))
    assert rows.any_restored
    assert rows.is_restored[:4].tolist() == [False, True, False, True]


def test_numbers_of_arrivals_rise_over_all_lines() -> None:
    rows = rows_of("quiet")
    assert rows.arrivals(3).tolist() == [1, 2, 3]
    assert rows.arrivals(0).tolist() == []
    assert rows.arrivals(2).tolist() == [4, 5]
    assert rows.held_pool().arrivals.tolist() == [5]


def test_received_events_are_read_as_they_were_written() -> None:
    rows = rule_group(["different"]).rows  # event 8 is published at 2 s
    received = ReceivedEvents(np.array([8, 8, 0], np.int32), np.array([2 * SECOND, 5, 0]))
    rows.put_received(np.array([4, 1, 2]), received)
    assert rows.got_slot[[4, 1, 2]].tolist() == [8, ~8, 0]
    found = rows.received(np.array([1, 4, 2]))
    assert found.slot.tolist() == [8, 8, 0]
    assert found.us.tolist() == [5, 2 * SECOND, 0]


def test_periods_begin_one_length_before_they_end() -> None:
    rows = rule_group(
        [{"name": "quota", "n": 1, "per": "9s"}, {"name": "quota", "n": 1}, "different", "quiet"]
    ).rows
    lines = rows.lines(np.array([0, 1]))
    assert rows.starts(lines).tolist() == [-FAR] * 8
    day = 86_400 * SECOND
    rows.end[:4] = 70, 18 * SECOND, 3 * day, 99  # `different` is first
    assert rows.starts(lines).tolist() == [70, 9 * SECOND, 2 * day, -FAR, *[-FAR] * 4]


def test_the_day_on_which_clocks_go_back_is_longer() -> None:
    rows = rule_group([{"name": "quota", "n": 1, "zone": "Europe/Athens"}]).rows
    quota = rows.rules.calendars[0]
    assert quota is not None
    us = 1_792_900_800 * SECOND  # 2026-10-25
    [day] = quota.between(us, us + 1)
    rows.end[[0, 2]] = day.end
    assert rows.starts(np.array([0, 1, 2])).tolist() == [day.start, -FAR, day.start]
    assert day.end - day.start == 25 * 3_600 * SECOND


@pytest.mark.parametrize("names", [("held",), ("ranks",), ("got",), ("held", "ranks", "got")])
@settings(max_examples=25)
@given(policy=streams.policies, chosen=streams.picks())
def test_compaction_changes_nothing(
    names: tuple[str, ...], policy: Policy, chosen: list[Pick]
) -> None:
    events, picks = slots_of(chosen)
    results = []
    for compacts in (False, True):
        group, parts = group_for(policy, events), []
        for number in range(len(chosen)):
            parts.append(play(group, picks, number, number + 1))
            if number % 3 == 0:
                play(group, picks, number, number + 1, row=0)  # so that there are gaps
            if number % 5 == 0:
                group.reset(0)
            if compacts:
                for name in names:
                    group.rows._compact(getattr(group.rows, name))
        parts.append(finish(group, chosen[-1].at_us + LATER))
        results.append(content_of(group, *parts))
    assert results[0] == results[1]


def busy() -> RuleGroup:
    """Return rows that hold, remember and received something."""
    group = rule_group(RULES, cells=0)
    events = [(slot, slot * SECOND, slot % 5 / 10) for slot in range(3, 32)]
    for row in (0, 1, 2):
        play(group, picks_of(events), 0, len(events), row=row)
    return group


def test_compaction_leaves_no_gap() -> None:
    group = busy()
    rows = group.rows
    group.reset(1)
    for pool, first in ((rows.held, 1), (rows.ranks, 0), (rows.got, 0)):
        name, _, start, slab_class = pool.columns
        rows._compact(pool)
        columns = getattr(rows, name)
        is_other = np.zeros(len(columns), np.bool_)
        if name == "rings":
            kinds = rows.rules.codes.kind[np.arange(len(columns)) % rows.ringed]
            is_other = (kinds == layout.DIFFERENT) != (pool is rows.got)
        owners = np.flatnonzero((columns[:, slab_class] >= 0) & ~is_other)
        assert len(owners)
        ends = columns[owners, start] + pool.slabs.capacity[columns[owners, slab_class]]
        assert sorted(columns[owners, start].tolist()) == sorted([first, *ends.tolist()])[:-1]
        assert pool.slabs.used[0] == max(ends)
        assert (pool.slabs.free == -1).all()


def test_room_is_made_only_where_it_is_missing() -> None:
    rows = rule_group(RULES).rows
    sizes = [rows.nbytes]
    for more in (1, 40, 10_000):
        rows.make_room(ROW, more)
        sizes.append(rows.nbytes)
    assert sizes[0] == sizes[1] == sizes[2] < sizes[3]


def test_a_pool_cannot_have_more_cells_than_its_numbers_reach() -> None:
    rows = rows_of("different")
    with pytest.raises(MemoryError) as error:
        rows._lengthen(rows.got, MOST_CELLS + 1)
    assert str(error.value) == (
        "a policy holds or remembers 2147483648 events; the most are 2^31 - 1"
    )
    assert len(rows.got_us) == 0


def test_full_rings_of_ranks_leave_no_room_over() -> None:
    rows = rows_of({"name": "quota", "n": 1})
    rows.enrol_many(np.arange(10))
    rows._lengthen(rows.ranks, 1_900)
    assert len(rows.packed) <= 10 * layout.REMEMBERED + 15


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9])
def test_a_slab_is_taken_for_a_list_that_has_none(size: int) -> None:
    rows = rule_group(RULES).rows
    used = int(rows.held.slabs.used[0])
    assert rows.take_slab(rows.held, 4, size) == used
    assert rows.lists[4, HELD] == size
    if size == 0:
        assert rows.lists[4, SLAB_CLASS] == -1
        assert rows.held.slabs.used[0] == used
    else:
        capacity = rows.held.slabs.capacity[rows.lists[4, SLAB_CLASS]]
        assert size <= capacity
        assert rows.held.slabs.used[0] == used + capacity
        assert rows.held_cells(np.array([4])).tolist() == [*range(used, used + size)]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9))
def test_slabs_are_given_with_room_for_one_more(sizes: list[int]) -> None:
    rows = rule_group(["quiet"], cells=0).rows
    rows.enrol_many(np.arange(20))
    lines = np.arange(len(sizes))
    rows.lists[lines, HELD] = sizes
    rows.give_slabs(rows.held, lines)
    cells = rows.held_cells(lines).tolist()
    assert len({*cells}) == len(cells) == sum(sizes)
    assert min(cells, default=1) == 1
    for line, size in enumerate(sizes):
        size_class = rows.lists[line, SLAB_CLASS]
        if size == 0:
            assert size_class == -1
        else:
            assert rows.held.slabs.capacity[size_class] > size
            assert rows.lists[line, SLAB] + rows.held.slabs.capacity[size_class] <= len(
                rows.held_value
            )


def test_rings_are_read_from_their_oldest_on() -> None:
    rows = rule_group(["different", {"name": "quota", "n": 1}]).rows
    rows.rings[2, [RING, RING_CLASS, layout.FRONT, SIZE]] = 20, 0, 3, 3
    rows.rings[4, [RING, RING_CLASS, layout.FRONT, SIZE]] = 40, 1, 0, 2
    assert rows.got_cells(np.array([2, 4])).tolist() == [23, 20, 21, 40, 41]
    assert rows.got_cells(np.zeros(0, np.int64)).tolist() == []


def test_lists_are_ordered_by_what_they_are_sorted_by() -> None:
    """By rank for a quota, by score for quiet hours, then by id; what is owed as it came."""
    rules = [{"name": "quota", "n": 9}, "quiet"]
    group = rule_group(rules, owed=True, events=[Event(name, {}, 0) for name in "dbca"])
    rows = group.rows
    cells = np.zeros((4, layout.CELL_WIDTH), np.int64)
    cells[:, layout.EVENT] = [0, 1, 2, 3]
    ranks, scores = np.array([0.5, 0.5, 0.1, 0.9]), np.array([0.2, 0.8, 0.8, 0.2])
    expected = {0: "abdc", 1: "bcad", 2: "dbca"}
    for line, names in expected.items():
        order = rows.list_order(np.full(4, line), cells, ranks, scores)
        assert "".join("dbca"[place] for place in order.places) == names
        values = scores if line == 1 else ranks
        assert order.values.tolist() == values[order.places].tolist()


def test_diversifiers_take_quiet_hours_as_they_came() -> None:
    group = rule_group(["quiet"], diversify="divrank")
    cells = np.zeros((3, layout.CELL_WIDTH), np.int64)
    cells[:, layout.EVENT] = 9, 4, 30
    values = np.array([0.1, 0.9, 0.5])
    order = group.rows.list_order(np.zeros(3, np.int64), cells, values, values)
    assert order.places.tolist() == [0, 1, 2]


def test_all_handles_of_held_events_are_returned() -> None:
    group = busy()
    held = group.rows.lists[:, HELD].sum()
    assert held > 0
    group.rows.held_cell[1:, layout.HANDLE] = 7
    assert group.rows.handles().tolist() == [7] * int(held)
