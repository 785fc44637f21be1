"""Stores in SQLite: the write-ahead log, locks, and disks that are full or read-only."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.appender import batch_of, delivery
from tests.store.people import delivered

from tidings.errors import StoreError
from tidings.store import AppendResult, Store, open_store
from tidings.store.sqlite import SqliteDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tidings.db"


def pragma(store: Store, name: str) -> object:
    return store.database.read(lambda session: session.rows(f"PRAGMA {name}"))[0][0]


def test_the_file_has_a_write_ahead_log_and_strict_tables(path: Path) -> None:
    with open_store(path) as store:
        assert pragma(store, "journal_mode") == "wal"
        assert pragma(store, "foreign_keys") == 1
        assert pragma(store, "synchronous") == 2
        tables = store.database.read(
            lambda s: s.rows(
                "SELECT name, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite%'"
            )
        )
    assert len(tables) == 25
    assert all(strict for _, strict in tables)


def test_a_reader_does_not_wait_for_a_writer(path: Path) -> None:
    with open_store(path, patience_s=0.1) as store:
        store.catalogue.put({"id": "a"})
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE catalogue SET version = 99")
            assert store.catalogue.version() == 1
            other.execute("ROLLBACK")
        other.close()


def test_a_writer_waits_only_for_its_patience(path: Path) -> None:
    with open_store(path, patience_s=0.1) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process has been writing for too long"):
            store.catalogue.put({"id": "a"})
        other.execute("ROLLBACK")
        other.close()
        assert store.catalogue.put({"id": "a"}) == 1


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(path) as store:
        store.notifications.append("q", 0, batch_of(0))
    connect = SqliteDatabase._connect

    def small(database: SqliteDatabase) -> sqlite3.Connection:
        connection = connect(database)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(SqliteDatabase, "_connect", small)
        with (
            open_store(path) as store,
            pytest.raises(StoreError, match=r"tidings.db: the disk is full; free some space"),
        ):
            store.notifications.append("q", 1, batch_of(1, 5000))
    with open_store(path) as store:
        assert store.notifications.last_batch("q") == 0
        assert len(delivered(store, "u0")) == 7
        assert store.notifications.append("q", 1, batch_of(1)).delivered == 10


def test_a_disk_error_is_reported(path: Path) -> None:
    with open_store(path) as store:
        store.catalogue.put({"id": "a"})
    script = (
        "import resource, signal, sys\n"
        "from tidings.store import open_store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "    store.catalogue.load({'id': f'u{n:05d}'} for n in range(9_000))\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert "StoreError" in child.stderr
    assert "the disk cannot be read or written" in child.stderr
    with open_store(path) as store:
        assert [entry.id for entry in store.history.as_of()] == ["a"]


def test_a_read_only_store_can_be_read(path: Path) -> None:
    with open_store(path) as store:
        store.notifications.append("q", 0, [delivery("a", "e1")])
    with open_store(f"sqlite:///{path}?mode=ro") as store:
        assert delivered(store, "a") == [(1, "e1")]
        with pytest.raises(StoreError, match=r"tidings.db: it is read-only; make the file"):
            store.notifications.append("q", 1, [delivery("a", "e2")])


def test_a_read_only_address_creates_no_file(path: Path) -> None:
    with pytest.raises(StoreError, match="its folder must exist"):
        open_store(f"sqlite:///{path}?mode=ro")
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("missing/tidings.db", "its folder must exist and be writable"), ("", "cannot be opened")],
)
def test_a_path_that_cannot_be_opened_is_reported(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        open_store(tmp_path / name)


def test_a_store_is_no_pipe(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreError, match=r"\.db: this is a pipe or a device, which may never end"):
        open_store(path)


def test_a_file_of_another_kind_is_refused_and_not_changed(path: Path) -> None:
    path.write_text("these are notes, not a database\n" * 100)
    with pytest.raises(StoreError, match="this file is not an SQLite database"):
        open_store(path)
    assert path.read_text().startswith("these are notes")


def test_a_damaged_file_is_reported(path: Path) -> None:
    with open_store(path) as store:
        store.catalogue.load({"id": f"u{n}"} for n in range(2000))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match="the file is damaged"), open_store(path) as store:
        list(store.history.as_of())


def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreError, match=r"stores need SQLite 3\.37\.0 or newer"):
        open_store(path)


def test_a_name_with_odd_characters_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%20.db"
    with open_store(path) as store:
        assert store.notifications.append("q", 0) == AppendResult()
    assert path.exists()
    with open_store(str(path)) as store:
        assert store.notifications.last_batch("q") == 0


def test_a_copy_is_a_store_of_one_moment(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with open_store(tmp_path / "t.db") as store:
        store.catalogue.put({"id": "ada"})
        store.database.back_up(copy)
        store.catalogue.put({"id": "bob"})
        with pytest.raises(StoreError, match="already exists"):
            store.database.back_up(copy)
    with open_store(copy) as copied:
        assert [entry.id for entry in copied.catalogue.page("subscriber")] == ["ada"]
