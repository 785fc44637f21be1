"""Late events and dead letters: kept with the reason, and taken to be published again."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import uuid4

from tidings.errors import InvalidForm, StoreError, TidingsError, described, shown
from tidings.formats.json_forms import loads_event
from tidings.formats.json_text import read_json
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, DeadLetter, printable_record
from tidings.model.records import Event
from tidings.model.values import format_time, parse_time_us
from tidings.store.protocol import (
    Database,
    Row,
    Session,
    StagingTable,
    check_count,
    check_id,
    check_iterable,
    read_row,
    read_rows,
)
from tidings.store.publications import NewPublication, accept, release_ids

LATE: Final = "late"
DEAD: Final = "dead"
KINDS: Final = (LATE, DEAD)


class LetterRow(NamedTuple):
    """A letter to be written; its record is JSON."""

    kind: str
    record: str
    reason: str


_LETTERS: Final = StagingTable(
    "incoming_letters",
    {"ordinal": "BIGINT", "kind": "TEXT", "record": "TEXT", "reason": "TEXT"},
)
_IDS: Final = StagingTable("incoming_ids", {"id": "BIGINT"})
_INSERT: Final = """
    INSERT INTO letters (kind, record, reason, query, batch)
    SELECT kind, record, reason, ?, ? FROM incoming_letters ORDER BY ordinal"""
_FIELDS: Final = "id, kind, record, reason, query, batch, taken_us"
_TAKE: Final = f"""
    UPDATE letters SET taken_us = ?, ticket = ? WHERE taken_us IS NULL AND id IN (
        SELECT id FROM letters WHERE kind = ? AND taken_us IS NULL ORDER BY id LIMIT ?)
    RETURNING {_FIELDS}"""
_WAITING: Final = f"""
    SELECT {_FIELDS} FROM letters
    WHERE taken_us IS NULL AND id IN (SELECT id FROM incoming_ids) ORDER BY id"""
_GIVE_BACK: Final = """
    UPDATE letters SET taken_us = NULL, ticket = NULL
    WHERE taken_us IS NOT NULL AND id IN (SELECT id FROM incoming_ids)"""


@dataclass(frozen=True)
class StoredLetter:
    """A late event or a dead letter, with the reason; `taken_us` is the time it was taken."""

    id: int
    kind: str
    record: Any = field(hash=False)
    reason: str
    query: str
    batch: int
    taken_us: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "id": self.id,
            "kind": self.kind,
            "record": self.record,
            "reason": self.reason,
            "query": self.query,
            "batch": self.batch,
            "taken_at": None if self.taken_us is None else format_time(self.taken_us),
        }


class PublishedAgain(NamedTuple):
    """How many letters were published again, and why others were not, by id."""

    published: int
    refused: dict[int, str]


class DeadLetters:
    """All late events and dead letters, in order of arrival. None is ever deleted.

    `Notifications.append` writes them together with the deliveries of their batch.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, kind: str, after: int = 0, limit: int = 100, *, waiting: bool = False
    ) -> list[StoredLetter]:
        """Return the letters after an id, in order: all of them, or only those waiting."""
        only = " AND taken_us IS NULL" if waiting else ""
        sql = f"SELECT {_FIELDS} FROM letters WHERE kind = ? AND id > ?{only} ORDER BY id LIMIT ?"
        values = (_kind(kind), check_count("an id", after), check_count("limit", limit, 1))
        return self._database.read(lambda session: read_rows(_letter, session.rows(sql, *values)))

    def count(self, kind: str, *, taken: bool = False) -> int:
        """Return the number of letters that are waiting, or that were taken."""
        state = "IS NOT NULL" if taken else "IS NULL"
        sql = f"SELECT count(*) FROM letters WHERE kind = ? AND taken_us {state}"
        values = (_kind(kind),)
        return int(self._database.read(lambda session: session.rows(sql, *values))[0][0])

    def take(self, kind: str, at: object, limit: int = 100) -> list[StoredLetter]:
        """Take the oldest waiting letters to publish them again; no two takers get the same one.

        They stay, marked with the time `at`. Give back those that could not be published.
        """
        values = (parse_time_us(at), uuid4().hex, _kind(kind), check_count("limit", limit, 1))
        letters = self._database.write(lambda session: _take(session, *values))
        return sorted(letters, key=lambda letter: letter.id)

    def give_back(self, ids: Iterable[int]) -> int:
        """Mark taken letters as waiting again; return how many."""
        rows = [(check_count("an id", number),) for number in check_iterable("ids", ids)]
        return self._database.write(partial(_give_back, rows=rows))

    def publish_again(self, ids: Iterable[int], now_us: int) -> PublishedAgain:
        """Publish the events of waiting letters again as of now, and mark them as taken.

        Both happen in one transaction. An event keeps its id, because it was not delivered to
        anyone.
        """
        rows = [(check_count("an id", number),) for number in check_iterable("ids", ids)]
        return self._database.write(partial(_publish_again, rows=rows, now_us=now_us))


