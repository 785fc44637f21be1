"""Marks that record what readers did with notifications."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from tidings.model.values import format_time
from tidings.store.protocol import Database, Session, read_row, read_rows

OPENED: Final = "opened"
READ: Final = "read"
NOT_FOR_ME: Final = "not-for-me"
MARKS: Final = (OPENED, READ, NOT_FOR_ME)


class NotificationMark(NamedTuple):
    """An action of a reader on a notification: in which channel, and when it was first done."""

    sequence: int
    mark: str
    channel: str | None
    marked_us: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "sequence": self.sequence,
            "mark": self.mark,
            "channel": self.channel,
            "marked_at": format_time(self.marked_us),
        }


class NotificationMarks:
    """The marks of a tenant's subscribers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        subscriber: str,
        sequences: Sequence[int],
        mark: str,
        channel: str | None,
        now_us: int,
    ) -> int:
        """Mark notifications that exist; return how many did not have this mark yet."""

        def work(session: Session) -> int:
            return sum(
                session.run(_ADD, mark, channel, now_us, subscriber, sequence)
                for sequence in sequences
            )

        return self._database.write(work)

    def of(self, subscriber: str, after: int = 0, limit: int = 100) -> list[NotificationMark]:
        """Return the marks of a subscriber's notifications after a sequence number, in order."""
        sql = (
            "SELECT sequence, mark, channel, marked_us FROM marks "
            "WHERE subscriber = ? AND sequence > ? ORDER BY sequence, mark LIMIT ?"
        )
        return self._database.read(
            lambda session: read_rows(
                partial(read_row, NotificationMark), session.rows(sql, subscriber, after, limit)
            )
        )

    def prune(self) -> int:
        """Delete the marks of notifications that no longer exist; return how many."""
        sql = (
            "DELETE FROM marks WHERE NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE "
            "d.subscriber = marks.subscriber AND d.sequence = marks.sequence)"
        )
        return self._database.write(lambda session: session.run(sql))


_ADD: Final = (
    "INSERT INTO marks (subscriber, sequence, mark, channel, marked_us) "
    "SELECT subscriber, sequence, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT) "
    "FROM deliveries WHERE subscriber = ? AND sequence = ? ON CONFLICT DO NOTHING"
)
