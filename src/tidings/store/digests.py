"""Digests: messages of several deliveries, fixed before they are sent.

A digest that is sent again, whatever stopped its sender, has the same deliveries and the same id.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tidings.errors import InvalidForm, shown
from tidings.formats.json_text import read_json
from tidings.store.protocol import Cell, Row, Session, Transactions, read_row

SENT: Final = ""
MOST_REFUSED: Final = 2
"""Consecutive messages that may be given up; after one more, the channel is disabled."""
_REFUSED: Final = (
    "SELECT count(*) FROM digests WHERE key = ? AND result <> '' AND first > coalesce("
    "(SELECT max(d.first) FROM digests AS d WHERE d.key = CAST(? AS TEXT) "
    "AND d.result = ''), -1)"
)
_FIELDS: Final = "key, first, last, upto, sequences, id, fixed_us, result"


@dataclass(frozen=True)
class FixedDigest:
    """The deliveries of one message, by their sequences from `first` to `last`.

    `result` is None until the digest is sent, then empty, or the reason why it was given up.
    """

    key: str
    first: int
    last: int
    upto: int
    sequences: Sequence[int]
    id: str
    fixed_us: int
    result: str | None = None

    def covers(self, sequence: int) -> bool:
        """Return whether a delivery was considered when the message was fixed."""
        return self.first <= sequence <= self.last


class Digests:
    """The digests of a tenant's channels."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def last(self, key: str) -> FixedDigest | None:
        """Return the last digest of a channel."""
        return self._first("WHERE key = ? ORDER BY first DESC LIMIT 1", key)

    def get(self, key: str, first: int) -> FixedDigest | None:
        """Return the digest of a channel that begins with a sequence."""
        return self._first("WHERE key = ? AND first = ?", key, first)

    def covering(self, key: str, sequence: int) -> FixedDigest | None:
        """Return the digest of a channel for which a delivery was decided about."""
        condition = "WHERE key = ? AND first <= ? AND last >= ? ORDER BY first DESC LIMIT 1"
        return self._first(condition, key, sequence, sequence)

    def find(self, name: str) -> FixedDigest | None:
        """Return the digest with an id."""
        return self._first("WHERE id = ? ORDER BY fixed_us DESC LIMIT 1", name)

    def refused(self, key: str) -> int:
        """Return how many digests of a channel were given up since the last one that was sent."""
        rows = self._database.read(lambda session: session.rows(_REFUSED, key, key))
        return int(rows[0][0])

    def fix(self, digest: FixedDigest) -> None:
        """Write a digest before it is sent."""
        sql = f"INSERT INTO digests ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        sequences = json.dumps(list(digest.sequences))
        cells = (digest.first, digest.last, digest.upto, sequences, digest.id, digest.fixed_us)
        self._database.write(lambda session: session.run(sql, digest.key, *cells, digest.result))

    def note(self, digest: FixedDigest, result: str) -> None:
        """Write the outcome of a digest."""
        sql = "UPDATE digests SET result = ? WHERE key = ? AND first = ?"
        cells = (result, digest.key, digest.first)
        self._database.write(lambda session: session.run(sql, *cells))

    def note_bounce(self, digest: FixedDigest, reason: str) -> None:
        """Record that a digest bounced: its deliveries are given up.

        A channel whose last three messages failed for good is disabled.
        """
        self._database.write(partial(_note_bounce, digest=digest, reason=reason))

    def prune(self, before_us: int) -> int:
        """Delete digests older than a time, except the last of each channel."""
        sql = (
            "DELETE FROM digests WHERE fixed_us < ? AND result IS NOT NULL AND first < "
            "(SELECT max(d.first) FROM digests AS d WHERE d.key = digests.key)"
        )
        return self._database.write(lambda session: session.run(sql, before_us))

    def _first(self, condition: str, *cells: Cell) -> FixedDigest | None:
        sql = f"SELECT {_FIELDS} FROM digests {condition}"

        def read(session: Session) -> FixedDigest | None:
            rows = session.rows(sql, *cells)
            return _digest(rows[0]) if rows else None

        return self._database.read(read)


def _note_bounce(session: Session, digest: FixedDigest, reason: str) -> None:
    session.lock()
    session.run(
        "UPDATE digests SET result = ? WHERE key = ? AND first = ?",
        *(reason, digest.key, digest.first),
    )
    for sequence in digest.sequences:
        session.run(
            "INSERT INTO channel_failures (key, number, attempts, next_us, reason) "
            "VALUES (?, ?, 1, NULL, ?) ON CONFLICT (key, number) DO NOTHING",
            *(digest.key, sequence, reason),
        )
    if session.rows(_REFUSED, digest.key, digest.key)[0][0] > MOST_REFUSED:
        session.run("UPDATE channels SET disabled = ? WHERE key = ?", reason, digest.key)


def _digest(row: Row) -> FixedDigest:
    key, first, last, upto, sequences, *rest = row
    try:
        numbers = read_json(sequences)
    except InvalidForm as error:
        raise TypeError(f"sequences: {error}") from None
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise TypeError(f"sequences is {shown(sequences)}")
    return read_row(FixedDigest, (key, first, last, upto, tuple(numbers), *rest))
