"""Every screen at two widths and in both themes: no finding of axe, and nothing beside the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.service.page.accessibility import THEMES, WIDTHS, findings, is_too_wide
from tests.service.page.conftest import Visit
from tests.service.running import client_of, delivered, pipeline_at, server_at

SCREENS = {
    "feed": ("#/feed?subscriber=ada&why=e0", ".why"),
    "not sent": ("#/feed?subscriber=ada&show=unsent&why=e1", ".why"),
    "choice": ("#/feed", ".choices, .item"),
    "interests": ("#/interests?subscriber=ada", ".interest"),
    "editor": ("#/interests?subscriber=ada&edit=s1", ".matched"),
    "wrong": (
        "#/interests?subscriber=ada&new=1&draft=year+%3E",
        "#condition-problem:not([hidden])",
    ),
    "documentation": ("docs#put/v1/subscriptions/{id}", "details[open] pre"),
    "form": ("docs#policy", "details[open] table"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    address = str(tmp_path_factory.mktemp("axe") / "t.db")
    with server_at(address) as server, pipeline_at(address), client_of(server) as client:
        policy = {"k": 1, "window": {"name": "sliding", "length": 2}}
        client.put("/v1/subscribers/ada", json={"policy": policy, "prefers": [["s1", "s2"]]})
        for name, where in (("s1", "n < 9"), ("s2", "n > 1 and kind = 'x'")):
            form = {"subscriber": "ada", "where": where}
            client.put(f"/v1/subscriptions/{name}", json=form, params={"wait": "applied"})
        for number in range(4):
            content = {"title": f"Event {number}", "summary": "Words.", "link": "https://x.example"}
            event = {"id": f"e{number}", "attributes": {"n": 10 * (number % 2)}, "content": content}
            client.post("/v1/events", json=event, params={"wait": "delivered"})
        client.put("/v1/subscriptions/s3", json={"subscriber": "ada", "where": "true"})
        delivered(client, "ada", 1)
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_screen_has_a_finding(url: str, visit: Visit, width: int, theme: str) -> None:
    options = {"color_scheme": theme, "reduced_motion": "reduce"}
    page = visit(f"{url}/#/none", width=width, **options)
    for name, (address, part) in SCREENS.items():
        page.goto(f"{url}/{address}")
        page.locator(part).first.wait_for()
        assert findings(page) == [], name
        assert not is_too_wide(page), name


def test_everything_is_reached_by_the_keyboard(url: str, visit: Visit) -> None:
    page = visit(f"{url}/#/feed?subscriber=ada")
    page.locator(".item").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(15, 19, 25)"
