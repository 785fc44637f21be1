"""Requests for feeds: limits, redirects, and addresses that are refused."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.sources.feed_servers import Answer, FeedServer

from tidings.errors import SourceError
from tidings.sources import rss_fetch
from tidings.sources.rss_fetch import fetch, read_url


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as server:
        yield server


def test_an_answer_has_its_status_headers_and_body(server: FeedServer) -> None:
    url = server.set("/feed?x=1", Answer(b"abc", 200, {"ETag": "7"}))
    answer = fetch(url, {"User-Agent": "me"}, 3, 10)
    assert (answer.status, answer.headers["etag"], answer.body) == (200, "7", b"abc")
    assert server.asked[0]["user-agent"] == "me"
    assert server.asked[0]["host"] == server.address.removeprefix("http://")
    with pytest.raises(SourceError, match="it is longer than 2 bytes"):
        fetch(url, {}, 2, 10)


def test_a_few_redirects_are_followed(server: FeedServer) -> None:
    server.set("/new", Answer(b"abc"))
    old = server.set("/old", Answer(status=301, headers={"Location": "new"}))
    assert fetch(old, {}, 10, 10).body == b"abc"
    loop = server.set("/loop", Answer(status=302, headers={"Location": "/loop"}))
    with pytest.raises(SourceError, match="it redirects more than 5 times"):
        fetch(loop, {}, 10, 10)
    file = server.set("/file", Answer(status=302, headers={"Location": "file:///etc/passwd"}))
    with pytest.raises(SourceError, match="a feed is at http://"):
        fetch(file, {}, 10, 10)


def test_a_public_feed_cannot_redirect_into_the_network(
    server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server.set("/a", Answer(status=302, headers={"Location": "http://localhost/secret"}))
    monkeypatch.setattr(rss_fetch, "is_public", lambda address: str(address) == "127.0.0.1")
    resolve = socket.getaddrinfo

    def resolve_one(host: str, *given: Any, **more: Any) -> Any:
        return resolve("10.0.0.7" if host == "localhost" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_one)
    with pytest.raises(SourceError, match="it redirects to 'localhost', which is not public"):
        fetch(first, {}, 10, 10)


@pytest.mark.parametrize(
    "url",
    ["ftp://a/b", "http://", "http://u:Sw0rdfish@a/", "http://a:0/", "http://[::1/", "http://a/\n"],
)
def test_only_plain_addresses_are_asked(url: str) -> None:
    with pytest.raises(SourceError, match="a feed is at http:// or https:// with a host") as error:
        read_url(url)
    assert "Sw0rdfish" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:1/", "no answer: Connection refused"), ("http://no.invalid/", "resolved")],
)
def test_a_server_that_is_away_is_an_error(url: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        fetch(url, {}, 10, 5)
