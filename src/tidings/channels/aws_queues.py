"""Amazon SQS queues and SNS topics: batches of ten, in lanes that keep the order of a subscriber.

A FIFO queue or topic de-duplicates by the key of a delivery for five minutes, and groups by
subscriber. Amazon may take some messages of a batch and fail others, so a batch for one of these
holds at most one message of each subscriber, and none can overtake another. Message attributes are
the same for both, so that SNS subscriptions can filter by them.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Final, Protocol

from tidings.channels.sender import SENT, Message, Outcome, Status
from tidings.channels.transport import Secret, TransportForm, needs
from tidings.errors import TidingsError
from tidings.formats.redaction import Hide, hider, without_signed_text
from tidings.model.records import Delivery
from tidings.store.channels import Channel

KEYS: Final = ("region", "endpoint", "access_key", "secret_key", "session_token")
_BATCH: Final = 10
_PAGE: Final = 400
_LANES: Final = 4
_ANSWER_S: Final = 20
_BATCH_BYTES: Final = 250_000
"""Of one call; Amazon's limit was 262,144 bytes for years, and emulators still enforce it."""
_BAD_CONTENT: Final = ("InvalidMessageContents", "MessageTooLong", "BatchRequestTooLong")
_MAYBE_TOO_LONG: Final = ("InvalidParameterValue", "InvalidParameter")
_ARN: Final = re.compile(r"arn:[A-Za-z0-9_.:\-]+")
_GROUP: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
# What neither service accepts in a text.
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Form = dict[str, Any]
PublishBatch = Callable[[list[Form]], Mapping[str, Any]]


@dataclass(frozen=True)
class AwsAccount:
    """The region and the keys of an account; without keys, those of the environment are used."""

    region: str | None = None
    endpoint: str | None = None
    access_key: Secret | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None

    @classmethod
    def read(cls, form: TransportForm) -> "AwsAccount":
        """Read the keys of a config."""
        secrets = [form.secret(name) for name in ("access_key", "secret_key", "session_token")]
        endpoint = form.host("endpoint") if form.optional("endpoint") else None
        return cls(form.optional("region"), endpoint, *secrets)

    def client(self, service: str) -> Any:
        """Return a client of a service."""
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise needs("aws", error) from None
        config = Config(
            connect_timeout=5,
            read_timeout=_ANSWER_S,
            retries={"mode": "standard", "total_max_attempts": 2},
            max_pool_connections=_LANES,
        )
        session: Any = boto3.session.Session()
        return session.client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            aws_access_key_id=_reveal(self.access_key),
            aws_secret_access_key=_reveal(self.secret_key),
            aws_session_token=_reveal(self.session_token),
            config=config,
        )

    @property
    def hide(self) -> Hide:
        """A function that replaces the keys in a text."""
        keys = (self.access_key, self.secret_key, self.session_token)
        return hider([key.reveal() for key in keys if key is not None])


