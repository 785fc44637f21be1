"""A small HTTP server whose answers a test sets, and which notes what was asked."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Answer(NamedTuple):
    """An answer of the server."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = {}


class FeedServer:
    """A running server: `answers` has a function of the request's headers for each path."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Mapping[str, str]], Answer]] = {}
        self.asked: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            """Answers as the test says."""

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append(headers)
                answer = outer.answers[self.path](headers)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def set(self, path: str, answer: Answer) -> str:
        """Set a constant answer; return its URL."""
        self.answers[path] = lambda _: answer
        return self.address + path

    @contextmanager
    def running(self) -> Iterator["FeedServer"]:
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
