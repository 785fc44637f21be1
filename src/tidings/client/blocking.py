"""The client of a service for ordinary code."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pyarrow as pa

from tidings.client import connection
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
KEPT: Final = 1_000
"""Refused events that a client keeps."""


class Client:
    """A client with the methods of an engine; thread-safe, closed by `with` or `close`.

    With `wait`, a call returns once it has taken effect, as those of an engine do: with an admin
    token, `publish` returns the resulting deliveries. If that takes too long, for example because
    the pipeline is not running, the call raises a `ServiceError`. Without `wait`, a call returns at
    once, without deliveries; follow the subscribers instead.

    Failed requests are retried up to `retries` times with exponential back-off, unless they may
    already have had an effect that must not be repeated. Errors are those of the engine; if the
    service cannot be reached, a `ServiceError` is raised.
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
        self._http = self._library.Client(**connection.options(url, token, timeout_s))
        self._timeout_s = timeout_s
        self._calls = Calls(wait)
        self._retries = connection.Retries(retries)
        self.dead_letters: deque[DeadLetter] = deque(maxlen=KEPT)
        """The latest records that `publish` and `add_many` refused, with the reasons."""

    def subscribe(self, subscriber: SubscriberLike) -> None:
        """Add a subscriber; an id that already exists is refused, unless nothing would change."""
        self._run(self._calls.put(subscriber, new=True))

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber with its subscriptions."""
        self._run(self._calls.delete("subscribers", subscriber))

    def pause(self, subscriber: str) -> None:
        """Pause a subscriber: its windows keep running, and what would be delivered is dropped."""
        self._run(self._calls.set_paused(subscriber, paused=True))

    def resume(self, subscriber: str) -> None:
        """Resume a paused subscriber; what was dropped is not delivered later."""
        self._run(self._calls.set_paused(subscriber, paused=False))

    def add(self, subscription: SubscriptionLike) -> None:
        """Add a subscription; an id that already exists is refused, unless nothing would change."""
        self._run(self._calls.put(subscription, new=True))

    def add_many(self, subscriptions: Iterable[SubscriptionLike]) -> list[DeadLetter]:
        """Add or replace subscriptions; return a dead letter for each that is refused."""
        refused = list[DeadLetter]()
        self._run(self._calls.load(subscription_forms(subscriptions), refused))
        self.dead_letters.extend(refused)
        return refused

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        self._run(self._calls.delete("subscriptions", subscription))

    def replace(self, new: SubscriptionLike | SubscriberLike) -> None:
        """Replace the subscription or subscriber that has the same id."""
        self._run(self._calls.put(new, new=False))

    def publish(self, event: EventLike) -> list[Delivery]:
        """Publish an event; return the resulting deliveries."""
        return self.publish_many([event])

    def publish_many(self, events: Iterable[EventLike]) -> list[Delivery]:
        """Publish events, a thousand per request; return the resulting deliveries."""
        due = list[Delivery]()
        for chunk in chunked(events):
            deliveries = self._run(self._calls.publish(chunk, self.dead_letters.append))
            due += deliveries
        return due

    def publish_table(self, table: pa.Table) -> pa.Table:
        """Publish the rows of an Arrow table; return the deliveries as a table."""
        return self._run(self._calls.publish_table(table))

    def feed(self, subscriber: str) -> list[Delivery]:
        """Return the current list of a subscriber, without changing anything."""
        return self._run(self._calls.feed(subscriber))

    def notifications(self, subscriber: str, after: int = 0, limit: int = 100) -> Page:
        """Return what was delivered to a subscriber after a sequence number, in order."""
        return self._run(self._calls.notifications(subscriber, after, limit))

    def mark_read(self, subscriber: str, sequence: int) -> None:
        """Mark a subscriber's notifications as read up to a sequence number."""
        self._run(self._calls.mark_read(subscriber, sequence))

    def channels(self, subscriber: str) -> list[Form]:
        """Return the mail and chat addresses of a subscriber, with their states."""
        return self._run(self._calls.channels(subscriber))

    def put_channel(self, subscriber: str, name: str, form: Mapping[str, Any]) -> Form:
        """Add or change an address of a subscriber, which is used once it is verified."""
        return self._run(self._calls.put_channel(subscriber, name, form))

    def remove_channel(self, subscriber: str, name: str) -> None:
        """Remove an address of a subscriber."""
        self._run(self._calls.remove_channel(subscriber, name))

    def send_code(self, subscriber: str, name: str) -> Form:
        """Send a code to the address of a channel, for `verify_channel`."""
        return self._run(self._calls.change_channel(subscriber, name, "code"))

    def verify_channel(self, subscriber: str, name: str, code: str) -> Form:
        """Verify the address of a channel with the code that was sent to it."""
        return self._run(self._calls.verify_channel(subscriber, name, code))

    def pause_channel(self, subscriber: str, name: str) -> Form:
        """Send nothing to a channel until it is resumed."""
        return self._run(self._calls.change_channel(subscriber, name, "pause"))

    def resume_channel(self, subscriber: str, name: str) -> Form:
        """Resume a channel, starting with what is delivered from now on."""
        return self._run(self._calls.change_channel(subscriber, name, "resume"))

    def retry_channel(self, subscriber: str, name: str) -> Form:
        """Retry at once what a channel has given up."""
        return self._run(self._calls.change_channel(subscriber, name, "retry"))

    def mark(self, subscriber: str, sequence: int, mark: str) -> None:
        """Mark a notification as opened, read or not-for-me."""
        self._run(self._calls.mark(subscriber, sequence, mark))

    def marks(self, subscriber: str, after: int = 0, limit: int = 100) -> list[Form]:
        """Return the marks of a subscriber's notifications, in order of sequence."""
        return self._run(self._calls.marks(subscriber, after, limit))

    def target(
        self, event: EventLike, k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Return the k best subscriptions for an event, with their scores, best first."""
        return self._run(self._calls.target(event, k, scorer))

    def explain(self, subscriber: str, event: str) -> Explanation:
        """Explain why a subscriber did or did not get a recent event; `print` the result."""
        return self._run(self._calls.explain(subscriber, event))

    def preview(
        self,
        subscriber: str | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        where: str | None = None,
    ) -> list[Delivery]:
        """Return what a policy or a condition would have delivered from the recent events."""
        return self._run(self._calls.preview(subscriber, policy, where))

    def follow(self, subscriber: str, after: int | None = None) -> Iterator[Delivery]:
        """Yield a subscriber's notifications forever: the unread ones, then new ones.

        `after` is the sequence number to start after, by default the last one read. After a lost
        connection, the stream resumes, and nothing is missed or repeated.
        """
        last, attempts = after, self._attempts()
        while True:
            options = connection.stream_options(subscriber, last, self._timeout_s)
            try:
                with self._http.sse(**options) as source:
                    pause_s = attempts.after(source.response)
                    if pause_s is None:
                        if source.response.is_error:
                            source.response.read()
                            connection.check(source.response)
                        for event in source:
                            attempts.succeeded()
                            last, delivery = connection.read_notification(event)
                            if delivery is not None:
                                yield delivery
            except self._library.RequestError as error:
                pause_s = attempts.after_error(error)
            time.sleep(pause_s or connection.REST_S)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
        """Send a request, with retries, and return the result."""
        attempts = self._attempts(call)
        while True:
            try:
                response = self._http.request(**connection.request_options(call))
                pause_s = attempts.after(response)
            except self._library.RequestError as error:
                pause_s = attempts.after_error(error)
            if pause_s is None:
                result: T = connection.read_answer(call, response)
                return result
            time.sleep(pause_s)

    def _attempts(self, call: Call[Any] | None = None) -> connection.Attempts:
        return connection.Attempts(call, self._retries, self._http.base_url)
