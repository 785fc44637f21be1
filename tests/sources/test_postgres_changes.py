"""Changes of PostgreSQL tables: every transaction once, in the order of commits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.sources.kills import check_kills
from tests.sources.logical_servers import NAMES, address_of, fill, open_shop, running_logical
from tests.sources.pipelines import check, run_here, write_config

from tidings.errors import SourceError
from tidings.sources.postgres_changes import ChangeReader, open_reader, read_options

GIVEN = {"url": "postgresql://u@h/shop", **NAMES}


@pytest.fixture(scope="module")
def logical() -> Iterator[Any]:
    with running_logical() as running:
        yield running


@pytest.fixture
def shop(logical: Any) -> Iterator[psycopg.Connection[Any]]:
    with open_shop(logical) as connection:
        yield connection


def reader(shop: psycopg.Connection[Any], **more: str) -> ChangeReader:
    return open_reader({**GIVEN, "url": address_of(shop), **more}, None)


def rows(open_one: ChangeReader, start: Any, end: Any) -> list[dict[str, Any]]:
    return [
        row
        for span in open_one.spans(start, end)
        for batch in open_one.read(span)
        for row in batch.to_pylist()
    ]


def insert(shop: psycopg.Connection[Any], *numbers: int) -> None:
    with shop.transaction():
        for number in numbers:
            shop.execute("INSERT INTO films VALUES (%s, %s, 7.5)", (number, f"film {number}"))


@pytest.mark.postgres
def test_transactions_come_once_in_order_and_are_not_split(shop: Any) -> None:
    open_one = reader(shop)
    start = open_one.starting("latest")
    assert open_one.advance(start, open_one.latest(), None) == start
    with psycopg.connect(address_of(shop)) as other:
        other.execute("INSERT INTO films VALUES (1, 'late', 5)")  # commits last
        insert(shop, 2, 3)
        insert(shop, 4)
        shop.execute("INSERT INTO logs VALUES ('of another table')")
        other.commit()
    end = open_one.advance(start, open_one.latest(), 1)
    first = rows(open_one, start, end)
    assert [json.loads(row["value"])["id"] for row in first] == [2, 3]
    assert json.loads(first[0]["value"]) == {"id": 2, "title": "film 2", "rating": 7.5}
    assert {row["partition"] for row in first} == {"public.films"}
    assert [row["key"] for row in first] == ["2", "3"]
    assert len({row["position"] for row in first}) == 2
    assert rows(open_one, start, end) == first  # it is read again after a crash
    open_one.committed(end)
    last = open_one.advance(end, open_one.latest(), None)
    assert [row["key"] for row in rows(open_one, end, last)] == ["4", "1"]
    open_one.committed(last)
    open_one.committed(last)
    assert open_one.starting("latest") == last
    with pytest.raises(SourceError, match="another reader has moved it on"):
        open_one.advance(start, open_one.latest(), None)
    open_one.close()


@pytest.mark.postgres
def test_a_start_far_behind_the_new_changes_is_passed(shop: Any) -> None:
    open_one = reader(shop)
    start = open_one.starting("latest")
    insert(shop, *range(50))
    middle = open_one.advance(start, open_one.latest(), 5)
    insert(shop, 50)
    # The slot was not moved on, as after a crash: it still holds the first transaction.
    end = open_one.advance(middle, open_one.latest(), 5)
    assert [row["key"] for row in rows(open_one, middle, end)] == ["50"]
    open_one.close()


@pytest.mark.postgres
def test_operations_types_and_columns(shop: Any) -> None:
    shop.execute(
        "CREATE TABLE kinds (id BIGINT PRIMARY KEY, ok BOOL, tags TEXT[], form JSONB, "
        "at TIMESTAMPTZ, price DOUBLE PRECISION, note TEXT)"
    )
    shop.execute("ALTER PUBLICATION tidings ADD TABLE kinds")
    everything = reader(shop, operations="insert, update, delete")
    start = everything.starting("latest")
    shop.execute(
        "INSERT INTO kinds VALUES (1, true, '{a,\"b c\"}', '{\"x\": [1]}', "
        "'2026-01-02 03:04:05+00', 'NaN', NULL)"
    )
    shop.execute("UPDATE kinds SET id = 2, note = 'é'")
    shop.execute("DELETE FROM kinds")
    end = everything.advance(start, everything.latest(), None)
    found = rows(everything, start, end)
    operations = [row["headers"][0]["value"] for row in found]
    assert operations == [b"insert", b"update", b"delete"]
    inserted, updated, deleted = (json.loads(row["value"]) for row in found)
    assert inserted == {
        "id": 1,
        "ok": True,
        "tags": ["a", "b c"],
        "form": {"x": [1]},
        "at": "2026-01-02T03:04:05+00:00",
        "price": "NaN",
        "note": None,
    }
    assert (updated["id"], updated["note"], updated["tags"]) == (2, "é", ["a", "b c"])
    assert deleted == {"id": 2}
    everything.close()
    one = reader(shop, value="form")
    assert [row["value"] for row in rows(one, start, end)] == [b'{"x": [1]}']
    one.close()


def new_rows(open_one: ChangeReader, start: Any) -> list[dict[str, Any]]:
    """Return what is new since a position, all of it in one batch."""
    return rows(open_one, start, open_one.advance(start, open_one.latest(), 1_000_000))


def values(found: list[dict[str, Any]]) -> list[Any]:
    return [json.loads(row["value"]) for row in found]


DEEP = "[" * 3_000 + "]" * 3_000
CELLS: list[tuple[str, str, Any]] = [
    ("text", "", ""),
    ("text", 'a\\b"c,{}\n', 'a\\b"c,{}\n'),
    ("text", "NULL", "NULL"),
    ("boolean", "f", False),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("numeric", "12345678901234567890", 12345678901234567890),
    ("numeric", "-7", -7),
    ("numeric", "0.5", 0.5),
    ("numeric", "NaN", "NaN"),
    ("real", "-Infinity", "-Infinity"),
    ("double precision", "0.1", 0.1),
    ("uuid", "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000a"),
    ("date", "2026-01-02", "2026-01-02"),
    ("timestamp", "2026-01-02 03:04:05.6", "2026-01-02T03:04:05.6Z"),
    ("timestamp", "infinity", "infinity"),
    ("timestamp", "0044-03-15 00:00:00 BC", "0044-03-15 00:00:00 BC"),
    ("timestamptz", "2026-01-02 03:04:05+05:30", "2026-01-01T21:34:05+00:00"),
    ("timestamptz", "1890-01-01 00:00:00+00", "1890-01-01T00:00:00+00:00"),
    ("interval", "1 day 02:00", "1 day 02:00:00"),
    ("bytea", "\\x00ff", "\\x00ff"),
    ("json", '{"a": [1, null], "a": 2}', {"a": 2}),
    ("json", DEEP, DEEP),
    ("jsonb", '"text"', "text"),
    ("jsonb", "null", None),
    ("text[]", "{}", []),
    ("text[]", "{NULL,a}", [None, "a"]),
    (
        "text[]",
        '{"NULL","","a,b","{c}","d\\\\e","f\\"g"," h "}',
        ["NULL", "", "a,b", "{c}", "d\\e", 'f"g', " h "],
    ),
    ("text[]", "{{a,b},{c,NULL}}", [["a", "b"], ["c", None]]),
    ("int[]", "[0:1]={1,2}", [1, 2]),
    ("int[]", "{{{1},{2}}}", [[[1], [2]]]),
    ("boolean[]", "{t,f,NULL}", [True, False, None]),
    ("numeric[]", "{1,2.5,NaN}", [1, 2.5, "NaN"]),
    ("jsonb[]", '{"{\\"a\\": [1, \\"x\\"]}",NULL}', [{"a": [1, "x"]}, None]),
    ("timestamptz[]", '{"2026-01-02 03:04:05+00"}', ["2026-01-02T03:04:05+00:00"]),
    ("mood", "fine", "fine"),
    ("mood[]", "{fine}", "{fine}"),
    ("int4range", "[1,5)", "[1,5)"),
]
"""A type, the text of a value, and what JSON has for it."""


@pytest.mark.postgres
def test_values_of_many_types(shop: Any) -> None:
    """Whatever the database and its roles are set to: the reader asks for one form of text."""
    shop.execute("ALTER DATABASE shop SET datestyle = 'German'")
    shop.execute("ALTER DATABASE shop SET timezone = 'Europe/Berlin'")
    shop.execute("ALTER DATABASE shop SET bytea_output = 'escape'")
    shop.execute("CREATE TYPE mood AS ENUM ('fine')")
    columns = [f"c{number} {kind}" for number, (kind, _, _) in enumerate(CELLS)]
    shop.execute(f"CREATE TABLE kinds ({', '.join(columns)})")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE kinds")
    open_one = reader(shop)
    start = open_one.starting("latest")
    marks = ", ".join(f"CAST(%s AS {kind})" for kind, _, _ in CELLS)
    shop.execute(f"INSERT INTO kinds VALUES ({marks})", [text for _, text, _ in CELLS])
    shop.execute("INSERT INTO kinds DEFAULT VALUES")
    full, empty = values(new_rows(open_one, start))
    expected = {f"c{number}": value for number, (_, _, value) in enumerate(CELLS)}
    assert {name: (value, type(value)) for name, value in full.items()} == {
        name: (value, type(value)) for name, value in expected.items()
    }
    assert set(empty.values()) == {None}
    open_one.close()


ELEMENT = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.mark.postgres
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(arrays=st.lists(st.lists(ELEMENT), min_size=1, max_size=30))
def test_arrays_come_as_the_client_of_postgresql_writes_them(
    shop: Any, arrays: list[list[str | None]]
) -> None:
    shop.execute("DROP TABLE IF EXISTS lists")
    shop.execute("CREATE TABLE lists (id SERIAL PRIMARY KEY, items TEXT[])")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE lists")
    open_one = reader(shop)
    start = open_one.starting("latest")
    with shop.transaction():
        for items in arrays:
            shop.execute("INSERT INTO lists (items) VALUES (%s)", (items,))
    found = new_rows(open_one, start)
    open_one.committed({"lsn": int(found[-1]["position"].split("-")[0], 16)})
    open_one.close()
    assert [form["items"] for form in values(found)] == arrays


@pytest.mark.postgres
def test_texts_of_a_database_with_another_encoding(logical: Any, shop: Any) -> None:
    shop.execute("DROP DATABASE IF EXISTS latin")
    shop.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(logical.get_uri(database="latin"), autocommit=True) as latin:
        latin.execute("CREATE TABLE films (id INT PRIMARY KEY, title TEXT)")
        latin.execute("CREATE PUBLICATION tidings FOR TABLE films")
        latin.execute("SELECT pg_create_logical_replication_slot('latin', 'pgoutput')")
        open_one = reader(latin, slot="latin")
        start = open_one.starting("latest")
        latin.execute("INSERT INTO films VALUES (1, 'Amélie')")
        assert values(new_rows(open_one, start)) == [{"id": 1, "title": "Amélie"}]
        open_one.close()
        latin.execute("SELECT pg_drop_replication_slot('latin')")


@pytest.mark.postgres
def test_large_values_that_an_update_has_not_touched(shop: Any) -> None:
    shop.execute("CREATE TABLE texts (id INT PRIMARY KEY, note TEXT, event TEXT)")
    shop.execute("ALTER TABLE texts ALTER event SET STORAGE EXTERNAL")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE texts")
    large = json.dumps({"text": "x" * 10_000})
    by_row = reader(shop, operations="insert,update,delete")
    start = by_row.starting("latest")
    shop.execute("INSERT INTO texts VALUES (1, 'a', %s)", (large,))
    shop.execute("UPDATE texts SET note = 'b'")
    shop.execute("UPDATE texts SET event = NULL")
    shop.execute("ALTER TABLE texts REPLICA IDENTITY FULL")
    shop.execute("UPDATE texts SET event = %s", (large,))
    shop.execute("UPDATE texts SET note = 'c'")
    shop.execute("DELETE FROM texts")
    inserted, without, cleared, back, full, deleted = values(new_rows(by_row, start))
    assert inserted == {"id": 1, "note": "a", "event": large}
    assert without == {"id": 1, "note": "b"}
    assert cleared == {"id": 1, "note": "b", "event": None}
    assert (back["note"], back["event"]) == ("b", large)
    assert full == deleted == {"id": 1, "note": "c", "event": large}
    by_row.close()
    by_column = reader(shop, operations="update", value="event")
    messages = [row["value"] for row in new_rows(by_column, start)]
    # What is not there becomes a dead letter that shows the row.
    assert messages == [b'{"id": 1, "note": "b"}', None, large.encode(), large.encode()]
    by_column.close()


@pytest.mark.postgres
def test_columns_that_are_renamed_added_and_dropped_in_mid_stream(shop: Any) -> None:
    shop.execute("CREATE TABLE outbox (id INT PRIMARY KEY, event TEXT, old INT)")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE outbox")
    by_row, by_column = reader(shop), reader(shop, value="event")
    start = by_column.starting("latest")
    shop.execute("INSERT INTO outbox VALUES (1, '{}', 5)")
    shop.execute("ALTER TABLE outbox RENAME event TO message")
    shop.execute("INSERT INTO outbox VALUES (2, '{}', 6)")
    with shop.transaction():
        shop.execute("ALTER TABLE outbox DROP old")
        shop.execute("ALTER TABLE outbox ADD new INT DEFAULT 7")
        shop.execute("INSERT INTO outbox VALUES (3, '{}')")
    shop.execute("TRUNCATE outbox")
    found = new_rows(by_row, start)
    assert values(found) == [
        {"id": 1, "event": "{}", "old": 5},
        {"id": 2, "message": "{}", "old": 6},
        {"id": 3, "message": "{}", "new": 7},
    ]
    assert values(new_rows(by_column, start)) == [{}, *values(found)[1:]]
    # A transaction that was read describes the table also for those after it.
    end = by_row.advance(start, by_row.latest(), 1)
    assert [row["key"] for row in rows(by_row, end, by_row.latest())] == ["2", "3"]
    by_row.close()
    with pytest.raises(SourceError, match="no table of the publication 'tidings' has a column"):
        by_column.starting("latest")
    by_column.close()


@pytest.mark.postgres
def test_a_message_is_what_the_column_holds(shop: Any) -> None:
    shop.execute("CREATE TABLE outbox (id SERIAL, event TEXT, form JSON, data BYTEA)")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE outbox")
    columns = {name: reader(shop, value=name) for name in ("event", "form", "data")}
    start = columns["event"].starting("latest")
    shop.execute(
        "INSERT INTO outbox (event, form, data) VALUES ('no json', '{ \"a\":1}', '\\x00ff')"
    )
    shop.execute("INSERT INTO outbox (event) VALUES ('')")
    found = {
        name: [row["value"] for row in new_rows(each, start)] for name, each in columns.items()
    }
    assert found == {
        "event": [b"no json", b""],
        "form": [b'{ "a":1}', None],
        "data": [b"\x00\xff", None],
    }
    for column in columns.values():
        column.close()


@pytest.mark.postgres
def test_a_large_transaction_comes_in_pages(shop: Any) -> None:
    open_one = reader(shop)
    start = open_one.starting("latest")
    shop.execute("INSERT INTO films SELECT n, 'film', 5 FROM generate_series(1, 2500) AS n")
    end = open_one.advance(start, open_one.latest(), 10)
    [span] = open_one.spans(start, end)
    pages = list(open_one.read(span))
    assert [page.num_rows for page in pages] == [1000, 1000, 500]
    keys = [row["key"] for page in pages for row in page.to_pylist()]
    assert keys == [str(number) for number in range(1, 2501)]
    open_one.close()


@pytest.mark.postgres
def test_a_slot_or_publication_that_is_gone_says_what_to_do(shop: Any) -> None:
    open_one = reader(shop)
    start = open_one.starting("latest")
    insert(shop, 1)
    shop.execute("DROP PUBLICATION tidings")
    insert(shop, 2)
    with pytest.raises(SourceError, match="no publication 'tidings'"):
        open_one.advance(start, open_one.latest(), None)
    shop.execute("SELECT pg_drop_replication_slot('tidings')")
    with pytest.raises(SourceError, match="has no logical slot 'tidings'"):
        open_one.advance(start, open_one.latest(), None)
    shop.execute("CREATE PUBLICATION tidings FOR TABLE films")
    shop.execute("SELECT pg_create_logical_replication_slot('tidings', 'pgoutput')")
    with pytest.raises(SourceError, match="or it was created again"):
        open_one.advance(start, open_one.latest(), None)
    again = open_one.starting("latest")
    insert(shop, 3)
    assert [row["key"] for row in new_rows(open_one, again)] == ["3"]
    open_one.close()


def test_wrong_options_are_named() -> None:
    with pytest.raises(SourceError, match="unknown operation 'truncate'"):
        read_options({**GIVEN, "operations": "insert,truncate"})
    with pytest.raises(SourceError, match="url must be one of PostgreSQL"):
        read_options({**GIVEN, "url": "sqlite:///a.db"})
    with pytest.raises(SourceError, match="option 'slot' is missing"):
        read_options({"url": GIVEN["url"], "publication": "p"})


@pytest.mark.postgres
def test_a_missing_slot_says_how_to_create_it(shop: Any) -> None:
    wrong = reader(shop, slot="other")
    with pytest.raises(SourceError, match="pg_create_logical_replication_slot"):
        wrong.starting("latest")
    wrong.close()


def _write(shop: psycopg.Connection[Any], folder: Path, limit: int = 12) -> Path:
    """Write a stream to a table of messages; return a config that reads its changes."""
    return write_config(folder, "postgres", {**fill(shop, folder), "maxRecordsPerTrigger": limit})


@pytest.mark.postgres
def test_a_run_resumes(shop: Any, tmp_path: Path) -> None:
    expected = write_stream(tmp_path, files=3)
    config = _write(shop, tmp_path)
    assert run_here(config).batches > 1
    check(tmp_path, expected)
    assert run_here(config).batches == 0
    shop.execute("INSERT INTO logs VALUES ('x')")
    assert run_here(config).batches == 0


@pytest.mark.kill
@pytest.mark.postgres
def test_kills_of_a_run_lose_nothing(shop: Any, tmp_path: Path) -> None:
    expected = write_stream(tmp_path, files=12)
    config = _write(shop, tmp_path, limit=1 if KILLS else 12)
    check_kills(config, expected, kills=20 if KILLS else 2)
