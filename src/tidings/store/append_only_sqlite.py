"""How SQLite tells of a table that only grows."""

from typing import Final

from tidings.errors import StoreError
from tidings.store.dialect import ColumnInfo
from tidings.store.protocol import Session

_COLUMNS: Final = """SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid"""
_INDEXED: Final = """
    SELECT 1 FROM pragma_index_list(?) AS i WHERE i."unique" AND NOT i.partial
    AND (SELECT group_concat(name) FROM pragma_index_info(i.name)) = ?"""
# The rules of SQLite by which the words of a type give its affinity, in their order.
_KINDS: Final = (
    ("INT", "long"),
    ("BOOL", "boolean"),
    ("CHAR", "string"),
    ("CLOB", "string"),
    ("TEXT", "string"),
    ("BLOB", "binary"),
    ("REAL", "double"),
    ("FLOA", "double"),
    ("DOUB", "double"),
    ("NUM", "double"),
    ("DEC", "double"),
)


def columns(session: Session, table: str, key: str) -> list[ColumnInfo]:
    """Give the columns, as `Telling` says; a key is the number of a row, or has an index."""
    if "." in table:
        raise StoreError(f"tables of SQLite have no schema before their name, as {table}")
    name = table.strip('"')
    told = session.rows(_COLUMNS, name)
    numbered = [each for each, kind, _, place in told if place and kind.upper() == "INTEGER"]
    alone = numbered if sum(1 for *_, place in told if place) == 1 else []
    indexed = [key] if session.rows(_INDEXED, name, key) else []
    return [
        ColumnInfo(each, _kind(kind), each == key and (each in alone or bool(filled and indexed)))
        for each, kind, filled, _ in told
    ]


def writers(session: Session, table: str) -> frozenset[str]:
    """Give none: SQLite has one writer at a time, and a key is taken when it is written."""
    del session, table
    return frozenset()


def cell(column: str, kind: str) -> str:
    """Give the SQL of a column."""
    del kind
    return column


def _kind(declared: str) -> str:
    return next((kind for word, kind in _KINDS if word in declared.upper()), "string")
