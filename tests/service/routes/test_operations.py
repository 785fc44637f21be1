"""Operations: figures of a tenant, broad conditions, and letters that are taken up again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.service.running import client_of, delivered, eventually, server_at, service_at

from tidings.store import open_store
from tidings.store.engine_log import IndexVersion


def event(name: str, minute: int, **attributes: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:{minute:02d}:00Z"
    return {"id": name, "published_at": at, "attributes": attributes}


@pytest.fixture
def client(address: str) -> Iterator[httpx2.Client]:
    with service_at(address) as running:
        running.put("/v1/subscribers/ada", json={"policy": {"k": 5}})
        for name, where in (("all", "genre is not null"), ("typo", "gener = 'drama'")):
            form = {"subscriber": "ada", "where": where}
            running.put(f"/v1/subscriptions/{name}", json=form, params={"wait": "applied"})
        yield running


def test_a_late_event_is_listed_and_taken_up_again(client: httpx2.Client) -> None:
    client.post("/v1/events", json=event("e1", 5, genre="drama"), params={"wait": "delivered"})
    client.post("/v1/events", json=event("e2", 3, genre="comedy"), params={"wait": "delivered"})
    [letter] = eventually(lambda: client.get("/v1/letters?kind=late").json()["items"])
    assert (letter["record"]["id"], letter["reason"]) == ("e2", "published before the watermark")
    figures = client.get("/v1/operations").json()
    assert figures["letters"] == {"late": 1, "dead": 0}
    assert (figures["publications"]["last"], figures["delivered"]) == (2, 1)
    assert (figures["subscribers"], figures["subscriptions"]) == (1, 2)
    assert figures["index"]["applied"] == figures["index"]["version"] == 3
    assert figures["samples"]["published"]
    answer = client.post("/v1/letters:retry", json={"ids": [letter["id"], 77]}).json()
    assert answer["published"] == 1
    assert answer["problems"] == [{"id": 77, "detail": "there is no waiting letter with this id"}]
    assert delivered(client, "ada", 2) == ["e1", "e2"]
    assert client.get("/v1/letters?kind=late").json() == {"items": [], "next": None}
    refused = client.post("/v1/letters:retry", json={"ids": []})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/ids")


def test_the_last_index_files_of_a_pipeline_on_spark_are_listed(
    client: httpx2.Client, address: str
) -> None:
    assert client.get("/v1/operations").json()["index"]["files"] == []
    with open_store(address) as store:
        for version in (1, 2, 3, 2, 14):  # the folder was deleted once
            store.log.note_index(IndexVersion(version, 7, 1, 0, version * 10**6))
    [last, *others] = client.get("/v1/operations").json()["index"]["files"]
    assert last == {
        "version": 14,
        "source": 7,
        "parts": 1,
        "changes": 0,
        "built_at": "1970-01-01T00:00:14Z",
    }
    assert others == []


def test_broad_and_silent_conditions_are_named_with_a_hint(client: httpx2.Client) -> None:
    assert client.get("/v1/operations/conditions").json()["unmatched"]["count"] == 0
    events = [event(f"e{number}", number, genre="drama") for number in range(8)]
    client.post("/v1/events", json=events, params={"wait": "delivered"})
    report = client.get("/v1/operations/conditions").json()
    assert (report["publications"], report["subscriptions"]) == (8, 2)
    [broad] = report["broad"]
    assert broad == {
        "subscription": "all",
        "subscriber": "ada",
        "where": "genre is not null",
        "matches": 8,
    }
    assert {subscription["subscription"] for subscription in report["slow"]} == {"all", "typo"}
    assert all(subscription["microseconds"] >= 0 for subscription in report["slow"])
    [silent] = report["unmatched"]["items"]
    assert silent["subscription"] == "typo"
    assert "genre" in silent["hint"]


def test_tenants_and_roles_are_kept_apart(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        tokens = {
            role: store.tokens.create(role, 1, subscriber="ada" if role == "subscriber" else None)
            for role in ("publisher", "subscriber")
        }
        tokens["other"] = store.tokens.create("admin", 1, tenant="other")
        tokens["admin"] = store.tokens.create("admin", 1)
    paths = ("/v1/operations", "/v1/operations/conditions", "/v1/letters")
    with server_at(address) as server:
        for role in ("publisher", "subscriber"):
            with client_of(server, tokens[role]) as client:
                assert {client.get(path).status_code for path in paths} == {403}
                assert client.post("/v1/letters:retry", json={"ids": [1]}).status_code == 403
        with client_of(server, tokens["admin"]) as client:
            client.post("/v1/events", json=event("e1", 1))
            assert client.get("/v1/operations").json()["publications"]["waiting"] == 1
        with client_of(server, tokens["other"]) as client:
            assert client.get("/v1/operations").json()["publications"]["waiting"] == 0
