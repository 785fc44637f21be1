"""The schema of a store: SQL migrations, applied in order when it is opened."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from tidings.errors import StoreError, shown
from tidings.store.protocol import Database, Session

_EXISTS: Final = "CREATE SCHEMA IF NOT EXISTS"
_SCHEMA: Final = f"{_EXISTS} tidings"
_TABLE: Final = re.compile(r"CREATE TABLE (\w+)")


@dataclass(frozen=True)
class Migration:
    """One step of the schema. A released file never changes; a new file follows it."""

    number: int
    name: str
    statements: tuple[str, ...]


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """Return all migrations for a kind of database, in order."""
    folder = resources.files("tidings.store") / "migrations" / dialect
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(read_migration(file.name, file.read_text("utf-8")) for file in files)


def read_migration(file: str, text: str) -> Migration:
    """Parse a migration: its number is in the name of the file; comments are whole lines."""
    number, _, name = file.removesuffix(".sql").partition("_")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    statements = (part.strip() for part in "\n".join(lines).split(";\n"))
    return Migration(int(number), name, tuple(part.rstrip(";") for part in statements if part))


def migrate(database: Database) -> None:
    """Upgrade a database to the newest schema, atomically; a newer schema is refused."""
    steps = migrations(database.dialect)
    database.read(lambda session: session.check_tables(_tables(steps)))
    if _is_behind(database, steps, database.read(_version)):
        database.write(lambda session: _apply(session, database, steps))


def _tables(steps: Sequence[Migration]) -> frozenset[str]:
    """Return the names of all tables that migrations create."""
    statements = (statement for step in steps for statement in step.statements)
    return frozenset(name for statement in statements for name in _TABLE.findall(statement))


def _version(session: Session) -> int:
    if not session.has_table("migrations"):
        return 0
    version = session.rows("SELECT max(number) FROM migrations")[0][0]
    if not isinstance(version, int) or version < 0:
        raise TypeError(f"the number of its schema is {shown(version)}")
    return version


def _is_behind(database: Database, steps: Sequence[Migration], version: int) -> bool:
    newest = steps[-1].number
    if version > newest:
        raise StoreError(
            f"{database.name} has schema {version}, but this version of Tidings supports only up "
            f"to {newest}; install the newer version that wrote it, or open another store"
        )
    return version < newest


def _apply(session: Session, database: Database, steps: Sequence[Migration]) -> None:
    """Apply the missing migrations; another process may have done so in the meantime."""
    session.lock()
    version = _version(session)
    if _is_behind(database, steps, version):
        for step in steps:
            if step.number > version:
                for statement in step.statements:
                    session.run(statement.replace(_SCHEMA, f"{_EXISTS} {database.schema}"))
                session.run("INSERT INTO migrations VALUES (?, ?)", step.number, step.name)
