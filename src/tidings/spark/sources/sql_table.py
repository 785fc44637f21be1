"""`tidings-table`: rows of an append-only SQL table in the order of its key.

The offset is the last key that was read; it is kept in the checkpoint of the query.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from tidings.errors import SourceError, shown
from tidings.formats.event_source import TABLE
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_integer,
    read_required,
)
from tidings.store import AppendOnlyTable, CommitHorizon, open_database

_LOG: Final = logging.getLogger(__name__)
_KNOWN: Final = ("url", "table", "key", "startingAfter", "maxRowsPerTrigger")
_TYPES: Final = {
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
}
_LOWEST: Final = -(2**63)
_PAGE: Final = 10_000
# How long to wait for transactions that have taken a key but not committed yet.
_TRIGGER_WAIT_S: Final = 1.0
_LAST_WAIT_S: Final = 30.0
_CONVERSION_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
KeyOffset = dict[str, int]


@dataclass(frozen=True)
class TableOptions:
    """The table to read, its key, where to start, and how much to read at once."""

    url: str = field(repr=False)
    table: str
    key: str
    after: int | None = None
    limit: int | None = None

    def open(self) -> AppendOnlyTable:
        """Open the table."""
        return AppendOnlyTable(open_database(self.url), self.table, self.key)


@dataclass(frozen=True)
class KeyRange(InputPartition):
    """The rows after one key, up to and including another."""

    after: int
    upto: int


class TableSource(DataSource):
    """A table of SQLite or PostgreSQL: `spark.readStream.format("tidings-table")`, or a batch."""

    @classmethod
    def name(cls) -> str:
        return TABLE

    def schema(self) -> StructType:
        """Return the columns of the table, after checking all options."""
        table = read_options(self.options).open()
        with closing(table.database):
            schema = StructType()
            for name, kind in table.columns():
                schema.add(name, _TYPES[kind])
            return schema

    def reader(self, schema: StructType) -> "TableReader":
        return TableReader(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> "TableStream":
        return TableStream(read_options(self.options), schema)


def read_options(texts: OptionTexts) -> TableOptions:
    """Return the options of a table."""
    check_names(TABLE, texts, _KNOWN)
    small = lower_names(texts)
    return TableOptions(
        read_required(TABLE, small, "url", "sqlite:///shop.db or postgresql://user@host/shop"),
        read_required(TABLE, small, "table", "outbox"),
        read_required(TABLE, small, "key", "id"),
        read_integer(small, "startingAfter", _LOWEST),
        read_integer(small, "maxRowsPerTrigger"),
    )


class TableReader(DataSourceReader):
    """A batch: all rows that are visible now."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        if options.limit is not None:
            raise SourceError(f"{TABLE}: maxRowsPerTrigger is for streams; this is a batch")
        self._options, self._schema = options, schema

    def partitions(self) -> list[InputPartition]:
        table = self._options.open()
        with closing(table.database):
            top = table.top()
        after = _LOWEST if self._options.after is None else self._options.after
        return [] if top is None else [KeyRange(after, top)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)


class TableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: a batch has at most `maxRowsPerTrigger` rows, by default all committed ones."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._until: int | None = None
        self._ends = False
        self._latest: int | None = None

    @cached_property
    def _horizon(self) -> CommitHorizon:
        return CommitHorizon(self._options.open())

    @property
    def _table(self) -> AppendOnlyTable:
        return self._horizon.table

    def initialOffset(self) -> KeyOffset:
        if self._options.after is not None:
            return {"key": self._options.after}
        bottom = self._table.bottom()
        return {"key": 0 if bottom is None else min(0, bottom - 1)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return (
            ReadAllAvailable() if self._options.limit is None else ReadMaxRows(self._options.limit)
        )

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends = True
        self._until = self._horizon.look(_LAST_WAIT_S)
        if self._until is None and self._table.top() is not None:
            _LOG.warning("%s is being written to; none of its rows are read", self._options.table)

    def latestOffset(self, start: KeyOffset, limit: ReadLimit) -> KeyOffset:
        after = start["key"]
        upto = self._until if self._ends else self._horizon.look(_TRIGGER_WAIT_S)
        self._latest = self._table.top()
        if self._latest is not None and self._latest < after:
            raise SourceError(
                f"{TABLE}: {self._options.table} was read up to key {after}, but its largest is "
                f"now {self._latest}: keys were reused, or rows at its end were deleted, which "
                "cannot be distinguished. Delete older rows first; if keys were reused, start with "
                "a new checkpoint"
            )
        if upto is None or upto <= after:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {"key": upto if most is None else self._table.end(after, upto, most)}

    def reportLatestOffset(self) -> KeyOffset | None:
        return None if self._latest is None else {"key": self._latest}

    def partitions(self, start: KeyOffset, end: KeyOffset) -> list[InputPartition]:
        return [KeyRange(start["key"], end["key"])] if start["key"] < end["key"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)

    def stop(self) -> None:
        if "_horizon" in vars(self):  # otherwise it was never opened
            self._table.database.close()


def _read(
    options: TableOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield rows page by page; the partition of an empty batch has none."""
    if not isinstance(partition, KeyRange):
        return
    table = options.open()
    with closing(table.database):
        kinds = {column.name: column for column in table.columns()}
        if missing := [name for name in schema.names if name not in kinds]:
            raise SourceError(f"{TABLE}: {options.table} has no column {missing[0]!r}")
        columns, after = [kinds[name] for name in schema.names], partition.after
        while rows := table.page(columns, after, partition.upto, _PAGE):
            yield rows_to_batch(options.table, rows, schema)
            after = rows[-1][0]


def rows_to_batch(
    table: str, rows: Sequence[tuple[Any, ...]], schema: StructType
) -> pa.RecordBatch:
    """Return rows, each of which starts with its key, as a batch without the keys.

    A cell that does not fit is refused with its row, column and value.
    """
    keys, *columns = zip(*rows, strict=True)
    arrow = to_arrow_schema(schema, timezone="UTC")
    arrays = []
    for column, cells in zip(arrow, columns, strict=True):
        try:
            arrays.append(_array(cells, column.type))
        except _CONVERSION_ERRORS:
            raise SourceError(_misfit(table, column, keys, cells)) from None
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _array(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    convert = _converter(kind)
    return pa.array([None if cell is None else convert(cell) for cell in cells], kind)


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_string(kind):
        return lambda cell: str(cell) if isinstance(cell, int | float) else cell
    if pa.types.is_boolean(kind):
        return lambda cell: bool(cell) if cell in (0, 1) else cell
    return lambda cell: cell


def _misfit(table: str, column: pa.Field, keys: Sequence[int], cells: Sequence[Any]) -> str:
    key, cell = next(
        (key, cell) for key, cell in zip(keys, cells, strict=True) if not _fits(cell, column.type)
    )
    return (
        f"{TABLE}: {table}, row {key}: column {column.name} is {column.type}, but {shown(cell)} "
        "does not fit; correct the row, or pass a schema in which the column is a string"
    )


def _fits(cell: Any, kind: pa.DataType) -> bool:
    try:
        _array([cell], kind)
    except _CONVERSION_ERRORS:
        return False
    return True
