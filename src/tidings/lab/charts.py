"""The charts of a comparison: bars, distributions, timelines and a heat map, as SVG.

A policy has the same colour in all of them: the class `p0` to `p7`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from tidings.formats.markup import svg, tag, with_title

COLOURS: Final = 8
_WIDTH: Final = 340
_ROW: Final = 40
_TRACK: Final = _WIDTH
_HEIGHT: Final = 46
_QUANTILES: Final = (5, 25, 50, 75, 95)
_UPRIGHT: Final = 8
"""The number of letters of a name that fit above a square of the heat map."""
Write = Callable[[float], str]
"""Formats a value."""


class Bar(NamedTuple):
    """The value of a policy, or None if it has none."""

    policy: str
    value: float | None


def bars(rows: Sequence[Bar], write: Write, label: str, top: float | None = None) -> Element:
    """Draw a bar for each policy; `top`, or the largest value, has the full width."""
    largest = top or max((row.value for row in rows if row.value), default=1.0)
    parts = (part for place, row in enumerate(rows) for part in _bar(place, row, write, largest))
    return svg(_WIDTH, len(rows) * _ROW, label, parts)


def _bar(place: int, row: Bar, write: Write, largest: float) -> Iterator[Element]:
    y, text = place * _ROW, "none" if row.value is None else write(row.value)
    yield from _heading(place, row.policy, text)
    yield tag("rect", x=0, y=y + 21, width=_TRACK, height=9, rx=4.5, class_="track")
    if row.value:
        width = round(max(2.0, min(1.0, row.value / largest) * _TRACK), 2)
        yield tag("rect", x=0, y=y + 21, width=width, height=9, rx=4.5, class_=colour(place))


def _heading(place: int, policy: str, text: str) -> Iterator[Element]:
    y = place * _ROW + 14
    yield tag("text", clip(policy), x=0, y=y, class_="name")
    yield tag("text", text, x=_WIDTH, y=y, class_="value", text_anchor="end")


def colour(place: int) -> str:
    """Return the CSS class of the policy at a position."""
    return f"p{place % COLOURS}"


def clip(text: str, most: int = 34) -> str:
    """Return a text, shortened to fit into a chart."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Spread(NamedTuple):
    """The values of a policy's subscribers."""

    policy: str
    values: Sequence[float]


def spreads(rows: Sequence[Spread], write: Write, label: str) -> Element:
    """Draw a box for each policy: the middle half, the median, and the middle nine tenths."""
    largest = max((max(row.values) for row in rows if row.values), default=0.0) or 1.0
    parts = (part for place, row in enumerate(rows) for part in _box(place, row, write, largest))
    ends = (
        tag("text", write(0), x=0, y=len(rows) * _ROW + 10, class_="tick"),
        tag(
            "text",
            write(largest),
            x=_WIDTH,
            y=len(rows) * _ROW + 10,
            class_="tick",
            text_anchor="end",
        ),
    )
    return svg(_WIDTH, len(rows) * _ROW + 14, label, parts, ends)


def _box(place: int, row: Spread, write: Write, largest: float) -> Iterator[Element]:
    y = place * _ROW + 26
    if not row.values:
        yield from _heading(place, row.policy, "nobody")
        return
    points = np.percentile(np.array(row.values, np.float64), _QUANTILES)
    low, first, middle, third, high = (round(float(p) / largest * _WIDTH, 2) for p in points)
    yield from _heading(place, row.policy, f"median {write(float(points[2]))}")
    yield tag("line", x1=0, x2=_WIDTH, y1=y, y2=y, class_="axis")
    yield tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"whisker {colour(place)}")
    box = tag(
        "rect",
        x=first,
        y=y - 6,
        width=max(1.5, round(third - first, 2)),
        height=12,
        rx=2,
        class_=f"box {colour(place)}",
    )
    texts = [write(float(point)) for point in points]
    yield with_title(
        box,
        f"{row.policy}: half of the subscribers from {texts[1]} to {texts[3]}, "
        f"nine of ten from {texts[0]} to {texts[4]}",
    )
    yield tag("line", x1=middle, x2=middle, y1=y - 8, y2=y + 8, class_="median")


def columns(counts: Sequence[int], top: int, place: int, label: str) -> Element:
    """Draw a column for each count; `top` has the full height."""
    width = 960 / max(1, len(counts))
    drawn = (
        tag(
            "rect",
            x=round(number * width + 0.5, 2),
            width=round(width - 1, 2),
            y=round(_HEIGHT - height, 2),
            height=round(height, 2),
            class_=colour(place),
        )
        for number, count in enumerate(counts)
        if (height := max(1.0, count / max(1, top) * _HEIGHT) if count else 0.0)
    )
    floor = tag("line", x1=0, x2=960, y1=_HEIGHT, y2=_HEIGHT, class_="axis")
    picture = svg(960, _HEIGHT + 1, label, drawn, floor)
    # The same height on a phone as on a wide screen: columns may become narrow, but not low.
    picture.set("preserveAspectRatio", "none")
    return picture


def heat_map(names: Sequence[str], shares: Sequence[Sequence[float | None]], label: str) -> Element:
    """Draw a square for each pair of policies, darker the more they have in common."""
    cell, margin = 58, 20 + 7 * min(26, max(map(len, names)))  # a letter is about 7 wide
    slanted = any(len(name) > _UPRIGHT for name in names)
    top = 110 if slanted else 30
    parts = list[Element]()
    for row, name in enumerate(names):
        y = top + row * cell
        parts.append(
            tag("text", clip(name, 26), x=margin - 12, y=y + cell / 2 + 4, text_anchor="end")
        )
        x, middle = margin + row * cell + cell / 2, top - 10
        at = {"transform": f"rotate(-45 {x} {middle})"} if slanted else {"text_anchor": "middle"}
        parts.append(tag("text", clip(name, 22), x=x, y=middle, class_="tick", **at))
        for column, share in enumerate(shares[row]):
            parts += _cell(margin + column * cell, y, cell, share)
    size = len(names) * cell
    width = margin + size + (70 if slanted else 0)
    picture = svg(width, top + size, label, parts)
    picture.set("style", f"max-width: {width}px")  # two policies need no large squares
    return picture


def _cell(x: float, y: float, size: int, share: float | None) -> Iterator[Element]:
    opacity = round(0.06 + 0.84 * (share or 0.0), 3)
    yield tag(
        "rect",
        x=x + 1,
        y=y + 1,
        width=size - 2,
        height=size - 2,
        rx=4,
        class_="heat",
        fill_opacity=opacity,
    )
    text = "-" if share is None else f"{share:.0%}"
    tone = "light" if (share or 0) > 0.55 else "dark"
    yield tag("text", text, x=x + size / 2, y=y + size / 2 + 5, text_anchor="middle", class_=tone)
