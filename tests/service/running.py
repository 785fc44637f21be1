"""A service for tests: a real server and a real pipeline, in threads of this process."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tidings.service.pipeline import Pipeline
from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

PATIENCE_S = 300.0
"""Far more than anything takes on a busy machine that compiles all kernels meanwhile."""
SETTINGS = ServiceSettings(wait_s=PATIENCE_S)
"""Those of a server without others: requests that wait for the pipeline wait until it is done."""


@contextmanager
def server_at(
    address: str, settings: ServiceSettings | None = None, port: int = 0
) -> Iterator[WebServer]:
    """Run the web server of a store in a thread."""
    server = WebServer(address, settings or SETTINGS, port=port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@contextmanager
def pipeline_at(address: str, tenant: str = "default") -> Iterator[None]:
    """Run the pipeline of a store in a thread."""
    stop = threading.Event()
    with open_store(address, tenant=tenant) as store:
        pipeline = Pipeline(store)
        thread = threading.Thread(target=pipeline.run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@contextmanager
def service_at(address: str, settings: ServiceSettings | None = None) -> Iterator[httpx2.Client]:
    """Run both, and yield a client."""
    with server_at(address, settings) as server, pipeline_at(address), client_of(server) as client:
        yield client


def client_of(server: WebServer, token: str | None = None) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.Client(
        base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=PATIENCE_S
    )


def eventually(condition: Any, patience_s: float = PATIENCE_S) -> Any:
    """Return the first true value of a condition that another thread fulfils."""
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.005)
    return value


def lines(*forms: dict[str, Any]) -> bytes:
    """Return forms as JSON Lines."""
    return "".join(f"{json.dumps(form)}\n" for form in forms).encode()


def delivered(client: httpx2.Client, subscriber: str, count: int) -> list[str]:
    """Wait for notifications, and return their events."""

    def found() -> list[str] | None:
        answer = client.get(f"/v1/notifications/{subscriber}").json()
        events = [item["event"] for item in answer["items"]]
        return events if len(events) >= count else None

    return list(eventually(found))
