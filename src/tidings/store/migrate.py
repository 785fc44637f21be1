"""The schema of a store: plain SQL files in order, applied when it is opened."""

from dataclasses import dataclass
from importlib import resources

from tidings.errors import StoreError, shown
from tidings.store.protocol import Database, Session


@dataclass(frozen=True)
class Migration:
    """One step of the schema. A file that was released never changes; a new one follows it."""

    number: int
    name: str
    statements: tuple[str, ...]


def migrations(dialect: str) -> list[Migration]:
    """Give all steps for a database, in order."""
    folder = resources.files("tidings.store") / "migrations" / dialect
    files = sorted((each for each in folder.iterdir()), key=lambda each: each.name)
    return [read_migration(each.name, each.read_text("utf-8")) for each in files]


def read_migration(file: str, text: str) -> Migration:
    """Read a step: the file's name has its number, the text statements and lines of comment."""
    number, _, name = file.removesuffix(".sql").partition("_")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    statements = (each.strip() for each in "\n".join(lines).split(";\n"))
    return Migration(int(number), name, tuple(each.rstrip(";") for each in statements if each))


def migrate(database: Database) -> None:
    """Bring a database to the newest schema, whole or not at all; a newer one is refused."""
    steps = migrations(database.dialect)
    if _behind(database, steps, database.read(_version)):
        database.write(lambda session: _apply(session, database, steps))


def _version(session: Session) -> int:
    if not session.has_table("migrations"):
        return 0
    found = session.rows("SELECT max(number) FROM migrations")[0][0]
    if not isinstance(found, int) or found < 0:
        raise TypeError(f"the number of its schema is {shown(found)}")
    return found


def _behind(database: Database, steps: list[Migration], version: int) -> bool:
    newest = steps[-1].number
    if version > newest:
        raise StoreError(
            f"{database.name} has schema {version}, and this Tidings knows up to {newest}; "
            "a newer Tidings wrote it, so install that one, or open another store"
        )
    return version < newest


def _apply(session: Session, database: Database, steps: list[Migration]) -> None:
    """Apply what is missing; another process may have done it in the meantime."""
    session.alone()
    version = _version(session)
    if _behind(database, steps, version):
        for step in steps:
            if step.number > version:
                for statement in step.statements:
                    session.run(statement)
                session.run("INSERT INTO migrations VALUES (?, ?)", step.number, step.name)
