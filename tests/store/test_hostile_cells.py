"""Stores with changed cells: every reader answers, or raises a `StoreError`.

Tables lose their strictness in half of the cases, so that a cell may hold any type. Most cases run
only the readers whose statements name a changed table; the others read what they always read.
"""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.damage import hostile_json, run_cases
from tests.fuzz import cases
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.channels.address_book import EntryDraft, entry_state, put_entry
from tidings.channels.person_channel import PersonChannel
from tidings.channels.webhook_target import TargetRules
from tidings.errors import TidingsError
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event
from tidings.store import Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.channels import ALL, ChannelDraft, FailedDelivery
from tidings.store.dead_letters import KINDS
from tidings.store.digests import SENT, FixedDigest
from tidings.store.engine_log import Checkpoint, EngineStep, IndexVersion
from tidings.store.feed_addresses import FeedOwner
from tidings.store.figures import read_figures
from tidings.store.publications import NewPublication
from tidings.store.spool import Spool, SpoolEntry
from tidings.store.sqlite import SqliteSession

pytestmark = pytest.mark.fuzz

CELLS: list[Any] = [
    None, 0, 1, -1, 7, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, 1e300, float("inf"), "", "x", "p1",
    "-1", "{", "{}", "[]", "[1]", "7", "null", '"x"', '{"a": 1}', '["a", null, {}]', "1e999",
    '{"url": 7, "secret": [], "old_secret": {}, "old_until_us": "x"}', "9" * 5_000, "[" * 9_999,
    "NaN", "é" * 300, "\0", b"", b"\xff\0", b"[1]", b"x" * 2_000,
]  # fmt: skip
FORMS = [
    ("channels", "settings"),
    ("digests", "sequences"),
    ("deliveries", "won_in"),
    ("deliveries", "matched"),
    ("records", "form"),
    ("letters", "record"),
    ("publications", "form"),
    ("checkpoints", "state"),
    ("tidings_spool", "message"),
    ("tidings_spool_sources", "state"),
]
NOW = 10**15
_LOOSEN = """
    UPDATE sqlite_schema SET sql = replace(replace(replace(
        sql, 'STRICT', ''), ' TEXT NOT NULL', ''), ' INTEGER NOT NULL', '')
    WHERE type = 'table'
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with rows in every table."""
    path = tmp_path_factory.mktemp("cells") / "base.db"
    with open_store(path) as store:
        store.catalogue.put(*({"id": f"p{n}", "policy": {"k": 2}} for n in range(3)))
        store.catalogue.put(*({"id": f"s{n}", "subscriber": "p1", "where": "a=1"} for n in "ab"))
        store.catalogue.remove("subscription", "sa")
        given = [delivery("p1", "e1"), delivery("p1", "e2"), delivery("p2", "e1")]
        letters = [BadRecord({"id": "x"}, "it is no event", 3)]
        store.notifications.append("q", 0, given, dead=letters, late=[Event("l", {"a": 1}, 0)])
        store.notifications.prune(1, "1s")
        store.notifications.append("q", 1, [delivery("p1", "e3")])
        store.history.pin("q", 0)
        store.publications.accept([NewPublication(Event(f"n{n}", {"a": n}, n)) for n in (1, 2)], 5)
        for number in (1, 2):
            step = EngineStep(number, number, store.history.newest(), 1)
            store.log.append(step, BatchAppend.of("local", number, (), late=(), dead=()))
        store.log.save(Checkpoint(step, "{}"))
        store.publications.accept([NewPublication(Event("n3", {"a": 1}, 3))], 7)
        store.log.note_index(IndexVersion(1, 2, 1, 0, 5))
        store.tokens.create("subscriber", 1, subscriber="p1", label="phone", expires_us=NOW * 2)
        queue = store.channels.put(ChannelDraft("sqs", "q", None, {"queue": "x"}, ALL), 0)
        person = PersonChannel.load({"kind": "mail", "address": "a@b.c"}, TargetRules((), ()))
        mail = put_entry(store, EntryDraft("p1", "m", person, verified=True, start=ALL), 0)
        store.webhooks.put("p1", "hook", "https://example.org", 0)
        fail(store, queue.key, FailedDelivery(1, 2, 5, "no"))
        store.digests.fix(FixedDigest(mail.key, 1, 2, 2, (1, 2), "d1", 1, SENT))
        store.marks.add("p1", [1], "read", "mail", 5)
        store.address_codes.make(mail.key, "a@b.c", NOW)
        store.feed_addresses.change(FeedOwner("default", "p1"), 3)
    with closing(Spool.open(path, "rss")) as spool:
        spool.append([SpoolEntry("n", "m", '{"key": null, "value": "x"}', True)], 5, "{}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


Readers = dict[str, Callable[[], Any]]


def readers(store: Store) -> Readers:
    """Return what reads a store, by name; each uses what it has read."""
    catalogue, history, log = store.catalogue, store.history, store.log
    notifications, channels, outbox = store.notifications, store.channels, store.outbox
    steps = (EngineStep(), EngineStep(1, 1, 1, 1))
    return {
        "as_of": lambda: [each.form for each in history.as_of()],
        "changes": lambda: history.changes(0),
        "owned": lambda: [*history.owned(["p1"], history.newest())],
        "touched": lambda: history.touched(0, 99),
        "store id": history.store_id,
        "page": lambda: catalogue.page("subscription", "p1"),
        "get": lambda: catalogue.get("subscriber", "p1"),
        "find": lambda: catalogue.find("subscriber", ["p1", "p2"]),
        "count": lambda: catalogue.count("subscriber"),
        "newest": lambda: [each.to_dict() for each in notifications.newest("p1")],
        "after each": lambda: notifications.after_each({"p1": 0, "p2": 0}),
        "written": lambda: notifications.of_batches("q", 0, 9, 9) and notifications.written(),
        "inbox": lambda: notifications.inbox("p1").unread,
        "mark read": lambda: notifications.mark_read("p1", 1).unread,
        "append": lambda: notifications.append("q", 2, [delivery("p1", "e9")]),
        "prune": lambda: notifications.prune(10, "1s"),
        "letters": lambda: [each.to_dict() for kind in KINDS for each in store.letters.page(kind)],
        "again": lambda: store.letters.publish_again([1, 2], NOW),
        "take": lambda: [each.to_dict() for each in store.letters.take("dead", 5)],
        "publications": lambda: store.publications.after(0),
        "accept": lambda: store.publications.accept([NewPublication(Event("m", {}, 1))], 9),
        "numbers": lambda: sorted(store.publications.numbers(["n1", "n2"])),
        "last step": lambda: log.last().upto + 1,
        "steps": lambda: [each.number + each.upto for each in log.after(0)],
        "pending": lambda: [log.pending(step, 9).version + 1 for step in steps],
        "checkpoint": lambda: (found := log.checkpoint()) and found.step.upto + len(found.state),
        "tick": lambda: log.tick(NOW) and log.tick_us(1),
        "index versions": lambda: [each.built_us + each.source for each in log.index_versions()],
        "tokens": lambda: [each.to_dict() for each in store.tokens.listed()],
        "token": lambda: store.tokens.find(store.tokens.create("admin", 1), NOW),
        "tenants": lambda: sorted(store.tokens.tenants()),
        "channels": lambda: [channels.describe(each) for each in channels.find()],
        "states": lambda: [(each.state, each.paused_us) for each in channels.queues()],
        "summary": channels.summary,
        "failures": lambda: [
            each.to_dict() for one in channels.find() for each in channels.failures(one.key)
        ],
        "settings": lambda: [
            channels.change_settings(one.key, {"a": 1}) for one in channels.find()
        ],
        "due": lambda: [
            outbox.page(one, NOW, 9)
            for one in outbox.due(["sqs", "mail", "webhook"], NOW)
            if outbox.lease(one.key, "me", NOW, NOW + 1)
        ],
        "skip": lambda: [outbox.skip(one.key) for one in channels.find()],
        "webhooks": lambda: [each.secrets(NOW) for each in store.webhooks.of("p1")],
        "change secret": lambda: [
            store.webhooks.change_secret(each.key, NOW) for each in store.webhooks.of("p1")
        ],
        "digests": lambda: [
            found.covers(found.last)
            for one in channels.find()
            for found in (store.digests.last(one.key), store.digests.covering(one.key, 1))
            if found is not None
        ],
        "bounce": lambda: bounce(store),
        "addresses": lambda: [entry_state(store, one) for one in channels.find(kind="mail")],
        "marks": lambda: [each.to_dict() for each in store.marks.of("p1")],
        "codes": lambda: [
            store.address_codes.check(one.key, "X" * 10, NOW) for one in channels.find()
        ],
        "figures": lambda: [
            (figures.waiting, figures.lag_s(NOW)) for figures in [read_figures(store.database)]
        ],
    }


def bounce(store: Store) -> None:
    found = store.digests.find("d1")
    if found is not None:
        store.digests.note_bounce(found, "550")


def hostile_cell(rng: Random, known: Any) -> Any:
    """Change a form within, or return any cell."""
    if isinstance(known, str) and known[:1] in ("{", "[") and rng.random() < 0.7:
        with suppress(RecursionError):  # a form may nest deeper than it can be written
            return json.dumps(hostile_json(rng, json.loads(known)))
    return rng.choice(CELLS)


def tables_of_readers(path: Path) -> dict[str, set[str]]:
    """Return the tables that the statements of each reader name, as it reads an intact store."""
    names = dict[str, set[str]]()
    with pytest.MonkeyPatch.context() as patch, open_store(path) as store:
        seen = set[str]()
        for method in (SqliteSession.rows, SqliteSession.run):
            patch.setattr(SqliteSession, method.__name__, _noting(method, seen))
        for name, read in readers(store).items():
            seen.clear()
            read()
            names[name] = set(seen)
    return names


def _noting(method: Callable[..., Any], seen: set[str]) -> Callable[..., Any]:
    """Return a method that also notes the words of its statements."""

    def noting(session: SqliteSession, sql: str, *values: Any) -> Any:
        seen.update(re.findall(r"\w+", sql))
        return method(session, sql, *values)

    return noting


def spoil(rng: Random, path: Path) -> set[str]:
    """Change some cells, of any type where tables have lost their strictness.

    Return the names of the changed tables.
    """
    changed = set[str]()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if rng.random() < 0.5:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(_LOOSEN)
            connection.execute("PRAGMA writable_schema = RESET")
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        for _ in range(rng.choice([1, 1, 2])):
            table, column = rng.choice(FORMS)
            if rng.random() < 0.7:
                [table] = rng.choice(tables)
                columns = connection.execute("SELECT name FROM pragma_table_info(?)", [table])
                [column] = rng.choice(columns.fetchall())
            changed.add(table)
            where = rng.choice(["", "", " WHERE rowid = 1"])
            [known] = connection.execute(f"SELECT max({column}) FROM {table}").fetchone()
            with suppress(sqlite3.Error):
                change = f"UPDATE OR IGNORE {table} SET {column} = ?{where}"
                connection.execute(change, [hostile_cell(rng, known)])
    return changed


def test_hostile_cells(sample: Path, tmp_path: Path) -> None:
    path, base = tmp_path / "store.db", sample.read_bytes()
    path.write_bytes(base)
    tables = tables_of_readers(path)

    def case(rng: Random) -> None:
        for left in tmp_path.glob("store.db*"):
            left.unlink()
        path.write_bytes(base)
        spoiled, every_reader = spoil(rng, path), rng.random() < 0.1
        refusal = None
        with open_store(path, patience_s=0) as store:
            named = list(readers(store).items())
            for name, read in rng.sample(named, len(named)):
                if not every_reader and spoiled.isdisjoint(tables[name]):
                    continue
                try:
                    read()
                except TidingsError as error:
                    refusal = error
                except Exception as error:
                    raise AssertionError(f"{name}: {error!r}") from error
        if refusal is not None:
            raise refusal

    run_cases("cells", case, cases(100))
