"""The files of a comparison: all tables and pictures, each complete in itself."""

import csv
import json
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pyarrow.parquet as pq
import pytest
from tests.lab.recordings import POLICIES, small_comparison

from tidings.lab import compare
from tidings.lab.comparison import Comparison
from tidings.lab.output import REPORT, pictures, standalone, write_comparison
from tidings.lab.report import time_lines

SVG = "{http://www.w3.org/2000/svg}"
TABLES = ("summary", "subscribers", "overlap", "rules", "over_time", "examples")


@cache
def comparison() -> Comparison:
    return small_comparison()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison")
    write_comparison(comparison(), path)
    return path


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_files_are_returned_the_report_first(tmp_path: Path) -> None:
    paths = write_comparison(comparison(), tmp_path)
    assert paths[0] == tmp_path / REPORT
    assert sorted(paths) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.stem for path in paths if path.suffix == ".csv"} == {*TABLES}
    assert {path.parent.name for path in paths if path.suffix == ".svg"} == {"plots"}


def test_deliveries_are_written_as_they_are(folder: Path) -> None:
    assert pq.read_table(folder / "deliveries.parquet").equals(comparison().deliveries)


@pytest.mark.parametrize("name", ["summary", "subscribers", "overlap", "rules"])
def test_tables_have_all_rows_and_columns(folder: Path, name: str) -> None:
    table = getattr(comparison(), name)
    found = rows(folder, name)
    assert len(found) == table.num_rows > 0
    assert [*found[0]] == table.column_names


def test_deliveries_over_time_add_up(folder: Path) -> None:
    for policy in POLICIES:
        own = [row for row in rows(folder, "over_time") if row["policy"] == policy]
        sent = comparison().delivered_by(policy).num_rows
        assert sum(int(row["delivered"]) for row in own) == sent
        seconds = [float(row["second"]) for row in own]
        assert seconds[0] == 0
        assert seconds == sorted(seconds)


def test_the_attributes_of_examples_are_json(folder: Path) -> None:
    found = rows(folder, "examples")
    expected = comparison().examples
    assert len(found) == len(expected)
    for row, example in zip(found, expected, strict=True):
        assert json.loads(row["attributes"]) == example.attributes
        assert float(row["score"]) == example.score
        assert row["why"] == example.why


def test_every_picture_is_a_file_that_needs_no_other(folder: Path) -> None:
    names = [name for name, _ in pictures(comparison())]
    assert len(names) == len({*names})
    assert {path.stem for path in (folder / "plots").iterdir()} == {*names}
    for name in names:
        text = (folder / "plots" / f"{name}.svg").read_text(encoding="utf-8")
        picture = fromstring(text)
        assert picture.tag == f"{SVG}svg"
        _, _, width, height = picture.attrib["viewBox"].split()
        assert (picture.attrib["width"], picture.attrib["height"]) == (width, height)
        assert picture[0].tag == f"{SVG}style"
        assert "href" not in text


def test_pictures_of_an_earlier_comparison_go(tmp_path: Path) -> None:
    plots = tmp_path / "plots"
    plots.mkdir()
    (plots / "over_time_9.svg").write_text("old")
    (plots / "notes.txt").write_text("mine")
    write_comparison(comparison(), tmp_path)
    assert not (plots / "over_time_9.svg").exists()
    assert (plots / "notes.txt").read_text() == "mine"


def test_one_policy_agrees_with_nobody(tmp_path: Path) -> None:
    events = [{"id": f"e{n}", "published_at": n, "attributes": {"n": n}} for n in range(4)]
    subscriptions = [{"id": "s", "subscriber": "ada", "where": "n >= 0"}]
    single = compare(events, subscriptions, {"one": {"k": 3}})
    assert "overlap" not in {name for name, _ in pictures(single)}
    write_comparison(single, tmp_path)
    assert rows(tmp_path, "examples") == []
    header = (tmp_path / "examples.csv").read_text(encoding="utf-8")
    assert header.startswith('"subscriber","delivered_by","not_by","event"')
    assert "overlap" in {name for name, _ in pictures(comparison())}


def test_a_picture_keeps_its_children_and_attributes() -> None:
    picture = Element("svg", {"viewBox": "0 0 30 20", "class": "bars", "width": "1"})
    picture.append(Element("rect", {"x": "1"}))
    whole = fromstring(standalone(picture))
    assert whole.attrib == {
        "viewBox": "0 0 30 20",
        "class": "bars",
        "width": "30",
        "height": "20",
    }
    assert [child.tag for child in whole] == [f"{SVG}style", f"{SVG}rect"]
    assert len(picture) == 1  # the picture of the report is not changed


def test_spans_of_time_begin_at_their_second(tmp_path: Path) -> None:
    events = [{"id": f"e{n}", "published_at": 3_600 * n, "attributes": {"n": n}} for n in range(9)]
    subscriptions = [{"id": "s", "subscriber": "ada", "where": "n >= 0"}]
    hourly = compare(events, subscriptions, {"one": {"k": 9}})
    write_comparison(hourly, tmp_path)
    seconds, [line] = time_lines(hourly)
    assert seconds > 1
    found = rows(tmp_path, "over_time")
    assert [float(row["second"]) for row in found] == [
        place * seconds for place in range(len(line.counts))
    ]
