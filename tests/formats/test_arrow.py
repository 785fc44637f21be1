"""Events and subscriptions as Arrow columns, and back."""

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.formats.arrow import (
    DELIVERIES,
    MATCHES,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    deliveries_to_table,
    events_to_table,
    matches_to_table,
    pandas_to_events,
    read_events,
    read_subscribers,
    read_subscriptions,
    read_valid_events,
    subscribers_to_table,
    subscriptions_to_table,
)
from tidings.formats.json_forms import loads_subscriber
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import Limits
from tidings.model.records import Delivery, Event, Match, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota
from tidings.window.sliding import Sliding

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def or_lists(values):
    return values | st.lists(values, max_size=3)


NUMBERS = st.integers(-3, 3) | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300)
ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "year": or_lists(NUMBERS),
        "genre": or_lists(st.text(max_size=3)),
        "seen": or_lists(st.booleans()),
        "from": or_lists(st.datetimes(timezones=st.just(UTC))),
    },
)
EVENTS = st.lists(
    st.builds(
        Event,
        st.text(min_size=1, max_size=3),
        ATTRIBUTES,
        st.datetimes(timezones=st.just(UTC)),
        st.none() | st.integers(0, 9),
        content=st.none() | st.fixed_dictionaries({"title": st.text(max_size=3)}),
    ),
    max_size=4,
)
CONDITIONS = ["genre = 'drama'", "year between 2000 and 2010 or title like 'Big%'", "seen != true"]
WEIGHTED = st.tuples(
    st.sampled_from(["carrier = 'AT&T'", "storage <= 16"]),
    st.sampled_from([0, 0.4, 1]),
    st.sampled_from(["active", "inactive", "dead"]),
)
RANKS = st.none() | st.floats(0, 1)
SUBSCRIPTION_LISTS = st.lists(
    st.builds(
        Subscription,
        st.text(min_size=1),
        st.just("bob"),
        st.sampled_from(CONDITIONS),
        prefrank=RANKS,
        score=RANKS,
    )
    | st.builds(
        Subscription,
        st.just("s"),
        st.just("bob"),
        any=st.lists(WEIGHTED, min_size=1, max_size=3),
        score=RANKS,
    ),
    max_size=4,
)


def listed(found: Iterable[Any]) -> list[Any]:
    """What was read, each to be looked at as what it should be."""
    return list(found)


def compared(events):
    """What makes two events the same: lists are equal as sets, 3 is 3.0."""
    return [(event.id, event.published_us, event.sequence, event.tokens) for event in events]


def table(**columns):
    rows = len(next(iter(columns.values())))
    known = {"id": [f"e{row}" for row in range(1, rows + 1)], "published_at": [0] * rows}
    return pa.table(known | columns)


@given(EVENTS)
def test_events_come_back_from_a_table(events):
    assert compared(read_events(events_to_table(events))) == compared(events)


@given(EVENTS)
def test_events_come_back_from_a_data_frame(events):
    frame = events_to_table(events).to_pandas()
    assert compared(pandas_to_events(frame)) == compared(events)


def test_a_record_batch_is_a_table_too():
    (batch,) = table(year=[2003, None]).to_batches()
    assert [event.attributes for event in listed(read_events(batch))] == [{"year": 2003}, {}]


def test_rows_keep_their_positions_across_batches():
    long = table(year=[math.nan if row == 9_999 else row for row in range(10_000)])
    found = listed(read_events(long))
    assert [type(item) for item in found].count(Event) == 9_999
    assert isinstance(found[9_999], BadRecord)
    assert found[9_999].position == 10_000


