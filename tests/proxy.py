"""A proxy for tests, which makes a server seem away."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """A port that passes bytes on to another one, unless it is down or slow to take them."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition("//")[2].partition(":")
        self._target = (host, int(port))
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_up = True
        threading.Thread(target=self._accept, daemon=True).start()

    def down(self) -> None:
        """Break all connections, and refuse new ones."""
        self._is_up = False
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()

    def up(self) -> None:
        """Pass bytes on again."""
        self._is_up = True

    def close(self) -> None:
        """End for good."""
        self.down()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._is_up:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for connection in (source, sink):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    """Run a proxy."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
