"""Events encoded by column stamp and compare what the same events do one by one."""

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.index.access.workload import events, subscriptions

from tidings.formats.arrow import events_to_table, read_event_columns
from tidings.index.access import Access
from tidings.index.access.query import encode_events
from tidings.model.event_columns import ColumnEvents
from tidings.model.records import Event

PLAIN = [
    Event(event.id, {name: value for name, value in event.attributes.items() if name != "m"}, 0)
    for event in events(60, 5)
]


def as_columns(some: list[Event]) -> ColumnEvents:
    [batch] = events_to_table(some).to_batches()
    columns = read_event_columns(batch)
    assert columns is not None
    return columns


def as_maps(some: list[Event]) -> ColumnEvents:
    """Return events whose attributes are in one map for texts and one for numbers."""
    values: dict[type, list[Any]] = {
        kind: [[*((k, v) for k, v in one.attributes.items() if type(v) is kind)] for one in some]
        for kind in (str, int)
    }
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([one.id for one in some]),
            pa.array([one.published_us for one in some], pa.timestamp("us", "UTC")),
            pa.array(values[str], pa.map_(pa.string(), pa.string())),
            pa.array(values[int], pa.map_(pa.string(), pa.float64())),
        ],
        ["id", "published_at", "texts", "numbers"],
    )
    columns = read_event_columns(batch)
    assert columns is not None
    return columns


def encoded(access: Access, some: Any) -> list[str]:
    """Return what each event stamps and compares, in no order."""
    events = encode_events(access.snapshot.vocabulary, some).events
    return [
        json.dumps(
            [
                sorted(events.items[first:last].tolist()),
                sorted(
                    zip(
                        events.slots[begin:end].tolist(),
                        events.upper[begin:end].tolist(),
                        events.lower[begin:end].tolist(),
                        strict=True,
                    )
                ),
            ]
        )
        for first, last, begin, end in events.spans.reshape(-1, 4).tolist()
    ]


@pytest.mark.parametrize("form", [as_columns, as_maps])
def test_columns_stamp_what_events_do(form: Any) -> None:
    access = Access(subscriptions(300, 3))
    columns = form(PLAIN)
    one_by_one = encoded(access, PLAIN)
    assert encoded(access, columns) == one_by_one
    assert encoded(access, columns[7:31]) == one_by_one[7:31]
    assert encoded(access, columns[9:9]) == []


@pytest.mark.parametrize("form", [as_columns, as_maps])
def test_columns_find_the_matches_of_their_events(form: Any) -> None:
    wanted = subscriptions(400, 4)
    by_events, by_columns = Access(wanted), Access(wanted)
    expected, answer = by_events.matching_many(PLAIN), by_columns.matching_many(form(PLAIN))
    expected, answer = by_events.matching_many(PLAIN), by_columns.matching_many(as_maps(PLAIN))
    for position in range(len(PLAIN)):
        assert {subscription.id for subscription in answer.subscriptions(position)} == {
            subscription.id for subscription in expected.subscriptions(position)
        }


def test_an_index_without_subscriptions_encodes_nothing() -> None:
    assert encoded(Access(), as_columns(PLAIN)) == encoded(Access(), PLAIN)