def test_the_columns_of_events():
    events = [
        Event("e1", {"genre": ("drama", "comedy"), "year": 2003, "length": 1}, 0, sequence=7),
        Event("e2", {"genre": "drama", "length": 1.5, "seen": EPOCH, "big": 2**70}, 1.5),
    ]
    found = events_to_table(events)
    assert found.schema == pa.schema(
        {
            "id": pa.string(),
            "published_at": pa.timestamp("us", tz="UTC"),
            "sequence": pa.int64(),
            "genre": pa.list_(pa.string()),
            "year": pa.int64(),
            "length": pa.float64(),
            "seen": pa.timestamp("us", tz="UTC"),
            "big": pa.float64(),
        }
    )
    assert found["genre"].to_pylist() == [["drama", "comedy"], ["drama"]]
    assert found["sequence"].to_pylist() == [7, None]
    assert found["year"].to_pylist() == [2003, None]


def test_without_sequences_and_attributes_there_are_no_such_columns():
    assert events_to_table([]).column_names == ["id", "published_at"]
    assert events_to_table([Event("e1", {}, 0)]).column_names == ["id", "published_at"]


def test_an_attribute_of_two_families_has_no_column():
    events = [Event("e1", {"year": 2003}, 0), Event("e2", {"year": "2003"}, 0)]
    with pytest.raises(InvalidForm, match="year is a number in event e1 and a string in event e2"):
        events_to_table(events)
    with pytest.raises(InvalidForm, match="year is a number in event e3 and a string in event e3"):
        events_to_table([Event("e3", {"year": (2003, "2003")}, 0)])


@pytest.mark.parametrize("name", ["id", "published_at", "sequence"])
def test_an_attribute_cannot_have_the_name_of_another_column(name):
    with pytest.raises(InvalidForm, match=f"attribute {name}: .* rename it"):
        events_to_table([Event("e1", {name: 1}, 0)])


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (pa.array([3], pa.uint8()), 3),
        (pa.array([1.5], pa.float32()), 1.5),
        (pa.array([1.5], pa.float16()), 1.5),
        (pa.array([Decimal("2.50")]), 2.5),
        (pa.array([True]), True),
        (pa.array(["drama"], pa.large_string()), "drama"),
        (pa.array(["drama"], pa.string_view()), "drama"),
        (pa.array(["drama"]).dictionary_encode(), "drama"),
        (pa.array([60], pa.timestamp("s", tz="Europe/Athens")), EPOCH + timedelta(minutes=1)),
        (pa.array([60_000], pa.timestamp("ms")), EPOCH + timedelta(minutes=1)),
        (pa.array([-1_999], pa.timestamp("ns")), EPOCH - timedelta(microseconds=2)),
        (pa.array([60], pa.timestamp("s")).dictionary_encode(), EPOCH + timedelta(minutes=1)),
        (pa.array([date(1970, 1, 2)]), EPOCH + timedelta(days=1)),
        (pa.array([86_400_000], pa.date64()), EPOCH + timedelta(days=1)),
        (pa.array([["drama", "comedy"]]), ("drama", "comedy")),
        (pa.array([[1, 2]], pa.large_list(pa.int8())), (1, 2)),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), (1, 2)),
        (pa.array([[60]], pa.list_(pa.timestamp("s"))), (EPOCH + timedelta(minutes=1),)),
        (pa.array([[]], pa.list_(pa.null())), ()),
    ],
    ids=lambda cells: str(cells.type) if isinstance(cells, pa.Array) else "",
)
def test_every_type_of_a_family_is_read(cells, value):
    (event,) = listed(read_events(table(a=cells)))
    assert event.attributes == {"a": value}


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([{"low": 1}]),
        pa.array([b"drama"]),
        pa.array([timedelta(1)]),
        pa.array([[[1]]]),
        pa.array([[{"low": 1}]]),
        pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())),
        pa.array([[("low", b"1")]], pa.map_(pa.string(), pa.binary())),
    ],
    ids=lambda cells: str(cells.type),
)
def test_a_column_of_another_type_is_refused_with_its_name(cells):
    with pytest.raises(InvalidForm, match="column odd "):
        read_events(table(odd=cells))


def test_a_column_of_nulls_is_no_attribute():
    (event,) = listed(read_events(table(a=pa.nulls(1))))
    assert event.attributes == {}


