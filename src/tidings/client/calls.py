"""The calls of a client: what each method sends, and how its answer is parsed.

Nothing here does any input or output, so both clients share it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import pyarrow as pa

from tidings import errors
from tidings.engine.explain import Explanation
from tidings.errors import (
    InvalidCondition,
    InvalidForm,
    InvalidSubscription,
    ServiceError,
    TidingsError,
    shown,
)
from tidings.formats.arrow import deliveries_to_table
from tidings.model import validate
from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Delivery, Event, Subscription
from tidings.policy import Policy, Subscriber

T = TypeVar("T")
Form = dict[str, Any]
EventLike = Event | Mapping[str, Any]
SubscriptionLike = Subscription | Mapping[str, Any]
SubscriberLike = Subscriber | Mapping[str, Any]

JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
ARROW: Final = "application/vnd.apache.arrow.stream"
EVENTS: Final = 1_000
"""The maximum number of events in one request."""
_NEW: Final = {"If-None-Match": "*"}
_EXISTING: Final = {"If-Match": "*"}


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the function that reads its answer.

    A call that is not `repeatable` is sent again only if it certainly had no effect.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str | int] = field(default_factory=dict)
    content: bytes | None = None
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


class Page(NamedTuple):
    """Notifications in order; `next` is the number to continue after, or None at the end."""

    items: list[Delivery]
    next: int | None
    last: int
    read: int
    unread: int


class Calls:
    """The calls of a client.

    With `wait`, each waits until its change or publication takes effect.
    """

    def __init__(self, wait: bool) -> None:
        self._applied = {"wait": "applied"} if wait else {}
        self._delivered = {"wait": "delivered"} if wait else {}

    def put(self, record: SubscriberLike | SubscriptionLike, *, new: bool) -> Call[None]:
        """Add a record that is new, or replace one that exists."""
        form = _form(record, errors.InvalidSubscription)
        kind = "subscriptions" if "subscriber" in form else "subscribers"
        path = _path(kind, form.get("id"))
        condition = _NEW if new else _EXISTING
        return Call("PUT", path, _check_applied, self._applied, _json(form), headers=condition)

    def load(self, forms: list[Form], refused: list[DeadLetter]) -> Call[None]:
        """Add or replace many records; append refused ones to a list."""

        def read(answer: Form) -> None:
            for problem in answer["problems"]:
                refused.append(DeadLetter(forms[problem["position"] - 1], problem["detail"]))
            _check_applied(answer)

        path = "/v1/subscriptions:import"
        return Call("POST", path, read, self._applied, _lines(forms), JSON_LINES)

    def delete(self, kind: str, name: str) -> Call[None]:
        """Remove a record."""
        return Call("DELETE", _path(kind, name), _check_applied, self._applied, repeatable=False)

    def set_paused(self, subscriber: str, *, paused: bool) -> Call[None]:
        """Pause or resume a subscriber."""
        path = f"{_path('subscribers', subscriber)}/{'pause' if paused else 'resume'}"
        return Call("POST", path, _check_applied, self._applied)

    def publish(self, forms: list[Form], refused: Callable[[DeadLetter], None]) -> "Published":
        """Publish events; pass refused ones to a function."""

        def read(answer: Form) -> list[Delivery]:
            for problem in answer["problems"]:
                refused(DeadLetter(forms[problem["position"] - 1], problem["detail"]))
            return _caused(answer)

        return Call("POST", "/v1/events", read, self._delivered, _lines(forms), JSON_LINES)

    def publish_table(self, table: pa.Table) -> Call[pa.Table]:
        """Publish the rows of a table."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()

        def read(answer: Form) -> pa.Table:
            return deliveries_to_table(_caused(answer))

        return Call("POST", "/v1/events", read, self._delivered, content, ARROW)

    def feed(self, subscriber: str) -> Call[list[Delivery]]:
        """Return the current list of a subscriber."""
        return Call("GET", _path("feeds", subscriber), _deliveries)

    def notifications(self, subscriber: str, after: int, limit: int) -> Call[Page]:
        """Return a page of notifications."""

        def read(answer: Form) -> Page:
            return Page(_deliveries(answer), answer["next"], **answer["inbox"])

        query = {"after": after, "limit": limit}
        return Call("GET", _path("notifications", subscriber), read, query)

    def mark_read(self, subscriber: str, sequence: int) -> Call[None]:
        """Mark notifications as read."""
        path = f"{_path('notifications', subscriber)}/read"
        return Call("POST", path, _nothing, content=_json({"sequence": sequence}))

    def channels(self, subscriber: str) -> Call[list[Form]]:
        """Return the addresses of a subscriber."""
        return Call("GET", f"{_path('subscribers', subscriber)}/channels", _items)

    def put_channel(self, subscriber: str, name: str, form: Mapping[str, Any]) -> Call[Form]:
        """Add or change an address of a subscriber."""
        return Call("PUT", _channel(subscriber, name), dict, content=_json(dict(form)))

    def remove_channel(self, subscriber: str, name: str) -> Call[None]:
        """Remove an address of a subscriber."""
        return Call("DELETE", _channel(subscriber, name), _nothing, repeatable=False)

    def change_channel(self, subscriber: str, name: str, action: str) -> Call[Form]:
        """Send a code to a channel; pause, resume or retry it."""
        path, sends = f"{_channel(subscriber, name)}/{action}", action == "code"
        return Call("POST", path, dict, repeatable=not sends)

    def verify_channel(self, subscriber: str, name: str, code: str) -> Call[Form]:
        """Verify the address of a channel."""
        path, content = f"{_channel(subscriber, name)}/verify", _json({"code": code})
        return Call("POST", path, dict, content=content, repeatable=False)

    def mark(self, subscriber: str, sequence: int, mark: str) -> Call[None]:
        """Mark a notification."""
        form = {"sequence": sequence, "mark": mark}
        path = f"{_path('notifications', subscriber)}/marks"
        return Call("POST", path, _nothing, content=_json(form))

    def marks(self, subscriber: str, after: int, limit: int) -> Call[list[Form]]:
        """Return the marks of notifications."""
        path = f"{_path('notifications', subscriber)}/marks"
        return Call("GET", path, _items, {"after": after, "limit": limit})

    def target(self, event: EventLike, k: int, scorer: object) -> Call[list[tuple[str, float]]]:
        """Return the k best subscriptions for an event."""
        part = scorer.to_dict() if hasattr(scorer, "to_dict") else scorer
        question = {"event": _form(event, errors.InvalidEvent), "k": k, "scorer": part}

        def read(answer: Form) -> list[tuple[str, float]]:
            return [(item["subscription"], item["score"]) for item in answer["items"]]

        return Call("POST", "/v1/target", read, content=_json(question))

    def explain(self, subscriber: str, event: str) -> Call[Explanation]:
        """Explain why a subscriber did or did not get an event."""
        query = {"subscriber": subscriber, "event": event}

        def read(answer: Form) -> Explanation:
            return Explanation.from_dict(answer)

        return Call("GET", "/v1/explain", read, query)

    def preview(
        self,
        subscriber: str | None,
        policy: Policy | Mapping[str, Any] | None,
        where: str | None,
    ) -> Call[list[Delivery]]:
        """Return what a policy or a condition would have delivered."""
        part = None if policy is None else _form(policy, errors.InvalidPolicy)
        fields = {"subscriber": subscriber, "policy": part, "where": where}
        question = {name: value for name, value in fields.items() if value is not None}
        return Call("POST", "/v1/preview", _deliveries, content=_json(question))


