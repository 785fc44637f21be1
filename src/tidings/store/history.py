"""The history of the catalogue: its changes since a version, and its content as of one."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from tidings.errors import StoreError, VersionGone
from tidings.store.protocol import FOREVER, Database, Row, Session, check_count, check_id
from tidings.store.records import CatalogueEntry, read_entries

_PAGE: Final = 10_000
_OWNERS_AT_ONCE: Final = 500
_CHANGES: Final = """
    SELECT since, kind, id, form FROM records WHERE since > ? AND since <= ?
    UNION ALL
    SELECT until, kind, id, NULL FROM records AS r
    WHERE until > ? AND until <= ? AND NOT EXISTS (SELECT 1 FROM records WHERE since = r.until)
    ORDER BY 1"""
_AS_OF: Final = """
    SELECT since, kind, id, form FROM records
    WHERE (kind, id) > (?, ?) AND since <= ? AND until > ?
    ORDER BY kind, id LIMIT ?"""

_TOUCHED: Final = f"""
    SELECT subscriber FROM records WHERE since > ? AND since <= ?
    UNION
    SELECT subscriber FROM records WHERE until > ? AND until <= ? AND until < {FOREVER}
    ORDER BY 1"""
_OWNED: Final = f"""
    SELECT since, kind, id, form FROM records
    WHERE until = {FOREVER} AND subscriber = ? AND since <= ?
    UNION ALL
    SELECT since, kind, id, form FROM records
    WHERE until < {FOREVER} AND until > ? AND subscriber = ? AND since <= ?
    ORDER BY 2, 3"""


class ChangeHistory:
    """The change log of the catalogue, from the last `compact` on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def changes(self, since: int, limit: int = _PAGE) -> list[CatalogueEntry]:
        """Return the changes after a version, in order; removals are entries without a form.

        Continue after the version of the last entry; an empty list means that nothing changed.
        """
        work = partial(
            _changes, since=check_count("a version", since), limit=check_count("limit", limit, 1)
        )
        return [*read_entries(self._database.read(work))]

    def as_of(self, version: int | None = None) -> Iterator[CatalogueEntry]:
        """Yield everything as of a version, by default the newest: subscribers first, then by id.

        It is read in pages, and stays consistent whatever is written in the meantime.
        """
        if version is None:
            version = self._database.read(_versions)[0]
        last: tuple[str, str] | None = ("", "")
        while last:
            rows = self._database.read(partial(_as_of, version=version, after=last))
            last = _next(self._database.name, last, rows)
            yield from read_entries(rows)

    def touched(self, since: int, upto: int) -> list[str]:
        """Return the subscribers with a change after one version, up to another."""
        work = partial(
            _touched, since=check_count("a version", since), upto=check_count("a version", upto)
        )
        return [name for (name,) in self._database.read(work)]

    def owned(self, subscribers: Iterable[str], version: int) -> Iterator[CatalogueEntry]:
        """Yield subscribers and their subscriptions as of a version."""
        names = list(subscribers)
        for first in range(0, len(names), _OWNERS_AT_ONCE):
            chunk = names[first : first + _OWNERS_AT_ONCE]
            rows = self._database.read(partial(_owned, names=chunk, version=version))
            yield from read_entries(rows)

    def newest(self) -> int:
        """Return the version of the last change, 0 before the first."""
        return self._database.read(_versions)[0]

    def store_id(self) -> str:
        """Return the unique and permanent id of this store, which its copies share."""
        return self._database.read(lambda session: str(session.rows("SELECT id FROM store")[0][0]))

    def compact(self, before: int) -> int:
        """Delete the history before a version, as far as no pin needs it; return how far.

        Current records are not touched.
        """
        return self._database.write(partial(_compact, before=check_count("a version", before)))

    def pin(self, query: str, batch: int) -> int:
        """Return the version that a batch sees: the newest at the first call, then always that one.

        Call it before the batch is computed, and again when it is replayed. The pin of a query's
        last batch holds back `compact`, until the next batch or `unpin`.
        """
        batch = check_count("a batch", batch)
        return self._database.write(partial(_pin, query=check_id("a query", query), batch=batch))

    def unpin(self, query: str) -> None:
        """Release the pin of a query that will not run again."""
        self._database.write(lambda session: session.run("DELETE FROM pins WHERE query = ?", query))


def _next(name: str, after: tuple[str, str], rows: Sequence[Row]) -> tuple[str, str] | None:
    """Return where the next page begins, or None after the last one."""
    if len(rows) < _PAGE:
        return None
    kind, key = rows[-1][1:3]
    if not isinstance(kind, str) or not isinstance(key, str) or (kind, key) <= after:
        raise StoreError(f"{name}: it is damaged: its records are out of order")
    return kind, key


def _versions(session: Session) -> tuple[int, int]:
    """Return the newest version, and the oldest that is kept."""
    newest, oldest = session.rows("SELECT version, compacted FROM catalogue")[0]
    return int(newest), int(oldest)


def _check(session: Session, version: int) -> int:
    """Check that a version is kept; return the newest."""
    newest, oldest = _versions(session)
    if version > newest:
        raise StoreError(f"there is no version {version} yet; the newest is {newest}")
    if version < oldest:
        raise VersionGone(
            f"version {version} is gone, the oldest kept is {oldest}; read everything again"
        )
    return newest


def _changes(session: Session, since: int, limit: int) -> list[Row]:
    """Return the next `limit` versions; each of them begins or ends one record."""
    newest = _check(session, since)
    upto = min(newest, since + limit)
    return session.rows(_CHANGES, since, upto, since, upto)


def _as_of(session: Session, version: int, after: tuple[str, str]) -> list[Row]:
    _check(session, version)
    return session.rows(_AS_OF, *after, version, version, _PAGE)


def _touched(session: Session, since: int, upto: int) -> list[Row]:
    _check(session, since)
    return session.rows(_TOUCHED, since, upto, since, upto)


def _owned(session: Session, names: Iterable[str], version: int) -> list[Row]:
    _check(session, version)
    return [
        row for name in names for row in session.rows(_OWNED, name, version, version, name, version)
    ]


def _compact(session: Session, before: int) -> int:
    session.lock()
    newest, oldest = _versions(session)
    pinned = session.rows("SELECT min(version) FROM pins")[0][0]
    reached = max(oldest, min(before, newest, newest if pinned is None else pinned))
    session.run("DELETE FROM records WHERE until <= ?", reached)
    session.run("UPDATE catalogue SET compacted = ?", reached)
    return reached


def _pin(session: Session, query: str, batch: int) -> int:
    session.lock()
    for last, version in session.rows("SELECT batch, version FROM pins WHERE query = ?", query):
        if batch < last:
            raise StoreError(
                f"batch {batch} of query {query} is no longer pinned; its last pinned batch is "
                f"{last}"
            )
        if batch == last:
            return int(version)
    newest = _versions(session)[0]
    session.run(
        "INSERT INTO pins VALUES (?, ?, ?) ON CONFLICT (query) "
        "DO UPDATE SET batch = excluded.batch, version = excluded.version",
        query,
        batch,
        newest,
    )
    return newest
