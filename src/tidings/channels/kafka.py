"""Kafka topics: an idempotent producer, keyed by subscriber, with the key of a delivery as header.

The producer never repeats or reorders a record by itself. A process that was killed may repeat
some; consumers recognise them by the header `tidings-key`.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidings.channels.sender import SENT, Message, Outcome, Status
from tidings.channels.transport import Secret, TransportForm, needs
from tidings.errors import TidingsError
from tidings.formats.redaction import Hide, hider, is_secret
from tidings.store.channels import Channel

_TOPIC: Final = re.compile(r"[A-Za-z0-9._\-]{1,249}")
KEYS: Final = ("servers", "topic", "options")
HEADER: Final = "tidings-key"
_PAGE: Final = 2_000
_ANSWER_S: Final = 20.0
_POLL_S: Final = 0.1
_NO_ANSWER: Final = Outcome(Status.FAILED, f"no answer within {_ANSWER_S:g} s")


@dataclass(frozen=True)
class KafkaTransport:
    """A topic; `options` are those of librdkafka, such as `security.protocol`."""

    servers: str
    topic: str
    options: Mapping[str, Secret] = field(default_factory=dict, repr=False, hash=False)
    rate: float | None = None

    @classmethod
    def read(cls, form: TransportForm) -> "KafkaTransport":
        """Read the keys of a config."""
        return cls(
            ",".join(form.servers("servers")),
            form.matched("topic", _TOPIC, "1 to 249 letters, digits and . _ -"),
            form.options("options"),
            form.number("rate"),
        )

    @property
    def label(self) -> str:
        """The topic."""
        return self.topic

    @property
    def hide(self) -> Hide:
        """A function that replaces the secrets in a text."""
        return hider(
            [
                value.reveal()
                for key, value in self.options.items()
                if value.variable is not None or is_secret(key)
            ]
        )

    def open(self, channel: Channel) -> "KafkaSender":
        """Return the sender of the topic."""
        del channel
        return KafkaSender(self, self.rate)


@dataclass
class KafkaSender:
    """The sender of a topic. A failure discards the producer, so that it sends nothing later."""

    transport: KafkaTransport
    rate: float | None = None
    batch: int = _PAGE
    in_order: bool = True
    _producer: Any = field(default=None, init=False)
    _trouble: str = field(default="", init=False)
    """The last error of a broker, which a message that times out does not report."""

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return await asyncio.to_thread(self._send, messages)

    async def close(self) -> None:
        await asyncio.to_thread(self._abandon)

    def _send(self, messages: Sequence[Message]) -> list[Outcome]:
        library = _library()
        try:
            self._producer = self._producer or library.Producer(self._settings(library))
        except library.KafkaException as error:
            raise TidingsError(self._reason(error)) from None
        outcomes: list[Outcome] = [_NO_ANSWER] * len(messages)
        for number, message in enumerate(messages):
            outcomes[number] = self._produce(library, message, number, outcomes)
        deadline = time.monotonic() + _ANSWER_S
        while len(self._producer) and time.monotonic() < deadline:
            self._producer.poll(_POLL_S)
        if any(outcome.status is Status.FAILED for outcome in outcomes):
            self._abandon()
        return outcomes

    def _produce(
        self, library: Any, message: Message, number: int, outcomes: list[Outcome]
    ) -> Outcome:
        """Hand a message to the producer; its outcome is written when the broker answers."""

        def answered(error: Any, _: Any) -> None:
            outcomes[number] = SENT if error is None else self._failure(library, error)

        try:
            self._producer.produce(
                self.transport.topic,
                key=message.delivery.subscriber.encode(),
                value=message.body.encode(),
                headers=[(HEADER, message.key.encode())],
                on_delivery=answered,
            )
        except (library.KafkaException, BufferError) as error:
            reason = error.args[0] if isinstance(error, library.KafkaException) else error
            return self._failure(library, reason)
        return _NO_ANSWER

    def _failure(self, library: Any, error: Any) -> Outcome:
        code = error.code() if hasattr(error, "code") else None
        refused = code == library.KafkaError.MSG_SIZE_TOO_LARGE
        late = code == library.KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - so the library names it
        why = f" ({self._trouble or 'no broker has confirmed it'})" if late else ""
        return Outcome(Status.REFUSED if refused else Status.FAILED, self._reason(error, why))

    def _abandon(self) -> None:
        """Drop what is still in the producer: it is sent again, in order, by the next one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(1.0)

    def _settings(self, library: Any) -> dict[str, Any]:
        self._trouble = ""

        def note(error: Any) -> None:
            if error.code() != library.KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
                self._trouble = error.str()

        options = {name: value.reveal() for name, value in self.transport.options.items()}
        return {
            "linger.ms": 5,
            "log_level": 0,
            "message.timeout.ms": int(_ANSWER_S * 900),
            **options,
            "bootstrap.servers": self.transport.servers,
            "enable.idempotence": True,
            "error_cb": note,
        }

    def _reason(self, error: Any, why: str = "") -> str:
        text = error.str() if hasattr(error, "str") else str(error)
        return self.transport.hide(f"{self.transport.servers}: {text}{why}")[:500]


def _library() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise needs("kafka", error) from None
    return confluent_kafka
