"""Sentences and tables of the documents agree with the code: paths, links, sections, lists."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tidings.diversify import DIVERSIFIERS
from tidings.model.limits import Limits
from tidings.score import DECAYS, SCORERS
from tidings.window import WINDOWS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tidings"
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
WIDTH = 120
CITATION = re.compile(r"semantics §(\d+)")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page outside of code blocks."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def table_rows(page: Path) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for _, line in prose(page)
        if line.startswith("|")
    ]


def anchors(page: Path) -> set[str]:
    headings = [line.lstrip("# ") for _, line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    long = [n for n, line in prose(page) if len(line) > WIDTH and not line.startswith("|")]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for number, line in prose(page):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if link.startswith("http"):
                continue
            path, _, anchor = link.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), f"line {number}: {link}"
            if anchor:
                assert anchor in anchors(linked), f"line {number}: {link}"


def test_cited_sections_of_the_semantics_exist() -> None:
    page = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d+)\.", page, re.MULTILINE))
    for folder in ("src", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            assert set(CITATION.findall(file.read_text(encoding="utf-8"))) <= sections, file


def test_paths_in_the_architecture_exist() -> None:
    text = "\n".join(line for _, line in prose(ROOT / "ARCHITECTURE.md"))
    paths = {path for path in re.findall(r"`([\w/.]+)`", text) if "/" in path or ".py" in path}
    folders = (SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "docs")
    files = [file.as_posix() for folder in folders for file in folder.rglob("*.*")]
    assert [path for path in paths if not any(f"/{path}" in file for file in files)] == []


def test_the_tree_of_the_architecture_is_the_tree() -> None:
    block = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    listed = set(re.findall(r"^  ([\w.]+)/?  ", block, re.MULTILINE))
    entries = {path.name for path in SOURCE.iterdir() if not path.name.startswith(("__", "py."))}
    assert listed == entries
    assert len(entries) <= 20


def test_the_readme_lists_every_part() -> None:
    listed = {row[0]: set(re.findall(r"`([\w-]+)`", row[1])) for row in table_rows(README)}
    assert listed["scorer"] == set(SCORERS)
    assert listed["decay"] == set(DECAYS)
    assert listed["window"] == set(WINDOWS)
    assert listed["diversify"] == set(DIVERSIFIERS)


def test_the_page_on_limits_lists_both_presets() -> None:
    listed = {row[0]: row[2:4] for row in table_rows(ROOT / "docs/limits.md") if len(row) == 4}
    for limit in fields(Limits):
        values = [getattr(preset, limit.name) for preset in (Limits.trusted(), Limits.public())]
        assert listed[f"`{limit.name}`"] == [f"{value:,}" for value in values]
