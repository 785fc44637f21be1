"""The outbox: what channels have yet to send, and the results of sending it.

A dispatcher reserves a channel, takes a page of its deliveries, sends them, and records the result.
Results of a dispatcher that has lost its reservation are ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from tidings.model.records import Delivery
from tidings.store.channels import FIELDS, HAS_NEW, Channel, FailedDelivery, read_channel
from tidings.store.notifications import DELIVERY_COLUMNS, delivery_of_row
from tidings.store.protocol import Row, Session, Transactions, read_row, read_rows

_DUE: Final = f"""
    SELECT {FIELDS} FROM channels
    WHERE disabled IS NULL AND paused_us IS NULL AND next_us <= ? AND leased_us <= ?
    AND kind IN ({{}}) AND ({HAS_NEW} OR EXISTS (
        SELECT 1 FROM channel_failures AS f WHERE f.key = channels.key AND f.next_us <= ?))
    ORDER BY next_us, key LIMIT ?"""
_UNFINISHED: Final = f"""
    SELECT 1 FROM channels WHERE disabled IS NULL AND paused_us IS NULL
    AND (failures > 0 OR leased_us > ?) AND kind IN ({{}}) AND {HAS_NEW} LIMIT 1"""
_LEASE: Final = """
    UPDATE channels SET leased_us = ?, leased_by = ?
    WHERE key = ? AND leased_us <= ? AND next_us <= ? AND disabled IS NULL AND paused_us IS NULL"""
_NOTE: Final = """
    UPDATE channels SET reached = CASE WHEN reached < ? THEN ? ELSE reached END, sent = sent + ?,
        failures = ?, reason = ?, next_us = ?, disabled = ?
    WHERE key = ? AND leased_by = ?"""
_ADD_FAILURE: Final = """
    INSERT INTO channel_failures (key, number, attempts, next_us, reason) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (key, number) DO UPDATE SET attempts = excluded.attempts,
        next_us = excluded.next_us, reason = excluded.reason"""
_NEVER: Final = -1
"""A time at which no retry is due."""
_ONE: Final = f"{DELIVERY_COLUMNS} FROM deliveries WHERE subscriber = ? AND sequence"
_ANY: Final = f"{DELIVERY_COLUMNS} FROM deliveries WHERE number"


class OutboxEntry(NamedTuple):
    """A delivery to send, or None if it was pruned in the meantime, and how often it has failed."""

    number: int
    attempts: int
    delivery: Delivery | None


class OutboxPage(NamedTuple):
    """Entries in order; once all are handled, the channel has reached `upto`."""

    upto: int
    entries: Sequence[OutboxEntry]


@dataclass(frozen=True)
class PageProgress:
    """The outcome of sending a page.

    Entries that are `done` need no retry. `failures`, `reason` and `next_us` are the new state of
    the channel: its consecutive failures, the reason, and the time before which nothing is sent.
    """

    upto: int
    sent: int
    done: Sequence[int] = ()
    failed: Sequence[FailedDelivery] = ()
    failures: int = 0
    reason: str | None = None
    next_us: int = 0
    disabled: str | None = None


class Outbox:
    """The outbox of a tenant."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def due(self, kinds: Sequence[str], now_us: int, limit: int = 1_000) -> list[Channel]:
        """Return channels of some kinds that have something to send and are not reserved."""
        if not kinds:
            return []
        sql = _DUE.format(", ".join("?" * len(kinds)))
        return self._database.read(
            lambda session: read_rows(
                read_channel, session.rows(sql, now_us, now_us, *kinds, now_us, limit)
            )
        )

    def unfinished(self, kinds: Sequence[str], now_us: int) -> bool:
        """Return whether a channel has something to send, but fails or is reserved by another."""
        if not kinds:
            return False
        sql = _UNFINISHED.format(", ".join("?" * len(kinds)))
        return bool(self._database.read(lambda session: session.rows(sql, now_us, *kinds)))

    def lease(self, key: str, owner: str, now_us: int, until_us: int) -> Channel | None:
        """Reserve a channel until a time and return it.

        Return None if another dispatcher has it, or if it is not due.
        """
        return self._database.write(
            partial(_lease, key=key, owner=owner, now_us=now_us, until_us=until_us)
        )

    def renew(self, owner: str, keys: Sequence[str], until_us: int) -> None:
        """Extend reservations of a dispatcher; those of other channels end when they are over."""
        if not keys:
            return
        sql = (
            "UPDATE channels SET leased_us = ? WHERE leased_by = ? AND leased_us > 0 "
            f"AND key IN ({', '.join('?' * len(keys))})"
        )
        self._database.write(lambda session: session.run(sql, until_us, owner, *keys))

    def release(self, key: str, owner: str) -> None:
        """End a reservation."""
        sql = "UPDATE channels SET leased_us = 0, leased_by = NULL WHERE key = ? AND leased_by = ?"
        self._database.write(lambda session: session.run(sql, key, owner))

    def page(self, channel: Channel, now_us: int, limit: int) -> OutboxPage:
        """Return the next page of a channel: retries that are due, otherwise new deliveries."""
        return self._database.read(partial(_page, channel=channel, now_us=now_us, limit=limit))

    def note(self, key: str, owner: str, progress: PageProgress) -> Channel | None:
        """Write the outcome of a page; return the channel, or None if it may no longer be used."""
        return self._database.write(partial(_note, key=key, owner=owner, progress=progress))

    def skip(self, key: str) -> Delivery | None:
        """Skip the next delivery of a channel, and return it; it can be retried.

        This lets a channel that sends in order get past a delivery that always fails.
        """
        return self._database.write(partial(_skip, key=key))


