"""The table `[sink]`: a folder, a store, or any format that Spark can write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidings.app.config.toml import (
    format_name,
    nonempty_text,
    read_settings,
    read_table,
    resolve_path_option,
    store_address,
)
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.redaction import shown_safely
from tidings.formats.toml_file import Form
from tidings.store.address import Address

FOLDERS: Final = ("parquet", "jsonl")
STORE: Final = "store"
# The value is the form of a delivery. Window and content are JSON already, so they are spliced in.
KAFKA: Final = """
    select subscriber as key, concat(
        trim(trailing '}' from to_json(
            struct(subscriber, event, rank, position, matched, sequence, delivered_at),
            map('timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"))),
        ',"window":', window, coalesce(concat(',"content":', content), ''), '}') as value
    from deliveries"""


@dataclass(frozen=True)
class SinkConfig:
    """The output folder of a run, and the destination of its deliveries.

    The formats parquet and jsonl write to the folder, `store` writes to a store. Any other format
    is Spark's: it is opened with `options` and gets the rows that the query `select` returns from
    the table `deliveries`.
    """

    path: Path
    format: str = FOLDERS[0]
    store: Address | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    select: str | None = None

    @property
    def is_spark(self) -> bool:
        """Whether only Spark can write this format."""
        return self.format not in (*FOLDERS, STORE)

    @property
    def label(self) -> str:
        """The destination of the deliveries, in one line."""
        if self.store is not None:
            return str(self.store)
        return f"{self.format} ({self.path})" if self.is_spark else str(self.path)


def read_sink(form: Form, base: Path) -> SinkConfig:
    """Read `[sink]`; with a `store`, that is the default format."""
    table = read_table(form, "[sink]", ("path",), ("format", "store", "options", "select"))
    with prefix_errors("[sink] ", raised=InvalidForm):
        path = _folder(base, nonempty_text("path", table["path"]))
        default = STORE if "store" in table else FOLDERS[0]
        kind = format_name(table.get("format", default))
        _check_keys(kind, table)
        store = store_address("store", table["store"], base) if kind == STORE else None
        options = resolve_path_option(base, read_settings("options", table.get("options", {})))
        select = table.get("select", KAFKA if kind == "kafka" else None)
        if select is not None:
            nonempty_text("select", select)
        return SinkConfig(path, kind, store, options, select)


def _folder(base: Path, name: str) -> Path:
    """Return the path of a folder that exists or can be created."""
    path = base / name
    try:
        is_file = path.exists() and not path.is_dir()
    except OSError as error:  # the name is too long, or a parent folder is not accessible
        reason = error.strerror or type(error).__name__
        raise InvalidForm(f"path {shown_safely(name)} cannot be a folder: {reason}") from None
    if is_file:
        raise InvalidForm(f"path must be a folder, but {shown_safely(name)} is a file")
    return path


def _check_keys(kind: str, table: Form) -> None:
    """Refuse keys that do not apply to the format, which are usually typos."""
    if kind == STORE and "store" not in table:
        raise InvalidForm("store is missing: set its address, such as sqlite:///file.db")
    if kind != STORE and "store" in table:
        raise InvalidForm(f"store requires format = 'store', not {kind!r}")
    if kind in (*FOLDERS, STORE):
        for name in ("options", "select"):
            if name in table:
                raise InvalidForm(f"{name} requires a Spark format, not {kind!r}")
    elif "options" not in table:
        listed = ", ".join((*FOLDERS, STORE))
        raise InvalidForm(
            f"unknown format {kind!r}; expected one of: {listed}, or a format of Spark with "
            "[sink.options]"
        )
