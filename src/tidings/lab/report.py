"""The report of a comparison: a self-contained page, from the tables of the comparison."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from tidings.formats.markup import Node, styled_page, tag
from tidings.lab.charts import Bar, Spread, bars, colour, columns, heat_map, spreads
from tidings.lab.examples import Example
from tidings.model.values import SECOND_US, format_time

if TYPE_CHECKING:
    from tidings.lab.comparison import Comparison

_STYLE: Final = Path(__file__).with_name("report.css")
_BINS: Final = 96
"""The maximum number of bars in a chart over time; for a day, each is a quarter of an hour."""
_DAYS, _HOURS, _MINUTES = 86_400.0, 3_600.0, 60.0
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z)")


def duration(seconds: float) -> str:
    """Return a duration in its largest unit.

    >>> duration(0), duration(42), duration(5400), duration(200_000)
    ('0 s', '42 s', '1.5 h', '2.3 d')
    """
    for unit, name in ((_DAYS, "d"), (_HOURS, "h"), (_MINUTES, "min")):
        if seconds >= unit:
            return f"{_number(seconds / unit)} {name}"
    return f"{_number(seconds)} s"


def _number(value: float) -> str:
    """Return a number with two or three significant digits."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.2g}"


def _decimal(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.1%}" if 0 < value < 0.1 else f"{value:.0%}"


class Figure(NamedTuple):
    """A figure of policies: its column, heading, meaning, form, and its largest value if fixed.

    `best` picks the value to highlight; None if no value is better, as for the number of
    deliveries.
    """

    column: str
    heading: str
    meaning: str
    write: Callable[[float], str]
    top: float | None = None
    best: Callable[..., float] | None = None


FIGURES: Final = (
    Figure("delivered", "Deliveries", "events sent to all subscribers together", _number),
    Figure("share", "Delivered share", "of all matches, the share that was sent", _percent, 1.0),
    Figure("mean_score", "Average score", "of what was sent, before decay", _decimal, best=max),
    Figure(
        "diversity", "Diversity", "mean distance within a subscriber's last ten", _decimal, 1.0, max
    ),
    Figure(
        "mean_age_s",
        "Age",
        "from publication to delivery, on average",
        duration,
        best=min,
    ),
    Figure(
        "coverage", "Coverage", "subscriptions with a match that got something", _percent, 1.0, max
    ),
)
TABLE: Final = (
    *FIGURES[:2],
    Figure("mean_rank", "Average rank", "of what was sent, when it was sent", _decimal, best=max),
    *FIGURES[2:],
    Figure("receivers", "Receivers", "subscribers that got something", _number, best=max),
)
_DEFINITIONS: Final = (
    ("Match", "a publication that at least one subscription of a subscriber covers, once for each"),
    ("Delivered share", "deliveries divided by matches; plain publish/subscribe has 100%"),
    ("Average rank", "mean rank of the deliveries, with decay, at the moment they were made"),
    (
        "Average score",
        "mean score of the deliveries before decay; comparable if the scorers are the same",
    ),
    (
        "Diversity",
        "mean overlap distance of a subscriber's last ten (PREF Def. 8): 0 is alike, 1 different",
    ),
    ("Age", "mean time from publication to delivery (freshness)"),
    ("Coverage", "subscriptions with a delivery, of those with a match"),
    ("Overlap", "deliveries that both policies made, of those that either made (Jaccard)"),
)


def report_css() -> str:
    """Return the style of the page and of its pictures."""
    return _STYLE.read_text(encoding="utf-8")


def report_page(comparison: "Comparison") -> str:
    """Return the page."""
    title = _title(comparison)
    main = tag(
        "main",
        _header(comparison, title),
        _section(
            "At a glance",
            tag("div", summary_table(comparison), class_="scroll"),
            tag("div", (figure for _, figure in glance(comparison)), class_="grid"),
        ),
        _people(comparison),
        _times(comparison),
        _overlap(comparison) if len(comparison.variants) > 1 else None,
        _rules(comparison),
        _examples(comparison),
        _section("What the figures mean", tag("dl", _definitions())),
    )
    return styled_page(title, report_css(), main, _footer(comparison))


