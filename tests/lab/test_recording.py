"""Recordings from every kind of input, in order, with an account of what was refused."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tidings.errors import TidingsError
from tidings.formats.layout import Layout
from tidings.lab.recording import read_recording

EVENTS = [
    {"id": "b", "published_at": 5, "attributes": {"n": 2}},
    {"id": "a", "published_at": 5, "attributes": {"n": 1}},
    {"id": "c", "published_at": 1, "attributes": {"n": 3}},
]
SUBSCRIPTIONS = [{"id": "s", "subscriber": "ann", "where": "n >= 1"}]


def ids(recording: Any) -> list[tuple[str, int]]:
    return [(event.id, event.sequence) for event in recording.events]


def test_publications_are_in_order_and_numbered() -> None:
    recording = read_recording(EVENTS, SUBSCRIPTIONS)
    assert ids(recording) == [("c", 1), ("a", 2), ("b", 3)]
    assert [subscriber.id for subscriber in recording.subscribers] == ["ann"]
    assert recording.refused == ()


def test_tables_frames_and_files_are_read(tmp_path: Path) -> None:
    flat = [{"id": e["id"], "published_at": e["published_at"], **e["attributes"]} for e in EVENTS]  # type: ignore[dict-item]
    frame = pd.DataFrame(flat)
    (tmp_path / "x.csv").write_text("sku,at,n\nb,5,2\na,5,1\nc,1,3\n")
    layout = Layout(columns={"id": "sku", "published_at": "at"})
    for source in (frame, pa.Table.from_pylist(flat)):
        assert ids(read_recording(source, SUBSCRIPTIONS)) == [("c", 1), ("a", 2), ("b", 3)]
    read = read_recording(str(tmp_path / "x.csv"), SUBSCRIPTIONS, layout=layout)
    assert ids(read) == [("c", 1), ("a", 2), ("b", 3)]


def test_a_file_with_other_fields_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    path.write_text('{"guid": "n1", "pubDate": "Tue, 01 Sep 2026 00:05:51 GMT", "n": 1}\n')
    with pytest.raises(TidingsError, match=r"unknown field 'guid'.*; a layout, or --column"):
        read_recording(path, SUBSCRIPTIONS)
    layout = Layout(
        columns={"id": "guid", "published_at": "pubDate"},
        types={"published_at": "%a, %d %b %Y %H:%M:%S GMT"},
    )
    assert ids(read_recording(path, SUBSCRIPTIONS, layout=layout)) == [("n1", 1)]


def test_what_cannot_be_used_is_counted() -> None:
    events = [*EVENTS, EVENTS[0], {"id": "x"}, 7]
    subscriptions = [*SUBSCRIPTIONS, SUBSCRIPTIONS[0], {"id": "t"}]
    recording = read_recording(events, subscriptions, [{"id": "bob", "policy": {"k": 0}}])
    assert {refusal.kind: refusal.total for refusal in recording.refused} == {
        "publication": 3,
        "subscription": 2,
        "subscriber": 1,
    }
    assert "field 'published_at' is missing" in recording.refused[0].reasons[0]
    assert recording.refused[2].reasons[0].startswith("record 1: ")


@pytest.mark.parametrize(
    ("events", "subscriptions", "reason"),
    [
        ([], SUBSCRIPTIONS, "no publication that can be used"),
        ([{"id": "x"}], SUBSCRIPTIONS, "the first was refused"),
        (EVENTS, [], "no subscription that can be used"),
        (EVENTS, {"id": "s"}, "subscriptions are a file, a table"),
        ("nowhere.csv", SUBSCRIPTIONS, "there is no file"),
    ],
)
def test_nothing_to_replay_is_refused(events: Any, subscriptions: Any, reason: str) -> None:
    with pytest.raises(TidingsError, match=reason):
        read_recording(events, subscriptions)
