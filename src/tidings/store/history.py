"""What changed in the catalogue since a version, and how it was at one."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from tidings.errors import StoreError, VersionGone
from tidings.store.protocol import FOREVER, Database, Row, Session, check_count, check_id
from tidings.store.records import CatalogueEntry, read_entries

_PAGE: Final = 10_000
_TOGETHER: Final = 500  # subscribers that are read in one go
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
    """The change log of the catalogue. Versions before the last `compact` are gone from it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def changes(self, since: int, limit: int = _PAGE) -> list[CatalogueEntry]:
        """Give what changed after a version, in order; removals are entries without a form.

        The version of the last entry is where to go on; no entry: nothing changed.
        """
        work = partial(
            _changes, since=check_count("a version", since), limit=check_count("limit", limit, 1)
        )
        return [*read_entries(self._database.read(work))]

    def as_of(self, version: int | None = None) -> Iterator[CatalogueEntry]:
        """Give everything as it was at a version, or is now: subscribers first, then by id.

        It is read in pages and always the same, whatever is written meanwhile.
        """
        if version is None:
            version = self._database.read(_versions)[0]
        last: tuple[str, str] | None = ("", "")
        while last:
            rows = self._database.read(partial(_as_of, version=version, after=last))
            last = _next(self._database.name, last, rows)
            yield from read_entries(rows)

    def touched(self, since: int, upto: int) -> list[str]:
        """Give the subscribers of which something changed after one version, up to another."""
        work = partial(
            _touched, since=check_count("a version", since), upto=check_count("a version", upto)
        )
        return [name for (name,) in self._database.read(work)]

    def owned(self, subscribers: Iterable[str], version: int) -> Iterator[CatalogueEntry]:
        """Give subscribers and their subscriptions as they were at a version."""
        names = list(subscribers)
        for at in range(0, len(names), _TOGETHER):
            some = names[at : at + _TOGETHER]
            rows = self._database.read(partial(_owned, names=some, version=version))
            yield from read_entries(rows)

    def newest(self) -> int:
        """Give the version of the last change; 0 before the first."""
        return self._database.read(_versions)[0]

    def store_id(self) -> str:
        """Give what tells this store from every other one, for ever; a copy of it has the same."""
        return str(self._database.read(lambda session: session.rows("SELECT id FROM store"))[0][0])

    def compact(self, before: int) -> int:
        """Forget how it was before a version, as far as no pin needs it; give how far that was.

        What is there now stays, of course.
        """
        return self._database.write(partial(_compact, before=check_count("a version", before)))

    def pin(self, query: str, batch: int) -> int:
        """Give the version that a batch sees: the newest when it is first asked for, then that.

        Ask before the batch is computed, and again when it is replayed. The pin of a query's last
        batch holds back `compact`, until the next batch or `unpin`.
        """
        batch = check_count("a batch", batch)
        return self._database.write(partial(_pin, query=check_id("a query", query), batch=batch))

    def unpin(self, query: str) -> None:
        """Release the pin of a query that will not come back."""
        self._database.write(lambda session: session.run("DELETE FROM pins WHERE query = ?", query))


def _next(name: str, after: tuple[str, str], rows: Sequence[Row]) -> tuple[str, str] | None:
    """Return where the next page begins; None: this was the last one."""
    if len(rows) < _PAGE:
        return None
    kind, key = rows[-1][1:3]
    if not isinstance(kind, str) or not isinstance(key, str) or (kind, key) <= after:
        raise StoreError(f"{name}: it is damaged: its records do not come in order")
    return kind, key


def _versions(session: Session) -> tuple[int, int]:
    """Give the newest version, and the oldest that can still be asked for."""
    newest, oldest = session.rows("SELECT version, compacted FROM catalogue")[0]
    return int(newest), int(oldest)


def _check(session: Session, version: int) -> int:
    """Check a version that is asked for; give the newest."""
    newest, oldest = _versions(session)
    if version > newest:
        raise StoreError(f"there is no version {version} yet; the newest is {newest}")
    if version < oldest:
        raise VersionGone(
            f"version {version} is gone, the oldest kept is {oldest}; read everything anew"
        )
    return newest


def _changes(session: Session, since: int, limit: int) -> list[Row]:
    """Give the next `limit` versions; each that is kept is one record, begun or ended."""
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
    session.alone()
    newest, oldest = _versions(session)
    pinned = session.rows("SELECT min(version) FROM pins")[0][0]
    reached = max(oldest, min(before, newest, newest if pinned is None else pinned))
    session.run("DELETE FROM records WHERE until <= ?", reached)
    session.run("UPDATE catalogue SET compacted = ?", reached)
    return reached


def _pin(session: Session, query: str, batch: int) -> int:
    session.alone()
    found = session.rows("SELECT batch, version FROM pins WHERE query = ?", query)
    if found and batch <= found[0][0]:
        if batch < found[0][0]:
            raise StoreError(f"batch {batch} of {query} has no pin any more; {found[0][0]} has")
        return int(found[0][1])
    newest = _versions(session)[0]
    session.run(
        "INSERT INTO pins VALUES (?, ?, ?) ON CONFLICT (query) "
        "DO UPDATE SET batch = excluded.batch, version = excluded.version",
        query,
        batch,
        newest,
    )
    return newest
