"""The web server of a service."""

import socket
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import uvicorn

from tidings.errors import TidingsError
from tidings.service.app import create_app
from tidings.service.settings import LOOPBACK, ServiceSettings
from tidings.store import open_store

_STOP_S: Final = 5
_BACKLOG: Final = 2_048


class WebServer(uvicorn.Server):
    """A server that listens from the start, so that its port is known; signals are its owner's.

    Without tokens in the store, it is refused to listen beyond the loopback interface.
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
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_S,
            lifespan="on",
        )
        super().__init__(config)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` is called."""
        super().run(sockets or [self.socket])
        self.socket.close()

    def stop(self) -> None:
        """Stop after the requests under way; safe to call from another thread or a signal."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End live streams, which would go on for ever, and wait for the other requests."""
        self._app.state.live.close()
        await super().shutdown(sockets)

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave signals alone."""
        return nullcontext()


def check_exposure(address: str, host: str) -> None:
    """Refuse to listen beyond this machine as long as anyone could do anything."""
    if host in LOOPBACK:
        return
    with open_store(address) as store:
        if not store.tokens.exist():
            raise TidingsError(
                f"without tokens the service listens only on 127.0.0.1, not on {host}; make one "
                "with: tidings token create STORE --role admin"
            )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise TidingsError(f"cannot listen on {host}:{port}: {error.strerror}") from None
