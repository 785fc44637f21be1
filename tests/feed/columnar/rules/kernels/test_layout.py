"""The columns of rules: each has a place of its own, and those that are copied are in one order."""

import numpy as np
import pytest
from tests.feed.columnar.rules.groups import put, room, rule_group

from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import Turns

VERDICT_COLUMNS = (
    *("VERDICT_SUBSCRIBER", "VERDICT_PLACE", "REASON", "VERDICT_EVENT", "VERDICT_AT"),
    *("UNTIL", "OTHER", "DETAIL", "LEFT"),
)
PROGRESS = (
    *("NEXT", "PICK", "OUT", "VERDICTS", "STOP", "PLACE", "WANTED", "MISSING_US", "JUDGED"),
    *("MOVED", "PREFERRED", "SUBSCRIBER"),
)
RINGS = ("PASSED", "CHOSEN", "BEFORE", "RING", "RING_CLASS", "FRONT", "SIZE")
COPIED = ("EVENT", "HANDLE", "POSITION", "WINDOW_START", "WINDOW_STOP", "WIDTH")
GROUPS = {
    "heads": (("SENT", "DEADLINE"), layout.HEAD_WIDTH),
    "lists": (("HELD", "SLAB", "SLAB_CLASS"), layout.LIST_WIDTH),
    "rings": (RINGS, layout.RING_WIDTH),
    "cells": ((*COPIED, "AT", "ARRIVAL"), layout.CELL_WIDTH),
    "verdicts": (VERDICT_COLUMNS, layout.VERDICT_WIDTH),
    "progress": (PROGRESS, layout.PROGRESS_WIDTH),
    "spans": (("LATEST_SPAN", "LATEST_LOW", "LATEST_HIGH"), layout.LATEST_WIDTH),
}


@pytest.mark.parametrize("name", GROUPS)
def test_columns_have_places_of_their_own(name: str) -> None:
    columns, width = GROUPS[name]
    assert sorted(getattr(layout, column) for column in columns) == list(range(width))


def test_the_first_columns_of_a_cell_are_those_of_a_delivery() -> None:
    """They are copied without a look at what they are."""
    of_delivery = [
        deliveries.EVENT,
        deliveries.HANDLE,
        deliveries.POSITION,
        deliveries.START,
        deliveries.STOP,
        deliveries.WIDTH,
    ]
    assert len(of_delivery) == layout.COPIED
    assert [getattr(layout, column) for column in COPIED] == [
        column - deliveries.EVENT for column in of_delivery
    ]


def test_no_time_of_a_verdict_is_none() -> None:
    assert -deliveries.FAR <= layout.NONE < -(1 << 60)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_first_turns_end_where_the_next_one_begins(count: int) -> None:
    columns = [np.arange(5) + 10 * column for column in range(4)]
    row, subscriber, us, order = columns
    first = np.array([0, 2, 2, 5, 6, 9])
    turns = Turns(row.astype(np.int32), subscriber, us, order, first)
    kept = turns.first_ones(count)
    assert kept.row.tolist() == [0, 1, 2, 3, 4][:count]
    assert kept.subscriber.tolist() == [10, 11, 12, 13, 14][:count]
    assert kept.us.tolist() == [20, 21, 22, 23, 24][:count]
    assert kept.order.tolist() == [30, 31, 32, 33, 34][:count]
    assert kept.first.tolist() == [0, 2, 2, 5, 6, 9][: count + 1]


def test_a_verdict_overwrites_each_column_of_its_row() -> None:
    arrays, output = rule_group(["quiet"]).arrays, room()
    output.verdicts[:], output.figures[:] = 77, 7.5
    output.progress[layout.SUBSCRIBER] = 12
    put(arrays, 3, 9, 1_000, 0.5, 0.5)
    assert layout.judge(arrays, output, 4, 3, layout.EXPECTED) == 0
    written = dict(enumerate(output.verdicts[0].tolist()))
    assert written == {
        layout.VERDICT_SUBSCRIBER: 12,
        layout.VERDICT_PLACE: 4,
        layout.REASON: layout.EXPECTED,
        layout.VERDICT_EVENT: 9,
        layout.VERDICT_AT: 1_000,
        layout.UNTIL: layout.NONE,
        layout.OTHER: layout.NONE,
        layout.DETAIL: layout.NONE,
        layout.LEFT: 0,
    }
    assert len(written) == layout.VERDICT_WIDTH
    assert output.figures[0] == 0.0
    assert (output.verdicts[1:] == 77).all()


@pytest.mark.parametrize("before", [0, 1, 5])
def test_verdicts_follow_each_other(before: int) -> None:
    arrays, output = rule_group(["quiet"]).arrays, room()
    output.progress[layout.VERDICTS] = before
    for number in range(3):
        put(arrays, 0, number, number, 0.5, 0.5)
        assert layout.judge(arrays, output, 0, 0, layout.TOO_NEAR) == before + number
    assert output.progress[layout.VERDICTS] == before + 3
    assert output.verdicts[before : before + 3, layout.VERDICT_EVENT].tolist() == [0, 1, 2]
    others = np.delete(output.progress, layout.VERDICTS)
    assert others.tolist().count(0) == len(others) - 1  # JUDGED is -1 from the beginning
