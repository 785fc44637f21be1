"""`[source]`: files that both engines read, or whatever Spark can read as a stream."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tidings.app.config.toml import Form, naming, settings, store_address, table
from tidings.errors import InvalidForm
from tidings.formats.event_source import KAFKA, TABLE, UNREADABLE, Source, SparkSource, find_source
from tidings.formats.files import SUFFIXES
from tidings.formats.redaction import shown_safely
from tidings.model import validate

FILES: Final = tuple(suffix[1:] for suffix in SUFFIXES)
_KAFKA: Final = {"value": "coalesce(cast(value as string), 'null')"}
_NAME: Final = re.compile(r"[A-Za-z_][\w.$\-]*")
_SPARK: Final = ("options", "schema", "columns", "select")


def read_source(form: Form, base: Path) -> Source | SparkSource:
    """Read `[source]`; it is Spark's if the format is none of ours, or if it has options."""
    if not isinstance(form, Mapping):
        table(form, "[source]")
    spark = any(name in form for name in _SPARK) or form.get("format", "jsonl") not in FILES
    if spark and "path" not in form:
        return _spark(form, base)
    return _files(form, base)


def _files(form: Form, base: Path) -> Source:
    found = table(form, "[source]", ("path",), ("format", "files_per_batch", "unreadable"))
    with naming("[source] "):
        batch = validate.count("files_per_batch", found.get("files_per_batch", 1), InvalidForm)
        path = text_of("path", found["path"])
        unreadable = found.get("unreadable", UNREADABLE[0])
        validate.choice("unreadable", unreadable, UNREADABLE, InvalidForm)
        return replace(find_source(base, path, found.get("format"), batch), unreadable=unreadable)


def _spark(form: Form, base: Path) -> SparkSource:
    found = table(form, "[source]", ("format",), _SPARK)
    with naming("[source] "):
        kind = format_name(found["format"])
        columns = _texts("columns", found.get("columns", {}))
        if columns and "select" in found:
            raise InvalidForm("columns and select say the same; give one of them")
        if kind in ("kafka", KAFKA) and not columns and "select" not in found:
            columns = _KAFKA
        return SparkSource(
            kind,
            _options(kind, found.get("options", {}), base),
            _text("schema", found),
            columns,
            _text("select", found),
        )


def _options(kind: str, form: Any, base: Path) -> dict[str, str]:
    found = seen_from(base, settings("options", form))
    if kind != TABLE or "url" not in found:
        return found
    return {**found, "url": store_address("options url", found["url"], base).url}


def seen_from(base: Path, options: dict[str, str]) -> dict[str, str]:
    """Give options with a `path` as it is seen from the folder of the config."""
    path = options.get("path")
    if path is None or "://" in path:
        return options
    return {**options, "path": str((base / path).resolve())}


def text_of(name: str, value: object) -> str:
    """Check a text that must be there; one that looks like an address is not shown."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidForm(f"{name} holds the character NUL")
    if isinstance(value, str) and value and validate.encodable(value):
        return value
    raise InvalidForm(f"{name} is a non-empty string, not {shown_safely(value)}")


def format_name(value: object) -> str:
    """Check the format of a source or sink: the name of one of ours, of Spark's, or of a class."""
    text = text_of("format", value)
    if not _NAME.fullmatch(text):
        raise InvalidForm(f"format is a name such as 'kafka', not {shown_safely(text)}")
    return text


def _text(name: str, found: Form) -> str | None:
    return text_of(name, found[name]) if name in found else None


def _texts(name: str, form: Any) -> dict[str, str]:
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{name} is a table of SQL expressions by name, not {shown_safely(form)}")
    return {each: text_of(f"{name} {each}", text) for each, text in form.items()}
