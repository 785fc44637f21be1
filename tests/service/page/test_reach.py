"""Reach: one event, the subscriptions that it fits best, and what the others lack."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.service.page.accessibility import THEMES, WIDTHS, findings, is_too_wide
from tests.service.page.conftest import Visit
from tests.service.page.people import EVENTS, HOSTILE, PageService, page_service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    with page_service(tmp_path_factory.mktemp("reach")) as running:
        yield running


def test_an_event_that_was_published_is_picked_and_explained(
    service: PageService, visit: Visit
) -> None:
    page = visit(f"{service.url}/#/reach", token=service.admin)
    page.get_by_label("Or one that was published").select_option(f"{HOSTILE} {EVENTS - 2}")
    expect(page.get_by_role("heading", name="It fits 1 subscription best")).to_be_visible()
    best, *others = page.locator(".placements > li").all()
    expect(best).to_contain_text("ada-new")
    assert len(others) == 2
    expect(others[0]).to_contain_text("genre = 'drama'")
    expect(others[0]).to_contain_text('genre is "comedy"')
    expect(others[1]).to_contain_text("did you mean genre?")


def test_a_pasted_event_has_an_address_and_bad_ones_are_refused(
    service: PageService, visit: Visit, tolerated: list[str]
) -> None:
    tolerated.append("status of 422")
    page = visit(f"{service.url}/#/reach", token=service.admin)
    event = page.get_by_label("Event", exact=True)
    event.fill('{"genre": "drama"')
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    event.fill('{"genre": {"a": 1}}')
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("genre")
    event.fill('{"id": "x", "attributes": {"genre": "drama", "year": 2020}}')
    page.get_by_role("button", name="Relaxed").click()
    expect(page.get_by_role("heading", name="It fits 2 subscriptions best")).to_be_visible()
    page.get_by_label("The best").fill("1")
    event.press("Control+Enter")
    expect(page.get_by_role("heading", name="It fits 1 subscription best")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="It fits 1 subscription best")).to_be_visible()
    expect(page.get_by_role("button", name="Relaxed")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_view_is_accessible(service: PageService, visit: Visit, width: int, theme: str) -> None:
    event = '{"genre": "drama"}'
    page = visit(
        f"{service.url}/#/reach?event={event}", width=width, color_scheme=theme, token=service.admin
    )
    expect(page.get_by_role("heading", name="It fits 1 subscription best")).to_be_visible()
    assert findings(page) == []
    assert not is_too_wide(page)
