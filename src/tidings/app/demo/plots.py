"""The pictures of the report: dots, bars and pairs of figures, as SVG that scales."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from tidings.app.demo.compare import FigurePair
from tidings.formats.markup import svg, tag, with_title

_DOTS_IN_ROW: Final = 120
_DOT: Final = 8
_BAR, _BARS_HEIGHT = 10, 44
_PANEL, _ROW, _MARGIN = 320, 40, 10


class Dot(NamedTuple):
    """A lit dot: its place in the row of all dots, and what it stands for."""

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
    """Where values stand on an axis, from 0 to 1, and how they are written."""

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
    """A row of a panel: a name, a pair of figures, and a remark, with which it is dimmed."""

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
