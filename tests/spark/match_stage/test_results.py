"""Matches, targets and dead letters as rows, without Spark, against the plain matcher."""

import json
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pytest
from tests.spark.match_stage.test_stage import MEMBERS, SCAN, WORK, batches, to_parts

from tidings import Subscription
from tidings.formats.arrow import MATCHES, matches_to_table, read_events, read_valid_events
from tidings.index_files import mapped_matcher
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event, PublicationTime
from tidings.rank.matcher import Matcher
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.spark.match_stage.matcher_source import FolderSource, PickledSource
from tidings.spark.match_stage.results import (
    DEAD_LETTERS,
    ROW,
    TARGETS,
    TargetStage,
    dead_letter_batches,
    match_batches,
    match_rows,
)
from tidings.spark.publications import ReadColumns, ReadLines


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[int, FolderSource]:
    """Return the same subscribers in one part and in two."""
    paths = {parts: tmp_path_factory.mktemp(f"parts{parts}") for parts in (1, 2)}
    return {
        parts: FolderSource(build_folder(path, MEMBERS, parts), 1) for parts, path in paths.items()
    }


@pytest.mark.parametrize("parts", [1, 2])
def test_matches_are_rows(folders, parts):
    arrived = batches(WORK.events) if parts == 1 else to_parts(batches(WORK.events), parts)
    table = pa.Table.from_batches(list(match_batches(folders[parts], read_events, arrived)))
    plain = matches_to_table(chain(*map(SCAN.matches, WORK.events)))
    order = [("event", "ascending"), ("subscriber", "ascending")]
    assert table.sort_by(order).to_pylist() == plain.sort_by(order).to_pylist()
    assert table.schema == plain.schema


