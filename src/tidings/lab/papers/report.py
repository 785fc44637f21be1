"""The report: one HTML page that stands alone, the same as Markdown, CSV and SVG files."""

import csv
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tidings.lab.papers.experiment import Exhibit
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.report_html import html_page
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
