"""Every format gives back what was written, and bad records do not hide the good ones."""

import json
import os
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tidings.errors import InvalidForm
from tidings.formats import files
from tidings.formats.files import (
    read_event_line,
    read_events,
    read_subscribers,
    read_subscriptions,
    write_deliveries,
    write_events,
    write_subscribers,
    write_subscriptions,
)
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Delivery, Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.window.sliding import Sliding

FORMS = [".jsonl", ".ndjson", ".json"]
TYPED = [".parquet", ".arrow", ".feather"]
SUFFIXES = [*FORMS, *TYPED, ".csv"]


def or_lists(values):
    return values | st.lists(values, max_size=3)


def event_lists(texts, times):
    optional = {
        "year": or_lists(
            st.integers(-3, 3) | st.integers(-(2**70), 2**70) | st.floats(-9e99, 9e99)
        ),
        "genre": or_lists(texts),
        'seen, or "not"': or_lists(st.booleans()),
        "from": or_lists(times),
    }
    event = st.builds(
        Event,
        st.text(min_size=1, max_size=3),
        st.fixed_dictionaries({}, optional=optional),
        times,
        st.none() | st.integers(0, 9),
    )
    return st.lists(event, max_size=4)


def zoned(*years):
    low, high = (datetime(year, 1, 1) for year in years)  # noqa: DTZ001 - hypothesis adds the zone
    return st.datetimes(low, high, timezones=st.just(UTC))


EVENTS = event_lists(st.text(max_size=3), zoned(1, 9999))
# CSV has no types, so text that looks like a number is one; and its times are nanoseconds.
CSV_EVENTS = event_lists(st.text(max_size=3).map("x{}".format), zoned(1700, 2200))
WEIGHTED = st.tuples(
    st.sampled_from(["carrier = 'AT&T'", "storage <= 16"]),
    st.sampled_from([0, 0.4, 1]),
    st.sampled_from(["active", "inactive", "dead"]),
)
RANKS = st.none() | st.floats(0, 1)
CONDITIONS = ["genre = 'drama'", "title = 'a, \"b\"' or year > 3", "seen != true"]
NAMES = st.text(min_size=1, max_size=3)
SUBSCRIPTIONS = st.lists(
    st.builds(Subscription, NAMES, NAMES, st.sampled_from(CONDITIONS), prefrank=RANKS, score=RANKS)
    | st.builds(Subscription, NAMES, NAMES, any=st.lists(WEIGHTED, min_size=1), score=RANKS),
    max_size=4,
)


def listed(found: Iterable[Any]) -> list[Any]:
    """What was read, each to be looked at as what it should be."""
    return list(found)


def compared(events):
    return [(event.id, event.published_us, event.sequence, event.tokens) for event in events]


def through(suffix, write, read, items):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"file{suffix}")
        write(items, path)
        return list(read(path))


@pytest.mark.parametrize("suffix", [*FORMS, *TYPED])
@given(events=EVENTS)
@settings(max_examples=40)
def test_events_come_back_from_a_file(suffix, events):
    assert compared(through(suffix, write_events, read_events, events)) == compared(events)


@given(CSV_EVENTS)
def test_events_come_back_from_csv(events):
    assert compared(through(".csv", write_events, read_events, events)) == compared(events)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(subscriptions=SUBSCRIPTIONS)
@settings(max_examples=40)
def test_subscriptions_come_back_from_a_file(suffix, subscriptions):
    found = through(suffix, write_subscriptions, read_subscriptions, subscriptions)
    assert found == subscriptions


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_subscribers_come_back_from_a_file(suffix):
    people = [
        Subscriber("1", Policy(k=2, window=Sliding(4)), [("s1", "s2"), ("s1", "s3")]),
        Subscriber("bob"),
    ]
    assert through(suffix, write_subscribers, read_subscribers, people) == people


def test_json_lines_may_be_called_json(tmp_path):
    path = tmp_path / "events.json"
    lines = [json.dumps(Event(name, {"year": 1}, 0).to_dict()) for name in ("e1", "e2")]
    path.write_text("\ufeff" + "\n".join([*lines, "{broken"]), encoding="utf-8")
    first, second, broken = files.read_events(path)
    assert [getattr(each, "id", None) for each in (first, second)] == ["e1", "e2"]
    assert isinstance(broken, BadRecord)
    assert broken.position == 3


def test_the_cells_of_tsv_are_separated_by_tabs(tmp_path):
    path = tmp_path / "events.tsv"
    path.write_text("id\tpublished_at\tname\ne1\t0\tBig, Fish\n", encoding="utf-8")
    [event] = files.read_events(path)
    assert isinstance(event, Event)
    assert event.attributes == {"name": "Big, Fish"}


def test_a_line_is_read_for_itself():
    line = '{"id": "e1", "published_at": 0, "attributes": {}}'
    assert read_event_line(line, 1) == Event("e1", {}, 0)
    bad = read_event_line("{", 7)
    assert isinstance(bad, BadRecord)
    assert (bad.record, bad.position) == ({"text": "{"}, 7)


