"""HTTP requests for feeds: conditional, limited in size and time, with checked redirects.

The connection is made to an address that was checked. A feed at a public address cannot redirect to
one that is not, since that would let its owner reach what only this machine can reach.
"""

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from threading import Event, Timer
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from tidings.errors import SourceError, message, shown
from tidings.formats.public_address import is_public
from tidings.formats.redaction import shown_server

_REDIRECTS: Final = 5
_MOVED: Final = (301, 302, 303, 307, 308)
_CHUNK: Final = 1 << 16
_WHOLE: Final = 3
"""How many times the timeout of a silent connection a whole answer may take."""


class Fetched(NamedTuple):
    """The answer to a request; headers have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Checked(NamedTuple):
    """The addresses of a URL, and whether all of them are public."""

    url: SplitResult
    address: str
    is_public: bool


def read_url(text: str) -> SplitResult:
    """Return the parts of a URL of HTTP without a user."""
    try:
        url = urlsplit(text)
        is_http = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_http = False
    if not is_http or "@" in url.netloc or not text.isascii() or not text.isprintable():
        raise SourceError(f"a feed is at http:// or https:// with a host, not {shown_server(text)}")
    return url


def fetch(text: str, headers: Mapping[str, str], most_bytes: int, timeout_s: float) -> Fetched:
    """Request a URL, following a few redirects; errors say what failed."""
    first = target = _resolve(read_url(text))
    for _ in range(_REDIRECTS + 1):
        if first.is_public and not target.is_public:
            raise SourceError(f"it redirects to {shown(target.url.hostname)}, which is not public")
        answer = _request(target, headers, most_bytes, timeout_s)
        location = answer.headers.get("location")
        if answer.status not in _MOVED or not location:
            return answer
        target = _resolve(read_url(urljoin(target.url.geturl(), location)))
    raise SourceError(f"it redirects more than {_REDIRECTS} times")


def _resolve(url: SplitResult) -> _Checked:
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        resolved = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the name is invalid"
        raise SourceError(f"{shown(url.hostname)} cannot be resolved: {reason}") from None
    addresses = [str(entry[4][0]) for entry in resolved]
    public = all(is_public(ip_address(address.partition("%")[0])) for address in addresses)
    return _Checked(url, addresses[0], public)


def _request(
    target: _Checked, headers: Mapping[str, str], most_bytes: int, timeout_s: float
) -> Fetched:
    url = target.url
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    opened = list[socket.socket]()
    connection = _connect(target, timeout_s, opened)
    # A timeout is for each packet; a server that sends a byte at a time would hold up all feeds.
    expired = Event()
    limit = Timer(_WHOLE * timeout_s, _shut_down, (opened, expired))
    limit.daemon = True
    limit.start()
    try:
        connection.request("GET", path, headers={**headers, "Accept-Encoding": "identity"})
        answer = connection.getresponse()
        body = b""
        while chunk := answer.read(min(_CHUNK, most_bytes + 1 - len(body))):
            body += chunk
            if len(body) > most_bytes:
                raise SourceError(f"it is longer than {most_bytes:,} bytes")
        if answer.length or expired.is_set():
            raise SourceError("its answer ended early, or took too long")
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Fetched(answer.status, named, body)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, SourceError):
            raise
        reason = getattr(error, "strerror", None) or message(error)
        raise SourceError(f"no answer: {reason}") from None
    finally:
        limit.cancel()
        connection.close()


def _shut_down(opened: list[socket.socket], expired: Event) -> None:
    expired.set()
    for connected in opened:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _connect(target: _Checked, timeout_s: float, opened: list[socket.socket]) -> HTTPConnection:
    """Return a connection whose name is that of the URL, made to the address that was checked.

    Its socket is added to `opened`: the connection itself forgets it as soon as it has read the
    head of an answer without a length.
    """
    url: Any = target.url
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname, url.port, timeout=timeout_s)

    def connect() -> None:
        plain = socket.create_connection((target.address, connection.port), timeout_s)
        if isinstance(connection, HTTPSConnection):
            context = ssl.create_default_context()
            # The socket is known before the handshake, so that the time limit can end that too.
            connection.sock = context.wrap_socket(
                plain, server_hostname=url.hostname, do_handshake_on_connect=False
            )
            opened.append(connection.sock)
            connection.sock.do_handshake()
        else:
            connection.sock = plain
            opened.append(plain)

    connection.connect = connect  # type: ignore[method-assign]
    return connection
