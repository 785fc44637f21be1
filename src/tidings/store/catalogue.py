"""The catalogue: subscribers with their policies, and subscriptions, each change a version.

A row of `records` is valid from the version `since` to before the version `until`, which is FOREVER
while it is current. A change ends one row and begins another, so the past stays readable.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

from tidings.errors import InvalidSubscription, shown
from tidings.policy import Subscriber
from tidings.store.protocol import (
    FOREVER,
    Database,
    Row,
    Session,
    StagingTable,
    check_count,
    check_iterable,
)
from tidings.store.records import (
    SUBSCRIBER,
    CatalogueEntry,
    Draft,
    Record,
    check_kind,
    make_draft,
    read_entries,
)

RecordLike = Record | Mapping[str, Any]
Progress = Callable[[int], None]
Expected = Literal["new", "existing", "any"]

_CHUNK: Final = 10_000
_STAGED: Final = StagingTable(
    "incoming_changes",
    {"ordinal": "BIGINT", "kind": "TEXT", "id": "TEXT", "subscriber": "TEXT", "form": "TEXT"},
)
_IS_CURRENT: Final = f"r.kind = i.kind AND r.id = i.id AND r.until = {FOREVER}"
_SELECT: Final = f"SELECT since, kind, id, form FROM records WHERE until = {FOREVER} AND"
_OWNED: Final = f"SELECT kind, id, subscriber FROM records WHERE until = {FOREVER} AND"
_NUMBERED: Final = (
    "(SELECT row_number() OVER (ORDER BY ordinal) AS number, kind, id, subscriber, form "
    "FROM incoming_changes)"
)


class Catalogue:
    """All subscribers and subscriptions, by kind and id, with a version for each change.

    A subscription may come before its subscriber. Each call is one transaction. Writing a record
    that is already there unchanged is not a change, so every call may be repeated.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, *records: RecordLike) -> int:
        """Add new records, whose ids must not exist; return the version."""
        return self._change(_drafts(records), "new")

    def replace(self, *records: RecordLike) -> int:
        """Replace the records with the same ids, which must exist; return the version."""
        return self._change(_drafts(records), "existing")

    def put_as(self, expected: Expected, record: RecordLike) -> int:
        """Write a record that is expected to be new, existing, or any; return the version."""
        return self._change([make_draft(record)], expected)

    def load(self, records: Iterable[RecordLike], progress: Progress | None = None) -> int:
        """Add or replace any number of records, the last one of equal ids; return the version.

        Each chunk is a transaction: a refused record stops the load before its chunk. `progress` is
        called with the number of records written so far.
        """
        waiting = iter(check_iterable("records", records))
        written, version = 0, self.version()
        while chunk := list(islice(waiting, _CHUNK)):
            drafts = {(draft.kind, draft.id): draft for draft in map(make_draft, chunk)}
            version = self._change(list(drafts.values()), "any")
            written += len(chunk)
            if progress:
                progress(written)
        return version

    def remove(self, kind: str, name: str) -> bool:
        """Remove a record, a subscriber with its subscriptions; return whether it existed."""
        return self._database.write(partial(_remove, kind=check_kind(kind), name=name))

    def pause(self, subscriber: str) -> int:
        """Pause a subscriber, which must exist; return the version."""
        return self._database.write(partial(_set_paused, name=subscriber, paused=True))

    def resume(self, subscriber: str) -> int:
        """Resume a paused subscriber, which must exist; return the version."""
        return self._database.write(partial(_set_paused, name=subscriber, paused=False))

    def get(self, kind: str, name: str) -> CatalogueEntry | None:
        """Return the current entry of a record."""
        rows = self._rows(f"{_SELECT} kind = ? AND id = ?", check_kind(kind), name)
        return next(read_entries(rows), None)

    def find(self, kind: str, names: Iterable[str]) -> list[CatalogueEntry]:
        """Return the current entries of records, of those that exist, in order of id."""
        ids, rows = sorted(set(names)), list[Row]()
        for first in range(0, len(ids), _CHUNK):
            some = ids[first : first + _CHUNK]
            places = ", ".join("?" * len(some))
            rows += self._rows(
                f"{_SELECT} kind = ? AND id IN ({places}) ORDER BY id", check_kind(kind), *some
            )
        return [*read_entries(rows)]

    def page(
        self, kind: str, subscriber: str | None = None, after: str = "", limit: int = 100
    ) -> list[CatalogueEntry]:
        """Return the entries after an id, in order of id, of one subscriber or of all."""
        owned, values = ("", ()) if subscriber is None else ("subscriber = ? AND ", (subscriber,))
        sql = f"{_SELECT} {owned}kind = ? AND id > ? ORDER BY id LIMIT ?"
        values = (*values, check_kind(kind), after)
        return [*read_entries(self._rows(sql, *values, check_count("limit", limit, 1)))]

    def count(self, kind: str, subscriber: str | None = None) -> int:
        """Return the number of records of a kind, of one subscriber or of all."""
        owned, values = ("", ()) if subscriber is None else (" AND subscriber = ?", (subscriber,))
        sql = f"SELECT count(*) FROM records WHERE until = {FOREVER} AND kind = ?{owned}"
        return int(self._rows(sql, check_kind(kind), *values)[0][0])

    def version(self) -> int:
        """Return the version of the last change, 0 before the first."""
        return self._database.read(_version)

    def _rows(self, sql: str, *values: str | int) -> list[Row]:
        return self._database.read(lambda session: session.rows(sql, *values))

    def _change(self, drafts: Sequence[Draft], expected: Expected) -> int:
        return self._database.write(partial(_change, drafts=drafts, expected=expected))


