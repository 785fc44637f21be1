"""How PostgreSQL tells of a table that only grows.

Keys become visible out of order there: a transaction may take a smaller one and commit later. An
INSERT locks its table before it takes a key, and the lock goes after the commit is seen; so who
has taken a key and is not over yet is among those that hold such a lock.
"""

from typing import Final

from tidings.errors import StoreError
from tidings.store.dialect import ColumnInfo
from tidings.store.protocol import Session

PREPARED: Final = "prepared"
"""Names any transaction of two phases: what it was named before it was prepared is not told."""
_COLUMNS: Final = """
    SELECT a.attname, format_type(a.atttypid, NULL), a.attname = ? AND a.attnotnull AND EXISTS (
        SELECT 1 FROM pg_index AS i
        WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
        AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    )
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.oid = to_regclass(?) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum"""
_SEQUENCE: Final = """
    SELECT seqcache, seqincrement, seqcycle FROM pg_sequence
    WHERE seqrelid = to_regclass(pg_get_serial_sequence(?, ?))"""
_WRITERS: Final = f"""
    SELECT DISTINCT CASE WHEN pid IS NULL THEN '{PREPARED}' ELSE virtualtransaction END
    FROM pg_locks
    WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (
        relation = to_regclass(?)
        OR relation IN (SELECT relid FROM pg_partition_tree(to_regclass(?)))
    )"""
_KINDS: Final = {
    "smallint": "long",
    "integer": "long",
    "bigint": "long",
    "real": "double",
    "double precision": "double",
    "numeric": "double",
    "boolean": "boolean",
    "bytea": "binary",
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp",
}
_CASTS: Final = {"string": "::text", "double": "::float8"}


def columns(session: Session, table: str, key: str) -> list[ColumnInfo]:
    """Give the columns, as `Telling` says.

    A sequence whose numbers do not come in order of time is refused.
    """
    told = session.rows(_COLUMNS, key, table)
    if any(name == key for name, *_ in told):
        for cache, increment, cycle in session.rows(_SEQUENCE, table, key):
            if cache > 1 or increment < 1 or cycle:
                raise StoreError(
                    f"the sequence of {table} gives keys out of order (CACHE {cache}, INCREMENT "
                    f"{increment}{', CYCLE' if cycle else ''}); it needs CACHE 1, a positive "
                    "INCREMENT and NO CYCLE"
                )
    return [ColumnInfo(name, _KINDS.get(kind, "string"), unique) for name, kind, unique in told]


def writers(session: Session, table: str) -> frozenset[str]:
    """Name the transactions that may have taken a key and are not over yet.

    A standby does not know of them, and is refused.
    """
    if session.rows("SELECT 1 WHERE pg_is_in_recovery()"):
        raise StoreError(
            "this PostgreSQL is a standby, which does not know who is writing; read a stream of "
            "a table from the primary"
        )
    return frozenset(name for (name,) in session.rows(_WRITERS, table, table))


def cell(column: str, kind: str) -> str:
    """Give the SQL of a column by its kind: what is none of ours is text."""
    return f"{column}{_CASTS.get(kind, '')}"
