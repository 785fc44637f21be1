"""JetStream against a real NATS server: order, ids, outages, a stream that is full."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats as nats_library
import pytest
from nats.js.api import AckPolicy, ConsumerConfig
from tests.channels.sending import channel_of, declared, deliver, send_all
from tests.proxy import proxy_to
from tests.sources.nats_servers import running_nats

from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.sender import delivery_key
from tidings.channels.transport import Secret, TransportForm
from tidings.errors import InvalidForm
from tidings.store import Store, open_store

EVENTS = [f"e{number}" for number in range(1_200)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


def add_stream(url: str, name: str, **limits: Any) -> None:
    async def add() -> None:
        connection = await nats_library.connect(url)
        await connection.jetstream().add_stream(name=name, subjects=[f"{name}.>"], **limits)
        await connection.close()

    asyncio.run(add())


def received(url: str, name: str) -> list[Any]:
    """Return all messages of a stream."""

    async def read() -> list[Any]:
        connection = await nats_library.connect(url)
        stream = connection.jetstream()
        count = (await stream.stream_info(name)).state.messages
        # Without acknowledgements no message is delivered a second time.
        once = ConsumerConfig(ack_policy=AckPolicy.NONE)
        pull = await stream.pull_subscribe(f"{name}.>", stream=name, config=once)
        messages = list[Any]()
        while len(messages) < count:
            messages += await pull.fetch(min(500, count - len(messages)), timeout=60)
        await connection.close()
        return messages

    return asyncio.run(read())


def events_of(messages: list[Any]) -> list[str]:
    return [json.loads(message.data)["event"] for message in messages]


def test_a_stream_has_all_deliveries_in_order_once(store: Store, nats: str) -> None:
    add_stream(nats, "order")
    deliver(store, 0, *EVENTS)
    channel = declared("nats", JetStreamTransport((nats,), "order.{subscriber}"))
    send_all(store, channel)
    store.channels.remove(channel_of(store).key)  # it begins again
    send_all(store, channel)
    messages = received(nats, "order")
    assert events_of(messages) == EVENTS
    assert messages[0].subject == "order.ada"
    stored = store.notifications.after("ada", limit=1)[0]
    assert messages[0].headers == {"Nats-Msg-Id": delivery_key(stored)}


def test_a_server_that_is_away_gets_everything_in_order_when_it_is_back(
    store: Store, nats: str
) -> None:
    add_stream(nats, "away")
    with proxy_to(nats) as proxy:
        transport = JetStreamTransport((f"nats://127.0.0.1:{proxy.port}",), "away.all")
        deliver(store, 0, *EVENTS[:10])
        send_all(store, declared("nats", transport))
        proxy.down()
        deliver(store, 1, *EVENTS[10:])
        send_all(store, declared("nats", transport), patience_s=0)
        assert channel_of(store).state == "failing"
        assert channel_of(store).sent == 10
        proxy.up()
        send_all(store, declared("nats", transport))
    assert events_of(received(nats, "away")) == EVENTS


def test_a_stream_that_is_full_takes_the_rest_when_it_has_room(store: Store, nats: str) -> None:
    add_stream(nats, "full", max_msgs=7, discard="new")
    deliver(store, 0, *EVENTS[:10])
    channel = declared("nats", JetStreamTransport((nats,), "full.all"))
    send_all(store, channel, patience_s=0)
    assert channel_of(store).sent == 7
    assert "maximum messages exceeded" in str(channel_of(store).reason)

    async def purge() -> None:
        connection = await nats_library.connect(nats)
        await connection.jetstream().purge_stream("full")
        await connection.close()

    asyncio.run(purge())
    send_all(store, channel)
    assert events_of(received(nats, "full")) == EVENTS[7:10]


def test_a_subject_without_a_stream_is_a_failure(store: Store, nats: str) -> None:
    deliver(store, 0, "e0")
    channel = declared("nats", JetStreamTransport((nats,), "nobody.listens"))
    send_all(store, channel, patience_s=0)
    assert channel_of(store).failures == 1
    assert "stream" in str(channel_of(store).reason)


def test_a_password_opens_a_server_and_is_not_shown(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(store, 0, "e0")
    arguments = ("--user", "ann", "--pass", "sword-fish-9")
    (tmp_path / "nats").mkdir()
    with running_nats(tmp_path / "nats", *arguments) as server:
        url = server.address
        add_stream(url.replace("nats://", "nats://ann:sword-fish-9@"), "closed")
        wrong = JetStreamTransport((url,), "closed.all", "ann", Secret(value="sword-dance-3"))
        send_all(store, declared("nats", wrong), patience_s=0)
        assert "authorization" in str(channel_of(store).reason).lower()
        assert "sword" not in str(channel_of(store))
        store.channels.resume(channel_of(store).key)
        right = JetStreamTransport((url,), "closed.all", "ann", Secret("NATS_PASSWORD"))
        send_all(store, declared("nats", right), patience_s=0)
        assert "NATS_PASSWORD is not set" in str(channel_of(store).reason)
        monkeypatch.setenv("NATS_PASSWORD", "sword-fish-9")
        send_all(store, declared("nats", right))
    assert channel_of(store).sent == 1


def test_the_id_of_a_subscriber_is_one_word_of_a_subject() -> None:
    transport = JetStreamTransport((), "t.{subscriber}.new")
    assert transport.subject_of("ada") == "t.ada.new"
    assert transport.subject_of("a.b c*>") == "t.a%2Eb%20c%2A%3E.new"


@pytest.mark.parametrize("subject", ["a..b", "a.*", "a b", ".a", "a.{event}", "a.>"])
def test_a_subject_that_is_none_is_refused(subject: str) -> None:
    form = TransportForm({"subject": subject}, ["subject"])
    with pytest.raises(InvalidForm, match="subject"):
        JetStreamTransport.read(form)
