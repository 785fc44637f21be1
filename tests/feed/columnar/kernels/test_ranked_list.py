"""The lists and rings of the windows' kernels, beside plain lists."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar import policy_codes as plans
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.compaction import free_row, pack_lists
from tidings.feed.columnar.kernels.ranked_list import (
    list_beaten,
    list_find,
    list_insert,
    list_place,
    list_ready,
    list_remove,
)
from tidings.feed.columnar.ranked_cohort import Cohort, Sink
from tidings.policy import Policy

EVENTS = (np.arange(64) // 4, np.arange(64), np.arange(64)[::-1].copy())
"""Four events of each time; of these, the ids go down as the slots go up."""

actions = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 63), st.integers(0, 63)),
    max_size=60,
)


def cohort(rows: int = 3, **policy: Any) -> Cohort:
    """Some empty rows, with room in the pools for all that a test does."""
    window = {"name": "sliding", "length": "1d"}
    made = Cohort(Policy(**{"k": 3, "window": window, **policy}), Sink())
    for number in range(rows):
        made.enrol(number, f"u{number}")
    made.key = made.score = np.zeros(5000)
    made.who = np.zeros((5000, 3), np.int32)
    return made


def entries(made: Cohort, row: int) -> list[tuple[float, int, int]]:
    """Give the entries of a row as (key, slot, mark)."""
    places = made.entries(np.array([row]))
    return [
        (float(made.key[place]), int(made.who[place, at.SLOT]), int(made.who[place, at.MARK]))
        for place in places
    ]


def order(entry: tuple[float, int, int]) -> tuple[float, int, int]:
    key, slot, _ = entry
    return (-key, -int(EVENTS[0][slot]), int(EVENTS[2][slot]))


@given(actions)
def test_lists_stay_in_order_through_all_that_happens(
    steps: list[tuple[int, int, int, int]],
) -> None:
    made, model = cohort(), {row: [] for row in range(3)}  # type: ignore[var-annotated]
    book: Any = made.book
    for row, key, slot, place in steps:
        mine = model[row]
        if slot in [each[1] for each in mine]:
            found = list_find(book, row, slot, len(mine))
            assert mine[found][1] == slot
            list_remove(book, row, found)
            del mine[found]
        else:
            assert list_ready(book, row)
            to = list_place(book, EVENTS, row, float(key), slot)
            list_insert(book, row, to, (float(key), float(key), slot, place, 2 * place))
            mine.append((float(key), slot, 2 * place))
            mine.sort(key=order)
            assert mine[to][1] == slot
        if place == 63:
            pack_lists(book, np.argsort(made.head[:, at.LIST], kind="stable"))
        for each, expected in model.items():
            assert entries(made, each) == expected


@given(st.lists(st.integers(0, 4), max_size=10), st.integers(0, 10), st.integers(1, 4))
def test_who_is_beaten_k_times_goes(marks: list[int], place: int, k: int) -> None:
    made = cohort(k=k)
    book: Any = made.book
    for slot, mark in enumerate(marks):
        assert list_ready(book, 0)
        list_insert(book, 0, slot, (1.0, 1.0, slot, 0, 2 * mark))
    list_beaten(book, 0, min(place, len(marks)), k)
    expected = [(slot, mark) for slot, mark in enumerate(marks) if slot < place]
    expected += [(slot, mark + 1) for slot, mark in enumerate(marks) if slot >= place]
    kept = [(slot, 2 * mark) for slot, mark in expected if slot < place or mark < k]
    assert [each[1:] for each in entries(made, 0)] == kept


def test_an_event_is_only_looked_for_where_it_can_be() -> None:
    made = cohort()
    book: Any = made.book
    for slot in range(5):
        assert list_ready(book, 0)
        list_insert(book, 0, slot, (1.0, 1.0, slot, 0, 0))
    assert [list_find(book, 0, 3, limit) for limit in (0, 3, 4, 9)] == [-1, -1, 3, 3]


def test_a_list_asks_for_room_and_takes_what_others_gave_back() -> None:
    made = cohort()
    made.key = made.score = np.zeros(4)
    made.who = np.zeros((4, 3), np.int32)
    book: Any = made.book
    assert list_ready(book, 0)
    assert list_ready(book, 1)
    assert not list_ready(book, 2)
    assert made.head[2, at.LIST_CLASS] == -1
    free_row(book, 0)
    assert list_ready(book, 2)
    assert made.head[2, at.LIST] == 0


@pytest.mark.parametrize(
    ("window", "lists", "rings"),
    [
        ({"name": "sliding", "length": 100}, 100 + 14 + 2, 101),
        ({"name": "jumping", "length": 100, "step": 20}, 120 + 17 + 2, 121),
        ({"name": "history", "length": 100}, 5 + 2, 6),
        ({"name": "periodic", "length": "1h"}, 5 + 2, 6),
        ("continuous", 5 + 2, 6),
    ],
    ids=str,
)
def test_slabs_grow_up_to_what_a_window_can_hold(window: Any, lists: int, rings: int) -> None:
    room = plans.room(plans.numbers(Policy(k=5, window=window)))
    for column, most in ((at.LIST_CAP, lists), (at.RING_CAP, rings)):
        sizes = [size for size in room[:, column].tolist() if size > 0]
        assert sizes[0] <= 2
        assert sizes[-1] == most
        assert all(a < b <= a + max(1, a // 4) for a, b in pairwise(sizes))
