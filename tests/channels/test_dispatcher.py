"""The dispatcher: order, pauses, rates, several at once, and senders that misbehave."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.channels.sending import deliver, sending
from tests.service.running import PATIENCE_S, eventually

from tidings.channels import Dispatcher, Message, Outcome, Sender, Status
from tidings.channels.dispatcher import SendRate
from tidings.channels.sender import SENT
from tidings.errors import TidingsError
from tidings.store import Store, open_store
from tidings.store.channels import ALL, Channel, ChannelDraft

EVENTS = [f"e{number}" for number in range(30)]


@dataclass
class Fake:
    """A sender that keeps what it gets, unless it is told what to answer."""

    batch: int = 7
    in_order: bool = True
    rate: float | None = None
    answer: Callable[[Message], Outcome] = lambda _: SENT
    taken: list[str] = field(default_factory=list)

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        await asyncio.sleep(0)
        outcomes = [self.answer(message) for message in messages]
        for message, outcome in zip(messages, outcomes, strict=True):
            if outcome is SENT:
                self.taken.append(message.delivery.event)
        return outcomes

    async def close(self) -> None:
        pass


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


def add(store: Store, name: str = "out", subscriber: str | None = None) -> str:
    return store.channels.put(ChannelDraft("fake", name, subscriber, {}, ALL), 0).key


def get(store: Store, key: str) -> Channel:
    channel = store.channels.get(key)
    assert channel is not None
    return channel


def test_a_channel_of_all_gets_everything_and_one_of_a_subscriber_its_own(store: Store) -> None:
    everyone, own = Fake(), Fake()
    add(store)
    add(store, "own", "ada")
    deliver(store, 0, *EVENTS[:9])

    def open_sender(channel: Channel) -> Sender:
        return everyone if channel.subscriber is None else own

    with sending(store, {"fake": open_sender}):
        deliver(store, 1, *EVENTS[9:])
        eventually(lambda: len(everyone.taken) == 30 and len(own.taken) == 16)
    assert everyone.taken == EVENTS
    assert own.taken == [*EVENTS[:9:2], *EVENTS[9::2]]


def test_several_dispatchers_send_each_message_once_and_in_order(store: Store) -> None:
    fake, key = Fake(batch=3), add(store)
    openers = {"fake": lambda _: fake}
    with sending(store, openers), sending(store, openers), sending(store, openers):
        for number, event in enumerate(EVENTS):
            deliver(store, number, event)
        eventually(lambda: get(store, key).sent == 30)
    assert fake.taken == EVENTS


def test_one_that_fails_delays_only_itself(file_store: Store) -> None:
    away, well = Fake(answer=lambda _: Outcome(Status.FAILED, "away")), Fake()
    first, _ = add(file_store, "away"), add(file_store, "well")
    openers = {"fake": lambda channel: away if channel.id == "away" else well}
    deliver(file_store, 0, *EVENTS)
    with sending(file_store, openers):
        eventually(lambda: well.taken == EVENTS and get(file_store, first).failures > 0)
        away.answer = lambda _: SENT
        file_store.channels.resume(first)  # it need not wait until its rest is over
        eventually(lambda: away.taken == EVENTS)


def test_many_that_hang_do_not_delay_the_others(file_store: Store) -> None:
    """As a library does that waits in a thread, or for the address of a name."""
    go_on, well = threading.Event(), Fake()

    class Hanging(Fake):
        async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
            await asyncio.to_thread(go_on.wait, PATIENCE_S)
            return [SENT] * len(messages)

    hanging = [add(file_store, f"hangs{number}") for number in range(50)]
    add(file_store, "well")
    deliver(file_store, 0, *EVENTS)
    with sending(file_store, {"fake": lambda each: well if each.id == "well" else Hanging()}):
        eventually(lambda: well.taken == EVENTS)
        assert all(get(file_store, key).sent == 0 for key in hanging)
        go_on.set()


def test_many_channels_that_others_serve_do_not_hide_those_behind_them(file_store: Store) -> None:
    fake, own = Fake(), {add(file_store, f"own{number}") for number in range(3)}
    for number in range(200):
        add(file_store, f"other{number}")
    deliver(file_store, 0, *EVENTS)
    with sending(file_store, {"fake": lambda channel: fake if channel.key in own else None}):
        eventually(lambda: len(fake.taken) == len(own) * len(EVENTS))
    assert {get(file_store, key).sent for key in own} == {len(EVENTS)}


def test_a_sender_that_breaks_is_a_failure_of_its_channel(
    file_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def broken(_: Message) -> Outcome:
        raise ZeroDivisionError("swordfish")

    def unopened(_: Channel) -> Sender:
        raise TidingsError("the variable X is not set")

    for opener in (lambda _: Fake(answer=broken), unopened):
        key = add(file_store, f"{opener}")
        deliver(file_store, 0, "e0")
        with sending(file_store, {"fake": opener}):
            eventually(lambda key=key: get(file_store, key).failures > 0)
        reason = str(get(file_store, key).reason)
        assert reason in ("unexpected ZeroDivisionError", "the variable X is not set")
        file_store.channels.remove(key)
    logged = "\n".join(caplog.messages)  # `text` may be JSON, with other quotes
    assert "swordfish" not in logged.replace('ZeroDivisionError("swordfish")', "")  # the code
    assert ", in broken\n" in logged
    assert not any(record.exc_info for record in caplog.records)
    first = [record for record in caplog.records if ", failure 1: " in record.getMessage()]
    assert {record.levelname for record in first} == {"WARNING"}  # a run prints these


def test_what_is_given_up_can_be_tried_again(
    file_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    fake, key = Fake(), add(file_store)
    fake.answer = lambda message: (
        Outcome(Status.REFUSED, "too long") if message.delivery.event == "e3" else SENT
    )
    deliver(file_store, 0, *EVENTS)
    with sending(file_store, {"fake": lambda _: fake}):
        eventually(lambda: get(file_store, key).reached == 30)
        assert [failure.reason for failure in file_store.channels.failures(key)] == ["too long"]
        assert file_store.channels.backlog(key).given_up == 1
        assert "channel out, messages given up: 1: too long" in caplog.messages
        fake.answer = lambda _: SENT
        assert file_store.channels.retry(key) == 1
        eventually(lambda: not file_store.channels.failures(key))
    assert fake.taken == [*EVENTS[:3], *EVENTS[4:], "e3"]


def test_a_paused_channel_waits(file_store: Store) -> None:
    fake, key, other = Fake(), add(file_store), Fake()
    add(file_store, "other")
    file_store.channels.pause(key, 0)
    openers = {"fake": lambda channel: fake if channel.id == "out" else other}
    with sending(file_store, openers):
        deliver(file_store, 0, *EVENTS)
        eventually(lambda: len(other.taken) == 30)
        assert fake.taken == []
        file_store.channels.resume(key)
        eventually(lambda: fake.taken == EVENTS)


def test_channels_that_nobody_opens_are_left_alone(file_store: Store) -> None:
    key = add(file_store)
    deliver(file_store, 0, *EVENTS)
    Dispatcher(file_store, {"fake": lambda _: None}).run(threading.Event(), drain_s=0)
    assert (get(file_store, key).sent, get(file_store, key).failures) == (0, 0)


def test_settings_that_change_open_the_sender_again(file_store: Store) -> None:
    opened = list[object]()

    def open_sender(channel: Channel) -> Sender:
        opened.append(channel.settings.get("url"))
        return Fake()

    key = add(file_store)
    with sending(file_store, {"fake": open_sender}):
        deliver(file_store, 0, "e0")
        eventually(lambda: get(file_store, key).sent == 1)
        file_store.channels.change_settings(key, {"url": "b"})
        deliver(file_store, 1, "e1")
        eventually(lambda: get(file_store, key).sent == 2)
    assert opened == [None, "b"]


@pytest.mark.parametrize("status", [Status.LATER, Status.FAILED, Status.GONE])
def test_settings_that_change_while_something_is_sent_end_the_backoff(
    store: Store, status: Status
) -> None:
    """For example, an address is verified while the dispatcher still finds it unverified."""
    later_us, key = 2**52, add(store)

    def answer(_: Message) -> Outcome:
        store.channels.change_settings(key, {"verified": True})
        return Outcome(status, "old settings", until_us=later_us)

    old, new = Fake(answer=answer), Fake()
    openers = {"fake": lambda channel: new if channel.settings else old}
    with sending(store, openers):
        deliver(store, 0, *EVENTS)
        eventually(lambda: new.taken == EVENTS)
    channel = get(store, key)
    assert (channel.failures, channel.disabled, channel.next_us) == (0, None, 0)


def test_a_rate_limits_messages_per_second() -> None:
    rate = SendRate(10.0, filled_at=100.0)
    assert rate.most(50, 100.0) == 1
    rate.take(1)
    assert rate.most(50, 100.0) == 0
    assert rate.wait_s == pytest.approx(0.1)
    assert rate.most(50, 100.5) == 5
    rate.take(5)
    assert rate.most(50, 200.0) == 10
    assert SendRate(None).most(50, 0.0) == 50
