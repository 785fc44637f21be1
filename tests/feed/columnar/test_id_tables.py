"""Numbers for ids: unique, in order of enrolment, and reused; their texts are those of Python."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.array_types import Int32s
from tidings.compiled.arrays import Ragged
from tidings.compiled.simd import BLOCK
from tidings.errors import InvalidSubscription
from tidings.feed.columnar.id_tables import (
    EMPTY,
    EnrolledSubscribers,
    IdTexts,
    MatchedSets,
    ascending_places,
    gathered,
)
from tidings.feed.columnar.kernels import texts as kernels
from tidings.feed.columnar.kernels.layout import START, STOP, WIDTH
from tidings.feed.columnar.kernels.texts import TextPool, sort_runs
from tidings.model.values import EARLIEST_US, LATEST_US, format_time


@given(st.lists(st.sampled_from([f"u{n}" for n in range(30)]), max_size=80))
def test_numbers_are_unique_and_the_order_is_that_of_enrolment(names: list[str]) -> None:
    """A name that is drawn again is removed; it is added behind all others the next time."""
    subscribers = EnrolledSubscribers()
    model: list[str] = []
    for name in names:
        if name in model:
            subscribers.remove(name)
            model.remove(name)
        else:
            subscribers.assign(subscribers.add(name), 1, len(model))
            model.append(name)
        assert len(subscribers) == len(model)
        numbers = [subscribers.number(name) for name in model]
        assert subscribers.number_many(model).tolist() == numbers
        assert len(set(numbers)) == len(model)
        assert subscribers.in_order().tolist() == numbers
        assert [subscribers.names[number] for number in numbers] == model
        assert all(subscribers.cohort[number] == 1 for number in numbers)
    assert all((name in subscribers) is (name in model) for name in names)
    assert len(subscribers.names) <= 30


def test_a_removed_subscriber_has_no_number() -> None:
    subscribers = EnrolledSubscribers()
    number = subscribers.add("a")
    subscribers.assign(number, 0, 7)
    assert (subscribers.number("a"), subscribers.row[number]) == (0, 7)
    subscribers.remove("a")
    assert subscribers.cohort[number] == -1
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'a'"):
        subscribers.number("a")
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'a'"):
        subscribers.number_many(["a"])
    before = subscribers.generation
    assert subscribers.add("b") == number
    assert subscribers.generation == before + 1


@pytest.mark.parametrize("gone", [(), ("a", "c")])
def test_many_are_numbered_like_one_after_the_other(gone: tuple[str, ...]) -> None:
    alone, together = EnrolledSubscribers(), EnrolledSubscribers()
    for subscribers in (alone, together):
        for name in "abcd":
            subscribers.add(name)
        for name in gone:
            subscribers.remove(name)
    names = [f"u{n}" for n in range(40)]
    assert together.add_many(names).tolist() == [alone.add(name) for name in names]
    assert together.in_order().tolist() == alone.in_order().tolist()
    assert [together.number(name) for name in names] == [alone.number(name) for name in names]


sets = st.lists(st.lists(st.sampled_from("abcdef"), max_size=4).map(tuple), max_size=12)


def no_copy(_: Int32s, __: Int32s, used: int) -> int:
    """Keep no set."""
    return used


def handles_of(table: MatchedSets, wanted: list[tuple[str, ...]]) -> Int32s:
    sets = Ragged.of([[table.number(name) for name in names] for names in wanted])
    return table.handles(sets, no_copy)


@given(sets)
def test_a_handle_refers_to_its_set(wanted: list[tuple[str, ...]]) -> None:
    table = MatchedSets()
    handles = handles_of(table, wanted)
    in_order = [tuple(sorted(names)) for names in wanted]
    assert [table.ids(handle) for handle in handles.tolist()] == in_order
    starts, members = table.members(handles)
    runs = [members[a:b].tolist() for a, b in pairwise(starts)]
    assert [tuple(table.names[number] for number in run) for run in runs] == wanted


def test_single_subscriptions_and_none_take_no_room() -> None:
    table = MatchedSets()
    for _ in range(10_000):
        handles = handles_of(table, [("a",), (), ("b",)])
    assert handles.tolist() == [table.number("a"), EMPTY, table.number("b")]
    assert table.generation == 0


def test_unused_sets_are_reclaimed() -> None:
    table = MatchedSets()
    for _ in range(1000):
        [handle] = handles_of(table, [("a", "b", "c")]).tolist()
        assert table.ids(handle) == ("a", "b", "c")
    assert table.generation > 10
    assert -handle < 256


def test_unused_numbers_are_reused() -> None:
    table = MatchedSets()
    [held] = table.hold(["held"]).tolist()
    used = held
    for turn in range(3000):
        if table.crowded:
            table.free_unused([np.array([held, used], np.int32)])
            assert table.number(f"s{turn - 1}") == used
        used = table.number(f"s{turn}")
    assert len(table.names) <= 257
    assert table.generation > 10
    assert table.ids(held) == ("held",)
    assert table.number("held") == held
    table.release(held)
    table.free_unused([])
    assert {*table.names} == {""}
    assert table.number("held") in range(257)


def test_a_table_is_not_crowded_by_what_is_held() -> None:
    table = MatchedSets()
    names = [f"s{number}" for number in range(1000)]
    numbers = table.hold(names)
    assert not table.crowded
    table.release(int(numbers[7]))
    assert table.crowded
    assert table.hold(["s7"]).tolist() == [numbers[7]]
    assert not table.crowded
    table.number("more")
    assert table.crowded
    table.free_unused([])
    assert len(table.names) == 1001
    assert table.names[:1000] == names
    assert not table.crowded


def test_a_number_is_freed_after_as_many_releases_as_holds() -> None:
    table = MatchedSets()
    [number] = table.hold(["s"]).tolist()
    assert table.hold(["s"]).tolist() == [number]
    for left in (1, 0):
        table.release(number)
        table.free_unused([])
        assert (table.names == ["s"]) == (left > 0)


def test_subscriptions_are_held_together_like_one_by_one() -> None:
    together, apart = MatchedSets(), MatchedSets()
    for names in (["a", "b"], ["c", "b"], [], ["d", "e"]):
        numbers = [int(apart.hold([name])[0]) for name in names]
        assert together.hold(names).tolist() == numbers
    for table in (together, apart):
        for number in (0, 1):
            table.release(number)
        table.free_unused([])
        assert table.names == ["", "b", "c", "d", "e"]
        assert table.hold(["f", "g"]).tolist() == [0, 5]


def test_many_subscriptions_get_the_numbers_that_each_would_get() -> None:
    together, apart = MatchedSets(), MatchedSets()
    for names in (["a", "b", "a"], ["c", "b"], [], ["d", "e", "d"]):
        numbers = [apart.number(name) for name in names]
        assert together.number_many(names).tolist() == numbers
    for table in (together, apart):
        table.free_unused([np.array([1, 3], np.int32)])
        assert table.names == ["", "b", "", "d", ""]
    assert together.number_many(["f", "b", "g", "f"]).tolist() == [
        apart.number(name) for name in ("f", "b", "g", "f")
    ]
    assert together.names == apart.names


def test_the_pool_grows_for_a_large_batch() -> None:
    table = MatchedSets()
    wanted = [tuple(f"s{number}-{i}" for i in range(5)) for number in range(500)]
    handles = handles_of(table, wanted)
    assert [table.ids(handle) for handle in handles.tolist()] == wanted


ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


def pool_of(names: list[str]) -> TextPool:
    pool = IdTexts(names).pool(len(names))
    assert pool is not None
    return pool


@given(st.lists(ids, min_size=1), st.data())
def test_texts_are_gathered_as_they_were_added_and_replaced(names: list[str], data: Any) -> None:
    texts = IdTexts(names)
    for _ in range(3):
        for number in data.draw(st.lists(st.integers(0, len(names) - 1), max_size=20)):
            names[number] = data.draw(ids)
            texts.replaced(number)
        names += data.draw(st.lists(ids, max_size=3))
        wanted = data.draw(st.lists(st.integers(0, len(names) - 1)))
        pool = texts.pool(10**6)
        assert pool is not None
        column = gathered(pool, np.array(wanted, np.int64))
        column.validate(full=True)
        assert column.to_pylist() == [names[number] for number in wanted]
        order = texts.order(10**6)
        assert order is not None
        assert order.tolist() == ascending_places(names).tolist()
        assert sorted(names) == [names[number] for number in np.argsort(order).tolist()]


def test_texts_are_written_once_they_pay() -> None:
    names = [f"u{number}" for number in range(10)]
    texts = IdTexts(names)
    assert [texts.pool(4) is None for _ in range(4)] == [True, True, False, False]
    assert [texts.order(4) is None for _ in range(4)] == [True, True, False, False]
    names.append("v")
    assert texts.pool(0) is None
    assert texts.pool(1) is not None


@given(st.lists(st.lists(ids, max_size=6), max_size=6))
def test_runs_are_sorted_as_texts_are(runs: list[list[str]]) -> None:
    names = [name for run in runs for name in run] or ["x"]
    starts = np.cumsum([0, *map(len, runs)])
    numbers = np.arange(int(starts[-1]))
    sort_runs(pool_of(names), starts, numbers)
    found = [names[number] for number in numbers.tolist()]
    assert found == [name for run in runs for name in sorted(run)]


def test_long_runs_are_left_to_the_caller() -> None:
    names = [f"s{number:03d}" for number in range(kernels.MOST_SORTED + 1)][::-1]
    numbers = np.arange(len(names))
    sort_runs(pool_of(names), np.array([0, len(names)]), numbers)
    assert numbers.tolist() == list(range(len(names)))


@given(st.integers(EARLIEST_US - 10, LATEST_US + 10) | st.integers(-(10**18), 10**18))
def test_times_are_written_as_everywhere_else(us: int) -> None:
    columns = np.zeros((1, WIDTH + 1), np.int64)
    columns[0, [START, STOP]] = us
    pieces = TextPool(np.zeros((4, 2), np.int64), np.zeros(1, np.uint8))  # all of them are empty
    starts, texts = np.zeros(2, np.int32), np.zeros(100, np.uint8)
    kernels.write_windows(columns, np.zeros(1, np.int64), pieces, starts, texts)
    assert bytes(texts[: starts[1]]).decode() == 2 * format_time(us) + "0"


@given(st.lists(st.text(max_size=40), min_size=4, max_size=4), st.integers(1, 4))
def test_windows_are_written_between_their_pieces(pieces: list[str], rows: int) -> None:
    encoded = [piece.encode() for piece in pieces]
    ends = np.cumsum([len(piece) for piece in encoded])
    bounds = np.stack([ends - [len(piece) for piece in encoded], ends], axis=1)
    data = np.frombuffer(bytearray().join((*encoded, bytes(BLOCK))), np.uint8)
    columns = np.zeros((rows, WIDTH + 1), np.int64)
    columns[:, START], columns[:, STOP], columns[:, WIDTH] = 5, 10**6, np.arange(rows) * 60
    starts, texts = np.zeros(rows + 1, np.int32), np.zeros(5000, np.uint8)
    kernels.write_windows(columns, np.zeros(rows, np.int64), TextPool(bounds, data), starts, texts)
    head, before_end, before_size, behind = pieces
    assert bytes(texts[: starts[-1]]).decode() == "".join(
        f"{head}{format_time(5)}{before_end}{format_time(10**6)}{before_size}{60 * row}{behind}"
        for row in range(rows)
    )


def test_a_freed_number_gets_the_text_of_its_new_subscription() -> None:
    matched = MatchedSets()
    first = matched.number("old")
    assert matched.texts.pool(1) is not None
    matched.free_unused([])
    assert matched.number("new") == first
    pool = matched.texts.pool(1)
    assert pool is not None
    assert gathered(pool, np.array([first])).equals(pa.array(["new"]))
