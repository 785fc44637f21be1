"""A real browser for the stories of the page; without one they are skipped, loudly."""

import os
import shutil
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WIDE, NARROW = 1200, 390

# On a busy machine a page of a thousand items may take seconds to draw.
PATIENCE_MS = 300_000
expect.set_options(timeout=PATIENCE_MS)


class Visit(Protocol):
    """A function that opens an address in a new window."""

    def __call__(
        self, url: str, *, width: int = WIDE, token: str | None = None, **options: Any
    ) -> Page: ...


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser for one module: while it is open, no other event loop runs in the thread."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install Debian's package of that name")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield launched
        launched.close()


@pytest.fixture
def tolerated() -> list[str]:
    """Return an empty list, for parts of complaints that are not the fault of the page."""
    return []


@pytest.fixture
def visit(browser: Browser, tolerated: list[str]) -> Iterator[Visit]:
    """Return a function that opens windows; whatever they complain about fails the test."""
    contexts, complaints = [], list[str]()

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def opened(url: str, *, width: int = WIDE, token: str | None = None, **options: Any) -> Page:
        size: Any = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, locale="en-GB", **options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        if token is not None:  # as after signing in
            context.add_init_script(f"sessionStorage.setItem('tidings.token', '{token}')")
        page = context.new_page()
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [each for each in complaints if not any(part in each for part in tolerated)] == []
