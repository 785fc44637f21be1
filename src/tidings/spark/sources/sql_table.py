"""`tidings-table`: rows of a SQL table that only grows, in the order of its key.

The offset is the last key that was read; it lives in the checkpoint of the query.
"""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
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

from tidings.errors import SourceError
from tidings.formats.event_source import TABLE
from tidings.spark.sources.options import Given, check_known, lowered, needed, whole
from tidings.spark.sources.sql_to_arrow import as_batch
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
# For writers who took a key before: within a trigger, and before a run that ends.
_SHORTLY_S: Final = 1.0
_PATIENTLY_S: Final = 30.0
Form = dict[str, int]


@dataclass(frozen=True)
class TableOptions:
    """Which table to read, by which key, from where, and how much at once."""

    url: str = field(repr=False)
    table: str
    key: str
    after: int | None = None
    limit: int | None = None

    def open(self) -> AppendOnlyTable:
        """Open the table."""
        return AppendOnlyTable(open_database(self.url), self.table, self.key)


@dataclass(frozen=True)
class Keys(InputPartition):
    """The rows after a key up to another."""

    after: int
    upto: int


class TableSource(DataSource):
    """A table of SQLite or PostgreSQL: `spark.readStream.format("tidings-table")`, or a batch."""

    @classmethod
    def name(cls) -> str:
        return TABLE

    def schema(self) -> StructType:
        """Give the columns of the table; all options are checked."""
        table = read_options(self.options).open()
        with closing(table.database):
            found = StructType()
            for name, kind in table.columns():
                found.add(name, _TYPES[kind])
            return found

    def reader(self, schema: StructType) -> "TableReader":
        return TableReader(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> "TableStream":
        return TableStream(read_options(self.options), schema)


def read_options(given: Given) -> TableOptions:
    """Read the options."""
    check_known(TABLE, given, _KNOWN)
    small = lowered(given)
    return TableOptions(
        needed(TABLE, small, "url", "sqlite:///shop.db or postgresql://user@host/shop"),
        needed(TABLE, small, "table", "outbox"),
        needed(TABLE, small, "key", "id"),
        whole(small, "startingAfter", _LOWEST),
        whole(small, "maxRowsPerTrigger"),
    )


class TableReader(DataSourceReader):
    """A batch: all rows that are visible now."""

    def __init__(self, wanted: TableOptions, schema: StructType) -> None:
        if wanted.limit is not None:
            raise SourceError(f"{TABLE}: maxRowsPerTrigger is for streams; this is a batch")
        self._wanted, self._schema = wanted, schema

    def partitions(self) -> list[InputPartition]:
        table = self._wanted.open()
        with closing(table.database):
            top = table.top()
        after = _LOWEST if self._wanted.after is None else self._wanted.after
        return [] if top is None else [Keys(after, top)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._wanted, self._schema, partition)


class TableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: each batch takes `maxRowsPerTrigger` rows at most, all that are settled if not."""

    def __init__(self, wanted: TableOptions, schema: StructType) -> None:
        self._wanted, self._schema = wanted, schema
        self._until: int | None = None
        self._ends = False
        self._latest: int | None = None

    @cached_property
    def _settled(self) -> CommitHorizon:
        return CommitHorizon(self._wanted.open())

    @property
    def _table(self) -> AppendOnlyTable:
        return self._settled.table

    def initialOffset(self) -> Form:
        if self._wanted.after is not None:
            return {"key": self._wanted.after}
        bottom = self._table.bottom()
        return {"key": 0 if bottom is None else min(0, bottom - 1)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._wanted.limit is None else ReadMaxRows(self._wanted.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends = True
        self._until = self._settled.look(_PATIENTLY_S)
        if self._until is None and self._table.top() is not None:
            _LOG.warning("%s is being written to; nothing of it is read", self._wanted.table)

    def latestOffset(self, start: Form, limit: ReadLimit) -> Form:
        after = start["key"]
        upto = self._until if self._ends else self._settled.look(_SHORTLY_S)
        self._latest = self._table.top()
        if self._latest is not None and self._latest < after:
            raise SourceError(
                f"{TABLE}: {self._wanted.table} was read up to key {after}, and its largest is "
                f"{self._latest} now: keys were used again, or rows at its end were deleted, which "
                "cannot be told apart. Delete older rows first; where keys were used again, begin "
                "anew, with a new checkpoint"
            )
        if upto is None or upto <= after:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {"key": upto if most is None else self._table.end(after, upto, most)}

    def reportLatestOffset(self) -> Form | None:
        return None if self._latest is None else {"key": self._latest}

    def partitions(self, start: Form, end: Form) -> list[InputPartition]:
        return [Keys(start["key"], end["key"])] if start["key"] < end["key"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._wanted, self._schema, partition)

    def stop(self) -> None:
        if "_settled" in vars(self):  # what was never used was never opened
            self._table.database.close()


def _read(
    wanted: TableOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Read rows page by page; an empty batch has none."""
    if not isinstance(partition, Keys):
        return
    table = wanted.open()
    with closing(table.database):
        kinds = {each.name: each for each in table.columns()}
        if missing := [name for name in schema.names if name not in kinds]:
            raise SourceError(f"{TABLE}: {wanted.table} has no column {missing[0]!r}")
        columns, after = [kinds[name] for name in schema.names], partition.after
        while rows := table.page(columns, after, partition.upto, _PAGE):
            yield as_batch(wanted.table, rows, schema)
            after = rows[-1][0]