@pytest.mark.parametrize(
    "when",
    [
        pa.array([60]),
        pa.array([60.0]),
        pa.array([Decimal("60.0")]),
        pa.array(["1970-01-01T00:01:00Z"]),
        pa.array(["1970-01-01T02:01:00+02:00"]),
        pa.array([60_000_000_000], pa.timestamp("ns")),
        pa.array([60], pa.timestamp("s", tz="+02:00")),
    ],
    ids=lambda cells: str(cells.type),
)
def test_publication_times_are_timestamps_text_or_epoch_seconds(when):
    (event,) = listed(read_events(table(published_at=when)))
    assert event.published_us == 60_000_000


def test_maps_unfold_into_attributes():
    numbers = pa.array([[("year", 2003), ("length", None)], None], pa.map_(pa.string(), pa.int64()))
    lists = pa.array([[("genre", ["drama"])], []], pa.map_(pa.string(), pa.list_(pa.string())))
    times = pa.array([[("seen", 0)], []], pa.map_(pa.large_string(), pa.timestamp("s", tz="UTC")))
    found = listed(
        read_events(table(numbers=numbers, lists=lists, times=times, title=["Big Fish", None]))
    )
    assert [event.attributes for event in found] == [
        {"year": 2003, "genre": ("drama",), "seen": EPOCH, "title": "Big Fish"},
        {},
    ]


@pytest.mark.parametrize("name", ["year", "other", "id", "published_at", "sequence"])
def test_a_key_that_is_also_a_column_or_another_key_is_refused_in_its_row(name):
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("ok", 1)], [(name, 1)], None], kind)
    others = pa.array([[("other", 1)]] * 3, kind)
    first, second, third = listed(read_events(table(others=others, maps=maps, year=[None] * 3)))
    assert first.attributes == {"ok": 1, "other": 1}
    assert third.attributes == {"other": 1}
    assert second.reason == f"column maps: the key {name} is also another column or key"
    assert second.record == {
        "id": "e2",
        "published_at": 0,
        "others": {"other": 1},
        "maps": {name: 1},
    }


def test_one_bad_row_does_not_stop_the_others():
    found = listed(
        read_events(
            pa.table(
                {
                    "id": ["e1", None, "e3", "e4", "e5", "e6", "e7"],
                    "published_at": ["1970-01-01", "1970-01-01", None, "soon", *["1970-01-01"] * 3],
                    "year": [1.0, 1.0, 1.0, 1.0, math.inf, 1.0, 2.0],
                    "genre": [["a"], ["a"], ["a"], ["a"], ["a"], [None], ["b"]],
                }
            )
        )
    )
    assert [event.id for event in found if isinstance(event, Event)] == ["e1", "e6", "e7"]
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert [item.position for item in bad] == [2, 3, 4, 5]
    assert bad[0].reason == "the row: id is missing"
    assert bad[1].reason == "e3: published_at is missing"
    assert bad[2].reason.startswith("event e4: published_at: 'soon' is not a time")
    assert bad[3].reason == "event e5: attribute year: inf is not a finite number"
    assert bad[3].record == {
        "id": "e5",
        "published_at": "1970-01-01",
        "year": math.inf,
        "genre": ["a"],
    }


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([7, 2**60], pa.int64()),
        pa.array([7, 2**60], pa.uint64()),
        pa.array([Decimal(7), Decimal(2**60)], pa.decimal128(38, 0)),
        pa.array([7.0, 2.0**60]),
    ],
)
def test_whole_numbers_are_ids(ids):
    events = listed(read_events(pa.table({"id": ids, "published_at": [0, 1]})))
    assert [event.id for event in events] == ["7", str(2**60)]


