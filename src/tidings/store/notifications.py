"""Notifications: deliveries written once, numbered per subscriber, kept until pruned."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from tidings.errors import StoreError, shown
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.model.values import parse_duration_us, parse_time_us
from tidings.store.append_batch import AppendResult, BatchAppend, read_delivery
from tidings.store.protocol import FOREVER, Row, Session, Transactions, check_count, read_row

_LOG: Final = logging.getLogger(__name__)
BATCHES_KEPT: Final = 1_000

_COLUMNS: Final = (
    "SELECT subscriber, event, rank, position, won_in, matched, sequence, delivered_us, content"
)
DELIVERY_COLUMNS: Final = f"{_COLUMNS}, number"
_SELECT: Final = f"{_COLUMNS} FROM deliveries WHERE subscriber = ?"
_OF_BATCHES: Final = (
    f"{_COLUMNS} FROM deliveries WHERE query = ? AND batch BETWEEN ? AND ? "
    "ORDER BY batch, delivered_us, subscriber, sequence LIMIT ?"
)
_BATCHES: Final = (
    "SELECT name, (SELECT max(batch) FROM batches WHERE query = name) FROM queries ORDER BY name"
)
_EACH: Final = 500
"""Inboxes of one query."""
_AFTER_EACH: Final = f"""
    WITH known (name, seen) AS (VALUES {{}})
    {_COLUMNS} FROM known CROSS JOIN deliveries WHERE subscriber = name AND sequence > seen
    ORDER BY subscriber, sequence"""


@dataclass(frozen=True)
class Inbox:
    """The sequence numbers of a subscriber's last notification and of the last one read."""

    last: int = 0
    read: int = 0

    @property
    def unread(self) -> int:
        """The number of notifications after the last one read."""
        return self.last - self.read