def _drafts(records: Iterable[RecordLike]) -> list[Draft]:
    drafts = [make_draft(record) for record in records]
    seen = set()
    for draft in drafts:
        if (draft.kind, draft.id) in seen:
            raise InvalidSubscription(f"{draft.kind} {draft.id!r} is listed twice")
        seen.add((draft.kind, draft.id))
    return drafts


def _change(session: Session, drafts: Sequence[Draft], expected: Expected) -> int:
    """Write drafts as the next versions; return the last version."""
    session.lock()
    session.stage(_STAGED, ((n, d.kind, d.id, d.subscriber, d.form) for n, d in enumerate(drafts)))
    states = session.rows(
        "SELECT i.ordinal, CASE WHEN r.form IS NULL THEN 'new' WHEN r.form = i.form THEN 'same' "
        f"ELSE 'existing' END FROM incoming_changes i LEFT JOIN records r ON {_IS_CURRENT} "
        "ORDER BY i.ordinal"
    )
    for draft, (_, state) in zip(drafts, states, strict=True):
        _check(draft, state, expected)
    if any(state == "same" for _, state in states):
        session.run(
            "DELETE FROM incoming_changes AS i "
            f"WHERE EXISTS (SELECT 1 FROM records r WHERE {_IS_CURRENT} AND r.form = i.form)"
        )
    return _write(session)


def _set_paused(session: Session, name: str, *, paused: bool) -> int:
    """Write the subscriber with this name again, paused or not."""
    session.lock()
    rows = session.rows(f"{_SELECT} kind = ? AND id = ?", SUBSCRIBER, name)
    record = next((entry.record for entry in read_entries(rows)), None)
    if not isinstance(record, Subscriber):
        raise InvalidSubscription(
            f"there is no subscriber {shown(name)} to pause or resume; an owner of subscriptions "
            f"becomes one when it is added, such as {json.dumps({'id': name})}"
        )
    return _change(session, [make_draft(replace(record, paused=paused))], "existing")


def _check(draft: Draft, state: str, expected: Expected) -> None:
    name = f"{draft.kind} {draft.id!r}"
    if (expected, state) == ("new", "existing"):
        raise InvalidSubscription(f"{name} already exists; replace it instead")
    if (expected, state) == ("existing", "new"):
        raise InvalidSubscription(f"there is no {name} to replace; put it instead")


def _write(session: Session) -> int:
    """End the records that staged changes replace or remove, and begin the new ones."""
    version = _version(session)
    session.run(
        f"UPDATE records AS r SET until = ? + i.number FROM {_NUMBERED} i WHERE {_IS_CURRENT}",
        version,
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
    session.lock()
    doomed = session.rows(f"{_OWNED} kind = ? AND id = ?", kind, name)
    if doomed and kind == SUBSCRIBER:
        doomed = session.rows(f"{_OWNED} subscriber = ? ORDER BY kind DESC, id", name)
    if doomed:
        session.stage(_STAGED, ((n, *row, None) for n, row in enumerate(doomed)))
        _write(session)
    return bool(doomed)
