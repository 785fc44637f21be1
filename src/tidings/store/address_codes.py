"""Codes that verify addresses: sent once, kept as hashes, valid for an hour and a few attempts."""

import hashlib
import hmac
import secrets
from enum import Enum
from functools import partial
from typing import Final

from tidings.model.values import SECOND_US
from tidings.store.protocol import Database, Session

_LETTERS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""The alphabet of codes, without characters that look alike."""
_LENGTH: Final = 10
_VALID_US: Final = 3_600 * SECOND_US
_DAY_US: Final = 86_400 * SECOND_US
_MOST_A_DAY: Final = 5
_MOST_ATTEMPTS: Final = 5


class CodeAnswer(Enum):
    """Whether a code is the one that was sent."""

    RIGHT = "right"
    WRONG = "wrong"
    EXPIRED = "expired"
    """There is no code, it is too old, or it was tried too often."""


class AddressCodes:
    """The codes of a tenant. Each has 49 random bits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, key: str, address: str, now_us: int) -> str | None:
        """Return a new code for a channel, or None if its address has reached the daily limit."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        work = partial(_make, key=key, address=_hash("", address), hashed=_hash(key, code))
        return code if self._database.write(partial(work, now_us=now_us)) else None

    def check(self, key: str, code: str, now_us: int) -> CodeAnswer:
        """Compare a code with the last one of a channel; a correct code is used up."""
        return self._database.write(partial(_check, key=key, code=code, now_us=now_us))


def _make(session: Session, key: str, address: str, hashed: str, now_us: int) -> bool:
    session.lock()
    session.run("DELETE FROM address_codes WHERE made_us <= ?", now_us - _DAY_US)
    rows = session.rows("SELECT count(*) FROM address_codes WHERE address = ?", address)
    if rows[0][0] >= _MOST_A_DAY:
        return False
    session.run("UPDATE address_codes SET expires_us = 0 WHERE key = ?", key)
    sql = (
        "INSERT INTO address_codes (key, address, hash, made_us, expires_us) VALUES (?, ?, ?, ?, ?)"
    )
    session.run(sql, key, address, hashed, now_us, now_us + _VALID_US)
    return True


def _check(session: Session, key: str, code: str, now_us: int) -> CodeAnswer:
    session.lock()
    valid = "key = ? AND expires_us > ? AND attempts < ?"
    cells = (key, now_us, _MOST_ATTEMPTS)
    rows = session.rows(f"SELECT hash FROM address_codes WHERE {valid}", *cells)
    if not rows:
        return CodeAnswer.EXPIRED
    session.run(f"UPDATE address_codes SET attempts = attempts + 1 WHERE {valid}", *cells)
    plain = "".join(filter(str.isalnum, code.upper()))
    if not hmac.compare_digest(str(rows[0][0]), _hash(key, plain)):
        return CodeAnswer.WRONG
    session.run("UPDATE address_codes SET expires_us = 0 WHERE key = ?", key)
    return CodeAnswer.RIGHT


def _hash(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}:{text}".encode(errors="replace")).hexdigest()
