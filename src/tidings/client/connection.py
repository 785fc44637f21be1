"""Connections of clients: the HTTP library, and when a request is retried."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tidings.client.calls import Call, read_problem, stream_path
from tidings.errors import ServiceError, TidingsError, described, shown
from tidings.model import validate

if TYPE_CHECKING:
    import httpx2

_FIRST_S: Final = 0.2
_LONGEST_S: Final = 5.0
_NEVER_DONE: Final = (429, 503)
"""Statuses of requests that had no effect."""
_MAYBE_DONE: Final = (502, 504)
REST_S: Final = 0.2
"""The pause before a stream that has ended is reopened."""
SILENCE_S: Final = 60.0
"""How long a live stream may be silent; the heartbeats of the service are more frequent."""


def load_http() -> Any:
    """Return the HTTP library."""
    try:
        return import_module("httpx2")
    except ImportError:
        raise TidingsError(
            "clients need the HTTP library httpx2; install it with: pip install 'tidings[client]'"
        ) from None


@dataclass(frozen=True)
class Retries:
    """Exponential back-off with jitter, for up to `most` retries."""

    most: int
    chance: Callable[[], float] = random.random

    def pause_s(self, failures: int, retry_after: str = "") -> float | None:
        """Return how long to wait after a number of failures; None to give up."""
        if failures > self.most:
            return None
        longest = min(_LONGEST_S, _FIRST_S * 2.0 ** (failures - 1))
        asked = float(retry_after) if retry_after.isdecimal() else 0.0
        return max(longest * (0.5 + self.chance() / 2), min(asked, _LONGEST_S))


def options(url: str, token: str | None, timeout_s: float) -> dict[str, Any]:
    """Return the options of the HTTP client for a service."""
    parts = urlsplit(validate.name("the address of a service", url, TidingsError))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise TidingsError(f"{shown(url)} is not the address of a service, like http://host:8000")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"base_url": url, "headers": headers, "timeout": timeout_s}


def stream_options(subscriber: str, after: int | None, timeout_s: float) -> dict[str, Any]:
    """Return the arguments of a stream that begins after a sequence number."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    timeout = load_http().Timeout(timeout_s, read=SILENCE_S)
    return {"url": stream_path(subscriber), "headers": headers, "timeout": timeout}


def request_options(call: Call[Any]) -> dict[str, Any]:
    """Return the arguments of a request."""
    headers = dict(call.headers)
    if call.content is not None:
        headers["Content-Type"] = call.media_type
    arguments = {"content": call.content, "headers": headers, "params": dict(call.query)}
    return {"method": call.method, "url": call.path} | arguments


class Attempts:
    """The attempts to get an answer to one call, or to keep a stream open, and the pauses between.

    Unless retries are disabled, a stream that was once open is never given up, however long the
    service is down.
    """

    def __init__(self, call: Call[Any] | None, retries: Retries, url: object) -> None:
        self._is_stream, self._was_open = call is None, False
        self._repeatable = call is None or call.repeatable
        self._retries, self._url = retries, url
        self._failures = 0

    def succeeded(self) -> None:
        """Reset the count of failures."""
        self._failures, self._was_open = 0, True

    def after(self, response: "httpx2.Response") -> float | None:
        """Return the pause before the next attempt; None if this answer is final."""
        status = response.status_code
        if status not in _NEVER_DONE and not (self._repeatable and status in _MAYBE_DONE):
            return None
        return self._pause_s(response.headers.get("retry-after", ""))

    def after_error(self, error: Exception) -> float:
        """Return the pause before the next attempt; raise an error if there is none."""
        http = load_http()
        is_harmless = isinstance(error, http.ConnectError | http.ConnectTimeout)
        pause_s = self._pause_s()
        if pause_s is None or not (self._repeatable or is_harmless):
            reason = described(error)
            raise ServiceError(f"the service at {self._url} cannot be reached: {reason}") from error
        return pause_s

    def _pause_s(self, retry_after: str = "") -> float | None:
        """Count a failure; return the pause after it, or None to give up."""
        self._failures += 1
        if self._is_stream and self._was_open:
            self._failures = min(self._failures, self._retries.most)
        return self._retries.pause_s(self._failures, retry_after) if self._failures else None


def check(response: "httpx2.Response") -> None:
    """Raise the exception of an answer that is not a success."""
    if response.status_code >= 400:
        raise read_problem(response.status_code, response.content)


def read_answer(call: Call[Any], response: "httpx2.Response") -> Any:
    """Return the result of a call; a request whose events are all refused has a result, too."""
    if response.status_code == 422 and call.path == "/v1/events":
        form = response.json()
        if "problems" in form:
            return call.read(form)
    check(response)
    return call.read(response.json())
