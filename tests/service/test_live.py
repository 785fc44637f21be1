"""Live push: streams that resume, that end when they must, and that share one query."""

import json
from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Any

import httpx2
import pytest
from tests.service.running import client_of, eventually, pipeline_at, server_at, service_at

from tidings.service.live import Chunk, LiveInboxes, LiveStream
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

PATH = "/v1/notifications/{}/stream"


def subscribe(client: httpx2.Client, *names: str) -> None:
    for name in names:
        client.put(f"/v1/subscribers/{name}", json={"policy": {"k": 100}})
        form = {"subscriber": name, "where": f"name = '{name}'"}
        assert client.put(f"/v1/subscriptions/{name}", json=form).status_code == 201


def publish(client: httpx2.Client, event: str, *names: str) -> None:
    form = {"id": event, "attributes": {"name": list(names)}}
    assert client.post("/v1/events", json=form).json()["accepted"] == 1


def follow(client: httpx2.Client, name: str, **options: Any) -> Generator[Any, None, None]:
    """Yield the forms of a stream; the first one is None, when it is open."""
    with client.sse(PATH.format(name), **options) as source:
        for event in source:
            form = json.loads(event.data) if event.data else None
            assert form is None or str(form["sequence"]) == event.id
            yield form and form["event"]


def test_a_stream_has_what_was_missed_then_what_is_new(address: str) -> None:
    with service_at(address) as client, client_of_same(client) as other:
        subscribe(client, "ada", "bob")
        publish(client, "e1", "ada", "bob")
        with closing(follow(other, "ada")) as events:
            assert [next(events), next(events)] == [None, "e1"]
            publish(client, "e2", "bob")
            publish(client, "e3", "ada")
            assert next(events) == "e3"
        publish(client, "e4", "ada")
        with closing(follow(other, "ada", headers={"Last-Event-ID": "2"})) as events:
            assert [next(events), next(events)] == [None, "e4"]
        with closing(follow(other, "ada", params={"after": 1})) as events:
            assert [next(events), next(events), next(events)] == [None, "e3", "e4"]
        client.post("/v1/notifications/ada/read", json={"sequence": 2})
        with closing(follow(other, "ada")) as events:
            assert [next(events), next(events)] == [None, "e4"]
        wrong = client.get(PATH.format("ada"), headers={"Last-Event-ID": "x"})
        assert (wrong.status_code, wrong.json()["parameter"]) == (422, "last-event-id")
        assert client.get(PATH.format("nobody")).status_code == 404


def client_of_same(client: httpx2.Client) -> httpx2.Client:
    return httpx2.Client(base_url=client.base_url, timeout=client.timeout)


def test_many_streams_share_one_query(tmp_path) -> None:
    names = [f"p{n}" for n in range(20)]
    with service_at(str(tmp_path / "tidings.db")) as client, ExitStack() as stack:
        subscribe(client, *names)
        streams = []
        for name in names:
            other = stack.enter_context(client_of_same(client))
            streams.append(stack.enter_context(closing(follow(other, name))))
            assert next(streams[-1]) is None
        publish(client, "e1", *names)
        assert [next(stream) for stream in streams] == ["e1"] * 20
        metrics = client.get("/metrics").text.splitlines()
        assert "tidings_streams 20.0" in metrics
        assert "tidings_stream_notifications_total 20.0" in metrics
        assert "tidings_streams_behind_total 0.0" in metrics


def test_a_stream_ends_when_its_token_is_revoked_and_when_the_server_stops(tmp_path) -> None:
    address = str(tmp_path / "tidings.db")
    with open_store(address) as store:
        token = store.tokens.create("subscriber", 0, subscriber="ada")
        store.catalogue.put({"id": "ada"}, {"id": "bob"})
        # Long before the next heartbeat, and although the token may send no further request.
        settings = ServiceSettings(heartbeat_s=600, rate=1)
        with server_at(address, settings) as server, client_of(server, token) as client:
            assert client.get(PATH.format("bob")).status_code == 403
            events = follow(client, "ada")
            assert next(events) is None
            store.tokens.revoke(token.split("_")[1], 1)
            assert list(events) == []
        token = store.tokens.create("subscriber", 0, subscriber="ada")
        with server_at(address) as server, client_of(server, token) as client:
            events = follow(client, "ada")
            assert next(events) is None
            server.stop()
            assert list(events) == []


def test_too_many_streams_of_a_subscriber_are_refused(tmp_path) -> None:
    address = str(tmp_path / "tidings.db")
    with (
        server_at(address, ServiceSettings(streams=1, heartbeat_s=0.05)) as server,
        pipeline_at(address),
        client_of(server) as client,
    ):
        subscribe(client, "ada")
        with closing(follow(client, "ada")) as events:
            assert next(events) is None
            assert client.get(PATH.format("ada")).status_code == 429
        eventually(lambda: _opens(client))


def test_streams_that_come_at_once_are_not_more_than_allowed(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "tidings.db")
    with server_at(address, ServiceSettings(streams=1)) as server, client_of(server) as client:
        subscribe(client, "ada")
        # All of them were looked at before the first one was open.
        monkeypatch.setattr(LiveInboxes, "check_room", lambda *_: None)
        with client_of(server) as other, closing(follow(other, "ada")) as events:
            assert next(events) is None
            assert list(follow(client, "ada")) == []


def _opens(client: httpx2.Client) -> bool:
    with client.stream("GET", PATH.format("ada")) as answer:
        return answer.status_code == 200


def test_a_reader_that_falls_behind_is_disconnected() -> None:
    stream = LiveStream()
    assert stream.put([Chunk(n, b"") for n in range(1_000)])
    assert not stream.put([Chunk(1_001, b"")])
    assert not stream._is_open
    stream.close()
