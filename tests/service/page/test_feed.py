"""My feed in a real browser: live, read marks, what was not sent, and why."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import expect
from tests.ports import reserved_port
from tests.service.page.conftest import NARROW, Visit
from tests.service.running import (
    PATIENCE_S,
    SETTINGS,
    client_of,
    delivered,
    eventually,
    pipeline_at,
    server_at,
)

from tidings.store import open_store

POLICY = {"k": 2, "window": {"name": "sliding", "length": 4}}


class Site(NamedTuple):
    """A service with one subscriber, who got a film."""

    url: str
    client: httpx2.Client

    def feed(self, subscriber: str = "ada", **params: str) -> str:
        query = "".join(f"&{name}={value}" for name, value in params.items())
        return f"{self.url}/#/feed?subscriber={subscriber}{query}"

    def publish(self, name: str, genre: str = "drama", **content: Any) -> None:
        attributes = {"genre": genre, "year": 2003}
        form = {"id": name, "attributes": attributes, "content": {"title": name, **content}}
        self.client.post("/v1/events", json=form, params={"wait": "delivered"})

    def subscribe(self, name: str, policy: dict[str, Any], where: str = "true") -> None:
        self.client.put(f"/v1/subscribers/{name}", json={"policy": policy})
        form = {"subscriber": name, "where": where}
        path = f"/v1/subscriptions/{name}-1"
        self.client.put(path, json=form, params={"wait": "applied"})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    address = str(tmp_path_factory.mktemp("feed") / "t.db")
    settings = replace(SETTINGS, rate=100_000)
    with server_at(address, settings) as server, pipeline_at(address), client_of(server) as client:
        yield Site(f"http://127.0.0.1:{server.port}", client)


def test_what_is_sent_comes_live_and_is_marked_as_read(site: Site, visit: Visit) -> None:
    site.subscribe("ada", POLICY, "genre = 'drama'")
    page = visit(site.feed())
    expect(page.get_by_text("Nothing yet")).to_be_visible()
    expect(page.locator("header .state.live")).to_be_visible()
    site.publish("Big Fish", link="https://films.example/1", summary="A tall tale.")
    item = page.locator(".item")
    expect(item).to_have_count(1)
    expect(item.get_by_role("link", name="Big Fish")).to_have_attribute(
        "href", "https://films.example/1"
    )
    expect(item.get_by_role("link", name="Big Fish")).to_have_attribute(
        "rel", re.compile("noopener")
    )
    expect(item).to_contain_text("A tall tale.")
    expect(item).to_contain_text("ada-1")
    expect(item.locator(".rank .bar")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("New: Big Fish")
    expect(page.get_by_text("1 unread")).to_be_visible()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_text("All read", exact=True).first).to_be_visible()
    expect(page.locator(".item.unread")).to_have_count(0)
    assert site.client.get("/v1/notifications/ada").json()["inbox"]["unread"] == 0
    page.reload()
    expect(item).to_have_count(1)
    expect(page.locator(".item.unread")).to_have_count(0)


def test_why_and_why_not(site: Site, visit: Visit) -> None:
    policy = {"k": 1, "window": {"name": "sliding", "length": 2}}
    site.subscribe("eve", policy, "genre = 'horror'")
    best = {"subscriber": "eve", "where": "genre = 'horror' and loud = true", "prefrank": 1}
    site.client.put(
        "/v1/subscriptions/eve-1",
        json={"subscriber": "eve", "where": "genre = 'horror'", "prefrank": 0.4},
    )
    site.client.put("/v1/subscriptions/eve-2", json=best, params={"wait": "applied"})
    for number, loud in enumerate((True, False, True, False)):
        attributes = {"genre": "horror", "loud": loud}
        form = {
            "id": f"h{number}",
            "attributes": attributes,
            "content": {"title": f"Horror {number}"},
        }
        site.client.post("/v1/events", json=form, params={"wait": "delivered"})
    page = visit(site.feed("eve"))
    page.get_by_role("button", name="Why: Horror 2").click()
    why = page.locator(".item", has_text="Horror 2").locator(".why")
    expect(why).to_contain_text("Sent with rank 1, at position 1")
    expect(why.locator(".holds").first).to_contain_text("genre = 'horror'")
    expect(page).to_have_url(re.compile("why=h2"))
    page.get_by_role("link", name="Not sent").click()
    expect(page.locator(".item")).to_have_count(2)
    expect(page).to_have_url(re.compile("show=unsent"))
    page.get_by_role("button", name="Why: Horror 1").click()
    why = page.locator(".item", has_text="Horror 1").locator(".why")
    expect(why).to_contain_text("Its rank is 0.4. In the end others rank higher.")
    expect(why.locator(".rivals").first).to_contain_text("Horror 0")
    expect(why.locator(".fails").first).to_contain_text("loud is false")
    page.reload()
    expect(page.locator(".item .why")).to_contain_text("Its rank is 0.4")
    page.get_by_role("link", name="Not matched").click()
    expect(page.locator(".item").first).to_contain_text("No interest matches")


def test_too_similar_and_held_are_named(site: Site, visit: Visit) -> None:
    twin = {"name": "different", "min": 0.5, "within": "7d"}
    site.subscribe("tim", {"k": 5, "rules": [twin]}, "genre = 'western'")
    for name in ("w1", "w2"):
        site.publish(name, "western")
    delivered(site.client, "tim", 1)
    page = visit(site.feed("tim", show="unsent"), width=NARROW)
    expect(page.locator(".item")).to_contain_text("Dropped")
    page.get_by_role("button", name="Why: w2").click()
    expect(page.locator(".why")).to_contain_text("different dropped it")
    expect(page.locator(".why")).to_contain_text("its distance to w1")
    now = time.gmtime(time.time() - 3_600), time.gmtime(time.time() + 7_200)
    start, end = (time.strftime("%H:%M", each) for each in now)
    quiet = {"name": "quiet", "start": start, "end": end, "zone": "UTC"}
    site.subscribe("zoe", {"k": 5, "rules": [quiet]}, "genre = 'noir'")
    site.publish("n1", "noir")
    page = visit(site.feed("zoe", show="unsent"))
    expect(page.locator(".item .chip.warm")).to_have_text("Held")
    page.get_by_role("button", name="Why: n1").click()
    expect(page.locator(".why")).to_contain_text("The rule “quiet” holds it until")


def test_pictures_are_shown_only_to_those_who_want_them(site: Site, visit: Visit) -> None:
    site.subscribe("pia", {"k": 9}, "genre = 'photo'")
    site.publish("p1", "photo", image="https://pictures.example/1.svg")
    site.publish("p2", "photo", image="http://pictures.example/2.svg")
    delivered(site.client, "pia", 2)
    page = visit(f"{site.url}/#/none")
    asked = list[str]()

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        body = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
        route.fulfill(content_type="image/svg+xml", body=body)

    page.route("**/pictures.example/**", answer)
    page.goto(site.feed("pia"))
    expect(page.locator(".item")).to_have_count(2)
    assert asked == []
    page.get_by_label("Pictures").check()
    expect(page.locator(".item img.picture")).to_have_count(1)
    expect(page.locator("img.picture")).to_have_js_property("naturalWidth", 9)
    assert asked == ["https://pictures.example/1.svg"], "never by http"


def test_a_thousand_items_are_drawn_only_where_they_are_seen(site: Site, visit: Visit) -> None:
    site.subscribe("max", {"k": 1_000, "window": "continuous"}, "genre = 'mass'")
    forms = [
        {
            "id": f"m{number}",
            "attributes": {"genre": "mass", "n": number},
            "content": {"title": f"Mass {number}"},
        }
        for number in range(1_000)
    ]
    site.client.post("/v1/events", json=forms, params={"wait": "delivered"})
    eventually(lambda: site.client.get("/v1/notifications/max").json()["inbox"]["last"] == 1_000)
    page = visit(site.feed("max"))
    expect(page.locator(".item")).to_have_count(100)
    page.get_by_text("Show older").click()
    expect(page.locator(".item")).to_have_count(200)
    page.goto(site.feed("max", count="1000"))
    page.reload()
    expect(page.locator(".item")).to_have_count(1_000)
    drawn = """() => {
        const drawn = [...document.querySelectorAll(".item .body")]
            .filter((each) => each.checkVisibility({contentVisibilityAuto: true})).length;
        return 0 < drawn && drawn < 100;
    }"""
    page.wait_for_function(drawn)
    page.locator("[data-event=m0]").scroll_into_view_if_needed()
    expect(page.locator("[data-event=m0]")).to_be_in_viewport()
    site.publish("late", "mass")
    pill = page.locator(".pill")  # the names of all buttons would take long to compute
    expect(pill).to_have_text("↑ 1 new")
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(
        "() => { const go = scrollTo; window.scrollTo = (to) => { window.way = to; go(to); }; }"
    )
    pill.click()
    expect(page.locator("[data-event=late]")).to_be_in_viewport()
    assert page.evaluate("window.way.behavior") == "auto"


HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e"\'&amp;{{7*7}}'
)


def test_hostile_text_stays_text(site: Site, visit: Visit) -> None:
    name = f"h{HOSTILE}"
    event = f"e{HOSTILE}/../"
    where = f'"{HOSTILE.replace(chr(34), chr(34) * 2)}" = 1'
    quoted = quote(name, safe="")
    policy = {"k": 9, "window": {"name": "sliding", "length": 3}}
    answer = site.client.put(f"/v1/subscribers/{quoted}", json={"policy": policy})
    assert answer.status_code == 201, answer.text
    form = {"subscriber": name, "where": where}
    site.client.put(f"/v1/subscriptions/{quoted}", json=form, params={"wait": "applied"})
    links = [
        "javascript:window.hacked=1",
        "data:text/html,<script>1</script>",
        " JaVaScRiPt:hacked",
        f"https://x.example/{HOSTILE}",
    ]
    forms = [
        {
            "id": f"{event}{number}",
            "attributes": {HOSTILE: 1, "long": "x" * 5_000},
            "content": {
                "title": f"{HOSTILE}{number}",
                "link": link,
                "image": link,
                "summary": HOSTILE * 5,
            },
        }
        for number, link in enumerate(links)
    ]
    site.client.post("/v1/events", json=forms, params={"wait": "delivered"})
    for view in ("feed", "interests", "feed&show=unsent", "feed&show=unmatched"):
        target, _, more = view.partition("&")
        page = visit(f"{site.url}/#/{target}?subscriber={quoted}&{more}", width=NARROW)
        expect(page.locator("main:not([aria-busy]) section")).to_be_visible()
        for button in page.locator("button[aria-expanded]").all():
            button.click()
            page.locator(".why").first.wait_for()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img:not(.picture), main iframe").count() == 0
        addresses = page.eval_on_selector_all("a", "all => all.map((each) => each.href)")
        assert all(address.startswith("http") for address in addresses)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW


def test_live_updates_survive_a_service_that_is_killed(
    tmp_path: Any, visit: Visit, tolerated: list[str]
) -> None:
    address = str(tmp_path / "t.db")
    tolerated.append("net::ERR_")  # the browser notes what it cannot reach
    with reserved_port() as port, open_store(address) as store, pipeline_at(address):
        store.catalogue.put({"id": "ada"}, {"id": "a1", "subscriber": "ada", "where": "true"})
        with _served(address, port) as process:
            page = visit(f"http://127.0.0.1:{port}/#/feed?subscriber=ada")
            expect(page.locator("header .state.live")).to_be_visible()
            other = visit(f"http://127.0.0.1:{port}/#/reach")
            expect(other.get_by_label("Event")).to_be_visible()
            _publish(port, "before")
            expect(page.locator(".item")).to_have_count(1)
            process.send_signal(signal.SIGKILL)
            expect(page.locator("header .state.waiting")).to_be_visible()
            page.get_by_role("button", name="Mark all as read").click()
            expect(page.locator("#toast")).to_have_text("The service cannot be reached.")
            other.goto(f"http://127.0.0.1:{port}/#/interests?subscriber=ada")
            expect(other.get_by_text("The service cannot be reached")).to_be_visible()
            picture = other.locator("header img").element_handle()
            other.wait_for_function("image => image.naturalWidth > 0", arg=picture)
        with server_at(address, port=port):
            expect(other.get_by_role("heading", name="My interests")).to_be_visible()
            expect(other.get_by_text("The service cannot be reached")).to_have_count(0)
            _publish(port, "after")
            expect(page.locator(".item")).to_have_count(2)
            expect(page.locator("header .state.live")).to_be_visible()
            expect(page.locator(".item").first).to_contain_text("after")


def test_the_first_subscriber_of_a_store_is_added_on_the_page(tmp_path: Any, visit: Visit) -> None:
    with server_at(str(tmp_path / "t.db")) as server, client_of(server) as client:
        page = visit(f"http://127.0.0.1:{server.port}/")
        page.get_by_label("Name", exact=True).fill("ada")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_text("No interests yet")).to_be_visible()
        assert client.get("/v1/subscribers/ada").json()["id"] == "ada"


def _publish(port: int, name: str) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
        client.post("/v1/events", json={"id": name, "attributes": {"n": 1}}).raise_for_status()


@contextmanager
def _served(address: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run the web server in a process that can be killed."""
    code = (
        f"from tidings.service.server import WebServer; server = WebServer({address!r}, "
        f"port={port}); print(server.port, flush=True); server.run()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"{port}\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
