"""Another application's table: its columns, its rows in order of the key, and refusals."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from tests.store.tables import add, closed, insert, make, opened

from tidings.errors import StoreError
from tidings.store import AppendOnlyTable, CommitHorizon, TableColumn, open_database
from tidings.store.append_only_table import (
    DIALECTS,
    PREPARED,
    ColumnInfo,
    Dialect,
    PostgresDialect,
    SqliteDialect,
)


def columns(path: Path, *statements: str, key: str = "id") -> list[ColumnInfo]:
    """Return the columns of a table `t` that the statements create."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    database = open_database(path)
    try:
        return database.read(lambda session: SqliteDialect().columns(session, '"t"', key))
    finally:
        database.close()


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("INTEGER", "long"),
        ("bigint", "long"),
        ("UNSIGNED BIG INT", "long"),
        ("FLOATING POINT", "long"),  # contains INT, so SQLite makes it an integer
        ("BOOLEAN", "boolean"),
        ("VARCHAR(20)", "string"),
        ("nchar(5)", "string"),
        ("CLOB", "string"),
        ("TEXT", "string"),
        ("BLOB", "binary"),
        ("REAL", "double"),
        ("DOUBLE PRECISION", "double"),
        ("float", "double"),
        ("NUMERIC", "double"),
        ("DECIMAL(10, 5)", "double"),
        ("TIMESTAMP", "string"),
        ("JSON", "string"),
        ("", "string"),
    ],
)
def test_a_kind_follows_from_the_words_of_a_type(tmp_path: Path, declared: str, kind: str) -> None:
    found = columns(tmp_path / "a.db", f"CREATE TABLE t (x {declared})")
    assert found == [ColumnInfo("x", kind, False)]


@pytest.mark.parametrize(
    ("definition", "unique"),
    [
        ("id INTEGER PRIMARY KEY", True),
        ("id integer PRIMARY KEY AUTOINCREMENT", True),
        ("id INTEGER PRIMARY KEY DESC", False),
        ("id BIGINT PRIMARY KEY", False),
        ("id BIGINT PRIMARY KEY NOT NULL", True),
        ("id BIGINT NOT NULL UNIQUE", True),
        ("id BIGINT UNIQUE", False),
        ("id BIGINT NOT NULL", False),
        ("id INTEGER, x, PRIMARY KEY (id, x)", False),
        ("id INTEGER NOT NULL, x NOT NULL, UNIQUE (id, x)", False),
    ],
)
def test_a_key_is_the_rowid_or_not_null_with_a_unique_index(
    tmp_path: Path, definition: str, unique: bool
) -> None:
    found = columns(tmp_path / "a.db", f"CREATE TABLE t ({definition})")
    assert found[0] == ColumnInfo("id", "long", unique)
    assert not any(column.unique for column in found[1:])


@pytest.mark.parametrize(
    ("index", "unique"),
    [
        ("CREATE UNIQUE INDEX i ON t (id)", True),
        ("CREATE INDEX i ON t (id)", False),
        ("CREATE UNIQUE INDEX i ON t (id) WHERE id > 5", False),
        ("CREATE UNIQUE INDEX i ON t (x)", False),
    ],
)
def test_an_index_makes_a_key_unique_only_if_it_holds_every_row(
    tmp_path: Path, index: str, unique: bool
) -> None:
    found = columns(tmp_path / "a.db", "CREATE TABLE t (id INT NOT NULL, x INT NOT NULL)", index)
    assert [column.unique for column in found] == [unique, False]


def test_only_the_key_that_is_asked_for_is_unique(tmp_path: Path) -> None:
    definition = "CREATE TABLE t (id INTEGER PRIMARY KEY, x INT NOT NULL UNIQUE)"
    assert [c.unique for c in columns(tmp_path / "a.db", definition, key="x")] == [False, True]


def test_a_table_that_does_not_exist_has_no_columns(tmp_path: Path) -> None:
    assert columns(tmp_path / "a.db", "CREATE TABLE other (id INTEGER PRIMARY KEY)") == []


class Answers:
    """A session of a server that answers each query by its first words."""

    def __init__(self, **answers: list[tuple[Any, ...]]) -> None:
        self.answers = answers

    def rows(self, sql: str, *_: Any) -> list[tuple[Any, ...]]:
        (found,) = [rows for word, rows in self.answers.items() if word in sql]
        return found


