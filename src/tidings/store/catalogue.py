"""Subscribers with their policies, and subscriptions: what is there now, and every change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

from tidings.errors import InvalidSubscription
from tidings.store.protocol import FOREVER, Database, Row, Session, StagingTable, check_count
from tidings.store.records import (
    SUBSCRIBER,
    CatalogueEntry,
    Draft,
    Record,
    check_kind,
    draft,
    read_entries,
)

Given = Record | Mapping[str, Any]
Progress = Callable[[int], None]
Expect = Literal["new", "there", "any"]

_CHUNK: Final = 10_000
_CHANGES: Final = StagingTable(
    "incoming_changes",
    {"ordinal": "BIGINT", "kind": "TEXT", "id": "TEXT", "subscriber": "TEXT", "form": "TEXT"},
)
_NOW: Final = f"r.kind = i.kind AND r.id = i.id AND r.until = {FOREVER}"
_SELECT: Final = f"SELECT since, kind, id, form FROM records WHERE until = {FOREVER} AND"
_OWNED: Final = f"SELECT kind, id, subscriber FROM records WHERE until = {FOREVER} AND"
_NUMBERED: Final = (
    "(SELECT row_number() OVER (ORDER BY ordinal) AS number, kind, id, subscriber, form "
    "FROM incoming_changes)"
)


class Catalogue:
    """All subscribers and subscriptions, by kind and id, with a version for each change.

    A subscription may come before its subscriber. Each call is one transaction: all its records,
    or none. A record that is there already just so is no change, so every call may be repeated.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, *records: Given) -> int:
        """Put in new records; one whose id is there already is refused. Give the version."""
        return self._change(_drafts(records), "new")

    def replace(self, *records: Given) -> int:
        """Put records in the places of those with their ids. Give the version."""
        return self._change(_drafts(records), "there")

    def load(self, records: Iterable[Given], progress: Progress | None = None) -> int:
        """Put in any number of records, new or in place, of equal ids the last. Give the version.

        They are written in chunks: what is refused stops the load before its chunk. `progress` is
        told how many are written.
        """
        waiting, done, version = iter(records), 0, self.version()
        while chunk := list(islice(waiting, _CHUNK)):
            drafts = {(each.kind, each.id): each for each in map(draft, chunk)}
            version = self._change(list(drafts.values()), "any")
            done += len(chunk)
            if progress:
                progress(done)
        return version

    def remove(self, kind: str, name: str) -> bool:
        """Remove a record, a subscriber with its subscriptions; tell whether it was there."""
        return self._database.write(partial(_remove, kind=check_kind(kind), name=name))

    def get(self, kind: str, name: str) -> CatalogueEntry | None:
        """Give a record as it is now."""
        question = f"{_SELECT} kind = ? AND id = ?"
        found = self._rows(question, check_kind(kind), name)
        return next(read_entries(found), None)

    def page(
        self, kind: str, subscriber: str | None = None, after: str = "", limit: int = 100
    ) -> list[CatalogueEntry]:
        """Give the records after an id, in order of id; those of one subscriber, or of all."""
        owned, values = ("", ()) if subscriber is None else ("subscriber = ? AND ", (subscriber,))
        question = f"{_SELECT} {owned}kind = ? AND id > ? ORDER BY id LIMIT ?"
        values = (*values, check_kind(kind), after)
        return [*read_entries(self._rows(question, *values, check_count("limit", limit, 1)))]

    def version(self) -> int:
        """Give the version of the last change; 0 before the first."""
        return self._database.read(_version)

    def _rows(self, question: str, *values: str | int) -> list[Row]:
        return self._database.read(lambda session: session.rows(question, *values))

    def _change(self, drafts: Sequence[Draft], expect: Expect) -> int:
        return self._database.write(partial(_change, drafts=drafts, expect=expect))


def _drafts(records: Iterable[Given]) -> list[Draft]:
    drafts = [draft(record) for record in records]
    seen = set()
    for each in drafts:
        if (each.kind, each.id) in seen:
            raise InvalidSubscription(f"{each.kind} {each.id!r} is given twice")
        seen.add((each.kind, each.id))
    return drafts


def _change(session: Session, drafts: Sequence[Draft], expect: Expect) -> int:
    """Write drafts as the next versions; give the last version then."""
    session.alone()
    session.stage(_CHANGES, ((n, d.kind, d.id, d.subscriber, d.form) for n, d in enumerate(drafts)))
    states = session.rows(
        "SELECT i.ordinal, CASE WHEN r.form IS NULL THEN 'new' WHEN r.form = i.form THEN 'same' "
        f"ELSE 'there' END FROM incoming_changes i LEFT JOIN records r ON {_NOW} ORDER BY i.ordinal"
    )
    for each, (_, state) in zip(drafts, states, strict=True):
        _check(each, state, expect)
    if any(state == "same" for _, state in states):
        session.run(
            "DELETE FROM incoming_changes AS i "
            f"WHERE EXISTS (SELECT 1 FROM records r WHERE {_NOW} AND r.form = i.form)"
        )
    return _write(session)


def _check(each: Draft, state: str, expect: Expect) -> None:
    if (expect, state) == ("new", "there"):
        raise InvalidSubscription(f"{each.kind} {each.id!r} is there already; replace it instead")
    if (expect, state) == ("there", "new"):
        raise InvalidSubscription(f"there is no {each.kind} {each.id!r} to replace; put it instead")


def _write(session: Session) -> int:
    """End the records that staged changes replace or remove, and begin the new ones."""
    version = _version(session)
    session.run(
        f"UPDATE records AS r SET until = ? + i.number FROM {_NUMBERED} i WHERE {_NOW}", version
    )
    session.run(
        "INSERT INTO records (since, kind, id, subscriber, form) "
        f"SELECT ? + number, kind, id, subscriber, form FROM {_NUMBERED} i WHERE form IS NOT NULL",
        version,
    )
    changed = session.rows("SELECT count(*) FROM incoming_changes")[0][0]
    session.run("UPDATE catalogue SET version = ?", version + changed)
    return version + int(changed)


def _version(session: Session) -> int:
    return int(session.rows("SELECT version FROM catalogue")[0][0])


def _remove(session: Session, kind: str, name: str) -> bool:
    """Stage the record as a removal, after its subscriptions where it is a subscriber."""
    session.alone()
    doomed = session.rows(f"{_OWNED} kind = ? AND id = ?", kind, name)
    if doomed and kind == SUBSCRIBER:
        doomed = session.rows(f"{_OWNED} subscriber = ? ORDER BY kind DESC, id", name)
    if doomed:
        session.stage(_CHANGES, ((n, *row, None) for n, row in enumerate(doomed)))
        _write(session)
    return bool(doomed)