def test_decimals_are_numbers():
    digits = [Decimal("0.10"), None, Decimal("12345678901234567.89")]
    numbers = pa.array(digits, pa.decimal128(38, 2))
    rows = {"id": [1, 2, 3], "published_at": pa.array([Decimal("1.5"), 2, 3]), "price": numbers}
    sequences = pa.array([Decimal(4), None, Decimal(5)], pa.decimal128(5, 0))
    events = listed(read_events(pa.table({**rows, "sequence": sequences})))
    assert [event.published_us for event in events] == [1_500_000, 2_000_000, 3_000_000]
    assert [event.sequence for event in events] == [4, None, 5]
    assert [event.attributes.get("price") for event in events] == [
        0.1,
        None,
        float(digits[2] or 0),
    ]


def test_a_time_outside_the_calendar_is_a_bad_row():
    times = pa.array([0, 2**62], pa.timestamp("s"))
    good, bad = listed(read_events(table(seen=times)))
    assert good.attributes == {"seen": EPOCH}
    assert bad.reason == f"the time {2**62} is outside the years 1 to 9999"
    assert bad.record["seen"] == 2**62


def test_a_bad_record_is_json():
    bad = BadRecord({"year": math.nan, "at": [EPOCH, 1.5], "map": {1: None}}, "no", 3)
    assert json.loads(json.dumps(bad.to_dict(), allow_nan=False)) == {
        "record": {"year": "nan", "at": ["1970-01-01 00:00:00+00:00", 1.5], "map": {"1": None}},
        "reason": "no",
        "position": 3,
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"published_at": [0]}, "there is no column id among published_at"),
        ({"id": ["e1"], "when": [0]}, "there is no column published_at among id, when"),
        ({"id": [1.5], "published_at": [0]}, "column id holds double; cast it to string"),
        ({"id": [True], "published_at": [0]}, "column id holds bool; cast it to string"),
        ({"id": ["e"], "published_at": [True]}, "column published_at holds bool, not times"),
        ({"id": ["e"], "published_at": [[0]]}, "column published_at holds list"),
        (
            {"id": ["e"], "published_at": [0], "sequence": ["one"]},
            "column sequence holds string; cast it to a whole number",
        ),
    ],
)
def test_a_table_that_holds_no_events_is_refused_at_once(columns, message):
    with pytest.raises(InvalidForm, match=message):
        read_events(pa.table(columns))


def test_two_columns_of_one_name_are_refused():
    twice = pa.table([["e1"], [0], [1], [2]], names=["id", "published_at", "year", "year"])
    with pytest.raises(InvalidForm, match="several columns year"):
        read_events(twice)


def test_a_data_frame_marks_the_missing_its_own_way():
    frame = pd.DataFrame(
        {
            "id": ["e1", "e2"],
            "published_at": pd.to_datetime(["2026-11-15T20:05:00Z", "2026-11-15T20:06:00Z"]),
            "sequence": [3, None],
            "year": [2003, math.nan],
            "title": ["Big Fish", None],
            "seen": [pd.NaT, pd.Timestamp("1970-01-01")],
            "genre": pd.Categorical(["drama", None]),
            "cast": [["Finney", "McGregor"], None],
        },
        index=["x", "y"],
    )
    first, second = listed(pandas_to_events(frame))
    assert first.sequence == 3
    assert first.attributes == {
        "year": 2003,
        "title": "Big Fish",
        "genre": "drama",
        "cast": ("Finney", "McGregor"),
    }
    assert second.sequence is None
    assert second.attributes == {"seen": EPOCH}
    assert second.published_us - first.published_us == 60_000_000


def test_a_data_frame_of_mixed_types_is_refused_with_the_column():
    frame = pd.DataFrame({"id": ["e1", "e2"], "published_at": [0, 1], "year": [2003, "old"]})
    with pytest.raises(InvalidForm, match=r"column of mixed types: .*year"):
        pandas_to_events(frame)


@given(SUBSCRIPTION_LISTS)
def test_subscriptions_come_back_from_a_table(subscriptions):
    found = subscriptions_to_table(subscriptions)
    assert found.schema == SUBSCRIPTIONS
    assert list(read_subscriptions(found)) == subscriptions


