"""The client for ordinary code: what each method sends, and when it is sent again."""

import json
from types import SimpleNamespace
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from tests.client.recorded import (
    ANSWERS,
    CALLS,
    EVENT,
    EXPECTED,
    FORM,
    NOT_REPEATED,
    Recorder,
    blocking,
)

from tidings import Client, Delivery, Event, InvalidSubscription, ServiceError
from tidings.client.blocking import KEPT


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Keep the pauses of clients instead of waiting; other threads sleep as ever."""
    made = list[float]()
    monkeypatch.setattr("tidings.client.blocking.time", SimpleNamespace(sleep=made.append))
    return made


def recorder_for(name: str, *before: Any) -> Recorder:
    return Recorder(*before, *([(200, ANSWERS[name])] if name in ANSWERS else []))


@pytest.mark.parametrize("name", CALLS)
def test_each_method_has_its_request(name: str) -> None:
    recorder = recorder_for(name)
    with blocking(recorder) as client:
        CALLS[name](client)
    [asked] = recorder.asked
    assert (asked.method, asked.path) == (EXPECTED[name][0], f"/base/v1/{EXPECTED[name][1]}")


def test_every_public_method_is_among_them() -> None:
    others = {"publish_table", "explain", "follow", "close"}
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public - others == {*CALLS} == {*EXPECTED}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_only_what_may_be_repeated_is_sent_again(
    name: str, status: int, pauses: list[float]
) -> None:
    may_be_done = status in (502, 504)
    recorder = recorder_for(name, (status, {"detail": "busy"}))
    with blocking(recorder) as client:
        if may_be_done and name in NOT_REPEATED:
            with pytest.raises(ServiceError, match="busy"):
                CALLS[name](client)
            assert (len(recorder.asked), pauses) == (1, [])
        else:
            CALLS[name](client)
            assert (len(recorder.asked), len(pauses)) == (2, 1)
            assert recorder.asked[0] == recorder.asked[1]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_busy_service_is_given_up_after_so_many_retries(
    retries: int, pauses: list[float]
) -> None:
    recorder = Recorder(*[(503, {"detail": "busy"})] * 9)
    with blocking(recorder, retries=retries) as client, pytest.raises(ServiceError) as error:
        client.feed("ada")
    assert error.value.status == 503
    assert (len(recorder.asked), len(pauses)) == (retries + 1, retries)
    assert pauses == sorted(pauses)  # each is longer than the one before


def test_a_service_says_when_to_come_again(pauses: list[float]) -> None:
    recorder = Recorder((429, ({"detail": "busy"}, {"Retry-After": "3"})))
    with blocking(recorder) as client:
        client.feed("ada")
    assert pauses == [3.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500])
def test_other_answers_are_final(status: int, pauses: list[float]) -> None:
    recorder = Recorder((status, {"detail": "no"}))
    expected = InvalidSubscription if status == 404 else ServiceError
    with blocking(recorder) as client, pytest.raises(expected, match="no"):
        client.feed("ada")
    assert pauses == []


def test_a_lost_connection_is_tried_again_unless_the_request_may_have_arrived() -> None:
    for error, name, requests in (
        (httpx2.ConnectError("refused"), "feed", 2),
        (httpx2.ReadError("lost"), "feed", 2),
        (httpx2.ConnectError("refused"), "unsubscribe", 2),
        (httpx2.ReadError("lost"), "unsubscribe", 1),
    ):
        recorder = Recorder(error)
        with blocking(recorder) as client:
            if requests == 1:
                with pytest.raises(ServiceError, match=r"cannot be reached: .*lost"):
                    CALLS[name](client)
            else:
                CALLS[name](client)
        assert len(recorder.asked) == requests


def test_a_service_that_is_not_there_is_named_without_its_user() -> None:
    recorder = Recorder(*[httpx2.ConnectError("refused")] * 2)
    with blocking(recorder, retries=1) as client, pytest.raises(ServiceError) as error:
        client.feed("ada")
    assert str(error.value).startswith(
        "the service at http://films.example/base/ cannot be reached: "
    )


def test_refused_records_become_dead_letters() -> None:
    problems = [{"position": 2, "detail": "no subscriber"}]
    recorder = Recorder((200, {"problems": problems}), (200, {"problems": problems}))
    with blocking(recorder) as client:
        bad = {"id": "s2", "where": "n = 1"}
        [letter] = client.add_many([FORM, bad])
        assert (letter.record, letter.reason) == (bad, "no subscriber")
        client.publish_many([EVENT, EVENT | {"id": "e2"}])
        assert [each.record["id"] for each in client.dead_letters] == ["s2", "e2"]


def test_only_the_latest_dead_letters_are_kept() -> None:
    with blocking(Recorder()) as client:
        client.dead_letters.extend([None] * (KEPT + 5))  # type: ignore[list-item]
        assert len(client.dead_letters) == KEPT


def test_events_go_in_requests_of_a_thousand_in_order() -> None:
    def answer(*names: str) -> tuple[int, Any]:
        deliveries = [
            Delivery("ada", name, 0.5, 1, {"name": "sliding"}, ("s1",), 1, 0).to_dict()
            for name in names
        ]
        return 200, {"problems": [], "deliveries": deliveries}

    recorder = Recorder(answer("a"), answer("b", "c"), answer())
    with blocking(recorder) as client:
        found = client.publish_many(Event(f"e{number}", {}, 0) for number in range(2_001))
    assert [delivery.event for delivery in found] == ["a", "b", "c"]
    lines = [asked.content.splitlines() for asked in recorder.asked]
    assert [len(each) for each in lines] == [1_000, 1_000, 1]
    ids = [json.loads(line)["id"] for each in lines for line in each]
    assert ids == [f"e{number}" for number in range(2_001)]


def test_nothing_is_published_without_events() -> None:
    recorder = Recorder()
    with blocking(recorder) as client:
        assert client.publish_many([]) == []
    assert recorder.asked == []


def test_a_table_becomes_a_table() -> None:
    delivery = Delivery("ada", "e", 0.5, 1, {"name": "sliding"}, ("s1",), 1, 0)
    recorder = Recorder((200, {"deliveries": [delivery.to_dict()]}))
    with blocking(recorder) as client:
        found = client.publish_table(pa.table({"id": ["e"]}))
    assert found["event"].to_pylist() == ["e"]
    [asked] = recorder.asked
    assert asked.headers["content-type"] == "application/vnd.apache.arrow.stream"
    sent = pa.ipc.open_stream(asked.content).read_all()
    assert sent.to_pydict() == {"id": ["e"]}


def test_a_client_is_closed_by_its_context() -> None:
    client = blocking(Recorder())
    with client as entered:
        assert entered is client
    assert client._http.is_closed


@pytest.mark.parametrize(
    ("name", "header"),
    [("subscribe", "if-none-match"), ("add", "if-none-match"), ("replace", "if-match")],
)
def test_what_is_added_is_new_and_what_is_replaced_exists(name: str, header: str) -> None:
    recorder = Recorder()
    with blocking(recorder) as client:
        CALLS[name](client)
    headers = recorder.asked[0].headers
    assert {each for each in headers if each.startswith("if-")} == {header}
    assert headers[header] == "*"
