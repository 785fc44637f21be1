"""NATS JetStream: messages published in order, each with its key as `Nats-Msg-Id`.

A stream drops a message whose id it has seen within its duplicate window, two minutes by default.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from tidings.channels.sender import SENT, Message, Outcome, Status
from tidings.channels.transport import Secret, TransportForm, needs
from tidings.errors import InvalidForm, TidingsError
from tidings.formats.redaction import Hide, hider, shown_safely
from tidings.store.channels import Channel

KEYS: Final = ("servers", "subject", "user", "password", "token", "credentials")
_PAGE: Final = 500
_CONNECT_S: Final = 5
_ANSWER_S: Final = 20.0
_NOBODY: Final = "503"
_SUBSCRIBER: Final = "{subscriber}"
_SUBJECT: Final = re.compile(r"[^\s.*>{}]+(\.[^\s.*>{}]+)*")


@dataclass(frozen=True)
class JetStreamTransport:
    """A subject that a stream listens to; `{subscriber}` in it stands for the subscriber."""

    servers: tuple[str, ...]
    subject: str
    user: str | None = field(default=None, repr=False)
    password: Secret | None = None
    token: Secret | None = None
    credentials: str | None = field(default=None, repr=False)
    rate: float | None = None

    @classmethod
    def read(cls, form: TransportForm) -> "JetStreamTransport":
        """Read the keys of a config."""
        servers = form.servers("servers", "nats://127.0.0.1:4222")
        subject = form.text("subject")
        if not _SUBJECT.fullmatch(subject.replace(_SUBSCRIBER, "s")):
            raise InvalidForm(
                "subject must be words separated by dots, one of which may be {subscriber}, not "
                f"{shown_safely(subject)}"
            )
        return cls(
            servers,
            subject,
            form.optional("user"),
            form.secret("password"),
            form.secret("token"),
            form.optional("credentials"),
            form.number("rate"),
        )

    @property
    def label(self) -> str:
        """The subject."""
        return self.subject

    @property
    def hide(self) -> Hide:
        """A function that replaces the secrets in a text."""
        secrets = (self.password, self.token)
        return hider([secret.reveal() for secret in secrets if secret is not None])

    def subject_of(self, subscriber: str) -> str:
        """Return the subject of a subscriber's messages, with the dots of its id escaped."""
        name = quote(subscriber, safe="").replace(".", "%2E")
        return self.subject.replace(_SUBSCRIBER, name)

    def open(self, channel: Channel) -> "JetStreamSender":
        """Return the sender of the subject."""
        del channel
        return JetStreamSender(self, self.rate)


@dataclass
class JetStreamSender:
    """The sender of a subject, over one connection that is made again after a failure."""

    transport: JetStreamTransport
    rate: float | None = None
    batch: int = _PAGE
    in_order: bool = True
    _connection: "JetStreamConnection | None" = field(default=None, init=False)

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                if self._connection is None:
                    self._connection = JetStreamConnection(await _connect(self.transport))
                answers = await self._connection.publish(messages, self.transport)
        except TidingsError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is not used on
            await self.close()
            raise TidingsError(self._reason(error)) from None
        outcomes = [self._outcome(answer) for answer in answers]
        if any(outcome.status is Status.FAILED for outcome in outcomes):
            await self.close()
        return outcomes

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _outcome(self, failure: str | None) -> Outcome:
        if failure is None:
            return SENT
        return Outcome(Status.FAILED, self._with_servers(failure))

    def _reason(self, error: Exception) -> str:
        late = "no answer in time" if isinstance(error, TimeoutError) else ""
        return self._with_servers(late or str(error) or type(error).__name__)

    def _with_servers(self, text: str) -> str:
        return self.transport.hide(f"{', '.join(self.transport.servers)}: {text}")[:500]


class JetStreamConnection:
    """A connection with an inbox for the answers of JetStream.

    The library's own `publish_async` never answers if a stream is full.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._inbox: str = connection.new_inbox()
        self._answers = dict[str, asyncio.Future[str | None]]()
        self._count = 0
        self._is_listening = False

    async def publish(
        self, messages: Sequence[Message], transport: JetStreamTransport
    ) -> list[str | None]:
        """Publish messages in order; return the failure of each, or None."""
        if not self._is_listening:
            await self._connection.subscribe(f"{self._inbox}.*", cb=self._answered)
            self._is_listening = True
        futures = []
        for message in messages:
            self._count += 1
            reply = f"{self._inbox}.{self._count}"
            self._answers[reply] = asyncio.get_running_loop().create_future()
            futures.append(self._answers[reply])
            await self._connection.publish(
                transport.subject_of(message.delivery.subscriber),
                message.body.encode(),
                reply=reply,
                headers={"Nats-Msg-Id": message.key},
            )
        return await asyncio.gather(*futures)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _answered(self, answer: Any) -> None:
        future = self._answers.pop(answer.subject, None)
        if future is None or future.done():
            return
        if (answer.headers or {}).get("Status") == _NOBODY:
            future.set_result("no stream listens to the subject")
            return
        form = json.loads(answer.data)
        error = form.get("error") if isinstance(form, dict) else {"description": "no answer"}
        future.set_result(None if error is None else str(error.get("description", error)))


async def _connect(transport: JetStreamTransport) -> Any:
    try:
        from nats.errors import NoServersError

        from tidings.formats.nats_client import NatsClient
    except ImportError as error:
        raise needs("nats", error) from None
    options: dict[str, Any] = {
        "user": transport.user,
        "password": transport.password and transport.password.reveal(),
        "token": transport.token and transport.token.reveal(),
        "user_credentials": transport.credentials,
    }

    errors = list[Exception]()

    async def keep(error: Exception) -> None:
        """Keep an error; the library would log each."""
        errors[:] = [error]

    client = NatsClient()
    try:
        await client.connect(
            list(transport.servers),
            connect_timeout=_CONNECT_S,
            # Messages in a buffer would be sent after their failure was noted.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=keep,
            **{name: value for name, value in options.items() if value is not None},
        )
    except BaseException as error:
        with suppress(AssertionError):  # the library wants a connection to close
            await client.close()  # one that got no greeting is still open
        if isinstance(error, NoServersError) and errors:
            raise errors[0] from None  # why no server was available
        raise
    return client