DELIVERED = [Delivery("bob", "e1", 0.5, 1, {"name": "sliding", "length": 4}, ("s1",), 17, 0)]


@pytest.mark.parametrize("suffix", FORMS)
def test_deliveries_are_written_as_forms(tmp_path, suffix):
    path = tmp_path / f"deliveries{suffix}"
    write_deliveries(DELIVERED, path)
    (form,) = json.loads(path.read_text()) if suffix == ".json" else [json.loads(path.read_text())]
    assert form == DELIVERED[0].to_dict()


def test_deliveries_are_written_as_columns(tmp_path):
    write_deliveries(DELIVERED, tmp_path / "deliveries.parquet")
    (row,) = parquet.read_table(tmp_path / "deliveries.parquet").to_pylist()
    assert row["window"] == '{"name": "sliding", "length": 4}'
    assert row["matched"] == ["s1"]


def test_deliveries_are_written_as_csv(tmp_path):
    write_deliveries(DELIVERED, tmp_path / "deliveries.csv")
    head, row = (tmp_path / "deliveries.csv").read_text().splitlines()
    assert head.split(",")[:3] == ['"subscriber"', '"event"', '"rank"']
    assert row == (
        '"bob","e1",0.5,1,"{""name"": ""sliding"", ""length"": 4}","[""s1""]",17,'
        '"1970-01-01T00:00:00Z",'
    )


def test_a_bad_line_keeps_its_number_and_does_not_hide_the_others(tmp_path):
    path = tmp_path / "events.jsonl"
    good = json.dumps(Event("e1", {"title": "Brüder"}, 0).to_dict(), ensure_ascii=False)
    deep = "[" * 100_000
    lines = [good, "", "{broken", "[1]", '{"id": "e2"}', good.replace("Br", "\udcff"), deep, good]
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    found = listed(read_events(path))
    assert [type(item) for item in found] == [Event, *[BadRecord] * 5, Event]
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert [item.position for item in bad] == [3, 4, 5, 6, 7]
    assert bad[0].record == {"text": "{broken"}
    assert "Expecting property name" in bad[0].reason
    assert bad[1].record == {"value": [1]}
    assert bad[2].record == {"id": "e2"}
    assert bad[2].reason == "event e2: field 'published_at' is missing"
    assert "not UTF-8: byte 79" in bad[3].reason


def test_json_values_that_no_event_has_are_bad(tmp_path):
    path = tmp_path / "events.json"
    path.write_text('[{"id": "e1", "published_at": 0, "attributes": {"a": NaN}}, 7]')
    first, second = listed(read_events(path))
    assert first.reason == "NaN is not a JSON number"
    assert (second.record, second.position) == ({"value": 7}, 2)


