"""Live push: one query after each commit sends new notifications to all open streams.

The query runs in the thread that follows a tenant, and passes its results to the event loop, which
puts them in the queues of the streams. A stream starts with what its reader missed, read in pages;
a reader that is too slow for its queue is disconnected, and resumes where it was.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

from sse_starlette import JSONServerSentEvent, ServerSentEvent

from tidings.model.records import Delivery
from tidings.service.problems import HttpProblem
from tidings.service.tenant import Tenant
from tidings.store import Store

_PAGE: Final = 500
_QUEUED: Final = 1_000
_RETRY_MS: Final = 1_000
"""How long a browser waits before it reconnects."""


class Chunk(NamedTuple):
    """A notification as a server-sent event, encoded once for all its readers."""

    sequence: int
    content: bytes


class LiveStream:
    """A stream to one reader, with its queue; `is_open` until the reader falls behind."""

    def __init__(self) -> None:
        self._queue = asyncio.Queue[Chunk | None](_QUEUED + 1)
        self._is_open = True

    def put(self, chunks: Sequence[Chunk]) -> bool:
        """Append chunks.

        Close the stream if too many are queued, and return whether it is still open.
        """
        if self._is_open:
            room = _QUEUED - self._queue.qsize()
            for chunk in chunks[:room]:
                self._queue.put_nowait(chunk)
            if len(chunks) > room:
                self.close()
                return False
        return True

    def close(self) -> None:
        """End the stream after the chunks in its queue."""
        if self._is_open:
            self._is_open = False
            self._queue.put_nowait(None)

    async def after(self, sequence: int) -> AsyncIterator[Chunk]:
        """Yield the chunks after a sequence number, until the stream is closed."""
        while (chunk := await self._queue.get()) is not None:
            if chunk.sequence > sequence:
                yield chunk


class LiveInboxes:
    """The inboxes of a tenant that are read live, by any number of streams each."""

    def __init__(self, tenant: Tenant, loop: asyncio.AbstractEventLoop) -> None:
        self._store: Store = tenant.store
        self._metrics = tenant.metrics
        self._most = tenant.settings.streams
        self._loop = loop
        self._streams: dict[str, set[LiveStream]] = {}  # changed only by the event loop
        self._known: dict[str, int] = {}  # the last notification that was sent
        self._written: object = None
        self._lock = Lock()  # of queries of the store, and of what is known
        tenant.changed.append(self.look)

    def check_room(self, subscriber: str) -> None:
        """Refuse another stream if a subscriber has too many."""
        if len(self._streams.get(subscriber, ())) >= self._most:
            raise HttpProblem(
                429, f"the subscriber has {self._most:,} live streams, the most allowed"
            )

    async def follow(
        self, subscriber: str, after: int | None, stream: LiveStream
    ) -> AsyncIterator[bytes]:
        """Yield the events of a stream: what is missing after a number, then what is new.

        Without a number, the stream begins with the first notification that is not read.
        """
        open_streams = self._streams.setdefault(subscriber, set())
        if (
            len(open_streams) >= self._most
        ):  # several streams were opened at once, with room for only one
            return
        open_streams.add(stream)
        self._metrics.streams.inc()
        try:
            read = await asyncio.to_thread(self._enlist, subscriber)
            sequence = read if after is None else after
            # The id lets a reader resume that loses its connection before anything happens.
            yield ServerSentEvent(id=str(sequence), retry=_RETRY_MS, sep="\n").encode()
            while page := await asyncio.to_thread(self._page, subscriber, sequence):
                for chunk in page:
                    self._metrics.streamed.inc()
                    yield chunk.content
                sequence = page[-1].sequence
            async for chunk in stream.after(sequence):
                self._metrics.streamed.inc()
                yield chunk.content
        finally:
            self._metrics.streams.dec()
            open_streams.discard(stream)
            if not open_streams:
                del self._streams[subscriber]

    def look(self) -> None:
        """Send what is new in all live inboxes to their streams."""
        with self._lock:
            self._known = {name: n for name, n in self._known.items() if name in self._streams}
            written = self._store.notifications.written() if self._known else None
            if written == self._written:
                return
            deliveries = self._store.notifications.after_each(self._known)
            self._written = written
            self._known |= {delivery.subscriber: delivery.sequence for delivery in deliveries}
        chunks = dict[str, list[Chunk]]()
        for delivery in deliveries:
            chunks.setdefault(delivery.subscriber, []).append(_chunk(delivery))
        self._loop.call_soon_threadsafe(self._hand_out, chunks)

    def close(self) -> None:
        """End all streams; their readers reconnect, to another server or a restarted one."""
        for streams in self._streams.values():
            for stream in streams:
                stream.close()

    def _enlist(self, subscriber: str) -> int:
        """Register an inbox up to its current end; return how far it has been read.

        What is written later is new to `look`; what is already there is read in pages.
        """
        with self._lock:
            inbox = self._store.notifications.inbox(subscriber)
            self._known.setdefault(subscriber, inbox.last)
            return inbox.read

    def _page(self, subscriber: str, after: int) -> list[Chunk]:
        return [*map(_chunk, self._store.notifications.after(subscriber, after, _PAGE))]

    def _hand_out(self, chunks: dict[str, list[Chunk]]) -> None:
        for subscriber, listed in chunks.items():
            for stream in self._streams.get(subscriber, ()):
                if not stream.put(listed):
                    self._metrics.streams_behind.inc()


class LivePush:
    """The live inboxes of all tenants of a service; the `main` tenant has everyone's tokens."""

    def __init__(self, main: Tenant) -> None:
        self._loop = asyncio.get_running_loop()
        self._inboxes: dict[str, LiveInboxes] = {}
        self._lock = Lock()
        self._tokens = main.store.tokens
        self._revoked = self._tokens.count_revoked()
        self._revocation = asyncio.Event()  # another one after each revocation
        main.changed.append(self._look_at_tokens)

    def of(self, tenant: Tenant) -> LiveInboxes:
        """Return the live inboxes of a tenant."""
        with self._lock:
            if tenant.name not in self._inboxes:
                self._inboxes[tenant.name] = LiveInboxes(tenant, self._loop)
            return self._inboxes[tenant.name]

    async def wait_for_revocation(self, seconds: float) -> None:
        """Wait until a token was revoked, or for some time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._revocation.wait(), seconds)

    def _look_at_tokens(self) -> None:
        revoked = self._tokens.count_revoked()
        if revoked != self._revoked:
            self._revoked = revoked
            self._loop.call_soon_threadsafe(self._announce_revocation)

    def _announce_revocation(self) -> None:
        revoked, self._revocation = self._revocation, asyncio.Event()
        revoked.set()

    def close(self) -> None:
        """End all streams; called in the event loop."""
        for inboxes in self._inboxes.values():
            inboxes.close()


def _chunk(delivery: Delivery) -> Chunk:
    event = JSONServerSentEvent(delivery.to_dict(), id=str(delivery.sequence), sep="\n")
    return Chunk(delivery.sequence, event.encode())
