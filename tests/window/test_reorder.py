"""The order of a stream: by time, up to a lateness; what comes later is refused, not dropped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.model.records import Event, publication_order
from tidings.window import Arrivals, BatchOrder, Late

times = st.lists(st.integers(0, 12), max_size=20)
Item = tuple[int, int]


def arrive(arrivals: Arrivals[Item], stream: list[int]) -> tuple[list[Item], list[Item]]:
    """Offer all times, named by their number; return those released and those late."""
    out, late = [], []
    for number, us in enumerate(stream):
        try:
            out += arrivals.offer(us, (us, number))
        except Late:
            late.append((us, number))
    return out, late


@given(times, st.integers(0, 5))
def test_arrivals_are_released_in_order_or_late(stream: list[int], lateness: int) -> None:
    arrivals: Arrivals[Item] = Arrivals(lateness)
    out, late = arrive(arrivals, stream)
    out += arrivals.advance(12 + lateness)
    assert out == sorted(out)
    assert sorted(out + late) == sorted((us, number) for number, us in enumerate(stream))


@given(times, st.integers(0, 5))
def test_an_arrival_older_than_the_watermark_is_late(stream: list[int], lateness: int) -> None:
    _, late = arrive(Arrivals(lateness), stream)
    expected = [
        (us, number)
        for number, us in enumerate(stream)
        if us < max(stream[:number], default=us) - lateness
    ]
    assert late == expected


@given(times)
def test_without_lateness_arrivals_are_released_at_once(stream: list[int]) -> None:
    arrivals: Arrivals[int] = Arrivals()
    for us in sorted(stream):
        assert arrivals.offer(us, us) == [us]


def test_equal_times_are_released_by_number_then_in_order_of_arrival() -> None:
    arrivals: Arrivals[str] = Arrivals(5)
    for name, number in [("c", 2), ("b", 1), ("d", 2), ("a", None)]:
        assert arrivals.offer(0, name, number) == []
    assert arrivals.advance(5) == ["a", "b", "c", "d"]


def test_the_watermark_never_goes_back() -> None:
    arrivals: Arrivals[str] = Arrivals()
    assert arrivals.advance(10) == arrivals.advance(3) == []
    assert arrivals.watermark_us == 10
    with pytest.raises(Late, match="1 s before the watermark"):
        Arrivals.offer(arrivals, 10 - 1_000_000, "late")


def test_a_negative_lateness_is_refused() -> None:
    with pytest.raises(TidingsError, match=r"at least 0, not -1 s"):
        Arrivals(-1_000_000)


@given(times, times, st.integers(0, 5))
def test_a_restored_snapshot_continues_the_stream(
    before: list[int], after: list[int], lateness: int
) -> None:
    arrivals: Arrivals[Item] = Arrivals(lateness)
    arrive(arrivals, before)
    twin: Arrivals[Item] = Arrivals(lateness)
    twin.restore(json.loads(json.dumps(arrivals.snapshot(list))), lambda form: (form[0], form[1]))
    assert arrive(twin, after) == arrive(arrivals, after)
    assert twin.advance(99) == arrivals.advance(99)


def published(at: int, number: int) -> Event:
    """Return an event of a time in microseconds; some have a sequence."""
    return Event(f"{number % 3}-{number}", {}, at / 1_000_000, sequence=number % 2 or None)


@given(st.lists(st.integers(0, 6), max_size=20), st.data())
def test_any_split_of_a_stream_is_put_in_the_same_order(
    stamps: list[int], data: st.DataObject
) -> None:
    events = [published(at, number) for number, at in enumerate(sorted(stamps))]
    order, out, rest = BatchOrder(), list[Event](), events
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        batch = order.take(data.draw(st.permutations(rest[:size])))
        assert not batch.late
        out, rest = out + batch.released, rest[size:]
    assert out + order.end() == sorted(events, key=publication_order)


@given(st.lists(times, max_size=5), st.integers(1, 5))
def test_batches_wait_for_the_lateness(batches: list[list[int]], lateness: int) -> None:
    order, out, newest = BatchOrder(lateness), list[Event](), -(10**6)
    for stamps in batches:
        batch = order.take(published(at, number) for number, at in enumerate(stamps))
        assert all(event.published_us < newest - lateness for event in batch.late)
        newest = max([newest, *stamps])
        out += batch.released
        assert all(event.published_us <= newest - lateness for event in batch.released)
        assert len(batch.late) + len(batch.released) <= len(stamps) + len(out)
    assert [event.published_us for event in out] == sorted(event.published_us for event in out)
    assert order.end() == []
