"""Validation of Arrow arrays from outside, of which kernels trust every offset and index."""

from typing import Final, TypeVar

import pyarrow as pa
from pyarrow import types

from tidings.errors import InvalidForm

Data = TypeVar("Data", pa.RecordBatch, pa.Table)
_NARROW: Final = (types.is_string, types.is_binary, types.is_list, types.is_map)
_WIDE: Final = (types.is_large_string, types.is_large_binary, types.is_large_list)
_LISTS: Final = (
    *(types.is_list, types.is_large_list, types.is_fixed_size_list),
    *(types.is_list_view, types.is_large_list_view),
)


def validate_fully(data: Data) -> Data:
    """Return data whose offsets, indices and UTF-8 are all valid; refuse any other.

    Arrow does not check the offsets of an array without values, but follows them when it counts
    bytes or flattens lists, and dies. Offsets that are missing, as the format allows, are added.
    """
    data.validate(full=True)
    for number, column in enumerate(data.columns):
        arrays = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if True in [_lacks_offsets(array) for array in arrays]:  # all of them are checked
            copied = column.take(pa.array(range(len(column)), pa.int64()))
            data = data.set_column(number, data.schema.field(number), copied)
    return data


def _lacks_offsets(array: pa.Array) -> bool:
    """Return whether an array without values, at any depth, has no offsets.

    Refuses one whose first offset is not in its content.
    """
    parts, lacks = _parts(array), False
    width = _offset_bytes(array.type)
    if width and len(array) == 0:
        offsets, content = array.buffers()[1:3]
        start = array.offset * width
        lacks = offsets is None or offsets.size < start + width
        if not lacks:
            first = int.from_bytes(offsets[start : start + width], "little", signed=True)
            size = len(parts[0]) if parts else content.size if content is not None else 0
            if not 0 <= first <= size:
                raise InvalidForm("the offsets of an array without values point outside of it")
    return any([lacks, *map(_lacks_offsets, parts)])


def _offset_bytes(kind: pa.DataType) -> int:
    """Return the size of an offset into the content; 0 for types without offsets."""
    return 4 * any(test(kind) for test in _NARROW) + 8 * any(test(kind) for test in _WIDE)


def _parts(array: pa.Array) -> list[pa.Array]:
    """Return the arrays that an array consists of."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return [array.storage]
    if types.is_dictionary(kind):
        return [array.dictionary]
    if types.is_map(kind):
        return [array.keys, array.items]
    if types.is_struct(kind) or types.is_union(kind):
        return [array.field(number) for number in range(kind.num_fields)]
    return [array.values] if any(test(kind) for test in _LISTS) else []
