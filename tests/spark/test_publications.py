"""Rows of publications as events: JSON lines, and columns that travel under other names."""

import json
from collections.abc import Sequence

import pyarrow as pa
from tests.spark.match_stage.test_stage import matches, sent
from tests.spark.test_bisect_failures import MEMBERS

from tidings import Event
from tidings.formats.arrow import read_valid_events
from tidings.formats.files import read_event_line
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.spark.match_stage.matcher_source import PickledSource
from tidings.spark.match_stage.stage import MatchStage
from tidings.spark.publications import ReadLines, ReadRenamed

RANGE = '{"id": "r", "published_at": 0, "attributes": {"t": {"range": [{"time": 1}, {"time": 2}]}}}'


def lines(*values: bytes | None, reasons: Sequence[str | None] = ()) -> pa.RecordBatch:
    columns = {"value": pa.array(values, pa.binary()).view(pa.string())}
    if reasons:
        columns["reason"] = pa.array(reasons, pa.string())
    return pa.RecordBatch.from_pydict(columns)


GOOD = b'{"id": "e1", "published_at": 0, "attributes": {"n": 1}}'


def test_lines_that_cannot_be_read_are_bad_records():
    batch = lines(GOOD, b'{"id": "\xff"}', None, b"", b"[" * 100_000, b"1" * 5_000, b'"\\ud800"')
    good, *bad = ReadLines()(batch)
    assert good == read_event_line(GOOD.decode(), 1)
    assert all(isinstance(each, BadRecord) for each in bad)
    assert [each.position for each in bad if isinstance(each, BadRecord)] == [2, 3, 4, 5, 6, 7]
    assert all(json.dumps(each.to_dict()) for each in bad)
    reasons = [each.reason for each in bad if isinstance(each, BadRecord)]
    assert reasons[:2] == ["the line is not UTF-8", "the line is null"]


def test_reasons_of_another_reader_are_kept():
    batch = lines(b'{"id": 1}', b"no json", None, GOOD, reasons=["one", "two", "three", None])
    *bad, good = ReadLines()(batch)
    assert [(each.record, each.reason) for each in bad if isinstance(each, BadRecord)] == [
        ({"id": 1}, "one"),
        ({"text": "no json"}, "two"),
        ({"text": None}, "three"),
    ]
    assert isinstance(good, Event)


def test_lines_above_the_limits_are_bad_records():
    long = json.dumps({"id": "e", "published_at": 0, "attributes": {"t": "x" * 9_000}}).encode()
    bad, good = ReadLines(Limits.public())(lines(long, GOOD))
    assert isinstance(bad, BadRecord)
    assert "string_bytes = 8,000" in bad.reason
    assert isinstance(good, Event)


def test_limits_bound_the_attributes_of_a_line():
    many = json.dumps({"id": "e", "published_at": 0, "attributes": dict.fromkeys("abc", 1)})
    bad, good = ReadLines(Limits(attributes=2))(lines(many.encode(), GOOD))
    assert isinstance(bad, BadRecord)
    assert "attributes = 2" in bad.reason
    assert isinstance(good, Event)


def test_the_range_of_two_times_is_read_or_refused():
    assert isinstance(next(ReadLines()(lines(RANGE.encode()))), Event | BadRecord)
    stage = MatchStage(PickledSource.of(MEMBERS), ReadLines(), 1, streams=True)
    rows = sent(stage, [lines(RANGE.encode(), GOOD)])
    assert [match[0] for match in matches(rows)] == ["e1", "e1"]


def test_renamed_columns_are_read_under_their_own_names():
    read = ReadRenamed(read_valid_events, {"tidings_name_0": "a.b"})
    batch = pa.RecordBatch.from_pydict(
        {"id": ["e"], "published_at": [0], "tidings_name_0": [3], "c": [4]}
    )
    [event] = read(batch)
    assert isinstance(event, Event)
    assert event.attributes == {"a.b": 3, "c": 4}
