"""The matches of a window by their place on its axis: time, published or matching events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidEvent, InvalidForm
from tidings.model.records import Event, Match
from tidings.window.buffer import (
    Axis,
    MatchBuffer,
    NumberedMatch,
    describe_window,
    event_ids,
    newest_us,
    number_picks,
    sequence_of,
)
from tidings.window.length import Length
from tidings.window.protocol import Moment, Pick

SECOND = 1_000_000


def match(name: str, at: float = 0, sequence: int | None = None, score: float = 0.5) -> Match:
    return Match("u", Event(name, {"genre": "drama"}, at, sequence), score, ("s",))


def buffer_of(length: Length | None, *matches: Match, count: str = "matching") -> MatchBuffer:
    buffer = MatchBuffer(length, count)
    for match in matches:
        buffer.add(match)
    return buffer


def names(matches: list[Match]) -> list[str]:
    return [match.event.id for match in matches]


@pytest.mark.parametrize(
    ("length", "count", "kind", "size", "coordinate", "end"),
    [
        (Length(us=5), "matching", "time", 5, 3 * SECOND, 9 * SECOND + 1),
        (Length(count=4), "published", "published", 4, 6, 20),
        (Length(count=4), "matching", "matching", 4, 1, 12),
    ],
)
def test_each_axis_has_its_own_coordinates(length, count, kind, size, coordinate, end):
    axis = Axis(length, count)
    assert (axis.kind, axis.size) == (kind, size)
    assert axis.coordinate(NumberedMatch(2, match("e", at=3, sequence=7))) == coordinate
    assert axis.end(Moment(9 * SECOND, 20), seen=12) == end


def test_an_end_in_time_is_passed_when_the_clock_reaches_it():
    axis = Axis(Length(us=5), "matching")
    assert not axis.passed(10, Moment(9, 0), seen=0)
    assert axis.passed(10, Moment(10, 0), seen=0)


@pytest.mark.parametrize("count", ["published", "matching"])
def test_an_end_of_counts_is_passed_with_its_last_event(count):
    axis = Axis(Length(count=3), count)
    assert not axis.passed(3, Moment(0, 2), seen=2)
    assert axis.passed(3, Moment(0, 3), seen=3)


def test_without_a_length_nothing_expires():
    buffer = buffer_of(None, match("a", 1), match("b", 2))
    far = Moment(10**15, 10**9)
    buffer.expire(far)
    buffer.expire_until(10**15)
    assert names(buffer.within(far)) == names(buffer.ending_at(0)) == ["a", "b"]
    with pytest.raises(LookupError, match="no axis"):
        buffer.oldest()


def test_a_window_of_time_holds_only_events_younger_than_its_length():
    buffer = buffer_of(Length(us=2 * SECOND), match("a", 1), match("b", 2), match("c", 3))
    assert names(buffer.within(Moment(3 * SECOND, 0))) == ["b", "c"]
    assert names(buffer.ending_at(3 * SECOND)) == ["a", "b"]
    assert names(buffer.matches) == ["a", "b", "c"]


def test_a_window_of_published_events_counts_those_that_did_not_match():
    buffer = buffer_of(
        Length(count=3), match("a", sequence=1), match("b", sequence=4), count="published"
    )
    assert names(buffer.within(Moment(0, 3))) == ["a"]
    assert names(buffer.within(Moment(0, 4))) == ["b"]
    assert names(buffer.within(Moment(0, 7))) == []


def test_expired_matches_still_count_as_seen():
    buffer = buffer_of(Length(count=2), *(match(name) for name in "abcd"))
    buffer.expire(Moment(0, 0))
    assert names(buffer.matches) == ["c", "d"]
    assert buffer.seen == 4
    assert buffer.add(match("e")).number == 5


def test_a_later_window_still_finds_everything_that_expiry_kept():
    buffer = buffer_of(Length(us=3), match("a", 1e-6), match("b", 2e-6), match("c", 5e-6))
    buffer.expire_until(5)
    assert names(buffer.matches) == ["b", "c"]
    assert buffer.oldest() == 2


def test_retain_drops_all_matches_but_the_given_ones():
    a, b, c = match("a"), match("b"), match("c")
    buffer = buffer_of(Length(count=9), a, b, c)
    buffer.retain([c, a])
    assert names(buffer.matches) == ["a", "c"]
    buffer.retain(())
    assert buffer.matches == []
    assert buffer.seen == 3


def test_the_last_coordinate_is_of_the_newest_event_on_its_axis():
    buffer = buffer_of(None, match("a", at=3, sequence=9), match("b", at=2, sequence=11))
    assert buffer.last_coordinate(Axis(Length(us=1), "matching")) == 3 * SECOND
    assert buffer.last_coordinate(Axis(Length(count=1), "published")) == 10
    assert buffer.last_coordinate(Axis(Length(count=1), "matching")) == 2
    assert MatchBuffer(None).last_coordinate(Axis(Length(us=1), "matching")) == 0


def test_an_event_without_a_sequence_is_refused_by_name():
    assert sequence_of(match("a", sequence=3)) == 3
    with pytest.raises(InvalidEvent, match="event b has no sequence"):
        sequence_of(match("b"))


@given(
    st.sampled_from([(Length(count=3), "matching"), (Length(count=3), "published")])
    | st.just((Length(us=3), "matching")),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=12),
)
def test_expiry_never_changes_the_window_at_that_moment_or_later(axis, steps):
    length, count = axis
    kept, expired = MatchBuffer(length, count), MatchBuffer(length, count)
    us, sequence = 0, 0
    for number, (gap, skip) in enumerate(steps):
        us, sequence = us + gap, sequence + skip
        one = match(f"e{number}", us / SECOND, sequence)
        now = Moment(us, sequence)
        kept.add(one)
        expired.add(one)
        expired.expire(now)
        assert expired.matches == expired.within(now) == kept.within(now)


def test_a_restored_buffer_continues_with_the_same_numbers():
    buffer = buffer_of(Length(count=2), *(match(name, sequence=3) for name in "abc"))
    buffer.expire(Moment(0, 0))
    restored = MatchBuffer(Length(count=2))
    restored.restore(json.loads(json.dumps(buffer.snapshot())))
    assert restored.matches == buffer.matches
    assert restored.seen == 3
    assert names(restored.within(Moment(0, 0))) == ["b", "c"]


@pytest.mark.parametrize(
    ("seen", "numbers"),
    [(2, [3]), (2, [0]), (2, [1, 1]), (2, [2, 1]), (-1, []), (2, [True])],
)
def test_numbers_rise_up_to_the_matches_seen(seen, numbers):
    buffer = buffer_of(None, match("kept"))
    entries = [[number, match(f"e{n}").to_dict()] for n, number in enumerate(numbers)]
    with pytest.raises(InvalidForm):
        buffer.restore({"seen": seen, "entries": entries})
    assert names(buffer.matches) == ["kept"]
    assert buffer.seen == 1


def test_a_choice_is_numbered_from_one_and_described_by_its_window():
    a, b = match("a", at=1), match("b", at=2)
    window = describe_window("sliding", [b, a], 3 * SECOND)
    assert window == {
        "name": "sliding",
        "start": "1970-01-01T00:00:01Z",
        "end": "1970-01-01T00:00:03Z",
        "size": 2,
    }
    assert number_picks([(b, 0.9), (a, 0.4)], window, 7) == [
        Pick(b, 0.9, 1, window, 7),
        Pick(a, 0.4, 2, window, 7),
    ]
    assert event_ids([a, b, a]) == {"a", "b"}
    assert newest_us([a, b, a]) == 2 * SECOND


def test_an_empty_window_starts_where_it_ends():
    window = describe_window("jumping", [], SECOND)
    assert window["start"] == window["end"] == "1970-01-01T00:00:01Z"
    assert window["size"] == 0