def test_a_state_or_a_column_that_is_left_out_is_the_default():
    parts = [[{"condition": "storage <= 16", "weight": Decimal("0.7")}]]
    rows = pa.table({"id": ["s1"], "subscriber": ["bob"], "any": parts, "score": [Decimal("1.5")]})
    expected = Subscription("s1", "bob", any=[("storage <= 16", 0.7)], score=1.5)
    (found,) = listed(read_subscriptions(rows))
    assert found == expected
    assert isinstance(found.score, float)


def test_one_bad_subscription_does_not_stop_the_others():
    rows = {
        "id": ["s1", "s2", "s3", None],
        "subscriber": ["bob", "bob", None, "bob"],
        "where": ["a = 1", "a =", "a = 1", "a = 1"],
    }
    first, *bad = listed(read_subscriptions(pa.table(rows)))
    assert first == Subscription("s1", "bob", where="a = 1")
    assert [item.position for item in bad] == [2, 3, 4]
    assert bad[0].reason.startswith("subscription s2: ")
    assert bad[1].reason == "s3: subscriber is missing"
    assert bad[2].record == {"subscriber": "bob", "where": "a = 1"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["s1"]}, "there is no column subscriber"),
        (
            {"id": ["s1"], "subscriber": ["bob"], "rank": [1]},
            "unknown column rank; expected one of: id",
        ),
        ({"id": ["s1"], "subscriber": ["bob"], "where": [1]}, "column where holds int64"),
    ],
)
def test_a_table_that_holds_no_subscriptions_is_refused_at_once(columns, message):
    with pytest.raises(InvalidForm, match=message):
        read_subscriptions(pa.table(columns))


def test_subscribers_come_back_from_a_table():
    people = [
        Subscriber("addison", Policy(k=2, window=Sliding(4)), [("s1", "s2")]),
        Subscriber("bob"),
    ]
    found = subscribers_to_table(person.to_dict() for person in people)
    assert found.schema == SUBSCRIBERS
    assert list(read_subscribers(found, loads_subscriber)) == people


def test_a_policy_may_be_a_struct_of_what_is_given():
    policies = [{"k": 2, "window": {"name": "sliding", "length": 4}}, {"k": 3}, None]
    rows = pa.table({"id": ["addison", "bob", "carson"], "policy": policies})
    assert list(read_subscribers(rows, loads_subscriber)) == [
        Subscriber("addison", Policy(k=2, window=Sliding(4))),
        Subscriber("bob", Policy(k=3)),
        Subscriber("carson"),
    ]


def test_rules_of_different_kinds_may_share_a_struct():
    policy = {"k": 2, "rules": [{"name": "quota", "n": 5}, {"name": "quiet", "start": "21:00"}]}
    rows = pa.table({"id": ["addison", "bob"], "policy": [policy, {"k": 3, "rules": None}]})
    assert list(read_subscribers(rows, loads_subscriber)) == [
        Subscriber("addison", Policy(k=2, rules=[Quota(5), Quiet("21:00")])),
        Subscriber("bob", Policy(k=3)),
    ]


def test_one_bad_subscriber_does_not_stop_the_others():
    rows = pa.table({"id": ["addison", "bob", "carson"], "policy": ['{"k": 0}', "{k", '{"k": 1}']})
    first, second, third = listed(read_subscribers(rows, loads_subscriber))
    assert "subscriber addison: k is a whole number of at least 1" in first.reason
    assert "subscriber bob: policy is not JSON" in second.reason
    assert third == Subscriber("carson", Policy(k=1))
    with pytest.raises(InvalidForm, match="unknown column name; expected one of: id, policy"):
        read_subscribers(pa.table({"id": ["bob"], "name": ["Bob"]}), loads_subscriber)


