"""My interests in a real browser: conditions that are checked and completed, and preferences."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import httpx2
import pytest
from playwright.sync_api import Page, expect
from tests.service.page.accessibility import findings
from tests.service.page.conftest import Visit
from tests.service.running import SETTINGS, client_of, pipeline_at, server_at

from tidings.store import open_store

GENRES = ["drama", "drama", "comedy", "horror"]


class Site(NamedTuple):
    """A service with films, and tokens for an admin and two subscribers."""

    url: str
    admin: httpx2.Client
    token: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    address = str(tmp_path_factory.mktemp("interests") / "t.db")
    with open_store(address) as store:
        admin = store.tokens.create("admin", 1)
        token = store.tokens.create("subscriber", 1, subscriber="ada")
    settings = replace(SETTINGS, rate=100_000)
    with (
        server_at(address, settings) as server,
        pipeline_at(address),
        client_of(server, admin) as client,
    ):
        forms = [
            {
                "id": f"e{number}",
                "attributes": {"genre": genre, "year": 2000 + number, "release day": "monday"},
                "content": {"title": f"Film {number}"},
            }
            for number, genre in enumerate(GENRES)
        ]
        client.post("/v1/events", json=forms, params={"wait": "delivered"})
        yield Site(f"http://127.0.0.1:{server.port}", client, token)


@pytest.fixture
def ada(site: Site, visit: Visit) -> Page:
    """Return a page of Ada, who has signed in and has three interests."""
    site.admin.delete("/v1/subscribers/ada")
    site.admin.put("/v1/subscribers/ada", json={"policy": {"k": 2}})
    for name, where in (("s1", "genre = 'drama'"), ("s2", "year > 2001"), ("s3", "true")):
        site.admin.put(f"/v1/subscriptions/{name}", json={"subscriber": "ada", "where": where})
    page = visit(f"{site.url}/#/interests")
    page.get_by_label("Token").fill(site.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="My interests")).to_be_visible()
    return page


def test_only_a_token_opens_the_page(site: Site, visit: Visit, tolerated: list[str]) -> None:
    tolerated.append("status of 401")  # the browser notes a token that is refused
    page = visit(site.url)
    page.get_by_label("Token").fill("tidings_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The token is not valid.")).to_be_visible()
    page.get_by_label("Token").fill(site.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("header .who")).to_have_text("ada")
    page.reload()
    expect(page.locator("header .who")).to_have_text("ada")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('tidings.token')") is None


def test_a_condition_is_checked_while_it_is_written(ada: Page) -> None:
    ada.get_by_role("link", name="New interest").click()
    condition = ada.get_by_label("Condition")
    condition.fill("genre = 'drama'")
    expect(ada.locator(".matched")).to_have_text("2 of the last 4 publications match (50%)")
    expect(ada.locator(".examples li")).to_have_count(2)
    expect(ada.locator(".examples")).to_contain_text("Film 1")
    condition.fill("genre = 'drama' and year >")
    expect(ada.locator("#condition-problem")).to_be_visible()
    expect(condition).to_have_attribute("aria-invalid", "true")
    condition.fill("title = '\N{CLAPPER BOARD}\N{CLAPPER BOARD}' and year > and")
    expect(ada.locator(".backdrop mark")).to_have_text(">")
    expect(ada.locator("#condition-problem")).to_contain_text("character 23")
    condition.fill("gnre = 'drama'")
    expect(ada.locator("#condition-result .notice")).to_contain_text("did you mean genre?")
    expect(ada).to_have_url(re.compile("draft=gnre"))


def test_conditions_are_completed_from_what_was_published(ada: Page) -> None:
    ada.get_by_role("link", name="New interest").click()
    condition = ada.get_by_label("Condition")
    options = ada.get_by_role("listbox").get_by_role("option")
    condition.press_sequentially("ge")
    expect(options).to_have_count(1)
    condition.press("ArrowDown")
    condition.press("Enter")
    expect(condition).to_have_value("genre ")
    expect(options.first).to_have_text("=")
    condition.press_sequentially("= ")
    expect(options.first).to_contain_text("'drama'")
    condition.press_sequentially("'co")
    expect(options).to_have_count(1)
    options.click()
    expect(condition).to_have_value("genre = 'comedy' ")
    condition.press_sequentially("and rel")
    expect(options).to_have_count(1)
    condition.press("ArrowDown")
    condition.press("Tab")
    expect(condition).to_have_value("genre = 'comedy' and \"release day\" ")
    condition.press("Escape")
    expect(ada.get_by_role("listbox")).to_be_hidden()


def test_an_interest_is_added_changed_and_deleted(ada: Page, site: Site) -> None:
    ada.get_by_role("link", name="New interest").click()
    ada.get_by_label("Name").fill("films")
    ada.get_by_label("Condition").fill("genre = 'comedy'")
    ada.get_by_role("button", name="Add interest").click()
    expect(ada.locator("[data-name='ada:films']")).to_be_visible()
    assert site.admin.get("/v1/subscriptions/ada:films").json()["where"] == "genre = 'comedy'"
    ada.get_by_label("Condition").fill("genre = 'horror'")
    ada.get_by_role("button", name="Save", exact=True).click()
    expect(ada.locator("[data-name='ada:films'] .where")).to_have_text("genre = 'horror'")
    expect(ada).not_to_have_url(re.compile("draft"))
    ada.get_by_role("button", name="Delete").click()
    ada.get_by_role("button", name="Really delete?").click()
    expect(ada.locator("[data-name='ada:films']")).to_have_count(0)
    assert site.admin.get("/v1/subscriptions/ada:films").status_code == 404


def test_preferences_by_dragging_and_by_keys(ada: Page, site: Site) -> None:
    rows = ada.locator(".interest")
    expect(rows).to_have_count(3)
    ada.locator("[data-name=s3]").drag_to(
        ada.locator("[data-name=s1]"), target_position={"x": 40, "y": 3}
    )
    expect(rows.first).to_have_attribute("data-name", "s3")
    ada.get_by_role("button", name="Prefer s2 less").press("Enter")
    ada.get_by_role("button", name="Save preferences").click()
    expect(ada.locator("#toast")).to_have_text("Preferences saved")
    assert site.admin.get("/v1/subscribers/ada").json()["prefers"] == [["s3", "s1"], ["s1", "s2"]]
    assert site.admin.get("/v1/subscribers/ada").json()["policy"]["k"] == 2
    expect(rows.first.locator(".meter")).to_contain_text("1")
    ada.get_by_role("button", name="Prefer s1 as much as what is above").click()
    ada.get_by_role("button", name="Save preferences").click()
    expect(ada.get_by_role("button", name="Save preferences")).to_be_hidden()
    pairs = site.admin.get("/v1/subscribers/ada").json()["prefers"]
    assert sorted(pairs) == [["s1", "s2"], ["s3", "s2"]]


def test_the_keyboard_stays_where_it_is_used(ada: Page) -> None:
    expect(ada.locator(".interest")).to_have_count(3)  # all on one level
    ada.get_by_role("button", name="Prefer s1 less").press("Enter")
    # It is alone on the last level, and cannot go further down.
    expect(ada.get_by_role("button", name="Prefer s1 more")).to_be_focused()
    ada.get_by_role("button", name="Prefer s2 less").press("Enter")
    expect(ada.get_by_role("button", name="Prefer s2 less")).to_be_focused()
    ada.get_by_role("button", name="By numbers").press("Enter")
    expect(ada.get_by_role("button", name="By numbers")).to_be_focused()


def test_preferences_by_numbers(ada: Page, site: Site) -> None:
    ada.get_by_role("button", name="By numbers").click()
    ada.get_by_label("Preference of s1", exact=True).fill("0.25")
    ada.get_by_role("button", name="Save preferences").click()
    expect(ada.get_by_role("button", name="Save preferences")).to_be_hidden()
    forms = site.admin.get("/v1/subscriptions", params={"subscriber": "ada"}).json()["items"]
    assert {form["id"]: form.get("prefrank") for form in forms} == {"s1": 0.25, "s2": 1, "s3": 1}
    ada.get_by_role("button", name="By order").click()
    expect(ada.locator(".interest").last).to_have_attribute("data-name", "s1")
    ada.get_by_role("button", name="Save preferences").click()
    expect(ada.get_by_role("button", name="Save preferences")).to_be_hidden()
    forms = site.admin.get("/v1/subscriptions", params={"subscriber": "ada"}).json()["items"]
    assert all("prefrank" not in form for form in forms)
    pairs = site.admin.get("/v1/subscribers/ada").json()["prefers"]
    assert sorted(pairs) == [["s2", "s1"], ["s3", "s1"]]


def test_weighted_predicates_are_added_changed_and_removed(ada: Page, site: Site) -> None:
    site.admin.put("/v1/subscribers/ada", json={"policy": {"k": 2, "scorer": "relaxed"}})
    ada.reload()
    ada.get_by_role("link", name="New weighted interest").click()
    ada.get_by_label("Name").fill("mix")
    ada.get_by_label("Predicate", exact=True).fill("genre = 'comedy'")
    ada.get_by_role("button", name="Add a predicate").click()
    ada.get_by_label("Predicate", exact=True).nth(1).fill("year >")
    expect(ada.locator(".predicates .notice")).to_have_count(2)
    expect(ada.locator(".predicates .notice").nth(1)).to_be_visible()
    ada.get_by_label("Predicate", exact=True).nth(1).fill("year > 2001")
    expect(ada.locator(".predicates .notice").nth(1)).to_be_hidden()
    ada.get_by_label("Weight of year > 2001").fill("0.4")
    ada.get_by_role("button", name="Add interest").click()
    expect(ada.locator("[data-name='ada:mix']")).to_be_visible()
    saved = "/v1/subscriptions/ada:mix"
    assert site.admin.get(saved).json()["any"] == [["genre = 'comedy'", 1], ["year > 2001", 0.4]]
    ada.get_by_role("button", name="Remove the predicate").first.click()
    ada.get_by_label("Predicate", exact=True).fill("genre = 'horror'")
    ada.get_by_role("button", name="Save", exact=True).click()
    expect(ada.locator("[data-name='ada:mix'] .where")).to_have_text("genre = 'horror' (0.4)")
    assert site.admin.get(saved).json()["any"] == [["genre = 'horror'", 0.4]]
    assert findings(ada) == []


def test_a_new_interest_begins_with_what_was_published(ada: Page) -> None:
    ada.get_by_role("link", name="New interest").click()
    ada.get_by_role("button", name="genre").click()
    condition = ada.get_by_label("Condition")
    expect(condition).to_have_value("genre ")
    expect(condition).to_be_focused()
    expect(ada.get_by_role("option", name="=").first).to_be_visible()
    assert findings(ada) == []


def test_a_subscriber_that_does_not_exist_is_not_an_error(
    site: Site, visit: Visit, tolerated: list[str]
) -> None:
    tolerated.append("status of 404")  # the browser notes it
    token = site.admin.headers["authorization"].removeprefix("Bearer ")
    site.admin.put("/v1/subscribers/bob", json={})
    page = visit(f"{site.url}/#/feed?subscriber=zoe", token=token)
    expect(page.get_by_text("There is no subscriber “zoe”.")).to_be_visible()
    page.get_by_role("link", name="bob").click()
    expect(page.get_by_text("Nothing yet")).to_be_visible()
