"""The page: complete, alone, and with every text escaped."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.lab.recordings import POLICIES, small_comparison

from tidings.lab.report import TABLE, duration, report_page, summary_table, time_lines
from tidings.lab.run_comparison import compare

HEADINGS = ["policy", *(figure.heading for figure in TABLE)]
HOSTILE = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """The tags of a page, and the addresses in their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_has_every_section_and_fetches_nothing(tmp_path: Path) -> None:
    text = small_comparison().report(tmp_path / "r.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.addresses == []
    assert not {"script", "link", "img"} & {*tags.tags}
    for heading in ("At a glance", "Subscriber by subscriber", "Over time", "Do they agree?"):
        assert heading in text
    assert "What one sends and the other does not" in text
    assert all(f"<b>{name}</b>" in text for name in POLICIES)


def test_hostile_names_and_values_are_text() -> None:
    comparison = compare(
        [
            {"id": HOSTILE + str(n), "published_at": n, "attributes": {"title": HOSTILE, "n": n}}
            for n in range(5)
        ],
        [{"id": "s", "subscriber": HOSTILE, "where": "n >= 0"}],
        {HOSTILE: {"k": 1, "window": {"name": "periodic", "length": "2s"}}, "all": {"k": 9}},
    )
    text = report_page(comparison)
    assert comparison.examples
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.tags
    assert "&lt;script&gt;" in text


def test_a_reader_is_told_what_limits_the_figures() -> None:
    comparison = compare(
        [{"id": "e", "published_at": 0, "attributes": {"a": 1}}, {"id": "bad"}],
        [{"id": "s", "subscriber": "ann", "where": "a = 1"}],
        {
            "later": {"k": 1, "window": {"name": "periodic", "length": "1d"}},
            "exact": {"k": 1, "scorer": "exact"},
        },
    )
    text = report_page(comparison)
    assert "1 publication could not be used; the first: " in text
    assert "later delivered nothing: its windows may still have been open at the end" in text
    assert "different scorers" in text


def test_numbers_and_agreement_are_in_words() -> None:
    comparison = compare(
        [{"id": f"e{n}", "published_at": n, "attributes": {"size": n + 27.0}} for n in range(3)],
        [{"id": "s", "subscriber": "ann", "where": "size >= 27"}],
        {"all": {"k": 9}, "one": {"k": 1, "window": {"name": "jumping", "length": 3, "step": 3}}},
    )
    text = report_page(comparison)
    assert "all and one both made 1 of 3." in text
    assert "<p>size 27</p>" in text
    assert "published <time>1970-01-01T00:00:00Z</time>" in text


def test_one_policy_needs_no_comparison() -> None:
    comparison = compare(
        [{"id": "e", "published_at": 0, "attributes": {"a": 1}}],
        [{"id": "s", "subscriber": "ann", "where": "a = 1"}],
        {"only": {"k": 1}},
    )
    assert "Do they agree?" not in report_page(comparison)


def test_durations_have_one_unit() -> None:
    assert [duration(s) for s in (0.5, 90, 86_400 * 3)] == ["0.5 s", "1.5 min", "3 d"]


def test_a_short_recording_has_no_spans_after_its_end() -> None:
    comparison = compare(
        [{"id": f"e{n}", "published_at": n, "attributes": {"a": 1}} for n in (0, 1, 1.5, 4)],
        [{"id": "s", "subscriber": "ann", "where": "a = 1"}],
        {"all": {"k": 9}},
    )
    seconds, (line,) = time_lines(comparison)
    assert (seconds, line.counts) == (1, [1, 2, 0, 0, 1])


def test_the_best_values_stand_out_but_more_deliveries_are_not_better() -> None:
    rows = {
        row[0].text: {
            heading: cell.get("class")
            for heading, cell in zip(HEADINGS, row.iter("td"), strict=True)
        }
        for row in summary_table(small_comparison()).iter("tr")
        if row[0].tag == "td"
    }
    bold = {heading for row in rows.values() for heading, kind in row.items() if kind == "best"}
    assert {"Average score", "Age"} <= bold
    assert not {"policy", "Deliveries", "Delivered share"} & bold
    ages = {row["policy"]: row["mean_age_s"] for row in small_comparison().summary.to_pylist()}
    assert [name for name, row in rows.items() if row["Age"] == "best"] == [
        name for name, age in ages.items() if age == min(ages.values())
    ]
