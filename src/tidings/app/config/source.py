"""The table `[source]`: files or messages that both engines read, or any stream of Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidings.app.config.toml import (
    format_name,
    nonempty_text,
    read_settings,
    read_table,
    resolve_path_option,
    store_address,
)
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.arrow_by_row import EVENT_COLUMNS
from tidings.formats.event_source import (
    CHANGES,
    KAFKA,
    KINESIS,
    MQTT,
    NATS,
    OUTBOX,
    RSS,
    TABLE,
    UNREADABLE,
    Source,
    SparkSource,
    find_source,
)
from tidings.formats.files import SUFFIXES
from tidings.formats.layout import Layout
from tidings.formats.messages import AVRO, ENCODINGS, JSON, MessageForm, MessageSource
from tidings.formats.redaction import shown_safely
from tidings.formats.toml_file import Form
from tidings.model import validate

FILES: Final = tuple(suffix[1:] for suffix in SUFFIXES)
# A null value is read as the JSON null, so that it becomes a dead letter instead of vanishing.
_KAFKA: Final = {"value": "coalesce(cast(value as string), 'null')"}
_SPARK: Final = ("options", "schema", "select", "columns", "keep")
_SHORT_NAMES: Final = {
    "kinesis": KINESIS,
    "nats": NATS,
    "mqtt": MQTT,
    "rss": RSS,
    "outbox": OUTBOX,
    "postgres": CHANGES,
}
_MESSAGES: Final = (KAFKA, *_SHORT_NAMES.values())
_ADDRESSES: Final = {"url": (TABLE, OUTBOX, CHANGES), "spool": (MQTT, RSS)}
"""Options that are addresses of databases, relative to the config."""
_SQL: Final = ("schema", "select", "columns", "keep")
_SCHEMA_BYTES: Final = 1_000_000
_LAYOUT: Final = ("columns", "keep", "lists", "types", "generate")


def read_source(
    form: Form, base: Path, *, watched: bool = False
) -> Source | SparkSource | MessageSource:
    """Read `[source]`.

    It is a Spark source if it has Spark options or a format that we do not read. If files are
    `watched`, there need not be any yet.
    """
    if not isinstance(form, Mapping):
        read_table(form, "[source]")
    kind = form.get("format")
    if not isinstance(kind, str | None):
        raise InvalidForm(f"[source] format must be a string, not {shown_safely(kind)}")
    if kind in _SHORT_NAMES or (kind in _MESSAGES and not any(name in form for name in _SQL)):
        return _read_message_source(form, base)
    spark = any(name in form for name in _SPARK) or form.get("format", "jsonl") not in FILES
    if spark and "path" not in form:
        return _read_spark_source(form, base)
    return _read_files(form, base, watched=watched)


def _read_files(form: Form, base: Path, *, watched: bool) -> Source:
    optional = ("format", "files_per_batch", "unreadable", "content", *_LAYOUT)
    table = read_table(form, "[source]", ("path",), optional)
    with prefix_errors("[source] ", raised=InvalidForm):
        batch = validate.count("files_per_batch", table.get("files_per_batch", 1), InvalidForm)
        path = nonempty_text("path", table["path"])
        unreadable = table.get("unreadable", UNREADABLE[0])
        validate.choice("unreadable", unreadable, UNREADABLE, InvalidForm)
        source = find_source(base, path, table.get("format"), batch, watched=watched)
        shape = _read_shape(table, source.folder)
        return replace(source, unreadable=unreadable, **shape._asdict())


def _read_message_source(form: Form, base: Path) -> MessageSource:
    optional = ("options", "content", "encoding", "schema_file", *_LAYOUT)
    table = read_table(form, "[source]", ("format",), optional)
    kind = _SHORT_NAMES.get(str(table["format"]), str(table["format"]))
    with prefix_errors("[source] ", raised=InvalidForm):
        options = _options(kind, table.get("options", {}), base)
        if kind == KAFKA:  # an envelope may be in the headers
            options = {"includeHeaders": "true", **options}
        schema = _schema(base, table)
        encoding = table.get("encoding", JSON if schema is None else AVRO)
        validate.choice("encoding", encoding, ENCODINGS, InvalidForm)
        if (encoding == JSON) is not (schema is None):
            raise InvalidForm(f"encoding = {encoding!r} and schema_file cannot be combined")
        return MessageSource(
            kind, options, MessageForm(encoding, schema or "", *_read_shape(table))
        )


class EventShape(NamedTuple):
    """How records become events, and which of their attributes deliveries carry."""

    layout: Layout
    content: tuple[str, ...]
    hidden: tuple[str, ...]


def _read_shape(table: Form, root: Path | None = None) -> EventShape:
    columns, keep = _texts("columns", "names", table.get("columns", {})), _keep(table)
    content = _names("content", table.get("content", []))
    hidden = _hidden(content, columns, keep)
    layout = Layout(
        columns,
        None if keep is None else (*keep, *hidden),
        _texts("lists", "separators", table.get("lists", {})),
        _texts("types", "types", table.get("types", {})),
        generated := _names("generate", table.get("generate", [])),
        root if generated else None,
    )
    return EventShape(layout, content, hidden)


def _schema(base: Path, table: Form) -> str | None:
    """Return the text of the schema file, if there is one."""
    if "schema_file" not in table:
        return None
    path = base / nonempty_text("schema_file", table["schema_file"])
    try:
        with prefix_errors(f"schema_file {path}: ", raised=InvalidForm):
            return validate.file_bytes(path, _SCHEMA_BYTES).decode(errors="replace")
    except OSError as error:
        raise InvalidForm(f"schema_file {path}: {error.strerror or error}") from None


def _keep(table: Form) -> tuple[str, ...] | None:
    return _names("keep", table["keep"]) if "keep" in table else None


def _hidden(content: Sequence[str], columns: Form, keep: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that are content only, because `keep` does not list them."""
    attributes = {*columns, *EVENT_COLUMNS, *(content if keep is None else keep)}
    return tuple(name for name in content if name not in attributes)


