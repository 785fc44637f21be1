"""Parcels made one and taken apart: the matches stay what they were."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.match_batches import parcel

from tidings.model.records import Event, Match
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.match_batch_ops import (
    empty,
    in_order,
    joined,
    merge,
    of_subscribers,
    repeats,
    select,
)

Entry = tuple[Event, list[Match]]
names = st.sampled_from("uvwx")


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    """Events with matches, at times and numbers that are often equal."""
    found: list[Entry] = []
    for place in range(draw(st.integers(0, 5))):
        name = f"{draw(st.sampled_from('abc'))}{place}-{draw(st.integers(0, 99))}"
        number = draw(st.sampled_from([None, 0, 1, 2]))
        event = Event(name, {"n": place}, draw(st.integers(0, 2)), number)
        people = draw(st.lists(names, unique=True, max_size=3))
        sets = st.lists(st.sampled_from("pqrs"), unique=True, max_size=3).map(sorted)
        scores = st.sampled_from([0.0, 0.5, 1.0])
        made = [Match(each, event, draw(scores), tuple(draw(sets))) for each in people]
        found.append((event, made))
    return found


def packed(some: list[Entry]) -> Parcel:
    made = parcel([event for event, _ in some], [matches for _, matches in some])
    return Parcel.unpack(made.pack())


def spelt(given: Parcel) -> list[Any]:
    """Write a parcel out, match by match."""
    found = []
    for place, event in enumerate(given.events):
        matches = [
            (given.subscribers[number], rank, [given.subscriptions[each] for each in matched])
            for number, rank, matched in given.matches.of(place)
        ]
        columns = (int(given.us[place]), int(given.sequence[place]), given.forms[place])
        found.append((event, *columns, matches))
    return found


@given(st.lists(entries(), max_size=4))
def test_many_made_one_hold_the_matches_of_all(many: list[list[Entry]]) -> None:
    one = merge([packed(each) for each in many])
    assert spelt(one) == [row for each in many for row in spelt(packed(each))]
    assert sorted(one.subscribers) == sorted({m.subscriber for e in many for _, s in e for m in s})
    assert len(set(one.subscriptions)) == len(one.subscriptions)
    assert spelt(Parcel.unpack(one.pack())) == spelt(one)


@given(entries(), st.randoms())
def test_some_events_keep_their_matches_and_no_other_names(some: list[Entry], chance: Any) -> None:
    whole = packed(some)
    places = [place for place in range(len(some)) if chance.random() < 0.5]
    chance.shuffle(places)
    part = select(whole, np.array(places, np.int64))
    assert spelt(part) == [spelt(whole)[place] for place in places]
    assert set(part.subscribers) == {m.subscriber for place in places for m in some[place][1]}
    assert set(part.subscriptions) == {
        each for place in places for match in some[place][1] for each in match.matched
    }


@given(entries())
def test_the_order_is_time_then_number_then_id(some: list[Entry]) -> None:
    events = [event for event, _ in some]
    found = [events[place].id for place in in_order(packed(some)).tolist()]
    key = lambda each: (each.published_us, each.sequence or 0, each.id)  # noqa: E731
    assert found == [event.id for event in sorted(events, key=key)]


@given(entries(), st.sets(names))
def test_the_matches_of_some_subscribers_are_a_parcel(some: list[Entry], mine: set[str]) -> None:
    whole = packed(some)
    part = of_subscribers(whole, np.array([name in mine for name in whole.subscribers], np.bool_))
    expected = [(*row[:4], [each for each in row[4] if each[0] in mine]) for row in spelt(whole)]
    assert spelt(part) == [row for row in expected if row[4]]


@given(entries(), st.sets(names))
def test_an_event_in_parts_is_one_again(some: list[Entry], mine: set[str]) -> None:
    whole = packed(some)
    picked = np.array([name in mine for name in whole.subscribers], np.bool_)
    parts = merge([of_subscribers(whole, picked), of_subscribers(whole, ~picked)])
    there = spelt(of_subscribers(whole, np.ones(len(picked), np.bool_)))
    key = lambda row: (row[1], max(0, row[2]), row[0])  # noqa: E731
    expected = [(*row[:4], sorted(row[4])) for row in sorted(there, key=key)]
    assert [(*row[:4], sorted(row[4])) for row in spelt(joined(parts))] == expected


def test_the_form_of_an_event_in_parts_is_there_if_one_part_has_it() -> None:
    event = Event("e", {}, 1, 1)
    u, v = (Match(name, event, 0.5, ()) for name in "uv")
    parts = merge([packed([(event, [u])])._replace(forms=[""]), packed([(event, [v])])])
    assert joined(parts).forms == packed([(event, [v])]).forms


@given(st.lists(st.sampled_from("abcd"), max_size=8))
def test_an_id_is_repeated_whoever_it_is_for_and_whenever(ids: list[str]) -> None:
    events = [Event(name, {}, place // 2) for place, name in enumerate(ids)]
    given = packed([(each, [Match("u", each, 0.5, ())]) for each in events])
    assert repeats(given).tolist() == [name in ids[:place] for place, name in enumerate(ids)]


def test_nothing_is_a_parcel_too() -> None:
    assert spelt(merge([])) == spelt(empty()) == spelt(select(empty(), in_order(empty()))) == []
