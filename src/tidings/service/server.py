"""The web server of a service."""

import asyncio
import gc
import socket
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidings.errors import TidingsError, shown
from tidings.service.app import create_app
from tidings.service.settings import LOOPBACK, ServiceSettings
from tidings.store import open_store

_STOP_S: Final = 5
_SWITCH_S: Final = 0.0005
_YOUNG_OBJECTS: Final = 20_000
"""New objects between two garbage collections: a request creates a few hundred, most of which are
freed without one. With Python's default of 700, a preview takes a tenth longer."""
_BACKLOG: Final = 2_048
_CONNECTIONS: Final = 5_000
_MOST_HEAD_BYTES: Final = 32_000


class PatientProtocol(HttpToolsProtocol):
    """HTTP with limits on the time and size of the head of a request.

    The same time limit applies to what follows an answer, such as the rest of a refused body.
    """

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Any byte ends the time-out of an idle connection, even one that starts no request. A head
        # with a target that is no path is answered without a cycle.
        if self._timer is None and getattr(self.cycle, "response_complete", True):
            self._expect_head()

    def on_message_begin(self) -> None:
        self._expect_head()
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed.

        A handler that waits for the rest writes nothing.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)

    def _expect_head(self) -> None:
        self._stop_timer()
        settings: ServiceSettings = self.config.app.state.settings  # type: ignore[union-attr]
        self._timer = self.loop.call_later(settings.head_s, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _count(self, size: int) -> None:
        """Refuse a head that is too long: the parser turns any error into status 400."""
        self._head_bytes += size
        if self._head_bytes > _MOST_HEAD_BYTES:
            raise ValueError("the head of the request is too long")


class WebServer(uvicorn.Server):
    """A server that listens on creation, so that its port is known; its owner handles signals.

    Without tokens in the store, it refuses to listen beyond the loopback interface.
    """

    def __init__(
        self,
        address: str,
        settings: ServiceSettings | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
    ) -> None:
        check_exposure(address, host)
        self.socket = _listen(host, port)
        self.port: int = self.socket.getsockname()[1]
        self._app = create_app(address, settings, host)
        config = uvicorn.Config(
            self._app,
            http=PatientProtocol,
            ws="none",
            log_config=None,
            limit_concurrency=_CONNECTIONS,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_S,
            lifespan="on",
        )
        super().__init__(config)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` is called."""
        # A busy thread yields to the event loop after 0.5 ms, not after 5.
        sys.setswitchinterval(_SWITCH_S)
        gc.set_threshold(_YOUNG_OBJECTS)
        super().run(sockets or [self.socket])
        self.socket.close()

    def stop(self) -> None:
        """Stop after the requests in progress; safe to call from another thread or a signal."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End live streams, which would continue forever, and wait for the other requests."""
        self._app.state.live.close()
        await super().shutdown(sockets)

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave signals alone."""
        return nullcontext()


def check_exposure(address: str, host: str) -> None:
    """Refuse to listen beyond this machine as long as anyone could do anything.

    A store that cannot be opened is an error here, before the server starts.
    """
    with open_store(address) as store:
        if host not in LOOPBACK and not store.tokens.exist():
            raise TidingsError(
                f"without tokens the service listens only on 127.0.0.1, not on {host}; make one "
                "with: tidings token create STORE --role admin"
            )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # `create_server` leaves its socket open if the host is not a valid name, so resolve it
        # first.
        socket.getaddrinfo(host.replace("\0", " ") or None, port)
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, TypeError, ValueError) as error:  # the last two: not a valid name
        reason = (
            getattr(error, "strerror", None) or "this is not an address or name of this machine"
        )
        raise TidingsError(f"cannot listen on {shown(host)}:{port}: {reason}") from None