def test_sqlite_has_no_concurrent_writers_and_no_schemas() -> None:
    dialect: Dialect = SqliteDialect()
    session: Any = Answers()
    assert dialect.writers(session, '"t"') == frozenset()
    with pytest.raises(StoreError, match=r'have no schema; write "a"\."t" without one'):
        dialect.columns(session, '"a"."t"', "id")


def test_the_writers_of_a_standby_are_not_known() -> None:
    session: Any = Answers(pg_is_in_recovery=[(1,)], pg_locks=[])
    with pytest.raises(StoreError, match="this PostgreSQL is a standby"):
        PostgresDialect().writers(session, '"t"')


def test_writers_are_the_holders_of_locks() -> None:
    session: Any = Answers(pg_is_in_recovery=[], pg_locks=[("3/14",), (PREPARED,)])
    assert PostgresDialect().writers(session, '"t"') == {"3/14", "prepared"}


@pytest.mark.parametrize(
    ("cache", "increment", "cycle", "says"),
    [
        (10, 1, False, r"\(CACHE 10, INCREMENT 1\)"),
        (1, -1, False, r"\(CACHE 1, INCREMENT -1\)"),
        (1, 1, True, r"\(CACHE 1, INCREMENT 1, CYCLE\)"),
    ],
)
def test_a_sequence_that_is_not_in_order_of_time_is_refused(
    cache: int, increment: int, cycle: bool, says: str
) -> None:
    key = [("id", "bigint", True), ("x", "inet", False)]
    session: Any = Answers(pg_attribute=key, pg_sequence=[(cache, increment, cycle)])
    with pytest.raises(StoreError, match=says):
        PostgresDialect().columns(session, '"t"', "id")
    session = Answers(pg_attribute=key, pg_sequence=[(1, 2, False)])
    assert PostgresDialect().columns(session, '"t"', "id") == [
        ColumnInfo("id", "long", True),
        ColumnInfo("x", "string", False),
    ]


@pytest.mark.parametrize(
    ("kind", "sqlite", "postgres"),
    [("string", "x", "x::text"), ("double", "x", "x::float8"), ("long", "x", "x")],
)
def test_cells_are_cast_where_a_server_has_other_types(
    kind: str, sqlite: str, postgres: str
) -> None:
    found = {name: dialect.cell("x", kind) for name, dialect in DIALECTS.items()}
    assert found == {"sqlite": sqlite, "postgres": postgres}


def test_columns_have_kinds(address: str) -> None:
    with opened(make(address)) as table:
        columns = table.columns()
    at = "timestamp" if address.startswith("postgresql") else "string"
    assert columns == [
        ("id", "long"),
        ("name", "string"),
        ("score", "double"),
        ("at", at),
        ("good", "boolean"),
        ("bytes", "binary"),
        ("group", "string"),
    ]


def test_rows_come_in_order_page_by_page(address: str) -> None:
    add(make(address), *"abcdefg")
    name = [TableColumn("name", "string")]
    with opened(address) as table:
        assert (table.bottom(), table.top()) == (1, 7)
        assert table.page(name, 2, 6, 3) == [(3, "c"), (4, "d"), (5, "e")]
        assert table.page(name, 5, 6, 3) == [(6, "f")]
        assert table.page(name, 6, 6, 3) == []
        assert [table.end(2, 6, limit) for limit in (1, 3, 9)] == [3, 5, 6]
        assert table.end(6, 6, 3) == 6


def test_an_empty_table_has_no_keys(address: str) -> None:
    with opened(make(address)) as table:
        assert (table.bottom(), table.top()) == (None, None)


def test_cells_are_python_values(postgres_address: str) -> None:
    with closed(make(postgres_address)) as connection:
        connection.execute(
            "INSERT INTO outbox VALUES (7, 'a', 1.5, '2026-01-02T03:04:05+01', true, 'x', '[1]')"
        )
        connection.commit()
    with opened(postgres_address) as table:
        (row,) = table.page(table.columns(), 0, 9, 9)
    at = datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert row == (7, 7, "a", 1.5, at, True, b"x", "[1]")


def test_a_table_may_be_in_any_schema(postgres_address: str) -> None:
    with closed(postgres_address) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS shop")
        connection.execute('DROP TABLE IF EXISTS shop."My Events"')
        connection.execute('CREATE TABLE shop."My Events" (n int PRIMARY KEY)')
        connection.execute('INSERT INTO shop."My Events" VALUES (3)')
        connection.commit()
    with opened(postgres_address, "shop.My Events", "n") as table:
        assert table.columns() == [("n", "long")]
        assert table.page(table.columns(), 0, 9, 9) == [(3, 3)]
        assert table.writers() == frozenset()


