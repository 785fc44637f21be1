"""`[sink]`: a folder, a store, or whatever Spark can write to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidings.app.config.source import format_name, seen_from, text_of
from tidings.app.config.toml import Form, naming, settings, store_address, table
from tidings.errors import InvalidForm
from tidings.formats.redaction import shown_safely
from tidings.store.address import Address

FOLDERS: Final = ("parquet", "jsonl")
STORE: Final = "store"
_KAFKA: Final = "select subscriber as key, to_json(struct(*)) as value from deliveries"


@dataclass(frozen=True)
class Sink:
    """A folder for what a run leaves behind, and where its deliveries go.

    The formats parquet and jsonl write into the folder, `store` into a store; any other is Spark's,
    with `options`, and gets what the query `select` makes of the table `deliveries`.
    """

    path: Path
    format: str = FOLDERS[0]
    store: Address | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    select: str | None = None

    @property
    def is_spark(self) -> bool:
        """Tell whether Spark alone knows this format."""
        return self.format not in (*FOLDERS, STORE)

    @property
    def label(self) -> str:
        """Name the place where deliveries go."""
        if self.store is not None:
            return str(self.store)
        return f"{self.format} ({self.path})" if self.is_spark else str(self.path)


def read_sink(form: Form, base: Path) -> Sink:
    """Read `[sink]`; with a `store` that is its format."""
    found = table(form, "[sink]", ("path",), ("format", "store", "options", "select"))
    with naming("[sink] "):
        path = base / text_of("path", found["path"])
        if path.exists() and not path.is_dir():
            raise InvalidForm(f"path is a folder, and {shown_safely(found['path'])} is a file")
        default = STORE if "store" in found else FOLDERS[0]
        kind = format_name(found.get("format", default))
        _check_keys(kind, found)
        store = store_address("store", found["store"], base) if kind == STORE else None
        options = seen_from(base, settings("options", found.get("options", {})))
        select = found.get("select", _KAFKA if kind == "kafka" else None)
        if select is not None:
            text_of("select", select)
        return Sink(path, kind, store, options, select)


def _check_keys(kind: str, found: Form) -> None:
    """Refuse keys that this format has no use for, which are mostly a slip of the pen."""
    if kind == STORE and "store" not in found:
        raise InvalidForm("store is missing: the address of the store, sqlite:///file.db")
    if kind != STORE and "store" in found:
        raise InvalidForm(f"store goes with format = 'store', not {kind!r}")
    if kind in (*FOLDERS, STORE):
        for name in ("options", "select"):
            if name in found:
                raise InvalidForm(f"{name} goes with a format of Spark, not {kind!r}")
    elif "options" not in found:
        listed = ", ".join(map(repr, (*FOLDERS, STORE)))
        raise InvalidForm(
            f"format is one of {listed}, or one of Spark with [sink.options], not {kind!r}"
        )