def _reveal(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()


class AwsTarget(Protocol):
    """A queue or a topic."""

    @property
    def account(self) -> AwsAccount: ...

    @property
    def is_fifo(self) -> bool: ...

    def connect(self) -> PublishBatch:
        """Return the function that sends a batch of entries, whose fields both services share."""


@dataclass(frozen=True)
class SqsTransport:
    """A queue, by its name or its URL."""

    queue: str
    account: AwsAccount = AwsAccount()
    rate: float | None = None

    @classmethod
    def read(cls, form: TransportForm) -> "SqsTransport":
        """Read the keys of a config."""
        return cls(form.host("queue"), AwsAccount.read(form), form.number("rate"))

    @property
    def label(self) -> str:
        """The name of the queue."""
        return self.queue.rpartition("/")[2]

    @property
    def is_fifo(self) -> bool:
        """Whether the queue keeps order and de-duplicates, which its name says."""
        return self.queue.endswith(".fifo")

    def connect(self) -> PublishBatch:
        client = self.account.client("sqs")
        is_url = "://" in self.queue
        url = self.queue if is_url else client.get_queue_url(QueueName=self.queue)["QueueUrl"]

        def publish(entries: list[Form]) -> Mapping[str, Any]:
            named = [{"MessageBody": entry.pop("Message"), **entry} for entry in entries]
            answer: Mapping[str, Any] = client.send_message_batch(QueueUrl=url, Entries=named)
            return answer

        return publish

    def open(self, channel: Channel) -> "AwsSender":
        """Return the sender of the queue."""
        del channel
        return AwsSender(self, self.rate)


@dataclass(frozen=True)
class SnsTransport:
    """A topic, by its ARN."""

    topic: str
    account: AwsAccount = AwsAccount()
    rate: float | None = None

    @classmethod
    def read(cls, form: TransportForm) -> "SnsTransport":
        """Read the keys of a config."""
        topic = form.matched("topic", _ARN, "an ARN, as arn:aws:sns:REGION:ACCOUNT:NAME")
        return cls(topic, AwsAccount.read(form), form.number("rate"))

    @property
    def label(self) -> str:
        """The name of the topic."""
        return self.topic.rpartition(":")[2]

    @property
    def is_fifo(self) -> bool:
        """Whether the topic keeps order and de-duplicates, which its name says."""
        return self.topic.endswith(".fifo")

    def connect(self) -> PublishBatch:
        client = self.account.client("sns")

        def publish(entries: list[Form]) -> Mapping[str, Any]:
            answer: Mapping[str, Any] = client.publish_batch(
                TopicArn=self.topic, PublishBatchRequestEntries=entries
            )
            return answer

        return publish

    def open(self, channel: Channel) -> "AwsSender":
        """Return the sender of the topic."""
        del channel
        return AwsSender(self, self.rate)


@dataclass
class AwsSender:
    """The sender of a queue or a topic."""

    target: AwsTarget
    rate: float | None = None
    batch: int = _PAGE
    in_order: bool = True
    _publish: PublishBatch | None = field(default=None, init=False)
    _ahead: frozenset[str] = field(default=frozenset(), init=False)
    """Keys of messages that were taken although one before them failed: not to be sent again."""
    _lanes: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_LANES, "aws"), init=False
    )

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return await asyncio.to_thread(self._send, messages)

    async def close(self) -> None:
        self._lanes.shutdown(wait=False, cancel_futures=True)

    def _connect(self) -> PublishBatch:
        try:
            return self.target.connect()
        except TidingsError:
            raise
        except Exception as error:  # noqa: BLE001 - botocore has many, for each service its own
            raise TidingsError(self._reason(error)) from None

    @cached_property
    def _hide(self) -> Hide:
        return self.target.account.hide

    def _send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Send the messages in lanes; those of one subscriber are in the same lane."""
        if self._publish is None:
            self._publish = self._connect()
        lanes: list[list[int]] = [[] for _ in range(_LANES)]
        for number, message in enumerate(messages):
            if message.key not in self._ahead:
                digest = sha256(message.delivery.subscriber.encode()).digest()
                lanes[digest[0] % _LANES].append(number)
        lists = list(self._lanes.map(partial(self._send_lane, self._publish, messages), lanes))
        sent = {number: outcome for outcomes in lists for number, outcome in outcomes.items()}
        outcomes = [sent.get(number, SENT) for number in range(len(messages))]
        failed = [number for number, outcome in sent.items() if outcome.status is Status.FAILED]
        self._ahead = frozenset(
            message.key
            for number, message in enumerate(messages)
            if failed and number > min(failed) and outcomes[number] is SENT
        )
        return outcomes

    def _send_lane(
        self, publish: PublishBatch, messages: Sequence[Message], lane: Sequence[int]
    ) -> dict[int, Outcome]:
        """Send some of the messages in order; after a failure, the rest is not tried."""
        outcomes, failure = dict[int, Outcome](), None
        for numbers in _chunks(messages, lane, one_each=self.target.is_fifo):
            if failure is None:
                answers = self._send_chunk(publish, [messages[number] for number in numbers])
            else:
                answers = [failure] * len(numbers)
            outcomes |= zip(numbers, answers, strict=True)
            failure = next(
                (answer for answer in answers if answer.status is Status.FAILED), failure
            )
        return outcomes

    def _send_chunk(self, publish: PublishBatch, messages: Sequence[Message]) -> list[Outcome]:
        try:
            entries = [
                _entry(number, message.delivery, message, is_fifo=self.target.is_fifo)
                for number, message in enumerate(messages)
            ]
            answer = publish(entries)
        except Exception as error:  # noqa: BLE001 - botocore has many, for each service its own
            code = _code(error)
            if code in (*_BAD_CONTENT, *_MAYBE_TOO_LONG) and len(messages) > 1:
                return [self._send_chunk(publish, [message])[0] for message in messages]
            return [self._failure(code, self._reason(error), message) for message in messages]
        failed = {int(entry["Id"]): entry for entry in answer.get("Failed", ())}
        return [
            self._failure(failed[number]["Code"], _text(failed[number], self._hide), message)
            if number in failed
            else SENT
            for number, message in enumerate(messages)
        ]

    def _failure(self, code: str, reason: str, message: Message) -> Outcome:
        is_long = len(message.body) > _BATCH_BYTES
        refused = code in _BAD_CONTENT or (code in _MAYBE_TOO_LONG and is_long)
        return Outcome(Status.REFUSED if refused else Status.FAILED, reason)

    def _reason(self, error: Exception) -> str:
        text = without_signed_text(" ".join(str(error).split()))
        return self._hide(f"{self.target.account.endpoint or 'AWS'}: {text}")[:500]


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    return str(code).rpartition(".")[2]


def _text(entry: Mapping[str, Any], hide: Hide) -> str:
    return hide(f"{entry['Code']}: {entry.get('Message', '')}")[:500]


def _chunks(messages: Sequence[Message], lane: Sequence[int], *, one_each: bool) -> list[list[int]]:
    """Return the numbers of at most ten messages, and not too many bytes, for each call.

    With `one_each`, messages of the same subscriber are in different calls, in their order.
    """
    chunks, sizes, earliest = list[list[int]](), list[int](), dict[str, int]()
    for number in lane:
        delivery = messages[number].delivery
        length = _size(delivery)
        place = earliest.get(delivery.subscriber, 0) if one_each else max(0, len(chunks) - 1)
        while place < len(chunks) and (
            len(chunks[place]) == _BATCH or sizes[place] + length > _BATCH_BYTES
        ):
            place += 1
        if place == len(chunks):
            chunks.append([])
            sizes.append(0)
        chunks[place].append(number)
        sizes[place] += length
        earliest[delivery.subscriber] = place + 1
    return chunks


def _size(delivery: Delivery) -> int:
    """Return an upper bound of the bytes of a message, attributes included."""
    content = len(delivery.content_json or "") + len(delivery.subscriber) + len(delivery.event)
    return 1_000 + 6 * (content + sum(map(len, delivery.matched)))


def _entry(number: int, delivery: Delivery, message: Message, *, is_fifo: bool) -> Form:
    entry: Form = {
        "Id": str(number),
        "Message": json.dumps(delivery.to_dict(), separators=(",", ":")),
        "MessageAttributes": message_attributes(delivery, message.key),
    }
    if is_fifo:
        name = delivery.subscriber
        group = name if _GROUP.fullmatch(name) else sha256(name.encode()).hexdigest()
        entry |= {"MessageGroupId": group, "MessageDeduplicationId": message.key}
    return entry


def message_attributes(delivery: Delivery, key: str) -> Form:
    """Return the attributes by which receivers filter, and by which they de-duplicate."""
    texts = {"subscriber": delivery.subscriber, "event": delivery.event, "key": key}
    numbers = {"rank": delivery.rank, "sequence": delivery.sequence}
    attributes = {name: _attribute("String", _printable(text)) for name, text in texts.items()}
    attributes |= {name: _attribute("Number", repr(value)) for name, value in numbers.items()}
    return attributes | {"matched": _attribute("String.Array", json.dumps(delivery.matched))}


def _attribute(kind: str, value: str) -> Form:
    return {"DataType": kind, "StringValue": value}


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
