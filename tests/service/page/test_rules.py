"""My rules: what the feed would have been, beside the sliders; saved only when wanted."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect
from tests.service.page.accessibility import THEMES, WIDTHS, findings, is_too_wide
from tests.service.page.conftest import Visit
from tests.service.page.people import HOSTILE, POLICY, PageService, page_service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    with page_service(tmp_path_factory.mktemp("rules")) as running:
        yield running


def tried(page: Page) -> dict[str, Any]:
    """Return the policy in the address."""
    # `page.url` is told by events, which may come later than the change.
    query = parse_qs(page.evaluate("location.hash").partition("?")[2])
    return dict(json.loads(query["policy"][0]))


def figure(page: Page, name: str) -> str:
    return page.locator(".stat", has_text=name).locator("strong").inner_text()


def test_a_slider_shows_the_other_feed_and_its_state_has_an_address(
    service: PageService, visit: Visit
) -> None:
    page = visit(f"{service.url}/#/rules?subscriber=ada", token=service.admin)
    before = figure(page, "Delivered")
    expect(page.get_by_role("button", name="Save these rules")).to_be_disabled()
    page.get_by_label("At a time").fill("7")
    expect(page.locator(".stat", has_text="Delivered")).to_contain_text(f"was {before}")
    assert int(figure(page, "Delivered")) > int(before)
    assert tried(page) == {**POLICY, "k": 7}
    expect(page.locator(".changes li.comes").first).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Stays").click()
    expect(page.locator(".changes li.stays").first).to_be_visible()
    after = figure(page, "Delivered")
    page.reload()
    expect(page.locator(".changes li.stays").first).to_be_visible()
    assert figure(page, "Delivered") == after
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".stat", has_text="Delivered")).to_contain_text("as saved")
    saved = service.client.get("/v1/subscribers/ada").json()["policy"]
    assert saved == POLICY, "nothing is saved by trying"


def test_clocks_and_rules_make_a_policy(service: PageService, visit: Visit) -> None:
    address = f"{service.url}/#/rules?subscriber=ada"
    page = visit(address, token=service.admin, timezone_id="Europe/Athens")
    page.get_by_role("button", name="At set times").click()
    page.get_by_label("Digest 1").fill("09:30")
    page.get_by_role("button", name="Remove the digest at 18:00").click()
    page.get_by_label("Only the best").check()
    page.get_by_label("How many at most").fill("3")
    page.get_by_label("per", exact=True).select_option("hour")
    page.get_by_label("Quiet hours").check()
    page.get_by_label("Quiet until").fill("08:15")
    page.get_by_label("Freshness").fill("3")
    page.get_by_label("Variety").fill("4")
    zone = {"zone": "Europe/Athens"}
    assert tried(page) == {
        "k": 2,
        "window": {"name": "periodic", "at": ["09:30"], **zone},
        "decay": {"name": "exponential", "half_life": "1h"},
        "diversify": {"name": "divrank", "sigma": 0.6},
        "rules": [
            {"name": "quota", "n": 3, "per": "hour", **zone},
            {"name": "quiet", "start": "22:00", "end": "08:15", **zone},
        ],
    }
    expect(page.locator(".result .notice")).to_have_count(0)
    expect(page.locator(".stat", has_text="Delivered")).to_contain_text("was")


def test_times_are_typed_and_rules_are_saved_by_the_keyboard(
    service: PageService, visit: Visit
) -> None:
    policy = {**POLICY, "window": {"name": "periodic", "at": ["18:00"], "zone": "UTC"}}
    address = f"{service.url}/#/rules?subscriber=ada&policy={json.dumps(policy)}"
    page = visit(address, token=service.admin)
    page.get_by_label("Digest 1").focus()
    page.keyboard.type("0945AM")  # hours, then minutes, in one field
    expect(page.get_by_label("Digest 1")).to_have_value("09:45")
    expect(page.get_by_label("Digest 1")).to_be_focused()
    page.get_by_role("button", name="Add a time").press("Enter")
    expect(page.get_by_label("Digest 2")).to_be_focused()
    page.keyboard.type("0530PM")
    page.get_by_role("button", name="Remove the digest at 17:30").press("Enter")
    expect(page.get_by_label("Digest 1")).to_be_focused()
    page.get_by_label("Quiet hours").press(" ")
    page.get_by_label("Quiet from").focus()
    page.keyboard.type("1115PM")
    page.get_by_role("button", name="Save these rules").focus()
    expect(page.locator(".stat", has_text="Delivered")).to_contain_text("was")
    expect(page.get_by_role("button", name="Save these rules")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    saved = service.client.get("/v1/subscribers/ada").json()["policy"]
    assert saved["window"]["at"] == ["09:45"]
    assert saved["rules"][0]["start"] == "23:15"
    expect(page.get_by_label("At a time")).to_be_focused()
    service.client.put("/v1/subscribers/ada", json={"policy": POLICY})


def test_a_subscriber_saves_its_own_rules(service: PageService, visit: Visit) -> None:
    page = visit(f"{service.url}/#/rules", token=service.ada)
    page.get_by_label("Of the last").fill("20")
    page.get_by_role("button", name="Save these rules").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    saved = service.client.get("/v1/subscribers/ada").json()["policy"]
    assert saved == {"k": 2, "window": {"name": "sliding", "length": 20}}
    service.client.put("/v1/subscribers/ada", json={"policy": POLICY})


def test_parts_without_a_control_stay_and_refusals_are_shown(
    service: PageService, visit: Visit, tolerated: list[str]
) -> None:
    tolerated.append("status of 422")
    policy = {"k": 2, "scorer": "exact", "window": {"name": "history", "length": 5}}
    address = f"{service.url}/#/rules?subscriber=ada&policy="
    page = visit(address + json.dumps(policy), token=service.admin)
    page.get_by_label("At a time").fill("3")
    assert tried(page) == {**policy, "k": 3}
    rules = [{"name": "quiet", "start": "21:00"}, {"name": "different", "distance": "jaccard"}]
    page = visit(address + json.dumps({**POLICY, "rules": rules}), token=service.admin)
    page.get_by_label("At a time").fill("3")
    quiet, different = tried(page)["rules"]
    assert quiet == {"name": "quiet", "start": "21:00", "end": "07:00"}, "in UTC, as before"
    assert different == {"name": "different", "min": 0.2, "within": "7d", "distance": "jaccard"}
    refused = address + json.dumps({"k": 2, "scorer": "nonsense"})
    page = visit(refused, token=service.admin)
    expect(page.get_by_role("alert")).to_contain_text("nonsense")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_view_is_accessible(service: PageService, visit: Visit, width: int, theme: str) -> None:
    rules = [{"name": "quota", "n": 3}, {"name": "quiet"}, {"name": "different"}]
    policy = {"k": 1, "window": {"name": "periodic", "at": ["08:00"]}, "rules": rules}
    address = f"{service.url}/#/rules?subscriber=ada&policy={json.dumps(policy)}"
    page = visit(address, width=width, color_scheme=theme, token=service.admin)
    expect(page.locator(".stat").first).to_be_visible()
    assert findings(page) == []
    assert not is_too_wide(page)
