"""Where I read: an address is added, confirmed, paused and removed."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.service.page.accessibility import THEMES, WIDTHS, findings, is_too_wide
from tests.service.page.conftest import Visit
from tests.service.page.people import PageService, page_service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    with page_service(tmp_path_factory.mktemp("reading")) as running:
        yield running


def test_an_address_is_added_paused_and_removed(
    service: PageService, visit: Visit, tolerated: list[str]
) -> None:
    tolerated.append("409")  # a code that is wrong
    tolerated.append("422")
    page = visit(f"{service.url}/#/reading", token=service.ada, timezone_id="Europe/Athens")
    expect(page.get_by_text("No address yet.")).to_be_visible()
    kinds = page.get_by_label("Kind").get_by_role("option")
    expect(kinds).to_have_text(["Slack", "Teams"])  # this service has no mail server
    page.get_by_label("Kind").select_option("slack")
    page.get_by_label("Address", exact=True).fill("http://127.0.0.1/hook")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("not public")
    page.get_by_label("Address", exact=True).fill("https://hooks.slack.com/services/T0/SECRET")
    page.get_by_role("button", name="Add").click()
    item = page.get_by_role("listitem")
    expect(item).to_contain_text("https://hooks.slack.com/...")
    expect(item).to_contain_text("Every day at 08:00, Europe/Athens")
    expect(item).to_contain_text("Not confirmed")
    item.get_by_placeholder("Code").fill("WRONG")
    item.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("alert")).to_contain_text("no valid code")
    [channel] = service.client.get("/v1/subscribers/ada/channels").json()["items"]
    path = f"/v1/subscribers/ada/channels/{channel['id']}"
    form = {"kind": "slack", "address": "https://hooks.slack.com/services/T0/SECRET"}
    service.client.put(path, json={**form, "verified": True})
    page.reload()
    item.get_by_role("button", name="Pause").click()
    expect(item).to_contain_text("Paused")
    expect(item.get_by_role("button", name="Resume")).to_be_focused()
    item.get_by_role("button", name="Resume").click()
    expect(item.get_by_text("On", exact=True)).to_be_visible()
    item.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No address yet.")).to_be_visible()
    expect(page.get_by_label("Address", exact=True)).to_be_focused()


def test_the_focus_moves_on_when_an_address_is_removed(service: PageService, visit: Visit) -> None:
    for name in "abc":
        form = {"kind": "teams", "address": f"https://hooks.example/{name}", "verified": True}
        service.client.put(f"/v1/subscribers/ada/channels/{name}", json=form)
    page = visit(f"{service.url}/#/reading", token=service.ada)
    for name, following in (("b", "c"), ("c", "a")):
        page.get_by_role("button", name=f"Remove {name}", exact=True).press("Enter")
        expect(page.get_by_role("button", name=f"Remove {following}", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Address", exact=True)).to_be_focused()


def test_everybody_can_use_it(service: PageService, visit: Visit) -> None:
    form = {"kind": "teams", "address": "https://hooks.example/x", "min_rank": 0.5}
    service.client.put("/v1/subscribers/ada/channels/chat", json=form)
    for theme in THEMES:
        for width in WIDTHS:
            page = visit(
                f"{service.url}/#/reading", token=service.ada, width=width, color_scheme=theme
            )
            expect(page.get_by_role("listitem")).to_be_visible()
            assert findings(page) == []
            assert not is_too_wide(page)
