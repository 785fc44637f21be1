"""A channel that is down for an hour delays only itself, and catches up in order.

The hour passes on a clock that dispatcher and senders are given; all their pauses read it.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.channels import test_aws_queues, test_jetstream, test_kafka
from tests.channels.mailbox import Mailbox, mail_server
from tests.channels.sending import declared, deliver, sending
from tests.kill.receivers import CHAT_TITLES
from tests.ports import reserved_port
from tests.proxy import Proxy, proxy_to
from tests.service.receiving import Receiver, receiver
from tests.service.running import eventually
from tests.sources.brokers import Brokers

from tidings.channels import OpenSender
from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.aws_queues import SnsTransport, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import KafkaTransport
from tidings.channels.person_channel import PersonChannel
from tidings.channels.person_senders import person_openers
from tidings.channels.registry import declare, openers
from tidings.channels.smtp import SmtpSettings
from tidings.channels.transport import Secret, Transport
from tidings.channels.webhook import webhooks
from tidings.channels.webhook_target import TargetRules
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store
from tidings.store.webhooks import WEBHOOK

QUARTER_S = 900
LONGEST_REST_S = 3600
"""After a failure, mail is tried again within an hour."""
SOON = {"message.timeout.ms": Secret(value="1000")}
"""An attempt of librdkafka fails after real time, usually after many seconds."""


def events_of(box: Mailbox) -> list[str]:
    """Return the events of all mails, in the order in which they came."""
    found = [re.findall(r"^\d+\. (e\d+)\r?$", raw.decode(), re.MULTILINE) for raw in [*box.raw]]
    return [event for events in found for event in sorted(events, key=lambda name: int(name[1:]))]


def failures(store: Store, name: str) -> int:
    return store.channels.find(name)[0].failures


def streamed(nats: str, name: str) -> list[str]:
    return test_jetstream.events_of(test_jetstream.received(nats, name))


def test_an_outage_of_an_hour(nats: str, tmp_path: Path) -> None:
    """A mail server and a queue are away; another queue gets everything at once meanwhile."""
    for name in ("outage", "outage-far"):
        test_jetstream.add_stream(nats, name)
    person = PersonChannel("mail", "ada@example.org", every="delivery")
    passed_s, events = [0.0], [f"e{number}" for number in range(12)]

    def clock() -> float:
        return time.time() + passed_s[0]

    with (
        reserved_port() as port,
        proxy_to(nats) as proxy,
        open_store(tmp_path / "tidings.db") as store,
    ):
        proxy.down()
        mail = SmtpSettings("127.0.0.1", "t@films.example", port, "none")
        people = ServiceSettings(mail=mail).people
        near = JetStreamTransport((nats,), "outage.x")
        far = JetStreamTransport((f"nats://127.0.0.1:{proxy.port}",), "outage-far.x")
        channels = [declared("nats", near, "near"), declared("nats", far, "far")]
        put_entry(store, EntryDraft("ada", "home", person, verified=True), 0)
        declare(store, channels, 0)
        senders = {**openers(channels), **person_openers(store, "default", people, clock)}
        with sending(store, senders, clock):
            for quarter in range(4):
                new = events[3 * quarter : 3 * quarter + 3]
                deliver(store, quarter, *new, to=("ada",))
                eventually(lambda so_far=3 * quarter + 3: len(streamed(nats, "outage")) == so_far)
                eventually(lambda seen=quarter: failures(store, "far") > seen)
                eventually(lambda: failures(store, "home") > 0)
                assert streamed(nats, "outage-far") == []
                passed_s[0] += QUARTER_S
            proxy.up()
            with mail_server(port=port) as box:
                passed_s[0] += LONGEST_REST_S
                eventually(lambda: len(streamed(nats, "outage-far")) == len(events))
                eventually(lambda: len(events_of(box)) == len(events))
                eventually(lambda: failures(store, "home") == failures(store, "far") == 0)
    assert streamed(nats, "outage") == events
    assert streamed(nats, "outage-far") == events
    assert events_of(box) == events


class Far(NamedTuple):
    """A channel whose receiver is behind a proxy: who sends to it, and the events that arrived."""

    name: str
    senders: Mapping[str, OpenSender]
    arrived: Callable[[], list[str]]


class Outage(NamedTuple):
    """What a channel is opened with: a store, servers, and a clock that is ahead of its time."""

    store: Store
    moto: str
    stack: ExitStack
    clock: Callable[[], float]

    def proxy(self, url: str) -> Proxy:
        """Return a proxy that is down."""
        proxy = self.stack.enter_context(proxy_to(url))
        proxy.down()
        return proxy

    def declare(self, kind: str, transport: Transport, arrived: Callable[[], list[str]]) -> Far:
        channel = declared(kind, transport, "far")
        declare(self.store, [channel], 0)
        return Far("far", openers([channel]), arrived)


def to_sqs(outage: Outage, proxy: Proxy) -> Far:
    queue, found = test_aws_queues.make_queue(outage.moto, "outage.fifo"), list[Any]()
    account = test_aws_queues.account(f"http://127.0.0.1:{proxy.port}")
    return outage.declare(
        "sqs", SqsTransport("outage.fifo", account), lambda: _taken(outage.moto, queue, found)
    )


def to_sns(outage: Outage, proxy: Proxy) -> Far:
    topic, queue = test_aws_queues.make_topic(outage.moto, "outage-topic.fifo")
    account, found = test_aws_queues.account(f"http://127.0.0.1:{proxy.port}"), list[Any]()
    return outage.declare(
        "sns", SnsTransport(topic, account), lambda: _taken(outage.moto, queue, found)
    )


def _taken(moto: str, queue: str, found: list[Any]) -> list[str]:
    """Take what a queue has got out of it; return the events of all that was taken so far."""
    found += test_aws_queues.received(moto, queue)
    return test_aws_queues.events_of(found, "ada")


def to_kafka(outage: Outage, proxy: Proxy, brokers: Brokers) -> Far:
    """Return a channel that asks the proxy where the broker is."""
    found = list[str]()

    def arrived() -> list[str]:
        if outage.store.channels.find("far")[0].sent:  # otherwise there is no topic yet
            records = test_kafka.received(brokers, "outage", 12)
            found[:] = [json.loads(record.value())["event"] for record in records]
        return found

    transport = KafkaTransport(f"127.0.0.1:{proxy.port}", "outage", SOON)
    return outage.declare("kafka", transport, arrived)


def to_chat(kind: str, outage: Outage, proxy: Proxy, chat: Receiver) -> Far:
    person = PersonChannel(kind, f"http://127.0.0.1:{proxy.port}/hook", every="delivery")
    settings = ServiceSettings(webhook_networks=("127.0.0.0/8",))
    put_entry(outage.store, EntryDraft("ada", "far", person, verified=True), 0)
    senders = person_openers(outage.store, "default", settings.people, outage.clock)

    def arrived() -> list[str]:
        bodies = [json.loads(request.body) for request in [*chat.received]]
        return [name for body in bodies for name in CHAT_TITLES[kind](body)]

    return Far("far", senders, arrived)


def to_webhook(outage: Outage, proxy: Proxy, hook: Receiver) -> Far:
    outage.store.webhooks.put("ada", "far", f"http://127.0.0.1:{proxy.port}/hook", 0)
    rules = TargetRules.of(["*"], ["127.0.0.0/8"])

    def arrived() -> list[str]:
        return [json.loads(request.body)["data"]["event"] for request in [*hook.received]]

    return Far("far", {WEBHOOK: webhooks(rules, outage.clock)}, arrived)


@pytest.mark.parametrize("kind", ["sqs", "sns", "kafka", "slack", "teams", "webhook"])
def test_an_outage_of_an_hour_of_each_kind(kind: str, moto: str, nats: str, tmp_path: Path) -> None:
    """While the receiver is away, a queue beside it gets everything at once."""
    test_jetstream.add_stream(nats, f"beside-{kind}")
    passed_s, events = [0.0], [f"e{number}" for number in range(12)]
    brokers = Brokers()

    def clock() -> float:
        return time.time() + passed_s[0]

    with ExitStack() as stack:
        store = stack.enter_context(open_store(tmp_path / "tidings.db"))
        outage, taker = Outage(store, moto, stack, clock), stack.enter_context(receiver())
        own = {"sqs": moto, "sns": moto, "kafka": f"//{brokers.address}"}
        proxy = outage.proxy(own.get(kind, taker.url.removesuffix("/hook")))
        if kind in ("sqs", "sns"):
            far = {"sqs": to_sqs, "sns": to_sns}[kind](outage, proxy)
        elif kind == "kafka":
            far = to_kafka(outage, proxy, brokers)
        elif kind == "webhook":
            far = to_webhook(outage, proxy, taker)
        else:
            far = to_chat(kind, outage, proxy, taker)
        near = declared("nats", JetStreamTransport((nats,), f"beside-{kind}.x"), "near")
        declare(store, [near], 0)
        with sending(store, {**openers([near]), **far.senders}, clock):
            for quarter in range(4):
                deliver(store, quarter, *events[3 * quarter : 3 * quarter + 3], to=("ada",))
                eventually(
                    lambda so_far=3 * quarter + 3: len(streamed(nats, f"beside-{kind}")) == so_far
                )
                seen = 0 if kind in CHAT_TITLES else quarter  # chats rest as long as they failed
                eventually(lambda seen=seen: failures(store, far.name) > seen)
                assert far.arrived() == []
                passed_s[0] += QUARTER_S
            proxy.up()
            passed_s[0] += LONGEST_REST_S

            def is_well() -> bool:
                passed_s[0] += 10  # or the channel rests, if its first attempt was too slow
                return failures(store, far.name) == 0

            eventually(is_well)
            eventually(lambda: store.channels.find(far.name)[0].sent == len(events))
        assert far.arrived() == events
    assert streamed(nats, f"beside-{kind}") == events
