"""Operations: is it well, what failed, and how to take it up again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.service.page.accessibility import THEMES, WIDTHS, findings, is_too_wide
from tests.service.page.conftest import Visit
from tests.service.page.people import EVENTS, HOSTILE, PageService, event, page_service
from tests.service.running import eventually

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service that has two samples and some late events."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.service.samples.EVERY_S", 0.01)
        with page_service(tmp_path_factory.mktemp("operations")) as running:
            late = [event(0, id=f"late{number}") for number in range(3)]
            running.client.post("/v1/events", json=late, params={"wait": "delivered"})
            read = running.client.get
            eventually(lambda: read("/v1/operations").json()["letters"]["late"] == 3)
            eventually(lambda: len(read("/v1/operations").json()["samples"]["times"]) > 2)
            yield running


def test_figures_and_plots_show_how_it_is(service: PageService, visit: Visit) -> None:
    page = visit(f"{service.url}/#/operations", token=service.admin)
    expect(
        page.get_by_text("All is well. Everything that was published is decided.")
    ).to_be_visible()
    stats = page.locator(".stat")
    expect(stats.filter(has_text="Published")).to_contain_text(str(EVENTS + 3))
    expect(stats.filter(has_text="Subscribers")).to_contain_text("3 subscriptions")
    expect(page.get_by_role("img", name="Throughput, per second")).to_be_visible()
    expect(page.get_by_role("img", name="Letters: late")).to_be_visible()
    broad = page.locator(".condition").first
    expect(broad).to_contain_text("ada-new")
    expect(page.get_by_text("did you mean genre?")).to_be_visible()


def test_late_events_are_published_again(service: PageService, visit: Visit) -> None:
    page = visit(f"{service.url}/#/operations", token=service.admin)
    expect(page.get_by_text("None waits.")).to_be_visible()
    page.get_by_role("button", name="Late events").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(HOSTILE)
    expect(rows.first).to_contain_text("published before the watermark")
    rows.first.get_by_role("button", name="Publish again").click()
    expect(page.locator(".notice", has_text="1 event is published again")).to_be_visible()
    expect(rows).to_have_count(2)
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Publish these 2 again").click()
    expect(page.get_by_text("None waits.")).to_be_visible()
    assert service.client.get("/v1/letters?kind=late").json()["items"] == []


def test_others_than_admins_do_not_see_it(service: PageService, visit: Visit) -> None:
    page = visit(f"{service.url}/#/operations", token=service.ada)
    expect(page.get_by_role("link", name="Operations")).to_have_count(0)
    expect(page.get_by_role("link", name="My rules")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_view_is_accessible(service: PageService, visit: Visit, width: int, theme: str) -> None:
    address = f"{service.url}/#/operations?letters=late"
    page = visit(address, width=width, color_scheme=theme, token=service.admin)
    expect(page.get_by_role("img", name="Throughput, per second")).to_be_visible()
    assert findings(page) == []
    assert not is_too_wide(page)
