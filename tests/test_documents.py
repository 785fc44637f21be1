"""Sentences and tables of the documents agree with the code: paths, links, sections, lists."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest

from tidings.app.config.pipeline import Config
from tidings.diversify import DIVERSIFIERS
from tidings.engine.engine import Engine
from tidings.index.boxes.registry import BOX_INDEXES
from tidings.index.intervals.registry import INTERVAL_INDEXES
from tidings.model.limits import Limits
from tidings.rules import RULES
from tidings.score import DECAYS, SCORERS
from tidings.window import WINDOWS
from tidings.window.length import Length

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tidings"
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
WIDTH = 120
CITATION = re.compile(r"semantics §(\d+b?)")


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
    sections = set(re.findall(r"^## (\d+b?)\.", page, re.MULTILINE))
    for folder in ("src", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            assert set(CITATION.findall(file.read_text(encoding="utf-8"))) <= sections, file


def test_paths_in_the_architecture_exist() -> None:
    text = "\n".join(line for _, line in prose(ROOT / "ARCHITECTURE.md"))
    paths = {path for path in re.findall(r"`([\w/.]+)`", text) if "/" in path or ".py" in path}
    folders = (SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "docs")
    files = [file.as_posix() for folder in folders for file in folder.rglob("*.*")]
    assert [path for path in paths if not any(f"/{path}" in file for file in files)] == []


def test_names_in_the_architecture_are_defined_where_it_says() -> None:
    """A name in parentheses behind a path is a class, a function or a method of that file."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    cited = re.findall(r"`([\w/]+\.py)`\s\(`(\w+)`\)", text)
    assert len(cited) > 10
    for path, name in cited:
        source = (SOURCE / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:class|(?:async )?def) {name}\b", source, re.MULTILINE), (
            path,
            name,
        )


def test_the_architecture_answers_twenty_questions() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Where is ...?")[2].partition("## ")[0]
    answers = dict(re.findall(r"^\| (.+\?) \| (.+) \|$", table, re.MULTILINE))
    assert len(answers) >= 20
    assert all("/" in answer for answer in answers.values())


def test_modules_that_pages_and_docstrings_name_exist() -> None:
    folders = (SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "examples")
    files = [file.as_posix() for folder in folders for file in folder.rglob("*.py")]
    places = [page for page in PAGES if page.name != "CHANGELOG.md"] + sorted(SOURCE.rglob("*.py"))
    missing = [
        f"{place.relative_to(ROOT)}: {path}"
        for place in places
        for path in re.findall(r"`((?:\w+/)*\w+\.py)`", place.read_text(encoding="utf-8"))
        if not any(file.endswith(f"/{path}") for file in files)
    ]
    assert missing == []


def test_the_tree_of_the_architecture_is_the_tree() -> None:
    block = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    listed = set(re.findall(r"^  ([\w.]+)/?  ", block, re.MULTILINE))
    entries = {path.name for path in SOURCE.iterdir() if not path.name.startswith(("__", "py."))}
    assert listed == entries
    assert len(entries) <= 24


def test_the_readme_lists_every_part() -> None:
    listed = {row[0]: set(re.findall(r"`([\w-]+)`", row[1])) for row in table_rows(README)}
    assert listed["scorer"] == set(SCORERS)
    assert listed["decay"] == set(DECAYS)
    assert listed["window"] == set(WINDOWS)
    assert listed["diversify"] == set(DIVERSIFIERS)
    assert listed["rules"] == set(RULES)


def test_the_page_on_limits_lists_both_presets() -> None:
    listed = {row[0]: row[2:4] for row in table_rows(ROOT / "docs/limits.md") if len(row) == 4}
    for limit in fields(Limits):
        values = [getattr(preset, limit.name) for preset in (Limits.trusted(), Limits.public())]
        assert listed[f"`{limit.name}`"] == [f"{value:,}" for value in values]


def section(page: Path, heading: str) -> str:
    """Return the text of a page between a heading and the next one of its level."""
    text = page.read_text(encoding="utf-8")
    start = text.index(heading)
    end = text.find("\n## ", start + 1)
    return text[start:end] if end > 0 else text[start:]


