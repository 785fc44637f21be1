"""Publications as DataFrames: which schemas can be read, and how their rows become events."""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.formats.arrow import (
    ReadEvents,
    read_event_columns,
    read_event_numbers,
    read_events,
    read_valid_events,
)
from tidings.formats.arrow_by_column import EventNumbers
from tidings.formats.event_source import showing
from tidings.formats.files import read_event_line
from tidings.model.dead_letter import BadRecord, Failure, try_call
from tidings.model.event_columns import ColumnEvents
from tidings.model.limits import CONTENT, TRUSTED, Limits, check_limits
from tidings.model.records import Event
from tidings.spark.match_stage.matcher_source import MatcherSource

_LINES: Final = (["value"], ["value", "reason"])


@dataclass(frozen=True)
class ReadRenamed:
    """Reads rows of which some columns travel under other names."""

    read: ReadEvents
    names: Mapping[str, str]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read a batch with its columns under their original names."""
        return self.read(batch.rename_columns([self.names.get(n, n) for n in batch.schema.names]))


@dataclass(frozen=True)
class ReadShowing:
    """Reads events, and takes some of their attributes into their content as well."""

    read: ReadEvents
    names: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read a batch."""
        return showing(self.read(batch), self.names)


@dataclass(frozen=True)
class ReadColumns:
    """Reads events from columns, of which all but a few are attributes."""

    limits: Limits = TRUSTED

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read a batch."""
        return read_valid_events(batch, limits=self.limits)

    def columns(self, batch: pa.RecordBatch) -> ColumnEvents | None:
        """Read a batch by column, or return None if it has to be read by event."""
        return read_event_columns(batch, limits=self.limits)

    def numbers(self, batch: pa.RecordBatch, names: Sequence[str]) -> EventNumbers | None:
        """Read some attributes of a batch of numbers, or return None if it may hold others."""
        return read_event_numbers(batch, names, limits=self.limits)


@dataclass(frozen=True)
class ReadLines:
    """Reads events from text lines, each the JSON form of one (the column `value`).

    A line that another reader refused carries its `reason`. A line that is above the limits, null
    or not UTF-8 is a bad record.
    """

    limits: Limits = TRUSTED

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read the lines of a batch."""
        reasons = _texts(batch.column("reason")) if "reason" in batch.schema.names else []
        pairs = zip_longest(_texts(batch.column("value")), reasons)
        for position, (line, reason) in enumerate(pairs, start=1):
            if reason:
                yield BadRecord(_record(line), str(reason), position)
            else:
                yield self._event(line, position)

    def _event(self, line: str | bytes | None, position: int) -> Event | BadRecord:
        if line is None:
            return BadRecord({}, "the line is null", position)
        if isinstance(line, bytes):
            return BadRecord(_record(line), "the line is not UTF-8", position)
        return read_event_line(line, position, limits=self.limits)


def _texts(column: pa.Array) -> list[Any]:
    """Return texts, as bytes where they are not UTF-8: Spark does not check the files it reads."""
    texts: list[Any] | Failure = try_call(column.to_pylist)
    if not isinstance(texts, Failure):
        return texts
    cells = [try_call(column.slice(row, 1).to_pylist) for row in range(len(column))]
    raw = column.cast(pa.large_binary()).to_pylist()
    pairs = zip(cells, raw, strict=True)
    return [body if isinstance(cell, Failure) else cell[0] for cell, body in pairs]


def _record(line: object) -> Mapping[str, Any]:
    """Return the JSON object in a refused line, or its text."""
    if isinstance(line, bytes):
        return {"text": line.decode(errors="replace")}
    form = try_call(json.loads, line)
    if isinstance(form, Failure):
        return {"text": line}
    return form if isinstance(form, dict) else {"value": form}


