"""Operations of all diverse windows, compared with a list of matches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, Sent, batches, output_of
from tests.feed.columnar.kernels.diverse import diverse_cohort
from tests.feed.columnar.kernels.models import place_of
from tests.feed.columnar.kernels.windows import US
from tests.feed.columnar.test_diverse_cohort import kept_places

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels import diverse_buffer, diverse_choose, diverse_windows
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    DONE,
    FAR,
    HELD,
    OUT,
    SENT,
    Arrival,
    AxisRange,
    DiverseWindows,
    Output,
    WindowExtent,
)

AXES: dict[str, Any] = {
    "matching": {"name": "sliding", "length": 50},
    "published": {"name": "sliding", "length": 50, "count": "published"},
    "time": {"name": "sliding", "length": "1d"},
    "history": {"name": "history", "length": 50},
}


@kernel
def enter(windows: DiverseWindows, row: int, match: Arrival) -> int:
    diverse_buffer.reserve_place(windows.buffer, row)
    return diverse_buffer.add_match(windows.buffer, row, match)


@kernel
def drop_below(windows: DiverseWindows, row: int, low: int) -> None:
    diverse_windows.drop_below(windows, row, low)


@kernel
def measure(windows: DiverseWindows, row: int, within: AxisRange) -> tuple[int, int, int]:
    return diverse_choose.measure_range(windows, row, within)


@kernel
def start_of(windows: DiverseWindows, row: int, match: Arrival) -> int:
    return diverse_windows.window_start(windows, row, match)


@kernel
def deliver(
    windows: DiverseWindows, output: Output, row: int, chosen: Int32s, extent: WindowExtent
) -> None:
    diverse_windows.deliver_chosen(windows, output, row, 5, chosen, extent)


@kernel
def finish(windows: DiverseWindows, row: int) -> None:
    diverse_windows.mark_all_done(windows.buffer, row)


@kernel
def has_room(windows: DiverseWindows, output: Output, row: int) -> bool:
    return diverse_windows.has_room(windows, output, row)


@kernel
def needs(windows: DiverseWindows, row: int) -> tuple[bool, int]:
    waits = diverse_windows.waits(windows.buffer.head, windows.policy, row)
    return waits, diverse_windows.fewest(windows.policy)


def fill(cohort: DiverseCohort, batch: list[Offered]) -> None:
    for _, slot, score in batch:
        enter(cohort.windows, 0, Arrival(slot, score, slot + 1000, slot))


def slots(cohort: DiverseCohort) -> list[int]:
    return sorted(cohort.window(0, "slot")[cohort.window(0, "mark") > 0].tolist())


@pytest.mark.parametrize("axis", AXES)
@given(batch=batches(rows=1), lows=st.lists(st.integers(-1, 20), max_size=3))
def test_the_matches_below_a_position_are_dropped(
    axis: str, batch: list[Offered], lows: list[int]
) -> None:
    cohort = diverse_cohort(k=40, window=AXES[axis])
    fill(cohort, batch)
    along = "matching" if axis == "history" else axis
    for low in lows:
        drop_below(cohort.windows, 0, low)
    kept = [
        slot
        for number, (_, slot, _) in enumerate(batch, start=1)
        if place_of(along, slot, number) >= max(lows, default=-1)
    ]
    assert slots(cohort) == kept
    assert cohort.head[0, HELD] == len(kept)


@given(batches(rows=1), st.integers(0, 16), st.integers(0, 16))
def test_a_range_has_its_oldest_and_newest_time(batch: list[Offered], low: int, high: int) -> None:
    cohort = diverse_cohort(window=AXES["time"])
    fill(cohort, batch)
    times = [int(US[slot]) for _, slot, _ in batch if low <= US[slot] < high]
    expected = (min(times), max(times), len(times)) if times else (0, 0, 0)
    assert measure(cohort.windows, 0, AxisRange(cohort.codes.axis, low, high)) == expected


@pytest.mark.parametrize(
    ("window", "start"),
    [
        ({"name": "sliding", "length": 2}, 1),
        ({"name": "sliding", "length": 9, "count": "published"}, 31),
        ({"name": "sliding", "length": "3us"}, 8),
        ({"name": "continuous"}, -FAR),
    ],
    ids=str,
)
def test_a_window_starts_its_length_before_the_match_that_arrives(window, start):
    """The third match is of sequence 40 and time 10."""
    cohort = diverse_cohort(window=window)
    fill(cohort, [(0, 4, 0.5), (0, 9, 0.5)])
    assert start_of(cohort.windows, 0, Arrival(40, 0.5, 0, 40)) == start


def test_chosen_matches_are_delivered_once_and_keep_their_positions():
    cohort, output = diverse_cohort(), output_of(9)
    fill(cohort, [(0, 4, 0.5), (0, 8, 0.75), (0, 12, 0.25)])
    extent = WindowExtent(1, 3, 7, 3)
    deliver(cohort.windows, output, 0, np.array([2, 0], np.int32), extent)
    deliver(cohort.windows, output, 0, np.array([2, 1], np.int32), extent)
    assert [Sent(*row) for row in output.columns[: output.progress[OUT]].tolist()] == [
        Sent(5, 0, 12, 1012, 1, 1, 3, 7, 1, 3),
        Sent(5, 0, 4, 1004, 2, 1, 3, 7, 2, 3),
        Sent(5, 0, 8, 1008, 2, 1, 3, 7, 3, 3),
    ]
    assert output.ranks[:3].tolist() == [0.25, 0.5, 0.75]
    assert cohort.head[0, SENT] == 3


def test_only_held_matches_are_marked_as_done():
    cohort = diverse_cohort()
    fill(cohort, [(0, 4, 0.5), (0, 8, 0.75)])
    finish(cohort.windows, 0)
    assert cohort.window(0, "mark").tolist() == [2 | DONE, 4 | DONE, 0, 0]


def test_a_dropped_member_of_the_kept_choice_shortens_it():
    cohort = diverse_cohort(k=3)
    fill(cohort, [(0, 4, 0.5), (0, 8, 0.75), (0, 12, 0.25)])
    cohort.kept_place[:3], cohort.head[0, CHOSEN] = [2, 1, 0], 3
    drop_below(cohort.windows, 0, 1)
    assert kept_places(cohort).tolist() == [2, 1]
    drop_below(cohort.windows, 0, 2)
    assert cohort.head[0, CHOSEN] < 2


def test_a_choice_needs_k_candidates_only_where_it_waits():
    eager = diverse_cohort(k=2)
    assert needs(eager.windows, 0) == (False, 1)
    waiting = diverse_cohort(k=2, window={"name": "sliding", "length": 6, "wait": True})
    fill(waiting, [(0, 4, 0.5)])
    assert needs(waiting.windows, 0) == (True, 2)
    fill(waiting, [(0, 8, 0.5)])
    assert needs(waiting.windows, 0) == (False, 2)


def test_room_is_needed_in_the_output_for_the_window_and_one_more():
    cohort = diverse_cohort()
    fill(cohort, [(0, 4, 0.5), (0, 8, 0.75)])
    assert has_room(cohort.windows, output_of(3), 0)
    assert not has_room(cohort.windows, output_of(2), 0)
    used = output_of(3)
    used.progress[OUT] = 1
    assert not has_room(cohort.windows, used, 0)
    cohort._scratch = cohort._new_scratch(3)
    assert not has_room(cohort.windows, output_of(3), 0)


def test_a_range_ends_before_its_high_position():
    cohort = diverse_cohort(window=AXES["time"])
    fill(cohort, [(0, 4, 0.5), (0, 8, 0.5)])
    assert measure(cohort.windows, 0, AxisRange(cohort.codes.axis, 1, 2)) == (1, 1, 1)
    assert measure(cohort.windows, 0, AxisRange(cohort.codes.axis, 1, 3)) == (1, 2, 2)
