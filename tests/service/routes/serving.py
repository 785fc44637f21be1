"""A web server over a store that the test writes to, without a pipeline."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from tests.service.running import client_of, server_at

from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend


@dataclass
class Served:
    """A server, its store, and a client that may do everything."""

    server: WebServer
    store: Store
    admin: httpx2.Client
    clients: dict[str, httpx2.Client] = field(default_factory=dict)

    def as_subscriber(self, name: str) -> httpx2.Client:
        """Return a client with the token of a subscriber."""
        if name not in self.clients:
            token = self.store.tokens.create("subscriber", 0, subscriber=name)
            self.clients[name] = client_of(self.server, token)
        return self.clients[name]

    def process(self) -> None:
        """Note that a pipeline has processed everything, without any delivery."""
        last, upto = self.store.log.last(), self.store.publications.last()
        step = EngineStep(last.number + 1, None, self.store.catalogue.version(), upto)
        nothing = BatchAppend.of("test", step.number, [], late=[], dead=[])
        assert self.store.log.append(step, nothing)


@contextmanager
def serving(folder: Path, settings: ServiceSettings | None = None) -> Iterator[Served]:
    """Run a server over a new store."""
    address = str(folder / "tidings.db")
    with open_store(address) as store, server_at(address, settings) as server:
        served = Served(server, store, client_of(server, store.tokens.create("admin", 0)))
        try:
            yield served
        finally:
            for client in (served.admin, *served.clients.values()):
                client.close()


def problem(answer: httpx2.Response) -> tuple[int, str, Any]:
    """Return the status, the words and the pointer of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    form = answer.json()
    return answer.status_code, form["detail"], form.get("pointer")