def reader(batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
    """Read events, refusing the first row."""
    _, *others = read_events(batch)
    yield BadRecord({}, "it is the first", 1)
    yield from others


@pytest.mark.parametrize("scorer", [Exact(), Relaxed()])
def test_targets_are_rows(folders, scorer):
    (batch,) = batches(WORK.events, 60)
    numbered = batch.append_column(ROW, pa.array(range(60), pa.int64()))
    rows = [
        row
        for b in TargetStage(folders[1], reader, 3, scorer).batches([numbered])
        for row in b.to_pylist()
    ]
    assert [
        (row[ROW], row["event"], row["position"], row["subscription"], row["score"]) for row in rows
    ] == [
        (number, event.id, place, name, score)
        for number, event in enumerate(WORK.events)
        if number
        for place, (name, score) in enumerate(SCAN.top(event, 3, scorer), start=1)
    ]


NUMBERS = {
    "a": [0, 3, None, 5, 1],
    "b": [1.5, None, 2.0, 0.0, -1.0],
    "c": ["x", "y", None, "", "z"],
    "d": [True, False, None, True, False],
}
OTHERS: dict[str, pa.Array] = {
    "numbers": pa.array([0, 1, 2, 3, 4]),
    "a list": pa.array([[1], [2], None, [], [3]]),
    "not finite": pa.array([0.0, float("nan"), 1.0, float("inf"), None]),
    "not a float": pa.array([2**60 + 1, 0, 1, 2, 3]),
    "not UTF-8": pa.array([b"x", b"\xff", b"y", None, b"z"]).view(pa.string()),
    "times": pa.array([0, 1, 2, 3, None], pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("scorer", [Exact(), Relaxed()])
@pytest.mark.parametrize("other", OTHERS)
def test_targets_of_numbers_need_no_events(tmp_path, monkeypatch, scorer, other):
    monkeypatch.setattr(mapped_matcher, "ASKED", 1)
    times = iter(range(1000))
    monkeypatch.setattr(mapped_matcher, "least_seconds", lambda _: next(times))
    some = [
        Subscription(f"s{n:02d}", "u", f"a >= {n % 5} and b <= {n % 3} and e < {n}", score=n % 4)
        for n in range(1, 30)
    ]
    source = FolderSource(build_folder(tmp_path, bundle_subscribers((), some)), 1)
    us = pa.array(range(5), pa.timestamp("us", "UTC"))
    columns = {"id": [f"e{n}" for n in range(5)], "published_at": us, **NUMBERS, "e": OTHERS[other]}
    batch = pa.RecordBatch.from_pydict({**columns, ROW: [10, 11, 12, 13, 14]})
    read = ReadColumns()
    stage, scan = TargetStage(source, read, 4, scorer), Matcher((), some, "scan")
    expected = [
        (10 + row, event.id, place, name, score)
        for row, event in enumerate(read_valid_events(batch.drop_columns([ROW])))
        if isinstance(event, Event)
        for place, (name, score) in enumerate(scan.top(event, 4, scorer), start=1)
    ]
    for _ in range(2):  # through the access index, then through boxes
        rows = [row for found in stage.batches([batch]) for row in found.to_pylist()]
        assert [
            (row[ROW], row["event"], row["position"], row["subscription"], row["score"])
            for row in rows
        ] == expected
    names = source.matcher(0).target_attributes(scorer)
    assert names == ["a", "b", "e"]
    numbers = read.numbers(batch.drop_columns([ROW]), names)
    assert (numbers is not None) == (other == "numbers")


def test_targets_by_other_scorers_need_pickled_members():
    (batch,) = batches(WORK.events, 60)
    targets = TargetStage(PickledSource.of(MEMBERS), read_events, 2, Preference())
    rows = [row for batch in targets.batches([batch]) for row in batch.to_pylist()]
    assert [(row["event"], row["subscription"]) for row in rows] == [
        (event.id, name) for event in WORK.events for name, _ in SCAN.top(event, 2, Preference())
    ]


def test_targets_of_rows_without_numbers_have_no_such_column(folders):
    (found,) = TargetStage(folders[1], read_events, 1, Exact()).batches(batches(WORK.events[:5]))
    assert found.schema == TARGETS
    assert found.column("position").to_pylist() == [1] * found.num_rows


def test_rows_without_events_have_neither_matches_nor_targets(folders):
    (rows,) = batches(WORK.events[:1])
    assert sum(found.num_rows for found in match_batches(folders[1], reader, [rows])) == 0
    (found,) = TargetStage(folders[1], reader, 1, Exact()).batches([rows])
    assert (found.schema, found.num_rows) == (TARGETS, 0)


def test_matches_of_several_events_are_grouped_by_event(folders):
    rows = match_rows(folders[1].matcher(0), WORK.events[:20])
    assert rows.schema == MATCHES
    order = [event.id for event in WORK.events[:20]]
    found = [order.index(name) for name in rows.column("event").to_pylist()]
    assert found == sorted(found)
    times = {event.id: event.published_us for event in WORK.events}
    stated = rows.column("published_at").cast(pa.int64()).to_pylist()
    assert stated == [times[name] for name in rows.column("event").to_pylist()]


def test_an_event_that_cannot_be_matched_does_not_shift_the_numbers_of_others():
    def read(batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read events; the second and third have values of an unknown type."""
        for number, event in enumerate(read_events(batch)):
            poisoned = isinstance(event, Event) and number in (1, 2)
            yield (
                Event.known("poison", {"year": object()}, PublicationTime(0, 0.0), None)
                if poisoned
                else event
            )

    (batch,) = batches(WORK.events, 60)
    numbered = batch.append_column(ROW, pa.array(range(100, 160), pa.int64()))
    stage = TargetStage(PickledSource.of(MEMBERS), read, 1, Exact())
    rows = [row for batch in stage.batches([numbered]) for row in batch.to_pylist()]
    assert [(row[ROW], row["event"]) for row in rows] == [
        (100 + number, event.id)
        for number, event in enumerate(WORK.events)
        if number not in (1, 2) and SCAN.top(event, 1, Exact())
    ]


def test_rows_that_cannot_be_read_are_dead_letters():
    good = json.dumps(Event("e1", {"n": 1}, 0).to_dict())
    lines = pa.record_batch({"value": [good, "{", None]})
    first, second = dead_letter_batches(ReadLines(), [lines, lines.slice(0, 1)])
    assert first.schema == second.schema == DEAD_LETTERS
    assert (first.num_rows, second.num_rows) == (2, 0)
    assert [json.loads(text) for text in first.column("record").to_pylist()][1] == {}
    assert first.column("reason").to_pylist()[1] == "the line is null"
