"""Webhooks as their owners meet them: put, listed, retried, removed, and hidden from others."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.channels.test_webhook import Clock, deliver, dispatching, events
from tests.service.receiving import receiver
from tests.service.running import client_of, eventually, server_at

from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

LOCAL_HOOKS = ServiceSettings(webhook_networks=("127.0.0.0/8",))
PUBLIC = "https://hooks.example.com/ada"


@pytest.fixture
def address(tmp_path: Path) -> str:
    path = str(tmp_path / "tidings.db")
    with open_store(path) as store:
        store.catalogue.put({"id": "ada"}, {"id": "bob"})
    return path


@contextmanager
def subscriber_of(address: str, server: WebServer, name: str) -> Iterator[httpx2.Client]:
    with open_store(address) as store:
        token = store.tokens.create("subscriber", 0, subscriber=name)
    with client_of(server, token) as client:
        yield client


def test_a_webhook_is_put_used_changed_and_removed(address: str) -> None:
    with receiver() as hook, server_at(address, LOCAL_HOOKS) as server, client_of(server) as client:
        path, form = "/v1/webhooks/w1", {"subscriber": "ada", "url": hook.url}
        put = client.put(path, json=form)
        assert put.status_code == 201, put.text
        assert put.json()["secret"].startswith("whsec_")
        assert "secret" not in client.get(path).json()
        again = client.put(path, json=form)
        assert (again.status_code, "secret" in again.json()) == (200, False)
        hook.statuses[:] = [500]
        with open_store(address) as store, dispatching(store, Clock()):
            deliver(store, 0, "e1")
            eventually(lambda: client.get(path).json()["failures"] == 1)
            failed = client.get(path).json()["failed"][0]
            assert (failed["sequence"], failed["attempts"]) == (1, 1)
            assert client.post(f"{path}/retry").json()["failures"] == 0
            eventually(lambda: client.get(path).json()["failed"] == [])
        assert events(hook) == ["e1", "e1"]
        assert client.post(f"{path}/secret").json()["secret"] != put.json()["secret"]
        assert [item["id"] for item in client.get("/v1/webhooks").json()["items"]] == ["w1"]
        assert client.delete(path).json() == {"removed": True}
        assert client.delete(path).status_code == 404


def test_subscribers_have_only_their_own(address: str) -> None:
    with server_at(address) as server, subscriber_of(address, server, "ada") as ada:
        with subscriber_of(address, server, "bob") as bob:
            assert ada.put("/v1/webhooks/w1", json={"url": PUBLIC}).status_code == 201
            for method in (bob.get, bob.delete):
                assert method("/v1/webhooks/w1").status_code == 404
            for action in ("secret", "retry"):
                assert bob.post(f"/v1/webhooks/w1/{action}").status_code == 404
            assert bob.get("/v1/webhooks/w1", params={"subscriber": "ada"}).status_code == 403
            assert bob.get("/v1/webhooks").json()["items"] == []
            other = {"url": PUBLIC, "subscriber": "ada"}
            assert bob.put("/v1/webhooks/w2", json=other).status_code == 403
            assert bob.put("/v1/webhooks/w1", json={"url": PUBLIC}).status_code == 201
        with open_store(address) as store:
            token = store.tokens.create("admin", 0)
        with client_of(server, token) as admin:
            assert admin.get("/v1/webhooks/w1").status_code == 409
            found = admin.get("/v1/webhooks/w1", params={"subscriber": "bob"})
            assert found.json()["subscriber"] == "bob"


@pytest.mark.parametrize(
    ("form", "status", "pointer"),
    [
        ({"subscriber": "ada", "url": "http://127.0.0.1/"}, 422, "/url"),
        ({"subscriber": "ada", "url": "http://169.254.169.254/latest"}, 422, "/url"),
        ({"subscriber": "ada", "url": "ftp://host"}, 422, "/url"),
        ({"subscriber": 7, "url": PUBLIC}, 422, "/subscriber"),
        ({"subscriber": "ada", "url": PUBLIC, "more": 1}, 422, "/more"),
        ({"url": PUBLIC}, 422, ""),
        ({"subscriber": "nobody", "url": PUBLIC}, 404, None),
    ],
)
def test_wrong_forms_are_problems(
    address: str, form: dict[str, object], status: int, pointer: str | None
) -> None:
    with server_at(address) as server, client_of(server) as client:
        answer = client.put("/v1/webhooks/w1", json=form)
        assert (answer.status_code, answer.json().get("pointer")) == (status, pointer), answer.text


def test_a_subscriber_has_few(address: str) -> None:
    settings = ServiceSettings(webhooks=1)
    with server_at(address, settings) as server, client_of(server) as client:
        form = {"subscriber": "ada", "url": PUBLIC}
        assert client.put("/v1/webhooks/w1", json=form).status_code == 201
        assert client.put("/v1/webhooks/w2", json=form).status_code == 409
