"""One batch on its way into the store: deliveries, late events and dead letters together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidings.errors import StoreError
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.store.dead_letters import LetterRow, dead_letter, insert, late_letter
from tidings.store.protocol import Cell, Session, StagingTable, check_count, check_id

_DELIVERIES: Final = StagingTable(
    "incoming_deliveries",
    {
        "ordinal": "BIGINT",
        "subscriber": "TEXT",
        "event": "TEXT",
        "rank": "DOUBLE PRECISION",
        "position": "BIGINT",
        "won_in": "TEXT",
        "matched": "TEXT",
        "delivered_us": "BIGINT",
    },
)
_BATCH: Final = """
    INSERT INTO batches (query, batch) SELECT ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM queries WHERE name = ? AND pruned >= ?)
    ON CONFLICT DO NOTHING"""
_INBOXES: Final = """
    INSERT INTO inboxes (subscriber)
    SELECT DISTINCT subscriber FROM incoming_deliveries WHERE true ORDER BY subscriber
    ON CONFLICT (subscriber) DO UPDATE SET last = inboxes.last"""
_NEW: Final = """
    NOT EXISTS (SELECT 1 FROM {} AS d WHERE d.subscriber = i.subscriber AND d.event = i.event)"""
_INSERT: Final = f"""
    INSERT INTO deliveries
    SELECT i.subscriber, b.last + row_number() OVER (PARTITION BY i.subscriber ORDER BY i.ordinal),
        i.event, i.rank, i.position, i.won_in, i.matched, i.delivered_us, ?, ?
    FROM incoming_deliveries AS i JOIN inboxes AS b ON b.subscriber = i.subscriber
    WHERE {_NEW.format("deliveries")} AND {_NEW.format("pruned")}"""
_LAST: Final = """
    UPDATE inboxes SET last = coalesce(
        (SELECT max(sequence) FROM deliveries AS d
        WHERE d.subscriber = inboxes.subscriber AND d.sequence > inboxes.last), last)
    WHERE subscriber IN (SELECT subscriber FROM incoming_deliveries)"""
_DONE: Final = """
    UPDATE batches SET delivered = ?, repeated = ?, late = ?, dead = ?
    WHERE query = ? AND batch = ?"""


@dataclass(frozen=True)
class AppendResult:
    """What came of an append: how many rows of each kind are there because of the batch.

    `repeated` deliveries were there before it. Of a `skipped` batch, it is what came of it then.
    """

    delivered: int = 0
    repeated: int = 0
    late: int = 0
    dead: int = 0
    skipped: bool = False


@dataclass(frozen=True)
class BatchAppend:
    """All that came of a batch, checked and written down."""

    query: str
    batch: int
    rows: Sequence[tuple[Cell, ...]]
    repeated: int
    late: tuple[LetterRow, ...]
    dead: tuple[LetterRow, ...]

    @classmethod
    def of(
        cls,
        query: str,
        batch: int,
        deliveries: Iterable[Delivery],
        *,
        late: Iterable[Event | DeadLetter],
        dead: Iterable[DeadLetter | BadRecord],
    ) -> "BatchAppend":
        """Check a batch; of deliveries with the same key, the first counts."""
        rows: dict[tuple[str, str], tuple[Cell, ...]] = {}
        letters = [dead_letter(each) for each in dead]
        repeated = 0
        for each in deliveries:
            reason = _unfit(each)
            if reason:
                letters.append(dead_letter(DeadLetter(each, reason)))
            elif (each.subscriber, each.event) in rows:
                repeated += 1
            else:
                rows[each.subscriber, each.event] = _row(len(rows), each)
        return cls(
            check_id("a query", query),
            check_count("a batch", batch),
            tuple(rows.values()),
            repeated,
            tuple(late_letter(each) for each in late),
            tuple(letters),
        )

    def write(self, session: Session) -> AppendResult:
        """Write it, unless it is there: of two writers, the row of the batch lets one through."""
        key = (self.query, self.batch)
        session.run("INSERT INTO queries (name) VALUES (?) ON CONFLICT DO NOTHING", self.query)
        if not session.run(_BATCH, *key, *key):
            return _before(session, *key)
        delivered = self._deliver(session)
        insert(session, (*self.late, *self.dead), *key)
        repeated = self.repeated + len(self.rows) - delivered
        found = AppendResult(delivered, repeated, len(self.late), len(self.dead))
        counts = (found.delivered, found.repeated, found.late, found.dead)
        session.run(_DONE, *counts, *key)
        return found

    def _deliver(self, session: Session) -> int:
        """Write the deliveries that are new; who else writes for these subscribers has to wait."""
        if not self.rows:
            return 0
        session.stage(_DELIVERIES, self.rows)
        session.run(_INBOXES)
        delivered = session.run(_INSERT, self.query, self.batch)
        session.run(_LAST)
        return delivered


def _before(session: Session, query: str, batch: int) -> AppendResult:
    """Give what came of a batch when it was written; of a pruned one, that is not known."""
    question = "SELECT delivered, repeated, late, dead FROM batches WHERE query = ? AND batch = ?"
    found = session.rows(question, query, batch)
    return replace(AppendResult(*found[0]) if found else AppendResult(), skipped=True)


def _unfit(delivery: Delivery) -> str | None:
    """Tell why no database can hold a delivery."""
    try:
        check_id("a subscriber", delivery.subscriber)
        check_id("the id of an event", delivery.event)
    except StoreError as error:
        return str(error)
    return None


def _row(ordinal: int, delivery: Delivery) -> tuple[Cell, ...]:
    return (
        ordinal,
        delivery.subscriber,
        delivery.event,
        delivery.rank,
        delivery.position,
        json.dumps(dict(delivery.window)),
        json.dumps(list(delivery.matched)),
        delivery.delivered_us,
    )