def test_policies_are_no_maps():
    policies = pa.array([[("k", "2")]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(InvalidForm, match=r"column policy holds map<.*>; a policy is JSON text"):
        read_subscribers(pa.table({"id": ["bob"], "policy": policies}), loads_subscriber)


def test_weighted_predicates_may_be_json_and_have_known_fields():
    texts = ['[["a = 1", 0.5]]', "[[", None]
    rows = {"id": ["s1", "s2", "s3"], "subscriber": ["bob"] * 3, "any": texts}
    first, second, third = listed(read_subscriptions(pa.table(rows)))
    assert first == Subscription("s1", "bob", any=[["a = 1", 0.5]])
    assert "subscription s2: any is not JSON" in second.reason
    assert "give either `where` or `any`" in third.reason
    other = {"id": ["s4"], "subscriber": ["bob"], "any": [[{"what": "a = 1", "weight": 1.0}]]}
    [bad] = listed(read_subscriptions(pa.table(other)))
    assert bad.reason == "any has the fields condition, weight and maybe state, not what, weight"


def test_matches_are_a_table():
    event = Event("e1", {}, published_at=60)
    found = matches_to_table([Match("bob", event, 0.5, ("s1", "s2"))])
    assert found.schema == MATCHES
    assert found.to_pylist() == [
        {
            "subscriber": "bob",
            "event": "e1",
            "published_at": EPOCH + timedelta(minutes=1),
            "score": 0.5,
            "matched": ["s1", "s2"],
        }
    ]
    assert matches_to_table([]).schema == MATCHES


def test_deliveries_are_a_table_whatever_their_window():
    windows: list[dict[str, Any]] = [
        {"name": "continuous"},
        {"name": "sliding", "length": 4, "end": "1970-01-01"},
    ]
    found = deliveries_to_table(
        Delivery("bob", "e1", 0.5, 1, window, ("s1",), 17, 60_000_001) for window in windows
    )
    assert found.schema == DELIVERIES
    assert [json.loads(text) for text in found["window"].to_pylist()] == windows
    assert found.drop_columns("window").to_pylist()[0] == {
        "subscriber": "bob",
        "event": "e1",
        "rank": 0.5,
        "position": 1,
        "matched": ["s1"],
        "sequence": 17,
        "delivered_at": EPOCH + timedelta(seconds=60, microseconds=1),
        "content": None,
    }


def test_times_of_any_zone_are_the_same_time():
    zone = timezone(timedelta(hours=2))
    there = Event("e1", {"seen": datetime(2026, 1, 1, 2, tzinfo=zone)}, 0)
    here = Event("e1", {"seen": datetime(2026, 1, 1, tzinfo=UTC)}, 0)
    assert compared(read_events(events_to_table([there]))) == compared([here])


def bad_text(*cells: bytes) -> pa.Array:
    """Return texts as they come from Spark, which does not look at their bytes."""
    return pa.array(cells, pa.binary()).view(pa.string())


def test_text_that_is_no_utf8_is_a_bad_record_beside_the_others():
    table = pa.table(
        {
            "id": bad_text(b"e1", b"e\xff", b"e3"),
            "published_at": pa.array([0, 1, 2]),
            "genre": bad_text(b"drama", b"drama", b"\xc3("),
        }
    )
    first, second, third = read_valid_events(table)
    assert first == Event("e1", {"genre": "drama"}, 0)
    assert isinstance(second, BadRecord)
    assert second.position == 2
    assert "codec can't decode byte 0xff" in second.reason
    assert second.record == {
        "id": "e\N{REPLACEMENT CHARACTER}",
        "published_at": 1,
        "genre": "drama",
    }
    assert isinstance(third, BadRecord)
    assert third.record["id"] == "e3"
    with pytest.raises(InvalidForm, match=r"the Arrow columns are damaged.*UTF8"):
        read_events(table)


def test_only_an_exhausted_memory_is_not_the_fault_of_a_record():
    def raising(error: Exception) -> Any:
        def read(_: object) -> None:
            raise error

        return lambda: attempt(read, {"a": 1}, 7, dict)

    for error in (TypeError("odd"), KeyError("odd"), OSError("odd"), AssertionError("odd")):
        found = raising(error)()
        assert found == BadRecord({"a": 1}, f"{type(error).__name__}: {error}", 7)
    assert raising(InvalidForm("as it is"))().reason == "as it is"
    with pytest.raises(MemoryError):
        raising(MemoryError())()


def test_a_record_that_cannot_be_shown_is_still_a_bad_record():
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    for value in (Broken(), deep):
        letter = BadRecord({"a": value}, "broken", 1).to_dict()
        assert json.loads(json.dumps(letter))["reason"] == "broken"


def test_a_row_above_the_limits_is_a_bad_record():
    table = pa.table({"id": ["e1", "e2"], "published_at": [0, 0], "title": ["x" * 9_000, "x"]})
    big, small = read_events(table, limits=Limits.public())
    assert isinstance(big, BadRecord)
    assert "string_bytes = 8,000" in big.reason
    assert isinstance(small, Event)
    lists = pa.table({"id": ["e1", "e2"], "published_at": [0, 0], "n": [[1] * 1_001, [1]]})
    long, short = read_events(lists, limits=Limits.public())
    assert isinstance(long, BadRecord)
    assert "list_values = 1,000" in long.reason
    assert isinstance(short, Event)


def test_views_that_share_one_long_list_are_decoded_row_by_row():
    rows, size = 300, 100_000
    views = pa.ListViewArray.from_arrays(
        pa.array([0] * rows, pa.int32()),
        pa.array([size] * rows, pa.int32()),
        pa.array(np.zeros(size, np.int8)),
    )
    ids, times = pa.array([f"e{at}" for at in range(rows)]), pa.array([0] * rows)
    table = pa.table({"id": ids, "published_at": times, "n": views})
    assert isinstance(next(read_events(table)), Event)
    found = list(read_events(table, limits=Limits.public()))
    assert len(found) == rows
    assert all(isinstance(each, BadRecord) for each in found)


@pytest.mark.parametrize("given", [None, "events", 7, [{"id": "e1"}]])
def test_what_is_no_table_is_refused(given):
    with pytest.raises(InvalidForm, match="an Arrow table or record batch"):
        read_events(given)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_view(pa.list_view(pa.null())),  # Arrow aborts where it decodes such a column
        pa.map_(pa.string(), pa.string()),
        pa.binary(),
        pa.duration("s"),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.struct([("a", pa.list_(pa.binary()))]),
    ],
)
def test_columns_that_no_form_is_made_of_are_refused(kind):
    empty = pa.schema({"id": pa.string(), "subscriber": pa.string(), "any": kind}).empty_table()
    with pytest.raises(InvalidForm, match="column any holds "):
        read_subscriptions(empty)