def test_another_applications_database_is_read_only(address: str) -> None:
    make(address)
    with (
        opened(address) as table,
        pytest.raises(StoreError, match=r"read-only|readonly"),
    ):
        table.database.write(lambda session: session.run("DELETE FROM outbox"))


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/none.db") as table, pytest.raises(StoreError, match="none"):
        table.top()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "key", "reason"),
    [
        ("nowhere", "id", "there is no table 'nowhere'"),
        ("outbox", "number", "has no column 'number', only ['id', 'name'"),
        ("outbox", "name", "key 'name' of table 'outbox' must be an integer column"),
        ('out"box', "id", "must not contain any of '\"?%\\x00', but 'out\"box' does"),
        ("out\0box", "id", "but 'out\\x00box'"),
        ("", "id", "the name of a table or column is a non-empty string"),
    ],
)
def test_an_unreadable_table_or_key_is_refused(
    address: str, table: str, key: str, reason: str
) -> None:
    make(address)
    with opened(address, table, key) as found, pytest.raises(StoreError) as error:
        found.columns()
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("sql", "good"),
    [
        ("CREATE TABLE outbox (id bigint NOT NULL UNIQUE)", True),
        ("CREATE TABLE outbox (id bigint UNIQUE)", False),
        ("CREATE TABLE outbox (id bigint NOT NULL)", False),
        ("CREATE TABLE outbox (id bigint, other bigint, PRIMARY KEY (id, other))", False),
        ("CREATE TABLE outbox (id text PRIMARY KEY)", False),
        ("CREATE TABLE outbox (id INTEGER PRIMARY KEY)", True),
    ],
)
def test_a_key_is_an_integer_unique_and_never_null(address: str, sql: str, good: bool) -> None:
    with opened(make(address, sql)) as table:
        if good:
            assert table.columns() == [("id", "long")]
            return
        with pytest.raises(StoreError, match="the primary key, or NOT NULL with a unique index"):
            table.columns()


def test_a_column_name_with_a_placeholder_is_refused(tmp_path: Path) -> None:
    address = make(
        str(tmp_path / "a.db"), 'CREATE TABLE outbox (id INTEGER PRIMARY KEY, "a?" TEXT)'
    )
    with opened(address) as table, pytest.raises(StoreError, match="but 'a\\?' does"):
        table.page(table.columns(), 0, 1, 1)


def test_an_sqlite_table_with_a_schema_is_refused(tmp_path: Path) -> None:
    address = make(str(tmp_path / "a.db"))
    with opened(address, "main.outbox") as table, pytest.raises(StoreError, match="have no schema"):
        table.columns()


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [("CACHE 20", "CACHE 20, INC"), ("INCREMENT -1", "INCREMENT -1"), ("CYCLE", "1, CYCLE")],
)
def test_a_sequence_that_is_out_of_order_is_refused(
    postgres_address: str, sequence: str, reason: str
) -> None:
    sql = f"CREATE TABLE outbox (id int GENERATED ALWAYS AS IDENTITY ({sequence}) PRIMARY KEY)"
    with opened(make(postgres_address, sql)) as table:
        with pytest.raises(StoreError, match="gives keys out of order") as error:
            table.columns()
        assert reason in str(error.value)


def test_the_search_path_of_another_application_stays(postgres_address: str) -> None:
    with psycopg.connect(postgres_address) as connection:
        path = connection.execute("SHOW search_path").fetchone()
    with opened(postgres_address) as table:
        assert table.database.read(lambda session: session.rows("SHOW search_path")) == [path]


def names(table: AppendOnlyTable, after: int, upto: int) -> str:
    columns = [column for column in table.columns() if column.name == "name"]
    return "".join(name for _, name in table.page(columns, after, upto, 1000))


def test_without_writers_the_horizon_is_the_largest_key(address: str) -> None:
    with opened(make(address)) as table:
        horizon = CommitHorizon(table)
        assert horizon.look(0) is None
        add(address, *"abc")
        assert horizon.look(0) == 3
        assert horizon.look(0) == 3


