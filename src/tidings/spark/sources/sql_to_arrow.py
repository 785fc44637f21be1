"""Rows of a database as Arrow columns; a cell that does not fit names its row, column and value."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidings.errors import SourceError, shown
from tidings.formats.event_source import TABLE

_FAULTS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


def as_batch(table: str, rows: Sequence[tuple[Any, ...]], schema: StructType) -> pa.RecordBatch:
    """Give rows, of which each begins with its key, as a batch without the keys."""
    keys, *columns = zip(*rows, strict=True)
    arrow = to_arrow_schema(schema, timezone="UTC")
    arrays = []
    for field, cells in zip(arrow, columns, strict=True):
        try:
            arrays.append(_array(cells, field.type))
        except _FAULTS:
            raise SourceError(_misfit(table, field, keys, cells)) from None
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _array(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    fit = _fitting(kind)
    return pa.array([None if each is None else fit(each) for each in cells], kind)


def _fitting(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_string(kind):
        return lambda cell: str(cell) if isinstance(cell, int | float) else cell
    if pa.types.is_boolean(kind):
        return lambda cell: bool(cell) if cell in (0, 1) else cell
    return lambda cell: cell


def _misfit(table: str, field: pa.Field, keys: Sequence[int], cells: Sequence[Any]) -> str:
    key, cell = next(
        (key, cell) for key, cell in zip(keys, cells, strict=True) if not _fits(cell, field.type)
    )
    return (
        f"{TABLE}: {table}, row {key}: column {field.name} is {field.type}, and {shown(cell)} does "
        "not fit; mend the row, or give a schema in which the column is a string"
    )


def _fits(cell: Any, kind: pa.DataType) -> bool:
    try:
        _array([cell], kind)
    except _FAULTS:
        return False
    return True
