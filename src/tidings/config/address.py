"""The address of a store in a config."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tidings import checks
from tidings.errors import InvalidForm

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql", "postgres")


@dataclass(frozen=True)
class Address:
    """Where a store is (`url`, for `open_store`), and the same without a password (`shown`).

    `file` is that of SQLite.
    """

    url: str = field(repr=False)
    shown: str
    file: Path | None = None

    def __str__(self) -> str:
        return self.shown


def read_address(what: str, value: object, base: Path) -> Address:
    """Read the address of a store; the path of an SQLite file is seen from the folder `base`."""
    text = checks.name(what, value, InvalidForm)
    if text.startswith(_SQLITE) and len(text) > len(_SQLITE):
        path, mark, mode = text.removeprefix(_SQLITE).partition("?")
        file = base / unquote(path)
        url = f"{_SQLITE}{file.resolve()}".replace("%", "%25")
        return Address(f"{url}{mark}{mode}", str(file), file)
    parts = urlsplit(text)
    if parts.scheme in _POSTGRES and parts.path:
        return Address(text, f"postgresql:{parts.netloc.rpartition('@')[2]}{parts.path}")
    raise InvalidForm(
        f"{what} is sqlite:///file.db or postgresql://user@host/database, not {text!r}"
    )
