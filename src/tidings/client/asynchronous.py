"""The client of a service for asyncio."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from tidings.client import connection
from tidings.client.blocking import KEPT
from tidings.client.calls import (
    Call,
    Calls,
    EventLike,
    Form,
    Page,
    SubscriberLike,
    SubscriptionLike,
    chunked,
    subscription_forms,
)
from tidings.engine.explain import Explanation
from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Delivery
from tidings.policy import Policy

T = TypeVar("T")


class AsyncClient:
    """The asynchronous form of `Client`: `await client.publish(event)`.

    >>> async def first(url: str) -> str:
    ...     async with AsyncClient(url) as client:
    ...         async for delivery in client.follow("addison"):
    ...             return delivery.event
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        wait: bool = True,
        retries: int = 8,
        timeout_s: float = 60.0,
    ) -> None:
        self._library = connection.load_http()
        self._http = self._library.AsyncClient(**connection.options(url, token, timeout_s))
        self._timeout_s = timeout_s
        self._calls = Calls(wait)
        self._retries = connection.Retries(retries)
        self.dead_letters: deque[DeadLetter] = deque(maxlen=KEPT)
        """The latest records that `publish` and `add_many` refused, with the reasons."""

    async def subscribe(self, subscriber: SubscriberLike) -> None:
        """Add a subscriber; an id that already exists is refused, unless nothing would change."""
        await self._run(self._calls.put(subscriber, new=True))

    async def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber with its subscriptions."""
        await self._run(self._calls.delete("subscribers", subscriber))

    async def pause(self, subscriber: str) -> None:
        """Pause a subscriber: its windows keep running, and what would be delivered is dropped."""
        await self._run(self._calls.set_paused(subscriber, paused=True))

    async def resume(self, subscriber: str) -> None:
        """Resume a paused subscriber; what was dropped is not delivered later."""
        await self._run(self._calls.set_paused(subscriber, paused=False))

    async def add(self, subscription: SubscriptionLike) -> None:
        """Add a subscription; an id that already exists is refused, unless nothing would change."""
        await self._run(self._calls.put(subscription, new=True))

    async def add_many(self, subscriptions: Iterable[SubscriptionLike]) -> list[DeadLetter]:
        """Add or replace subscriptions; return a dead letter for each that is refused."""
        refused = list[DeadLetter]()
        await self._run(self._calls.load(subscription_forms(subscriptions), refused))
        self.dead_letters.extend(refused)
        return refused

    async def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        await self._run(self._calls.delete("subscriptions", subscription))

    async def replace(self, new: SubscriptionLike | SubscriberLike) -> None:
        """Replace the subscription or subscriber that has the same id."""
        await self._run(self._calls.put(new, new=False))

    async def publish(self, event: EventLike) -> list[Delivery]:
        """Publish an event; return the resulting deliveries."""
        return await self.publish_many([event])

    async def publish_many(self, events: Iterable[EventLike]) -> list[Delivery]:
        """Publish events, a thousand per request; return the resulting deliveries."""
        due = list[Delivery]()
        for chunk in chunked(events):
            deliveries = await self._run(self._calls.publish(chunk, self.dead_letters.append))
            due += deliveries
        return due

    async def publish_table(self, table: pa.Table) -> pa.Table:
        """Publish the rows of an Arrow table; return the deliveries as a table."""
        return await self._run(self._calls.publish_table(table))

    async def feed(self, subscriber: str) -> list[Delivery]:
        """Return the current list of a subscriber, without changing anything."""
        return await self._run(self._calls.feed(subscriber))

    async def notifications(self, subscriber: str, after: int = 0, limit: int = 100) -> Page:
        """Return what was delivered to a subscriber after a sequence number, in order."""
        return await self._run(self._calls.notifications(subscriber, after, limit))

    async def mark_read(self, subscriber: str, sequence: int) -> None:
        """Mark a subscriber's notifications as read up to a sequence number."""
        await self._run(self._calls.mark_read(subscriber, sequence))

    async def channels(self, subscriber: str) -> list[Form]:
        """Return the mail and chat addresses of a subscriber, with their states."""
        return await self._run(self._calls.channels(subscriber))

    async def put_channel(self, subscriber: str, name: str, form: Mapping[str, Any]) -> Form:
        """Add or change an address of a subscriber, which is used once it is verified."""
        return await self._run(self._calls.put_channel(subscriber, name, form))

    async def remove_channel(self, subscriber: str, name: str) -> None:
        """Remove an address of a subscriber."""
        await self._run(self._calls.remove_channel(subscriber, name))

    async def send_code(self, subscriber: str, name: str) -> Form:
        """Send a code to the address of a channel, for `verify_channel`."""
        return await self._run(self._calls.change_channel(subscriber, name, "code"))

    async def verify_channel(self, subscriber: str, name: str, code: str) -> Form:
        """Verify the address of a channel with the code that was sent to it."""
        return await self._run(self._calls.verify_channel(subscriber, name, code))

    async def pause_channel(self, subscriber: str, name: str) -> Form:
        """Send nothing to a channel until it is resumed."""
        return await self._run(self._calls.change_channel(subscriber, name, "pause"))

    async def resume_channel(self, subscriber: str, name: str) -> Form:
        """Resume a channel, starting with what is delivered from now on."""
        return await self._run(self._calls.change_channel(subscriber, name, "resume"))

    async def retry_channel(self, subscriber: str, name: str) -> Form:
        """Retry at once what a channel has given up."""
        return await self._run(self._calls.change_channel(subscriber, name, "retry"))

    async def mark(self, subscriber: str, sequence: int, mark: str) -> None:
        """Mark a notification as opened, read or not-for-me."""
        await self._run(self._calls.mark(subscriber, sequence, mark))

    async def marks(self, subscriber: str, after: int = 0, limit: int = 100) -> list[Form]:
        """Return the marks of a subscriber's notifications, in order of sequence."""
        return await self._run(self._calls.marks(subscriber, after, limit))

    async def target(
        self, event: EventLike, k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Return the k best subscriptions for an event, with their scores, best first."""
        return await self._run(self._calls.target(event, k, scorer))

    async def explain(self, subscriber: str, event: str) -> Explanation:
        """Explain why a subscriber did or did not get a recent event; `print` the result."""
        return await self._run(self._calls.explain(subscriber, event))

    async def preview(
        self,
        subscriber: str | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        where: str | None = None,
    ) -> list[Delivery]:
        """Return what a policy or a condition would have delivered from the recent events."""
        return await self._run(self._calls.preview(subscriber, policy, where))

    async def follow(self, subscriber: str, after: int | None = None) -> AsyncIterator[Delivery]:
        """Yield a subscriber's notifications forever: the unread ones, then new ones.

        `after` is the sequence number to start after, by default the last one read. After a lost
        connection, the stream resumes, and nothing is missed or repeated.
        """
        last, attempts = after, self._attempts()
        while True:
            options = connection.stream_options(subscriber, last, self._timeout_s)
            try:
                async with self._http.sse(**options) as source:
                    pause_s = attempts.after(source.response)
                    if pause_s is None:
                        if source.response.is_error:
                            await source.response.aread()
                            connection.check(source.response)
                        async for event in source:
                            attempts.succeeded()
                            last, delivery = connection.read_notification(event)
                            if delivery is not None:
                                yield delivery
            except self._library.RequestError as error:
                pause_s = attempts.after_error(error)
            await asyncio.sleep(pause_s or connection.REST_S)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        """Send a request, with retries, and return the result."""
        attempts = self._attempts(call)
        while True:
            try:
                response = await self._http.request(**connection.request_options(call))
                pause_s = attempts.after(response)
            except self._library.RequestError as error:
                pause_s = attempts.after_error(error)
            if pause_s is None:
                result: T = connection.read_answer(call, response)
                return result
            await asyncio.sleep(pause_s)

    def _attempts(self, call: Call[Any] | None = None) -> connection.Attempts:
        return connection.Attempts(call, self._retries, self._http.base_url)
