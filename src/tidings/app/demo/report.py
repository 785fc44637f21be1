"""The report of the demo: one self-contained page, from the numbers of the run.

Its pictures are dots, bars and pairs of figures, as SVG that scales.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from tidings.app.demo.compare import FigurePair
from tidings.app.demo.facts import Band, NotSent, PersonDay, RunFacts
from tidings.app.demo.movies import EVERY_S, clock, genres, title
from tidings.app.demo.screen import AGE, FIRST_COME, RANK, VARIETY, age
from tidings.app.demo.state import DemoState, SentFilm, SubscriberStats
from tidings.app.output.console import plural
from tidings.formats.markup import Node, styled_page, svg, tag, with_title
from tidings.model.records import Event
from tidings.model.values import SECOND_US

_DOTS_IN_ROW: Final = 120
_DOT: Final = 8
_BAR, _BARS_HEIGHT = 10, 44
_PANEL, _ROW, _MARGIN = 320, 40, 10


class Dot(NamedTuple):
    """A lit dot: its place in the row of all dots, and its meaning."""

    place: int
    text: str


def dots(count: int, lit: Sequence[Dot], label: str) -> Element:
    """Draw `count` dots from left to right, line by line; some are lit."""
    rows = -(-count // _DOTS_IN_ROW)
    bright = {dot.place for dot in lit}
    # Lines without length have round ends only: a whole dot in five characters.
    dark = "".join(f"M{_dot_x(i)} {_dot_y(i)}h0" for i in range(count) if i not in bright)
    circles = (
        with_title(
            tag("circle", cx=_dot_x(dot.place), cy=_dot_y(dot.place), r=3.6, class_="lit"), dot.text
        )
        for dot in lit
    )
    path = tag("path", d=dark, class_="dark")
    return svg(_DOTS_IN_ROW * _DOT, max(1, rows) * _DOT, label, path, circles)


def _dot_x(place: int) -> int:
    return place % _DOTS_IN_ROW * _DOT + _DOT // 2


def _dot_y(place: int) -> int:
    return place // _DOTS_IN_ROW * _DOT + _DOT // 2


def bars(counts: Sequence[int], top: int, label: str) -> Element:
    """Draw a bar for each count; one of `top` has the full height."""
    drawn = (
        tag("rect", x=i * _BAR + 1, width=_BAR - 2, y=_BARS_HEIGHT - height, height=height, rx=1.5)
        for i, count in enumerate(counts)
        # One that is not zero stays visible.
        if (height := round(max(count and 1, count / max(1, top) * _BARS_HEIGHT), 2))
    )
    return svg(max(1, len(counts)) * _BAR, _BARS_HEIGHT, label, drawn)


class AxisMark(NamedTuple):
    """A labelled place on a scale."""

    value: float
    label: str


class Scale(NamedTuple):
    """The positions of values on an axis, from 0 to 1, and how they are written."""

    place: Callable[[float], float]
    form: Callable[[float], str]
    ticks: Sequence[AxisMark]


def linear(form: Callable[[float], str], ticks: Sequence[AxisMark]) -> Scale:
    """Return the scale from 0 to 1."""
    return Scale(lambda value: min(1.0, max(0.0, value)), form, ticks)


def logarithmic(form: Callable[[float], str], ticks: Sequence[AxisMark]) -> Scale:
    """Return a logarithmic scale from the first tick to the last."""
    low, high = math.log(ticks[0].value), math.log(ticks[-1].value)

    def place(value: float) -> float:
        return min(1.0, max(0.0, (math.log(max(value, 1e-9)) - low) / (high - low)))

    return Scale(place, form, ticks)


class PlotRow(NamedTuple):
    """A row of a panel: a name, and a pair of figures; a row with a remark is dimmed."""

    name: str
    pair: FigurePair
    remark: str = ""


def panel(rows: Sequence[PlotRow], scale: Scale, label: str) -> Element:
    """Draw a line for each pair, from a ring (first come) to a disc (Tidings)."""
    bottom = len(rows) * _ROW
    axis = (
        part
        for tick in scale.ticks
        for x in [_panel_x(scale, tick.value)]
        for part in (
            tag("line", x1=x, x2=x, y1=14, y2=bottom, class_="grid"),
            tag("text", tick.label, x=x, y=bottom + 16, class_="tick", text_anchor=_anchor(x)),
        )
    )
    drawn = (part for i, row in enumerate(rows) for part in _row(row, scale, i * _ROW))
    return svg(_PANEL, bottom + 22, label, axis, drawn)


def _row(row: PlotRow, scale: Scale, top: int) -> Iterator[Element]:
    first, tidings = (_panel_x(scale, value) for value in row.pair)
    y, dimmed = top + 27, " dimmed" if row.remark else ""
    name = f"{row.name} ({row.remark})" if row.remark else row.name
    values = " → ".join(map(scale.form, row.pair))
    yield tag("text", name, x=0, y=top + 14, class_="name")
    yield tag("text", values, x=_PANEL, y=top + 14, class_="value", text_anchor="end")
    yield tag("line", x1=_MARGIN, x2=_PANEL - _MARGIN, y1=y, y2=y, class_="track")
    yield tag("line", x1=first, x2=tidings, y1=y, y2=y, class_="span" + dimmed)
    yield tag("circle", cx=first, cy=y, r=4.5, class_="ring")
    yield tag("circle", cx=tidings, cy=y, r=5.5, class_="disc" + dimmed)


def _panel_x(scale: Scale, value: float) -> float:
    return round(_MARGIN + scale.place(value) * (_PANEL - 2 * _MARGIN), 2)


def _anchor(x: float) -> str:
    return "start" if x < _PANEL / 4 else "end" if x > _PANEL * 3 / 4 else "middle"


REPORT: Final = "report.html"
_STYLE: Final = Path(__file__).with_name("report.css")
_ON_SCREEN: Final = 6
_SHARES: Final = linear(
    "{:.0%}".format, [AxisMark(0, "0"), AxisMark(0.5, "50%"), AxisMark(1, "best")]
)
_DISTANCES: Final = linear("{:.2f}".format, [AxisMark(0, "alike"), AxisMark(1, "different")])
_AGE_MARKS: Final = (
    AxisMark(60, "1 min"),
    AxisMark(600, "10 min"),
    AxisMark(3600, "1 h"),
    AxisMark(43_200, "12 h"),
    AxisMark(172_800, "2 d"),
    AxisMark(604_800, "1 w"),
)


class Ping(NamedTuple):
    """A notification on a phone."""

    at_us: int
    film: Event
    rank: float


def report_page(
    state: DemoState, day: PersonDay, not_sent: Sequence[NotSent], facts: RunFacts
) -> str:
    """Return the page."""
    matched, sent = f"{len(day.matches):,}", f"{len(day.sent):,}"
    headline = f"{matched} films matched. {sent} were worth a ping."
    header = tag(
        "header",
        tag("p", "Tidings demo", class_="overline"),
        tag("h1", headline),
        tag("p", _lead(day), class_="lead"),
    )
    sections = (
        _phones(day),
        _strip(day),
        _not_sent(not_sent) if not_sent else None,
        _quality(list(state.stats.values())),
        _everyone(list(state.stats.values())),
    )
    main = tag("main", header, *sections)
    style = _STYLE.read_text(encoding="utf-8")
    return styled_page(f"Tidings demo: {headline}", style, main, _footer(state, facts))


def _lead(day: PersonDay) -> str:
    span = "one day" if day.is_whole else f"the first {age(day.published * EVERY_S)}"
    every = age(day.seconds_per_match)
    return (
        f"In {span}, {day.published:,} films came out. {_person(day)} likes {day.owner.likes}. "
        f"Plain publish/subscribe sends every film that matches: one every {every}, day and "
        f"night. Tidings sends the {day.owner.gets}."
    )


def _person(day: PersonDay) -> str:
    return day.owner.name.capitalize()


def _section(heading: str, *children: Node | Iterable[Node]) -> Element:
    return tag("section", tag("h2", heading), *children)


def _phones(day: PersonDay) -> Element:
    matches = [Ping(film.published_us, film, score) for film, score in day.matches]
    sent = [Ping(at_us, film, rank) for film, rank, at_us in day.sent]
    top = max(day.hourly([ping.film for ping in matches]), default=1)
    phones = (
        _phone(day, heading, kind, pings, top)
        for heading, kind, pings in (
            ("Plain publish/subscribe", "plain", matches),
            ("Tidings", "tidings", sent),
        )
    )
    return tag("section", phones, class_="phones", aria_label="The same day on two phones")


def _phone(day: PersonDay, heading: str, kind: str, pings: Sequence[Ping], top: int) -> Element:
    """Draw a phone with its last notifications; a bar of `top` pings has the full height."""
    hourly = day.hourly([ping.film for ping in pings])
    shown = pings[: -_ON_SCREEN - 1 : -1]
    total, now = f"{len(pings):,}", clock(day.published * EVERY_S)
    rate = len(pings) / max(1, day.published) * 3600 / EVERY_S
    label = f"{heading}: pings in each hour, at most {max(hourly, default=0):,}"
    screen = tag(
        "div",
        tag("p", tag("span", now), tag("span", total, class_="badge"), class_="status"),
        tag("ol", map(_notification, shown)),
        tag("p", f"and {len(pings) - len(shown):,} more", class_="more"),
        class_="screen",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h2", heading), tag("p", tag("strong", total), " pings")),
        screen,
        tag(
            "div", bars(hourly, top, label), tag("p", f"{rate:,.0f} pings per hour"), class_="bars"
        ),
        class_=f"phone {kind}",
    )


def _notification(ping: Ping) -> Element:
    about = " · ".join([*genres(ping.film), f"rank {ping.rank:.1f}"])
    return tag(
        "li",
        tag("time", clock(ping.at_us // SECOND_US)),
        tag("span", title(ping.film), class_="film"),
        tag("span", about, class_="about"),
    )


def _strip(day: PersonDay) -> Element:
    sent = {sent.film.id: sent for sent in day.sent}
    text = (
        f"Each dot is a film that matches, in the order they came. Those that {_person(day)} was "
        "sent are lit: few, the best of their time, and different from each other."
    )
    bands = (_band(band, sent) for band in day.bands)
    return _section("Every match, by rank", tag("p", text), tag("div", bands, class_="night"))


def _band(band: Band, sent: Mapping[str, SentFilm]) -> Element:
    lit = [
        Dot(place, f"{clock(sent[film.id].at_us // SECOND_US)} {title(film)}")
        for place, film in enumerate(band.films)
        if film.id in sent
    ]
    counts = f"{plural(len(band.films), 'film')}, {len(lit):,} sent"
    rank = f"rank {band.rank:g}"
    caption = tag("figcaption", tag("strong", rank), tag("span", counts))
    return tag("figure", caption, dots(len(band.films), lit, f"{rank}: {counts}"))


def _not_sent(lines: Sequence[NotSent]) -> Element:
    cards = (
        tag(
            "li",
            tag("p", f"not sent to {line.subscriber}", class_="overline"),
            tag("h3", title(line.film)),
            tag("p", line.because),
        )
        for line in lines
    )
    text = "Whatever is not sent has a reason. Ask the engine to explain it:"
    return _section("Not sent, because", tag("p", text), tag("ul", cards, class_="cards"))


def _quality(stats: Sequence[SubscriberStats]) -> Element:
    known = [(row.subscriber, quality) for row in stats if (quality := row.figures)]
    lists = f"{sum(len(row.lists) for row in stats):,} lists of {len(known)} subscribers"
    ranks = [PlotRow(owner.name, quality.rank) for owner, quality in known]
    ages = [PlotRow(owner.name, quality.age_s) for owner, quality in known]
    varieties = [
        PlotRow(owner.name, quality.variety, "" if owner.asks_for_variety else "did not ask")
        for owner, quality in known
    ]
    plots = (
        _plot("Rank", RANK, ranks, _SHARES),
        _plot("Variety", VARIETY, varieties, _DISTANCES),
        _plot("Age", AGE, ages, _age_scale(ages)),
    )
    legend = tag(
        "p",
        tag("span", "first come", class_="key first"),
        tag("span", "Tidings", class_="key tidings"),
        class_="legend",
    )
    text = tag("p", f"{lists}, each next to as many films first come. {FIRST_COME}")
    return _section("Better lists for everyone", text, legend, tag("div", plots, class_="plots"))


def _age_scale(rows: Sequence[PlotRow]) -> Scale:
    """Return a scale on which the oldest list has its place, instead of the last mark's."""
    oldest = max((age_s for row in rows for age_s in row.pair), default=0.0)
    shorter = [mark for mark in _AGE_MARKS if mark.value < oldest]
    return logarithmic(age, _AGE_MARKS[: max(4, len(shorter) + 1)])