Published = Call[list[Delivery]]


def stream_path(subscriber: str) -> str:
    """Return the path of a subscriber's live notifications."""
    return f"{_path('notifications', subscriber)}/stream"


def chunked(events: Iterable[EventLike]) -> Iterable[list[Form]]:
    """Yield the forms of events in chunks of one request each."""
    forms = (_form(event, errors.InvalidEvent) for event in events)
    while chunk := list(islice(forms, EVENTS)):
        yield chunk


def subscription_forms(records: Iterable[SubscriptionLike]) -> list[Form]:
    """Return the forms of subscriptions."""
    return [_form(record, errors.InvalidSubscription) for record in records]


def read_problem(status: int, content: bytes) -> TidingsError:
    """Return the exception of an answer that is not a success.

    It is the exception that the engine would raise, if the service names it; otherwise a
    `ServiceError`.
    """
    try:
        problem = json.loads(content)
        detail, name = str(problem["detail"]), problem.get("error")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return ServiceError(f"the service answered with status {status}, and no reason", status)
    if name == "InvalidCondition":
        position = problem.get("position")
        return InvalidCondition(detail, position if isinstance(position, int) else None)
    kind = getattr(errors, str(name), None)
    if isinstance(kind, type) and issubclass(kind, TidingsError) and kind is not ServiceError:
        return kind(detail)
    if status == 404:
        return InvalidSubscription(detail)
    return ServiceError(detail, status)


def _check_applied(answer: Form) -> None:
    """Raise an error if a change that was waited for has not taken effect in time."""
    if answer.get("applied") is False:
        raise ServiceError(
            "the change is saved, but the pipeline of the service has not applied it yet; check "
            "that it is running"
        )


def _caused(answer: Form) -> list[Delivery]:
    deliveries = answer.get("deliveries", ())
    if deliveries is None:
        raise ServiceError(
            "the events are published, but the pipeline of the service has not processed them "
            "yet; check that it is running, and follow the subscribers to see what they receive"
        )
    return [Delivery.from_dict(form) for form in deliveries]


def _deliveries(answer: Form) -> list[Delivery]:
    return [Delivery.from_dict(form) for form in answer["items"]]


def _items(answer: Form) -> list[Form]:
    return list(answer["items"])


def _nothing(answer: Any) -> None:
    del answer


def _form(record: Any, kind: type[TidingsError]) -> Form:
    if hasattr(record, "to_dict"):
        record = record.to_dict()
    return dict(validate.mapping("a record is an object or its form", record, kind))


def _json(form: Any) -> bytes:
    try:
        return json.dumps(form, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidForm(f"{shown(form)} cannot be written as JSON: {error}") from None


def _lines(forms: Iterable[Form]) -> bytes:
    return b"".join(_json(form) + b"\n" for form in forms)


def _channel(subscriber: str, name: str) -> str:
    return _path("subscribers", subscriber) + _path("channels", name).removeprefix("/v1")


def _path(kind: str, name: object) -> str:
    text = validate.name("an id", name, InvalidSubscription)
    if text in {".", ".."}:
        raise InvalidSubscription(f"an id in a path cannot be . or ..: {shown(text)}")
    return f"/v1/{kind}/{quote(text, safe='')}"