def lab_header(title: str, lead: str, *children: Element | None) -> Element:
    """Return the header of a page of the lab: its title, and a sentence on what it shows."""
    return tag(
        "header",
        tag("p", "Tidings lab", class_="overline"),
        tag("h1", title),
        tag("p", with_times(lead), class_="lead"),
        *children,
    )


def with_times(text: str) -> Iterator[Node]:
    """Yield a text with times as elements, since browsers break lines at the hyphens of a date."""
    for place, part in enumerate(_TIME.split(text)):
        yield tag("time", part) if place % 2 else part


def _title(comparison: "Comparison") -> str:
    names = comparison.policies
    if len(names) == 1:
        return f"What {names[0]} would have delivered"
    listed = (
        f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= 3 else f"{len(names)} policies"
    )
    return f"{listed}, over the same recording"


def _header(comparison: "Comparison", title: str) -> Element:
    recording, summary = comparison.recording, comparison.summary.to_pylist()
    first, last = (format_time(int(recording.published_us[place])) for place in (0, -1))
    matches = sorted({row["matches"] for row in summary})
    counts = " or ".join(f"{count:,}" for count in matches[:3])
    lead = (
        f"{len(recording.events):,} publications from {first} to {last}, "
        f"{len(recording.subscribers):,} subscribers with {len(recording.subscriptions):,} "
        f"subscriptions, and {counts} matches: what each policy would have delivered."
    )
    policies = (
        tag(
            "li",
            tag("span", class_=f"dot {colour(place)}"),
            tag("b", variant.name),
            tag("span", variant.words),
        )
        for place, variant in enumerate(comparison.variants)
    )
    return lab_header(title, lead, tag("ul", policies, class_="policies"), _notes(comparison))


def _notes(comparison: "Comparison") -> Element | None:
    """Return notes that a reader needs to interpret the figures."""
    notes = [
        f"{records.total:,} {records.kind}{'' if records.total == 1 else 's'} could not be used; "
        f"the first: {records.reasons[0]}"
        for records in comparison.recording.refused
    ]
    notes += [
        f"{row['policy']} cannot serve {row['subscriber']}: {row['reason']}"
        for row in comparison.set_aside.to_pylist()[:5]
    ]
    scorers = {variant.policy.scorer for variant in comparison.variants if variant.policy}
    if len(scorers) > 1:
        notes.append(
            "The policies have different scorers, so their scores and ranks cannot be compared."
        )
    notes += [
        f"{row['policy']} delivered nothing: its windows may still have been open at the end; "
        "a later end (until) closes them."
        for row in comparison.summary.to_pylist()
        if row["matches"] and not row["delivered"]
    ]
    return tag("div", [tag("p", note) for note in notes], class_="notes") if notes else None


def _section(heading: str, *children: Node | Iterable[Node] | None) -> Element:
    return tag("section", tag("h2", heading), *children)


def summary_table(comparison: "Comparison") -> Element:
    """Return the figures of each policy as a table."""
    rows = comparison.summary.to_pylist()
    head = tag("tr", tag("th", "policy"), (tag("th", figure.heading) for figure in TABLE))
    body = (
        tag("tr", tag("td", row["policy"]), (_figure_cell(figure, row, rows) for figure in TABLE))
        for row in rows
    )
    return tag("table", tag("thead", head), tag("tbody", body))


