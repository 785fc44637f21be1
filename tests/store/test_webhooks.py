"""Webhooks in a store: their secrets, of which the old one signs for a while, and damage."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.store import Store, open_store
from tidings.store.channels import Channel, ChannelDraft, FailedDelivery
from tidings.store.webhooks import WEBHOOK, Webhook

URL = "https://hooks.example.com/ada"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def channel_with(**settings: Any) -> Channel:
    return Channel("k", WEBHOOK, "w", "ada", settings, 1, 2, 3, 4, "no", 5, None, "gone")


def test_a_new_one_sends_what_is_delivered_from_now_on(store: Store) -> None:
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    hook = store.webhooks.put("ada", "w", URL, 7)
    assert (hook.id, hook.subscriber, hook.url, hook.created_us) == ("w", "ada", URL, 7)
    assert (hook.sequence, hook.failures, hook.disabled) == (2, 0, None)
    assert (hook.old_secret, hook.old_until_us) == (None, 0)
    assert store.webhooks.find("w") == store.webhooks.of("ada") == [hook]


def test_a_secret_has_256_random_bits(store: Store) -> None:
    secrets = {store.webhooks.put("ada", f"w{n}", URL, 0).secret for n in range(5)}
    assert len(secrets) == 5
    for secret in secrets:
        assert secret.startswith("whsec_")
        assert len(b64decode(secret.removeprefix("whsec_"), validate=True)) == 32


def test_another_address_keeps_the_secret_and_is_tried_at_once(store: Store) -> None:
    hook = store.webhooks.put("ada", "w", URL, 7)
    fail(store, hook.key, FailedDelivery(1, 9, None, "no"), disabled="gone")
    assert store.webhooks.find("w")[0].disabled == "gone"
    changed = store.webhooks.put("ada", "w", "https://other.example.com", 9)
    assert changed.key == hook.key
    assert changed.secret == hook.secret
    assert changed.url == "https://other.example.com"
    assert (changed.created_us, changed.failures, changed.disabled) == (7, 0, None)


def test_webhooks_of_one_id_and_several_subscribers_are_several(store: Store) -> None:
    hooks = [store.webhooks.put(name, "w", f"{URL}/{name}", 0) for name in ("ada", "bob")]
    other = store.webhooks.put("ada", "a", URL, 0)
    assert store.webhooks.find("w") == hooks
    assert store.webhooks.find("w", "bob") == hooks[1:]
    assert store.webhooks.find("x") == []
    assert store.webhooks.of("ada") == [other, hooks[0]]
    assert store.webhooks.of(None) == [other, *hooks]
    assert store.webhooks.remove(other.key)
    assert not store.webhooks.remove(other.key)
    assert store.webhooks.of("ada") == hooks[:1]


def test_channels_of_other_kinds_are_no_webhooks(store: Store) -> None:
    store.channels.put(ChannelDraft("sqs", "w", "ada"), 0)
    assert store.webhooks.of(None) == []
    store.webhooks.put("ada", "w", URL, 0)
    assert len(store.webhooks.of("ada")) == 1
    assert len(store.channels.find("w")) == 2


def test_the_old_secret_signs_until_a_time(store: Store) -> None:
    hook = store.webhooks.put("ada", "w", URL, 0)
    assert hook.secrets(0) == (hook.secret,)
    new = store.webhooks.change_secret(hook.key, 100)
    [changed] = store.webhooks.find("w")
    assert changed.secret == new != hook.secret
    assert changed.secrets(99) == (new, hook.secret)
    assert changed.secrets(100) == (new,)
    newest = store.webhooks.change_secret(hook.key, 200)
    [changed] = store.webhooks.find("w")
    assert changed.secrets(150) == (newest, new)
    assert changed.url == URL


def test_a_webhook_that_is_gone_has_no_secret_to_change(store: Store) -> None:
    assert store.webhooks.change_secret("nobody", 5).startswith("whsec_")
    assert store.webhooks.of(None) == []


def test_a_webhook_has_the_progress_of_its_channel() -> None:
    hook = Webhook.of(channel_with(url=URL, secret="s", old_secret="o", old_until_us=8))
    assert hook == Webhook("k", "w", "ada", URL, "s", "o", 8, 1, 2, 4, "gone")


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("url", 7, ""),
        ("url", None, ""),
        ("secret", ["s"], ""),
        ("old_secret", 7, None),
        ("old_until_us", "8", 0),
        ("old_until_us", 1.5, 0),
    ],
)
def test_damaged_settings_are_left_out(name: str, value: object, read: object) -> None:
    sound = {"url": URL, "secret": "s", "old_secret": "o", "old_until_us": 8}
    hook = Webhook.of(channel_with(**(sound | {name: value})))
    assert getattr(hook, name) == read
    others = {each: getattr(hook, each) for each in sound if each != name}
    assert others == {each: sound[each] for each in others}


def test_without_settings_nothing_is_signed_by_another_secret() -> None:
    hook = Webhook.of(channel_with())
    assert (hook.url, hook.secrets(0)) == ("", ("",))
