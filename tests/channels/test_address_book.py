"""The address book: another address must be verified again, and owners see no secrets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.channels.address_book import (
    EntryDraft,
    declare_entries,
    entries,
    entry_state,
    failure_form,
    find_entry,
    is_verified,
    put_entry,
    resume_entry,
    set_verified,
    shown_address,
    shown_person,
)
from tidings.channels.person_channel import PersonChannel
from tidings.errors import InvalidForm
from tidings.store import Store, open_store
from tidings.store.channels import ALL, Channel, ChannelDraft, FailedDelivery

MAIL = PersonChannel("mail", "ada@films.example", label="home")
SLACK = PersonChannel("slack", "https://hooks.slack.com/services/T0/B0/Sw0rdfish", every="delivery")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def put(
    store: Store, person: PersonChannel = MAIL, name: str = "m", owner: str = "ada", **more: Any
) -> Channel:
    return put_entry(store, EntryDraft(owner, name, person, **more), more.pop("now_us", 5))


def again(store: Store, channel: Channel) -> Channel:
    found = store.channels.get(channel.key)
    assert found is not None
    return found


def test_an_entry_is_found_by_its_owner_and_id(store: Store) -> None:
    channel = put(store)
    other = put(store, owner="bob")
    chat = put(store, SLACK, "a")
    store.channels.put(ChannelDraft("webhook", "m", "ada"), 0)
    store.channels.put(ChannelDraft("sqs", "q"), 0)
    assert find_entry(store, "ada", "m") == channel
    assert find_entry(store, "ada", "x") is None
    assert find_entry(store, "cy", "m") is None
    assert entries(store, "ada") == [chat, channel]
    assert entries(store) == [chat, channel, other]


def test_a_new_entry_is_not_verified_unless_somebody_vouches_for_it(store: Store) -> None:
    assert not is_verified(put(store))
    verified = put(store, owner="bob", verified=True)
    assert is_verified(verified)
    assert verified.settings["verified_us"] == 5


def test_each_entry_has_a_secret_of_its_own(store: Store) -> None:
    secrets = {put(store, name=name).settings["secret"] for name in "abc"}
    assert len(secrets) == 3
    assert {len(secret) for secret in secrets} == {43}


def test_the_same_address_stays_verified_when_times_change(store: Store) -> None:
    old = put(store, verified=True)
    person = PersonChannel("mail", MAIL.address, every="hour")
    new = put_entry(store, EntryDraft("ada", "m", person), 99)
    assert new.key == old.key
    assert new.settings["secret"] == old.settings["secret"]
    assert new.settings["verified_us"] == 5
    assert PersonChannel.of(new.settings) == person


def test_another_address_must_be_verified_again_and_has_another_secret(store: Store) -> None:
    """The links in messages to the old address end with its secret."""
    old = put(store, verified=True)
    new = put_entry(store, EntryDraft("ada", "m", PersonChannel("mail", "b@films.example")), 99)
    assert new.key == old.key
    assert not is_verified(new)
    assert new.settings["secret"] != old.settings["secret"]


def test_an_entry_keeps_its_kind(store: Store) -> None:
    put(store)
    with pytest.raises(InvalidForm) as error:
        put(store, SLACK)
    assert str(error.value) == "channel 'm' is of the kind mail; remove it first"
    assert [channel.kind for channel in entries(store)] == ["mail"]


def test_an_entry_starts_with_everything_if_it_says_so(store: Store) -> None:
    store.notifications.append("q", 0, [delivery("ada", "a")])
    assert put(store, name="new").reached == 1
    assert put(store, name="all", start=ALL).reached == 0


def test_declared_entries_are_written_only_if_they_differ(store: Store) -> None:
    draft = EntryDraft("ada", "m", MAIL, verified=True)
    [first] = declare_entries(store, [draft], 5)
    store.channels.pause(first.key, 6)
    assert declare_entries(store, [draft], 7) == [again(store, first)]
    changed = draft._replace(person=PersonChannel("mail", MAIL.address, min_rank=0.5))
    [second] = declare_entries(store, [changed], 8)
    assert second.key == first.key
    assert PersonChannel.of(second.settings).min_rank == 0.5
    assert declare_entries(store, [], 9) == []


def test_a_verified_entry_sends_nothing_from_before(store: Store) -> None:
    channel = put(store, start=ALL)
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    set_verified(store, channel, 9)
    verified = again(store, channel)
    assert verified.settings["verified_us"] == 9
    assert verified.reached == 2
    assert verified.settings["secret"] == channel.settings["secret"]


@pytest.mark.parametrize("paused", [True, False])
def test_after_a_pause_only_what_is_new_is_sent(store: Store, paused: bool) -> None:
    channel = put(store)
    if paused:
        store.channels.pause(channel.key, 6)
    store.notifications.append("q", 0, [delivery("ada", "a")])
    resume_entry(store, again(store, channel))
    resumed = again(store, channel)
    assert resumed.state == "working"
    assert resumed.reached == (1 if paused else 0)


def test_an_address_that_was_given_up_gets_what_has_waited(store: Store) -> None:
    channel = put(store)
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    fail(store, channel.key, FailedDelivery(1, 1, None, "no"), disabled="gone")
    resume_entry(store, again(store, channel))
    assert again(store, channel).state == "working"
    assert store.channels.backlog(channel.key).waiting == 1


def test_an_owner_sees_the_state_and_no_secrets(store: Store) -> None:
    channel = put(store, PersonChannel("mail", MAIL.address, interests=("a", "b")))
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    fail(store, channel.key, FailedDelivery(1, 2, None, "no such user"))
    state = entry_state(store, again(store, channel))
    assert state == {
        "kind": "mail",
        "address": "ada@films.example",
        "label": "",
        "zone": "UTC",
        "every": "day",
        "at": ["08:00"],
        "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
        "min_rank": 0.0,
        "below_rank": None,
        "interests": ["a", "b"],
        "id": "m",
        "subscriber": "ada",
        "created_at": "1970-01-01T00:00:00.000005Z",
        "verified": False,
        "paused": False,
        "sent": 0,
        "waiting": 1,
        "failures": 1,
        "reason": "no such user",
        "disabled": None,
        "failed": [{"sequence": 1, "attempts": 2, "next_at": None, "reason": "no such user"}],
    }
    assert channel.settings["secret"] not in str(state)


def test_of_a_chat_only_the_host_is_shown(store: Store) -> None:
    channel = put(store, SLACK, "s", verified=True)
    assert shown_address(channel) == shown_person(SLACK) == "https://hooks.slack.com/..."
    state = entry_state(store, channel)
    assert state["address"] == "https://hooks.slack.com/..."
    assert "Sw0rdfish" not in str(state)
    assert shown_person(MAIL) == "ada@films.example"


def test_a_failure_says_when_it_is_tried_again() -> None:
    assert failure_form(FailedDelivery(3, 2, 7_000_000, "busy")) == {
        "sequence": 3,
        "attempts": 2,
        "next_at": "1970-01-01T00:00:07Z",
        "reason": "busy",
    }
    assert failure_form(FailedDelivery(3, 2, None, "gone"))["next_at"] is None
