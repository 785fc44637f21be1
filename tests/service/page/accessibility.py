"""The accessibility checker, at the widths and in the themes that every view must pass."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


def findings(page: Page) -> list[str]:
    """Return what the checker finds, one line for each element."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['html']}"
        for violation in violations
        for node in violation["nodes"]
    ]


def is_too_wide(page: Page) -> bool:
    """Return whether a page must be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
