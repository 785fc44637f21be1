"""The buffer of a diverse window, compared with a list of places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.diverse import diverse_cohort
from tests.feed.columnar.kernels.windows import ID_ORDER, US

from tidings.compiled.jit import kernel
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels import diverse_buffer
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    HELD,
    LAST,
    SEEN,
    SLAB,
    SLAB_CLASS,
    Arrival,
    DiverseBuffer,
    DiverseWindows,
    EventColumns,
)


@kernel
def reserve(buffer: DiverseBuffer, row: int) -> bool:
    return diverse_buffer.reserve_place(buffer, row)


@kernel
def add(buffer: DiverseBuffer, row: int, match: Arrival) -> int:
    return diverse_buffer.add_match(buffer, row, match)


@kernel
def newer(events: EventColumns, one: int, other: int) -> bool:
    return diverse_buffer.is_newer(events, one, other)


@kernel
def slot_at(windows: DiverseWindows, row: int, place: int) -> int:
    return diverse_buffer.slot_at(windows, row, place)


@kernel
def choice_start(windows: DiverseWindows, row: int) -> int:
    return diverse_buffer.choice_start(windows, row)


def arrival(slot: int) -> Arrival:
    return Arrival(slot, slot / 64, slot + 1000, slot)


def drop_oldest(cohort: DiverseCohort, row: int) -> None:
    """Free the place of the oldest match."""
    marks = cohort.window(row, "mark")
    oldest = np.flatnonzero(marks)[np.argmin(marks[marks > 0])]
    marks[oldest] = 0
    cohort.head[row, HELD] -= 1


def held(cohort: DiverseCohort, row: int) -> list[tuple[int, int, float, int]]:
    """Return the matches in order of arrival: slot, handle, score and number."""
    names = ("slot", "handle", "score", "mark")
    columns = [cohort.window(row, name) for name in names]
    used = np.flatnonzero(columns[3])
    used = used[np.argsort(columns[3][used])]
    slots, handles, scores, marks = (column[used].tolist() for column in columns)
    return list(zip(slots, handles, scores, [mark // 2 for mark in marks], strict=True))


def match_of(slot: int, number: int) -> tuple[int, int, float, int]:
    return (slot, slot + 1000, slot / 64, number)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=50))
def test_a_buffer_holds_its_matches_in_order_of_arrival(steps: list[tuple[int, int]]) -> None:
    cohort = diverse_cohort(window={"name": "sliding", "length": "1d"})
    model, seen = [list[tuple[int, int, float, int]](), []], [0, 0]
    for number, (row, gone) in enumerate(steps, start=1):
        assert reserve(cohort.buffer, row)
        place = add(cohort.buffer, row, arrival(number))
        seen[row] += 1
        model[row].append(match_of(number, seen[row]))
        assert cohort.window(row, "slot")[place] == number
        assert slot_at(cohort.windows, row, place) == number
        for _ in range(min(gone, len(model[row]) - 1)):
            drop_oldest(cohort, row)
            model[row].pop(0)
        assert [held(cohort, each) for each in (0, 1)] == model
        assert cohort.head[row, [SEEN, HELD, LAST]].tolist() == [
            seen[row],
            len(model[row]),
            place,
        ]


def test_a_place_that_is_freed_in_between_is_found() -> None:
    cohort = diverse_cohort(window={"name": "history", "length": 9})
    for slot in range(1, 5):
        assert reserve(cohort.buffer, 0)
        assert add(cohort.buffer, 0, arrival(slot)) == slot - 1
    cohort.window(0, "mark")[2] = 0
    cohort.head[0, HELD] -= 1
    assert add(cohort.buffer, 0, arrival(9)) == 2
    assert [slot for slot, *_ in held(cohort, 0)] == [1, 2, 4, 9]


def test_a_move_to_a_larger_slab_forgets_the_kept_places() -> None:
    cohort = diverse_cohort(window={"name": "sliding", "length": "1d"})
    for slot in range(1, 5):
        reserve(cohort.buffer, 0)
        add(cohort.buffer, 0, arrival(slot))
    cohort.head[0, CHOSEN] = 2
    first = int(cohort.head[0, SLAB])
    assert reserve(cohort.buffer, 0)
    assert cohort.head[0, SLAB] != first
    assert cohort.head[0, [SLAB_CLASS, LAST, CHOSEN]].tolist() == [1, 3, 0]
    assert [slot for slot, *_ in held(cohort, 0)] == [1, 2, 3, 4]
    assert cohort.slabs.free[0] == first


def test_a_full_pool_is_reported_and_changes_nothing() -> None:
    cohort = diverse_cohort(window={"name": "sliding", "length": "1d"}, cells=0)
    cohort.slot = np.zeros(4, np.int32)
    cohort.mark = np.zeros(4, np.int64)
    cohort.handle, cohort.score = np.zeros(4, np.int32), np.zeros(4)
    assert reserve(cohort.buffer, 0)
    before = cohort.head.copy()
    assert not reserve(cohort.buffer, 1)
    assert (cohort.head == before).all()


def test_the_largest_slab_counts_as_room() -> None:
    cohort = diverse_cohort(window={"name": "sliding", "length": 4})
    for slot in range(1, 5):
        assert reserve(cohort.buffer, 0)
        add(cohort.buffer, 0, arrival(slot))
    assert len(cohort.slabs.capacity) == 1
    assert reserve(cohort.buffer, 0)


@given(st.integers(0, 63), st.integers(0, 63))
def test_newer_events_precede_and_then_smaller_ids(one: int, other: int) -> None:
    events = EventColumns(US, np.zeros(64, np.int64), ID_ORDER, np.zeros(0, np.int64))
    expected = (-US[one], ID_ORDER[one]) < (-US[other], ID_ORDER[other])
    assert newer(events, one, other) == expected


def test_a_kept_choice_lies_in_its_row_or_beside_its_slab() -> None:
    narrow = diverse_cohort(k=3)
    assert [choice_start(narrow.windows, row) for row in range(3)] == [0, 3, 6]
    wide = diverse_cohort(k=65, window={"name": "sliding", "length": 99})
    wide.head[:3, SLAB] = [8, 4, 0]
    assert [choice_start(wide.windows, row) for row in range(3)] == [8, 4, 0]