def test_slices_of_structs_of_nulls_are_read():
    """Arrow ends the process where such a slice is cast."""
    kind = pa.struct([("name", pa.string()), ("origin", pa.null())])
    policy = pa.struct([("k", pa.int64()), ("window", kind), ("decay", pa.null())])
    cells = [{"k": 3, "window": {"name": "continuous", "origin": None}, "decay": None}] * 5
    table = pa.table({"id": list("abcde"), "policy": pa.array(cells, policy)})
    found = list(read_subscribers(table.slice(3), loads_subscriber))
    assert [each.id for each in found if isinstance(each, Subscriber)] == ["d", "e"]
    nulls = pa.array([[None], None, [], [None, None]], pa.list_(pa.null()))
    events = pa.table({"id": list("abcd"), "published_at": [0] * 4, "n": nulls})
    assert len(list(read_events(events.slice(1)))) == 3


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_views_of_lists_are_read_as_lists_are(view):
    """Arrow gives wrong values where it casts them to lists."""
    cells = [[10**15], None, [-1, 7], [], [0]]
    columns = {"id": list("abcde"), "published_at": [0] * 5}
    for kind in (pa.timestamp("us", "UTC"), pa.int64(), pa.timestamp("ms")):
        wanted, found = (
            pa.table(columns | {"n": pa.array(cells, pa.list_(pa.int64())).cast(made(kind))})
            if made is pa.list_
            else pa.table(columns | {"n": pa.array(cells, made(kind))})
            for made in (pa.list_, view)
        )
        for begin in range(5):
            one, other = (list(read_events(table.slice(begin))) for table in (wanted, found))
            assert [each.to_dict() for each in one] == [each.to_dict() for each in other]


