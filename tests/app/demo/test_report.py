import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest

from tidings import Event
from tidings.app.demo.compare import FigurePair
from tidings.app.demo.facts import NotSent, RunFacts, person_day
from tidings.app.demo.report import (
    AxisMark,
    Dot,
    PlotRow,
    _age_scale,
    bars,
    dots,
    linear,
    logarithmic,
    panel,
    report_page,
)
from tidings.app.demo.screen import age
from tidings.app.demo.state import DemoState

VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """A parser of the report that checks the nesting of its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text.append(data)

    def named(self, name: str, class_: str | None = None) -> list[dict[str, str | None]]:
        """Return the attributes of all tags of a name, and of a class."""
        found = [attributes for tag, attributes in self.tags if tag == name]
        return [each for each in found if class_ in (None, *(each.get("class") or "").split())]

    @property
    def words(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.text).split())


@pytest.fixture
def html(state: DemoState, facts: RunFacts) -> str:
    line = NotSent("addison", state.events[0], "others <b>rank</b> higher")
    return report_page(state, person_day(state), [line, line, line], facts)


@pytest.fixture
def page(html: str) -> Page:
    return Page(html)


def test_the_page_stands_alone(html: str, page: Page) -> None:
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">')
    names = {name for name, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "image", "use"}
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)
    loading = {"src", "href", "srcset", "data", "poster", "action"}
    assert not any(loading & attributes.keys() for _, attributes in page.tags)


def test_the_numbers_are_those_of_the_run(state: DemoState, facts: RunFacts, page: Page) -> None:
    addison = state.stats["addison"]
    assert f"{addison.matches} films matched. {addison.delivered} were worth a ping." in page.words
    assert f"{addison.matches} pings" in page.words
    assert f"{addison.delivered} pings" in page.words
    counts = f"{state.published:,} films, {state.matches:,} matches, {state.delivered:,} sent"
    assert counts in page.words
    assert facts.agreement in page.words
    for stats in state.stats.values():
        assert f"{stats.delivered} sent of {stats.matches} matches" in page.words


def test_every_match_is_a_dot_and_every_delivery_is_lit(state: DemoState, page: Page) -> None:
    addison = state.stats["addison"]
    dark = sum((path.get("d") or "").count("M") for path in page.named("path", "dark"))
    assert len(page.named("circle", "lit")) == addison.delivered
    assert dark == addison.matches - addison.delivered


def test_the_plots_have_the_figures_of_all_subscribers(state: DemoState, page: Page) -> None:
    known = {name: stats.figures for name, stats in state.stats.items() if stats.figures}
    assert len(page.named("circle", "disc")) == 3 * len(known)
    for name, figures in known.items():
        assert f"{figures.rank.first_come:.0%} → {figures.rank.tidings:.0%}" in page.words
        assert f"{figures.variety.first_come:.2f} → {figures.variety.tidings:.2f}" in page.words
        assert f"{age(figures.age_s.first_come)} → {age(figures.age_s.tidings)}" in page.words
        remark = "" if state.stats[name].subscriber.asks_for_variety else f"{name} (did not ask)"
        assert remark in page.words


def test_what_was_not_sent_is_told(page: Page) -> None:
    assert page.words.count("others <b>rank</b> higher") == 3


def test_every_picture_has_a_text(page: Page) -> None:
    pictures = page.named("svg")
    assert len(pictures) == 2 + 2 + 3  # bars, bands and plots
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)


def test_headings_are_not_skipped(page: Page) -> None:
    levels = [int(name[1]) for name, _ in page.tags if re.fullmatch(r"h\d", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_titles_are_escaped(state: DemoState, facts: RunFacts) -> None:
    title = "<script>alert(1)</script> & \"Fish\" 'n'"
    film = Event("m1", {"title": title, "year": 1999, "genre": ["<i>"], "votes": 1}, 0)
    stats = state.stats["addison"]
    listed = stats.films[0]
    sent = listed.sent._replace(film=film)
    state.stats = {
        **state.stats,
        "addison": replace(
            stats, sent=(*stats.sent[:-1], sent), films=(listed._replace(sent=sent, reason="<u>"),)
        ),
    }
    day = person_day(state)._replace(sent=[sent])
    page = Page(report_page(state, day, [NotSent("<a>", film, "<s>")], facts))
    assert not {"script", "i", "u", "s", "a"} & {name for name, _ in page.tags}
    assert page.words.count(f"{title} (1999)") >= 3


def test_a_day_without_matches_is_a_page_too(state: DemoState, facts: RunFacts) -> None:
    empty = DemoState(state.subscribers, state.films, state.sizes)
    page = Page(report_page(empty, person_day(empty), [], facts))
    assert "0 films matched. 0 were worth a ping." in page.words
    assert "Not sent, because" not in page.words


@pytest.mark.parametrize(
    ("hours", "label"), [(0.1, "12 h"), (12, "12 h"), (39, "2 d"), (70, "1 w")]
)
def test_the_scale_of_ages_reaches_the_oldest_list(hours: float, label: str) -> None:
    scale = _age_scale([PlotRow("henry", FigurePair(hours * 3600, 60.0))])
    assert scale.ticks[-1].label == label
    assert 0 < scale.place(hours * 3600) <= 1
    assert scale.place(hours * 3600 * 0.9) < scale.place(hours * 3600)


def of_class(picture: Element, name: str) -> list[Element]:
    return [part for part in picture.iter() if name in part.get("class", "").split()]


def test_every_match_is_a_dot_and_the_lit_ones_are_named() -> None:
    picture = dots(250, [Dot(0, "first"), Dot(121, "second row")], "250 films")
    assert of_class(picture, "dark")[0].get("d", "").count("M") == 248
    lit = of_class(picture, "lit")
    assert [dot.findtext("title") for dot in lit] == ["first", "second row"]
    assert [(dot.get("cx"), dot.get("cy")) for dot in lit] == [("4", "4"), ("12", "12")]
    assert picture.get("viewBox") == "0 0 960 24"
    assert picture.get("aria-label") == "250 films"


def test_a_band_may_be_empty() -> None:
    assert dots(0, [], "nothing").get("viewBox") == "0 0 960 8"


def test_bars_have_one_scale_and_small_ones_stay_visible() -> None:
    heights = [float(bar.get("height", 0)) for bar in bars([220, 110, 1, 0], 220, "pings")]
    assert heights == [44, 22, 1]


@pytest.mark.parametrize(("value", "place"), [(-1, 0), (0, 0), (0.25, 0.25), (2, 1)])
def test_a_linear_scale_ends_at_its_ends(value: float, place: float) -> None:
    assert linear(str, []).place(value) == place


@pytest.mark.parametrize(("value", "place"), [(0, 0), (1, 0), (10, 0.5), (100, 1), (1e9, 1)])
def test_a_logarithmic_scale_goes_from_the_first_tick_to_the_last(
    value: float, place: float
) -> None:
    scale = logarithmic(str, [AxisMark(1, "1"), AxisMark(10, "10"), AxisMark(100, "100")])
    assert scale.place(value) == pytest.approx(place)


def test_a_panel_draws_each_pair_and_dims_rows_with_a_remark() -> None:
    scale = linear("{:.1f}".format, [AxisMark(0, "none"), AxisMark(1, "all")])
    rows = [PlotRow("a", FigurePair(0, 1)), PlotRow("b", FigurePair(1, 0.5), "did not ask")]
    picture = panel(rows, scale, "pairs")
    rings, discs = of_class(picture, "ring"), of_class(picture, "disc")
    assert [float(ring.get("cx", 0)) for ring in rings] == [10, 310]
    assert [float(disc.get("cx", 0)) for disc in discs] == [310, 160]
    assert [disc.get("class") for disc in discs] == ["disc", "disc dimmed"]
    texts = [text.text for text in picture.iter("text")]
    assert texts == ["none", "all", "a", "0.0 → 1.0", "b (did not ask)", "1.0 → 0.5"]
