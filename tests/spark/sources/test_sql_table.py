"""`tidings-table` driven as Spark drives it, and in `tidings run` against the engine."""

import json
import runpy
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructType
from tests.kill.stream import write_stream
from tests.sources.pipelines import check, lines, run, table
from tests.store.tables import add, closed, insert, make

from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.app.run.summary import RunSummary
from tidings.errors import SourceError, StoreError
from tidings.formats.event_source import find_source
from tidings.spark.sources import sql_table as source
from tidings.spark.sources.sql_table import TableSource

ALL = ReadAllAvailable()
EXAMPLES = Path(__file__).parents[3] / "examples"


def options(address: str, **more: str) -> dict[str, str]:
    return {"url": address, "table": "outbox", "key": "id", **more}


class Stream(Protocol):
    def __call__(self, address: str, **more: str) -> Any: ...


@pytest.fixture
def stream() -> Iterator[Stream]:
    """Return a function that opens streams, which stop at the end of the test."""
    with ExitStack() as stack:

        def make_one(address: str, **more: str) -> Any:
            made = TableSource(options(address, **more))
            reader = made.streamReader(made.schema())
            stack.callback(reader.stop)
            return reader

        yield make_one


def rows(reader: Any, partitions: list[InputPartition]) -> list[dict[str, Any]]:
    return [
        row
        for partition in partitions
        for found in reader.read(partition)
        for row in found.to_pylist()
    ]


def names(reader: Any, start: Any, end: Any) -> str:
    return "".join(row["name"] for row in rows(reader, reader.partitions(start, end)))


def test_a_batch_has_all_rows(address: str) -> None:
    add(make(address), *"abc")
    made = TableSource(options(address))
    reader = made.reader(made.schema())
    assert [(row["id"], row["name"]) for row in rows(reader, reader.partitions())] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]
    later = TableSource(options(address, startingAfter="2")).reader(made.schema())
    assert [row["id"] for row in rows(later, later.partitions())] == [3]


def test_a_batch_of_nothing_reads_nothing(address: str) -> None:
    made = TableSource(options(make(address)))
    reader = made.reader(made.schema())
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_batches_keep_to_the_limit_and_take_all(
    stream: Stream, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_PAGE", 2)
    add(make(address), *"abcdefgh")
    reader = stream(address, maxRowsPerTrigger="3")
    assert reader.getDefaultReadLimit() == ReadMaxRows(3)
    assert stream(address).getDefaultReadLimit() == ALL
    at, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(at, ReadMaxRows(3))) != at:
        seen.append(names(reader, at, end))
        assert reader.reportLatestOffset() == {"key": 8}
        at = end
    assert seen == ["abc", "def", "gh"]
    add(address, "i")
    assert names(reader, at, reader.latestOffset(at, ALL)) == "i"


def test_a_stream_starts_with_the_first_row_or_after_a_key(stream: Stream, address: str) -> None:
    assert stream(make(address)).initialOffset() == {"key": 0}
    with closed(address) as connection:
        connection.execute("INSERT INTO outbox (id, name) VALUES (-5, 'a'), (3, 'b')")
        connection.commit()
    reader = stream(address)
    assert reader.initialOffset() == {"key": -6}
    assert names(reader, {"key": -6}, reader.latestOffset({"key": -6}, ALL)) == "ab"
    assert stream(address, startingAfter="-5").initialOffset() == {"key": -5}


def test_available_now_stops_at_the_end_when_it_started(stream: Stream, address: str) -> None:
    add(make(address), *"ab")
    reader = stream(address)
    reader.prepareForTriggerAvailableNow()
    add(address, "c")
    end = reader.latestOffset({"key": 0}, ALL)
    assert end == {"key": 2}
    assert reader.latestOffset(end, ALL) == end
    assert reader.partitions(end, end) == []


