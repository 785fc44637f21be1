"""Webhooks: signed, at least once, retried, given up, and never where they may not go."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.service.receiving import Received, Receiver, receiver
from tests.service.running import PATIENCE_S, eventually
from tests.store.appender import delivery

from tidings.channels import Dispatcher
from tidings.channels.progress import PAUSES_S
from tidings.channels.webhook import webhooks
from tidings.channels.webhook_target import TargetRules
from tidings.store import Store, open_store
from tidings.store.channels import ChannelSummary
from tidings.store.webhooks import WEBHOOK, Webhook

LOCAL = TargetRules.of(["*"], ["127.0.0.0/8"])


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


@contextmanager
def dispatching(store: Store, clock: Clock, rules: TargetRules = LOCAL) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(store, {WEBHOOK: webhooks(rules, clock)}, clock)
    stop = threading.Event()
    thread = threading.Thread(target=dispatcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield dispatcher
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def deliver(store: Store, batch: int, *events: str) -> None:
    store.notifications.append("q", batch, [delivery("ada", event) for event in events])


def state(store: Store) -> Webhook:
    return store.webhooks.find("w1", "ada")[0]


def events(hook: Receiver) -> list[str]:
    return [json.loads(message.body)["data"]["event"] for message in hook.received]


def is_signed(message: Received, secret: str) -> bool:
    """Return whether one of the signatures is right, by the words of the convention."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    name, seconds = message.headers["webhook-id"], message.headers["webhook-timestamp"]
    content = f"{name}.{seconds}.".encode() + message.body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in message.headers["webhook-signature"].split()


def test_new_notifications_are_sent_once_and_signed(
    store: Store, hook: Receiver, clock: Clock
) -> None:
    deliver(store, 0, "before")
    webhook = store.webhooks.put("ada", "w1", hook.url, 0)
    with dispatching(store, clock):
        deliver(store, 1, "e1", "e2")
        deliver(store, 2, "e3")
        eventually(lambda: state(store).sequence == 4)
    assert events(hook) == ["e1", "e2", "e3"]
    first = hook.received[0]
    assert first.headers["host"] == f"127.0.0.1:{hook.server_port}"
    assert first.headers["webhook-id"] == f"msg_{webhook.key}_2"
    assert first.headers["webhook-timestamp"] == "1000000"
    form = json.loads(first.body)
    assert (form["type"], form["data"]["sequence"]) == ("tidings.delivery", 2)
    assert all(is_signed(message, webhook.secret) for message in hook.received)
    assert not is_signed(first, "whsec_AAAA")


def test_what_fails_is_sent_again_with_the_same_id_and_does_not_stop_the_others(
    store: Store, hook: Receiver, clock: Clock
) -> None:
    store.webhooks.put("ada", "w1", hook.url, 0)
    hook.statuses[:] = [500]
    with dispatching(store, clock):
        deliver(store, 1, "e1", "e2")
        eventually(lambda: state(store).failures == 1)
        assert store.channels.summary(WEBHOOK) == ChannelSummary(0, 1, 0, 1, 1, 0)
        retry = store.channels.failures(state(store).key)[0]
        assert (retry.number, retry.attempts, retry.reason) == (1, 1, "the answer has status 500")
        clock.now += 2  # the webhook may be used again, but it is not yet time for e1
        deliver(store, 2)
        eventually(lambda: state(store).sequence == 2)
        assert events(hook) == ["e1", "e2"]
        clock.now += PAUSES_S[0]
        deliver(store, 3)
        eventually(lambda: not store.channels.failures(state(store).key))
        assert store.channels.summary(WEBHOOK) == ChannelSummary(1, 0, 0, 0, 0, 0)
    assert events(hook) == ["e1", "e2", "e1"]
    ids = [message.headers["webhook-id"] for message in hook.received]
    assert ids[0] == ids[2] != ids[1]


def test_what_fails_for_days_is_given_up_until_somebody_asks(
    store: Store, hook: Receiver, clock: Clock
) -> None:
    key = store.webhooks.put("ada", "w1", hook.url, 0).key
    hook.statuses[:] = [500] * (len(PAUSES_S) + 1)
    with dispatching(store, clock):
        deliver(store, 0, "e1")
        for attempt, pause_s in enumerate((*PAUSES_S, 0), start=1):
            eventually(lambda n=attempt: _attempts(store, key) == n)
            clock.now += max(pause_s, 300)
            deliver(store, attempt)
        assert store.channels.failures(key)[0].next_us is None
        store.channels.retry(key)
        eventually(lambda: not store.channels.failures(key))
    assert events(hook) == ["e1"] * (len(PAUSES_S) + 2)


