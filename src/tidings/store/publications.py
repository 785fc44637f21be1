"""The intake of publications: accepted once by id, numbered without gaps, kept until pruned."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from tidings.model.records import Event
from tidings.model.values import format_time, parse_time_us
from tidings.store.protocol import Database, Row, Session, StagingTable, check_count, check_id

_STAGED: Final = StagingTable(
    "incoming_publications", {"ordinal": "BIGINT", "id": "TEXT", "form": "TEXT"}
)
_REPEATED: Final = """
    SELECT i.ordinal FROM incoming_publications AS i JOIN publications AS p ON p.id = i.id"""
_NUMBERS: Final = "SELECT number FROM publications WHERE id IN"
_IDS: Final = 1_000
"""The maximum number of ids in one query."""
_RELEASED: Final = "\x1f"
"""Separates the id of a publication that was published again from its number."""
_INSERT: Final = f"""
    INSERT INTO publications (number, id, accepted_us, form)
    SELECT ? + row_number() OVER (ORDER BY ordinal), id, ?, form FROM incoming_publications
    WHERE ordinal NOT IN ({_REPEATED})"""


class NewPublication(NamedTuple):
    """An event to publish; one that is not `timed` gets the time of its acceptance."""

    event: Event
    timed: bool = True


class StoredPublication(NamedTuple):
    """An accepted publication: its number, and its JSON form, or None once it is pruned."""

    number: int
    form: str | None


class Publications:
    """All publications, numbered in the order in which they were accepted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, publications: Sequence[NewPublication], now_us: int) -> list[bool]:
        """Write publications in one transaction; return which of them are new.

        One whose id was accepted before, or comes earlier in the list, is not new, and changes
        nothing. An event without a time gets `now_us`, or the newest time so far if that is later:
        so it is never late.
        """
        for publication in publications:
            check_id("the id of an event", publication.event.id)
        return self._database.write(partial(accept, publications=publications, now_us=now_us))

    def after(
        self, number: int, limit: int = 1_000, upto: int | None = None
    ) -> list[StoredPublication]:
        """Return the publications after a number, up to another, in order."""
        return self._database.read(
            lambda session: read_publications(session, number, check_count("limit", limit, 1), upto)
        )

    def numbers(self, ids: Sequence[str]) -> list[int]:
        """Return the numbers of the publications with these ids."""
        numbers = list[int]()
        for first in range(0, len(ids), _IDS):
            some = ids[first : first + _IDS]
            marks = ", ".join("?" * len(some))
            numbers += [row[0] for row in self._rows(f"{_NUMBERS} ({marks})", *some)]
        return numbers

    def last(self) -> int:
        """Return the number of the last publication, 0 before the first."""
        sql = "SELECT last FROM intake"
        return self._database.read(lambda session: int(session.rows(sql)[0][0]))

    def prune(self, before: object) -> int:
        """Delete the content of publications accepted before a time; return how many.

        Only publications that every pipeline has processed, by the steps in this store, are pruned.
        Their ids are kept.
        """
        before_us = parse_time_us(before)
        return self._database.write(partial(_prune, before_us=before_us))

    def _rows(self, sql: str, *values: int | str) -> list[Row]:
        return self._database.read(lambda session: session.rows(sql, *values))


def release_ids(session: Session, ids: Sequence[str]) -> None:
    """Allow ids to be accepted again; the publications keep their numbers."""
    for name in ids:
        # The form still has the id; only the key changes, to one that no publisher uses.
        sql = "UPDATE publications SET id = id || ? || number WHERE id = ?"
        session.run(sql, _RELEASED, name)


def read_publications(
    session: Session, after: int, limit: int, upto: int | None = None
) -> list[StoredPublication]:
    """Return the publications after a number, up to another, in order."""
    sql = "SELECT number, form FROM publications WHERE number > ?"
    bound = () if upto is None else (upto,)
    sql += " AND number <= ?" if bound else ""
    rows = session.rows(f"{sql} ORDER BY number LIMIT ?", after, *bound, limit)
    return [StoredPublication(*row) for row in rows]


def accept(session: Session, publications: Sequence[NewPublication], now_us: int) -> list[bool]:
    """Write publications; return which of them are new."""
    session.run("UPDATE intake SET last = last")  # other writers wait until this one has committed
    last, newest_us = session.rows("SELECT last, newest_us FROM intake")[0]
    ordinals = dict[str, int]()
    rows = list[tuple[int, str, str]]()
    for ordinal, (event, timed) in enumerate(publications):
        if event.id in ordinals:
            continue
        ordinals[event.id] = ordinal
        us = event.published_us if timed else max(now_us, newest_us)
        newest_us = max(newest_us, us)
        form = event.to_dict() | {"published_at": format_time(us)}
        rows.append((ordinal, event.id, json.dumps(form, separators=(",", ":"))))
    session.stage(_STAGED, rows)
    repeated = {ordinal for (ordinal,) in session.rows(_REPEATED)}
    new = set(ordinals.values()) - repeated
    if new:
        session.run(_INSERT, last, now_us)
        session.run("UPDATE intake SET last = ?, newest_us = ?", last + len(new), newest_us)
    return [ordinal in new for ordinal in range(len(publications))]


def _prune(session: Session, before_us: int) -> int:
    saved = session.rows("SELECT step FROM checkpoints")
    upto = session.rows("SELECT upto FROM steps WHERE number = ?", saved[0][0]) if saved else []
    if not upto:
        return 0
    return session.run(
        "UPDATE publications SET form = NULL "
        "WHERE form IS NOT NULL AND accepted_us < ? AND number <= ?",
        before_us,
        upto[0][0],
    )
