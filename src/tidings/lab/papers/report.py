"""The report: one self-contained HTML page, and the same as Markdown, CSV and SVG files."""

import csv
import io
import textwrap
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from tidings.formats.markup import styled_page, tag
from tidings.lab.papers.experiment import TITLES, Cell, Claim, Exhibit, display
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.report_words import (
    ABOUT,
    claim_text,
    exhibits_of,
    overview_row,
    parameters_text,
    reason,
    summary,
    verdict,
)

WIDTH: Final = 120
"""Letters in a line of prose."""
STYLE: Final = """
:root { --ink: #1c2328; --soft: #5c6870; --line: #d9dee2; --good: #0b6e4f; --bad: #b3261e;
  --paper: #fff; --tint: #f5f7f8; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { line-height: 1.2; margin-bottom: .3rem; } h2 { margin-top: 3rem; }
article { border-top: 1px solid var(--line); padding-top: .5rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0;
  border-bottom: 1px solid var(--line); } th { color: var(--soft); font-weight: 600; }
td.number { font-variant-numeric: tabular-nums; text-align: right; }
.holds { color: var(--good); font-weight: 600; } .fails { color: var(--bad); font-weight: 600; }
.soft, summary { color: var(--soft); } .scroll { overflow-x: auto; }
.reason { background: var(--tint); border-left: 3px solid var(--bad); padding: .4rem .8rem;
  margin: .3rem 0; } a { color: inherit; } details { margin: .4rem 0; } summary { cursor: pointer; }
"""


def write_report(runs: Sequence[FinishedRun], folder: Path) -> None:
    """Write report.html and report.md, and per exhibit a CSV and an SVG file."""
    for name in ("csv", "images"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for exhibit in exhibits_of(runs):
        (folder / "csv" / f"{exhibit.slug}.csv").write_text(csv_text(exhibit), encoding="utf-8")
        if exhibit.picture:
            path = folder / "images" / f"{exhibit.slug}.svg"
            path.write_text(exhibit.picture, encoding="utf-8")
    (folder / "report.md").write_text(markdown_page(runs), encoding="utf-8")
    (folder / "report.html").write_text(html_page(runs), encoding="utf-8")


def csv_text(exhibit: Exhibit) -> str:
    """Return the numbers of an exhibit as CSV."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(exhibit.table.columns)
    writer.writerows(exhibit.table.rows)
    return target.getvalue()


def markdown_page(runs: Sequence[FinishedRun]) -> str:
    """Return the report as Markdown, with links to the pictures in the folder images."""
    lines = ["# The papers, reproduced", "", *_prose(summary(runs)), "", *_prose(ABOUT), ""]
    exhibits = exhibits_of(runs)
    rows = [overview_row(exhibit) for exhibit in exhibits]
    lines += _markdown_table(("table or figure", "about", "claims that hold"), rows)
    for run in runs:
        for exhibit in run.exhibits:
            lines += _markdown_exhibit(run, exhibit)
    return "\n".join(lines) + "\n"


def _markdown_exhibit(run: FinishedRun, exhibit: Exhibit) -> Iterator[str]:
    yield from ("", f"## {exhibit.paper} {exhibit.number}: {exhibit.title}", "")
    if exhibit.picture:
        yield from (f"![{exhibit.title}](images/{exhibit.slug}.svg)", "")
    claims = [
        (claim_text(claim), claim.paper, claim.ours, verdict(claim)) for claim in exhibit.claims
    ]
    yield from _markdown_table(("claim", "paper", "ours", ""), claims)
    for claim in exhibit.claims:
        if not claim.holds:
            yield from ("", *_prose(f"Does not hold: {claim.text} {reason(claim)}"))
    if exhibit.note:
        yield from ("", *_prose(exhibit.note))
    used = (
        f"Parameters: {parameters_text(run)}. Seed {run.seed}, {run.cpu_s:.1f} s of processor time."
    )
    yield from ("", *_prose(used))


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def html_page(runs: Sequence[FinishedRun]) -> str:
    """Return the report: the overview, the claims that do not hold, and all exhibits."""
    exhibits = exhibits_of(runs)
    title = "The papers, reproduced"
    opening = [
        tag("h1", title),
        tag("p", tag("b", summary(runs))),
        tag("p", ABOUT, class_="soft"),
        _overview(exhibits),
        *_failures(exhibits),
    ]
    for paper, name in TITLES.items():
        articles = [
            _article(run, exhibit)
            for run in runs
            for exhibit in run.exhibits
            if exhibit.paper == paper
        ]
        if articles:
            opening += [tag("h2", f"{paper}: {name}"), *articles]
    return styled_page(title, STYLE, opening)


def _overview(exhibits: Sequence[Exhibit]) -> Element:
    rows = []
    for exhibit in exhibits:
        name, title, count = overview_row(exhibit)
        link = tag("a", name, href=f"#{exhibit.slug}")
        kind = "holds" if exhibit.holds else "fails"
        cells = (tag("td", link), tag("td", title), tag("td", count, class_=kind))
        rows.append(tag("tr", cells))
    return _table(("table or figure", "about", "claims that hold"), rows)


def _table(names: Sequence[str], rows: Sequence[Element]) -> Element:
    head = tag("tr", [tag("th", name) for name in names])
    return tag("div", tag("table", head, rows), class_="scroll")


def _failures(exhibits: Sequence[Exhibit]) -> list[Element]:
    failures = [
        (exhibit, claim) for exhibit in exhibits for claim in exhibit.claims if not claim.holds
    ]
    parts = [tag("h2", "Claims that do not hold")] if failures else []
    for exhibit, claim in failures:
        link = tag("a", f"{exhibit.paper} {exhibit.number}", href=f"#{exhibit.slug}")
        parts += [tag("p", link, f": {claim.text}"), tag("p", reason(claim), class_="reason")]
    return parts


def _article(run: FinishedRun, exhibit: Exhibit) -> Element:
    used = f"{parameters_text(run)}. Seed {run.seed}, {run.cpu_s:.1f} s of processor time."
    return tag(
        "article",
        tag("h3", f"{exhibit.paper} {exhibit.number}: {exhibit.title}"),
        tag("figure", _picture(exhibit)) if exhibit.picture else None,
        _table(("claim", "paper", "ours", ""), [_claim_row(claim) for claim in exhibit.claims]),
        tag("p", exhibit.note, class_="soft") if exhibit.note else None,
        tag("details", tag("summary", "Numbers"), _numbers(exhibit)),
        tag("details", tag("summary", "Parameters"), tag("p", used)),
        id=exhibit.slug,
    )


def _picture(exhibit: Exhibit) -> Element:
    """Return the picture within the page; as an image, its ids cannot clash with others."""
    address = f"data:image/svg+xml;base64,{b64encode(exhibit.picture.encode()).decode()}"
    return tag("img", src=address, alt=f"{exhibit.title}; the numbers are below")


def _claim_row(claim: Claim) -> Element:
    why = None if claim.holds else tag("p", reason(claim), class_="reason")
    kind = "holds" if claim.holds else "fails"
    return tag(
        "tr",
        tag("td", claim_text(claim), why),
        tag("td", claim.paper),
        tag("td", claim.ours),
        tag("td", verdict(claim), class_=kind),
    )


def _numbers(exhibit: Exhibit) -> Element:
    table = exhibit.table
    names = [f"{name} (measured)" if name in table.timed else name for name in table.columns]
    return _table(names, [tag("tr", [_cell(value) for value in row]) for row in table.rows])


def _cell(value: Cell) -> Element:
    if isinstance(value, int | float):
        return tag("td", display(value), class_="number")
    return tag("td", display(value))
