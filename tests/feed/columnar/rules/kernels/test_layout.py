"""The columns of rules: each has a place of its own, and those that are copied are in one order."""

import numpy as np
import pytest

from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import Turns

VERDICTS = (
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
    "verdicts": (VERDICTS, layout.VERDICT_WIDTH),
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
    turns = Turns(columns[0].astype(np.int32), *columns[1:], np.array([0, 2, 2, 5, 6, 9]))
    first = turns.first_ones(count)
    assert first.row.tolist() == [0, 1, 2, 3, 4][:count]
    assert first.subscriber.tolist() == [10, 11, 12, 13, 14][:count]
    assert first.us.tolist() == [20, 21, 22, 23, 24][:count]
    assert first.order.tolist() == [30, 31, 32, 33, 34][:count]
    assert first.first.tolist() == [0, 2, 2, 5, 6, 9][: count + 1]