def _skip(session: Session, key: str) -> Delivery | None:
    session.lock()
    rows = session.rows(f"SELECT {FIELDS} FROM channels WHERE key = ?", key)
    entries = _page(session, read_channel(rows[0]), _NEVER, 1).entries if rows else ()
    if not entries:
        return None
    number = entries[0].number
    session.run(_ADD_FAILURE, key, *FailedDelivery(number, 0, None, "skipped by hand"))
    session.run(
        "UPDATE channels SET reached = ?, failures = 0, next_us = 0 WHERE key = ? AND reached < ?",
        *(number, key, number),
    )
    return entries[0].delivery


def _usable(session: Session, key: str, owner: str) -> Channel | None:
    sql = (
        f"SELECT {FIELDS} FROM channels WHERE key = ? AND leased_by = ? "
        "AND disabled IS NULL AND paused_us IS NULL"
    )
    rows = session.rows(sql, key, owner)
    return read_channel(rows[0]) if rows else None


def _lease(session: Session, key: str, owner: str, now_us: int, until_us: int) -> Channel | None:
    if not session.run(_LEASE, until_us, owner, key, now_us, now_us):
        return None
    return _usable(session, key, owner)


def _page(session: Session, channel: Channel, now_us: int, limit: int) -> OutboxPage:
    retries = session.rows(
        "SELECT number, attempts FROM channel_failures WHERE key = ? AND next_us <= ? "
        "ORDER BY number LIMIT ?",
        *(channel.key, now_us, limit),
    )
    if retries:
        entries = [_retried(session, channel, *row) for row in retries]
        return OutboxPage(channel.reached, entries)
    # The last number is read in the same snapshot, and numbers become visible in order.
    if channel.subscriber is None:
        last = session.rows("SELECT last FROM outbox")[0][0]
        rows = session.rows(f"{_ANY} > ? ORDER BY number LIMIT ?", channel.reached, limit)
    else:
        inbox = "SELECT last FROM inboxes WHERE subscriber = ?"
        last = next(iter(session.rows(inbox, channel.subscriber)), (channel.reached,))[0]
        sql = f"{_ONE} > ? ORDER BY sequence LIMIT ?"
        rows = session.rows(sql, channel.subscriber, channel.reached, limit)
    entries = [OutboxEntry(_number(channel, row), 0, delivery_of_row(row[:-1])) for row in rows]
    return read_row(OutboxPage, (entries[-1].number if len(entries) == limit else last, entries))


def _number(channel: Channel, row: Row) -> int:
    """Return the number by which a channel counts a delivery."""
    *_, sequence, _, _, number = row
    return int(number if channel.subscriber is None else sequence)


def _retried(session: Session, channel: Channel, number: int, attempts: int) -> OutboxEntry:
    if channel.subscriber is None:
        rows = session.rows(f"{_ANY} = ?", number)
    else:
        rows = session.rows(f"{_ONE} = ?", channel.subscriber, number)
    delivery = delivery_of_row(rows[0][:-1]) if rows else None
    return read_row(OutboxEntry, (number, attempts, delivery))


def _note(session: Session, key: str, owner: str, progress: PageProgress) -> Channel | None:
    state = (progress.failures, progress.reason, progress.next_us, progress.disabled)
    moved = (progress.upto, progress.upto, progress.sent)
    if not session.run(_NOTE, *moved, *state, key, owner):
        return None
    for number in progress.done:
        session.run("DELETE FROM channel_failures WHERE key = ? AND number = ?", key, number)
    for failure in progress.failed:
        session.run(_ADD_FAILURE, key, *failure)
    return _usable(session, key, owner)
