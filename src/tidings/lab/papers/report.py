"""The report: one HTML page that stands alone, the same as Markdown, CSV and SVG files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tidings.lab.papers.experiment import Exhibit
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.report_html import html_page
from tidings.lab.papers.report_markdown import markdown_page
from tidings.lab.papers.report_words import exhibits_of


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
