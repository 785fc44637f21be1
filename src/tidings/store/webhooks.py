"""Webhooks: where the notifications of subscribers are sent, and how far that has come.

The notifications themselves are the outbox. A webhook knows up to which number they were tried;
those that failed are listed, to be tried again, or given up.
"""

import secrets
from base64 import b64encode
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from tidings.errors import StoreError
from tidings.store.protocol import Database, Row, Session

_FIELDS: Final = (
    "key, id, subscriber, url, secret, old_secret, old_until_us, created_us, sequence, failures, "
    "next_us, disabled"
)
_SECRET_BYTES: Final = 32


@dataclass(frozen=True)
class Webhook:
    """A webhook; `key` is its own for ever, while its id may be used again after a removal."""

    key: str
    id: str
    subscriber: str
    url: str
    secret: str
    old_secret: str | None
    old_until_us: int
    created_us: int
    sequence: int
    failures: int
    next_us: int
    disabled: str | None

    def secrets(self, now_us: int) -> tuple[str, ...]:
        """Return the secrets that sign messages: also the last one, for some time."""
        if self.old_secret is not None and now_us < self.old_until_us:
            return self.secret, self.old_secret
        return (self.secret,)


class Retry(NamedTuple):
    """A notification that failed: how often, when it is tried again (None: never), and why."""

    sequence: int
    attempts: int
    next_us: int | None
    reason: str


class WebhookSummary(NamedTuple):
    """How many webhooks there are by state, and how many messages they have not delivered."""

    working: int
    failing: int
    disabled: int
    waiting: int
    retrying: int
    given_up: int


