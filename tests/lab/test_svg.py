"""Charts: small, and the same bytes for the same numbers."""

from xml.etree import ElementTree as ET

import pytest

from tidings.lab.svg import Panel, Series, chart

LINE = Series("ours", (1, 10, 100), (0.1, 2.0, 30.0))
OTHER = Series("the paper", (1, 10, 100), (0.2, 1.0, 50.0), dashed=True)
BARS = Series("ours", ("a", "b"), (1, 2))


@pytest.mark.parametrize(
    "panels",
    [
        [Panel("Lines", "k", "ms", [LINE, OTHER])],
        [Panel("Logarithms", "k", "ms", [LINE, OTHER], log_x=10, log_y=True)] * 4,
        [Panel("Bars", "name", "count", [BARS], bars=True, y_range=(0, 3))],
    ],
)
def test_the_same_numbers_are_the_same_bytes(panels):
    picture = chart(panels)
    assert picture == chart(panels)
    ET.fromstring(picture)
    assert "<metadata" not in picture
    assert len(picture) < 40_000
    assert panels[0].title in picture


def test_a_legend_names_the_lines_once():
    picture = chart([Panel(title, "k", "ms", [LINE, OTHER]) for title in "abc"])
    assert picture.count("the paper") == 1
    assert "ours" not in chart([Panel("One", "k", "ms", [LINE])])
