"""Random Arrow tables of every type that Arrow has, with data that may be damaged."""

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

TEXTS = ["", "a", "drama", "2003", "é", "\x00", "null", "1970-01-01T00:00:00Z", "x" * 300]
WHOLE = [0, 1, -1, 7, 127]
REALS = [0.0, 1.5, -2.0, float("nan"), float("inf"), float("-inf")]
TICKS = [0, 1, -1, 10**15, 2**62, -(2**62), 2**63 - 1, -(2**63)]
SCALARS: list[pa.DataType] = [
    pa.null(),
    pa.bool_(),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal32(7, 2),
    pa.decimal64(9, 0),
    pa.decimal128(20, 3),
    pa.decimal256(60, 3),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(3),
    pa.date32(),
    pa.date64(),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Athens"),
    pa.timestamp("s", "Nowhere/Bogus"),
    pa.time32("s"),
    pa.time64("ns"),
    pa.duration("us"),
    pa.month_day_nano_interval(),
    pa.uuid(),
    pa.json_(),
]
NAMES = ["id", "published_at", "sequence", "content", "genre", "year", "", "a.b", "attributes", "é"]


def random_type(chance: Random, depth: int = 2) -> pa.DataType:
    """Return a type, nested up to some levels."""
    if depth == 0 or chance.random() < 0.6:
        return chance.choice(SCALARS)
    inner = random_type(chance, depth - 1)
    return chance.choice(
        [
            pa.list_(inner),
            pa.large_list(inner),
            pa.list_(inner, 2),
            pa.list_view(inner),
            pa.large_list_view(inner),
            pa.map_(chance.choice([pa.string(), pa.int32(), pa.large_string()]), inner),
            pa.struct([("a", inner), ("b", pa.int64())]),
            pa.struct([("a", inner), ("a", pa.int64())]),
            pa.dictionary(pa.int8(), chance.choice([pa.string(), pa.int64(), pa.timestamp("us")])),
            pa.run_end_encoded(pa.int32(), chance.choice([pa.string(), pa.float64()])),
        ]
    )


def random_array(chance: Random, kind: pa.DataType, size: int) -> pa.Array:
    """Return an array of a type; one that Python values cannot make is empty or null."""
    cells = [None if chance.random() < 0.15 else _value(chance, kind) for _ in range(size)]
    try:
        if pa.types.is_run_end_encoded(kind):
            return pa.compute.run_end_encode(pa.array(cells, kind.value_type))
        if pa.types.is_dictionary(kind):
            return _dictionary(chance, kind, size)
        if pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or pa.types.is_duration(kind):
            return pa.array(cells, pa.int64()).view(kind)
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(kind, pa.array(cells, kind.storage_type))
        return pa.array(cells, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.nulls(size, pa.null())


def _dictionary(chance: Random, kind: pa.DataType, size: int) -> pa.Array:
    values = random_array(chance, kind.value_type, 4)
    places = [None if chance.random() < 0.2 else chance.randrange(4) for _ in range(size)]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)


def _value(chance: Random, kind: pa.DataType) -> Any:  # noqa: C901, PLR0911, PLR0912
    types = pa.types
    if types.is_run_end_encoded(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_boolean(kind):
        return chance.random() < 0.5
    if types.is_integer(kind):
        return abs(chance.choice(WHOLE))
    if types.is_float16(kind):
        return np.float16(chance.choice(REALS))
    if types.is_floating(kind):
        return chance.choice(REALS)
    if types.is_decimal(kind):
        return Decimal(chance.choice(WHOLE))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return chance.choice(TEXTS)
    if types.is_fixed_size_binary(kind):
        return bytes(chance.randrange(256) for _ in range(kind.byte_width))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return bytes(chance.randrange(256) for _ in range(chance.randrange(4)))
    if types.is_timestamp(kind) or types.is_date64(kind) or types.is_duration(kind):
        return chance.choice(TICKS)
    if types.is_date32(kind):
        return chance.choice([0, 1, 10**6, -(10**6)])
    if types.is_time(kind):
        return chance.randrange(86_400)
    if types.is_map(kind):
        keys = [_value(chance, kind.key_type) for _ in range(chance.randrange(3))]
        return [(key, _value(chance, kind.item_type)) for key in keys]
    if types.is_struct(kind):
        return {field.name: _value(chance, field.type) for field in kind}
    if types.is_fixed_size_list(kind):
        return [_value(chance, kind.value_type) for _ in range(kind.list_size)]
    if types.is_nested(kind):
        return [_value(chance, kind.value_type) for _ in range(chance.randrange(3))]
    return None


def union(chance: Random, size: int) -> pa.Array:
    """Return an array of numbers and texts."""
    which = pa.array([chance.randrange(2) for _ in range(size)], pa.int8())
    return pa.UnionArray.from_sparse(
        which, [pa.array(range(size)), pa.array([str(each) for each in range(size)])]
    )


def random_table(chance: Random) -> pa.Table:
    """Return a table that may or may not hold publications."""
    size = chance.randrange(7)
    names = [chance.choice(NAMES) for _ in range(chance.randrange(5))]
    columns = [
        union(chance, size)
        if chance.random() < 0.03
        else random_array(chance, random_type(chance), size)
        for _ in names
    ]
    if chance.random() < 0.85:
        ids = [chance.choice([None, "", "e1", "e2", f"e{at}"]) for at in range(size)]
        texts = chance.choice([pa.string(), pa.large_string(), pa.string_view()])
        names, columns = [*names, "id"], [*columns, pa.array(ids, texts)]
        whens = [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.date32(), pa.string()]
        kind = chance.choice([*whens, pa.float64(), pa.int64(), random_type(chance)])
        names, columns = [*names, "published_at"], [*columns, random_array(chance, kind, size)]
    if chance.random() < 0.8:  # columns that are there twice are refused at once
        kept = dict(zip(names, columns, strict=True))
        names, columns = list(kept), list(kept.values())
    table = pa.Table.from_arrays(columns, names=names)
    if chance.random() < 0.3 and size:
        table = pa.concat_tables([table, table.slice(chance.randrange(size))])
    if chance.random() < 0.3 and size:
        table = table.slice(chance.randrange(size))
    return damaged(chance, table) if chance.random() < 0.4 else table


def damaged(chance: Random, table: pa.Table) -> pa.Table:
    """Return a table of which some bytes in some buffer are others."""
    if not table.num_columns or not table.num_rows:
        return table
    place = chance.randrange(table.num_columns)
    column = table.column(place).combine_chunks()
    column = column if isinstance(column, pa.Array) else column.chunk(0)
    try:
        buffers = column.buffers()
        filled = [at for at, each in enumerate(buffers) if each is not None and each.size]
        if not filled or pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
            return table
        at = chance.choice(filled)
        body = bytearray(buffers[at].to_pybytes())
        for _ in range(chance.randrange(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        buffers[at] = pa.py_buffer(bytes(body))
        made = pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        return table
    return table.set_column(place, table.field(place), made)
