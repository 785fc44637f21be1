"""The outbox: numbers in the order of commits, reservations, and progress that only owners note."""

import threading
from collections.abc import Iterator

import pytest
from tests.store.appender import delivery

from tidings.store import Store, open_store
from tidings.store.channels import ALL, NEW, Channel, ChannelDraft
from tidings.store.outbox import PageProgress


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def put(store: Store, subscriber: str | None = None, start: str = ALL) -> Channel:
    return store.channels.put(ChannelDraft("sqs", "q", subscriber, {}, start), 0)


def events(store: Store, channel: Channel, limit: int = 100) -> list[str]:
    page = store.outbox.page(channel, 0, limit)
    return [entry.delivery.event for entry in page.entries if entry.delivery is not None]


def test_deliveries_are_numbered_across_subscribers_and_batches(store: Store) -> None:
    channel = put(store)
    first = [delivery("ada", "a1"), delivery("bob", "b1"), delivery("ada", "a2")]
    store.notifications.append("q1", 0, first)
    store.notifications.append("q2", 0, [delivery("bob", "b1"), delivery("bob", "b2")])
    assert events(store, channel) == ["a1", "b1", "a2", "b2"]
    page = store.outbox.page(channel, 0, 3)
    assert (page.upto, [entry.number for entry in page.entries]) == (3, [1, 2, 3])
    assert store.outbox.page(channel, 0, 100).upto == 5  # the number of a repetition is left out
    assert events(store, put(store, "bob")) == ["b1", "b2"]
    assert events(store, put(store, "cy", NEW)) == []


def test_concurrent_writers_leave_no_number_behind_a_reader(store: Store) -> None:
    """A reader that follows while threads write sees every delivery, in the order of numbers."""
    channel, seen, writers = put(store), list[int](), 4

    def write(name: int) -> None:
        for batch in range(15):
            events = [delivery(f"s{n % 3}", f"{name}-{batch}-{n}") for n in range(5)]
            store.notifications.append(f"q{name}", batch, events)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(writers)]
    for thread in threads:
        thread.start()
    owner = (channel.key, "me")
    leased = store.outbox.lease(*owner, now_us=0, until_us=1)
    while len(seen) < writers * 15 * 5:
        assert leased is not None
        page = store.outbox.page(leased, 0, 7)
        seen += [entry.number for entry in page.entries]
        leased = store.outbox.note(*owner, PageProgress(page.upto, len(page.entries)))
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert len({*seen}) == writers * 15 * 5


def test_only_one_dispatcher_has_a_channel_and_notes_its_progress(store: Store) -> None:
    key = put(store).key
    store.notifications.append("q", 0, [delivery("ada", "a1"), delivery("ada", "a2")])
    assert [channel.key for channel in store.outbox.due(["sqs"], 0)] == [key]
    assert store.outbox.due(["nats"], 0) == store.outbox.due([], 0) == []
    assert store.outbox.lease(key, "first", now_us=0, until_us=10)
    assert store.outbox.lease(key, "second", now_us=5, until_us=15) is None
    assert store.outbox.due(["sqs"], 5) == []
    store.outbox.renew("first", [], 30)
    store.outbox.renew("first", ["another"], 30)
    store.outbox.renew("first", [key, "another"], 20)
    assert store.outbox.lease(key, "second", now_us=15, until_us=25) is None
    assert store.outbox.lease(key, "second", now_us=20, until_us=30)
    assert store.outbox.note(key, "first", PageProgress(2, 2)) is None
    noted = store.outbox.note(key, "second", PageProgress(1, 1))
    assert noted is not None
    assert (noted.reached, noted.sent) == (1, 1)
    store.outbox.release(key, "first")
    assert store.outbox.lease(key, "third", now_us=25, until_us=30) is None
    store.outbox.release(key, "second")
    assert store.outbox.lease(key, "third", now_us=25, until_us=30)


def test_what_a_queue_has_not_sent_is_not_pruned(store: Store) -> None:
    channel = put(store)
    store.notifications.append("q", 0, [delivery("ada", "a1"), delivery("ada", "a2")])
    assert store.outbox.lease(channel.key, "me", now_us=0, until_us=1)
    store.outbox.note(channel.key, "me", PageProgress(1, 1))
    assert store.notifications.prune(10**9) == 1
    assert events(store, channel) == ["a2"]
    store.channels.remove(channel.key)
    assert store.notifications.prune(10**9) == 1


@pytest.mark.parametrize("subscriber", [None, "ada"])
def test_a_delivery_that_is_skipped_can_be_retried(store: Store, subscriber: str | None) -> None:
    channel = put(store, subscriber)
    store.notifications.append("q", 0, [delivery("ada", "a1"), delivery("ada", "a2")])
    skipped = store.outbox.skip(channel.key)
    assert skipped is not None
    assert skipped.event == "a1"
    [failure] = store.channels.failures(channel.key)
    assert (failure.number, failure.next_us, failure.reason) == (1, None, "skipped by hand")
    moved = store.channels.get(channel.key)
    assert moved is not None
    assert events(store, moved) == ["a2"]
    store.channels.retry(channel.key)
    assert events(store, moved) == ["a1"]
    assert store.outbox.skip(channel.key) is not None  # a2, since a retry is no new delivery
    assert store.outbox.skip(channel.key) is None
    assert store.outbox.skip("nobody") is None
