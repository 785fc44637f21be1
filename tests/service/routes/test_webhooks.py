"""Webhooks over HTTP: their addresses, their maximum, and ids that several subscribers use."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.service.routes.serving import Served, problem, serving
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.service.settings import ServiceSettings
from tidings.store.channels import FailedDelivery

URL = "https://hooks.example.com/ada"
NUMBERS = count()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = ServiceSettings(webhooks=2, webhook_hosts=("*.example.com",))
    with serving(tmp_path_factory.mktemp("webhooks"), settings) as running:
        yield running


@pytest.fixture
def owner(served: Served) -> str:
    """Return a subscriber that no other test has."""
    name = f"ada{next(NUMBERS)}"
    served.store.catalogue.put({"id": name})
    return name


def put(served: Served, name: str, owner: str, url: str = URL) -> Any:
    return served.admin.put(f"/v1/webhooks/{name}", json={"subscriber": owner, "url": url})


def test_the_secret_is_shown_once(served: Served, owner: str) -> None:
    first = put(served, owner, owner)
    assert first.status_code == 201
    form = first.json()
    [webhook] = served.store.webhooks.of(owner)
    assert form.pop("secret") == webhook.secret
    again = put(served, owner, owner)
    assert (again.status_code, again.json()) == (200, form)
    assert served.admin.get(f"/v1/webhooks/{owner}").json() == form
    assert {"id": owner, "subscriber": owner, "url": URL, "waiting": 0}.items() <= form.items()


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example.com", "https://ann:Sw0rdfish@a.example.com", "https://example.org/"),
        *("https://127.0.0.1/", "nonsense", "", 7, None),
    ],
)
def test_other_addresses_are_refused(served: Served, owner: str, url: Any) -> None:
    status, detail, _ = problem(put(served, owner, owner, url))
    assert status == 422
    assert "Sw0rdfish" not in detail
    assert served.store.webhooks.of(owner) == []


@pytest.mark.parametrize("form", [{}, {"url": URL}, {"subscriber": "", "url": URL}])
def test_an_admin_names_the_owner(served: Served, form: dict[str, Any]) -> None:
    assert served.admin.put("/v1/webhooks/w", json=form).status_code == 422


def test_the_owner_must_exist(served: Served) -> None:
    assert problem(put(served, "w", "nobody"))[:2] == (404, "there is no such subscriber")


def test_a_subscriber_has_a_maximum_of_webhooks(served: Served, owner: str) -> None:
    for number in range(2):
        assert put(served, f"{owner}-{number}", owner).status_code == 201
    assert problem(put(served, f"{owner}-2", owner)) == (
        409,
        "the subscriber has 2 webhooks, which is the maximum",
        None,
    )
    assert put(served, f"{owner}-1", owner).status_code == 200


def test_of_several_webhooks_with_an_id_the_owner_is_named(served: Served, owner: str) -> None:
    other = f"{owner}-other"
    served.store.catalogue.put({"id": other})
    for name in (owner, other):
        put(served, owner, name)
    path = f"/v1/webhooks/{owner}"
    several = (409, "several subscribers have a webhook with this id; pass a subscriber", None)
    assert problem(served.admin.get(path)) == several
    assert problem(served.admin.delete(path)) == several
    assert served.admin.get(path, params={"subscriber": other}).json()["subscriber"] == other
    assert served.admin.delete(path, params={"subscriber": other}).json() == {"removed": True}
    assert served.admin.get(path).json()["subscriber"] == owner


def test_a_subscriber_has_only_its_own(served: Served, owner: str) -> None:
    put(served, "theirs", owner)
    me = f"{owner}-me"
    own = served.as_subscriber(me)
    assert problem(own.get("/v1/webhooks/theirs")) == (404, "there is no such webhook", None)
    assert own.put("/v1/webhooks/mine", json={"url": URL}).status_code == 201
    assert own.put("/v1/webhooks/mine", json={"url": URL, "subscriber": owner}).status_code == 403
    assert [item["id"] for item in own.get("/v1/webhooks").json()["items"]] == ["mine"]
    assert own.get("/v1/webhooks", params={"subscriber": owner}).status_code == 403
    assert own.delete("/v1/webhooks/theirs").status_code == 404
    assert own.delete("/v1/webhooks/mine").json() == {"removed": True}


def test_what_waits_and_what_failed_is_shown_and_retried(served: Served, owner: str) -> None:
    put(served, owner, owner)
    [webhook] = served.store.webhooks.of(owner)
    served.store.notifications.append(owner, 0, [delivery(owner, f"e{n}") for n in range(3)])
    fail(served.store, webhook.key, FailedDelivery(1, 4, None, "status 500"), disabled="gone")
    path = f"/v1/webhooks/{owner}"
    state = served.admin.get(path).json()
    assert (state["sequence"], state["waiting"], state["disabled"]) == (1, 2, "gone")
    assert state["failed"] == [
        {"sequence": 1, "attempts": 4, "next_at": None, "reason": "status 500"}
    ]
    retried = served.admin.post(f"{path}/retry").json()
    assert (retried["disabled"], retried["failures"]) == (None, 0)
    assert retried["failed"][0]["attempts"] == 0


def test_a_new_secret_signs_beside_the_old_one_for_a_day(served: Served, owner: str) -> None:
    old = put(served, owner, owner).json()["secret"]
    new = served.admin.post(f"/v1/webhooks/{owner}/secret").json()["secret"]
    [webhook] = served.store.webhooks.of(owner)
    assert (webhook.secret, webhook.old_secret) == (new, old)
    assert new != old
    created_us = webhook.created_us
    assert 86_400 * 10**6 <= webhook.old_until_us - created_us <= 90_000 * 10**6


@pytest.mark.parametrize(
    ("method", "action"), [("GET", ""), ("DELETE", ""), ("POST", "/secret"), ("POST", "/retry")]
)
def test_a_webhook_that_does_not_exist_is_not_found(
    served: Served, method: str, action: str
) -> None:
    answer = served.admin.request(method, f"/v1/webhooks/none{action}")
    assert problem(answer) == (404, "there is no such webhook", None)
