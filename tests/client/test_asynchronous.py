"""The client for asyncio: the same methods, which send the same requests and get the same."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from tests.client.recorded import ANSWERS, CALLS, Recorder, asynchronous, blocking

from tidings import AsyncClient, Client, Delivery, ServiceError, TidingsError


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Keep the pauses of clients instead of waiting; other threads sleep as ever."""
    made = list[float]()

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("tidings.client.asynchronous.asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("tidings.client.blocking.time", SimpleNamespace(sleep=made.append))
    return made


def run(recorder: Recorder, name: str, **options: Any) -> Any:
    async def work() -> Any:
        async with asynchronous(recorder, **options) as client:
            return await CALLS[name](client)

    return asyncio.run(work())


def outcome(work: Any) -> Any:
    """Return the result of a call, or its error."""
    try:
        return work()
    except TidingsError as error:
        return type(error), str(error)


def test_both_clients_have_the_same_methods() -> None:
    def public(kind: type) -> dict[str, list[tuple[str, Any]]]:
        return {
            name: [
                (each.name, each.default) for each in inspect.signature(method).parameters.values()
            ]
            for name, method in vars(kind).items()
            if not name.startswith("_") and callable(method)
        }

    assert public(AsyncClient) == public(Client)
    parameters = [inspect.signature(kind.__init__).parameters for kind in (AsyncClient, Client)]
    assert [*parameters[0]] == [*parameters[1]]
    assert [each.default for each in parameters[0].values()] == [
        each.default for each in parameters[1].values()
    ]


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_both_clients_send_the_same_requests(name: str, wait: bool) -> None:
    answers = [(200, ANSWERS[name])] if name in ANSWERS else []
    one, other = Recorder(*answers), Recorder(*answers)
    with blocking(one, wait=wait) as client:
        expected = CALLS[name](client)
    assert run(other, name, wait=wait) == expected
    [asked], [same] = one.asked, other.asked
    assert same._replace(headers={}) == asked._replace(headers={})
    for header in ("content-type", "if-match", "if-none-match"):
        assert same.headers.get(header) == asked.headers.get(header)


FAILURES: list[list[Any]] = [
    [(503, {"detail": "busy"})],
    [(502, {"detail": "busy"})],
    [(503, {"detail": "busy"})] * 3,
    [(404, {"detail": "no"})],
    [(422, {"detail": "no", "error": "InvalidPolicy"})],
    [(500, "?")],
    [httpx2.ConnectError("refused")],
    [httpx2.ReadError("lost")],
    [httpx2.ConnectError("refused")] * 3,
]


@pytest.mark.parametrize("failures", FAILURES)
@pytest.mark.parametrize("name", ["feed", "unsubscribe", "publish"])
def test_both_clients_fail_alike(name: str, failures: list[Any], pauses: list[float]) -> None:
    answers = [*failures, *([(200, ANSWERS[name])] if name in ANSWERS else [])]
    one, other = Recorder(*answers), Recorder(*answers)
    with blocking(one, retries=2) as client:
        expected = outcome(lambda: CALLS[name](client))
    made = len(pauses)
    assert outcome(lambda: run(other, name, retries=2)) == expected
    assert len(other.asked) == len(one.asked)
    assert len(pauses) == 2 * made


def test_a_table_becomes_a_table() -> None:
    delivery = Delivery("ada", "e", 0.5, 1, {"name": "sliding"}, ("s1",), 1, 0)

    async def work() -> pa.Table:
        answer = (200, {"deliveries": [delivery.to_dict()]})
        async with asynchronous(Recorder(answer)) as client:
            return await client.publish_table(pa.table({"id": ["e"]}))

    assert asyncio.run(work())["event"].to_pylist() == ["e"]


def test_requests_of_one_client_may_run_at_the_same_time() -> None:
    async def work() -> list[Any]:
        async with asynchronous(Recorder()) as client:
            return await asyncio.gather(*(client.feed(name) for name in "abc"))

    assert asyncio.run(work()) == [[], [], []]


def test_a_client_is_closed_by_its_context() -> None:
    async def work() -> AsyncClient:
        async with asynchronous(Recorder()) as client:
            assert not client._http.is_closed
        return client

    assert asyncio.run(work())._http.is_closed


def test_a_change_that_is_not_applied_in_time_is_an_error() -> None:
    recorder = Recorder((200, {"applied": False}))
    with pytest.raises(ServiceError, match="has not applied it yet"):
        run(recorder, "subscribe")
