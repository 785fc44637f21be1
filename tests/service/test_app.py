"""The service as its users meet it: subscribe, publish, receive, ask."""

from collections.abc import Iterator

import httpx2
import pytest
from tests.service.running import delivered, lines, service_at

POLICY = {"k": 2, "window": {"name": "sliding", "length": 10}}


@pytest.fixture
def client(address: str) -> Iterator[httpx2.Client]:
    with service_at(address) as running:
        yield running


def test_subscribe_publish_receive_ask(client: httpx2.Client) -> None:
    put = client.put("/v1/subscribers/ada", json={"policy": POLICY})
    assert put.status_code == 201, put.text
    form = {"subscriber": "ada", "where": "genre = 'drama'", "prefrank": 0.9}
    put = client.put("/v1/subscriptions/s1", params={"wait": "applied"}, json=form)
    assert put.json()["applied"] is True
    event = {"id": "e1", "attributes": {"genre": "drama"}, "content": {"title": "Big Fish"}}
    assert client.post("/v1/events", json=event).json()["accepted"] == 1
    assert client.post("/v1/events", json=event).json()["repeated"] == 1
    assert delivered(client, "ada", 1) == ["e1"]
    page = client.get("/v1/notifications/ada").json()
    assert page["items"][0]["content"] == {"title": "Big Fish"}
    assert page["inbox"] == {"last": 1, "read": 0, "unread": 1}
    read = client.post("/v1/notifications/ada/read", json={"sequence": 1})
    assert read.json() == {"last": 1, "read": 1, "unread": 0}
    assert [item["event"] for item in client.get("/v1/feeds/ada").json()["items"]] == ["e1"]
    why = client.get("/v1/explain", params={"subscriber": "ada", "event": "e1"}).json()
    assert "delivered with rank 0.9" in why["text"]
    question = {"event": {"attributes": {"genre": "drama"}}, "scorer": "relaxed"}
    target = client.post("/v1/target", json=question)
    assert target.json()["items"] == [{"subscription": "s1", "score": 1.0}]
    preview = client.post("/v1/preview", json={"where": "genre = 'drama'"}).json()
    assert [item["event"] for item in preview["items"]] == ["e1"]
    assert client.get("/health").json() == {"status": "ok"}
    metrics = client.get("/metrics").text
    assert 'tidings_publications_total{result="accepted"} 1.0' in metrics
    assert "tidings_publications_waiting 0.0" in metrics
    assert 'path="/v1/feeds/{subscriber}",status="200"' in metrics
    assert 'tidings_webhooks{state="working"} 0.0' in metrics
    assert 'tidings_addresses{kind="mail",state="working"} 0.0' in metrics
    assert 'tidings_address_messages{kind="slack",state="waiting"} 0.0' in metrics
    assert 'tidings_webhook_messages{state="given_up"} 0.0' in metrics
    assert client.get("/docs").status_code == 200


def test_ids_may_hold_slashes(client: httpx2.Client) -> None:
    path = "/v1/subscribers/team%2Fada"
    assert client.put(path, json={"policy": POLICY}).status_code == 201
    assert client.get(path).json()["id"] == "team/ada"
    assert client.get("/v1/subscribers/team/ada").status_code == 404
    form = {"subscriber": "team/ada", "where": "a = 1"}
    put = client.put("/v1/subscriptions/team%2F1", params={"wait": "applied"}, json=form)
    assert put.status_code == 201
    client.post("/v1/events", json={"id": "e/1", "attributes": {"a": 1}})
    assert delivered(client, "team%2Fada", 1) == ["e/1"]
    assert client.post("/v1/notifications/team%2Fada/read", json={"sequence": 1}).is_success
    assert client.post(f"{path}/pause").is_success
    assert client.delete(path).is_success


def test_records_are_imported_listed_exported_and_removed(client: httpx2.Client) -> None:
    body = lines(
        {"id": "ada", "policy": POLICY},
        {"id": "s1", "subscriber": "ada", "where": "a = 1"},
        {"id": "s2", "subscriber": "ada", "where": "a ="},
    )
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/v1/subscriptions:import", content=body, headers=headers).json()
    assert (answer["accepted"], answer["refused"]) == (2, 1)
    assert answer["problems"][0]["position"] == 3
    listed = client.get("/v1/subscriptions", params={"subscriber": "ada"}).json()
    assert [item["id"] for item in listed["items"]] == ["s1"]
    exported = client.get("/v1/subscriptions:export").text.splitlines()
    assert len(exported) == 2
    assert client.delete("/v1/subscribers/ada").status_code == 200
    assert client.get("/v1/subscriptions/s1").status_code == 404


def test_an_error_is_a_problem_that_points_at_the_field(client: httpx2.Client) -> None:
    answer = client.put("/v1/subscriptions/s1", json={"subscriber": "ada", "where": "a = 1 and ="})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["pointer"], problem["position"]) == ("/where", 10)
