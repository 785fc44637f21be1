"""A real browser for the stories of the page: every visit checks that nothing went wrong."""

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
REFUSED = "responded with a status of 422"
Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the system's Chromium, once."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no browser: install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=options)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Return a function that opens an address; at the end, no console may hold an error."""
    errors = list[str]()
    contexts = []

    def open_page(
        address: str,
        width: int = 1280,
        theme: str = "light",
        *,
        token: str | None = None,
        refused: bool = False,
    ) -> Page:
        """Open a page; if a request is to be `refused`, the browser reports that as an error."""

        def note(message: ConsoleMessage) -> None:
            if message.type == "error" and not (refused and REFUSED in message.text):
                errors.append(message.text)

        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            locale="en-GB",
            timezone_id="Europe/Athens",
            reduced_motion="reduce",
        )
        contexts.append(context)
        if token is not None:
            context.add_init_script(f"sessionStorage.setItem('tidings.token', '{token}')")
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        page.locator("main h1").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
