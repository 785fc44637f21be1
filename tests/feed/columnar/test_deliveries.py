"""Deliveries as columns become the same objects in the order of the offers that caused them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_feeds import offers_of
from tests.feed.streams import WINDOWS, enrolled, plain_or_diverse, policies, streams

from tidings.errors import TidingsError
from tidings.feed.columnar import deliveries, id_tables
from tidings.feed.columnar.deliveries import (
    CohortDeliveries,
    DeliveryBatch,
    IdTables,
    _format_times,
    delivery_table,
    object_deliveries,
)
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.id_tables import EMPTY, EnrolledSubscribers, MatchedSets
from tidings.formats.arrow import deliveries_to_table
from tidings.model.records import Delivery, Event
from tidings.model.values import format_time

SECOND = 1_000_000


def tables() -> IdTables:
    """Two subscribers, two events and two subscriptions."""
    made = IdTables(EnrolledSubscribers(), EventTable(), MatchedSets())
    made.subscribers.add_many(["ada", "bob"])
    for number, name in enumerate(("e", "f")):
        made.events.slot(Event(name, {}, number), lambda _: None)
    made.matched.hold(["s", "t"])
    return made


def cohort(window: str, *rows: tuple[int, int, int, float]) -> CohortDeliveries:
    """Return deliveries by order, subscriber, event and rank."""
    columns = [
        [order, 9, event, event, 1, SECOND, 2 * SECOND, 5, order + 1, 3 * SECOND]
        for order, _, event, _ in rows
    ]
    return CohortDeliveries(
        np.array([row[1] for row in rows], np.int64),
        np.array(columns, np.int64).reshape(-1, 10),
        np.array([row[3] for row in rows], np.float64),
        np.array([row[3] for row in rows], np.float64),
        window,
    )


def delivery(subscriber: str, event: str, rank: float, sequence: int, name: str) -> Delivery:
    window = {
        "name": name,
        "start": "1970-01-01T00:00:01Z",
        "end": "1970-01-01T00:00:02Z",
        "size": 5,
    }
    matched = {"e": ("s",), "f": ("t",)}[event]
    return Delivery(subscriber, event, rank, 1, window, matched, sequence, 3 * SECOND)


def test_columns_become_the_delivery_that_they_describe():
    batch = DeliveryBatch([cohort("sliding", (0, 1, 0, 0.5))], tables())
    assert batch.objects() == [delivery("bob", "e", 0.5, 1, "sliding")]
    assert not batch.has_objects
    assert batch.windows == ["sliding"]


def test_a_delivery_without_subscriptions_has_none():
    part = cohort("sliding", (0, 1, 0, 0.5))
    part.columns[0, 3] = EMPTY
    assert DeliveryBatch([part], tables()).objects()[0].matched == ()


def test_cohorts_are_merged_in_the_order_of_the_offers():
    first = cohort("sliding", (0, 0, 0, 0.1), (3, 0, 1, 0.2))
    second = cohort("history", (1, 1, 0, 0.3), (2, 1, 1, 0.4))
    batch = DeliveryBatch([first, second], tables())
    assert len(batch) == 4
    assert batch.objects() == [
        delivery("ada", "e", 0.1, 1, "sliding"),
        delivery("bob", "e", 0.3, 2, "history"),
        delivery("bob", "f", 0.4, 3, "history"),
        delivery("ada", "f", 0.2, 4, "sliding"),
    ]
    assert batch.part.tolist() == [0, 1, 1, 0]


def test_deliveries_of_one_offer_keep_their_order():
    rows = [(2, 0, 0, 0.1), (1, 0, 1, 0.2), (2, 0, 1, 0.3), (1, 0, 0, 0.4)]
    batch = DeliveryBatch([cohort("sliding", *rows)], tables())
    assert batch.rank.tolist() == [0.2, 0.4, 0.1, 0.3]


def test_objects_take_their_places_among_columns():
    own = [
        (2, delivery("eve", "e", 0.7, 1, "own")),
        (0, delivery("eve", "f", 0.8, 2, "own")),
    ]
    batch = DeliveryBatch([cohort("sliding", (1, 0, 0, 0.1)), object_deliveries(own)], tables())
    assert batch.has_objects
    assert [one.rank for one in batch.objects()] == [0.8, 0.1, 0.7]
    assert batch.objects()[0] is own[1][1]
    assert batch.objects()[2] is own[0][1]


def test_a_batch_may_be_empty():
    for parts in ([], [cohort("sliding")], [object_deliveries([])]):
        batch = DeliveryBatch(parts, tables())
        assert len(batch) == 0
        assert batch.objects() == []
        assert not batch.has_objects


def test_an_empty_batch_never_grows_old():
    ids = tables()
    batch = DeliveryBatch([], ids)
    ids.subscribers.remove("bob")
    ids.subscribers.add("eve")
    assert batch.objects() == []


def test_old_columns_are_refused_once_a_number_is_reused():
    ids = tables()
    batch = DeliveryBatch([cohort("sliding", (0, 1, 0, 0.5))], ids)
    ids.subscribers.remove("bob")
    assert len(batch.objects()) == 1
    ids.subscribers.add("eve")
    with pytest.raises(TidingsError, match="these deliveries are old"):
        batch.objects()
    assert len(batch) == 1


@settings(max_examples=60)
@given(data=st.data())
def test_columns_agree_with_objects(data: st.DataObject) -> None:
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    table = TableFeeds()
    enrolled(table, {name: data.draw(policies(window, plain_or_diverse)) for name in "uvw"})
    stream = data.draw(streams("uvw"))
    offered = table.offer_matches(offers_of(table, stream))
    assert delivery_table(offered, table.tables) == deliveries_to_table(offered.objects())
    if stream:
        due = table.advance_columns(stream[-1].now)
        assert delivery_table(due, table.tables) == deliveries_to_table(due.objects())


@given(
    st.lists(st.integers(-63 * 10**15, 300 * 10**15) | st.integers(0, 99).map(lambda s: s * 10**6))
)
def test_times_are_formatted_as_everywhere_else(times: list[int]) -> None:
    whole = np.unique(np.array(times, np.int64))
    assert _format_times(whole).to_pylist() == [format_time(us) for us in whole.tolist()]


def test_texts_of_windows_take_as_many_arrays_as_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of Arrow holds 2 GB."""
    batch = DeliveryBatch(
        [cohort("sliding", *((n, n % 2, n % 2, 0.5) for n in range(9)))], tables()
    )
    monkeypatch.setattr(deliveries, "_MOST_BYTES", 400)
    table = delivery_table(batch, batch._tables)
    assert table.column("window").num_chunks > 2
    assert table == deliveries_to_table(batch.objects())


def test_ids_that_do_not_fit_into_an_array_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_tables, "_MOST_BYTES", 400)
    ids = EnrolledSubscribers()
    ids.add_many([f"{n:05}" for n in range(200)])
    pool = ids.texts.pool(200)
    assert pool is not None
    assert len(id_tables.gathered(pool, np.arange(80))) == 80
    with pytest.raises(TidingsError, match=r"101 ids take 505 bytes, more than a column of Arrow"):
        id_tables.gathered(pool, np.arange(101))
