"""Stores in PostgreSQL: servers that stop and restart, lost replies, addresses."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from tests.store.appender import batch_of, delivery
from tests.store.people import USERS, delivered, undisturbed
from tests.store.server import crash, start

from tidings import DeadLetter
from tidings.errors import StoreError
from tidings.store import AppendResult, Store, open_store

MOST_BATCHES = 400


@pytest.fixture
def server(postgres: Any, postgres_address: str) -> Iterator[Any]:
    """Yield a server that a test may stop; it is restarted afterwards."""
    assert postgres_address == postgres.get_uri()
    yield postgres
    start(postgres)


@pytest.fixture
def store(server: Any) -> Iterator[Store]:
    with open_store(server.get_uri()) as opened:
        yield opened


def append_many(
    store: Store, enough: threading.Event, written: list[int], failed: list[BaseException]
) -> None:
    """Write batches until there are enough; a busy machine must not end before the restarts."""
    try:
        for number in range(MOST_BATCHES):
            if enough.is_set():
                break
            letter = DeadLetter(number, "no good")
            store.notifications.append("q", number, batch_of(number), dead=[letter])
            store.catalogue.put({"id": f"u{number}"})
            written.append(number)
    except BaseException as error:  # noqa: BLE001  # the test that waits for the thread shows it
        failed.append(error)


@pytest.mark.parametrize("stop", [lambda server: server.stop(), crash], ids=["stop", "crash"])
def test_every_batch_is_written_once_across_restarts_of_the_server(
    server: Any, store: Store, stop: Callable[[Any], None]
) -> None:
    enough, written, failed = threading.Event(), list[int](), list[BaseException]()
    writer = threading.Thread(target=append_many, args=(store, enough, written, failed))
    writer.start()
    for pause in (0.2, 0.3):
        time.sleep(pause)
        stop(server)
        start(server)
    enough.set()
    writer.join(120)
    assert not failed
    assert written
    assert store.notifications.last_batch("q") == written[-1]
    assert {name: delivered(store, name) for name in USERS} == undisturbed(len(written))
    assert [letter.record for letter in store.letters.page("dead", limit=500)] == written
    assert [entry.id for entry in store.history.changes(0)] == [f"u{number}" for number in written]


def test_a_server_that_stays_unreachable_is_reported(
    server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(server.get_uri(), patience_s=0.3) as store:
        store.notifications.append("q", 0, [delivery("a", "e1")])
        server.stop()
        for work in (
            lambda: store.notifications.append("q", 1, [delivery("a", "e2")]),
            lambda: open_store(server.get_uri(), patience_s=0.3),
        ):
            with pytest.raises(
                StoreError, match=r"PostgreSQL has not answered for 0\.3 s; check that"
            ):
                work()
        # Other tests may have lowered the level of all loggers, such as that of the server.
        ours = [record for record in caplog.records if record.name.startswith("tidings")]
        messages = [record.getMessage() for record in ours]
        assert len(messages) == 2
        assert all("waiting up to 0 s for PostgreSQL: " in message for message in messages)
        start(server)
        assert store.notifications.append("q", 1, [delivery("a", "e2")]) == AppendResult(
            delivered=1
        )
        assert delivered(store, "a") == [(1, "e1"), (2, "e2")]


@pytest.fixture
def lose_next_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function after which the next COMMIT succeeds and its reply is lost."""

    def arm() -> list[str]:
        execute = psycopg.Connection.execute
        lost: list[str] = []

        def losing(connection: Any, query: Any, *rest: Any, **more: Any) -> Any:
            done = execute(connection, query, *rest, **more)
            if query == "COMMIT" and not lost:
                lost.append(query)
                connection.close()
                raise psycopg.OperationalError("the connection was lost")
            return done

        monkeypatch.setattr(psycopg.Connection, "execute", losing)
        return lost

    return arm


def test_a_commit_whose_reply_is_lost_writes_once(
    store: Store, lose_next_commit: Callable[[], list[str]]
) -> None:
    lost = lose_next_commit()
    batch = [delivery("a", "e1"), delivery("a", "e2")]
    result = store.notifications.append("q", 0, batch, dead=[DeadLetter(n, "x") for n in range(4)])
    assert lost
    assert result == AppendResult(delivered=2, dead=4, skipped=True)
    assert delivered(store, "a") == [(1, "e1"), (2, "e2")]
    lost = lose_next_commit()
    assert store.catalogue.put({"id": "a"}, {"id": "b"}) == 2
    assert lost
    assert len(store.history.changes(0)) == 2


def test_letters_taken_by_a_commit_whose_reply_is_lost_are_returned(
    store: Store, lose_next_commit: Callable[[], list[str]]
) -> None:
    store.notifications.append("q", 0, dead=[DeadLetter(n, "x") for n in range(4)])
    lost = lose_next_commit()
    taken = store.letters.take("dead", at=0, limit=2)
    assert lost
    assert [letter.record for letter in taken] == [0, 1]
    assert store.letters.count("dead") == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("/postgres?", "/nowhere?"), 'database "nowhere" does not exist'),
        (("//postgres:", "//nobody:"), 'role "***" does not exist'),
    ],
)
def test_a_permanent_error_is_reported_at_once(
    server: Any, change: tuple[str, str], says: str
) -> None:
    address = server.get_uri().replace(*change)
    assert address != server.get_uri()
    with pytest.raises(StoreError, match="PostgreSQL refuses") as refused:
        open_store(address, patience_s=60)
    assert says in str(refused.value)


def test_an_invalid_address_is_refused() -> None:
    with pytest.raises(StoreError, match="the address of a store cannot be read"):
        open_store("postgresql://host/db?colour=red")


def test_errors_do_not_show_passwords() -> None:
    address = "postgresql://addison:secret@127.0.0.1:1/db"
    with pytest.raises(StoreError, match=r"^postgresql://127\.0\.0\.1/db: ") as refused:
        open_store(address, patience_s=0)
    assert "secret" not in str(refused.value)


def test_a_missing_psycopg_is_reported_with_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "tidings.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'tidings\[postgres\]'"):
        open_store("postgresql://localhost/db")


def test_the_tables_are_in_the_schema_tidings(server: Any, store: Store) -> None:
    with psycopg.connect(server.get_uri()) as connection:
        schemas = connection.execute(
            "SELECT DISTINCT table_schema FROM information_schema.tables "
            "WHERE table_name IN ('records', 'deliveries', 'migrations')"
        ).fetchall()
    assert schemas == [("tidings",)]
    options = server.get_uri() + "&options=-cstatement_timeout%3D12345"
    with open_store(options) as other:
        assert other.catalogue.put({"id": "a"}) == store.catalogue.version()
        timeout = other.database.read(lambda session: session.rows("SHOW statement_timeout"))
        assert timeout == [("12345ms",)]


def test_text_with_any_characters_reads_back(store: Store) -> None:
    odd = ["\0", "\x1a", "\x1a0", "\x1a1\0", "\\N", "\t\n", "?%s", "'", "\U0001f600"]
    store.notifications.append("q", 0, [delivery("a", event) for event in odd])
    assert [event for _, event in delivered(store, "a")] == odd
    assert store.notifications.append("q", 1, [delivery("a", each) for each in odd]).repeated == 9
