"""Arrays without values are validated as well; Arrow itself does not."""

import pyarrow as pa
import pytest

from tidings.errors import InvalidForm
from tidings.formats.arrow import validated
from tidings.formats.arrow_validation import validate_fully
from tidings.formats.columnar_files import ColumnarFile

FAR = 570_425_344


def empty(kind: pa.DataType, first: int, *children: pa.Array) -> pa.Array:
    """Return an array without values whose first offset is `first`."""
    width = 8 if "large" in str(kind) else 4
    offsets = pa.py_buffer(first.to_bytes(width, "little", signed=True))
    buffers = [None, offsets] if children else [None, offsets, pa.py_buffer(b"ab")]
    return pa.Array.from_buffers(kind, 0, buffers, children=list(children) or None)


def lists_of(inner: pa.Array) -> pa.Array:
    """Return two empty lists."""
    kind = pa.list_(inner.type)
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(bytes(12))], children=[inner])


TEXTS = pa.array(["x"])
KEY = pa.field("key", pa.string(), nullable=False)
PAIRS = pa.array([("k", 1)], pa.struct([KEY, pa.field("value", pa.int8())]))


@pytest.mark.parametrize("first", [-1, FAR])
@pytest.mark.parametrize(
    ("kind", "children"),
    [
        (pa.string(), []),
        (pa.large_binary(), []),
        (pa.list_(pa.string()), [TEXTS]),
        (pa.large_list(pa.string()), [TEXTS]),
        (pa.map_(pa.string(), pa.int8()), [PAIRS]),
    ],
)
def test_offsets_that_point_outside_are_refused_at_any_depth(kind, children, first):
    damaged = empty(kind, first, *children)
    struct = pa.StructArray.from_arrays([damaged], ["a"])
    nested = [damaged, lists_of(damaged), lists_of(lists_of(damaged)), lists_of(struct)]
    for array in nested:
        for data in (pa.table({"a": array}), pa.record_batch({"a": array})):
            with pytest.raises((InvalidForm, pa.ArrowInvalid), match=r"without values|Offset"):
                validate_fully(data)


def test_slices_without_values_are_accepted():
    rows = {
        "t": ["a", "b"],
        "l": [["x"], ["y", "z"]],
        "d": pa.array(["p", "q"]).dictionary_encode(),
    }
    table = pa.table(rows)
    for start in range(3):
        validate_fully(table.slice(start, 0))
    validate_fully(pa.table({"a": empty(pa.list_(pa.string()), 0, TEXTS)}))


@pytest.mark.parametrize("offsets", [None, pa.py_buffer(b"")])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_missing_offsets_are_added(depth: int, offsets: pa.Buffer | None) -> None:
    array = pa.Array.from_buffers(pa.string(), 0, [None, offsets, pa.py_buffer(b"")])
    for _ in range(depth):
        array = lists_of(array)
    for data in (pa.table({"a": array}), pa.record_batch({"a": array})):
        valid = validate_fully(data)
        assert valid.to_pylist() == data.to_pylist()
        assert valid.nbytes < 100  # Arrow would die


def test_a_table_with_them_is_refused():
    lists = lists_of(empty(pa.list_(pa.string()), FAR, TEXTS))
    table = pa.table({"id": ["a", "b"], "published_at": [0, 1], "x": lists})
    with pytest.raises(InvalidForm, match="without values"):
        validated(table)


def test_a_file_with_them_is_refused():
    batch = pa.record_batch({"x": lists_of(empty(pa.list_(pa.string()), FAR, TEXTS))})
    with pytest.raises(InvalidForm, match="without values"):
        next(ColumnarFile(batch.schema, 1_000, iter([batch])).batches())