def test_the_types_of_csv_are_inferred(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(
        "id,published_at,sequence,year,title,seen,from,clock,genre,none\n"
        '1,2026-11-15T20:05:00Z,1,2003,Big Fish,true,2004-02-13,20:15,"[""drama"", 3]",\n'
        "02,1794773160,,,[REC],,,,drama,\n"
    )
    first, second = listed(read_events(path))
    assert first.attributes == {
        "year": 2003,
        "title": "Big Fish",
        "seen": True,
        "from": datetime(2004, 2, 13, tzinfo=UTC),
        "clock": "20:15",
        "genre": ("drama", 3),
    }
    assert (first.id, first.sequence) == ("1", 1)
    assert second.attributes == {"title": "[REC]", "genre": "drama"}
    assert (second.id, second.sequence) == ("02", None)
    assert second.published_us - first.published_us == 60_000_000


def test_bad_rows_of_csv_keep_their_number_and_do_not_hide_the_others(tmp_path):
    path = tmp_path / "events.csv"
    rows = ["e1,0,1.5", "e2,soon,1.5", "e3,0,1,2", '"e4",0,"2"', ",0,2", "e6", "e7,9,NaN", "e8,9,3"]
    path.write_text("\n".join(["id,published_at,year", *rows]))
    found = listed(read_events(path))
    assert [event.id for event in found if isinstance(event, Event)] == ["e1", "e4", "e8"]
    bad = {item.position: item for item in found if isinstance(item, BadRecord)}
    assert sorted(bad) == [2, 3, 5, 6, 7]
    assert bad[2].reason.startswith("event e2: published_at: 'soon' is not a time")
    assert bad[3].reason == "the row has 4 cells, the header 3"
    assert bad[3].record == {"text": "e3,0,1,2"}
    assert bad[5].reason == "the row: id is missing"
    assert bad[6].reason == "the row has 1 cells, the header 3"
    assert bad[7].reason == "event e7: attribute year: nan is not a finite number"


def test_a_word_among_the_numbers_of_csv_is_missing_or_makes_its_row_bad(tmp_path):
    path = tmp_path / "events.csv"
    rows = [f"e{each},{each},{each}.5,{each}" for each in range(38)]
    rows += ["x1,40,n/a,7", "x2,41,abc,seven", "x3,42,,7"]
    path.write_text("\n".join(["id,published_at,price,size", *rows]) + "\n")
    *good, missing, bad, empty = listed(read_events(path))
    assert [each.attributes for each in good] == [{"price": n + 0.5, "size": n} for n in range(38)]
    assert missing.attributes == empty.attributes == {"size": 7}
    assert (bad.position, bad.record["id"]) == (40, "x2")
    assert bad.reason == "'abc' is not a number, unlike nearly all others of its column"


@pytest.mark.parametrize("words", [("S", "M", "10"), ("n/a", "-"), ("1,000", "2")])
def test_a_column_of_csv_that_is_hardly_numbers_is_text(tmp_path, words):
    path = tmp_path / "events.csv"
    rows = [f'e{place},0,"{word}"' for place, word in enumerate(words)]
    path.write_text("\n".join(["id,published_at,size", *rows]) + "\n")
    assert [each.attributes["size"] for each in listed(read_events(path))] == [*words]


def test_a_bad_number_in_csv_does_not_change_the_type_of_the_others(tmp_path):
    path = tmp_path / "subscriptions.csv"
    path.write_text("id,subscriber,where,prefrank\ns1,bob,a = 1,0.5\ns2,bob,a = 1,high\n")
    first, second = listed(read_subscriptions(path))
    assert first == Subscription("s1", "bob", where="a = 1", prefrank=0.5)
    assert "prefrank is a finite number, not 'high'" in second.reason


def test_a_directory_of_parquet_is_read_with_its_partitions(tmp_path):
    rows = pa.table({"id": ["e1", "e2"], "published_at": [0, 1], "year": [2003, 2004]})
    parquet.write_to_dataset(rows, tmp_path / "events.parquet", partition_cols=["year"])
    found = sorted(listed(read_events(tmp_path / "events.parquet")), key=lambda event: event.id)
    assert [event.attributes for event in found] == [{"year": 2003}, {"year": 2004}]


def test_the_directories_above_a_file_are_no_attributes(tmp_path):
    (tmp_path / "year=2003").mkdir()
    path = tmp_path / "year=2003" / "events.parquet"
    write_events([Event("e1", {}, 0)], path)
    (event,) = listed(read_events(path))
    assert event.attributes == {}


@pytest.mark.parametrize("name", ["events.xlsx", "events", "events.jsonl.zip"])
def test_an_unknown_suffix_is_refused_with_the_possible_ones(tmp_path, name):
    message = r"one of .jsonl, .ndjson, .json, .csv, (.tsv, )?.parquet, .arrow, .feather"
    with pytest.raises(InvalidForm, match=message):
        read_events(tmp_path / name)
    with pytest.raises(InvalidForm, match=message):
        write_events([], tmp_path / name)


def test_suffixes_may_be_capital(tmp_path):
    write_events([Event("e1", {}, 0)], tmp_path / "EVENTS.CSV")
    assert compared(read_events(str(tmp_path / "EVENTS.CSV"))) == compared([Event("e1", {}, 0)])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_noticed_at_once(tmp_path, suffix):
    with pytest.raises(InvalidForm, match="the file cannot be read: No such file"):
        read_events(tmp_path / f"events{suffix}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("events.json", b'[{"id": "e1"}, ', "events.json: Expecting value"),
        ("events.json", b'{"id": "e1"}', "events.json: the file is not a JSON array"),
        ("events.json", b'["\xff"]', "events.json: it is not UTF-8: byte 3"),
        ("events.csv", b"", "events.csv: Empty CSV file"),
        ("events.csv", b"name,published_at\ne1,0\n", "events.csv: there is no column id"),
        (
            "events.json",
            b'{"a": [1], "b c": [{}]}',
            r"""its field b c is one: jq -c '\.\["b c"\]""",
        ),
        ("events.csv", b"id,published_at,\xff\ne1,0,1\n", "not UTF-8; .* iconv -f WINDOWS-1252 -t"),
        ("events.csv", "id,time\n".encode("utf-16"), "not UTF-8; .* iconv -f UTF-16 -t UTF-8"),
        ("events.parquet", b"id,published_at\n", "events.parquet: "),
        ("events.arrow", b"id,published_at\n", "events.arrow: "),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidForm, match=message):
        read_events(tmp_path / name)


def test_a_table_that_cannot_be_made_leaves_no_file(tmp_path):
    with pytest.raises(InvalidForm, match="year is a number in event e1"):
        write_events(
            [Event("e1", {"year": 1}, 0), Event("e2", {"year": "1"}, 0)], tmp_path / "events.csv"
        )
    assert not (tmp_path / "events.csv").exists()


@pytest.mark.parametrize("suffix", files.SUFFIXES)
@pytest.mark.parametrize("read", [files.read_events, files.read_subscriptions])
def test_pipes_and_devices_are_refused(tmp_path, suffix, read):
    pipe, device = tmp_path / f"pipe{suffix}", tmp_path / f"device{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(InvalidForm, match=rf"{path.name}: this is a pipe or a device"):
            list(read(path))


def test_a_link_to_itself_is_refused(tmp_path):
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    with pytest.raises(InvalidForm, match=r"loop\.jsonl: the file cannot be read: Too many"):
        files.read_events(loop)