NESTED = pa.struct(
    {
        "title": pa.string(),
        "price": pa.decimal128(5, 2),
        "until": pa.timestamp("ns"),
        "links": pa.list_(pa.struct({"url": pa.string(), "size": pa.int32()})),
        "more": pa.map_(pa.string(), pa.float64()),
    }
)
FULL = {
    "title": "Big Fish",
    "price": Decimal("9.50"),
    "until": datetime(2026, 11, 15),  # noqa: DTZ001 - Arrow keeps it without a zone
    "links": [{"url": "/a", "size": 1}, {"url": None, "size": 2}],
    "more": [("stars", 4.5)],
}


def with_content(cells: pa.Array) -> pa.Table:
    names, times = [f"e{n}" for n in range(len(cells))], pa.array(range(len(cells)))
    return pa.table({"id": names, "published_at": times.cast(pa.timestamp("us")), "content": cells})


@pytest.mark.parametrize("limits", [Limits(), Limits.public()])
@pytest.mark.parametrize(
    ("cells", "contents"),
    [
        (pa.array(['{"b": 1, "a": [null]}', None, "{}"]), [{"b": 1, "a": [None]}, None, {}]),
        (pa.array(['{"a": 1}', None]).dictionary_encode(), [{"a": 1}, None]),
        (pa.array([None], pa.null()), [None]),
        (
            pa.array([FULL, None, {"title": None}], NESTED),
            [
                {
                    "title": "Big Fish",
                    "price": 9.5,
                    "until": "2026-11-15T00:00:00Z",
                    "links": [{"url": "/a", "size": 1}, {"size": 2}],
                    "more": {"stars": 4.5},
                },
                None,
                {},
            ],
        ),
        (
            pa.array([[("title", "ü"), ("url", None)], None], pa.map_(pa.string(), pa.string())),
            [{"title": "ü"}, None],
        ),
    ],
)
def test_content_is_text_a_struct_or_a_map(
    cells: pa.Array, contents: list[Any], limits: Limits
) -> None:
    events = list(read_events(with_content(cells), limits=limits))
    assert [isinstance(event, Event) and event.content for event in events] == contents


@pytest.mark.parametrize(
    ("cell", "kind", "reason"),
    [
        ("a story", pa.string(), "content holds no JSON .an attribute needs another name.: Expec"),
        ('{"a": 1, "a": 2}', pa.string(), "the name 'a' occurs twice"),
        ("[1]", pa.string(), r"event e0: content is an object with named fields, not \[1\]"),
        ('{"a": 1e999}', pa.string(), "event e0: content: a: inf is not a finite number"),
        ([("a", math.nan)], pa.map_(pa.string(), pa.float64()), "a: nan is not a finite number"),
    ],
)
def test_a_row_with_wrong_content_is_a_bad_record(
    cell: Any, kind: pa.DataType, reason: str
) -> None:
    good, bad, last = list(read_events(with_content(pa.array([None, cell, None], kind))))[:3]
    assert isinstance(good, Event)
    assert isinstance(last, Event)
    assert isinstance(bad, BadRecord)
    assert re.search(reason.replace("e0", "e1"), bad.reason)


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.list_(pa.string()), pa.struct({"a": pa.binary()}), pa.binary()]
)
def test_a_column_content_of_another_type_is_refused_with_the_way_out(kind: pa.DataType) -> None:
    with pytest.raises(InvalidForm, match=r"column content holds .*; an attribute needs another"):
        read_events(with_content(pa.array([None], kind)))
