"""What was delivered: written once, numbered for each subscriber, kept for a time."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from tidings.errors import StoreError, shown
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.model.values import parse_duration_us, parse_time_us
from tidings.store.append_arrow import append_of, read_delivery
from tidings.store.append_batch import AppendResult, BatchAppend
from tidings.store.protocol import Database, Row, Session, check_count

_LOG: Final = logging.getLogger(__name__)
BATCHES_KEPT: Final = 1_000

_SELECT: Final = (
    "SELECT subscriber, event, rank, position, won_in, matched, sequence, delivered_us "
    "FROM deliveries WHERE subscriber = ?"
)


@dataclass(frozen=True)
class Inbox:
    """How far a subscriber's notifications go, and how far they are read: sequence numbers."""

    last: int = 0
    read: int = 0

    @property
    def unread(self) -> int:
        """How many came after the last that is read."""
        return self.last - self.read


class Notifications:
    """The deliveries of all subscribers, each with a sequence that counts from 1 without gaps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self,
        query: str,
        batch: int,
        deliveries: Iterable[Delivery] = (),
        *,
        late: Iterable[Event | DeadLetter] = (),
        dead: Iterable[DeadLetter | BadRecord] = (),
    ) -> AppendResult:
        """Write all that came of a batch, once: a batch that is there already is skipped.

        Numbers of a query's batches rise. Deliveries of a subscriber are numbered in the order
        given. An event that a subscriber has had already is passed over and counted. A delivery
        that no database can hold becomes a dead letter.
        """
        work = BatchAppend.of(query, batch, deliveries, late=late, dead=dead)
        return self._database.write(work.write)

    def append_columns(
        self,
        query: str,
        batch: int,
        deliveries: pa.Table,
        *,
        late: Iterable[Event | DeadLetter] = (),
        dead: Iterable[DeadLetter | BadRecord] = (),
    ) -> AppendResult:
        """Do what `append` does with deliveries in columns, those of `formats.arrow.DELIVERIES`.

        No object is made of each delivery, which takes about half of the time.
        """
        work = append_of(query, batch, deliveries, late=late, dead=dead)
        return self._database.write(work.write)

    def last_batch(self, query: str) -> int | None:
        """Give the number of a query's last batch that is written."""
        question = "SELECT max(batch) FROM batches WHERE query = ?"
        found = self._database.read(lambda session: session.rows(question, query))[0][0]
        return None if found is None else int(found)

    def newest(self, subscriber: str, limit: int = 100) -> list[Delivery]:
        """Give a subscriber's last notifications, the newest first."""
        question = f"{_SELECT} ORDER BY sequence DESC LIMIT ?"
        return self._deliveries(question, subscriber, check_count("limit", limit, 1))

    def after(self, subscriber: str, sequence: int = 0, limit: int = 100) -> list[Delivery]:
        """Give a subscriber's notifications after a sequence number, in order."""
        question = f"{_SELECT} AND sequence > ? ORDER BY sequence LIMIT ?"
        cells = (check_count("sequence", sequence), check_count("limit", limit, 1))
        return self._deliveries(question, subscriber, *cells)

    def inbox(self, subscriber: str) -> Inbox:
        """Give how far a subscriber's notifications go; nobody's end at 0."""
        return self._database.read(partial(_inbox, subscriber=subscriber))

    def mark_read(self, subscriber: str, sequence: int) -> Inbox:
        """Note that a subscriber has read up to a sequence number; it never goes back."""
        sequence = check_count("sequence", sequence)
        return self._database.write(partial(_mark, subscriber=subscriber, sequence=sequence))

    def prune(self, before: object, keep_keys: object = None) -> int:
        """Drop what was delivered before a time, and give how many that were.

        Of each, the key (subscriber, event) stays, so that it is not delivered again: for ever, or
        for a duration `keep_keys` before that time. A query's last batches stay known: 1,000.
        """
        before_us = parse_time_us(before)
        forget_us = None if keep_keys is None else before_us - parse_duration_us(keep_keys)
        return self._database.write(partial(_prune, before_us=before_us, forget_us=forget_us))

    def _deliveries(self, question: str, *cells: str | int) -> list[Delivery]:
        rows = self._database.read(lambda session: session.rows(question, *cells))
        return [each for each in map(_delivery, rows) if each is not None]


def _delivery(row: Row) -> Delivery | None:
    """Make the delivery of a row; None, and a warning, where the row is damaged."""
    try:
        found = read_delivery(row)
        found.to_dict()
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        _LOG.warning("a damaged delivery of a store is passed over: %s (%s)", shown(row), error)
        return None
    return found


def _inbox(session: Session, subscriber: str) -> Inbox:
    found = session.rows("SELECT last, read FROM inboxes WHERE subscriber = ?", subscriber)
    return Inbox(*found[0]) if found else Inbox()


def _mark(session: Session, subscriber: str, sequence: int) -> Inbox:
    inbox = _inbox(session, subscriber)
    if sequence > inbox.last:
        raise StoreError(f"{subscriber!r} has no notification {sequence}; the last is {inbox.last}")
    session.run(
        "UPDATE inboxes SET read = ? WHERE subscriber = ? AND read < ?",
        sequence,
        subscriber,
        sequence,
    )
    return _inbox(session, subscriber)


def _prune(session: Session, before_us: int, forget_us: int | None) -> int:
    """Move keys out of the deliveries, forget old keys, and shorten the lists of batches."""
    session.alone()
    session.run(
        "INSERT INTO pruned SELECT subscriber, event, delivered_us FROM deliveries "
        "WHERE delivered_us < ?",
        before_us,
    )
    dropped = session.run(
        "DELETE FROM deliveries AS d WHERE delivered_us < ? AND EXISTS "
        "(SELECT 1 FROM pruned AS p WHERE p.subscriber = d.subscriber AND p.event = d.event)",
        before_us,
    )
    if forget_us is not None:
        session.run("DELETE FROM pruned WHERE delivered_us < ?", forget_us)
    session.run(
        "UPDATE queries SET pruned = coalesce((SELECT batch FROM batches WHERE query = name "
        "ORDER BY batch DESC LIMIT 1 OFFSET ?), pruned)",
        BATCHES_KEPT,
    )
    session.run(
        "DELETE FROM batches WHERE batch <= (SELECT pruned FROM queries WHERE name = query)"
    )
    return dropped
