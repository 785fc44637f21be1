"""A service with something to see: one subscriber, and events with text that would be markup."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from tests.service.running import client_of, delivered, pipeline_at, server_at

from tidings.store import open_store

HOSTILE = "<img src=x onerror=\"console.error('run')\"><b>Film</b>"
POLICY = {"k": 2, "window": {"name": "sliding", "length": 10}}
SUBSCRIPTIONS = {
    "ada-dramas": ("genre = 'drama'", 0.9),
    "ada-new": ("year >= 2000", 0.5),
    "ada-typo": ("gener = 'drama'", 0.5),
}
EVENTS = 40


class PageService(NamedTuple):
    """A running service: its address, a client for an administrator, and a token of ada."""

    url: str
    client: httpx2.Client
    ada: str
    admin: str


def event(number: int, **more: Any) -> dict[str, Any]:
    """Return an event, one every ten minutes."""
    hour, tenth = divmod(number, 6)
    return {
        "id": f"e{number}",
        "published_at": f"2026-01-0{1 + hour // 24}T{hour % 24:02d}:{tenth}0:00Z",
        "attributes": {"genre": ["comedy", "drama"][number % 2], "year": 1990 + number % 20},
        "content": {"title": f"{HOSTILE} {number}"},
    } | more


@contextmanager
def page_service(folder: Path) -> Iterator[PageService]:
    """Run a service whose events are all decided."""
    address = str(folder / "page.db")
    with open_store(address) as store:
        admin = store.tokens.create("admin", 1)
        ada = store.tokens.create("subscriber", 1, subscriber="ada")
    with server_at(address) as server, pipeline_at(address), client_of(server, admin) as client:
        client.put("/v1/subscribers/ada", json={"policy": POLICY})
        for name, (where, prefrank) in SUBSCRIPTIONS.items():
            form = {"subscriber": "ada", "where": where, "prefrank": prefrank}
            client.put(f"/v1/subscriptions/{name}", json=form, params={"wait": "applied"})
        events = [event(number) for number in range(EVENTS)]
        client.post("/v1/events", json=events, params={"wait": "delivered"})
        delivered(client, "ada", 1)
        yield PageService(f"http://127.0.0.1:{server.port}", client, ada, admin)
