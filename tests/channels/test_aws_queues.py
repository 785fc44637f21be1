"""SQS and SNS against moto's server: order, keys, attributes, filters, and trouble."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest
from tests.channels.sending import channel_of, declared, deliver, send_all
from tests.proxy import proxy_to
from tests.sources.clouds import ACCOUNT
from tests.store.appender import delivery

from tidings.channels.aws_queues import (
    AwsAccount,
    AwsSender,
    PublishBatch,
    SnsTransport,
    SqsTransport,
)
from tidings.channels.sender import SENT, Message, delivery_key
from tidings.channels.transport import Secret
from tidings.store import Store, open_store

EVENTS = [f"e{number}" for number in range(37)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


def account(endpoint: str) -> AwsAccount:
    region, key, secret = ACCOUNT.values()
    return AwsAccount(region, endpoint, Secret(value=key), Secret(value=secret))


def aws_client(service: Any, endpoint: str) -> Any:
    region, key, secret = ACCOUNT.values()
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )


def make_queue(endpoint: str, name: str) -> str:
    attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    client = aws_client("sqs", endpoint)
    return str(client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def make_topic(endpoint: str, name: str) -> tuple[str, str]:
    """Create a FIFO topic and a FIFO queue that takes what it gets; return both."""
    client, queue = aws_client("sns", endpoint), make_queue(endpoint, name)
    topic = str(client.create_topic(Name=name, Attributes={"FifoTopic": "true"})["TopicArn"])
    arn = f"arn:aws:sqs:{ACCOUNT['region']}:123456789012:{name}"
    client.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"}
    )
    return topic, queue


def received(endpoint: str, queue: str) -> list[dict[str, Any]]:
    """Take all messages out of a queue."""
    client, messages = aws_client("sqs", endpoint), list[dict[str, Any]]()
    while True:
        answer = client.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        if "Messages" not in answer:
            return messages
        messages += answer["Messages"]
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(answer["Messages"])
        ]
        client.delete_message_batch(QueueUrl=queue, Entries=entries)


def events_of(messages: list[dict[str, Any]], subscriber: str) -> list[str]:
    forms = [json.loads(message["Body"]) for message in messages]
    return [form["event"] for form in forms if form["subscriber"] == subscriber]


def test_a_fifo_queue_has_the_deliveries_of_each_subscriber_in_order(
    store: Store, moto: str
) -> None:
    queue = make_queue(moto, "in-order.fifo")
    deliver(store, 0, *EVENTS)
    send_all(store, declared("sqs", SqsTransport(queue, account(moto))))
    messages = received(moto, queue)
    assert events_of(messages, "ada") == EVENTS[0::2]
    assert events_of(messages, "bob") == EVENTS[1::2]
    assert channel_of(store).sent == len(EVENTS)
    first = next(message for message in messages if '"e0"' in message["Body"])
    stored = store.notifications.after("ada", limit=1)[0]
    assert json.loads(first["Body"]) == stored.to_dict()
    attributes = {name: each["StringValue"] for name, each in first["MessageAttributes"].items()}
    assert attributes["key"] == delivery_key(stored)
    assert (attributes["subscriber"], attributes["event"]) == ("ada", "e0")
    assert json.loads(attributes["matched"]) == list(stored.matched)


def test_what_is_sent_again_is_dropped_by_its_key(store: Store, moto: str) -> None:
    queue = make_queue(moto, "once.fifo")
    deliver(store, 0, *EVENTS)
    sqs = declared("sqs", SqsTransport("once.fifo", account(moto)))
    send_all(store, sqs)
    store.channels.remove(channel_of(store).key)  # it begins again
    send_all(store, sqs)
    assert sorted(events_of(received(moto, queue), "ada")) == sorted(EVENTS[0::2])


def test_a_queue_that_is_away_gets_everything_in_order_when_it_is_back(
    store: Store, moto: str
) -> None:
    queue = make_queue(moto, "away.fifo")
    with proxy_to(moto) as proxy:
        endpoint = f"http://127.0.0.1:{proxy.port}"
        sqs = declared("sqs", SqsTransport("away.fifo", account(endpoint)))
        deliver(store, 0, "e0")
        send_all(store, sqs)
        proxy.down()
        deliver(store, 1, *EVENTS[1:], to=("ada",))
        send_all(store, sqs, patience_s=0)
        state = channel_of(store)
        assert (state.state, state.failures, state.sent) == ("failing", 1, 1)
        assert state.reason
        assert "Sw0rdfish" not in state.reason
        assert store.channels.backlog(state.key).waiting == len(EVENTS) - 1
        proxy.up()
        send_all(store, sqs)
    assert events_of(received(moto, queue), "ada") == EVENTS
    assert channel_of(store).state == "working"


def test_a_queue_that_does_not_exist_is_a_failure_that_names_it(store: Store, moto: str) -> None:
    deliver(store, 0, "e0")
    send_all(store, declared("sqs", SqsTransport("nowhere", account(moto))), patience_s=0)
    assert "queue does not exist" in str(channel_of(store).reason)
    assert store.channels.backlog(channel_of(store).key).waiting == 1


def test_a_message_that_is_too_long_is_given_up_and_the_others_pass(
    store: Store, moto: str
) -> None:
    queue = make_queue(moto, "long")
    long = replace(delivery("ada", "long"), content_json=json.dumps({"text": "x" * 2_000_000}))
    store.notifications.append("q", 0, [delivery("ada", "a"), long, delivery("ada", "b")])
    send_all(store, declared("sqs", SqsTransport(queue, account(moto))))
    assert events_of(received(moto, queue), "ada") == ["a", "b"]
    [failed] = store.channels.failures(channel_of(store).key)
    assert (failed.number, failed.next_us) == (2, None)


def test_ids_that_aws_refuses_as_groups_are_sent_all_the_same(store: Store, moto: str) -> None:
    queue = make_queue(moto, "odd.fifo")
    names = ["ä ö", "n\0l", "x" * 900, "plain"]
    store.notifications.append("q", 0, [delivery(name, "e") for name in names])
    send_all(store, declared("sqs", SqsTransport(queue, account(moto))))
    forms = [json.loads(message["Body"]) for message in received(moto, queue)]
    assert sorted(form["subscriber"] for form in forms) == sorted(names)


def test_subscriptions_of_a_topic_filter_by_attributes(store: Store, moto: str) -> None:
    topic = aws_client("sns", moto).create_topic(Name="tidings")["TopicArn"]
    filters = {"all": {}, "ada": {"subscriber": ["ada"]}, "s9": {"matched": ["s9"]}}
    queues = {name: make_queue(moto, f"sns-{name}") for name in filters}
    for name, policy in filters.items():
        arn = f"arn:aws:sqs:{ACCOUNT['region']}:123456789012:sns-{name}"
        attributes = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps(policy)}
        aws_client("sns", moto).subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes
        )
    deliver(store, 0, *EVENTS[:5])
    store.notifications.append("q", 1, [replace(delivery("cy", "e9"), matched=("s9", "s1"))])
    send_all(store, declared("sns", SnsTransport(topic, account(moto))))
    found = {name: len(received(moto, queue)) for name, queue in queues.items()}
    assert found == {"all": 6, "ada": 3, "s9": 1}


@dataclass
class FlakyTarget:
    """A queue that fails some messages of a batch and takes the others, as Amazon may."""

    is_fifo: bool
    chance: Random
    account: AwsAccount = AwsAccount()
    failing: float = 0.3
    taken: list[dict[str, Any]] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)

    def connect(self) -> PublishBatch:
        def publish(entries: list[dict[str, Any]]) -> dict[str, Any]:
            failed = []
            forms = [json.loads(entry["Message"]) for entry in entries]
            self.calls.append([form["subscriber"] for form in forms])
            for entry, form in zip(entries, forms, strict=True):
                if self.chance.random() < self.failing:
                    failed.append({"Id": entry["Id"], "Code": "InternalError", "Message": "again"})
                else:
                    self.taken.append(form)
            return {"Failed": failed}

        return publish


@pytest.mark.parametrize("seed", range(20))
def test_messages_that_amazon_fails_within_a_batch_are_not_overtaken(seed: int) -> None:
    """Each message comes once, and after those of its subscriber before it."""
    chance = Random(seed)
    target = FlakyTarget(is_fifo=True, chance=chance)
    names = [chance.choice("abcdefg") for _ in range(100)]
    messages = [
        Message(replace(delivery(name, f"e{number}"), sequence=number))
        for number, name in enumerate(names)
    ]
    sender, reached = AwsSender(target), 0
    while reached < len(messages):
        outcomes = asyncio.run(sender.send(messages[reached:]))
        sent = [outcome is SENT for outcome in outcomes]
        reached += sent.index(False) if False in sent else len(sent)
    asyncio.run(sender.close())
    assert all(len({*call}) == len(call) <= 10 for call in target.calls)
    assert len(target.taken) == len(messages)
    for name in {*names}:
        own = [form["sequence"] for form in target.taken if form["subscriber"] == name]
        assert own == [number for number, each in enumerate(names) if each == name]


@pytest.mark.parametrize(("is_fifo", "calls"), [(True, 7), (False, 3)])
def test_calls_are_as_few_as_the_order_allows(is_fifo: bool, calls: int) -> None:
    target = FlakyTarget(is_fifo=is_fifo, chance=Random(1), failing=0)
    sender = AwsSender(target)
    messages = [
        Message(replace(delivery(name, f"{name}{number}"), sequence=number))
        for name in ("a", "b", "c")  # they share a lane
        for number in range(7)
    ]
    assert all(each is SENT for each in asyncio.run(sender.send(messages)))
    asyncio.run(sender.close())
    assert len(target.calls) == calls
