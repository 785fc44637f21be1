"""Changes of PostgreSQL tables: every transaction once, in the order of commits."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from tests.kill.stream import write_stream
from tests.sources.kills import check_kills
from tests.sources.pipelines import check, lines, run_here, write_config
from tests.store import server

from tidings.errors import SourceError
from tidings.sources.changes import ChangeReader, open_reader, read_options

GIVEN = {"url": "postgresql://u@h/shop", "slot": "tidings", "publication": "tidings"}
Run = Callable[..., None]


@pytest.fixture(scope="module")
def logical() -> Iterator[Any]:
    """Start a server that keeps what logical decoding needs; the usual one does not."""
    with TemporaryDirectory(prefix="tidings-", ignore_cleanup_errors=True) as folder:
        running = server.make(Path(folder) / "postgres")
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        server.crash(running)
        server.start(running)
        yield running
        running.cleanup()


@pytest.fixture
def shop(logical: Any) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection to a database with a table, a publication and a slot."""
    address = server.database(logical, "shop")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE films (id INT PRIMARY KEY, title TEXT, rating NUMERIC)")
        connection.execute("CREATE TABLE logs (line TEXT)")
        connection.execute("CREATE PUBLICATION tidings FOR TABLE films")
        connection.execute("SELECT pg_create_logical_replication_slot('tidings', 'pgoutput')")
        yield connection
        connection.execute("SELECT pg_drop_replication_slot('tidings')")


def reader(shop: psycopg.Connection[Any], **more: str) -> ChangeReader:
    return open_reader({**GIVEN, "url": address_of(shop), **more}, None)


def address_of(shop: psycopg.Connection[Any]) -> str:
    info = shop.info
    return f"postgresql://{info.user}@/{info.dbname}?host={info.host}"


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


def _write(shop: psycopg.Connection[Any], folder: Path) -> Path:
    """Write a stream to a table of messages; return a config that reads its changes."""
    shop.execute("CREATE TABLE events (id SERIAL PRIMARY KEY, event TEXT)")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE events")
    for line in lines(folder):
        shop.execute("INSERT INTO events (event) VALUES (%s)", (line,))
    options = {**GIVEN, "url": address_of(shop), "value": "event", "maxRecordsPerTrigger": 12}
    return write_config(folder, "postgres", options)


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
    expected = write_stream(tmp_path, files=6)
    check_kills(_write(shop, tmp_path), expected, kills=2)
