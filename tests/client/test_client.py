"""The clients: the verbs of the engine over HTTP, with its answers and its errors."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.ports import reserved_port
from tests.service.running import pipeline_at, server_at

from tidings import (
    AsyncClient,
    Client,
    Delivery,
    DivRank,
    Engine,
    Event,
    InvalidEvent,
    InvalidPolicy,
    InvalidSubscription,
    Policy,
    ServiceError,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.client import connection
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

POLICY = Policy(k=2, window=Sliding(4), diversify=DivRank(sigma=0.5))
GENRES = ["comedy", "drama", "drama", "horror", "comedy", "sci-fi", "drama"]
EVENTS = [
    Event(f"e{n}", {"genre": genre, "year": 2000 + n}, published_at=n, content={"n": n})
    for n, genre in enumerate(GENRES)
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a service that all tests share; each has subscribers of its own."""
    address = str(tmp_path_factory.mktemp("client") / "tidings.db")
    with server_at(address) as server, pipeline_at(address):
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, retries=0) as opened:
        yield opened


def scenario(engine: Any) -> dict[str, Any]:
    """Return what happens to two subscribers: the same code for an engine and for a service."""
    engine.subscribe(Subscriber("addison", POLICY))
    engine.add(Subscription("s1", "addison", where="genre in ('comedy', 'drama')", prefrank=0.8))
    engine.add({"id": "s2", "subscriber": "addison", "where": "genre = 'drama'", "prefrank": 0.9})
    refused = engine.add_many(
        [{"id": "s3", "subscriber": "bob", "where": "year >= 2004"}, {"id": "s4", "where": "true"}]
    )
    seen: dict[str, Any] = {"refused": len(refused)}
    seen["one"] = [keys(engine.publish(event)) for event in EVENTS[:3]]
    engine.replace(Subscription("s1", "addison", where="genre != 'drama'", prefrank=0.7))
    seen["two"] = keys(engine.publish_many(EVENTS[3:5]))
    engine.publish({"id": "bad", "published_at": 5, "attributes": {"genre": {}}})
    seen["letters"] = len(engine.dead_letters)
    engine.pause("addison")
    seen["paused"] = keys(engine.publish(EVENTS[5]))
    engine.resume("addison")
    seen["resumed"] = keys(engine.publish(EVENTS[6]))
    seen["feed"] = keys(engine.feed("addison"))
    seen["target"] = engine.target({"id": "t", "attributes": {"genre": "drama"}}, 5, "relaxed")
    seen["why"] = str(engine.explain("addison", "e1"))
    seen["why not"] = str(engine.explain("bob", "e1"))
    engine.remove("s2")
    seen["removed"] = engine.target(EVENTS[1], scorer="relaxed")
    seen["errors"] = errors(engine)
    engine.unsubscribe("addison")
    return seen


def keys(deliveries: list[Delivery]) -> list[tuple[Any, ...]]:
    """Return deliveries by what they mean; sequence numbers are those of the notifications."""
    assert all(isinstance(delivery, Delivery) for delivery in deliveries)
    return sorted(
        (d.subscriber, d.event, d.rank, d.position, d.matched, d.delivered_at, d.content_json)
        for d in deliveries
    )


def errors(engine: Any) -> list[Any]:
    """Return the errors of wrong calls."""
    calls = [
        lambda: engine.subscribe(Subscriber("addison", Policy(k=7))),
        lambda: engine.subscribe({"id": "carol", "policy": {"k": 0}}),
        lambda: engine.add(Subscription("s1", "addison", where="year = 1")),
        lambda: engine.add({"id": "s9", "subscriber": "addison", "where": "year > and"}),
        lambda: engine.replace(Subscription("none", "addison", where="year = 1")),
        lambda: engine.remove("none"),
        lambda: engine.unsubscribe("nobody"),
        lambda: engine.pause("nobody"),
        lambda: engine.feed("nobody"),
        lambda: engine.explain("addison", "none"),
        lambda: engine.target({"id": "t", "attributes": {}}, k=0),
    ]
    kinds = list[Any]()
    for call in calls:
        with pytest.raises(TidingsError) as caught:
            call()
        kinds.append((type(caught.value).__name__, getattr(caught.value, "position", None)))
    return kinds


def test_a_service_does_what_an_engine_does(client: Client) -> None:
    expected, found = scenario(Engine()), scenario(client)
    for name, value in expected.items():
        assert found[name] == value, name
    assert {name for name, _ in expected["errors"]} >= {
        InvalidSubscription.__name__,
        InvalidPolicy.__name__,
        InvalidEvent.__name__,
    }


