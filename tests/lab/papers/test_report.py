"""The report: claims that hold and claims that do not, in HTML and Markdown."""

import re
from dataclasses import replace

import pytest
from tests.lab.papers.small import small_experiment

from tidings.lab.papers.report import WIDTH, html_page, markdown_page, write_report
from tidings.lab.papers.report_words import (
    NO_REASON,
    Tally,
    exhibits_of,
    parameters_text,
    summary,
)
from tidings.lab.papers.run import perform


@pytest.fixture
def runs():
    return [perform(small_experiment(), "laptop", 7, lambda done, steps, label: None)]


def test_claims_are_counted(runs):
    assert Tally.of(exhibits_of(runs)) == Tally(1, 3, 1)
    assert "1 exhibit, 3 claims: 1 hold, 2 do not" in summary(runs)
    assert "Run with the sizes for a laptop and seed 7" in summary(runs)


def test_a_claim_that_fails_is_shown_as_failing_with_its_reason(runs):
    page = markdown_page(runs)
    assert "| Sizes are <small>. | below 100 | 10 | holds |" in page
    assert "| Sizes are odd. | odd | even | does not hold |" in page
    assert "Does not hold: Sizes are odd. Ten is even." in page
    assert f"Does not hold: It is fast. {NO_REASON}" in page
    assert "size 10 (paper: 1,000)" in page


def test_the_page_shows_the_failures_first_and_escapes_texts(runs):
    page = html_page(runs)
    failures = page[: page.index("<article")]
    assert "Claims that do not hold" in failures
    assert "Ten is even." in failures
    assert NO_REASON in failures
    assert "Sizes are &lt;small&gt;." in page
    assert "<small>" not in page
    assert page.count('class="holds"') == 1
    assert "measured time" in page


def test_the_page_stands_alone(runs):
    page = html_page(runs)
    assert re.findall(r'(?:src|href)="([^"#][^"]{0,20})', page) == ["data:image/svg+xml;ba"]


def test_lines_of_markdown_are_short(runs):
    prose = [line for line in markdown_page(runs).splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= WIDTH


def test_a_report_of_nothing_can_be_written(tmp_path):
    write_report([], tmp_path)
    assert "Nothing was run" in (tmp_path / "report.html").read_text()


def test_parameters_have_brackets_around_pairs_and_no_value_means_all(runs):
    ours = {"choices": [[10, 4], [20, 8]], "catalogue": {"products": 2000, "file": None}}
    paper = {"choices": ours["choices"], "catalogue": {"products": None, "file": None}}
    run = replace(runs[0], parameters=ours, paper_parameters=paper)
    assert parameters_text(run) == (
        "choices (10, 4), (20, 8); catalogue products: 2,000 (paper: all)"
    )