def readable(
    publications: DataFrame,
    *others: str,
    limits: Limits = TRUSTED,
    content: Sequence[str] = (),
) -> tuple[DataFrame, ReadEvents]:
    """Return publications that Spark can hand to Python, and the reader of their rows.

    `others` are columns that are not read, `content` those that events carry to their deliveries. A
    schema without publications is refused. When Spark hands rows to Python, it takes a dot in a
    column name for a field of a struct, so such columns travel under another name.
    """
    check_frame("publications", publications)
    if publications.drop(*others).columns not in _LINES:
        publications = _with_nested_content(publications, content)
    read = event_reader(publications.drop(*others), check_limits(limits, InvalidPolicy))
    read = ReadShowing(read, tuple(content)) if content else read
    dotted = [name for name in publications.columns if {".", "`"} & {*name}]
    if not dotted:
        return publications, read
    prefix = "tidings_name_"
    while any(name.lower().startswith(prefix) for name in publications.columns):
        prefix += "_"
    safe = {name: f"{prefix}{number}" for number, name in enumerate(dotted)}
    frame = publications.toDF(*(safe.get(name, name) for name in publications.columns))
    return frame, ReadRenamed(read, {short: name for name, short in safe.items()})


def _with_nested_content(publications: DataFrame, content: Sequence[str]) -> DataFrame:
    """Move columns of content that no attribute can hold, such as structs, into content.

    A name that is not a column is refused.
    """
    if not content:
        return publications
    check_frame("publications", publications, content)
    nested = [name for name in content if _is_nested(publications.schema[name].dataType)]
    if not nested:
        return publications
    if CONTENT in publications.columns:
        raise InvalidForm(f"content: {nested[0]} is nested, so put it into the column content")
    fields = f.struct(*(f.col(quoted(name)).alias(name) for name in nested))
    return publications.withColumn(CONTENT, fields).drop(*nested)


def quoted(name: str) -> str:
    """Return the name of a column as SQL writes it, since a dot would mean a field of a struct."""
    return "`" + name.replace("`", "``") + "`"


def _is_nested(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        kind = kind.elementType
    return isinstance(kind, StructType | MapType | ArrayType)


def check_frame(what: str, value: object, columns: Iterable[str] = ()) -> None:
    """Refuse a value that is not a DataFrame, or lacks some columns."""
    if not isinstance(value, DataFrame):
        raise InvalidForm(f"{what} must be a Spark DataFrame, not {type(value).__name__}")
    if missing := [name for name in columns if name not in value.columns]:
        raise InvalidForm(f"{what} lack the columns {missing}")


def event_reader(publications: DataFrame, limits: Limits = TRUSTED) -> ReadEvents:
    """Return the reader of a DataFrame's rows; a schema without publications is refused.

    A DataFrame with the one column `value` (`spark.read.text`) holds the JSON form of an event per
    line; it may also have a column `reason`, for lines that another reader refused.
    """
    if publications.columns in _LINES:
        for column in publications.schema:
            if not isinstance(column.dataType, StringType | BinaryType | NullType):
                kind = column.dataType.simpleString()
                raise InvalidForm(f"column {column.name} holds {kind}; it is text, one event a row")
        return ReadLines(limits)
    read_events(pa.schema(map(_arrow_field, publications.schema)).empty_table())
    _check_case(publications)
    return ReadColumns(limits)


def _arrow_field(column: StructField) -> pa.Field:
    """Return a column as Arrow has it; refuse a type that it has not."""
    try:
        return to_arrow_schema(StructType([column]), timezone="UTC").field(0)
    except (PySparkTypeError, ValueError):  # the latter for arrays and maps without a type
        kind = column.dataType.simpleString()
        raise InvalidForm(
            f"column {column.name} holds {kind}, which cannot be read; cast it, such as to string "
            "or array<string>, or drop it"
        ) from None


def _check_case(publications: DataFrame) -> None:
    """Refuse names that Spark cannot tell apart, since it ignores the case of letters."""
    names = dict[str, str]()
    is_exact = publications.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    for name in () if is_exact else publications.columns:
        if (other := names.setdefault(name.lower(), name)) != name:
            raise InvalidForm(f"columns {other} and {name} differ only in case; rename one of them")


def check_sequences(publications: DataFrame, source: MatcherSource) -> None:
    """Refuse publications without sequence numbers if some window counts published events.

    If subscribers may change during the stream, it is only a warning: one subscriber that counts
    must not stop the others.
    """
    numbered = "sequence" in publications.columns or publications.columns in _LINES
    if numbered or not source.counts_published():
        return
    message = (
        'a subscriber counts published events (count="published"), so the publications need a '
        "column sequence"
    )
    if not source.follows:
        raise InvalidPolicy(message)
    warnings.warn(f"{message}; without it, such subscribers get nothing", stacklevel=4)
