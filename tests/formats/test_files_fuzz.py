"""Files of every kind with bits flipped and parts cut: records, bad records, or our own errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from tests.fuzz import cases
from tests.mutation import try_all

from tidings.app.check.review import detect_kind
from tidings.errors import InvalidForm
from tidings.formats.event_source import read_file
from tidings.formats.files import (
    read_events,
    read_subscribers,
    read_subscriptions,
    write_events,
    write_subscribers,
    write_subscriptions,
)
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.model.records import Event, Subscription

pytestmark = pytest.mark.fuzz
NUMBER = 20


def events() -> list[Event]:
    return [
        Event(f"e{number}", {"genre": ["drama", "ü"], "year": number, "f": 0.5}, number)
        for number in range(NUMBER)
    ]


def table() -> pa.Table:
    """Return a table with every kind of column that an event may have."""
    rows = range(NUMBER)
    return pa.table(
        {
            "id": [f"e{row}" for row in rows],
            "published_at": pa.array(rows, pa.timestamp("us", tz="UTC")),
            "genre": [["drama", "x"] if row % 2 else None for row in rows],
            "code": pa.array(["a", "b"] * (NUMBER // 2)).dictionary_encode(),
            "more": pa.array([[("k", row)] for row in rows], pa.map_(pa.string(), pa.int64())),
            "seen": [True] * NUMBER,
            "rank": [1.5] * NUMBER,
            "day": pa.array(list(rows), pa.date32()),
        }
    )


def write_delta_encoded(path: Path) -> None:
    """Write a Parquet file with every encoding of differences, not compressed."""
    encodings = {
        "id": "DELTA_BYTE_ARRAY",
        "published_at": "DELTA_BINARY_PACKED",
        "genre.list.element": "DELTA_LENGTH_BYTE_ARRAY",
        "more.key_value.value": "DELTA_BINARY_PACKED",
        "code": "DELTA_LENGTH_BYTE_ARRAY",
    }
    parquet.write_table(
        table(), path, compression="none", use_dictionary=False, column_encoding=encodings
    )


def samples(folder: Path, *suffixes: str) -> dict[str, bytes]:
    """Return files of each suffix, in every way that they may be compressed."""
    found = {}
    for suffix in suffixes:
        for way in {".parquet": ("snappy", "none", "zstd", "gzip", "delta")}.get(
            suffix, ("lz4", "uncompressed", "zstd") if suffix in (".arrow", ".feather") else ("",)
        ):
            path = folder / f"base-{way}{suffix}"
            if way == "delta":
                write_delta_encoded(path)
            elif suffix == ".parquet":
                parquet.write_table(table(), path, compression=way)
            elif way:
                feather.write_feather(table(), path, compression=way)
            else:
                write_events(events(), path)
            found[path.name] = path.read_bytes()
    return found


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".arrow", ".feather"])
def test_damaged_files_give_records_or_our_own_errors(tmp_path: Path, suffix: str) -> None:
    try_all(tmp_path, samples(tmp_path, suffix), read_events, cases(400))


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".arrow"])
def test_damaged_subscriptions_and_subscribers(tmp_path: Path, suffix: str) -> None:
    wishes = [
        loads_subscription(
            {"id": f"s{n}", "subscriber": "ann", "where": f"a = {n} and b in ('x', 'y')"}
        )
        for n in range(8)
    ]
    people = [
        loads_subscriber(
            {"id": f"p{n}", "policy": {"k": 2, "window": {"name": "sliding", "length": 5}}}
        )
        for n in range(8)
    ]
    write_subscriptions(wishes, tmp_path / f"wishes{suffix}")
    write_subscribers(people, tmp_path / f"people{suffix}")
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def read(path: Path) -> Iterator[Any]:
        return (read_subscriptions if "wishes" in path.name else read_subscribers)(path)

    try_all(tmp_path, found, read, cases(200))


def test_a_damaged_file_of_a_source_is_a_bad_record(tmp_path: Path) -> None:
    def read(path: Path) -> Iterator[Any]:
        return read_file(path, path.suffix)

    try_all(tmp_path, samples(tmp_path, ".parquet", ".arrow", ".json"), read, cases(200))


def test_the_kind_of_a_damaged_file_is_detected_or_refused(tmp_path: Path) -> None:
    """`tidings check` looks at the names of fields before it reads a file."""

    def read(path: Path) -> list[str]:
        return [detect_kind(path)]

    found = samples(tmp_path, ".parquet", ".arrow", ".json", ".csv")
    try_all(tmp_path, found, read, cases(200), named=False)


def test_rows_that_take_no_bytes_are_not_made(tmp_path: Path) -> None:
    rows = pa.Array.from_buffers(pa.null(), 2**30, [None])
    path = tmp_path / "events.arrow"
    batch = pa.RecordBatch.from_arrays([rows, rows], ["id", "published_at"])
    with pa.ipc.new_file(path, batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(InvalidForm, match=r"events\.arrow: the file claims 1,073,741,824 rows"):
        read_events(path)


def test_parquet_that_claims_too_many_values_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    nothing = pa.nulls(10_000_000, pa.string())
    parquet.write_table(pa.table({"id": nothing, "published_at": nothing}), path)
    assert path.stat().st_size < 50_000
    with pytest.raises(InvalidForm, match=r"events\.parquet: the file claims .* rows in"):
        read_events(path)


def test_arrow_with_codes_outside_its_dictionary_is_refused(tmp_path: Path) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 900_000_000]), pa.array(["a"]), safe=False)
    path = tmp_path / "events.arrow"
    feather.write_feather(
        pa.table({"id": codes, "published_at": [0, 1]}), path, compression="uncompressed"
    )
    with pytest.raises(InvalidForm, match=r"events\.arrow: "):
        read_events(path)


def good(number: int) -> str:
    return json.dumps({"id": f"e{number}", "published_at": 0, "attributes": {}})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "x", "published_at": 0, "attributes": {"a": NaN}}', "NaN is not a JSON number"),
        (
            b'{"id": "x", "published_at": Infinity, "attributes": {}}',
            "Infinity is not a JSON",
        ),
        (b'{"id": "x", "id": "y", "published_at": 0, "attributes": {}}', "'id' occurs twice"),
        (b'{"id": "x", "published_at": 0, "attributes": {"a": ' + b"9" * 5000 + b"}}", "4300"),
        (b'{"id": "\xff"}', "not UTF-8: byte 9"),
        (b'{"id": "a\0b"}', "Invalid control character"),
        (b"[" * 100_000, "nest too deeply"),
        (b'{"id": "' + b"x" * 3_000 + b'"}', "longer than the limit record_bytes = 2,000"),
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_what_is_no_record_is_bad_and_the_others_are_read(
    tmp_path: Path, suffix: str, line: bytes, reason: str
) -> None:
    if suffix == ".json" and (b"\xff" in line or b"[[" in line or b"\0" in line):
        pytest.skip("an array that is no JSON is refused as a whole")
    path = tmp_path / f"events{suffix}"
    lines = [good(1).encode(), line, good(2).encode()]
    path.write_bytes(b"\n".join(lines) if suffix == ".jsonl" else b"[" + b",".join(lines) + b"]")
    limits = Limits(record_bytes=2_000) if "record_bytes" in reason else Limits()
    first, bad, last = read_events(path, limits=limits)
    assert (isinstance(first, Event), isinstance(last, Event)) == (True, True)
    assert isinstance(bad, BadRecord)
    assert bad.position == 2
    assert reason in bad.reason


def test_a_line_that_is_too_long_is_never_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with path.open("wb") as file:
        file.write(good(1).encode() + b"\n")
        file.truncate(200_000_000)  # a hole of zeros, in one line
        file.seek(0, 2)
        file.write(b"\n" + good(2).encode() + b"\n")
    found = read_events(path, limits=Limits(record_bytes=1_000))
    assert isinstance(next(found), Event)
    bad = next(found)
    assert isinstance(bad, BadRecord)
    assert bad.position == 2


def test_a_row_of_csv_that_is_too_long_is_bad_and_the_others_keep_their_numbers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.csv"
    long = '"' + "x\n" * 3_000_000 + '"'
    path.write_text(f"id,published_at,t\ne1,0,a\ne2,0,{long}\ne3,0\ne4,0,b\n")
    found = list(read_events(path, limits=Limits(record_bytes=1_000_000)))
    bad = [each for each in found if isinstance(each, BadRecord)]
    assert [(each.position, each.reason[:19]) for each in bad] == [
        (2, "the row is longer t"),
        (3, "the row has 2 cells"),
    ]
    assert [each.id for each in found if isinstance(each, Event)] == ["e1", "e4"]


def test_limits_hold_for_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write_events([Event("e1", {"t": "x" * 100}, 0), Event("e2", {"t": "y"}, 0)], path)
    refused, taken = read_events(path, limits=Limits(string_bytes=50))
    assert isinstance(taken, Event)
    assert isinstance(refused, BadRecord)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".arrow"])
def test_records_of_every_kind_are_read_within_the_limits(tmp_path: Path, suffix: str) -> None:
    def reasons(read: Any) -> list[str]:
        found = read(path, limits=Limits.public())
        return [each.reason if isinstance(each, BadRecord) else "" for each in found]

    path = tmp_path / f"records{suffix}"
    content: Any = "x"
    for _ in range(9):
        content = {"a": content}
    events = [Event("e1", {"a": 1}, 0), Event("e2", {"a": 1}, 0, content=content)]
    write_events([*events, Event("e3", {"a" * 8_001: 1}, 0)], path)
    assert reasons(read_events)[0] == ""
    assert "limit nesting = 8" in reasons(read_events)[1]
    assert "limit string_bytes = 8,000" in reasons(read_events)[2]

    policies = [{"k": 2}, {"k": 1_001}, {"window": {"name": "sliding", "length": 100_001}}]
    people = [{"id": f"p{number}", "policy": policy} for number, policy in enumerate(policies)]
    write_subscribers(map(loads_subscriber, people), path)
    assert [reason[-19:] for reason in reasons(read_subscribers)] == [
        "",
        "the limit k = 1,000",
        "ow_events = 100,000",
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_of_very_many_columns_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"wide{suffix}"
    table = pa.table({"id": ["e"], "published_at": [0]} | {f"c{n}": [1] for n in range(50_000)})
    write = {
        ".csv": csv.write_csv,
        ".parquet": parquet.write_table,
        ".arrow": feather.write_feather,
    }
    write[suffix](table, str(path))
    with pytest.raises(InvalidForm, match="at most 50,000 columns, not 50,002"):
        list(read_events(path))


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".arrow"])
def test_conditions_are_read_within_the_limits_as_they_are_written(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"wishes{suffix}"
    # Once parsed, neither the parentheses nor the spaces are left.
    texts = ["a = 1", "(" * 9 + "a = 1" + ")" * 9, "a = " + " " * 8_000 + "1"]
    forms = [
        {"id": f"s{number}", "subscriber": "ann", "where": text}
        for number, text in enumerate(texts)
    ]
    table = pa.Table.from_pylist(forms)
    if suffix == ".csv":
        csv.write_csv(table, path)
    elif suffix == ".parquet":
        parquet.write_table(table, path)
    elif suffix == ".arrow":
        feather.write_feather(table, path)
    else:
        path.write_text("\n".join(map(json.dumps, forms)))
    fine, deep, long = read_subscriptions(path, limits=Limits.public())
    assert isinstance(fine, Subscription)
    assert isinstance(deep, BadRecord)
    assert "limit nesting = 8" in deep.reason
    assert isinstance(long, BadRecord)
    assert "limit condition_bytes = 8,000" in long.reason
