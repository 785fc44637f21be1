"""Tables of other applications in SQLite: the kinds of their columns, and good keys.

What PostgreSQL answers is judged in test_append_only_table.py.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import StoreError
from tidings.store import open_database
from tidings.store.dialect import (
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