def _names(name: str, form: Any) -> tuple[str, ...]:
    if not isinstance(form, list):
        raise InvalidForm(f"{name} must be a list of names, not {shown_safely(form)}")
    return tuple(nonempty_text(name, item) for item in form)


def _read_spark_source(form: Form, base: Path) -> SparkSource:
    table = read_table(form, "[source]", ("format",), (*_SPARK, "content"))
    with prefix_errors("[source] ", raised=InvalidForm):
        kind = format_name(table["format"])
        columns = _texts("columns", "SQL expressions", table.get("columns", {}))
        if columns and "select" in table:
            raise InvalidForm("columns and select cannot be combined; remove one of them")
        if kind in ("kafka", KAFKA) and not columns and "select" not in table:
            columns = _KAFKA
        return SparkSource(
            kind,
            _options(kind, table.get("options", {}), base),
            _optional_text("schema", table),
            columns,
            _optional_text("select", table),
            keep=_kept_columns(kind, columns, table),
            content=(content := _names("content", table.get("content", []))),
            hidden=_hidden(content, columns, _keep(table)),
        )


def _kept_columns(kind: str, columns: Form, table: Form) -> tuple[str, ...] | None:
    """Return the other columns to keep: by default all, or none if there is a message column."""
    is_message = kind in ("kafka", KAFKA) or columns.keys() <= {"value", "reason"}
    return () if columns and is_message and "keep" not in table else _keep(table)


def _options(kind: str, form: Any, base: Path) -> dict[str, str]:
    options = resolve_path_option(base, read_settings("options", form))
    for key, kinds in _ADDRESSES.items():
        if kind in kinds and key in options:
            options[key] = store_address(f"options {key}", options[key], base).url
    return options


def _optional_text(name: str, table: Form) -> str | None:
    return nonempty_text(name, table[name]) if name in table else None


def _texts(name: str, what: str, form: Any) -> dict[str, str]:
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{name} must be a table of {what} by name, not {shown_safely(form)}")
    return {column: nonempty_text(f"{name} {column}", text) for column, text in form.items()}