def late_letter(late: Event | DeadLetter) -> LetterRow:
    """Return the row of a late event."""
    if isinstance(late, Event):
        late = DeadLetter(late, "published before the watermark")
    return _row(LATE, late)


def dead_letter(dead: DeadLetter | BadRecord) -> LetterRow:
    """Return the row of a dead letter."""
    return _row(DEAD, dead)


def insert_letters(session: Session, rows: Sequence[LetterRow], query: str, batch: int) -> None:
    """Insert the letters of a batch, in order."""
    if rows:
        session.stage(_LETTERS, ((number, *row) for number, row in enumerate(rows)))
        session.run(_INSERT, query, batch)


def _row(kind: str, letter: DeadLetter | BadRecord) -> LetterRow:
    if not validate.is_a(letter, DeadLetter | BadRecord):
        raise StoreError(f"a letter is a tidings.DeadLetter, not {shown(letter)}")
    # No database holds half a surrogate pair, which the id of a bad record may contain.
    reason = letter.reason.encode(errors="backslashreplace").decode()
    return LetterRow(kind, json.dumps(printable_record(letter.record)), reason)


def _take(session: Session, at_us: int, ticket: str, kind: str, limit: int) -> list[StoredLetter]:
    """Take letters under a ticket, by which a retry finds those that a lost first attempt took."""
    rows = session.rows(f"SELECT {_FIELDS} FROM letters WHERE ticket = ?", ticket)
    return read_rows(_letter, rows or session.rows(_TAKE, at_us, ticket, kind, limit))


def _give_back(session: Session, rows: Sequence[tuple[int]]) -> int:
    session.stage(_IDS, rows)
    return session.run(_GIVE_BACK)


def _publish_again(session: Session, rows: Sequence[tuple[int]], now_us: int) -> PublishedAgain:
    session.stage(_IDS, rows)
    waiting = read_rows(_letter, session.rows(_WAITING))
    refused = {number: "there is no waiting letter with this id" for (number,) in rows}
    events = dict[str, NewPublication]()
    accepted = list[tuple[int]]()
    for letter in waiting:
        try:
            event = loads_event({**letter.record, "published_at": 0, "sequence": None})
            events[check_id("the id of an event", event.id)] = NewPublication(event, timed=False)
        except (TidingsError, TypeError) as error:
            refused[letter.id] = f"it is not an event that can be published: {described(error)}"
        else:
            accepted.append((letter.id,))
            del refused[letter.id]
    release_ids(session, list(events))
    accept(session, list(events.values()), now_us)
    session.stage(_IDS, accepted)
    session.run("UPDATE letters SET taken_us = ? WHERE id IN (SELECT id FROM incoming_ids)", now_us)
    return PublishedAgain(len(accepted), refused)


def _letter(row: Row) -> StoredLetter:
    number, kind, record, *rest = row
    try:
        form = read_json(record)
    except InvalidForm:
        form = {"damaged": shown(record)}
    return read_row(StoredLetter, (number, kind, form, *rest))


def _kind(value: str) -> str:
    validate.choice("the kind of a letter", value, KINDS, StoreError)
    return value
