"""Match batches: bytes between the stages, merging and selection."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.match_batches import match_batch

from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import Event, Match
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import MatchBatch


def test_pack_and_unpack_are_inverse() -> None:
    batch = MatchBatch(
        events=["e1", "é"],
        us=np.array([3, 4]),
        sequence=np.array([UNNUMBERED, 9]),
        forms=["", '{"id":"é"}'],
        matches=Matches(
            np.array([0, 1, 3]),
            np.array([1, 0, 1], np.int32),
            np.array([0.5, 0.25, 1.0]),
            np.array([0, 1, 2, 4]),
            np.array([0, 1, 0, 2], np.int32),
        ),
        subscribers=["ann", "bob"],
        subscriptions=["s1", "s2", "s3"],
        contents=["", '{"title":"é"}'],
    )
    unpacked = MatchBatch.unpack(batch.pack())
    for name, column in batch.columns().items():
        assert np.array_equal(unpacked.columns()[name], column), name
        assert getattr(unpacked.columns()[name], "dtype", None) == getattr(column, "dtype", None)


def test_matches_can_be_written_so_that_kernels_need_no_second_form() -> None:
    event = Event("e1", {}, 3)
    matches = packed([(event, [Match("ann", event, 0.5, ("s1",))])]).matches
    assert all(column.flags.writeable for column in matches)


def test_an_empty_batch_is_packed() -> None:
    unpacked = MatchBatch.unpack(MatchBatch.empty().pack())
    assert (unpacked.events, unpacked.subscribers, len(unpacked.matches.ranks)) == ([], [], 0)


Entry = tuple[Event, list[Match]]
names = st.sampled_from("uvwx")


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    """Draw events with matches, at times and numbers that are often equal."""
    drawn: list[Entry] = []
    for place in range(draw(st.integers(0, 5))):
        name = f"{draw(st.sampled_from('abc'))}{place}-{draw(st.integers(0, 99))}"
        number = draw(st.sampled_from([None, 0, 1, 2]))
        content = {"n": place} if place % 2 else None
        event = Event(name, {"n": place}, draw(st.integers(0, 2)), number, content=content)
        subscribers = draw(st.lists(names, unique=True, max_size=3))
        sets = st.lists(st.sampled_from("pqrs"), unique=True, max_size=3).map(sorted)
        scores = st.sampled_from([0.0, 0.5, 1.0])
        matches = [Match(name, event, draw(scores), tuple(draw(sets))) for name in subscribers]
        drawn.append((event, matches))
    return drawn


def packed(some: list[Entry]) -> MatchBatch:
    batch = match_batch([event for event, _ in some], [matches for _, matches in some])
    return MatchBatch.unpack(batch.pack())


def written_out(batch: MatchBatch) -> list[Any]:
    """Return a batch event by event, with names for numbers."""
    rows = []
    for place, event in enumerate(batch.events):
        matches = [
            (batch.subscribers[number], rank, [batch.subscriptions[each] for each in matched])
            for number, rank, matched in batch.matches.rows(place)
        ]
        form = batch.forms[place] if batch.forms else ""
        columns = (int(batch.us[place]), int(batch.sequence[place]), form)
        rows.append((event, *columns, matches))
    return rows


@given(st.lists(entries(), max_size=4))
def test_merged_batches_hold_the_matches_of_all(many: list[list[Entry]]) -> None:
    one = MatchBatch.merged([packed(each) for each in many])
    assert written_out(one) == [row for each in many for row in written_out(packed(each))]
    assert sorted(one.subscribers) == sorted({m.subscriber for e in many for _, s in e for m in s})
    assert len(set(one.subscriptions)) == len(one.subscriptions)
    assert written_out(MatchBatch.unpack(one.pack())) == written_out(one)


@given(entries(), st.randoms())
def test_selected_events_keep_their_matches_and_only_their_names(
    some: list[Entry], chance: Any
) -> None:
    whole = packed(some)
    places = [place for place in range(len(some)) if chance.random() < 0.5]
    chance.shuffle(places)
    part = whole.select(np.array(places, np.int64))
    assert written_out(part) == [written_out(whole)[place] for place in places]
    assert set(part.subscribers) == {m.subscriber for place in places for m in some[place][1]}
    assert set(part.subscriptions) == {
        each for place in places for match in some[place][1] for each in match.matched
    }


@given(entries())
def test_publication_order_is_time_then_sequence_then_id(some: list[Entry]) -> None:
    events = [event for event, _ in some]
    found = [events[place].id for place in packed(some).publication_order().tolist()]
    key = lambda each: (each.published_us, each.sequence or 0, each.id)  # noqa: E731
    assert found == [event.id for event in sorted(events, key=key)]


@given(entries(), st.sets(names))
def test_matches_of_some_subscribers_are_a_batch(some: list[Entry], chosen: set[str]) -> None:
    whole = packed(some)
    part = whole.of_subscribers(np.array([name in chosen for name in whole.subscribers], np.bool_))
    expected = [
        (*row[:4], [each for each in row[4] if each[0] in chosen]) for row in written_out(whole)
    ]
    assert written_out(part) == [row for row in expected if row[4]]


@given(entries(), st.sets(names))
def test_the_parts_of_an_event_are_joined(some: list[Entry], chosen: set[str]) -> None:
    whole = packed(some)
    picked = np.array([name in chosen for name in whole.subscribers], np.bool_)
    parts = MatchBatch.merged([whole.of_subscribers(picked), whole.of_subscribers(~picked)])
    whole_again = written_out(whole.of_subscribers(np.ones(len(picked), np.bool_)))
    key = lambda row: (row[1], max(0, row[2]), row[0])  # noqa: E731
    expected = [(*row[:4], sorted(row[4])) for row in sorted(whole_again, key=key)]
    assert [(*row[:4], sorted(row[4])) for row in written_out(parts.joined())] == expected


def test_a_joined_event_has_its_form_if_one_part_has_it() -> None:
    event = Event("e", {}, 1, 1)
    u, v = (Match(name, event, 0.5, ()) for name in "uv")
    parts = MatchBatch.merged([packed([(event, [u])])._replace(forms=[""]), packed([(event, [v])])])
    assert parts.joined().forms == packed([(event, [v])]).forms


@given(st.lists(st.sampled_from("abcd"), max_size=8))
def test_an_id_is_repeated_for_any_subscriber_at_any_time(ids: list[str]) -> None:
    events = [Event(name, {}, place // 2) for place, name in enumerate(ids)]
    batch = packed([(event, [Match("u", event, 0.5, ())]) for event in events])
    assert batch.repeats().tolist() == [name in ids[:place] for place, name in enumerate(ids)]


def test_a_batch_may_have_no_events() -> None:
    none = MatchBatch.empty()
    assert (
        written_out(MatchBatch.merged([]))
        == written_out(none)
        == written_out(none.select(none.publication_order()))
        == []
    )
