"""Queues and people that take deliveries while who sends them is killed, and what they check."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.channels import test_aws_queues, test_jetstream, test_kafka
from tests.channels.mailbox import Mailbox, mail_server
from tests.channels.sending import declared
from tests.kill import test_mail
from tests.service.receiving import Receiver, receiver
from tests.sources.brokers import Brokers
from tests.sources.clouds import ACCOUNT

from tidings.channels.aws_queues import SnsTransport, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import HEADER, KafkaTransport
from tidings.channels.sender import delivery_key
from tidings.channels.transport import DeclaredChannel
from tidings.model.records import Delivery
from tidings.store import Store


class Receivers:
    """A FIFO queue, a FIFO topic of SNS with another queue, a stream, and a topic of Kafka."""

    def __init__(self, moto: str, nats: str, brokers: Brokers, name: str) -> None:
        self.moto, self.nats, self.brokers, self.name = moto, nats, brokers, name
        self.queue = test_aws_queues.make_queue(moto, f"{name}.fifo")
        self.topic, self.topic_queue = test_aws_queues.make_topic(moto, f"{name}-topic.fifo")
        # As long as the queues: a killed run may take minutes to start again on a busy machine.
        test_jetstream.add_stream(nats, name, duplicate_window=3_600)

    def channels(self) -> list[DeclaredChannel]:
        account = test_aws_queues.account(self.moto)
        return [
            declared("sqs", SqsTransport(self.queue, account), "queue"),
            declared("sns", SnsTransport(self.topic, account), "pushed"),
            declared("nats", JetStreamTransport((self.nats,), f"{self.name}.x"), "stream"),
            declared("kafka", KafkaTransport(self.brokers.address, self.name), "topic"),
        ]

    def tables(self) -> str:
        """Return the same as tables of a config, which writes no secrets."""
        account = {"region": ACCOUNT["region"], "endpoint": self.moto}
        keys = {"access_key": {"env": "OUT_KEY"}, "secret_key": {"env": "OUT_SECRET"}}
        forms: list[dict[str, Any]] = [
            {"type": "sqs", "id": "queue", "queue": self.queue, **account, **keys},
            {"type": "sns", "id": "pushed", "topic": self.topic, **account, **keys},
            {"type": "nats", "id": "stream", "servers": self.nats, "subject": f"{self.name}.x"},
            {"type": "kafka", "id": "topic", "servers": self.brokers.address, "topic": self.name},
        ]
        return "".join(f"[[channels]]\n{_toml(form)}" for form in forms)

    def check(self, deliveries: Sequence[Delivery]) -> dict[str, int]:
        """Check that all has arrived, once where the other side de-duplicates, and in order.

        Return how many messages came again where it does not.
        """
        forms = [delivery.to_dict() for delivery in deliveries]
        for queue in (self.queue, self.topic_queue):
            messages = test_aws_queues.received(self.moto, queue)
            self._check_once([json.loads(message["Body"]) for message in messages], forms)
        stream = test_jetstream.received(self.nats, self.name)
        self._check_once([json.loads(message.data) for message in stream], forms)
        assert [json.loads(message.data) for message in stream] == forms
        records = test_kafka.received(self.brokers, self.name, len(forms))
        found = [(record.headers()[0], record.value().decode()) for record in records]
        first_of_each = list(dict.fromkeys(found))
        self._check_once([json.loads(value) for _, value in first_of_each], forms)
        keys = {(HEADER, delivery_key(delivery).encode()) for delivery in deliveries}
        assert {header for header, _ in first_of_each} == keys
        return {"topic": len(found) - len(first_of_each)}

    def _check_once(self, found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
        assert len(found) == len(expected)
        for name in {form["subscriber"] for form in expected}:
            own = [form for form in found if form["subscriber"] == name]
            assert own == [form for form in expected if form["subscriber"] == name]


def _toml(form: dict[str, Any]) -> str:
    return "".join(
        f'{name} = {{ env = "{value["env"]}" }}\n'
        if isinstance(value, dict)
        else f"{name} = {json.dumps(value)}\n"
        for name, value in form.items()
    )


class People:
    """A subscriber who gets everything at once by mail and in two chats, and their servers."""

    kinds = ("mail", "slack", "teams")

    def __init__(self, subscriber: str, box: Mailbox, chats: dict[str, Receiver]) -> None:
        self.subscriber, self.box, self.chats = subscriber, box, chats

    @contextmanager
    def unanswered(self, kind: str) -> Iterator[Callable[[], bool]]:
        """Let a mail or a message be taken without an answer; yield what tells whether one was."""
        server = self.box if kind == "mail" else self.chats[kind]
        with server.hold.on():
            yield lambda: server.hold.taken > 0

    def tables(self) -> str:
        """Return the tables of a config."""
        port, sender = self.box.port, "t@x.example"
        server = {"host": "127.0.0.1", "port": port, "security": "none", "from": sender}
        urls = {kind: chat.url for kind, chat in self.chats.items()}
        addresses = {"mail": "ada@example.org", **urls}
        forms = [
            {"subscriber": self.subscriber, "kind": kind, "address": place, "every": "delivery"}
            for kind, place in addresses.items()
        ]
        people = "".join(f"[[people]]\n{_toml(form)}" for form in forms)
        template = '[template]\ntitle = "{{delivery.event}}"\n'
        return f"[mail]\n{_toml(server)}{template}{people}"

    def check(self, deliveries: Sequence[Delivery]) -> dict[str, int]:
        """Check that each delivery is in one message, and that one that came again is the same.

        Return how many messages came again.
        """
        mails = test_mail.arrived(self.box)
        assert all(len(versions) == 1 for versions in mails.values())
        own = sorted(
            delivery.event for delivery in deliveries if delivery.subscriber == self.subscriber
        )
        titles = _mailed_titles(self.box)
        assert sorted(titles) == own
        repeated = {"mail": len(self.box.raw) - len(mails)}
        for kind, chat in self.chats.items():
            requests = {(each.headers["idempotency-key"], each.body) for each in [*chat.received]}
            bodies = [body for _, body in requests]
            assert len({key for key, _ in requests}) == len(bodies)
            repeated[kind] = len(chat.received) - len(bodies)
            found = [title for body in bodies for title in CHAT_TITLES[kind](json.loads(body))]
            assert sorted(found) == own, (kind, sorted(found), own)
        return repeated


@contextmanager
def people_at(subscriber: str) -> Iterator[People]:
    """Run a mail server and two chats for a subscriber."""
    with mail_server() as box, receiver() as slack, receiver() as teams:
        yield People(subscriber, box, {"slack": slack, "teams": teams})


def _mailed_titles(box: Mailbox) -> list[str]:
    parsed = {mail["Message-ID"]: mail for mail in box.mails}
    bodies = [mail.get_body(("plain",)) for mail in parsed.values()]
    return [
        title
        for body in bodies
        if body is not None
        for title in re.findall(r"^\d+\. (\S+)\r?$", body.get_content(), re.MULTILINE)
    ]


def _slack_titles(message: Any) -> list[str]:
    runs = [block["elements"][0]["elements"][0] for block in message["blocks"]]
    return [run["text"] for run in runs if run.get("style") == {"bold": True}]


def _teams_titles(message: Any) -> list[str]:
    (attachment,) = message["attachments"]
    runs = [block["inlines"][0] for block in attachment["content"]["body"]]
    return [run["text"] for run in runs if run.get("weight") == "Bolder"]


CHAT_TITLES = {"slack": _slack_titles, "teams": _teams_titles}


def stored(store: Store) -> list[Delivery]:
    """Return all deliveries of a store in the order of commits."""
    channel = store.channels.queues()[0]
    entries = store.outbox.page(replace(channel, reached=0, key=""), 0, 1_000_000).entries
    return [entry.delivery for entry in entries if entry.delivery is not None]


def is_done(store: Store, name: str) -> bool:
    """Return whether a channel has nothing left to send."""
    return store.channels.backlog(store.channels.find(name)[0].key).waiting == 0
