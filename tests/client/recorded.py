"""A service for tests of clients: it keeps what it is asked, and answers as it is told."""

from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2

from tidings import AsyncClient, Client

Answer = tuple[int, Any]
EMPTY_PAGE: dict[str, Any] = {
    "items": [],
    "next": None,
    "inbox": {"last": 0, "read": 0, "unread": 0},
}


class Asked(NamedTuple):
    """A request, as the service sees it."""

    method: str
    path: str
    query: dict[str, str]
    content: bytes
    headers: dict[str, str]


class Recorder:
    """The requests so far; the next of `answers` answers, an error is raised, and then 200."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.asked, self.answers = list[Asked](), list(answers)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(
            Asked(
                request.method,
                request.url.raw_path.decode().partition("?")[0],
                dict(request.url.params),
                request.content,
                {name.lower(): value for name, value in request.headers.items()},
            )
        )
        answer = self.answers.pop(0) if self.answers else (200, EMPTY_PAGE)
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        headers = {}
        if isinstance(content, tuple):
            content, headers = content
        return httpx2.Response(status, json=content, headers=headers)


def blocking(recorder: Recorder, **options: Any) -> Client:
    client = Client("http://films.example/base", **options)
    client._http.close()
    client._http = httpx2.Client(
        base_url="http://films.example/base", transport=httpx2.MockTransport(recorder.answer)
    )
    return client


def asynchronous(recorder: Recorder, **options: Any) -> AsyncClient:
    client = AsyncClient("http://films.example/base", **options)
    client._http = httpx2.AsyncClient(
        base_url="http://films.example/base", transport=httpx2.MockTransport(recorder.answer)
    )
    return client


EVENT = {"id": "e1", "attributes": {"n": 1}}
FORM = {"id": "s1", "subscriber": "ada", "where": "n = 1"}
MAIL = {"kind": "mail", "address": "ada@films.example"}
CALLS: dict[str, Callable[[Any], Any]] = {
    "subscribe": lambda c: c.subscribe({"id": "ada"}),
    "unsubscribe": lambda c: c.unsubscribe("ada"),
    "pause": lambda c: c.pause("ada"),
    "resume": lambda c: c.resume("ada"),
    "add": lambda c: c.add(FORM),
    "add_many": lambda c: c.add_many([FORM]),
    "remove": lambda c: c.remove("s1"),
    "replace": lambda c: c.replace(FORM),
    "publish": lambda c: c.publish(EVENT),
    "publish_many": lambda c: c.publish_many([EVENT, EVENT]),
    "feed": lambda c: c.feed("ada"),
    "notifications": lambda c: c.notifications("ada", 3, 7),
    "mark_read": lambda c: c.mark_read("ada", 5),
    "channels": lambda c: c.channels("ada"),
    "put_channel": lambda c: c.put_channel("ada", "m", MAIL),
    "remove_channel": lambda c: c.remove_channel("ada", "m"),
    "send_code": lambda c: c.send_code("ada", "m"),
    "verify_channel": lambda c: c.verify_channel("ada", "m", "123"),
    "pause_channel": lambda c: c.pause_channel("ada", "m"),
    "resume_channel": lambda c: c.resume_channel("ada", "m"),
    "retry_channel": lambda c: c.retry_channel("ada", "m"),
    "mark": lambda c: c.mark("ada", 5, "opened"),
    "marks": lambda c: c.marks("ada", 3, 7),
    "target": lambda c: c.target(EVENT, 3, "relaxed"),
    "preview": lambda c: c.preview("ada", where="n = 1"),
}
"""One call of each method whose answer may be empty."""
ANSWERS: dict[str, Any] = {
    "add_many": {"problems": []},
    "publish": {"problems": [], "deliveries": []},
    "publish_many": {"problems": [], "deliveries": []},
}
EXPECTED: dict[str, tuple[str, str]] = {
    "subscribe": ("PUT", "subscribers/ada"),
    "unsubscribe": ("DELETE", "subscribers/ada"),
    "pause": ("POST", "subscribers/ada/pause"),
    "resume": ("POST", "subscribers/ada/resume"),
    "add": ("PUT", "subscriptions/s1"),
    "add_many": ("POST", "subscriptions:import"),
    "remove": ("DELETE", "subscriptions/s1"),
    "replace": ("PUT", "subscriptions/s1"),
    "publish": ("POST", "events"),
    "publish_many": ("POST", "events"),
    "feed": ("GET", "feeds/ada"),
    "notifications": ("GET", "notifications/ada"),
    "mark_read": ("POST", "notifications/ada/read"),
    "channels": ("GET", "subscribers/ada/channels"),
    "put_channel": ("PUT", "subscribers/ada/channels/m"),
    "remove_channel": ("DELETE", "subscribers/ada/channels/m"),
    "send_code": ("POST", "subscribers/ada/channels/m/code"),
    "verify_channel": ("POST", "subscribers/ada/channels/m/verify"),
    "pause_channel": ("POST", "subscribers/ada/channels/m/pause"),
    "resume_channel": ("POST", "subscribers/ada/channels/m/resume"),
    "retry_channel": ("POST", "subscribers/ada/channels/m/retry"),
    "mark": ("POST", "notifications/ada/marks"),
    "marks": ("GET", "notifications/ada/marks"),
    "target": ("POST", "target"),
    "preview": ("POST", "preview"),
}
NOT_REPEATED = ("unsubscribe", "remove", "remove_channel", "send_code", "verify_channel")
"""What may have had an effect that a repetition would not find, or would have twice."""