class Notifications:
    """The deliveries of all subscribers, each with a sequence that counts from 1 without gaps."""

    def __init__(self, database: Transactions) -> None:
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
        """Write the result of a batch, once: a batch that is already there is skipped.

        The batches of a query have increasing numbers. Deliveries to a subscriber are numbered in
        the given order. An event that a subscriber already has is counted as repeated. A delivery
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
        """Write the result as `append` does, from the columns of `formats.arrow.DELIVERIES`.

        Without an object per delivery, it takes about half the time.
        """
        work = BatchAppend.of_columns(query, batch, deliveries, late=late, dead=dead)
        return self._database.write(work.write)

    def last_batch(self, query: str) -> int | None:
        """Return the number of a query's last written batch, or None if there is none."""
        sql = "SELECT max(batch) FROM batches WHERE query = ?"

        def read(session: Session) -> int | None:
            last = session.rows(sql, query)[0][0]
            return None if last is None else int(last)

        return self._database.read(read)

    def newest(self, subscriber: str, limit: int = 100) -> list[Delivery]:
        """Return a subscriber's last notifications, newest first."""
        sql = f"{_SELECT} ORDER BY sequence DESC LIMIT ?"
        return self._deliveries(sql, subscriber, check_count("limit", limit, 1))

    def after(self, subscriber: str, sequence: int = 0, limit: int = 100) -> list[Delivery]:
        """Return a subscriber's notifications after a sequence number, in order."""
        sql = f"{_SELECT} AND sequence > ? ORDER BY sequence LIMIT ?"
        cells = (check_count("sequence", sequence), check_count("limit", limit, 1))
        return self._deliveries(sql, subscriber, *cells)

    def after_each(self, known: Mapping[str, int]) -> list[Delivery]:
        """Return the notifications of many subscribers, after a sequence number of each."""
        deliveries, names = list[Delivery](), sorted(known)
        for first in range(0, len(names), _EACH):
            some = names[first : first + _EACH]
            pairs = ", ".join(["(CAST(? AS TEXT), CAST(? AS BIGINT))"] * len(some))
            cells = [cell for name in some for cell in (name, known[name])]
            deliveries += self._deliveries(_AFTER_EACH.format(pairs), *cells)
        return deliveries

    def of_batches(self, query: str, first: int, last: int, limit: int) -> list[Delivery]:
        """Return the deliveries of a range of a query's batches."""
        return self._deliveries(_OF_BATCHES, query, first, last, limit)

    def written(self) -> list[Row]:
        """Return the last batch of each query; while these are the same, nothing is new."""
        return self._database.read(lambda session: session.rows(_BATCHES))

    def get(self, subscriber: str, event: str) -> Delivery | None:
        """Return the delivery of an event to a subscriber, if it was delivered and not pruned."""
        return next(iter(self._deliveries(f"{_SELECT} AND event = ?", subscriber, event)), None)

    def delivered_events(self, subscriber: str, limit: int) -> set[str]:
        """Return the events of a subscriber's last notifications."""
        sql = "SELECT event FROM deliveries WHERE subscriber = ? ORDER BY sequence DESC LIMIT ?"
        cells = (subscriber, check_count("limit", limit, 1))
        return {row[0] for row in self._database.read(lambda session: session.rows(sql, *cells))}

    def inbox(self, subscriber: str) -> Inbox:
        """Return the inbox of a subscriber, which is empty if nothing was delivered."""
        return self._database.read(partial(_inbox, subscriber=subscriber))

    def mark_read(self, subscriber: str, sequence: int) -> Inbox:
        """Mark a subscriber's notifications as read up to a number, which never decreases."""
        sequence = check_count("sequence", sequence)
        return self._database.write(partial(_mark, subscriber=subscriber, sequence=sequence))

    def prune(self, before: object, keep_keys: object = None) -> int:
        """Delete the deliveries before a time; return how many.

        The key (subscriber, event) of each is kept, so that it is not delivered again: forever, or
        for a duration `keep_keys` before that time. The last 1,000 batches of a query stay listed.
        """
        before_us = parse_time_us(before)
        forget_us = None if keep_keys is None else before_us - parse_duration_us(keep_keys)
        return self._database.write(partial(_prune, before_us=before_us, forget_us=forget_us))

    def _deliveries(self, sql: str, *cells: str | int) -> list[Delivery]:
        rows = self._database.read(lambda session: session.rows(sql, *cells))
        return [delivery for delivery in map(delivery_of_row, rows) if delivery is not None]


def delivery_of_row(row: Row) -> Delivery | None:
    """Return the delivery of a row, or None after a warning if the row is damaged."""
    try:
        delivery = read_delivery(row)
        Delivery.from_dict(delivery.to_dict())
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        _LOG.warning("skipping a damaged delivery of a store: %s (%s)", shown(row), error)
        return None
    return delivery


def _inbox(session: Session, subscriber: str) -> Inbox:
    rows = session.rows("SELECT last, read FROM inboxes WHERE subscriber = ?", subscriber)
    return read_row(Inbox, rows[0]) if rows else Inbox()


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
    """Move keys out of the deliveries, delete old keys, and shorten the lists of batches."""
    session.lock()
    # Deliveries that a queue has not sent are kept. Channels of people and webhooks lose theirs.
    unsent = "SELECT min(reached) FROM channels WHERE subscriber IS NULL AND disabled IS NULL"
    sent_by_all = session.rows(unsent)[0][0]
    upto = FOREVER if sent_by_all is None else int(sent_by_all)
    session.run(
        "INSERT INTO pruned SELECT subscriber, event, delivered_us FROM deliveries "
        "WHERE delivered_us < ? AND number <= ?",
        *(before_us, upto),
    )
    dropped = session.run(
        "DELETE FROM deliveries AS d WHERE delivered_us < ? AND number <= ? AND EXISTS "
        "(SELECT 1 FROM pruned AS p WHERE p.subscriber = d.subscriber AND p.event = d.event)",
        *(before_us, upto),
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