def _attempts(store: Store, key: str) -> int:
    retries = store.channels.failures(key)
    return retries[0].attempts if retries else 0


def test_nothing_overtakes_what_nobody_answers(store: Store, hook: Receiver, clock: Clock) -> None:
    key = store.webhooks.put("ada", "w1", hook.url, 0).key
    hook.statuses[:] = [503, 502, 504]
    with dispatching(store, clock):
        deliver(store, 0, "e1", "e2")
        for attempt in (1, 2, 3):
            eventually(lambda n=attempt: state(store).failures == n)
            clock.now += 300
            deliver(store, attempt, f"e{attempt + 2}")
        eventually(lambda: state(store).sequence == 5)
    assert events(hook) == ["e1", "e1", "e1", "e1", "e2", "e3", "e4", "e5"]
    assert store.channels.failures(key) == []


def test_redirects_are_not_followed(store: Store, hook: Receiver, clock: Clock) -> None:
    store.webhooks.put("ada", "w1", hook.url, 0)
    hook.statuses[:] = [302]
    with dispatching(store, clock):
        deliver(store, 0, "e1")
        eventually(lambda: state(store).failures == 1)
    assert len(hook.received) == 1
    assert "302" in store.channels.failures(state(store).key)[0].reason


def test_nothing_is_sent_to_private_addresses(store: Store, hook: Receiver, clock: Clock) -> None:
    store.webhooks.put("ada", "w1", f"http://localtest.invalid:{hook.server_port}/", 0)
    store.webhooks.put("ada", "w2", hook.url, 0)
    with dispatching(store, clock, TargetRules.of(["*"], [])):
        deliver(store, 0, "e1")
        for name in ("w1", "w2"):
            eventually(lambda n=name: store.webhooks.find(n)[0].failures == 1)
    assert hook.received == []
    reason = store.channels.failures(store.webhooks.find("w2")[0].key)[0].reason
    assert "not public" in reason


def test_a_receiver_that_is_gone_is_not_used_again(
    store: Store, hook: Receiver, clock: Clock
) -> None:
    store.webhooks.put("ada", "w1", hook.url, 0)
    hook.statuses[:] = [410]
    with dispatching(store, clock):
        deliver(store, 0, "e1")
        eventually(lambda: state(store).disabled)
        clock.now += 10**6
        deliver(store, 1, "e2")
        store.webhooks.put("bob", "w1", hook.url, 0)
        store.notifications.append("q", 2, [delivery("bob", "b1")])
        eventually(lambda: "b1" in events(hook))
    assert events(hook) == ["e1", "b1"]


def test_two_dispatchers_send_each_message_once(store: Store, hook: Receiver, clock: Clock) -> None:
    store.webhooks.put("ada", "w1", hook.url, 0)
    with dispatching(store, clock), dispatching(store, clock):
        for n in range(20):
            deliver(store, n, f"e{n}")
        eventually(lambda: state(store).sequence == 20)
    assert events(hook) == [f"e{n}" for n in range(20)]


def test_the_key_before_still_signs_for_some_time(
    store: Store, hook: Receiver, clock: Clock
) -> None:
    webhook = store.webhooks.put("ada", "w1", hook.url, 0)
    secret = store.webhooks.change_secret(webhook.key, int((clock.now + 60) * 1e6))
    with dispatching(store, clock):
        deliver(store, 0, "e1")
        eventually(lambda: state(store).sequence == 1)
        clock.now += 60
        deliver(store, 1, "e2")
        eventually(lambda: state(store).sequence == 2)
    first, second = hook.received
    assert [is_signed(first, secret) for secret in (webhook.secret, secret)] == [True, True]
    assert [is_signed(second, secret) for secret in (webhook.secret, secret)] == [False, True]


def test_a_pruned_notification_is_given_up(store: Store, hook: Receiver, clock: Clock) -> None:
    store.webhooks.put("ada", "w1", hook.url, 0)
    hook.statuses[:] = [500]
    with dispatching(store, clock):
        deliver(store, 0, "e1")
        eventually(lambda: state(store).failures == 1)
        store.notifications.prune(10**9)
        clock.now += 600
        deliver(store, 1)
        key = state(store).key
        eventually(lambda: store.channels.failures(key)[0].next_us is None)
    assert store.channels.prune(0) == 1
    assert store.channels.failures(key) == []
