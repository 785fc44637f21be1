"""Migrations: old schemas are upgraded atomically, newer ones refused."""

import hashlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.store.appender import delivery
from tests.store.people import delivered

from tidings.errors import StoreError
from tidings.store import Inbox, Store, open_store
from tidings.store.migrate import Migration, migrate, migrations, read_migration

FOLDER = resources.files("tidings.store") / "migrations"
ROWS = Path(__file__).with_name("version1.sql")
DIALECTS = ["sqlite", "postgres"]
FIRST = {
    "sqlite": "51e6430e183b67e00fa052d84113300d5a8e44bcb9a26ed257d2575bde2b5681",
    "postgres": "aac6c6e628ed2a39ac2b0a717e5c18ced1a6d419f13bc8996c77951e30c4b1e1",
}


def dialect_of(address: str) -> str:
    return "postgres" if address.startswith("postgresql:") else "sqlite"


def first(dialect: str) -> str:
    """Return the first version of the schema as it was released."""
    return (FOLDER / dialect / "0001_first.sql").read_text(encoding="utf-8")


def run_raw(address: str, script: str) -> None:
    """Run SQL without our own code."""
    if dialect_of(address) == "sqlite":
        connection = sqlite3.connect(address)
        connection.executescript(script)
        connection.close()
    else:
        with psycopg.connect(address, options="-c search_path=tidings") as postgres:
            postgres.execute(script.encode())


@pytest.fixture
def old(address: str) -> str:
    """Return the address of a store with the first version of the schema."""
    run_raw(address, first(dialect_of(address)))
    run_raw(address, ROWS.read_text(encoding="utf-8"))
    return address


def applied(store: Store) -> list[Any]:
    return store.database.read(lambda s: s.rows("SELECT number, name FROM migrations ORDER BY 1"))


def test_an_old_store_is_upgraded_with_its_content(old: str) -> None:
    with open_store(old) as store:
        steps = migrations(dialect_of(old))
        assert applied(store) == [(step.number, step.name) for step in steps]
        now = {entry.id: entry.form for entry in store.history.as_of()}
        assert now["s1"] == {"id": "s1", "subscriber": "addison", "where": "genre = 'comedy'"}
        assert set(now) == {"addison", "s1"}
        assert {entry.id for entry in store.history.as_of(4)} == {"addison", "s1", "s2"}
        assert delivered(store, "addison") == [(1, "e1"), (2, "e2")]
        assert store.notifications.inbox("addison") == Inbox(last=2, read=0)
        assert store.letters.page("late")[0].record == {"id": "e3"}


def test_an_old_store_gets_a_permanent_id(old: str) -> None:
    with open_store(old) as store:
        drawn = store.history.store_id()
    with open_store(old) as again:
        assert again.history.store_id() == drawn
        assert len(drawn) == 32


def test_an_upgraded_store_continues(old: str) -> None:
    with open_store(old) as store:
        assert store.notifications.append("q", 0, [delivery("addison", "e9")]).skipped
        batch = [delivery("addison", event) for event in ("e0", "e2", "e4")]
        assert store.notifications.append("q", 1, batch).repeated == 2
        assert delivered(store, "addison")[2:] == [(3, "e4")]
        assert store.notifications.mark_read("addison", 3) == Inbox(last=3, read=3)
        assert store.catalogue.put({"id": "bob"}) == 6
        assert store.history.pin("q", 2) == 6


def test_a_newer_store_is_refused_and_not_changed(address: str) -> None:
    open_store(address).close()
    run_raw(address, "INSERT INTO migrations VALUES (99, 'from_the_future')")
    for _ in range(2):
        with pytest.raises(StoreError) as refused:
            open_store(address)
        newest = migrations(dialect_of(address))[-1].number
        assert f"has schema 99, but this version of Tidings supports only up to {newest}" in str(
            refused.value
        )
        assert "install the newer version that wrote it, or open another store" in str(
            refused.value
        )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_released_migration_never_changes(dialect: str) -> None:
    assert hashlib.sha256(first(dialect).encode()).hexdigest() == FIRST[dialect]


def test_a_migration_is_split_into_statements() -> None:
    text = "-- what; for\nCREATE TABLE a (\n    x TEXT\n);\nINSERT INTO a VALUES (';');\n"
    step = read_migration("0007_some_name.sql", text)
    statements = ("CREATE TABLE a (\n    x TEXT\n)", "INSERT INTO a VALUES (';')")
    assert step == Migration(7, "some_name", statements)


def test_migrations_are_numbered_from_1_and_the_same_in_all_databases() -> None:
    steps = {dialect: migrations(dialect) for dialect in DIALECTS}
    assert [step.number for step in steps["sqlite"]] == list(range(1, len(steps["sqlite"]) + 1))
    assert [s.name for s in steps["sqlite"]] == [s.name for s in steps["postgres"]]


def test_a_failed_migration_is_rolled_back(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [
        *migrations(dialect_of(old)),
        Migration(99, "broken", ("CREATE TABLE extra (x TEXT)", "INSERT INTO nowhere VALUES (1)")),
    ]
    with monkeypatch.context() as patch:
        patch.setattr("tidings.store.migrate.migrations", lambda _: broken)
        with pytest.raises(StoreError, match="nowhere"):
            open_store(old)
    run_raw(old, "INSERT INTO inboxes (subscriber, last) VALUES ('bob', 1)")
    with open_store(old) as store:
        assert applied(store) == [(step.number, step.name) for step in broken[:-1]]
        assert not store.database.read(lambda session: session.has_table("extra"))
        assert store.notifications.inbox("bob") == Inbox(last=1, read=0)


def test_a_new_store_may_be_opened_concurrently(address: str) -> None:
    def opened(_: int) -> list[Any]:
        with open_store(address) as store:
            return applied(store)

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(opened, range(4)))
    assert all(number == numbers[0] for number in numbers)


def test_a_second_migration_changes_nothing(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put({"id": "a"})
        before = applied(store)
        migrate(store.database)
        assert applied(store) == before
        assert store.catalogue.version() == 1
