"""Connections of clients: the HTTP library, and when a request is retried."""

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from tidings.client.calls import Call, read_problem, stream_path
from tidings.errors import ServiceError, TidingsError, described
from tidings.formats.redaction import shown_server
from tidings.model import validate
from tidings.model.records import Delivery

if TYPE_CHECKING:
    import httpx2

_FIRST_S: Final = 0.2
_LONGEST_S: Final = 5.0
_NEVER_DONE: Final = (429, 503)
"""Statuses of requests that had no effect."""
_TOKEN: Final = re.compile(r"[!-~]+")
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
        retry_s = float(retry_after) if retry_after.isdecimal() else 0.0
        return max(longest * (0.5 + self.chance() / 2), min(retry_s, _LONGEST_S))


class Login(NamedTuple):
    """The credentials in an address, for a proxy in front of a service."""

    user: str
    password: str


class ServiceAddress(NamedTuple):
    """The address of a service, without the user and the password that were in it."""

    url: str
    login: Login | None


def read_address(url: object) -> ServiceAddress:
    """Return the address of a service; only a host and a port are shown if it is malformed.

    >>> read_address("http://ann:sword%2Ffish@host:8000/v").url
    'http://host:8000/v'
    """
    text = validate.plain_text(url) if validate.is_a(url, str) else ""  # type: ignore[arg-type]
    http = load_http()
    try:
        parts = urlsplit(text)
        is_plain = parts.port != 0 and "@" not in parts.path and not (parts.query or parts.fragment)
        login, _, host = parts.netloc.rpartition("@")
        address = urlunsplit((parts.scheme, host, parts.path, "", ""))
        http.URL(address)
    except (ValueError, http.InvalidURL):
        is_plain = False
    if not is_plain or parts.scheme not in ("http", "https") or not parts.hostname:
        raise TidingsError(
            f"{shown_server(text)} is not the address of a service, like http://host:8000"
        )
    if not login:
        return ServiceAddress(address, None)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return ServiceAddress(address, Login(user, password))


def options(url: object, token: object, timeout_s: float) -> dict[str, Any]:
    """Return the options of the HTTP client for a service."""
    address, login = read_address(url)
    if not token:
        return {"base_url": address, "auth": login, "timeout": timeout_s}
    if login is not None:
        raise TidingsError("a client takes a token, or an address with a user, but not both")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise TidingsError("a token is a text of letters, digits and signs of ASCII without spaces")
    headers = {"Authorization": f"Bearer {token}"}
    return {"base_url": address, "headers": headers, "timeout": timeout_s}


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
    with _reading():
        if response.status_code == 422 and call.path == "/v1/events":
            form = response.json()
            if "problems" in form:
                return call.read(form)
        check(response)
        return call.read(response.json())


class Notification(NamedTuple):
    """A message of a live stream: a number to continue after, and possibly a delivery."""

    number: int
    delivery: Delivery | None


def read_notification(event: Any) -> Notification:
    """Return what an event of a live stream holds."""
    with _reading():
        delivery = Delivery.from_dict(json.loads(event.data)) if event.data else None
        return Notification(int(event.id), delivery)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise a `ServiceError` if an answer is not one of a service, whatever answers there."""
    try:
        yield
    except TidingsError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer may hold anything
        reason = described(error)
        raise ServiceError(f"the answer is not one of a Tidings service: {reason}") from None
