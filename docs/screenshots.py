"""Take the pictures of the page that the documentation shows, from the playground.

python docs/screenshots.py [--seconds 45]

It starts `tidings serve --demo`, lets the stream flow for some seconds, and writes
docs/images/page-*.png with the system's Chromium.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZE = (1280, 800)


class Picture(NamedTuple):
    """A picture: its name, the address of the view, what must be there, and what to press."""

    name: str
    address: str
    awaited: str
    click: str | None = None


DIGEST = {
    "k": 12,
    "window": {"name": "periodic", "at": ["08:00", "18:30"]},
    "rules": [{"name": "quiet"}],
}
FILM = {"genre": ["drama", "romance"], "year": 1997, "rating": 8.1}
PICTURES = [
    Picture("feed", "feed?subscriber=ada", "main li"),
    Picture("why-not", "feed?subscriber=ada&show=unsent", ".why .reasons", "text=Why not?"),
    Picture("interests", "interests?subscriber=ada&edit=ada-dramas", ".examples li"),
    Picture("rules", f"rules?subscriber=ada&policy={json.dumps(DIGEST)}", ".stat"),
    Picture("reach", f"reach?event={json.dumps(FILM)}", ".placements li"),
    Picture("operations", "operations?letters=late", ".plot svg"),
]


@contextmanager
def playground() -> Iterator[str]:
    """Run the playground, and yield its address."""
    command = [sys.executable, "-m", "tidings.app.cli", "serve", "--demo", "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.wait()


def take(page: Page, picture: Picture, url: str) -> None:
    """Write a picture."""
    page.goto(f"{url}/#/{picture.address}")
    if picture.click is not None:
        page.locator(picture.click).first.click()
    page.locator(picture.awaited).first.wait_for()
    page.wait_for_timeout(1_500)
    path = IMAGES / f"page-{picture.name}.png"
    page.screenshot(path=path)
    sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=45, help="how long the stream flows first")
    wanted = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("there is no chromium; install Debian's package of that name")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playground() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        width, height = SIZE
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="light", locale="en-GB"
        )
        page.goto(f"{url}/#/feed?subscriber=ada")
        page.wait_for_timeout(1_000 * wanted.seconds)
        for picture in PICTURES:
            take(page, picture, url)
        browser.close()


if __name__ == "__main__":
    main()
