"""A receiver of webhooks for tests: a real server that answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE_S = 600


class Received(NamedTuple):
    """A request."""

    headers: dict[str, str]
    body: bytes


class Hold:
    """What keeps answers of servers back: what came is taken, but its sender does not know."""

    def __init__(self) -> None:
        self._is_on, self._is_over = threading.Event(), threading.Event()
        self.taken = 0

    def is_on(self) -> bool:
        """Return whether the answer to what was taken is to be held; count it if so."""
        self.taken += self._is_on.is_set()
        return self._is_on.is_set()

    def wait(self) -> None:
        self._is_over.wait(PATIENCE_S)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Hold the answers to what comes meanwhile."""
        self.taken = 0
        self._is_over.clear()
        self._is_on.set()
        try:
            yield
        finally:
            self._is_on.clear()
            self._is_over.set()


class Receiver(ThreadingHTTPServer):
    """A server that answers with the next of its `statuses`, and with 200 after the last."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.hold = Hold()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the sender was killed
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(headers, body))
        if self.server.hold.is_on():  # the sender is killed before the answer
            self.server.hold.wait()
            return
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver in a thread."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
