"""Charts of the available results, as SVG: python bench/plots.py [--out bench/results].

They depend only on the JSON files: the same results give the same bytes.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from pages import RESULTS
from peers import PEERS

OURS = ("sopt-r-64", "topk-table", "live", "blocks", "sparse", "access", "auto")
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98", "#8f6a00", "#7b3f8c", "#2a8fa8", "#a0304f", "#5b6b1f")
SIZE = (7.5, 4.4)
Line = dict[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args()
    try:
        plot = plotter()
    except ImportError as error:
        print(f"No charts: {error}.", file=sys.stderr)
        return
    for name, (file, draw) in CHARTS.items():
        path = RESULTS / f"{file}.json"
        if path.exists():
            figure = draw(plot, json.loads(path.read_text()))
            figure.savefig(options.out / f"{name}.svg", metadata={"Date": None, "Creator": None})
            plot.close(figure)


def plotter() -> Any:
    import matplotlib as mpl  # noqa: PLC0415 - may not be there

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "tidings", "svg.fonttype": "none", "font.size": 9})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return plt


def lines(plot: Any, series: dict[str, Line], words: tuple[str, str, str]) -> Any:
    """Draw a chart with logarithmic axes; the legend is in order of the last points."""
    figure, axes = plot.subplots(figsize=SIZE, layout="constrained")
    order = sorted(series, key=lambda name: -last(series[name]))
    for number, name in enumerate(order):
        places = sorted(series[name])
        values = [series[name][place] for place in places]
        axes.plot(places, values, marker="o", markersize=3, label=name, **style(name, number))
    title, across, up = words
    axes.set(xscale="log", yscale="log", title=title, xlabel=across, ylabel=up)
    places = sorted({place for line in series.values() for place in line})
    axes.set_xticks(places, [f"{place:,.0f}" for place in places], minor=False)
    axes.minorticks_off()
    axes.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def last(line: Line) -> float:
    return line[max(line)]


def style(name: str, number: int) -> dict[str, Any]:
    """Return the style of a line: peers are dashed, ours are thick, the papers' are plain."""
    if name in PEERS:
        return {"color": "#888888", "linestyle": ("--", ":", "-.")[number % 3], "linewidth": 1.2}
    colour = COLOURS[number % len(COLOURS)]
    return {"color": colour, "linewidth": 2.4 if name in OURS else 1.1}


def over_sizes(result: dict[str, Any], key: str) -> dict[str, Line]:
    series: dict[str, Line] = {}
    for size, rows in result["sizes"].items():
        for row in rows:
            series.setdefault(row["name"], {})[int(size)] = row[key]
    return series


def queries(plot: Any, result: dict[str, Any]) -> Any:
    title = f"Top {result['k']} of n intervals, workload {result['workload']}"
    return lines(plot, over_sizes(result, "batch_us"), (title, "n", "us a query, 1024 a call"))


def builds(plot: Any, result: dict[str, Any]) -> Any:
    return lines(plot, over_sizes(result, "build_s"), ("Building over n intervals", "n", "seconds"))


def over(part: str, letter: str, about: str) -> Callable[[Any, dict[str, Any]], Any]:
    def draw(plot: Any, result: dict[str, Any]) -> Any:
        series = {
            name: {int(value): us for value, us in times.items()}
            for name, times in result[part].items()
            if times
        }
        title = f"{about}, {result['size']:,} subscriptions"
        return lines(plot, series, (title, letter, "us an event, many a call"))

    return draw


def memory(plot: Any, result: dict[str, Any]) -> Any:
    """Draw the largest size of each kind: seen from outside, and as the index reports."""
    largest = {row["kind"]: row["size"] for row in sorted(result["rows"], key=by_size)}
    rows = [row for row in result["rows"] if row["size"] == largest[row["kind"]]][::-1]
    figure, axes = plot.subplots(figsize=(SIZE[0], 0.22 * len(rows) + 1.4), layout="constrained")
    names = [f"{row['name']} ({row['kind']}, {row['size']:,})" for row in rows]
    for key, (mark, colour, label) in POINTS.items():
        values = [(row[key] or 0) / row["size"] for row in rows]
        places = [value if value >= 1 else None for value in values]
        axes.plot(places, names, mark, color=colour, label=label, fillstyle="none", markersize=6)
    axes.set(xscale="log", title="Memory", xlabel="bytes per subscription")
    axes.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


POINTS = {
    "kept": ("o", "#3d5a98", "seen from outside, inputs released"),
    "index": ("s", "#0b6e4f", "seen from outside, next to its inputs"),
    "nbytes": ("x", "#c8553d", "nbytes"),
}


def by_size(row: dict[str, Any]) -> int:
    return int(row["size"])


CHARTS: dict[str, tuple[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "interval": ("interval", queries),
    "interval-tiny": ("interval-tiny", queries),
    "build": ("interval", builds),
    "memory": ("memory", memory),
    "growth-k": ("growth", over("over_k", "k", "Growth with k, one attribute")),
    "growth-d-relaxed": ("growth", over("relaxed_over_d", "d", "Growth with d, relaxed")),
    "growth-d-exact": ("growth", over("exact_over_d", "d", "Growth with d, exact")),
}
"""Each chart with its results."""


if __name__ == "__main__":
    main()
