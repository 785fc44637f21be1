"""Damaged and hostile SQLite files: the intact records, or a `StoreError` with the file."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz import cases
from tests.mutation import try_all

from tidings.errors import StoreError, TidingsError
from tidings.model.records import Delivery
from tidings.store import AppendOnlyTable, open_database, open_store

pytestmark = pytest.mark.fuzz


def filled(path: Path) -> Path:
    """Write a store with rows in every table."""
    with open_store(path) as store:
        store.catalogue.put(*({"id": f"p{n}", "policy": {"k": 2}} for n in range(5)))
        store.catalogue.put(
            *({"id": f"s{n}", "subscriber": "p1", "where": f"a = {n}"} for n in range(20))
        )
        store.catalogue.remove("subscription", "s3")
        delivery = Delivery("p1", "e1", 0.5, 1, {"name": "continuous"}, ("s1",), 1, 0)
        store.notifications.append("q", 0, [delivery])
        store.history.pin("q", 0)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


def read_all(path: Path) -> Iterator[object]:
    """Read everything that a store has, and write to it."""
    with open_store(path, patience_s=0) as store:
        yield from store.history.as_of()
        yield from store.history.changes(0)
        yield from store.catalogue.page("subscription", "p1")
        yield store.catalogue.get("subscriber", "p1")
        yield from store.notifications.newest("p1")
        yield store.notifications.inbox("p1")
        yield from store.letters.page("dead")
        yield store.history.store_id()
        yield store.catalogue.put({"id": "new"})
        for entry in store.history.as_of():
            try:
                yield entry.record
            except TidingsError as error:
                yield error


def test_a_damaged_file_gives_records_or_our_own_errors(tmp_path: Path) -> None:
    sample = filled(tmp_path / "base.db").read_bytes()
    try_all(tmp_path, {"store.db": sample}, read_all, cases(300), named=False)


def test_a_damaged_foreign_table_gives_rows_or_our_own_errors(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        connection.executemany(
            "INSERT INTO outbox VALUES (?, ?, ?)", [(n, "ü", 1.5) for n in range(50)]
        )
    connection.close()

    def read(file: Path) -> Iterator[object]:
        database = open_database(file, patience_s=0)
        table = AppendOnlyTable(database, "outbox", "id")
        try:
            yield from table.page(table.columns(), 0, table.top() or 0, 100)
        finally:
            database.close()

    try_all(tmp_path, {"shop.db": path.read_bytes()}, read, cases(200), named=False)


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0", b"\0" * 5000, b"[]"])
def test_a_file_that_is_not_a_database_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.db: "):
        open_store(path)


def spoil(path: Path, *statements: str) -> None:
    """Change a store behind its back."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE records"],
        ["DROP TABLE catalogue"],
        ["DELETE FROM catalogue"],
        ["DELETE FROM migrations"],
        ["DELETE FROM store"],
        ["DROP TABLE catalogue", "CREATE TABLE catalogue (one, version, compacted)"],
        [
            "DROP TABLE catalogue",
            "CREATE TABLE catalogue (one, version, compacted)",
            "INSERT INTO catalogue VALUES (1, 'many', x'00ff')",
        ],
        ["DROP TABLE catalogue", "CREATE VIEW catalogue AS SELECT 1 AS one, 'x' AS version"],
        ["DROP TABLE migrations", "CREATE VIEW migrations AS SELECT 'x' AS number, 1 AS name"],
    ],
)
def test_a_store_with_another_schema_is_refused_by_name(
    tmp_path: Path, statements: list[str]
) -> None:
    path = filled(tmp_path / "store.db")
    spoil(path, *statements)
    with pytest.raises(StoreError, match=r"store\.db"):
        list(read_all(path))


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (f"CREATE TRIGGER t AFTER INSERT ON records BEGIN {ENDLESS}; END", "trigger"),
        ("CREATE TRIGGER t BEFORE INSERT ON letters BEGIN SELECT RAISE(IGNORE); END", "trigger"),
        (f"CREATE VIEW deliveries AS {ENDLESS}", "view"),
        (f"CREATE VIEW migrations AS SELECT x AS number FROM ({ENDLESS})", "view"),
        (
            "ALTER TABLE records ADD COLUMN more TEXT AS (hex(zeroblob(99999999)))",
            "generated column",
        ),
    ],
)
def test_code_in_a_file_is_refused_before_it_runs(
    tmp_path: Path, statement: str, kind: str
) -> None:
    path = filled(tmp_path / "store.db")
    name = statement.split()[2]
    spoil(path, *([f"DROP TABLE {name}"] if kind == "view" else []), statement)
    with pytest.raises(StoreError, match=rf"store\.db.* it has a {kind}, "):
        open_store(path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX i ON records (length(hex(zeroblob(100000000))))",
        "CREATE INDEX i ON records (id) WHERE id LIKE '%a%a%a%a%a%a%b'",
        "CREATE INDEX i ON letters (record || record || record)",
        'CREATE INDEX i ON records ("hex"(form))',
        "CREATE INDEX i ON records (hex/* in */(form))",
        "ALTER TABLE deliveries ADD COLUMN more TEXT CHECK (printf('%.*c', 99999999, more) != '')",
    ],
)
def test_expressions_in_a_file_are_refused_before_they_run(tmp_path: Path, statement: str) -> None:
    path = filled(tmp_path / "store.db")
    spoil(path, statement)
    with pytest.raises(StoreError, match=r"store\.db.* has an expression of its own, which no"):
        open_store(path)