def _plot(heading: str, text: str, rows: Sequence[PlotRow], scale: Scale) -> Element:
    values = "; ".join(
        f"{row.name} {scale.form(row.pair.first_come)} to {scale.form(row.pair.tidings)}"
        for row in rows
    )
    caption = tag("figcaption", tag("h3", heading), tag("p", text))
    return tag("figure", caption, panel(rows, scale, f"{heading}, first come to Tidings: {values}"))


def _everyone(stats: Sequence[SubscriberStats]) -> Element:
    cards = (
        tag(
            "li",
            tag("h3", row.subscriber.name),
            tag("p", f"likes {row.subscriber.likes}; gets {row.subscriber.gets}", class_="about"),
            tag(
                "p",
                tag("strong", f"{row.delivered:,}"),
                f" sent of {plural(row.matches, 'match')}{f'; {row.ruled}' if row.ruled else ''}",
            ),
            tag("ol", (_listed(sent, reason) for sent, reason in row.films)),
        )
        for row in stats
    )
    text = "Each policy is a different idea; these are the last films each one sent."
    return _section("The subscribers", tag("p", text), tag("ul", cards, class_="cards people"))


def _listed(sent: SentFilm, reason: str) -> Element:
    return tag(
        "li",
        tag("time", clock(sent.at_us // SECOND_US)),
        tag("span", title(sent.film), class_="film"),
        tag("span", f"rank {sent.rank:.2f} · {reason}", class_="about"),
    )


def _footer(state: DemoState, facts: RunFacts) -> Element:
    counts = (
        f"{state.published:,} films, {plural(state.matches, 'match')}, {state.delivered:,} sent, "
        f"in {facts.seconds:.0f} seconds through a Spark stream of {state.batches} batches. "
    )
    data = (
        "The films are the catalogue ggplot2movies (IMDb up to 2005), shuffled and published one "
        f"every {EVERY_S} seconds. All numbers on this page come from this run of the demo."
    )
    return tag("footer", tag("p", counts, facts.agreement), tag("p", data))
