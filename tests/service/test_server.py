"""Hostile requests: they are refused clearly, cost little, and disturb nobody."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from tests.service.running import PATIENCE_S, client_of, lines, server_at

from tidings.errors import TidingsError
from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings

SETTINGS = ServiceSettings(body_bytes=20_000, body_records=50)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    address = str(tmp_path_factory.mktemp("hostile") / "t.db")
    with server_at(address, SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Return a server that waits for heads for a moment only; not one to send other requests to."""
    address = str(tmp_path_factory.mktemp("hasty") / "t.db")
    with server_at(address, ServiceSettings(head_s=0.2)) as running:
        yield running


@pytest.fixture
def client(server: WebServer) -> Iterator[httpx2.Client]:
    with client_of(server) as opened:
        yield opened
        assert opened.get("/health").json() == {"status": "ok"}


def connected(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def send(server: WebServer, text: bytes) -> bytes:
    """Send bytes as they are; return what comes until the connection is closed."""
    with connected(server) as connection:
        received = b""
        with suppress(ConnectionError):  # it may be closed even before all is sent
            connection.sendall(text)
            while chunk := connection.recv(65_536):
                received += chunk
        return received


def arrow_stream(columns: dict[str, list[Any]]) -> bytes:
    table, stream = pa.table(columns), BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


@pytest.mark.parametrize("text", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_that_does_not_come_is_not_waited_for(hasty: WebServer, text: bytes) -> None:
    assert send(hasty, text) == b""


@pytest.mark.parametrize(
    ("head", "more", "status"),
    [
        (b"POST /v1/none HTTP/1.1\r\nContent-Length: 1000\r\n", b"{", b"404"),
        (b"POST /v1/events HTTP/1.1\r\nContent-Length: 99999999\r\n", b"{", b"413"),
        (b"GET /health HTTP/1.1\r\n", b"\r\n", b"200"),
        (b"GET /health HTTP/1.1\r\n", b"GET /hea", b"200"),
    ],
)
def test_an_answered_connection_is_not_held_open_by_single_bytes(
    tmp_path: Path, head: bytes, more: bytes, status: bytes
) -> None:
    with server_at(str(tmp_path / "t.db")) as server, connected(server) as connection:
        connection.sendall(head + b"Host: localhost\r\n\r\n")
        received = connection.recv(65_536)
        assert received.startswith(b"HTTP/1.1 " + status)
        server._app.state.settings = ServiceSettings(head_s=0.05)
        with suppress(ConnectionError):
            connection.sendall(more)
            while connection.recv(65_536):  # the rest of the answer
                pass


@pytest.mark.usefixtures("client")
def test_a_head_without_end_is_refused(server: WebServer) -> None:
    head = b"GET /health HTTP/1.1\r\n" + b"X-More: more\r\n" * 10_000
    assert send(server, head).startswith(b"HTTP/1.1 400") or send(server, head) == b""


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    body = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    with server_at(str(tmp_path / "t.db"), ServiceSettings(body_s=0.05)) as server:
        assert send(server, head + body).startswith(b"HTTP/1.1 408")


def test_a_large_body_is_refused_before_it_is_read(client: httpx2.Client) -> None:
    assert client.post("/v1/events", content=b" " * 20_001).status_code == 413

    def chunks() -> Iterator[bytes]:
        yield from [b" " * 5_000] * 5

    assert client.post("/v1/events", content=chunks()).status_code == 413


def test_too_many_records_are_refused(client: httpx2.Client) -> None:
    content = arrow_stream({"id": [str(number) for number in range(51)], "published_at": [0] * 51})
    bodies = {
        "application/json": b"[" + b"1," * 50 + b"1]",
        "application/x-ndjson": b"1\n" * 51,
        "application/vnd.apache.arrow.stream": content,
    }
    for path in ("/v1/events", "/v1/subscriptions:import"):
        for kind, body in bodies.items():
            if "arrow" not in kind or "events" in path:
                answer = client.post(path, content=body, headers={"Content-Type": kind})
                assert answer.status_code == 413, (path, kind)
                assert "more than 50 records" in answer.json()["detail"]


@pytest.mark.usefixtures("client")
def test_a_body_that_breaks_off_is_no_error_of_the_service(
    server: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    with connected(server) as connection:
        connection.sendall(head)
    chunked = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert send(server, chunked + b"not a size\r\n").startswith(b"HTTP/1.1 400")
    assert send(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("target", [b"CONNECT a:1", b"GET http://"])
def test_a_target_that_is_no_path_is_no_error_of_the_service(
    server: WebServer, target: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    head = target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert send(server, head).startswith(b"HTTP/1.1 400")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"id": NaN}', 400),
        (b'{"id": "a", "id": "b"}', 400),
        (b"[" * 10_000, 400),
        (b"7", 422),
        (b"null", 422),
        (b'{"id": "\\ud800", "attributes": {}}', 422),
        (b'{"id": "e", "attributes": {"a": 1e999}}', 422),
        (b'{"id": "e", "attributes": {"a": ' + b"9" * 5_000 + b"}}", 400),
        (b'{"id": "e", "attributes": {}, "published_at": "9999-01-01T00:00:00Z"}', 422),
        (json.dumps({"id": "x" * 1_001, "attributes": {}}).encode(), 422),
        (json.dumps({"id": "e", "attributes": {"a": "x" * 9_000}}).encode(), 422),
        (json.dumps([{"id": "e", "attributes": []}, 7, None, "x"]).encode(), 422),
    ],
)
def test_malformed_events_are_refused(client: httpx2.Client, content: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/events", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert len(answer.content) < 4_000
    assert answer.json()["status"] == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "x" * 99])
def test_another_content_type_is_refused(client: httpx2.Client, kind: str) -> None:
    headers = {"Content-Type": kind}
    assert client.post("/v1/events", content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"ARROW1\0\0" + b"\xff" * 64])
def test_damaged_arrow_is_refused(client: httpx2.Client, content: bytes) -> None:
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    answer = client.post("/v1/events", content=content, headers=headers)
    assert answer.status_code == 400
    assert "/tmp" not in answer.text


def test_arrow_without_times_is_refused(client: httpx2.Client) -> None:
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    content = arrow_stream({"id": ["e1"], "genre": ["drama"]})
    answer = client.post("/v1/events", content=content, headers=headers)
    detail = "the body: there is no column published_at among id, genre"
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


def test_a_costly_condition_is_refused(client: httpx2.Client) -> None:
    parts = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(20))
    answer = client.put("/v1/subscriptions/s", json={"subscriber": "ada", "where": parts})
    assert answer.status_code == 422
    assert "limit" in answer.json()["detail"]


def test_lines_that_are_refused_do_not_stop_the_others(client: httpx2.Client) -> None:
    body = (
        lines({"id": "good", "attributes": {}}) + b"{\n\n7\n" + lines({"id": 8, "attributes": {}})
    )
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/v1/events", content=body, headers=headers).json()
    assert (answer["accepted"], answer["refused"]) == (2, 2)
    assert [problem["position"] for problem in answer["problems"]] == [2, 4]


@pytest.mark.parametrize("path", ["/v1/feeds/%00", "/v1/feeds/%ff", "/v1/feeds/..%2f..", "/%2e%2e"])
def test_odd_paths_lead_nowhere(client: httpx2.Client, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("host", ["a" * 300, "\ud800", "a..b", "127.0.0.1\0"])
def test_a_host_that_is_none_is_refused(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.server.check_exposure", lambda *_: None)
    with pytest.raises(TidingsError, match="cannot listen on"):
        WebServer("unused.db", host=host)