def test_rows_of_a_transaction_that_is_open_hold_later_ones_back(
    stream: Stream, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_TRIGGER_WAIT_S", 0.1)
    monkeypatch.setattr(source, "_LAST_WAIT_S", 0.1)
    add(make(postgres_address), "a")
    reader = stream(postgres_address)
    at = reader.latestOffset({"key": 0}, ALL)
    with closed(postgres_address) as slow:
        insert(slow, "b")
        add(postgres_address, "c")
        assert reader.latestOffset(at, ALL) == at
        assert reader.reportLatestOffset() == {"key": 3}
        ending = stream(postgres_address)
        ending.prepareForTriggerAvailableNow()
        assert ending.latestOffset(at, ALL) == at
        slow.commit()
    assert names(reader, at, reader.latestOffset(at, ALL)) == "bc"


def test_reused_keys_are_detected(stream: Stream, tmp_path: Path) -> None:
    address = make(
        str(tmp_path / "a.db"), "CREATE TABLE outbox (id INTEGER PRIMARY KEY, name TEXT)"
    )
    add(address, *"abc")
    reader = stream(address)
    with closed(address) as connection:
        connection.execute("DELETE FROM outbox")
        connection.commit()
    assert reader.latestOffset({"key": 3}, ALL) == {"key": 3}
    add(address, "d")
    with pytest.raises(SourceError, match="read up to key 3, but its largest is now 1: keys were"):
        reader.latestOffset({"key": 3}, ALL)


def test_rows_that_were_read_may_be_deleted_from_the_oldest_on(
    stream: Stream, address: str
) -> None:
    add(make(address), *"abc")
    reader = stream(address)
    for kept in ("id > 2", "id < 0"):
        with closed(address) as connection:
            connection.execute(f"DELETE FROM outbox WHERE NOT {kept}")
            connection.commit()
        assert reader.latestOffset({"key": 3}, ALL) == {"key": 3}
    add(address, "d")
    assert names(reader, {"key": 3}, reader.latestOffset({"key": 3}, ALL)) == "d"


def test_rows_deleted_at_the_end_are_reported_as_a_possible_cause(
    stream: Stream, address: str
) -> None:
    """The error names both causes, which cannot be distinguished; a larger key resolves it."""
    add(make(address), *"abc")
    reader = stream(address)
    with closed(address) as connection:
        connection.execute("DELETE FROM outbox WHERE id > 1")
        connection.commit()
    with pytest.raises(SourceError, match=r"or rows at its end were deleted.* Delete older rows f"):
        reader.latestOffset({"key": 3}, ALL)
    add(address, "d")
    assert names(reader, {"key": 3}, reader.latestOffset({"key": 3}, ALL)) == "d"


def test_a_stream_that_was_never_used_opens_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = TableSource(options(make(address)))
    reader: Any = made.streamReader(made.schema())
    monkeypatch.setattr(source, "open_database", None)
    reader.stop()


def test_a_schema_selects_columns_and_types(address: str) -> None:
    with closed(make(address)) as connection:
        connection.execute("INSERT INTO outbox (name, score, good) VALUES ('7', 2.5, true)")
        connection.commit()
    schema = StructType().add("score", StringType()).add("id", LongType())
    reader = TableSource(options(address)).reader(schema)
    assert rows(reader, reader.partitions()) == [{"score": "2.5", "id": 1}]
    unknown = TableSource(options(address)).reader(StructType().add("other", StringType()))
    with pytest.raises(SourceError, match="outbox has no column 'other'"):
        rows(unknown, unknown.partitions())


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (
            "score",
            "'high'",
            "row 2: column score is double, but 'high' does not fit; correct",
        ),
        ("good", "7", "row 2: column good is bool, but 7 does not fit; correct the row"),
        ("bytes", "1.5", "row 2: column bytes is binary, but 1.5 does not fit"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(
    stream: Stream, tmp_path: Path, column: str, value: str, reason: str
) -> None:
    address = make(str(tmp_path / "a.db"))
    add(address, "a")
    with closed(address) as connection:
        connection.execute(f"INSERT INTO outbox ({column}) VALUES ({value})")
        connection.commit()
    reader = stream(address)
    with pytest.raises(SourceError) as error:
        names(reader, {"key": 0}, {"key": 2})
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"url": "a.db", "table": "t"}, "option 'key' is missing, such as id"),
        ({"table": "t", "key": "id"}, "option 'url' is missing, such as sqlite:///shop.db or"),
        ({"url": "a.db", "key": "id"}, "option 'table' is missing, such as outbox"),
        ({"url": "a", "dbtable": "t"}, "unknown option 'dbtable'; expected one of: key, max"),
        (options("a", maxRowsPerTrigger="0"), "maxRowsPerTrigger must be a whole number of at"),
        (options("a", startingAfter="x"), "startingAfter must be a whole number of at least -9,"),
    ],
)
def test_an_error_names_the_option_and_the_rule(given: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceError) as error:
        TableSource(given).schema()
    assert reason in str(error.value)


