"""NATS server for tests, with JetStream in a folder of its own."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats

SERVER = Path(sys.executable).with_name("nats-server")


class NatsServer:
    """A running server; `send` creates a stream with its first message."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, work: Any) -> Any:
        async def connected() -> Any:
            client = await nats.connect(self.address)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def send(self, stream: str, values: Iterable[str], headers: Any = None) -> None:
        async def publish(jetstream: Any) -> None:
            await jetstream.add_stream(name=stream, subjects=[f"{stream}.>"])
            for value in values:
                await jetstream.publish(f"{stream}.film", value.encode(), headers=headers)

        self.run(publish)


@contextmanager
def running_nats(folder: Path, *more: str) -> Iterator[NatsServer]:
    """Start a server on a free port, which it writes to a file."""
    command = [
        SERVER,
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
        "-js",
        "-sd",
        folder,
        "--ports_file_dir",
        folder,
    ]
    process = subprocess.Popen([*map(str, command), *more], stderr=subprocess.DEVNULL)
    try:
        ports = folder / f"nats-server_{process.pid}.ports"
        deadline = time.monotonic() + 60
        while not ports.exists() or not ports.read_text().strip():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield NatsServer(json.loads(ports.read_text())["nats"][0])
    finally:
        process.terminate()
        process.wait(30)