def _figure_cell(
    figure: Figure, row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Element:
    value = row[figure.column]
    known = [other[figure.column] for other in rows if other[figure.column] is not None]
    differ = bool(known) and min(known) < max(known)
    is_best = figure.best is not None and differ and value == figure.best(known)
    text = "-" if value is None else figure.write(value)
    return tag("td", text, class_="best") if is_best else tag("td", text)


def glance(comparison: "Comparison") -> Iterator[tuple[str, Element]]:
    """Yield a chart of each figure, by its column."""
    rows = comparison.summary.to_pylist()
    for figure in FIGURES:
        values = [Bar(row["policy"], row[figure.column]) for row in rows]
        label = f"{figure.heading}: " + "; ".join(
            f"{bar.policy} {'none' if bar.value is None else figure.write(bar.value)}"
            for bar in values
        )
        picture = bars(values, figure.write, label, figure.top)
        yield figure.column, _captioned(figure.heading, figure.meaning, picture)


def _captioned(heading: str, text: str, picture: Element) -> Element:
    return tag("figure", tag("figcaption", tag("h3", heading), tag("p", text)), picture)


_PER_PERSON: Final = (
    Figure("delivered", "Deliveries", "to each subscriber", _number),
    Figure("share", "Delivered share", "of each subscriber's matches", _percent),
    Figure("mean_score", "Average score", "of what each subscriber got", _decimal),
    Figure("diversity", "Diversity", "of what each subscriber got", _decimal),
    Figure("mean_age_s", "Age", "of what each subscriber got", duration),
    Figure("coverage", "Coverage", "of each subscriber's subscriptions", _percent),
)


def per_person(comparison: "Comparison") -> Iterator[tuple[str, Element]]:
    """Yield a chart of the distribution of each figure over the subscribers, by its column."""
    table = comparison.subscribers
    wanting = [row for row in table.to_pylist() if row["matches"]]
    for figure in _PER_PERSON:
        rows = [
            Spread(
                name,
                [
                    float(row[figure.column])
                    for row in wanting
                    if row["policy"] == name and row[figure.column] is not None
                ],
            )
            for name in comparison.policies
        ]
        medians = "; ".join(
            f"{row.policy} {figure.write(float(np.median(row.values)))}"
            for row in rows
            if row.values
        )
        picture = spreads(rows, figure.write, f"{figure.heading}, median: {medians}")
        yield figure.column, _captioned(figure.heading, figure.meaning, picture)


def _people(comparison: "Comparison") -> Element:
    text = (
        "Each box is the middle half of the subscribers that had a match, the mark is the median, "
        "and the line holds nine of ten. Without a delivery there is no score, diversity or age."
    )
    pictures = (figure for _, figure in per_person(comparison))
    return _section("Subscriber by subscriber", tag("p", text), tag("div", pictures, class_="grid"))


class TimeLine(NamedTuple):
    """Deliveries of a policy over time, in equal spans."""

    policy: str
    counts: list[int]


def time_lines(comparison: "Comparison") -> tuple[float, list[TimeLine]]:
    """Return the seconds of a span, and the deliveries of each policy by span."""
    start_us = int(comparison.recording.published_us[0])
    whole_us = comparison.until_us - start_us + 1
    span_us = max(SECOND_US, -(-whole_us // _BINS))
    bins = -(-whole_us // span_us)
    lines = list[TimeLine]()
    for name in comparison.policies:
        times = comparison.delivered_by(name)["delivered_at"].cast("int64").to_numpy()
        places = np.clip((times - start_us) // span_us, 0, bins - 1)
        lines.append(TimeLine(name, np.bincount(places, minlength=bins).tolist()))
    return span_us / SECOND_US, lines


def over_time(comparison: "Comparison") -> Iterator[tuple[str, Element]]:
    """Yield a chart of each policy's deliveries over time, by its name."""
    _, lines = time_lines(comparison)
    top = max((max(line.counts) for line in lines), default=1)
    for place, line in enumerate(lines):
        most = f"at most {max(line.counts):,} in a span"
        label = f"{line.policy}: {sum(line.counts):,} deliveries, {most}"
        caption = tag("figcaption", tag("h3", line.policy), tag("p", most))
        yield line.policy, tag("figure", caption, columns(line.counts, top, place, label))


def _times(comparison: "Comparison") -> Element:
    seconds, _ = time_lines(comparison)
    first = format_time(int(comparison.recording.published_us[0]))
    text = (
        f"Deliveries to all subscribers in spans of {duration(seconds)}, from {first} "
        f"to {format_time(comparison.until_us)}; all policies have the same scale."
    )
    pictures = (figure for _, figure in over_time(comparison))
    return _section("Over time", tag("p", with_times(text)), tag("div", pictures, class_="times"))


def overlap_map(comparison: "Comparison") -> Element:
    """Return a chart of how much each pair of policies has in common."""
    names = comparison.policies
    shares = {
        (row["first"], row["second"]): row["jaccard"] for row in comparison.overlap.to_pylist()
    }
    matrix = [
        [
            1.0 if one == other else shares.get((one, other), shares.get((other, one)))
            for other in names
        ]
        for one in names
    ]
    return heat_map(names, matrix, "The share of deliveries that two policies have in common")


def _overlap(comparison: "Comparison") -> Element:
    rows = comparison.overlap.to_pylist()
    known = [row for row in rows if row["jaccard"] is not None]
    text = "Of the deliveries that either policy made, the share that both made."
    if known:
        least = min(known, key=lambda row: row["jaccard"])
        agree = "agree least:" if len(known) > 1 else "both made"
        text += (
            f" {least['first']} and {least['second']} {agree} {least['common']:,} of "
            f"{least['either']:,}."
        )
    picture = tag("figure", overlap_map(comparison), class_="heatmap")
    return _section("Do they agree?", tag("p", text), picture)


def _rules(comparison: "Comparison") -> Element | None:
    rows = comparison.rules.to_pylist()
    if not rows:
        return None
    head = tag(
        "tr",
        [tag("th", name, class_="text") for name in ("policy", "rule", "fate")],
        tag("th", "events"),
    )
    body = (
        tag(
            "tr",
            [tag("td", row[name], class_="text") for name in ("policy", "rule", "fate")],
            tag("td", f"{row['count']:,}"),
        )
        for row in rows
    )
    text = (
        "What rules did with events that the windows had chosen; an event may be held by two rules."
    )
    return _section("Rules", tag("p", text), tag("table", tag("thead", head), tag("tbody", body)))


def _examples(comparison: "Comparison") -> Element | None:
    examples = comparison.examples
    if not examples:
        return None

    def pair(example: Example) -> tuple[str, str]:
        first, second = sorted(
            (example.delivered_by, example.not_by), key=comparison.policies.index
        )
        return first, second

    text = (
        "Events that one policy would have delivered and the other not, the highest scores first, "
        "for a subscriber on whom the policies differ most; with the reason of the other policy."
    )
    pairs = (_pair(names, list(group)) for names, group in groupby(examples, key=pair))
    return _section("What one sends and the other does not", tag("p", text), pairs)


def _pair(names: tuple[str, str], examples: Sequence[Example]) -> Element:
    person = examples[0].subscriber
    sides = (
        tag(
            "div",
            tag("h4", f"Only {name}"),
            tag("ul", items) if items else tag("p", "nothing", class_="soft"),
        )
        for name in names
        for items in [[_example(example) for example in examples if example.delivered_by == name]]
    )
    heading = tag("h3", f"{names[0]} or {names[1]}, for {person}")
    return tag("div", heading, tag("div", sides, class_="columns"), class_="pair")


def _example(example: Example) -> Element:
    about = "; ".join(f"{name} {_value(value)}" for name, value in example.attributes.items())
    return tag(
        "li",
        tag("p", tag("b", example.title or example.event)),
        tag("p", about),
        tag(
            "p",
            with_times(
                f"score {_decimal(example.score)}, published {example.published_at}, "
                f"delivered {example.delivered_at}"
            ),
            class_="soft",
        ),
        tag("p", with_times(f"{example.not_by}: {example.why}"), class_="soft"),
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, dict) and value.keys() == {"time"}:
        return str(value["time"])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _definitions() -> Iterator[Element]:
    for word, meaning in _DEFINITIONS:
        yield tag("dt", word)
        yield tag("dd", meaning)


def _footer(comparison: "Comparison") -> Element:
    forms = {
        variant.name: variant.policy.to_dict() if variant.policy else "own"
        for variant in comparison.variants
    }
    text = "\n".join(f"{name} = {_policy_text(form)}" for name, form in forms.items())
    return tag(
        "footer",
        tag("p", "The policies in full; every table of this page is in the CSV files beside it."),
        tag("pre", text),
    )


def _policy_text(form: Any) -> str:
    return json.dumps(form, ensure_ascii=False, default=str)