def test_passwords_are_not_shown() -> None:
    given = options("postgresql://ann:secret@host/shop")
    assert "secret" not in str(source.read_options(given))


def test_options_of_streams_are_refused_in_a_batch(address: str) -> None:
    made = TableSource(options(make(address), maxRowsPerTrigger="3"))
    with pytest.raises(SourceError, match="maxRowsPerTrigger is for streams"):
        made.reader(made.schema())
    with pytest.raises(StoreError, match="the address of a store cannot be read"):
        TableSource(options("mysql://a/b")).schema()


@pytest.fixture
def shop(address: str) -> str:
    """Return the address of an outbox for JSON forms of events."""
    kind = "bigserial" if address.startswith("postgresql") else "INTEGER"
    make(address, f"CREATE TABLE outbox (id {kind} PRIMARY KEY, form text)")
    return address if address.startswith("postgresql") else f"sqlite:///{Path(address).name}"


def fill(folder: Path, url: str, forms: list[str | None]) -> None:
    address = url if url.startswith("postgresql") else str(folder / url.removeprefix("sqlite:///"))
    mark = "%s" if url.startswith("postgresql") else "?"
    with closed(address) as connection:
        for form in forms:
            text = form and form.replace("\0", "")
            connection.execute(f"INSERT INTO outbox (form) VALUES ({mark})", (text,))
        connection.commit()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_restart_resumes_and_everything_is_delivered_once(tmp_path: Path, shop: str) -> None:
    expected = write_stream(tmp_path, files=12)
    all_lines = lines(tmp_path)
    config = table(tmp_path, shop, maxRowsPerTrigger=20)
    fill(tmp_path, shop, [*all_lines[:33]])
    first = run(config)
    assert (first.batches, first.events) == (2, 33)
    fill(tmp_path, shop, [*all_lines[33:], None])
    second = run(config)
    assert (second.batches, second.events) == (2, len(all_lines) - 32)
    check(tmp_path, replace(expected, dead=expected.dead + 1))
    told = [json.loads(line) for line in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert [each["behind"]["offsetsBehindLatest"] for each in told][:2] == [13, 0]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_example_delivers_as_from_a_file(
    tmp_path: Path,
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    runpy.run_path(str(tmp_path / "examples" / "outbox" / "fill.py"))
    account = run(tmp_path / "examples" / "outbox" / "pipeline.toml")
    assert (account.batches, account.events, account.dead) == (3, 30, 0)
    config = load_config(tmp_path / "examples" / "outbox" / "pipeline.toml")
    films = find_source(EXAMPLES / "movies", "events.jsonl")
    local = replace(config, engine="local", source=films, sink=SinkConfig(tmp_path / "local"))
    plan = make_plan(local)
    assert account.delivered == RunSummary.of(plan, list(run_local(plan)), seconds=0).delivered
    assert sum(account.delivered.values()) > 30
