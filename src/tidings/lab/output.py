"""The files of a comparison: a report, tables as CSV and Parquet, and charts as SVG."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, tostring

import pyarrow as pa
from pyarrow import csv, parquet

from tidings.formats.markup import tag
from tidings.lab.comparison import Comparison
from tidings.lab.examples import Example
from tidings.lab.report import glance, over_time, overlap_map, per_person, report_css, time_lines

REPORT: Final = "report.html"


class NamedPicture(NamedTuple):
    """A picture, and the name of its file without suffix."""

    name: str
    picture: Element


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write all files of a comparison; return their paths, the report first."""
    plots = folder / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    for old in plots.glob("*.svg"):  # an earlier comparison may have had more policies
        old.unlink()
    paths = [comparison.report(folder / REPORT)]
    for name, table in _tables(comparison).items():
        paths.append(folder / f"{name}.csv")
        csv.write_csv(table, paths[-1])
    paths.append(folder / "deliveries.parquet")
    parquet.write_table(comparison.deliveries, paths[-1])
    for name, picture in pictures(comparison):
        paths.append(plots / f"{name}.svg")
        paths[-1].write_text(standalone(picture), encoding="utf-8")
    return paths


def _tables(comparison: Comparison) -> dict[str, pa.Table]:
    seconds, lines = time_lines(comparison)
    spans = [
        {"policy": line.policy, "second": place * seconds, "delivered": count}
        for line in lines
        for place, count in enumerate(line.counts)
    ]
    examples = [
        {**example._asdict(), "attributes": json.dumps(example.attributes)}
        for example in comparison.examples
    ]
    names = {name: pa.string() for name in Example._fields} | {"score": pa.float64()}
    return {
        "summary": comparison.summary,
        "subscribers": comparison.subscribers,
        "overlap": comparison.overlap,
        "rules": comparison.rules,
        "over_time": pa.Table.from_pylist(spans),
        "examples": pa.Table.from_pylist(examples, pa.schema(names)),
    }


def pictures(comparison: Comparison) -> Iterator[NamedPicture]:
    """Yield the pictures of the report."""
    for column, figure in glance(comparison):
        yield NamedPicture(column, _svg(figure))
    for column, figure in per_person(comparison):
        yield NamedPicture(f"subscribers_{column}", _svg(figure))
    for place, (_, figure) in enumerate(over_time(comparison), start=1):
        yield NamedPicture(f"over_time_{place}", _svg(figure))
    if len(comparison.variants) > 1:
        yield NamedPicture("overlap", overlap_map(comparison))


def _svg(figure: Element) -> Element:
    picture = figure.find("svg")
    assert picture is not None
    return picture


def standalone(picture: Element) -> str:
    """Return a chart as a standalone file, with its size and its style."""
    _, _, width, height = picture.attrib["viewBox"].split()
    attributes = picture.attrib | {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width,
        "height": height,
    }
    whole = Element("svg", attributes)
    whole.append(tag("style", report_css()))
    whole.extend(list(picture))
    return tostring(whole, encoding="unicode")
