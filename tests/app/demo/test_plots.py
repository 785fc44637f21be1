from xml.etree.ElementTree import Element

import pytest

from tidings.app.demo.compare import FigurePair
from tidings.app.demo.plots import AxisMark, Dot, PlotRow, bars, dots, linear, logarithmic, panel


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
