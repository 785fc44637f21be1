"""`tidings-nats`: the messages of a stream of NATS JetStream, by their sequence numbers.

Each range is read by a consumer of its own that acknowledges nothing, so the position that the
caller keeps is the only one.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from tidings.errors import SourceError, shown
from tidings.formats.event_source import NATS
from tidings.formats.nats_client import NatsClient, NoEncryptionError
from tidings.formats.redaction import Hide, hider_of, is_server, shown_server
from tidings.sources.offsets import (
    OffsetForm,
    Span,
    data_loss,
    from_form,
    plan_batch,
    spans,
    to_form,
)
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_flag,
    read_integer,
    read_required,
)
from tidings.sources.protocol import EARLIEST, LATEST, MESSAGES, Position

T = TypeVar("T")
_SCHEMES: Final = ("nats://", "tls://", "ws://", "wss://")
_KNOWN: Final = (
    *("servers", "stream", "subject", "user", "password", "token", "credentials"),
    *("startingSequence", "maxRecordsPerTrigger", "failOnDataLoss", "patienceMs"),
)
_PAGE: Final = 1_000
_PATIENCE_MS: Final = 30_000
_ATTEMPT_S: Final = 3
_PAUSE_S: Final = 0.5
_DIGITS: Final = 20
"""The digits of the largest number that a stream can have."""
# Credentials need another library, which the client loads only then.
_ERRORS: Final = (NatsError, OSError, asyncio.TimeoutError, ValueError, ImportError)


@dataclass(frozen=True)
class JetStreamOptions:
    """A stream, the servers that have it, where to start, and how much to read at once."""

    servers: tuple[str, ...]
    stream: str
    account: dict[str, str] = field(repr=False, hash=False)
    subject: str | None = None
    starting: str | int = EARLIEST
    limit: int | None = None
    fail_on_data_loss: bool = True
    patience_s: float = _PATIENCE_MS / 1000
    hide: Hide = field(default=str, repr=False)


def open_reader(texts: OptionTexts, _: bool | None) -> "JetStreamReader":
    """Return the reader of a stream."""
    return JetStreamReader(read_options(texts))


def read_options(texts: OptionTexts) -> JetStreamOptions:
    """Return the options."""
    check_names(NATS, texts, _KNOWN)
    small = lower_names(texts)
    listed = read_required(NATS, small, "servers", "servers = 'nats://localhost:4222'")
    servers = tuple(server.strip() for server in listed.split(",") if server.strip())
    for server in servers:
        if not is_server(server) or not server.startswith(_SCHEMES):
            raise SourceError(
                f"{NATS}: servers must list addresses such as 'nats://node1:4222', with `user` and "
                f"`password` as options of their own, not {shown_server(server)}"
            )
    names = {"user": "user", "password": "password", "token": "token"}
    account = {name: small[option] for name, option in names.items() if option in small}
    if "credentials" in small:
        account["user_credentials"] = small["credentials"]
    return JetStreamOptions(
        servers,
        read_required(NATS, small, "stream", "stream = 'FILMS'"),
        account,
        small.get("subject"),
        _starting(small.get("startingsequence", EARLIEST)),
        read_integer(small, "maxRecordsPerTrigger"),
        read_flag(small, "failOnDataLoss", default=True),
        (read_integer(small, "patienceMs") or _PATIENCE_MS) / 1000,
        hider_of(small),
    )


def _starting(text: str) -> str | int:
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    if not text.isdecimal() or len(text) > _DIGITS:
        raise SourceError(
            f"{NATS}: startingSequence must be {EARLIEST!r}, {LATEST!r} or the number of a "
            f"message, not {shown(text)}"
        )
    return int(text)


class JetStreamReader:
    """The reader of a stream, which is one partition.

    It connects for each question: that takes a millisecond or two, and no connection has to be
    kept alive between batches.
    """

    schema = MESSAGES

    def __init__(self, options: JetStreamOptions) -> None:
        self._options = options
        self._partition = (options.stream, 0)

    @property
    def limit(self) -> int | None:
        return self._options.limit

    def starting(self, default: str) -> OffsetForm:
        """Return the start; `default` has no effect, by default all is read."""
        del default
        first, last = self._bounds()
        starting = self._options.starting
        if isinstance(starting, str):
            return to_form({self._partition: first if starting == EARLIEST else last + 1})
        return to_form({self._partition: max(1, starting)})

    def ending(self) -> OffsetForm:
        return self.latest()

    def latest(self) -> OffsetForm:
        return to_form({self._partition: self._bounds()[1] + 1})

    def advance(self, start: Position, latest: Position, limit: int | None) -> OffsetForm:
        return plan_batch(start, latest, limit, NATS, strict=self._options.fail_on_data_loss)

    def spans(self, start: Position, end: Position) -> list[Span]:
        return spans(from_form(start), from_form(end))

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range; those that were deleted within it are skipped."""
        with asyncio.Runner() as runner:
            pages = self._pages(span)
            while (page := self._run(runner, lambda: anext(pages, None))) is not None:
                yield _batch(page)

    def committed(self, end: Position) -> None:
        """Do nothing: the stream keeps messages by its own limits."""

    def close(self) -> None:
        """Do nothing: there is no connection between calls."""

    def _bounds(self) -> tuple[int, int]:
        """Return the numbers of the first and the last message."""

        async def ask() -> tuple[int, int]:
            async with self._connected() as connection:
                info = await connection.answer(connection.stream.stream_info(self._options.stream))
                return info.state.first_seq, info.state.last_seq

        with asyncio.Runner() as runner:
            return self._run(runner, partial(self._patiently, ask))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of some work, which begins again if its connection breaks."""
        deadline = self._deadline()
        while True:
            try:
                return await work()
            except _LostError:
                if time.monotonic() > deadline:
                    raise

    def _run(self, runner: asyncio.Runner, work: Callable[[], Awaitable[T]]) -> T:
        """Run some work; errors of the client become ours, without a context that shows options."""

        async def waited() -> T:
            return await work()

        try:
            return runner.run(waited())
        except NotFoundError:
            failure = f"there is no stream {self._options.stream!r}"
        except SourceError:
            raise
        except _ERRORS as error:
            failure = f"{type(error).__name__}: {error}"
        servers = ", ".join(self._options.servers)
        raise SourceError(f"{NATS}: {servers}: {self._options.hide(failure)}")

    def _deadline(self) -> float:
        return time.monotonic() + self._options.patience_s

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator["_Connection"]:
        options, failures, lost = self._options, list[str](), asyncio.Event()
        client: Any = NatsClient()
        deadline = self._deadline()

        async def note(error: Exception) -> None:
            failures.append(str(error) or type(error).__name__)
            is_wrong = (
                isinstance(error, NoEncryptionError) or "authorization" in failures[-1].lower()
            )
            if (is_wrong or time.monotonic() > deadline) and not client.is_connected:
                raise error  # which ends the attempts to connect

        async def note_loss() -> None:
            lost.set()

        try:
            await client.connect(
                list(options.servers),
                connect_timeout=_ATTEMPT_S,
                # A server that restarts refuses connections at once; others take their time.
                max_reconnect_attempts=1 + int(options.patience_s / _PAUSE_S),
                reconnect_time_wait=_PAUSE_S,
                error_cb=note,
                disconnected_cb=note_loss,
                **options.account,
            )
        except _ERRORS as error:
            with suppress(AssertionError):  # the library wants a connection to close
                await client.close()
            reasons = "; ".join(dict.fromkeys([*failures, str(error) or type(error).__name__]))
            raise ConnectionError(f"no connection ({reasons})") from None
        try:
            yield _Connection(client.jetstream(timeout=options.patience_s), lost)
        finally:
            await client.close()

    async def _pages(self, span: Span) -> AsyncIterator[list[Any]]:
        """Yield the messages of a range in order, some at a time.

        After a connection has broken, another one goes on behind the last message.
        """
        start, deadline = span.start, self._deadline()
        while start < span.end:
            try:
                async with self._connected() as connection:
                    async for page in self._pages_of(connection, replace(span, start=start)):
                        yield page
                        start, deadline = _number(page[-1]) + 1, self._deadline()
                    return
            except _LostError:
                if time.monotonic() > deadline:
                    raise

    async def _pages_of(self, connection: "_Connection", span: Span) -> AsyncIterator[list[Any]]:
        """Yield the messages of a range as long as a connection holds."""
        subscription = await connection.answer(self._subscribe(connection.stream, span))
        pending = (await connection.answer(subscription.consumer_info())).num_pending
        while pending:
            most = min(_PAGE, pending, span.end - span.start)
            messages = await connection.answer(
                subscription.fetch(most, timeout=self._options.patience_s)
            )
            within = [message for message in messages if _number(message) < span.end]
            if within:
                yield within
            if _number(messages[-1]) >= span.end - 1:
                return
            pending = messages[-1].metadata.num_pending

    async def _subscribe(self, stream: Any, span: Span) -> Any:
        """Return a subscription that begins with the first message of a range."""
        await self._check_start(stream, span)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=span.start,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=self._options.patience_s,
            mem_storage=True,
            num_replicas=1,
        )
        return await stream.pull_subscribe(
            self._options.subject or ">", stream=self._options.stream, config=config
        )

    async def _check_start(self, stream: Any, span: Span) -> None:
        """Refuse a range whose first messages the stream has dropped, if that is a loss."""
        first = (await stream.stream_info(self._options.stream)).state.first_seq
        if first > span.start and self._options.fail_on_data_loss:
            reason = f"stream {span.topic} begins with message {first}, after {span.start}"
            raise data_loss(NATS, reason)


class _LostError(ConnectionError):
    """A connection broke before the answer came."""


class _Connection(NamedTuple):
    """A connection to a stream, and what is set when it breaks."""

    stream: Any
    lost: asyncio.Event

    async def answer(self, question: Awaitable[T]) -> T:
        """Return the answer to a question; one that a broken connection lost would never come."""
        asked = asyncio.ensure_future(question)
        gone = asyncio.create_task(self.lost.wait())
        try:
            await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise _LostError("the connection broke")
        finally:
            asked.cancel()
            gone.cancel()
            await asyncio.gather(asked, gone, return_exceptions=True)


def _number(message: Any) -> int:
    number: int = message.metadata.sequence.stream
    return number


def _batch(messages: Sequence[Any]) -> pa.RecordBatch:
    rows = [
        {
            "key": message.subject,
            "value": message.data,
            "partition": message.metadata.stream,
            "position": str(message.metadata.sequence.stream),
            "timestamp": message.metadata.timestamp,
            "headers": [
                {"key": name, "value": text.encode()}
                for name, text in (message.headers or {}).items()
            ],
        }
        for message in messages
    ]
    return pa.RecordBatch.from_pylist(rows, MESSAGES)
