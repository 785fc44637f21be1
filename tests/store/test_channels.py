"""Channels: their state in a word, where they start, what is waiting, and what was given up."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.errors import StoreError
from tidings.store import Store, open_store
from tidings.store.channels import (
    ALL,
    NEW,
    Backlog,
    Channel,
    ChannelDraft,
    ChannelSummary,
    FailedDelivery,
    next_time,
    read_channel,
)
from tidings.store.outbox import PageProgress

SECOND = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def put(
    store: Store,
    name: str = "q",
    *,
    kind: str = "sqs",
    subscriber: str | None = None,
    start: str = ALL,
    **settings: object,
) -> Channel:
    return store.channels.put(ChannelDraft(kind, name, subscriber, settings, start), 5 * SECOND)


def again(store: Store, channel: Channel) -> Channel:
    found = store.channels.get(channel.key)
    assert found is not None
    return found


def send(store: Store, channel: Channel, upto: int) -> None:
    """Note that a dispatcher has sent all up to a number."""
    assert store.outbox.lease(channel.key, "test", now_us=0, until_us=1)
    store.outbox.note(channel.key, "test", PageProgress(upto, upto))
    store.outbox.release(channel.key, "test")


def deliver(store: Store, batch: int, *names: str) -> None:
    letters = [delivery(name, f"{batch}-{number}") for number, name in enumerate(names)]
    store.notifications.append("query", batch, letters)


def test_a_new_channel_works_and_has_sent_nothing(store: Store) -> None:
    channel = put(store, subscriber="ada", url="https://a.example")
    assert again(store, channel) == channel
    assert (channel.kind, channel.id, channel.subscriber) == ("sqs", "q", "ada")
    assert channel.settings == {"url": "https://a.example"}
    assert (channel.created_us, channel.reached, channel.sent) == (5 * SECOND, 0, 0)
    assert (channel.failures, channel.reason, channel.next_us) == (0, None, 0)
    assert (channel.paused_us, channel.disabled, channel.state) == (None, None, "working")
    assert len(channel.key) == 24


def test_settings_are_not_shown_in_a_representation(store: Store) -> None:
    channel = put(store, password="Sw0rdfish")
    assert "Sw0rdfish" not in repr(channel)
    assert "Sw0rdfish" not in repr(ChannelDraft("sqs", "q", settings={"password": "Sw0rdfish"}))
    assert "Sw0rdfish" not in str(store.channels.describe(channel))


@pytest.mark.parametrize(
    ("failures", "paused_us", "disabled", "state"),
    [
        (0, None, None, "working"),
        (1, None, None, "failing"),
        (0, 0, None, "paused"),
        (3, 7, None, "paused"),
        (0, None, "gone", "disabled"),
        (3, 7, "", "disabled"),
    ],
)
def test_one_word_says_what_it_does(
    failures: int, paused_us: int | None, disabled: str | None, state: str
) -> None:
    rest = (0, 0, 0, failures, None, 0, paused_us, disabled)
    assert Channel("k", "sqs", "q", None, {}, *rest).state == state


def test_the_key_is_new_after_a_removal_and_the_id_is_used_again(store: Store) -> None:
    first = put(store)
    assert store.channels.remove(first.key)
    assert not store.channels.remove(first.key)
    assert store.channels.get(first.key) is None
    second = put(store)
    assert second.id == first.id
    assert second.key != first.key


def test_putting_it_again_changes_its_settings_and_tries_it_at_once(store: Store) -> None:
    channel = put(store, a=1)
    deliver(store, 0, "ada")
    fail(store, channel.key, FailedDelivery(1, 3, 99, "no"), disabled="gone")
    assert again(store, channel).state == "disabled"
    changed = put(store, b=2)
    assert changed.key == channel.key
    assert changed.settings == {"b": 2}
    assert (changed.state, changed.failures, changed.next_us) == ("working", 0, 0)
    assert changed.reached == 1  # it continues where it was
    assert changed.created_us == channel.created_us


def test_channels_of_another_kind_or_subscriber_are_others(store: Store) -> None:
    channels = [
        put(store),
        put(store, kind="nats"),
        put(store, subscriber="ada"),
        put(store, subscriber="bob"),
    ]
    assert len({channel.key for channel in channels}) == 4
    assert store.channels.remove(channels[1].key)
    assert store.channels.find() == [channels[0], channels[2], channels[3]]


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (ChannelDraft("", "q"), "the kind of a channel is a non-empty string, not ''"),
        (ChannelDraft("sqs", ""), "the id of a channel is a non-empty string, not ''"),
        (ChannelDraft("sqs", "x" * 1_001), "the id of a channel is at most 1000 bytes long"),
        (ChannelDraft("é" * 501, "q"), "the kind of a channel is at most 1000 bytes long"),
    ],
)
def test_ids_that_no_database_holds_are_refused(
    store: Store, draft: ChannelDraft, message: str
) -> None:
    with pytest.raises(StoreError) as error:
        store.channels.put(draft, 0)
    assert str(error.value).startswith(message)
    assert store.channels.find() == []


def test_it_starts_with_everything_or_with_what_is_new(store: Store) -> None:
    deliver(store, 0, "ada", "bob", "ada")
    expected = {
        (None, ALL): 0,
        (None, NEW): 3,
        ("ada", ALL): 0,
        ("ada", NEW): 2,
        ("cy", NEW): 0,
    }
    for number, ((subscriber, start), reached) in enumerate(expected.items()):
        channel = put(store, f"c{number}", subscriber=subscriber, start=start)
        assert channel.reached == reached


def test_channels_are_found_by_id_kind_and_subscriber_in_order(store: Store) -> None:
    for name, kind, subscriber in (
        ("b", "nats", "bob"),
        ("a", "sqs", "bob"),
        ("b", "nats", "ada"),
        ("b", "mail", None),
        ("a", "sqs", None),
    ):
        put(store, name, kind=kind, subscriber=subscriber)

    def found(name: str | None = None, **filters: str) -> list[tuple[str, str, str | None]]:
        channels = store.channels.find(name, **filters)  # type: ignore[arg-type]
        return [(each.id, each.kind, each.subscriber) for each in channels]

    everything = [
        *(("a", "sqs", None), ("a", "sqs", "bob")),
        *(("b", "mail", None), ("b", "nats", "ada"), ("b", "nats", "bob")),
    ]
    assert found() == everything
    assert found("b") == everything[2:]
    assert found(kind="sqs") == everything[:2]
    assert found(subscriber="bob") == [everything[1], everything[4]]
    assert found("b", kind="nats", subscriber="bob") == [everything[4]]
    assert found("c") == found(subscriber="") == []
    assert [channel.kind for channel in store.channels.find(limit=2)] == ["sqs", "sqs"]
    assert [(each.id, each.kind) for each in store.channels.queues()] == [
        ("a", "sqs"),
        ("b", "mail"),
    ]


def test_some_settings_are_replaced_and_others_stay(store: Store) -> None:
    channel = put(store, a=1, b=[2])
    assert store.channels.change_settings(channel.key, {"b": {"x": None}, "c": "ä"})
    assert again(store, channel).settings == {"a": 1, "b": {"x": None}, "c": "ä"}
    assert not store.channels.change_settings("nobody", {"a": 1})


def test_a_pause_keeps_its_first_time_and_ends_at_once(store: Store) -> None:
    channel = put(store)
    assert store.channels.pause(channel.key, 7)
    assert store.channels.pause(channel.key, 9)
    paused = again(store, channel)
    assert (paused.paused_us, paused.state) == (7, "paused")
    assert store.channels.resume(channel.key)
    assert again(store, channel) == channel
    assert not store.channels.pause("nobody", 7)
    assert not store.channels.resume("nobody")


def test_a_channel_that_was_disabled_is_resumed(store: Store) -> None:
    channel = put(store)
    fail(store, channel.key, FailedDelivery(1, 1, None, "no"), disabled="gone")
    assert store.channels.resume(channel.key)
    resumed = again(store, channel)
    assert (resumed.state, resumed.failures, resumed.next_us) == ("working", 0, 0)


def test_the_backlog_counts_what_is_new_retried_and_given_up(store: Store) -> None:
    everybody, ada = put(store), put(store, subscriber="ada")
    deliver(store, 0, "ada", "bob", "ada")
    assert store.channels.backlog(everybody.key) == Backlog(3, 0, 0)
    assert store.channels.backlog(ada.key) == Backlog(2, 0, 0)
    fail(store, everybody.key, FailedDelivery(1, 1, 99, "busy"))
    fail(store, everybody.key, FailedDelivery(2, 9, None, "gone"))
    assert store.channels.backlog(everybody.key) == Backlog(1, 1, 1)
    send(store, ada, 2)
    assert store.channels.backlog(ada.key) == Backlog(0, 0, 0)
    assert store.channels.backlog("nobody") == Backlog(0, 0, 0)


def test_what_is_waiting_can_be_skipped(store: Store) -> None:
    everybody, ada = put(store), put(store, subscriber="ada")
    deliver(store, 0, "ada", "bob", "ada")
    for channel, reached in ((everybody, 3), (ada, 2)):
        assert store.channels.skip_waiting(channel.key)
        assert again(store, channel).reached == reached
        assert store.channels.backlog(channel.key).waiting == 0
    deliver(store, 1, "ada")
    assert store.channels.backlog(ada.key).waiting == 1
    assert not store.channels.skip_waiting("nobody")


def test_failed_deliveries_are_listed_in_pages(store: Store) -> None:
    channel = put(store)
    failures = [FailedDelivery(n, n, 10 * n if n % 2 else None, f"no {n}") for n in range(1, 6)]
    for failure in failures:
        fail(store, channel.key, failure)
    assert store.channels.failures(channel.key) == failures
    assert store.channels.failures(channel.key, limit=2) == failures[:2]
    assert store.channels.failures(channel.key, limit=2, after=2) == failures[2:4]
    assert store.channels.failures(channel.key, after=5) == []
    assert store.channels.failures("nobody") == []


def test_a_failed_delivery_says_when_it_is_tried_again() -> None:
    assert FailedDelivery(7, 2, 3 * SECOND, "busy").to_dict() == {
        "number": 7,
        "attempts": 2,
        "next_at": "1970-01-01T00:00:03Z",
        "reason": "busy",
    }
    assert FailedDelivery(7, 2, None, "gone").to_dict()["next_at"] is None


def test_everything_that_failed_is_retried_from_the_start(store: Store) -> None:
    channel, other = put(store), put(store, "other")
    fail(store, channel.key, FailedDelivery(1, 9, 99, "no"))
    fail(store, channel.key, FailedDelivery(2, 9, None, "no"), disabled="gone")
    fail(store, other.key, FailedDelivery(1, 9, None, "no"))
    assert store.channels.retry(channel.key) == 2
    assert store.channels.failures(channel.key) == [
        FailedDelivery(1, 0, 0, "no"),
        FailedDelivery(2, 0, 0, "no"),
    ]
    retried = again(store, channel)
    assert (retried.state, retried.failures, retried.next_us) == ("working", 0, 0)
    assert store.channels.failures(other.key)[0].attempts == 9
    assert store.channels.retry("nobody") == 0


def test_those_that_are_to_be_sent_again_are_told_from_the_others(store: Store) -> None:
    channel = put(store)
    fail(store, channel.key, FailedDelivery(2, 1, 7, "busy"))
    fail(store, channel.key, FailedDelivery(3, 1, None, "no"))
    assert store.channels.retried(channel.key, (1, 2, 3)) == {2}
    assert store.channels.retried(channel.key, (1, 3)) == set()


def test_a_summary_counts_states_and_messages(store: Store) -> None:
    assert store.channels.summary() == ChannelSummary(0, 0, 0, 0, 0, 0)
    working, failing, disabled = (put(store, name) for name in "abc")
    other = put(store, "d", kind="nats")
    deliver(store, 0, "ada", "bob")
    send(store, working, 1)
    fail(store, failing.key, FailedDelivery(1, 1, 99, "busy"))
    fail(store, disabled.key, FailedDelivery(1, 9, None, "no"), disabled="gone")
    store.channels.pause(other.key, 0)  # its messages wait as well
    assert store.channels.summary("sqs") == ChannelSummary(1, 1, 1, 2, 1, 1)
    assert store.channels.summary("nats") == ChannelSummary(1, 0, 0, 2, 0, 0)
    assert store.channels.summary() == ChannelSummary(2, 1, 1, 4, 1, 1)
    assert store.channels.summary("mail") == ChannelSummary(0, 0, 0, 0, 0, 0)


def test_a_description_has_the_backlog_and_no_settings(store: Store) -> None:
    channel = put(store, subscriber="ada", secret="x")
    deliver(store, 0, "ada", "ada")
    fail(store, channel.key, FailedDelivery(1, 1, 99 * SECOND, "busy"))
    assert store.channels.describe(again(store, channel)) == {
        "id": "q",
        "kind": "sqs",
        "subscriber": "ada",
        "state": "failing",
        "created_at": "1970-01-01T00:00:05Z",
        "sent": 0,
        "waiting": 1,
        "retrying": 1,
        "given_up": 0,
        "failures": 1,
        "reason": "busy",
        "given_up_reason": None,
        "next_at": None,
    }
    fail(store, channel.key, FailedDelivery(2, 1, None, "old"))
    fail(store, channel.key, FailedDelivery(3, 1, None, "no user"), disabled="the address is gone")
    form = store.channels.describe(again(store, channel))
    assert (form["reason"], form["given_up_reason"]) == ("the address is gone", "no user")


@pytest.mark.parametrize(("next_us", "shown"), [(0, None), (SECOND, "1970-01-01T00:00:01Z")])
def test_a_channel_that_rests_continues_at_a_time(next_us: int, shown: str | None) -> None:
    rest = (0, 0, 0, 0, None, next_us, None, None)
    assert next_time(Channel("k", "sqs", "q", None, {}, *rest)) == shown


@pytest.mark.parametrize(("before_us", "left"), [(0, [1, 2, 3]), (1, [1, 2, 3]), (2, [2, 3])])
def test_what_was_given_up_goes_with_its_delivery(
    store: Store, before_us: int, left: list[int]
) -> None:
    """Of deliveries at 1, 2 and 3: those before a time are about to be pruned."""
    channels = [put(store), put(store, subscriber="ada")]
    letters = [delivery("ada", f"e{at}", at) for at in (1, 2, 3)]
    store.notifications.append("q", 0, letters)
    for channel in channels:
        for number in (1, 2, 3):
            fail(store, channel.key, FailedDelivery(number, 1, None, "no"))
    assert store.channels.prune(before_us) == 2 * (3 - len(left))
    for channel in channels:
        assert [failed.number for failed in store.channels.failures(channel.key)] == left


def test_what_is_still_retried_stays_without_its_delivery(store: Store) -> None:
    channel = put(store)
    fail(store, channel.key, FailedDelivery(1, 1, 99, "busy"))
    fail(store, channel.key, FailedDelivery(2, 1, None, "gone"))
    assert store.channels.prune(0) == 1
    assert [failed.number for failed in store.channels.failures(channel.key)] == [1]


def test_a_damaged_channel_does_not_hide_the_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, sound = put(store, "a", x=1), put(store, "b")
    sql = "UPDATE channels SET settings = ? WHERE key = ?"
    for settings in ("{", "[1]", "null", ""):
        values = (settings, damaged.key)
        store.database.write(lambda session: session.run(sql, *values))  # noqa: B023
        assert [channel.settings for channel in store.channels.find()] == [{}, {}]
    assert store.channels.find()[1] == sound
    assert caplog.records == []


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary()))
def test_settings_that_are_no_object_are_empty(settings: object) -> None:
    row = ("k", "sqs", "q", None, settings, 0, 0, 0, 0, None, 0, None, None)
    assert read_channel(row).settings == {}


def test_a_row_with_a_cell_of_another_type_is_refused() -> None:
    row = ("k", "sqs", 7, None, "{}", 0, 0, 0, 0, None, 0, None, None)
    with pytest.raises(TypeError, match="id is 7"):
        read_channel(row)