def test_notifications_are_paged_marked_and_followed(client: Client, url: str) -> None:
    client.subscribe(Subscriber("carl", Policy(k=9)))
    client.add(Subscription("carl-1", "carl", where="carl = 1"))
    client.publish_many({"id": f"c{n}", "attributes": {"carl": 1}} for n in range(3))
    page = client.notifications("carl", limit=2)
    assert ([item.event for item in page.items], page.next, page.unread) == (["c0", "c1"], 2, 3)
    client.mark_read("carl", 1)
    with closing(client.follow("carl")) as followed:  # type: ignore[type-var]
        assert [each.event for each in islice(followed, 2)] == ["c1", "c2"]
        client.publish({"id": "c3", "attributes": {"carl": 1}})
        assert next(followed).event == "c3"
    with closing(client.follow("carl", after=3)) as followed:  # type: ignore[type-var]
        assert next(followed).sequence == 4
    assert [each.event for each in client.preview(where="carl = 1", policy={"k": 9})][:1] == ["c0"]
    with pytest.raises(ServiceError, match="there is no notification 9") as caught:
        client.mark_read("carl", 9)
    assert caught.value.status == 409


def test_where_a_subscriber_reads(client: Client, url: str) -> None:
    client.subscribe(Subscriber("gwen", Policy(k=9)))
    client.add(Subscription("gwen-1", "gwen", where="gwen = 1"))
    chat = {"kind": "slack", "address": "https://hooks.slack.com/services/T0/x", "min_rank": 0.5}
    assert client.put_channel("gwen", "a/chat", chat)["verified"] is False
    assert [channel["id"] for channel in client.channels("gwen")] == ["a/chat"]
    assert client.pause_channel("gwen", "a/chat")["paused"] is True
    assert client.resume_channel("gwen", "a/chat")["paused"] is False
    assert client.retry_channel("gwen", "a/chat")["failed"] == []
    with pytest.raises(ServiceError, match="no valid code"):
        client.verify_channel("gwen", "a/chat", "x")
    with pytest.raises(ServiceError, match=r"\[mail\]"):
        client.put_channel("gwen", "mail", {"kind": "mail", "address": "g@example.org"})
    client.publish({"id": "g0", "attributes": {"gwen": 1}})
    client.mark("gwen", 1, "not-for-me")
    assert [(mark["sequence"], mark["mark"]) for mark in client.marks("gwen")] == [
        (1, "not-for-me")
    ]

    async def scene() -> None:
        async with AsyncClient(url) as other:
            assert (await other.pause_channel("gwen", "a/chat"))["paused"] is True
            await other.remove_channel("gwen", "a/chat")
            assert await other.channels("gwen") == []

    asyncio.run(scene())


def test_a_table_is_published(client: Client) -> None:
    client.add(Subscription("dora-1", "dora", where="dora = 1"))
    now = datetime.now(UTC) + timedelta(seconds=60)  # not before what was published till now
    table = pa.table({"id": ["d0", "d1"], "published_at": [now, now], "dora": [1, 2]})
    deliveries = client.publish_table(table)
    assert deliveries.column("event").to_pylist() == ["d0"]


def test_coroutines_do_the_same(url: str) -> None:
    async def run() -> list[str]:
        async with AsyncClient(url, retries=0) as client:
            await client.subscribe(Subscriber("emma", Policy(k=9)))
            await client.add(Subscription("emma-1", "emma", where="emma = 1"))
            deliveries = await client.publish({"id": "m0", "attributes": {"emma": 1}})
            events = [delivery.event for delivery in deliveries]
            async for delivery in client.follow("emma"):
                events.append(delivery.event)
                if delivery.event == "m0":
                    await client.publish({"id": "m1", "attributes": {"emma": 1}})
                else:
                    break
            with pytest.raises(InvalidSubscription):
                await client.add({"id": "emma-2", "subscriber": "emma", "where": "a ="})
            return events

    assert asyncio.run(run()) == ["m0", "m0", "m1"]


def test_without_waiting_nothing_is_returned(url: str) -> None:
    with Client(url, wait=False) as client:
        client.add(Subscription("fred-1", "fred", where="fred = 1"))
        assert client.publish({"id": "f0", "attributes": {"fred": 1}}) == []
        with closing(client.follow("fred")) as followed:  # type: ignore[type-var]
            assert next(followed).event == "f0"


