"""Secret addresses of feeds: shown once, stored only as hashes, replaced by the next one."""

import hashlib
import secrets
from functools import partial
from typing import NamedTuple

from tidings.store.protocol import Database, Session, read_row


class FeedOwner(NamedTuple):
    """The owner of a feed: a tenant and a subscriber."""

    tenant: str
    subscriber: str


class FeedAddresses:
    """The addresses of all tenants. Each has 256 random bits, so a plain hash hides it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def change(self, owner: FeedOwner, now_us: int) -> str:
        """Replace the address of a feed, and return the new one; the old one is revoked."""
        secret = secrets.token_urlsafe(32)
        work = partial(_change, owner=owner, hashed=_hash(secret), now_us=now_us)
        self._database.write(work)
        return secret

    def remove(self, owner: FeedOwner) -> bool:
        """Revoke the address of a feed; return whether there was one."""
        return self._database.write(lambda session: bool(_remove(session, owner)))

    def find(self, secret: str) -> FeedOwner | None:
        """Return the owner of the feed at an address."""
        sql = "SELECT tenant, subscriber FROM feed_addresses WHERE hash = ?"

        def read(session: Session) -> FeedOwner | None:
            rows = session.rows(sql, _hash(secret))
            return read_row(FeedOwner, rows[0]) if rows else None

        return self._database.read(read)


def _change(session: Session, owner: FeedOwner, hashed: str, now_us: int) -> None:
    _remove(session, owner)
    sql = "INSERT INTO feed_addresses (hash, tenant, subscriber, created_us) VALUES (?, ?, ?, ?)"
    session.run(sql, hashed, *owner, now_us)


def _remove(session: Session, owner: FeedOwner) -> int:
    session.lock()
    sql = "DELETE FROM feed_addresses WHERE tenant = ? AND subscriber = ?"
    return session.run(sql, *owner)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
