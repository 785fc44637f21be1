"""Channels: where deliveries are sent, with the progress of each.

The deliveries of the store are the outbox. A channel records up to which of them it has sent, and
lists those that failed: to be retried, or given up. `store/outbox.py` serves the senders.
"""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from tidings.errors import InvalidForm
from tidings.formats.json_text import read_json
from tidings.model.values import format_time
from tidings.store.protocol import Cell, Row, Session, Transactions, check_id, read_row, read_rows

NEW: Final = "new"
ALL: Final = "all"
STARTS: Final = (NEW, ALL)
"""Where a channel starts: with what is delivered from now on, or with everything in the store."""

FIELDS: Final = (
    "key, kind, id, subscriber, settings, created_us, reached, sent, failures, reason, next_us, "
    "paused_us, disabled"
)
_LAST: Final = (
    "coalesce(CASE WHEN channels.subscriber IS NULL THEN (SELECT last FROM outbox) ELSE "
    "(SELECT last FROM inboxes AS i WHERE i.subscriber = channels.subscriber) END, 0)"
)
HAS_NEW: Final = f"{_LAST} > reached"
_WAITING: Final = f"CASE WHEN {HAS_NEW} THEN {_LAST} - reached ELSE 0 END"


@dataclass(frozen=True)
class Channel:
    """A channel of one subscriber, or of all; its `key` is unique forever, its id may be reused.

    `reached` is a sequence number of the subscriber, or a number of the outbox. A channel that is
    `disabled`, for a reason, is not used until it is resumed.
    """

    key: str
    kind: str
    id: str
    subscriber: str | None
    settings: Mapping[str, Any] = field(repr=False, hash=False)
    created_us: int
    reached: int
    sent: int
    failures: int
    reason: str | None
    next_us: int
    paused_us: int | None
    disabled: str | None

    @property
    def state(self) -> str:
        """One word: working, failing, paused or disabled."""
        if self.disabled is not None:
            return "disabled"
        if self.paused_us is not None:
            return "paused"
        return "failing" if self.failures else "working"


@dataclass(frozen=True)
class ChannelDraft:
    """A channel to create: of one subscriber or of all, starting now or from the beginning."""

    kind: str
    id: str
    subscriber: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    start: str = NEW


class FailedDelivery(NamedTuple):
    """A delivery that failed: how often, when it is retried (None: never), and why."""

    number: int
    attempts: int
    next_us: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        again = None if self.next_us is None else format_time(self.next_us)
        return {
            "number": self.number,
            "attempts": self.attempts,
            "next_at": again,
            "reason": self.reason,
        }


class ChannelSummary(NamedTuple):
    """How many channels there are by state, and how many messages they have not delivered."""

    working: int
    failing: int
    disabled: int
    waiting: int
    retrying: int
    given_up: int


class Backlog(NamedTuple):
    """Counts of undelivered notifications of a channel: new, to be retried, and given up."""

    waiting: int
    retrying: int
    given_up: int


