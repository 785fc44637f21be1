"""Feeds for readers: documents that parse whatever an event carries, at addresses that end."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from tests.service.running import client_of, server_at

from tidings import Delivery
from tidings.service.routes.reader_feeds import write_atom, write_json_feed
from tidings.store import open_store

ATOM = "{http://www.w3.org/2005/Atom}"


def delivery(
    event: str, content: dict[str, Any] | None = None, subscriber: str = "ada"
) -> Delivery:
    text = None if content is None else json.dumps(content)
    return Delivery(subscriber, event, 0.5, 1, {"start": "a", "end": "b"}, ("s",), 0, 0, text)


def test_the_usual_fields_are_shown_and_links_are_checked() -> None:
    good = {"title": "Big <Fish> & co", "url": "https://example.com/?a=1&b=2", "summary": "<b>"}
    bad = {"name": "x", "link": "javascript:alert(1)"}
    deliveries = [delivery("e2", good), delivery("e1", bad), delivery("e0")]
    entries = ET.fromstring(write_atom("t", "ada", deliveries)).findall(f"{ATOM}entry")
    titles = [entry.findtext(f"{ATOM}title") for entry in entries]
    assert titles == ["Big <Fish> & co", "x", "e0"]
    assert entries[0].findtext(f"{ATOM}content") == "<b>"
    links = [entry.find(f"{ATOM}link") for entry in entries]
    assert [None if link is None else link.get("href") for link in links] == [
        good["url"],
        None,
        None,
    ]
    items = json.loads(write_json_feed("t", "ada", deliveries))["items"]
    assert [item["title"] for item in items] == titles
    assert [item.get("url") for item in items] == [good["url"], None, None]
    assert [item["id"] for item in items] == [entry.findtext(f"{ATOM}id") for entry in entries]


@given(
    name=st.text(min_size=1),
    content=st.dictionaries(
        st.sampled_from(["title", "link", "summary", "other"]),
        st.one_of(st.text(), st.integers(), st.none(), st.text().map("http://x/{}".format)),
    ),
)
def test_every_content_gives_documents_that_parse(name: str, content: dict[str, Any]) -> None:
    deliveries = [delivery(name, content, name)]
    feed = ET.fromstring(write_atom("t", name, deliveries))
    assert len(feed.findall(f"{ATOM}entry")) == 1
    for link in feed.iter(f"{ATOM}link"):
        assert str(link.get("href")).startswith(("http://", "https://", "mailto:"))
    assert len(json.loads(write_json_feed("t", name, deliveries))["items"]) == 1


def test_an_address_ends_when_it_is_changed(tmp_path: Path) -> None:
    address = str(tmp_path / "tidings.db")
    with open_store(address) as store:
        store.catalogue.put({"id": "ada"}, {"id": "bob"})
        store.notifications.append("q", 0, [delivery("e1", {"title": "Big Fish"})])
        ada = store.tokens.create("subscriber", 0, subscriber="ada")
        assert ada not in str(store.feed_addresses.find("nothing"))
    with server_at(address) as server, client_of(server, ada) as client, client_of(server) as any_:
        assert client.post("/v1/feeds/bob/address").status_code == 403
        made = client.post("/v1/feeds/ada/address")
        assert made.status_code == 201, made.text
        atom = any_.get(made.json()["atom"])
        assert atom.headers["content-type"].startswith("application/atom+xml")
        assert b"Big Fish" in atom.content
        items = any_.get(made.json()["json"]).json()["items"]
        assert [item["title"] for item in items] == ["Big Fish"]
        seen = {"If-None-Match": atom.headers["etag"]}
        assert any_.get(made.json()["atom"], headers=seen).status_code == 304
        changed = client.post("/v1/feeds/ada/address").json()
        assert any_.get(made.json()["atom"]).status_code == 404
        assert any_.get(changed["atom"]).status_code == 200
        assert client.delete("/v1/feeds/ada/address").json() == {"removed": True}
        assert any_.get(changed["json"]).status_code == 404
        assert any_.get("/feeds/guess.atom").status_code == 404
