"""Whole columns in, whole columns out: the deliveries are those of events that come one by one."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Engine, Event, InvalidForm, Policy, Sliding, Subscriber, Subscription
from tidings.feed.columnar import deliveries
from tidings.feed.columnar.deliveries import DuePage
from tidings.formats.arrow import DELIVERIES, deliveries_to_table, events_to_table, read_events
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Delivery

POLICIES: list[dict[str, Any]] = [
    {"k": 2, "window": {"name": "sliding", "length": 3}},
    {"k": 2, "window": {"name": "sliding", "length": "3s"}, "diversify": "divrank"},
    {"k": 1, "window": {"name": "periodic", "length": "3s"}},
    {"k": 2, "window": {"name": "periodic", "length": 3, "count": "published"}},
    {"k": 1, "window": {"name": "periodic", "at": ["00:00:05", "00:00:11"]}},
    {"k": 2, "window": {"name": "jumping", "length": "4s", "step": "2s"}},
    {"k": 2, "window": {"name": "jumping", "length": 4, "step": 2, "count": "published"}},
    {"k": 2, "window": "continuous", "decay": {"name": "exponential", "rate": 0.1}},
    {"k": 2, "window": {"name": "history", "length": 4}},
    {"k": 2, "window": "continuous", "rules": [{"name": "quota", "n": 1, "per": "4s"}]},
    {"k": 2, "window": "continuous", "rules": [{"name": "different", "min": 0.9, "within": "5s"}]},
]
GENRES = ["drama", "comedy", "horror"]
cells = st.fixed_dictionaries(
    {
        "id": st.sampled_from([None, "", *(f"e{number}" for number in range(12))]),
        "published_at": st.integers(0, 14).map(lambda seconds: seconds * 1_000_000),
        "sequence": st.none() | st.integers(-1, 30),
        "content": st.sampled_from([None, None, '{"title": "x"}', "[]"]),
        "genre": st.sampled_from([None, *GENRES]),
        "year": st.sampled_from([None, 2000.0, 2001.0, float("nan")]),
    }
)
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us", "UTC"),
        "sequence": pa.int64(),
        "content": pa.string(),
        "genre": pa.string(),
        "year": pa.float64(),
    }
)
tables = st.lists(cells, max_size=20).map(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


def in_order(rows: list[dict[str, Any]]) -> pa.Table:
    """Return valid events in order of publication, which are taken at once."""
    ordered = sorted(rows, key=lambda row: row["published_at"])
    valid = [
        row | {"id": f"e{number}", "sequence": None, "year": row["year"] and 2000.0}
        for number, row in enumerate(ordered)
    ]
    return pa.Table.from_pylist(valid, SCHEMA).drop_columns("content")


ordered_tables = st.lists(cells, min_size=8, max_size=20).map(in_order)


def engine_of(policies: list[int], index: str, feeds: str, lateness: str = "2s") -> Engine:
    engine = Engine(lateness=lateness, remember=5, index=index, feeds=feeds)
    for number, policy in enumerate(policies):
        name = f"u{number}"
        engine.subscribe({"id": name, "policy": POLICIES[policy], "paused": number == 3})
        engine.add(Subscription(f"{name}-any", name, "year >= 2000", prefrank=0.2))
        engine.add(
            Subscription(f"{name}-one", name, f"genre = '{GENRES[number % 3]}'", prefrank=0.7)
        )
    return engine


def state(engine: Engine) -> Any:
    """Return everything that a call can change, but the form of the feeds."""
    snapshot = engine.snapshot()
    letters = [letter.to_dict() for letter in engine.dead_letters]
    late = [event.to_dict() for event in engine.late]
    quality = vars(engine.quality()) | {"dropped_by": None}
    lists = [engine.feed(name) for name in engine._stages.matcher.subscribers]
    return snapshot["intake"], letters, late, quality, lists


@pytest.mark.parametrize("few", [0, 10**6])
@settings(max_examples=30)
@given(
    table=tables,
    policies=st.lists(st.integers(0, len(POLICIES) - 1), min_size=1, max_size=5),
    split=st.integers(0, 20),
)
def test_columns_deliver_what_single_events_deliver(few, table, policies, split):
    assert_same_deliveries(few, table, policies, split, "2s")


@pytest.mark.parametrize("few", [0, 10**6])
@settings(max_examples=30)
@given(
    table=ordered_tables,
    policies=st.lists(st.integers(0, len(POLICIES) - 1), min_size=1, max_size=5),
    split=st.integers(0, 20),
)
def test_events_in_order_deliver_what_single_events_deliver(few, table, policies, split):
    assert_same_deliveries(few, table, policies, split, "0s")


def assert_same_deliveries(
    few: int, table: pa.Table, policies: list[int], split: int, lateness: str
) -> None:
    one_by_one = engine_of(policies, "scan", "plain", lateness)
    expected = [found for row in read_events(table) for found in one_by_one.publish_many([row])]
    many, columns, plain = (
        engine_of(policies, *kind, lateness)
        for kind in (("access", "table"), ("access", "table"), ("scan", "plain"))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "FEW", few)
        objects = many.publish_many(read_events(table))
        parts = [columns.publish_table(table[:split]), columns.publish_table(table[split:])]
        assert objects == expected
        assert pa.concat_tables(parts).equals(deliveries_to_table(expected))
        assert plain.publish_table(table).equals(deliveries_to_table(expected))
        assert columns.snapshot() == many.snapshot()
        for name in many._stages.matcher.subscribers:
            for event in [f"e{number}" for number in range(12)]:
                found = [one._memory.delivery(name, event) for one in (one_by_one, many, columns)]
                assert found == [found[0]] * 3
        last = one_by_one.advance(100)
        assert all(engine.advance(100) == last for engine in (many, columns, plain))
    intake, *account, quality, lists = state(one_by_one)
    for engine in (many, columns, plain):
        its_intake, *its_account, its_quality, its_lists = state(engine)
        assert (its_intake, its_account, its_lists) == (intake, account, lists)
        assert its_quality == pytest.approx(quality)


def test_rows_that_are_refused_are_dead_letters():
    engine = engine_of([0], "access", "table")
    rows: list[dict[str, Any]] = [
        {"id": "a", "year": 2000.0},
        {"id": None},
        {"id": "a"},
        {"id": "b", "year": 2001.0},
    ]
    table = pa.Table.from_pylist([row | {"published_at": 0} for row in rows], SCHEMA)
    engine.publish_table(table)
    delivered = engine.publish_table(pa.table({"id": ["c"], "published_at": [9]}))
    assert delivered["event"].to_pylist() == ["a", "b"]
    assert delivered.schema == DELIVERIES
    reasons = [letter.reason for letter in engine.dead_letters]
    assert "id is missing" in reasons[0]
    assert "published before" in reasons[1]


@pytest.mark.parametrize("wrong", [None, [], "x", pa.table({"id": ["a"]}), pa.array([1])])
def test_what_is_no_table_of_events_is_refused(wrong):
    engine = engine_of([0], "access", "table")
    with pytest.raises(InvalidForm):
        engine.publish_table(wrong)
    assert engine.publish_table(events_to_table([]).slice(0)).num_rows == 0


def test_a_bad_record_of_a_reader_is_a_dead_letter():
    engine = Engine()
    assert engine.publish_many([BadRecord({"id": 1}, "no", 3)]) == []
    assert [(letter.record, letter.reason) for letter in engine.dead_letters] == [({"id": 1}, "no")]


def test_many_deliveries_are_explained_from_columns():
    engine = Engine(index="access", feeds="table")
    for number in range(100):
        engine.subscribe(Subscriber(f"p{number:02d}", Policy(k=1, window=Sliding(5))))
        engine.add(Subscription(f"s{number}", f"p{number:02d}", "a = 1", prefrank=0.5))
    content = {"title": "x" * 100}
    event = Event("e1", {"a": 1}, published_at=0, content=content)
    table = engine.publish_table(events_to_table([event]))
    assert table.num_rows == 100
    delivery = engine.explain("p42", "e1").delivery
    assert delivery is not None
    assert (delivery.matched, delivery.content) == (("s42",), None)
    assert "it was not" not in str(engine.explain("p42", "e1"))
    assert engine._memory.delivery("p999", "e1") is None


def delivery(subscriber: str, event: str = "e") -> Delivery:
    return Delivery(subscriber, event, 0.5, 1, {}, (), 1, 0)


def test_a_page_of_objects_is_split():
    page = DuePage([delivery("a", "f"), delivery("a"), delivery("b")], np.array([0, 1, 1]))
    assert [(turn, len(some)) for turn, some in page.objects_by_turn()] == [(0, 1), (1, 2)]
    others, its = page.split({"a"})
    assert [each.subscriber for each in (*others.objects(), *its.objects())] == ["b", "a", "a"]
