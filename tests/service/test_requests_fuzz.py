"""Requests with anything in their paths, headers and bodies: answered, and never by status 500."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from tests.damage import hostile_json
from tests.fuzz import cases
from tests.mutation import mutated

from tidings.service.app import create_app
from tidings.service.settings import ServiceSettings

PEOPLE = {"id": "ada", "policy": {"k": 2, "rules": [{"name": "quota", "n": 3, "per": "day"}]}}
WISH = {
    "id": "s1",
    "subscriber": "ada",
    "where": "genre = 'drama' and year > 2000",
    "prefrank": 0.5,
}
EVENT = {"id": "e1", "attributes": {"genre": ["drama"], "year": 2003}, "content": {"t": "x"}}
CLOUD = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {"a": 1}}
PERSON = {"kind": "mail", "address": "ada@example.org", "every": "day", "at": ["08:00"]}
REQUESTS: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/subscribers/{}", PEOPLE),
    ("GET", "/v1/subscribers/{}", None),
    ("DELETE", "/v1/subscribers/{}", None),
    ("PUT", "/v1/subscriptions/{}", WISH),
    ("GET", "/v1/subscriptions?subscriber={}&after={}&limit={}", None),
    ("POST", "/v1/subscriptions:import", [WISH, WISH]),
    ("POST", "/v1/events", EVENT),
    ("POST", "/v1/events", [EVENT, CLOUD]),
    ("POST", "/v1/events", CLOUD),
    ("GET", "/v1/feeds/{}", None),
    ("GET", "/v1/notifications/{}?after={}&limit={}", None),
    ("POST", "/v1/notifications/{}/read", {"sequence": 1}),
    ("GET", "/v1/explain?subscriber={}&event={}", None),
    ("POST", "/v1/target", {"event": EVENT, "k": 5, "scorer": "exact"}),
    ("POST", "/v1/preview", {"subscriber": PEOPLE, "subscriptions": [WISH], "events": [EVENT]}),
    ("POST", "/v1/conditions:check", {"where": "a = 1 or b like 'x%'"}),
    ("GET", "/v1/decisions/{}?event={}", None),
    ("GET", "/v1/attributes", None),
    ("GET", "/v1/letters?after={}&kind={}", None),
    ("POST", "/v1/letters:retry", {"ids": [1, 2]}),
    ("PUT", "/v1/subscribers/{}/channels/{}", PERSON),
    ("POST", "/v1/subscribers/{}/channels/{}/verify", {"code": "123"}),
    ("POST", "/v1/webhooks", {"subscriber": "ada", "url": "https://example.org/x"}),
    ("POST", "/v1/templates:preview", {"template": {"title": "{{title}}"}, "content": {"a": 1}}),
    ("POST", "/v1/notifications/{}/marks", {"sequence": 1, "mark": "good"}),
    ("GET", "/v1/feeds/{}.atom", None),
    ("GET", "/r/{}/{}/{}/{}/{}", None),
    ("GET", "/page/{}", None),
    ("GET", "/{}", None),
]
WORDS = [
    "ada",
    "s1",
    "e1",
    "1",
    "-1",
    "",
    "..",
    "%00",
    "%2F",
    "a/b",
    "é",
    "\0",
    "9" * 5_000,
    "x" * 600,
]
WORDS += [
    "' or 1=1 --",
    "{{}}",
    "%ff%fe",
    "%ed%a0%80",
    "nan",
    "1e999",
    "-9223372036854775809",
    "true",
]
TYPES = [
    "application/json",
    "application/x-ndjson",
    "application/cloudevents+json",
    "text/plain",
    "",
]
TYPES += [
    "application/vnd.apache.arrow.stream",
    "application/cloudevents-batch+json",
    "application/json;x",
]
HEADERS = {
    "content-encoding": "gzip",
    "ce-specversion": "1.0",
    "ce-id": "%ff",
    "authorization": "Bearer tidings_x",
    "last-event-id": "9" * 400,
    "accept": "x/y;q=9",
    "if-none-match": '"x',
}


@contextmanager
def served(folder: Path, settings: ServiceSettings) -> Iterator[Any]:
    """Yield a function that sends requests to the application, without a server between them."""
    app = create_app(str(folder / "t.db"), settings)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)

    async def send_all(requests: list[tuple[str, str, bytes, dict[str, str]]]) -> list[int]:
        found = list[int]()
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            for method, path, body, headers in requests:
                try:
                    answer = await asyncio.wait_for(
                        client.request(method, path, content=body, headers=headers), 60
                    )
                except httpx2.InvalidURL:
                    continue
                found.append(answer.status_code)
                assert answer.status_code < 500, (method, path, body[:300], headers, answer.text)
                assert len(answer.content) < 100_000
        return found

    yield lambda requests: asyncio.run(send_all(requests))


def request(rng: Random) -> tuple[str, str, bytes, dict[str, str]]:
    method, path, form = rng.choice(REQUESTS)
    while "{}" in path:
        word = rng.choice(WORDS)
        path = path.replace("{}", quote(word, safe="%") if rng.random() < 0.8 else "ada", 1)
    body, headers = b"", {"content-type": "application/json"}
    if form is not None:
        for _ in range(rng.choice([0, 1, 1, 2])):
            form = hostile_json(rng, form)
        try:
            body = json.dumps(form).encode()
        except RecursionError:
            body = b"[" * 100_000
        if rng.random() < 0.25:
            body = mutated(rng, body)
    if rng.random() < 0.2:
        headers["content-type"] = rng.choice(TYPES)
    if rng.random() < 0.1:
        name = rng.choice([*HEADERS])
        headers[name] = HEADERS[name]
    if rng.random() < 0.05:
        method = rng.choice(["PATCH", "HEAD", "OPTIONS", "DELETE", "POST", "PUT"])
    return method, path, body, headers


@pytest.mark.fuzz
def test_any_request_is_answered(tmp_path: Path) -> None:
    settings = ServiceSettings(rate=1_000_000)
    rngs = [Random(f"request-{number}") for number in range(cases(300))]
    with served(tmp_path, settings) as send_all:
        statuses = send_all([request(rng) for rng in rngs])
    assert {200, 404, 422} <= set(statuses)