def test_a_smaller_key_that_is_committed_later_is_not_missed(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        horizon = CommitHorizon(table)
        add(postgres_address, "a")
        assert horizon.look(0) == 1
        insert(slow, "b")
        add(postgres_address, "c")
        assert (table.top(), names(table, 1, 3)) == (3, "c")
        assert horizon.look(0.2) == 1
        slow.commit()
        assert horizon.look(0) == 3
        assert names(table, 1, 3) == "bc"


def test_a_rolled_back_transaction_leaves_a_gap(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        horizon = CommitHorizon(table)
        insert(slow, "b")
        add(postgres_address, "c")
        assert horizon.look(0) is None
        slow.rollback()
        assert horizon.look(0) == 2
        assert names(table, 0, 2) == "c"


def test_a_long_transaction_holds_back_only_later_rows(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table:
        horizon = CommitHorizon(table)
        with closed(postgres_address) as short, closed(postgres_address) as long:
            insert(short, "a")
            add(postgres_address, "b")
            assert horizon.look(0) is None
            insert(long, "c")
            short.commit()
            assert horizon.look(0) == 2
            add(postgres_address, "d")
            assert horizon.look(0) == 2
            assert CommitHorizon(table).look(0) is None
            long.commit()
        assert horizon.look(0) == 4
        assert names(table, 0, 4) == "abcd"


def test_overlapping_short_transactions_do_not_stop_the_horizon(postgres_address: str) -> None:
    """A transaction is open at every moment, each of them only for a while."""
    with opened(make(postgres_address)) as table:
        horizon, seen = CommitHorizon(table), list[int]()
        opening = psycopg.connect(postgres_address)
        insert(opening, "a")
        for _ in range(10):
            later = psycopg.connect(postgres_address)
            insert(later, "b")
            opening.commit()
            opening.close()
            seen.append(horizon.look(0) or 0)
            opening = later
        opening.close()
    assert seen == sorted(seen)
    assert seen[-1] >= 8


def test_readers_and_other_tables_do_not_stop_the_horizon(postgres_address: str) -> None:
    add(make(postgres_address), "a")
    with closed(postgres_address) as other:
        other.execute("SELECT * FROM outbox FOR UPDATE")
        other.execute("CREATE TEMPORARY TABLE mine (n int)")
        other.execute("INSERT INTO mine VALUES (1)")
        with opened(postgres_address) as table:
            assert CommitHorizon(table).look(0) == 1


def test_inserts_into_a_partition_count_as_writers(postgres_address: str) -> None:
    make(
        postgres_address,
        "CREATE TABLE outbox (id bigserial PRIMARY KEY, name text) PARTITION BY RANGE (id)",
    )
    with closed(postgres_address) as slow:
        slow.execute("CREATE TABLE part PARTITION OF outbox FOR VALUES FROM (0) TO (100)")
        slow.commit()
        slow.execute("INSERT INTO part VALUES (nextval('outbox_id_seq'), 'b')")
        add(postgres_address, "c")
        with opened(postgres_address) as table:
            horizon = CommitHorizon(table)
            assert horizon.look(0) is None
            slow.commit()
            assert horizon.look(0) == 2


class FakeTable:
    """A table with one row, and the writers that it reports call by call."""

    def __init__(self, *writers: set[str]) -> None:
        self._writers = iter(writers)

    def top(self) -> int:
        return 1

    def writers(self) -> frozenset[str]:
        return frozenset(next(self._writers))


def test_a_prepared_transaction_has_not_ended() -> None:
    """PostgreSQL changes the name of a transaction when it is prepared."""
    before, after, other = {"3/4"}, {"prepared"}, {"5/6"}
    table: Any = FakeTable(before, after, after, after | other, other, other, other)
    horizon = CommitHorizon(table)
    assert [horizon.look(0) for _ in range(3)] == [None, None, 1]


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_read_once_in_any_order_of_commits(postgres_address: str, seed: int) -> None:
    """Rows are inserted, committed and rolled back in any order, and read in between."""
    make(postgres_address)
    chance, written, read = Random(seed), set[str](), list[str]()
    with opened(postgres_address) as table:
        horizon, after = CommitHorizon(table), 0
        writers = [psycopg.connect(postgres_address) for _ in range(4)]
        pending: list[list[str]] = [[] for _ in writers]
        for step in range(150):
            place = chance.randrange(len(writers))
            action = chance.choice(["insert", "insert", "commit", "undo", "read"])
            if action == "insert":
                insert(writers[place], f"{step},")
                pending[place].append(f"{step},")
            elif action == "read":
                upto = horizon.look(0) or 0
                read += names(table, after, upto).split(",")[:-1]
                after = max(after, upto)
            else:
                (writers[place].commit if action == "commit" else writers[place].rollback)()
                written |= set(pending[place]) if action == "commit" else set()
                pending[place] = []
        for writer in writers:
            writer.rollback()
            writer.close()
        read += names(table, after, horizon.look(5) or 0).split(",")[:-1]
    assert len(read) == len(set(read))
    assert {f"{name}," for name in read} == written
