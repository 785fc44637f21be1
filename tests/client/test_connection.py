"""Addresses, tokens and answers of services: a secret is never shown, and any answer is read."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from tests.damage import JUNK, deep
from tests.test_secrets import PASSWORDS, leaks, refusal

from tidings import AsyncClient, Client, Delivery, ServiceError, TidingsError
from tidings.client import connection

SHAPES = (
    "http://ann:{}@127.0.0.1:9",
    "http://ann:{}@127.0.0.1:9/v?x=1",
    "https://{}@127.0.0.1:9/",
    "ftp://ann:{}@127.0.0.1:9",
    "http:/ann:{}@host",
    "http:ann:{}@host",
    "ann:{}@host:8000",
    "http://ann:{}@[::1",
    "http://ann:{}@host:port",
    "http://ann:{}@host:99999",
    "http://ann:{}@ho st\n",
    "http://ann:{}@\u202e",
    "http://host/?password={}",
    "http://host/#{}",
)


def feed_at(address: str) -> None:
    with Client(address, retries=0) as client:
        client.feed("ada")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_address_shows_its_password(shape: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for password in PASSWORDS:
        address = shape.format(password)
        shown = refusal(partial(feed_at, address))
        assert "TidingsError" in shown or "ServiceError" in shown
        assert not leaks(shown), (address, shown)
    assert not leaks(caplog.text)


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_that_is_encoded_is_sent_and_not_shown(password: str) -> None:
    given = connection.options(f"http://ann:{quote(password, safe='')}@host:1/v", None, 1.0)
    assert (given["base_url"], given["auth"]) == ("http://host:1/v", ("ann", password))


@pytest.mark.parametrize("token", ["Sw0rd fishy", "Sw0rdfish\n", "Sw0rdfish\0", "Sw0rd漢", 7, b"x"])
def test_a_token_that_no_request_can_hold_is_refused(token: Any) -> None:
    shown = refusal(partial(Client, token=token))
    assert "a token is a text of letters" in shown
    assert not leaks(shown)


def test_a_token_and_a_user_are_not_both_sent() -> None:
    with pytest.raises(TidingsError, match="a token, or an address with a user, but not both"):
        Client("http://ann:word@host", "token")


ITEMS: list[Any] = [{"items": each} for each in [*JUNK, [None], [{}], [{"subscriber": 1}]]]
BODIES = [
    *(json.dumps(each).encode() for each in [*JUNK, *ITEMS, {"problems": [{}]}]),
    *(b"", b"<html>", b"\xff", b"NaN", b"[" * 100_000, b'{"detail": "\\ud800", "error": "x"}'),
    *(b'{"detail": 1, "error": "InvalidCondition", "position": [1]}', b'{"deliveries": 5}'),
    b'{"detail": "' + b"x" * 10_000 + b'", "error": "ServiceError"}',
]
CALLS: list[Callable[[Client], Any]] = [
    lambda client: client.subscribe({"id": "u"}),
    lambda client: client.add_many([{"id": "s", "subscriber": "u", "where": "x = 1"}]),
    lambda client: client.publish({"id": "e", "published_at": 0, "attributes": {}}),
    lambda client: client.feed("u"),
    lambda client: client.notifications("u"),
    lambda client: client.channels("u"),
    lambda client: client.target({"id": "e", "published_at": 0, "attributes": {}}),
    lambda client: client.explain("u", "e"),
    lambda client: client.preview("u"),
]


def answering(answer: Callable[[], Any]) -> Client:
    """Return a client whose service gives the answer of a function."""
    http, client = connection.load_http(), Client(retries=0)
    client._http.close()
    transport = http.MockTransport(lambda request: answer())
    client._http = http.Client(base_url="http://host", transport=transport)
    return client


@pytest.mark.parametrize("status", [200, 207, 301, 404, 422, 500])
def test_any_answer_is_read_or_an_error_of_ours(status: int) -> None:
    bodies = [b""]
    http, longest = connection.load_http(), 0
    with answering(lambda: http.Response(status, content=bodies[-1])) as client:
        for body in BODIES:
            bodies.append(body)
            for call in CALLS:
                try:
                    call(client)
                except TidingsError as error:
                    longest = max(longest, len(str(error).encode()))
    assert 50 < longest <= 1_000


def test_an_answer_that_cannot_be_decompressed_is_an_error_of_ours() -> None:
    http = connection.load_http()
    encoded = partial(http.Response, 200, headers={"content-encoding": "gzip"}, stream=Plain())
    with answering(encoded) as client, pytest.raises(ServiceError, match="cannot be reached"):
        client.feed("u")


class Plain(httpx2.SyncByteStream):
    """Bytes that are not compressed."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"x" * 100


STREAMS = [
    *(b"id: x\ndata: {}\n\n", b"data: {}\n\n", b"id: 1\ndata: [\n\n", b"id: 1\ndata: null\n\n"),
    *(b"id: 1e9\n\n", b"id: 1\ndata: " + json.dumps(deep(300)).encode() + b"\n\n"),
    *(b"id: " + b"9" * 5_000 + b"\n\n", b"id: 1\ndata: \xff\n\n"),
]


@pytest.mark.parametrize("stream", STREAMS)
def test_any_stream_is_read_or_an_error_of_ours(stream: bytes) -> None:
    http, kind = connection.load_http(), {"content-type": "text/event-stream"}
    client = answering(partial(http.Response, 200, content=stream, headers=kind))
    with client, pytest.raises(ServiceError, match="not one of a Tidings service"):
        next(client.follow("u"))

    async def follow() -> Delivery | None:
        async with AsyncClient(retries=0) as other:
            await other._http.aclose()
            other._http = http.AsyncClient(
                base_url="http://host", transport=client._http._transport
            )
            async for delivery in other.follow("u"):
                return delivery
        return None

    with pytest.raises(ServiceError, match="not one of a Tidings service"):
        asyncio.run(follow())