def first_column(text: str) -> list[str]:
    """Return the names in backticks of the first column of the tables in a text."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_page_on_indexes_lists_every_index() -> None:
    page = ROOT / "docs/internals/indexes.md"
    assert set(first_column(section(page, "## One attribute"))) == set(INTERVAL_INDEXES)
    boxes = set(first_column(section(page, "## Several attributes")))
    assert boxes == set(BOX_INDEXES)


def test_the_page_on_diversity_lists_every_diversifier() -> None:
    text = (ROOT / "docs/internals/diversity.md").read_text(encoding="utf-8")
    assert set(first_column(text.split("Use `divrank`")[0])) - {"alpha"} == set(DIVERSIFIERS)


def test_the_page_on_web_apps_lists_every_method_and_setting_of_the_engine() -> None:
    page = ROOT / "docs/web-app.md"
    listed = first_column(section(page, "## All methods"))
    public = {name for name in vars(Engine) if not name.startswith("_")}
    settings = set(inspect.signature(Engine).parameters)
    assert {name.partition("(")[0] for name in listed} == {"Engine"} | public | settings


@pytest.mark.parametrize(
    ("heading", "parts"),
    [
        ("Scorers", SCORERS),
        ("Decays", DECAYS),
        ("Windows", WINDOWS),
        ("Diversifiers", DIVERSIFIERS),
        ("Rules", RULES),
    ],
)
def test_the_page_on_policies_lists_every_parameter_with_its_default(
    heading: str, parts: dict[str, type]
) -> None:
    listed: dict[str, dict[str, str]] = {}
    for line in section(ROOT / "docs/policies.md", f"## {heading}").splitlines():
        cells = [cell.strip(" `") for cell in line.split("|")[1:-1]]
        if line.startswith("| ") and cells[0] != heading.lower()[:-1] and len(cells) == 4:
            part, parameter, default, _ = cells
            listed.setdefault(part or [*listed][-1], {}).update(
                {parameter: default} if parameter else {}
            )
    actual = {
        name: {field.name.rstrip("_"): shown_default(field) for field in fields(part) if field.init}
        for name, part in parts.items()
    }
    assert listed == actual


def shown_default(field: Field[Any]) -> str:
    """Return a default the way the page on policies shows it."""
    if field.default_factory is not MISSING:
        return json.dumps(field.default_factory())
    if field.default is MISSING:
        return "required"
    if field.default is None:
        return "never" if field.name in ("expires", "urgent") else "automatic"
    if isinstance(field.default, Length):
        return json.dumps(field.default.to_form())
    return json.dumps(getattr(field.default, "name", field.default))


def test_the_page_on_pipelines_lists_every_limit_and_the_defaults_of_streams() -> None:
    page = ROOT / "docs/pipeline.md"
    limits = first_column(section(page, "## `[limits]`"))
    assert limits == ["preset", *(limit.name for limit in fields(Limits))]
    defaults = {option.name: option.default for option in fields(Config)}
    rows = {row[0]: row[1] for row in table_rows(page)}
    assert f'`"{defaults["trigger"]}"` (the default)' in rows["`trigger`"]
    assert f'(`"{defaults["lateness"]}"`)' in rows["`lateness`"]
    assert f"({defaults['buckets']})" in rows["`buckets`"]


def test_the_page_on_dataframes_lists_every_option_with_its_default() -> None:
    """Read the options from the source, since importing them would import pyspark."""
    module = ast.parse((SOURCE / "spark/api.py").read_text(encoding="utf-8"))
    (options,) = (node for node in module.body if getattr(node, "name", "") == "Options")
    assert isinstance(options, ast.ClassDef)
    defaults = {**assigned(module.body), **assigned(options.body)}
    page = section(ROOT / "docs/spark.md", "## Options of")
    listed = dict(option.partition("=")[::2] for option in first_column(page.split("\n## ")[0]))
    assert set(listed) == set(assigned(options.body))
    for name, default in listed.items():
        if default and name != "limits":
            assert default == defaults.get(defaults[name], defaults[name]).replace("'", '"')


def assigned(statements: list[ast.stmt]) -> dict[str, str]:
    """Return the values of annotated names, as source text."""
    return {
        ast.unparse(statement.target): ast.unparse(statement.value)
        for statement in statements
        if isinstance(statement, ast.AnnAssign) and statement.value is not None
    }