class Channels:
    """The channels of a tenant."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def put(self, draft: ChannelDraft, now_us: int) -> Channel:
        """Add a channel, or change the settings of one, which is then tried at once."""
        check_id("the kind of a channel", draft.kind)
        check_id("the id of a channel", draft.id)
        return self._database.write(partial(_put, draft=draft, now_us=now_us))

    def get(self, key: str) -> Channel | None:
        """Return the channel with a key."""
        return next(iter(self._select("WHERE key = ?", key)), None)

    def find(
        self,
        name: str | None = None,
        *,
        kind: str | None = None,
        subscriber: str | None = None,
        limit: int = 1_000,
    ) -> list[Channel]:
        """Return the channels with an id, of a kind or of a subscriber, in order of id."""
        columns = {"id": name, "kind": kind, "subscriber": subscriber}
        filters = {column: value for column, value in columns.items() if value is not None}
        conditions = " AND ".join(f"{column} = ?" for column in filters)
        where = f"WHERE {conditions} " if filters else ""
        order = "ORDER BY id, kind, coalesce(subscriber, '') LIMIT ?"
        return self._select(f"{where}{order}", *filters.values(), limit)

    def queues(self) -> list[Channel]:
        """Return the channels that serve all subscribers, in order of id."""
        return self._select("WHERE subscriber IS NULL ORDER BY id, kind")

    def remove(self, key: str) -> bool:
        """Remove a channel with its unsent messages; return whether it existed."""
        return self._write("DELETE FROM channels WHERE key = ?", key)

    def change_settings(self, key: str, changes: Mapping[str, Any]) -> bool:
        """Replace some of the settings of a channel; return whether it exists."""
        return self._database.write(partial(_change_settings, key=key, changes=changes))

    def pause(self, key: str, now_us: int) -> bool:
        """Pause a channel until `resume`; deliveries wait in the meantime."""
        sql = "UPDATE channels SET paused_us = coalesce(paused_us, ?) WHERE key = ?"
        return self._write(sql, now_us, key)

    def resume(self, key: str) -> bool:
        """Resume a channel at once, even if it was disabled."""
        sql = (
            "UPDATE channels SET paused_us = NULL, disabled = NULL, failures = 0, next_us = 0 "
            "WHERE key = ?"
        )
        return self._write(sql, key)

    def skip_waiting(self, key: str) -> bool:
        """Skip all waiting deliveries; the channel continues with later ones."""
        sql = f"UPDATE channels SET reached = {_LAST}, next_us = 0 WHERE key = ?"
        return self._write(sql, key)

    def failures(self, key: str, limit: int = 100, after: int = -1) -> list[FailedDelivery]:
        """Return the deliveries of a channel that failed, in order of number."""
        sql = (
            "SELECT number, attempts, next_us, reason FROM channel_failures "
            "WHERE key = ? AND number > ? ORDER BY number LIMIT ?"
        )
        return self._database.read(
            lambda session: read_rows(
                partial(read_row, FailedDelivery), session.rows(sql, key, after, limit)
            )
        )

    def retried(self, key: str, numbers: Collection[int]) -> set[int]:
        """Return those of some deliveries of a channel that failed and are to be sent again."""
        sql = (
            "SELECT number FROM channel_failures "
            "WHERE key = ? AND number BETWEEN ? AND ? AND next_us IS NOT NULL"
        )
        span = (min(numbers), max(numbers))
        rows = self._database.read(lambda session: session.rows(sql, key, *span))
        return {number for (number,) in rows}.intersection(numbers)

    def given_up_reason(self, key: str) -> str | None:
        """Return why the newest of the deliveries that a channel gave up was given up."""
        sql = (
            "SELECT reason FROM channel_failures WHERE key = ? AND next_us IS NULL "
            "ORDER BY number DESC LIMIT 1"
        )
        rows = self._database.read(lambda session: session.rows(sql, key))
        return str(rows[0][0]) if rows else None

    def retry(self, key: str) -> int:
        """Retry everything that failed or was given up, counting attempts from the start."""
        return self._database.write(partial(_retry, key=key))

    def backlog(self, key: str) -> Backlog:
        """Return the counts of undelivered notifications of a channel."""
        sql = (
            f"SELECT {_WAITING}, "
            "(SELECT count(next_us) FROM channel_failures AS f WHERE f.key = channels.key), "
            "(SELECT count(*) - count(next_us) FROM channel_failures AS f "
            "WHERE f.key = channels.key) FROM channels WHERE key = ?"
        )

        def read(session: Session) -> Backlog:
            rows = session.rows(sql, key)
            return Backlog(*map(int, rows[0])) if rows else Backlog(0, 0, 0)

        return self._database.read(read)

    def describe(self, channel: Channel) -> dict[str, Any]:
        """Return the JSON form of a channel with its backlog, and without its settings."""
        return {
            "id": channel.id,
            "kind": channel.kind,
            "subscriber": channel.subscriber,
            "state": channel.state,
            "created_at": format_time(channel.created_us),
            "sent": channel.sent,
            **self.backlog(channel.key)._asdict(),
            "failures": channel.failures,
            "reason": channel.disabled or channel.reason,
            "given_up_reason": self.given_up_reason(channel.key),
            "next_at": next_time(channel),
        }

    def summary(self, kind: str | None = None) -> ChannelSummary:
        """Return the states of all channels, or of one kind, and the messages that are waiting."""
        of_kind, values = ("", ()) if kind is None else ("WHERE kind = ?", (kind,))
        states_sql = (
            "SELECT count(CASE WHEN disabled IS NULL AND failures = 0 THEN 1 END), "
            "count(CASE WHEN disabled IS NULL AND failures > 0 THEN 1 END), count(disabled), "
            f"coalesce(sum(CASE WHEN disabled IS NULL THEN {_WAITING} END), 0) "
            f"FROM channels {of_kind}"
        )
        failures_sql = (
            "SELECT count(f.next_us), count(*) - count(f.next_us) FROM channel_failures AS f "
            f"JOIN channels ON channels.key = f.key {of_kind}"
        )

        def read(session: Session) -> ChannelSummary:
            [states], [failures] = (
                session.rows(sql, *values) for sql in (states_sql, failures_sql)
            )
            return ChannelSummary(*map(int, (*states, *failures)))

        return self._database.read(read)

    def prune(self, before_us: int) -> int:
        """Delete given-up messages whose deliveries no longer exist; return how many."""
        sql = (
            "DELETE FROM channel_failures WHERE next_us IS NULL AND NOT EXISTS (SELECT 1 FROM "
            "channels AS c JOIN deliveries AS d ON CASE WHEN c.subscriber IS NULL "
            "THEN d.number = channel_failures.number ELSE d.subscriber = c.subscriber "
            "AND d.sequence = channel_failures.number END "
            "WHERE c.key = channel_failures.key AND d.delivered_us >= ?)"
        )
        return self._database.write(lambda session: session.run(sql, before_us))

    def _select(self, condition: str, *values: Cell) -> list[Channel]:
        sql = f"SELECT {FIELDS} FROM channels {condition}"
        return self._database.read(
            lambda session: read_rows(read_channel, session.rows(sql, *values))
        )

    def _write(self, sql: str, *values: Cell) -> bool:
        return bool(self._database.write(lambda session: session.run(sql, *values)))


def next_time(channel: Channel) -> str | None:
    """Return when a channel is to continue, if it rests; nothing is due earlier."""
    return format_time(channel.next_us) if channel.next_us else None


def read_channel(row: Row) -> Channel:
    """Return the channel of a row with the columns `FIELDS`."""
    key, kind, name, subscriber, settings, *rest = row
    try:
        form = read_json(settings)
    except InvalidForm:
        form = {}
    settings = form if isinstance(form, dict) else {}
    return read_row(Channel, (key, kind, name, subscriber, settings, *rest))


def _put(session: Session, draft: ChannelDraft, now_us: int) -> Channel:
    session.lock()
    name = (draft.kind, draft.id, draft.subscriber or "")
    named = "WHERE kind = ? AND id = ? AND coalesce(subscriber, '') = ?"
    settings = json.dumps(dict(draft.settings))
    change = "UPDATE channels SET settings = ?, disabled = NULL, failures = 0, next_us = 0"
    if not session.run(f"{change} {named}", settings, *name):
        key = secrets.token_hex(12)
        session.run(
            "INSERT INTO channels (key, kind, id, subscriber, settings, created_us, reached) "
            "VALUES (?, ?, ?, ?, ?, ?, 0)",
            *(key, draft.kind, draft.id, draft.subscriber, settings, now_us),
        )
        if draft.start == NEW:
            session.run(f"UPDATE channels SET reached = {_LAST} WHERE key = ?", key)
    return read_channel(session.rows(f"SELECT {FIELDS} FROM channels {named}", *name)[0])


def _change_settings(session: Session, key: str, changes: Mapping[str, Any]) -> bool:
    session.lock()
    rows = session.rows(f"SELECT {FIELDS} FROM channels WHERE key = ?", key)
    if not rows:
        return False
    text = json.dumps({**read_channel(rows[0]).settings, **changes})
    return bool(session.run("UPDATE channels SET settings = ? WHERE key = ?", text, key))


def _retry(session: Session, key: str) -> int:
    again = session.run("UPDATE channel_failures SET next_us = 0, attempts = 0 WHERE key = ?", key)
    sql = "UPDATE channels SET failures = 0, next_us = 0, disabled = NULL WHERE key = ?"
    session.run(sql, key)
    return again
