"""The address book of a store: the addresses of its subscribers, with states that they may see."""

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tidings.channels.person_channel import KINDS, MAIL, PersonChannel
from tidings.channels.webhook_target import shorten_url
from tidings.errors import InvalidForm, shown
from tidings.model.values import format_time
from tidings.store import Store
from tidings.store.channels import NEW, Channel, ChannelDraft, FailedDelivery

_SECRET_BYTES: Final = 32
_LISTED: Final = 100


def entries(store: Store, subscriber: str | None = None) -> list[Channel]:
    """Return the channels of a subscriber, or of all people, in order of id."""
    channels = store.channels.find(subscriber=subscriber)
    return [channel for channel in channels if channel.kind in KINDS]


def find_entry(store: Store, subscriber: str, name: str) -> Channel | None:
    """Return the channel of a subscriber that has an id."""
    return next((entry for entry in entries(store, subscriber) if entry.id == name), None)


class EntryDraft(NamedTuple):
    """A channel of a subscriber to create or change; `verified` vouches for its address."""

    subscriber: str
    id: str
    person: PersonChannel
    verified: bool = False
    start: str = NEW


def put_entry(store: Store, draft: EntryDraft, now_us: int) -> Channel:
    """Add a channel of a subscriber, or change it; another address must be verified again."""
    subscriber, name, person, verified, start = draft
    old = find_entry(store, subscriber, name)
    if old is not None and old.kind != person.kind:
        raise InvalidForm(f"channel {shown(name)} is of the kind {old.kind}; remove it first")
    old_settings = dict(old.settings) if old is not None else {}
    is_same = bool(old_settings) and PersonChannel.of(old_settings).address == person.address
    settings = {
        "person": person.to_dict(),
        # The links in messages to the old address end with it.
        "secret": (is_same and old_settings.get("secret")) or secrets.token_urlsafe(_SECRET_BYTES),
        "verified_us": now_us if verified else old_settings.get("verified_us") if is_same else None,
    }
    return store.channels.put(ChannelDraft(person.kind, name, subscriber, settings, start), now_us)


def declare_entries(store: Store, drafts: Sequence[EntryDraft], now_us: int) -> list[Channel]:
    """Write the channels that a config lists, unless they exist unchanged; return them."""
    channels = list[Channel]()
    for draft in drafts:
        known = find_entry(store, draft.subscriber, draft.id)
        if known is None or PersonChannel.of(known.settings) != draft.person:
            known = put_entry(store, draft, now_us)
        channels.append(known)
    return channels


def is_verified(channel: Channel) -> bool:
    """Return whether messages may be sent to the address of a channel."""
    return channel.settings.get("verified_us") is not None


def set_verified(store: Store, channel: Channel, now_us: int) -> None:
    """Use a channel from now on; earlier deliveries are not sent there."""
    store.channels.change_settings(channel.key, {"verified_us": now_us})
    store.channels.skip_waiting(channel.key)


def resume_entry(store: Store, channel: Channel) -> None:
    """Use a channel again; after a pause, with what is delivered from now on."""
    if channel.paused_us is not None:
        store.channels.skip_waiting(channel.key)
    store.channels.resume(channel.key)


def entry_state(store: Store, channel: Channel) -> dict[str, Any]:
    """Return a channel as its owner may see it: without secrets, with what failed."""
    person = PersonChannel.of(channel.settings)
    form = {name: _listed(value) for name, value in person.to_dict().items()}
    failed = store.channels.failures(channel.key, _LISTED)
    return form | {
        "address": shown_address(channel),
        "id": channel.id,
        "subscriber": channel.subscriber,
        "created_at": format_time(channel.created_us),
        "verified": is_verified(channel),
        "paused": channel.paused_us is not None,
        "sent": channel.sent,
        "waiting": store.channels.backlog(channel.key).waiting,
        "failures": channel.failures,
        "reason": channel.reason,
        "disabled": channel.disabled,
        "failed": [failure_form(failure) for failure in failed],
    }


def shown_address(channel: Channel) -> str:
    """Return the part of a channel's address that others may see."""
    return shown_person(PersonChannel.of(channel.settings))


def shown_person(person: PersonChannel) -> str:
    """Return an address; that of a chat is secret, so only its host is shown."""
    return person.address if person.kind == MAIL else shorten_url(person.address)


def failure_form(failure: FailedDelivery) -> dict[str, Any]:
    """Return the JSON form of a delivery that failed."""
    return {
        "sequence": failure.number,
        "attempts": failure.attempts,
        "next_at": None if failure.next_us is None else format_time(failure.next_us),
        "reason": failure.reason,
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
