"""Previews of templates: in every layout, of a subscriber's notifications or of some content."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.service.running import client_of, server_at
from tests.service.test_webhooks import subscriber_of
from tests.store.appender import delivery

from tidings.channels.card import CardTemplate
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

PATH = "/v1/templates:preview"


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    path = str(tmp_path_factory.mktemp("templates") / "t.db")
    with server_at(path) as server, client_of(server) as client:
        yield client


def test_a_template_is_shown_everywhere(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        store.catalogue.put({"id": "ada"})
        store.notifications.append("q", 0, [delivery("ada", "e1"), delivery("ada", "e2")])
    with server_at(address) as server, client_of(server) as admin:
        sample = admin.post(PATH, json={}).json()
        assert set(sample) == {"heading", "text", "html", "slack", "teams"}
        assert sample["heading"] == "A title"
        question = {
            "template": {"title": "{{name}} ({{year}})", "link": "https://x.example/{{name}}"},
            "content": {"name": "<b>Big Fish</b>", "year": 2003},
        }
        shown = admin.post(PATH, json=question).json()
        assert shown["heading"] == "<b>Big Fish</b> (2003)"
        assert "&lt;b&gt;Big Fish" in shown["html"]
        assert "https://x.example/%3Cb%3EBig%20Fish%3C%2Fb%3E" in shown["text"]
        newest = admin.post(PATH, json={"subscriber": "ada"}).json()
        assert newest["heading"] == "e2, and 1 more"
        with subscriber_of(address, server, "bob") as bob:
            assert bob.post(PATH, json={"subscriber": "ada"}).status_code == 403
            assert bob.post(PATH, json={"subscriber": "bob"}).status_code == 409
            assert bob.post(PATH, json={}).status_code == 200


def test_a_tenant_may_have_a_template_of_its_own(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    settings = ServiceSettings(templates={"shop": CardTemplate.load({"title": "{{sku}}"})})
    for tenant in ("default", "shop"):
        open_store(address, tenant=tenant).close()
        with open_store(address) as store:
            token = store.tokens.create("admin", 0, tenant=tenant)
        with server_at(address, settings) as server, client_of(server, token) as admin:
            shown = admin.post(PATH, json={"content": {"title": "A", "sku": "B"}}).json()
            assert shown["heading"] == ("B" if tenant == "shop" else "A")


@pytest.mark.parametrize(
    ("form", "pointer", "detail"),
    [
        ({"template": {"title": "a\n{{#x}}"}}, "/template/title", "title: line 2: {{#x}}"),
        ({"template": {"titel": "a"}}, "/template/titel", "unknown field 'titel'"),
        ({"template": []}, "/template", "an object of texts"),
        ({"content": 7}, "/content", "`content` is an object"),
        ({"subscriber": ""}, "/subscriber", "non-empty string"),
        ({"colour": 1}, "/colour", "unknown field"),
    ],
)
def test_a_mistake_is_found(admin: httpx2.Client, form: Any, pointer: str, detail: str) -> None:
    problem = admin.post(PATH, json=form).json()
    assert problem["status"] == 422
    assert problem["pointer"] == pointer
    assert detail in problem["detail"]