def test_a_pipeline_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    address, settings = str(tmp_path / "tidings.db"), ServiceSettings(wait_s=0.01)
    with (
        server_at(address, settings) as server,
        Client(f"http://127.0.0.1:{server.port}") as client,
    ):
        calls = [
            lambda: client.subscribe(Subscriber("hugo")),
            lambda: client.add_many([Subscription("hugo-1", "hugo", where="true")]),
            lambda: client.pause("hugo"),
            lambda: client.remove("hugo-1"),
            lambda: client.publish({"id": "h0", "attributes": {}}),
        ]
        for call in calls:
            with pytest.raises(ServiceError, match=r"the pipeline of the service .* yet"):
                call()
        with open_store(address) as store:  # what was sent is safe
            assert store.catalogue.version() == 4
            assert store.publications.last() == 1
        client.close()


def test_a_stream_goes_on_after_a_restart(tmp_path: Path) -> None:
    address = str(tmp_path / "tidings.db")
    with reserved_port() as port, open_store(address) as store:
        with server_at(address, port=port):
            store.catalogue.put({"id": "ada"})
            store.notifications.append("q", 0, [_delivery("e0")])
            client = Client(f"http://127.0.0.1:{port}")
            followed = client.follow("ada")
            assert next(followed).event == "e0"
        store.notifications.append("q", 1, [_delivery("e1")])
        with server_at(address, port=port):
            assert next(followed).event == "e1"
            client.close()


def _delivery(event: str) -> Delivery:
    return Delivery("ada", event, 0.5, 1, {"start": "a", "end": "b"}, ("s",), 0, 0)


def test_pauses_double_up_to_a_limit_and_end() -> None:
    retries = connection.Retries(8, chance=lambda: 1.0)
    assert [retries.pause_s(n) for n in range(1, 10)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, None]
    assert retries.pause_s(1, "3") == 3
    assert retries.pause_s(1, "soon") == 0.2


def test_what_may_have_had_an_effect_is_not_sent_twice() -> None:
    http = connection.load_http()
    calls = Client("http://127.0.0.1:9")._calls
    attempts = connection.Attempts(calls.delete("subscribers", "x"), connection.Retries(3), "here")
    assert attempts.after_error(http.ConnectError("refused"))
    assert attempts.after(http.Response(502)) is None
    assert attempts.after(http.Response(429))
    with pytest.raises(ServiceError, match="cannot be reached"):
        attempts.after_error(http.ReadError("broken"))
    repeatable = connection.Attempts(calls.feed("x"), connection.Retries(1), "here")
    assert repeatable.after_error(http.ReadError("broken"))
    with pytest.raises(ServiceError, match="cannot be reached"):
        repeatable.after_error(http.ReadError("broken"))


def test_a_stream_that_was_open_is_not_given_up() -> None:
    http = connection.load_http()
    attempts = connection.Attempts(None, connection.Retries(2, chance=lambda: 1.0), "here")
    assert [attempts.after_error(http.ConnectError("refused")) for _ in range(2)] == [0.2, 0.4]
    with pytest.raises(ServiceError, match="cannot be reached"):
        attempts.after_error(http.ConnectError("refused"))
    attempts.succeeded()
    pauses = [attempts.after_error(http.ConnectError("refused")) for _ in range(20)]
    assert pauses == [0.2] + 19 * [0.4]
    unrepeated = connection.Attempts(None, connection.Retries(0), "here")
    unrepeated.succeeded()
    with pytest.raises(ServiceError, match="cannot be reached"):
        unrepeated.after_error(http.ConnectError("refused"))


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(TidingsError, match="address of a service"):
        Client(url)


@pytest.mark.parametrize("name", ["", ".", "..", 7, None])
def test_ids_that_no_path_can_hold_are_refused(client: Client, name: Any) -> None:
    with pytest.raises(InvalidSubscription):
        client.feed(name)


def test_ids_may_hold_slashes(client: Client) -> None:
    client.subscribe(Subscriber("team/ada", Policy(k=1)))
    client.add(Subscription("team/ada/1", "team/ada", where="slash = 1"))
    client.publish({"id": "slash", "attributes": {"slash": 1}})
    assert [delivery.event for delivery in client.feed("team/ada")] == ["slash"]
    client.remove("team/ada/1")
    client.unsubscribe("team/ada")


def test_a_service_that_is_not_there_is_named() -> None:
    with (
        Client("http://127.0.0.1:9", retries=0) as client,
        pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9 cannot be reached"),
    ):
        client.feed("ada")


def test_the_http_library_is_loaded_by_a_client_only_and_named_if_it_is_missing() -> None:
    code = """
import sys, tidings
assert not [name for name in sys.modules if name.startswith(("httpx", "httpcore"))]
sys.modules["httpx2"] = None
try:
    tidings.Client()
except tidings.TidingsError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'tidings[client]'" in result.stdout