def test_a_plain_index_of_an_operator_is_kept(tmp_path: Path) -> None:
    path = filled(tmp_path / "store.db")
    spoil(path, 'CREATE INDEX "mine, too" ON records (form, "id") WHERE until > 3')
    with open_store(path) as store:
        assert len(list(store.history.as_of())) == 24


def test_code_in_tables_of_other_programs_is_theirs(tmp_path: Path) -> None:
    path = filled(tmp_path / "store.db")
    spoil(
        path,
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT, size AS (length(name)))",
        "CREATE VIEW names AS SELECT name FROM shop",
        "CREATE INDEX sizes ON shop (length(name)) WHERE name LIKE 'a%'",
        "CREATE TRIGGER renamed AFTER UPDATE ON shop BEGIN SELECT 1; END",
    )
    with open_store(path) as store:
        assert len(list(store.history.as_of())) == 24


@pytest.mark.parametrize("form", ["{", "[1]", "7", '{"id": "s1", "id": "s1"}', "[" * 9_999, "\0"])
def test_a_damaged_record_does_not_hide_the_others(tmp_path: Path, form: str) -> None:
    path = filled(tmp_path / "store.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET form = ? WHERE id = 's1'", (form,))
    connection.close()
    with open_store(path) as store:
        entries = {entry.id: entry for entry in store.history.as_of()}
        assert len(entries) == 24
        with pytest.raises(TidingsError, match="subscription s1: its form in the store is not"):
            _ = entries["s1"].record
        assert all(each.record for name, each in entries.items() if name != "s1")


def test_a_damaged_delivery_does_not_hide_the_others(tmp_path: Path) -> None:
    path = filled(tmp_path / "store.db")
    with open_store(path) as store:
        another = Delivery("p1", "e2", 0.5, 1, {"name": "continuous"}, ("s1",), 1, 0)
        store.notifications.append("q", 1, [another])
        spoil(path, "UPDATE deliveries SET won_in = '{' WHERE event = 'e1'")
        assert [notification.event for notification in store.notifications.newest("p1")] == ["e2"]


@pytest.mark.parametrize("name", ['a"; DROP TABLE outbox; --', "a;b", "a'b", "ü\0", "?", "a%s", ""])
def test_a_name_never_becomes_sql(tmp_path: Path, name: str) -> None:
    path = filled(tmp_path / "store.db")
    database = open_database(path)
    for table, key in ((name, "id"), ("records", name)):
        with pytest.raises(StoreError):
            AppendOnlyTable(database, table, key).columns()
    database.close()
    with open_store(path) as store:
        for kind in ("subscriber", "subscription"):
            assert store.catalogue.get(kind, name) is None
        assert store.notifications.newest(name) == []
        assert len(list(store.history.as_of())) == 24
