"""Access: every path asks for the right role, and nobody reaches another subscriber or tenant."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.service.running import client_of, delivered, pipeline_at, server_at

from tidings.errors import TidingsError
from tidings.service.server import check_exposure
from tidings.service.settings import ServiceSettings
from tidings.store import open_store


class Callers(NamedTuple):
    """Clients of one service, each with a token."""

    admin: httpx2.Client
    publisher: httpx2.Client
    ada: httpx2.Client
    other: httpx2.Client
    nobody: httpx2.Client


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    address = str(tmp_path_factory.mktemp("access") / "t.db")
    with open_store(address) as store:
        create = store.tokens.create
        tokens = [
            create("admin", 1),
            create("publisher", 1),
            create("subscriber", 1, subscriber="ada"),
            create("admin", 1, tenant="acme"),
            None,
        ]
    with (
        server_at(address, ServiceSettings(rate=10_000)) as server,
        pipeline_at(address),
        pipeline_at(address, "acme"),
    ):
        callers = Callers(*(client_of(server, token) for token in tokens))
        for name in ("ada", "bob"):
            callers.admin.put(f"/v1/subscribers/{name}", json={"policy": {"k": 2}})
            wish = {"subscriber": name, "where": "n = 1"}
            callers.admin.put(f"/v1/subscriptions/{name}-1", json=wish)
        callers.publisher.post("/v1/events", json={"id": "e1", "attributes": {"n": 1}})
        delivered(callers.admin, "ada", 1)
        yield callers
        for client in callers:
            client.close()


CALLS: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/subscribers/ada", {}),
    ("GET", "/v1/subscribers/ada", None),
    ("GET", "/v1/subscribers", None),
    ("PUT", "/v1/subscriptions/ada-2", {"subscriber": "ada", "where": "n = 2"}),
    ("GET", "/v1/subscriptions/ada-1", None),
    ("GET", "/v1/subscriptions", None),
    ("GET", "/v1/subscriptions:export", None),
    ("POST", "/v1/events", {"id": "e1", "attributes": {}}),
    ("GET", "/v1/feeds/ada", None),
    ("GET", "/v1/notifications/ada", None),
    ("POST", "/v1/notifications/ada/read", {"sequence": 1}),
    ("POST", "/v1/target", {"event": {"attributes": {}}}),
    ("GET", "/v1/explain?subscriber=ada&event=e1", None),
    ("GET", "/v1/decisions/ada", None),
    ("GET", "/v1/attributes", None),
    ("POST", "/v1/conditions:check", {"where": "n = 1"}),
    ("POST", "/v1/preview", {"subscriber": "ada"}),
    ("GET", "/metrics", None),
]
ANYONE = {"/v1/attributes", "/v1/conditions:check"}
OWN = {path for _, path, _ in CALLS} & {
    "/v1/subscribers/ada",
    "/v1/subscriptions/ada-1",
    "/v1/subscriptions/ada-2",
    "/v1/subscriptions",
    "/v1/feeds/ada",
    "/v1/notifications/ada",
    "/v1/notifications/ada/read",
    "/v1/explain?subscriber=ada&event=e1",
    "/v1/decisions/ada",
    "/v1/preview",
    *ANYONE,
}


@pytest.mark.parametrize(("method", "path", "form"), CALLS)
def test_roles(callers: Callers, method: str, path: str, form: Any) -> None:
    statuses = [
        client.request(method, path, json=form).status_code
        for client in (callers.admin, callers.publisher, callers.ada, callers.nobody)
    ]
    publishes = path in {"/v1/events", "/v1/target", *ANYONE}
    assert statuses[0] < 300
    assert statuses[1] < 300 if publishes else statuses[1] == 403
    assert statuses[2] < 300 if path in OWN else statuses[2] == 403
    assert statuses[3] == 401


@pytest.mark.parametrize("name", ["bob", "nobody-at-all"])
@pytest.mark.parametrize(
    "call",
    [
        ("GET", "/v1/subscribers/{}", None),
        ("PUT", "/v1/subscribers/{}", {}),
        ("GET", "/v1/subscriptions?subscriber={}", None),
        ("GET", "/v1/feeds/{}", None),
        ("GET", "/v1/notifications/{}", None),
        ("POST", "/v1/notifications/{}/read", {"sequence": 1}),
        ("GET", "/v1/explain?subscriber={}&event=e1", None),
        ("GET", "/v1/decisions/{}", None),
        ("POST", "/v1/preview", {"subscriber": "{}"}),
    ],
)
def test_a_subscriber_learns_nothing_of_another(callers: Callers, call: Any, name: str) -> None:
    """Not even whether it exists."""
    method, path, form = call
    filled = form and {key: name if value == "{}" else value for key, value in form.items()}
    answer = callers.ada.request(method, path.format(name), json=filled)
    assert answer.status_code == 403
    assert (
        answer.json()["detail"] == "a token with the role subscriber may access only its own feed"
    )


def test_everyone_may_ask_who_it_is(callers: Callers) -> None:
    who = [client.get("/v1/me").json() for client in callers[:4]]
    assert [(form["role"], form["subscriber"], form["tenant"]) for form in who] == [
        ("admin", None, "default"),
        ("publisher", None, "default"),
        ("subscriber", "ada", "default"),
        ("admin", None, "acme"),
    ]
    assert callers.nobody.get("/v1/me").json()["role"] is None
    for token in ("Bearer x", "Bearer tidings_0123456789abcdef_" + "A" * 43):
        answer = callers.nobody.get("/v1/me", headers={"Authorization": token})
        assert answer.status_code == 401


def test_another_ones_subscription_is_like_one_that_does_not_exist(callers: Callers) -> None:
    answers = [callers.ada.get(f"/v1/subscriptions/{name}") for name in ("bob-1", "none")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert callers.ada.post("/v1/preview", json={"where": "true"}).status_code == 200


def test_a_subscriber_edits_what_is_its_own(callers: Callers) -> None:
    ada, path = callers.ada, "/v1/subscriptions/ada:films"
    wish = {"subscriber": "ada", "where": "n = 3"}
    assert ada.put(path, json=wish).status_code == 201
    assert ada.put(path, json={**wish, "where": "n = 4"}).status_code == 200
    assert ada.put(path, json=wish, headers={"If-None-Match": "*"}).status_code == 412
    assert ada.get(path).json()["where"] == "n = 4"
    assert ada.put("/v1/subscriptions/ada-1", json={**wish, "where": "n = 1"}).status_code == 200
    form = {"policy": {"k": 3}, "prefers": [["ada-1", "ada:films"]]}
    assert ada.put("/v1/subscribers/ada", json=form).status_code == 200
    assert ada.get("/v1/subscribers/ada").json()["policy"]["k"] == 3
    assert ada.put("/v1/subscribers/ada", json={"policy": {"k": 10**7}}).status_code == 422
    assert ada.delete(path).status_code == 200
    assert ada.delete(path).status_code == 404
    assert ada.delete("/v1/subscribers/ada").status_code == 403


@pytest.mark.parametrize("name", ["bob-1", "bob:1", "nothing", "ada", "ada:x:1", ":1", "bob:ada:1"])
def test_a_subscriber_cannot_put_where_another_could_be(callers: Callers, name: str) -> None:
    """Whether the id is taken or not, the refusal is the same."""
    before = callers.admin.get("/v1/subscriptions/bob-1").json()
    wish = {"subscriber": "ada", "where": "n = 9"}
    for headers in ({}, {"If-Match": "*"}, {"If-None-Match": "*"}):
        answer = callers.ada.put(f"/v1/subscriptions/{name}", json=wish, headers=headers)
        assert answer.status_code == 403
        refused = callers.ada.put("/v1/subscriptions/free", json=wish, headers=headers)
        assert answer.json() == refused.json()
    assert callers.ada.delete(f"/v1/subscriptions/{name}").status_code == 404
    assert callers.admin.get("/v1/subscriptions/bob-1").json() == before


@pytest.mark.parametrize("owner", ["bob", "", 7, None, ["ada"], "nobody"])
def test_a_subscriber_cannot_put_or_move_for_another(callers: Callers, owner: Any) -> None:
    for name in ("ada-1", "ada:new", "bob-1"):
        wish = {"subscriber": owner, "where": "n = 1"}
        assert callers.ada.put(f"/v1/subscriptions/{name}", json=wish).status_code == 403
    assert callers.admin.get("/v1/subscriptions/ada-1").json()["subscriber"] == "ada"
    assert callers.admin.get("/v1/subscriptions/ada:new").status_code == 404


def test_an_id_that_an_admin_gave_away_is_not_taken_back(callers: Callers) -> None:
    path, wish = "/v1/subscriptions/ada:gift", {"subscriber": "bob", "where": "n = 5"}
    assert callers.admin.put(path, json=wish).status_code == 201
    for where in ("n = 5", "n = 6"):
        answer = callers.ada.put(path, json={"subscriber": "ada", "where": where})
        assert answer.status_code == 412
    assert callers.admin.get(path).json()["subscriber"] == "bob"
    assert callers.admin.delete(path).status_code == 200


def test_a_subscriber_is_known_by_its_token(tmp_path) -> None:
    """Even if nobody has put it, or anything of it, yet."""
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        token = store.tokens.create("subscriber", 1, subscriber="eve")
    with server_at(address) as server, client_of(server, token) as eve:
        assert eve.get("/v1/subscribers/eve").json()["id"] == "eve"
        assert eve.get("/v1/notifications/eve").json()["items"] == []
        assert eve.get("/v1/feeds/eve").json()["items"] == []
        assert eve.get("/v1/decisions/eve").json()["items"] == []
        assert eve.post("/v1/preview", json={"subscriber": "eve"}).status_code == 200
        assert eve.get("/v1/notifications/ada").status_code == 403


def test_a_subscriber_has_a_limit_of_its_own(tmp_path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        token = store.tokens.create("subscriber", 1, subscriber="ada")
    settings = ServiceSettings(subscriptions=2)
    with server_at(address, settings) as server, client_of(server, token) as ada:
        wish = {"subscriber": "ada", "where": "n = 1"}
        paths = [f"/v1/subscriptions/ada:{number}" for number in range(3)]
        assert [ada.put(path, json=wish).status_code for path in paths] == [201, 201, 409]
        assert ada.put(paths[0], json=wish).status_code == 200


def test_tenants_share_nothing(callers: Callers) -> None:
    other = callers.other
    assert other.get("/v1/subscribers").json()["items"] == []
    assert other.get("/v1/subscriptions:export").text == ""
    for path in ("subscribers/ada", "subscriptions/ada-1", "feeds/ada", "notifications/ada"):
        assert other.get(f"/v1/{path}").status_code == 404
    assert other.get("/v1/explain?subscriber=ada&event=e1").status_code == 404
    question = {"event": {"attributes": {"n": 1}}, "scorer": "relaxed"}
    assert other.post("/v1/target", json=question).json()["items"] == []
    other.put("/v1/subscribers/ada", json={"policy": {"k": 1}})
    other.put("/v1/subscriptions/ada-1", json={"subscriber": "ada", "where": "n = 1"})
    event = {"id": "e1", "attributes": {"n": 1}, "content": {"of": "acme"}}
    assert other.post("/v1/events", json=event).json()["accepted"] == 1
    assert delivered(other, "ada", 1) == ["e1"]
    assert other.get("/v1/notifications/ada").json()["items"][0]["content"] == {"of": "acme"}
    assert "content" not in callers.admin.get("/v1/notifications/ada").json()["items"][0]
    assert callers.admin.get("/v1/subscribers/ada").json()["policy"]["k"] != 1


def test_readers_of_a_feed_count_for_its_tenant_only(callers: Callers) -> None:
    callers.other.put("/v1/subscribers/eve", json={})
    address = callers.other.post("/v1/feeds/eve/address").json()["atom"]
    assert callers.nobody.get(address).status_code == 200
    counted = 'path="/feeds/{secret}.atom"'
    assert counted in callers.other.get("/metrics").text
    assert counted not in callers.admin.get("/metrics").text


@pytest.mark.parametrize("token", ["x", "tidings_0123456789abcdef_" + "A" * 43, "é"])
def test_another_token_is_refused(callers: Callers, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode()}
    assert callers.nobody.get("/v1/subscribers", headers=headers).status_code == 401


def test_a_revoked_token_is_refused_at_once(tmp_path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store, server_at(address) as server:
        with client_of(server) as client:
            assert client.get("/v1/subscribers").status_code == 200
            token = store.tokens.create("admin", 1, expires_us=int(time.time() * 2e6))
            assert client.get("/v1/subscribers").status_code == 401
        with client_of(server, token) as client:
            assert client.get("/v1/subscribers").status_code == 200
            store.tokens.revoke(store.tokens.listed()[0].id, 2)
            assert client.get("/v1/subscribers").status_code == 401


def test_without_tokens_only_this_machine_is_answered(tmp_path) -> None:
    address = str(tmp_path / "t.db")
    with pytest.raises(TidingsError, match=r"without tokens .* 0\.0\.0\.0"):
        check_exposure(address, "0.0.0.0")
    with server_at(address) as server, client_of(server) as client:
        answer = client.get("/v1/subscribers", headers={"Host": "evil.example"})
        assert answer.status_code == 403
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
            answer = client.get("/v1/subscribers", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status
    with open_store(address) as store:
        store.tokens.create("admin", 1)
    check_exposure(address, "0.0.0.0")


def test_too_many_requests_are_refused(tmp_path) -> None:
    settings = ServiceSettings(rate=1)
    with server_at(str(tmp_path / "t.db"), settings) as server, client_of(server) as client:
        assert client.get("/v1/subscribers").status_code == 200
        answers = (client.get("/v1/subscribers") for _ in range(100))
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