class Webhooks:
    """The webhooks of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, subscriber: str, name: str, url: str, now_us: int) -> Webhook:
        """Add a webhook that sends what is delivered from now on; or change the address of one.

        Another address is tried at once, even if the last one was given up.
        """
        work = partial(_put, subscriber=subscriber, name=name, url=url, now_us=now_us)
        self._database.write(work)
        found = self.find(name, subscriber)
        if not found:
            raise StoreError(f"webhook {name!r} was removed at the same moment")
        return found[0]

    def get(self, key: str) -> Webhook | None:
        """Return the webhook with a key."""
        return next(iter(self._select("WHERE key = ?", key)), None)

    def find(self, name: str, subscriber: str | None = None) -> list[Webhook]:
        """Return the webhooks with an id, of one subscriber or of all."""
        owned, values = ("", ()) if subscriber is None else (" AND subscriber = ?", (subscriber,))
        return self._select(f"WHERE id = ?{owned} ORDER BY subscriber", name, *values)

    def of(self, subscriber: str | None, limit: int = 1_000) -> list[Webhook]:
        """Return the webhooks of a subscriber, or of all, in order of id."""
        owned, values = ("", ()) if subscriber is None else ("WHERE subscriber = ?", (subscriber,))
        return self._select(f"{owned} ORDER BY id, subscriber LIMIT ?", *values, limit)

    def remove(self, key: str) -> bool:
        """Remove a webhook, with what is still to be sent; return whether it existed."""
        sql = "DELETE FROM webhooks WHERE key = ?"
        return bool(self._database.write(lambda session: session.run(sql, key)))

    def change_secret(self, key: str, old_until_us: int) -> str:
        """Replace the secret of a webhook; the old one signs as well, until a time."""
        secret = _new_secret()
        sql = "UPDATE webhooks SET old_secret = secret, old_until_us = ?, secret = ? WHERE key = ?"
        self._database.write(lambda session: session.run(sql, old_until_us, secret, key))
        return secret

    def due(self, now_us: int, limit: int = 100) -> list[Webhook]:
        """Return webhooks that have something to send, and are not in a pause."""
        due = (
            "WHERE disabled IS NULL AND next_us <= ? AND leased_us <= ? AND ("
            "EXISTS (SELECT 1 FROM inboxes AS i WHERE i.subscriber = webhooks.subscriber "
            "AND i.last > webhooks.sequence) OR EXISTS (SELECT 1 FROM webhook_retries AS r "
            "WHERE r.key = webhooks.key AND r.next_us <= ?)) ORDER BY next_us, key LIMIT ?"
        )
        return self._select(due, now_us, now_us, now_us, limit)

    def lease(self, key: str, now_us: int, until_us: int) -> bool:
        """Reserve a webhook until a time; return False if another dispatcher has."""
        sql = "UPDATE webhooks SET leased_us = ? WHERE key = ? AND leased_us <= ?"
        return bool(self._database.write(lambda session: session.run(sql, until_us, key, now_us)))

    def release(self, key: str) -> None:
        """End a reservation."""
        sql = "UPDATE webhooks SET leased_us = 0 WHERE key = ?"
        self._database.write(lambda session: session.run(sql, key))

    def retries(self, key: str, now_us: int | None = None, limit: int = 100) -> list[Retry]:
        """Return the notifications of a webhook that failed: all, or those due by a time."""
        due, values = ("", ()) if now_us is None else (" AND next_us <= ?", (now_us,))
        sql = (
            "SELECT sequence, attempts, next_us, reason FROM webhook_retries "
            f"WHERE key = ?{due} ORDER BY sequence LIMIT ?"
        )
        return [Retry(*row) for row in self._rows(sql, key, *values, limit)]

    def summary(self) -> WebhookSummary:
        """Return the states of all webhooks, and the messages that wait, in numbers."""
        [states] = self._rows(
            "SELECT count(CASE WHEN disabled IS NULL AND failures = 0 THEN 1 END), "
            "count(CASE WHEN disabled IS NULL AND failures > 0 THEN 1 END), "
            "count(disabled) FROM webhooks"
        )
        [waiting] = self._rows(
            "SELECT coalesce(sum(i.last - w.sequence), 0) FROM webhooks AS w JOIN inboxes AS i "
            "ON i.subscriber = w.subscriber WHERE w.disabled IS NULL AND i.last > w.sequence"
        )
        [retries] = self._rows(
            "SELECT count(next_us), count(*) - count(next_us) FROM webhook_retries"
        )
        return WebhookSummary(*map(int, (*states, *waiting, *retries)))

    def succeeded(self, key: str, sequence: int) -> None:
        """Note that a notification was taken."""
        self._database.write(partial(_succeeded, key=key, sequence=sequence))

    def failed(self, key: str, retry: Retry, next_us: int, disabled: str | None = None) -> None:
        """Note that a notification was not taken; nothing is sent to the webhook before a time."""
        work = partial(_failed, key=key, retry=retry, next_us=next_us, disabled=disabled)
        self._database.write(work)

    def retry_all(self, key: str) -> None:
        """Try everything that failed again, from the first attempt on."""
        self._database.write(partial(_retry_all, key=key))

    def prune(self, before_us: int) -> int:
        """Delete what was given up of notifications that are gone; return how many."""
        sql = (
            "DELETE FROM webhook_retries WHERE next_us IS NULL AND NOT EXISTS (SELECT 1 FROM "
            "webhooks AS w JOIN deliveries AS d ON d.subscriber = w.subscriber WHERE "
            "w.key = webhook_retries.key AND d.sequence = webhook_retries.sequence "
            "AND d.delivered_us >= ?)"
        )
        return self._database.write(lambda session: session.run(sql, before_us))

    def _select(self, condition: str, *values: str | int) -> list[Webhook]:
        rows = self._rows(f"SELECT {_FIELDS} FROM webhooks {condition}", *values)
        return [Webhook(*row) for row in rows]

    def _rows(self, sql: str, *values: str | int) -> list[Row]:
        return self._database.read(lambda session: session.rows(sql, *values))


def _new_secret() -> str:
    return f"whsec_{b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def _put(session: Session, subscriber: str, name: str, url: str, now_us: int) -> None:
    session.lock()
    changed = session.run(
        "UPDATE webhooks SET url = ?, disabled = NULL, failures = 0, next_us = 0 "
        "WHERE subscriber = ? AND id = ?",
        url,
        subscriber,
        name,
    )
    if changed:
        return
    session.run(
        "INSERT INTO webhooks (key, id, subscriber, url, secret, created_us, sequence) "
        "VALUES (?, ?, ?, ?, ?, ?, "
        "coalesce((SELECT last FROM inboxes WHERE subscriber = CAST(? AS TEXT)), 0))",
        secrets.token_hex(12),
        name,
        subscriber,
        url,
        _new_secret(),
        now_us,
        subscriber,
    )


def _succeeded(session: Session, key: str, sequence: int) -> None:
    _passed(session, key, sequence)
    session.run("UPDATE webhooks SET failures = 0, next_us = 0 WHERE key = ?", key)
    session.run("DELETE FROM webhook_retries WHERE key = ? AND sequence = ?", key, sequence)


def _failed(
    session: Session, key: str, retry: Retry, next_us: int, disabled: str | None = None
) -> None:
    _passed(session, key, retry.sequence)
    sql = "UPDATE webhooks SET failures = failures + 1, next_us = ?, disabled = ? WHERE key = ?"
    if session.run(sql, next_us, disabled, key):
        session.run(
            "INSERT INTO webhook_retries (key, sequence, attempts, next_us, reason) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (key, sequence) DO UPDATE SET "
            "attempts = excluded.attempts, next_us = excluded.next_us, reason = excluded.reason",
            key,
            *retry,
        )


def _retry_all(session: Session, key: str) -> None:
    session.run("UPDATE webhook_retries SET next_us = 0, attempts = 0 WHERE key = ?", key)
    sql = "UPDATE webhooks SET failures = 0, next_us = 0, disabled = NULL WHERE key = ?"
    session.run(sql, key)


def _passed(session: Session, key: str, sequence: int) -> None:
    """Note that a notification, and all before it, were tried."""
    sql = "UPDATE webhooks SET sequence = ? WHERE key = ? AND sequence < ?"
    session.run(sql, sequence, key, sequence)
