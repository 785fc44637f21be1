"""Charts as small SVG texts: the same numbers produce the same bytes."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

COLOURS: Final = (
    "#0b6e4f",
    "#c8553d",
    "#3d5a98",
    "#8f6a00",
    "#7b3f8c",
    "#2a8fa8",
    "#a0304f",
    "#5b6b1f",
)
MARKERS: Final = "osD^vP*X"
PANEL_WIDTH: Final = 3.7
PANEL_HEIGHT: Final = 3.0
STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "tidings",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # the first one is part of matplotlib
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 4,
    "lines.linewidth": 1.4,
    "path.simplify": True,
}


_METADATA: Final = re.compile(r" *<metadata>.*?</metadata>\n| *<!--.*?-->\n", re.DOTALL)


def short_number(value: float) -> str:
    """Return a number for an axis.

    >>> [short_number(value) for value in (0.25, 930, 4000, 20000, 1500000)]
    ['0.25', '930', '4,000', '20k', '1.5M']
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 1e4 and abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:,.6g}"


@dataclass(frozen=True)
class Series:
    """A named line of points, or a group of bars."""

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart: series over x, as lines or, if `bars`, as bars side by side.

    Without `markers`, lines have hundreds of points and stay small.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: int = 0
    """The base of a logarithmic axis."""
    log_y: bool = False
    bars: bool = False
    y_range: tuple[float | None, float | None] | None = None
    markers: bool = True


def chart(panels: Sequence[Panel], columns: int = 3, width: float = PANEL_WIDTH) -> str:
    """Return panels of `width` inches side by side, in rows of at most `columns`, as SVG.

    Equal names have one colour in all panels, and one legend above them.
    """
    across = min(columns, len(panels))
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(series.name for panel in panels for series in panel.series))
    legend_rows = -(-len(names) // (3 * across))
    height = down * PANEL_HEIGHT + 0.22 * legend_rows
    with figure(max(4.6, across * width), height) as drawing:
        places = drawing.subplots(down, across, squeeze=False).ravel()
        for panel, axes in zip(panels, places, strict=False):
            draw(axes, panel, names)
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        handles = {
            label: handle
            for axes in places
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if len(names) > 1:
            shown = [handles[name] for name in names]
            drawing.legend(
                shown, names, loc="outside upper center", ncols=min(len(names), 3 * across)
            )
        return to_svg(drawing)


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure in the common style, which holds within the context only."""
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def to_svg(drawing: Figure) -> str:
    """Return a figure as SVG without a date; to be called within the context of `figure`."""
    target = io.StringIO()
    drawing.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    return _METADATA.sub("", text[text.index("<svg") :]).strip() + "\n"


def draw(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    """Draw a panel; the place of a name in `names` decides its colour and marker."""
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    (_draw_bars if panel.bars else _draw_lines)(axes, panel, names)
    if panel.log_x:
        axes.set_xscale("log", base=panel.log_x)
        if panel.log_x == 10:
            _label_decades(axes.xaxis, [float(x) for series in panel.series for x in series.x])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: short_number(value))
    elif not panel.bars:
        axes.xaxis.set_major_formatter(lambda value, _: short_number(value))
        axes.xaxis.set_major_locator(MaxNLocator(5))
    if panel.log_y:
        axes.set_yscale("log")
        axes.minorticks_off()
        _label_decades(axes.yaxis, [y for series in panel.series for y in series.y])
    axes.yaxis.set_major_formatter(lambda value, _: short_number(value))
    if panel.y_range:
        axes.set_ylim(*panel.y_range)


def _label_decades(axis: Axis, values: Sequence[float]) -> None:
    """Label 1, 2 and 5 of each decade where values span few, as powers of ten would be too few."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) <= 100 * min(positive):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _draw_lines(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    for series in panel.series:
        place, marked = names.index(series.name), panel.markers
        axes.plot(
            list(series.x),
            list(series.y),
            label=series.name,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)] if marked and not series.dashed else "",
            linestyle="--" if series.dashed else "-",
        )


def _draw_bars(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    """Draw the bars of all series side by side at every x."""
    labels = [str(x) for x in panel.series[0].x]
    width = 0.8 / len(panel.series)
    for number, series in enumerate(panel.series):
        offset = (number - (len(panel.series) - 1) / 2) * width
        places = [place + offset for place in range(len(labels))]
        colour = COLOURS[names.index(series.name) % len(COLOURS)]
        axes.bar(places, list(series.y), width, label=series.name, color=colour)
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(visible=False, axis="x")
