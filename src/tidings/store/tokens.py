"""Access tokens: shown once, stored only as hashes, revoked permanently."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tidings.errors import StoreError
from tidings.model import validate
from tidings.model.values import format_time
from tidings.store.address import DEFAULT_TENANT, check_tenant
from tidings.store.protocol import Database, Row, Session, check_id, read_row, read_rows

ROLES: Final = ("admin", "publisher", "subscriber")
_TOKEN: Final = re.compile(r"tidings_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_FIELDS: Final = "id, role, tenant, subscriber, label, created_us, expires_us, revoked_us"


@dataclass(frozen=True)
class Token:
    """An access token, without its secret."""

    id: str
    role: str
    tenant: str
    subscriber: str | None
    label: str
    created_us: int
    expires_us: int | None
    revoked_us: int | None

    def is_valid(self, now_us: int) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        times = {
            "created_at": self.created_us,
            "expires_at": self.expires_us,
            "revoked_at": self.revoked_us,
        }
        return {
            "id": self.id,
            "role": self.role,
            "tenant": self.tenant,
            "subscriber": self.subscriber,
            "label": self.label,
        } | {name: None if us is None else format_time(us) for name, us in times.items()}


class Tokens:
    """The tokens of a service. The secret of one has 256 random bits, so a plain hash hides it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        role: str,
        now_us: int,
        *,
        tenant: str = DEFAULT_TENANT,
        subscriber: str | None = None,
        label: str = "",
        expires_us: int | None = None,
    ) -> str:
        """Create a token and return its text, which cannot be read again."""
        validate.choice("role", role, ROLES, StoreError)
        check_tenant(tenant)
        if (role == "subscriber") != (subscriber is not None):
            raise StoreError("a token has a subscriber if and only if its role is subscriber")
        if subscriber is not None:
            check_id("a subscriber", subscriber)
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        values = (name, _hash(secret), role, tenant, subscriber, label, now_us, expires_us)
        sql = (
            "INSERT INTO tokens (id, hash, role, tenant, subscriber, label, created_us, expires_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._database.write(lambda session: session.run(sql, *values))
        return f"tidings_{name}_{secret}"

    def find(self, text: str, now_us: int) -> Token | None:
        """Return the token with a text, or None if it is unknown, revoked or expired."""
        parts = _TOKEN.fullmatch(text)
        if parts is None:
            return None
        token = self._database.read(partial(_find, name=parts[1], secret=parts[2]))
        return token if token is not None and token.is_valid(now_us) else None

    def listed(self) -> list[Token]:
        """Return all tokens, oldest first."""
        sql = f"SELECT {_FIELDS} FROM tokens ORDER BY created_us, id"
        return self._database.read(
            lambda session: read_rows(partial(read_row, Token), session.rows(sql))
        )

    def tenants(self) -> set[str]:
        """Return the tenants that have a token, and the default one."""
        rows = self._rows("SELECT DISTINCT tenant FROM tokens")
        return {DEFAULT_TENANT, *(tenant for (tenant,) in rows if isinstance(tenant, str))}

    def count_revoked(self) -> int:
        """Return how many tokens are revoked; holders of open streams watch this number."""
        [[count]] = self._rows("SELECT count(*) FROM tokens WHERE revoked_us IS NOT NULL")
        return int(count)

    def exist(self) -> bool:
        """Return whether a token was ever created, even if all are revoked."""
        return bool(self._rows("SELECT 1 FROM tokens LIMIT 1"))

    def revoke(self, name: str, now_us: int) -> bool:
        """Revoke a token by its id; return whether it was valid until now."""
        sql = "UPDATE tokens SET revoked_us = ? WHERE id = ? AND revoked_us IS NULL"
        return bool(self._database.write(lambda session: session.run(sql, now_us, name)))

    def _rows(self, sql: str, *values: str) -> list[Row]:
        return self._database.read(lambda session: session.rows(sql, *values))


def _find(session: Session, name: str, secret: str) -> Token | None:
    rows = session.rows(f"SELECT hash, {_FIELDS} FROM tokens WHERE id = ?", name)
    if not rows or not hmac.compare_digest(rows[0][0], _hash(secret)):
        return None
    return read_row(Token, rows[0][1:])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
